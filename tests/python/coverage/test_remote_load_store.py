"""Fetching from the next rank and pushing to it give what they should, each between two barriers."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import numbers
from programs import config

NR = pl.dynamic("NR")
SIZE = 64


@pl.jit.inline
def barrier(bell, me, n, passes: pl.Scalar[pl.INT32]):
    for peer in pl.range(n):
        pld.system.notify(bell, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    for peer in pl.range(n):
        pld.system.wait(bell, offsets=[peer, 0], expected=passes, cmp=pld.WaitCmp.Ge)


@pl.jit.incore
def fetch(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
    bell: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(box)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    box = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], box)
    barrier(bell, me, n, 1)
    theirs = pld.tile.remote_load(box, peer=(me + 1) % n, offsets=[0, 0], shape=[1, SIZE])
    y = pl.store(theirs, [0, 0], y)
    return y


@pl.jit.incore
def push(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
    bell: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(box)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    tile = pl.load(x, [0, 0], [1, SIZE])
    pld.tile.remote_store(tile, target=box, peer=(me + 1) % n, offsets=[0, 0])
    barrier(bell, me, n, 1)
    y = pl.store(pl.load(box, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit
def fetch_chip(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
    bell: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    return fetch(x, y, box, bell)


@pl.jit
def push_chip(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
    bell: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    return push(x, y, box, bell)


@pl.jit.host
def fetch_all(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    boxes = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    bells = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(boxes, [1, SIZE], dtype=pl.FP32)
        bell = pld.window(bells, [pld.world_size(), 1], dtype=pl.INT32)
        fetch_chip(x[r], y[r], box, bell, device=r)
    return y


@pl.jit.host
def push_all(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    boxes = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    bells = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(boxes, [1, SIZE], dtype=pl.FP32)
        bell = pld.window(bells, [pld.world_size(), 1], dtype=pl.INT32)
        push_chip(x[r], y[r], box, bell, device=r)
    return y


def test_remote_load_store(ranks, transport):
    x = numbers(ranks, 1, SIZE)
    for program, direction in ((fetch_all, -1), (push_all, 1)):
        y = np.zeros_like(x)
        program(x, y, config=config(ranks))
        assert (y == np.roll(x, direction, axis=0)).all()
