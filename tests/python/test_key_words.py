"""The key words that messages of distributed programs are searched for, a row each: a program with the mistake, and
the words. Where such a program has a meaning here, the row says so, and the test is that it runs."""

import textwrap

import numpy as np
import pytest

import pypto
from pypto.language.parser.diagnostics import ParserSyntaxError
from programs import config, from_text

PROGRAM = """
SIG = pld.DistributedTensor[[NR, 1], pl.INT32]
WIN = pld.DistributedTensor[[8, 8], pl.FP32]
TEN = pl.Tensor[[8, 8], pl.FP32]

@pl.jit.incore
def kernel(s: pl.InOut[SIG], w: pl.InOut[WIN], v: pl.InOut[WIN], x: TEN, y: pl.Out[TEN], n: pl.Scalar[pl.INT64]):
    t = pl.load(x, [0, 0], [8, 8])
{kernel}
    pl.store(t, [0, 0], y)

@pl.jit
def wrapper(s: pl.InOut[SIG], w: pl.InOut[WIN], v: pl.InOut[WIN], x: TEN, y: pl.Out[TEN], n: pl.Scalar[pl.INT64]):
{wrapper}
    kernel(s, w, v, x, y, n)

@pl.jit.host
def host(x: TEN, y: pl.Out[TEN]):
    sb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    s = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)
    wb = pld.alloc_window_buffer([8, 8], dtype=pl.FP32)
    w = pld.window(wb, [8, 8], dtype=pl.FP32)
    vb = pld.alloc_window_buffer([8, 8], dtype=pl.FP32)
    v = pld.window(vb, [8, 8], dtype=pl.FP32)
{host}
    for r in pl.range(pld.world_size()):
        wrapper(s, w, v, x, y, r, device=r)
"""


def run(place, statements):
    parts = {part: "    pass" for part in ("kernel", "wrapper", "host")}
    parts[place] = textwrap.indent(statements, "    ")
    x = np.ones((8, 8), np.float32)
    y = np.zeros_like(x)
    from_text(PROGRAM.format(**parts))["host"](x, y, config=config(1))
    assert (y == 1).all()


ADD = "op=pld.NotifyOp.AtomicAdd"
GE = "cmp=pld.WaitCmp.Ge"
REFUSED = [
    # operations and where they stand
    ("kernel", "a = pld.world_size()", "HOST orchestration context"),
    ("host", "t = pl.load(x, [0, 0], [8, 8])", "Move this operation into a lower-level function: an in-core function"),
    ("host", "t = pl.reshape(x, [64])", "'pl.reshape' cannot be used in a HOST function"),
    ("host", "pl.assemble(y, x, [0, 0], atomic=pl.AtomicType.Add)", "only supported inside an InCore function"),
    ("host", "wrapper(s, w, v, x, y, 0)", "'device'|device="),
    ("kernel", "pld.tile.foo(w)", r"pld\.tile"),
    ("kernel", "pld.system.foo(w)", r"pld\.system\.foo"),
    ("kernel", "pld.foo.bar(w)", r"pld\.foo\.bar'(.|\n)*the short forms are .*pld\.world_size, .*pld\.remote_store$"),
    ("kernel", "pld.put(w, 0, x)", "did you mean 'pld.tensor.put'"),
    ("kernel", "a = pld.rank(w)", "CommCtx"),
    ("kernel", "a = pld.get_comm_ctx(x)", "must be a DistributedTensor, got Tensor"),
    ("kernel", "a = pld.get_comm_ctx(w, to=1)", "no kwargs but dt"),
    ("kernel", "a = pld.get_comm_ctx(w, w)", "exactly 1 positional argument"),
    ("kernel", "a = pld.get_comm_ctx()", "exactly 1 positional argument"),
    ("host", "a = pld.world_size(1)", "no positional arguments"),
    ("host", "a = pld.world_size(of=1)", "no kwargs"),
    # signals
    ("kernel", f"pld.system.notify(s, 0, [0, 0], {ADD})", "requires exactly 4 positional arguments"),
    ("kernel", f"pld.system.notify(s, 0, [0, 0], 1, 2, {ADD})", "requires exactly 4 positional arguments"),
    ("kernel", f"pld.system.notify(x, 0, [0, 0], 1, {ADD})", "target must be a DistributedTensor"),
    ("kernel", f"pld.system.notify(s, t, [0, 0], 1, {ADD})", "peer must be a scalar"),
    ("kernel", f"pld.system.notify(s, 0, [0], 1, {ADD})", "offsets rank"),
    ("kernel", f"pld.system.notify(s, 0, [0, 0], t, {ADD})", "value must be a scalar"),
    ("kernel", "pld.system.notify(s, 0, [0, 0], 1, op=pld.WaitCmp.Ge)", "must be NotifyOp.AtomicAdd or NotifyOp.Set"),
    ("kernel", f"pld.system.wait(s, [0, 0], {GE})", "requires exactly 3 positional arguments"),
    ("kernel", f"pld.system.wait(s, [0, 0], t, {GE})", "expected must be a scalar"),
    ("kernel", f"pld.system.wait(s, [0, 0], 1.5, {GE})", "expected must be an integer or index scalar"),
    ("kernel", f"pld.system.wait(s, [0.5, 0], 1, {GE})", "offset 0 must be an integer or index scalar"),
    ("kernel", "pld.system.wait(s, [0, 0], 1, cmp=pld.NotifyOp.Set)", "must be WaitCmp.Eq or WaitCmp.Ge"),
    ("kernel", f"pld.system.wait(w, [0, 0], 1, {GE})", "INT32"),
    # collectives
    ("kernel", "pld.tensor.allreduce(x, s, op=pld.ReduceOp.Sum)", "must be a DistributedTensor"),
    ("kernel", "pld.tensor.allreduce(w, x, op=pld.ReduceOp.Sum)", "must be a DistributedTensor"),
    ("kernel", "pld.tensor.allreduce(w, v, op=pld.ReduceOp.Sum)", "signal.*INT32"),
    ("kernel", "pld.tensor.broadcast(w, s)", "missing 1 required .*'root'"),
    ("kernel", "pld.tensor.broadcast(w, s, root=0.5)", "root must be an integer or index scalar"),
    ("kernel", "pld.tensor.barrier(s, s)", "requires exactly 1 positional argument"),
    ("kernel", "pld.tensor.barrier()", "requires exactly 1 positional argument"),
]


