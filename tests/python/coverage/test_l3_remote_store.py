"""Ways to push data to the next rank: a tile, by position and by keyword; what was computed from
tensors; and sums of what several ranks push to one place. The host computes the peer and passes
it as INT32."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
W = 64


def pushing(kernel, cells):
    """A program around a kernel that gets an input, an output, a window, signal cells and a peer."""

    @pl.program
    class Pushing:
        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            x: pl.Tensor[[1, W], pl.FP32],
            y: pl.Out[pl.Tensor[[1, W], pl.FP32]],
            box: pld.DistributedTensor[[1, W], pl.FP32],
            bell: pld.DistributedTensor[[cells, 1], pl.INT32],
            peer: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[1, W], pl.FP32]:
            return kernel(x, y, box, bell, peer)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            x: pl.Tensor[[NR, 1, W], pl.FP32],
            y: pl.Out[pl.Tensor[[NR, 1, W], pl.FP32]],
        ) -> pl.Tensor[[NR, 1, W], pl.FP32]:
            boxes = pld.alloc_window_buffer(W * pl.FP32.get_byte())
            bells = pld.alloc_window_buffer(cells * pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                box = pld.window(boxes, [1, W], dtype=pl.FP32)
                bell = pld.window(bells, [cells, 1], dtype=pl.INT32)
                self.chip(x[r], y[r], box, bell, (r + 1) % pld.world_size(), device=r)
            return y

    return Pushing


@pl.function(type=pl.FunctionType.InCore)
def push(
    x: pl.Tensor[[1, W], pl.FP32],
    y: pl.Out[pl.Tensor[[1, W], pl.FP32]],
    box: pld.DistributedTensor[[1, W], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[1, W], pl.FP32]:
    tile = pl.load(x, [0, 0], [1, W])
    pld.tile.remote_store(tile, target=box, peer=peer, offsets=[0, 0])
    pld.system.notify(target=bell, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal=bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    return pl.store(pl.load(box, [0, 0], [1, W]), [0, 0], y)


@pl.function(type=pl.FunctionType.InCore)
def push_halves(
    x: pl.Tensor[[1, W], pl.FP32],
    y: pl.Out[pl.Tensor[[1, W], pl.FP32]],
    box: pld.DistributedTensor[[1, W], pl.FP32],
    bell: pld.DistributedTensor[[2, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[1, W], pl.FP32]:
    for half in pl.range(2):
        at = half * (W // 2)
        pld.remote_store(pl.load(x, [0, at], [1, W // 2]), box, peer, [0, W // 2 - at])
        pld.system.notify(target=bell, peer=peer, offsets=[half, 0], value=1, op=pld.NotifyOp.Set)
    for half in pl.range(2):
        pld.system.wait(signal=bell, offsets=[half, 0], expected=1, cmp=pld.WaitCmp.Ge)
    return pl.store(pl.load(box, [0, 0], [1, W]), [0, 0], y)


@pl.function(type=pl.FunctionType.InCore)
def push_sum(
    x: pl.Tensor[[1, W], pl.FP32],
    y: pl.Out[pl.Tensor[[1, W], pl.FP32]],
    box: pld.DistributedTensor[[1, W], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[1, W], pl.FP32]:
    pld.remote_store(pl.tensor.add(x, x), target=box, peer=peer, offsets=[0, 0])
    pld.system.notify(target=bell, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
    pld.system.wait(signal=bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    return pl.store(pl.load(box, [0, 0], [1, W]), [0, 0], y)


@pl.function(type=pl.FunctionType.InCore)
def add_up(
    x: pl.Tensor[[1, W], pl.FP32],
    y: pl.Out[pl.Tensor[[1, W], pl.FP32]],
    box: pld.DistributedTensor[[1, W], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[1, W], pl.FP32]:
    n = pld.nranks(pld.get_comm_ctx(box))
    for to in pl.range(n):
        pld.tile.remote_store(
            pl.load(x, [0, 0], [1, W]),
            target=box,
            peer=to,
            offsets=[0, 0],
            atomic=pld.AtomicType.Add,
        )
        pld.system.notify(target=bell, peer=to, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal=bell, offsets=[0, 0], expected=n, cmp=pld.WaitCmp.Ge)
    return pl.store(pl.load(box, [0, 0], [1, W]), [0, 0], y)


def run(program, ranks):
    x = numbers(ranks, 1, W)
    y = np.zeros_like(x)
    compiled(program, ranks)(x, y)
    return x, y


def test_push(ranks, transport):
    x, y = run(pushing(push, 1), ranks)
    assert (y == np.roll(x, 1, axis=0)).all()


def test_push_halves(ranks, transport):
    x, y = run(pushing(push_halves, 2), ranks)
    assert (y == np.roll(np.roll(x, 1, axis=0), W // 2, axis=2)).all()


def test_push_sum(ranks, transport):
    x, y = run(pushing(push_sum, 1), ranks)
    assert (y == 2 * np.roll(x, 1, axis=0)).all()


def test_add_up(ranks, transport):
    x, y = run(pushing(add_up, 1), ranks)
    assert (y == x.sum(axis=0)).all()
