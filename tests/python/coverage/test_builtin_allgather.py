"""The built-in all-gather: every rank ends with everybody's row, in the order of ranks."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
GATHERED = pl.dynamic("GATHERED")
SIZE = 64


@pl.program
class Allgather:
    @pl.function(type=pl.FunctionType.InCore)
    def gather(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, GATHERED], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[1, GATHERED], pl.FP32]:
        rows = pld.tensor.allgather(x, rows, signal)
        for s in pl.range(pld.nranks(pld.get_comm_ctx(rows))):
            y = pl.store(pl.load(rows, [s, 0], [1, SIZE]), [0, s * SIZE], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, GATHERED], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[1, GATHERED], pl.FP32]:
        return self.gather(x, y, rows, signal)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, GATHERED], pl.FP32]]
    ) -> pl.Tensor[[NR, 1, GATHERED], pl.FP32]:
        row_buf = pld.alloc_window_buffer(pld.world_size() * SIZE * pl.FP32.get_byte())
        cells = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            rows = pld.window(row_buf, [pld.world_size(), SIZE], dtype=pl.FP32)
            signal = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
            self.chip(x[r], y[r], rows, signal, device=r)
        return y


def test_allgather(ranks, transport):
    x = numbers(ranks, 1, SIZE)
    y = np.zeros((ranks, 1, ranks * SIZE), np.float32)
    compiled(Allgather, ranks)(x, y)
    assert (y == x.reshape(1, -1)).all()
