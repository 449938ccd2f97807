"""Collectives one after the other: the rules of entry and exit, one signal and one window for a thousand rounds of
every kind, over kernels, dispatches and calls; 64 ranks; the same bits everywhere, always.

What pld_collectives.h promises of entry and exit: no rank touches a window of mine before I have entered the collective; when
it returns, what others write into my window is there, and no rank touches it any more. What I have pushed into windows of peers
before I enter takes part."""

import functools

import numpy as np
import pytest

from collective_programs import bits, fold
from programs import config, from_text
from test_collectives import special_values
from transfers import values, zeros

# ---- entry and exit ----

RULES = """\
@pl.jit
def wrapper(inp: pl.Tensor[[K, 3, {size}], pl.INT32], junk: pl.Tensor[[3, {size}], pl.INT32],
            delays: pl.Tensor[[K], pl.INT32], counts: pl.Tensor[[3, 1], pl.INT32], what: pl.Scalar[pl.INT32],
            pushes: pl.Scalar[pl.INT32],
            early: pl.Out[pl.Tensor[[K, 3, {size}], pl.INT32]], late: pl.Out[pl.Tensor[[K, 3, {size}], pl.INT32]],
            win: pl.InOut[pld.DistributedTensor[[3, {size}], pl.INT32]],
            src: pl.InOut[pld.DistributedTensor[[3, {size}], pl.INT32]],
            recv: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]],
            sig: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(win))
        for k in pl.range(K):
            x = pl.reshape(inp[k : k + 1, :, :], [3, {size}])
            pld.tensor.put(win, me, x)
            pld.tensor.put(src, me, x)
            if pushes == 1:
                pld.tensor.barrier(sig)
            for i in pl.range(pl.read(delays, [k])):
                pl.read(delays, [0])
            if pushes == 1:
                pld.tensor.put(win, (me + 1) % 3, x, [me, 0], [me, 0], [1, {size}])
                pld.tensor.put(src, (me + 1) % 3, x, [me, 0], [me, 0], [1, {size}])
            else:
                pld.tensor.get(pl.reshape(early[k : k + 1, :, :], [3, {size}]), me, win)
{branches}
            pld.tensor.get(pl.reshape(late[k : k + 1, :, :], [3, {size}]), me, win)
            pld.tensor.put(win, me, junk)
            pld.tensor.put(src, me, junk)

@pl.jit.host
def host(inputs: pl.Tensor[[3, K, 3, {size}], pl.INT32], junk: pl.Tensor[[3, {size}], pl.INT32],
         delays: pl.Tensor[[3, K], pl.INT32], counts: pl.Tensor[[3, 1], pl.INT32], what: pl.Scalar[pl.INT32],
         pushes: pl.Scalar[pl.INT32],
         early: pl.Out[pl.Tensor[[3, K, 3, {size}], pl.INT32]], late: pl.Out[pl.Tensor[[3, K, 3, {size}], pl.INT32]]):
    a = pld.alloc_window_buffer([3, {size}], dtype=pl.INT32)
    b = pld.alloc_window_buffer([3, {size}], dtype=pl.INT32)
    c = pld.alloc_window_buffer([3], dtype=pl.INT32)
    d = pld.alloc_window_buffer([3], dtype=pl.INT32)
    for r in pl.range(3):
        wrapper(inputs[r], junk, delays[r], counts, what, pushes, early[r], late[r], pld.window(a, [3, {size}], dtype=pl.INT32),
                pld.window(b, [3, {size}], dtype=pl.INT32), pld.window(c, [3, 1], dtype=pl.INT32),
                pld.window(d, [3, 1], dtype=pl.INT32), device=r)
"""


def scattered(x):
    y = x.copy()
    for r in range(3):
        y[r, r] = x[:, r].sum(axis=0)
    return y


# What the window is behind each, of x[rank, row]. A tensor is not where peers can look; a window is.
EXCHANGES = {
    "allreduce": ("pld.tensor.allreduce(win, sig)", lambda x: np.stack([x.sum(axis=0)] * 3)),
    "reduce_scatter": ("pld.tensor.reduce_scatter(win, sig)", scattered),
    "broadcast": ("pld.tensor.broadcast(win, sig, root=k % 3)", None),
    "allgather of a window": ("pld.tensor.allgather(src[1:2, :], win, sig)", lambda x: np.stack([x[:, 1]] * 3)),
    "allgather of a tensor": ("pld.tensor.allgather(x[1:2, :], win, sig)", lambda x: np.stack([x[:, 1]] * 3)),
    "all_to_all of a window": ("pld.tensor.all_to_all(src, win, sig)", lambda x: x.swapaxes(0, 1)),
    "all_to_all of a tensor": ("pld.tensor.all_to_all(x, win, sig)", lambda x: x.swapaxes(0, 1)),
    "all_to_all_v": ("pld.tensor.all_to_all_v(src, win, sig, counts, recv)", lambda x: x.swapaxes(0, 1)),
}
ROUNDS = 12


