"""One compiled program for any number of ranks: only the host's leading dimension is dynamic."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import numbers
from programs import config

NR = pl.dynamic("NR")
SIZE = 32


@pl.jit.incore
def ring(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[2, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
    own: pld.DistributedTensor[[1, SIZE], pl.FP32],
    bell: pld.DistributedTensor[[2, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(box)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    after = (me + 1) % n
    before = (me - 1 + n) % n
    own = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], own)
    pld.tensor.put(box, after, x)
    pld.system.notify(bell, peer=after, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.notify(bell, peer=before, offsets=[1, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    pld.system.wait(bell, offsets=[1, 0], expected=1, cmp=pld.WaitCmp.Ge)
    y = pl.store(pl.load(box, [0, 0], [1, SIZE]), [0, 0], y)
    pld.tensor.get(y, after, own, [1, 0], [0, 0], [1, SIZE])
    return y


@pl.jit
def chip(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[2, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
    own: pld.DistributedTensor[[1, SIZE], pl.FP32],
    bell: pld.DistributedTensor[[2, 1], pl.INT32],
):
    return ring(x, y, box, own, bell)


@pl.jit.host
def host(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 2, SIZE], pl.FP32]]):
    boxes = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    owns = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    bells = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(boxes, [1, SIZE], dtype=pl.FP32)
        own = pld.window(owns, [1, SIZE], dtype=pl.FP32)
        bell = pld.window(bells, [2, 1], dtype=pl.INT32)
        chip(x[r], y[r], box, own, bell, device=r)
    return y


def test_dynamic_rank_count(ranks, transport):
    for count in (ranks, 3):
        x = numbers(count, 1, SIZE)
        y = np.zeros((count, 2, SIZE), np.float32)
        host(x, y, config=config(count))
        assert (y[:, :1] == np.roll(x, 1, axis=0)).all()
        assert (y[:, 1:] == np.roll(x, -1, axis=0)).all()
