"""Reduce-scatter: rank r ends with the sum of everybody's row r.

It is the first half of the all-reduce of 09: the work of adding is divided among the ranks, and so is the result. By
hand a rank reads its row of every window behind a barrier. Built in, row `me` of the own window becomes the sum, and
the other rows stay as they were.

    python examples/14_reduce_scatter.py [--mode hand|builtin] [-d 0,1,2] [-p cpu] [--compile-only]
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
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(rows)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    for i in pl.range(n):
        rows = pl.store(pl.load(x, [i, 0], [1, SIZE]), [i, 0], rows)
    barrier(arrived, me, n)
    total = pld.tile.remote_load(rows, peer=0, offsets=[me, 0], shape=[1, SIZE])
    for peer in pl.range(1, n):
        total = pl.add(total, pld.tile.remote_load(rows, peer=peer, offsets=[me, 0], shape=[1, SIZE]))
    y = pl.store(total, [0, 0], y)
    return y


@pl.jit.incore
def builtin(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    me = pld.rank(pld.get_comm_ctx(rows))
    for i in pl.range(NR):
        rows = pl.store(pl.load(x, [i, 0], [1, SIZE]), [i, 0], rows)
    rows = pld.tensor.reduce_scatter(rows, arrived, op=pld.ReduceOp.Sum)
    y = pl.store(pl.load(rows, [me, 0], [1, SIZE]), [0, 0], y)
    return y


def program(kernel):
    """The functions around one of the two kernels."""

    @pl.jit
    def device(
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        return kernel(x, y, rows, arrived)

    @pl.jit.host
    def host(x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
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
x = np.arange(ranks * ranks * SIZE, dtype=np.float32).reshape(ranks, ranks, SIZE) + 1
y = np.zeros((ranks, 1, SIZE), np.float32)
compiled = program({"hand": hand, "builtin": builtin}[given.mode]).compile(x, y, config=config(given))
if not given.compile_only:
    compiled(x, y)
    for rank in range(ranks):
        print(f"rank {rank} has [{', '.join(map(str, y[rank, 0, :3]))}, ...]")
    finish((y[:, 0] == x.sum(axis=0)).all())
