"""All-reduce around a ring: every rank talks to its right neighbour only.

The row has as many parts as there are ranks. In the first round of P - 1 steps each part travels around the ring and
grows by what it meets; then rank r holds the whole sum of part r + 1. In the second round the finished parts travel
around once more. A rank sends 2 (P - 1) / P rows in all, as little as is possible, but it takes 2 (P - 1) steps.

Each step has a place in the inbox and a cell of its own, so nothing is overwritten before it has been read, and
there is no barrier at all: a rank goes on when its left neighbour's part is there.

    python examples/10_ring_allreduce.py [-d 0,1,2] [-p cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
STEPS = pl.dynamic("STEPS")     # places of the inbox
PART = 64


@pl.jit.inline
def pass_on(parts, inbox, bell, right, step, part):
    """Sends a part to the right, and waits for the one that comes from the left in the same step."""
    pld.tensor.put(inbox, right, parts, dst_offsets=[step, 0], src_offsets=[part, 0], shape=[1, PART])
    pld.system.notify(bell, peer=right, offsets=[step, 0], value=1, op=pld.NotifyOp.Set)
    pld.system.wait(bell, offsets=[step, 0], expected=1, cmp=pld.WaitCmp.Ge)


@pl.jit.incore
def allreduce(
    x: pl.Tensor[[NR, PART], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, PART], pl.FP32]],
    parts: pl.InOut[pld.DistributedTensor[[NR, PART], pl.FP32]],
    inbox: pl.InOut[pld.DistributedTensor[[STEPS, PART], pl.FP32]],
    bell: pl.InOut[pld.DistributedTensor[[STEPS, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(parts)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    right = (me + 1) % n
    for part in pl.range(n):
        parts = pl.store(pl.load(x, [part, 0], [1, PART]), [part, 0], parts)

    for s in pl.range(n - 1):
        pass_on(parts, inbox, bell, right, s, (me - s) % n)
        grown = (me - s - 1) % n
        total = pl.add(pl.load(inbox, [s, 0], [1, PART]), pl.load(parts, [grown, 0], [1, PART]))
        parts = pl.store(total, [grown, 0], parts)

    for s in pl.range(n - 1):
        step = n - 1 + s
        pass_on(parts, inbox, bell, right, step, (me + 1 - s) % n)
        parts = pl.store(pl.load(inbox, [step, 0], [1, PART]), [(me - s) % n, 0], parts)

    for part in pl.range(n):
        y = pl.store(pl.load(parts, [part, 0], [1, PART]), [part, 0], y)
    return y


@pl.jit
def device(
    x: pl.Tensor[[NR, PART], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, PART], pl.FP32]],
    parts: pl.InOut[pld.DistributedTensor[[NR, PART], pl.FP32]],
    inbox: pl.InOut[pld.DistributedTensor[[STEPS, PART], pl.FP32]],
    bell: pl.InOut[pld.DistributedTensor[[STEPS, 1], pl.INT32]],
):
    return allreduce(x, y, parts, inbox, bell)


@pl.jit.host
def host(x: pl.Tensor[[NR, NR, PART], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, PART], pl.FP32]]):
    part_buffer = pld.alloc_window_buffer([NR, PART], dtype=pl.FP32)
    inbox_buffer = pld.alloc_window_buffer([2 * NR, PART], dtype=pl.FP32)
    bell_buffer = pld.alloc_window_buffer([2 * NR, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        parts = pld.window(part_buffer, [NR, PART], dtype=pl.FP32)
        inbox = pld.window(inbox_buffer, [2 * NR, PART], dtype=pl.FP32)
        bell = pld.window(bell_buffer, [2 * NR, 1], dtype=pl.INT32)
        device(x[r], y[r], parts, inbox, bell, device=r)
    return y


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options()
ranks = len(given.devices)
x = np.arange(ranks * ranks * PART, dtype=np.float32).reshape(ranks, ranks, PART)   # sums are exact in any order
y = np.zeros_like(x)
program = host.compile(x, y, config=config(given))
if not given.compile_only:
    program(x, y)
    print(f"every rank has [{', '.join(map(str, y[0, 0, :3]))}, ...]")
    finish((y == x.sum(axis=0)).all())
