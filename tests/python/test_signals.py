"""pld.system.notify and wait: counters, levels, and what a rank sees behind them."""

import numpy as np
import pytest

import pypto
from programs import config, from_text
from transfers import assert_fails, assert_same, run, text_of, values

RANKS = [1, 2, 3, 4]


def cells(ranks, body, win, out=None):
    """Runs a body on INT32 cells [*win]; the inputs are the ranks' numbers."""
    x = np.arange(ranks, dtype=np.int32).reshape(ranks, 1, 1)
    return run(body, x, "INT32", out=win if out is None else out, win=win)


SHOW = "pld.tensor.get(out, me, win)"


@pytest.mark.parametrize("ranks", RANKS)
def test_adds_and_sets(ranks, transport):
    """Positional and keyword operands; values of any sign, known at run time or not."""
    body = f"""
pld.system.notify(win, nxt, [0, 0], 5, op=pld.NotifyOp.AtomicAdd)
pld.system.notify(target=win, peer=nxt, offsets=[0, 0], value=me * 10, op=pld.NotifyOp.AtomicAdd)
pld.system.notify(win, nxt, [0, 1], pl.const(-7, pl.INT32), op=pld.NotifyOp.AtomicAdd)
pld.system.notify(win, nxt, [1, 0], 9, op=pld.NotifyOp.Set)
pld.system.notify(win, nxt, [1, 0], -3 - me, op=pld.NotifyOp.Set)
ARRIVE 1
{SHOW}
"""
    result = cells(ranks, body, [2, 2])
    for r in range(ranks):
        before = (r + ranks - 1) % ranks
        assert_same(result[r], [[5 + 10 * before, -7], [-3 - before, 0]])


def test_adds_wrap():
    body = f"""
pld.system.notify(win, me, [0, 0], 2147483647, op=pld.NotifyOp.AtomicAdd)
pld.system.notify(win, me, [0, 0], 2, op=pld.NotifyOp.AtomicAdd)
{SHOW}
"""
    assert cells(1, body, [1, 1])[0, 0, 0] == -(2**31) + 1


@pytest.mark.parametrize("ranks", [2, 4, 64])
def test_no_add_is_lost(ranks, transport):
    """Everybody adds to everybody; waits for the sum, which is there when the last has come."""
    body = f"""
for i in pl.range(50):
    for to in pl.range(n):
        pld.system.notify(win, to, [0, 1], me + 1, op=pld.NotifyOp.AtomicAdd)
pld.system.wait(win, [0, 1], 25 * n * (n + 1), cmp=pld.WaitCmp.Eq)
ARRIVE 1
{SHOW}
"""
    result = cells(ranks, body, [1, 3])
    assert_same(result, np.tile(np.int32([0, 25 * ranks * (ranks + 1), 0]), (ranks, 1, 1)))


def test_a_cell_of_one_s_own_is_the_same_cell():
    body = f"""
for i in pl.range(4):
    pld.system.notify(win, me, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
pld.system.wait(win, [0, 0], 4, cmp=pld.WaitCmp.Eq)
seen = pl.read(win, [0, 0])
pld.system.notify(win, peer=me, offsets=[0, 0], value=-4, op=pld.NotifyOp.AtomicAdd)
pl.write(win, [0, 1], seen)
pld.system.wait(win, [0, 0], 0, cmp=pld.WaitCmp.Eq)
{SHOW}
"""
    assert_same(cells(2, body, [1, 2]), [[[0, 4]], [[0, 4]]])


def test_levels_persist_and_waits_compare_signed():
    body = """
pld.system.wait(win, [0, 0], 0, cmp=pld.WaitCmp.Ge)
pld.system.wait(win, [0, 0], 0, cmp=pld.WaitCmp.Eq)
ARRIVE 1
pld.system.notify(win, nxt, [0, 0], 3, op=pld.NotifyOp.Set)
for level in pl.range(4):
    pld.system.wait(win, [0, 0], level, cmp=pld.WaitCmp.Ge)
    pld.system.wait(win, [0, 0], level, cmp=pld.WaitCmp.Ge)
ARRIVE 2
pld.system.notify(win, nxt, [0, 0], -5, op=pld.NotifyOp.Set)
pld.system.wait(win, [0, 0], -5, cmp=pld.WaitCmp.Eq)
pld.system.wait(win, [0, 0], -6, cmp=pld.WaitCmp.Ge)
pl.write(out, [0, 0], pl.read(win, [0, 0]))
"""
    assert_same(cells(2, body, [1, 1]), [[[-5]], [[-5]]])


