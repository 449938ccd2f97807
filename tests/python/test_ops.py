"""Operations against NumPy: a table with a row per operation, run for each element type that the
operation takes, on shapes that are no multiple of anything.

A row is (DSL expression over tiles a and b, oracle over arrays a and b, element types). Kernels get
their operands through `pl.load`, so every row also crosses a load and a store. 16-bit floats compute in
FP32 and round once, which is what `once` does to the oracle's result."""

import functools

import numpy as np
import pytest

import pypto
from op_programs import (
    ALL, FLOATS, INTS, M, N, NUMPY, SHAPES, distance, lanes_sum, moved, once, program, ramp, run, samples,
    wide
)
from programs import config

def divide(a, b):
    if a.dtype.kind == "f":
        return a / b
    exact = np.array(
        [0 if y == 0 else (abs(int(x)) // abs(int(y))) * (-1 if (x < 0) != (y < 0) else 1)
         for x, y in zip(a.flat, b.flat)], dtype=object)
    return wrapped(exact, a)


def remainder(a, b):
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    exact = np.array(
        [0 if y == 0 else (abs(int(x)) % abs(int(y))) * (-1 if x < 0 else 1)
         for x, y in zip(a.flat, b.flat)], dtype=object)
    return wrapped(exact, a)


def floored_remainder(a, b):
    if a.dtype.kind == "f":
        return np.remainder(a, b)
    exact = np.array([0 if y == 0 else int(x) % int(y) for x, y in zip(a.flat, b.flat)], dtype=object)
    return wrapped(exact, a)


def twice(first, second, a, b):
    """Two operations with a rounding to the element type between them, and a again as the last operand.
    `STEP` rounds; 16-bit floats come as FP32."""
    return second(STEP[0](first(a, b)), a)


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


# How the element type at hand rounds between the steps of one operation.
STEP = [lambda x: x]

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
    ("pl.fmod(a, b)", remainder, ALL, 0),
    ("pl.fmods(a, 3)", lambda a, b: remainder(a, np.full_like(a, 3)), ALL, 0),
    ("pl.rem(a, b, b)", floored_remainder, ALL, 0),
    ("pl.rems(a, 3, b)", lambda a, b: floored_remainder(a, np.full_like(a, 3)), ALL, 0),
    ("pl.tile.adds(a, 3)", lambda a, b: a + a.dtype.type(3), ALL, 0),
    ("pl.addc(a, b, a)", lambda a, b: twice(np.add, np.add, a, b), ALL, 0),
    ("pl.subc(a, b, a)", lambda a, b: twice(np.subtract, np.subtract, a, b), ALL, 0),
    ("pl.addsc(a, 7, a)", lambda a, b: twice(np.add, np.add, a, a.dtype.type(7)), ALL, 0),
    ("pl.subsc(a, 7, a)", lambda a, b: twice(np.subtract, np.subtract, a, a.dtype.type(7)), ALL, 0),
    ("pl.expands(a, 5)", lambda a, b: np.full_like(a, 5), ALL, 0),
    ("pl.neg(a)", lambda a, b: np.negative(a), ALL, 0),
    ("pl.abs(a)", lambda a, b: np.abs(a), ALL, 0),
    ("pl.relu(a)", lambda a, b: np.maximum(a, a.dtype.type(0)), ALL, 0),
    ("pl.exp(a)", f8(np.exp), FLOATS, 1),
    ("pl.log(a)", f8(np.log), FLOATS, 1),
    ("pl.sin(a)", f8(np.sin), FLOATS, 1),
    ("pl.cos(a)", f8(np.cos), FLOATS, 1),
    ("pl.sqrt(a)", lambda a, b: np.sqrt(a), FLOATS, 0),
    ("pl.rsqrt(a)", lambda a, b: np.float32(1) / np.sqrt(a), FLOATS, 0),
    ("pl.recip(a)", lambda a, b: np.float32(1) / a, FLOATS, 0),
    ("pl.lrelu(a, 0.1)", lambda a, b: np.where(a > 0, a, a * np.float32(0.1)), ["FP32"], 0),
    ("pl.prelu(a, b, a)", lambda a, b: np.where(a > 0, a, a * b), FLOATS, 0),
    ("pl.ands(a, 5)", lambda a, b: a & a.dtype.type(5), INTS, 0),
    ("pl.ors(a, 5)", lambda a, b: a | a.dtype.type(5), INTS, 0),
    ("pl.shls(a, 3)", lambda a, b: shift_left(a, np.full_like(a, 3)), INTS, 0),
    ("pl.shrs(a, 3)", lambda a, b: shift_right(a, np.full_like(a, 3)), INTS, 0),
    ("pl.and_(a, b)", lambda a, b: a & b, INTS, 0),
    ("pl.or_(a, b)", lambda a, b: a | b, INTS, 0),
    ("pl.xor(a, b)", lambda a, b: a ^ b, INTS, 0),
    ("pl.xors(a, 5)", lambda a, b: a ^ a.dtype.type(5), INTS, 0),
    ("pl.not_(a)", lambda a, b: ~a, INTS, 0),
    ("pl.shl(a, b)", shift_left, INTS, 0),
    ("pl.shr(a, b)", shift_right, INTS, 0),
    ("7 / a", lambda a, b: divide(np.full_like(a, 7), a), ALL, 0),
    ("7 % a", lambda a, b: floored_remainder(np.full_like(a, 7), a), ALL, 0),
    ("5 & a", lambda a, b: a & a.dtype.type(5), INTS, 0),
    ("5 | a", lambda a, b: a | a.dtype.type(5), INTS, 0),
    ("5 ^ a", lambda a, b: a ^ a.dtype.type(5), INTS, 0),
    ("5 << a", lambda a, b: shift_left(np.full_like(a, 5), a), INTS, 0),
    ("100 >> a", lambda a, b: shift_right(np.full_like(a, 100), a), INTS, 0),
    ("pl.tensor.cmp(a, b)", lambda a, b: (a == b).astype(a.dtype), ALL, 0),
    ("pl.tensor.cmp(a, b, 1)", lambda a, b: (a != b).astype(a.dtype), ALL, 0),
    ("pl.tensor.cmp(x, y, cmp_type='lt')", lambda a, b: (a < b).astype(a.dtype), ALL, 0),
    ("pl.cmp(x, 2, 'le')", lambda a, b: (a <= a.dtype.type(2)).astype(a.dtype), ALL, 0),
    ("pl.cmp(x, b, 4)", lambda a, b: (a > b).astype(a.dtype), ALL, 0),
]


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
        STEP[0] = lambda x: wide(once(x, dtype))
        with np.errstate(all="ignore"):
            expected = once(oracle(wide(a), wide(b)), dtype)
        if dtype == "FP32":
            assert distance(all_rows[expression], expected) <= ulps
        else:  # an error of one unit of FP32 does not show, other than by a tie
            np.testing.assert_array_equal(all_rows[expression], expected)


