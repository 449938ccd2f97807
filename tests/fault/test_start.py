"""Workers that do not come up: one that is slow, ends, fails, or is waited for when Ctrl-C comes. The error names it, everything
that was started is gone, and the next workers of the same process are good."""

import os
import signal

import pytest
from processes import PATIENCE, assert_all_gone, until, wait_for_line

# A worker program in the place of the real one: what rank 1 does is given by the test, all others are good.
PROGRAM = """#!/bin/sh
case "$1" in
*"rank 1 of"*) {does} ;;
esac
exec "{worker}" "$@"
"""
BODY = "acc = pl.add(acc, 1.0)"
DRIVER = """
def state():
    children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    return len(children), len(os.listdir("/proc/self/fd")), open("/proc/self/maps").read().count("memfd")

compiled = host.compile(inputs, outputs, config=CONFIG)
os.environ["PYPTO_WORKER"] = sys.argv[1]
before = state()
print("GO", flush=True)
start = time.monotonic()
try:
    %s
except BaseException as error:
    print("RAISED", type(error).__name__, isinstance(error, RuntimeError))
    print(error)
print("SECONDS", time.monotonic() - start)
print("LEFT", [now - then for now, then in zip(state(), before)])
del os.environ["PYPTO_WORKER"]
with compiled.prepare() as worker:
    worker(inputs, outputs)
print("NEXT", outputs.sum())
shutdown()
"""
PREPARE = "compiled.prepare(startup_timeout_s=%d)"
ONE_SHOT = "compiled(inputs, outputs)"


@pytest.fixture
def start(script, tmp_path, monkeypatch):
    """Starts a script of three ranks, of which rank 1 does what the test says."""
    import subprocess
    import sys

    from pypto import _core

    library = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(_core.__file__)))))
    real = os.environ.get("PYPTO_WORKER") or os.path.join(library, "libexec", "pypto", "pypto-worker")

    def go(does, call):
        program = tmp_path / "worker"
        program.write_text(PROGRAM.format(does=does, worker=real))
        program.chmod(0o700)
        s = script(BODY, DRIVER % call, ranks=3)
        return subprocess.Popen(
            [sys.executable, str(s.path), str(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )

    return go


def finish(process):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out + err
    assert "LEFT [0, 0, 0]" in out and "NEXT 384.0" in out
    return out


def test_a_worker_that_is_slow(start):
    for seconds in (3, 30, 300):
        out = finish(start("exec sleep 10000", PREPARE % seconds))
        assert "RAISED DeviceError True" in out
        assert f"did not become ready within {seconds}s" in out
        assert seconds <= float(out.split("SECONDS ")[1].split()[0])
        if "chip worker 1 (pid " in out:
            return  # else the machine is so busy that one of the others did not come up in time
    raise AssertionError(out)


@pytest.mark.parametrize("call", [PREPARE % PATIENCE, ONE_SHOT], ids=["prepared", "one-shot"])
@pytest.mark.parametrize(
    "does, words",
    [
        ("exit 3", "exited during init before signalling ready (exit code 3)"),
        ("kill -9 $$", "exited during init before signalling ready (signal 9 (SIGKILL))"),
        ("ulimit -v 1000000", "failed during init: "),
    ],
)
def test_a_worker_that_ends_or_fails(start, does, words, call):
    out = finish(start(does, call))
    assert "RAISED DeviceError True" in out
    assert "chip worker 1 (pid " in out and words in out


def test_one_that_ends_is_told_while_another_is_slow(start):
    """Rank 1 is not the first that is waited for, and rank 0 would be waited for for ever."""
    out = finish(start('exit 4 ;; *"rank 0 of"*) exec sleep 10000', "compiled.prepare()"))
    assert "chip worker 1 (pid " in out and "(exit code 4)" in out


@pytest.mark.parametrize("call", ["compiled.prepare()", ONE_SHOT], ids=["prepared", "one-shot"])
def test_ctrl_c_while_workers_start(start, call):
    process = start("exec sleep 10000", call)
    wait_for_line(process, "GO")

    def children():
        return [int(pid) for pid in open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()]

    until(lambda: len(children()) == 3, "three workers")
    started = children()
    os.kill(process.pid, signal.SIGINT)
    out = finish(process)
    assert "RAISED KeyboardInterrupt" in out
    assert_all_gone(started)


def test_a_worker_program_that_cannot_be_run(start, tmp_path):
    process = start("exit 0", PREPARE % PATIENCE)
    (tmp_path / "worker").chmod(0o600)
    out = finish(process)
    assert "RAISED DeviceError True" in out and "cannot start the worker process" in out
