"""Where paths meet, one name may hold tiles of one shape of which different parts are valid, among them
the whole: what is valid is then known when the program runs."""

import textwrap

import numpy as np
import pytest

from programs import config, from_text
from pypto.language.parser.diagnostics import ParserTypeError

PROGRAM = """
@pl.jit.incore
def k(
    x: pl.Tensor[[2, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[2, 8], pl.FP32]],
    n: pl.Scalar[pl.INT64],
    b: pl.Scalar[pl.BOOL],
):
{body}
    return pl.store(t, [0, 0], y)

@pl.jit
def c(
    x: pl.Tensor[[2, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[2, 8], pl.FP32]],
    n: pl.Scalar[pl.INT64],
    b: pl.Scalar[pl.BOOL],
):
    return k(x, y, n, b)
"""

FULL = "pl.load(x, [0, 0], [2, 8])"
PART = "pl.load(x, [0, 0], [2, 8], valid_shape=[1, 5])"
WHOLE = "pl.load(x, [0, 0], [2, 8], valid_shape=[2, 8])"
COUNTED = "pl.load(x, [0, 0], [2, 8], valid_shape=[2, n])"

# body -> (rows, columns) of the stored part for n and b.
BODIES = {
    "full, then a part": (f"t = {FULL}\nif b:\n    t = {PART}", lambda n, b: (1, 5) if b else (2, 8)),
    "a part, then full": (f"t = {PART}\nif b:\n    t = {FULL}", lambda n, b: (2, 8) if b else (1, 5)),
    "counted, then the whole": (f"t = {COUNTED}\nif b:\n    t = {WHOLE}", lambda n, b: (2, 8) if b else (2, n)),
    "counted, then a part": (f"t = {COUNTED}\nif b:\n    t = {PART}", lambda n, b: (1, 5) if b else (2, n)),
    "both branches": (f"if b:\n    t = {FULL}\nelse:\n    t = {COUNTED}", lambda n, b: (2, 8) if b else (2, n)),
    "computed": (f"t = {FULL}\nif b:\n    t = pl.mul({COUNTED}, 1.0)", lambda n, b: (2, n) if b else (2, 8)),
    "read in the branch": (
        f"u = {COUNTED}\nt = {FULL}\nif b:\n    u = t\nt = pl.add(u, 0.0)",
        lambda n, b: (2, 8) if b else (2, n),
    ),
    "a loop": (f"t = {FULL}\nfor i in pl.range(n):\n    t = {PART}", lambda n, b: (1, 5) if n else (2, 8)),
    "a loop that reads it": (
        f"t = {FULL}\nfor i in pl.range(n):\n    s = pl.row_sum(t)\n    t = pl.set_validshape(pl.mul(t, 1.0), 2, 8 - i)",
        lambda n, b: (2, 9 - n if n else 8),
    ),
    "a loop in a loop": (
        f"t = {FULL}\nfor i in pl.range(2):\n    for j in pl.range(n):\n        t = pl.mul(t, 1.0)\n        if b:\n"
        f"            t = {COUNTED}",
        lambda n, b: (2, n) if b and n else (2, 8),
    ),
    "a break": (
        f"t = {FULL}\nfor i in pl.range(4):\n    if i == n:\n        t = {PART}\n        break",
        lambda n, b: (1, 5) if n < 4 else (2, 8),
    ),
    "the loop makes it full": (
        f"t = {COUNTED}\nfor i in pl.range(3):\n    if b:\n        t = {FULL}\n        continue",
        lambda n, b: (2, 8) if b else (2, n),
    ),
    "a while": (f"t = {FULL}\ni = 0\nwhile i < n:\n    t = {COUNTED}\n    i = i + 1",
                lambda n, b: (2, n) if n else (2, 8)),
    "an explicit carry": (
        f"for i, (a,) in pl.range(n, init_values=({FULL},)):\n    t = pl.yield_(pl.set_validshape(a, 1, 8 - i))",
        lambda n, b: (1, 9 - n),
    ),
}


def compiled(body):
    return from_text(PROGRAM.format(body=textwrap.indent(body, "    ")))["c"]


@pytest.mark.parametrize("name", BODIES)
def test_a_name_for_tiles_of_which_different_parts_are_valid(name):
    body, valid = BODIES[name]
    run = compiled(body)
    x = np.arange(1, 17, dtype=np.float32).reshape(2, 8)
    for n in (0, 1, 3) if "carry" not in name else (1, 3):
        for b in (False, True):
            y = np.full_like(x, -1)
            run(x, y, n, b, config=config(1))
            rows, columns = valid(n, b)
            expected = np.full_like(x, -1)
            expected[:rows, :columns] = x[:rows, :columns]
            np.testing.assert_array_equal(y, expected, err_msg=f"n={n} b={b}")


@pytest.mark.parametrize("other", ["pl.load(x, [0, 0], [1, 8])", "pl.cast(pl.load(x, [0, 0], [2, 8]), pl.INT32)"])
def test_tiles_of_other_shapes_and_types_do_not_meet(other):
    with pytest.raises(ParserTypeError, match="Cannot reassign 't' with a different type"):
        compiled(f"t = {COUNTED}\nif b:\n    t = {other}").compile()
