"""Extents that are computed: [M * 2, N] in every annotation; two devices, named by constants; the
host function returns a tuple."""

import numpy as np
import pytest

import pypto.language as pl
from launch import compiled, numbers

M, N = 3, 8


@pl.program
class SumAndDifference:
    @pl.function(type=pl.FunctionType.InCore)
    def sum_kernel(
        self,
        a: pl.Tensor[[M * 2, N], pl.FP32],
        b: pl.Tensor[[M * 2, N], pl.FP32],
        out: pl.Out[pl.Tensor[[M * 2, N], pl.FP32]],
    ) -> pl.Tensor[[M * 2, N], pl.FP32]:
        total = pl.add(pl.load(a, [0, 0], [M * 2, N]), pl.load(b, [0, 0], [M * 2, N]))
        return pl.store(total, [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def difference_kernel(
        self,
        a: pl.Tensor[[M * 2, N], pl.FP32],
        b: pl.Tensor[[M * 2, N], pl.FP32],
        out: pl.Out[pl.Tensor[[M * 2, N], pl.FP32]],
    ) -> pl.Tensor[[M * 2, N], pl.FP32]:
        left = pl.load(a, [M, 0], [M, N])
        right = pl.load(b, [M, 0], [M, N])
        return pl.store(pl.sub(left, right), [M, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def sum_chip(
        self,
        a: pl.Tensor[[M * 2, N], pl.FP32],
        b: pl.Tensor[[M * 2, N], pl.FP32],
        out: pl.Out[pl.Tensor[[M * 2, N], pl.FP32]],
    ) -> pl.Tensor[[M * 2, N], pl.FP32]:
        return self.sum_kernel(a, b, out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def difference_chip(
        self,
        a: pl.Tensor[[M * 2, N], pl.FP32],
        b: pl.Tensor[[M * 2, N], pl.FP32],
        out: pl.Out[pl.Tensor[[M * 2, N], pl.FP32]],
    ) -> pl.Tensor[[M * 2, N], pl.FP32]:
        return self.difference_kernel(a, b, out)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        a: pl.Tensor[[M * 2, N], pl.FP32],
        b: pl.Tensor[[M * 2, N], pl.FP32],
        total: pl.Out[pl.Tensor[[M * 2, N], pl.FP32]],
        rest: pl.Out[pl.Tensor[[M * 2, N], pl.FP32]],
    ) -> tuple[pl.Tensor[[M * 2, N], pl.FP32], pl.Tensor[[M * 2, N], pl.FP32]]:
        self.sum_chip(a, b, total, device=0)
        self.difference_chip(a, b, rest, device=1)
        return total, rest


def check(total, rest, a, b):
    assert (total == a + b).all()
    assert (rest[M:] == a[M:] - b[M:]).all() and (rest[:M] == 0).all()


def test_composite_shape_dim(transport):
    a, b = numbers(M * 2, N), numbers(M * 2, N, first=100)
    for devices in (2, 4):      # devices 2 and 3 of the second run have nothing to do
        run = compiled(SumAndDifference, devices)
        total, rest = np.zeros_like(a), np.zeros_like(a)
        assert run(a, b, total, rest) is None
        check(total, rest, a, b)
        check(*run(a, b), a, b)


# ---- the same with extents that the call brings ----

MD, ND = pl.dynamic("MD"), pl.dynamic("ND")
WIDEST = 16


@pl.program
class DynamicSum:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[MD * 2, ND], pl.FP32],
        b: pl.Tensor[[MD * 2, ND], pl.FP32],
        out: pl.Out[pl.Tensor[[MD * 2, ND], pl.FP32]],
        half: pl.Scalar[pl.INDEX],
    ) -> pl.Tensor[[MD * 2, ND], pl.FP32]:
        for i in pl.range(MD):
            row = half * MD + i
            left = pl.load(a, [row, 0], [1, WIDEST], valid_shape=[1, ND])
            right = pl.load(b, [row, 0], [1, WIDEST], valid_shape=[1, ND])
            out = pl.store(pl.add(left, right), [row, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        a: pl.Tensor[[MD * 2, ND], pl.FP32],
        b: pl.Tensor[[MD * 2, ND], pl.FP32],
        out: pl.Out[pl.Tensor[[MD * 2, ND], pl.FP32]],
        half: pl.Scalar[pl.INDEX],
    ) -> pl.Tensor[[MD * 2, ND], pl.FP32]:
        return self.kernel(a, b, out, half)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        a: pl.Tensor[[MD * 2, ND], pl.FP32],
        b: pl.Tensor[[MD * 2, ND], pl.FP32],
        out: pl.Out[pl.Tensor[[MD * 2, ND], pl.FP32]],
    ) -> pl.Tensor[[MD * 2, ND], pl.FP32]:
        self.chip(a, b, out, 0, device=0)
        self.chip(a, b, out, 1, device=1)
        return out


def test_dynamic_composite_dims(transport):
    run = compiled(DynamicSum, 2)
    for m, n in [(1, 1), (3, 8), (5, WIDEST)]:
        a, b = numbers(2 * m, n), numbers(2 * m, n, first=100)
        out = np.zeros_like(a)
        run(a, b, out)
        assert (out == a + b).all()


def test_an_extent_that_is_no_multiple(transport):
    a = numbers(3, 8)
    with pytest.raises(ValueError, match=r"is declared as \(MD \* 2\) in 'host', which its extent, 3, does not divide"):
        compiled(DynamicSum, 2)(a, a, np.zeros_like(a))
