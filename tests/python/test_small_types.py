"""Element types for storage: FP8, FP4, INT4. Every code against tables made by the definition of each format,
every cast against the nearest value of such a table, and moves of packed elements."""

import numpy as np
import pytest

import pypto
from op_programs import INTS, NUMPY
from programs import config, from_text


def table(exponent_bits, fraction_bits, bias, special):
    """The value of each code, by the definition: sign, exponent, fraction."""
    values = []
    for code in range(1 << (1 + exponent_bits + fraction_bits)):
        sign = -1.0 if code >> (exponent_bits + fraction_bits) else 1.0
        exponent = (code >> fraction_bits) & ((1 << exponent_bits) - 1)
        fraction = code & ((1 << fraction_bits) - 1)
        if exponent == 0:
            size = fraction * 2.0 ** (1 - bias - fraction_bits)
        else:
            size = (1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - bias)
        values.append(sign * special(exponent, fraction, size))
    return np.array(values)


def ieee(exponent, fraction, size):
    return size if exponent < 31 else (np.inf if fraction == 0 else np.nan)


TABLES = {
    "FP8E4M3FN": table(4, 3, 7, lambda e, f, size: np.nan if (e, f) == (15, 7) else size),
    "FP8E5M2": table(5, 2, 15, ieee),
    "FP8E8M0": np.array([2.0 ** (code - 127) for code in range(255)] + [np.nan]),
    "FP4": table(2, 1, 1, lambda e, f, size: size),
    "INT4": np.array([*range(8), *range(-8, 0)], float),
    "UINT4": np.arange(16.0),
}
PACKED = ["FP4", "INT4", "UINT4"]
FP8 = ["FP8E4M3FN", "FP8E5M2"]


def pack(codes):
    return (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8)


def unpack(data):
    return np.stack([data & 15, data >> 4], -1).reshape(*data.shape[:-1], -1)


def host(statements, shape, dtype, out_shape, out_dtype):
    dims, out_dims = (", ".join(map(str, each)) for each in (shape, out_shape))
    at = ", ".join("0" * len(shape))
    lines = "\n".join(f"    {statement}" for statement in statements)
    return from_text(f"""\
@pl.jit.incore
def kernel(x: pl.Tensor[[{dims}], pl.{dtype}], z: pl.Out[pl.Tensor[[{out_dims}], pl.{out_dtype}]]):
    a = pl.load(x, [{at}], [{dims}])
{lines}

@pl.jit
def wrapper(x: pl.Tensor[[{dims}], pl.{dtype}], z: pl.Out[pl.Tensor[[{out_dims}], pl.{out_dtype}]]):
    kernel(x, z)

@pl.jit.host
def host(x: pl.Tensor[[{dims}], pl.{dtype}], z: pl.Out[pl.Tensor[[{out_dims}], pl.{out_dtype}]]):
    wrapper(x, z, device=0)
""")["host"]


