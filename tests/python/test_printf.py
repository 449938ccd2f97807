"""pl.printf: what appears on the standard output of the script, per rank and line, and what is refused.

Scripts run in processes of their own, whose output is a pipe."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import pypto
from programs import config, from_text

PROGRAM = """
import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig

NR = pl.dynamic("NR")

@pl.jit.incore
def k(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]], n: pl.Scalar[pl.INT64]):
{kernel}
    return y

@pl.jit
def c(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]], n: pl.Scalar[pl.INT64]):
{wrapper}
    return y

@pl.jit.host
def h(x: pl.Tensor[[NR, 4, 8], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4, 8], pl.FP32]], n: pl.Scalar[pl.INT64]):
    for r in pl.range(pld.world_size()):
        c(x[r], y[r], n + r, device=r)
    return y
"""
MAIN = """
x = np.arange({devices} * 32, dtype=np.float32).reshape({devices}, 4, 8)
h(x, np.zeros_like(x), 3, config=RunConfig(platform="cpu", distributed_config=DistributedConfig(device_ids=list(range({devices})))))
"""


def text_of(kernel="pass", wrapper="k(x, y, n)"):
    def indented(text):
        return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")

    return PROGRAM.format(kernel=indented(kernel), wrapper=indented(wrapper))


def printed(tmp_path, kernel="pass", wrapper="k(x, y, n)", devices=1, **settings):
    """The lines that each rank printed."""
    script = tmp_path / "script.py"
    script.write_text(text_of(kernel, wrapper) + MAIN.format(devices=devices))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, env={**os.environ, **settings}
    )
    assert done.returncode == 0, done.stderr
    ranks = [[] for _ in range(devices)]
    for line in done.stdout.splitlines():
        rank, colon, rest = line.partition(": ")
        assert colon and rank.startswith("rank "), line
        ranks[int(rank[5:])].append(rest)
    return ranks


KERNEL = """
    pl.printf("n is %d, twice %5d|%-4d|%04x", n, n * 2, n, n + 20)
    pl.printf("%g %.3f %8.2e", x[1, 2], x[1, 2] / 7, -1.5)
    pl.printf("100%% of %s, %s, %s %s", x[0, 3], n, n > 3, "text")
    for i in pl.range(2):
        if i == 1:
            pl.printf("two\\nlines\\n")
    """


@pytest.mark.parametrize("transport", ["shm", "threads"])
def test_scalars(tmp_path, transport):
    ranks = printed(tmp_path, KERNEL, devices=2, PYPTO_TRANSPORT=transport)
    for r, lines in enumerate(ranks):
        n, x = 3 + r, np.float32(r * 32)
        assert lines == [
            f"n is {n}, twice {n * 2:5d}|{n:<4d}|{n + 20:04x}",
            f"{x + 10:g} {(x + 10) / 7:.3f} {-1.5:8.2e}",
            f"100% of {x + 3:g}, {n}, {n > 3} text",
            "two",
            "lines",
        ]


def test_tiles_and_tensors(tmp_path):
    kernel = """
        t = pl.load(x, [0, 0], [4, 8])
        pl.printf("t = %s", t[1:3, 0:3])
        pl.printf("%s", pl.cast(x[2, 0:4], pl.INT16))
        pl.printf("valid: %s.", pl.load(x, [0, 0], [4, 8], valid_shape=[n - 2, 2]))
        pl.printf("%s", pl.cmps(t[0:1, 0:2], 1.0, pl.const(0, pl.INT32)) if False else pl.create_tile([1, 20], pl.UINT8))
        """.replace("pl.cmps(t[0:1, 0:2], 1.0, pl.const(0, pl.INT32)) if False else ", "")
    (lines,) = printed(tmp_path, kernel)
    assert lines == [
        "t = [[8, 9, 10],",
        " [16, 17, 18]]",
        "[16, 17, 18, 19]",
        "valid: [[0, 1]].",
        "[[0, 0, 0, ..., 0, 0, 0]]",
    ]


def test_wrappers(tmp_path):
    ranks = printed(tmp_path, wrapper='pl.printf("before %d", n)\nk(x, y, n)', devices=2)
    assert ranks == [["before 3"], ["before 4"]]


def test_lines_of_several_ranks_stay_whole(tmp_path):
    text = "x" * 700
    ranks = printed(tmp_path, f'for i in pl.range(300):\n    pl.printf("%d {text}", i)', devices=3)
    for lines in ranks:
        assert lines == [f"{i} {text}" for i in range(300)]


@pytest.mark.parametrize(
    "kernel, words",
    [
        ('pl.printf("%d")', "more conversions than values"),
        ('pl.printf("a", n)', "values without a conversion: 1"),
        ('pl.printf("%d", x[0, 0])', "takes an integer for %d"),
        ('pl.printf("%.2f", n)', "takes a float for %.2f"),
        ('pl.printf("%f", x)', "takes a float for %f"),
        ('pl.printf("%q", n)', "does not know the conversion '%q'"),
        ('pl.printf("%*d", n, n)', "does not know the conversion"),
        ('pl.printf("50%", n)', "does not know the conversion '%'"),
        ('pl.printf("%n", n)', "does not know the conversion '%n'"),
        ("pl.printf(n)", "the format must be a string"),
        ("pl.printf()", "takes a format and values"),
        ('pl.printf("%d", value=n)', "takes a format and values"),
        ('pl.printf("%s", pl.FP32)', "cannot print the dtype fp32"),
    ],
)
def test_refused(kernel, words):
    h = from_text(text_of(kernel))["h"]
    x = np.zeros((1, 4, 8), np.float32)
    with pytest.raises(pypto.Error, match=words.replace("*", r"\*")):
        h(x, x.copy(), 3, config=config(1))


def test_not_in_host_functions():
    text = '@pl.jit.host\ndef h(x: pl.Tensor[[4], pl.FP32]):\n    pl.printf("x")\n'
    with pytest.raises(pypto.Error, match="'pl.printf' cannot be used in a HOST function"):
        from_text(text)["h"](np.zeros(4, np.float32), config=config(1))
