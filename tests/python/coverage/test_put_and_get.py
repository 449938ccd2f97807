"""Whole slices around a ring: pushed with put to the next rank, fetched with get from it."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import numbers
from programs import config

NR = pl.dynamic("NR")
SIZE = 64


@pl.jit.incore
def push(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(box)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    after = (me + 1) % n
    pld.tensor.put(box, after, x, atomic=pld.AtomicType.None_)
    pld.system.notify(bell, peer=after, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    y = pl.store(pl.load(box, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit.incore
def fetch(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(box)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    before = (me - 1 + n) % n
    box = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], box)
    pld.system.notify(bell, peer=before, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    pld.tensor.get(y, (me + 1) % n, box)
    return y


@pl.jit
def push_chip(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
):
    return push(x, y, box, bell)


@pl.jit
def fetch_chip(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
):
    return fetch(x, y, box, bell)


@pl.jit.host
def push_all(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    boxes = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    bells = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(boxes, [1, SIZE], dtype=pl.FP32)
        bell = pld.window(bells, [1, 1], dtype=pl.INT32)
        push_chip(x[r], y[r], box, bell, device=r)
    return y


@pl.jit.host
def fetch_all(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    boxes = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    bells = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(boxes, [1, SIZE], dtype=pl.FP32)
        bell = pld.window(bells, [1, 1], dtype=pl.INT32)
        fetch_chip(x[r], y[r], box, bell, device=r)
    return y


def test_put_get(ranks, transport):
    x = numbers(ranks, 1, SIZE)
    for program, direction in ((push_all, 1), (fetch_all, -1)):
        y = np.zeros_like(x)
        program(x, y, config=config(ranks))
        assert (y == np.roll(x, direction, axis=0)).all()
