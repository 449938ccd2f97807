"""pl.array in kernels and wrappers against plain Python lists, and what is refused."""

import textwrap
from pathlib import Path

import numpy as np
import pytest

import pypto
from pypto.language.parser import ParserTypeError
from programs import config, from_text

PROGRAM = """
@pl.jit.incore
def k(x: pl.Tensor[[16], pl.INT32], y: pl.Out[pl.Tensor[[16], pl.INT64]], n: pl.Scalar[pl.INT64]):
{kernel}
    return y

@pl.jit
def c(x: pl.Tensor[[16], pl.INT32], y: pl.Out[pl.Tensor[[16], pl.INT64]], n: pl.Scalar[pl.INT64]):
{wrapper}
    return y

@pl.jit.host
def h(x: pl.Tensor[[NR, 16], pl.INT32], y: pl.Out[pl.Tensor[[NR, 16], pl.INT64]], n: pl.Scalar[pl.INT64]):
    for r in pl.range(pld.world_size()):
        c(x[r], y[r], n, device=r)
    return y
"""


def run(kernel="pass", wrapper="k(x, y, n)", n=3, devices=1):
    def indented(text):
        return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")

    h = from_text(PROGRAM.format(kernel=indented(kernel), wrapper=indented(wrapper)))["h"]
    x = (np.arange(devices * 16, dtype=np.int32) * 7 % 16).reshape(devices, 16)
    y = np.zeros((devices, 16), np.int64)
    h(x, y, n, config=config(devices))
    return x, y


COUNTING = """
    count = pl.array.create(8, {dtype})
    last = pl.array.create(8, pl.INT64)
    for i in pl.range(16):
        bucket = x[i] // 2
        count[bucket] = count[bucket] + 1
        if x[i] % 2 == 1:
            last[bucket] = i
    for b in pl.range(8):
        y[b] = pl.cast(count[b], pl.INT64)
        y[b + 8] = last[b]
    """


