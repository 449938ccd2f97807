"""Functions without code of their own: what is spliced, with which names and values."""

import numpy as np
import pytest
import torch

import pypto.language as pl
from programs import config, from_text
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.language.parser import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError

TEXT = """\
T = pl.Tensor[[1, 8], pl.FP32]
H = pl.Tensor[[NR, 1, 8], pl.FP32]
SCALE = 3.0

{decorator}
def helper(t, n: pl.Scalar[pl.INT32]):
{body}

@pl.jit.incore
def kernel(x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
    t = pl.load(x, [0, 0], [1, 8])
    u = {call}
    pl.store(pl.add(t, u), [0, 0], y)

@pl.jit
def wrapper(x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
    kernel(x, y)

@pl.jit.host
def host(x: pl.Tensor[[NR, 1, 8], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 8], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        wrapper(x[r], y[r], device=r)
"""

LOOP = """\
    for i in pl.range(n):
        t = pl.mul(t, SCALE)
    u = pl.add(t, 1.0)
    return u
"""


def program(decorator="@pl.jit.inline", body=LOOP, call="helper(t, 2)"):
    return TEXT.format(decorator=decorator, body=body.rstrip(), call=call)


# Not known when the program is compiled: each rank takes the path of its own.
def at_run_time(text, values):
    """What ranks 0, 1, ... give whose x is that."""
    text = text.replace("EARLY", "pl.cast(pl.read(x, [0, 0]), pl.INT32)").replace("def helper(t, n", "def helper(x, t, n")
    text = text.replace("helper(t, ", "helper(x, t, ")
    x = np.ones((len(values), 1, 8), np.float32) * np.float32(values)[:, None, None]
    y = np.zeros_like(x)
    from_text(text)["host"](x, y, config=config(len(values)))
    return (y[:, 0, 0] - x[:, 0, 0]).tolist()


def result(text):
    x = np.ones((2, 1, 8), np.float32)
    y = np.zeros_like(x)
    from_text(text)["host"](x, y, config=config(2))
    assert (y == y[0, 0, 0]).all()
    return y[0, 0, 0]


@pytest.mark.parametrize(
    "decorator",
    ["@pl.jit.inline", "@pl.jit.inline()", "@pl.jit.opaque", "@pl.inline", "@pl.function"],
)
def test_values_are_passed_and_names_are_separate(decorator, transport):
    # The caller's t is 1 after the call: the helper's t is another name.
    body = LOOP
    text = program(decorator, body)
    if decorator == "@pl.function":
        text = text.replace("def helper(t, n", "def helper(t: pl.Tile[[1, 8], pl.FP32], n")
        with pytest.raises(ParserTypeError, match="a Tile is local"):
            from_text(text)
        return
    assert result(text) == 1 + 10


def test_in_loops_and_in_one_another():
    text = program(call="helper(helper(t, 1), 1)")
    assert result(text) == 1 + 13
    text = program().replace(
        "    u = helper(t, 2)\n",
        "    u = t\n    for k in pl.range(3):\n        if k != 1:\n            u = helper(u, 1)\n",
    )
    assert result(text) == 1 + 13


def test_a_helper_that_calls_a_helper():
    text = program(body="    return double(double(t))\n").replace(
        "@pl.jit.inline\ndef helper",
        "@pl.jit.inline\ndef double(t):\n    return pl.mul(t, 2.0)\n\n@pl.jit.inline\ndef helper",
    )
    assert result(text) == 5


def test_several_results_and_scalars():
    text = program(body="    return pl.mul(t, 2.0), n + 5\n", call="helper(t, 2)").replace(
        "    u = helper(t, 2)\n",
        "    u, k = helper(t, 2)\n    for i in pl.range(k):\n        u = pl.add(u, 1.0)\n",
    )
    assert result(text) == 10


def test_early_returns():
    body = """\
    if EARLY > n:
        return pl.add(t, 100.0)
    u = pl.mul(t, 2.0)
    if EARLY == n:
        if n > 1:
            v = pl.add(u, 200.0)
            return v
    elif EARLY < 0:
        return u
    u = pl.add(u, 300.0)
    return u
"""
    assert at_run_time(program(body=body), [5, 2, 1, -1]) == [105, 204, 302, -2]
    assert result(program(body="    if SCALE > 1:\n        return t\n    return n\n")) == 2  # constants choose


