"""Names that only a loop binds, read after it: what Python says, or one clear error (check.unbound)."""

import textwrap

import numpy as np
import pytest

import pypto
import test_flow
from programs import config, from_text

# As in test_flow, and `None` where Python raises UnboundLocalError.
BODIES = {
    "range": """
        for i in pl.range(n):
            m = i * 2
        """,
    "while": """
        k = 0
        while k < n:
            m = k + 7
            k = k + 1
        """,
    "while with break before": """
        k = 0
        while True:
            if k >= n:
                break
            m = k
            k = k + 1
        """,
    "the loop variable": """
        for m in pl.range(n):
            pass
        """,
    "the loop variable of nested loops": """
        for k in pl.range(n):
            for m in pl.range(k):
                pass
        """,
    "a rebound loop variable": """
        for m in pl.range(n):
            m = m + 3
        """,
    "a literal": """
        for i in pl.range(n):
            m = 3
        """,
    "turns that continue": """
        for i in pl.range(5):
            if i < n:
                continue
            m = i
            n = n + 2
        """,
    "break before and after": """
        for i in pl.range(4):
            if i == n:
                break
            m = i * 10
            if i == d:
                break
        """,
    "an inner loop in a later turn": """
        for k in pl.range(3):
            for i in pl.range(n - k):
                m = 10 * k + i
        """,
    "read in the outer loop": """
        t = 0
        for k in pl.range(3):
            for i in pl.range(n - 2 * k):
                last = 10 * k + i
            t = t * 3 + last
        m = t
        """,
    "two loops": """
        for i in pl.range(n - 3):
            m = 3
        for i in pl.range(n):
            m = m + i
        """,
    "bound by either loop": """
        for i in pl.range(n - 3):
            m = 3 + i
        for i in pl.range(d):
            m = 100 + i
        """,
    "a branch binds it, too": """
        if n > 1:
            m = 5
        else:
            for i in pl.range(n):
                m = i
        """,
    "loops in both branches": """
        if d > 1:
            for i in pl.range(n):
                m = i
        else:
            for i in pl.range(n - 1):
                m = 2 * i
        """,
    "the right side of and": """
        for i in pl.range(n):
            last = i
        m = 0
        if n > 0 and last > 1:
            m = last
        if n <= 0 or last == 0 or d == last:
            m = m + 5
        """,
    "a choice": """
        for i in pl.range(n):
            last = i
        m = last if n > 0 else -1
        m = m + (1 if n <= 0 else last)
        """,
    "read in one branch only": """
        for i in pl.range(n):
            last = i
        m = 0
        if d > 0:
            m = last
        elif n > 0:
            m = last + 1
        """,
    "read where it may be checked already": """
        for i in pl.range(n):
            last = i
        m = 0
        if d > 1:
            m = last
        m = m + last
        """,
    "read by later turns": """
        for i in pl.range(n):
            last = i
        m = 0
        for k in pl.range(d):
            m = m + last
            last = last + 1
        """,
    "wider in a later loop": """
        for i in pl.range(n):
            m = pl.cast(i, pl.INT32)
        for i in pl.range(d):
            m = i + 100
        """,
    "augmented": """
        for i in pl.range(n):
            m = i
        m += 4
        """,
}


def python_value(body, n, d):
    try:
        return test_flow.python_value(body, n, d)
    except UnboundLocalError:
        return None


@pytest.mark.parametrize("name", BODIES)
def test_names_of_loops_are_what_python_says(name):
    host = test_flow.program(BODIES[name])
    seen = set()
    for n in (-1, 0, 1, 2, 5):
        for d in (-1, 1, 2):
            expected = python_value(BODIES[name], n, d)
            seen.add(expected)
            if expected is not None:
                assert test_flow.kernel_value(host, 1, n, d) == [expected], (n, d)
                continue
            with pytest.raises(pypto.DeviceError, match="PYPTO-R507.*Variable '(m|last)' is not"):
                test_flow.kernel_value(host, 1, n, d)
    assert len(seen) > 1


TILES = """
@pl.jit.incore
def k(
    x: pl.Tensor[[4, 8], pl.INT32],
    y: pl.InOut[pl.Tensor[[4, 8], pl.INT32]],
    n: pl.Scalar[pl.INT64],
):
{kernel}

@pl.jit
def c(
    x: pl.Tensor[[4, 8], pl.INT32],
    y: pl.InOut[pl.Tensor[[4, 8], pl.INT32]],
    n: pl.Scalar[pl.INT64],
):
{wrapper}

@pl.jit.host
def h(
    x: pl.Tensor[[NR, 4, 8], pl.INT32],
    y: pl.InOut[pl.Tensor[[NR, 4, 8], pl.INT32]],
    n: pl.Scalar[pl.INT64],
):
{host}
"""

DOUBLE = "pl.store(pl.mul(pl.load(x, [0, 0], [4, 8]), 2), [0, 0], y)"


