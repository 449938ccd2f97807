"""pl.assemble in host functions: a dispatch that copies one host tensor into another."""

import numpy as np
import pytest

import pypto
from class_programs import of_host_function
from pypto import ir
from pypto.errors import InvalidOperationError, ParserSyntaxError, ParserTypeError
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig

N = 16
X_Y = "x: pl.Tensor[[{0}, N], pl.FP32], y: pl.Out[pl.Tensor[[{0}, N], pl.FP32]], k: pl.Scalar[pl.INT32]"


def run(body, k=0, rows="NR"):
    """y for rows of x that are 1 and 2."""
    program = of_host_function(X_Y.format(rows), body)
    compiled = ir.compile(program, platform="cpu", distributed_config=DistributedConfig(device_ids=[0, 1]))
    x, y = np.array([[1], [2]], np.float32) * np.ones((2, N), np.float32), np.zeros((2, N), np.float32)
    compiled(x, y, k, config=RunConfig(platform="cpu", lint="off"))  # some dispatch on one rank only
    return y


AFTER_A_DISPATCH = """t = pl.create_tensor([2, N], dtype=pl.FP32)
for r in pl.range(2):
    self.double(x[r], t[r], device=r)
y = pl.assemble(y, t, [0, 0])"""

IN_FRONT_OF_ONE = """t = pl.create_tensor([2, N], dtype=pl.FP32)
t = pl.assemble(t, x, [0, 0])
for r in pl.range(2):
    self.double(t[r], y[r], device=r)"""

BETWEEN = """for r in pl.range(2):
    self.double(x[r], y[r], device=r)
y = pl.assemble(y, y[0:1, :], [1, 0])
y = pl.assemble(y, x[0:1, 0:8], [0, 8])"""


@pytest.mark.parametrize(
    "body, expected",
    [
        (AFTER_A_DISPATCH, [[2] * N, [4] * N]),
        (IN_FRONT_OF_ONE, [[2] * N, [4] * N]),
        (BETWEEN, [[2] * 8 + [1] * 8, [2] * N]),
        ("pl.assemble(y, x, [0, 0])", [[1] * N, [2] * N]),
        ("pl.tensor.assemble(y, x, [0, 0])", [[1] * N, [2] * N]),
        ("return pl.assemble(y, x, [0, 0])", [[1] * N, [2] * N]),
        ("y = pl.assemble(y, x, [0, 0], atomic=pl.AtomicType.None_)", [[1] * N, [2] * N]),
        ("pl.assemble(y[1:2, :], x[0:1, 0:8], [0, k])", [[0] * N, [0] * 4 + [1] * 8 + [0] * 4]),
        ("for r in pl.range(2):\n    y = pl.assemble(y, x[r:r + 1, :], [1 - r, 0])", [[2] * N, [1] * N]),
        ("for r in pl.range(2):\n    if r == 1:\n        y = pl.assemble(y, x[0:1, :], [r, 0])", [[0] * N, [1] * N]),
    ],
)
def test_copies(body, expected, transport):
    assert run(body, 4).tolist() == expected


@pytest.mark.parametrize(
    "body, error, words",
    [
        ("y = pl.assemble(y, x, [0, 0], atomic=pl.AtomicType.Add)", ParserSyntaxError, "only supported inside an InCore function"),
        ("x = pl.assemble(x, y, [0, 0])", ParserTypeError, "parameter 'x' is only read"),
        ("y = pl.assemble(y, x)", InvalidOperationError, "missing 1 required positional argument: 'offset'"),
        ("y = pl.assemble(y, x, [1, 0])", ValueError, "writes past the end of dimension 0"),
        ("self.double(pl.assemble(y, x, [0, 0])[0], y[0], device=0)", ParserSyntaxError, "cannot be used in a HOST function"),
        (
            "buf = pld.alloc_window_buffer([2, N], dtype=pl.FP32)\nw = pld.window(buf, [2, N], dtype=pl.FP32)\nw = pl.assemble(w, x, [0, 0])",
            ParserTypeError,
            "passes a window, 'w', so it needs 'device='",
        ),
    ],
)
def test_refused(body, error, words):
    with pytest.raises(error, match=words) as caught:
        run(body, rows="2")
    assert "host(self" not in str(caught.value)


def test_what_leaves_the_tensor_while_it_runs(transport):
    with pytest.raises(pypto.DeviceError, match=r"an assemble of \[2, 16\] at \[1, 0\] leaves parameter 'y'") as caught:
        run("y = pl.assemble(y, x, [k, 0])", 1)
    assert caught.value.span["line"] > 0
