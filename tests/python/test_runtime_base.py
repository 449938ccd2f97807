"""The base of workers, `pypto.runtime.Worker`, by a worker whose memory is a dictionary."""

import itertools
import logging

import numpy as np
import pytest
import torch

from pypto.runtime import DeviceTensor, Worker


class InMemory(Worker):
    """Ranks 0 and 1. `fails` names operations that raise."""

    def __init__(self, with_buffers=False):
        super().__init__()
        self.memory = {}  # (rank, address) -> bytes
        self.addresses = itertools.count(0x1000, 0x1000)
        self.with_buffers = with_buffers
        self.buffers = {}
        self.fails = set()
        self.log = []

    def _may(self, operation):
        self.log.append(operation)
        if operation in self.fails:
            raise RuntimeError(f"{operation} fails")

    def _require_ready(self, operation):
        self._may("ready " + operation)

    def _prepare_init(self, init):
        self._may("prepare")
        return init

    def _buffer_for_ptr(self, ptr, *, worker_id=0):
        self._may("buffer")
        return self.buffers.get((worker_id, ptr))

    def malloc(self, nbytes, *, worker_id=0):
        self._may("malloc")
        ptr = next(self.addresses)
        self.put(ptr, nbytes, worker_id)
        return ptr

    def put(self, ptr, nbytes, worker_id):
        self.memory[worker_id, ptr] = bytes(nbytes)
        if self.with_buffers:
            self.buffers[worker_id, ptr] = type("Buffer", (), {"base": ptr, "tensor": print})()

    def free(self, ptr, *, worker_id=0):
        self._may("free")
        del self.memory[worker_id, ptr]
        self.buffers.pop((worker_id, ptr), None)

    def copy_to(self, dst_dev_ptr, src_host_ptr, nbytes, *, worker_id=0):
        self._may("copy_to")
        import ctypes

        self.memory[worker_id, dst_dev_ptr] = ctypes.string_at(src_host_ptr, nbytes)

    def copy_from(self, dst_host_ptr, src_dev_ptr, nbytes, *, worker_id=0):
        raise NotImplementedError

    def run(self, compiled, *args, config=None):
        raise NotImplementedError

    def register(self, compiled):
        raise NotImplementedError


@pytest.fixture(params=[False, True], ids=["addresses", "buffers"])
def worker(request):
    return InMemory(request.param)


def test_it_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Worker()
    assert Worker.__abstractmethods__ == {"malloc", "free", "copy_to", "copy_from", "run", "register"}


@pytest.mark.parametrize("init", [torch.arange(6.0).reshape(2, 3), np.arange(6, dtype=np.float32).reshape(2, 3)])
def test_a_tensor_is_allocated_filled_tracked_and_freed(worker, init):
    tensor = worker.alloc_tensor((2, 3), torch.float32, init=init, worker_id=1)
    assert isinstance(tensor, DeviceTensor) and tensor.shape == (2, 3) and tensor.dtype == torch.float32
    assert worker.memory[1, tensor.data_ptr] == np.arange(6, dtype=np.float32).tobytes()
    assert worker._owned_tensors == {(1, tensor.data_ptr): tensor}
    assert tensor.buffer is worker.buffers.get((1, tensor.data_ptr))
    worker.free_tensor(tensor, worker_id=1)
    assert not worker._owned_tensors and not worker.memory
    worker.free_tensor(tensor, worker_id=1)  # again: nothing
    assert worker.log.count("free") == 1


def test_shapes_and_inits_are_checked_before_anything_is_allocated(worker):
    wrong = [
        (((), torch.float32), {}, ValueError, "shape must be non-empty"),
        (((4, 0), torch.float32), {}, ValueError, "positive"),
        (((4, 1.0), torch.float32), {}, TypeError, "ints"),
        (((4,), "float33"), {}, TypeError, "must be an element type"),
        (((4,), torch.float32), {"init": torch.zeros(5)}, ValueError, "must have shape"),
        (((4,), torch.float32), {"init": torch.zeros(4, dtype=torch.int32)}, ValueError, "must have shape"),
        (((4,), torch.float32), {"init": [0.0] * 4}, TypeError, "init must be a torch.Tensor"),
    ]
    for arguments, keywords, error, words in wrong:
        with pytest.raises(error, match=words):
            worker.alloc_tensor(*arguments, **keywords)
    assert not worker.memory and "malloc" not in worker.log


@pytest.mark.parametrize("operation", ["copy_to", "buffer"])
def test_what_fails_behind_the_allocation_frees_it(worker, operation):
    worker.fails.add(operation)
    with pytest.raises(RuntimeError, match=f"{operation} fails"):
        worker.alloc_tensor((4,), torch.float32, init=torch.zeros(4))
    assert not worker.memory and not worker._owned_tensors


@pytest.mark.parametrize("operation", ["ready alloc_tensor", "prepare", "malloc"])
def test_what_fails_before_it_frees_nothing(worker, operation):
    worker.fails.add(operation)
    with pytest.raises(RuntimeError, match=f"{operation} fails"):
        worker.alloc_tensor((4,), torch.float32, init=torch.zeros(4))
    assert "free" not in worker.log and not worker._owned_tensors


def test_the_wrong_rank(worker):
    tensor = worker.alloc_tensor((4,), torch.float32, worker_id=1)
    with pytest.raises(ValueError, match="does not match the owning worker"):
        worker.free_tensor(tensor, worker_id=0)
    assert len(worker._owned_tensors) == 1
    with pytest.raises(TypeError, match="takes a DeviceTensor"):
        worker.free_tensor(tensor.data_ptr, worker_id=1)


def test_a_stale_tensor_whose_address_is_used_again(worker):
    old = worker.alloc_tensor((4,), torch.float32)
    worker.free_tensor(old)
    worker.addresses = itertools.count(old.data_ptr)
    new = worker.alloc_tensor((4,), torch.float32)
    assert new == old  # as descriptions; as allocations they differ
    with pytest.raises(ValueError, match="stale DeviceTensor"):
        worker.free_tensor(old)
    worker.free_tensor(new)
    assert not worker.memory


def test_a_tensor_that_cannot_be_freed_stays_tracked(worker):
    tensor = worker.alloc_tensor((4,), torch.float32)
    worker.fails.add("free")
    with pytest.raises(RuntimeError, match="free fails"):
        worker.free_tensor(tensor)
    assert len(worker._owned_tensors) == 1
    worker.fails.clear()
    worker.free_tensor(tensor)
    assert not worker._owned_tensors and not worker.memory


def test_forgotten_tensors_are_freed_in_silence(worker, caplog):
    for rank in (0, 1, 1):
        worker.alloc_tensor((4,), torch.float32, worker_id=rank)
    worker._free_owned_tensors()
    assert not worker.memory and not worker._owned_tensors and not caplog.records


def test_forgotten_tensors_in_a_log_for_debugging(worker, caplog):
    caplog.set_level(logging.DEBUG, "pypto.runtime.runtime_base")
    worker.alloc_tensor((4,), torch.float32, worker_id=1)
    worker._free_owned_tensors()
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG and "of rank 1, which was still there" in record.getMessage()
    assert "leaking" not in record.getMessage()


def test_what_leaks_is_logged(worker, caplog):
    worker.alloc_tensor((4,), torch.float32)
    worker.fails.add("free")
    worker._free_owned_tensors()
    (record,) = caplog.records
    assert record.name == "pypto.runtime.runtime_base" and "leaking" in record.getMessage()
    assert not worker._owned_tensors
