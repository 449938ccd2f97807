"""Collectives in kernels: every one, every element type, sizes, ranks, bit for bit against NumPy; and where they
may stand: loops, branches, expressions, scopes, wrappers."""

import contextlib
import functools

import numpy as np
import pytest
import torch

import pypto
from collective_programs import MOVES, REDUCE_OPS, collectives_of, expected, run
from programs import config, from_text
from test_small_types import PACKED, TABLES
from transfers import DTYPES, FLOATS, values


def check(name, x, dtype, root=0):
    np.testing.assert_array_equal(run(name, x, dtype, root), expected(name, x, dtype, root), name)


def check_all(x, dtype):
    for name in collectives_of(dtype):
        for root in {0, len(x) - 1} if name == "broadcast" else {0}:
            check(name, x, dtype, root)


# ---- results ----


# Sizes around the borders between flags, stages and windows: 48 bytes and 2 KiB.
@pytest.mark.parametrize("size", [1, 17, 257, 4097])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 6, 7, 8])
def test_every_collective(ranks, size, transport):
    check_all(values((ranks, ranks, size), "FP32"), "FP32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_every_element_type(ranks, dtype, transport):
    for size in (1, 17, 1031):
        check_all(values((ranks, ranks, size), dtype, seed=size), dtype)


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "INT8"])
def test_large(dtype, transport):
    x = values((3, 3, 65537), dtype)
    for name in ["allreduce Sum mesh", "allreduce Prod ring", "reduce_scatter Sum", *MOVES]:
        check(name, x, dtype)


def test_at_64_ranks(transport):
    check_all(values((64, 64, 3), "FP32"), "FP32")
    check("allreduce Sum mesh", values((64, 64, 33), "INT32"), "INT32")


STORAGE = """\
@pl.jit
def wrapper(inp: pl.Tensor[[3, {size}], pl.{dtype}], out: pl.Out[pl.Tensor[[9, {size}], pl.{dtype}]],
            a: pld.DistributedTensor[[3, {size}], pl.{dtype}], b: pld.DistributedTensor[[3, {size}], pl.{dtype}],
            c: pld.DistributedTensor[[3, {size}], pl.{dtype}], sig: pld.DistributedTensor[[3], pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(a))
        pld.tensor.put(a, me, inp)
        pld.tensor.broadcast(a, sig, root=2)
        pld.tensor.allgather(inp[1:2, :], b, sig)
        pld.tensor.all_to_all(inp, c, sig)
        pld.tensor.get(out[0:3, :], me, a)
        pld.tensor.get(out[3:6, :], me, b)
        pld.tensor.get(out[6:9, :], me, c)

@pl.jit.host
def host(inputs: pl.Tensor[[3, 3, {size}], pl.{dtype}], outputs: pl.Out[pl.Tensor[[3, 9, {size}], pl.{dtype}]]):
    a = pld.alloc_window_buffer([3, {size}], dtype=pl.{dtype})
    b = pld.alloc_window_buffer([3, {size}], dtype=pl.{dtype})
    c = pld.alloc_window_buffer([3, {size}], dtype=pl.{dtype})
    s = pld.alloc_window_buffer([3], dtype=pl.INT32)
    for r in pl.range(3):
        wrapper(inputs[r], outputs[r], pld.window(a, [3, {size}], dtype=pl.{dtype}),
                pld.window(b, [3, {size}], dtype=pl.{dtype}), pld.window(c, [3, {size}], dtype=pl.{dtype}),
                pld.window(s, [3], dtype=pl.INT32), device=r)
"""


