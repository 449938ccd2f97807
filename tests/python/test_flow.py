"""Control flow and scalars of kernels: each body runs in a kernel and, read by Python itself, in
Python; what `m` is at its end must be the same. `n` is the rank plus a few numbers, `d` a small one.

A body is Python as far as its words go; `pl` is replaced by a stand-in there."""

import textwrap
import types

import numpy as np
import pytest

import pypto
from programs import config, from_text

PROGRAM = """
@pl.jit.incore
def k(
    x: pl.Tensor[[4, 8], pl.INT32],
    y: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
    n: pl.Scalar[pl.INT64],
    d: pl.Scalar[pl.INT64],
):
{body}
    return pl.store(pl.add(pl.load(x, [0, 0], [4, 8]), pl.cast(m, pl.INT32)), [0, 0], y)

@pl.jit
def c(
    x: pl.Tensor[[4, 8], pl.INT32],
    y: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
    n: pl.Scalar[pl.INT64],
    d: pl.Scalar[pl.INT64],
):
    return k(x, y, n, d)

@pl.jit.host
def h(
    x: pl.Tensor[[NR, 4, 8], pl.INT32],
    y: pl.Out[pl.Tensor[[NR, 4, 8], pl.INT32]],
    n: pl.Scalar[pl.INT64],
    d: pl.Scalar[pl.INT64],
):
    for r in pl.range(pld.world_size()):
        c(x[r], y[r], n + r, d, device=r)
    return y
"""

STAND_IN = types.SimpleNamespace(
    range=range,
    parallel=range,
    unroll=range,
    pipeline=lambda *bounds, stage: range(*bounds),
    min=min,
    max=max,
    const=lambda value, dtype: value,
    cast=lambda value, dtype: int(value),
    INT32=None,
    INT64=None,
    INDEX=None,
    FP32=None,
)


def program(body):
    return from_text(PROGRAM.format(body=textwrap.indent(textwrap.dedent(body), "    ")))["h"]


def kernel_value(host, devices, n, d):
    x = np.arange(devices * 32, dtype=np.int32).reshape(devices, 4, 8)
    y = np.zeros_like(x)
    host(x, y, n, d, config=config(devices))
    found = y - x
    for rank in range(devices):
        assert (found[rank] == found[rank, 0, 0]).all()
    return [int(found[rank, 0, 0]) for rank in range(devices)]


def python_value(body, n, d):
    text = textwrap.dedent(body)
    names = {"pl": STAND_IN, "n": n, "d": d}
    exec("def f(n, d):\n" + textwrap.indent(text, "    ") + "    return m\n", names)
    return names["f"](n, d)


def check(body, numbers=(0, 1, 5)):
    host = program(body)
    for n in numbers:
        for d in (1, 2, -3):
            for devices in (1, 2):
                expected = [python_value(body, n + rank, d) for rank in range(devices)]
                assert kernel_value(host, devices, n, d) == expected, (n, d)