@functools.cache
def rules_host(size):
    lines = []
    for i, (statement, _) in enumerate(EXCHANGES.values()):
        lines += [f"            if what == {i}:", f"                {statement}"]
    return from_text('K = pl.dynamic("K")\n' + RULES.format(size=size, branches="\n".join(lines)))["host"]


@pytest.fixture(scope="module", params=[1, 70, 4000], ids=["messages", "stages", "windows"])
def rules(request):
    """By size of a row: 4 bytes, 280, 16,000."""
    return request.param, rules_host(request.param)


def run_rules(name, rules, fast, pushes):
    """One rank is always early, and overwrites its windows as soon as it may."""
    size, host = rules
    rng = np.random.default_rng(size + fast)
    x = rng.integers(0, 1000, (3, ROUNDS, 3, size), np.int32)
    delays = rng.choice([0, 3000, 30000], (3, ROUNDS), p=[0.2, 0.4, 0.4]).astype(np.int32)
    delays[fast] = 0
    early, late = np.zeros_like(x), np.zeros_like(x)
    junk = np.full((3, size), -77, np.int32)
    counts = np.ones((3, 1), np.int32)
    host(x, junk, delays, counts, list(EXCHANGES).index(name), pushes, early, late, config=config(3))
    before = x.copy()
    if pushes and not name.endswith("of a tensor"):
        for r in range(3):
            before[(r + 1) % 3, :, r] = x[r, :, r]
    after = EXCHANGES[name][1]
    for k in range(ROUNDS):
        expected = after(before[:, k]) if after else np.stack([before[k % 3, k]] * 3)
        np.testing.assert_array_equal(late[:, k], expected, f"round {k}")
    return x, early


@pytest.mark.parametrize("fast", [0, 2])
@pytest.mark.parametrize("name", EXCHANGES)
def test_entry_and_exit(name, fast, rules, transport):
    """Those that are late find their windows untouched in front of the collective; all find the result behind."""
    x, early = run_rules(name, rules, fast, 0)
    np.testing.assert_array_equal(early, x)


@pytest.mark.parametrize("name", EXCHANGES)
def test_pushes_before_entry_take_part(name, rules, transport):
    run_rules(name, rules, 1, 1)


# ---- one signal, one window ----

MIXED = """\
@pl.jit.incore
def rounds(win: pl.InOut[pld.DistributedTensor[[3, {size}], pl.INT32]],
           src: pl.InOut[pld.DistributedTensor[[3, {size}], pl.INT32]],
           sig: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]], count: pl.Scalar[pl.INT32]):
    me = pld.rank(pld.get_comm_ctx(win))
    for i in pl.range(count):
        pld.tensor.allreduce(win, sig)
        pl.write(win, [me, 0], pl.read(win, [me, 0]) + i + me)
        pld.tensor.all_to_all(win, src, sig)
        pld.tensor.reduce_scatter(src, sig, op=pld.ReduceOp.Max)
        pld.tensor.barrier(sig)
        pld.tensor.broadcast(src, sig, root=i % 3)
        pld.tensor.allgather(src[1:2, :], win, sig)

@pl.jit
def wrapper(win: pl.InOut[pld.DistributedTensor[[3, {size}], pl.INT32]],
            src: pl.InOut[pld.DistributedTensor[[3, {size}], pl.INT32]],
            sig: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]], count: pl.Scalar[pl.INT32]):
    rounds(win, src, sig, count)
    pld.tensor.allreduce(win, sig, op=pld.ReduceOp.Max)
    rounds(win, src, sig, count)

@pl.jit.incore
def fill(x: pl.Tensor[[3, {size}], pl.INT32], win: pl.InOut[pld.DistributedTensor[[3, {size}], pl.INT32]]):
    pld.tensor.put(win, pld.rank(pld.get_comm_ctx(win)), x)

@pl.jit.incore
def give(win: pl.InOut[pld.DistributedTensor[[3, {size}], pl.INT32]], y: pl.Out[pl.Tensor[[3, {size}], pl.INT32]]):
    pld.tensor.get(y, pld.rank(pld.get_comm_ctx(win)), win)

@pl.jit.host
def host(x: pl.Tensor[[3, 3, {size}], pl.INT32], y: pl.Out[pl.Tensor[[3, 3, {size}], pl.INT32]],
         count: pl.Scalar[pl.INT32], dispatches: pl.Scalar[pl.INT32]):
    a = pld.alloc_window_buffer([3, {size}], dtype=pl.INT32)
    b = pld.alloc_window_buffer([3, {size}], dtype=pl.INT32)
    c = pld.alloc_window_buffer([3], dtype=pl.INT32)
    win = pld.window(a, [3, {size}], dtype=pl.INT32)
    src = pld.window(b, [3, {size}], dtype=pl.INT32)
    sig = pld.window(c, [3, 1], dtype=pl.INT32)
    for r in pl.range(3):
        fill(x[r], win, device=r)
    for d in pl.range(dispatches):
        for r in pl.range(3):
            wrapper(win, src, sig, count, device=r)
        pld.tensor.allreduce(win, sig)
        pld.tensor.broadcast(src, sig, root=2)
    for r in pl.range(3):
        give(win, y[r], device=r)
"""


