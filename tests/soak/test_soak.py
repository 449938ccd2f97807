"""Long runs, not part of `make check`: `make soak`."""

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fault"))
from script_fixtures import as_script, script  # noqa: E402, F401
from processes import PATIENCE, assert_all_gone, wait_for_line, wait_for_workers  # noqa: E402
from test_faults import BARRIER, CATCH, ONE_COMPUTES  # noqa: E402


def test_thirty_seconds_of_computing_are_no_deadlock(script):  # noqa: F811
    s = script(ONE_COMPUTES, 'print("GO", flush=True)\n' + CATCH)
    process = s.start()
    wait_for_line(process, "GO")
    pids = wait_for_workers(process.pid, 2)
    time.sleep(30)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert "RAISED KeyboardInterrupt" in out, out + err
    assert_all_gone(pids.values())


def test_a_hundred_kills_at_random_moments(script):  # noqa: F811
    """A busy script loses a random worker at a random moment: each time one clear error, then it goes on."""
    s = script(
        BARRIER,
        """
        print("GO", flush=True)
        died = 0
        stop = time.monotonic() + 120
        while died < 100 and time.monotonic() < stop:
            outputs[:] = 0
            try:
                run()
                assert outputs.sum() == 256
            except pypto.DeviceError as error:
                died += 1
                print("DIED", flush=True)
        shutdown()
        print("TOTAL", died, len(os.listdir("/proc/self/fd")), flush=True)
        """,
        ranks=4,
    )
    process = s.start()
    wait_for_line(process, "GO")
    rng = random.Random(2)
    for _ in range(100):
        pids = wait_for_workers(process.pid, 4)
        time.sleep(rng.random() * 0.02)
        try:
            os.kill(pids[rng.randrange(4)], signal.SIGKILL)
        except ProcessLookupError:
            continue
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err


def test_a_hundred_thousand_calls_leak_nothing(script):  # noqa: F811
    s = script(
        BARRIER,
        """
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4

        for i in range(2000):
            run()
        before = resident(), len(os.listdir("/proc/self/fd"))
        for i in range(100000):
            run()
        after = resident(), len(os.listdir("/proc/self/fd"))
        print("LEAK", after[0] - before[0], after[1] - before[1])
        """,
    )
    code, out, err = s.run()
    assert code == 0, err
    kib, fds = map(int, out.split()[1:3])
    assert kib < 1024 and fds == 0
