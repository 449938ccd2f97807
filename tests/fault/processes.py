"""Watching the processes of a script: which workers it has, and that they end."""

import os
import signal
import time
from pathlib import Path


def workers_of(pid):
    """Process ids of the live workers of a script, by rank."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            status = Path(f"/proc/{name}/status").read_text()
            command = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"PPid:\t{pid}\n" in status and b"pypto-worker" in command[0] and "State:\tZ" not in status:
            words = command[1].decode().split()
            found[int(words[words.index("rank") + 1])] = int(name)
    return found


def wait_for_workers(pid, ranks, seconds=30):
    """Waits until the script has all its workers and they are past starting; returns their pids."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = workers_of(pid)
        if len(found) == ranks:
            return found
        time.sleep(0.01)
    raise AssertionError(f"{ranks} workers did not start: {workers_of(pid)}")


def wait_for_line(process, text):
    """Reads the script's output up to a line that contains `text`, and no further: communicate() would not find what is
    in the buffer of the stream."""
    line = b""
    while byte := os.read(process.stdout.fileno(), 1):
        line += byte
        if byte != b"\n":
            continue
        if text in line.decode():
            return line.decode()
        line = b""
    raise AssertionError(f"{text!r} was not printed: {process.stderr.read()}")


def until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.01)


def wait_until_it_sleeps(pid, seconds=30):
    """Waits until the main thread of a process, which does nothing but compute and wait, waits."""
    deadline = time.monotonic() + seconds
    while Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "S":
        assert time.monotonic() < deadline, f"{pid} does not wait"
        time.sleep(0.01)


def wait_until_it_runs(process, ranks):
    """Waits until kernels of all these ranks have said so: pl.printf("RUNNING\\n"). Else the output is as it was."""
    left = {f"rank {rank}: RUNNING" for rank in ranks}
    while left:
        left.discard(wait_for_line(process, "RUNNING").strip())


def wait_for_death(pids, seconds=10):
    """Waits until the processes have ended, reaped or not."""
    deadline = time.monotonic() + seconds
    for pid in pids:
        while os.path.exists(f"/proc/{pid}") and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
            assert time.monotonic() < deadline, f"{pid} lives on"
            time.sleep(0.01)


def assert_all_gone(pids, seconds=10):
    """No process of these is left (a zombie counts as gone only when reaped)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return
        time.sleep(0.01)
    raise AssertionError(f"left: {[pid for pid in pids if os.path.exists(f'/proc/{pid}')]}")


SIGNAL_NAMES = {signal.SIGKILL: "SIGKILL", signal.SIGSEGV: "SIGSEGV"}