def mixed(x, count, dispatches):
    """The same on arrays [rank, row, column]."""
    win = x.copy()

    def rounds():
        for i in range(count):
            win[:] = win.sum(axis=0, dtype=np.int32)
            for r in range(3):
                win[r, r, 0] += np.int32(i + r)
            src = win.swapaxes(0, 1).copy()
            for r, row in enumerate([src[:, r].max(axis=0) for r in range(3)]):
                src[r, r] = row
            src[:] = src[i % 3].copy()
            win[:] = src[:, 1].copy()

    for _ in range(dispatches):
        rounds()
        win[:] = win.max(axis=0)
        rounds()
        win[:] = win.sum(axis=0, dtype=np.int32)
    return win


@pytest.mark.parametrize("size", [2, 900])
def test_one_signal_in_kernels_wrappers_and_host_functions(size, transport):
    """20 dispatches of 51 collectives in each of three calls, whose windows are new and may lie in the same memory."""
    host = from_text(MIXED.format(size=size))["host"]
    for call in range(3):
        x = np.random.default_rng(call).integers(-1000, 1000, (3, 3, size), np.int32)
        y = np.zeros_like(x)
        host(x, y, 4, 20, config=config(3))
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(y, mixed(x, 4, 20))


# ---- 64 ranks ----

WIDE = """\
@pl.jit.incore
def fill(x: pl.Tensor[[64, 5], pl.INT32], win: pl.InOut[pld.DistributedTensor[[64, 5], pl.INT32]],
         sent: pl.InOut[pld.DistributedTensor[[64, 1], pl.INT32]], recv: pl.InOut[pld.DistributedTensor[[64, 1], pl.INT32]]):
    me = pld.rank(pld.get_comm_ctx(win))
    pld.tensor.put(win, me, x)
    for i in pl.range(64):
        pl.write(sent, [i, 0], (i + me) % 2)

@pl.jit.incore
def give(win: pl.InOut[pld.DistributedTensor[[64, 5], pl.INT32]], y: pl.Out[pl.Tensor[[64, 5], pl.INT32]]):
    pld.tensor.get(y, pld.rank(pld.get_comm_ctx(win)), win)

@pl.jit.incore
def tell(recv: pl.InOut[pld.DistributedTensor[[64, 1], pl.INT32]], counts: pl.Out[pl.Tensor[[64, 1], pl.INT32]]):
    pld.tensor.get(counts, pld.rank(pld.get_comm_ctx(recv)), recv)

@pl.jit.host
def host(x: pl.Tensor[[64, 64, 5], pl.INT32], y: pl.Out[pl.Tensor[[6, 64, 64, 5], pl.INT32]],
         counts: pl.Out[pl.Tensor[[64, 64, 1], pl.INT32]]):
    a = pld.alloc_window_buffer([64, 5], dtype=pl.INT32)
    b = pld.alloc_window_buffer([64, 5], dtype=pl.INT32)
    c = pld.alloc_window_buffer([64], dtype=pl.INT32)
    d = pld.alloc_window_buffer([64], dtype=pl.INT32)
    e = pld.alloc_window_buffer([64], dtype=pl.INT32)
    win = pld.window(a, [64, 5], dtype=pl.INT32)
    other = pld.window(b, [64, 5], dtype=pl.INT32)
    sig = pld.window(c, [64, 1], dtype=pl.INT32)
    sent = pld.window(d, [64, 1], dtype=pl.INT32)
    recv = pld.window(e, [64, 1], dtype=pl.INT32)
    for r in pl.range(64):
        fill(x[r], win, sent, recv, device=r)
{steps}
    for r in pl.range(64):
        tell(recv, counts[r], device=r)
"""


