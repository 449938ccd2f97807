"""The numeric rules of the language, one after the other: flags of the compiler, rounding, NaN, infinities,
subnormal numbers, overflow, sums, products. Each test is named after its rule and compares a small program with
NumPy, bit for bit where the rule allows one result only. What an operation does on ordinary numbers is in
test_ops.py."""

import numpy as np
import pytest
import torch

import pypto
from op_programs import (
    ALL, FLOATS, INTS, NUMPY, SIGNED, distance, lanes_sum, moved, once, run, to_torch, wide
)
from programs import config, from_text


def stored(*expressions, ndim=2):
    """Statements that store each expression into a plane of z."""
    at = ", 0" * ndim
    return [f"pl.store({expression}, [{k}{at}], z)" for k, expression in enumerate(expressions)]


def evaluated(expressions, a, b=None, dtype="FP32", out_dtype=None):
    """What each expression over the tiles a and b gives."""
    b = a if b is None else b
    return run(stored(*expressions, ndim=a.ndim), a, b, dtype, (len(expressions), *a.shape), out_dtype)


def same(got, expected):
    """Bit for bit, but for the payload of NaNs and their sign."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    nan = expected != expected
    np.testing.assert_array_equal(got != got, nan)
    np.testing.assert_array_equal(np.where(nan, 0, got), np.where(nan, 0, expected))
    np.testing.assert_array_equal(np.signbit(got[~nan]), np.signbit(expected[~nan]))


def every_float(count):
    """FP32 numbers of every exponent and sign, infinities and NaNs: bit patterns in even steps."""
    step = 2**32 // count | 1
    return (np.arange(count, dtype=np.uint64) * step % 2**32).astype(np.uint32).view(np.float32)


def test_n1_the_compiler_may_not_assume_ordinary_numbers():
    """What -ffast-math would simplify: x - x, x * 0, x / x, x == x, x + 0, and other orders of a sum."""
    a = np.array([[np.inf, np.nan, -np.inf, -0.0, 0.0, 1e-40, 1e30, 3.0]], np.float32)
    b = np.array([[np.inf, 1.0, 1e38, 0.0, -0.0, 1.0, -1e30, 1e8]], np.float32)
    expressions = ["pl.sub(a, a)", "pl.mul(a, 0.0)", "pl.div(a, a)", "pl.tensor.cmp(a, a)", "pl.add(a, 0.0)",
                   "pl.sub(pl.add(a, b), b)", "pl.neg(pl.neg(a))", "pl.div(a, 3.0)"]
    with np.errstate(all="ignore"):
        expected = [a - a, a * np.float32(0), a / a, (a == a).astype(np.float32), a + np.float32(0), (a + b) - b,
                    a, a / np.float32(3)]
    same(evaluated(expressions, a, b), expected)


def test_n2_a_product_is_rounded_before_it_is_added():
    """In tiles and in numbers; a fused multiply-add would give another result for most of these."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((1, 64)).astype(np.float32) for _ in range(2))
    statements = stored("pl.add(pl.mul(a, b), a)", "pl.sub(a, pl.mul(b, b))")
    statements += ["for i in pl.range(64):",
                   "    p = pl.read(x, [0, i])",
                   "    q = pl.read(y, [0, i])",
                   "    pl.write(z, [2, 0, i], p * q + p)"]
    out = run(statements, a, b, "FP32", (3, 1, 64))
    same(out, [a * b + a, a - b * b, a * b + a])
    fused = (a.astype(np.float64) * b + a).astype(np.float32)
    assert (fused != out[0]).any()


@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
def test_n3_sixteen_bits_are_rounded_after_each_operation(dtype):
    rng = np.random.default_rng(2)
    a, b = (once(rng.standard_normal((2, 64)).astype(np.float32), dtype) for _ in range(2))
    statements = stored("pl.sub(pl.mul(a, b), a)", "pl.add(pl.div(a, b), b)", "pl.addc(a, b, a)")
    statements += ["for i in pl.range(2):",
                   "    for j in pl.range(64):",
                   "        pl.write(z, [3, i, j], pl.read(x, [i, j]) * pl.read(y, [i, j]) - pl.read(x, [i, j]))"]
    out = run(statements, a, b, dtype, (4, 2, 64))
    wa, wb = wide(a), wide(b)
    step = lambda x: wide(once(x, dtype))
    expected = [step(wa * wb) - wa, step(wa / wb) + wb, step(wa + wb) + wa, step(wa * wb) - wa]
    same(out, np.array([once(x, dtype) for x in expected]))
    assert (once(wa * wb - wa, dtype) != out[0]).any()