@pytest.mark.parametrize("plane", ["kernel", "wrapper"])
@pytest.mark.parametrize("dtype", ["pl.INT32", "pl.UINT8", "pl.INT64", "pl.INDEX", "pl.INT16"])
def test_counting(plane, dtype):
    x, y = run(**{plane: COUNTING.format(dtype=dtype)}, devices=2)
    for r in range(2):
        assert (y[r, :8] == np.bincount(x[r] // 2, minlength=8)).all()
        want = [0] * 8
        for i, value in enumerate(x[r]):
            if value % 2 == 1:
                want[value // 2] = i
        assert y[r, 8:].tolist() == want


def test_values_not_places():
    """Assigning copies; update_element leaves its operand alone."""
    kernel = """
        a = pl.array.create(extent=4, dtype=pl.INT32)
        a[0] = 5
        b = a
        b[0] += 2
        c = pl.array.update_element(b, 1, pl.array.get_element(a, 0) * 10)
        b = pl.array.update_element(b, n, 9)
        c = pl.array.update_element(array=c, index=c[2], value=77)
        for i in pl.range(4):
            y[i] = pl.cast(a[i], pl.INT64)
            y[4 + i] = pl.cast(b[i], pl.INT64)
            y[8 + i] = pl.cast(c[i], pl.INT64)
        """
    _, y = run(kernel)
    assert y[0, :12].tolist() == [5, 0, 0, 0, 7, 0, 0, 9, 77, 50, 0, 0]


def test_carried_by_loops_and_branches():
    kernel = """
        a: pl.Array[3, pl.INT64] = pl.array.create(3, pl.INT64)
        b = pl.array.create(3, pl.INT64)
        b[1] = 1
        for i in pl.range(n):
            s = a
            a = b
            if i % 2 == 0:
                b = s
            else:
                b = pl.array.update_element(s, 2, i)
            b[1] += 10
        for i in pl.range(3):
            y[i] = a[i]
            y[3 + i] = b[i]
        """
    _, y = run(kernel, n=5)
    a, b = [0, 0, 0], [0, 1, 0]
    for i in range(5):
        a, b = list(b), list(a)
        if i % 2:
            b[2] = i
        b[1] += 10
    assert y[0, :6].tolist() == a + b


def test_truth_and_wrapping():
    kernel = """
        seen = pl.array.create(16, pl.BOOL)
        small = pl.array.create(2, pl.INT8)
        for i in pl.range(n):
            seen[x[i]] = True
        small[0] = x[1] * 40
        for i in pl.range(16):
            if seen[i]:
                y[i] = 1
        y[15] = pl.cast(small[0], pl.INT64)
        """
    x, y = run(kernel, n=4)
    want = np.zeros(16, np.int64)
    want[x[0, :4]] = 1
    want[15] = np.int64(np.array(7 * 40).astype(np.int8))
    assert (y[0] == want).all()


def test_many_arrays_share_scratch_memory_in_turn():
    """Of a hundred arrays of 32 KiB no two are needed at the same time."""
    steps = "\n".join(
        f"a{i} = pl.array.create(8192, pl.INT32)\na{i}[n] = {i}\ntotal = total + a{i}[n] + a{i}[n + 1]"
        for i in range(100)
    )
    _, y = run(f"total = pl.const(0, pl.INT32)\n{steps}\ny[0] = pl.cast(total, pl.INT64)")
    assert y[0, 0] == 4950


@pytest.mark.parametrize("plane", ["kernel", "wrapper"])
@pytest.mark.parametrize("statement", ["y[0] = pl.cast(a[n + {}], pl.INT64)", "a[n + {}] = 1"])
@pytest.mark.parametrize("offset, index", [(5, 8), (-4, -1), (1 << 40, (1 << 40) + 3)])
def test_out_of_range_at_run_time(plane, statement, offset, index):
    body = "a = pl.array.create(8, pl.INT32)\n" + statement.format(offset)
    with pytest.raises(pypto.Error, match=rf"index {index} is outside array 'a', which has elements 0 to 7") as e:
        run(**{plane: body})
    assert f":{5 if plane == 'kernel' else 10}: " in str(e.value)


@pytest.mark.parametrize(
    "body, error, words",
    [
        ("a[8] = 1", ValueError, "index 8 is outside array 'a', which has elements 0 to 7"),
        ("m = a[-1]", ValueError, "index -1 is outside array 'a'"),
        ("m: pl.Array[9, pl.INT32] = a", ParserTypeError, "shape dimension 0 = 9 but expression has 8"),
        ("m: pl.Array[8, pl.INT64] = a", ParserTypeError, "dtype int64 but expression has dtype int32"),
        ("m: pl.Array[8] = a", ParserTypeError, "pl.Array needs a number of elements"),
        ("m: pl.Array[n, pl.INT32] = a", ParserTypeError, "pl.Array needs a number of elements"),
        ("a[0] = 1.5", pypto.Error, "an fp32 does not go into an Array of int32"),
        ("a[0] = n > 2", pypto.Error, "a bool does not go into an Array of int32"),
        ("a[0, 1] = 1", ParserTypeError, "an Array takes one index"),
        ("m = a[0:2]", ParserTypeError, "an Array takes one index"),
        ("m = a[1.5]", pypto.Error, "must be an integer scalar"),
        ("m = a + 1", pypto.Error, "must be ScalarExpr or Var with ScalarType"),
        ("m = pl.add(a, a)", pypto.Error, "expected Tile, got Array"),
        ("m = pl.array.get_element(x, 1)", pypto.Error, "array expected Array, got Tensor"),
        ("m = pl.array.create(n, pl.INT32)", pypto.Error, "the extent of an Array must be a constant"),
        ("m = pl.array.create(0, pl.INT32)", pypto.Error, "must be positive, not 0"),
        ("m = pl.array.create(4, pl.FP32)", pypto.Error, "an integer type, BOOL or TASK_ID, not fp32"),
        ("return a", pypto.Error, "a function returns storage of its parameters"),
        ("y[0:8] = a", pypto.Error, "Subscript-write source must also be"),
    ],
)
def test_refused(body, error, words):
    with pytest.raises(error, match=words):
        run("a = pl.array.create(8, pl.INT32)\n" + body)


def test_arrays_stay_where_they_are():
    text = "@pl.jit.incore\ndef k(a: pl.Array[4, pl.INT32]):\n    pass\n\n@pl.jit\ndef c(n: pl.Scalar[pl.INT32]):\n    k(n)\n"
    with pytest.raises(ParserTypeError, match="an Array is local to its function"):
        from_text(text)["c"](1, config=config(1))
    with pytest.raises(pypto.Error, match="argument 'x' of 'k' must be a Tensor, not an? Array"):
        run(wrapper="a = pl.array.create(16, pl.INT32)\nk(a, y, n)")
    text = "@pl.jit.host\ndef h(x: pl.Tensor[[4], pl.FP32]):\n    a = pl.array.create(4, pl.INT32)\n"
    with pytest.raises(pypto.Error, match="'pl.array.create' cannot be used in a HOST function"):
        from_text(text)["h"](np.zeros(4, np.float32), config=config(1))


def test_loops_without_device_calls_can_be_interrupted():
    """A cancelled call ends a kernel at its next device call, so each turn of a loop makes one."""
    for loop in ("for i in pl.range(n):\n    a[i] = i", "while a[0] < n:\n    a[0] = a[0] + 1"):
        body = textwrap.indent(f"a = pl.array.create(8, pl.INT64)\n{loop}\ny[0] = a[0]", "    ")
        h = from_text(PROGRAM.format(kernel=body, wrapper="    k(x, y, n)"))["h"]
        compiled = h.compile(
            np.zeros((1, 16), np.int32), np.zeros((1, 16), np.int64), 3, config=config(1)
        )
        assert (Path(compiled.output_dir) / "program.c").read_text().count("pld_poll(core)") == 1