def test_cells_of_any_rank_and_of_parts():
    body = """
pld.system.notify(win[1, 0:2, 1:3], nxt, [1, 0], 4, op=pld.NotifyOp.Set)
pld.system.wait(win, [1, 1, 1], 4, cmp=pld.WaitCmp.Eq)
pld.system.wait(win[1:2, 1:2, 0:3], [0, 0, 1], 4, cmp=pld.WaitCmp.Eq)
ARRIVE 1
pld.tensor.get(out, me, win)
"""
    expected = np.zeros((2, 2, 2, 3), np.int32)
    expected[:, 1, 1, 1] = 4
    assert_same(cells(2, body, [2, 2, 3]), expected)


# ---- what is seen behind a wait: the memory model ----

BELL = "pld.system.notify(bell, {to}, [{cell}, 0], 1, op=pld.NotifyOp.AtomicAdd)"
HEAR = "pld.system.wait(bell, [{cell}, 0], {count}, cmp=pld.WaitCmp.Ge)"


@pytest.mark.parametrize("ranks", [2, 4, 64])
def test_stores_before_a_notify_are_seen_behind_the_wait(ranks, transport):
    """Many rounds of: write my window, tell the next, read what the previous wrote, tell it that I have
    read. Each round's values are new, so that a stale byte shows."""
    body = f"""
bad = pl.const(0, pl.INT32)
for round in pl.range(1, 200):
    mine = pl.cast(round * 100, pl.INT32) + me
    pl.store(pl.tile.full([1, 64], pl.INT32, 0) + mine, [0, 0], win)
    {BELL.format(to="nxt", cell="0")}
    {HEAR.format(cell="0", count="round")}
    theirs = pld.tile.remote_load(win, prev, [0, 0], [1, 64])
    for i in pl.range(64):
        if pl.read(theirs, [0, i]) != pl.cast(round * 100, pl.INT32) + prev:
            bad = bad + 1
    {BELL.format(to="prev", cell="1")}
    {HEAR.format(cell="1", count="round")}
pl.write(out, [0, 0], bad)
"""
    x = np.zeros((ranks, 1, 1), np.int32)
    assert_same(run(body, x, "INT32", win=[1, 64]), np.zeros((ranks, 1, 1)))


@pytest.mark.parametrize("how", ["put", "remote_store"])
def test_pushes_before_a_notify_are_seen_behind_the_wait(how, transport):
    push = (
        "pld.tensor.put(win[0:1, :], nxt, inp)"
        if how == "put"
        else "pld.remote_store(pl.load(inp, [0, 0], [1, 64]), win, nxt, [0, 0])"
    )
    body = f"""
bad = pl.const(0, pl.INT32)
for round in pl.range(1, 200):
    pl.store(pl.tile.full([1, 64], pl.INT32, 0) + pl.cast(round, pl.INT32), [0, 0], out)
    {push.replace("inp", "out")}
    {BELL.format(to="nxt", cell="0")}
    {HEAR.format(cell="0", count="round")}
    for i in pl.range(64):
        if pl.read(win, [0, i]) != pl.cast(round, pl.INT32):
            bad = bad + 1
    {BELL.format(to="prev", cell="1")}
    {HEAR.format(cell="1", count="round")}
pl.write(out, [0, 0], bad)
"""
    result = run(body, np.zeros((2, 1, 64), np.int32), "INT32", win=[2, 64])
    assert_same(result[:, 0, 0], [0, 0])


@pytest.mark.parametrize("ranks", [3, 4, 64])
def test_visibility_is_transitive(ranks, transport):
    """Rank 0 writes into the last rank's window and tells rank 1 only; each tells the next. Behind the
    last wait, which no notify of rank 0 has touched, the bytes are there."""
    body = f"""
bad = pl.const(0, pl.INT32)
for round in pl.range(1, {20 if ranks == 64 else 200}):
    value = pl.cast(round, pl.INT32)
    if me == 0:
        pld.remote_store(pl.tile.full([1, 32], pl.INT32, 0) + value, win, n - 1, [0, 0])
        pl.store(pl.tile.full([1, 32], pl.INT32, 0) + value, [0, 0], win)
        {BELL.format(to="1", cell="0")}
    else:
        {HEAR.format(cell="0", count="round")}
        if me < n - 1:
            {BELL.format(to="me + 1", cell="0")}
        else:
            far = pld.tile.remote_load(win, 0, [0, 0], [1, 32])
            for i in pl.range(32):
                if pl.read(win, [0, i]) != value:
                    bad = bad + 1
                if pl.read(far, [0, i]) != value:
                    bad = bad + 1
            {BELL.format(to="0", cell="1")}
    if me == 0:
        {HEAR.format(cell="1", count="round")}
pl.write(out, [0, 0], bad)
"""
    result = run(body, np.zeros((ranks, 1, 1), np.int32), "INT32", win=[1, 32])
    assert_same(result, np.zeros((ranks, 1, 1)))


