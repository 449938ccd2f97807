"""The built-in all-reduce in a kernel, which moves its row in pieces: windows and outputs are carried by the loops."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
PIECE = 4096
FOLDS = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}


def allreduce(size, dtype, op):
    piece = min(PIECE, size)

    @pl.program
    class Reduce:
        @pl.function(type=pl.FunctionType.InCore)
        def reduce(
            self,
            x: pl.Tensor[[1, size], dtype],
            y: pl.Out[pl.Tensor[[1, size], dtype]],
            data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        ) -> pl.Tensor[[1, size], dtype]:
            for at, (filled,) in pl.range(0, size, piece, init_values=(data,)):
                count = min(piece, size - at)
                part = pl.load(x, [0, at], [1, piece], valid_shape=[1, count])
                filled = pl.yield_(pl.store(part, [0, at], filled))
            total = pld.tensor.allreduce(filled, signal, op=op)
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
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        ) -> pl.Tensor[[1, size], dtype]:
            return self.reduce(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self, x: pl.Tensor[[NR, 1, size], dtype], y: pl.Out[pl.Tensor[[NR, 1, size], dtype]]
        ) -> pl.Tensor[[NR, 1, size], dtype]:
            data_buf = pld.alloc_window_buffer(size * dtype.get_byte())
            signal_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, size], dtype=dtype)
                signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
                self.chip(x[r], y[r], data, signal, device=r)
            return y

    return Reduce


def check(size, dtype, op, ranks, x):
    y = np.zeros_like(x)
    compiled(allreduce(size, dtype, op), ranks)(x, y)
    expected = FOLDS[op.name].reduce(x.astype(np.float32), axis=0).astype(x.dtype)
    np.testing.assert_array_equal(y, np.broadcast_to(expected, y.shape))


@pytest.mark.parametrize("size", [1, 17, 4097, 65537])
def test_sizes(size, ranks, transport):
    check(size, pl.FP32, pld.ReduceOp.Sum, ranks, numbers(ranks, 1, size))


@pytest.mark.parametrize("size", [1, 17, 8193])
def test_sizes_of_16_bits(size, ranks, transport):
    check(size, pl.FP16, pld.ReduceOp.Sum, ranks, numbers(ranks, 1, size, dtype=np.float16) % 64)


@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP16], ids=["FP32", "FP16"])
@pytest.mark.parametrize("op", pld.ReduceOp, ids=lambda op: op.name)
def test_operators(op, dtype, ranks, transport):
    x = np.random.default_rng(ranks).standard_normal((ranks, 1, 17))
    check(17, dtype, op, ranks, x.astype(np.float32 if dtype == pl.FP32 else np.float16))