# Every row refuses the element types that it does not claim. What a scalar does to a tile of bool or of a
# type for storage is refused the same way.
UNCLAIMED = [
    (row[0], dtype)
    for row in ROWS
    for dtype in [*ALL, "BOOL", "FP8E4M3FN", "FP8E5M2", "FP8E8M0"]
    if dtype not in row[2] and row[2] != ["FP32"]
]


@pytest.mark.parametrize("expression, dtype", UNCLAIMED, ids=lambda value: value)
def test_unclaimed_types(expression, dtype):
    host = program([f"pl.store({expression}, [0, 0], z)"], (2, 8), dtype, (2, 8), dtype)
    words = "does not accept .* tiles|needs (integer|floating-point) elements|same numeric dtype category"
    with pytest.raises(pypto.Error, match=words):
        host.compile(config=config(1))


# An expression over FP32 tiles a and b, or INT32 ones, and what is wrong with it.
REFUSED = [
    ("FP32", "pl.and_(a, b)", "needs integer elements, not fp32"),
    ("INT32", "pl.exp(a)", "needs floating-point elements, not int32"),
    ("INT32", "pl.add(a, 1.5)", "requires same numeric dtype category"),
    ("FP32", "pl.add(a, True)", "requires same numeric dtype category"),
    ("INT32", "pl.tile.adds(a, 5000000000)", "does not fit"),
    ("FP32", "pl.tile.adds(a, b)", "rhs must be a scalar, not a Tile"),
    ("FP32", "pl.div(a, b, high_precision=1)", "high_precision expected True or False"),
    ("FP32", "pl.relu(x)", "tile expected Tile, got Tensor"),
    ("BOOL", "pl.add(a, b)", "does not accept bool tiles"),
]


@pytest.mark.parametrize("dtype, expression, words", REFUSED, ids=lambda value: value)
def test_refused(dtype, expression, words):
    host = program([f"pl.store({expression}, [0, 0], z)"], (2, 8), dtype, (2, 8), dtype)
    with pytest.raises(pypto.Error, match=words):
        host.compile(config=config(1))


@pytest.mark.parametrize("dtype, digits", [("FP16", 11), ("BF16", 8)])
def test_literals_are_rounded_once(dtype, digits):
    """Just above the middle of two 16-bit numbers, and FP32 would make it the middle (rule N-20). A number of
    type FP32 is one, though."""
    c = repr(1 + 2.0**-digits + 2.0**-40)
    a = np.zeros((1, 4), NUMPY[dtype])
    out = run([f"pl.store(pl.add(a, {c}), [0, 0, 0], z)",
               f"pl.store(pl.tile.full([1, 4], pl.{dtype}, {c}), [1, 0, 0], z)",
               f"pl.store(pl.add(a, pl.const({c}, pl.{dtype})), [2, 0, 0], z)",
               f"pl.store(pl.add(a, pl.cast(pl.const({c}, pl.FP32), pl.{dtype})), [3, 0, 0], z)"],
              a, a, dtype, (4, 1, 4))
    above = 1 + 2.0 ** (1 - digits)
    np.testing.assert_array_equal(out[:, 0, 0], [above, above, above, 1])


# ---- valid extents ----

@pytest.mark.parametrize("valid", [(0, 0), (1, 1), (4, 7), (6, 10), (6, 3), (2, 10)])
@pytest.mark.parametrize("when", ["compile", "run"])
def test_valid_shape(valid, when):
    """Loads fill the valid part and zero the tail, stores write the valid part."""
    a = ramp()
    rows, columns = valid
    if when == "run":  # a number that the compiler does not know
        names = ["n = pl.cast(pl.read(y, [0, 0]), pl.INDEX)", f"m = n * 0 + {rows}"]
        rows, columns = "m", f"n * 0 + {columns}"
    else:
        names = []
    box = np.zeros_like(a)
    box[: valid[0], : valid[1]] = a[: valid[0], : valid[1]]
    out = moved(
        names
        + [
            f"t = pl.load(x, [0, 0], [{M}, {N}], valid_shape=[{rows}, {columns}])",
            "u = pl.add(t, 1)",
            "u = pl.mul(u, b)",
            "pl.store(u, [0, 0, 0], z)",
            "pl.store(t, [1, 0, 0], z)",
            "pl.store(pl.add(b, t), [2, 0, 0], z)",  # the left one's extent: all
        ],
        a,
        out_shape=(3, M, N),
    )
    inside = np.zeros_like(a)
    inside[: valid[0], : valid[1]] = ((a + 1) * a)[: valid[0], : valid[1]]
    np.testing.assert_array_equal(out, [inside, box, a + box])


