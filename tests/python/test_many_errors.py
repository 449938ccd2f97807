"""Several mistakes in one program: each is told once, what follows from it is not, and the most important
comes first."""

import numpy as np
import pytest

import pypto
import pypto.language as pl
from programs import config, from_text

PROGRAM = """\
@pl.jit.incore
def kernel(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]], w, n: pl.Scalar[pl.INT32]):
    a = pl.load(x, [0, 0], [4, SIZE])  # 2
    b = pl.add(a, a)
    c = pl.mul(b, a)
    q = pl.load(w, [0, 0], [4, 8])
    r = q + c
    for i in pl.range(TURNS):  # 3
        c = c + i
        r = pl.exp(r)
        y[i, 0] = q[0, i]
    if r > 3:
        d = pl.load(x, [0], [4, 8])  # 10
    else:
        d = b
    e = d * 2
    f, g = undefined(e)  # 4
    h = f + g
    u = pl.exp(n)  # 11
    k = u + u
    m = [i for i in x]  # 6
    l = m[0] + 1
    while l:
        l = l + 1
    s, t = (1, 2, 3)  # 7
    v = s + t
    p = pl.load(x, [0, 0], [4, 8])
    o = pl.load(x, [0, 0], [4, 4])
    z = pl.add(p, o)  # 12
    pl.store(z, [0, 0], y)
    return pl.store(h, [0, 0], y)

@pl.jit
def wrapper(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    t = kernel(x, y, x, 3, 4)  # 8
    z = kernel(t, y, x, 3)
    u = kernel(z, y)  # 9
    return u

@pl.jit.host
def host(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    for r in pl.range(pld.world_sice()):  # 5
        wrapper(x[r], y, device=r)  # 13
"""


def errors_of(text, *args):
    host = from_text(text)["host"]
    with pytest.raises(pypto.Error) as caught:
        host(*args, config=config(1))
    return caught.value


def test_mistakes_are_told_once_and_sorted():
    x = np.zeros((4, 8), np.float32)
    error = errors_of(PROGRAM, x, x.copy())
    assert error.code == "PYPTO-T201" and "'w' is missing type annotation" in error.message
    lines = PROGRAM.splitlines()
    told = [d.span["line"] for d in error.diagnostics]
    marked = {int(line.partition("  # ")[2]): n for n, line in enumerate(lines, 1) if "  # " in line}
    assert told == [2, *(marked[i] for i in range(2, 14))]
    assert all(d.hint and d.source == lines[d.span["line"] - 1] for d in error.diagnostics)
    assert isinstance(error, pypto.language.parser.ParserTypeError)


def test_a_function_of_two_types_makes_its_mistakes_once():
    text = """\
@pl.jit.incore
def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    pl.store(missing, [0, 0], y)

@pl.jit
def wrapper(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    kernel(x, y)
    kernel(y, pl.create_tensor([4, 4], dtype=pl.FP32))

@pl.jit.host
def host(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    wrapper(x, y, device=0)
"""
    x = np.zeros((4, 8), np.float32)
    assert [d.message for d in errors_of(text, x, x.copy()).diagnostics] == [
        "Undefined variable 'missing'"
    ]


def test_a_class_tells_the_mistakes_of_all_its_methods():
    with pytest.raises(pl.parser.UndefinedVariableError) as caught:
        from_text("""\
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def first(self, x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        pl.store(pl.load(x, [0], [4, 8]), [0, 0], y)

    @pl.function(type=pl.FunctionType.InCore)
    def second(self, x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        pl.store(missing, [0, 0], y)
""")
    assert [d.span["line"] for d in caught.value.diagnostics] == [9, 5]
