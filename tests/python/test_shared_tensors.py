"""Tensors in place: every kind of shared memory is used where it is, and not a byte is copied; what cannot be is copied, or
refused, and never mistaken for something else. Workers are there before the tensors."""

import ctypes
import gc
import mmap
import multiprocessing
import multiprocessing.shared_memory
import os
import re

import numpy as np
import pytest
import torch

import pypto
import pypto.language as pl
from programs import config
from pypto.runtime import DistributedWorker, empty_shared, shutdown
from worker_programs import FOREVER, N, SLOW, closed_gate, expected, held_job, prepared_job, rows

BYTES = 2 * N * 4


@pytest.fixture
def work(transport):
    program = prepared_job()
    with program.prepare() as worker:
        yield program, worker


# ---- memory of every kind ----


def memory_file(bytes, name="test"):
    fd = os.memfd_create(name)
    os.ftruncate(fd, bytes)
    return fd


def mapped(fd, bytes=BYTES, **options):
    """The file as int32 rows; the mmap object keeps a descriptor of its own."""
    return np.frombuffer(mmap.mmap(fd, bytes, **options), np.int32).reshape(2, -1)


def from_memory_file(tmp_path):
    fd = memory_file(BYTES)
    array = mapped(fd)
    os.close(fd)
    return array


def from_offset_of_file(tmp_path):
    fd = memory_file(8192)
    array = mapped(fd, offset=4096)
    os.close(fd)
    return array


def from_named_file(tmp_path):
    return np.memmap(tmp_path / f"data{len(list(tmp_path.iterdir()))}", np.int32, "w+", shape=(2, N))


def from_multiprocessing(tmp_path):
    return np.frombuffer(multiprocessing.RawArray("i", 2 * N), np.int32).reshape(2, N)


def from_shared_memory(tmp_path):
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=BYTES)
    block.unlink()
    array = np.ndarray((2, N), np.int32, block.buf)
    _blocks.append(block)  # it does not live by its arrays
    return array


_blocks = []

KINDS = {
    "empty_shared of NumPy": lambda _: empty_shared((2, N), np.int32),
    "empty_shared of torch": lambda _: empty_shared((2, N), torch.int32),
    "empty_shared by an element type": lambda _: empty_shared([2, N], pl.INT32),
    "torch": lambda _: torch.zeros((2, N), dtype=torch.int32).share_memory_(),
    "memory file": from_memory_file,
    "offset of a memory file": from_offset_of_file,
    "named file": from_named_file,
    "multiprocessing.RawArray": from_multiprocessing,
    "multiprocessing.SharedMemory": from_shared_memory,
}


@pytest.mark.parametrize("kind", KINDS)
def test_shared_memory_is_used_in_place(work, kind, tmp_path):
    program, worker = work
    x, y = KINDS[kind](tmp_path), KINDS[kind](tmp_path)
    np.asarray(x)[:] = rows(5)
    worker(x, y, 3, 1)
    np.testing.assert_array_equal(np.asarray(y), expected(rows(5), 3, 1))
    worker.submit(program, y, x, 1, 0).result()
    np.testing.assert_array_equal(np.asarray(x), expected(expected(rows(5), 3, 1), 1))
    assert worker.copied_bytes == 0
    del x, y


def test_all_else_is_copied(work):
    program, worker = work
    y = np.zeros((2, N), np.int32)
    worker(rows(), y, 3, 0)
    assert worker.copied_bytes == 3 * BYTES  # both in, one back
    anonymous = np.frombuffer(mmap.mmap(-1, BYTES), np.int32).reshape(2, N)
    worker(empty_shared((2, N), np.int32), anonymous, 3, 0)
    assert worker.copied_bytes == 5 * BYTES
    np.testing.assert_array_equal(anonymous, expected(0 * rows(), 3))


