"""All-reduce in two phases: each rank adds up one part of the row, then everybody collects the parts.

In 08 every rank reads P - 1 whole rows and adds all of it, so the same sums are computed P times. Here rank r computes
part r only (that is a reduce-scatter), and writes it to everybody (an all-gather). A rank moves about 2 N numbers,
however many ranks there are, instead of (P - 1) N; in exchange there are two steps and so two barriers.

    python examples/09_two_phase_allreduce.py [-d 0,1,2] [-p cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
PART = 64       # numbers per part; a row has NR parts


@pl.jit.inline
def barrier(arrived, me, n, count):
    """The count-th one: cells count up, so that nobody has to reset them in between."""
    for peer in pl.range(n):
        if peer != me:
            pld.system.notify(arrived, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    for peer in pl.range(n):
        if peer != me:
            pld.system.wait(arrived, offsets=[peer, 0], expected=count, cmp=pld.WaitCmp.Ge)


@pl.jit.incore
def allreduce(
    x: pl.Tensor[[NR, PART], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, PART], pl.FP32]],
    mine: pl.InOut[pld.DistributedTensor[[NR, PART], pl.FP32]],
    sums: pl.InOut[pld.DistributedTensor[[NR, PART], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(mine)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    for part in pl.range(n):
        mine = pl.store(pl.load(x, [part, 0], [1, PART]), [part, 0], mine)
    barrier(arrived, me, n, 1)

    # Part `me` of everybody, in the order of ranks.
    total = pld.tile.remote_load(mine, peer=0, offsets=[me, 0], shape=[1, PART])
    for peer in pl.range(1, n):
        total = pl.add(total, pld.tile.remote_load(mine, peer=peer, offsets=[me, 0], shape=[1, PART]))
    for peer in pl.range(n):
        pld.tile.remote_store(total, target=sums, peer=peer, offsets=[me, 0])
    barrier(arrived, me, n, 2)

    for part in pl.range(n):
        y = pl.store(pl.load(sums, [part, 0], [1, PART]), [part, 0], y)
    return y


@pl.jit
def device(
    x: pl.Tensor[[NR, PART], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, PART], pl.FP32]],
    mine: pl.InOut[pld.DistributedTensor[[NR, PART], pl.FP32]],
    sums: pl.InOut[pld.DistributedTensor[[NR, PART], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    return allreduce(x, y, mine, sums, arrived)


@pl.jit.host
def host(x: pl.Tensor[[NR, NR, PART], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, PART], pl.FP32]]):
    mine_buffer = pld.alloc_window_buffer([NR, PART], dtype=pl.FP32)
    sum_buffer = pld.alloc_window_buffer([NR, PART], dtype=pl.FP32)
    cell_buffer = pld.alloc_window_buffer([NR, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        mine = pld.window(mine_buffer, [NR, PART], dtype=pl.FP32)
        sums = pld.window(sum_buffer, [NR, PART], dtype=pl.FP32)
        arrived = pld.window(cell_buffer, [NR, 1], dtype=pl.INT32)
        device(x[r], y[r], mine, sums, arrived, device=r)
    return y


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options()
ranks = len(given.devices)
x = np.random.default_rng(9).standard_normal((ranks, ranks, PART), dtype=np.float32)
y = np.zeros_like(x)
program = host.compile(x, y, config=config(given))
if not given.compile_only:
    program(x, y)
    total = x[0].copy()
    for row in x[1:]:
        total += row
    print(f"every rank has [{', '.join(f'{v:.4f}' for v in y[0, 0, :3])}, ...]")
    finish((y == total).all())
