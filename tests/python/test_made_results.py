"""Functions that return tensors of their own: "binding the result of a callee with no Out/InOut parameter allocates a
fresh zeroed host tensor of the declared return shape", and whatever a caller may do with it."""

import numpy as np
import pytest

import pypto
import pypto.language as pl
from pypto import ir
from pypto.ir import DistributedCompiledProgram, DistributedConfig
from programs import config, from_text

TEXT = """
M = pl.dynamic("M")

@pl.jit.incore
def add_kernel(a: pl.Tensor[[M, 8], pl.FP32], b: pl.Tensor[[M, 8], pl.FP32], c: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    for i in pl.range(M):
        pl.store(pl.add(pl.load(a, [i, 0], [1, 8]), pl.load(b, [i, 0], [1, 8])), [i, 0], c)
    return c

@pl.jit.incore
def first_row_kernel(x: pl.Tensor[[M, 8], pl.FP32], y: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    return pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], y)

@pl.jit
def twice(x: pl.Tensor[[M, 8], pl.FP32]) -> pl.Tensor[[M, 8], pl.FP32]:
    y = pl.create_tensor([M, 8], dtype=pl.FP32)
    y = add_kernel(x, x, y)
    return y

@pl.jit
def first_row(x: pl.Tensor[[M, 8], pl.FP32]) -> pl.Tensor[[M, 8], pl.FP32]:
    y = pl.create_tensor([M, 8], dtype=pl.FP32)
    return first_row_kernel(x, y)

@pl.jit
def two(x: pl.Tensor[[M, 8], pl.FP32], n: pl.Scalar[pl.INT32]):
    rows = M * 2 + n
    y = pl.create_tensor([M, 8], dtype=pl.FP32)
    z = pl.create_tensor([rows, 8], dtype=pl.FP32)
    add_kernel(x, x, y)
    add_kernel(y, y, z[:M])
    return y, z

@pl.jit
def add(a: pl.Tensor[[M, 8], pl.FP32], b: pl.Tensor[[M, 8], pl.FP32], c: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    return add_kernel(a, b, c)

@pl.jit.host
def h({params}out: pl.Out[pl.Tensor[[NR, M, 8], pl.FP32]]):
{body}
    return {returned}
"""
PARAMS = "x: pl.Tensor[[NR, M, 8], pl.FP32], n: pl.Scalar[pl.INT32], "


def host(body, returned="out", params=PARAMS):
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return from_text(TEXT.format(params=params, body=lines, returned=returned))["h"]


def run(body, devices, rows=3, n=1, returned="out"):
    """x, out, and what the call gives."""
    h = host(body, returned)
    x = np.random.default_rng(devices).random((devices, rows, 8), np.float32)
    for _ in range(2):  # memory that was used before is as good as new
        out = np.full_like(x, -1)
        given = h(x, n, out, config=config(devices))
    return x, out, given


EACH = """
for r in pl.range(pld.world_size()):
    y = twice(x[r], device=r)
    add(y, x[r], out[r], device=r)
"""


@pytest.mark.parametrize("devices, rows", [(1, 1), (2, 5), (4, 3), (64, 2)])
def test_each_dispatch_of_a_loop_has_its_own(devices, rows, transport):
    x, out, given = run(EACH, devices, rows)
    assert given is None
    assert (out == x + x + x).all()


def test_another_device_reads_it_behind_its_writer(transport):
    x, out, _ = run(
        """
for r in pl.range(pld.world_size()):
    y = twice(x[r], device=r)
    add(y, y, out[r], device=(r + 1) % pld.world_size())
""",
        4,
    )
    assert (out == 4 * x).all()


def test_it_is_zeroed_each_time(transport):
    """Kernels write its first row only, in memory that earlier turns have filled."""
    body = """
for i in pl.range(200):
    y = twice(x[0], device=0)
    z = first_row(y, device=0)
    add(z, z, out[0], device=0)
"""
    x, out, _ = run(body, 1, rows=4)
    assert (out[0, 0] == 4 * x[0, 0]).all()
    assert (out[0, 1:] == 0).all()


def test_several_results_with_shapes_of_dimensions_and_numbers(transport):
    x, out, _ = run(
        """
for r in pl.range(pld.world_size()):
    y, z = two(x[r], n + 1, device=r)
    add(y, z[:M], out[r], device=r)
""",
        2,
        rows=2,
        n=1,
    )
    assert (out == 6 * x).all()


