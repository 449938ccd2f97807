"""One compiled program for any number of ranks.

Whatever depends on how many there are says NR: the rows of a window, the cells of its signals, the bounds of loops.
Every rank puts its row into all collections, and then gets the collection of the next rank, which must be the same
everywhere.

    python examples/07_dynamic_rank_count.py [-d 0,1,2,3,4] [-p cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
SIZE = 64


@pl.jit.incore
def collect(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    me = pld.rank(pld.get_comm_ctx(rows))
    for peer in pl.range(NR):
        pld.tensor.put(rows, peer, x, dst_offsets=[me, 0], src_offsets=[0, 0], shape=[1, SIZE])

    # A rank tells all that it has put all its rows. Who has heard that from everybody knows that everybody's
    # collection is complete, not only its own.
    for peer in pl.range(NR):
        pld.system.notify(arrived, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
    for peer in pl.range(NR):
        pld.system.wait(arrived, offsets=[peer, 0], expected=1, cmp=pld.WaitCmp.Ge)

    # How many rows there are is known when the program runs; a device wants to know how many to copy at a time.
    pld.tensor.get(y, (me + 1) % NR, rows, chunk_rows=1)
    return y


@pl.jit
def device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    return collect(x, y, rows, arrived)


@pl.jit.host
def host(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
    row_buffer = pld.alloc_window_buffer([NR, SIZE], dtype=pl.FP32)
    cell_buffer = pld.alloc_window_buffer([NR, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        rows = pld.window(row_buffer, [NR, SIZE], dtype=pl.FP32)
        arrived = pld.window(cell_buffer, [NR, 1], dtype=pl.INT32)
        device(x[r], y[r], rows, arrived, device=r)
    return y


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options()
count = len(given.devices)
x = np.arange(count * SIZE, dtype=np.float32).reshape(count, 1, SIZE) + 1
y = np.zeros((count, count, SIZE), np.float32)
program = host.compile(x, y, config=config(given))
if not given.compile_only:
    program(x, y)
    for rank in range(count):
        print(f"rank {rank} has {count} rows, which begin with [{', '.join(map(str, y[rank, :3, 0]))}, ...]")
    finish((y == x[:, 0]).all())