@pytest.mark.parametrize("row, column", [(0, 0), (2, 3), (5, 9), (6, 0), (0, 40)])
def test_clamp(row, column):
    a = ramp()
    out = moved([f"t = pl.load(x, [{row}, {column}], [{M}, {N}], clamp=True)",
                 "pl.store(t, [0, 0], z)"], a)
    part = a[row:, column:]
    expected = np.zeros_like(a)
    expected[: part.shape[0], : part.shape[1]] = part
    np.testing.assert_array_equal(out, expected)


def test_physical_overhang():
    """A tile may be larger than what there is, if its valid part is not."""
    a = ramp()
    out = moved(["t = pl.load(x, [4, 0], [8, 16], valid_shape=[2, 10])",
                 "pl.store(t, [0, 0], z)"], a)
    np.testing.assert_array_equal(out[:2], a[4:])
    assert not out[2:].any()


def test_ragged_tiles_in_loops_and_branches():
    """The extents travel with the variable."""
    a = ramp((8, 16))
    out = moved(
        [
            "for i in pl.range(4):",
            "    t = pl.load(x, [2 * i, 0], [2, 16], valid_shape=[2, 4 * i])",
            "    if i == 2:",
            "        t = pl.load(x, [0, 0], [2, 16], valid_shape=[1, i])",
            "    u = pl.move(t, target_memory=pl.MemorySpace.Vec)",
            "    pl.store(u, [2 * i, 0], z)",
        ],
        a,
    )
    expected = np.zeros_like(a)
    for i in range(4):
        if i == 2:
            expected[4:5, :2] = a[0:1, :2]
        else:
            expected[2 * i : 2 * i + 2, : 4 * i] = a[2 * i : 2 * i + 2, : 4 * i]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", ALL + ["BOOL"])
def test_new_tiles(dtype):
    value = "True" if dtype == "BOOL" else "3"
    a = np.ones((2, 5), NUMPY[dtype])
    out = moved(
        [
            f"pl.store(pl.create_tile([2, 5], pl.{dtype}), [0, 0, 0], z)",
            f"pl.store(pl.tile.full([2, 5], pl.{dtype}, {value}), [1, 0, 0], z)",
            "pl.store(pl.move(a, pl.MemorySpace.Mat), [2, 0, 0], z)",
        ],
        a, dtype=dtype, out_shape=(3, 2, 5),
    )
    np.testing.assert_array_equal(out, [np.zeros_like(a), np.full_like(a, 3), a])


def test_extents_out_of_range():
    load = "t = pl.load(x, [0, 0], [4, 4], valid_shape=[{}, 4])"
    store = "pl.store(t, [0, 0], z)"
    for statement, words in [
        (load.format(5), "valid_shape 0 is 5"),
        (load.format(-1), "valid_shape 0 is provably negative: -1"),
        ("t = pl.load(x, [0, 0], [4, 4], [4])", "valid_shape rank is 1"),
        ("t = pl.load(x, [4, 0], [4, 4], [3, 4])", "past the end of dimension 0"),
        ("t = pl.load(x, [0, 0], [4, 4], target_memory=pl.MemorySpace.Acc)", "must be Vec or Mat"),
    ]:
        with pytest.raises(pypto.Error, match=words):
            moved([statement, store], ramp())
    ask = "n = pl.cast(pl.read(y, [0, 0]), pl.INDEX)"
    with pytest.raises(pypto.Error, match="valid_shape 0 is 36, but the tile has 4"):
        moved([ask, load.format("n + 35"), store], ramp())
    with pytest.raises(pypto.Error, match="leaves"):
        moved([ask, "t = pl.load(x, [n + 3, 0], [4, 4], valid_shape=[3, 4])", store], ramp())


# ---- elements ----


@pytest.mark.parametrize("dtype", ALL + ["BOOL"])
def test_read_and_write(dtype):
    """From a tensor to a tile, to a tensor, element by element."""
    a = samples(dtype, (3, 4), 5) if dtype != "BOOL" else np.eye(3, 4, dtype=bool)
    if dtype in FLOATS:
        a = np.nan_to_num(a, posinf=1, neginf=-1)
    out = moved(
        [
            f"t = pl.create_tile([3, 4], pl.{dtype})",
            "for i in pl.range(3):",
            "    for j in pl.range(4):",
            "        pl.write(t, [i, j], pl.read(x, [i, j]))",
            "        v = pl.read(t, [i, j])",
            "        pl.write(z, [1, i, j], v)",
            "pl.store(t, [0, 0, 0], z)",
        ],
        a, dtype=dtype, out_shape=(2, 3, 4),
    )
    np.testing.assert_array_equal(out, [a, a])


@pytest.mark.parametrize("dtype", ALL)
def test_atomic_adds(dtype):
    """Two kernels' worth of adds into one place, valid parts only, tiles and tensors."""
    shape = (4, 9)
    a, b = (samples(dtype, shape, k) for k in (21, 22))
    add = "atomic=pl.AtomicType.Add"
    out = run(
        [
            "pl.store(a, [0, 0, 0], z)",
            f"pl.store(b, [0, 0, 0], z, {add})",
            "t = pl.load(x, [0, 0], [4, 9], valid_shape=[2, 5])",
            f"z = pl.store(t, [1, 1, 2], z, {add})",
            f"z = pl.assemble(z, x, [2, 0, 0], {add})",
            f"z = pl.assemble(z, b, [2, 0, 0], {add})",
            "pl.store(a, [3, 0, 0], z, shapes=[2, 2, 9])",
            f"pl.store(a, [3, 2, 0], z, [2, 2, 9], {add})",
        ],
        a, b, dtype, (5, *shape),
    )
    with np.errstate(all="ignore"):
        total = once(wide(a) + wide(b), dtype)
    expected = np.zeros((5, *shape), NUMPY[dtype])
    expected[0] = expected[2] = total
    expected[1, 1:3, 2:7] = a[:2, :5]
    expected[3, :2] = expected[3, 2:] = a[:2]
    expected[4, :2] = expected[4, 2:] = a[2:]
    np.testing.assert_array_equal(out, expected)


