"""Several built-in collectives in one kernel, on one signal and one window of data."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
SIZE = 64


def twice(number):
    """A program whose kernel, which the number chooses, gets two inputs and gives two outputs of NR rows."""

    @pl.program
    class Twice:
        @pl.function(type=pl.FunctionType.InCore)
        def all_to_all(
            self,
            first: pl.Tensor[[NR, SIZE], pl.FP32],
            second: pl.Tensor[[NR, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
            z: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
            rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
            me: pl.Scalar[pl.INT32],
        ):
            signal = pld.tensor.barrier(signal)
            rows = pld.tensor.all_to_all(first, rows, signal)
            for s in pl.range(pld.nranks(pld.get_comm_ctx(rows))):
                y = pl.store(pl.load(rows, [s, 0], [1, SIZE]), [s, 0], y)
            rows = pld.tensor.all_to_all(second, rows, signal)
            signal = pld.tensor.barrier(signal)
            for s in pl.range(pld.nranks(pld.get_comm_ctx(rows))):
                z = pl.store(pl.load(rows, [s, 0], [1, SIZE]), [s, 0], z)

        @pl.function(type=pl.FunctionType.InCore)
        def allgather(
            self,
            first: pl.Tensor[[NR, SIZE], pl.FP32],
            second: pl.Tensor[[NR, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
            z: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
            rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
            me: pl.Scalar[pl.INT32],
        ):
            rows = pld.tensor.allgather(pl.slice(first, [1, SIZE], [me, 0]), rows, signal)
            for s in pl.range(pld.nranks(pld.get_comm_ctx(rows))):
                y = pl.store(pl.load(rows, [s, 0], [1, SIZE]), [s, 0], y)
            rows = pld.tensor.allgather(pl.slice(second, [1, SIZE], [me, 0]), rows, signal)
            for s in pl.range(pld.nranks(pld.get_comm_ctx(rows))):
                z = pl.store(pl.load(rows, [s, 0], [1, SIZE]), [s, 0], z)

        @pl.function(type=pl.FunctionType.InCore)
        def reduce_scatter(
            self,
            first: pl.Tensor[[NR, SIZE], pl.FP32],
            second: pl.Tensor[[NR, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
            z: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
            rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
            me: pl.Scalar[pl.INT32],
        ):
            for s in pl.range(pld.nranks(pld.get_comm_ctx(rows))):
                rows = pl.store(pl.load(first, [s, 0], [1, SIZE]), [s, 0], rows)
            rows = pld.tensor.reduce_scatter(rows, signal, op=pld.ReduceOp.Sum)
            y = pl.store(pl.load(rows, [me, 0], [1, SIZE]), [0, 0], y)
            for s in pl.range(pld.nranks(pld.get_comm_ctx(rows))):
                rows = pl.store(pl.load(second, [s, 0], [1, SIZE]), [s, 0], rows)
            rows = pld.tensor.reduce_scatter(rows, signal, op=pld.ReduceOp.Sum)
            z = pl.store(pl.load(rows, [me, 0], [1, SIZE]), [0, 0], z)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            first: pl.Tensor[[NR, SIZE], pl.FP32],
            second: pl.Tensor[[NR, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
            z: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
            rows: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
            me: pl.Scalar[pl.INT32],
        ):
            if number == 0:
                self.all_to_all(first, second, y, z, rows, signal, me)
            elif number == 1:
                self.allgather(first, second, y, z, rows, signal, me)
            else:
                self.reduce_scatter(first, second, y, z, rows, signal, me)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            first: pl.Tensor[[NR, NR, SIZE], pl.FP32],
            second: pl.Tensor[[NR, NR, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]],
            z: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]],
        ):
            row_buf = pld.alloc_window_buffer(pld.world_size() * SIZE * pl.FP32.get_byte())
            cells = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                rows = pld.window(row_buf, [pld.world_size(), SIZE], dtype=pl.FP32)
                signal = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
                self.chip(first[r], second[r], y[r], z[r], rows, signal, r, device=r)

    return Twice


def outputs(number, ranks):
    """Both inputs and both outputs; the second input is far away from the first."""
    inputs = [numbers(ranks, ranks, SIZE), numbers(ranks, ranks, SIZE, first=100_000)]
    results = [np.zeros_like(x) for x in inputs]
    compiled(twice(number), ranks)(*inputs, *results)
    return zip(inputs, results)


def test_all_to_all_between_barriers(ranks, transport):
    for x, y in outputs(0, ranks):
        assert (y == x.swapaxes(0, 1)).all()


def test_allgather(ranks, transport):
    for x, y in outputs(1, ranks):
        assert (y == x[np.arange(ranks), np.arange(ranks)]).all()


def test_reduce_scatter(ranks, transport):
    for x, y in outputs(2, ranks):
        assert (y[:, 0] == x.sum(axis=0)).all()