def test_early_returns_of_several_values_and_of_none():
    body = """\
    if EARLY > n:
        return pl.add(t, 100.0), n
    if EARLY < 0:
        return t, 1
    return pl.mul(t, 2.0), pl.cast(EARLY, pl.INT32) + 3
"""
    text = program(body=body).replace(
        "    u = helper(t, 2)\n",
        "    u, k = helper(t, 2)\n    for i in pl.range(k):\n        u = pl.add(u, 1000.0)\n",
    )
    assert at_run_time(text, [5, 1, -4]) == [2105, 4002, 996]
    body = """\
    if EARLY > n:
        return
    out = pl.store(pl.add(t, 100.0), [0, 0], out)
"""
    text = program(body=body).replace("def helper(t, n:", "def helper(t, n: pl.Scalar[pl.INT32], out, m:")
    text = text.replace("    u = helper(t, 2)\n    pl.store(pl.add(t, u), [0, 0], y)", "    pl.store(t, [0, 0], y)\n    helper(t, 2, y, 0)")
    assert at_run_time(text, [5, 1]) == [0, 100]


def test_an_early_return_of_a_writer():
    body = """\
    if EARLY > n:
        return pl.store(pl.add(t, 100.0), [0, 0], out)
    return pl.store(pl.add(t, 200.0), [0, 0], out)
"""
    text = program(body=body).replace("def helper(t, n:", "def helper(t, n: pl.Scalar[pl.INT32], out, m:")
    text = text.replace("    u = helper(t, 2)\n    pl.store(pl.add(t, u), [0, 0], y)", "    y = helper(t, 2, y, 0)\n    y[0, 7] = 0.0")
    assert at_run_time(text, [5, 1]) == [100, 200]


def test_keywords_and_names_of_its_own_module():
    assert result(program(call="helper(n=2, t=t)")) == 11


def test_a_helper_stores_through_a_parameter():
    text = program(body="    pl.store(t, [0, 0], out)\n").replace("def helper(t, n:", "def helper(out, t, n:")
    text = text.replace("    u = helper(t, 2)\n    pl.store(pl.add(t, u), [0, 0], y)", "    helper(y, t, 1)")
    assert result(text) == 1


@pytest.mark.parametrize(
    "change, error, words",
    [
        (dict(call="helper(t)"), ParserTypeError, r"expects 2 argument\(s\), got 1"),
        (dict(call="helper(t, 1, 2)"), ParserTypeError, r"expects 2 argument\(s\), got 3"),
        (dict(call="helper(t, 1.5)"), ParserTypeError, "argument 'n' of 'helper'"),
        (dict(body="    return helper(t, n)\n"), UnsupportedFeatureError, "calls itself"),
        (
            dict(body="    for i in pl.range(n):\n        if i > 1:\n            return t\n    return t\n"),
            UnsupportedFeatureError,
            "a return inside a loop or scope is not supported in 'helper'",
        ),
        (
            dict(body="    if pl.read(t, [0, 0]) > 0.5:\n        return t\n"),
            ParserSyntaxError,
            "'helper' returns a value on some paths only",
        ),
        (
            dict(body="    if pl.read(t, [0, 0]) > 0.5:\n        return t\n    return n\n"),
            ParserSyntaxError,
            r"'helper' returns Tile.* at line 8, but int32 at line 9",
        ),
        (dict(decorator="@pl.inline", body="    u = t\n"), ParserSyntaxError, "has no return value"),
    ],
)
def test_mistakes(change, error, words):
    with pytest.raises(error, match=words):
        result(program(**change))


def test_calling_one_from_python():
    with pytest.raises(TypeError, match="is inlined"):
        from_text(program())["helper"](1, 2)


def test_directions_are_deprecated():
    with pytest.warns(DeprecationWarning, match="Direction annotations are deprecated"):
        from_text("@pl.jit.inline\ndef f(x: pl.Out[pl.Tensor]):\n    pass")


