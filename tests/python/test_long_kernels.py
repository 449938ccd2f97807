"""Kernels of hundreds of tile operations: loops that occur often are written once. What they compute does not change."""

import re

import numpy as np
import pytest

from op_programs import NUMPY, from_torch, once, program, to_torch, wide
from programs import config


def chain(count, dtype):
    """Statements over the tiles a and b, and what c holds afterwards: in place and not, one operand twice, constants,
    element types of other sizes in between, and valid extents."""
    other = "FP16" if dtype == "FP32" else "FP32"
    forms = [
        ("c = pl.add(c, b)", lambda c, b: c + b),
        ("c = pl.sub(b, c)", lambda c, b: b - c),
        ("c = pl.mul(c, 0.5)", lambda c, b: c * c.dtype.type(0.5)),
        ("d = pl.add(c, b)\n    c = pl.maximum(d, c)", lambda c, b: np.maximum(rounded(c + b), c)),
        ("c = pl.minimum(c, 2.5)", lambda c, b: np.minimum(c, c.dtype.type(2.5))),
        ("d = pl.mul(c, c)\n    c = pl.add(d, d)", lambda c, b: rounded(c * c) + rounded(c * c)),
        (f"c = pl.cast(pl.cast(c, pl.{other}), pl.{dtype})", lambda c, b: wide(once(c, other))),
        ("c = pl.sqrt(pl.abs(c))", lambda c, b: np.sqrt(np.abs(c))),
    ]
    rounded = lambda x: wide(once(x, dtype))
    order = np.random.default_rng(count).integers(0, len(forms), count)
    return [forms[k][0] for k in order], [lambda c, b, k=k: rounded(forms[k][1](c, b)) for k in order]


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16"])
def test_many_operations(dtype):
    shape = (6, 64)
    rng = np.random.default_rng(1)
    a, b = (once(rng.standard_normal(shape).astype(np.float32), dtype) for _ in range(2))
    statements, steps = chain(300, dtype)
    host = program(["c = pl.add(a, b)", *statements, "pl.store(c, [0, 0], z)"], shape, dtype, shape, dtype)
    text = (host.compile(config=config(1)).output_dir / "program.c").read_text()
    assert text.count("kernel_loop_") > 200 and len(re.findall(r"noinline.* kernel_loop_\d+\(", text)) < 20
    out = to_torch(np.zeros((1, *shape), NUMPY[dtype]), dtype)
    host(to_torch(a[None], dtype), to_torch(b[None], dtype), out, config=config(1))
    with np.errstate(all="ignore"):
        c, wb = wide(once(wide(a) + wide(b), dtype)), wide(b)
        for step in steps:
            c = step(c, wb)
    np.testing.assert_array_equal(wide(from_torch(out, dtype)[0]), c)


def test_usual_kernels_keep_their_loops():
    host = program(["c = pl.add(a, b)", *["c = pl.add(c, b)"] * 100, "pl.store(c, [0, 0], z)"], (6, 64), "FP32",
                   (6, 64), "FP32")
    text = (host.compile(config=config(1)).output_dir / "program.c").read_text()
    assert "_loop_" not in text and text.count("for (int64_t i") == 101


def test_compilers_have_one_loop_to_do():
    """3,000 additions; compiling them took 24 seconds on a busy machine when each had a loop."""
    lines = [f"t{k} = pl.add({f't{k - 1}' if k else 'a'}, b)" for k in range(3000)]
    host = program([*lines, "pl.store(t2999, [0, 0], z)"], (16, 64), "FP32", (16, 64), "FP32")
    text = (host.compile(config=config(1)).output_dir / "program.c").read_text()
    assert text.count("for (int64_t i") <= 2 and text.count("kernel_loop_0(") == 3001
    x, z = np.full((1, 16, 64), 1, np.float32), np.zeros((1, 16, 64), np.float32)
    host(x, x, z, config=config(1))
    assert (z == 3001).all()