@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
def test_n4_sixteen_bit_functions_compute_in_fp32_and_round_once(dtype):
    """All 65,536 numbers, against the same function of FP32."""
    bits = np.arange(65536, dtype=np.uint16).reshape(16, 4096)
    a = bits.view(np.float16) if dtype == "FP16" else (bits.astype(np.uint32) << 16).view(np.float32)
    functions = ["exp", "log", "sin", "cos", "sqrt", "rsqrt", "recip"]
    narrow = evaluated([f"pl.{f}(a)" for f in functions], a, dtype=dtype)
    through = evaluated([f"pl.{f}(a)" for f in functions], wide(a).astype(np.float32))
    for f, got, exact in zip(functions, narrow, through, strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got, once(exact, dtype), err_msg=f)


def test_n5_functions_of_fp32():
    a = every_float(1 << 16)[None]
    functions = {"exp": np.exp, "log": np.log, "rsqrt": lambda x: 1 / np.sqrt(x)}
    exact = {"sqrt": np.sqrt, "recip": lambda x: np.float32(1) / x}
    results = evaluated([f"pl.{f}(a)" for f in [*functions, *exact]] + ["pl.div(a, b)"], a, a[:, ::-1].copy())
    with np.errstate(all="ignore"):
        for f, got in zip(functions, results):
            assert distance(got, functions[f](a.astype(np.float64)).astype(np.float32)) <= 2, f
        same(results[3:], [exact["sqrt"](a), exact["recip"](a), a / a[:, ::-1]])
    moderate = np.linspace(-3000, 3000, 1 << 16, dtype=np.float32)[None]
    for got, f in zip(evaluated(["pl.sin(a)", "pl.cos(a)"], moderate), [np.sin, np.cos]):
        np.testing.assert_allclose(got, f(moderate.astype(np.float64)), rtol=0, atol=1e-6)


@pytest.fixture
def flushing():
    """The caller's thread flushes denormals, as after a library with -ffast-math was loaded."""
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU cannot flush denormals")
    yield
    torch.set_flush_denormal(False)