def test_what_decorators_refuse():
    with pytest.raises(TypeError, match="does not accept an auto_scope= argument"):
        pl.jit.opaque(auto_scope=True)
    with pytest.raises(TypeError, match="does not accept a level= argument"):
        pl.jit.inline(level=1)


def test_methods_of_a_program(transport):
    @pl.inline
    def twice(t):
        return pl.add(t, t)

    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Inline)
        def plus(self, t, n: pl.Scalar[pl.INT32]):
            for _ in pl.range(n):
                t = pl.add(t, 1.0)
            return t

        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]):
            return pl.store(twice(self.plus(pl.load(x, [0], [4]), 3)), [0], y)

        @pl.function
        def both(self, x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]):
            return self.k(x, y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def inner(self, x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]):
            return self.both(x, y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def c(self, x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]):
            z = self.inner(x, y)
            return z

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def h(self, x: pl.Tensor[[2, 4], pl.FP32], y: pl.Out[pl.Tensor[[2, 4], pl.FP32]]):
            for r in pl.range(2):
                self.c(x[r], y[r], device=r)
            return y

    assert isinstance(twice, pl.InlineFunction)
    run = ir.compile(P, distributed_config=DistributedConfig(device_ids=[0, 1]))
    assert (run(torch.ones(2, 4)) == 8).all()


# ---- what is for hardware only ----


def test_arguments_of_extern(tmp_path):
    source = tmp_path / "k.cpp"
    source.write_text("")
    for wrong, error, words in [
        (dict(), ValueError, "core_type must be"),
        (dict(core_type="cube", source=source), ValueError, "core_type must be"),
        (dict(core_type="aiv"), ValueError, "requires source"),
        (dict(core_type="mix", aic_source=source), ValueError, "requires both aic_source and aiv_source"),
        (dict(core_type="aic", source=source, aiv_source=source), ValueError, "has no aiv_source"),
        (dict(core_type="aic", source=tmp_path / "none.cpp"), ValueError, "source file not found.*none.cpp"),
        (dict(core_type="aic", source=3), TypeError, "source must be a path"),
        (dict(core_type="aic", source=source, include_dirs="x"), TypeError, "must be a sequence of paths"),
        (dict(core_type="aic", source=source, include_dirs=[3]), TypeError, "must be a sequence of paths"),
        (dict(core_type="aic", source=source, level=1), TypeError, "does not accept a level= argument"),
    ]:
        with pytest.raises(error, match=words):
            pl.jit.extern(**wrong)
    with pytest.raises(TypeError, match="decorates a function, not an int"):
        pl.jit.extern(core_type="aic", source=source, include_dirs=[tmp_path])(3)
    mixed = pl.jit.extern(core_type="mix", aic_source=str(source), aiv_source=source)
    assert repr(mixed(lambda x: x)).startswith("<@pl.jit.extern function")


def test_extern_kernels_are_refused(tmp_path):
    (tmp_path / "k.cpp").write_text("")
    decorator = f"@pl.jit.extern(core_type='aiv', source={str(tmp_path / 'k.cpp')!r})"
    namespace = from_text(program(decorator=decorator))
    x = np.ones((1, 1, 8), np.float32)
    with pytest.raises(UnsupportedFeatureError, match="'helper' is a hand-written kernel") as caught:
        namespace["host"](x, x)
    assert "@pl.jit.incore" in caught.value.hint
    with pytest.raises(TypeError, match="hand-written kernel"):
        namespace["helper"](1, 2)


@pytest.mark.parametrize("kind", ["Group", "Spmd", "Graph"])
def test_function_types_for_schedulers(kind):
    text = f"@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.{kind})\n    def f(self):\n        pass\n"
    with pytest.raises(UnsupportedFeatureError, match=f"FunctionType.{kind}") as caught:
        from_text(text)
    assert "FunctionType.InCore" in caught.value.hint


def test_external_sources():
    text = "@pl.program\nclass P:\n    @pl.function(external_source='k.cpp')\n    def f(self):\n        pass\n"
    with pytest.raises(UnsupportedFeatureError, match="external_source= names a kernel"):
        from_text(text)


def test_inline_wants_a_function():
    with pytest.raises(ParserSyntaxError, match="@pl.inline decorates a function, not an int"):
        pl.inline(3)