def test_write_converts_within_a_category():
    a = ramp((1, 4), np.int32)
    out = moved(["pl.write(z, [0, 0], 7)", "n = pl.read(x, [0, 2])",
                 "pl.write(z, [0, n], n + 1)"], a, dtype="INT32", out_dtype="INT16")
    np.testing.assert_array_equal(out, [[7, 0, 0, 4]])
    for value, words in [("1.5", "convert it: pl.cast"), ("70000", "does not fit"),
                         ("pl.read(y, [0, 0])", None)]:
        if words is not None:
            with pytest.raises(pypto.Error, match=words):
                moved([f"pl.write(z, [0, 0], {value})"], a, dtype="INT32", out_dtype="INT16")
    one = moved(["pl.write(z, 2, pl.read(x, 1))", "pl.write(z, 3, 9)"], ramp((5,)), out_shape=(5,))
    np.testing.assert_array_equal(one, [0, 0, 2, 9, 0])


def test_elements_out_of_range():
    ask = "n = pl.cast(pl.read(y, [0, 0]), pl.INDEX)"  # 1
    for statement, words in [
        ("v = pl.read(x, [6, 0])", "past the end of dimension 0"),
        ("v = pl.read(a, [0, 10])", "past the end of dimension 1"),
        ("v = pl.read(x, [0])", "rank is 1"),
        ("v = pl.read(x, [n + 5, 0])", "a read of .* leaves parameter 'x'"),
        ("v = pl.read(x, [0, n - 2])", "a read of .* leaves parameter 'x'"),
        ("v = pl.read(a, [0, n + 9])", r"PYPTO-R504.*index 10 of dimension 1 is outside the tile, which has 10"),
        ("pl.write(a, [n + 5, 0], 1.0)", r"PYPTO-R504.*index 6 of dimension 0 is outside the tile"),
        ("pl.write(z, [n + 5, 0], 1.0)", "a write of .* leaves parameter 'z'"),
    ]:
        end = "pl.write(z, [0, 0], v)" if statement[0] == "v" else "pl.store(a, [0, 0], z)"
        with pytest.raises(pypto.Error, match=words):
            moved([ask, statement, end], ramp())


# ---- along axes ----


def in_order(function, x, axis):
    """A reduction in the element type (FP32 for 16-bit floats), one element after the other."""
    total = np.take(x, [0], axis)
    for i in range(1, x.shape[axis]):
        total = function(total, np.take(x, [i], axis)).astype(x.dtype)
    return total


ROW = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


@pytest.mark.parametrize("dtype", ALL)
def test_reductions(dtype):
    shape = (5, 150)
    a = samples(dtype, shape, 7)
    if dtype in FLOATS:
        a = once(np.clip(np.nan_to_num(a), -2, 2), dtype)
        a[1, 77] = np.nan
        a[2, 3] = np.inf
    names = list(ROW)
    statements = [f"pl.store(pl.row_{n}(a, b), [{k}, 0, 0], z)" for k, n in enumerate(names)]
    statements += ["t = pl.load(x, [0, 0], [5, 150], valid_shape=[3, 70])"]
    statements += [f"pl.store(pl.row_{n}(t), [{k + 4}, 0, 0], z)" for k, n in enumerate(names)]
    rows = run(statements, a, a, dtype, (8, 5, 1))
    statements = [f"pl.store(pl.col_{n}(a), [{k}, 0, 0], z)" for k, n in enumerate(names)]
    columns = run(statements, a, a, dtype, (4, 1, 150))
    with np.errstate(all="ignore"):
        for k, name in enumerate(names):
            expected = once(in_order(ROW[name], wide(a), 0), dtype)
            np.testing.assert_array_equal(columns[k], expected)
            for got, part in [(rows[k], a), (rows[k + 4], a[:3, :70])]:
                if name == "sum" and dtype in FLOATS:
                    expected = once(lanes_sum(part), dtype)
                elif name == "prod" and dtype in FLOATS:
                    expected = once(np.prod(wide(part), 1, keepdims=True), dtype)
                    np.testing.assert_allclose(got[: len(part)], expected, rtol=2e-2)
                    continue
                else:
                    expected = in_order(ROW[name], wide(part), 1)
                np.testing.assert_array_equal(got[: len(part)], once(expected, dtype))
            assert not rows[k + 4][3:].any()


EXPANDS = [
    ("add", lambda x, v: x + v, ALL),
    ("sub", lambda x, v: x - v, ALL),
    ("mul", lambda x, v: x * v, ALL),
    ("div", divide, FLOATS),
    ("max", np.maximum, ALL),
    ("min", np.minimum, ALL),
]


