"""PYPTO_GDB: a rank waits until somebody traces it, as a debugger would, and then goes on."""

import ctypes
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

PTRACE_SEIZE = 0x4206
PTRACE_CONT = 7
WALL = 0x40000000
SCRIPT = """
import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig

NR = pl.dynamic("NR")

@pl.jit.incore
def k(y: pl.Out[pl.Tensor[[4], pl.INT32]]):
    y[0] = 7

@pl.jit
def c(y: pl.Out[pl.Tensor[[4], pl.INT32]]):
    k(y)

@pl.jit.host
def h(y: pl.Out[pl.Tensor[[NR, 4], pl.INT32]]):
    for r in pl.range(pld.world_size()):
        c(y[r], device=r)

y = np.zeros((2, 4), np.int32)
h(y, config=RunConfig(platform="cpu", distributed_config=DistributedConfig(device_ids=[0, 1])))
print(y[:, 0])
"""


def serve_tracee(libc, pid, run):
    """What a debugger does after `continue`: signals go on to the process, and its end is taken note of."""
    end = time.monotonic() + 30
    while pid != run.pid and run.poll() is None and time.monotonic() < end:
        try:
            stopped, status = os.waitpid(pid, WALL | os.WNOHANG)
        except ChildProcessError:
            return
        if stopped and os.WIFSTOPPED(status):
            libc.ptrace(PTRACE_CONT, pid, 0, os.WSTOPSIG(status))
        time.sleep(0.005)


def assert_readable_objects(pid):
    """The compiled program is mapped under a path by which a debugger finds its names and lines."""
    objects, end = [], time.monotonic() + 30
    while not objects and time.monotonic() < end:
        objects = re.findall(r" (/\S*/program\.so)$", Path(f"/proc/{pid}/maps").read_text(), re.M)
        time.sleep(0.005)
    assert objects and all(map(os.path.exists, objects))


@pytest.mark.parametrize("transport", ["shm", "threads"])
def test_a_rank_waits_for_a_debugger(tmp_path, transport):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "PYPTO_GDB": "1", "PYPTO_TRANSPORT": transport}
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as run:
        try:
            line = run.stderr.readline()
            found = re.fullmatch(r"pypto: rank 1 waits for a debugger: gdb -p (\d+)\n", line)
            assert found, line
            assert run.poll() is None
            assert_readable_objects(found[1])
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.ptrace(PTRACE_SEIZE, int(found[1]), 0, 0) == 0, os.strerror(ctypes.get_errno())
            serve_tracee(libc, int(found[1]), run)
            out, rest = run.communicate(timeout=30)
            assert (out, rest) == ("[7 7]\n", "")
        finally:
            run.kill()


def test_a_rank_that_does_not_exist_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYPTO_GDB": "2"},
    )
    assert done.stdout == "[7 7]\n"
    assert done.stderr == "pypto: no rank waits for a debugger: PYPTO_GDB is 2, and there are 2 ranks\n"
