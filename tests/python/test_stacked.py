"""Tensors with a row on each rank: placed, passed in place, brought back, freed."""

import numpy as np
import pytest
import torch

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.runtime import DeviceTensor, DistributedWorker, StackedDeviceTensor
from programs import NR, config
from resident_programs import N, add_chip, compiled, crossed, each, numbers


@pytest.fixture
def worker(transport):
    with compiled(each, 3).prepare() as made:
        yield made


def contents(worker, stacked):
    host = np.full(stacked.full_shape, -1, np.float32)
    worker.copy_stacked_from(stacked, host)
    return host


@pytest.mark.parametrize("make", [torch.from_numpy, np.asarray])
def test_rows_of_all_ranks(worker, make):
    source = make(numbers(3, N))
    weight = worker.alloc_stacked_tensor(source)
    assert isinstance(weight, StackedDeviceTensor) and weight.worker_ids == (0, 1, 2) and weight.shape == (3, N)
    source[:] = 0  # the upload is over
    total = worker.alloc_stacked_tensor(make(np.zeros((3, N), np.float32)))
    x = numbers(3, N, first=50)
    for call in (1, 2, 3):
        worker(x, weight, total)
        np.testing.assert_array_equal(contents(worker, total), call * (x + numbers(3, N)))
    assert [worker.committed_device_memory(rank) for rank in range(3)] == [2 * N * 4] * 3
    for stacked in (weight, total, weight):  # again: nothing
        worker.free_stacked_tensor(stacked)
    assert [worker.committed_device_memory(rank) for rank in range(3)] == [0] * 3 and not worker._owned_tensors


@pytest.mark.parametrize("inherited", [False, True])
def test_rows_in_another_order(transport, inherited):
    x, weight = torch.from_numpy(numbers(2, N)), torch.from_numpy(numbers(2, N, first=300)).share_memory_()
    with DistributedWorker(compiled(crossed), inherited_host_tensors=[weight] if inherited else None) as worker:
        stacked = worker.alloc_stacked_tensor(weight, worker_ids=[1, 0])
        worker.release_inherited_host_tensor_refs()
        y = torch.zeros(2, N)
        worker(x, stacked, y)
        assert torch.equal(y, x + weight)
        back = torch.zeros(2, N)
        worker.copy_stacked_from(stacked, back)
        assert torch.equal(back, weight)


def test_a_stack_of_tensors_that_were_allocated_one_by_one(worker):
    """In any order, at any distance."""
    worker.malloc(100_000, worker_id=2)
    rows = {rank: worker.alloc_tensor((N,), torch.float32, init=numbers(N, first=100 * rank), worker_id=rank) for rank in (2, 0, 1)}
    stacked = StackedDeviceTensor(tuple(rows[rank] for rank in range(3)), (3, N), (0, 1, 2))
    y = np.zeros((3, N), np.float32)
    worker(np.zeros((3, N), np.float32), stacked, y)
    np.testing.assert_array_equal(y, np.stack([numbers(N, first=100 * rank) for rank in range(3)]))
    worker.free_tensor(rows[1], worker_id=1)
    with pytest.raises(ValueError, match="'weight': shard 1 is not a live allocation owned by this DistributedWorker: it was freed"):
        worker(y, stacked, y)


def test_tensors_of_many_dimensions_and_parts_of_rows(transport):
    @pl.jit.incore
    def kernel(x: pl.Tensor[[2, 8], pl.FP32], y: pl.Out[pl.Tensor[[2, 8], pl.FP32]]):
        pl.store(pl.load(x, [0, 0], [2, 8]), [0, 0], y)

    @pl.jit
    def chip(x: pl.Tensor[[2, 8], pl.FP32], y: pl.Out[pl.Tensor[[2, 8], pl.FP32]]):
        kernel(x, y)

    @pl.jit.host
    def parts(x: pl.Tensor[[NR, 3, 2, 8], pl.FP32], y: pl.Out[pl.Tensor[[NR, 3, 2, 8], pl.FP32]]):
        for r in pl.range(pld.world_size()):
            chip(x[r, 2], y[r, 0], device=r)
            chip(x[r, 0], y[r, 1], device=r)

    with parts.compile(config=config(2)).prepare() as worker:
        x = worker.alloc_stacked_tensor(numbers(2, 3, 2, 8))
        y = worker.alloc_stacked_tensor(np.zeros((2, 3, 2, 8), np.float32))
        worker(x, y)
        found = contents(worker, y)
        np.testing.assert_array_equal(found[:, 0], numbers(2, 3, 2, 8)[:, 2])
        np.testing.assert_array_equal(found[:, 1], numbers(2, 3, 2, 8)[:, 0])
        assert not found[:, 2].any()