def test_host_collectives_at_64_ranks(transport):
    """Each on what the one before has left."""
    steps = [
        ("pld.tensor.all_to_all(win, other, sig)", "other"),
        ("pld.tensor.broadcast(other, sig, root=63)", "other"),
        ("pld.tensor.allgather(pld.window(a, [1, 5], dtype=pl.INT32), other, sig)", "other"),
        ("pld.tensor.reduce_scatter(win, sig)", "win"),
        ("pld.tensor.all_to_all_v(win, other, sig, sent, recv)", "other"),
        ("pld.tensor.barrier(sig)\n    pld.tensor.allreduce(win, sig, op=pld.ReduceOp.Max)", "win"),
    ]
    lines = []
    for i, (statement, result) in enumerate(steps):
        lines += [f"    {statement}", "    for r in pl.range(64):", f"        give({result}, y[{i}, r], device=r)"]
    host = from_text(WIDE.format(steps="\n".join(lines)))["host"]
    x = np.random.default_rng(64).integers(-999, 999, (64, 64, 5), np.int32)
    y, counts = np.zeros((6, 64, 64, 5), np.int32), np.zeros((64, 64, 1), np.int32)
    host(x, y, counts, config=config(64))
    crossed = x.swapaxes(0, 1)
    np.testing.assert_array_equal(y[0], crossed)
    np.testing.assert_array_equal(y[1], np.stack([crossed[63]] * 64))
    np.testing.assert_array_equal(y[2], np.stack([x[:, 0]] * 64))
    scattered = x.copy()
    scattered[range(64), range(64)] = x.sum(axis=0, dtype=np.int32)
    np.testing.assert_array_equal(y[3], scattered)
    ranks = np.arange(64)
    means = (ranks[:, None] + ranks) % 2
    np.testing.assert_array_equal(counts[..., 0], means)
    filled = means.astype(bool)
    np.testing.assert_array_equal(y[4][filled], scattered.swapaxes(0, 1)[filled])
    np.testing.assert_array_equal(y[5], np.stack([scattered.max(axis=0)] * 64))


# ---- the same bits ----

LANES = """\
N = pl.dynamic("N")

@pl.jit.incore
def fill(x: pl.Tensor[[1, N], pl.{dtype}], win: pl.InOut[pld.DistributedTensor[[1, N], pl.{dtype}]]):
    pld.tensor.put(win, pld.rank(pld.get_comm_ctx(win)), x)

@pl.jit.incore
def give(win: pl.InOut[pld.DistributedTensor[[1, N], pl.{dtype}]], y: pl.Out[pl.Tensor[[1, N], pl.{dtype}]]):
    pld.tensor.get(y, pld.rank(pld.get_comm_ctx(win)), win)

@pl.jit.host
def host(x: pl.Tensor[[NR, 1, N], pl.{dtype}], y: pl.Out[pl.Tensor[[7, NR, 1, N], pl.{dtype}]]):
    n = pld.world_size()
    a = pld.alloc_window_buffer([1, N], dtype=pl.{dtype})
    data = pld.window(a, [1, N], dtype=pl.{dtype})
    b = pld.alloc_window_buffer([2 * n - 1, n], dtype=pl.INT32)
    ring = pld.window(b, [2 * n - 1, n], dtype=pl.INT32)
{variants}
"""
VARIANTS = [
    *(f"data, core_num={cores}" for cores in (1, 2, 3, 4)),
    "data, mode='mesh'",
    "data, ring, mode='ring'",
    "data, mode='auto'",
]


@functools.cache
def lanes_host(dtype, op):
    lines = []
    for i, variant in enumerate(VARIANTS):
        lines += [
            "    for r in pl.range(n):",
            "        fill(x[r], data, device=r)",
            f"    pld.tensor.allreduce({variant}, op=pld.ReduceOp.{op})",
            "    for r in pl.range(n):",
            f"        give(data, y[{i}, r], device=r)",
        ]
    return from_text(LANES.format(dtype=dtype, variants="\n".join(lines)))["host"]


@pytest.mark.parametrize("ranks", [3, 5, 8])
@pytest.mark.parametrize("dtype, op", [("FP32", "Sum"), ("FP32", "Min"), ("FP16", "Sum"), ("BF16", "Prod"), ("BF16", "Max")])
def test_ranks_runs_modes_and_cores_give_the_same_bits(ranks, dtype, op, transport):
    for size in (5, 300, 5001):
        for x in (values((ranks, 1, size), dtype, seed=size), special_values((ranks, 1, size), dtype, seed=size)):
            expected = fold(list(x), dtype, op)
            for _ in range(2):
                y = zeros((len(VARIANTS), ranks, 1, size), dtype)
                lanes_host(dtype, op)(x, y, config=config(ranks))
                found = bits(y)
                for i, variant in enumerate(VARIANTS):
                    for r in range(ranks):
                        np.testing.assert_array_equal(found[i, r], expected, f"{variant}, rank {r}")