def test_views_are_used_in_place(work):
    program, worker = work
    whole = empty_shared((4, 3 * N), np.int32)
    x, y = whole[::2, N : 2 * N], whole[3::-2, : 2 * N : 2]
    x[:] = rows()
    worker(x, y, 2, 0)
    np.testing.assert_array_equal(y, expected(rows(), 2))
    assert worker.copied_bytes == 0
    assert (whole[1::2, 1 : 2 * N : 2] == 0).all()


LENGTH = pl.dynamic("LENGTH")


@pl.jit.incore
def mark_kernel(y: pl.InOut[pl.Tensor[[LENGTH], pl.INT32]], at: pl.Scalar[pl.INT64]):
    pl.write(y, [at], pl.read(y, [at]) + 1)


@pl.jit
def mark_chip(y: pl.InOut[pl.Tensor[[LENGTH], pl.INT32]], at: pl.Scalar[pl.INT64]):
    mark_kernel(y, at)


@pl.jit.host
def mark(y: pl.InOut[pl.Tensor[[LENGTH], pl.INT32]], at: pl.Scalar[pl.INT64], last: pl.Scalar[pl.INT64]):
    """One more at two places."""
    mark_chip(y, at, device=0)
    mark_chip(y, last, device=1)


def test_more_than_could_be_copied(transport):
    """64 GiB, of which a few pages exist: one-shot, prepared, and two in flight."""
    count = 1 << 34
    fd = memory_file(4 * count)
    huge = np.frombuffer(mmap.mmap(fd, 4 * count), np.int32)
    os.close(fd)
    program = mark.compile(config=config(2), at=pl.RUNTIME, last=pl.RUNTIME)
    program(huge, 7, count - 1)
    with program.prepare() as worker:
        worker(huge, 7, count - 1)
        for handle in [worker.submit(program, huge, 7, count - 1) for _ in range(5)]:
            handle.result()
        assert worker.copied_bytes == 0
    assert huge[7] == huge[-1] == 7 and huge[8] == 0
    shutdown()


# ---- what an address means ----


def test_two_mappings_of_a_file_are_one_memory(work):
    program, worker = work
    fd = memory_file(BYTES)
    one, other, y = mapped(fd), mapped(fd), empty_shared((2, N), np.int32)
    os.close(fd)
    one[:] = rows()
    first = worker.submit(program, rows(), one, SLOW, 0)
    second = worker.submit(program, other, y, 1, 1)  # reads what the first writes
    second.result(), first.result()
    np.testing.assert_array_equal(y, expected(expected(rows(), SLOW), 1, 1))


libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
SHARED, PRIVATE_ANONYMOUS, FIXED = 1, 0x22, 0x10


def map_at(address, fd, flags):
    """A page mapped at a place of its own, over what is there; as int32 rows."""
    found = libc.mmap(address, 4096, 3, flags | (FIXED if address else 0), fd, 0)
    assert found not in (None, ctypes.c_void_p(-1).value), os.strerror(ctypes.get_errno())
    array = np.ctypeslib.as_array((ctypes.c_int32 * (2 * N)).from_address(found)).reshape(2, N)
    return found, array


def test_an_address_that_comes_again_means_what_is_there_now(work):
    program, worker = work
    files = [memory_file(4096) for _ in range(2)]
    address, first = map_at(None, files[0], SHARED)
    worker(rows(1), first, 1, 0)
    np.testing.assert_array_equal(first, expected(rows(1), 1))
    _, second = map_at(address, files[1], SHARED)
    worker(rows(2), second, 1, 0)
    np.testing.assert_array_equal(second, expected(rows(2), 1))
    _, private = map_at(address, -1, PRIVATE_ANONYMOUS)
    worker(rows(3), private, 1, 0)
    np.testing.assert_array_equal(private, expected(rows(3), 1))
    for k, fd in enumerate(files):
        np.testing.assert_array_equal(mapped(fd), expected(rows(k + 1), 1))
        os.close(fd)
    libc.munmap(address, 4096)


