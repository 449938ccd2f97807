"""Small broadcasts in a row, in programs that reach peers by collectives alone: the root does not wait for the others, and
what it sends next must not reach those that are late. Beside them what shows whether ranks are held together: programs that
push into windows of peers, where nothing may have changed."""

import functools

import numpy as np
import pytest

import pypto
from programs import config, from_text

PROGRAM = """\
K = pl.dynamic("K")

@pl.jit.incore
def kernel(inp: pl.Tensor[[K, {size}], pl.INT32], plan: pl.Tensor[[K, 2], pl.INT32], delays: pl.Tensor[[K], pl.INT32],
           out: pl.Out[pl.Tensor[[K, {size}], pl.INT32]], win: pl.InOut[pld.DistributedTensor[[1, {size}], pl.INT32]],
           sig: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    for k in pl.range(pl.tensor.dim(inp, 0)):
        win[:, :] = inp[k : k + 1, :]
        for i in pl.range(pl.read(delays, [k])):
            pl.read(delays, [0])
        if pl.read(plan, [k, 0]) == 0:
            pld.tensor.broadcast(win, sig, root=pl.read(plan, [k, 1]))
        elif pl.read(plan, [k, 0]) == 1:
            pld.tensor.allreduce(win, sig)
        else:
            pld.tensor.barrier(sig)
        out[k : k + 1, :] = win[:, :]

@pl.jit
def wrapper(inp: pl.Tensor[[K, {size}], pl.INT32], plan: pl.Tensor[[K, 2], pl.INT32], delays: pl.Tensor[[K], pl.INT32],
            out: pl.Out[pl.Tensor[[K, {size}], pl.INT32]], win: pl.InOut[pld.DistributedTensor[[1, {size}], pl.INT32]],
            sig: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    kernel(inp, plan, delays, out, win, sig)

@pl.jit.host
def host(inp: pl.Tensor[[NR, K, {size}], pl.INT32], plan: pl.Tensor[[NR, K, 2], pl.INT32],
         delays: pl.Tensor[[NR, K], pl.INT32], out: pl.Out[pl.Tensor[[NR, K, {size}], pl.INT32]]):
    data = pld.alloc_window_buffer([1, {size}], dtype=pl.INT32)
    cells = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    win = pld.window(data, [1, {size}], dtype=pl.INT32)
    sig = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        wrapper(inp[r], plan[r], delays[r], out[r], win, sig, device=r)
"""
BROADCAST, ALLREDUCE, BARRIER = range(3)


@functools.cache
def host_of(size):
    return from_text('NR = pl.dynamic("NR")\n' + PROGRAM.format(size=size))["host"]


def run(x, plan, delays):
    """`plan` of one rank is that of all."""
    ranks, count, size = x.shape
    out = np.zeros_like(x)
    plan = np.array(plan, np.int32)
    plans = np.ascontiguousarray(np.broadcast_to(plan, (ranks, *plan.shape)) if plan.ndim == 2 else plan)
    host_of(size)(x, plans, delays, out, config=config(ranks))
    return out


def expected(x, plan):
    out = x.copy()
    for k, (what, root) in enumerate(plan):
        if what == BROADCAST:
            out[:, k] = x[root, k]
        elif what == ALLREDUCE:
            out[:, k] = x[:, k].sum(axis=0)
    return out


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("size", [1, 12, 13, 300, 2000])
def test_rows_of_broadcasts_with_delays(size, ranks, transport):
    """From one line to half a stage; roots stay for a while or change, and every rank is late now and then."""
    for seed in range(3):
        rng = np.random.default_rng(100 * size + 10 * ranks + seed)
        count = 120
        x = rng.integers(-1000, 1000, (ranks, count, size), np.int32)
        roots = np.repeat(rng.integers(0, ranks, count), rng.choice([1, 5, 40], count))[:count]
        plan = np.stack([rng.choice([BROADCAST, ALLREDUCE, BARRIER], count, p=[0.94, 0.03, 0.03]), roots], axis=1)
        delays = rng.choice([0, 300, 20000], (ranks, count), p=[0.9, 0.07, 0.03]).astype(np.int32)
        np.testing.assert_array_equal(run(x, plan, delays), expected(x, plan))


