"""A weight that stays the same over several calls of one compiled program."""

import numpy as np

import pypto.language as pl
from launch import compiled, numbers

N = 24


@pl.program
class Apply:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[N, N], pl.FP32],
        weight: pl.Tensor[[N, N], pl.FP32],
        y: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        return pl.store(
            pl.add(pl.load(x, [0, 0], [N, N]), pl.load(weight, [0, 0], [N, N])), [0, 0], y
        )

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[N, N], pl.FP32],
        weight: pl.Tensor[[N, N], pl.FP32],
        y: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        return self.kernel(x, weight, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[N, N], pl.FP32],
        weight: pl.Tensor[[N, N], pl.FP32],
        y: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        y: pl.Tensor[[N, N], pl.FP32] = self.chip(x, weight, y)
        return y


def test_device_tensor(ranks, transport):
    weight = numbers(N, N, first=200)
    run = compiled(Apply, ranks)
    for step in range(3):
        x = numbers(N, N, first=step)
        y = np.zeros_like(x)
        run(x, weight, y)
        assert (y == x + weight).all()


def test_a_weight_that_stays(ranks, transport):
    weight = numbers(N, N, first=200)
    program = compiled(Apply, ranks)
    with program.prepare() as worker:
        resident = worker.alloc_tensor((N, N), pl.FP32, init=weight)
        calls = []
        for step in range(3):
            x = numbers(N, N, first=step)
            y = np.zeros_like(x)
            calls.append((x, y, worker.submit(program, x, resident, y)))
        for x, y, handle in calls:
            handle.result()
            assert (y == x + weight).all()
        worker.free_tensor(resident)
