"""Operations against NumPy: a table with a row per operation, run for each element type that the
operation takes, on shapes that are no multiple of anything.

A row is (DSL expression over tiles a and b, oracle over arrays a and b, element types). Kernels get
their operands through `pl.load`, so every row also crosses a load and a store. 16-bit floats compute in
FP32 and round once, which is what `once` does to the oracle's result."""

import functools

import numpy as np
import pytest
import torch

import pypto
from programs import config, from_text

SIGNED = ["INT8", "INT16", "INT32", "INT64"]
UNSIGNED = ["UINT8", "UINT16", "UINT32", "UINT64"]
INTS = SIGNED + UNSIGNED
FLOATS = ["FP32", "FP16", "BF16"]
ALL = INTS + FLOATS

# BF16 has no NumPy type: its arrays are FP32 with rounded values, packed into uint16 at the border.
NUMPY = {name: np.dtype(name.lower()) for name in INTS}
NUMPY |= {"FP32": np.dtype("f4"), "FP16": np.dtype("f2"), "BF16": np.dtype("f4")}

SHAPES = [(3, 7), (2, 3, 33)]


def once(x, dtype):
    """Rounds FP32 values to the element type."""
    if dtype == "BF16":
        return torch.from_numpy(np.ascontiguousarray(x, np.float32)).bfloat16().float().numpy()
    return x.astype(NUMPY[dtype])


def wide(x):
    return x.astype(np.float32) if x.dtype == np.float16 else x


def to_torch(x, dtype):
    """What is handed to the program: BF16 only torch has, the rest stays NumPy."""
    return torch.from_numpy(x).bfloat16() if dtype == "BF16" else x


def from_torch(x, dtype):
    return x.float().numpy() if dtype == "BF16" else x


def samples(dtype, shape, seed):
    """Random numbers of all sizes, with the special ones sprinkled in."""
    rng = np.random.default_rng(seed)
    if dtype in INTS:
        info = np.iinfo(NUMPY[dtype])
        x = rng.integers(info.min, info.max, shape, NUMPY[dtype], endpoint=True)
        small = rng.integers(0, 5, shape).astype(NUMPY[dtype])
        special = np.array([0, 1, info.min, info.max, 2, -1 & info.max], NUMPY[dtype])
        if info.min < 0:
            special[5] = -1
        x = np.where(rng.random(shape) < 0.4, small, x)
    else:
        x = (rng.standard_normal(shape) * 10.0 ** rng.uniform(-3, 2, shape)).astype(np.float32)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 65504, 1.0], np.float32)
        x = once(x, dtype)
        special = once(special, dtype)
    return np.where(rng.random(shape) < 0.15, rng.choice(special, shape), x).astype(NUMPY[dtype])


def program(statements, shape, dtype, out_shape, out_dtype):
    """A host function with the tiles a and b loaded, and z to store to, on each device."""
    dims, out_dims = (", ".join(map(str, each)) for each in (shape, out_shape))
    at = ", ".join("0" * len(shape))
    lines = "\n".join(f"    {statement}" for statement in statements)
    text = f"""\
@pl.jit.incore
def kernel(x: pl.Tensor[[{dims}], pl.{dtype}], y: pl.Tensor[[{dims}], pl.{dtype}],
           z: pl.Out[pl.Tensor[[{out_dims}], pl.{out_dtype}]]):
    a = pl.load(x, [{at}], [{dims}])
    b = pl.load(y, [{at}], [{dims}])
{lines}

@pl.jit
def wrapper(x: pl.Tensor[[{dims}], pl.{dtype}], y: pl.Tensor[[{dims}], pl.{dtype}],
            z: pl.Out[pl.Tensor[[{out_dims}], pl.{out_dtype}]]):
    kernel(x, y, z)

@pl.jit.host
def host(x: pl.Tensor[[NR, {dims}], pl.{dtype}], y: pl.Tensor[[NR, {dims}], pl.{dtype}],
         z: pl.Out[pl.Tensor[[NR, {out_dims}], pl.{out_dtype}]]):
    for r in pl.range(pld.world_size()):
        wrapper(x[r], y[r], z[r], device=r)
"""
    return from_text(text)["host"]


