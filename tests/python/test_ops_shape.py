"""Operations that compare tiles, choose between them, find extremes, and move elements, against NumPy."""

import numpy as np
import pytest

import pypto
from op_programs import ALL, FLOATS, INTS, NUMPY, moved, once, program, ramp, run, samples, wide
from programs import config

# ---- comparisons and choices ----

COMPARE = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]
WORDS = ["eq", "ne", "lt", "le", "gt", "ge"]


def mask(bits):
    """The packed predicate, with a multiple of 32 bytes per row."""
    packed = np.packbits(bits, axis=-1, bitorder="little")
    return np.pad(packed, [(0, 0)] * (bits.ndim - 1) + [(0, -packed.shape[-1] % 32)])


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", [(3, 37), (2, 2, 261)])
def test_masks(dtype, shape):
    a, b = samples(dtype, shape, 1), samples(dtype, shape, 2)
    b = np.where(np.arange(shape[-1]) % 3 == 0, a, b)  # equal ones, too
    at = ", 0" * len(shape)
    statements = []
    for code in range(6):
        statements += [f"pl.store(pl.cmp(a, b, {code}), [{3 * code}{at}], z)",
                       f"pl.store(pl.cmp(a, 3, cmp_type='{WORDS[code]}'), [{3 * code + 1}{at}], z)",
                       f"pl.store(pl.cmps(a, 3, {code}), [{3 * code + 2}{at}], z)"]
    bytes_ = (shape[-1] + 255) // 256 * 32
    out = run(statements, a, b, dtype, (18, *shape[:-1], bytes_), "UINT8")
    three = NUMPY[dtype].type(3)
    for code, compare in enumerate(COMPARE):
        np.testing.assert_array_equal(out[3 * code], mask(compare(a, b)), err_msg=WORDS[code])
        np.testing.assert_array_equal(out[3 * code + 1], mask(compare(a, three)))
        np.testing.assert_array_equal(out[3 * code + 2], mask(compare(a, three)))


@pytest.mark.parametrize("dtype", ALL)
def test_select(dtype):
    shape = (5, 70)
    a, b = samples(dtype, shape, 3), samples(dtype, shape, 4)
    out = run(
        [
            "m = pl.cmp(a, b, 2)",
            "pl.store(pl.sel(m, a, b, m), [0, 0, 0], z)",
            "pl.store(pl.sels(m, b, m, 7), [1, 0, 0], z)",
            "w = pl.reinterpret_view(m, pl.INT32)",
            "pl.store(pl.sel(w, b, a), [2, 0, 0], z)",
            "h = pl.reinterpret_view(m, pl.UINT16)",
            "a = pl.sel(h, a, b)",  # in place
            "pl.store(a, [3, 0, 0], z)",
        ],
        a, b, dtype, (4, *shape),
    )
    less = a < b
    expected = [np.where(less, a, b), np.where(less, b, a.dtype.type(7)), np.where(less, b, a),
                np.where(less, a, b)]
    np.testing.assert_array_equal(out, expected)


def test_a_mask_is_no_place_for_the_result():
    """Mask and result have the same type and shape: the one must not be computed over the other."""
    a = np.random.default_rng(5).integers(0, 255, (4, 32), np.uint8)
    out = run(["m = pl.cmps(a, 100, 2)", "m = pl.sels(m, a, a, 9)", "pl.store(m, [0, 0], z)"],
              a, a, "UINT8")
    np.testing.assert_array_equal(out, np.where(a < 100, a, 9))


