"""Two results through all three levels: kernel, wrapper and host return tuples."""

import numpy as np

import pypto.language as pl
from launch import compiled, numbers

N = 16
Row = pl.Tensor[[1, N], pl.FP32]


@pl.program
class Pair:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, a: Row, b: Row, total: pl.Out[Row], rest: pl.Out[Row]
    ) -> tuple[pl.Tensor[[1, N], pl.FP32], pl.Tensor[[1, N], pl.FP32]]:
        x = pl.load(a, [0, 0], [1, N])
        y = pl.load(b, [0, 0], [1, N])
        total = pl.store(pl.add(x, y), [0, 0], total)
        rest = pl.store(pl.sub(x, y), [0, 0], rest)
        return total, rest

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self, a: Row, b: Row, total: pl.Out[Row], rest: pl.Out[Row]
    ) -> tuple[pl.Tensor[[1, N], pl.FP32], pl.Tensor[[1, N], pl.FP32]]:
        first, second = self.kernel(a, b, total, rest)
        return first, second

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, a: Row, b: Row, total: pl.Out[Row], rest: pl.Out[Row]
    ) -> tuple[pl.Tensor[[1, N], pl.FP32], pl.Tensor[[1, N], pl.FP32]]:
        first, second = self.chip(a, b, total, rest)
        return first, second


def test_tuple_return(ranks, transport):
    a, b = numbers(1, N), numbers(1, N, first=50)
    run = compiled(Pair, ranks)     # the one task goes to the first device
    total, rest = np.zeros_like(a), np.zeros_like(a)
    run(a, b, total, rest)
    assert (total == a + b).all() and (rest == a - b).all()
    total, rest = run(a, b)
    assert (total == a + b).all() and (rest == a - b).all()
