"""ChipWorker: its life, programs and handles, the scope that calls run in by themselves, its tensors; and workers of
both kinds side by side."""

import contextvars
import gc
import logging
import subprocess
import sys
import threading
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

import pypto.language as pl
from pypto import ir
from pypto.runtime import ChipWorker, DeviceTensor, RegistrationHandle, RunConfig, Worker
from programs import config
from resident_programs import N, add_chip, bare_chip, compiled, each, numbers, one

CPU = RunConfig(platform="cpu")


@pytest.fixture
def program(transport):
    return add_chip.compile(*[np.zeros(N, np.float32)] * 3, config=CPU)


@pytest.fixture
def worker(transport):
    made = ChipWorker(CPU)
    yield made
    made.close()


def check(run, times=1):
    x, weight, y = numbers(N), numbers(N, first=50), np.zeros(N, np.float32)
    for _ in range(times):
        run(x, weight, y)
    np.testing.assert_array_equal(y, times * (x + weight))


@pl.program
class Sum:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]) -> pl.Tensor[[N], pl.FP32]:
        tile = pl.load(x, [0], [N])
        return pl.store(pl.add(tile, tile), [0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def double(self, x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]) -> pl.Tensor[[N], pl.FP32]:
        return self.kernel(x, y)


@pl.program
class Several:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]) -> pl.Tensor[[N], pl.FP32]:
        return pl.store(pl.load(x, [0], [N]), [0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def first(self, x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]) -> pl.Tensor[[N], pl.FP32]:
        return self.kernel(x, y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def second(self, x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]) -> pl.Tensor[[N], pl.FP32]:
        return self.kernel(x, y)


# ---- its life ----


def test_what_it_is(transport):
    config = RunConfig(platform="a5sim", device_id=3)
    worker = ChipWorker(config, auto_init=False)
    assert isinstance(worker, Worker) and not worker.initialized
    assert (worker.level, worker.platform, worker.device_id, worker.runtime) == (2, "a5sim", 3, "tensormap_and_ringbuffer")
    worker.init()
    worker.init()
    assert worker.initialized and "a5sim device=3" in repr(worker)
    worker.close()
    worker.close()
    assert not worker.initialized and "not initialized" in repr(worker)
    assert ChipWorker(auto_init=False).platform == RunConfig().platform


def test_what_it_cannot_be():
    with pytest.raises(ValueError, match="only supports level=2"):
        ChipWorker(level=3)
    with pytest.raises(TypeError, match="RunConfig"):
        ChipWorker("cpu")


def test_it_comes_up_again(worker, program):
    tensor = worker.alloc_tensor((N,), torch.float32)
    handle = worker.register(program)
    worker.close()
    assert handle.closed and not worker._owned_tensors
    with pytest.raises(RuntimeError, match="unregistered"):
        check(handle)
    worker.init()
    check(lambda *args: worker.run(program, *args))
    with pytest.raises(ValueError, match="not a live allocation owned by this ChipWorker"):
        worker.run(program, tensor, tensor, tensor)
    with pytest.raises(RuntimeError, match="unregistered"):
        check(handle)


def test_what_needs_it_to_be_there(program):
    worker = ChipWorker(CPU, auto_init=False)
    operations = {
        "run": lambda: worker.run(program),
        "register": lambda: worker.register(program),
        "malloc": lambda: worker.malloc(8),
        "free": lambda: worker.free(64),
        "copy_to": lambda: worker.copy_to(64, 64, 8),
        "copy_from": lambda: worker.copy_from(64, 64, 8),
        "alloc_tensor": lambda: worker.alloc_tensor((N,), torch.float32),
        "free_tensor": lambda: worker.free_tensor(None),
        "committed_device_memory": lambda: worker.committed_device_memory(),
    }
    for opened in (False, True):
        if opened:
            worker.init()
            worker.close()
        for name, operation in operations.items():
            with pytest.raises(RuntimeError, match=rf"{name}\(\) needs an initialized ChipWorker"):
                operation()


# ---- programs ----


def test_runs(worker, program):
    check(lambda *args: worker.run(program, *args), times=3)
    check(lambda *args: worker.run(program, *args, config=CPU))
    result = worker.run(ir.compile(Sum, platform="cpu"), numbers(N))  # in return style
    np.testing.assert_array_equal(result, 2 * numbers(N))


def test_host_tensors_of_any_kind(worker, program):
    whole = torch.zeros(N, 2)
    worker.run(program, torch.ones(N), np.ones(2 * N, np.float32)[::2], whole[:, 1])
    assert (whole[:, 1] == 2).all() and not whole[:, 0].any()


def test_registration(worker, program):
    other = bare_chip.compile(*[np.zeros(N, np.float32)] * 2, config=CPU)
    assert worker.aicpu_dlopen_count == worker.host_dlopen_count == 0
    handle = worker.register(program)
    assert isinstance(handle, RegistrationHandle) and handle.compiled is program and handle.cid == 0
    assert worker.aicpu_dlopen_count == worker.host_dlopen_count == 1
    check(handle, times=2)
    assert worker.aicpu_dlopen_count == 1
    second, alias = worker.register(other), worker.register(program)
    assert second.cid == 1 and alias.cid == 0 and worker.aicpu_dlopen_count == 2
    y = np.zeros(N, np.float32)
    assert second(numbers(N), y) is None
    np.testing.assert_array_equal(y, numbers(N))
    handle.unregister()
    handle.unregister()
    assert handle.closed and not alias.closed
    with pytest.raises(RuntimeError, match="unregistered"):
        check(handle)
    check(alias)
    with worker.register(program) as entered:
        check(entered)
    assert entered.closed
    double = worker.register(ir.compile(Sum, platform="cpu"))
    np.testing.assert_array_equal(double(numbers(N)), 2 * numbers(N))


def test_a_handle_keeps_its_worker_but_not_the_reverse(transport, program):
    worker = ChipWorker(CPU)
    handle, seen = worker.register(program), weakref.ref(worker)
    del worker
    gc.collect()
    check(handle)
    handle_seen = weakref.ref(handle)
    worker = seen()
    del handle
    gc.collect()
    assert handle_seen() is None
    worker.close()


def test_programs_that_do_not_fit(worker, program):
    with pytest.raises(ValueError, match="platform 'a5sim', this ChipWorker is for platform 'cpu'"):
        worker.run(add_chip.compile(*[np.zeros(N, np.float32)] * 3, config=RunConfig(platform="a5sim")))
    with ChipWorker(CPU, runtime="host_build_graph") as other:
        with pytest.raises(ValueError, match="runtime"):
            other.register(program)
    with pytest.raises(TypeError, match="without a host function"):
        worker.register(compiled(one))
    with pytest.raises(TypeError, match="without a host function"):
        worker.run(add_chip)
    several = ir.compile(Several, platform="cpu")
    with pytest.raises(TypeError, match="select one explicitly"):
        worker.run(several, numbers(N))
    for name in ("first", "second"):
        np.testing.assert_array_equal(worker.run(several[name], numbers(N)), numbers(N))


def test_configurations_that_say_something_in_vain(worker, program):
    with pytest.warns(UserWarning, match="compiled for platform 'cpu'; the call's 'a5sim' has no effect") as caught:
        check(lambda *args: worker.run(program, *args, config=RunConfig(platform="a5sim")))
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="device_id=7 has no effect on <ChipWorker") as caught:
        check(lambda *args: worker.run(program, *args, config=RunConfig(platform="cpu", device_id=7)))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(lambda *args: worker.run(program, *args, config=CPU))