@pytest.mark.parametrize("dtype", ALL)
def test_broadcasts(dtype):
    shape = (5, 37)
    a, b = samples(dtype, shape, 1), samples(dtype, shape, 2)
    rows = [row for row in EXPANDS if dtype in row[2]]
    statements = ["v = pl.load(y, [0, 3], [5, 1])", "w = pl.load(y, [2, 0], [1, 37])"]
    for k, (name, _, _) in enumerate(rows):
        statements += [f"pl.store(pl.row_expand_{name}(a, v), [{2 * k}, 0, 0], z)",
                       f"pl.store(pl.col_expand_{name}(a, w), [{2 * k + 1}, 0, 0], z)"]
    statements += [f"pl.store(pl.row_expand(a, v), [{2 * len(rows)}, 0, 0], z)"]
    statements += [f"pl.store(pl.col_expand(a, w), [{2 * len(rows) + 1}, 0, 0], z)"]
    out = run(statements, a, b, dtype, (2 * len(rows) + 2, *shape))
    v, w = b[:, 3:4], b[2:3]
    with np.errstate(all="ignore"):
        for k, (name, oracle, _) in enumerate(rows):
            for got, vector in [(out[2 * k], v), (out[2 * k + 1], w)]:
                expected = once(oracle(wide(a), wide(vector)), dtype)
                np.testing.assert_array_equal(got, expected, err_msg=name)
    np.testing.assert_array_equal(out[-2], np.broadcast_to(v, shape))
    np.testing.assert_array_equal(out[-1], np.broadcast_to(w, shape))


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax(dtype):
    """Rows with a run-time number of columns: what the padding holds does not matter."""
    a = once(np.random.default_rng(3).standard_normal((4, 70)).astype(np.float32) * 3, dtype)
    out = moved(
        [
            "t = pl.load(x, [0, 0], [4, 70], valid_shape=[4, 51])",
            "e = pl.row_expand_expdif(t, pl.row_max(t))",
            "pl.store(pl.row_expand_div(e, pl.row_sum(e)), [0, 0], z)",
        ],
        a, dtype=dtype,
    )
    e = np.exp(wide(a[:, :51]) - wide(a[:, :51]).max(1, keepdims=True))
    tolerance = {"FP32": 1e-6, "FP16": 1e-3, "BF16": 1e-2}[dtype]
    np.testing.assert_allclose(out[:, :51], e / e.sum(1, keepdims=True), atol=tolerance)
    assert not out[:, 51:].any()


# ---- casts ----


def saturated(x, dtype):
    info = np.iinfo(NUMPY[dtype])
    x = np.where(np.isnan(x), 0, x)
    inside = np.clip(x, float(info.min), float(info.max) * (1 - 2**-53))
    return np.where(x >= float(info.max), info.max, inside.astype(NUMPY[dtype]))


ROUNDING = {
    "rint": np.rint,
    "none": np.rint,
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "odd": lambda x: np.where(x - np.floor(x) == 0.5, np.floor(x / 2) * 2 + 1, np.rint(x)),
}


@pytest.mark.parametrize("to", INTS + ["FP16", "BF16", "BOOL"])
def test_cast_from_fp32(to):
    a = samples("FP32", (6, 64), 11)
    a[0, :12] = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 127.5, 300, -300, 3e9, -3e9, 1e20]
    modes = list(ROUNDING) if to in INTS else ["rint"]
    statements = [f"pl.store(pl.cast(a, pl.{to}, mode='{mode}'), [{k}, 0, 0], z)"
                  for k, mode in enumerate(modes)]
    out = run(statements, a, a, "FP32", (len(modes), *a.shape), to)
    with np.errstate(all="ignore"):
        for got, mode in zip(out, modes):
            expected = (saturated(ROUNDING[mode](a.astype(np.float64)), to) if to in INTS
                        else a != 0 if to == "BOOL" else once(a, to))
            np.testing.assert_array_equal(got, expected, err_msg=mode)


@pytest.mark.parametrize("to", ["FP16", "BF16"])
def test_directed_casts(to):
    a = samples("FP32", (6, 64), 12)
    a[0, :4] = [70000, -70000, 1e-9, -1e-9]
    out = run([f"pl.store(pl.cast(a, pl.{to}, '{mode}'), [{k}, 0, 0], z)"
               for k, mode in enumerate(["floor", "ceil", "trunc"])], a, a, "FP32", (3, 6, 64), to)
    near = once(a, to).astype(np.float32)
    finite = np.isfinite(a)
    down, up, cut = (x.astype(np.float32)[finite] for x in out)
    a, near = a[finite], near[finite]
    assert (down <= a).all() and (up >= a).all()
    assert ((near == down) | (near == up)).all()
    np.testing.assert_array_equal(cut, np.where(a < 0, up, down))


@pytest.mark.parametrize("source", INTS + ["FP16", "BF16", "BOOL"])
def test_cast_to(source):
    if source == "BOOL":
        a = np.random.default_rng(1).random((3, 20)) < 0.5
    else:
        a = samples(source, (3, 20), 13)
    others = [d for d in ["INT8", "UINT16", "INT64", "FP32"] if d != source]
    for to in others if source not in FLOATS else ["FP32", "INT32"]:
        got = run([f"pl.store(pl.cast(a, pl.{to}), [0, 0], z)"], a, a, source, out_dtype=to)
        with np.errstate(all="ignore"):
            if source in FLOATS and to == "INT32":
                expected = saturated(ROUNDING["round"](a.astype(np.float64)), to)
            else:
                expected = a.astype(NUMPY[to])
            np.testing.assert_array_equal(got, expected, err_msg=to)


def nearest_float(n, digits, limit):
    """The float of so many binary digits nearest to an integer, ties to even: without floats."""
    size = abs(int(n))
    shift = max(size.bit_length() - digits, 0)
    whole, rest = divmod(size, 1 << shift)
    half = (1 << shift) >> 1
    whole += rest > half or (shift > 0 and rest == half and whole % 2 == 1)
    value = np.inf if whole << shift >= limit else float(whole << shift)
    return -value if n < 0 else value


