"""A barrier by hand: nobody reads a neighbour's window before that neighbour has written it."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import numbers
from programs import config

NR = pl.dynamic("NR")
SIZE = 64


@pl.jit.incore
def exchange(
    x: pl.Tensor[[1, SIZE], pl.INT32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.INT32]],
    box: pld.DistributedTensor[[1, SIZE], pl.INT32],
    arrived: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(box)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    box = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], box)
    first = pl.read(x, [0, 0])
    pl.write(box, [0, 0], first * 2)
    for peer in pl.range(n):
        if peer != me:
            pld.system.notify(
                arrived, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd
            )
    for peer in pl.range(n):
        if peer != me:
            pld.system.wait(arrived, offsets=[peer, 0], expected=1, cmp=pld.WaitCmp.Ge)
    right = pld.tile.remote_load(box, peer=(me + 1) % n, offsets=[0, 0], shape=[1, SIZE])
    return pl.store(right, [0, 0], y)


@pl.jit
def device(
    x: pl.Tensor[[1, SIZE], pl.INT32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.INT32]],
    box: pld.DistributedTensor[[1, SIZE], pl.INT32],
    arrived: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = exchange(x, y, box, arrived)
    return y


@pl.jit.host
def host(x: pl.Tensor[[NR, 1, SIZE], pl.INT32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.INT32]]):
    boxes = pld.alloc_window_buffer([1, SIZE], dtype=pl.INT32)
    arrivals = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(boxes, [1, SIZE], dtype=pl.INT32)
        arrived = pld.window(arrivals, [pld.world_size(), 1], dtype=pl.INT32)
        device(x[r], y[r], box, arrived, device=r)
    return y


def test_barrier(ranks, transport):
    x = numbers(ranks, 1, SIZE, dtype=np.int32)
    y = np.zeros_like(x)
    host(x, y, config=config(ranks))
    expected = np.roll(x, -1, axis=0)
    expected[:, 0, 0] *= 2
    assert (y == expected).all()
