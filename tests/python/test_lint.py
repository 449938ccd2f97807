"""The lint: what it says of signals that work by luck, and that it is silent about their correct twins."""

import warnings

import numpy as np
import pytest

import pypto
import pypto.language as pl
from pypto.ir import DiagnosticCheck, DiagnosticCheckSet
from pypto.runtime import RunConfig
from programs import config, from_text
from test_compile import SCALE, rows
from transfers import host_of


def findings(ranks, body, lint="warn", shape=(4, 2), disabled=None):
    """What the lint says of a body on INT32 cells: texts of warnings, one for each finding."""
    cells = np.zeros((2, ranks, *shape), dtype=np.int32)
    settings = config(ranks)
    settings.lint = lint
    settings.disabled_diagnostics = disabled
    host = host_of(body, "INT32", shape)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        host(cells[0], cells[1], config=settings)
    assert all(w.category is pypto.LintWarning for w in caught)
    return [str(w.message) for w in caught]


# A barrier by hand among all ranks, in cell [0, 1]; how it is reset follows it.
BARRIER = """
for i in pl.range(3):
    for to in pl.range(n):
        pld.system.notify(win, to, [0, 1], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(win, [0, 1], {expected}, cmp=pld.WaitCmp.Ge)
    {reset}
"""

# (name, code, words of the message, wrong body, correct twin). Everything happens in one order, so that the lint
# has to find it.
CASES = [
    (
        "reuse",
        "PYPTO-W601",
        ["was satisfied at once by what the wait at", "nothing has come since"],
        """
pld.system.notify(win, nxt, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
for i in pl.range(2):
    pld.system.wait(win, [0, 0], 1, cmp=pld.WaitCmp.Ge)
""",
        """
for i in pl.range(2):
    pld.system.notify(win, nxt, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(win, [0, 0], i + 1, cmp=pld.WaitCmp.Ge)
""",
    ),
    (
        "mixed",
        "PYPTO-W602",
        ["is set here, and added to at", "use NotifyOp.AtomicAdd"],
        """
if me == 0:
    pld.system.notify(win, 1, [0, 0], 1, op=pld.NotifyOp.Set)
    pld.system.notify(win, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
else:
    pld.system.wait(win, [0, 0], 2, cmp=pld.WaitCmp.Ge)
""",
        """
if me == 0:
    pld.system.notify(win, 1, [0, 0], 1, op=pld.NotifyOp.Set)
    pld.system.notify(win, 1, [1, 0], 1, op=pld.NotifyOp.AtomicAdd)
else:
    pld.system.wait(win, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    pld.system.wait(win, [1, 0], 1, cmp=pld.WaitCmp.Ge)
    pld.system.notify(win, 1, [1, 0], 0, op=pld.NotifyOp.Set)
""",
    ),
    (
        "overshot",
        "PYPTO-W603",
        ["a wait for == 1 on", "went on to 2", "WaitCmp.Ge"],
        """
if me == 0:
    pld.system.notify(win, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(win, [1, 0], 1, cmp=pld.WaitCmp.Ge)
    pld.system.notify(win, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
else:
    pld.system.wait(win, [0, 0], 1, cmp=pld.WaitCmp.Eq)
    pld.system.notify(win, 0, [1, 0], 1, op=pld.NotifyOp.AtomicAdd)
""",
        """
if me == 0:
    pld.system.notify(win, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(win, [1, 0], 1, cmp=pld.WaitCmp.Eq)
    pld.system.notify(win, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
else:
    pld.system.wait(win, [0, 0], 1, cmp=pld.WaitCmp.Eq)
    pld.system.notify(win, 0, [1, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(win, [0, 0], 2, cmp=pld.WaitCmp.Eq)
""",
    ),
    (
        "remains",
        "PYPTO-W604",
        ["a signal of barrier, is 3 at the end of the call", "(notified at"],
        """
bell = pld.tensor.barrier(bell)
pld.system.notify(bell, nxt, [0, 0], 3, op=pld.NotifyOp.AtomicAdd)
""",
        """
bell = pld.tensor.barrier(bell)
pld.system.notify(bell, nxt, [0, 0], 3, op=pld.NotifyOp.AtomicAdd)
pld.system.wait(bell, [0, 0], 3, cmp=pld.WaitCmp.Ge)
pld.system.notify(bell, me, [0, 0], -3, op=pld.NotifyOp.AtomicAdd)
bell = pld.tensor.barrier(bell)
""",
    ),
    (
        "wrapped",
        "PYPTO-W605",
        ["went beyond the range of INT32"],
        """
pld.system.notify(win, me, [0, 0], 2147483647, op=pld.NotifyOp.AtomicAdd)
pld.system.notify(win, me, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
""",
        """
pld.system.notify(win, me, [0, 0], 2147483646, op=pld.NotifyOp.AtomicAdd)
pld.system.notify(win, me, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
""",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_mistake_and_twin(case, transport):
    _, code, words, wrong, right = case
    texts = findings(2, wrong)
    assert texts and all(code in text for text in texts)
    for word in words:
        assert word in texts[0]
    assert findings(2, right) == []


@pytest.mark.parametrize(
    "expected, reset",
    [
        ("n * (i + 1)", "pass"),
        ("n", "pld.system.notify(win, me, [0, 1], -n, op=pld.NotifyOp.AtomicAdd)"),
    ],
    ids=["threshold", "credit"],
)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_correct_barriers_are_silent(ranks, expected, reset, transport):
    """A reset by credit can let ranks get ahead by one barrier, and still nothing is reused."""
    assert findings(ranks, BARRIER.format(expected=expected, reset=reset)) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_what_is_disabled_is_not_looked_for(case, transport):
    mine = DiagnosticCheck(case[1])
    others = DiagnosticCheckSet(check for check in DiagnosticCheck if check is not mine)
    assert findings(2, case[3], disabled={mine, "another"}) == findings(2, case[3], disabled=mine) == []
    assert findings(2, case[3], lint="error", disabled=[mine]) == []
    assert all(case[1] in text for text in findings(2, case[3], disabled=others))
    assert findings(2, case[3], disabled=set(DiagnosticCheck)) == []


@pytest.mark.parametrize("disabled, count", [(None, 1), (DiagnosticCheck.SignalLeft, 1), (DiagnosticCheck.IdleDevice, 0)])
def test_idle_devices_can_be_disabled(disabled, count):
    wrapper = from_text(SCALE)["wrapper"]
    settings = config(2)
    settings.disabled_diagnostics = disabled
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wrapper(rows(1)[0], np.zeros_like(rows(1)[0]), config=settings)
    assert len(caught) == count


def test_it_is_disabled_call_by_call():
    body = CASES[0][3]
    cells = np.zeros((2, 2, 4, 2), dtype=np.int32)
    compiled = host_of(body, "INT32", (4, 2)).compile(cells[0], cells[1], config=config(2))
    quiet, told = config(2), []
    quiet.disabled_diagnostics = DiagnosticCheckSet(["ReusedArrival"])
    with compiled.prepare() as worker:
        for settings in (None, quiet, None, quiet):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                worker(cells[0], cells[1], config=settings)
                told.append(len(caught) > 0)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                compiled(cells[0], cells[1], config=settings)
                assert told[-1] == (len(caught) > 0)
    assert told == [True, False, True, False]


def test_levels():
    body = CASES[0][3]
    assert findings(2, body, lint="off") == []
    with pytest.raises(pypto.LintError, match="was satisfied at once") as caught:
        findings(2, body, lint="error")
    assert caught.value.diagnostics[0].code == "PYPTO-W601"
    with pytest.raises(ValueError, match="lint must be one of off, warn, error, got 'loud'"):
        RunConfig(lint="loud")


def test_a_finding_is_told_once_for_all_ranks():
    assert len(findings(4, CASES[0][3])) == 1


CLAMPED = """
NR = pl.dynamic("NR")

@pl.jit.incore
def kernel(inp: pl.Tensor[[4, 8], pl.FP32], counts: pl.Tensor[[2], pl.INT32],
           got: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
           signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
           received: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]]):
    got = pld.tensor.all_to_all_v(inp, got, signal, counts, received)

@pl.jit
def wrapper(inp: pl.Tensor[[4, 8], pl.FP32], counts: pl.Tensor[[2], pl.INT32],
            got: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
            received: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]]):
    kernel(inp, counts, got, signal, received)

@pl.jit.host
def host(inp: pl.Tensor[[2, 4, 8], pl.FP32], counts: pl.Tensor[[2, 2], pl.INT32]):
    got_buf = pld.alloc_window_buffer([4, 8], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer(8)
    received_buf = pld.alloc_window_buffer(8)
    for r in pl.range(2):
        got = pld.window(got_buf, [4, 8], dtype=pl.FP32)
        signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
        received = pld.window(received_buf, [2, 1], dtype=pl.INT32)
        wrapper(inp[r], counts[r], got, signal, received, device=r)
"""


def test_counts_above_what_a_part_holds():
    host = from_text(CLAMPED)["host"]
    inp = np.zeros((2, 4, 8), dtype=np.float32)
    with pytest.warns(pypto.LintWarning, match=r"PYPTO-W606.*send_counts\[1\] of rank 0 is 5"):
        host(inp, np.int32([[1, 5], [2, 2]]), config=config(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        host(inp, np.int32([[1, 2], [2, 0]]), config=config(2))


OVERLAPPING = """
@pl.jit.incore
def slow(x: pl.Tensor[[64], pl.INT32], y: pl.Out[pl.Tensor[[64], pl.INT32]],
         win: pl.InOut[pld.DistributedTensor[[2], pl.INT32]], turns: pl.Scalar[pl.INT64]):
    me = pld.rank(pld.get_comm_ctx(win))
    acc = pl.load(x, [0], [64])
    if me == 0:
        pld.system.notify(win, 0, [0], 1, op=pld.NotifyOp.AtomicAdd)
        for i in pl.range(2):
            pld.system.wait(win, [0], 1, cmp=pld.WaitCmp.Ge)
        pld.system.wait(win, [1], 1, cmp=pld.WaitCmp.Ge)
    else:
        for i in pl.range(turns):
            acc = pl.add(acc, 1)
        pld.system.notify(win, 0, [1], 1, op=pld.NotifyOp.AtomicAdd)
    pl.store(acc, [0], y)

@pl.jit
def slow_chip(x: pl.Tensor[[64], pl.INT32], y: pl.Out[pl.Tensor[[64], pl.INT32]],
              win: pl.InOut[pld.DistributedTensor[[2], pl.INT32]], turns: pl.Scalar[pl.INT64]):
    slow(x, y, win, turns)

@pl.jit.incore
def quick(y: pl.Out[pl.Tensor[[64], pl.INT32]], win: pl.InOut[pld.DistributedTensor[[64], pl.INT32]], wrong: pl.Scalar[pl.INT64]):
    me = pld.rank(pld.get_comm_ctx(win))
    for i in pl.range(64):
        pld.system.notify(win, me, [i], 1, op=pld.NotifyOp.AtomicAdd)
    for k in pl.range(1 + wrong):
        pld.system.wait(win, [7], 1, cmp=pld.WaitCmp.Ge)
    pl.write(y, [0], 1)

@pl.jit
def quick_chip(y: pl.Out[pl.Tensor[[64], pl.INT32]], win: pl.InOut[pld.DistributedTensor[[64], pl.INT32]], wrong: pl.Scalar[pl.INT64]):
    quick(y, win, wrong)

@pl.jit.host
def host(x: pl.Tensor[[2, 64], pl.INT32], y: pl.Out[pl.Tensor[[2, 64], pl.INT32]], turns: pl.Scalar[pl.INT64], wrong: pl.Scalar[pl.INT64]):
    slow_buf = pld.alloc_window_buffer([2], dtype=pl.INT32)
    quick_buf = pld.alloc_window_buffer([64], dtype=pl.INT32)
    if turns > 0:
        for r in pl.range(2):
            slow_chip(x[r], y[r], pld.window(slow_buf, [2], dtype=pl.INT32), turns, device=r)
    if turns == 0:
        for r in pl.range(2):
            quick_chip(y[r], pld.window(quick_buf, [64], dtype=pl.INT32), wrong, device=r)
"""


@pytest.mark.parametrize("wrong", [0, 1])
def test_calls_in_flight_keep_their_findings(wrong, transport):
    """While a rank of one call waits, it takes part in another one, with cells of its own."""
    x, y, z = (np.zeros((2, 64), np.int32) for _ in range(3))
    host = from_text(OVERLAPPING)["host"]
    program = host.compile(config=config(2), turns=pl.RUNTIME, wrong=pl.RUNTIME)
    with program.prepare() as worker, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = worker.submit(program, x, y, 20000, 0)
        second = worker.submit(program, x, z, 0, wrong)
        first.result()
        second.result()
    assert (y[1] == 20000).all() and (z[:, 0] == 1).all()
    seen = [str(w.message).split(" was satisfied at once")[0] for w in caught]
    expected = ["'slow_buf'[0] of rank 0", "'quick_buf'[7] of rank 0"][: 1 + wrong]
    assert sorted(seen) == sorted(f"[PYPTO-W601]: a wait for {cell}" for cell in expected)