@pytest.mark.parametrize("source", ["INT32", "INT64", "UINT32", "UINT64"])
def test_wide_integers_are_rounded_once(source):
    """To 16 bits, too: not to FP32 first, where a number just above a tie becomes the tie."""
    info = np.iinfo(NUMPY[source])
    numbers = [0, 1, 255, 257, 65519, 65520, 2**24 + 1, info.max, info.min]
    for k in range(9, info.bits - 1):
        tie = (1 << k) + (1 << (k - 8))
        numbers += [tie - 1, tie, tie + 1, tie + (1 << (k - 7)), -tie, -tie - 1, (1 << k) + (1 << max(k - 11, 0)) + 1]
    a = np.array([[n for n in numbers if info.min <= n <= info.max]], NUMPY[source])
    for to, digits, limit in [("BF16", 8, 2**128), ("FP16", 11, 65536), ("FP32", 24, 2**128)]:
        out = run([f"pl.store(pl.cast(a, pl.{to}), [0, 0], z)"], a, a, source, out_dtype=to)
        expected = [[nearest_float(n, digits, limit) for n in a[0]]]
        np.testing.assert_array_equal(out.astype(np.float64), expected, err_msg=to)


# ---- shapes and products ----


def test_reshape():
    a = ramp((4, 6))
    out = moved(["t = pl.reshape(a, [3, 8])", "pl.store(t, [0, 0], z)"], a, out_shape=(3, 8))
    np.testing.assert_array_equal(out, a.reshape(3, 8))
    out = moved(["t = pl.load(x, [0, 0], [4, 6], valid_shape=[3, 6])",
                 "s = pl.reshape(pl.row_sum(t), [1, 4])", "pl.store(s, [0, 0], z)"], a,
                out_shape=(1, 4))
    np.testing.assert_array_equal(out, [[*a[:3].sum(1), 0]])


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16", "INT8"])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (5, 9, 70), (16, 32, 64), (3, 130, 129)])
def test_matmul(dtype, m, k, n):
    rng = np.random.default_rng(m + n)
    kind = np.int32 if dtype == "INT8" else np.float32
    a = rng.integers(-9, 9, (m, k)).astype(NUMPY[dtype])
    b = rng.integers(-9, 9, (k, n)).astype(NUMPY[dtype])
    x = np.zeros((max(m, k), max(k, n)), NUMPY[dtype])
    y = x.copy()
    x[:m, :k], y[:k, :n] = a, b
    v = max(1, k - 2)
    out = run(
        [
            f"a = pl.load(x, [0, 0], [{m}, {k}], target_memory=pl.MemorySpace.Mat)",
            f"b = pl.load(y, [0, 0], [{k}, {n}], target_memory=pl.MemorySpace.Mat)",
            "a = pl.move(a, target_memory=pl.MemorySpace.Left)",
            "c = pl.matmul(a, pl.move(b, target_memory=pl.MemorySpace.Right))",
            "pl.store(c, [0, 0, 0], z)",
            "c = pl.matmul_acc(c, a, b)",
            "pl.store(c, [1, 0, 0], z)",
            f"t = pl.load(x, [0, 0], [{m}, {k}], valid_shape=[{m}, {v}])",
            "d = pl.matmul(t, b)",
            "pl.store(d, [2, 0, 0], z)",
            "for i in pl.range(2):",
            "    c = pl.matmul_acc(c, a, b, init_cond=(i == 0))",
            "pl.store(c, [3, 0, 0], z)",
        ],
        x, y, dtype, (4, m, n), "INT32" if dtype == "INT8" else "FP32",
    )
    c = a.astype(kind) @ b.astype(kind)
    d = a[:, :v].astype(kind) @ b[:v].astype(kind)
    np.testing.assert_array_equal(out, [c, 2 * c, d, 2 * c])


@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
def test_accumulators_are_rounded_once(dtype):
    """What a product adds up in FP32 may go into a 16-bit tensor as it is."""
    rng = np.random.default_rng(4)
    a = once(rng.standard_normal((9, 9)).astype(np.float32), dtype)
    out = run(
        [
            "c = pl.matmul(a, b)",
            "pl.store(c, [0, 0, 0], z)",
            "d = pl.create_tile([9, 9], pl.FP32, target_memory=pl.Mem.Acc)",
            "for i in pl.range(2):",
            "    d = pl.matmul_acc(d, a, b, init_cond=(i == 0))",
            "pl.store(d, [1, 0, 0], z)",
            "z = pl.assemble(z, c, [2, 0, 0])",
        ],
        a, a, dtype, (3, 9, 9),
    )
    c = np.zeros((9, 9), np.float32)
    for k in range(9):
        c += wide(a[:, k : k + 1]) * wide(a[k : k + 1])
    twice_c = c.copy()
    for k in range(9):
        twice_c += wide(a[:, k : k + 1]) * wide(a[k : k + 1])
    np.testing.assert_array_equal(out, [once(c, dtype), once(twice_c, dtype), once(c, dtype)])


REFUSED_TILES = [
    ("FP32", "pl.matmul(a, b)", "cannot multiply"),
    ("INT32", "pl.matmul(a, b)", "cannot multiply"),
    ("FP32", "pl.cast(a, pl.FP32)", "the tile is fp32 already"),
    ("FP32", "pl.cast(a, pl.INT8, 'up')", "mode must be"),
    ("FP32", "pl.row_expand_add(a, b)", "axis 1 of the second must be 1"),
    ("INT32", "pl.row_expand_expdif(a, pl.row_sum(a))", "needs floating-point elements"),
    ("FP32", "pl.reshape(a, [4, 5])", "has 16 elements, the shape asks for 20"),
    ("FP32", "pl.create_tile([0, 4], pl.FP32)", "must be positive"),
    ("FP32", "pl.tile.full([2, 8], pl.INT8, 300)", "does not fit"),
    ("BOOL", "pl.store(a, [0, 0], z, atomic=pl.AtomicType.Add)", "does not add up bool"),
    ("FP32", "pl.store(a, [0, 0], z, [3, 5])", "shapes must have an entry per dimension"),
    ("FP32", "pl.store(a, [0, 0], z, [16])", "shapes must have an entry per dimension"),
    ("FP32", "pl.store(pl.slice(a, [2, 2], [0, 0], valid_shape=[1, 1]), [0, 0], z, [1, 4])",
     "has no other shape"),
    ("FP32", "pl.store(pl.cast(a, pl.FP16), [0, 0], z)", "does not go into"),
    ("FP16", "pl.store(pl.cast(a, pl.FP32), [0, 0], z)", "does not go into"),
]