def test_a_result_may_be_ignored_and_need_no_device(transport):
    body = """
for r in pl.range(pld.world_size()):
    twice(x[r], device=r)
    y = twice(x[r])
    add(y, x[r], out[r])
"""
    x, out, _ = run(body, 2)
    assert (out == 3 * x).all()


@pytest.mark.parametrize("n", [0, 1, 5])
def test_it_goes_from_turn_to_turn_and_behind_the_loop(n, transport):
    body = """
y = twice(x[0], device=0)
for i in pl.range(n):
    y = twice(y, device=i % 2)
add(y, y, out[1], device=1)
add(x[0], x[0], out[0], device=0)
"""
    x, out, _ = run(body, 2, n=n)
    assert (out[1] == x[0] * 2.0 ** (n + 2)).all()


def test_branches_merge_it_with_other_tensors(transport):
    body = """
for r in pl.range(pld.world_size()):
    if r == 0:
        t = x[0]
    else:
        t = twice(x[r], device=r)
    add(t, t, out[r], device=r)
"""
    x, out, _ = run(body, 3)
    assert (out[0] == 2 * x[0]).all() and (out[1:] == 4 * x[1:]).all()


def test_a_wrapper_may_return_what_its_scope_computes():
    names = from_text(
        """
@pl.jit
def square(x: pl.Tensor[[4, 8], pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.mul(x, x)
    return y

@pl.jit.host
def h(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    y = square(x, device=0)
    with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:, :] = pl.add(y, x)
    return out
"""
    )
    x = np.random.default_rng(1).random((4, 8), np.float32)
    out = np.zeros_like(x)
    names["h"](x, out, config=config(1))
    assert (out == x * x + x).all()
    assert (names["square"](x) == x * x).all()


def test_windows_beside_it(transport):
    """Its shape may follow from a window; the ranks meet, so both must run at once."""
    names = from_text(
        """
W = pl.dynamic("W")

@pl.jit.incore
def swap_kernel(x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, W], pl.FP32]],
                box: pl.InOut[pld.DistributedTensor[[1, W], pl.FP32]],
                bell: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    me = pld.rank(pld.get_comm_ctx(box))
    peer = 1 - me
    pld.remote_store(pl.load(x, [0, 0], [1, 8]), box, peer=peer, offsets=[0, 0])
    pld.system.notify(bell, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
    pld.system.wait(bell, offsets=[peer, 0], expected=1, cmp=pld.WaitCmp.Ge)
    return pl.store(pl.load(box, [0, 0], [1, 8]), [0, 0], y)

@pl.jit
def swap(x: pl.Tensor[[1, 8], pl.FP32], box: pl.InOut[pld.DistributedTensor[[1, W], pl.FP32]],
         bell: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    y = pl.create_tensor([1, W], dtype=pl.FP32)
    return swap_kernel(x, y, box, bell)

@pl.jit.incore
def copy_kernel(y: pl.Tensor[[1, 8], pl.FP32], out: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
    return pl.store(pl.load(y, [0, 0], [1, 8]), [0, 0], out)

@pl.jit
def copy(y: pl.Tensor[[1, 8], pl.FP32], out: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
    return copy_kernel(y, out)

@pl.jit.host
def h(x: pl.Tensor[[NR, 1, 8], pl.FP32], out: pl.Out[pl.Tensor[[NR, 1, 8], pl.FP32]]):
    box_buf = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
    bell_buf = pld.alloc_window_buffer(4 * pld.world_size())
    for r in pl.range(pld.world_size()):
        box = pld.window(box_buf, [1, 8], dtype=pl.FP32)
        bell = pld.window(bell_buf, [pld.world_size(), 1], dtype=pl.INT32)
        y = swap(x[r], box, bell, device=r)
        copy(y, out[r], device=r)
    return out
"""
    )
    x = np.random.default_rng(1).random((2, 1, 8), np.float32)
    out = np.zeros_like(x)
    names["h"](x, out, config=config(2))
    assert (out == x[::-1]).all()


# ---- what Python gets ----


def test_a_host_function_returns_it_to_python(transport):
    x, out, given = run("y = twice(x[1], device=1)\nadd(y, y, out[0], device=0)", 2, returned="y")
    assert (given == 2 * x[1]).all()
    assert (out[0] == 4 * x[1]).all()


