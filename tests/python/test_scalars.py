"""Scalars: what conversions and functions of numbers give at the ends of their types."""

import numpy as np
import pytest
import torch

import pypto.language as pl
from programs import config

INTEGERS = {
    np.int8: pl.INT8,
    np.uint8: pl.UINT8,
    np.int16: pl.INT16,
    np.uint16: pl.UINT16,
    np.int32: pl.INT32,
    np.uint32: pl.UINT32,
    np.int64: pl.INT64,
    np.uint64: pl.UINT64,
}


def every_element(count, source, target, body):
    """A program that sets y[i] to abs(x[i]), or to x[i] converted."""
    X = pl.Tensor[[count], source]
    Y = pl.Tensor[[count], target]

    if body == "abs":

        @pl.jit.incore
        def kernel(x: X, y: pl.Out[Y]):
            for i in pl.range(count):
                y[i] = abs(x[i])

    else:

        @pl.jit.incore
        def kernel(x: X, y: pl.Out[Y]):
            for i in pl.range(count):
                y[i] = pl.cast(x[i], target)

    @pl.jit
    def chip(x: X, y: pl.Out[Y]):
        kernel(x, y)

    return chip


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.__name__)
def test_abs(kind):
    most, least = np.iinfo(kind).max, np.iinfo(kind).min
    x = np.array([0, 1, 7, most // 2, most // 2 + 1, most, least], kind)
    y = np.zeros_like(x)
    every_element(len(x), INTEGERS[kind], INTEGERS[kind], "abs")(x, y, config=config(1))
    assert (y == np.abs(x)).all()


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.__name__)
def test_floats_become_integers(kind):
    """The fraction is dropped; what is out of range becomes the nearest integer, and NaN 0, as in tiles."""
    most, least = np.iinfo(kind).max, np.iinfo(kind).min
    x = np.array([1.9, -1.9, 300.5, -300.5, 3e9, -3e9, 1e30, -1e30, np.inf, -np.inf, np.nan], np.float32)
    y = np.zeros(len(x), kind)
    every_element(len(x), pl.FP32, INTEGERS[kind], "cast")(x, y, config=config(1))
    expected = [0 if v != v else most if v >= most else least if v <= least else int(v) for v in x.tolist()]
    assert y.tolist() == expected


def test_wide_integers_are_rounded_once():
    """2^30 + 2^22 lies between two BF16 numbers; FP32 cannot hold the 1 that decides."""
    middle = (1 << 30) + (1 << 22)
    x = np.array([middle + 1, middle, -middle - 1], np.int32)
    y = torch.zeros(3, dtype=torch.bfloat16)
    every_element(3, pl.INT32, pl.BF16, "cast")(x, y, config=config(1))
    assert y.double().tolist() == [float((1 << 30) + (1 << 23)), float(1 << 30), -float((1 << 30) + (1 << 23))]


@pytest.mark.parametrize("kind, dtype", [(np.int64, pl.INT64), (np.int8, pl.INT8)], ids=["int64", "int8"])
def test_unsigned_and_signed_numbers_compare_by_value(kind, dtype):
    U, S, Y = pl.Tensor[[4], pl.UINT64], pl.Tensor[[4], dtype], pl.Tensor[[12, 4], pl.INT32]

    @pl.jit.incore
    def kernel(u: U, s: S, y: pl.Out[Y]):
        for i in pl.range(4):
            y[0, i] = 1 if u[i] < s[i] else 0
            y[1, i] = 1 if u[i] <= s[i] else 0
            y[2, i] = 1 if u[i] > s[i] else 0
            y[3, i] = 1 if u[i] >= s[i] else 0
            y[4, i] = 1 if u[i] == s[i] else 0
            y[5, i] = 1 if u[i] != s[i] else 0
            y[6, i] = 1 if s[i] < u[i] else 0
            y[7, i] = 1 if s[i] <= u[i] else 0
            y[8, i] = 1 if s[i] > u[i] else 0
            y[9, i] = 1 if s[i] >= u[i] else 0
            y[10, i] = 1 if s[i] == u[i] else 0
            y[11, i] = 1 if s[i] != u[i] else 0

    @pl.jit
    def chip(u: U, s: S, y: pl.Out[Y]):
        kernel(u, s, y)

    u = np.array([2**64 - 1, 3, 2**63, 5], np.uint64)
    s = np.array([-1, -1, 5, 5], kind)
    y = np.zeros((12, 4), np.int32)
    chip(u, s, y, config=config(1))
    pairs = list(zip(u.tolist(), s.tolist(), strict=True))
    rows = [[a < b, a <= b, a > b, a >= b, a == b, a != b] for a, b in pairs]
    other = [[b < a, b <= a, b > a, b >= a, b == a, b != a] for a, b in pairs]
    assert y.T.tolist() == [[int(v) for v in one + two] for one, two in zip(rows, other, strict=True)]
