"""Words of failures that scripts look for: those that no test of the feature itself has."""

import os
import re
import signal

import numpy as np
import pytest

import pypto
import pypto.language as pl
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.runtime import DistributedWorker, RunConfig
from worker_programs import N, job, shift

PHYSICAL = [3, 7]
CONFIG = RunConfig(platform="cpu", distributed_config=DistributedConfig(device_ids=PHYSICAL))


def compiled():
    return job.compile(adds=pl.RUNTIME, at=pl.RUNTIME, config=CONFIG)


def arguments():
    return np.ones((2, N), np.int32), np.zeros((2, N), np.int32)


def test_a_kernel_that_fails(transport):
    """chip_process dev=<physical id>: <class>: <message>, of the rank that failed first, whichever it is."""
    x, y = arguments()
    with compiled().prepare() as worker:
        with pytest.raises(RuntimeError, match=r"chip_process dev=(3|7): DeviceError: .*\b99\b") as caught:
            worker(x, y, 1, 99)
        device = int(re.search(r"chip_process dev=(\d)", str(caught.value))[1])
        assert f"rank {PHYSICAL.index(device)}" in str(caught.value).splitlines()[0]
        assert str(caught.value).count("chip_process") == 1  # the first cause, and no other
        worker(x, y, 1, 0)
        assert (y[:, 1:] == 2).all()


def test_a_worker_that_is_killed():
    x, y = arguments()
    program = compiled()
    with program.prepare() as worker:
        pid = worker._native.pids[1]
        handle = worker.submit(program, x, y, 10**9, 0)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="exited before mailbox completion") as caught:
            handle.result(60)
    text = str(caught.value)
    assert f"chip_process dev=7: pid {pid} exited before mailbox completion: " in text and "SIGKILL" in text
    assert isinstance(caught.value, pypto.WorkerDiedError)


@pl.program
class Leaves:
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def leave(y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
        import os

        os._exit(3)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
        self.leave(y)
        return y


def test_a_sub_worker_that_ends():
    pytest.importorskip("torch")
    program = ir.compile(Leaves, platform="cpu", distributed_config=DistributedConfig(device_ids=[0]))
    with pytest.raises(RuntimeError, match=r"sub_worker: pid \d+ exited before mailbox completion: .*3"):
        program(np.zeros(4, np.float32))


def test_the_number_of_arguments_of_a_prepared_call():
    x, _ = arguments()
    with shift.compile(config=CONFIG).prepare() as worker, pytest.raises(TypeError, match="expects 2 arguments"):
        worker(x)


def test_programs_of_several_runtimes():
    programs = []
    for runtime in ("tensormap_and_ringbuffer", "host_build_graph"):
        cfg = RunConfig(
            platform="cpu", distributed_config=DistributedConfig(device_ids=PHYSICAL, runtime=runtime)
        )
        programs.append(job.compile(adds=pl.RUNTIME, at=pl.RUNTIME, config=cfg))
    with pytest.raises(ValueError, match="same runtime: job has"):
        DistributedWorker(programs)
