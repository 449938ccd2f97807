"""All-reduce in the host function in mode "ring", three times on one signal."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

ROUNDS = 3
SIZE = 256


def ring(ranks):
    @pl.program
    class Ring:
        @pl.function(type=pl.FunctionType.InCore)
        def stage(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        ) -> pld.DistributedTensor[[1, SIZE], pl.FP32]:
            return pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)

        @pl.function(type=pl.FunctionType.InCore)
        def result(
            self,
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip_stage(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        ) -> pld.DistributedTensor[[1, SIZE], pl.FP32]:
            return self.stage(x, data)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip_result(
            self,
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.result(data, y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            x: pl.Tensor[[ROUNDS, ranks, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[ROUNDS, ranks, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[ROUNDS, ranks, 1, SIZE], pl.FP32]:
            rows = 2 * (ranks - 1) + 1
            data_buf = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
            signal_buf = pld.alloc_window_buffer(rows * ranks * pl.INT32.get_byte())
            data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2 * (ranks - 1) + 1, ranks], dtype=pl.INT32)
            for q in pl.range(ROUNDS):
                for r in pl.range(pld.world_size()):
                    self.chip_stage(x[q, r], data, device=r)
                data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode="ring")
                for r in pl.range(pld.world_size()):
                    self.chip_result(data, y[q, r], device=r)
            return y

    return Ring


def test_ring(ranks, transport):
    x = numbers(ROUNDS, ranks, 1, SIZE)
    y = np.zeros_like(x)
    compiled(ring(ranks), ranks)(x, y)
    assert (y == x.sum(axis=1, keepdims=True)).all()
