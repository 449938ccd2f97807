"""All-to-all: every rank has a row for every other; rank r ends with everybody's row r.

Seen from above it is a transposition: what was row r of rank s becomes row s of rank r. By hand a rank puts each of its
rows into the window of the rank that it is for; behind a barrier all rows for it have come. Built in it is one line.
For rows of which only some mean something there is pld.tensor.all_to_all_v, which sends their number along.

    python examples/15_all_to_all.py [--mode hand|builtin] [-d 0,1,2] [-p cpu] [--compile-only]
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
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(rows)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    for peer in pl.range(n):
        pld.tensor.put(rows, peer, x, dst_offsets=[me, 0], src_offsets=[peer, 0], shape=[1, SIZE])
    barrier(arrived, me, n)
    for i in pl.range(n):
        y = pl.store(pl.load(rows, [i, 0], [1, SIZE]), [i, 0], y)
    return y


@pl.jit.incore
def builtin(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    rows = pld.tensor.all_to_all(x, rows, arrived)
    for i in pl.range(NR):
        y = pl.store(pl.load(rows, [i, 0], [1, SIZE]), [i, 0], y)
    return y


def program(kernel):
    """The functions around one of the two kernels."""

    @pl.jit
    def device(
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        return kernel(x, y, rows, arrived)

    @pl.jit.host
    def host(x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
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
y = np.zeros(x.shape, np.float32)
compiled = program({"hand": hand, "builtin": builtin}[given.mode]).compile(x, y, config=config(given))
if not given.compile_only:
    compiled(x, y)
    for rank in range(ranks):
        print(f"rank {rank} has [{', '.join(map(str, y[rank, :, 0]))}, ...]")
    finish((y == x.transpose(1, 0, 2)).all())
