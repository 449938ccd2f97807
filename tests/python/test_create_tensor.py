"""pl.create_tensor in host functions (shared by all devices), wrappers and kernels (of the device)."""

import os
import re
import resource
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import pypto
from programs import config, from_text

PROGRAM = """
@pl.jit.incore
def add(a: pl.Tensor[[4, 8], pl.INT32], b: pl.Tensor[[4, 8], pl.INT32], c: pl.Out[pl.Tensor[[4, 8], pl.INT32]]):
    c[:] = a + b
    return c

@pl.jit
def step(a: pl.Tensor[[4, 8], pl.INT32], b: pl.Tensor[[4, 8], pl.INT32], c: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
         n: pl.Scalar[pl.INT64]):
{wrapper}
    return c

@pl.jit.host
def h(x: pl.Tensor[[NR, 4, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, 4, 8], pl.INT32]], n: pl.Scalar[pl.INT64]):
{host}
    return y
"""
HOST = "for r in pl.range(pld.world_size()):\n    step(x[r], x[r], y[r], n, device=r)"


def program(wrapper="add(a, b, c)", host=HOST):
    def indented(text):
        return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")

    return from_text(PROGRAM.format(wrapper=indented(wrapper), host=indented(host)))["h"]


def run(wrapper="add(a, b, c)", host=HOST, devices=1, n=1):
    h = program(wrapper, host)
    x = np.arange(devices * 32, dtype=np.int32).reshape(devices, 4, 8)
    y = np.zeros_like(x)
    for _ in range(3):  # memory that was used before is as good as new
        h(x, y, n, config=config(devices))
    return x, y


@pytest.mark.parametrize("devices", [1, 2])
def test_scratch_of_a_wrapper(devices):
    wrapper = """
        t = pl.create_tensor([4, 8], dtype=pl.INT32)
        u = pl.create_tensor(shape=[3, 4, 8], dtype=pl.INT32, init_value=7)
        add(a, t, c)
        add(a, c, t)
        add(t, u[2], u[0])
        for i in pl.range(2):
            v = pl.create_tensor([4, 8], pl.INT32)
            add(u[0], u[1], v)
            add(u[0], v, u[1])
        add(u[0], u[1], c)
        """
    x, y = run(wrapper, devices=devices)
    u0 = x * 2 + 7
    u1 = u0 + (u0 + 7)
    u1 = u0 + (u0 + u1)
    assert (y == u0 + u1).all()


def test_a_tensor_made_in_a_kernel():
    text = PROGRAM.replace(
        "    c[:] = a + b\n",
        "    t = pl.create_tensor([8, 4], dtype=pl.INT32)\n"
        "    t[0, 3] = 9\n    c[:] = a + pl.reshape(t, [4, 8])\n",
    )
    h = from_text(text.format(wrapper="    add(a, b, c)", host=textwrap.indent(HOST, "    ")))["h"]
    x = np.arange(32, dtype=np.int32).reshape(1, 4, 8)
    y = np.zeros_like(x)
    h(x, y, 1, config=config(1))
    x[0, 0, 3] += 9
    assert (y == x).all()


@pytest.mark.parametrize("devices", [1, 2])
def test_shared_by_the_devices(devices):
    host = """
        t = pl.create_tensor([NR, 4, 8], dtype=pl.INT32)
        u = pl.create_tensor([pld.world_size(), 4, 8], pl.INT32)
        for r in pl.range(pld.world_size()):
            step(x[r], u[r], t[r], n, device=r)
        last = pld.world_size() - 1
        for r in pl.range(pld.world_size()):
            step(t[last - r], t[0], y[r], n, device=r)
        """
    x, y = run(host=host, devices=devices)
    assert (y == x[::-1] + x[0]).all()


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16", "INT8", "UINT16", "INT64", "BOOL"])
def test_initial_values(dtype):
    values = dict(BOOL="True", INT8="-3", INT64="-3", UINT16="65000")
    value = values.get(dtype, "1.5")
    text = f"""
@pl.jit.incore
def k(t: pl.Tensor[[3, 5], pl.{dtype}], u: pl.Tensor[[3, 5], pl.{dtype}], y: pl.Out[pl.Tensor[[2, 3, 5], pl.{dtype}]]):
    y[0] = pl.load(t, [0, 0], [3, 5])
    y[1] = pl.load(u, [0, 0], [3, 5])

@pl.jit
def c(u: pl.Tensor[[3, 5], pl.{dtype}], y: pl.Out[pl.Tensor[[2, 3, 5], pl.{dtype}]]):
    t = pl.create_tensor([3, 5], pl.{dtype}, init_value={value})
    k(t, u, y)

@pl.jit.host
def h(y: pl.Out[pl.Tensor[[2, 3, 5], pl.{dtype}]]):
    u = pl.create_tensor([3, 5], pl.{dtype}, init_value={value})
    c(u, y, device=0)
"""
    torch = pytest.importorskip("torch")
    kinds = dict(FP32="float32", FP16="float16", BF16="bfloat16", INT8="int8", UINT16="int16", INT64="int64", BOOL="bool")
    if dtype == "UINT16":
        y = np.zeros((2, 3, 5), np.uint16)
    else:
        y = torch.zeros((2, 3, 5), dtype=getattr(torch, kinds[dtype]))
    from_text(text)["h"](y, config=config(1))
    assert (y == eval(value)).all()


