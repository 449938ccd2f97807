"""The built-in all-to-all: row s of rank r comes from row r of rank s."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
SIZE = 64


@pl.program
class AllToAll:
    @pl.function(type=pl.FunctionType.InCore)
    def exchange(
        self,
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[NR, SIZE], pl.FP32]:
        rows = pld.tensor.all_to_all(x, rows, signal)
        for s in pl.range(pld.nranks(pld.get_comm_ctx(rows))):
            y = pl.store(pl.load(rows, [s, 0], [1, SIZE]), [s, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[NR, SIZE], pl.FP32]:
        return self.exchange(x, y, rows, signal)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]
    ) -> pl.Tensor[[NR, NR, SIZE], pl.FP32]:
        row_buf = pld.alloc_window_buffer(pld.world_size() * SIZE * pl.FP32.get_byte())
        cells = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            rows = pld.window(row_buf, [pld.world_size(), SIZE], dtype=pl.FP32)
            signal = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
            self.chip(x[r], y[r], rows, signal, device=r)
        return y


def test_all_to_all(ranks, transport):
    x = numbers(ranks, ranks, SIZE)
    y = np.zeros_like(x)
    compiled(AllToAll, ranks)(x, y)
    assert (y == x.swapaxes(0, 1)).all()
