"""Collectives: in a kernel, in a wrapper, in a host function; buffers that are marked as signals."""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")


@pl.jit.incore
def exchange(
    x: pl.Tensor[[NR, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 8], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[NR, 8], pl.FP32]],
    signals: pld.DistributedTensor[[2, 64], pl.INT32],
):
    data = pld.tensor.all_to_all(x, data, signals[0, :])
    pld.tensor.barrier(signals[1, :])
    pld.tensor.get(y, pld.rank(pld.get_comm_ctx(data)), data)


@pl.jit
def chip(
    x: pl.Tensor[[NR, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 8], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[NR, 8], pl.FP32]],
    signals: pld.DistributedTensor[[2, 64], pl.INT32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    root: pl.Scalar[pl.INT32],
):
    exchange(x, y, data, signals)
    data = pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Max)
    return pld.tensor.broadcast(data, pld.tensor.barrier(signal), root=root + 1)


@pl.jit.host
def host(x: pl.Tensor[[NR, NR, 8], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, 8], pl.FP32]]):
    ranks = pld.world_size()
    data_buf = pld.alloc_window_buffer([ranks, 8], dtype=pl.FP32)
    pair_buf = pld.alloc_window_buffer([2, 64], dtype=pl.INT32)
    signal_buf = pld.alloc_window_buffer([ranks], dtype=pl.INT32)
    data = pld.window(data_buf, [ranks, 8], dtype=pl.FP32)
    for r in pl.range(ranks):
        pair = pld.window(pair_buf, [2, 64], dtype=pl.INT32)
        signal = pld.window(signal_buf, [ranks, 1], dtype=pl.INT32)
        chip(x[r], y[r], data, pair, signal, -1, device=r)
    data = pld.tensor.allreduce(data, op=pld.ReduceOp.Min)
    return y
