"""`pl.dynamic` written inline, twice: both are the same dimension, because they have the same name."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

ROWS, COLUMNS = 16, 32


@pl.program
class InlineDynamic:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
        c: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLUMNS], pl.FP32]:
        for i in pl.parallel(ROWS):
            row = pl.slice(a, [1, COLUMNS], [i, 0])
            c = pl.assemble(c, pl.add(row, row), [i, 0])
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        a: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
        c: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLUMNS], pl.FP32]:
        return self.kernel(a, c)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        a: pl.Tensor[[pl.dynamic("NR"), ROWS, COLUMNS], pl.FP32],
        c: pl.Out[pl.Tensor[[pl.dynamic("NR"), ROWS, COLUMNS], pl.FP32]],
    ):
        for r in pl.range(pld.world_size()):
            self.chip(a[r], c[r], device=r)


def test_dfx_per_rank(ranks, transport):
    a = numbers(ranks, ROWS, COLUMNS)
    c = np.zeros_like(a)
    compiled(InlineDynamic, ranks)(a, c)
    assert (c == a + a).all()


def test_the_two_are_one_dimension(transport):
    with pytest.raises((TypeError, ValueError), match="NR"):
        compiled(InlineDynamic, 2)(numbers(2, ROWS, COLUMNS), numbers(3, ROWS, COLUMNS))
