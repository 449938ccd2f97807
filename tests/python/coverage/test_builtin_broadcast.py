"""The built-in broadcast: rank 0 alone has something to tell."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
SIZE = 64


@pl.program
class Broadcast:
    @pl.function(type=pl.FunctionType.InCore)
    def share(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        me: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        if me == 0:
            box = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], box)
        box = pld.tensor.broadcast(box, signal, root=0)
        return pl.store(pl.load(box, [0, 0], [1, SIZE]), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        me: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        return self.share(x, y, box, signal, me)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]
    ) -> pl.Tensor[[NR, 1, SIZE], pl.FP32]:
        boxes = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
        cells = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            box = pld.window(boxes, [1, SIZE], dtype=pl.FP32)
            signal = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
            self.chip(x[r], y[r], box, signal, r, device=r)
        return y


def test_broadcast(ranks, transport):
    x = numbers(ranks, 1, SIZE)
    y = np.zeros_like(x)
    compiled(Broadcast, ranks)(x, y)
    assert (y == x[0]).all()
