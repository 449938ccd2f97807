"""Rows of coverage/pitfalls.py that are about calls as a whole: what is easily done wrong works, or is refused before anything
runs."""

import threading

import numpy as np
import pytest

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from class_programs import of_host_function
from programs import config
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig

torch = pytest.importorskip("torch")
N = 16
TWO = DistributedConfig(device_ids=[0, 1])

X_Y = "x: pl.Tensor[[NR, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, N], pl.FP32]]"
EACH = "for r in pl.range(2):\n    self.double(x[r], y[r], device=r)"


def compiled(parameters=X_Y, body=EACH, dtype="FP32", devices=TWO):
    program = of_host_function(parameters, body, dtype)
    return ir.compile(program, platform="cpu", distributed_config=devices)


def ones(rows=2, dtype=np.float32):
    return np.ones((rows, N), dtype)


def in_both_ways(program, *arguments):
    """A one-shot call, then one of a prepared worker."""
    yield lambda: program(*arguments)
    with program.prepare() as worker:
        yield lambda: worker(*arguments)


def test_other_names_of_the_callers_memory_see_the_results(transport):
    """The tensor is not replaced by another one: an array that it was made from, views, and what others hold stay what they are."""
    array = np.zeros((2, 2 * N), np.float32)
    tensor = torch.from_numpy(array)
    view, address = tensor[:, :N], tensor.data_ptr()
    for call in in_both_ways(compiled(), ones(), view):
        array[:] = 0
        call()
        assert (array[:, :N] == 2).all() and not array[:, N:].any()
        assert tensor.data_ptr() == address and not tensor.is_shared()


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda x, y: (x[:, 1:].copy(), y), TypeError, r"'x' of host expects shape \(NR, 16\), got \[2, 15\]"),
        (lambda x, y: (x[0], y), TypeError, r"'x' of host expects rank 2, got shape \[16\] of rank 1"),
        (lambda x, y: (x.astype(np.int32), y), TypeError, "'x' of host expects dtype fp32, got int32"),
        (lambda x, y: (x.astype(np.int64), y), TypeError, "'x' of host expects dtype fp32, got int64"),
        (lambda x, y: (x.astype(float), y), TypeError, "Unsupported dtype float64 of argument 'x' of 'host', which expects fp32"),
        (lambda x, y: (torch.ones(2, N), torch.zeros(2, N).half()), TypeError, "'y' of host expects dtype fp32, got fp16"),
        (lambda x, y: (x, np.zeros((3, N), np.float32)), TypeError, "dynamic dimension NR of host is 2 in 'x' and 3 in 'y'"),
        (lambda x, y: (x, 1.0), TypeError, "'y' of host must be a tensor"),
        (lambda x, y: (x,), TypeError, "host expects 2 .*arguments"),
    ],
)
def test_arguments_that_do_not_fit(make, error, words, transport):
    x, y = ones(), np.zeros((2, N), np.float32)
    for call in in_both_ways(compiled(), *make(x, y)):
        with pytest.raises(error, match=words):
            call()
        assert not y.any()


FIXED = X_Y.replace("NR", "3")
WORLD = EACH.replace("pl.range(2)", "pl.range(pld.world_size())")


@pytest.mark.parametrize(
    "rows, parameters, body, devices, error",
    [
        (3, FIXED, WORLD, [0, 1], None),  # more rows than ranks: the last is nobody's
        (3, FIXED, WORLD, [0, 1, 2, 3], "has the literal 3 in dimension 0, which is indexed by rank, but the run has 4 devices"),
        (3, X_Y, WORLD, [0, 1], "'x' of host has 3 slices in dimension 0, but the run has 2 devices"),
        (2, X_Y, WORLD, [0, 1, 2], "'x' of host has 2 slices in dimension 0, but the run has 3 devices"),
        (4, X_Y, EACH.replace("pl.range(2)", "pl.range(4)"), [0, 1], "device 2 does not exist: the run has 2"),
        (2, X_Y, EACH.replace("device=r", "device=r + 4"), [4, 5], "device 4 does not exist: the run has 2"),
    ],
)
def test_worlds_that_do_not_fit(rows, parameters, body, devices, error, transport):
    program = compiled(parameters, body, devices=DistributedConfig(device_ids=devices))
    y = np.zeros((rows, N), np.float32)
    for call in in_both_ways(program, ones(rows), y):
        if error is None:
            call()
            assert (y[: len(devices)] == 2).all() and not y[len(devices) :].any()
            continue
        with pytest.raises(ValueError, match=error) as caught:
            call()
        assert caught.value.hint