def test_a_thousand_mixed_rounds_on_one_signal(transport):
    rng = np.random.default_rng(3)
    x = rng.integers(-1000, 1000, (4, 1000, 5), np.int32)
    plan = np.stack([rng.choice([BROADCAST, ALLREDUCE, BARRIER], 1000, p=[0.6, 0.2, 0.2]), rng.integers(0, 4, 1000)], axis=1)
    np.testing.assert_array_equal(run(x, plan, np.zeros((4, 1000), np.int32)), expected(x, plan))


def test_sixty_four_ranks(transport):
    rng = np.random.default_rng(64)
    x = rng.integers(-1000, 1000, (64, 100, 3), np.int32)
    plan = np.stack([np.zeros(100, np.int64), rng.permutation(np.arange(100) % 64)], axis=1)
    np.testing.assert_array_equal(run(x, plan, np.zeros((64, 100), np.int32)), expected(x, plan))


# What one rank's plan has at which place instead of a broadcast of root 0, and words of the report.
WRONG = {
    "its own root": ((BROADCAST, 1), ["root=0", "root=1"]),
    "a barrier": ((BARRIER, 0), ["broadcast", "barrier"]),
    "an allreduce": ((ALLREDUCE, 0), ["broadcast", "allreduce"]),
}


@pytest.mark.parametrize("place", [0, 5, 34, 39])
@pytest.mark.parametrize("name", WRONG)
def test_one_rank_differs(name, place, transport):
    """At the first, in the middle, behind a whole round for want of lines, and in the last of 40."""
    other, words = WRONG[name]
    x = np.ones((3, 40, 2), np.int32)
    delays = np.zeros((3, 40), np.int32)
    for rank in range(3):
        plans = np.zeros((3, 40, 2), np.int32)
        plans[rank, place] = other
        with pytest.raises(pypto.CollectiveMismatchError) as caught:
            run(x, plans, delays)
        text = str(caught.value)
        assert [word for word in words if word not in text] == [], text
        assert "PYPTO-R508" in text and "in kernel at <text " in text
    np.testing.assert_array_equal(run(x, np.zeros((40, 2), np.int32), delays), x)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("count", [1, 7, 33, 34])
def test_one_rank_has_one_less(count, rank, transport):
    """Rank 0 is the root, and does not wait. Line 33 is a whole round."""
    x = np.ones((3, count, 2), np.int32)
    delays = np.zeros((3, count), np.int32)
    text = PROGRAM.replace("pl.range(pl.tensor.dim(inp, 0))", "pl.range(pl.tensor.dim(inp, 0) - pl.read(plan, [0, 0]))")
    text = text.replace("if pl.read(plan, [k, 0]) == 0", "if pl.read(plan, [k, 0]) < 2")
    host = from_text('NR = pl.dynamic("NR")\n' + text.format(size=2))["host"]
    plans = np.zeros((3, count, 2), np.int32)
    plans[rank, 0, 0] = 1
    with pytest.raises(pypto.CollectiveMismatchError) as caught:
        host(x, plans, delays, np.zeros_like(x), config=config(3))
    assert f"rank {rank} has ended its part of the call" in str(caught.value)


PUSHES = """\
@pl.jit
def wrapper(x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
            win: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]], box: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]],
            sig: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(win))
        win[:, :] = x
        pld.tensor.barrier(sig)
        if me == 1:
            for i in pl.range(100000):
                pl.read(x, [0, 0])
            pld.tensor.put({window}, 0, x)
        pld.tensor.broadcast(win, sig, root=0)
        y[:, :] = {window}[:, :]

@pl.jit.host
def host(x: pl.Tensor[[2, 1, 8], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]]):
    a = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
    b = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
    c = pld.alloc_window_buffer([2], dtype=pl.INT32)
    for r in pl.range(2):
        wrapper(x[r], y[r], pld.window(a, [1, 8], dtype=pl.FP32), pld.window(b, [1, 8], dtype=pl.FP32),
                pld.window(c, [2, 1], dtype=pl.INT32), device=r)
"""


@pytest.mark.parametrize("window", ["win", "box"])
def test_what_a_late_rank_pushes_is_there_behind_a_broadcast(window, transport):
    """Into the window that is broadcast, and into another one."""
    x = np.stack([np.full((1, 8), 1), np.full((1, 8), 2)]).astype(np.float32)
    y = np.zeros_like(x)
    from_text(PUSHES.format(window=window))["host"](x, y, config=config(2))
    assert (y[0] == 2).all()
