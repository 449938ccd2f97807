"""A barrier, written by hand, and what it is good for.

Every device writes its row into its window and then fetches the row of the next device. Without the
barrier it might fetch what is not there yet. The barrier: tell every peer, then wait for every peer.
The language has one, too, which can be used again and again without counting.

    python examples/04_barrier.py [--use-builtin] [--devices 0,1] [--platform cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
SIZE = 64


@pl.jit.inline
def by_hand(arrived, me, n):
    """Cell `me` of every peer says that this rank has arrived, and so that its row is written: what a rank
    does before notify() is seen by whoever has waited for it."""
    for peer in pl.range(n):
        if peer != me:
            pld.system.notify(arrived, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
    for peer in pl.range(n):
        if peer != me:
            pld.system.wait(arrived, offsets=[peer, 0], expected=1, cmp=pld.WaitCmp.Ge)


@pl.jit.inline
def builtin(arrived, me, n):
    """The same promise; the cells are zero again behind it."""
    pld.tensor.barrier(arrived)


def program(barrier):
    """The program with one of the two barriers."""

    @pl.jit.incore
    def rotate(
        x: pl.Tensor[[1, SIZE], pl.INT32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.INT32]],
        rows: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.INT32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        ctx = pld.get_comm_ctx(rows)        # who shares this window
        me = pld.rank(ctx)
        n = pld.nranks(ctx)

        rows = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], rows)
        barrier(arrived, me, n)
        theirs = pld.tile.remote_load(rows, peer=(me + 1) % n, offsets=[0, 0], shape=[1, SIZE])
        y = pl.store(theirs, [0, 0], y)
        return y

    @pl.jit
    def device(
        x: pl.Tensor[[1, SIZE], pl.INT32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.INT32]],
        rows: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.INT32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        return rotate(x, y, rows, arrived)

    @pl.jit.host
    def host(x: pl.Tensor[[NR, 1, SIZE], pl.INT32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.INT32]]):
        row_buffer = pld.alloc_window_buffer([1, SIZE], dtype=pl.INT32)
        cell_buffer = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            rows = pld.window(row_buffer, [1, SIZE], dtype=pl.INT32)
            arrived = pld.window(cell_buffer, [pld.world_size(), 1], dtype=pl.INT32)
            device(x[r], y[r], rows, arrived, device=r)
        return y

    return host


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options(flags={"use-builtin": "use the barrier of the language"})
x = np.arange(len(given.devices) * SIZE, dtype=np.int32).reshape(-1, 1, SIZE)
y = np.zeros_like(x)
compiled = program(builtin if given.use_builtin else by_hand).compile(x, y, config=config(given))
if not given.compile_only:
    compiled(x, y)
    for rank in range(len(x)):
        print(f"rank {rank} fetched [{', '.join(map(str, y[rank, 0, :3]))}, ...]")
    finish((y == np.roll(x, -1, axis=0)).all())
