"""Reduce-scatter in a loop of the host function: rank r ends with the sum of all rows r."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
ROUNDS = 3
SIZE = 64


@pl.program
class HostReduceScatter:
    @pl.function(type=pl.FunctionType.InCore)
    def stage(
        self,
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    ) -> pld.DistributedTensor[[NR, SIZE], pl.FP32]:
        for row in pl.range(NR):
            data = pl.store(pl.load(x, [row, 0], [1, SIZE]), [row, 0], data)
        return data

    @pl.function(type=pl.FunctionType.InCore)
    def result(
        self,
        data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        me = pld.rank(pld.get_comm_ctx(data))
        return pl.store(pl.load(data, [me, 0], [1, SIZE]), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip_stage(
        self,
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    ) -> pld.DistributedTensor[[NR, SIZE], pl.FP32]:
        return self.stage(x, data)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip_result(
        self,
        data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        return self.result(data, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[ROUNDS, NR, NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[ROUNDS, NR, 1, SIZE], pl.FP32]],
    ) -> pl.Tensor[[ROUNDS, NR, 1, SIZE], pl.FP32]:
        data_buf = pld.alloc_window_buffer(NR * SIZE * pl.FP32.get_byte())
        signal_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        data = pld.window(data_buf, [NR, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size()], dtype=pl.INT32)
        for q in pl.range(ROUNDS):
            for r in pl.range(pld.world_size()):
                self.chip_stage(x[q, r], data, device=r)
            data = pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Sum)
            for r in pl.range(pld.world_size()):
                self.chip_result(data, y[q, r], device=r)
        return y


def test_host_reduce_scatter(ranks, transport):
    x = numbers(ROUNDS, ranks, ranks, SIZE)
    y = np.zeros((ROUNDS, ranks, 1, SIZE), np.float32)
    compiled(HostReduceScatter, ranks)(x, y)
    assert (y[:, :, 0] == x.sum(axis=1)).all()
