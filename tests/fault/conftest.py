"""What the fault tests share: DSL scripts that misbehave, run as programs of their own."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

# A program whose kernel body is given by the test. `MODE` lets ranks differ: it is the rank.
SCRIPT = '''
import os, signal, sys, threading, time
import numpy as np
import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig, shutdown

NR = pl.dynamic("NR")
SIZE = 64
LONG = 1 << 60


@pl.jit.incore
def step(
    inp: pl.Tensor[[1, SIZE], pl.FP32],
    out: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    acc = pl.load(inp, [0, 0], [1, SIZE])
{body}
    return pl.store(acc, [0, 0], out)


@pl.jit
def chip(
    inp: pl.Tensor[[1, SIZE], pl.FP32],
    out: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    return step(inp, out, data, signal)


@pl.jit.host
def host(
    inputs: pl.Tensor[[NR, 1, SIZE], pl.FP32],
    outputs: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        chip(inputs[r], outputs[r], data, signal, device=r)
    return outputs


RANKS = {ranks}
CONFIG = RunConfig(platform="cpu", distributed_config=DistributedConfig(device_ids=list(range(RANKS))))
inputs = np.ones((RANKS, 1, SIZE), dtype=np.float32)
outputs = np.zeros_like(inputs)


def run():
    host(inputs, outputs, config=CONFIG)


{driver}
'''


class Script:
    """A script on disk, and how to run it."""

    def __init__(self, path, text):
        self.path = path
        self.path.write_text(text)

    def line_of(self, code):
        """Number of the only line that contains `code`."""
        (line,) = [i for i, text in enumerate(self.path.read_text().splitlines(), 1) if code in text]
        return line

    def start(self, **env):
        return subprocess.Popen(
            [sys.executable, str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
            cwd=self.path.parent,
        )

    def run(self, timeout=60, **env):
        process = self.start(**env)
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err


@pytest.fixture
def script(tmp_path):
    def make(body, driver="run()", ranks=2):
        def indent(text, by):
            return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * by)

        text = SCRIPT.format(body=indent(body, 4), driver=textwrap.dedent(driver), ranks=ranks)
        return Script(tmp_path / "script.py", text)

    return make


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
    """Reads the script's output up to a line that contains `text`."""
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"{text!r} was not printed: {process.stderr.read()}")


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
