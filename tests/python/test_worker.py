"""Prepared workers: results, two calls in flight, failures and what comes after them, several programs and threads,
the end with calls in flight, forks by the user, Ctrl-C. Most tests run with processes and with threads."""

import gc
import os
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
import pytest
import torch

import pypto
import pypto.language as pl
from programs import allreduce, allreduce_expected, config, from_text
from pypto.ir import DistributedConfig, PassContext
from pypto.runtime import DistributedRunHandle, DistributedWorker, RegistrationHandle, RunConfig
from transfers import host_of
from waiting_threads import interrupt, until_it_polls
from worker_programs import (
    FAR, FOREVER, N, SLOW, VAIN, closed_gate, compiled, count, expected, held_job, job, prepared_job, rows, shift,
)


@pytest.fixture
def work(transport):
    """A compiled program and a worker for it; the test leaves nothing in flight."""
    program = prepared_job()
    with program.prepare() as worker:
        yield program, worker


# ---- results ----


def test_calls_in_all_their_forms(work):
    program, worker = work
    x = rows()
    registered = worker.register(program)
    assert isinstance(registered, RegistrationHandle)
    assert registered.cid == 0 and registered.compiled is program and not registered.closed
    forms = [
        lambda y: worker(x, y, 3, 5),
        lambda y: worker.run(program, x, y, 3, 5, config=RunConfig(platform="cpu")),
        lambda y: worker.submit(program, x, y, 3, 5).result(),
        lambda y: registered(x, y, 3, 5),
    ]
    for form in forms:
        y = np.zeros_like(x)
        assert form(y) is None
        np.testing.assert_array_equal(y, expected(x, 3, 5))
    with registered:
        pass
    assert registered.closed
    with pytest.raises(RuntimeError, match="unregistered"):
        registered(x, y, 3, 5)


@pytest.mark.parametrize("make", [lambda a: a, torch.from_numpy, lambda a: torch.from_numpy(a).share_memory_()])
def test_host_tensors_of_every_kind_made_at_any_time(work, make):
    program, worker = work
    x, y = make(rows(1)), make(np.zeros((2, N), np.int32))
    worker(x, y, 2, 0)
    np.testing.assert_array_equal(np.asarray(y), expected(rows(1), 2))


def test_a_view_is_scattered_back(work):
    program, worker = work
    whole = np.full((2, 2 * N), 5, np.int32)
    worker(rows(), whole[:, ::2], 1, 0)
    np.testing.assert_array_equal(whole[:, ::2], expected(rows(), 1))
    assert (whole[:, 1::2] == 5).all()


def test_collectives_of_many_calls(transport):
    program = allreduce(256)
    x = np.arange(3 * 256, dtype=np.float32).reshape(3, 1, 256)
    y = np.zeros_like(x)
    with program.compile(x, y, config=config(3)).prepare() as worker:
        for step in range(20):
            worker(x + step, y)
            np.testing.assert_array_equal(y, allreduce_expected(x + step))


def test_baked_scalars_may_be_left_out(transport):
    program = compiled(job, adds=4, at=1)
    with program.prepare() as worker:
        y = np.zeros((2, N), np.int32)
        worker(rows(), y)
        np.testing.assert_array_equal(y, expected(rows(), 4, 1))


# ---- in flight ----


