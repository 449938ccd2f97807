"""Window buffers and their views: allocation, aliasing, other types and shapes, parts; windows as ordinary
tensors; the symmetric heap behind them."""

import os

import numpy as np
import pytest
import torch

import pypto
from programs import config, from_text
from transfers import DTYPES, NUMPY, array, assert_same, run, values, zeros

TWO_VIEWS = """
@pl.jit.incore
def kernel(inp: pl.Tensor[[{a}], pl.{a_type}], out: pl.Out[pl.Tensor[[{b}], pl.{b_type}]],
           first: pld.DistributedTensor[[{a}], pl.{a_type}],
           second: pld.DistributedTensor[[{b}], pl.{b_type}],
           bell: pld.DistributedTensor[[NR], pl.INT32]):
    ctx = pld.get_comm_ctx(bell)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    pld.tensor.put(first, (me + 1) % n, inp)
    pld.system.notify(bell, (me + 1) % n, [0], 1, op=pld.NotifyOp.Set)
    pld.system.wait(bell, [0], 1, cmp=pld.WaitCmp.Eq)
    pld.tensor.get(out, me, second)

@pl.jit
def wrapper(inp: pl.Tensor[[{a}], pl.{a_type}], out: pl.Out[pl.Tensor[[{b}], pl.{b_type}]],
            first: pld.DistributedTensor[[{a}], pl.{a_type}],
            second: pld.DistributedTensor[[{b}], pl.{b_type}],
            bell: pld.DistributedTensor[[NR], pl.INT32]):
    kernel(inp, out, first, second, bell)

@pl.jit.host
def host(inputs: pl.Tensor[[NR, {a}], pl.{a_type}], outputs: pl.Out[pl.Tensor[[NR, {b}], pl.{b_type}]]):
    buf = pld.alloc_window_buffer({size})
    bell_buf = pld.alloc_window_buffer(pld.world_size() * 4)
    for r in pl.range(pld.world_size()):
        first = pld.window(buf, [{a}], dtype=pl.{a_type})
        second = pld.window(buf, [{b}], dtype=pl.{b_type})
        bell = pld.window(bell_buf, [pld.world_size()], dtype=pl.INT32)
        wrapper(inputs[r], outputs[r], first, second, bell, device=r)
"""


def two_views(size, a, a_type, b, b_type):
    shapes = {"a": ", ".join(map(str, a)), "b": ", ".join(map(str, b))}
    return from_text(TWO_VIEWS.format(size=size, a_type=a_type, b_type=b_type, **shapes))["host"]


# ---- allocation ----


@pytest.mark.parametrize(
    "size",
    [
        "64",
        "[4, 4], dtype=pl.FP32",
        "(2, 2, 4), dtype=pl.FP32",
        "4 * 4 * pl.FP32.get_byte()",
        "pld.world_size() * 32",
        "[pld.world_size(), 8], dtype=pl.FP32",
        "[1000], dtype=pl.INT64",
    ],
)
def test_forms_of_allocation(size, transport):
    host = two_views(size, [4, 4], "FP32", [16], "FP32")
    x = values((2, 4, 4), "FP32")
    y = np.zeros((2, 16), np.float32)
    host(x, y, config=config(2))
    assert_same(y, x[::-1].reshape(2, 16))


# ---- several views of the same bytes ----