def test_a_host_function_returns_several_and_its_own(transport):
    body = """
y, z = two(x[0], n, device=0)
own = pl.create_tensor([M, 8], dtype=pl.FP32)
add(y, x[0], own, device=1)
add(x[0], x[0], out[0], device=1)
"""
    x, out, given = run(body, 2, n=3, returned="own, out, z")
    own, z = given
    assert (own == 3 * x[0]).all()
    assert z.shape == (9, 8) and (z[:3] == 4 * x[0]).all() and (z[3:] == 0).all()


def test_a_program_without_host_function_returns_it():
    names = from_text(TEXT.format(params=PARAMS, body="    pass", returned="out"))
    x = np.random.default_rng(1).random((3, 8), np.float32)
    assert (names["twice"](x, config=config(1)) == 2 * x).all()
    y, z = names["two"](x, 2)
    assert (y == 2 * x).all() and (z[:3] == 4 * x).all()


def test_of_the_library_of_the_arguments():
    torch = pytest.importorskip("torch")
    names = from_text(TEXT.format(params=PARAMS, body="    pass", returned="out"))
    x = torch.rand(3, 8)
    y = names["twice"](x)
    assert isinstance(y, torch.Tensor) and torch.equal(y, 2 * x)


def test_a_compiled_program_makes_it_or_takes_it():
    """It is the last parameter: left out in a call that returns it, given to one that works in place."""
    h = host("y = twice(x[0], device=0)\nadd(y, y, out[0], device=0)", "y, out")
    x = np.random.default_rng(1).random((1, 3, 8), np.float32)
    compiled = h.compile(x, 1, np.zeros_like(x), config=config(1))
    assert compiled.param_names == ["x", "n", "out", "y"]
    out, y = np.zeros_like(x), np.zeros((3, 8), np.float32)
    assert compiled(x, 1, out, y) is None
    assert (y == 2 * x[0]).all() and (out == 4 * x).all()
    with pytest.raises(pypto.errors.ValueError, match="contains dynamic dimensions"):
        compiled(x, 1)
    with compiled.prepare() as rt:
        for _ in range(3):
            out[:], y[:] = 0, 0
            rt(x, 1, out, y)
            assert (y == 2 * x[0]).all() and (out == 4 * x).all()
        with pytest.raises(pypto.errors.TypeError, match=r"expects 4 arguments \(x, n, out, y\), got 1"):
            rt(x)


def test_prepared_workers_use_it_between_dispatches(transport):
    h = host(EACH)
    x = np.random.default_rng(1).random((2, 3, 8), np.float32)
    compiled = h.compile(x, 1, np.zeros_like(x), config=config(2))
    with compiled.prepare() as rt:
        for k in range(5):
            out = np.zeros_like(x)
            rt(x * k, 1, out)
            assert (out == (x * k + x * k) + x * k).all()


def test_an_extent_that_python_cannot_know():
    names = from_text(
        """
M = pl.dynamic("M")
@pl.jit.incore
def k(x: pl.Tensor[[M * 2, 8], pl.FP32], y: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    return pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], y)
@pl.jit
def half(x: pl.Tensor[[M * 2, 8], pl.FP32]):
    y = pl.create_tensor([M, 8], dtype=pl.FP32)
    return k(x, y)
@pl.jit.host
def h(x: pl.Tensor[[6, 8], pl.FP32], out: pl.Out[pl.Tensor[[3, 8], pl.FP32]]):
    y = half(x, device=0)
    copy(y, out, device=0)
    return out
@pl.jit.incore
def copy(y: pl.Tensor[[M, 8], pl.FP32], out: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    for i in pl.range(M):
        pl.store(pl.load(y, [i, 0], [1, 8]), [i, 0], out)
"""
    )
    x = np.ones((6, 8), np.float32)
    with pytest.raises(pypto.errors.ValueError, match=r"the shape \[M, 8\] of the result 'y' does not follow"):
        names["half"](x)
    out = np.full((3, 8), -1, np.float32)
    names["h"](x, out, config=config(1))  # the host's code can
    assert (out[0] == 1).all() and (out[1:] == 0).all()


# ---- class form ----


