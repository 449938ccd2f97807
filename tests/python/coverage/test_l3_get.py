"""get in its two forms: a peer's whole slice, and a part of it."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
R, W = 6, 32


def getting(kernel):
    """A program around a kernel that gets an input, an output, a window, a signal cell and two peers."""

    @pl.program
    class Getting:
        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            x: pl.Tensor[[R, W], pl.INT32],
            y: pl.Out[pl.Tensor[[R, W], pl.INT32]],
            box: pld.DistributedTensor[[R, W], pl.INT32],
            bell: pld.DistributedTensor[[1, 1], pl.INT32],
            after: pl.Scalar[pl.INT32],
            before: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[R, W], pl.INT32]:
            return kernel(x, y, box, bell, after, before)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            x: pl.Tensor[[NR, R, W], pl.INT32],
            y: pl.Out[pl.Tensor[[NR, R, W], pl.INT32]],
        ) -> pl.Tensor[[NR, R, W], pl.INT32]:
            boxes = pld.alloc_window_buffer(R * W * pl.INT32.get_byte())
            bells = pld.alloc_window_buffer(pl.INT32.get_byte())
            n = pld.world_size()
            for r in pl.range(pld.world_size()):
                box = pld.window(boxes, [R, W], dtype=pl.INT32)
                bell = pld.window(bells, [1, 1], dtype=pl.INT32)
                self.chip(x[r], y[r], box, bell, (r + 1) % n, (r + n - 1) % n, device=r)
            return y

    return Getting


@pl.function(type=pl.FunctionType.InCore)
def whole(
    x: pl.Tensor[[R, W], pl.INT32],
    y: pl.Out[pl.Tensor[[R, W], pl.INT32]],
    box: pld.DistributedTensor[[R, W], pl.INT32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
    after: pl.Scalar[pl.INT32],
    before: pl.Scalar[pl.INT32],
) -> pl.Tensor[[R, W], pl.INT32]:
    box = pl.store(pl.load(x, [0, 0], [R, W]), [0, 0], box)
    pld.system.notify(target=bell, peer=before, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal=bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    pld.tensor.get(y, after, box)
    return y


@pl.function(type=pl.FunctionType.InCore)
def part(
    x: pl.Tensor[[R, W], pl.INT32],
    y: pl.Out[pl.Tensor[[R, W], pl.INT32]],
    box: pld.DistributedTensor[[R, W], pl.INT32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
    after: pl.Scalar[pl.INT32],
    before: pl.Scalar[pl.INT32],
) -> pl.Tensor[[R, W], pl.INT32]:
    box = pl.store(pl.load(x, [0, 0], [R, W]), [0, 0], box)
    pld.system.notify(bell, before, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal=bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    pld.tensor.get(dst=y, peer=after, src=box, dst_offsets=[1, 4], src_offsets=[3, 8], shape=[2, 16])
    return y


def run(kernel, ranks):
    x = numbers(ranks, R, W, dtype=np.int32)
    y = np.full_like(x, -1)
    compiled(getting(kernel), ranks)(x, y)
    return np.roll(x, -1, axis=0), y


def test_get_whole(ranks, transport):
    theirs, y = run(whole, ranks)
    assert (y == theirs).all()


def test_get_part(ranks, transport):
    theirs, y = run(part, ranks)
    assert (y[:, 1:3, 4:20] == theirs[:, 3:5, 8:24]).all()
    y[:, 1:3, 4:20] = -1
    assert (y == -1).all()
