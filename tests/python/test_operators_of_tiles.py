"""Operators on tiles: which there are, what those that there are not say instead, and what help() says of special
values."""

import numpy as np
import pytest

import pypto
import pypto.language as pl
from op_programs import program, run
from programs import config


def test_numbers_divided_by_tiles():
    """`1 / t` is exact, as pl.recip(t) is; integers drop the fraction, and x / 0 is 0 for them."""
    a = np.array([[2, -4, 3, 0, np.inf, np.nan]], np.float32)
    out = run(["pl.store(1.0 / a, [0, 0, 0], z)", "pl.store(1 / a, [1, 0, 0], z)", "pl.store(pl.recip(a), [2, 0, 0], z)"],
              a, a, "FP32", (3, *a.shape))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, [np.float32(1) / a] * 3)
    i = np.array([[2, -4, 3, 0, 7, -8]], np.int32)
    np.testing.assert_array_equal(run(["pl.store(7 / a, [0, 0], z)"], i, i, "INT32"), [[3, -1, 2, 0, 1, 0]])


REFUSED = [
    ("FP32", "~a", "needs integer elements, not fp32", "pl.reinterpret_view(x, pl.INT32)"),
    ("FP32", "a & b", "needs integer elements, not fp32", "convert the tile: pl.cast(x, pl.INT32)"),
    ("FP32", "a << 1", "needs integer elements, not fp32", "convert the tile"),
    ("FP32", "a // b", "must be ScalarExpr", "a / b divides tiles"),
    ("INT32", "7 // a", "must be ScalarExpr", "a / b divides tiles"),
    ("FP32", "a ** 2", "must be ScalarExpr", "pl.mul(t, t)"),
    ("FP32", "a @ b", "must be ScalarExpr", "pl.matmul(a, b)"),
    ("FP32", "a < b", "must be ScalarExpr", "pl.cmp(a, b"),
    ("FP32", "max(a, b)", "must be ScalarExpr", "pl.maximum(a, b)"),
    ("FP32", "a + (1, 2)", "an operand of '+' must be ScalarExpr or Var with ScalarType, not a list or tuple", "take numbers"),
    ("FP32", "None / a", "an operand of '/' must be ScalarExpr or Var with ScalarType, not None", "take numbers"),
    ("INT32", "1.5 / a", "requires same numeric dtype category", "pl.cast(x, pl.INT32)"),
]


@pytest.mark.parametrize("dtype, expression, words, hint", REFUSED, ids=[row[1] for row in REFUSED])
def test_refused(dtype, expression, words, hint):
    host = program([f"c = {expression}", "pl.store(a, [0, 0], z)"], (2, 8), dtype, (2, 8), dtype)
    with pytest.raises(pypto.Error) as caught:
        host.compile(config=config(1))
    assert words in str(caught.value) and hint in str(caught.value).split("hint:")[1]


@pytest.mark.parametrize(
    "operation, facts",
    [
        (pl.div, ["x / 0 is 0 for integers", "0 / 0 NaN", "least integer / -1 itself"]),
        (pl.cast, ["A scalar converted", "ties away from 0", "out of range becomes the nearest integer, NaN becomes 0"]),
        (pl.row_argmax, ["of equal ones the first", "it counts only where it stands first"]),
        (pl.col_argmin, ["of equal ones the first", "it counts only where it stands first"]),
        (pl.maximum, ["NaN if either is NaN"]),
    ],
    ids=["div", "cast", "row_argmax", "col_argmin", "maximum"],
)
def test_help_tells_of_special_values(operation, facts):
    words = " ".join(operation.__doc__.split())
    for fact in facts:
        assert fact in words