def run(statements, a, b, dtype, out_shape=None, out_dtype=None):
    """What the statements store to z, which holds zeros before."""
    out_shape, out_dtype = out_shape or a.shape, out_dtype or dtype
    host = program(statements, a.shape, dtype, out_shape, out_dtype)
    out = to_torch(np.zeros((1, *out_shape), NUMPY[out_dtype]), out_dtype)
    host(to_torch(a[None], dtype), to_torch(b[None], dtype), out, config=config(1))
    return from_torch(out, out_dtype)[0]


def divide(a, b):
    if a.dtype.kind == "f":
        return a / b
    exact = np.array(
        [0 if y == 0 else (abs(int(x)) // abs(int(y))) * (-1 if (x < 0) != (y < 0) else 1)
         for x, y in zip(a.flat, b.flat)], dtype=object)
    return wrapped(exact, a)


def remainder(a, b):
    exact = np.array(
        [0 if y == 0 else (abs(int(x)) % abs(int(y))) * (-1 if x < 0 else 1)
         for x, y in zip(a.flat, b.flat)], dtype=object)
    return wrapped(exact, a)


def wrapped(exact, like):
    """Python integers, modulo the width of the array's type."""
    bits = like.dtype.itemsize * 8
    mask = np.array([int(v) % 2**bits for v in exact], np.uint64)
    return mask.astype(f"u{like.dtype.itemsize}").view(like.dtype).reshape(like.shape)


def shift_left(a, b):
    bits = a.dtype.itemsize * 8
    exact = [int(x) << int(n) if 0 <= n < bits else 0 for x, n in zip(a.flat, b.flat)]
    return wrapped(exact, a)


def shift_right(a, b):
    bits = a.dtype.itemsize * 8
    exact = [int(x) >> (int(n) if 0 <= n < bits else bits) for x, n in zip(a.flat, b.flat)]
    return wrapped(exact, a)


def f8(function):
    """An oracle in double, rounded to FP32."""
    return lambda a, b: function(a.astype(np.float64)).astype(np.float32)


# expression, oracle, element types, largest error in units in the last place of FP32
ROWS = [
    ("pl.add(a, b)", lambda a, b: a + b, ALL, 0),
    ("pl.sub(a, b)", lambda a, b: a - b, ALL, 0),
    ("pl.mul(a, b)", lambda a, b: a * b, ALL, 0),
    ("pl.add(a, 3)", lambda a, b: a + a.dtype.type(3), ALL, 0),
    ("pl.tile.subs(a, 1.5)", lambda a, b: a - np.float32(1.5), FLOATS, 0),
    ("pl.tile.muls(a, 5)", lambda a, b: a * a.dtype.type(5), ALL, 0),
    ("pl.div(a, b)", divide, ALL, 0),
    ("pl.tile.divs(a, 3)", lambda a, b: divide(a, np.full_like(a, 3)), ALL, 0),
    ("pl.maximum(a, b)", np.maximum, ALL, 0),
    ("pl.minimum(a, b)", np.minimum, ALL, 0),
    ("pl.maximums(a, 2)", lambda a, b: np.maximum(a, a.dtype.type(2)), ALL, 0),
    ("pl.minimums(a, 2)", lambda a, b: np.minimum(a, a.dtype.type(2)), ALL, 0),
    ("pl.fmod(a, b)", remainder, INTS, 0),
    ("pl.neg(a)", lambda a, b: np.negative(a), ALL, 0),
    ("pl.abs(a)", lambda a, b: np.abs(a), ALL, 0),
    ("pl.relu(a)", lambda a, b: np.maximum(a, a.dtype.type(0)), ALL, 0),
    ("pl.exp(a)", f8(np.exp), FLOATS, 1),
    ("pl.log(a)", f8(np.log), FLOATS, 1),
    ("pl.sqrt(a)", lambda a, b: np.sqrt(a), FLOATS, 0),
    ("pl.rsqrt(a)", lambda a, b: np.float32(1) / np.sqrt(a), FLOATS, 0),
    ("pl.recip(a)", lambda a, b: np.float32(1) / a, FLOATS, 0),
    ("pl.lrelu(a, 0.1)", lambda a, b: np.where(a > 0, a, a * np.float32(0.1)), ["FP32"], 0),
    ("pl.and_(a, b)", lambda a, b: a & b, INTS, 0),
    ("pl.or_(a, b)", lambda a, b: a | b, INTS, 0),
    ("pl.xor(a, b)", lambda a, b: a ^ b, INTS, 0),
    ("pl.xors(a, 5)", lambda a, b: a ^ a.dtype.type(5), INTS, 0),
    ("pl.not_(a)", lambda a, b: ~a, INTS, 0),
    ("pl.shl(a, b)", shift_left, INTS, 0),
    ("pl.shr(a, b)", shift_right, INTS, 0),
]


def distance(got, expected):
    """Units in the last place between FP32 arrays that are NaN in the same places."""
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(got), nan)
    order = [np.where(nan, 0, x).astype(np.float32).view(np.int32).astype(np.int64)
             for x in (got, expected)]
    order = [np.where(x < 0, -(x & 0x7FFFFFFF), x) for x in order]
    return np.max(np.abs(order[0] - order[1]), initial=0)


