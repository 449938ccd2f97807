"""Tensors that live in a prepared worker: passed in place, owned by one worker, on one rank, until they are freed."""

import copy
import ctypes
import gc
import logging
import os
import re
import signal
import threading

import numpy as np
import pytest
import torch

import pypto.language as pl
from programs import allreduce, allreduce_expected, config
from pypto.runtime import ChipWorker, DeviceTensor, DistributedWorker, RunConfig, Worker, benchmark
from resident_programs import N, add_chip, bare, both_on_one, compiled, each, in_turn, numbers, one
from worker_programs import FAR, VAIN, expected, prepared_job, rows


@pytest.fixture
def worker(transport):
    with compiled(one).prepare() as made:
        yield made


def contents(worker, tensor, worker_id=0):
    host = np.empty(tensor.shape, np.float32)
    worker.copy_from(host.ctypes.data, tensor.data_ptr, tensor.nbytes, worker_id=worker_id)
    return host


# ---- in place ----


@pytest.mark.parametrize("library", [torch.from_numpy, np.asarray])
def test_a_weight_stays_over_calls(worker, library):
    (program,) = worker._programs
    source = library(numbers(N, first=200))
    weight = worker.alloc_tensor((N,), source.dtype, init=source)
    source[:] = 0  # an upload is over when it returns
    del source
    ys = [library(np.zeros(N, np.float32)) for _ in range(3)]
    handles = [worker.submit(program, library(numbers(N, first=k)), weight, y) for k, y in enumerate(ys)]
    for k, (handle, y) in enumerate(zip(handles, ys)):
        handle.result()
        np.testing.assert_array_equal(np.asarray(y), numbers(N, first=k) + numbers(N, first=200))
    worker.free_tensor(weight)
    assert worker.committed_device_memory() == 0


