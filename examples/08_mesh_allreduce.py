"""All-reduce, the short way: everybody reads everybody, and adds.

The ranks end with the same sum, to the last bit, because all of them add in the order of ranks: floating-point sums
depend on it. A rank reads P - 1 rows of N numbers, in one go: few steps, much to move. 09 and 10 move less.

    python examples/08_mesh_allreduce.py [-d 0,1,2] [-p cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
SIZE = 256


@pl.jit.incore
def allreduce(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(rows)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    rows = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], rows)    # where the others can read it

    for peer in pl.range(n):
        if peer != me:
            pld.system.notify(arrived, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    for peer in pl.range(n):
        if peer != me:
            pld.system.wait(arrived, offsets=[peer, 0], expected=1, cmp=pld.WaitCmp.Ge)

    # Rank 0 first, whoever I am; the own row is read like any other.
    total = pld.tile.remote_load(rows, peer=0, offsets=[0, 0], shape=[1, SIZE])
    for peer in pl.range(1, n):
        total = pl.add(total, pld.tile.remote_load(rows, peer=peer, offsets=[0, 0], shape=[1, SIZE]))
    y = pl.store(total, [0, 0], y)
    return y


@pl.jit
def device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    return allreduce(x, y, rows, arrived)


@pl.jit.host
def host(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    row_buffer = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    cell_buffer = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        rows = pld.window(row_buffer, [1, SIZE], dtype=pl.FP32)
        arrived = pld.window(cell_buffer, [pld.world_size(), 1], dtype=pl.INT32)
        device(x[r], y[r], rows, arrived, device=r)
    return y


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options()
x = np.random.default_rng(8).standard_normal((len(given.devices), 1, SIZE), dtype=np.float32)
y = np.zeros_like(x)
program = host.compile(x, y, config=config(given))
if not given.compile_only:
    program(x, y)
    total = x[0].copy()
    for row in x[1:]:
        total += row                # in FP32 and in that order, as the ranks do it
    print(f"every rank has [{', '.join(f'{v:.4f}' for v in y[0, 0, :3])}, ...]")
    finish((y == total).all())
