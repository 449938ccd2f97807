"""The built-in all-reduce with a signal of the ring's shape, on a number of ranks that the program knows."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

PIECE = 4096
FOLDS = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}


def ring(ranks, size, dtype, op):
    piece = min(PIECE, size)
    steps = 2 * (ranks - 1)

    @pl.program
    class Ring:
        @pl.function(type=pl.FunctionType.InCore)
        def reduce(
            self,
            x: pl.Tensor[[1, size], dtype],
            y: pl.Out[pl.Tensor[[1, size], dtype]],
            data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
            signal: pl.InOut[pld.DistributedTensor[[steps, ranks], pl.INT32]],
        ) -> pl.Tensor[[1, size], dtype]:
            for at, (filled,) in pl.range(0, size, piece, init_values=(data,)):
                count = min(piece, size - at)
                part = pl.load(x, [0, at], [1, piece], valid_shape=[1, count])
                filled = pl.yield_(pl.store(part, [0, at], filled))
            total = pld.tensor.allreduce(filled, signal, op=op, mode="ring")
            for at, (out,) in pl.range(0, size, piece, init_values=(y,)):
                count = min(piece, size - at)
                part = pl.load(total, [0, at], [1, piece], valid_shape=[1, count])
                out = pl.yield_(pl.store(part, [0, at], out))
            return out

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            x: pl.Tensor[[1, size], dtype],
            y: pl.Out[pl.Tensor[[1, size], dtype]],
            data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
            signal: pl.InOut[pld.DistributedTensor[[steps, ranks], pl.INT32]],
        ) -> pl.Tensor[[1, size], dtype]:
            return self.reduce(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self, x: pl.Tensor[[ranks, 1, size], dtype], y: pl.Out[pl.Tensor[[ranks, 1, size], dtype]]
        ) -> pl.Tensor[[ranks, 1, size], dtype]:
            data_buf = pld.alloc_window_buffer(size * dtype.get_byte())
            signal_buf = pld.alloc_window_buffer(steps * ranks * pl.INT32.get_byte())
            for r in pl.range(ranks):
                data = pld.window(data_buf, [1, size], dtype=dtype)
                signal = pld.window(signal_buf, [steps, ranks], dtype=pl.INT32)
                self.chip(x[r], y[r], data, signal, device=r)
            return y

    return Ring


def check(size, dtype, op, x):
    y = np.zeros_like(x)
    compiled(ring(len(x), size, dtype, op), len(x))(x, y)
    expected = FOLDS[op.name].reduce(x.astype(np.float32), axis=0).astype(x.dtype)
    np.testing.assert_array_equal(y, np.broadcast_to(expected, y.shape))


@pytest.mark.parametrize("size", [1, 17, 4097, 65537])
@pytest.mark.parametrize("count", [2, 4])
def test_sizes(count, size, transport):
    check(size, pl.FP32, pld.ReduceOp.Sum, numbers(count, 1, size))


@pytest.mark.parametrize("size", [1, 17, 8193, 32769])
@pytest.mark.parametrize("count", [2, 4])
def test_sizes_of_16_bits(count, size, transport):
    check(size, pl.FP16, pld.ReduceOp.Sum, numbers(count, 1, size, dtype=np.float16) % 64)


@pytest.mark.parametrize("op", pld.ReduceOp, ids=lambda op: op.name)
@pytest.mark.parametrize("count", [2, 4])
def test_operators(count, op, transport):
    check(17, pl.FP32, op, np.random.default_rng(count).standard_normal((count, 1, 17)).astype(np.float32))
