"""What errors say that the ranks were doing, and what to do."""

import os
import signal

import numpy as np
import pytest

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig, shutdown

NR = pl.dynamic("NR")
Row = pl.Tensor[[4], pl.FP32]
Bell = pld.DistributedTensor[[1], pl.INT32]
TWO = RunConfig(platform="cpu", distributed_config=DistributedConfig(device_ids=[0, 1]))


@pl.jit.incore
def waiting_kernel(y: pl.Out[Row], bell: pl.InOut[Bell]):
    pld.system.wait(bell, [0], 1, cmp=pld.WaitCmp.Ge)
    y[:] = y[:] + 1.0


@pl.jit.incore
def failing_kernel(y: pl.Out[Row], at: pl.Scalar[pl.INT64]):
    pl.write(y, [at], 1.0)


@pl.jit.host
def waiting(y: pl.Out[pl.Tensor[[NR, 4], pl.FP32]]):
    buffer = pld.alloc_window_buffer([1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        waiting_kernel(y[r], pld.window(buffer, [1], dtype=pl.INT32), device=r)


@pl.jit.host
def failing(y: pl.Out[pl.Tensor[[NR, 4], pl.FP32]], at: pl.Scalar[pl.INT64]):
    failing_kernel(y[0], at, device=0)


def test_a_rank_that_has_nothing_to_do_is_idle():
    """It waited in the call before, which was given up."""
    y = np.zeros((2, 4), np.float32)
    compiled = failing.compile(config=TWO, at=pl.RUNTIME)
    for _ in range(3):
        with pytest.raises(pypto.DeadlockError):
            waiting(y, config=TWO)
        with pytest.raises(pypto.DeviceError) as caught:
            compiled(y, 4)
        assert "waiting_kernel" not in str(caught.value)
        assert "rank 1: idle" in str(caught.value)


@pl.jit.incore
def large_kernel(y: pl.Out[Row]):
    tile = pl.tile.full([1 << 21, 1 << 21], pl.FP32, 1.0)
    pl.write(y, [0], pl.read(tile, [3, 3]))


@pl.jit
def large(y: pl.Out[Row]):
    large_kernel(y)


def test_tiles_that_the_machine_has_no_memory_for():
    """16 TiB: the kernel would give the address space, and kill somebody when it is used."""
    with pytest.raises(pypto.errors.MemoryError, match="MiB of tiles: use smaller tiles"):
        large(np.zeros(4, np.float32), config=RunConfig(platform="cpu"))


@pl.jit
def wide(x: Row, y: pl.Out[Row], blocks: pl.Scalar[pl.INT64]):
    for block in pl.spmd(blocks):
        if block == 0:
            y[:] = x[:] + 1.0


@pytest.mark.parametrize("blocks", [1 << 40, 1 << 62])
def test_blocks_that_the_machine_has_no_memory_for(blocks):
    x, y = np.zeros(4, np.float32), np.zeros(4, np.float32)
    with pytest.raises(pypto.errors.MemoryError, match="memory is exhausted on this rank"):
        wide(x, y, blocks, config=RunConfig(platform="cpu"))
    wide(x, y, 3, config=RunConfig(platform="cpu"))
    assert (y == 1.0).all()


def test_a_worker_that_was_killed_may_have_been_short_of_memory():
    compiled = waiting.compile(config=TWO)
    y = np.zeros((2, 4), np.float32)
    shutdown()
    with compiled.prepare() as worker:
        os.kill(worker.pids[1], signal.SIGSTOP)  # so that nothing is a deadlock
        call = worker.submit(compiled, y)
        os.kill(worker.pids[0], signal.SIGKILL)
        with pytest.raises(pypto.WorkerDiedError) as caught:
            call.result()
    if "between tasks" not in str(caught.value):  # it was in a kernel
        assert "ran out of memory" in caught.value.hint


def test_what_stands_in_a_wrong_place():
    y = np.zeros((2, 4), np.float32)
    with pytest.raises(TypeError) as caught:
        failing(y, TWO)
    assert "config=" in caught.value.hint
    with pytest.raises(TypeError) as caught:
        failing(y, None, config=TWO)
    assert "a number where the parameter is a scalar" in caught.value.hint
    with pytest.raises(pypto.Error) as caught:
        pl.jit(lambda x, y: None)(y[0], y[1], config=TWO)
    assert "def" in caught.value.hint


@pytest.mark.parametrize(
    "text, hint",
    [
        ("y[0] = CONSTANTS.missing", "give it one before the function"),
        ("y[0:4:2] = y[0:4:2]", "leave the step out"),
        ("pl.static_assert(1 == 2, 'never')", "change them"),
    ],
)
def test_hints_of_a_compile(text, hint, tmp_path):
    import importlib.util

    path = tmp_path / "mistaken.py"
    path.write_text(
        "import types\nimport pypto.language as pl\nCONSTANTS = types.SimpleNamespace()\n"
        "@pl.jit\ndef f(y: pl.Out[pl.Tensor[[4], pl.FP32]]):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n        " + text + "\n"
    )
    spec = importlib.util.spec_from_file_location("mistaken", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(pypto.Error) as caught:
        module.f.compile(config=RunConfig(platform="cpu"))
    assert hint in caught.value.hint