def test_two_in_flight_and_a_queue_of_many(work):
    program, worker = work
    ys = [np.zeros((2, N), np.int32) for _ in range(6)]
    handles = [worker.submit(program, rows(i), y, SLOW // 10, 0) for i, y in enumerate(ys)]
    assert all(isinstance(handle, DistributedRunHandle) for handle in handles)
    # The sixth was submitted when at most one other was in flight: the first four are over.
    assert all(handle.done for handle in handles[:4])
    for i, handle in enumerate(reversed(handles)):
        handle.result()
        np.testing.assert_array_equal(ys[5 - i], expected(rows(5 - i), SLOW // 10))
        assert handle.done and "done" in repr(handle)


def test_a_call_sees_what_the_one_before_writes_into_a_host_tensor(work):
    program, worker = work
    x, y, z = rows(), np.zeros((2, N), np.int32), np.zeros((2, N), np.int32)
    worker.submit(program, x, y, SLOW, 0)
    worker.submit(program, y, z, 1, 1).result()
    np.testing.assert_array_equal(z, expected(expected(x, SLOW), 1, 1))


def test_a_call_copies_unaligned_inputs_behind_what_is_in_flight(work):
    program, worker = work
    memory = np.zeros(8 * N + 4, np.uint8)
    y, shifted = (memory[at : at + 8 * N].view(np.int32).reshape(2, N) for at in (0, 1))
    assert y.flags.aligned and not shifted.flags.aligned
    z = np.zeros((2, N), np.int32)
    first = worker.submit(program, rows(), y, SLOW, 0)
    worker.submit(program, shifted, z, 1, 1).result()
    assert first.done
    written = expected(rows(), SLOW).tobytes() + bytes(4)
    np.testing.assert_array_equal(z, expected(np.frombuffer(written[1 : 8 * N + 1], np.int32).reshape(2, N), 1, 1))


def test_a_call_does_not_change_what_the_one_before_reads(work):
    program, worker = work
    x, y, z = rows(), np.zeros((2, N), np.int32), rows(100)
    first = worker.submit(program, x, y, SLOW, 0)
    worker.submit(program, z, x, 1, 0).result()  # writes x
    first.result()
    np.testing.assert_array_equal(y, expected(rows(), SLOW))
    np.testing.assert_array_equal(x, expected(z, 1))


def test_handles_and_tensors_may_be_dropped(work):
    program, worker = work
    y = np.zeros((2, N), np.int32)
    worker.submit(program, rows(), y, SLOW, 0)
    for i in range(5):  # nobody holds their tensors but the calls
        worker.submit(program, rows(i), np.zeros((2, N), np.int32), 10, 0)
    gc.collect()
    worker(rows(), np.zeros((2, N), np.int32), 1, 0)
    np.testing.assert_array_equal(y, expected(rows(), SLOW))


def test_a_time_limit(transport):
    program = prepared_job(program=held_job)
    y = np.zeros((2, N), np.int32)
    with program.prepare() as worker, closed_gate() as gate:
        handle = worker.submit(program, rows(), y, gate, 3, 0)
        with pytest.raises(TimeoutError, match="not over after 0.001 seconds") as caught:
            handle.result(0.001)
        assert isinstance(caught.value, pypto.Error)
        with pytest.raises(TimeoutError):
            handle.wait(timeout=0)
        gate[0] = 1
        handle.result(60)
        np.testing.assert_array_equal(y, expected(rows(), 3))
        for right in (np.float32(60), np.int8(60), 1e300, 10**400):
            handle.result(right)
        for wrong in (-1, float("nan"), float("inf"), np.float32("inf"), -(10**400)):
            with pytest.raises(ValueError, match="non-negative finite"):
                handle.result(wrong)
        for wrong in ("soon", True, np.bool_(True), np.array([1.0]), 1j):
            with pytest.raises(TypeError, match="seconds or None"):
                handle.result(wrong)


def test_a_call_is_submitted_while_another_thread_waits(work):
    """Two find a place at once, the third waits for the oldest; nobody waits for the thread that waits."""
    program, worker = work
    first = worker.submit(program, rows(), np.zeros((2, N), np.int32), FOREVER, VAIN)
    with ThreadPoolExecutor(1) as pool:
        tid = SimpleQueue()
        waiting = pool.submit(lambda: (tid.put(threading.get_native_id()), first.result()))
        until_it_polls(tid.get())  # or else it may not be there yet, which would be no test
        second = worker.submit(program, rows(), np.zeros((2, N), np.int32), FOREVER, VAIN)
        assert not first.done and not second.done
        interrupt(second)
        with pytest.raises(KeyboardInterrupt):
            waiting.result()
    after = np.zeros((2, N), np.int32)
    worker(rows(), after, 1, 0)
    np.testing.assert_array_equal(after, expected(rows(), 1))


def test_many_threads_submit_and_wait(work):
    program, worker = work

    def calls(first):
        for i in range(first, first + 20):
            y = np.zeros((2, N), np.int32)
            handle = worker.submit(program, rows(i), y, 1 + i % 3 * SLOW // 20, 0)
            if i % 2:
                worker(rows(i), y2 := np.zeros((2, N), np.int32), 1, 0)
                np.testing.assert_array_equal(y2, expected(rows(i), 1))
            handle.result()
            np.testing.assert_array_equal(y, expected(rows(i), 1 + i % 3 * SLOW // 20))

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(calls, 100 * k) for k in range(4)]:
            each.result()


def test_a_time_limit_holds_while_another_thread_waits(work):
    program, worker = work
    first = worker.submit(program, rows(), np.zeros((2, N), np.int32), FOREVER, VAIN)
    second = worker.submit(program, rows(), np.zeros((2, N), np.int32), FOREVER, VAIN)
    def wait():
        with pytest.raises((pypto.WorkerDiedError, KeyboardInterrupt)):
            first.result()
    waiting = threading.Thread(target=wait)
    waiting.start()
    until_it_polls(waiting.native_id)
    with pytest.raises(TimeoutError):
        second.result(0.05)
    assert waiting.is_alive() and not second.done
    if worker.pids[0]:
        os.kill(worker.pids[0], 9)
        for handle in (first, second):
            with pytest.raises(pypto.WorkerDiedError):
                handle.result()
    else:
        interrupt(first)
    waiting.join()


# ---- failures ----


def test_a_failure_is_told_again_and_the_worker_goes_on(work):
    program, worker = work
    y = np.zeros((2, N), np.int32)
    bad = worker.submit(program, rows(), y, 1, FAR)
    good = worker.submit(program, rows(), y2 := np.zeros((2, N), np.int32), 1, 0)
    good.result()
    np.testing.assert_array_equal(y2, expected(rows(), 1))
    with pytest.raises(pypto.DeviceError, match="rank") as first:
        bad.result()
    with pytest.raises(pypto.DeviceError) as second:
        bad.wait()
    assert first.value is second.value and bad.done and "failed: DeviceError" in repr(bad)
    worker(rows(), y, 2, 0)
    np.testing.assert_array_equal(y, expected(rows(), 2))


def test_the_failure_of_an_older_call_is_its_own(work):
    program, worker = work
    bad = worker.submit(program, rows(), np.zeros((2, N), np.int32), 1, FAR)
    for _ in range(3):
        worker.submit(program, rows(), np.zeros((2, N), np.int32), 1, 0).result()
    with pytest.raises(pypto.DeviceError):
        bad.result()


def test_a_deadlock_ends_its_call(work):
    program, worker = work
    y = np.zeros((2, N), np.int32)
    stuck = worker.submit(program, rows(), y, 1, VAIN)
    with pytest.raises(pypto.DeadlockError, match="2 of 2 ranks"):
        stuck.result()
    worker(rows(), y, 1, 0)
    np.testing.assert_array_equal(y, expected(rows(), 1))


def test_a_dead_worker_ends_the_calls_and_the_set(monkeypatch):
    monkeypatch.setenv("PYPTO_TRANSPORT", "shm")
    program = prepared_job()
    y = np.zeros((2, N), np.int32)
    with program.prepare() as worker:
        handle = worker.submit(program, rows(), y, FOREVER, 0)
        os.kill(worker.pids[1], 9)
        with pytest.raises(pypto.WorkerDiedError, match="rank 1"):
            handle.result()
        with pytest.raises(RuntimeError, match="lost a worker"):
            worker(rows(), y, 1, 0)
    with program.prepare() as worker:
        worker(rows(), y, 1, 0)
    np.testing.assert_array_equal(y, expected(rows(), 1))


def test_a_failure_that_nobody_was_told_of_is_raised_by_close(transport):
    program = prepared_job()
    worker = program.prepare()
    worker.submit(program, rows(), np.zeros((2, N), np.int32), 1, FAR)
    for _ in range(4):
        worker(rows(), np.zeros((2, N), np.int32), 1, 0)
    with pytest.raises(pypto.DeviceError, match="rank"):
        worker.close()
    worker.close()
    assert worker.closed


def test_the_first_cause_is_not_hidden_by_the_end(transport):
    program = prepared_job()
    with pytest.raises(LookupError, match="mine") as caught:
        with program.prepare() as worker:
            worker.submit(program, rows(), np.zeros((2, N), np.int32), 1, FAR)
            raise LookupError("mine")
    assert "closing the worker then raised DeviceError" in caught.value.__notes__[0]


# ---- what is refused ----


def test_wrong_arguments(work):
    program, worker = work
    x, y = rows(), np.zeros((2, N), np.int32)
    with pytest.raises(TypeError, match="expects 4 arguments .x, y, adds, at., got 2"):
        worker(x, y)
    with pytest.raises(TypeError, match="int32"):
        worker(x.astype(np.int16), y, 1, 0)
    with pytest.raises(ValueError, match="'x'"):
        worker(rows(devices=3), y, 1, 0)
    with pytest.raises(TypeError, match="RunConfig"):
        worker(x, y, 1, 0, config=3)
    with pytest.raises(ValueError, match="registered when this worker"):
        worker.run(compiled(shift), x, y)
    with pytest.raises(ValueError, match="registered when this worker"):
        worker.register(object())
    with pytest.raises(ValueError, match="ndarray must be registered"):
        worker.submit(x, y, 1, 0)  # the program was forgotten
    with pytest.warns(UserWarning, match="compiled for platform 'cpu'") as warned:
        worker(x, y, 1, 0, config=RunConfig(platform="a5"))
    assert warned[0].filename == __file__


def test_wrong_workers():
    program = prepared_job()
    other = job.compile(
        config=RunConfig(platform="a5", distributed_config=DistributedConfig([0, 1])), adds=1, at=0
    )
    with pytest.raises(ValueError, match="at least one compiled program"):
        DistributedWorker([])
    with pytest.raises(TypeError, match="DistributedCompiledProgram.*not JITFunction"):
        DistributedWorker(job)
    with pytest.raises(ValueError, match="same platform"):
        DistributedWorker([program, other])
    with pytest.raises(ValueError, match=r"same device_ids.*\[0, 1\].*\[0, 1, 2\]"):
        DistributedWorker([program, compiled(shift, 3)])
    named = RunConfig(platform="cpu", distributed_config=DistributedConfig([0, 1], runtime="host_build_graph"))
    with PassContext(runtime="host_build_graph"):
        built = compiled(shift)
    for other in (shift.compile(config=named), built):
        with pytest.raises(ValueError, match="same runtime: job has 'tensormap_and_ringbuffer', shift 'host_build_graph'"):
            DistributedWorker([program, other])
    with pytest.raises(ValueError, match="requires persistent=True"):
        program.prepare(reset_persistent_windows=True)
    with pytest.raises(ValueError, match="not sub-workers of any prepared program"):
        program.prepare(callbacks={"check": print})
    with pytest.raises(TypeError, match="must be callable"):
        program.prepare(callbacks={"check": 3})
    with pytest.raises(TypeError, match="callbacks must be a mapping.*not builtin_function"):
        program.prepare(callbacks=print)
    with pytest.warns(DeprecationWarning, match="sub_worker_overrides is deprecated"):
        program.prepare(sub_worker_overrides={}).close()
    with pytest.raises(TypeError, match="RunConfig"):
        program.prepare(config="fast")
    for right in (np.float32(60), 1e300, 10**400):
        program.prepare(startup_timeout_s=right).close()
    for wrong in (0, -1.5, float("inf"), float("nan"), "1", -(10**400), True, np.bool_(True)):
        with pytest.raises(ValueError, match="positive finite"):
            program.prepare(startup_timeout_s=wrong)
    with pytest.raises(TypeError, match="torch.Tensor"):
        DistributedWorker(program, inherited_host_tensors=[3])
    for wrong in (torch.zeros(4, 4), np.zeros(4), 3):
        with pytest.raises(TypeError, match="must be a list of tensors"):
            DistributedWorker(program, inherited_host_tensors=wrong)
    with pytest.raises(ValueError, match="contiguous CPU"):
        DistributedWorker(program, inherited_host_tensors=[torch.zeros(4, 4).t()])


def test_inherited_tensors_are_held_until_they_are_released():
    import weakref

    tensor = torch.zeros(2, N)
    seen = weakref.ref(tensor)
    with DistributedWorker(prepared_job(), inherited_host_tensors=[tensor]) as worker:
        del tensor
        assert seen() is not None
        worker.release_inherited_host_tensor_refs()
        assert seen() is None


# ---- several programs, several threads, several workers ----


def test_two_programs_on_one_worker(transport):
    first, second = prepared_job(), compiled(shift)
    x, y, z = rows(), np.zeros((2, N), np.int32), np.zeros((2, N), np.int32)
    with first.prepare(extra_compiled=[second]) as worker:
        for step in range(10):
            worker.run(first, x, y, step, 3)
            worker.run(second, x, z)
            np.testing.assert_array_equal(y, expected(x, step, 3))
            np.testing.assert_array_equal(z, expected(x, 1))
        with pytest.raises(TypeError, match="ambiguous.*job, shift"):
            worker(x, y, 1, 0)
    with DistributedWorker([second]) as worker:
        worker(x, z)


def test_threads_share_a_worker(work):
    program, worker = work
    failed = []

    def use(number):
        try:
            for i in range(20):
                y = np.zeros((2, N), np.int32)
                if i % 2:
                    worker(rows(number), y, i, 0)
                else:
                    worker.submit(program, rows(number), y, i, 0).result(60)
                np.testing.assert_array_equal(y, expected(rows(number), i))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=use, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_other_threads_run_while_one_waits(work):
    program, worker = work
    handle = worker.submit(program, rows(), np.zeros((2, N), np.int32), SLOW * 10, 0)
    seen = []
    other = threading.Thread(target=lambda: seen.append(handle.done))
    other.start()
    handle.result()
    other.join()
    assert seen


def test_two_workers_and_one_shot_calls(transport):
    program = prepared_job()
    y, z, w = (np.zeros((2, N), np.int32) for _ in range(3))
    with program.prepare() as first, program.prepare() as second:
        a, b = first.submit(program, rows(), y, SLOW, 0), second.submit(program, rows(1), z, 2, 0)
        program(rows(2), w, 3, 0)
        b.result()
        a.result()
    for result, x, adds in ((y, rows(), SLOW), (z, rows(1), 2), (w, rows(2), 3)):
        np.testing.assert_array_equal(result, expected(x, adds))


# ---- persistent windows ----

QUIET = RunConfig(platform="cpu", lint="off")  # old arrivals are what these tests are about


def counts(worker, program, calls):
    y = np.zeros((2, 1), np.int32)
    for _ in range(calls):
        worker.run(program, y, 0, config=QUIET)
        yield int(y[0, 0])
        assert y[0, 0] == y[1, 0]


def test_windows_of_each_call_are_its_own(transport):
    program = compiled(count, at=pl.RUNTIME)
    with program.prepare() as worker:
        assert list(counts(worker, program, 3)) == [1, 1, 1]
        assert worker.domain_count == 3


@pytest.mark.parametrize("reset", [None, True])
def test_persistent_windows_are_zero_again(reset, transport):
    program = compiled(count, at=pl.RUNTIME)
    with program.prepare(persistent=True, reset_persistent_windows=reset) as worker:
        assert list(counts(worker, program, 3)) == [1, 1, 1]
        assert worker.domain_count == 1
        with pytest.raises(pypto.DeviceError):
            worker(np.zeros((2, 1), np.int32), FAR, config=QUIET)
        assert list(counts(worker, program, 2)) == [1, 1]


def test_persistent_windows_keep_what_they_hold(transport):
    program, other = compiled(count, at=pl.RUNTIME), compiled(count, at=0)
    with DistributedWorker([program, other], persistent=True, reset_persistent_windows=False) as worker:
        assert list(counts(worker, program, 3)) == [1, 2, 3]
        y = np.zeros((2, 1), np.int32)
        worker.run(other, y, config=QUIET)  # has windows of its own
        assert y[0, 0] == 1 and worker.domain_count == 2
        with pytest.raises(pypto.DeviceError):
            worker.run(program, y, FAR, config=QUIET)
        with pytest.raises(pypto.Error, match="unknown state"):
            worker.run(program, y, 0, config=QUIET)
        worker.reset_persistent_windows()
        assert list(counts(worker, program, 2)) == [1, 2]


def test_each_call_has_its_own_lint(transport):
    body = """
pld.system.notify(win, nxt, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
for i in pl.range(2):
    pld.system.wait(win, [0, 0], 1, cmp=pld.WaitCmp.Ge)
"""
    cells = np.zeros((2, 2, 4, 2), np.int32)
    program = host_of(body, "INT32", (4, 2)).compile(*cells, config=config(2))
    strict = RunConfig(platform="cpu", lint="error")
    with program.prepare() as worker, warnings.catch_warnings():
        warnings.simplefilter("error")
        worker(*cells, config=QUIET)
        handle = worker.submit(program, *cells, config=strict)
        with pytest.raises(pypto.LintError, match="satisfied at once"):
            handle.result()
        with pytest.raises(pypto.LintWarning, match="satisfied at once"):
            worker(*cells)
        handle = worker.submit(program, *cells)
        for _ in range(2):
            with pytest.raises(pypto.LintWarning):  # a filter has made an error of it
                handle.result()


# ---- the end ----


def test_close_waits_for_what_is_in_flight(transport):
    program = prepared_job()
    y, z = np.zeros((2, N), np.int32), np.zeros((2, N), np.int32)
    worker = program.prepare()
    handles = [worker.submit(program, rows(), y, SLOW, 0), worker.submit(program, rows(1), z, SLOW, 1)]
    registered = worker.register(program)
    worker.close()
    assert all(handle.done for handle in handles) and registered.closed
    np.testing.assert_array_equal(y, expected(rows(), SLOW))
    np.testing.assert_array_equal(z, expected(rows(1), SLOW, 1))
    handles[0].result()
    worker.close()
    for name, use in {
        "__call__": lambda: worker(rows(), y, 1, 0),
        "run": lambda: worker.run(program, rows(), y, 1, 0),
        "submit": lambda: worker.submit(program, rows(), y, 1, 0),
        "register": lambda: worker.register(program),
        "reset_persistent_windows": lambda: worker.reset_persistent_windows(),
    }.items():
        with pytest.raises(RuntimeError, match=rf"{name}\(\) called after close") as caught:
            use()
        assert caught.value.code == "PYPTO-H410"


def test_close_from_two_threads(work):
    program, worker = work
    y = np.zeros((2, N), np.int32)
    worker.submit(program, rows(), y, SLOW, 0)
    threads = [threading.Thread(target=worker.close) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(y, expected(rows(), SLOW))


def test_a_dropped_worker_ends_its_processes(monkeypatch):
    monkeypatch.setenv("PYPTO_TRANSPORT", "shm")
    program = prepared_job()
    worker = program.prepare()
    y = np.zeros((2, N), np.int32)
    worker.submit(program, rows(), y, SLOW, 0)
    pids = worker.pids
    del worker
    gc.collect()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    np.testing.assert_array_equal(y, expected(rows(), SLOW))


def resources():
    maps = sum(1 for _ in open("/proc/self/maps"))
    resident = int(open("/proc/self/statm").read().split()[1]) * 4096
    return len(os.listdir("/proc/self/fd")), maps, resident


def test_many_calls_need_no_more(work):
    program, worker = work
    x, y = rows(), np.zeros((2, N), np.int32)

    def calls(count):
        for i in range(count):
            worker.submit(program, x, y, 1, 0)
            with pytest.raises(pypto.DeviceError):
                worker(x, np.zeros((2, N), np.int32), 1, FAR)
        worker(x, y, 1, 0)
        gc.collect()

    calls(20)
    before = resources()
    calls(100)
    after = resources()
    assert after[0] == before[0] and after[1] <= before[1] + 2
    assert after[2] <= before[2] + (1 << 20)


def test_failures_leave_no_garbage(work):
    """Exceptions hold frames, which hold handles, which hold the exception."""
    program, worker = work
    handle = worker.submit(program, rows(), np.zeros((2, N), np.int32), 1, FAR)
    with pytest.raises(pypto.DeviceError) as caught:
        handle.result()
    run = handle._run
    assert gc.is_tracked(run) and caught.value in gc.get_referents(run)


# ---- forks and signals, in processes of their own ----

SCRIPT = """\
import os, signal, sys, threading, time
sys.path.insert(0, {folder!r})
import numpy as np
from waiting_threads import interrupt, send, until_it_polls
from worker_programs import *
program = prepared_job()
x, y, z = rows(), np.zeros((2, N), np.int32), np.zeros((2, N), np.int32)
worker = program.prepare()
worker(x, y, 1, 0)

def after_it():
    worker(x, y, 2, 0)
    assert (y == expected(x, 2)).all()
"""


def script(text, transport):
    head = SCRIPT.format(folder=os.path.dirname(__file__))
    done = subprocess.run(
        [sys.executable, "-c", head + text],
        env={**os.environ, "PYPTO_TRANSPORT": transport},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


def test_a_forked_child_may_not_use_it_and_the_parent_goes_on():
    words = script(
        """
handle = worker.submit(program, x, y, SLOW, 0)
child = os.fork()
if child == 0:
    for use in (lambda: worker(x, z, 1, 0), lambda: handle.result()):
        try:
            use()
        except RuntimeError as error:
            assert "process that forked this one" in str(error), error
        else:
            os._exit(3)
    assert not handle.done
    worker.close()
    with program.prepare() as mine:
        mine(x, z, 5, 0)
        assert (z == expected(x, 5)).all()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
handle.result()
assert (y == expected(x, SLOW)).all()
after_it()
worker.close()
print("good")
""",
        "shm",
    )
    assert words == ["good"]


def test_a_process_may_end_with_calls_in_flight(transport):
    assert script("handle = worker.submit(program, x, y, SLOW, 0)\nprint('end')", transport) == ["end"]


def test_ctrl_c_ends_a_call_and_the_worker_goes_on(transport):
    words = script(
        """
for wait in (lambda: worker(x, y, FOREVER, 0), lambda: worker.submit(program, x, y, FOREVER, 0).result()):
    send(signal.SIGINT)
    try:
        wait()
    except KeyboardInterrupt:
        print("interrupted")
    after_it()
""",
        transport,
    )
    assert words == ["interrupted"] * 2


def test_ctrl_c_in_a_submit_that_waits_for_the_oldest(transport):
    words = script(
        """
handles = [worker.submit(program, x, out, FOREVER, 0) for out in (y, z)]
send(signal.SIGINT)
try:
    worker.submit(program, x, z.copy(), 1, 0)
except KeyboardInterrupt:
    print("interrupted")
for handle in handles:
    try:
        handle.result()
    except KeyboardInterrupt:
        print("cancelled")
after_it()
""",
        transport,
    )
    assert words == ["interrupted", "cancelled", "cancelled"]


@pytest.mark.parametrize("first, last", [(0, 1), (1, 0)])
def test_ctrl_c_cancels_all_in_flight(first, last, transport):
    words = script(
        f"""
handles = [worker.submit(program, x, out, FOREVER, 0) for out in (y, z)]
send(signal.SIGINT)
for i in ({first}, {last}):
    try:
        handles[i].result()
    except KeyboardInterrupt:
        print(i, [handle.done for handle in handles])
after_it()
""",
        transport,
    )
    assert words == f"{first} [True, True] {last} [True, True]".split()


def test_ctrl_c_while_another_thread_waits(transport):
    """The call of the main thread is in flight, and waits for its turn to wait: both are cancelled."""
    words = script(
        """
handle = worker.submit(program, x, y, FOREVER, 0)
def other():
    try:
        handle.result()
    except KeyboardInterrupt:
        print("cancelled")
thread = threading.Thread(target=other)
thread.start()
until_it_polls(thread.native_id)
second = worker.submit(program, x, z, FOREVER, 0)
interrupt(second)
thread.join()
try:
    second.result()
except KeyboardInterrupt:
    print("interrupted")
after_it()
""",
        transport,
    )
    assert words == ["cancelled", "interrupted"]


def test_ctrl_c_in_close(transport):
    words = script(
        """
worker.submit(program, x, y, FOREVER, 0)
send(signal.SIGINT)
try:
    worker.close()
except KeyboardInterrupt:
    print("interrupted", worker.closed)
worker.close()
with program.prepare() as worker:
    after_it()
""",
        transport,
    )
    assert words == ["interrupted", "True"]


def test_a_signal_handler_may_not_use_the_worker_that_it_interrupts():
    """The call that it interrupts goes on when the handler lets it."""
    words = script(
        """
gate = empty_shared((1,), np.int32)
def handler(number, frame):
    try:
        worker(x, z, gate, 1, 0)
    except RuntimeError as error:
        print("refused" if "interrupts another use" in str(error) else error)
    with program.prepare() as other:
        other(x, z, 1, 0)
    print((z == expected(x, 1)).all())
    gate[0] = 1
signal.signal(signal.SIGUSR1, handler)
worker = prepared_job(program=held_job).prepare()
send(signal.SIGUSR1)
worker(x, y, gate, 2, 0)
print((y == expected(x, 2)).all())
""",
        "shm",
    )
    assert words == ["refused", "True", "True"]


def test_prepare_loads_the_programs(transport):
    """The ranks have them when it returns: nothing is read for the first call."""
    program, x, y = compiled(shift), rows(), np.zeros((2, N), np.int32)
    copy = program.object_path.with_suffix(".aside")
    with program.prepare() as worker:
        program.object_path.rename(copy)
        try:
            worker(x, y)
        finally:
            copy.rename(program.object_path)
    np.testing.assert_array_equal(y, expected(x, 1))


FAILING = """
@pl.jit.incore
def kernel(x: pl.Tensor[[8], pl.INT32], y: pl.Out[pl.Tensor[[8], pl.INT32]], n: pl.Scalar[pl.INT64]):
    pl.write(y, [0], pl.read(x, [n]))

@pl.jit
def chip(x: pl.Tensor[[8], pl.INT32], y: pl.Out[pl.Tensor[[8], pl.INT32]], n: pl.Scalar[pl.INT64]):
    kernel(x, y, n)

@pl.jit.host
def host(x: pl.Tensor[[NR, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, 8], pl.INT32]], n: pl.Scalar[pl.INT64]):
    for r in pl.range(pld.world_size()):
        chip(x[r], y[r], n, device=r)
"""


def test_a_failure_is_that_of_its_call():
    """Ranks that fail at the same time, call after call: what is told is never what a rank failed with before."""
    x = np.zeros((64, 8), np.int32)
    compiled = from_text(FAILING)["host"].compile(config=config(64), n=pl.RUNTIME)
    with compiled.prepare() as worker:
        for number in range(100, 500):
            with pytest.raises(pypto.DeviceError, match=rf"\[{number}\]|\b{number}\b"):
                worker(x, np.zeros_like(x), number)
