"""The built-in barrier: a row is published, and a peer's is read behind it."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
SIZE = 64


@pl.program
class Barrier:
    @pl.function(type=pl.FunctionType.InCore)
    def swap(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        peer: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        box = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], box)
        signal = pld.tensor.barrier(signal)
        theirs = pld.tile.remote_load(box, peer=peer, offsets=[0, 0], shape=[1, SIZE])
        return pl.store(theirs, [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        peer: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        return self.swap(x, y, box, signal, peer)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]
    ) -> pl.Tensor[[NR, 1, SIZE], pl.FP32]:
        boxes = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
        cells = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            box = pld.window(boxes, [1, SIZE], dtype=pl.FP32)
            signal = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
            self.chip(x[r], y[r], box, signal, (r + 1) % pld.world_size(), device=r)
        return y


def test_barrier(ranks, transport):
    x = numbers(ranks, 1, SIZE)
    y = np.zeros_like(x)
    compiled(Barrier, ranks)(x, y)
    assert (y == np.roll(x, -1, axis=0)).all()