# ---- calls that find their worker ----


def test_calls_in_its_scope_run_on_it(transport, program):
    """A tensor that only it can take shows that they do."""
    worker = ChipWorker(CPU)
    total = worker.alloc_tensor((N,), pl.FP32, init=np.zeros(N, np.float32))
    x = numbers(N)
    with worker as entered:
        assert entered is worker and ChipWorker.current(platform="cpu", device_id=0) is worker
        program(x, x, total)
        add_chip(x, x, total, config=CPU)
        assert worker.aicpu_dlopen_count == 1  # the same program
        back = np.zeros(N, np.float32)
        worker.copy_from(back.ctypes.data, total.data_ptr, total.nbytes)
        np.testing.assert_array_equal(back, 4 * x)
    assert not worker.initialized and ChipWorker.current(platform="cpu", device_id=0) is None
    check(program)
    with pytest.raises(ValueError, match="not a live allocation owned by this ChipWorker"):
        program(x, x, total)


def test_the_innermost_that_matches(transport, program):
    two = RunConfig(platform="cpu", device_id=2)
    find = ChipWorker.current
    with ChipWorker(CPU) as outer, ChipWorker(two) as inner:
        assert find(level=2, platform="cpu", device_id=0, runtime="tensormap_and_ringbuffer") is outer
        assert find(platform="cpu", device_id=2) is inner
        assert find(platform="cpu", device_id=1) is None and find(platform="a5", device_id=0) is None
        assert find(level=3, platform="cpu", device_id=0) is None
        assert find(platform="cpu", device_id=0, runtime="other") is None
        x, total = numbers(N), inner.alloc_tensor((N,), torch.float32, init=torch.zeros(N))
        program(x, x, total, config=two)
        with pytest.raises(ValueError, match="not a live allocation owned by this ChipWorker: it belongs to another"):
            program(x, x, total)
        for same in (ChipWorker(CPU, auto_init=False), outer):
            with pytest.raises(ValueError, match="already active in an enclosing scope"):
                with same:
                    pass
        assert outer.initialized
    with ChipWorker(CPU, auto_init=False) as late:  # entering starts it
        check(lambda *args: late.run(program, *args))


