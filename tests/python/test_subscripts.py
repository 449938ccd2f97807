"""x[...] in wrappers and kernels against NumPy: views, elements, assignments, and what is refused."""

import textwrap

import numpy as np
import pytest

import pypto
from programs import config, from_text

PROGRAM = """
@pl.jit.incore
def k(x: pl.Tensor[[3, 4, 8], pl.INT32], y: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
      n: pl.Scalar[pl.INT64]):
{kernel}
    return y

@pl.jit.incore
def copy(x: pl.Tensor[[2, 8], pl.INT32], y: pl.InOut[pl.Tensor[[2, 8], pl.INT32]]):
    return pl.store(pl.load(x, [0, 0], [2, 8]), [0, 0], y)

@pl.jit
def c(x: pl.Tensor[[3, 4, 8], pl.INT32], y: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
      n: pl.Scalar[pl.INT64]):
{wrapper}
    return y

@pl.jit.host
def h(x: pl.Tensor[[NR, 3, 4, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, 4, 8], pl.INT32]],
      n: pl.Scalar[pl.INT64]):
    for r in pl.range(pld.world_size()):
        c(x[r], y[r], n, device=r)
    return y
"""


def run(kernel="pass", wrapper="k(x, y, n)", n=1, devices=1):
    def block(text):
        return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")

    host = from_text(PROGRAM.format(kernel=block(kernel), wrapper=block(wrapper)))["h"]
    x = np.arange(devices * 96, dtype=np.int32).reshape(devices, 3, 4, 8)
    y = np.zeros((devices, 4, 8), dtype=np.int32)
    host(x, y, n, config=config(devices))
    return x, y


@pytest.mark.parametrize("devices", [1, 2])
def test_views_in_kernels(devices):
    kernel = """
        a = x[n]
        b = x[2, 1:3, :]
        c = x[n - 1:n + 1, 3]
        y[0:2, :] = pl.load(b, [0, 0], [2, 8])
        y[2, :] = pl.load(a, [1, 0], [1, 8])
        pl.store(pl.load(c[1], [4], [4]), [3, 0], y[:, 4:8])
        """
    x, y = run(kernel, devices=devices)
    for r in range(devices):
        assert (y[r, 0:2] == x[r, 2, 1:3]).all()
        assert (y[r, 2] == x[r, 1, 1]).all()
        assert (y[r, 3, 4:] == x[r, 1, 3, 4:]).all()


def test_elements():
    kernel = """
        m = x[n, 2, 3]
        y[0, 1] = m + 1
        y[0, 2] += x[0, 0, 5]
        y[0, 2] *= 3
        t = pl.load(x[2], [0, 0], [4, 8])
        t[1, 1] = t[0, 0] + n
        y[3, 3] = t[1, 1]
        i = 0
        while x[0, 0, i] < 4:
            i = i + 1
        y[1, i] = i
        """
    x, y = run(kernel)
    assert y[0, 0, 1] == x[0, 1, 2, 3] + 1
    assert y[0, 0, 2] == 15
    assert y[0, 3, 3] == x[0, 2, 0, 0] + 1
    assert y[0, 1, 4] == 4


def test_views_in_wrappers():
    x, y = run(wrapper="for i in pl.range(2):\n    copy(x[i, 1:3], y[i * 2:i * 2 + 2])")
    assert (y[0, 0:2] == x[0, 0, 1:3]).all()
    assert (y[0, 2:4] == x[0, 1, 1:3]).all()


def test_a_view_out_of_bounds():
    with pytest.raises(pypto.Error, match="a subscript reaches from 5 to 5 in dimension 0"):
        run("a = x[n]\ny[0:4, :] = pl.load(a, [0, 0], [4, 8])", n=5)


@pytest.mark.parametrize(
    "kernel, words",
    [
        ("a = x[0, 0, 0, 0]", "4 indices but the tensor is 3D"),
        ("a = x[3]", "outside dimension 0"),
        ("a = x[-1]", "is negative"),
        ("a = x[0:n]", "positive static extent"),
        ("a = x[2:1]", "positive static extent"),
        ("a = x[0:2:2]", "step"),
        ("a = x[1.5]", "must be an integer scalar"),
        ("y[0:2, :] = pl.load(x, [0, 0, 0], [1, 4, 8])", "to match"),
        ("y[0:2, :] = pl.load(x[0], [0, 0], [4, 8])", "shape mismatch on source axis 0"),
        ("y[0:2, :] = 3", "Subscript-write source must also be"),
        ("y[0, 0] = 1.5", "the value has dtype"),
        ("n[0] = 3", "Subscript requires Tuple, Tensor"),
    ],
)
def test_refused(kernel, words):
    with pytest.raises(pypto.Error, match=words):
        run(kernel)