def run(n, kernel=DOUBLE, wrapper="k(x, y, n)", host="c(x[0], y[0], n, device=0)"):
    indented = {
        plane: textwrap.indent(textwrap.dedent(text), "    ")
        for plane, text in (("kernel", kernel), ("wrapper", wrapper), ("host", host))
    }
    program = from_text(TILES.format(**indented))["h"]
    x = np.arange(32, dtype=np.int32).reshape(1, 4, 8)
    y = np.zeros_like(x)
    program(x, y, n, config=config(1))
    return x[0], y[0]


def fails(name, **planes):
    with pytest.raises(pypto.DeviceError, match=f"PYPTO-R507.*Variable '{name}' is not") as caught:
        run(0, **planes)
    return str(caught.value)


def test_a_tile():
    kernel = """
        for i in pl.range(n):
            row = pl.load(x, [i, 0], [1, 8])
        other = pl.load(x, [0, 0], [1, 8])
        pl.store(other, [1, 0], y)
        pl.store(row, [0, 0], y)
        """
    x, y = run(3, kernel)
    np.testing.assert_array_equal(y[:2], x[[2, 0]])
    fails("row", kernel=kernel)


def test_a_tile_of_computed_extents():
    kernel = """
        for i in pl.range(n):
            rows = pl.load(x, [0, 0], [4, 8], [i, 8])
        pl.store(rows, [0, 0], y)
        """
    x, y = run(3, kernel)
    np.testing.assert_array_equal(y[:2], x[:2])
    assert (y[2:] == 0).all()
    fails("rows", kernel=kernel)


def test_an_array():
    kernel = """
        for i in pl.range(n):
            a = pl.array.create(2, pl.INT32)
            a[1] = pl.cast(i, pl.INT32)
        pl.write(y, [0, 0], a[1])
        """
    assert run(3, kernel)[1][0, 0] == 2
    fails("a", kernel=kernel)


def test_a_handle_of_one_storage_needs_no_turn():
    kernel = """
        for i in pl.range(n):
            z = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], y)
        pl.store(pl.load(x, [3, 0], [1, 8]), [3, 0], z)
        """
    for n in (0, 2):
        x, y = run(n, kernel)
        expected = np.zeros_like(x)
        expected[:n] = x[:n]
        expected[3] = x[3]
        np.testing.assert_array_equal(y, expected)


def test_a_view():
    kernel = """
        for k in pl.range(3):
            outer = x[k : k + 1, :]
            for i in pl.range(n - k):
                inner = x[i : i + 1, :]
                same = outer
            pl.store(pl.load(inner, [0, 0], [1, 8]), [0, 0], y)
            pl.store(pl.load(same, [0, 0], [1, 8]), [1, 0], y)
        """
    x, y = run(2, kernel)
    np.testing.assert_array_equal(y[:2], x[[0, 1]])
    fails("inner", kernel=kernel)


def test_a_view_that_turns_leave_as_it_was():
    kernel = """
        for i in pl.range(n):
            row = x[i : i + 1, :]
            if i == 2:
                continue
            kept = row
        pl.store(pl.load(kept, [0, 0], [1, 8]), [0, 0], y)
        """
    x, y = run(3, kernel)
    np.testing.assert_array_equal(y[0], x[1])
    fails("kept", kernel=kernel)


def test_a_wrapper():
    wrapper = """
        for i in pl.range(n):
            turns = i + 1
        k(x, y, turns)
        """
    x, y = run(2, wrapper=wrapper)
    np.testing.assert_array_equal(y, 2 * x)
    assert "turns" in fails("turns", wrapper=wrapper)


def test_a_host_function():
    host = """
        for i in pl.range(n):
            turns = i + 1
        c(x[0], y[0], turns, device=0)
        """
    x, y = run(2, host=host)
    np.testing.assert_array_equal(y, 2 * x)
    message = fails("turns", host=host)
    assert "assign it before the loop, too" in message


def test_a_scope_that_reads_it():
    wrapper = """
        for i in pl.range(n):
            turns = i
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.write(y, [0, 0], pl.cast(turns + 5, pl.INT32))
        """
    assert run(3, wrapper=wrapper)[1][0, 0] == 7
    fails("turns", wrapper=wrapper)


def test_a_scope_that_binds_it_anew():
    wrapper = """
        for i in pl.range(n):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [i, 0], [1, 8])
                pl.store(t, [i, 0], y)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [3, 0], [1, 8])
            pl.store(t, [3, 0], y)
        """
    x, y = run(0, wrapper=wrapper)
    np.testing.assert_array_equal(y[3], x[3])
    assert (y[:3] == 0).all()


def test_one_branch_of_an_if_stays_an_error():
    body = """
        for i in pl.range(n):
            if i > 1:
                m = i
        """
    with pytest.raises(pypto.errors.UndefinedVariableError, match="in only one branch of the 'if'"):
        test_flow.kernel_value(test_flow.program(body), 1, 1, 1)
