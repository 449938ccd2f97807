"""No host function: two wrappers in one program, and the caller says which one to run."""

import numpy as np
import pytest

import pypto.language as pl
from launch import compiled, numbers

N = 16


@pl.program
class TwoEntries:
    @pl.function(type=pl.FunctionType.InCore)
    def add_kernel(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        c: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        total = pl.add(pl.load(a, [0, 0], [N, N]), pl.load(b, [0, 0], [N, N]))
        return pl.store(total, [0, 0], c)

    @pl.function(type=pl.FunctionType.InCore)
    def sub_kernel(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        c: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        rest = pl.sub(pl.load(a, [0, 0], [N, N]), pl.load(b, [0, 0], [N, N]))
        return pl.store(rest, [0, 0], c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def sum_of(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        c: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        return self.add_kernel(a, b, c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def difference_of(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        c: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        return self.sub_kernel(a, b, c)


def test_l2_multi_orch(transport):
    a, b = numbers(N, N, first=400), numbers(N, N)
    run = compiled(TwoEntries, 1)
    c = np.zeros_like(a)
    run["sum_of"](a, b, c)
    assert (c == a + b).all()
    run.difference_of(a, b, c)
    assert (c == a - b).all()
    assert (run["sum_of"](a, b) == a + b).all()


def test_the_entry_must_be_named():
    run = compiled(TwoEntries, 1)
    a = numbers(N, N)
    assert sorted(run.orchestration_names) == ["difference_of", "sum_of"]
    with pytest.raises(TypeError, match="select one explicitly"):
        run(a, a, a)
    with pytest.raises(KeyError, match="difference_of.*sum_of"):
        run["product_of"]
    with pytest.raises(AttributeError, match="no attribute 'product_of'"):
        run.product_of