def test_sub_workers_use_resident_tensors_in_place(transport):
    """Between two dispatches that use the same memory; nothing is copied, and what it writes stays there."""
    parameters = "x: Row, y: pl.InOut[Row], total: pl.InOut[Row]"
    program = compiled(parameters, "self.double(x, y, device=0)\nself.add(y, total)\nself.double(total, y, device=0)")
    with program.prepare() as worker:
        y, total = (worker.alloc_tensor((N,), pl.FP32, init=np.zeros(N, np.float32)) for _ in range(2))
        for turn in range(1, 4):
            worker(ones(1)[0], y, total)
            back = np.zeros((2, N), np.float32)
            for row, tensor in zip(back, (y, total)):
                worker.copy_from(row.ctypes.data, tensor.data_ptr, tensor.nbytes)
            assert (back == [[4 * turn], [2 * turn]]).all()


# Rows of x and y by number, in the order of the dispatches; the devices alternate.
@pytest.mark.parametrize(
    "steps, y",
    [
        ([("x[0]", "y[0]"), ("x[1]", "y[0]"), ("y[0]", "y[1]")], [6, 12]),  # written twice, then read
        ([("x[0]", "y[0]"), ("y[0]", "y[1]"), ("x[1]", "y[0]")], [6, 4]),  # read, then overwritten
        ([("x[0]", "y[0]"), ("y[0]", "y[1]"), ("y[1]", "y[0]"), ("y[0]", "y[1]")], [8, 16]),
    ],
)
def test_dispatches_on_one_tensor_keep_their_order(steps, y, transport):
    body = "\n".join(f"    self.double({a}, {b}, device={i % 2})" for i, (a, b) in enumerate(steps))
    program = compiled(body="for i in pl.range(20):\n" + body)
    x, out = np.array([[1], [3]], np.float32) * ones(), np.zeros((2, N), np.float32)
    for call in in_both_ways(program, x, out):
        call()
        assert (out == np.array(y)[:, None]).all()


@pytest.mark.parametrize(
    "dtype, number",
    [("FP32", -1.5), ("FP16", 0.5), ("BF16", -2.0), ("INT8", -128), ("INT32", -3), ("INT64", -4), ("UINT8", 255), ("UINT32", 7), ("BOOL", True), ("INDEX", 5)],
)
def test_numbers_reach_kernels(dtype, number, transport):
    """In a one-shot call and of a worker, between tensors; none of them is changed on the way."""
    parameters = f"x: pl.Tensor[[2, N], pl.FP32], k: pl.Scalar[pl.{dtype}], y: pl.Out[pl.Tensor[[2, N], pl.FP32]]"
    program = compiled(parameters, EACH.replace("double(x[r], ", "times(x[r], k, "), dtype)
    y = np.zeros((2, N), np.float32)
    for call in in_both_ways(program, ones(), number, y):
        y[:] = 0
        call()
        assert (y == float(number)).all()


def test_callbacks_need_not_be_picklable(transport):
    lock = threading.Lock()  # cannot be pickled
    seen = pypto.runtime.empty_shared((1,))

    def add(args):
        with lock:
            seen[0] += 1

    program = compiled("x: Row, total: pl.InOut[Row]", "self.add(x, total)\nself.double(x, total, device=0)")
    with program.prepare(callbacks={"add": add}) as worker:
        worker(ones(1)[0], np.zeros(N, np.float32))
    assert seen[0] == 1


