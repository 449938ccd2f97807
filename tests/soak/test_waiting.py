"""Very long sequences of waiting: barriers; ranks that park and wake all the time, which is no deadlock;
deadlocks that have to be found every time."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "fault"), str(TESTS / "python")]
from script_fixtures import as_script, script  # noqa: E402, F401
from test_barriers import BARRIERS, barriers  # noqa: E402
from test_deadlocks import PATTERNS  # noqa: E402
from transfers import run  # noqa: E402

TRANSPORTS = pytest.mark.parametrize("transport", ["shm", "threads"])


@TRANSPORTS
@pytest.mark.parametrize("name", BARRIERS)
@pytest.mark.parametrize("ranks, count", [(2, 100000), (4, 2000)])
def test_barriers_in_a_row(ranks, count, name, transport, monkeypatch):
    monkeypatch.setenv("PYPTO_TRANSPORT", transport)
    barriers(ranks, count, BARRIERS[name])


# Tokens go round; who has one computes for a while: a rank without one parks after a millisecond. In each round
# one of four ranks computes, so that the last one to fall asleep, and the first to wake, is now this and now that.
TOKENS = """
for k in pl.range(1, pl.tensor.dim(inp, 0) + 1):
    for token in pl.range(TOKENS):
        if me != token:
            pld.system.wait(bell, [token, 0], k, cmp=pld.WaitCmp.Ge)
        for i in pl.range(pl.read(inp, [k - 1, token])):
            pl.read(inp, [0, 0])
        pld.system.notify(bell, nxt, [token, 0], 1, op=pld.NotifyOp.AtomicAdd)
        if me == token:
            pld.system.wait(bell, [token, 0], k, cmp=pld.WaitCmp.Ge)
pl.write(out, [0, 0], 1)
"""


@TRANSPORTS
@pytest.mark.parametrize("tokens", [1, 2, 4])
def test_parking_and_waking_is_no_deadlock(tokens, transport, monkeypatch):
    monkeypatch.setenv("PYPTO_TRANSPORT", transport)
    rng = np.random.default_rng(tokens)
    stop = time.monotonic() + 10
    while time.monotonic() < stop:
        # Up to some milliseconds; most of them about as long as ranks look before they park.
        delays = rng.choice([0, 0, 3000, 60000, 120000, 180000, 600000], (4, 100, 4)) * rng.uniform(0.5, 1.5, (4, 100, 4))
        result = run(TOKENS.replace("TOKENS", str(tokens)), delays.astype(np.int32), "INT32", out=[1, 1], win=[1, 1])
        assert result.sum() == 4


@TRANSPORTS
@pytest.mark.parametrize("name", PATTERNS)
def test_every_deadlock_is_found(script, name, transport):  # noqa: F811
    ranks, body, mistake, *_ = PATTERNS[name]
    s = script(
        body.replace("MISTAKE", mistake),
        """
        found = 0
        for i in range(200):
            try:
                run()
            except pypto.DeadlockError:
                found += 1
        print("FOUND", found)
        """,
        ranks=ranks,
    )
    code, out, err = s.run(PYPTO_TRANSPORT=transport)
    assert code == 0, err
    assert out.split()[-2:] == ["FOUND", "200"]


@TRANSPORTS
def test_deadlocks_of_sleepers_are_found(script, transport):  # noqa: F811
    """Chains of signals between delays, at whose random end one notify is missing, or none: a deadlock is found
    when there is one, and only then."""
    s = script(
        """
        steps = pl.cast(pl.read(inp, [0, 0]), pl.INT32)
        for k in pl.range(1, steps + 1):
            if me > 0:
                pld.system.wait(signal, [0, 0], k, cmp=pld.WaitCmp.Ge)
            for i in pl.range(pl.cast(pl.read(inp, [0, 1 + k % 62]), pl.INT32)):
                pl.read(inp, [0, 0])
            if k < steps or me != pl.cast(pl.read(inp, [0, 63]), pl.INT32):
                pld.system.notify(signal, (me + 1) % n, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
            if me == 0:
                pld.system.wait(signal, [0, 0], k, cmp=pld.WaitCmp.Ge)
        """,
        """
        rng = np.random.default_rng(1)
        wrong = 0
        for i in range(1000):
            inputs[:] = rng.choice([0, 0, 0, 3000, 150000], inputs.shape)
            inputs[:, 0, 0] = rng.integers(1, 20)
            culprit = rng.integers(-4, 4)
            inputs[:, 0, 63] = culprit
            try:
                run()
                wrong += culprit >= 0
            except pypto.DeadlockError:
                wrong += culprit < 0
        print("WRONG", wrong)
        """,
        ranks=4,
    )
    code, out, err = s.run(PYPTO_TRANSPORT=transport)
    assert code == 0, err
    assert out.split()[-2:] == ["WRONG", "0"]