def test_adds_to_one_cell_release_together(transport):
    """The last rank waits for the sum of all adds: it sees what each of the adders wrote."""
    body = """
bad = pl.const(0, pl.INT32)
for round in pl.range(1, 100):
    value = pl.cast(round, pl.INT32)
    if me > 0:
        pld.remote_store(pl.tile.full([1, 16], pl.INT32, 0) + value, win, 0, [me, 0])
        pld.system.notify(bell, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(bell, [1, 0], pl.cast(round, pl.INT32), cmp=pld.WaitCmp.Ge)
    else:
        pld.system.wait(bell, [0, 0], (n - 1) * pl.cast(round, pl.INT32), cmp=pld.WaitCmp.Ge)
        for row in pl.range(1, n):
            for i in pl.range(16):
                if pl.read(win, [row, i]) != value:
                    bad = bad + 1
        for to in pl.range(1, n):
            pld.system.notify(bell, to, [1, 0], 1, op=pld.NotifyOp.AtomicAdd)
pl.write(out, [0, 0], bad)
"""
    assert_same(run(body, np.zeros((4, 1, 1), np.int32), "INT32", win=[4, 16]), np.zeros((4, 1, 1)))


def test_a_notify_publishes_earlier_notifies(transport):
    """Counts set in many cells of all ranks, then one cell that the reader waits for: plain reads see all
    counts (how experts learn how many tokens come)."""
    body = """
for to in pl.range(n):
    for i in pl.range(8):
        pld.system.notify(win, to, [me, i], me * 8 + i + 1, op=pld.NotifyOp.AtomicAdd)
ARRIVE 1
for row in pl.range(n):
    for i in pl.range(8):
        pl.write(out, [row, i], pl.read(win, [row, i]))
"""
    expected = np.arange(1, 33, dtype=np.int32).reshape(4, 8)
    assert_same(cells(4, body, [4, 8]), np.tile(expected, (4, 1, 1)))


@pytest.mark.parametrize("how", ["pl.write(win, [0, 0], 7)", "pl.store(pl.tile.full([1, 1], pl.INT32, 7), [0, 0], win)"])
def test_one_s_own_writes_satisfy_one_s_own_wait(how):
    body = f"{how}\npld.system.wait(win, [0, 0], 7, cmp=pld.WaitCmp.Eq)\n{SHOW}"
    assert_same(cells(1, body, [1, 1]), [[[7]]])


# ---- what is refused ----

ADD = "op=pld.NotifyOp.AtomicAdd"
REFUSED = [
    (f"pld.system.notify(inp, 0, [0, 0], 1, {ADD})", "target must be a DistributedTensor, got Tensor"),
    (f"pld.system.notify(win, [0], [0, 0], 1, {ADD})", "peer must be a scalar"),
    (f"pld.system.notify(win, 0, [0], 1, {ADD})", "offsets rank is 1"),
    (f"pld.system.notify(win, 0, 0, 1, {ADD})", "offsets must be a list or tuple"),
    (f"pld.system.notify(win, 0, [0, 0], [1], {ADD})", "value must be a scalar"),
    (f"pld.system.notify(win, 0, [0, 0], 1.5, {ADD})", "value must be an integer or index scalar"),
    (f"pld.system.notify(win, 0, [0, 0], 2147483648, {ADD})", "does not fit int32"),
    (f"pld.system.notify(win, 64, [0, 0], 1, {ADD})", "peer 64 does not exist"),
    (f"pld.system.notify(win, -1, [0, 0], 1, {ADD})", "peer -1 does not exist"),
    (f"pld.system.notify(win, 0, [0, 2], 1, {ADD})", "reaches past the end of dimension 1"),
    (f"pld.system.notify(win, 0, [-1, 0], 1, {ADD})", "must be non-negative"),
    ("pld.system.notify(win, 0, [0, 0], 1)", "missing 1 required keyword-only argument: 'op'"),
    ("pld.system.notify(win, 0, [0, 0], 1, op=pld.WaitCmp.Ge)", "NotifyOp.AtomicAdd or NotifyOp.Set"),
    ("pld.system.notify(win, 0, [0, 0], 1, op=1)", "NotifyOp.AtomicAdd or NotifyOp.Set"),
    (f"pld.system.notify(win, 0, [0, 0], {ADD})", "missing 1 required positional argument: 'value'"),
    ("pld.system.wait(inp, [0, 0], 1, cmp=pld.WaitCmp.Ge)", "signal must be a DistributedTensor"),
    ("pld.system.wait(win, [0, 0, 0], 1, cmp=pld.WaitCmp.Ge)", "offsets rank is 3"),
    ("pld.system.wait(win, [1, 0], 1, cmp=pld.WaitCmp.Ge)", "reaches past the end of dimension 0"),
    ("pld.system.wait(win, [0, 0], inp, cmp=pld.WaitCmp.Ge)", "expected must be a scalar"),
    ("pld.system.wait(win, [0, 0], -2147483649, cmp=pld.WaitCmp.Ge)", "does not fit int32"),
    ("pld.system.wait(win, [0, 0], 1)", "missing 1 required keyword-only argument: 'cmp'"),
    ("pld.system.wait(win, [0, 0], 1, cmp=pld.NotifyOp.Set)", "WaitCmp.Eq or WaitCmp.Ge"),
    ("pld.system.wait(win, 0, [0, 0], 1, cmp=pld.WaitCmp.Ge)", "takes 3 positional arguments but 4 were given"),
    ("pld.notify(win, 0, [0, 0], 1, op=pld.NotifyOp.Set)", "pld.system.notify"),
    ("pld.wait(win, [0, 0], 1, cmp=pld.WaitCmp.Ge)", "pld.system.wait"),
]