def test_one_row(transport):
    """The whole of a stack of one row may be dispatched, too."""

    @pl.jit.incore
    def kernel(x: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]):
        pl.store(pl.load(x, [0, 0], [1, N]), [0, 0], y)

    @pl.jit
    def chip(x: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]):
        kernel(x, y)

    @pl.jit.host
    def whole(x: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]):
        chip(x, y, device=1)

    with whole.compile(config=config(2)).prepare() as worker:
        x = worker.alloc_stacked_tensor(numbers(1, N), worker_ids=[1])
        y = np.zeros((1, N), np.float32)
        worker(x, y)
        np.testing.assert_array_equal(y, numbers(1, N))


# ---- refused ----


def test_the_rank_of_each_row_is_checked_before_anything_runs(worker):
    weight = worker.alloc_stacked_tensor(numbers(3, N), worker_ids=[0, 2, 1])
    total = worker.alloc_stacked_tensor(np.zeros((3, N), np.float32))
    with pytest.raises(ValueError, match="row 1 of 'weight' is dispatched on rank 1, but is resident on rank 2"):
        worker(numbers(3, N), weight, total)
    assert not contents(worker, total).any()


def test_rows_of_several_ranks_in_one_dispatch(transport):
    @pl.jit.incore
    def kernel(x: pl.Tensor[[2, N], pl.FP32], y: pl.Out[pl.Tensor[[2, N], pl.FP32]]):
        pl.store(pl.load(x, [0, 0], [2, N]), [0, 0], y)

    @pl.jit
    def chip(x: pl.Tensor[[2, N], pl.FP32], y: pl.Out[pl.Tensor[[2, N], pl.FP32]]):
        kernel(x, y)

    @pl.jit.host
    def whole(x: pl.Tensor[[2, N], pl.FP32], y: pl.Out[pl.Tensor[[2, N], pl.FP32]]):
        chip(x, y, device=0)

    with whole.compile(config=config(2)).prepare() as worker:
        x = worker.alloc_stacked_tensor(numbers(2, N))
        with pytest.raises(ValueError, match="a dispatch takes rows 0 to 1 of 'x' at once"):
            worker(x, np.zeros((2, N), np.float32))


def test_every_shard_is_checked(worker):
    x = numbers(3, N)
    stacked = worker.alloc_stacked_tensor(x)
    rows = list(stacked.shards)
    raw = [DeviceTensor(row.data_ptr, row.shape, row.dtype) for row in rows]
    with compiled(each, 3).prepare() as other:
        foreign = other.alloc_stacked_tensor(x)
        cases = [
            (StackedDeviceTensor(raw, (3, N), (0, 1, 2)), TypeError, "shard 0 is a raw-pointer DeviceTensor"),
            (StackedDeviceTensor([rows[0], raw[1], rows[2]], (3, N), (0, 1, 2)), TypeError, "shard 1 is a raw-pointer"),
            (foreign, ValueError, "shard 0 is not a live allocation owned by this DistributedWorker"),
            (StackedDeviceTensor(rows, (3, N), (1, 0, 2)), ValueError, "shard 0 is not a live .* for rank 1: it lies on rank 0"),
        ]
        for wrong, error, words in cases:
            with pytest.raises(error, match=words):
                worker(x, wrong, x.copy())
    with pytest.raises(TypeError, match="compiled.prepare.*worker.alloc_stacked_tensor"):
        compiled(each, 3)(x, stacked, x)