def test_a_file_that_has_grown(transport):
    held, program = prepared_job(program=held_job), prepared_job()
    fd = memory_file(BYTES)
    small = mapped(fd)
    with DistributedWorker([held, program]) as worker, closed_gate() as gate:
        handle = worker.submit(held, rows(), small, gate, 2, 0)
        os.ftruncate(fd, 3 * 4096)
        large = mapped(fd, offset=2 * 4096)
        behind = worker.submit(program, rows(4), large, 1, 0)
        gate[0] = 1
        handle.result(), behind.result()
        np.testing.assert_array_equal(small, expected(rows(), 2))
        np.testing.assert_array_equal(large, expected(rows(4), 1))
        # The inputs, and the grown part, because a call was using the file as it had been.
        assert worker.copied_bytes == 4 * BYTES
        worker.run(program, large, small, 1, 0)
        np.testing.assert_array_equal(small, expected(expected(rows(4), 1), 1))
        assert worker.copied_bytes == 4 * BYTES
    os.close(fd)


def test_a_file_without_descriptor_is_copied(work):
    program, worker = work
    fd = memory_file(4096)
    address, array = map_at(None, fd, SHARED)
    os.close(fd)
    for k in range(3):
        worker(rows(k), array, 1, 0)
        np.testing.assert_array_equal(array, expected(rows(k), 1))
    assert worker.copied_bytes == 3 * 3 * BYTES
    libc.munmap(address, 4096)


def test_a_file_that_takes_no_new_mapping_for_writing(work):
    program, worker = work
    fd = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, BYTES)
    array = mapped(fd)
    import fcntl

    fcntl.fcntl(fd, 1033, 0x10)  # F_ADD_SEALS, F_SEAL_FUTURE_WRITE
    os.close(fd)
    worker(rows(), array, 1, 0)
    np.testing.assert_array_equal(array, expected(rows(), 1))
    y = empty_shared((2, N), np.int32)
    before = worker.copied_bytes
    worker(array, y, 1, 1)
    np.testing.assert_array_equal(y, expected(expected(rows(), 1), 1, 1))
    assert worker.copied_bytes == before  # reading it needs no copy


def test_a_file_mapped_for_reading(work, tmp_path):
    program, worker = work
    path = tmp_path / "data"
    path.write_bytes(rows(3).tobytes())
    x, y = np.memmap(path, np.int32, "r", shape=(2, N)), empty_shared((2, N), np.int32)
    worker(x, y, 1, 0)
    np.testing.assert_array_equal(y, expected(rows(3), 1))
    assert worker.copied_bytes == 0
    with pytest.raises(TypeError, match="read-only"):
        worker(y, x, 1, 0)
    assert path.read_bytes() == rows(3).tobytes()


def test_a_file_that_ends_before_the_tensor(work):
    program, worker = work
    fd = memory_file(2 * 4096)
    array = np.frombuffer(mmap.mmap(fd, 2 * 4096), np.int32)[1024:].reshape(2, -1)[:, :N]
    worker(rows(), array, 1, 0)
    os.ftruncate(fd, 4096)
    with pytest.raises(ValueError, match=r"'y' of job lies in a mapped file of 4096 bytes, of which it needs") as error:
        worker(rows(), array, 1, 0)
    assert error.value.code == "PYPTO-H426"
    os.ftruncate(fd, 2 * 4096)
    worker(rows(), array, 2, 0)
    np.testing.assert_array_equal(array, expected(rows(), 2))
    os.close(fd)