def test_ragged_masks():
    """Bits behind the valid columns are 0; the choice is valid where what it chooses from is."""
    a = ramp((4, 20))
    out = moved(
        [
            "n = pl.cast(pl.read(x, [0, 0]), pl.INDEX)",  # 1
            "t = pl.load(x, [0, 0], [4, 20], valid_shape=[n + 1, 11])",
            "m = pl.cmps(t, 0.0, 4)",
            "pl.store(pl.sel(m, t, a), [0, 32], z)",
            "pl.store(pl.sel(m, a, a), [0, 52], z)",
            "for i in pl.range(4):",
            "    for j in pl.range(32):",
            "        pl.write(z, [i, j], pl.cast(pl.read(m, [i, j]), pl.FP32))",
        ],
        a, out_shape=(4, 72),
    )
    expected = np.zeros((4, 72), np.float32)
    expected[:2, :2] = [255, 7]
    expected[:2, 32:43] = a[:2, :11]
    expected[:, 52:] = a
    np.testing.assert_array_equal(out, expected)


# ---- places of extremes ----


@pytest.mark.parametrize("dtype", ALL)
def test_places_of_extremes(dtype):
    shape = (5, 150)
    a = samples(dtype, shape, 7)
    if dtype in FLOATS:
        a = once(np.nan_to_num(a), dtype).astype(a.dtype)
    a[1], a[2, 60:90] = a[1, 0], a[2, 3]  # ties
    names = ["argmax", "argmin"]
    rows = [f"pl.store(pl.row_{n}(a, b), [{k}, 0, 0], z)" for k, n in enumerate(names)]
    rows += ["t = pl.load(x, [0, 0], [5, 150], valid_shape=[3, 70])"]
    rows += [f"pl.store(pl.row_{n}(t), [{k + 2}, 0, 0], z)" for k, n in enumerate(names)]
    got = run(rows, a, a, dtype, (4, 5, 1), "INT32")
    columns = [f"pl.store(pl.col_{n}(a, b), [{k}, 0, 0], z)" for k, n in enumerate(names)]
    columns += ["t = pl.load(x, [0, 0], [5, 150], valid_shape=[3, 70])"]
    columns += [f"pl.store(pl.col_{n}(t), [{k + 2}, 0, 0], z)" for k, n in enumerate(names)]
    across = run(columns, a, a, dtype, (4, 1, 150), "INT32")
    for k, function in enumerate([np.argmax, np.argmin]):
        np.testing.assert_array_equal(got[k], function(a, 1, keepdims=True))
        np.testing.assert_array_equal(got[k + 2, :3], function(a[:3, :70], 1, keepdims=True))
        np.testing.assert_array_equal(across[k], function(a, 0, keepdims=True))
        np.testing.assert_array_equal(across[k + 2, :, :70], function(a[:3, :70], 0, keepdims=True))
    assert not got[2:, 3:].any() and not across[2:, :, 70:].any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_is_no_extreme(dtype):
    """It never replaces another element; one that stands first stays (rule N-8)."""
    a = np.array([[1, np.nan, 3], [np.nan, 2, 5], [np.nan] * 3, [-np.inf, np.nan, np.inf]],
                 NUMPY[dtype])
    out = run(["pl.store(pl.row_argmax(a), [0, 0, 0], z)",
               "pl.store(pl.row_argmin(a), [1, 0, 0], z)"], a, a, dtype, (2, 4, 1), "INT32")
    np.testing.assert_array_equal(out[..., 0], [[2, 0, 0, 2], [0, 0, 0, 0]])
    out = run(["pl.store(pl.col_argmax(a), [0, 0], z)"], a, a, dtype, (1, 3), "INT32")
    np.testing.assert_array_equal(out, [[0, 0, 3]])


# ---- moved elements ----


@pytest.mark.parametrize("dtype", ALL + ["BOOL"])
def test_transpose(dtype):
    shape = (2, 3, 5, 7)
    a = samples(dtype, shape, 9) if dtype != "BOOL" else np.random.default_rng(2).random(shape) < 0.5
    for axes in [(0, 1), (-1, 2), (3, 0), (1, -1)]:
        expected = np.swapaxes(a, *axes)
        out = run([f"pl.store(pl.transpose(a, {axes[0]}, {axes[1]}), [0, 0, 0, 0], z)"], a, a, dtype,
                  expected.shape)
        np.testing.assert_array_equal(out, expected)


