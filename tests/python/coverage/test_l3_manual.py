"""The smallest program: one wrapper, one kernel, no host function."""

import numpy as np

import pypto.language as pl
from launch import compiled, numbers

N = 32


@pl.program
class Plain:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        c: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        total = pl.add(pl.load(a, [0, 0], [N, N]), pl.load(b, [0, 0], [N, N]))
        return pl.store(total, [0, 0], c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        c: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        return self.kernel(a, b, c)


def test_manual(transport):
    a, b = numbers(N, N), numbers(N, N, first=9)
    run = compiled(Plain, 1)
    c = np.zeros_like(a)
    run(a, b, c)
    assert (c == a + b).all()
    assert (run(a, b) == a + b).all()