def test_a_file_that_is_cut_during_a_call(monkeypatch):
    """Nobody can help that worker; the report says what may be behind it, and the next one works."""
    monkeypatch.setenv("PYPTO_TRANSPORT", "shm")
    program = prepared_job(program=held_job)
    fd = memory_file(4096)
    array = mapped(fd)
    worker, gate = program.prepare(), empty_shared((1,), np.int32)
    handle = worker.submit(program, rows(), array, gate, 1, 0)
    os.ftruncate(fd, 0)
    gate[0] = 1
    with pytest.raises(pypto.WorkerDiedError, match="SIGBUS") as error:
        handle.result()
    assert "may have ended before the tensor" in str(error.value)
    worker.close()
    os.close(fd)
    with program.prepare() as worker:
        y = empty_shared((2, N), np.int32)
        worker(rows(), y, gate, 1, 0)
        np.testing.assert_array_equal(y, expected(rows(), 1))


# ---- what is kept ----


def files_of(pid, name):
    text = open(f"/proc/{pid}/maps").read()
    return len(re.findall(name, text))


def test_memory_that_is_dropped_is_given_back(transport):
    program = prepared_job()
    with program.prepare() as worker:
        pids = [pid or os.getpid() for pid in worker._native.pids]
        y = empty_shared((2, N), np.int32)
        worker(rows(), y, 1, 0)
        assert all(files_of(pid, "memfd:pypto-shared") >= 1 for pid in pids)
        del y
        gc.collect()
        # Workers have been told; what they do is seen by the answer to whatever comes next.
        kept = from_memory_file(None)
        worker(rows(), kept, 1, 0)
        assert all(files_of(pid, "memfd:pypto-shared") == 0 for pid in pids)
        assert all(files_of(pid, "memfd:test") >= 1 for pid in pids)
        del kept
        gc.collect()
        worker(rows(), rows(), 1, 0)  # looks after what is unused
        worker(rows(), from_memory_file(None), 1, 0)
        assert all(files_of(pid, "memfd:test") <= 2 for pid in pids)


def test_many_tensors_need_no_more(work):
    program, worker = work

    def needs():
        gc.collect()
        return len(os.listdir("/proc/self/fd")), len(open("/proc/self/maps").readlines())

    def call(k):
        x, y = empty_shared((2, N), np.int32), from_memory_file(None)
        x[:] = rows(k)
        worker(x, y, 1, 0)
        np.testing.assert_array_equal(y, expected(rows(k), 1))

    for k in range(10):
        call(k)
    files, maps = needs()
    for k in range(100):
        call(k)
    later_files, later_maps = needs()
    assert later_files <= files + 2 and later_maps <= maps + 8


def test_more_files_than_are_kept(work):
    program, worker = work
    tensors = [empty_shared((2, N), np.int32) for _ in range(150)]
    for k, tensor in enumerate(tensors):
        worker(rows(k), tensor, 1, 0)
    for tensor, after in zip(tensors, tensors[1:]):
        worker(tensor, after, 1, 0)
    np.testing.assert_array_equal(tensors[-1], expected(tensors[-2], 1))
    assert worker.copied_bytes == 150 * BYTES


# ---- forks ----


def test_a_forked_child_shares_it(transport):
    program = prepared_job()
    x, y = empty_shared((2, N), np.int32), empty_shared((2, N), np.int32)
    x[:] = rows()
    with program.prepare() as worker:
        worker(x, y, 1, 0)
        if (child := os.fork()) == 0:
            try:
                with program.prepare() as own:
                    own(x, y, 5, 0)
                    mine = empty_shared((2, N), np.int32)
                    own(y, mine, 1, 0)
                    good = own.copied_bytes == 0 and (mine == expected(expected(rows(), 5), 1)).all()
            except BaseException as error:
                print(error, flush=True)
                good = False
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0
        np.testing.assert_array_equal(y, expected(rows(), 5))  # the child's
        worker(x, y, 2, 0)
        np.testing.assert_array_equal(y, expected(rows(), 2))
        assert worker.copied_bytes == 0


# ---- only shared memory ----


