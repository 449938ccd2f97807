"""Element types, scalars and tiles as NumPy sees them: the arithmetic of the interpreter, written from
the language's rules and not from the compiler.

A scalar is a Python int, a bool, or an np.float32 that its type can hold. A tile is a Tile: an array of
its physical shape, zero outside its valid extents, and those extents. BF16, which NumPy lacks, is kept as
float32 with rounded values."""

import dataclasses

import numpy as np

SIGNED = ["INT8", "INT16", "INT32", "INT64"]
UNSIGNED = ["UINT8", "UINT16", "UINT32", "UINT64"]
INTS = SIGNED + UNSIGNED
HALVES = ["FP16", "BF16"]
FLOATS = ["FP32"] + HALVES
ALL = INTS + FLOATS

NUMPY = {name: np.dtype(name.lower()) for name in INTS}
NUMPY |= {"BOOL": np.dtype(bool), "INDEX": np.dtype("i8")}
NUMPY |= {"FP32": np.dtype("f4"), "FP16": np.dtype("f2"), "BF16": np.dtype("f4")}


def bits(dtype):
    return 16 if dtype == "BF16" else NUMPY[dtype].itemsize * 8


def is_int(dtype):
    return dtype in INTS or dtype == "INDEX"


def limits(dtype):
    info = np.iinfo(NUMPY[dtype])
    return int(info.min), int(info.max)


def to_bf16(x):
    """FP32 values rounded to the nearest BF16, ties to even."""
    x = np.asarray(x, np.float32)
    raw = x.view(np.uint32).astype(np.uint64)
    rounded = ((raw + 0x7FFF + (raw >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), x, rounded)


def rounded(x, dtype):
    """FP32 values as the float type holds them."""
    if dtype == "BF16":
        return to_bf16(x)
    return np.asarray(x, np.float32).astype(NUMPY[dtype])


# ---- scalars ----


def wrap(value, dtype):
    low, high = limits(dtype)
    return (value - low) % (high - low + 1) + low


def convert(value, source, target):
    if source == target:
        return value
    if target == "BOOL":
        return bool(value != 0)
    if is_int(target):
        return wrap(int(value), target)
    if is_int(source):  # in one step, as C does
        value = NUMPY[source].type(value).astype(np.float32)
    return np.float32(rounded(np.float32(value), target))


def widens(narrow, wide):
    """Whether `wide` holds every value of `narrow`."""
    if narrow == wide:
        return True
    if is_int(narrow) and is_int(wide):
        return limits(wide)[0] <= limits(narrow)[0] and limits(narrow)[1] <= limits(wide)[1]
    return narrow in HALVES and wide == "FP32"


def promoted(a, b):
    """The type two scalars compute in: the wider; the left one when both are as wide."""
    return b if bits(b) > bits(a) else a


def comparable(x, a, y, b):
    """Two scalars of these types as they are compared: integers by value, which no type may hold."""
    if is_int(a) and is_int(b):
        return int(x), int(y)
    dtype = b if widens(a, b) else a if widens(b, a) else "INDEX" if is_int(a) else "FP32"
    return convert(x, a, dtype), convert(y, b, dtype)


INT_OPERATORS = {
    "+": lambda x, y, width: x + y,
    "-": lambda x, y, width: x - y,
    "*": lambda x, y, width: x * y,
    "//": lambda x, y, width: 0 if y == 0 else x // y,
    "%": lambda x, y, width: 0 if y == 0 else x % y,
    "&": lambda x, y, width: x & y,
    "|": lambda x, y, width: x | y,
    "^": lambda x, y, width: x ^ y,
    "<<": lambda x, y, width: x << y if 0 <= y < width else 0,
    ">>": lambda x, y, width: x >> (y if 0 <= y < width else width),
}
FLOAT_OPERATORS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
}
COMPARISONS = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


def binary(operator, x, y, dtype):
    if is_int(dtype):
        return wrap(INT_OPERATORS[operator](x, y, bits(dtype)), dtype)
    return np.float32(rounded(FLOAT_OPERATORS[operator](np.float32(x), np.float32(y)), dtype))


# ---- tiles ----


@dataclasses.dataclass
class Tile:
    array: np.ndarray
    valid: tuple

    @property
    def inside(self):
        return tuple(slice(0, extent) for extent in self.valid)


def full_tile(array):
    return Tile(array, array.shape)


def cut(array, valid):
    """A tile of that array, zero where it is not valid."""
    tile = Tile(np.zeros_like(array), valid)
    tile.array[tile.inside] = array[tile.inside]
    return tile


def exact(array, dtype):
    """Python integers, modulo the width of the element type."""
    mask = np.array([int(v) % 2 ** bits(dtype) for v in array.flat], np.uint64)
    unsigned = mask.astype(f"u{bits(dtype) // 8}").reshape(array.shape)
    return unsigned.view(NUMPY[dtype])


def per_element(function):
    """Of two integer tiles, in Python's integers."""

    def apply(dtype, a, b):
        a, b = np.broadcast_arrays(a, b)
        pairs = zip(a.flat, b.flat)
        values = np.array([function(int(x), int(y), bits(dtype)) for x, y in pairs] + [0], object)
        return exact(values[:-1].reshape(a.shape), dtype)

    return apply


def plain(function):
    return lambda dtype, *tiles: function(*tiles)


def truncated(x, y, width):
    return 0 if y == 0 else abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


def remainder(x, y, width):
    return 0 if y == 0 else abs(x) % abs(y) * (-1 if x < 0 else 1)


def modulo(x, y, width):
    return 0 if y == 0 else x % y


def divide(dtype, a, b):
    return per_element(truncated)(dtype, a, b) if dtype in INTS else a / b


def double(function):
    return lambda dtype, a: function(a.astype(np.float64)).astype(np.float32)


def in_order(function):
    """A reduction in the element type, one element after the other."""

    def reduce(array, axis):
        total = np.take(array, [0], axis)
        for i in range(1, array.shape[axis]):
            total = function(total, np.take(array, [i], axis)).astype(array.dtype)
        return total

    return reduce


def lanes_sum(array, axis):
    """The documented order of a row's sum of floats: 64 lanes, added in halves."""
    if axis == 0 or array.dtype.kind != "f":
        return in_order(np.add)(array, axis)
    lanes = np.zeros((*array.shape[:-1], 64), np.float32)
    for c in range(array.shape[-1]):
        lanes[..., c % 64] += array[..., c]
    width = 32
    while width:
        lanes[..., :width] += lanes[..., width : 2 * width]
        width //= 2
    return lanes[..., :1]