BODIES = {
    "while": """
        m = 1
        while m < n * 3:
            m = m * 2 + 1
        """,
    "while that changes its parameter": """
        m = 0
        while n > 0:
            m = m + n
            n = n - 1
        """,
    "break": """
        m = 0
        for i in pl.range(n):
            if m > 4:
                break
            m = m + i
        """,
    "continue": """
        m = 0
        for i in pl.range(n):
            if i % 2 == 0:
                continue
            m = m + i
        """,
    "break with a value": """
        m = 0
        best = 100
        for i in pl.range(n):
            if i == 3:
                best = i * 10
                m = 7
                break
            elif i == 1:
                m = 3
                continue
            m = m + 1
        m = m + best
        """,
    "both in while True": """
        m = 0
        i = 0
        while True:
            i = i + 1
            if i > n:
                break
            if i == 2:
                continue
            m = m + i
        """,
    "the loop variable after a break": """
        i = 50
        for i in pl.range(n):
            if i == 2:
                break
        m = i
        """,
    "a loop variable that is rebound": """
        m = 0
        for i in pl.range(n):
            i = i * 2
            if i > 4:
                break
            m = m + i
        """,
    "an outer loop variable that is rebound": """
        m = 0
        for i in pl.range(n):
            for j in pl.range(3):
                i = i + j
            m = m + i
        """,
    "nested loops with jumps": """
        m = 0
        for i in pl.range(n):
            for j in pl.range(i, -1, -1):
                if j == 2:
                    continue
                if i * j > 6:
                    break
                m = m + j
            else_value = m
            if m > 20:
                break
        m = m * 2
        """,
    "a step of either sign": """
        m = 0
        for i in pl.range(n, -n, -2):
            m = m * 3 + i
        for i in pl.range(0, 3 * d, d):
            m = m + i
        """,
    "while inside for": """
        m = 0
        for i in pl.range(n):
            k = i
            while k > 0:
                if k == 3:
                    break
                m = m + k
                k = k // 2
        """,
    "early values": """
        m = 1
        done = False
        for i in pl.range(10):
            if done:
                continue
            m = m + i
            if m > n:
                done = True
        """,
    "conditional expressions": """
        m = n * 10 if n > 2 else d
        m = m + (1 if d > 0 else -1)
        m = m + (7 // n if n != 0 else 100)
        k = 0
        while (k + 1 if n > 1 else 5) < 5:
            k = k + 1
        m = m + k
        """,
    "min and max": """
        m = min(n, 3) + max(n, d, 2) * 10 + abs(d) * 100
        m = m + pl.min(n, d) * 1000 + pl.max(2, 3)
        """,
    "augmented assignment": """
        m = n
        m += 3
        m *= d
        m -= n
        m //= 2
        m %= 5
        m <<= 2
        m |= 1
        m ^= 3
        m &= 13
        m >>= 1
        """,
    "bits": """
        m = (n | 8) ^ (d & 7)
        m = m + (~n << 1) + (m >> 2) + 2 ** 5
        """,
    "floor division and remainder": """
        m = (n - 3) // 2 * 1000 + (n - 3) % 2 * 100 + n // d * 10 + n % d
        """,
    "tuples": """
        a, b = n, d
        a, b = b, a
        [c, e] = a, b
        f = 3
        m = a * 100 + b + c * 7 + e + f
        """,
    "constants": """
        m = pl.const(3, pl.INT64) + pl.cast(n, pl.INT64)
        """,
    "other iterators": """
        m = 0
        for i in pl.parallel(n):
            m = m + i
        for i in pl.unroll(1, 7, 2):
            m = m + i
        for i in pl.pipeline(0, n, 1, stage=2):
            m = m * 2 + i
        """,
    "loop variables of several loops": """
        m = 0
        i = 0
        k = 0
        for i in pl.range(n + 1):
            m = m + i
        for j in pl.range(n):
            for i in pl.range(3):
                m = m + 1
        m = m * 10 + i
        if n > 2:
            for k in pl.range(n):
                m = m + 1
        else:
            for k in pl.range(2):
                m = m + 2
        m = m * 10 + k
        """,
    "chained comparisons and logic": """
        m = 0
        if 0 < n <= 5 and not d == 2 or n == 6:
            m = 1
        """,
    "a swap in a loop": """
        a = 0
        b = 1
        for i in pl.range(n):
            a, b = b, a + b
        m = a
        """,
}


@pytest.mark.parametrize("name", BODIES)
def test_like_python(name):
    check(BODIES[name])


def test_a_step_of_zero_at_run_time():
    host = program("m = 0\nfor i in pl.range(0, 4, d):\n    m = m + 1\n")
    assert kernel_value(host, 2, 1, 2) == [2, 2]
    with pytest.raises(pypto.Error, match=r"the step of pl\.range is 0"):
        kernel_value(host, 2, 1, 0)


def refused(body, error, words):
    with pytest.raises(error, match=words):
        kernel_value(program(body), 1, 1, 1)


def test_jumps_that_no_loop_takes():
    """Outside of loops Python itself refuses them."""
    error = pypto.errors.InvalidOperationError
    refused(
        "m = 0\nfor i in pl.parallel(3):\n    break\n", error, "not supported inside parallel loops"
    )
    refused("m = 0\nfor i in pl.unroll(3):\n    break\n", error, "inside unrolled loops")


def test_what_is_known_at_compile_time(capfd):
    body = """
        a, b = x.shape
        pl.static_assert(a == 4 and b == 8, "shape")
        pl.static_assert(x.dtype.get_byte() == 4 and x.dtype.get_bit() == 32)
        pl.static_print("extents", x.shape, x.dtype)
        m = pl.tensor.dim(y, 1) + x.shape[0]
        """
    assert kernel_value(program(body), 1, 1, 1) == [12]
    assert "extents (4, 8) the dtype int32\n" in capfd.readouterr().out


