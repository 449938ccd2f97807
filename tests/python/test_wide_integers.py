"""Integers at the ends of 64 bits: a number of the script may have any value of INT64 or UINT64."""

import numpy as np
import pytest

import pypto
from op_programs import program, run
from programs import config, from_text

TOP, MIDDLE = 2**64, 2**63


def stored(numbers, dtype="UINT64", setup=()):
    """What pl.write(z, ...) of each number stores."""
    a = np.zeros((1, len(numbers)), np.dtype(dtype.lower()))
    return run([*setup, *(f"pl.write(z, [0, {i}], {n})" for i, n in enumerate(numbers))], a, a, dtype)[0].tolist()


def error_of(statement, dtype="UINT64"):
    host = program([statement, "pl.store(a, [0, 0], z)"], (1, 4), dtype, (1, 4), dtype)
    with pytest.raises(pypto.Error) as caught:
        host.compile(config=config(1))
    return str(caught.value)


def test_numbers_of_the_script():
    assert stored([MIDDLE - 1, MIDDLE, TOP - 1, 0]) == [MIDDLE - 1, MIDDLE, TOP - 1, 0]
    assert stored([MIDDLE - 1, -MIDDLE, "-(9223372036854775808)"], "INT64") == [MIDDLE - 1, -MIDDLE, -MIDDLE]


@pytest.mark.parametrize(
    "expression",
    [
        "0xffffffffffffffff", "2**63", "1 << 63", "(0xffffffffffffffff) // 3", "(0xffffffffffffffff) % 1000", "18446744073709551615 >> 1",
        "~(-(2**63)) + 1", "(0xffffffffffffffff) & ~255", "2**63 | 1", "2**63 ^ 3", "abs(-(2**63))", "abs(0xffffffffffffffff)",
        "max(2**63, 0xffffffffffffffff, -1)", "min(2**63, 0xffffffffffffffff)", "2**40 * 2**23", "3 if 0xffffffffffffffff > 2**63 else 4",
        "1 if 2**63 == -(2**63) else 2", "2**63 - 2**63", "+2**63", "(-1) ** (2**63) + 1",
    ],
)
def test_constants_are_computed_as_python_does(expression):
    assert stored([expression]) == [eval(expression)]


def test_with_elements_of_unsigned_type():
    """Beside a scalar or a tile of UINT64 a number is one."""
    setup = ["v = pl.read(x, [0, 0])"]
    assert stored(["v + 18446744073709551615", "v | 2**63", "v - 2**63", "pl.const(0xffffffffffffffff, pl.UINT64)",
                   "5 if v < 0xffffffffffffffff else 6", "max(v, 0xfffffffffffffffe)", "pl.cast(0xffffffffffffffff, pl.UINT64)"],
                  setup=setup) == [TOP - 1, MIDDLE, MIDDLE, TOP - 1, 5, TOP - 2, TOP - 1]
    a = np.array([[1, 2, MIDDLE, TOP - 1]], np.uint64)
    out = run(["pl.store(pl.add(a, 0xffffffffffffffff), [0, 0, 0], z)", "pl.store(pl.maximum(a, 9223372036854775809), [1, 0, 0], z)",
               "t = pl.tile.full([1, 4], pl.UINT64, 0xfffffffffffffffe)", "pl.store(t, [2, 0, 0], z)"],
              a, a, "UINT64", (3, 1, 4))
    assert out[:, 0].tolist() == [[0, 1, MIDDLE - 1, TOP - 2], [MIDDLE + 1, MIDDLE + 1, MIDDLE + 1, TOP - 1],
                                  [TOP - 2] * 4]


@pytest.mark.parametrize("value", [MIDDLE - 1, MIDDLE, TOP - 1, np.uint64(TOP - 1), TOP])
def test_names(value):
    """Constants of Python, and names of the kernel."""
    entry = from_text("""\
@pl.jit.incore
def kernel(z: pl.Out[pl.Tensor[[3], pl.UINT64]]):
    n = BIG
    pl.write(z, [0], n)
    m = pl.const(0, pl.UINT64)
    for i in pl.range(2):
        m = BIG - 7
    pl.write(z, [1], m)
    pl.write(z, [2], LIST[1])

@pl.jit
def entry(z: pl.Out[pl.Tensor[[3], pl.UINT64]]):
    kernel(z)
""", BIG=value, LIST=[1, value])["entry"]
    z = np.zeros(3, np.uint64)
    if value == TOP:
        with pytest.raises(pypto.Error, match="int of more than 64 bits"):
            entry(z, config=config(1))
        return
    entry(z, config=config(1))
    assert z.tolist() == [value, int(value) - 7, value]


REFUSED = [
    ("UINT64", "pl.write(z, [0, 0], 2**64)", "the result does not fit 64 bits"),
    ("UINT64", "pl.write(z, [0, 0], 18446744073709551616)", "the number does not fit 64 bits"),
    ("INT64", "pl.write(z, [0, 0], -9223372036854775809)", "the result does not fit 64 bits"),
    ("INT64", "pl.write(z, [0, 0], -(2**63) - 1)", "the result does not fit 64 bits"),
    ("INT64", "pl.write(z, [0, 0], 2**63)", "9223372036854775808 does not fit elements of int64"),
    ("INT64", "v = pl.read(x, [0, 0]) + 2**63", "9223372036854775808 does not fit int64, the type of the other"),
    ("INT64", "v = pl.add(a, 18446744073709551615)", "18446744073709551615 does not fit elements of int64"),
    ("INT32", "v = pl.const(2**63, pl.INT64)", "the value does not fit int64"),
    ("UINT64", "v = pl.read(x, [0, 2**63])", "9223372036854775808 does not fit index"),
    ("UINT64", "v = pl.read(x, 2**63)", "9223372036854775808 does not fit index"),
    ("UINT64", "v = x[0, 2**63]", "9223372036854775808 does not fit index"),
    ("UINT64", "v = x[0:2**63]", "9223372036854775808 does not fit index"),
    ("UINT64", "v = pl.load(x, [0, 0], [1, 2**63])", "9223372036854775808 does not fit index"),
    ("UINT64", "v = pl.create_tile([18446744073709551615, 1], pl.FP32)", "18446744073709551615 does not fit index"),
    ("UINT64", "v = pl.read(x, [0, 0]) << 2**63", "a shift by 9223372036854775808 leaves nothing"),
    ("UINT64", "for i in pl.range(2**63): pl.write(z, [0, 0], 1)", "9223372036854775808 does not fit index"),
    ("UINT64", "v = 2**64 - 1", "0xffffffffffffffff instead of 2**64 - 1"),
    ("UINT64", "v = 1 << 64", "the result does not fit 64 bits"),
    ("UINT64", "v = 2**200", "the result does not fit 64 bits"),
    ("UINT64", "v = 0xffffffffffffffff * 0xffffffffffffffff", "the result does not fit 64 bits"),
]


@pytest.mark.parametrize("dtype, statement, words", REFUSED, ids=[row[1] for row in REFUSED])
def test_refused(dtype, statement, words):
    assert words in error_of(statement, dtype)


def test_dimensions_are_no_larger_than_an_index():
    with pytest.raises(pypto.Error, match="does not fit"):
        program(["pl.store(a, [0], z)"], (MIDDLE,), "INT8", (MIDDLE,), "INT8").compile(config=config(1))
