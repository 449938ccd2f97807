"""Loops that may not run: what names are afterwards."""

import numpy as np
import pytest

import pypto.language as pl
from programs import config


@pl.jit.incore
def last_turn(
    x: pl.Tensor[[1, 8], pl.INT32],
    y: pl.InOut[pl.Tensor[[1, 8], pl.INT32]],
    turns: pl.Scalar[pl.INT32],
):
    i = turns + 7
    count = turns + 5
    source = x
    t = pl.load(x, [0, 0], [1, 8])
    for i in pl.range(turns):
        source = y
        count = 3
        t = pl.mul(t, 2)
    t = pl.add(t, pl.load(source, [0, 0], [1, 8]))
    t = pl.add(t, pl.cast(i, pl.INT32))
    pl.store(pl.add(t, count), [0, 0], y)


@pl.jit
def wrapper(
    x: pl.Tensor[[1, 8], pl.INT32],
    y: pl.InOut[pl.Tensor[[1, 8], pl.INT32]],
    turns: pl.Scalar[pl.INT32],
):
    last_turn(x, y, turns)


@pl.jit.host
def host(
    x: pl.Tensor[[1, 1, 8], pl.INT32],
    y: pl.InOut[pl.Tensor[[1, 1, 8], pl.INT32]],
    turns: pl.Scalar[pl.INT32],
):
    wrapper(x[0], y[0], turns, device=0)


@pytest.mark.parametrize("turns", [-1, 0, 1, 3])
def test_names_after_a_loop_are_what_python_says(turns):
    x = np.full((1, 1, 8), 100, np.int32)
    y = np.full((1, 1, 8), 10_000, np.int32)
    i, count, source, t = turns + 7, turns + 5, x, x
    for i in range(turns):
        source, count, t = y, 3, t * 2
    expected = t + source + i + count
    host(x, y, turns, config=config(1))
    np.testing.assert_array_equal(y, expected)
