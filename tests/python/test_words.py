"""Words of the language that are no operations: Python has them too, with help, and where they
cannot stand is said of each."""

import inspect

import pytest

import pypto.language as pl
from programs import config, from_text
from pypto.language.parser import InvalidOperationError, ParserSyntaxError

ITERATORS = ["range", "parallel", "unroll", "pipeline", "while_"]
WORDS = [*ITERATORS, "cond", "yield_", "static_assert", "static_print", "func_attr", "min", "max", "dim"]

PROGRAM = """\
@pl.jit.incore
def kernel(n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[1], pl.INT32]]):
    {line}

@pl.jit
def chip(n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[1], pl.INT32]]):
    kernel(n, y)
"""


def refused(line, error, words):
    import numpy as np

    with pytest.raises(error, match=words) as caught:
        from_text(PROGRAM.format(line=line))["chip"](1, np.zeros(1, np.int32), config=config(1))
    return caught.value


@pytest.mark.parametrize("name", WORDS)
def test_python_has_them(name):
    word = getattr(pl, name)
    assert word.__doc__.endswith(".") and inspect.signature(word).parameters
    assert name in pl.__all__
    with pytest.raises(TypeError, match="part of the DSL"):
        word()


def test_parameters():
    assert str(inspect.signature(pl.pipeline)) == "(start, stop=None, step=None, *, stage, init_values=None)"
    assert str(inspect.signature(pl.yield_)) == "(*values)"
    assert pl.tensor.dim.__doc__ == pl.dim.__doc__


@pytest.mark.parametrize("name", ITERATORS)
def test_iterators_out_of_place(name):
    error = refused(f"m = pl.{name}(3)", ParserSyntaxError, "only be the iterator of a for loop")
    assert f"pl.{name}" in error.message and "for i in" in error.hint


def test_misspelt():
    error = refused("pl.static_asert(n == 1)", InvalidOperationError, "Unknown operation")
    assert error.hint == "did you mean 'pl.static_assert'?"