@functools.cache
def results(dtype, shape):
    """The operands, and what each row that takes the type makes of them: one program for all."""
    a, b = samples(dtype, shape, 1), samples(dtype, shape, 2)
    rows = [expression for expression, _, dtypes, _ in ROWS if dtype in dtypes]
    at = ", 0" * len(shape)
    statements = [f"pl.store({rows[k]}, [{k}{at}], z)" for k in range(len(rows))]
    return a, b, dict(zip(rows, run(statements, a, b, dtype, (len(rows), *shape))))


CASES = [(row, dtype) for row in ROWS for dtype in row[2]]


@pytest.mark.parametrize("row, dtype", CASES, ids=[f"{row[0]}-{dtype}" for row, dtype in CASES])
def test_elementwise(row, dtype):
    expression, oracle, _, ulps = row
    for shape in SHAPES:
        a, b, all_rows = results(dtype, shape)
        with np.errstate(all="ignore"):
            expected = once(oracle(wide(a), wide(b)), dtype)
        if dtype == "FP32":
            assert distance(all_rows[expression], expected) <= ulps
        else:  # an error of one unit of FP32 does not show, other than by a tie
            np.testing.assert_array_equal(all_rows[expression], expected)


# An expression over FP32 tiles a and b, or INT32 ones, and what is wrong with it.
REFUSED = [
    ("FP32", "pl.and_(a, b)", "needs integer elements, not fp32"),
    ("INT32", "pl.exp(a)", "needs floating-point elements, not int32"),
    ("INT32", "pl.add(a, 1.5)", "requires same numeric dtype category"),
    ("FP32", "pl.add(a, True)", "requires same numeric dtype category"),
    ("INT32", "pl.tile.adds(a, 5000000000)", "does not fit"),
    ("FP32", "pl.tile.adds(a, b)", "rhs must be a scalar, not a Tile"),
    ("FP32", "pl.div(a, b, high_precision=1)", "high_precision expected True or False"),
    ("FP32", "pl.relu(x)", "x expected Tile, got Tensor"),
    ("BOOL", "pl.add(a, b)", "does not accept bool tiles"),
]


@pytest.mark.parametrize("dtype, expression, words", REFUSED, ids=lambda value: value)
def test_refused(dtype, expression, words):
    host = program([f"pl.store({expression}, [0, 0], z)"], (2, 8), dtype, (2, 8), dtype)
    with pytest.raises(pypto.Error, match=words):
        host.compile(config=config(1))