def carried(dtype, shape):
    """Zeros for a tensor of that type and shape, and the shape as its carrier has it."""
    if dtype in PACKED:
        shape = (*shape[:-1], shape[-1] // 2)
    return np.zeros(shape, np.uint8 if dtype in TABLES else NUMPY[dtype])


def run(statements, data, shape, dtype, out_shape, out_dtype):
    out = carried(out_dtype, out_shape)
    host(statements, shape, dtype, out_shape, out_dtype)(data, out, config=config(1))
    return out


def codes_of(dtype):
    """All codes as a tensor of 2 rows, and its carrier."""
    codes = np.arange(len(TABLES[dtype]), dtype=np.uint8).reshape(2, -1)
    return codes, pack(codes) if dtype in PACKED else codes


@pytest.mark.parametrize("dtype", TABLES)
def test_values(dtype):
    codes, data = codes_of(dtype)
    out = run(["pl.store(pl.cast(a, pl.FP32), [0, 0], z)"], data, codes.shape, dtype, codes.shape, "FP32")
    np.testing.assert_array_equal(out, TABLES[dtype][codes])
    signs = np.signbit(TABLES[dtype][codes])
    np.testing.assert_array_equal(np.signbit(out[~np.isnan(out)]), signs[~np.isnan(out)])


@pytest.mark.parametrize("through", ["FP32", "FP16", "BF16"])
@pytest.mark.parametrize("dtype", TABLES)
def test_round_trip(dtype, through):
    """Each value comes back, NaN as the one NaN of its sign."""
    codes, data = codes_of(dtype)
    if (dtype, through) == ("FP8E8M0", "FP16"):
        return  # 2^-127 to 2^127 do not fit FP16
    out = run([f"pl.store(pl.cast(pl.cast(a, pl.{through}), pl.{dtype}), [0, 0], z)"], data, codes.shape,
              dtype, codes.shape, dtype)
    back = unpack(out) if dtype in PACKED else out
    nan = np.isnan(TABLES[dtype][codes])
    np.testing.assert_array_equal(back[~nan], codes[~nan])
    assert np.isnan(TABLES[dtype][back][nan]).all()


def inputs():
    rng = np.random.default_rng(7)
    x = rng.standard_normal(4096) * 10.0 ** rng.uniform(-6, 6, 4096)
    for values in (TABLES[name] for name in ("FP8E4M3FN", "FP8E5M2", "FP4")):
        finite = np.unique(np.abs(values[np.isfinite(values)]))
        middles = (finite[1:] + finite[:-1]) / 2
        near = [finite, middles, np.nextafter(middles.astype(np.float32), np.float32(np.inf)),
                np.nextafter(middles.astype(np.float32), np.float32(0)), [464, 480, 61440, 65536]]
        x = np.concatenate([x, *near])
    x = np.concatenate([x, -x, [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38]]).astype(np.float32)
    return x[: len(x) // 2 * 2].reshape(1, -1)


def expected_code(x, dtype, mode):
    """The code for one number, found by comparing with all values of the format."""
    values = TABLES[dtype]
    if np.isnan(x):
        return 7 if dtype == "FP4" else None  # None: any NaN
    half = len(values) // 2
    ladder = [v for v in values[:half] if np.isfinite(v)]  # ascending, by code
    size, sign = abs(float(x)), int(np.signbit(x))
    below = max(code for code, v in enumerate(ladder) if v <= size)
    exact = ladder[below] == size
    limit = 2 * ladder[-1] - ladder[-2]  # where the next value would be
    above_value = ladder[below + 1] if below + 1 < len(ladder) else limit
    inward = mode in ("trunc", "odd") or (mode == "floor" and not sign) or (mode == "ceil" and sign)
    if exact:
        code = below
    elif mode == "odd":
        code = below | 1
    elif mode in ("floor", "ceil", "trunc"):
        code = below if inward else below + 1
    else:
        middle = (ladder[below] + above_value) / 2
        code = below + (size > middle or (size == middle and below % 2 == 1))
    if np.isinf(x) and dtype != "FP4":
        code = len(ladder)
    if code >= len(ladder):
        if dtype == "FP4":
            code = len(ladder) - 1
        elif np.isfinite(x) and inward:
            code = len(ladder) - 1
        else:
            code = len(ladder)  # infinity of E5M2, NaN of E4M3FN
    return code + sign * half


MODES = ["rint", "round", "none", "floor", "ceil", "trunc", "odd"]


@pytest.mark.parametrize("dtype", [*FP8, "FP4"])
def test_casts_from_fp32(dtype):
    x = inputs()
    shape = x.shape
    statements = [f"pl.store(pl.cast(a, pl.{dtype}, '{mode}'), [{k}, 0], z)"
                  for k, mode in enumerate(MODES)]
    out = run(statements, x, shape, "FP32", (len(MODES), shape[1]), dtype)
    out = unpack(out) if dtype in PACKED else out
    for got, mode in zip(out, MODES):
        expected = [expected_code(v, dtype, mode) for v in x[0]]
        free = np.array([code is None for code in expected])
        assert np.isnan(TABLES[dtype][got[free]]).all()
        wanted = np.array([0 if code is None else code for code in expected])
        np.testing.assert_array_equal(np.where(free, 0, got), wanted, err_msg=mode)


def test_scales():
    """E8M0: the nearest power of two, ties upwards; the sign is lost."""
    x = np.array([[1, 1.49, 1.5, 2, 3, -4, 0, 1e-45, 2.0**-127, 2.0**-126, 3e38, np.inf, np.nan,
                   0.7, 0.75, 5.9]], np.float32)
    out = run(["pl.store(pl.cast(a, pl.FP8E8M0), [0, 0], z)",
               "pl.store(pl.cast(a, pl.FP8E8M0, 'floor'), [1, 0], z)",
               "pl.store(pl.cast(a, pl.FP8E8M0, 'ceil'), [2, 0], z)"], x, x.shape, "FP32", (3, 16),
              "FP8E8M0")
    near = [127, 127, 128, 128, 129, 129, 0, 0, 0, 1, 255, 255, 255, 126, 127, 129]
    down = [127, 127, 127, 128, 128, 129, 0, 0, 0, 1, 254, 255, 255, 126, 126, 129]
    up = [127, 128, 128, 128, 129, 129, 0, 1, 1, 1, 255, 255, 255, 127, 127, 130]
    np.testing.assert_array_equal(out, [near, down, up])


@pytest.mark.parametrize("dtype", ["INT4", "UINT4"])
def test_casts_to_int4(dtype):
    low, high = (-8, 7) if dtype == "INT4" else (0, 15)
    x = np.concatenate([np.arange(-20, 20, 0.25), [np.nan, np.inf, -np.inf, 1e9]]).astype(np.float32)
    x = x[None]
    out = run([f"pl.store(pl.cast(a, pl.{dtype}, 'rint'), [0, 0], z)",
               f"pl.store(pl.cast(a, pl.{dtype}), [1, 0], z)"], x, x.shape, "FP32", (2, x.size), dtype)
    clean = np.nan_to_num(x[0].astype(float), nan=0, posinf=99, neginf=-99)
    for got, rounded in zip(unpack(out), [np.rint(clean), np.trunc(clean + np.copysign(0.5, clean))]):
        np.testing.assert_array_equal(TABLES[dtype][got], np.clip(rounded, low, high))
    n = np.arange(-128, 128, dtype=np.int8)[None]
    out = run([f"pl.store(pl.cast(a, pl.{dtype}), [0, 0], z)"], n, n.shape, "INT8", n.shape, dtype)
    np.testing.assert_array_equal(unpack(out), n & 15)  # integers wrap


@pytest.mark.parametrize("dtype", TABLES)
@pytest.mark.parametrize("to", ["INT8", "INT32", "UINT16", "INT64", "BOOL"])
def test_casts_to_integers(dtype, to):
    codes, data = codes_of(dtype)
    values = TABLES[dtype][codes]
    out = run([f"pl.store(pl.cast(a, pl.{to}), [0, 0], z)"], data, codes.shape, dtype, codes.shape, to)
    if to == "BOOL":
        expected = values != 0
    elif dtype in ("INT4", "UINT4"):
        expected = values.astype(np.int64).astype(NUMPY[to])
    else:
        info = np.iinfo(NUMPY[to])
        near = np.nan_to_num(np.trunc(values + np.copysign(0.5, values)), nan=0, posinf=1e30, neginf=-1e30)
        expected = np.array([min(max(int(v), info.min), info.max) for v in near.flat],
                            NUMPY[to]).reshape(codes.shape)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("source", ["INT32", "UINT8", "FP8E4M3FN", "INT4", "FP4"])
@pytest.mark.parametrize("to", ["FP8E5M2", "FP4", "UINT4"])
def test_casts_among_themselves(source, to):
    """What is exact in both stays, also from a packed to a packed type."""
    if source == to:
        return  # refused: see below
    values = np.array([[0, 1, 2, 3, 4, 6, 0, 1]])
    if source in TABLES:
        index = [[int(np.flatnonzero(TABLES[source] == v)[0]) for v in values[0]]]
        data = np.array(index, np.uint8)
        data = pack(data) if source in PACKED else data
    else:
        data = values.astype(NUMPY[source])
    out = run([f"pl.store(pl.cast(a, pl.{to}), [0, 0], z)"], data, values.shape, source, values.shape, to)
    back = unpack(out) if to in PACKED else out
    np.testing.assert_array_equal(TABLES[to][back], values)


# ---- moves ----


@pytest.mark.parametrize("dtype", TABLES)
def test_moves(dtype):
    """Loads and stores of parts, moves, reshapes, copies between tensors; packed in pairs."""
    codes = np.random.default_rng(1).integers(0, 16, (4, 12), np.uint8)
    data = pack(codes) if dtype in PACKED else codes
    out = run(
        [
            "n = 2",
            "pl.store(a, [0, 0, 0], z)",
            "t = pl.load(x, [1, 4], [2, 6])",
            "pl.store(t, [1, 1, 2], z)",
            "pl.store(pl.move(t, pl.Mem.Mat), [2, n - 2, n * 2], z)",
            "pl.store(pl.reshape(a, [1, 4, 12]), [3, 0, 0], z)",
            "u = pl.load(x, [0, 0], [4, 12], valid_shape=[n, 8])",
            "pl.store(u, [4, 0, 0], z)",
            "z = pl.assemble(z, x, [5, 0, 0])",
            "v = pl.slice(x, [2, 4], [n, 6])",
            "z = pl.assemble(z, v, [6, 0, 0])",
            "pl.store(pl.load(pl.reshape(x, [48]), [10], [8]), [6, 3, 2], z)",
            "pl.store(pl.load(x[1:3, 2:8], [0, 0], [2, 6]), [7, 0, 0], z)",
        ],
        data, codes.shape, dtype, (8, 4, 12), dtype,
    )
    got = unpack(out) if dtype in PACKED else out
    expected = np.zeros((8, 4, 12), np.uint8)
    expected[0] = expected[3] = expected[5] = codes
    expected[1, 1:3, 2:8] = codes[1:3, 4:10]
    expected[2, 0:2, 4:10] = codes[1:3, 4:10]
    expected[4, :2, :8] = codes[:2, :8]
    expected[6, :2, :4] = codes[2:4, 6:10]
    expected[6, 3, 2:10] = codes.ravel()[10:18]
    expected[7, :2, :6] = codes[1:3, 2:8]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["FP8E5M2", "FP4"])
def test_windows(dtype):
    """Each rank takes the values of its neighbour; a buffer of elements of 4 bits has half the bytes."""
    codes = np.random.default_rng(2).integers(0, 16, (3, 4, 8), np.uint8)
    data = pack(codes) if dtype in PACKED else codes
    bytes_ = 16 if dtype in PACKED else 32
    program = from_text(f"""\
NR = pl.dynamic("NR")

@pl.jit.incore
def kernel(x: pl.Tensor[[4, 8], pl.{dtype}], z: pl.Out[pl.Tensor[[4, 8], pl.{dtype}]],
           w: pl.InOut[pld.DistributedTensor[[4, 8], pl.{dtype}]],
           s: pl.InOut[pld.DistributedTensor[[1], pl.INT32]]):
    ctx = pld.get_comm_ctx(w)
    peer = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], w)
    for k in pl.range(pld.nranks(ctx)):
        pld.system.notify(s, k, [0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(s, [0], pld.nranks(ctx), cmp=pld.WaitCmp.Ge)
    pl.store(pld.tile.remote_load(w, peer, [0, 2], [4, 6]), [0, 0], z)
    pl.store(pld.tile.remote_load(w, peer, [0, 0], [4, 2]), [0, 6], z)

@pl.jit
def wrapper(x: pl.Tensor[[4, 8], pl.{dtype}], z: pl.Out[pl.Tensor[[4, 8], pl.{dtype}]],
            w: pl.InOut[pld.DistributedTensor[[4, 8], pl.{dtype}]],
            s: pl.InOut[pld.DistributedTensor[[1], pl.INT32]]):
    kernel(x, z, w, s)

@pl.jit.host
def host(x: pl.Tensor[[NR, 4, 8], pl.{dtype}], z: pl.Out[pl.Tensor[[NR, 4, 8], pl.{dtype}]]):
    buffer = pld.alloc_window_buffer({bytes_})
    other = pld.alloc_window_buffer([1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        wrapper(x[r], z[r], pld.window(buffer, [4, 8], dtype=pl.{dtype}),
                pld.window(other, [1], dtype=pl.INT32), device=r)
""")["host"]
    out = np.zeros_like(data)
    program(data, out, config=config(3))
    got = unpack(out) if dtype in PACKED else out
    np.testing.assert_array_equal(got, np.roll(np.roll(codes, -1, 0), -2, 2))


# ---- what is refused ----

REFUSED = [
    ("FP8E4M3FN", "t = pl.add(a, a)", "does not accept fp8e4m3fn tiles"),
    ("FP8E5M2", "t = pl.exp(a)", "needs floating-point elements, not fp8e5m2"),
    ("FP8E5M2", "t = pl.row_sum(a)", "does not accept fp8e5m2 tiles"),
    ("FP8E5M2", "t = pl.cmp(a, a)", "does not accept fp8e5m2 tiles"),
    ("FP8E5M2", "t = pl.matmul(a, a)", "cannot multiply|takes FP32"),
    ("FP8E5M2", "t = pl.fillpad(a)", "does not accept fp8e5m2 tiles"),
    ("FP4", "t = pl.add(a, a)", "does not accept fp4 tiles"),
    ("INT4", "t = pl.and_(a, a)", "does not accept int4 tiles"),
    ("UINT4", "t = pl.slice(a, [2, 2], [0, 0])", "does not accept uint4 tiles"),
    ("FP4", "t = pl.transpose(a, 0, 1)", "does not accept fp4 tiles"),
    ("FP4", "t = pl.cast(a, pl.FP4)", "the tile is fp4 already"),
    ("FP8E4M3FN", "t = a; v = pl.read(x, [0, 0])", "there are no scalars of fp8e4m3fn"),
    ("FP8E4M3FN", "t = a; pl.write(z, [0, 0], 1.0)", "there are no scalars of fp8e4m3fn"),
    ("FP8E4M3FN", "t = a; v = pl.const(1.0, pl.FP8E4M3FN)", "there are no scalars of fp8e4m3fn"),
    ("FP8E4M3FN", "t = a; v = pl.cast(1.0, pl.FP8E4M3FN)", "there are no scalars of fp8e4m3fn"),
    ("FP8E4M3FN", "t = pl.tile.full([2, 8], pl.FP8E4M3FN, 1.0)", "does not go with elements of fp8e4m3fn"),
    ("FP8E4M3FN", "t = pl.store(a, [0, 0], z, atomic=pl.AtomicType.Add); t = a", "does not add up"),
    ("FP4", "t = pl.load(x, [0, 0], [2, 3])", "must be a constant, even number"),
    ("FP4", "t = pl.load(x, [0, 1], [2, 2])", "offset 1 of dimension 1 of fp4 must be even"),
    ("FP4", "t = pl.load(x[0:2, 0:3], [0, 0], [2, 2])", "must be a constant, even number"),
    ("FP4", "t = pl.load(x[0:2, 4], [0], [2])", "the last dimension cannot be left out"),
    ("FP4", "t = pl.create_tile([2, 3], pl.INT4)", "must be a constant, even number"),
    ("FP4", "t = pl.reshape(a, [16, 1])", "must be a constant, even number"),
]


@pytest.mark.parametrize("dtype, statement, words", REFUSED, ids=lambda value: value)
def test_refused(dtype, statement, words):
    statements = [*statement.split("; "), "pl.store(t, [0, 0], z)"]
    with pytest.raises(pypto.Error, match=words):
        host(statements, (2, 8), dtype, (2, 8), dtype).compile(config=config(1))


@pytest.mark.parametrize("annotation, words", [
    ("pl.Tensor[[2, 7], pl.FP4]", "the last dimension of fp4 must be a constant, even number"),
    ("pl.Scalar[pl.FP8E5M2]", "there are no scalars of fp8e5m2"),
    ("pl.INT4", "there are no scalars of int4"),
])
def test_refused_annotations(annotation, words):
    text = f"@pl.jit.host\ndef host(x: {annotation}):\n    n = pld.world_size()\n"
    with pytest.raises(pypto.Error, match=words):
        from_text(text)["host"].compile(config=config(1))


def test_refused_at_run_time():
    codes = np.zeros((2, 12), np.uint8)
    for statement in ["t = pl.load(x, [0, i], [2, 4])", "t = pl.load(x, [0, 0], [2, 4], [2, i])"]:
        program = host(["for i in pl.range(1, 2):", f"    {statement}", "    pl.store(t, [0, 0], z)"],
                       (2, 12), "FP4", (2, 12), "FP4")
        with pytest.raises(pypto.Error, match="in the middle of a byte"):
            program(pack(codes), pack(codes), config=config(1))


def test_carriers():
    """Elements of 4 bits come as half as many bytes, and in no other way."""
    program = host(["pl.store(a, [0, 0], z)"], (2, 8), "FP4", (2, 8), "FP4")
    for bad in [np.zeros((2, 8), np.uint8), np.zeros((2, 4), np.int8), np.zeros((2, 8), np.float32),
                np.zeros((2, 8), np.uint8)[:, ::2]]:
        with pytest.raises(pypto.Error, match="argument 'x'"):
            program(bad, np.zeros((2, 4), np.uint8), config=config(1))


def test_strided_carriers():
    """A part of a larger tensor is packed on its way and unpacked back."""
    large = np.random.default_rng(3).integers(0, 256, (2, 5, 6), np.uint8)
    view = large[:, 1:3, 1:5][0]
    out = np.zeros((2, 8), np.uint8)
    host(["pl.store(a, [0, 0], z)"], (2, 8), "INT4", (2, 8), "INT4")(view, out[:, 2:6], config=config(1))
    np.testing.assert_array_equal(out[:, 2:6], view)
    assert not out[:, :2].any() and not out[:, 6:].any()