@pytest.mark.parametrize("size", [2, 62, 1030])
@pytest.mark.parametrize("dtype", TABLES)
def test_types_for_storage_move(dtype, size):
    x = np.random.default_rng(size).integers(0, 256, (3, 3, size // 2 if dtype in PACKED else size), np.uint8)
    y = np.zeros((3, 9, x.shape[-1]), np.uint8)
    from_text(STORAGE.format(dtype=dtype, size=size))["host"](x, y, config=config(3))
    for r in range(3):
        np.testing.assert_array_equal(y[r], np.concatenate([x[2], x[:, 1], x[:, r]]))


def special_values(shape, dtype, seed):
    """NaN of both signs and with payloads, infinities, zeros of both signs, the smallest numbers, and others."""
    patterns = {
        "FP32": [0x7FC00000, 0xFFC12345, 0x7F812345, 0x7F800000, 0xFF800000, 0, 0x80000000, 1, 0x80000001, 0x3F800000],
        "FP16": [0x7E00, 0xFE55, 0x7C01, 0x7C00, 0xFC00, 0, 0x8000, 1, 0x8001, 0x3C00, 0x7BFF],
        "BF16": [0x7FC0, 0xFFD5, 0x7F81, 0x7F80, 0xFF80, 0, 0x8000, 1, 0x8001, 0x3F80, 0x7F7F],
    }[dtype]
    chosen = np.random.default_rng(seed).choice(np.array(patterns, np.uint32), shape)
    if dtype == "FP32":
        return chosen.view(np.float32)
    x = chosen.astype(np.uint16)
    return x.view(np.float16) if dtype == "FP16" else torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_special_values(ranks, dtype):
    for size in (5, 611):
        x = special_values((ranks, ranks, size), dtype, seed=size)
        check_all(x, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_modes_give_the_same_bits(dtype):
    for size in (3, 300, 3000):
        x = values((5, 5, size), dtype, seed=size)
        for op in REDUCE_OPS:
            results = [run(f"allreduce {op} {mode}", x, dtype) for mode in ("mesh", "ring", "auto")]
            assert (results[0] == results[1]).all() and (results[0] == results[2]).all()
            assert (results[0] == results[0][0]).all()


# ---- where they may stand ----

HEAD = """\
R = pld.ReduceOp

@pl.jit.incore
def kernel(inp: pl.Tensor[[{rows}, 8], pl.FP32], out: pl.Out[pl.Tensor[[{rows}, 8], pl.FP32]],
           win: pl.InOut[pld.DistributedTensor[[{rows}, 8], pl.FP32]],
           other: pld.DistributedTensor[[{rows}, 8], pl.FP32], sig: pld.DistributedTensor[[NR, 1], pl.INT32],
           flat: pld.DistributedTensor[[8], pl.INT32], plan: pl.Tensor[[1], pl.INT32]):
    ctx = pld.get_comm_ctx(win)
    me = pld.rank(ctx)
    ranks = pld.nranks(ctx)
    n = pl.read(plan, [0])
{kernel}

@pl.jit
def wrapper(inp: pl.Tensor[[{rows}, 8], pl.FP32], out: pl.Out[pl.Tensor[[{rows}, 8], pl.FP32]],
            win: pl.InOut[pld.DistributedTensor[[{rows}, 8], pl.FP32]],
            other: pld.DistributedTensor[[{rows}, 8], pl.FP32], sig: pld.DistributedTensor[[NR, 1], pl.INT32],
            flat: pld.DistributedTensor[[8], pl.INT32], plan: pl.Tensor[[1], pl.INT32]):
{wrapper}

@pl.jit.host
def host(inputs: pl.Tensor[[NR, {rows}, 8], pl.FP32], outputs: pl.Out[pl.Tensor[[NR, {rows}, 8], pl.FP32]],
         plan: pl.Tensor[[1], pl.INT32]):
    P = pld.world_size()
    win_buf = pld.alloc_window_buffer([{host_rows}, 8], dtype=pl.FP32)
    other_buf = pld.alloc_window_buffer([{host_rows}, 8], dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([P], dtype=pl.INT32)
    flat_buf = pld.alloc_window_buffer([8], dtype=pl.INT32)
    for r in pl.range(P):
        win = pld.window(win_buf, [{host_rows}, 8], dtype=pl.FP32)
        other = pld.window(other_buf, [{host_rows}, 8], dtype=pl.FP32)
        sig = pld.window(sig_buf, [P, 1], dtype=pl.INT32)
        flat = pld.window(flat_buf, [8], dtype=pl.INT32)
        wrapper(inputs[r], outputs[r], win, other, sig, flat, plan, device=r)
"""
CALL = "kernel(inp, out, win, other, sig, flat, plan)"


def indented(text):
    return "\n".join("    " + line for line in text.strip("\n").splitlines())


@functools.cache
def program(kernel, wrapper=CALL, rows="1"):
    return from_text(
        HEAD.format(kernel=indented(kernel), wrapper=indented(wrapper), rows=rows, host_rows=rows.replace("NR", "P"))
    )["host"]


def outputs_of(host, x, n=0):
    y = np.zeros_like(x)
    host(x, y, np.array([n], np.int32), config=config(len(x)))
    return y


def numbers(ranks, rows=1):
    """Small whole numbers: their sums are exact."""
    return np.random.default_rng(ranks).integers(0, 100, (ranks, rows, 8)).astype(np.float32)


IN_PLACE = {
    "a statement": """
win = pl.store(pl.load(inp, [0, 0], [1, 8]), [0, 0], win)
pld.tensor.allreduce(win, sig)
out = pl.store(pl.load(win, [0, 0], [1, 8]), [0, 0], out)
""",
    "a new name": """
pl.store(pl.load(inp, [0, 0], [1, 8]), [0, 0], win)
total = pld.tensor.allreduce(win, sig)
pl.store(pl.load(total, [0, 0], [1, 8]), [0, 0], out)
""",
    "inside of an expression": """
pl.store(pl.load(pld.tensor.allreduce(pl.store(pl.load(inp, [0, 0], [1, 8]), [0, 0], win), sig), [0, 0], [1, 8]),
         [0, 0], out)
""",
    "with subscripts": """
win[:, :] = inp
out[:, :] = pld.tensor.allreduce(win, pld.tensor.barrier(sig))[0:1, :]
""",
    "in a loop": """
pld.tensor.put(other, me, inp)
for i in pl.range(n):
    win[:, :] = other[:, :] + (1.0 * pl.cast(i, pl.FP32))
    win = pld.tensor.allreduce(win, sig)
    sig = pld.tensor.barrier(sig)
pld.tensor.put(win, me, inp)
win = pld.tensor.allreduce(win, sig)
pld.tensor.get(out, me, win)
""",
    "in a while loop": """
k = 0
while k < n:
    pld.tensor.put(win, me, inp)
    win = pld.tensor.allreduce(win, sig)
    k += 1
pld.tensor.get(out, me, win)
""",
    "in a branch": """
pld.tensor.put(win, me, inp)
if n > 100:
    pld.tensor.allreduce(win, sig, op=R.Max)
elif n > 1:
    win = pld.tensor.allreduce(win, sig)
else:
    win = pld.tensor.broadcast(win, sig, root=0)
pld.tensor.get(out, me, win)
""",
    "a signal of one dimension": """
pld.tensor.put(win, me, inp)
pld.tensor.barrier(flat)
win = pld.tensor.broadcast(win, flat, root=0)
pld.tensor.put(win, me, inp)
win = pld.tensor.allreduce(win, sig)
pld.tensor.get(out, me, win)
""",
    "by parts of one buffer": """
first = flat[0:4]
second = flat[4:8]
pld.tensor.put(win, me, inp)
pld.tensor.barrier(first)
pld.tensor.barrier(second)
pld.tensor.allreduce(win, sig)
pld.tensor.barrier(second)
pld.tensor.get(out, me, win)
""",
}


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("form", IN_PLACE)
def test_in_a_kernel(form, ranks, transport):
    x = numbers(ranks)
    y = outputs_of(program(IN_PLACE[form]), x, 5)
    np.testing.assert_array_equal(y, np.broadcast_to(x.sum(axis=0), x.shape))


def test_in_a_kernel_that_a_kernel_calls(transport):
    helper = """\
@pl.jit.incore
def total(data: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]], bell: pld.DistributedTensor[[NR, 1], pl.INT32]):
    return pld.tensor.allreduce(data, bell, op=pld.ReduceOp.Max)

"""
    text = HEAD.format(
        kernel=indented("pld.tensor.put(win, me, inp)\nwin = total(win, sig)\npld.tensor.get(out, me, win)"),
        wrapper=indented(CALL), rows="1", host_rows="1")
    x = numbers(3)
    y = outputs_of(from_text(helper + text)["host"], x)
    np.testing.assert_array_equal(y, np.broadcast_to(x.max(axis=0), x.shape))


# ---- wrappers ----

STORE = "pld.tensor.put(win, me, inp)"
FETCH = "pld.tensor.get(out, pld.rank(pld.get_comm_ctx(win)), win)"
IN_WRAPPERS = {
    "tasks of their own": f"""
{CALL}
win = pld.tensor.allreduce(win, sig)
pld.tensor.barrier(sig)
pld.tensor.broadcast(win, sig, root=pl.read(plan, [0]) - 5)
with pl.at(level=pl.Level.CORE_GROUP):
    {FETCH}
""",
    "in a scope": f"""
{CALL}
with pl.at(level=pl.Level.CORE_GROUP):
    win = pld.tensor.allreduce(win, sig)
with pl.at(level=pl.Level.CORE_GROUP):
    {FETCH}
""",
    "in a loop": f"""
{CALL}
for i in pl.range(4):
    pld.tensor.barrier(sig)
    if i == 2:
        pld.tensor.allreduce(win, sig)
with pl.at(level=pl.Level.CORE_GROUP):
    {FETCH}
""",
    "two at a time": f"""
{CALL}
pld.tensor.broadcast(other, flat, root=0)
win = pld.tensor.allreduce(win, sig)
with pl.at(level=pl.Level.CORE_GROUP):
    {FETCH}
""",
    "ordered by hand": f"""
with pl.manual_scope():
    with pl.at(level=pl.Level.CORE_GROUP) as filled:
        {STORE.replace("me", "pld.rank(pld.get_comm_ctx(win))")}
    with pl.at(level=pl.Level.CORE_GROUP, deps=[filled]) as reduced:
        win = pld.tensor.allreduce(win, sig)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[reduced]):
        {FETCH}
""",
}


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("form", IN_WRAPPERS)
def test_in_a_wrapper(form, ranks, transport):
    x = numbers(ranks)
    y = outputs_of(program(STORE, IN_WRAPPERS[form]), x, 5)
    np.testing.assert_array_equal(y, np.broadcast_to(x.sum(axis=0), x.shape))


def test_a_wrapper_returns_what_it_has_reduced(transport):
    text = HEAD.format(kernel=indented(STORE), rows="1", host_rows="1",
                       wrapper=indented(f"{CALL}\nreturn pld.tensor.allreduce(win, sig)"))
    text = text.replace("        wrapper(", "        total = wrapper(").replace(
        "plan, device=r)", "plan, device=r)\n        fetch(total, outputs[r], device=r)")
    fetch = """\
@pl.jit
def fetch(win: pld.DistributedTensor[[1, 8], pl.FP32], out: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tensor.get(out, pld.rank(pld.get_comm_ctx(win)), win)

"""
    x = numbers(3)
    y = outputs_of(from_text(fetch + text)["host"], x)
    np.testing.assert_array_equal(y, np.broadcast_to(x.sum(axis=0), x.shape))


def test_blocks_of_a_task_with_a_signal_each(transport):
    """Two blocks run at the same time, and each reduces its half by its part of a signal buffer."""
    wrapper = """
for b in pl.spmd(2):
    me = pld.rank(pld.get_comm_ctx(win))
    half = win[b : b + 1, :]
    pld.tensor.put(half, me, inp[b : b + 1, :])
    pld.tensor.allreduce(half, pl.reshape(flat[b * 4 : b * 4 + 4], [4, 1]))
    pld.tensor.get(out[b : b + 1, :], me, half)
"""
    x = numbers(3, 2)
    y = outputs_of(program("pass", wrapper, rows="2"), x)
    np.testing.assert_array_equal(y, np.broadcast_to(x.sum(axis=0), x.shape))


# ---- one signal, one window, many rounds ----


def test_a_thousand_rounds_on_one_signal(transport):
    """No barrier stands between them: a window may be filled again as soon as a collective is over."""
    body = """
total = inp[:, :] * 0.0
for i in pl.range(n):
    win[:, :] = inp[:, :] + pl.cast(i, pl.FP32)
    if i % 4 == 0:
        pld.tensor.allreduce(win, sig)
    elif i % 4 == 1:
        pld.tensor.reduce_scatter(win, sig, op=R.Max)
    elif i % 4 == 2:
        pld.tensor.all_to_all(other, win, sig)
    else:
        pld.tensor.broadcast(win, sig, root=i % ranks)
    other[:, :] = win[:, :]
    total = (total + win[:, :]) * 0.5
    if i % 16 == 0:
        pld.tensor.barrier(sig)
out[:, :] = total
"""
    ranks, rounds = 3, 1000
    x = numbers(ranks, ranks)
    y = outputs_of(program(body.replace("[:, :]", "[0:3, :]"), rows="3"), x, rounds)
    total = np.zeros_like(x)
    other = np.zeros_like(x)
    for i in range(rounds):
        win = x + np.float32(i)
        if i % 4 == 0:
            win[:] = (win[0] + win[1]) + win[2]
        elif i % 4 == 1:
            largest = win.max(axis=0)
            for r in range(ranks):
                win[r, r] = largest[r]
        elif i % 4 == 2:
            win = other.swapaxes(0, 1).copy()
        else:
            win[:] = win[i % ranks].copy()
        other = win
        total = (total + win) * np.float32(0.5)
    np.testing.assert_array_equal(y, total)


def test_a_barrier_publishes(transport):
    """What a rank has written to its window before, and pushed into others, is there behind it."""
    body = """
for i in pl.range(n):
    win[:, :] = inp[:, :] + pl.cast(i, pl.FP32)
    pld.tensor.put(other, (me + 1) % ranks, win)
    pld.tensor.barrier(sig)
    near = pld.remote_load(win, (me + 1) % ranks, [0, 0], [1, 8])
    near = near - other[:, :]
    pld.tensor.barrier(sig)
out[:, :] = near
"""
    x = numbers(4)
    y = outputs_of(program(body), x, 50)
    np.testing.assert_array_equal(y, np.roll(x, -1, axis=0) - np.roll(x, 1, axis=0))


NOTIFIED = """
NR = pl.dynamic("NR")

@pl.jit.incore
def kernel(out: pl.Out[pl.Tensor[[1, 8], pl.FP32]], plan: pl.Tensor[[8], pl.INT32],
           plan_win: pl.InOut[pld.DistributedTensor[[1, 8], pl.INT32]],
           sig: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    me = pld.rank(pld.get_comm_ctx(sig))
{kernel}

@pl.jit
def wrapper(out: pl.Out[pl.Tensor[[1, 8], pl.FP32]], plan: pl.Tensor[[8], pl.INT32],
            plan_win: pl.InOut[pld.DistributedTensor[[1, 8], pl.INT32]],
            sig: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    kernel(out, plan, plan_win, sig)

@pl.jit.host
def host(out: pl.Out[pl.Tensor[[NR, 1, 8], pl.FP32]], plan: pl.Tensor[[NR, 8], pl.INT32]):
    plan_buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    sig_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        plan_win = pld.window(plan_buf, [1, 8], dtype=pl.INT32)
        sig = pld.window(sig_buf, [pld.world_size(), 1], dtype=pl.INT32)
        wrapper(out[r], plan[r], plan_win, sig, device=r)
"""


# The statement, and where rank 1 finds what rank 0 has pushed.
PUSHED = {
    "allreduce": "pld.tensor.allreduce(win, sig)",
    "reduce_scatter": "pld.tensor.reduce_scatter(win, sig)",
    "broadcast": "pld.tensor.broadcast(win, sig, root=1)",
    "allgather": "pld.tensor.allgather(win[0:1, :], other, sig)\nwin = other",
    "all_to_all": "pld.tensor.all_to_all(win, other, sig)\nwin = other",
}


@pytest.mark.parametrize("size", [8, 128, 1024])
@pytest.mark.parametrize("name", PUSHED)
def test_what_was_pushed_before_takes_part(name, size, transport):
    """Rank 0 comes late, and pushes its rows into rank 1's window first; rank 1 waits in the collective meanwhile."""
    body = f"""
if me == 0:
    for i in pl.range(300000):
        pl.read(plan, [0])
    pld.tensor.put(win, 1, inp)
{PUSHED[name]}
out[:, :] = win[:, :]
"""
    host = from_text(
        HEAD.format(kernel=indented(body), wrapper=indented(CALL), rows="2", host_rows="2").replace(", 8]", f", {size}]")
    )["host"]
    x = np.random.default_rng(size).integers(1, 100, (2, 2, size)).astype(np.float32)
    y = outputs_of(host, x)
    pushed, none = x[0], np.zeros_like(x[0])
    expected = {
        "allreduce": [pushed, pushed],
        "reduce_scatter": [np.stack([pushed[0], none[0]]), pushed],
        "broadcast": [pushed, pushed],
        "allgather": [np.stack([none[0], pushed[0]])] * 2,
        "all_to_all": [np.stack([none[0], pushed[0]]), np.stack([none[1], pushed[1]])],
    }[name]
    np.testing.assert_array_equal(y, np.stack(expected))


def test_cells_that_were_notified_before_take_part(transport):
    """Numbers may be sent by notifies: an INT32 window that is added to is the target of the next collective."""
    body = """
if me == 0:
    for i in pl.range(300000):
        pl.read(plan, [0])
    pld.system.notify(plan_win, 1, [0, 0], 5, op=pld.NotifyOp.AtomicAdd)
pld.tensor.allreduce(plan_win, sig)
out[0:1, 0:1] = pl.cast(plan_win[0:1, 0:1], pl.FP32)
"""
    host = from_text(NOTIFIED.format(kernel=indented(body)))["host"]
    y = np.zeros((2, 1, 8), dtype=np.float32)
    host(y, np.zeros((2, 8), dtype=np.int32), config=config(2))
    np.testing.assert_array_equal(y[:, 0, 0], [5, 5])


# ---- some of the devices ----


def test_groups_of_devices(transport):
    """Devices 1 and 2 reduce among themselves, and rank 1 of the group is device 2."""
    text = """\
@pl.jit
def wrapper(inp: pl.Tensor[[1, 8], pl.FP32], out: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
            win: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]], sig: pld.DistributedTensor[[2], pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        win[:, :] = inp
        win = pld.tensor.broadcast(win, sig, root=1)
        out[:, :] = win[:, :]

@pl.jit.host
def host(inputs: pl.Tensor[[4, 1, 8], pl.FP32], outputs: pl.Out[pl.Tensor[[4, 1, 8], pl.FP32]]):
    a = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
    b = pld.alloc_window_buffer([2], dtype=pl.INT32)
    for r in pl.range(1, 3):
        wrapper(inputs[r], outputs[r], pld.window(a, [1, 8], dtype=pl.FP32), pld.window(b, [2], dtype=pl.INT32),
                device=r)
"""
    x = numbers(4)
    y = np.zeros_like(x)
    from_text(text)["host"](x, y, config=config(4))
    np.testing.assert_array_equal(y[[1, 2]], x[[2, 2]])
    np.testing.assert_array_equal(y[[0, 3]], 0)


# ---- all_to_all_v ----

EXCHANGE = """\
N = pl.dynamic("N")
M = pl.dynamic("M")

@pl.jit
def wrapper(inp: pl.Tensor[[M, N], pl.{dtype}], counts: pl.Tensor[[NR{one}], pl.INT32],
            out: pl.Out[pl.Tensor[[M, N], pl.{dtype}]], got: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
            win: pl.InOut[pld.DistributedTensor[[M, N], pl.{dtype}]], src: pld.DistributedTensor[[M, N], pl.{dtype}],
            sig: pld.DistributedTensor[[NR, 1], pl.INT32], recv: pld.DistributedTensor[[NR, 1], pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(win))
        pld.tensor.put(src, me, inp)
        for i in pl.range(3):
            pld.tensor.all_to_all_v({source}, win, sig, counts, recv)
        pld.tensor.get(out, me, win)
        pld.tensor.get(got, me, recv)

@pl.jit.host
def host(inputs: pl.Tensor[[NR, M, N], pl.{dtype}], counts: pl.Tensor[[NR, NR{one}], pl.INT32],
         outputs: pl.Out[pl.Tensor[[NR, M, N], pl.{dtype}]], got: pl.Out[pl.Tensor[[NR, NR, 1], pl.INT32]]):
    P = pld.world_size()
    a = pld.alloc_window_buffer([M, N], dtype=pl.{dtype})
    b = pld.alloc_window_buffer([M, N], dtype=pl.{dtype})
    c = pld.alloc_window_buffer([P], dtype=pl.INT32)
    d = pld.alloc_window_buffer([P], dtype=pl.INT32)
    for r in pl.range(P):
        wrapper(inputs[r], counts[r], outputs[r], got[r], pld.window(a, [M, N], dtype=pl.{dtype}),
                pld.window(b, [M, N], dtype=pl.{dtype}), pld.window(c, [P, 1], dtype=pl.INT32),
                pld.window(d, [P, 1], dtype=pl.INT32), device=r)
"""


@functools.cache
def exchange_program(dtype, source, one):
    return from_text(EXCHANGE.format(dtype=dtype, source=source, one=one))["host"]


def exchange(x, counts, dtype, source):
    host = exchange_program(dtype, source, ", 1" if counts.ndim == 3 else "")
    outputs, got = np.zeros_like(x), np.zeros((len(x), len(x), 1), np.int32)
    host(x, counts, outputs, got, config=config(len(x)))
    return outputs, got[..., 0]


@pytest.mark.parametrize("dtype, source", [("FP32", "inp"), ("FP32", "src"), ("INT8", "src"), ("INT64", "inp")])
@pytest.mark.parametrize("ranks", [1, 2, 4, 5])
def test_all_to_all_v(ranks, dtype, source, transport):
    rng = np.random.default_rng(ranks)
    for rows, columns in [(1, 1), (4, 64), (3, 333)]:
        x = values((ranks, ranks * rows, columns), dtype)
        counts = rng.integers(0, rows + 2, (ranks, ranks, 1)[: 2 + (source == "src")]).astype(np.int32)
        asked = counts.reshape(ranks, ranks)
        with pytest.warns(pypto.LintWarning, match="W606") if (asked > rows).any() else contextlib.nullcontext():
            y, got = exchange(x, counts, dtype, source)
        np.testing.assert_array_equal(got, np.minimum(asked, rows).T)
        blocks = x.reshape(ranks, ranks, rows, columns)
        np.testing.assert_array_equal(y.reshape(blocks.shape), blocks.swapaxes(0, 1))


def test_a_negative_count(transport):
    x = values((2, 4, 8), "FP32")
    with pytest.raises(pypto.DeviceError, match=r"send_counts\[1\] is -3: a count of rows cannot be negative"):
        exchange(x, np.array([[1, 2], [1, -3]], np.int32), "FP32", "inp")


# ---- mistakes that only a run shows ----

MISTAKES = {
    "root": ("pld.tensor.broadcast(win, sig, root=n)", r"root \(7\) must be a valid rank in \[0, 2\)"),
    "rows": ("pld.tensor.allgather(inp, other[:, :], sig)", "the target's part of a rank|part for each of 2 ranks"),
    "a signal that is not zero": (
        "pld.system.notify(sig, me, [1, 0], 3, op=pld.NotifyOp.Set)\npld.tensor.barrier(sig)", "cell 1 of signal .* is 3"),
    "a signal that is too short": ("pld.tensor.barrier(flat[0:1])", "needs a cell for each"),
    "a target with gaps": ("pld.tensor.allreduce(wide[:, 0:4], sig)", "requires a packed source"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake, transport):
    statement, words = MISTAKES[mistake]
    rows = "3" if "wide" in statement or mistake == "rows" else "1"
    statement = statement.replace("wide", "win").replace("(inp,", "(inp[0:1, :],")
    with pytest.raises(pypto.DeviceError, match=words):
        outputs_of(program(statement, rows=rows), numbers(2, int(rows)), 7)


# ---- what the compiler refuses: all of it in tests/unit/test_frontend_collectives.c ----


@pytest.mark.parametrize(
    "statement, error",
    [
        ("pld.tensor.allreduce(win)", pypto.language.parser.InvalidOperationError),
        ("pld.tensor.allreduce(inp, sig)", pypto.language.parser.InvalidOperationError),
        ("pld.tensor.allreduce(win, sig, mode='tree')", pypto.language.parser.InvalidOperationError),
        ("pld.tensor.allreduce(win, other)", pypto.language.parser.ParserTypeError),
    ],
)
def test_refused(statement, error):
    with pytest.raises(error, match=r"pld\.tensor\.allreduce"):
        outputs_of(program(statement), numbers(1))


def test_reduce_operators_have_numbers():
    import pypto.language.distributed as pld

    assert [(op.name, op.value) for op in pld.ReduceOp] == [("Sum", 0), ("Max", 1), ("Min", 2), ("Prod", 3)]


# ---- targets that count in part ----

PARTS = """
@pl.jit.incore
def kernel(s: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]], w: pl.InOut[pld.DistributedTensor[[{shape}], pl.{dtype}]],
           x: pl.Tensor[[{shape}], pl.{dtype}], y: pl.Out[pl.Tensor[[{shape}], pl.{dtype}]], n: pl.Scalar[pl.INT64]):
    pld.tensor.put(w, pld.rank(pld.get_comm_ctx(w)), x)
    me = pld.rank(pld.get_comm_ctx(w))
    v = pl.slice(w, [{shape}], [{zeros}], valid_shape=[{valid}])
    pld.tensor.allreduce(v, s, op=pld.ReduceOp.{op})
    pld.tensor.allreduce(v, s, op=pld.ReduceOp.Max)
    pld.tensor.get(y, me, w)

@pl.jit
def wrapper(s: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]], w: pl.InOut[pld.DistributedTensor[[{shape}], pl.{dtype}]],
            x: pl.Tensor[[{shape}], pl.{dtype}], y: pl.Out[pl.Tensor[[{shape}], pl.{dtype}]], n: pl.Scalar[pl.INT64]):
    kernel(s, w, x, y, n)

@pl.jit.host
def host(x: pl.Tensor[[NR, {shape}], pl.{dtype}], y: pl.Out[pl.Tensor[[NR, {shape}], pl.{dtype}]], n: pl.Scalar[pl.INT64]):
    sb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    s = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)
    wb = pld.alloc_window_buffer([{shape}], dtype=pl.{dtype})
    w = pld.window(wb, [{shape}], dtype=pl.{dtype})
    for r in pl.range(pld.world_size()):
        wrapper(s, w, x[r], y[r], n, device=r)
"""


def reduced_in_part(ranks, shape, dtype, valid, op="Sum"):
    """`valid` holds numbers, or texts in terms of n, which is 3."""
    box = tuple(slice(0, eval(str(v), {"n": 3})) for v in valid)
    words = {"shape": shape, "zeros": [0] * len(shape), "valid": valid}
    words = {name: ", ".join(map(str, value)) for name, value in words.items()}
    host = from_text(PARTS.format(**words, dtype=dtype, op=op))["host"]
    x = np.random.default_rng(sum(shape)).integers(0, 5, (ranks, *shape)).astype(dtype.lower().replace("fp32", "float32"))
    y, expected = np.zeros_like(x), x.copy()
    host(x, y, 3, config=config(ranks))
    fold = {"Sum": np.add, "Min": np.minimum}[op]
    expected[(slice(None), *box)] = fold.reduce(x[(slice(None), *box)], axis=0, dtype=x.dtype)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize(
    "shape, valid",
    [
        ([8, 8], [2, 3]),  # in a flag
        ([8, 8], ["n", 8]),
        ([8, 8], [8, 1]),
        ([8, 8], [0, 5]),
        ([30, 20], ["n * 5", 17]),  # in a stage
        ([300, 40], [299, 39]),  # in place
        ([300, 40], [1, 40]),
        ([5, 6, 700], [4, 5, 600]),
        ([5, 6, 700], [5, 3, 700]),
        ([9000], [8999]),
    ],
)
def test_targets_that_count_in_part(ranks, shape, valid):
    reduced_in_part(ranks, shape, "FP32", valid)


def test_parts_of_other_types_and_many_ranks():
    reduced_in_part(64, [40, 9], "INT32", [39, 7])
    reduced_in_part(4, [50, 130], "INT8", [33, 129], "Min")


def test_parts_that_differ_between_ranks():
    for valid in (["me + 1", 8], ["2 * me + 2", "8 // (me + 1)"]):  # more elements; others, as many
        with pytest.raises(pypto.CollectiveMismatchError, match="side by side|8 x fp32"):
            words = {"shape": "8, 8", "zeros": "0, 0", "valid": ", ".join(map(str, valid))}
            host = from_text(PARTS.format(**words, dtype="FP32", op="Sum"))["host"]
            host(np.zeros((2, 8, 8), np.float32), np.zeros((2, 8, 8), np.float32), 3, config=config(2))
