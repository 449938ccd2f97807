"""Two ways to get a row from rank to rank: the reader fetches it, or the writer pushes it.

Either way there is a barrier in the middle, for opposite reasons. Who fetches must know that the row is there; who
looks into its own block must know that the peer has pushed.

    python examples/05_remote_load_store.py [--mode load|store] [-d 0,1] [-p cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
SIZE = 64


@pl.jit.incore
def load(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(rows)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    rows = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], rows)    # into this rank's own block
    pld.tensor.barrier(arrived)      # that of 04_barrier.py, built in
    theirs = pld.tile.remote_load(rows, peer=(me - 1) % n, offsets=[0, 0], shape=[1, SIZE])
    y = pl.store(theirs, [0, 0], y)
    return y


@pl.jit.incore
def store(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(rows)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    mine = pl.load(x, [0, 0], [1, SIZE])
    pld.tile.remote_store(mine, target=rows, peer=(me + 1) % n, offsets=[0, 0])     # into the next rank's block
    pld.tensor.barrier(arrived)
    y = pl.store(pl.load(rows, [0, 0], [1, SIZE]), [0, 0], y)
    return y


def ring(kernel):
    """The program around one of the two kernels."""

    @pl.jit
    def device(
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        return kernel(x, y, rows, arrived)

    @pl.jit.host
    def host(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
        row_buffer = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
        cell_buffer = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            rows = pld.window(row_buffer, [1, SIZE], dtype=pl.FP32)
            arrived = pld.window(cell_buffer, [pld.world_size(), 1], dtype=pl.INT32)
            device(x[r], y[r], rows, arrived, device=r)
        return y

    return host


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options(modes=("load", "store"))
x = np.arange(len(given.devices) * SIZE, dtype=np.float32).reshape(-1, 1, SIZE) + 1
y = np.zeros_like(x)
program = ring({"load": load, "store": store}[given.mode]).compile(x, y, config=config(given))
if not given.compile_only:
    program(x, y)
    for rank in range(len(x)):
        print(f"rank {rank} has [{', '.join(map(str, y[rank, 0, :3]))}, ...]")
    finish((y == np.roll(x, 1, axis=0)).all())
