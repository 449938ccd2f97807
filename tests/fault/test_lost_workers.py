"""Workers whose processes have died: what is said of each use, what can still be had, and how to go on."""

import os
import signal

import numpy as np
import pytest

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import DistributedConfig
from pypto.runtime import ChipWorker, RunConfig

NR = pl.dynamic("NR")
N = 64
LOST = "lost a worker in an earlier call"
DIED = "the process of this one has died"


@pl.jit.incore
def add_kernel(x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]):
    return pl.store(pl.add(pl.load(x, [0], [N]), 1.0), [0], y)


@pl.jit
def add(x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]):
    return add_kernel(x, y)


@pl.jit.host
def add_all(x: pl.Tensor[[NR, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, N], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        add(x[r], y[r], device=r)
    return y


def kill(worker):
    """All its processes; returns when they are dead. The library reaps them."""
    for pid in worker._native.pids:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@pytest.fixture
def distributed():
    config = RunConfig(platform="cpu", distributed_config=DistributedConfig(device_ids=[0, 1]))
    x = np.ones((2, N), np.float32)
    program = add_all.compile(x, np.zeros_like(x), config=config)
    with program.prepare(persistent=True) as worker:
        yield worker, program, (x, np.zeros_like(x))


@pytest.fixture
def chip():
    x = np.ones(N, np.float32)
    program = add.compile(x, np.zeros_like(x), config=RunConfig(platform="cpu"))
    worker = ChipWorker(RunConfig(platform="cpu"))
    yield worker, program, (x, np.zeros_like(x))
    worker.close()


USES = {
    "run": lambda worker, program, args: worker.run(program, *args),
    "submit": lambda worker, program, args: worker.submit(program, *args),
    "register": lambda worker, program, args: worker.register(program)(*args),
    "malloc": lambda worker, program, args: worker.malloc(64),
    "alloc_tensor": lambda worker, program, args: worker.alloc_tensor((4,), pl.FP32),
    "reset_persistent_windows": lambda worker, program, args: worker.reset_persistent_windows(),
}


@pytest.mark.parametrize("kind", ["distributed", "chip"])
@pytest.mark.parametrize("loaded", [True, False], ids=["of a program that it has", "of one that it has not"])
def test_the_call_that_finds_it_says_who_died(kind, loaded, request):
    worker, program, args = request.getfixturevalue(kind)
    if loaded:
        worker.run(program, *args)
    kill(worker)
    with pytest.raises(pypto.WorkerDiedError, match=r"0 \(pid \d+\) died,? .*signal 9 \(SIGKILL\)"):
        worker.run(program, *args)


@pytest.mark.parametrize("kind", ["distributed", "chip"])
def test_what_cannot_be_done_is_refused_and_memory_can_be_read(kind, request):
    worker, program, args = request.getfixturevalue(kind)
    kept, result = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    address = worker.malloc(kept.nbytes)
    worker.copy_to(address, kept.ctypes.data, kept.nbytes)
    worker.run(program, *args)
    kill(worker)
    with pytest.raises(pypto.WorkerDiedError):
        worker.run(program, *args)
    for name, use in USES.items():
        if hasattr(worker, name):
            with pytest.raises(RuntimeError, match=f"{LOST}|{DIED}"):
                use(worker, program, args)
    worker.copy_from(result.ctypes.data, address, kept.nbytes)
    np.testing.assert_array_equal(result, kept)
    worker.free(address)
    worker.close()
    worker.close()


@pytest.mark.parametrize("found", [True, False], ids=["found dead", "not found yet"])
def test_init_starts_a_chip_worker_anew(chip, found):
    worker, program, args = chip
    tensor = worker.alloc_tensor((N,), pl.FP32)
    handle = worker.register(program)
    kill(worker)
    (old,) = worker._native.pids
    if not found:
        worker.init()  # nobody has noticed, so it does nothing
    with pytest.raises(pypto.WorkerDiedError):
        worker.run(program, *args)
    assert not worker.initialized
    with pytest.raises(RuntimeError, match=DIED) as raised:
        worker.run(program, *args)
    assert "call init()" in str(raised.value)
    worker.init()
    assert worker.initialized and worker._native.pids != [old]
    worker.run(program, *args)
    np.testing.assert_array_equal(args[1], 2)
    with pytest.raises(RuntimeError, match="closed"):
        handle(*args)
    with pytest.raises(ValueError, match="not a live allocation"):
        worker.run(program, args[0], tensor)


def test_the_worker_of_a_scope_is_lost(chip):
    """What runs on it by itself is told, and does not run elsewhere."""
    worker, program, args = chip
    with worker:
        program(*args)
        kill(worker)
        with pytest.raises(pypto.WorkerDiedError):
            program(*args)
        with pytest.raises(RuntimeError, match=DIED):
            program(*args)
        worker.init()
        program(*args)
    np.testing.assert_array_equal(args[1], 2)


def test_a_set_that_lost_its_workers_leaves_nothing(distributed):
    worker, program, args = distributed
    worker.run(program, *args)
    pids = worker._native.pids
    kill(worker)
    with pytest.raises(pypto.WorkerDiedError):
        worker.run(program, *args)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    with program.prepare() as another:
        another.run(program, *args)
    np.testing.assert_array_equal(args[1], 2)
