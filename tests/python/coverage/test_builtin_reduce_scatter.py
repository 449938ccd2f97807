"""The built-in reduce-scatter: rank r ends with the sum of everybody's row r."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
SIZE = 64


@pl.program
class ReduceScatter:
    @pl.function(type=pl.FunctionType.InCore)
    def scatter(
        self,
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        me: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        for s in pl.range(pld.nranks(pld.get_comm_ctx(rows))):
            rows = pl.store(pl.load(x, [s, 0], [1, SIZE]), [s, 0], rows)
        rows = pld.tensor.reduce_scatter(rows, signal, op=pld.ReduceOp.Sum)
        return pl.store(pl.load(rows, [me, 0], [1, SIZE]), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        me: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        return self.scatter(x, y, rows, signal, me)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]
    ) -> pl.Tensor[[NR, 1, SIZE], pl.FP32]:
        row_buf = pld.alloc_window_buffer(pld.world_size() * SIZE * pl.FP32.get_byte())
        cells = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            rows = pld.window(row_buf, [pld.world_size(), SIZE], dtype=pl.FP32)
            signal = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
            self.chip(x[r], y[r], rows, signal, r, device=r)
        return y


def test_reduce_scatter(ranks, transport):
    x = numbers(ranks, ranks, SIZE)
    y = np.zeros((ranks, 1, SIZE), np.float32)
    compiled(ReduceScatter, ranks)(x, y)
    assert (y[:, 0] == x.sum(axis=0)).all()
