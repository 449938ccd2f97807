"""What the tests of operations share: element types and how NumPy and torch see them, operands with special
values, and a program around some statements. Kernels get their operands a and b through `pl.load`, so
every test also crosses a load and a store."""

import numpy as np
import torch

from programs import config, from_text

SIGNED = ["INT8", "INT16", "INT32", "INT64"]
UNSIGNED = ["UINT8", "UINT16", "UINT32", "UINT64"]
INTS = SIGNED + UNSIGNED
FLOATS = ["FP32", "FP16", "BF16"]
ALL = INTS + FLOATS

# BF16 has no NumPy type: its arrays are FP32 with rounded values, packed into uint16 at the border.
NUMPY = {name: np.dtype(name.lower()) for name in INTS}
NUMPY |= {"BOOL": np.dtype(bool), "FP32": np.dtype("f4"), "FP16": np.dtype("f2"), "BF16": np.dtype("f4")}

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


# The shape of `ramp`.
M, N = 6, 10


def moved(statements, a, b=None, dtype="FP32", out_shape=None, out_dtype=None):
    return run(statements, a, a if b is None else b, dtype, out_shape, out_dtype)


def ramp(shape=(M, N), dtype=np.float32):
    return np.arange(1, 1 + np.prod(shape), dtype=dtype).reshape(shape)


# ---- oracles ----


def distance(got, expected):
    """Units in the last place between FP32 arrays that are NaN in the same places."""
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(got), nan)
    order = [np.where(nan, 0, x).astype(np.float32).view(np.int32).astype(np.int64)
             for x in (got, expected)]
    order = [np.where(x < 0, -(x & 0x7FFFFFFF), x) for x in order]
    return np.max(np.abs(order[0] - order[1]), initial=0)


def lanes_sum(x):
    """The sum of each row in FP32, in the documented order."""
    rows = x.reshape(-1, x.shape[-1]).astype(np.float32)
    lane = np.zeros((len(rows), 64), np.float32)
    for c in range(rows.shape[1]):
        lane[:, c % 64] += rows[:, c]
    width = 32
    while width:
        lane[:, :width] += lane[:, width : 2 * width]
        width //= 2
    return lane[:, 0].reshape(*x.shape[:-1], 1)
