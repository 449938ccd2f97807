"""Scripts of the DSL that misbehave, run as programs of their own. A conftest.py or a test imports the fixtures."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from processes import PATIENCE

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
        self.started = []

    def line_of(self, code):
        """Number of the only line that contains `code`."""
        (line,) = [i for i, text in enumerate(self.path.read_text().splitlines(), 1) if code in text]
        return line

    def start(self, group=False, command=None, **env):
        """`group`: as the head of a process group of its own. `command`: runs it in another way."""
        process = subprocess.Popen(
            command or [sys.executable, str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=group,
            env={**os.environ, **env},
            cwd=self.path.parent,
        )
        self.started.append(process)
        return process

    def end(self):
        """Of a test that has failed, a script may still run; its workers end with it."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()

    def run(self, command=None, **env):
        process = self.start(command=command, **env)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err


@pytest.fixture
def as_script(tmp_path):
    """For scripts that are no variant of the one above."""
    scripts = []

    def make(text):
        scripts.append(Script(tmp_path / "script.py", text))
        return scripts[-1]

    yield make
    for script in scripts:
        script.end()


@pytest.fixture
def script(as_script):
    def make(body, driver="run()", ranks=2):
        def indent(text, by):
            return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * by)

        return as_script(SCRIPT.format(body=indent(body, 4), driver=textwrap.dedent(driver), ranks=ranks))

    return make