@pytest.mark.parametrize("dtype, expression, words", REFUSED_TILES, ids=lambda value: value)
def test_refused_tiles(dtype, expression, words):
    test_refused(dtype, expression, words)


# ---- slices ----


def test_slices_of_tensors_are_views():
    """What is read later is what was written meanwhile."""
    a = ramp((6, 10))
    out = moved(
        [
            "n = pl.cast(pl.read(x, [0, 0]), pl.INDEX)",  # 1
            "v = pl.slice(z, [2, 4], [n, 3])",
            "w = pl.slice(z, [1, 5], [n + 3, 0], drop_dims=[0], pad_value=pl.PadValue.min)",
            "pl.store(pl.load(x, [0, 0], [2, 4]), [0, 0], v)",
            "pl.store(pl.load(v, [1, 1], [1, 2]), [5, 0], z)",
            "pl.store(pl.reshape(pl.load(x, [0, 0], [1, 5]), [5]), [0], w)",
            "pl.write(v, [0, 0], 99)",
        ],
        a,
    )
    expected = np.zeros_like(a)
    expected[1:3, 3:7] = a[:2, :4]
    expected[5, :2] = a[1, 1:3]
    expected[4, :5] = a[0, :5]
    expected[1, 3] = 99
    np.testing.assert_array_equal(out, expected)


def test_empty_views():
    """An extent may turn out to be 0."""
    out = moved(
        [
            "n = pl.cast(pl.read(x, [0, 0]), pl.INDEX) - 1",
            "v = pl.slice(x, [n, 4], [0, 0])",
            "w = pl.slice(z, [n, 4], [2, 0])",
            "pl.assemble(w, v, [0, 0])",
            "t = pl.load(v, [0, 0], [2, 4], valid_shape=[n, 4])",
            "pl.store(t, [0, 0], z)",
            "for i in pl.range(2):",
            "    u = pl.load(v, [i, 0], [1, 4], clamp=True)",
            "    pl.store(u, [i, 0], z)",
        ],
        ramp(),
    )
    assert not out.any()


def test_slice_and_assemble_tiles():
    a = ramp((6, 10))
    out = moved(
        [
            "n = pl.cast(pl.read(x, [0, 0]), pl.INDEX)",
            "s = pl.slice(a, [2, 3], [n + 1, 4])",
            "t = pl.create_tile([6, 10], pl.FP32)",
            "t = pl.assemble(t, s, [n, n])",
            "t = pl.assemble(t, pl.reshape(s, [6]), [5, 0])",
            "pl.store(t, [0, 0, 0], z)",
            "r = pl.load(x, [0, 0], [6, 10], valid_shape=[3, 5])",
            "pl.store(pl.slice(r, [4, 4], [n, 3]), [1, 0, 0], z)",
            "pl.store(pl.slice(a, [4, 4], [0, 0], valid_shape=[n, 2]), [2, 0, 0], z)",
            "d = pl.slice(pl.reshape(a, [1, 6, 10]), [1, 1, 3], [0, n, 6], drop_dims=[0, 1])",
            "pl.store(pl.add(d, pl.slice(a, [1, 3], [0, 0])), [2, 3, 5], z)",
        ],
        a, out_shape=(3, 6, 10),
    )
    expected = np.zeros((3, 6, 10), np.float32)
    expected[0, 1:3, 1:4] = a[2:4, 4:7]
    expected[0, 5, :6] = a[2:4, 4:7].ravel()
    expected[1, :2, :2] = a[1:3, 3:5]
    expected[2, :1, :2] = a[:1, :2]
    expected[2, 3:4, 5:8] = a[1:2, 6:9] + a[:1, :3]  # two axes are left: [1, 3]
    np.testing.assert_array_equal(out, expected)


def test_assemble_into_tensors():
    a = ramp((4, 6))
    out = moved(
        [
            "t = pl.load(x, [0, 0], [4, 6], valid_shape=[2, 3])",
            "z = pl.assemble(z, t, [0, 1, 1])",
            "z = pl.assemble(z, x, [1, 0, 0])",
            "z = pl.assemble(z, pl.slice(x, [2, 2], [1, 1]), [2, 2, 4])",
            "f = pl.reshape(x, [24])",
            "pl.store(pl.load(f, [8], [4]), [2, 0, 0], z)",
        ],
        a, out_shape=(3, 4, 6),
    )
    expected = np.zeros((3, 4, 6), np.float32)
    expected[0, 1:3, 1:4] = a[:2, :3]
    expected[1] = a
    expected[2, 2:4, 4:6] = a[1:3, 1:3]
    expected[2, 0, :4] = a.ravel()[8:12]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", ["FP32", "INT8", "BF16", "INT64"])