def test_transposed_extents():
    """pl.transpose gives a tile that is valid as a whole, transpose_view swaps the extents."""
    a = ramp((4, 6))
    out = moved(
        [
            "t = pl.load(x, [0, 0], [4, 6], valid_shape=[2, 5])",
            "pl.store(pl.add(pl.transpose(t, 0, 1), 1), [0, 0, 0], z)",
            "pl.store(pl.add(pl.tile.transpose_view(t), 1), [1, 0, 0], z)",
        ],
        a, out_shape=(2, 6, 4),
    )
    part = np.zeros((6, 4), np.float32)
    part[:5, :2] = a[:2, :5].T
    inside = np.zeros((6, 4), np.float32)
    inside[:5, :2] = 1
    np.testing.assert_array_equal(out, [part + 1, part + inside])


@pytest.mark.parametrize("dtype", ALL + ["BOOL"])
def test_concat(dtype):
    a = samples(dtype, (3, 8), 9) if dtype != "BOOL" else np.eye(3, 8, dtype=bool)
    out = run(
        [
            "b = pl.load(y, [0, 0], [3, 5])",
            "pl.store(pl.concat(a, b), [0, 0, 0], z)",
            "t = pl.load(x, [0, 0], [3, 8], valid_shape=[2, 4])",
            "pl.store(pl.concat(t, b), [1, 0, 0], z)",
        ],
        a, a, dtype, (2, 3, 13),
    )
    np.testing.assert_array_equal(out[0], np.concatenate([a, a[:, :5]], 1))
    np.testing.assert_array_equal(out[1, :2, :9], np.concatenate([a[:2, :4], a[:2, :5]], 1))
    assert not out[1, 2:].any() and not out[1, :, 9:].any()


PARTS = {"part_add": np.add, "part_mul": np.multiply, "part_max": np.maximum, "part_min": np.minimum}


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", PARTS)
def test_parts(name, dtype):
    """Combined where both are valid, the first where only that is; full ones, tensors, and four axes as well."""
    a, b = samples(dtype, (2, 3, 20), 1), samples(dtype, (2, 3, 20), 2)
    with np.errstate(all="ignore"):
        full = once(PARTS[name](wide(a), wide(b)), dtype)
    boxes = [((2, 2, 17), (1, 3, 9)), ((1, 1, 5), (2, 3, 20)), ((2, 3, 20), (2, 0, 4)), ((0, 3, 20), (2, 3, 20))]
    statements = [f"pl.store(pl.{name}(a, b), [0, 0, 0, 0], z)",
                  f"pl.store(pl.tensor.{name}(x, y), [1, 0, 0, 0], z)"]
    expected = [full, full]
    for k, (first, second) in enumerate(boxes):
        statements += [f"s = pl.load(x, [0, 0, 0], [2, 3, 20], valid_shape={list(first)})",
                       f"t = pl.load(y, [0, 0, 0], [2, 3, 20], valid_shape={list(second)})",
                       f"r = pl.tile.{name}(s, src1=t)",
                       f"pl.store(pl.fillpad(r, pl.PadValue.zero), [{k + 2}, 0, 0, 0], z)"]
        inside = [np.indices(a.shape) < np.array(box)[:, None, None, None] for box in (first, second)]
        inside = [each.all(0) for each in inside]
        expected += [np.where(inside[0] & inside[1], full, np.where(inside[0], a, 0)).astype(a.dtype)]
    out = run(statements, a, b, dtype, (len(expected), *a.shape))
    np.testing.assert_array_equal(out, expected)


PADS = {"pl.PadValue.zero": 0, "pl.PadValue.max": 1, "pl.PadValue.min": -1, "0": 0, "0.0": 0,
        "float('inf')": 1, "float('-inf')": -1}