@pytest.mark.parametrize("place, statements, words", REFUSED)
def test_words(place, statements, words):
    with pytest.raises(pypto.Error, match=words) as caught:
        run(place, statements)
    for line in str(caught.value).splitlines():
        assert line.count("pld.system.") < 3 and "must be must" not in line


CLEAR = f"ctx = pld.get_comm_ctx(u)\npld.system.notify(s, pld.rank(ctx), [0, 0], 1, {ADD})\npld.system.notify(s, 0, [0, 0], -1, {ADD})"
# What has these words elsewhere has a meaning here.
LIFTED = {
    "Rebinding loop-carried DistributedTensor": ("kernel", f"u = w\nfor i in pl.range(n + 2):\n    u = v\n{CLEAR}"),
    "Assigning a different DistributedTensor in each branch of an": ("kernel", f"u = w\nif n > 0:\n    u = v\n{CLEAR}"),
    "Cannot determine the communication context": ("kernel", f"u = w[0:4, 0:8]\n{CLEAR}"),
    "does not support op 'tensor.reshape'": ("wrapper", "u = pl.reshape(w, [4, 16])"),
    "no kwargs": ("kernel", "ctx = pld.get_comm_ctx(dt=w)"),
}


@pytest.mark.parametrize("words", LIFTED)
def test_programs_that_run_here(words):
    run(*LIFTED[words])


def test_a_property_that_raises():
    """What the script's own code raises while it is parsed is told as such."""

    class Shape:
        @property
        def rows(self):
            raise RuntimeError("no rows yet")

    text = "@pl.jit\ndef f(x: pl.Tensor[[8, 8], pl.FP32]):\n    for i in pl.range(SHAPE.rows):\n        pass\n"
    with pytest.raises(ParserSyntaxError, match="Failed to parse function 'f': RuntimeError: no rows yet"):
        from_text(text, SHAPE=Shape())["f"](np.zeros((8, 8), np.float32), config=config(1))


def test_a_property_that_raises_an_error_without_a_name():
    """Not even the name of an exception's class is asked of the script's code."""

    class Nameless(type):
        @property
        def __name__(cls):
            raise ValueError("no name")

    class Missing(RuntimeError, metaclass=Nameless):
        pass

    class Shape:
        @property
        def rows(self):
            raise Missing("no rows yet")

    text = "@pl.jit\ndef f(x: pl.Tensor[[8, 8], pl.FP32]):\n    for i in pl.range(SHAPE.rows):\n        pass\n"
    with pytest.raises(ParserSyntaxError, match="Failed to parse function 'f': Missing: no rows yet"):
        from_text(text, SHAPE=Shape())["f"](np.zeros((8, 8), np.float32), config=config(1))
