"""Kernels of hundreds of tile operations: loops that occur often are written once, and what they compute does not change; and
wrappers and host functions of as many statements."""

import re

import numpy as np
import pytest

from op_programs import NUMPY, from_torch, once, program, to_torch, wide
from programs import config, from_text


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


def long_program(submits, dispatches):
    """So many tasks with views of their own in a wrapper, so many dispatches with views in a host function."""
    tasks = "\n".join(f"    kernel(x[{i % 8} : {i % 8 + 1}, :], y[{i % 8} : {i % 8 + 1}, :])" for i in range(submits))
    calls = "\n".join(f"    wrapper(x[{i % 2}], y[{i % 2}], device={i % 2})" for i in range(dispatches))
    return f"""
@pl.jit.incore
def kernel(x: pl.Tensor[[1, 8], pl.FP32], y: pl.InOut[pl.Tensor[[1, 8], pl.FP32]]):
    pl.store(pl.add(pl.load(y, [0, 0], [1, 8]), pl.load(x, [0, 0], [1, 8])), [0, 0], y)

@pl.jit
def wrapper(x: pl.Tensor[[8, 8], pl.FP32], y: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]):
{tasks}

@pl.jit.host
def host(x: pl.Tensor[[2, 8, 8], pl.FP32], y: pl.InOut[pl.Tensor[[2, 8, 8], pl.FP32]]):
{calls}
"""


@pytest.mark.parametrize("submits, dispatches", [(304, 2), (8, 304)])
def test_long_wrappers_and_host_functions(submits, dispatches):
    """Each statement has its views in a block of its own: all of them would fill a task's stack sooner or later."""
    host = from_text(long_program(submits, dispatches))["host"]
    text = (host.compile(config=config(2)).output_dir / "program.c").read_text()
    assert text.count("\n    {\n") == max(submits, dispatches)
    x, y = np.ones((2, 8, 8), np.float32), np.zeros((2, 8, 8), np.float32)
    host(x, y, config=config(2))
    assert (y == submits * dispatches // 16).all()


def test_views_that_live_to_the_end():
    """They stand outside of the blocks of what comes between."""
    views = "\n".join(f"    v{i} = y[{i % 8} : {i % 8 + 1}, :]" for i in range(300))
    tasks = "\n".join(f"    kernel(x[{i % 8} : {i % 8 + 1}, :], v{(7 * i) % 300})" for i in range(300))
    text = long_program(1, 2).replace("    kernel(x[0 : 1, :], y[0 : 1, :])", views + "\n" + tasks)
    x, y = np.arange(128, dtype=np.float32).reshape(2, 8, 8), np.zeros((2, 8, 8), np.float32)
    expected = y.copy()
    for i in range(300):
        expected[:, (7 * i) % 300 % 8] += x[:, i % 8]
    from_text(text)["host"](x, y, config=config(2))
    np.testing.assert_array_equal(y, expected)