def resident_bytes():
    """Of this process and its workers, shared memory included."""
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                parent = file.read().rpartition(")")[2].split()[1]
            if str(os.getpid()) in (pid, parent):
                with open(f"/proc/{pid}/statm") as file:
                    total += int(file.read().split()[1]) * resource.getpagesize()
        except OSError:
            pass
    return total


def test_nothing_is_lost_over_many_calls():
    """Each call makes 8 MiB in the wrapper and 8 MiB in the host function."""
    wrapper = "t = pl.create_tensor([2097152], dtype=pl.INT32)\nt[n] = 5\nadd(a, b, c)\nc[0, 0] = t[n] + t[n + 1]"
    host = "t = pl.create_tensor([2097152], dtype=pl.INT32)\n" + HOST
    h = program(wrapper, host)
    x = np.ones((1, 4, 8), np.int32)
    y = np.zeros_like(x)
    before = 0
    for i in range(24):
        h(x, y, 7, config=config(1))
        before = resident_bytes() if i == 3 else before
    assert y[0, 0, 0] == 5
    assert resident_bytes() - before < 64 << 20


TURNS = {
    "plain": """
        for i in pl.range(n):
            t = pl.create_tensor([2048, 4096], pl.INT32)
            add(a, t[0:4, 0:8], c)
            add(c, b, t[8:12, 8:16])
            add(t[8:12, 8:16], t[0:4, 0:8], c)
        """,
    "early ends": """
        for i in pl.range(n):
            for k in pl.range(2):
                t = pl.create_tensor([2048, 4096], pl.INT32)
                u = t[8:12, 8:16]
                add(a, b, u)
                if i % 3 == k:
                    continue
                if i % 5 == 4:
                    break
                v = pl.reshape(t, [4096, 2048])
                add(v[0:4, 0:8], u, c)
        """,
    "unordered tasks": """
        for i in pl.range(n):
            with pl.manual_scope():
                t = pl.create_tensor([2048, 4096], pl.INT32)
                with pl.at(level=pl.Level.CORE_GROUP) as one:
                    t[0:4, 0:8] = a + b
                with pl.at(level=pl.Level.CORE_GROUP, deps=[one]):
                    c[:] = t[0:4, 0:8] + t[4:8, 0:8]
        """,
}


def limited(statement):
    """Runs a statement of this file in a process, and workers, of 2 GiB of address space."""
    limits = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\nfrom test_create_tensor import *\n"
    return subprocess.run([sys.executable, "-c", limits + statement], cwd=os.path.dirname(__file__), capture_output=True, text=True)


@pytest.mark.parametrize("name", TURNS)
def test_turns_of_a_loop_share_memory(name):
    """Together 3 GiB and more: the compiler has put a release behind the last use of each."""
    done = limited(f"x, y = run(TURNS[{name!r}], n=100)\nassert (y == 2 * x).all()\nprint('same')")
    assert (done.stdout, done.returncode) == ("same\n", 0), done.stderr


def test_tensors_that_later_turns_see_stay():
    """Nothing of these ends with its turn: what is read is what was written two turns before."""
    wrapper = """
        t = pl.create_tensor([4, 8], pl.INT32)
        add(a, t, t)
        last = t
        for i in pl.range(n):
            u = pl.create_tensor([4, 8], pl.INT32)
            if i > 3:
                last = u[0:4, 0:8]
            add(last, b, u)
            t = last
            last = u
        add(t, last, c)
        """
    x, y = run(wrapper, n=3)
    assert (y == 3 * x + 4 * x).all()