@pytest.mark.parametrize("shape", [(1, 4, 6), (3, 1, 6), (3, 4, 1), (3, 4, 6), (1, 1, 1)])
def test_expand_clone(shape, dtype):
    """Of a tensor, and of a tile; the target is a view with gaps, and what lies beside it stays."""
    a = samples(dtype, shape, 5)
    out = moved(
        [
            "v = pl.slice(z, [3, 4, 6], [0, 1, 1])",
            "pl.expand_clone(x, v)",
            "w = pl.tensor.expand_clone(src=a, target=z[3:6, 1:5, 1:7])",
            "pl.store(pl.load(w, [2, 0, 0], [1, 1, 6]), [5, 5, 1], z)",
        ],
        a, dtype=dtype, out_shape=(6, 6, 8),
    )
    expected = np.zeros((6, 6, 8), a.dtype)
    expected[:3, 1:5, 1:7] = expected[3:, 1:5, 1:7] = np.broadcast_to(a, (3, 4, 6))
    expected[5, 5, 1:7] = expected[5, 1, 1:7]
    np.testing.assert_array_equal(out, expected)


def test_expand_clone_at_run_time():
    ask = "n = pl.cast(pl.read(x, [0, 0]), pl.INDEX)"
    out = moved([ask, "pl.expand_clone(pl.slice(x, [n, 10], [2, 0]), pl.slice(z, [n + 2, 10], [1, 0]))",
                 "pl.expand_clone(pl.slice(x, [1, 10], [3, 0]), pl.slice(z, [n - 1, 10], [0, 0]))"], ramp())
    expected = np.zeros((6, 10), np.float32)
    expected[1:4] = ramp()[2]
    np.testing.assert_array_equal(out, expected)
    for statement, words in [
        ("pl.expand_clone(pl.slice(x, [2, 10], [0, 0]), z)", "does not fill"),
        ("pl.expand_clone(pl.slice(x, [n + 1, 10], [0, 0]), z)", "extents are equal or 1"),
        ("pl.expand_clone(pl.slice(x, [1, 10], [0, 0], valid_shape=[1, n]), z)", "src is valid in part only"),
        ("pl.expand_clone(x[0, :], z)", "does not fill"),
        ("pl.expand_clone(pl.cast(a, pl.FP16), z)", "of dtype fp16 does not fill one of dtype fp32"),
    ]:
        with pytest.raises(pypto.Error, match=words):
            moved([ask, statement], ramp())


def test_tensor_view():
    """The same memory under another shape; what is stored through it shows."""
    a = ramp((4, 6))
    out = moved(
        [
            "v = pl.tensor.view(x, [8, 3])",
            "w = pl.tensor.view(z, shape=[2, 12], layout=pl.TensorLayout.ND)",
            "pl.store(pl.reshape(pl.load(v, [0, 0], [8, 3]), [2, 12]), [0, 0], w)",
        ],
        a,
    )
    np.testing.assert_array_equal(out, a)
    for view, words in [
        ("pl.tensor.view(x, [5, 5])", "has 24 elements, the shape asks for 25"),
        ("pl.tensor.view(x, [6, 4], layout=pl.DN)", "a view has the layout ND"),
    ]:
        with pytest.raises(pypto.Error, match=words):
            moved([f"v = {view}", "pl.store(pl.load(v, [0, 0], [1, 1]), [0, 0], z)"], a)


def test_slices_out_of_range():
    ask = "n = pl.cast(pl.read(y, [0, 0]), pl.INDEX)"
    store = "pl.store(pl.load(v, [0, 0], [1, 1]), [0, 0], z)"
    keep = "pl.store(v, [0, 0], z)"
    for statement, then, words in [
        ("v = pl.slice(x, [2, 2], [5, 0])", store, "reaches past the end of dimension 0"),
        ("v = pl.slice(a, [2, 2], [0, 9])", keep, "reaches past the end of dimension 1"),
        ("v = pl.slice(x, [2, 2], [n + 4, 0])", store, "reaches from 5 to 6 in dimension 0"),
        ("v = pl.slice(a, [2, 2], [n + 4, 0])", keep, "a slice leaves the tile: dimension 0"),
        ("v = pl.assemble(a, pl.slice(a, [2, 2], [0, 0]), [5, 0])", keep, "past the end"),
        ("v = pl.assemble(a, pl.slice(a, [2, 2], [0, 0]), [0, n + 8])", keep, "leaves the tile"),
        ("v = pl.reshape(pl.slice(x, [2, 2], [0, 0]), [1, 4])", store, "it is a view with gaps"),
        ("v = pl.reshape(x, [7, 7])", store, "has 60 elements, the shape asks for 49"),
        ("v = pl.slice(x, [2, 2], [0, 0], drop_dims=[0])", store, "drop_dims names axes"),
        ("v = pl.slice(a, [2, 2], [0, 0], drop_dims=[1])", keep, "drop_dims names axes"),
        ("v = pl.slice(a, [1, 2], [0, 0], [1, 1], [0])", keep, "valid in part only"),
        ("v = pl.slice(a, [2, 2], [0, 0], pad_value=3)", keep, "there is no such pad_value"),
    ]:
        with pytest.raises(pypto.Error, match=words):
            moved([ask, statement, then], ramp())


# ---- limits ----


def large_program(elems):
    return program(
        ["c = pl.add(a, b)", "c = pl.mul(c, b)", "pl.store(c, [0], z)"], (elems,), "FP32", (elems,),
        "FP32",
    )


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim", "a5", "a5sim"])
def test_devices_have_a_limit(platform):
    host = large_program(40000)
    with pytest.raises(pypto.Error) as caught:
        host.compile(config=config(1, platform))
    text = str(caught.value)
    assert "need 320000 bytes at the same time" in text
    assert "offset" in text and "Tile[[40000], fp32]" in text and "<- beyond the limit" in text
    assert 'platform "cpu"' in text
    large_program(20000).compile(config=config(1, platform))


def test_the_cpu_has_none():
    elems = 5_000_000
    a = np.arange(elems, dtype=np.float32)
    out = np.zeros((1, elems), np.float32)
    large_program(elems)(a[None], a[None], out, config=config(1))
    np.testing.assert_array_equal(out[0], (a + a) * a)