def test_shape_and_element_type_are_checked(worker):
    x = numbers(3, N)
    with pytest.raises(TypeError, match=r"'weight' of each expects shape \(NR, 16\), got \[3, 8\]"):
        worker(x, worker.alloc_stacked_tensor(numbers(3, 8)), x)
    with pytest.raises(TypeError, match="'weight' of each expects dtype fp32, got int32"):
        worker(x, worker.alloc_stacked_tensor(np.zeros((3, N), np.int32)), x)
    with pytest.raises(pypto.Error, match="NR of each is 3 in 'x' and 2 in 'weight'"):
        worker(x, worker.alloc_stacked_tensor(numbers(2, N)), x)


@pytest.mark.parametrize(
    "host, worker_ids, error, words",
    [
        ([[1.0]], None, TypeError, "must be a torch.Tensor"),
        (torch.zeros(4, 4).t()[:, ::2], None, ValueError, "CPU, contiguous"),
        (np.zeros((4, 4), np.float32)[::2, ::2], None, ValueError, "CPU, contiguous"),
        (np.zeros(33, np.uint8)[1:].view(np.float32).reshape(2, 4), None, ValueError, r"aligned.*host\.copy\(\)"),
        (np.ma.masked_less(np.zeros((2, 4), np.float32), 1), None, TypeError, "host is a MaskedArray"),
        (torch.zeros(3), None, ValueError, "rank >= 2"),
        (torch.zeros(0, 4), None, ValueError, "at least one shard"),
        (torch.zeros(3, 0), None, ValueError, "positive"),
        (torch.zeros(3, 4), [0, 1], ValueError, "entries"),
        (torch.zeros(3, 4), [0, 1, 1], ValueError, "distinct"),
        (torch.zeros(3, 4), [0, 1, 3], ValueError, "out of range"),
        (torch.zeros(3, 4), [0, 1, -1], ValueError, "worker_ids"),
        (torch.zeros(4, 4), None, ValueError, "out of range"),
    ],
)
def test_what_cannot_be_stacked(worker, host, worker_ids, error, words):
    with pytest.raises(error, match=words):
        worker.alloc_stacked_tensor(host, worker_ids=worker_ids)
    assert not worker._owned_tensors and not worker.committed_device_memory()


def test_one_row_that_fails_frees_all(worker, monkeypatch):
    real, calls = worker._native, []

    class Failing:
        def __getattr__(self, name):
            return getattr(real, name)

        def fill(self, *arguments):
            calls.append(arguments)
            if len(calls) == 3:
                raise RuntimeError("the third row")
            real.fill(*arguments)

    monkeypatch.setattr(worker, "_native", Failing())
    with pytest.raises(RuntimeError, match="the third row"):
        worker.alloc_stacked_tensor(numbers(3, N))
    assert not worker._owned_tensors and not any(worker.committed_device_memory(rank) for rank in range(3))


@pytest.mark.parametrize(
    "host, words",
    [
        (np.zeros((3, N + 1), np.float32), "does not match stacked full_shape"),
        (np.zeros((3, N), np.float64), "does not match stacked dtype"),
        (np.zeros((3, 2 * N), np.float32)[:, ::2], "CPU, contiguous"),
        (np.broadcast_to(np.float32(0), (3, N)), "CPU, contiguous"),
    ],
)
def test_where_a_stack_cannot_be_copied_to(worker, host, words):
    stacked = worker.alloc_stacked_tensor(numbers(3, N))
    with pytest.raises(ValueError, match=words):
        worker.copy_stacked_from(stacked, host)


def test_other_mistakes(worker):
    stacked = worker.alloc_stacked_tensor(numbers(3, N))
    host = np.zeros((3, N), np.float32)
    for wrong in (stacked[0], host, None):
        with pytest.raises(TypeError, match="expects a StackedDeviceTensor"):
            worker.copy_stacked_from(wrong, host)
        with pytest.raises(TypeError, match="expects a StackedDeviceTensor"):
            worker.free_stacked_tensor(wrong)
    with pytest.raises(TypeError, match="host must be"):
        worker.copy_stacked_from(stacked, [[0.0]])
    host.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        worker.copy_stacked_from(stacked, host)
    worker.free_stacked_tensor(stacked)
    with pytest.raises(ValueError, match="shard 0 is not a live allocation"):
        worker.copy_stacked_from(stacked, np.zeros((3, N), np.float32))