def test_too_many_that_stay():
    """The error comes before the memory is exhausted, and names line, what was asked, and what is there."""
    wrapper = """
        last = pl.create_tensor([4096, 8192], pl.INT32)
        for i in pl.range(n):
            t = pl.create_tensor([4096, 8192], pl.INT32)
            add(a, last[0:4, 0:8], c)
            last = t
        """
    done = limited(f"run({wrapper!r}, n=100000)")
    assert "pypto.errors.MemoryError" in done.stderr
    assert re.search(r":\d+: \[PYPTO-H406\]: step failed on rank 0: pl.create_tensor: no memory for \d+ bytes; tensors made earlier take \d+ MiB on this device", done.stderr)


HUGE = "[1024, 1024, 1024, 1024, 1024]"


@pytest.mark.parametrize(
    "wrapper, host, words",
    [
        (f"t = pl.create_tensor({HUGE}, dtype=pl.INT32)\nadd(a, b, c)", HOST, r"pl.create_tensor: \d+ more MiB of memory were asked for, \d+ MiB are available"),
        ("add(a, b, c)", f"t = pl.create_tensor({HUGE}, dtype=pl.INT32)\n{HOST}", "do not fit into the staging area"),
        ("for i in pl.range(n):\n    t = pl.create_tensor([i - 1], dtype=pl.INT32)\nadd(a, b, c)", HOST, r"\[-1\] is no shape"),
    ],
)
def test_what_cannot_be_had(wrapper, host, words):
    """A call that cannot have its memory fails; the next one is fine."""
    for _ in range(2):
        with pytest.raises(pypto.Error, match=words):
            run(wrapper, host)
    run()


@pytest.mark.parametrize(
    "wrapper, host, error, words",
    [
        ("pass", "for r in pl.range(1):\n    t = pl.create_tensor([4, 8], dtype=pl.INT32)", ValueError, "must be a top-level statement"),
        ("pass", "if pld.world_size() > 1:\n    t = pl.create_tensor([4, 8], dtype=pl.INT32)", ValueError, "must be a top-level statement"),
        ("t = pl.create_tensor([4, 8], pl.INT32, shape=[2])", HOST, pypto.Error, "multiple values for argument 'shape'"),
        ("t = pl.create_tensor([4, 8], pl.INT32, dtype=pl.INT32)", HOST, pypto.Error, "multiple values for argument 'dtype'"),
        ("t = pl.create_tensor([4, 8])", HOST, pypto.Error, "missing 1 required positional argument: 'dtype'"),
        ("t = pl.create_tensor([4, 0], pl.INT32)", HOST, pypto.Error, "must be positive"),
        ("t = pl.create_tensor([], pl.INT32)", HOST, pypto.Error, "shape must be non-empty"),
        ("t = pl.create_tensor([4], pl.INT32, init_value=n)", HOST, pypto.Error, "must be a constant"),
        ("t = pl.create_tensor([4], pl.INT8, init_value=300)", HOST, pypto.Error, "does not fit"),
        ("t = pl.create_tensor([4, 8], pl.FP32)\nadd(t, t, c)", HOST, pypto.Error, "fp32"),
        ("c = pl.create_tensor([4, 8], pl.INT32)\nadd(a, b, c)", HOST, pypto.Error, "'c' is an output"),
    ],
)
def test_refused(wrapper, host, error, words):
    with pytest.raises(error, match=words):
        run(wrapper, host)


def test_ended_tensors_of_packed_elements():
    """What ends with a turn gives back the bytes that it had: two elements lie in one."""
    program = from_text("""\
@pl.jit.incore
def copy(x: pl.Tensor[[256], pl.INT4], y: pl.Out[pl.Tensor[[256], pl.INT4]]):
    pl.store(pl.load(x, [0], [256]), [0], y)

@pl.jit
def wrapper(x: pl.Tensor[[3, 256], pl.INT4], y: pl.Out[pl.Tensor[[3, 256], pl.INT4]]):
    for i in pl.range(100):                         # so many that some have run when the next ones are submitted
        t = pl.create_tensor([256], pl.INT4)
        copy(x[i % 3], t)
        copy(t, y[i % 3])
    u = pl.create_tensor([256], pl.INT4)
    v = pl.create_tensor([256], pl.INT4)
    w = pl.create_tensor([256], pl.INT4)
    copy(x[0], u)
    copy(x[1], v)
    copy(x[2], w)
    copy(u, y[0])
    copy(v, y[1])
    copy(w, y[2])
""")
    x = np.arange(3 * 128, dtype=np.uint32).astype(np.uint8).reshape(3, 128)
    x[2] = 255 - x[0]
    y = np.zeros_like(x)
    program["wrapper"](x, y)
    np.testing.assert_array_equal(y, x)