@pl.program
class Chained:
    @pl.function(type=pl.FunctionType.InCore)
    def add(
        self, x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
    ) -> pl.Tensor[[4, 8], pl.FP32]:
        t = pl.load(x, [0, 0], [4, 8])
        return pl.store(pl.add(t, t), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: pl.Tensor[[4, 8], pl.FP32]) -> pl.Tensor[[4, 8], pl.FP32]:
        y: pl.Tensor[[4, 8], pl.FP32] = pl.create_tensor([4, 8], dtype=pl.FP32)
        y = self.add(x, y)
        return y

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[4, 8], pl.FP32]) -> pl.Tensor[[4, 8], pl.FP32]:
        y = self.chip(x, device=0)
        z = self.chip(y, device=1)
        return z


def test_the_class_form(transport, tmp_path):
    x = np.random.default_rng(1).random((4, 8), np.float32)
    devices = DistributedConfig(device_ids=[0, 1])
    compiled = ir.compile(Chained, platform="cpu", distributed_config=devices, output_dir=tmp_path / "o")
    assert (compiled(x) == 4 * x).all()
    again = DistributedCompiledProgram.from_dir(compiled.output_dir)
    assert (again(x) == 4 * x).all()


# ---- what cannot be ----

WRAPPER = """
@pl.jit.incore
def k(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    return pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], y)

@pl.jit
def w(x: pl.Tensor[[4, 8], pl.FP32], n: pl.Scalar[pl.INT32]){annotation}:
{body}
"""


@pytest.mark.parametrize(
    "body, problem",
    [
        (
            "for i in pl.range(2):\n    y = pl.create_tensor([4, 8], dtype=pl.FP32)\n    y = k(x, y)\nreturn y",
            "'w' returns tensor 'y', which is made in a loop or branch",
        ),
        (
            "if n > 0:\n    y = pl.create_tensor([4, 8], dtype=pl.FP32)\n    k(x, y)\nelse:\n"
            "    y = pl.create_tensor([4, 8], dtype=pl.FP32)\nreturn y",
            "the returned value is not the same parameter on all paths",
        ),
        (
            "y = pl.create_tensor([4, 8], dtype=pl.FP32, init_value=1.0)\nreturn y",
            "'w' returns tensor 'y', which the caller creates, so it begins with zeros",
        ),
        (
            "f = pl.create_tensor([1], dtype=pl.INT32)\nm = pl.read(f, [0])\n"
            "y = pl.create_tensor([m, 8], dtype=pl.FP32)\nreturn y",
            "'w' returns tensor 'y', whose shape does not follow from the parameters alone",
        ),
        (
            "y = pl.create_tensor([4, 8], dtype=pl.FP32)\nz = pl.create_tensor([4, 8], dtype=pl.FP32)\n"
            "if n > 0:\n    return y\nreturn z",
            "the returns of 'w' give different parameters",
        ),
        (
            "y = pl.create_tensor([4, 8], dtype=pl.FP32)\nif n > 0:\n    t = y\nelse:\n    t = x\nreturn t",
            "the returned value is not the same parameter on all paths",
        ),
    ],
)
def test_what_cannot_be_returned(body, problem):
    text = WRAPPER.format(annotation="", body="".join(f"    {line}\n" for line in body.splitlines()))
    with pytest.raises(pypto.Error, match="PYPTO-S115") as caught:
        from_text(text)["w"].compile(n=pl.RUNTIME)
    assert problem in str(caught.value)


def test_the_annotation_must_agree():
    body = "    y = pl.create_tensor([4, 8], dtype=pl.FP32)\n    return y\n"
    text = WRAPPER.format(annotation=" -> pl.Tensor[[4, 9], pl.FP32]", body=body)
    with pytest.raises(pypto.Error, match=r"shape dimension 1 = 9 but expression has 8"):
        from_text(text)["w"](np.zeros((4, 8), np.float32), 1)


def test_early_returns_of_the_same_tensor():
    body = (
        "    y = pl.create_tensor([4, 8], dtype=pl.FP32)\n    if n > 0:\n        return y\n    return k(x, y)\n"
    )
    w = from_text(WRAPPER.format(annotation="", body=body))["w"]
    x = np.ones((4, 8), np.float32)
    assert (w(x, 1) == 0).all()
    assert (w(x, 0) == 1).all()


def test_a_kernel_has_none():
    text = WRAPPER.format(annotation="", body="    return k(x, x)\n").replace(
        "    return pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], y)",
        "    z = pl.create_tensor([4, 8], dtype=pl.FP32)\n    return z",
    )
    with pytest.raises(pypto.Error, match="a function returns storage of its parameters, not a Tensor"):
        from_text(text)["w"](np.zeros((4, 8), np.float32), 1)