@pytest.mark.parametrize("statement, words", REFUSED, ids=lambda value: value)
def test_refused(statement, words):
    host = from_text(text_of(statement, "INT32", [1, 2]))["host"]
    x = values((1, 1, 2), "INT32")
    with pytest.raises(pypto.Error) as caught:
        host(x, np.zeros_like(x), config=config(1))
    assert words in str(caught.value)
    assert statement in str(caught.value)


@pytest.mark.parametrize("dtype", ["INT64", "UINT32", "FP32", "INT16"])
@pytest.mark.parametrize(
    "statement",
    [f"pld.system.notify(win, 0, [0, 0], 1, {ADD})", "pld.system.wait(win, [0, 0], 1, cmp=pld.WaitCmp.Ge)"],
)
def test_signals_are_int32(statement, dtype):
    host = from_text(text_of(statement, dtype, [1, 2]))["host"]
    x = values((1, 1, 2), dtype)
    with pytest.raises(pypto.Error, match=f"signal dtype must be INT32, not {dtype.lower()}"):
        host(x, np.zeros_like(x), config=config(1))


# ---- what is found when it runs ----

OUTSIDE = [
    (f"pld.system.notify(win, me + n, [0, 0], 1, {ADD})", r"peer <me + n> does not exist: the domain of window 'win_buf' \(parameter 'win'\) has ranks 0 to <n - 1>$"),
    (f"pld.system.notify(win, me - n, [0, 0], 1, {ADD})", "peer <me - n> does not exist"),
    (f"pld.system.notify(win, nxt, [0, me + 2], 1, {ADD})", r"signal cell \[0, <me + 2>\] is outside window 'win_buf' \(parameter 'win'\) of shape \[1, 2\] \(dimension 1\)"),
    (f"pld.system.notify(win, nxt, [me - n, 0], 1, {ADD})", r"signal cell \[<me - n>, 0\]"),
    ("pld.system.wait(win, [0, me + 2], 0, cmp=pld.WaitCmp.Ge)", r"signal cell \[0, <me + 2>\]"),
    (
        f"pld.system.notify(win, nxt, [0, 0], pl.cast(me + 1, pl.INT64) << 32, {ADD})",
        "notify: value is <(me + 1) << 32>, and signal cells are INT32",
    ),
    (
        "pld.system.wait(win, [0, 0], pl.cast(me + 1, pl.INT64) << 32, cmp=pld.WaitCmp.Ge)",
        "wait: expected is <(me + 1) << 32>, and signal cells are INT32",
    ),
    ("pld.system.wait(win[0:1, 0:1], [0, me + 1], 0, cmp=pld.WaitCmp.Ge)", r"signal cell \[0, <me + 1>\] is outside .* of shape \[1, 1\]"),
]


@pytest.mark.parametrize("ranks", [2, 64])
@pytest.mark.parametrize("statement, words", OUTSIDE, ids=lambda value: value)
def test_outside_at_run_time(statement, words, ranks, transport):
    assert_fails(statement, statement, words, "INT32", [1, 2], ranks)