@pytest.mark.parametrize("dtype", ALL)
def test_padding(dtype):
    a = samples(dtype, (3, 5, 7), 10)
    statements = ["t = pl.load(x, [0, 0, 0], [3, 5, 7], valid_shape=[2, 5, 4])"]
    for k, pad in enumerate(["pl.PadValue.zero", "pl.PadValue.max", "pl.PadValue.min", "0", "0.0"]):
        statements += [f"pl.store(pl.fillpad(t, {pad}), [{3 * k}, 0, 0, 0], z)",
                       f"pl.store(pl.tile.fillpad_inplace(t, {pad}), [{3 * k + 1}, 0, 0, 0], z)",
                       f"u = pl.fillpad_expand(t, [4, 6, 9], pad_value={pad})",
                       f"pl.store(u, [{3 * k + 2}, 0, 0, 0], z)"]
    out = run(statements, a, a, dtype, (15, 4, 6, 9))
    kind = NUMPY[dtype]
    for k, sign in enumerate([0, 1, -1, 0, 0]):
        pad = 0
        if sign != 0:
            pad = sign * np.inf if dtype in FLOATS else (
                np.iinfo(kind).max if sign > 0 else np.iinfo(kind).min)
        expected = np.full((4, 6, 9), pad, kind)
        expected[:2, :5, :4] = a[:2, :5, :4]
        np.testing.assert_array_equal(out[3 * k][:3, :5, :7], expected[:3, :5, :7])
        np.testing.assert_array_equal(out[3 * k + 1][:3, :5, :7], expected[:3, :5, :7])
        np.testing.assert_array_equal(out[3 * k + 2], expected)


def test_padded_maximum():
    """The recipe of the language: -inf before a maximum of rows, all of them negative."""
    a = -ramp((3, 8))
    out = moved(["t = pl.load(x, [0, 0], [3, 8], valid_shape=[3, 5])",
                 "t = pl.fillpad(t, pl.PadValue.min)", "pl.store(pl.row_max(t), [0, 0], z)"],
                a, out_shape=(3, 1))
    np.testing.assert_array_equal(out, a[:, :5].max(1, keepdims=True))


def test_set_validshape():
    a = ramp((4, 6))
    out = moved(
        [
            "n = pl.cast(pl.read(x, [0, 0]), pl.INDEX)",  # 1
            "t = pl.set_validshape(a, n + 1, 5)",
            "pl.store(t, [0, 0, 0], z)",
            "pl.store(pl.row_sum(t), [1, 0, 0], z)",
            "t = pl.set_validshape(t, 4, n)",
            "pl.store(t, [2, 0, 0], z)",
            "pl.store(a, [3, 0, 0], z)",
        ],
        a, out_shape=(4, 4, 6),
    )
    expected = np.zeros((4, 4, 6), np.float32)
    expected[0, :2, :5] = a[:2, :5]
    expected[1, :2, :1] = a[:2, :5].sum(1, keepdims=True)
    expected[2, :, :1] = a[:, :1]
    expected[3] = a
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("upper", [False, True])
def test_triangles(dtype, upper):
    statements = ["n = pl.read(y, [0, 0])"]
    for k, diagonal in enumerate([-9, -1, 0, 2, 9]):
        statements += [f"t = pl.tri({diagonal}, [5, 8], dtype=pl.{dtype}, upper={upper})",
                       f"pl.store(t, [{k}, 0, 0], z)"]
    statements += [f"t = pl.tri(1, [5, 8], [3, 4], pl.{dtype}, {upper})", "pl.store(t, [5, 0, 0], z)"]
    a = np.zeros((5, 8), NUMPY[dtype])
    out = run(statements, a, a, dtype, (6, 5, 8))
    i, j = np.arange(5)[:, None], np.arange(8)
    for k, d in enumerate([-9, -1, 0, 2, 9]):
        np.testing.assert_array_equal(out[k], j >= i + d if upper else j <= i + d)
    box = (j >= i + 1 if upper else j <= i + 1) & (i < 3) & (j < 4)
    np.testing.assert_array_equal(out[5], box)