def test_programs_write_it_where_it_is(worker):
    total = worker.alloc_tensor((N,), "float32", init=np.zeros(N, np.float32))
    assert total.dtype is pl.FP32 and total.buffer.tensor((2, N // 2), "float32").nbytes == 4 * N
    x, weight = numbers(N), numbers(N, first=7)
    for call in range(1, 4):
        worker(x, weight, total)
        np.testing.assert_array_equal(contents(worker, total), call * (x + weight))
    replaced = numbers(N, first=1000)
    worker.copy_to(total.data_ptr, replaced.ctypes.data, 8)  # part of it
    np.testing.assert_array_equal(contents(worker, total)[:2], [1000, 1001])
    np.testing.assert_array_equal(contents(worker, total)[2:], (3 * (x + weight))[2:])


def test_one_tensor_for_two_parameters(worker):
    tensor = worker.alloc_tensor((N,), torch.float32, init=torch.ones(N))
    worker(np.zeros(N, np.float32), tensor, tensor)
    assert (contents(worker, tensor) == 2).all()


def test_calls_in_flight_that_share_it_keep_their_order(worker):
    (program,) = worker._programs
    total = worker.alloc_tensor((N,), np.float32, init=np.zeros(N, np.float32))
    zero, ones = np.zeros(N, np.float32), np.ones(N, np.float32)
    for _ in range(20):
        worker.submit(program, zero, ones, total)
    assert (contents(worker, total) == 20).all()  # copies wait for what is in flight


def test_rows_of_one_tensor_by_leading_indices(transport):
    with compiled(both_on_one).prepare() as worker:
        weight = worker.alloc_tensor((2, N), torch.float32, init=numbers(2, N))
        y = np.zeros((2, N), np.float32)
        worker(np.zeros((2, N), np.float32), weight, y)
        np.testing.assert_array_equal(y, numbers(2, N))


@pytest.mark.parametrize(
    "dtype, numpy_type, torch_type",
    [
        (pl.FP32, np.float32, torch.float32), (pl.FP16, np.float16, torch.float16), (pl.BF16, None, torch.bfloat16),
        (pl.INT8, np.int8, torch.int8), (pl.INT32, np.int32, torch.int32), (pl.INT64, np.int64, torch.int64),
        (pl.UINT8, np.uint8, torch.uint8), (pl.UINT32, np.uint32, None), (pl.BOOL, np.bool_, torch.bool),
    ],
)
def test_element_types(dtype, numpy_type, torch_type):
    @pl.jit.incore
    def kernel(x: pl.Tensor[[N], dtype], y: pl.Out[pl.Tensor[[N], dtype]]):
        pl.store(pl.load(x, [0], [N]), [0], y)

    @pl.jit
    def chip(x: pl.Tensor[[N], dtype], y: pl.Out[pl.Tensor[[N], dtype]]):
        kernel(x, y)

    @pl.jit.host
    def copy(x: pl.Tensor[[N], dtype], y: pl.Out[pl.Tensor[[N], dtype]]):
        chip(x, y, device=0)

    bits = np.arange(N, dtype=np.uint8) % 2
    with copy.compile(config=config(1)).prepare() as worker:
        for library, of_library in ((torch, torch_type), (np, numpy_type)):
            if of_library is None:
                continue
            host = torch.from_numpy(bits).to(of_library) if library is torch else bits.astype(of_library)
            for kind in (dtype, of_library):
                x = worker.alloc_tensor((N,), kind, init=host)
                y = worker.alloc_tensor((N,), kind)
                worker(x, y)
                back = torch.zeros_like(host) if library is torch else np.zeros_like(host)
                address = back.data_ptr() if library is torch else back.ctypes.data
                worker.copy_from(address, y.data_ptr, y.nbytes)
                assert (back == host).all()


def test_several_programs_share_it(transport):
    first, second = compiled(one), compiled(both_on_one)
    with DistributedWorker([first, second]) as worker:
        weight = worker.alloc_tensor((2, N), torch.float32, init=numbers(2, N))
        row = weight.buffer.tensor((N,), torch.float32)  # the same memory, described in another way
        y, ys = np.zeros(N, np.float32), np.zeros((2, N), np.float32)
        worker.run(first, np.zeros(N, np.float32), row, y)
        worker.run(second, np.zeros((2, N), np.float32), weight, ys)
        np.testing.assert_array_equal(ys, numbers(2, N))
        np.testing.assert_array_equal(y, ys[0])
        with pytest.raises(ValueError, match="has 256 bytes, the allocation 128"):
            weight.buffer.tensor((4 * N,), torch.float32)
        larger = DeviceTensor(weight.data_ptr, (4, N), torch.float32, buffer=weight.buffer)
        with pytest.raises(ValueError, match="'weight' has 256 bytes, its allocation 128"):
            worker.run(second, ys, larger, ys)


# ---- whose it is ----


def call(worker, weight, program=None):
    y = np.zeros(N, np.float32)
    try:
        worker(np.zeros(N, np.float32), weight, y)
    finally:
        assert not y.any()


def refused(kind):
    """A worker with one tensor for each way to be no live one of it; gives the errors."""
    with compiled(one).prepare() as worker, compiled(one).prepare() as other:
        weight = worker.alloc_tensor((N,), torch.float32, init=numbers(N))
        if kind == "raw":
            return call(worker, DeviceTensor(weight.data_ptr, (N,), torch.float32))
        if kind == "foreign":
            return call(other, weight)
        if kind == "freed":
            worker.free_tensor(weight)
            return call(worker, weight)
        if kind == "freed by its address":
            worker.free(weight.data_ptr)
            return call(worker, weight)
        if kind == "address used again":
            worker.free_tensor(weight)
            assert worker.alloc_tensor((N,), torch.float32).data_ptr == weight.data_ptr
            return call(worker, weight)
        if kind == "of a closed worker":
            worker.close()
            return call(other, weight)
        buffer = type("Buffer", (), {"base": weight.data_ptr, "tensor": print})()
        return call(worker, DeviceTensor(weight.data_ptr, (N,), torch.float32, buffer=buffer))


@pytest.mark.parametrize(
    "kind, error, words",
    [
        ("raw", TypeError, r"'weight' is a raw-pointer DeviceTensor.*same DistributedWorker\.alloc_tensor"),
        ("foreign", ValueError, "not a live allocation owned by this DistributedWorker: it belongs to another"),
        ("freed", ValueError, "not a live allocation owned by this DistributedWorker: it was freed"),
        ("freed by its address", ValueError, "not a live allocation owned by this DistributedWorker: it was freed"),
        ("address used again", ValueError, "not a live allocation owned by this DistributedWorker: it was freed"),
        ("of a closed worker", ValueError, "not a live allocation owned by this DistributedWorker"),
        ("a buffer of one's own", ValueError, "not a live allocation owned by this DistributedWorker"),
    ],
)
def test_only_live_tensors_of_the_same_worker(kind, error, words):
    with pytest.raises(error, match=words):
        refused(kind)


def test_shape_and_element_type_are_checked(worker):
    x, y = np.zeros(N, np.float32), np.zeros(N, np.float32)
    cases = [
        ((N + 1,), torch.float32, r"'weight' of one expects shape \(16,\), got \[17\]"),
        ((2, N), torch.float32, "'weight' of one expects rank 1, got shape"),
        ((N,), torch.float16, "'weight' of one expects dtype fp32, got fp16"),
        ((N,), torch.float64, "Unsupported dtype of argument 'weight'"),
    ]
    for shape, dtype, words in cases:
        with pytest.raises(TypeError, match=words):
            worker(x, worker.alloc_tensor(shape, dtype), y)


def test_a_tensor_is_no_number(transport):
    with prepared_job().prepare() as worker:
        tensor = worker.alloc_tensor((1,), torch.int32)
        with pytest.raises(TypeError, match="'adds' of job must be a number"):
            worker(rows(), rows(), tensor, 0)


def test_copies_of_a_description_are_of_the_same_memory(worker):
    x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
    weight = worker.alloc_tensor((N,), np.float32, init=np.full(N, 2, np.float32))
    for copied in (copy.copy(weight), copy.deepcopy({"layers": [weight]})["layers"][0]):
        worker(x, copied, y)
    assert (y == 6).all()
    worker.free_tensor(copy.deepcopy(weight))
    with pytest.raises(ValueError, match="it was freed"):
        worker(x, weight, y)


def test_the_order_of_checks(worker):
    """Closed, count, kind, ownership, shape: the first that is wrong is told."""
    weight = worker.alloc_tensor((N + 1,), torch.float32)
    worker.free_tensor(weight)
    with pytest.raises(TypeError, match="expects 3 arguments"):
        worker(weight, weight)
    for wrong, words in ((["no tensor"], "'y' of 'one'|'y' of one"), (7, "'y' of one must be a tensor")):
        with pytest.raises(TypeError, match=words):
            worker(np.zeros(3, np.float32), weight, wrong)
    with pytest.raises(ValueError, match="not a live allocation"):
        worker(np.zeros(3, np.float32), weight, weight)
    worker.close()
    with pytest.raises(RuntimeError, match="called after close"):
        worker(weight)


# ---- where it is ----


def test_the_rank_is_checked_before_anything_runs(transport):
    """Row 0 could be written on rank 0: it is not, since row 1 cannot."""
    with compiled(each).prepare() as worker:
        y = worker.alloc_tensor((2, N), torch.float32, init=torch.zeros(2, N))
        x = np.ones((2, N), np.float32)
        with pytest.raises(ValueError, match="'y' is dispatched on rank 1, but is resident on rank 0"):
            worker(x, x, y)
        assert not contents(worker, y).any()
        worker(x, x, np.zeros((2, N), np.float32))  # the worker goes on


@pytest.mark.parametrize("rank", [1, 2])
def test_another_rank_than_that_of_the_dispatch(transport, rank):
    with compiled(one, 3).prepare() as worker:
        weight = worker.alloc_tensor((N,), torch.float32, worker_id=rank)
        y = np.zeros(N, np.float32)
        with pytest.raises(ValueError, match=f"'weight' is dispatched on rank 0, but is resident on rank {rank}") as caught:
            worker(y, weight, y)
        assert "resident_programs.py" in str(caught.value)
        worker.free_tensor(weight, worker_id=rank)


@pytest.mark.parametrize("persistent", [False, True])
def test_dispatches_without_a_device_go_from_rank_to_rank_anew_in_each_call(persistent, transport):
    """A resident tensor can be dispatched on its own rank only: so the ranks are 0, 1, 0 in every call."""
    program = in_turn.compile(config=config(2))
    ones = np.ones(N, np.float32)
    with program.prepare(persistent=persistent) as worker:
        tensors = [
            worker.alloc_tensor((N,), np.float32, init=np.zeros(N, np.float32), worker_id=rank) for rank in (0, 1, 0)
        ]
        for _ in range(3):
            worker(*tensors, ones)
        host = np.zeros(N, np.float32)
        for tensor, rank in zip(tensors, (0, 1, 0)):
            worker.copy_from(host.ctypes.data, tensor.data_ptr, tensor.nbytes, worker_id=rank)
            assert (host == 6).all()
        with pytest.raises(ValueError, match="is dispatched on rank 0, but is resident on rank 1"):
            worker(tensors[1], tensors[0], tensors[2], ones)
    outputs = [np.zeros(N, np.float32) for _ in range(3)]
    in_turn(*outputs, ones, config=config(1))  # with one device, too
    assert all((output == 2).all() for output in outputs)


# ---- one-shot calls ----


def test_one_shot_calls_have_no_worker_for_it(worker):
    weight = worker.alloc_tensor((N,), torch.float32, init=torch.ones(N))
    for words in (r"compiled\.prepare.*worker\.alloc_tensor", r"worker\.alloc_stacked_tensor", "same prepared DistributedWorker"):
        for arguments in ((weight,), (0, weight, "x")):  # before anything else
            with pytest.raises(TypeError, match=words):
                compiled(one)(*arguments)
            with pytest.raises(TypeError, match=words):
                one(*arguments, config=config(2))
    with pytest.raises(ValueError, match="not a live allocation owned by this ChipWorker"):
        add_chip(weight, weight, weight, config=config(1))
    with pytest.raises(TypeError, match="raw-pointer DeviceTensor"):
        add_chip(DeviceTensor(64, (N,), torch.float32), weight, weight)


def test_without_a_worker_kinds_are_told_before_owners(worker):
    weight = worker.alloc_tensor((N,), torch.float32)
    program = add_chip.compile(config=RunConfig(platform="cpu"))
    with ChipWorker(RunConfig(platform="cpu"), auto_init=False) as other:
        other_tensor = other.alloc_tensor((N,), torch.float32)
        with pytest.raises(TypeError, match="'y' of add_chip must be a tensor"):
            other.run(program, weight, other_tensor, 7)
        with pytest.raises(ValueError, match="not a live allocation owned by this ChipWorker"):
            other.run(program, weight, other_tensor, other_tensor)
    for call in (program, lambda *args: benchmark(program, args, rounds=1)):
        with pytest.raises(TypeError, match="'y' of add_chip must be a tensor"):
            call(weight, weight, 7)
        with pytest.raises(ValueError, match="not a live allocation owned by this ChipWorker"):
            call(weight, weight, weight)
    with pytest.raises(TypeError, match="'y' of 'add_chip'"):
        add_chip(weight, weight, ["no tensor"], config=config(1))
    with pytest.raises(TypeError, match="positional argument"):
        add_chip(weight, weight, config=config(1))


def test_a_jit_function_compiles_for_it(worker):
    """Its shape and element type are those of a parameter without annotation."""
    x, y = worker.alloc_tensor((N,), torch.int32), worker.alloc_tensor((N,), pl.INT32)
    program = bare.compile(x, y, config=config(1))
    assert [(p.shape, str(p.dtype)) for p in program.parameters] == [([N], "int32")] * 2
    stack = worker.alloc_stacked_tensor(torch.zeros(2, N))
    program = each.compile(stack, stack, stack, config=config(2))
    assert program.parameters[0].shape == [-1, N]


# ---- memory by its address ----


def test_raw_memory(worker):
    ptr = worker.malloc(100, worker_id=1)
    assert worker.committed_device_memory(1) == 100 and worker.committed_device_memory() == 0
    data, back = ctypes.create_string_buffer(bytes(range(100)), 100), ctypes.create_string_buffer(100)
    worker.copy_to(ptr, ctypes.addressof(data), 100, worker_id=1)
    worker.copy_from(ctypes.addressof(back), ptr, 60, worker_id=1)
    assert back.raw == data.raw[:60] + bytes(40)
    worker.free(ptr, worker_id=1)
    assert worker.committed_device_memory(1) == 0


def test_numbers_of_numpy(worker):
    host = np.arange(4, dtype=np.int64)
    ptr = worker.malloc(host.size * np.int64(8), worker_id=np.int32(1))
    worker.copy_to(np.uint64(ptr), host.ctypes.data, np.prod(host.shape) * 8, worker_id=np.int64(1))
    assert worker.committed_device_memory(np.int64(1)) == 32
    worker.free(ptr, worker_id=1)


def test_what_memory_functions_refuse(worker):
    ptr = worker.malloc(64)
    host = np.zeros(64, np.uint8).ctypes.data
    for size in (0, -1, True, 1.5, "8"):
        with pytest.raises(ValueError, match="positive int"):
            worker.malloc(size)
        with pytest.raises(ValueError, match="positive int"):
            worker.copy_to(ptr, host, size)
    for rank in (2, -1):
        with pytest.raises(IndexError, match="out of range"):
            worker.malloc(8, worker_id=rank)
        with pytest.raises(IndexError, match="out of range"):
            worker.committed_device_memory(rank)
    with pytest.raises(TypeError, match="worker_id"):
        worker.malloc(8, worker_id=None)
    for nbytes in (2**60, 2**63, 2**64, 10**30):
        with pytest.raises(MemoryError):
            worker.malloc(nbytes)
    with pytest.raises(MemoryError):
        worker.alloc_tensor((2**62, 4), np.float32)
    with pytest.raises(TypeError, match="sequence of ints, got None"):
        worker.alloc_tensor(None, np.float32)
    for wrong in (np.zeros(2, np.float32), np.zeros(1, np.int64), "8", 8.0):
        with pytest.raises(ValueError, match="must be a positive int"):
            worker.copy_to(ptr, wrong, 8)
    for operation in (
        lambda p, rank: worker.free(p, worker_id=rank),
        lambda p, rank: worker.copy_to(p, host, 8, worker_id=rank),
        lambda p, rank: worker.copy_from(host, p, 8, worker_id=rank),
    ):
        for wrong, rank in ((ptr + 8, 0), (host, 0), (ptr, 1), (None, 0)):
            with pytest.raises(ValueError, match="interior pointer"):
                operation(wrong, rank)
    with pytest.raises(ValueError, match="65 bytes are more than the 64"):
        worker.copy_to(ptr, host, 65)
    with pytest.raises(ValueError, match="positive int"):
        worker.copy_from(0, ptr, 8)
    worker.free(ptr)
    with pytest.raises(ValueError, match="interior pointer"):
        worker.free(ptr)


def test_what_inits_are_refused(worker):
    with pytest.raises(ValueError, match="CPU, contiguous"):
        worker.alloc_tensor((4, 4), torch.float32, init=torch.zeros(4, 8)[:, ::2])
    with pytest.raises(ValueError, match="CPU, contiguous"):
        worker.alloc_tensor((4, 4), np.float32, init=np.zeros((4, 4), np.float32).T[::-1])
    with pytest.raises(ValueError, match="must have shape"):
        worker.alloc_tensor((4,), torch.float32, init=torch.zeros(2, 2))
    with pytest.raises(ValueError, match="must have shape"):
        worker.alloc_tensor((4,), torch.float32, init=np.zeros(4, np.float64))
    assert worker.committed_device_memory() == 0 and not worker._owned_tensors


def test_freeing(worker):
    weight = worker.alloc_tensor((N,), torch.float32, worker_id=1)
    assert list(worker._owned_tensors) == [(1, weight.data_ptr)]
    with pytest.raises(ValueError, match="does not match the owning worker"):
        worker.free_tensor(weight)
    worker.free_tensor(weight, worker_id=1)
    worker.free_tensor(weight, worker_id=1)
    again = worker.alloc_tensor((N,), torch.float32, worker_id=1)
    assert again.data_ptr == weight.data_ptr
    with pytest.raises(ValueError, match="stale DeviceTensor"):
        worker.free_tensor(weight, worker_id=1)
    with compiled(one).prepare() as other:
        with pytest.raises(ValueError, match="not a live allocation owned by this DistributedWorker"):
            other.free_tensor(again, worker_id=1)


def test_freeing_waits_for_the_calls_that_use_it(worker):
    (program,) = worker._programs
    zero = np.zeros(N, np.float32)
    for k in range(20):
        weight = worker.alloc_tensor((N,), torch.float32, init=numbers(N, first=k))
        y = np.zeros(N, np.float32)
        worker.submit(program, zero, weight, y)
        worker.free_tensor(weight)
        np.testing.assert_array_equal(y, numbers(N, first=k))


# ---- the end ----


def test_forgotten_tensors(transport, caplog):
    caplog.set_level(logging.DEBUG)
    with compiled(one).prepare() as worker:
        worker.alloc_tensor((N,), torch.float32, init=torch.zeros(N))
        worker.malloc(10, worker_id=1)
        assert len(worker._owned_tensors) == 1
    assert not worker._owned_tensors and not [r for r in caplog.records if "leaking" in r.getMessage()]


def test_after_close(transport):
    worker = compiled(one).prepare()
    weight = worker.alloc_tensor((N,), torch.float32)
    worker.close()
    operations = {
        "malloc": lambda: worker.malloc(8),
        "free": lambda: worker.free(weight.data_ptr),
        "copy_to": lambda: worker.copy_to(weight.data_ptr, 64, 8),
        "copy_from": lambda: worker.copy_from(64, weight.data_ptr, 8),
        "alloc_tensor": lambda: worker.alloc_tensor((N,), torch.float32),
        "free_tensor": lambda: worker.free_tensor(weight),
        "committed_device_memory": lambda: worker.committed_device_memory(),
        "alloc_stacked_tensor": lambda: worker.alloc_stacked_tensor(torch.zeros(2, N)),
        "free_stacked_tensor": lambda: worker.free_stacked_tensor(None),
        "copy_stacked_from": lambda: worker.copy_stacked_from(None, None),
    }
    for name, operation in operations.items():
        with pytest.raises(RuntimeError, match=rf"{name}\(\) called after close"):
            operation()


def test_it_is_a_worker():
    assert issubclass(DistributedWorker, Worker)


def test_a_failed_call_leaves_resident_memory_alone(transport):
    with prepared_job().prepare() as worker:
        y = worker.alloc_tensor((2, 64), torch.int32, init=torch.full((2, 64), 5, dtype=torch.int32))
        keep = worker.alloc_tensor((4,), torch.int32, init=torch.arange(4, dtype=torch.int32))
        with pytest.raises(ValueError, match="resident on rank 0"):
            worker(rows(), y, 1, FAR)
        with pytest.raises(RuntimeError):
            worker(rows(), rows(), 1, FAR)
        back = np.zeros(4, np.int32)
        worker.copy_from(back.ctypes.data, keep.data_ptr, keep.nbytes)
        assert back.tolist() == [0, 1, 2, 3]


def test_beside_windows_and_collectives(transport):
    program = allreduce(256)
    x = np.arange(3 * 256, dtype=np.float32).reshape(3, 1, 256)
    for persistent in (False, True):
        with program.compile(x, x, config=config(3)).prepare(persistent=persistent) as worker:
            inputs, outputs = worker.alloc_stacked_tensor(x), worker.alloc_stacked_tensor(np.zeros_like(x))
            found = np.zeros_like(x)
            for _ in range(20):
                worker(inputs, outputs)
            worker.copy_stacked_from(outputs, found)
            np.testing.assert_array_equal(found, allreduce_expected(x))


def test_calls_that_fail_while_they_run(transport):
    """Of a call in flight, one that deadlocks, and the next ones."""
    with prepared_job().prepare() as worker:
        (program,) = worker._programs
        x = worker.alloc_stacked_tensor(rows())
        y, z = (worker.alloc_stacked_tensor(np.zeros_like(rows())) for _ in range(2))
        found = np.zeros_like(rows())
        for at in (FAR, VAIN):
            good, bad = worker.submit(program, x, y, 5, 0), worker.submit(program, x, z, 5, at)
            with pytest.raises(RuntimeError, match="wait" if at == VAIN else "1000"):
                bad.result()
            good.result()
            worker(x, z, 7, 0)
            worker.copy_stacked_from(z, found)
            np.testing.assert_array_equal(found, expected(rows(), 7))


def test_behind_the_death_of_a_rank(monkeypatch, caplog):
    """What is resident can still be saved and freed; the end is silent."""
    monkeypatch.setenv("PYPTO_TRANSPORT", "shm")
    caplog.set_level(logging.INFO)
    with compiled(each).prepare() as worker:
        x = worker.alloc_stacked_tensor(numbers(2, N))
        worker.alloc_stacked_tensor(numbers(2, N))
        os.kill(worker.pids[1], signal.SIGKILL)
        y, found = np.zeros((2, N), np.float32), np.zeros((2, N), np.float32)
        for _ in range(2):
            with pytest.raises(RuntimeError):
                worker(x, x, y)
        worker.copy_stacked_from(x, found)
        np.testing.assert_array_equal(found, numbers(2, N))
        worker.free_stacked_tensor(x)
    assert not [record for record in caplog.records if "leaking" in record.getMessage()]


def test_several_threads(worker):
    (program,) = worker._programs
    errors = []

    def work(k):
        try:
            for i in range(20):
                weight = worker.alloc_tensor((N,), torch.float32, init=torch.full((N,), float(k)))
                y = np.zeros(N, np.float32)
                worker.submit(program, np.full(N, i, np.float32), weight, y).result()
                assert (y == k + i).all()
                worker.free_tensor(weight)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and not worker._owned_tensors and worker.committed_device_memory() == 0


def test_a_worker_that_copies_nothing_takes_it(transport):
    with DistributedWorker(compiled(each), shared_only=True) as worker:
        x = worker.alloc_stacked_tensor(numbers(2, N))
        y = worker.alloc_stacked_tensor(np.zeros((2, N), np.float32))
        worker(x, x, y)
        found = np.zeros((2, N), np.float32)
        worker.copy_stacked_from(y, found)
        np.testing.assert_array_equal(found, 2 * numbers(2, N))


def test_its_contents_in_the_records_of_a_call(transport, tmp_path):
    """Rows are recorded where they lie, too."""
    with compiled(each).prepare() as worker:
        (program,) = worker._programs
        weight = worker.alloc_stacked_tensor(numbers(2, N, first=300))
        y = worker.alloc_stacked_tensor(np.zeros((2, N), np.float32))
        recorded = RunConfig(platform="cpu", enable_dump_args=2, save_kernels_dir=str(tmp_path))
        worker(numbers(2, N), weight, y, config=recorded)
        for rank in range(2):
            folder = program.output_dir / "dfx_outputs" / f"rank{rank}" / "d0" / "args_dump"
            values = np.frombuffer((folder / "args.bin").read_bytes(), np.float32)
            row = numbers(2, N, first=300)[rank]
            assert any((values[i : i + N] == row).all() for i in range(len(values) - N + 1))


def test_calls_do_not_grow_anything(transport):
    """Descriptors, mappings and memory are the same behind call 400 as behind call 300; the queue of dispatches
    goes around in its blocks by then."""

    def is_segment(fd):
        try:
            return "memfd" in os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            return False

    def state():
        gc.collect()
        descriptors = os.listdir("/proc/self/fd")
        lines = open("/proc/self/maps").read().splitlines()
        return (
            len(descriptors),
            sum("memfd" in line for line in lines),
            [re.search(r"VmData:\s+(\d+)", open(f"/proc/{pid}/status").read())[1] for pid in worker.pids if pid],
            sorted(os.stat(f"/proc/self/fd/{fd}").st_blocks for fd in descriptors if is_segment(fd)),
        )

    with compiled(one).prepare() as worker:
        x, y = np.zeros(N, np.float32), np.zeros(N, np.float32)
        weight = worker.alloc_tensor((N,), torch.float32, init=torch.zeros(N))

        def calls(count):
            for _ in range(count):
                worker(x, weight, y)
                worker.free_tensor(worker.alloc_tensor((1 << 16,), torch.float32, init=torch.zeros(1 << 16)))

        calls(300)
        before = state()
        assert before[1] > 0 and before[3] and len(before[2]) == (2 if transport == "shm" else 0)
        calls(100)
        assert state() == before
        assert worker.committed_device_memory() == weight.nbytes
