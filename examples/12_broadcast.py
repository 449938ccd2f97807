"""Broadcast: everybody ends with the row of one rank, the root.

By hand the root pushes: it knows when its row is ready, so one signal per peer says all, and who is not the root waits
for one cell. Built in, every rank names the root, and the window of each becomes that of the root; the others may not
have filled theirs at all. Behind it the root can overwrite its row at once: all have got it.

    python examples/12_broadcast.py [--mode hand|builtin] [-d 0,1,2] [-p cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
SIZE = 64
ROOT = 0


@pl.jit.incore
def hand(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    row: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(row)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    if me == ROOT:
        mine = pl.load(x, [0, 0], [1, SIZE])
        for peer in pl.range(n):
            pld.tile.remote_store(mine, target=row, peer=peer, offsets=[0, 0])      # to itself as well
            pld.system.notify(arrived, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
    pld.system.wait(arrived, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    y = pl.store(pl.load(row, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit.incore
def builtin(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    row: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    row = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], row)
    row = pld.tensor.broadcast(row, arrived, root=ROOT)
    y = pl.store(pl.load(row, [0, 0], [1, SIZE]), [0, 0], y)
    return y


def program(kernel):
    """The functions around one of the two kernels."""

    @pl.jit
    def device(
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        row: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        return kernel(x, y, row, arrived)

    @pl.jit.host
    def host(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
        row_buffer = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
        arrived_buffer = pld.alloc_window_buffer([NR, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            row = pld.window(row_buffer, [1, SIZE], dtype=pl.FP32)
            arrived = pld.window(arrived_buffer, [NR, 1], dtype=pl.INT32)
            device(x[r], y[r], row, arrived, device=r)
        return y

    return host


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options(modes=("hand", "builtin"))
ranks = len(given.devices)
x = np.arange(ranks * SIZE, dtype=np.float32).reshape(ranks, 1, SIZE) + 1
y = np.zeros(x.shape, np.float32)
compiled = program({"hand": hand, "builtin": builtin}[given.mode]).compile(x, y, config=config(given))
if not given.compile_only:
    compiled(x, y)
    for rank in range(ranks):
        print(f"rank {rank} has [{', '.join(map(str, y[rank, 0, :3]))}, ...]")
    finish((y == x[0]).all())