@pytest.mark.parametrize("dtype", ["INT16", "INT32", "UINT16", "UINT32"])
def test_counting(dtype):
    kind = NUMPY[dtype]
    a = np.full((1, 9), np.iinfo(kind).max - 3, kind)
    out = run(
        [
            f"pl.store(pl.tile.ci(5, [1, 9], pl.{dtype}), [0, 0], z)",
            f"pl.store(pl.tile.ci(pl.read(x, [0, 0]), [1, 9], pl.{dtype}), [1, 0], z)",
            f"pl.store(pl.tile.ci(3, [1, 9], dtype=pl.{dtype}, descending=True), [2, 0], z)",
            f"pl.store(pl.arange(start=2, shape=[1, 9], dtype=pl.{dtype}), [3, 0], z)",
            f"pl.store(pl.tensor.ci(8, [1, 9], pl.{dtype}, True), [4, 0], z)",
        ],
        a, a, dtype, (5, 9),
    )
    n = np.arange(9)
    exact = [5 + n, int(np.iinfo(kind).max) - 3 + n, 3 - n, 2 + n, 8 - n]
    np.testing.assert_array_equal(out, np.array(exact, np.int64).astype(kind))


PAIRS = [("FP32", "INT32"), ("FP32", "INT16"), ("INT8", "UINT64"), ("UINT16", "FP16"),
         ("BF16", "INT16"), ("INT64", "FP32")]


@pytest.mark.parametrize("source, target", PAIRS)
def test_reinterpret(source, target):
    bits = np.random.default_rng(8).integers(0, 255, (4, 16), np.uint8)
    if source == "BF16" or target == "BF16":
        a = ramp((4, 8))
        out = run([f"pl.store(pl.reinterpret_view(a, pl.{target}), [0, 0], z)"], a, a, source,
                  (4, 8), target)
        np.testing.assert_array_equal(out, (a.view(np.uint32) >> 16).astype(np.int16))
        return
    a = bits.view(NUMPY[source])
    expected = bits.view(NUMPY[target])
    out = run([f"t = pl.reinterpret_view(a, pl.{target})", "pl.store(t, [0, 0], z)"], a, a, source,
              expected.shape, target)
    np.testing.assert_array_equal(out.view(np.uint8), bits)
    flat = [1, expected.size]
    out = run([f"t = pl.reinterpret_view(a, pl.{target}, shape={flat})", "pl.store(t, [0, 0], z)"],
              a, a, source, tuple(flat), target)
    np.testing.assert_array_equal(out.view(np.uint8).ravel(), bits.ravel())


# ---- between scalars ----


def test_scalars():
    """pl.add and its kind between scalars do what the operators do."""
    a = np.array([[7, -2]], np.float32)
    out = moved(
        [
            "p = pl.read(x, [0, 0])",
            "q = pl.read(x, [0, 1])",
            "pl.write(z, [0, 0], pl.add(p, q))",
            "pl.write(z, [0, 1], pl.sub(p, rhs=q))",
            "pl.write(z, [0, 2], pl.mul(p, 3))",
            "pl.write(z, [0, 3], pl.div(p, q))",
            "n = pl.mul(2, pl.add(1, 1))",
            "pl.write(z, [0, n], pl.sub(9, 4) * 1.0)",
        ],
        a, out_shape=(1, 5),
    )
    np.testing.assert_array_equal(out, [[5, 9, 21, -3.5, 5]])


# ---- what is refused ----