@pytest.mark.parametrize("b_type", DTYPES)
@pytest.mark.parametrize("a_type", ["UINT8", "UINT16", "INT32", "UINT64"])
def test_views_of_other_types_see_the_bytes(a_type, b_type):
    width = 2 if b_type == "BF16" else NUMPY[b_type].itemsize
    raw = np.random.default_rng(6).integers(0, 2 if b_type == "BOOL" else 64, (2, 48), np.uint8)
    x = raw.view(NUMPY[a_type])  # bytes below 64: no float is a NaN
    y = zeros((2, 48 // width), b_type)
    two_views(48, x.shape[1:], a_type, y.shape[1:], b_type)(x, y, config=config(2))
    seen = y.view(torch.uint8).numpy() if b_type == "BF16" else y.view(np.uint8)
    assert_same(seen, raw[::-1])


def test_a_smaller_view_is_a_prefix():
    x = values((3, 5, 7), "INT16")
    y = np.zeros((3, 2, 3), np.int16)
    two_views("[5, 7], dtype=pl.INT16", [5, 7], "INT16", [2, 3], "INT16")(x, y, config=config(3))
    assert_same(y, np.roll(x, 1, axis=0).reshape(3, -1)[:, :6].reshape(3, 2, 3))


# ---- windows as ordinary tensors ----


def test_other_shapes_in_kernels(transport):
    """pl.reshape of a window is a window: offsets are its own, peers are addressed through it."""
    body = """
flat = pl.reshape(win, [24])
pld.tensor.put(flat, nxt, pl.reshape(inp, [24]))
ARRIVE 1
part = pl.slice(flat, [6], [12])
t = pld.remote_load(part, prev, [2], [4])
square = pl.reshape(part, [2, 3])
pl.store(t, [0], pl.reshape(out, [24]))
pld.tensor.get(out, prev, square, [2, 1], [0, 1], [2, 2])
pl.write(out, [3, 5], pl.read(square, [1, 0]))
"""
    x = values((3, 4, 6), "INT32")
    expected = np.zeros((3, 4, 6), np.int32)
    for r in range(3):
        far = x[r - 2].reshape(24)  # what rank r - 1 has in its window
        expected[r].reshape(24)[:4] = far[14:18]
        expected[r, 2:4, 1:3] = far[12:18].reshape(2, 3)[:, 1:]
        expected[r, 3, 5] = x[r - 1].reshape(24)[15]
    assert_same(run(body, x, "INT32"), expected)


def test_slices_and_slice_assignments(transport):
    body = """
win[0:2, 0:4] = inp[2:4, 2:6]
win[2, 1:3] = inp[0, 0:2]
win[3, 5] = inp[1, 1]
pld.system.notify(bell, nxt, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
pld.system.wait(bell, [0, 0], 1, cmp=pld.WaitCmp.Ge)
pld.tensor.get(out, prev, win)
"""
    x = values((2, 4, 6), "FP32")
    expected = np.zeros_like(x)
    expected[:, 0:2, 0:4] = x[::-1, 2:4, 2:6]
    expected[:, 2, 1:3] = x[::-1, 0, 0:2]
    expected[:, 3, 5] = x[::-1, 1, 1]
    assert_same(run(body, x, "FP32"), expected)


def test_computing_on_parts():
    body = """
pld.tensor.put(win, me, inp)
out[0:2, :] = pl.add(win[0:2, :], win[2:4, :])
out[2:4, 0:3] = win[0:2, 3:6]
"""
    x = values((1, 4, 6), "FP32")
    expected = np.zeros_like(x)
    expected[0, 0:2] = x[0, 0:2] + x[0, 2:4]
    expected[0, 2:4, 0:3] = x[0, 0:2, 3:6]
    assert_same(run(body, x, "FP32"), expected)


AS_TENSOR = """
@pl.jit.incore
def kernel(x: pl.Tensor[[1, 8], pl.FP32], mine: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
           y: pl.Out[pl.Tensor[[1, 8], pl.FP32]], box: pld.DistributedTensor[[1, 8], pl.FP32]):
    pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], mine)
    pl.store(pld.remote_load(box, pld.rank(pld.get_comm_ctx(box)), [0, 0], [1, 8]), [0, 0], y)

@pl.jit
def wrapper(x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
            box: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]]):
    kernel(x, box, y, box)

@pl.jit.host
def host(x: pl.Tensor[[NR, 1, 8], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 8], pl.FP32]]):
    buf = pld.alloc_window_buffer(32)
    for r in pl.range(pld.world_size()):
        box = pld.window(buf, [{view}], dtype=pl.FP32)
        wrapper(x[r], y[r], box, device=r)
"""


@pytest.mark.parametrize("view", ["1, 8", "8", "2, 4"])
def test_a_window_may_be_passed_as_a_tensor_and_under_another_shape(view):
    x = values((2, 1, 8), "FP32")
    y = np.zeros_like(x)
    from_text(AS_TENSOR.format(view=view))["host"](x, y, config=config(2))
    assert_same(y, x)


# The kernel is called with a part whose rows have gaps between them, and with one whose have not: neither call's shape is
# that of all calls, so that each is looked at when it runs.
PARTS = """
@pl.jit.incore
def fill(x: pl.Tensor[[4, 8], pl.INT32], w: pl.InOut[pld.DistributedTensor[[4, 8], pl.INT32]]):
    w[:, :] = x

@pl.jit.incore
def fetch(y: pl.Out[pl.Tensor[[1, 8], pl.INT32]], part: pld.DistributedTensor[[{declared}], pl.INT32]):
    for i in pl.range(8):
        y[0, i] = pl.read(part, [{index}])

@pl.jit
def wrapper(x: pl.Tensor[[4, 8], pl.INT32], y: pl.Out[pl.Tensor[[2, 1, 8], pl.INT32]],
            w: pl.InOut[pld.DistributedTensor[[4, 8], pl.INT32]]):
    fill(x, w)
    fetch(y[0], w[{part}])
    fetch(y[1], w[3:4, :])

@pl.jit.host
def host(x: pl.Tensor[[NR, 4, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, 2, 1, 8], pl.INT32]]):
    buf = pld.alloc_window_buffer([4, 8], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        w = pld.window(buf, [4, 8], dtype=pl.INT32)
        wrapper(x[r], y[r], w, device=r)
"""


@pytest.mark.parametrize(
    "declared, index, part",
    [
        ("2, 4", "i // 4, i % 4", "1:3, 2:6"),  # the shape that it has
        ("2, 4", "i // 4, i % 4", "2:3, :"),
        ("8", "i", "1:2, 0:8"),
        ("4, 2", "i // 2, i % 2", "0:4, 3:5"),
    ],
)
def test_parts_of_windows_where_the_callee_declares_another_shape(declared, index, part, transport):
    x = np.arange(64, dtype=np.int32).reshape(2, 4, 8)
    y = np.zeros((2, 2, 1, 8), np.int32)
    from_text(PARTS.format(declared=declared, index=index, part=part))["host"](x, y, config=config(2))
    taken = eval(f"x[:, {part}]")
    np.testing.assert_array_equal(y[:, 0], taken.reshape(2, 1, 8))
    np.testing.assert_array_equal(y[:, 1], x[:, 3:4])


@pytest.mark.parametrize(
    "declared, index, part, words",
    [
        ("8", "i", "1:3, 2:6", "of shape [2, 4] cannot be taken as [8]: it is a view with gaps"),
        ("1, 8", "0, i", "1:3, 2:6", "of shape [2, 4] cannot be taken as [1, 8]: it is a view with gaps"),
        ("2, 4", "i // 4, i % 4", "0:4, 3:5", "of shape [4, 2] cannot be taken as [2, 4]: it is a view with gaps"),
        ("2, 5", "i // 4, i % 4", "1:3, 2:6", "of shape [2, 4] cannot be taken as [2, 5]: it is a view with gaps"),
    ],
)
def test_parts_with_gaps_have_no_other_shape(declared, index, part, words):
    x, y = np.zeros((1, 4, 8), np.int32), np.zeros((1, 2, 1, 8), np.int32)
    with pytest.raises(pypto.DeviceError) as caught:
        from_text(PARTS.format(declared=declared, index=index, part=part))["host"](x, y, config=config(1))
    assert "window 'buf' (parameter 'part') " + words in str(caught.value)


# ---- sizes ----


@pytest.mark.parametrize(
    "size, words",
    [
        ("pld.world_size()", "a view of shape [4, 4] (fp32, 64 bytes) does not fit into window buffer 'buf' of 2 bytes"),
        ("pld.world_size() * 31", "does not fit into window buffer 'buf' of 62 bytes"),
        ("63", "a view of 64 bytes is larger than its buffer 'buf' of 63 bytes"),
        ("[4, 3], dtype=pl.FP32", "a view of 64 bytes is larger than its buffer 'buf' of 48 bytes"),
    ],
)
def test_a_view_larger_than_its_buffer(size, words):
    x = values((2, 4, 4), "FP32")
    y = np.zeros((2, 16), np.float32)
    with pytest.raises(ValueError) as caught:
        two_views(size, [4, 4], "FP32", [16], "FP32")(x, y, config=config(2))
    assert words in str(caught.value)
    assert "bytes" in caught.value.hint


def test_the_callee_s_shape_is_checked_against_the_buffer():
    """A parameter's declared shape counts, also where the view has another."""
    text = AS_TENSOR.format(view="4").replace("alloc_window_buffer(32)", "alloc_window_buffer(16)")
    x = values((1, 1, 8), "FP32")
    with pytest.raises(pypto.Error, match="does not fit into|larger than"):
        from_text(text)["host"](x, np.zeros_like(x), config=config(1))


@pytest.mark.parametrize("size", [1 << 46, 1 << 62])
def test_more_than_there_is(size):
    """The error says how much was asked and how much there is; the set goes on."""
    x = values((2, 4, 4), "FP32")
    y = np.zeros((2, 16), np.float32)
    with pytest.raises(MemoryError) as caught:
        two_views(size, [4, 4], "FP32", [16], "FP32")(x, y, config=config(2))
    assert f"window 'buf' of {size} bytes does not fit" in str(caught.value)
    assert "each of 2 devices has" in str(caught.value)
    assert caught.value.span["line"] > 0
    two_views("64", [4, 4], "FP32", [16], "FP32")(x, y, config=config(2))
    assert_same(y, x[::-1].reshape(2, 16))


# ---- the symmetric heap ----

GROW = """
@pl.jit.incore
def kernel(out: pl.Out[pl.Tensor[[2], pl.INT32]], big: pld.DistributedTensor[[{size}], pl.INT32],
           small: pld.DistributedTensor[[NR], pl.INT32]):
    ctx = pld.get_comm_ctx(small)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    pl.write(out, [0], pl.read(big, [0]) + pl.read(big, [{size} - 1]))
    pl.write(big, [0], me + 1)
    pl.write(big, [{size} - 1], me + 1)
    pld.system.notify(small, (me + 1) % n, [me], 1, op=pld.NotifyOp.Set)
    pld.system.wait(small, [(me + n - 1) % n], 1, cmp=pld.WaitCmp.Eq)
    t = pld.remote_load(big, (me + n - 1) % n, [{size} - 1], [1])
    pl.store(t, [1], out)

@pl.jit
def wrapper(out: pl.Out[pl.Tensor[[2], pl.INT32]], big: pld.DistributedTensor[[{size}], pl.INT32],
            small: pld.DistributedTensor[[NR], pl.INT32]):
    kernel(out, big, small)

@pl.jit.host
def host(outputs: pl.Out[pl.Tensor[[NR, 2], pl.INT32]]):
    big_buf = pld.alloc_window_buffer([{size}], dtype=pl.INT32)
    small_buf = pld.alloc_window_buffer(pld.world_size() * 4)
    for r in pl.range(pld.world_size()):
        big = pld.window(big_buf, [{size}], dtype=pl.INT32)
        small = pld.window(small_buf, [pld.world_size()], dtype=pl.INT32)
        wrapper(outputs[r], big, small, device=r)
"""


def test_the_heap_grows_and_every_call_finds_zeros(transport):
    hosts = {size: from_text(GROW.format(size=size))["host"] for size in (2, 1000, 300_000, 5_000_000)}
    for size in (2, 1000, 300_000, 5_000_000, 2, 300_000, 300_000, 1000, 5_000_000):
        y = np.full((2, 2), -1, np.int32)
        hosts[size](y, config=config(2))
        assert_same(y, [[0, 2], [0, 1]])


def test_the_heap_is_used_again(transport):
    """A hundred calls with 20 MB of windows each need no more memory than a few."""
    host = from_text(GROW.format(size=2_500_000))["host"]
    y = np.zeros((2, 2), np.int32)

    def used():
        """Bytes behind the memory files of this process, of which each worker set has one."""
        files = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        return sum(
            os.stat(file).st_blocks * 512
            for file in files
            if os.path.exists(file) and os.readlink(file).startswith("/memfd:")
        )

    for _ in range(3):
        host(y, config=config(2))
    before = used()
    assert before >= 20_000_000
    for _ in range(100):
        host(y, config=config(2))
    assert used() - before < 1_000_000  # queues grow a little; windows would be 2 GB
    assert_same(y, [[0, 2], [0, 1]])


# ---- dispatches ----

RING = """
@pl.jit.incore
def kernel(out: pl.Out[pl.Tensor[[1], pl.INT32]], bell: pld.DistributedTensor[[NR], pl.INT32],
           waits: pl.Scalar[pl.INT32]):
    ctx = pld.get_comm_ctx(bell)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    pld.system.notify(bell, (me + 1) % n, [0], 1, op=pld.NotifyOp.Set)
    pld.system.wait(bell, [0], waits, cmp=pld.WaitCmp.Ge)
    pl.write(out, [0], me + 1)

@pl.jit
def chip(out: pl.Out[pl.Tensor[[1], pl.INT32]], bell: pld.DistributedTensor[[NR], pl.INT32],
         waits: pl.Scalar[pl.INT32]):
    kernel(out, bell, waits)

@pl.jit.host
def host(outputs: pl.Out[pl.Tensor[[NR, 1], pl.INT32]], first: pl.Scalar[pl.INT32], waits: pl.Scalar[pl.INT32]):
    other_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    bell_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    other = pld.window(other_buf, [pld.world_size()], dtype=pl.INT32)
    bell = pld.window(bell_buf, [pld.world_size()], dtype=pl.INT32)
    chip(outputs[0], other, 0, device=0)
    for r in pl.range(pld.world_size()):
        if r >= first:
            chip(outputs[r], bell, waits, device=r)  # here
"""


@pytest.mark.parametrize("waits", [0, 1])
def test_every_device_of_a_domain_is_dispatched(waits, transport):
    host = from_text(RING)["host"]
    for _ in range(2):
        with pytest.raises(pypto.Error, match=r"domain comm_d1 \(window 'bell_buf'\) spans devices \[0, 1, 2\] but "
                           r"function 'chip' was dispatched only on \[1, 2\]") as caught:
            host(np.zeros((3, 1), np.int32), 1, waits, config=config(3))
        assert caught.value.code == "PYPTO-H412"
        assert "# here" in RING.splitlines()[caught.value.span["line"] - 1]
    y = np.zeros((3, 1), np.int32)
    host(y, 0, waits, config=config(3))
    assert_same(y, [[1], [2], [3]])


def test_a_domain_may_be_left_out_of_a_call(transport):
    y = np.zeros((3, 1), np.int32)
    from_text(RING)["host"](y, 3, 1, config=config(3))
    assert_same(y, [[1], [0], [0]])


LATE = """
@pl.jit.incore
def await_it(out: pl.Out[pl.Tensor[[1], pl.INT32]], bell: pld.DistributedTensor[[1], pl.INT32]):
    pld.system.wait(bell, [0], 1, cmp=pld.WaitCmp.Ge)
    pl.write(out, [0], 1)

@pl.jit.incore
def ring(out: pl.Out[pl.Tensor[[1], pl.INT32]], bell: pld.DistributedTensor[[1], pl.INT32],
         big: pld.DistributedTensor[[{size}], pl.UINT8]):
    pl.write(big, [{size} - 1], 1)
    pld.system.notify(bell, 0, [0], 1, op=pld.NotifyOp.Set)
    pl.write(out, [0], 2)

@pl.jit
def first(out: pl.Out[pl.Tensor[[1], pl.INT32]], bell: pld.DistributedTensor[[1], pl.INT32]):
    await_it(out, bell)

@pl.jit
def second(out: pl.Out[pl.Tensor[[1], pl.INT32]], bell: pld.DistributedTensor[[1], pl.INT32],
           big: pld.DistributedTensor[[{size}], pl.UINT8]):
    ring(out, bell, big)

@pl.jit.host
def host(outputs: pl.Out[pl.Tensor[[2, 1], pl.INT32]]):
    bell_buf = pld.alloc_window_buffer([1], dtype=pl.INT32)
    bell = pld.window(bell_buf, [1], dtype=pl.INT32)
    first(outputs[0], bell, device=0)
    big_buf = pld.alloc_window_buffer([{size}], dtype=pl.UINT8)
    big = pld.window(big_buf, [{size}], dtype=pl.UINT8)
    second(outputs[1], bell, big, device=1)
"""


def test_a_window_of_a_later_dispatch_waits_for_no_earlier_one(transport):
    """While the ranks still clear the windows of the call before, the heap has no room for another large one."""
    host = from_text(LATE.format(size=100 << 20))["host"]
    for _ in range(3):
        y = np.zeros((2, 1), np.int32)
        host(y, config=config(2))
        assert_same(y, [[1], [2]])


# ---- windows that only a part of the program uses that constants leave out ----

LEFT_OUT = """
@pl.jit
def fill(x: pl.Tensor[[1, 8], pl.INT32], win: pl.InOut[pld.DistributedTensor[[1, 8], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        win[:, :] = x

@pl.jit
def take(y: pl.Out[pl.Tensor[[1, 8], pl.INT32]], win: pld.DistributedTensor[[1, 8], pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:, :] = win[:, :]

@pl.jit
def ring(bell: pld.DistributedTensor[[NR, 1], pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.write(bell, [0, 0], 0)

@pl.jit.host
def host(x: pl.Tensor[[NR, 1, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, 1, 8], pl.INT32]], n: pl.Scalar[pl.INT32]):
    a_buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    b_buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    s_buf = pld.alloc_window_buffer([NR], dtype=pl.INT32)
    a = pld.window(a_buf, [1, 8], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        fill(x[r], a, device=r)
{body}
    for r in pl.range(pld.world_size()):
        take(y[r], a, device=r)
"""
VIEW_B = "b = pld.window(b_buf, [1, 8], dtype=pl.INT32)\n"
VIEW_S = "s = pld.window(s_buf, [NR, 1], dtype=pl.INT32)\n"
FILL_B = "for r in pl.range(pld.world_size()):\n        fill(x[r], b, device=r)\n"
RING_S = "for r in pl.range(pld.world_size()):\n        ring(s, device=r)\n"


@pytest.mark.parametrize(
    "body, factors",
    [
        # by the number of the call: what becomes of a
        (VIEW_B + VIEW_S + "if n > 2:\n    " + FILL_B + "    pld.tensor.allreduce(a, s)", {1: 1, 3: 2}),
        (VIEW_B + VIEW_S + "if n <= 2:\n    pass\nelse:\n    " + FILL_B + "    pld.tensor.allreduce(a, s)", {1: 1, 3: 2}),
        ("if n > 2:\n    " + VIEW_B + "    " + VIEW_S + "    " + FILL_B + "    pld.tensor.allreduce(a, s)", {1: 1, 3: 2}),
        (VIEW_S + "for i in pl.range(2):\n    if n > 2:\n        pld.tensor.allreduce(a, s)", {1: 1, 3: 4}),
        # their collectives are of all devices, signals too
        (VIEW_S + "if n > 2:\n    " + RING_S + "pld.tensor.barrier(s)", {1: 1, 3: 1}),
        (VIEW_B + VIEW_S + "if n > 2:\n    " + FILL_B + "pld.tensor.allreduce(b, s)", {1: 1, 3: 1}),
        # behind a return
        ("if n < 2:\n    return y\n" + VIEW_B + VIEW_S + FILL_B + "pld.tensor.allreduce(a, s)", {1: 0, 3: 2}),
    ],
)
def test_constants_may_leave_out_all_uses_of_a_window(body, factors):
    text = LEFT_OUT.format(body="\n".join("    " + line for line in body.split("\n")))
    if "b_buf," not in body:
        text = text.replace("    b_buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)\n", "")
    host = from_text(text)["host"]
    x = np.ones((2, 1, 8), np.int32)
    for n, factor in factors.items():
        y = np.zeros_like(x)
        host(x, y, n, config=config(2))
        np.testing.assert_array_equal(y, factor)


def test_a_window_without_any_use_is_still_a_mistake():
    host = from_text(LEFT_OUT.format(body="    if n > 2:\n        pass\n    " + VIEW_B))["host"]
    x = np.ones((2, 1, 8), np.int32)
    with pytest.raises(pypto.Error, match="window buffer 'b_buf' is viewed but not consumed by any"):
        host(x, np.zeros_like(x), 1, config=config(2))