def test_a_worker_that_takes_only_shared_memory(transport):
    program = prepared_job()
    x, y = empty_shared((2, N), np.int32), empty_shared((2, N), np.int32)
    x[:] = rows()
    private = torch.from_numpy(rows())
    with program.prepare(shared_only=True) as worker:
        worker(x, y, 1, 0)
        for arguments in ((private, y), (x, private), (rows(), y)):
            with pytest.raises(TypeError, match="shared memory") as error:
                worker(*arguments, 1, 0)
            assert error.value.code == "PYPTO-H425"
        with pytest.raises(TypeError, match="argument 'y' of job must be in shared memory"):
            worker.submit(program, x, private, 1, 0)
        private.share_memory_()
        worker(private, y, 2, 0)
        np.testing.assert_array_equal(y, expected(rows(), 2))
        assert worker.copied_bytes == 0


@pytest.mark.parametrize("value, strict", [("1", True), ("0", False), ("", False)])
def test_the_environment_says_so(transport, monkeypatch, value, strict):
    monkeypatch.setenv("PYPTO_SHARED_ONLY", value)
    program = prepared_job()
    inherited = torch.from_numpy(rows())
    with pypto.runtime.DistributedWorker(program, inherited_host_tensors=[inherited]) as worker:
        if strict:
            with pytest.raises(TypeError, match="shared memory"):
                worker(inherited, empty_shared((2, N), np.int32), 1, 0)
        else:
            worker(inherited, empty_shared((2, N), np.int32), 1, 0)
    with program.prepare(shared_only=not strict) as worker:
        if strict:
            worker(inherited, rows(), 1, 0)  # the argument counts
    y = np.zeros((2, N), np.int32)
    program(rows(), y, 1, 0)  # and one-shot calls take everything
    np.testing.assert_array_equal(y, expected(rows(), 1))


# ---- making them ----


@pytest.mark.parametrize(
    "dtype, made",
    [
        (np.float32, np.float32),
        ("float16", np.float16),
        (np.dtype("u2"), np.uint16),
        (bool, np.bool_),
        (pl.FP32, np.float32),
        (pl.UINT64, np.uint64),
        (pl.BOOL, np.bool_),
        (torch.float32, torch.float32),
        (torch.bfloat16, torch.bfloat16),
        (torch.int8, torch.int8),
    ],
    ids=str,
)
def test_element_types(dtype, made):
    tensor = empty_shared((3, 5), dtype)
    assert tensor.dtype == made and tuple(tensor.shape) == (3, 5)
    assert not (tensor != 0).any()
    tensor[1, 2] = 1
    assert tensor.sum() == 1


@pytest.mark.parametrize("dtype", ["int32", "INT32", "torch.int32", "np.int32", "i4", np.int32, np.dtype("int32"), pl.INT32])
def test_names_of_element_types(dtype):
    assert empty_shared(2, dtype).dtype == np.int32
    assert empty_shared(2, int).dtype == np.int64


def test_shapes():
    assert empty_shared(4).shape == (4,) and empty_shared(4).dtype == np.float32
    assert empty_shared(()).shape == ()
    assert empty_shared([2, 0, 3], torch.int32).shape == (2, 0, 3)
    assert empty_shared((0,), np.int32).shape == (0,)


@pytest.mark.parametrize(
    "shape, dtype, error, words",
    [
        ((2, -1), np.int32, ValueError, "must not be negative"),
        ("ab", np.int32, TypeError, "shape must be"),
        (2.5, np.int32, TypeError, "shape must be"),
        (2, pl.BF16, TypeError, "pass one of torch"),
        (2, object, TypeError, "no element type"),
        (2, np.dtype("O"), TypeError, "Python objects"),
        (2, "nonsense", TypeError, "no element type"),
        (1 << 50, np.int8, MemoryError, "shared tensors|larger than"),
        ((1 << 62, 8), np.float32, MemoryError, "no machine has"),
        ((1 << 70,), torch.float32, MemoryError, "no machine has"),
    ],
)
def test_what_cannot_be_made(shape, dtype, error, words):
    with pytest.raises(error, match=words):
        empty_shared(shape, dtype)