REFUSED = [
    ("FP32", "pl.cmp(a, b, 6)", "cmp_type must be"),
    ("FP32", "pl.cmp(a, b, 'less')", "cmp_type must be"),
    ("FP32", "pl.cmps(a, b)", "rhs must be a scalar"),
    ("FP32", "pl.sel(a, a, b)", "a mask has integer elements of 8, 16 or 32 bits"),
    ("INT64", "pl.sel(a, a, b)", "a mask has integer elements of 8, 16 or 32 bits"),
    ("UINT8", "pl.sel(pl.create_tile([1, 32], pl.UINT8), a, b)", "too few bits"),
    ("INT32", "pl.sels(pl.cmp(a, b), a, a, 1.5)", "requires same numeric dtype category"),
    ("FP32", "pl.sel(pl.cmp(a, b), a, pl.cast(b, pl.FP16))", "same element type"),
    ("FP32", "pl.transpose(a, 1, -1)", "no such two axes"),
    ("FP32", "pl.transpose(a, 0, 2)", "no such two axes"),
    ("FP32", "pl.concat(a, pl.cast(a, pl.FP16))", "fp32 and fp16"),
    ("FP32", "pl.concat(a, pl.reshape(b, [4, 4]))", "cannot join"),
    ("FP32", "pl.set_validshape(a, 3, 8)", "valid_rows must be from 0 to the tile's 2"),
    ("FP32", "pl.set_validshape(a, 0, -1)", "valid_cols must be from 0"),
    ("FP32", "pl.set_validshape(pl.reshape(a, [16]), 1, 1)", "needs a tile of rank 2"),
    ("FP32", "pl.fillpad(a, pl.PadValue.null)", "there is no such pad_value"),
    ("FP32", "pl.fillpad(a, 1.5)", "there is no such pad_value"),
    ("FP32", "pl.fillpad(a, True)", "there is no such pad_value"),
    ("FP32", "pl.fillpad_expand(a, [1, 8])", "less than the tile's"),
    ("FP32", "pl.reinterpret_view(a, pl.FP32)", "cannot be seen as"),
    ("FP32", "pl.reinterpret_view(a, pl.FP16, shape=[3, 5])", "do not fill"),
    ("INT8", "pl.reinterpret_view(pl.reshape(a, [1, 16]), pl.INT32, shape=[1, 3])", "do not fill"),
    ("FP32", "pl.tile.ci(1, [2, 8])", "all axes but the last must be 1"),
    ("FP32", "pl.tile.ci(1, [1, 8], pl.FP32)", "counts in INT16"),
    ("FP32", "pl.tri(0, [8])", "needs a shape of rank 2"),
    ("FP32", "pl.tri(0, [2, 8], [3, 8])", "valid_shape has two entries"),
    ("FP32", "pl.tri(0, [2, 8], dtype=pl.BOOL)", "does not make tiles of bool"),
    ("INT32", "pl.sin(a)", "needs floating-point elements"),
    ("BOOL", "pl.row_argmax(a)", "does not accept bool tiles"),
    ("BOOL", "pl.cmp(a, b)", "does not accept bool tiles"),
    ("FP32", "pl.add(1.5, a)", "rhs must be a scalar, not a Tile"),
    ("FP32", "pl.add(True, 1)", None),
]


@pytest.mark.parametrize("dtype, expression, words", REFUSED, ids=lambda value: value)
def test_refused(dtype, expression, words):
    statements = [f"t = {expression}", "pl.store(t, [0, 0], z)"]
    host = program(statements, (2, 8), dtype, (2, 8), dtype)
    with pytest.raises(pypto.Error, match=words):
        host.compile(config=config(1))


def test_extents_known_at_run_time_only():
    ask = "n = pl.cast(pl.read(y, [0, 0]), pl.INDEX)"  # 1
    for statement, words in [
        ("t = pl.set_validshape(a, n + 6, 1)", "valid extent 7 of dimension 0 is outside the tile"),
        ("t = pl.set_validshape(a, 1, n - 2)", "valid extent -1 of dimension 1 is outside the tile"),
        ("t = pl.tri(0, [6, 10], [n, n + 10], dtype=pl.FP32)", "valid extent 11 of dimension 1"),
    ]:
        with pytest.raises(pypto.Error, match=words):
            moved([ask, statement, "pl.store(t, [0, 0], z)"], ramp())
