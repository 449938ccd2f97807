"""All-to-all in the host function, from a window into another one, with windows of their own for a second round."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

world_size = pl.dynamic("world_size")
SIZE = 64


@pl.program
class HostAllToAll:
    @pl.function(type=pl.FunctionType.InCore)
    def stage(
        self,
        x: pl.Tensor[[world_size, SIZE], pl.FP32],
        staged: pl.InOut[pld.DistributedTensor[[world_size, SIZE], pl.FP32]],
    ) -> pld.DistributedTensor[[world_size, SIZE], pl.FP32]:
        for row in pl.range(world_size):
            staged = pl.store(pl.load(x, [row, 0], [1, SIZE]), [row, 0], staged)
        return staged

    @pl.function(type=pl.FunctionType.InCore)
    def result(
        self,
        target: pl.InOut[pld.DistributedTensor[[world_size, SIZE], pl.FP32]],
        y: pl.Out[pl.Tensor[[world_size, SIZE], pl.FP32]],
    ) -> pl.Tensor[[world_size, SIZE], pl.FP32]:
        for row in pl.range(world_size):
            y = pl.store(pl.load(target, [row, 0], [1, SIZE]), [row, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip_stage(
        self,
        x: pl.Tensor[[world_size, SIZE], pl.FP32],
        staged: pl.InOut[pld.DistributedTensor[[world_size, SIZE], pl.FP32]],
    ) -> pld.DistributedTensor[[world_size, SIZE], pl.FP32]:
        return self.stage(x, staged)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip_result(
        self,
        target: pl.InOut[pld.DistributedTensor[[world_size, SIZE], pl.FP32]],
        y: pl.Out[pl.Tensor[[world_size, SIZE], pl.FP32]],
    ) -> pl.Tensor[[world_size, SIZE], pl.FP32]:
        return self.result(target, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[2, world_size, world_size, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[2, world_size, world_size, SIZE], pl.FP32]],
    ) -> pl.Tensor[[2, world_size, world_size, SIZE], pl.FP32]:
        signal_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        staged_0 = pld.alloc_window_buffer(world_size * SIZE * pl.FP32.get_byte())
        target_0 = pld.alloc_window_buffer(pld.world_size() * SIZE * pl.FP32.get_byte())
        staged_1 = pld.alloc_window_buffer(world_size * SIZE * pl.FP32.get_byte())
        target_1 = pld.alloc_window_buffer(pld.world_size() * SIZE * pl.FP32.get_byte())
        first = pld.window(staged_0, [world_size, SIZE], dtype=pl.FP32)
        all_first = pld.window(target_0, [pld.world_size(), SIZE], dtype=pl.FP32)
        second = pld.window(staged_1, [world_size, SIZE], dtype=pl.FP32)
        all_second = pld.window(target_1, [pld.world_size(), SIZE], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            self.chip_stage(x[0, r], first, device=r)
        all_first = pld.tensor.all_to_all(first, all_first, signal)
        for r in pl.range(pld.world_size()):
            self.chip_result(all_first, y[0, r], device=r)
        for r in pl.range(pld.world_size()):
            self.chip_stage(x[1, r], second, device=r)
        all_second = pld.tensor.all_to_all(second, all_second, signal)
        for r in pl.range(pld.world_size()):
            self.chip_result(all_second, y[1, r], device=r)
        return y


def test_host_all_to_all(ranks, transport):
    x = numbers(2, ranks, ranks, SIZE)
    y = np.zeros((2, ranks, ranks, SIZE), np.float32)
    compiled(HostAllToAll, ranks)(x, y)
    assert (y == x.transpose(0, 2, 1, 3)).all()
