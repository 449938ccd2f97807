"""All-reduce in the host function: with and without a signal, all four operators, rows of several lengths that are
stored and loaded in pieces."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

PIECE = 64
DTYPES = {"FP32": (pl.FP32, np.float32), "FP16": (pl.FP16, np.float16)}
FOLDS = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}


def allreduce(size, dtype=pl.FP32, op=pld.ReduceOp.Sum, rounds=0):
    """`rounds` times with one signal; 0: once, without."""

    @pl.program
    class HostAllReduce:
        @pl.function(type=pl.FunctionType.InCore)
        def stage(
            self,
            x: pl.Tensor[[1, size], dtype],
            data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
        ) -> pld.DistributedTensor[[1, size], dtype]:
            for at, (d,) in pl.range(0, size, PIECE, init_values=(data,)):
                valid = pl.min(PIECE, size - at)
                piece = pl.load(x, [0, at], [1, PIECE], valid_shape=[1, valid])
                d = pl.store(piece, [0, at], d)
                d = pl.yield_(d)
            return d

        @pl.function(type=pl.FunctionType.InCore)
        def result(
            self,
            data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
            y: pl.Out[pl.Tensor[[1, size], dtype]],
        ) -> pl.Tensor[[1, size], dtype]:
            for at, (out,) in pl.range(0, size, PIECE, init_values=(y,)):
                valid = pl.min(PIECE, size - at)
                piece = pl.load(data, [0, at], [1, PIECE], valid_shape=[1, valid])
                out = pl.store(piece, [0, at], out)
                out = pl.yield_(out)
            return out

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip_stage(
            self,
            x: pl.Tensor[[1, size], dtype],
            data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
        ) -> pld.DistributedTensor[[1, size], dtype]:
            return self.stage(x, data)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip_result(
            self,
            data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
            y: pl.Out[pl.Tensor[[1, size], dtype]],
        ) -> pl.Tensor[[1, size], dtype]:
            return self.result(data, y)

        if rounds == 0:

            @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
            def host(
                self,
                x: pl.Tensor[[pl.dynamic("NR"), 1, size], dtype],
                y: pl.Out[pl.Tensor[[pl.dynamic("NR"), 1, size], dtype]],
            ) -> pl.Tensor[[pl.dynamic("NR"), 1, size], dtype]:
                data_buf = pld.alloc_window_buffer(size * dtype.get_byte())
                data = pld.window(data_buf, [1, size], dtype=dtype)
                for r in pl.range(pld.world_size()):
                    self.chip_stage(x[r], data, device=r)
                data = pld.tensor.allreduce(data, op=op)
                for r in pl.range(pld.world_size()):
                    self.chip_result(data, y[r], device=r)
                return y

        else:

            @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
            def host(
                self,
                x: pl.Tensor[[rounds, pl.dynamic("NR"), 1, size], dtype],
                y: pl.Out[pl.Tensor[[rounds, pl.dynamic("NR"), 1, size], dtype]],
            ) -> pl.Tensor[[rounds, pl.dynamic("NR"), 1, size], dtype]:
                data_buf = pld.alloc_window_buffer(size * dtype.get_byte())
                signal_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
                for q in pl.range(rounds):
                    data = pld.window(data_buf, [1, size], dtype=dtype)
                    signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
                    for r in pl.range(pld.world_size()):
                        self.chip_stage(x[q, r], data, device=r)
                    data = pld.tensor.allreduce(data, signal, op=op)
                    for r in pl.range(pld.world_size()):
                        self.chip_result(data, y[q, r], device=r)
                return y

    return HostAllReduce


def check(program, x, op="Sum"):
    y = np.zeros_like(x)
    compiled(program, x.shape[-3])(x, y)
    folded = FOLDS[op].reduce(x.astype(np.float32), axis=-3, keepdims=True).astype(x.dtype)
    assert (y == np.broadcast_to(folded, x.shape)).all()


@pytest.mark.parametrize("dtype, size", [("FP32", 17), ("FP32", 257), *[("FP16", n) for n in (1, 17, 257, 8193)]])
def test_without_signal(dtype, size, ranks):
    element, scalar = DTYPES[dtype]
    check(allreduce(size, element), numbers(ranks, 1, size, dtype=scalar) % 61)


def test_three_rounds_on_one_signal(ranks, transport):
    check(allreduce(256, rounds=3), numbers(3, ranks, 1, 256))


@pytest.mark.parametrize("dtype, op", [("FP32", "Max"), ("FP16", "Max"), ("FP16", "Min"), ("FP16", "Prod")])
def test_operators(dtype, op, ranks):
    element, scalar = DTYPES[dtype]
    check(allreduce(17, element, op=getattr(pld.ReduceOp, op)), numbers(ranks, 1, 17, dtype=scalar) % 5, op)
