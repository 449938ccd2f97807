"""What the operations on tiles mean, by their names in the compiler's own table (pypto._core.ops()).

The generator draws from the rows of the table that stand in ORACLES, so the signature, the spellings and
the order of arguments are the table's. An elementwise operation that is new in the table needs a row there and
nothing else; the others are drawn by methods of the generator. test_every_operation_is_tested sees to it that
each row of the table is drawn here or stands in another test."""

import re

import numpy as np

from pypto import _core
from values import ALL, FLOATS, INTS, divide, double, in_order, lanes_sum, per_element, plain
from values import NUMPY, limits, modulo, remainder, rounded

# ---- elementwise: (oracle(dtype, *operands), element types, units in the last place) ----
# 16-bit floats arrive as FP32 and the result is rounded once.

ALL_STEPS = INTS + ["FP32"]  # of halves: rounded after each step
SHIFT_LEFT = per_element(lambda x, n, width: x << n if 0 <= n < width else 0)
SHIFT_RIGHT = per_element(lambda x, n, width: x >> (n if 0 <= n < width else width))

ORACLES = {
    "add": (plain(np.add), ALL, 0),
    "sub": (plain(np.subtract), ALL, 0),
    "mul": (plain(np.multiply), ALL, 0),
    "div": (divide, ALL, 0),
    "maximum": (plain(np.maximum), ALL, 0),
    "minimum": (plain(np.minimum), ALL, 0),
    "fmod": (per_element(remainder), INTS, 0),
    "neg": (plain(np.negative), ALL, 0),
    "abs": (plain(np.abs), ALL, 0),
    "relu": (plain(lambda a: np.where(a < 0, a.dtype.type(0), a)), ALL, 0),
    "exp": (double(np.exp), FLOATS, 1),
    "log": (double(np.log), FLOATS, 1),
    "sqrt": (plain(np.sqrt), FLOATS, 0),
    "rsqrt": (plain(lambda a: np.float32(1) / np.sqrt(a)), FLOATS, 0),
    "recip": (plain(lambda a: np.float32(1) / a), FLOATS, 0),
    "and_": (plain(np.bitwise_and), INTS, 0),
    "or_": (plain(np.bitwise_or), INTS, 0),
    "xor": (plain(np.bitwise_xor), INTS, 0),
    "not_": (plain(np.invert), INTS, 0),
    "shl": (SHIFT_LEFT, INTS, 0),
    "shr": (SHIFT_RIGHT, INTS, 0),
    "rem": (per_element(modulo), INTS, 0),
    "sin": (double(np.sin), FLOATS, 1),
    "cos": (double(np.cos), FLOATS, 1),
    "addc": (plain(lambda a, b, c: a + b + c), ALL_STEPS, 0),
    "subc": (plain(lambda a, b, c: a - b - c), ALL_STEPS, 0),
    "expands": (plain(lambda a, b: b), ALL, 0),
    "lrelu": (plain(lambda a, b: np.where(a > 0, a, a * b)), FLOATS, 0),
}
ORACLES |= {f"{name}s": ORACLES[name] for name in ["add", "sub", "mul", "div", "maximum", "minimum"]}
ORACLES |= {"fmods": ORACLES["fmod"], "rems": ORACLES["rem"], "prelu": ORACLES["lrelu"]}
ORACLES |= {"addsc": ORACLES["addc"], "subsc": ORACLES["subc"]}
ORACLES |= {"ands": ORACLES["and_"], "ors": ORACLES["or_"], "xors": ORACLES["xor"]}
ORACLES |= {"shls": ORACLES["shl"], "shrs": ORACLES["shr"]}

# ---- along an axis: of the valid part of a tile ----



def first(function):
    """Of the position of an element."""
    return lambda array, axis: np.expand_dims(function(array, axis), axis).astype(np.int32)


REDUCTIONS = {
    "sum": (lanes_sum, ALL),
    "max": (in_order(np.maximum), ALL),
    "min": (in_order(np.minimum), ALL),
    "prod": (in_order(np.multiply), INTS),  # of floats: test_ops
    "argmax": (first(np.argmax), INTS),
    "argmin": (first(np.argmin), INTS),
}
EXPANDS = {  # as ORACLES
    "": (plain(lambda x, v: np.broadcast_to(v, x.shape)), ALL, 0),
    "_add": ORACLES["add"],
    "_sub": ORACLES["sub"],
    "_mul": ORACLES["mul"],
    "_div": ORACLES["div"],
    "_max": ORACLES["maximum"],
    "_min": ORACLES["minimum"],
    "_expdif": (lambda dtype, x, v: double(np.exp)(dtype, x - v), FLOATS, 1),
}

COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

ROUNDING = {
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "rint": np.rint,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
}


def cast(array, source, target, mode):
    """A tile's elements in another type. Floats saturate to integers, NaN becomes 0; integers wrap."""
    with np.errstate(all="ignore"):
        if source in FLOATS and target in INTS:
            x = ROUNDING[mode](np.nan_to_num(array.astype(np.float64), nan=0, posinf=1e30, neginf=-1e30))
            low, high = limits(target)
            whole = [low if v <= low else high if v >= high else int(v) for v in x.flat]
            return np.array(whole, NUMPY[target]).reshape(array.shape)
        if source in INTS and target in INTS:
            return array.astype(NUMPY[target])
        return rounded(array.astype(np.float32), target)


def table():
    """{last word of the name: [(canonical spelling, [(parameter, kind, required)])]} of the compiler."""
    rows = {}
    for spellings, signature, _ in _core.ops():
        parameters = []
        for part in re.split(r",\s*(?![^(]*\))", signature):
            if ":" in part:
                name, kind = part.split(":", 1)
                parameters.append((name.strip(), kind.split("=")[0].strip(), "=" not in kind))
        rows.setdefault(spellings[0].rsplit(".", 1)[1], []).append((spellings[0], parameters))
    return rows


def drawn(name):
    """Whether the generator knows the operation."""
    axis, _, rest = name.partition("_")
    along = axis in ("row", "col")
    return (
        name in ORACLES
        or (along and rest in REDUCTIONS)
        or (along and rest.startswith("expand") and rest[6:] in EXPANDS)
    )