@pytest.mark.parametrize("transport", ["shm", "threads"])
def test_n6_denormals_stay(flushing, monkeypatch, transport):
    """Also when the thread that calls flushes them; it does so afterwards as well."""
    monkeypatch.setenv("PYPTO_TRANSPORT", transport)
    text = """\
@pl.jit.incore
def kernel(x: pl.Tensor[[1, 4], pl.FP32], s: pl.Scalar[pl.FP32], z: pl.Out[pl.Tensor[[3, 1, 4], pl.FP32]]):
    a = pl.load(x, [0, 0], [1, 4])
    pl.store(pl.mul(a, 0.5), [0, 0, 0], z)
    pl.store(pl.exp(pl.add(pl.mul(a, 0.0), -100.0)), [1, 0, 0], z)
    pl.store(pl.expands(a, s), [2, 0, 0], z)

@pl.jit
def wrapper(x: pl.Tensor[[1, 4], pl.FP32], s: pl.Scalar[pl.FP32], z: pl.Out[pl.Tensor[[3, 1, 4], pl.FP32]]):
    kernel(x, s * 0.5, z)

@pl.jit.host
def host(x: pl.Tensor[[1, 4], pl.FP32], s: pl.Scalar[pl.FP32], z: pl.Out[pl.Tensor[[3, 1, 4], pl.FP32]]):
    wrapper(x, s * 0.5, z, device=0)
"""
    bits = np.array([[2, 0x00800000, 0x80000004, 0x00000100]], np.uint32)
    z = np.zeros((3, 1, 4), np.float32)
    from_text(text)["host"](bits.view(np.float32), 2.0**-126, z, config=config(1))
    assert z.view(np.uint32)[0].tolist() == [[1, 0x00400000, 0x80000002, 0x00000080]]
    assert z.view(np.uint32)[1].tolist() == [[27] * 4]  # e^-100 in units of 2^-149
    assert z.view(np.uint32)[2].tolist() == [[0x00200000] * 4]  # halved twice on the way
    small = torch.tensor([1e-40])
    assert float(small * 1) == 0.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_n7_a_nan_wins_in_minimum_and_maximum(dtype):
    nan = np.nan
    a = np.array([[1, nan, nan, 2, -np.inf], [nan, 1, 1, 1, 1], [1, 1, 1, 1, nan]], NUMPY[dtype])
    b = np.array([[nan, 1, nan, 3, np.inf], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], NUMPY[dtype])
    same(evaluated(["pl.maximum(a, b)", "pl.minimum(a, b)", "pl.maximum(a, 2.0)", "pl.relu(a)"], a, b, dtype),
         np.array([np.maximum(a, b), np.minimum(a, b), np.maximum(a, NUMPY[dtype].type(2)),
                   np.maximum(a, NUMPY[dtype].type(0))]))
    rows = run(stored("pl.row_max(a)", "pl.row_min(a)"), a, a, dtype, (2, 3, 1))
    same(rows, np.array([a.max(1, keepdims=True), a.min(1, keepdims=True)]))
    columns = run(stored("pl.col_max(a)", "pl.col_min(a)"), b, b, dtype, (2, 1, 5))
    same(columns, np.array([b.max(0, keepdims=True), b.min(0, keepdims=True)]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_n8_comparisons_with_a_nan(dtype):
    """All are false but `ne`, in tiles and in numbers; it is the place of an extreme only where it stands first."""
    codes = ["eq", "ne", "lt", "le", "gt", "ge"]
    python = ["==", "!=", "<", "<=", ">", ">="]
    compare = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]
    a = np.array([[np.nan, 1, np.nan, 1, 2, np.inf]], NUMPY[dtype])
    b = np.array([[1, np.nan, np.nan, 1, 1, np.inf]], NUMPY[dtype])
    statements = stored(*[f"pl.tensor.cmp(a, b, cmp_type='{code}')" for code in codes])
    for k, op in enumerate(python):
        statements += ["for i in pl.range(6):",
                       f"    if pl.read(x, [0, i]) {op} pl.read(y, [0, i]):",
                       f"        pl.write(z, [{6 + k}, 0, i], 1.0)"]
    out = run(statements, a, b, dtype, (12, 1, 6))
    same(out, np.array([f(a, b).astype(a.dtype) for f in compare] * 2))
    places = run(stored("pl.row_argmax(a)", "pl.row_argmin(b)", "pl.row_argmax(b)"), a, b, dtype, (3, 1, 1), "INT32")
    assert places.ravel().tolist() == [0, 0, 5]


@pytest.mark.parametrize("dtype", FLOATS)
def test_n9_infinities(dtype):
    a = once(np.array([[-np.inf, np.inf, 60000, -60000]], np.float32), dtype)
    got = evaluated(["pl.exp(a)", "pl.sub(a, a)", "pl.recip(a)", "pl.log(pl.abs(a))", "pl.mul(a, a)"], a, dtype=dtype)
    with np.errstate(all="ignore"):
        w = wide(a)
        expected = [np.exp(w), w - w, 1 / w, np.log(np.abs(w)), w * w]
        expected = np.array([once(x.astype(np.float32), dtype) for x in expected])
    np.testing.assert_array_equal(got[[0, 1, 2, 4]], expected[[0, 1, 2, 4]])
    np.testing.assert_allclose(got[3].astype(np.float64), expected[3].astype(np.float64), rtol=1e-7)
    # A row of a softmax that is masked as a whole.
    masked = np.full((1, 4), -np.inf, NUMPY[dtype])
    out = moved(["e = pl.row_expand_expdif(a, pl.row_max(a))",
                 "pl.store(pl.row_expand_div(e, pl.row_sum(e)), [0, 0], z)"], masked, dtype=dtype)
    assert np.isnan(out).all()


@pytest.mark.parametrize("dtype", INTS)
def test_n10_integers_wrap(dtype):
    """Sums, differences, products, shifts, sums along axes; tiles and numbers alike."""
    kind = NUMPY[dtype].type
    info = np.iinfo(kind)
    a = np.array([[info.max, info.min, info.max, info.max // 2 + 1]], kind)
    b = np.array([[1, info.max, info.max, 3]], kind)
    statements = stored("pl.add(a, b)", "pl.sub(b, a)", "pl.mul(a, b)", "pl.neg(a)", "pl.shls(a, 1)",
                        "pl.row_expand(a, pl.row_sum(a))")
    for k, op in enumerate("+-*"):
        statements += ["for i in pl.range(4):",
                       f"    pl.write(z, [{6 + k}, 0, i], pl.read(x, [0, i]) {op} pl.read(y, [0, i]))"]
    out = run(statements, a, b, dtype, (9, 1, 4))
    total = np.full_like(a, a.sum(dtype=kind))
    with np.errstate(over="ignore"):
        same(out, [a + b, b - a, a * b, -a, a << kind(1), total, a + b, a - b, a * b])


@pytest.mark.parametrize("dtype", SIGNED)
def test_n11_the_least_integer(dtype):
    info = np.iinfo(NUMPY[dtype])
    a = np.full((1, 2), info.min, NUMPY[dtype])
    b = np.array([[-1, 1]], NUMPY[dtype])
    statements = stored("pl.neg(a)", "pl.abs(a)", "pl.div(a, b)", "pl.fmod(a, b)", "pl.rem(a, b)")
    statements += ["for i in pl.range(2):",
                   "    p = pl.read(x, [0, i])",
                   "    q = pl.read(y, [0, i])",
                   "    pl.write(z, [5, 0, i], -p)",
                   "    pl.write(z, [6, 0, i], abs(p))",
                   "    pl.write(z, [7, 0, i], p // q)",
                   "    pl.write(z, [8, 0, i], p % q)"]
    out = run(statements, a, b, dtype, (9, 1, 2))
    zero = np.zeros_like(a)
    same(out, [a, a, a, zero, zero, a, a, a, zero])


@pytest.mark.parametrize("dtype", INTS)
def test_n12_integers_divided_by_zero(dtype):
    """0, and no trap; in numbers an error of the program is possible as well, so the divisor is hidden."""
    info = np.iinfo(NUMPY[dtype])
    a = np.array([[0, 1, info.max, info.min]], NUMPY[dtype])
    b = np.zeros_like(a)
    statements = stored("pl.div(a, b)", "pl.fmod(a, b)", "pl.rem(a, b)")
    statements += ["for i in pl.range(4):",
                   "    pl.write(z, [3, 0, i], pl.read(x, [0, i]) // pl.read(y, [0, i]))",
                   "    pl.write(z, [4, 0, i], pl.read(x, [0, i]) % pl.read(y, [0, i]))"]
    same(run(statements, a, b, dtype, (5, 1, 4)), np.zeros((5, 1, 4), a.dtype))


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 1000])
def test_n13_sums_have_one_order(columns):
    """64 lanes and a tree, whatever the vectors: equal bits in each run and on each device."""
    rng = np.random.default_rng(columns)
    a = (rng.standard_normal((3, columns)) * 10.0 ** rng.uniform(-6, 6, (3, columns))).astype(np.float32)
    first = run(stored("pl.row_sum(a)"), a, a, "FP32", (1, 3, 1))
    same(first[0], lanes_sum(a))
    same(run(stored("pl.row_sum(a)"), a, a, "FP32", (1, 3, 1)), first)


@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
def test_n14_sums_of_sixteen_bits_are_rounded_once(dtype):
    """Each addend alone is lost beside the first, all together are not."""
    a = np.full((200, 200), 2.0**-9 if dtype == "BF16" else 2.0**-12, NUMPY[dtype])
    a[0, :] = a[:, 0] = 1
    out = run(["pl.store(pl.row_sum(a), [0, 0], z)",
               "pl.store(pl.transpose(pl.col_sum(a), 0, 1), [0, 1], z)",
               "p = pl.add(pl.mul(a, 0.0), 1.0 + " + repr(2.0**-7 if dtype == "BF16" else 2.0**-10) + ")",
               "pl.store(pl.row_prod(p), [0, 2], z)",
               "pl.store(pl.transpose(pl.col_prod(p), 0, 1), [0, 3], z)"], a, a, dtype, (200, 4))
    exact = once(wide(a).astype(np.float64).sum(1).astype(np.float32), dtype)
    same(out[1:, 0], exact[1:])
    same(out[1:, 1], exact[1:])
    factor = 1 + (2.0**-7 if dtype == "BF16" else 2.0**-10)
    np.testing.assert_allclose(out[:, 2:].astype(np.float64), factor**200, rtol=2.0**-8 if dtype == "BF16" else 2.0**-11)


def test_n15_products_of_matrices():
    """FP32 of FP32 without shortcuts; INT32 of INT8, which wraps."""
    rng = np.random.default_rng(15)
    a, b = (rng.standard_normal((16, 16)).astype(np.float32) for _ in range(2))
    got = run(["pl.store(pl.matmul(a, b), [0, 0], z)"], a, b, "FP32", (16, 16))
    exact = a.astype(np.float64) @ b
    bound = np.abs(a).astype(np.float64) @ np.abs(b) * 16 * 2.0**-24
    assert (np.abs(got - exact) <= bound).all()
    brief = once(a, "BF16").astype(np.float64) @ once(b, "BF16")
    assert not (np.abs(brief - exact) <= bound).all()
    i = rng.integers(-128, 128, (16, 16)).astype(np.int8)
    out = run(["c = pl.matmul(a, b)", "c = pl.matmul_acc(pl.add(c, 2147483647), a, b)", "pl.store(c, [0, 0], z)"],
              i, i.T.copy(), "INT8", (16, 16), "INT32")
    product = i.astype(np.int32) @ i.T.astype(np.int32)
    with np.errstate(over="ignore"):
        same(out, product + np.int32(2147483647) + product)


@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
def test_n16_an_accumulator_is_rounded_once_where_it_is_stored(dtype):
    a = np.zeros((4, 4), NUMPY[dtype])
    a[0, :3] = [1, 2.0**-5, 2.0**-6]
    b = np.zeros((4, 4), NUMPY[dtype])
    tie = 2.0**-3 if dtype == "BF16" else 2.0**-6  # half a unit of 1, and a bit behind it
    b[:3, 0] = [1, tie, 2.0**-12]
    out = run(["pl.store(pl.matmul(a, b), [0, 0], z)"], a, b, dtype, (4, 4))
    total = np.float32(1 + tie * 2.0**-5 + 2.0**-18)
    assert out[0, 0] == once(np.array([total]), dtype)[0] > 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_n17_the_difference_is_rounded_before_the_exponential(dtype):
    rng = np.random.default_rng(17)
    a = once(rng.uniform(-8, 8, (4, 64)).astype(np.float32), dtype)
    v = a[:, :1]
    out = run(["v = pl.load(x, [0, 0], [4, 1])",
               "w = pl.load(x, [0, 0], [1, 64])",
               *stored("pl.row_expand_expdif(a, v)", "pl.exp(pl.row_expand_sub(a, v))",
                       "pl.col_expand_expdif(a, w)", "pl.exp(pl.col_expand_sub(a, w))")], a, a, dtype, (4, 4, 64))
    same(out[0], out[1])
    same(out[2], out[3])
    difference = wide(once(wide(a) - wide(v), dtype)).astype(np.float64)
    np.testing.assert_allclose(out[0].astype(np.float64), np.exp(difference),
                               rtol={"FP32": 2e-7, "FP16": 2.0**-11, "BF16": 2.0**-8}[dtype], atol=1e-7)


def test_n18_numbers_compute_in_their_own_type():
    """INT8 wraps at 8 bits; bounds and offsets have 64."""
    x = np.array([[100, 100]], np.int8)
    out = moved(["s = pl.read(x, [0, 0]) + pl.read(x, [0, 1])",
                 "pl.write(z, [0, 0], pl.cast(s, pl.INT64))",
                 "pl.write(z, [0, 1], pl.cast(pl.read(x, [0, 0]) * pl.read(x, [0, 1]), pl.INT64))",
                 "n = pl.cast(pl.read(x, [0, 0]), pl.INDEX) * 30000000000",  # beyond 32 bits
                 "for i in pl.range(n, n + 5, 2):",
                 "    pl.write(z, [0, 2 + (i - n) // 2], pl.cast(i, pl.INT64))"],
                x, dtype="INT8", out_shape=(1, 5), out_dtype="INT64")
    assert out.tolist() == [[-56, 16, 3 * 10**12, 3 * 10**12 + 2, 3 * 10**12 + 4]]


@pytest.mark.parametrize("dtype", ALL)
def test_n19_atomic_adds_of_many_tasks(dtype):
    """Eight blocks add to the same elements; what they add is exact in any order. Integers wrap."""
    kind = "INT8" if dtype == "UINT8" else dtype
    text = f"""\
@pl.jit.incore
def kernel(x: pl.Tensor[[1, 40], pl.{dtype}], z: pl.InOut[pl.Tensor[[1, 40], pl.{dtype}]]):
    for i in pl.range(10):
        pl.store(pl.load(x, [0, 0], [1, 40]), [0, 0], z, atomic=pl.AtomicType.Add)

@pl.jit
def entry(x: pl.Tensor[[1, 40], pl.{dtype}], z: pl.InOut[pl.Tensor[[1, 40], pl.{dtype}]]):
    with pl.spmd(8):
        kernel(x, z)
"""
    x = (np.arange(40) % 3).astype(NUMPY[dtype])[None]
    z = to_torch(np.full((1, 40), 3, NUMPY[dtype]), dtype)
    from_text(text)["entry"](to_torch(x, dtype), z, config=config(1))
    got = z.float().numpy() if dtype == "BF16" else z
    same(got, (3 + 80 * x.astype(np.int64)).astype(NUMPY[dtype]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_n20_literals_are_rounded_once(dtype):
    """Just above the middle between 1 and the next number: where FP32 lies on the way it is the middle."""
    digits = {"FP32": 24, "FP16": 11, "BF16": 8}[dtype]
    above = 1 + 2.0 ** (1 - digits)
    number = repr(1 + 2.0**-digits + 2.0**-50)
    a = np.ones((1, 4), NUMPY[dtype])
    got = evaluated([f"pl.mul(a, {number})", f"pl.tile.full([1, 4], pl.{dtype}, {number})",
                     f"pl.mul(a, pl.const({number}, pl.{dtype}))", f"pl.mul(a, {16777217 if dtype == 'FP32' else 2049})"],
                    a, dtype=dtype)
    assert (got[:3] == above).all()
    assert (got[3] == {"FP32": 16777216, "FP16": 2048, "BF16": 2048}[dtype]).all()


# ---- decisions on top of the rules ----


def test_d11_emitted_c_has_no_compiler_type_of_sixteen_bits():
    """Compilers differ in what they do with their own: emitted C converts by functions of pld_math.h."""
    for dtype in ["FP16", "BF16"]:
        host = from_text(f"""\
@pl.jit.incore
def kernel(x: pl.Tensor[[2, 8], pl.{dtype}], z: pl.Out[pl.Tensor[[2, 8], pl.{dtype}]]):
    a = pl.load(x, [0, 0], [2, 8])
    pl.store(pl.mul(pl.exp(a), pl.read(x, [0, 0])), [0, 0], z)

@pl.jit
def entry(x: pl.Tensor[[2, 8], pl.{dtype}], z: pl.Out[pl.Tensor[[2, 8], pl.{dtype}]]):
    kernel(x, z)
""")["entry"]
        emitted = (host.compile(config=config(1)).output_dir / "program.c").read_text()
        assert "_Float16" not in emitted and "__bf16" not in emitted
        assert f"pld_float_to_{dtype.lower()}" in emitted


# What rules say of operations that are still to come. When one arrives, its row becomes a test above.
LATER = [
    ("N-2, N-15", "pl.gemv(a, b)", "accumulates as pl.matmul does: the only place of fused multiply-adds"),
    ("N-15", "pl.batch_matmul(a, b)", "pl.matmul for each leading index"),
    ("N-15", "pl.matmul_mx(a, b, a, b)", "products of scaled blocks, accumulated in FP32"),
    ("N-15, N-16", "pl.matmul_bias(a, b, a)", "the bias is added to the FP32 total, before the rounding"),
    ("N-8", "pl.sort32(a, b)", "where a NaN goes"),
]


@pytest.mark.parametrize("rule, call, reason", LATER, ids=[row[1] for row in LATER])
def test_rules_of_later_operations(rule, call, reason):
    a = np.zeros((4, 4), np.float32)
    print(f"{rule}: {call} is not in this version: {reason}")
    with pytest.raises(pypto.Error, match="is not supported yet"):
        run([f"pl.store({call}, [0, 0], z)"], a, a, "FP32", (4, 4))
