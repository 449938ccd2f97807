"""The built-in all-to-all of ragged blocks: the rows that mean something arrive, and how many there are."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
ROWS = pl.dynamic("ROWS")
MAX_RECV = 4
SIZE = 64


@pl.program
class AllToAllV:
    @pl.function(type=pl.FunctionType.InCore)
    def exchange(
        self,
        x: pl.Tensor[[ROWS, SIZE], pl.FP32],
        counts: pl.Tensor[[NR, 1], pl.INT32],
        y: pl.Out[pl.Tensor[[ROWS, SIZE], pl.FP32]],
        got: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
        rows: pl.InOut[pld.DistributedTensor[[ROWS, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        received: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> tuple[pl.Tensor[[ROWS, SIZE], pl.FP32], pl.Tensor[[NR, 1], pl.INT32]]:
        rows = pld.tensor.all_to_all_v(x, rows, signal, counts, received)
        for s in pl.range(pld.nranks(pld.get_comm_ctx(rows))):
            count = pl.read(received, [s, 0])
            pl.write(got, [s, 0], pl.cast(count, pl.INT32))
            for i in pl.range(count):
                y = pl.store(pl.load(rows, [s * MAX_RECV + i, 0], [1, SIZE]), [s * MAX_RECV + i, 0], y)
        return y, got

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[ROWS, SIZE], pl.FP32],
        counts: pl.Tensor[[NR, 1], pl.INT32],
        y: pl.Out[pl.Tensor[[ROWS, SIZE], pl.FP32]],
        got: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
        rows: pl.InOut[pld.DistributedTensor[[ROWS, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        received: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> tuple[pl.Tensor[[ROWS, SIZE], pl.FP32], pl.Tensor[[NR, 1], pl.INT32]]:
        y, got = self.exchange(x, counts, y, got, rows, signal, received)
        return y, got

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[NR, ROWS, SIZE], pl.FP32],
        counts: pl.Tensor[[NR, NR, 1], pl.INT32],
        y: pl.Out[pl.Tensor[[NR, ROWS, SIZE], pl.FP32]],
        got: pl.Out[pl.Tensor[[NR, NR, 1], pl.INT32]],
    ) -> tuple[pl.Tensor[[NR, ROWS, SIZE], pl.FP32], pl.Tensor[[NR, NR, 1], pl.INT32]]:
        row_buf = pld.alloc_window_buffer(pld.world_size() * MAX_RECV * SIZE * pl.FP32.get_byte())
        cells = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        count_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            rows = pld.window(row_buf, [pld.world_size() * MAX_RECV, SIZE], dtype=pl.FP32)
            signal = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
            received = pld.window(count_buf, [pld.world_size(), 1], dtype=pl.INT32)
            self.chip(x[r], counts[r], y[r], got[r], rows, signal, received, device=r)
        return y, got


def test_all_to_all_v(ranks, transport):
    x = numbers(ranks, ranks * MAX_RECV, SIZE)
    counts = ((np.arange(ranks)[:, None] + 2 * np.arange(ranks)) % (MAX_RECV + 1)).astype(np.int32)
    y = np.zeros_like(x)
    got = np.full((ranks, ranks, 1), -1, np.int32)
    compiled(AllToAllV, ranks)(x, counts[..., None].copy(), y, got)
    assert (got[..., 0] == counts.T).all()
    blocks = x.reshape(ranks, ranks, MAX_RECV, SIZE).swapaxes(0, 1).copy()
    for r in range(ranks):
        for s in range(ranks):
            blocks[r, s, counts[s, r] :] = 0
    assert (y.reshape(blocks.shape) == blocks).all()