@pl.jit.incore
def fail_kernel(
    y: pl.Out[pl.Tensor[[1], pl.INT32]], bell: pl.InOut[pld.DistributedTensor[[1], pl.INT32]], at: pl.Scalar[pl.INT64]
):
    ctx = pld.get_comm_ctx(bell)
    pl.write(y, [at], 1)                            # rank 0 has no such element
    for peer in pl.range(pld.nranks(ctx)):
        pld.system.notify(bell, peer=peer, offsets=[0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(bell, offsets=[0], expected=pld.nranks(ctx), cmp=pld.WaitCmp.Ge)


@pl.jit
def fail_chip(
    y: pl.Out[pl.Tensor[[1], pl.INT32]], bell: pl.InOut[pld.DistributedTensor[[1], pl.INT32]], at: pl.Scalar[pl.INT64]
):
    fail_kernel(y, bell, at)


@pl.jit.host
def fail(y: pl.Out[pl.Tensor[[pl.dynamic("NR"), 1], pl.INT32]], at: pl.Scalar[pl.INT64]):
    buffer = pld.alloc_window_buffer([1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        bell = pld.window(buffer, [1], dtype=pl.INT32)
        fail_chip(y[r], bell, at if r == 0 else 0, device=r)


def test_who_waits_for_a_rank_that_failed(transport):
    """The others are not waited for: the call ends with the failure, and says what each of them did."""
    program = fail.compile(config=config(3), at=pl.RUNTIME)
    y = np.zeros((3, 1), np.int32)
    with program.prepare() as worker:
        with pytest.raises(pypto.DeviceError, match="rank 0") as caught:
            worker(y, 9)
        assert not isinstance(caught.value, pypto.DeadlockError)
        for rank in range(3):
            assert f"rank {rank}: " in caught.value.note
        worker(y, 0)
    assert (y == 1).all()


def test_a_recorded_call_runs_once(tmp_path, transport):
    """An input that the program changes is changed once."""
    parameters = "x: pl.Tensor[[2, N], pl.FP32], y: pl.InOut[pl.Tensor[[2, N], pl.FP32]]"
    body = "self.add(x[0], y[0])\nfor r in pl.range(2):\n    self.double(y[r], y[1 - r], device=r)"
    program, y = compiled(parameters, body), ones()
    recorded = RunConfig(platform="cpu", enable_chip_swimlane=True, enable_dump_args=2, save_kernels_dir=str(tmp_path))
    program(ones(), y, config=recorded)
    assert (y == [[8], [4]]).all()  # y0 = 1 + 1; y1 = 2 y0; y0 = 2 y1


def test_the_order_of_checks(transport):
    """Closed, number, owner, shape and element type, devices: the first that is wrong is told, before anything runs."""
    parameters = X_Y + ", k: pl.Scalar[pl.INT32]"
    program = compiled(parameters, "for r in pl.range(4):\n    self.double(x[r], y[r], device=r)")
    y, wrong = np.zeros((2, N), np.float32), np.ones((2, N), np.int32)
    with program.prepare() as other:
        foreign = other.alloc_stacked_tensor(ones())
        with program.prepare() as worker:
            with pytest.raises(TypeError, match="expects 3 arguments"):
                worker(wrong, foreign)
            with pytest.raises(ValueError, match="not a live allocation"):
                worker(wrong, foreign, 1)
            with pytest.raises(TypeError, match="expects dtype fp32, got int32"):
                worker(wrong, y, 1)
            with pytest.raises(TypeError, match="float 1.5"):
                worker(ones(), y, 1.5)
            with pytest.raises(ValueError, match="device 2 does not exist"):
                worker(ones(4), np.zeros((4, N), np.float32), 1)
        with pytest.raises(RuntimeError, match="called after close"):
            worker(wrong, foreign)
    assert not y.any()
