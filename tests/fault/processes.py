"""Watching the processes of a script: which workers it has, and that they end."""

import os
import select
import signal
import time
from pathlib import Path

# Seconds to wait for what has to come. They only matter when something is broken, and so they are more than the busiest
# machine needs.
PATIENCE = 600


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


def wait_for_workers(pid, ranks):
    """Waits until the script has all its workers and they are past starting; returns their pids."""
    until(lambda: len(workers_of(pid)) == ranks, f"{ranks} workers")
    return workers_of(pid)


def wait_for_line(process, text):
    """Reads the script's output up to a line that contains `text`, and no further: communicate() would not find what is
    in the buffer of the stream."""
    line = b""
    out = process.stdout.fileno()
    while select.select([out], [], [], PATIENCE)[0] and (byte := os.read(out, 1)):
        line += byte
        if byte != b"\n":
            continue
        if text in line.decode():
            return line.decode()
        line = b""
    process.kill()
    raise AssertionError(f"{text!r} was not printed: {process.stderr.read()}")


def until(condition, what="what should come"):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not seen: {what}"
        time.sleep(0.01)


def state_of(pid):
    """The letter of the main thread of a process; "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_until_it_sleeps(pid):
    """Waits until the main thread of a process, which does nothing but compute and wait, waits."""
    until(lambda: state_of(pid) == "S", f"{pid} waits")


def wait_until_it_runs(process, ranks):
    """Waits until kernels of all these ranks have said so: pl.printf("RUNNING\\n"). Else the output is as it was."""
    left = {f"rank {rank}: RUNNING" for rank in ranks}
    while left:
        left.discard(wait_for_line(process, "RUNNING").strip())


def wait_for_death(pids):
    """Waits until the processes have ended, reaped or not."""
    for pid in pids:
        until(lambda: state_of(pid) in ("", "Z"), f"the end of {pid}")


def assert_all_gone(pids):
    """No process of these is left (a zombie counts as gone only when reaped)."""
    for pid in pids:
        until(lambda: state_of(pid) == "", f"{pid} has ended and is reaped")


SIGNAL_NAMES = {signal.SIGKILL: "SIGKILL", signal.SIGSEGV: "SIGSEGV"}
