"""Three devices in two overlapping domains: 0 and 1 swap rows, 1 and 2 swap rows. A rank's number
in a domain is its place among the devices of that domain. The views have one dimension, the parameters two."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

W = 64


@pl.program
class Groups:
    @pl.function(type=pl.FunctionType.InCore)
    def swap(
        self,
        x: pl.Tensor[[1, W], pl.FP32],
        y: pl.Out[pl.Tensor[[1, W], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, W], pl.FP32]],
        bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
        peer: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, W], pl.FP32]:
        box = pl.store(pl.load(x, [0, 0], [1, W]), [0, 0], box)
        pld.system.notify(bell, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal=bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        theirs = pld.tile.remote_load(box, peer=peer, offsets=[0, 0], shape=[1, W])
        return pl.store(theirs, [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[1, W], pl.FP32],
        y: pl.Out[pl.Tensor[[1, W], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, W], pl.FP32]],
        bell: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
        peer: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, W], pl.FP32]:
        return self.swap(x, y, box, bell, peer)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[3, 1, W], pl.FP32],
        low: pl.Out[pl.Tensor[[3, 1, W], pl.FP32]],
        high: pl.Out[pl.Tensor[[3, 1, W], pl.FP32]],
    ) -> tuple[pl.Tensor[[3, 1, W], pl.FP32], pl.Tensor[[3, 1, W], pl.FP32]]:
        low_box = pld.alloc_window_buffer(W * pl.FP32.get_byte())
        low_bell = pld.alloc_window_buffer(pl.INT32.get_byte())
        high_box = pld.alloc_window_buffer(W * pl.FP32.get_byte())
        high_bell = pld.alloc_window_buffer(pl.INT32.get_byte())
        for r in pl.range(2):
            box = pld.window(low_box, [W], dtype=pl.FP32)
            bell = pld.window(low_bell, [1], dtype=pl.INT32)
            self.chip(x[r], low[r], box, bell, 1 - r, device=r)
        for r in pl.range(1, 3):
            box2 = pld.window(high_box, [W], dtype=pl.FP32)
            bell2 = pld.window(high_bell, [1], dtype=pl.INT32)
            self.chip(x[r], high[r], box2, bell2, 2 - r, device=r)
        return low, high


def test_multi_group(transport):
    x = numbers(3, 1, W)
    run = compiled(Groups, 3)
    low, high = np.zeros_like(x), np.zeros_like(x)
    for _ in range(3):
        run(x, low, high)
        assert (low[:2] == x[1::-1]).all() and (low[2] == 0).all()
        assert (high[1:] == x[:0:-1]).all() and (high[0] == 0).all()
