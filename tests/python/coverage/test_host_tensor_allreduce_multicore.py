"""All-reduce in the host function by several cores: a lane of signal cells each, all zero again behind it."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

ROUNDS = 2
PIECE = 512
LANES = 8  # more than a row of the signal has


def allreduce(ranks, cores, size, stride):
    @pl.program
    class MultiCore:
        @pl.function(type=pl.FunctionType.InCore)
        def stage(
            self,
            x: pl.Tensor[[1, size], pl.FP32],
            data: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]],
        ) -> pld.DistributedTensor[[1, size], pl.FP32]:
            for at in pl.range(0, size, PIECE):
                valid = pl.min(PIECE, size - at)
                piece = pl.load(x, [0, at], [1, PIECE], valid_shape=[1, valid])
                pl.store(piece, [0, at], data)
            return data

        @pl.function(type=pl.FunctionType.InCore)
        def result(
            self,
            data: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[ranks, stride], pl.INT32]],
            y: pl.Out[pl.Tensor[[1, size], pl.FP32]],
            cells: pl.Out[pl.Tensor[[ranks, stride], pl.INT32]],
        ):
            me = pld.rank(pld.get_comm_ctx(signal))
            for row in pl.range(ranks):
                if row != me:
                    for lane in pl.range(stride):
                        pld.system.wait(signal, [row, lane], 0, cmp=pld.WaitCmp.Eq)
            pl.store(pl.load(signal, [0, 0], [ranks, LANES], valid_shape=[ranks, stride]), [0, 0], cells)
            for at in pl.range(0, size, PIECE):
                valid = pl.min(PIECE, size - at)
                pl.store(pl.load(data, [0, at], [1, PIECE], valid_shape=[1, valid]), [0, at], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip_stage(
            self,
            x: pl.Tensor[[1, size], pl.FP32],
            data: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]],
        ) -> pld.DistributedTensor[[1, size], pl.FP32]:
            return self.stage(x, data)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip_result(
            self,
            data: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[ranks, stride], pl.INT32]],
            y: pl.Out[pl.Tensor[[1, size], pl.FP32]],
            cells: pl.Out[pl.Tensor[[ranks, stride], pl.INT32]],
        ):
            self.result(data, signal, y, cells)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            x: pl.Tensor[[ROUNDS, ranks, 1, size], pl.FP32],
            y: pl.Out[pl.Tensor[[ROUNDS, ranks, 1, size], pl.FP32]],
            cells: pl.Out[pl.Tensor[[ROUNDS, ranks, ranks, stride], pl.INT32]],
        ):
            data_buf = pld.alloc_window_buffer(size * pl.FP32.get_byte())
            signal_buf = pld.alloc_window_buffer(pld.world_size() * stride * pl.INT32.get_byte())
            data = pld.window(data_buf, [1, size], dtype=pl.FP32)
            signal = pld.window(signal_buf, [pld.world_size(), stride], dtype=pl.INT32)
            for q in pl.range(ROUNDS):
                for r in pl.range(pld.world_size()):
                    self.chip_stage(x[q, r], data, device=r)
                data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, core_num=cores)
                for r in pl.range(pld.world_size()):
                    self.chip_result(data, signal, y[q, r], cells[q, r], device=r)

    return MultiCore


@pytest.mark.parametrize("ranks, cores, size, stride", [(2, 2, 1, 2), (2, 4, 4127, 6), (4, 2, 1041, 2)])
def test_lanes(ranks, cores, size, stride, transport):
    x = numbers(ROUNDS, ranks, 1, size)
    y = np.zeros_like(x)
    cells = np.full((ROUNDS, ranks, ranks, stride), -1, np.int32)
    compiled(allreduce(ranks, cores, size, stride), ranks)(x, y, cells)
    assert (y == x.sum(axis=1, keepdims=True)).all()
    assert (cells == 0).all()
