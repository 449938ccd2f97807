"""Scripts that end while threads of theirs are in calls, in any way that a script can end: they end soon, as they meant to,
and no process is left."""

import os
import signal
import uuid
from pathlib import Path

import pytest
from processes import PATIENCE, until, wait_for_line

MARK = "PYPTO_TEST_MARK"  # everything that a script starts inherits it
# Never ends; says when it runs.
ENDLESS = """
pl.printf("RUNNING\\n")
for i in pl.range(LONG):
    acc = pl.mul(acc, 0.9999999)
"""
# What a daemon thread does, for ever.
CALLS = {
    "a call of a prepared worker": ("", "worker(inputs, outputs)"),
    "the result of a submitted call": ("", "worker.submit(compiled, inputs, outputs).result()"),
    "a one-shot call": ("", "compiled(inputs, outputs)"),
    "the turn of another thread": (
        "threading.Thread(target=lambda: worker(inputs, np.zeros_like(outputs)), daemon=True).start()\n",
        "worker(inputs, outputs)",
    ),
    "many calls": ("", "for _ in range(100):\n            worker.submit(compiled, inputs, np.zeros_like(outputs))"),
}
# How the main thread ends, the exit code, and the last line that Python prints.
ENDS = {
    "the end of the script": ("pass", 0, []),
    "sys.exit": ("sys.exit(3)", 3, []),
    "an exception": ("raise ValueError('of the script')", 1, ["ValueError: of the script"]),
    "os._exit": ("os._exit(4)", 4, []),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(1000)", -signal.SIGTERM, []),
    "SIGHUP": ("os.kill(os.getpid(), signal.SIGHUP); time.sleep(1000)", -signal.SIGHUP, []),
    "SIGTERM that exits": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); os.kill(os.getpid(), signal.SIGTERM); time.sleep(1000)",
        5,
        [],
    ),
    "SystemExit in a thread": ("t = threading.Thread(target=sys.exit); t.start(); t.join()", 0, []),
}


def marked(mark):
    """Processes that a script has started, and itself."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and f"{MARK}={mark}".encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
        except OSError:
            pass
    return found


@pytest.fixture
def ends():
    """Runs a script to its end; everything that it started has to be gone soon."""

    def run(s, line, send=None, **env):
        mark = uuid.uuid4().hex
        process = s.start(**{MARK: mark}, **env)
        try:
            wait_for_line(process, line)
            if send is not None:
                process.send_signal(send)
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        until(lambda: not marked(mark), f"all of {mark} has ended")
        said = [text for text in out.splitlines() if line not in text]
        return process.returncode, said, err.splitlines()[-1:]

    return run


PREPARED = "a call of a prepared worker"
AT_THE_END = "the end of the script"
CASES = [(end, PREPARED) for end in ENDS] + [(AT_THE_END, call) for call in CALLS if call != PREPARED]


@pytest.mark.parametrize("transport", ["shm", "threads"])
@pytest.mark.parametrize("end, call", CASES)
def test_a_daemon_thread_in_a_call(script, ends, end, call, transport):
    how, code, last = ENDS[end]
    before, what = CALLS[call]
    s = script(
        ENDLESS,
        f"""
compiled = host.compile(inputs, outputs, config=CONFIG)
worker = compiled.prepare()
{before}
def theirs():
    while True:
        {what}
threading.Thread(target=theirs, daemon=True).start()
sys.stdin.readline()
{how}
""",
    )
    assert ends(s, "RUNNING", PYPTO_TRANSPORT=transport) == (code, [], last)


# A SubWorker that hangs: its function says so, and never returns.
WITH_SUB_WORKER = '''
import sys, threading, time
import numpy as np
import pypto.language as pl
from pypto import ir
from pypto.ir import DistributedConfig


@pl.program
class P:
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def step(y: pl.InOut[pl.Tensor[[64], pl.FP32]]):
        print("RUNNING", flush=True)
        while True:
            time.sleep(1000)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, y: pl.InOut[pl.Tensor[[64], pl.FP32]]):
        self.step(y)


program = ir.compile(P, platform="cpu", distributed_config=DistributedConfig(device_ids=[0]))
y = np.zeros(64, np.float32)
{prepare}
threading.Thread(target=lambda: call(y), daemon=True).start()
sys.stdin.readline()
{how}
'''


@pytest.mark.parametrize("prepare", ["call = program.prepare()", "call = program"], ids=["prepared", "one-shot"])
@pytest.mark.parametrize("end", ENDS)
def test_a_daemon_thread_that_waits_for_a_sub_worker(as_script, ends, end, prepare):
    how, code, last = ENDS[end]
    how = "import os, signal; " + how
    assert ends(as_script(WITH_SUB_WORKER.format(prepare=prepare, how=how)), "RUNNING") == (code, [], last)


# What ends a script whose main thread is in a call: the exit code, and the last line that Python prints.
SIGNALS = {
    "SIGTERM": ("", signal.SIGTERM, -signal.SIGTERM, []),
    "SIGHUP": ("", signal.SIGHUP, -signal.SIGHUP, []),
    "SIGKILL": ("", signal.SIGKILL, -signal.SIGKILL, []),
    "SIGINT": ("", signal.SIGINT, -signal.SIGINT, ["KeyboardInterrupt"]),
    "a handler that exits": ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))", signal.SIGTERM, 5, []),
    "a handler that raises": (
        "def handler(*_): raise OSError('of the handler')\nsignal.signal(signal.SIGALRM, handler)",
        signal.SIGALRM,
        1,
        ["OSError: of the handler"],
    ),
}


@pytest.mark.parametrize("call", ["compiled.prepare()(inputs, outputs)", "compiled(inputs, outputs)"], ids=["prepared", "one-shot"])
@pytest.mark.parametrize("what", SIGNALS)
def test_the_main_thread_in_a_call(script, ends, what, call):
    before, number, code, last = SIGNALS[what]
    s = script(ENDLESS, f"{before}\ncompiled = host.compile(inputs, outputs, config=CONFIG)\n{call}")
    assert ends(s, "RUNNING", send=number) == (code, [], last)


def test_calls_that_nobody_waits_for_end_before_the_script(script, ends, tmp_path):
    """Unless they are of a daemon thread, as above."""
    s = script(
        """
        pl.printf("RUNNING\\n")
        for i in pl.range(50_000_000):
            acc = pl.add(acc, 1.0)
        """,
        """
        result = np.memmap("result", np.float32, "w+", shape=(3, *outputs.shape))
        compiled = host.compile(inputs, outputs, config=CONFIG)
        worker = compiled.prepare()
        for k in range(3):
            worker.submit(compiled, inputs, result[k])
        """,
    )
    assert ends(s, "RUNNING") == (0, [], [])
    assert set((tmp_path / "result").read_bytes()) == set(b"\x00\x80\x4b")  # 2.0**24