def test_static_assert_refuses():
    error = pypto.errors.ParserError
    refused("m = 0\npl.static_assert(m == 1, 'never')\n", error, "static_assert failed: never")
    refused("m = 0\npl.static_assert(n == 1)\n", error, "compile-time evaluable")
    error = pypto.errors.ParserSyntaxError
    refused("m = 0\npl.static_assert()\n", error, "1 or 2 arguments")
    refused("m = 0\npl.static_assert(True, m)\n", error, "must be a string literal")


def test_operators_on_tiles():
    body = """
        t = pl.load(x, [0, 0], [4, 8])
        u = t * 3 + t - 2
        u += t
        u = -u if n > 100 else u - 5 * t
        w = 0 - (1 - (1 + u)) if n == 0 else u + 1
        pl.store(w, [0, 0], y)
        m = 0
        x = y
        """
    host = program(body)
    for n in (0, 1):
        assert kernel_value_minus(host, n) == (-2 if n == 0 else -1)


def kernel_value_minus(host, n):
    """y of a body that computes x * 3 + x - 2 + x - 5 * x, plus what depends on n."""
    x = np.arange(32, dtype=np.int32).reshape(1, 4, 8)
    y = np.zeros_like(x)
    host(x, y, n, 1, config=config(1))
    assert (y == y[0, 0, 0]).all()
    return int(y[0, 0, 0])


# Explicit carries are not Python: each body with what it computes.
CARRIES = {
    "sum": (
        """
        for i, (acc,) in pl.range(n, init_values=(0,)):
            total = pl.yield_(acc + i)
        m = total
        """,
        lambda n, d: sum(range(n)),
    ),
    "the init name keeps its value": (
        """
        a = 3
        for i, (b, c) in pl.range(0, n, 1, init_values=[a, 1]):
            t = b * 2
            b2, c2 = pl.yield_(c, t)
        m = a * 1000 + b2 * 10 + c2
        """,
        lambda n, d: 3000 + swap_and_double(n),
    ),
    "names of the body are its own": (
        """
        t = 5
        for i, (acc,) in pl.range(n, init_values=(t,)):
            t = acc + 1
            acc = pl.yield_(t)
        m = t * 100 + n
        """,
        lambda n, d: 500 + n,
    ),
    "while": (
        """
        for (k,) in pl.while_(init_values=(0,)):
            pl.cond(k < n)
            k_out = pl.yield_(k + 2)
        m = k_out
        """,
        lambda n, d: n + n % 2,
    ),
    "nested": (
        """
        for i, (acc,) in pl.range(n, init_values=(0,)):
            for j, (inner,) in pl.range(3, init_values=(acc,)):
                done = pl.yield_(inner + j * i)
            total = pl.yield_(done)
        m = total
        """,
        lambda n, d: sum(3 * i for i in range(n)),
    ),
    "if": (
        """
        if n > 2:
            m = pl.yield_(n)
        else:
            m = pl.yield_(d + 0)
        """,
        lambda n, d: n if n > 2 else d,
    ),
    "no yield": (
        """
        m = 0
        for i, (a,) in pl.range(n, init_values=(4,)):
            pl.static_assert(True)
        """,
        lambda n, d: 0,
    ),
    "a break": (
        """
        for i, (acc,) in pl.range(10, init_values=(0,)):
            if i == n:
                break
            total = pl.yield_(acc + i)
        m = total
        """,
        lambda n, d: sum(range(min(n, 10))),
    ),
}


def swap_and_double(n):
    b, c = 3, 1
    for _ in range(n):
        b, c = c, b * 2
    return b * 10 + c


@pytest.mark.parametrize("name", CARRIES)
def test_explicit_carries(name):
    body, expected = CARRIES[name]
    host = program(body)
    for n in (0, 1, 5):
        for devices in (1, 2):
            assert kernel_value(host, devices, n, 2) == [expected(n + r, 2) for r in range(devices)]


def test_a_condition_that_is_no_bool():
    refused("m = 0\nwhile n:\n    n = n - 1\n", pypto.Error, "while condition must be a Bool-typed")
