"""All-gather: everybody ends with the rows of all ranks, one below the other.

By hand every rank puts its row into row `me` of everybody's window; behind a barrier all rows of the own one are
there. Built in it is one line, which takes the row from any tensor.

    python examples/13_allgather.py [--mode hand|builtin] [-d 0,1,2] [-p cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
SIZE = 64


@pl.jit.inline
def barrier(arrived, me, n):
    """04_barrier.py explains it."""
    for peer in pl.range(n):
        if peer != me:
            pld.system.notify(arrived, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
    for peer in pl.range(n):
        if peer != me:
            pld.system.wait(arrived, offsets=[peer, 0], expected=1, cmp=pld.WaitCmp.Ge)


@pl.jit.incore
def hand(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(rows)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    for peer in pl.range(n):
        pld.tensor.put(rows, peer, x, dst_offsets=[me, 0], src_offsets=[0, 0], shape=[1, SIZE])
    barrier(arrived, me, n)
    for i in pl.range(n):
        y = pl.store(pl.load(rows, [i, 0], [1, SIZE]), [i, 0], y)
    return y


@pl.jit.incore
def builtin(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    rows = pld.tensor.allgather(x, rows, arrived)
    for i in pl.range(NR):
        y = pl.store(pl.load(rows, [i, 0], [1, SIZE]), [i, 0], y)
    return y


def program(kernel):
    """The functions around one of the two kernels."""

    @pl.jit
    def device(
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        return kernel(x, y, rows, arrived)

    @pl.jit.host
    def host(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
        rows_buffer = pld.alloc_window_buffer([NR, SIZE], dtype=pl.FP32)
        arrived_buffer = pld.alloc_window_buffer([NR, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            rows = pld.window(rows_buffer, [NR, SIZE], dtype=pl.FP32)
            arrived = pld.window(arrived_buffer, [NR, 1], dtype=pl.INT32)
            device(x[r], y[r], rows, arrived, device=r)
        return y

    return host


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options(modes=("hand", "builtin"))
ranks = len(given.devices)
x = np.arange(ranks * SIZE, dtype=np.float32).reshape(ranks, 1, SIZE) + 1
y = np.zeros((ranks, ranks, SIZE), np.float32)
compiled = program({"hand": hand, "builtin": builtin}[given.mode]).compile(x, y, config=config(given))
if not given.compile_only:
    compiled(x, y)
    for rank in range(ranks):
        print(f"rank {rank} has [{', '.join(map(str, y[rank, :, 0]))}, ...]")
    finish((y == x[:, 0]).all())