def test_a_worker_that_is_closed_inside_its_scope(transport, program):
    with ChipWorker(CPU) as worker:
        worker.close()
        assert ChipWorker.current(platform="cpu", device_id=0) is None
        check(program)
        worker.init()
        assert ChipWorker.current(platform="cpu", device_id=0) is worker


def test_sdma(transport):
    with ChipWorker(CPU) as without:
        assert ChipWorker.current(platform="cpu", device_id=0) is without
        with pytest.raises(RuntimeError, match="created without enable_sdma=True"):
            ChipWorker.current(platform="cpu", device_id=0, require_sdma=True)
    with ChipWorker(CPU, enable_sdma=True) as made:
        assert ChipWorker.current(platform="cpu", device_id=0, require_sdma=True) is made


def test_a_scope_is_of_its_context(transport):
    found = []

    def look():
        found.append(ChipWorker.current(platform="cpu", device_id=0))

    with ChipWorker(CPU) as worker:
        thread = threading.Thread(target=contextvars.Context().run, args=(look,))
        thread.start()
        thread.join()
        contextvars.copy_context().run(look)
    assert found == [None, worker]


def test_an_error_in_the_scope_is_told(transport):
    with pytest.raises(KeyError):
        with ChipWorker(CPU) as worker:
            raise KeyError("mine")
    assert not worker.initialized


# ---- tensors ----


def test_resident_tensors(worker, program):
    weight = worker.alloc_tensor((N,), torch.float32, init=torch.from_numpy(numbers(2 * N))[::2])  # made contiguous
    y = worker.alloc_tensor((N,), np.float32, init=np.zeros((N, 2), np.float32)[:, 0])
    handle = worker.register(program)
    for _ in range(3):
        handle(np.zeros(N, np.float32), weight, y)
    back = torch.zeros(N)
    worker.copy_from(back.data_ptr(), y.data_ptr, y.nbytes)
    np.testing.assert_array_equal(back.numpy(), 3 * numbers(2 * N)[::2])
    assert worker.committed_device_memory() == 2 * N * 4
    worker.free_tensor(y)
    worker.free_tensor(y)


def test_whose_tensor_it_is(worker, program):
    x = np.zeros(N, np.float32)
    weight = worker.alloc_tensor((N,), torch.float32, init=torch.ones(N))
    with pytest.raises(TypeError, match="'weight' is a raw-pointer DeviceTensor.*same ChipWorker"):
        worker.run(program, x, DeviceTensor(weight.data_ptr, (N,), torch.float32), x)
    with ChipWorker(RunConfig(platform="cpu", device_id=1)) as other:
        with pytest.raises(ValueError, match="not a live allocation owned by this ChipWorker"):
            other.run(program, x, weight, x)
    for shape, dtype, words in (
        ((N, 1), torch.float32, "expects rank 1"),
        ((N + 1,), torch.float32, r"expects shape \(16,\)"),
        ((N,), torch.int32, "expects dtype fp32"),
    ):
        with pytest.raises(TypeError, match=words):
            worker.run(program, x, worker.alloc_tensor(shape, dtype), x)
    worker.free_tensor(weight)
    with pytest.raises(ValueError, match="not a live allocation owned by this ChipWorker: it was freed"):
        worker.run(program, x, weight, x)


def test_there_is_one_rank(worker):
    tensor = worker.alloc_tensor((N,), torch.float32)
    host = np.zeros(N, np.float32).ctypes.data
    for operation in (
        lambda: worker.malloc(8, worker_id=1),
        lambda: worker.free(tensor.data_ptr, worker_id=1),
        lambda: worker.copy_to(tensor.data_ptr, host, 8, worker_id=1),
        lambda: worker.copy_from(host, tensor.data_ptr, 8, worker_id=-1),
        lambda: worker.alloc_tensor((N,), torch.float32, worker_id=1),
        lambda: worker.free_tensor(tensor, worker_id=1),
        lambda: worker.committed_device_memory(1),
    ):
        with pytest.raises(ValueError, match="only supports worker_id=0"):
            operation()
    with pytest.raises(ValueError, match="interior pointer"):
        worker.free(tensor.data_ptr + 4)


def test_forgotten_tensors(transport, caplog):
    caplog.set_level(logging.DEBUG)
    with ChipWorker(CPU) as worker:
        worker.alloc_tensor((N,), torch.float32)
        assert len(worker._owned_tensors) == 1
    assert not worker._owned_tensors and not [r for r in caplog.records if "leaking" in r.getMessage()]


# ---- both kinds ----


def test_workers_of_both_kinds_in_any_order(transport, program):
    distributed, x, y = compiled(each), numbers(2, N), np.zeros((2, N), np.float32)
    for order in ("12", "21", "121", "212"):
        workers = []
        for kind in order:
            if kind == "1":
                made = ChipWorker(CPU)
                check(lambda *args: made.run(program, *args))
            else:
                made = distributed.prepare()
                y[:] = 0
                made(x, x, y)
                np.testing.assert_array_equal(y, 2 * x)
            workers.append(made)
            check(program)  # and calls of workers that nobody holds
        for made in workers:
            made.close()
    with ChipWorker(CPU) as chip, distributed.prepare() as both:
        rows = both.alloc_stacked_tensor(np.zeros((2, N), np.float32))
        both(x, x, rows)
        program(x[0], x[0], y[0])
        with pytest.raises(ValueError, match="owned by this ChipWorker"):
            chip.run(program, rows[0], rows[0], rows[0])


def test_two_threads(worker, program):
    errors = []

    def work():
        try:
            check(lambda *args: worker.run(program, *args), times=20)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_forked_child_leaves_it_alone(transport):
    """The child ends as any Python process, with the worker in its globals; it may not use it."""
    script = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
from pypto.runtime import ChipWorker, RunConfig
from resident_programs import N, add_chip
config = RunConfig(platform="cpu")
x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
program = add_chip.compile(x, x, y, config=config)
worker = ChipWorker(config)
tensor = worker.alloc_tensor((N,), np.float32, init=x)
child = os.fork()
if child == 0:
    try:
        worker.run(program, x, x, y)
    except RuntimeError as error:
        assert "belongs to the process that forked" in str(error)
        sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
worker.run(program, x, tensor, y)
assert (y == 2).all()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
