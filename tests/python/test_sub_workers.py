"""Python functions that a host function calls in SubWorkers: data, order, failures, callbacks, and what is refused."""

import os
import textwrap
import time

import numpy as np
import pytest

import pypto
import pypto.language as pl
from pypto import ir
from pypto.errors import ParserError, ParserSyntaxError, ParserTypeError
from pypto.ir import DistributedConfig
from pypto.runtime import DistributedWorker, RunConfig, empty_shared
from pypto.runtime.distributed_runner import _tensor_from_continuous
from pypto.runtime import sub_workers

torch = pytest.importorskip("torch")
N = 16
NR = pl.dynamic("NR")
FACTOR = 3.0


@pl.program
class Steps:
    """y = 2 x on the devices, z = FACTOR y in a SubWorker, out = 2 z on the devices."""

    @pl.function(type=pl.FunctionType.InCore)
    def double_kernel(self, x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]):
        pl.store(pl.mul(pl.load(x, [0], [N]), 2.0), [0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def double(self, x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]) -> pl.Tensor[[N], pl.FP32]:
        return self.double_kernel(x, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def scale(y: pl.Tensor[[NR, N], pl.FP32], z: pl.Out[pl.Tensor[[NR, N], pl.FP32]]):
        z[:] = y * FACTOR
        if bool((y < 0).any()):
            raise ValueError("negative data")

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[NR, N], pl.FP32], out: pl.Out[pl.Tensor[[NR, N], pl.FP32]]):
        y = pl.create_tensor([2, N], dtype=pl.FP32)
        z = pl.create_tensor([2, N], dtype=pl.FP32)
        for r in pl.range(2):
            self.double(x[r], y[r], device=r)
        self.scale(y, z)
        for r in pl.range(2):
            self.double(z[r], out[r], device=r)
        return out


TWO = DistributedConfig(device_ids=[0, 1])


def compiled(program, config=TWO):
    return ir.compile(program, platform="cpu", distributed_config=config)


def test_dispatches_and_sub_workers_in_order(transport):
    program = compiled(Steps)
    x = np.arange(2 * N, dtype=np.float32).reshape(2, N)
    out = np.zeros_like(x)
    program(x, out)
    assert (out == 12 * x).all()
    with program.prepare() as worker:
        for k in range(1, 20):
            worker(x * k, out)
            assert (out == 12 * k * x).all()


def test_calls_in_flight():
    program = compiled(Steps)
    inputs = [np.full((2, N), k, np.float32) for k in range(8)]
    outputs = [np.zeros_like(x) for x in inputs]
    with program.prepare() as worker:
        handles = [worker.submit(program, x, y) for x, y in zip(inputs, outputs)]
        for k, handle in enumerate(handles):
            handle.result()
            assert (outputs[k] == 12 * k).all()


# ---- what a function gets ----


def copy_program(dtype, shape):
    @pl.program
    class Copy:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def copy(x: pl.Tensor[shape, dtype], y: pl.Out[pl.Tensor[shape, dtype]]):
            assert tuple(x.shape) == tuple(y.shape)
            y[:] = x

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[shape, dtype], y: pl.Out[pl.Tensor[shape, dtype]]) -> pl.Tensor[shape, dtype]:
            done = self.copy(x, y)
            return done

    return compiled(Copy, DistributedConfig(device_ids=[0]))


@pytest.mark.parametrize("with_torch", [True, False])
@pytest.mark.parametrize(
    "name, numpy",
    [
        ("FP32", np.float32),
        ("FP16", np.float16),
        ("INT8", np.int8),
        ("INT16", np.int16),
        ("INT32", np.int32),
        ("INT64", np.int64),
        ("UINT8", np.uint8),
        ("UINT16", np.uint16),
        ("UINT32", np.uint32),
        ("UINT64", np.uint64),
        ("BOOL", np.bool_),
    ],
)
def test_element_types(name, numpy, with_torch, monkeypatch):
    if with_torch and name in ("UINT16", "UINT32", "UINT64") and not hasattr(torch, name.lower()):
        pytest.skip("this torch has no such type")
    if not with_torch:
        monkeypatch.setattr(sub_workers, "_find_torch", lambda: None)
    program = copy_program(getattr(pl, name), [3, 5])
    x = np.arange(15).reshape(3, 5).astype(numpy)
    y = np.zeros_like(x)
    program(x, y)
    assert (x == y).all() and y.any()
    y[:] = 0
    program(x[::-1], y)  # strided in the caller
    assert (x[::-1] == y).all()


def test_bfloat16_and_small_types():
    x = torch.arange(15).reshape(3, 5).to(torch.bfloat16)
    y = torch.zeros_like(x)
    copy_program(pl.BF16, [3, 5])(x, y)
    assert torch.equal(x, y)
    for name, extent in (("FP8E4M3FN", 6), ("FP8E5M2", 6), ("FP4", 12), ("INT4", 12)):
        x = torch.arange(18, dtype=torch.uint8).reshape(3, 6)
        y = torch.zeros_like(x)
        copy_program(getattr(pl, name), [3, extent])(x, y)
        assert torch.equal(x, y), name


def test_scalars_and_views():
    @pl.program
    class P:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def put(
            part: pl.InOut[pl.Tensor[[2, 3], pl.FP32]],
            whole: pl.Scalar[pl.INT32],
            real: pl.Scalar[pl.FP32],
            flag: pl.Scalar[pl.BOOL],
            big: pl.Scalar[pl.UINT64],
        ):
            assert (type(whole), type(real), type(flag), type(big)) == (int, float, bool, int)
            assert big == 2**64 - 1
            part += whole + real if flag else 0

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.InOut[pl.Tensor[[2, 4, 6], pl.FP32]], n: pl.Scalar[pl.INT32]):
            self.put(x[0, 1:3, 0:3], n - 7, 0.5, True, 18446744073709551615)
            self.put(x[1, 0:2, 3:6], n, 0.25, True, 18446744073709551615)
            self.put(x[0, 2:4, 2:5], n, 0.25, n < 0, 18446744073709551615)

    program = compiled(P, DistributedConfig(device_ids=[0]))
    x = np.zeros((2, 4, 6), np.float32)
    expected = x.copy()
    expected[0, 1:3, 0:3] += -1.5
    expected[1, 0:2, 3:6] += 5.25
    with program.prepare() as worker:
        worker(x, 5)
    assert (x == expected).all()


def test_names_around_a_function():
    text = textwrap.dedent(
        """
        @pl.program
        class P:
            @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
            def put(y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
                import math
                y[:] = torch.full((4,), math.floor(helper(2.5)))

            @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
            def host(self, y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
                self.put(y)
        """
    )
    program = pl.parse("def helper(x):\n    return x * 3\n" + text)  # torch is there all the same
    y = np.zeros(4, np.float32)
    compiled(program, DistributedConfig(device_ids=[0]))(y)
    assert (y == 7).all()


def test_memory_is_used_in_place():
    program = copy_program(pl.FP32, [4, 4])
    with program.prepare() as worker:
        x, y = empty_shared((4, 4), np.float32), empty_shared((4, 4), np.float32)
        x[:] = 5
        before = worker._native.copied_bytes
        worker(x, y)
        assert (y == 5).all() and worker._native.copied_bytes == before
        resident = worker.alloc_tensor((4, 4), torch.float32, init=torch.full((4, 4), 7.0))
        result = np.zeros((4, 4), np.float32)
        worker(resident, result)
        assert (result == 7).all()


def test_a_function_overwrites_what_devices_have_read():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]):
            acc = pl.load(x, [0], [N])
            for _ in pl.range(20000):
                acc = pl.mul(acc, 1.0)
            pl.store(pl.add(acc, pl.load(x, [0], [N])), [0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]):
            self.k(x, y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def wipe(x: pl.Out[pl.Tensor[[N], pl.FP32]]):
            x[:] = 100

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.InOut[pl.Tensor[[N], pl.FP32]], y: pl.Out[pl.Tensor[[2, N], pl.FP32]]):
            self.chip(x, y[0], device=0)
            self.wipe(x)
            self.chip(x, y[1], device=1)

    x, y = np.ones(N, np.float32), np.zeros((2, N), np.float32)
    compiled(P)(x, y)
    assert (x == 100).all() and (y[0] == 2).all() and (y[1] == 200).all()


def test_jit_functions_call_them_too():
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def negate(y: pl.InOut[pl.Tensor[[NR, N], pl.FP32]]):
        y.neg_()

    @pl.jit.incore
    def k(x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]):
        pl.store(pl.load(x, [0], [N]), [0], y)

    @pl.jit
    def chip(x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]):
        k(x, y)

    @pl.jit.host
    def host(x: pl.Tensor[[NR, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, N], pl.FP32]]):
        for r in pl.range(pld_size()):
            chip(x[r], y[r], device=r)
        negate(y)

    config = RunConfig(platform="cpu", distributed_config=TWO)
    x, y = np.ones((2, N), np.float32), np.zeros((2, N), np.float32)
    host(x, y, config=config)
    assert (y == -1).all()
    program = host.compile(x, y, config=config)
    program(x, y)
    assert (y == -1).all()
    marks = empty_shared((1,), np.int64)

    def callback(args):
        marks[0] += len(args)

    with program.prepare(callbacks={"negate": callback}) as worker:
        worker(x, y)
    assert marks[0] == 1 and (y == 1).all()


@pl.inline
def pld_size():
    return 2


# ---- which process, and when it is made ----


def test_functions_see_what_was_there_when_they_were_forked():
    level = 1.0

    @pl.program
    class P:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def put(y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
            y[:] = level
            y[0] = os.getpid() % 1000

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
            self.put(y)

    program = compiled(P, DistributedConfig(device_ids=[0]))
    y = np.zeros(4, np.float32)
    with program.prepare() as worker:
        level = 2.0
        worker(y)
        assert y[1] == 1.0
        assert y[0] == worker._native.sub_pids[0] % 1000 != os.getpid() % 1000
        program(y)
        assert y[1] == 2.0
        level = 3.0
        program(y)
        assert y[1] == 3.0
        worker(y)
        assert y[1] == 1.0


@pytest.mark.parametrize("wanted, count", [(0, 2), (1, 2), (3, 3)])
def test_how_many(wanted, count):
    @pl.program
    class P:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def one(y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
            y += 1

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def two(y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
            y += 2

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
            for _ in pl.range(10):
                self.one(y)
                self.two(y)

    program = compiled(P, DistributedConfig(device_ids=[0], num_sub_workers=wanted))
    y = np.zeros(4, np.float32)
    with program.prepare() as worker:
        assert len(worker._native.sub_pids) == count
        worker(y)
    assert (y == 30).all()


def test_none_where_no_program_calls_any():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, y: pl.InOut[pl.Tensor[[N], pl.FP32]]):
            pl.store(pl.add(pl.load(y, [0], [N]), 1.0), [0], y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, y: pl.InOut[pl.Tensor[[N], pl.FP32]]):
            self.k(y)

    program = compiled(P, DistributedConfig(device_ids=[0], num_sub_workers=2))
    y = np.zeros(N, np.float32)
    with program.prepare() as worker:
        assert worker._native.sub_pids == []
        worker(y)
    assert (y == 1).all()


def test_a_function_may_run_programs_itself():
    inner = copy_program(pl.FP32, [4])

    @pl.program
    class P:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def copy_twice(x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]):
            z = torch.zeros(4)
            inner(x, z)
            inner(z, y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]):
            self.copy_twice(x, y)

    program = compiled(P, DistributedConfig(device_ids=[0]))
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    inner(x, y)
    y[:] = 0
    program(x, y)
    assert (y == 1).all()


def test_a_copy_that_a_function_forks_is_no_sub_worker():
    program = compiled(Abstract, DistributedConfig(device_ids=[0]))
    notes = empty_shared((2,), np.int64)

    def on_result(args):
        if notes[0] == 0:
            child = os.fork()
            if child:
                notes[0] = child
            return  # both of them
        for _ in range(1000):
            child, status = os.waitpid(int(notes[0]), os.WNOHANG)
            if child:
                assert status == 0
                notes[1] += 1
                return
            time.sleep(0.01)

    y, z = np.ones((2, 3), np.float16), np.ones(4, np.bool_)
    with program.prepare(callbacks={"on_result": on_result}) as worker:
        worker(y, z)
        worker(y, z)
    assert notes[1] == 1


def test_what_is_printed_appears(capfd):
    @pl.program
    class P:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def say(y: pl.Tensor[[4], pl.FP32]):
            print("sum", y.sum().item(), end="")

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, y: pl.Tensor[[4], pl.FP32]):
            self.say(y)

    compiled(P, DistributedConfig(device_ids=[0]))(np.ones(4, np.float32))
    assert capfd.readouterr().out == "sum 4.0"


# ---- failures ----


def test_an_exception_fails_the_call(transport):
    program = compiled(Steps)
    x, out = np.ones((2, N), np.float32), np.full((2, N), 9, np.float32)
    with program.prepare() as worker:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="sub_worker: ValueError: negative data") as caught:
                worker(-x, out)
            text = str(caught.value)
            assert isinstance(caught.value, pypto.DeviceError)
            assert "scale failed on SubWorker 0" in text
            assert 'raise ValueError("negative data")' in text and "in scale" in text
            assert __file__ in text.split("\n")[0]
            assert (out == 9).all()  # what depends on it has not run
            out[:] = 9
        worker(x, out)
        assert (out == 12).all()
    with pytest.raises(RuntimeError, match="sub_worker: ValueError: negative data"):
        program(-x, out)
    program(x, out)
    assert (out == 12).all()


def failing(body):
    text = textwrap.dedent(
        """
        @pl.program
        class P:
            @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
            def fail(y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
                {body}

            @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
            def host(self, y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
                self.fail(y)
        """
    )
    return compiled(pl.parse(text.format(body=body)), DistributedConfig(device_ids=[0]))


@pytest.mark.parametrize(
    "body, words",
    [
        ("import sys; sys.exit(3)", "sub_worker: SystemExit: 3"),
        ("raise KeyboardInterrupt", "sub_worker: KeyboardInterrupt: "),
        ("assert False, 'two\\nlines'", "sub_worker: AssertionError: two\nlines"),
        ("f = lambda n: f(n + 1); f(0)", "sub_worker: RecursionError: maximum recursion"),
        ("raise ValueError('x\\0y\\udc80')", "sub_worker: ValueError: x\\0y\\udc80"),
        ("raise ValueError('%d' * 5000)", "sub_worker: ValueError: %d%d%d"),
        ("y.no_such_member", "sub_worker: AttributeError: "),
        ("y[:] = nothing", "sub_worker: NameError: name 'nothing' is not defined"),
    ],
)
def test_exceptions_in_words(body, words):
    program = failing(body)
    with program.prepare() as worker:
        pid = worker._native.sub_pids
        with pytest.raises(RuntimeError) as caught:
            worker(np.zeros(4, np.float32))
        assert words in str(caught.value)
        assert "Traceback (most recent call last)" in str(caught.value)
        assert worker._native.sub_pids == pid  # it lives


# ---- callbacks ----


@pl.program
class Abstract:
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def on_result(y: pl.InOut[pl.Tensor[[2, 3], pl.FP16]], n: pl.Scalar[pl.INT32], z: pl.Tensor[[4], pl.BOOL]):
        """What to do is said later."""
        ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def nothing(y: pl.InOut[pl.Tensor[[2, 3], pl.FP16]]):
        pass

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def ellipsis_among_others(y: pl.InOut[pl.Tensor[[2, 3], pl.FP16]]):
        y[...] = y
        ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, y: pl.InOut[pl.Tensor[[2, 3], pl.FP16]], z: pl.Tensor[[4], pl.BOOL]):
        self.on_result(y, -5, z)
        self.nothing(y)


def test_functions_without_a_body():
    requires = {name: Abstract.get_function(name).requires_runtime_binding for name in Abstract.functions}
    assert requires == {"on_result": True, "nothing": False, "ellipsis_among_others": False, "host": False}
    program = compiled(Abstract, DistributedConfig(device_ids=[0]))
    y, z = np.ones((2, 3), np.float16), np.ones(4, np.bool_)
    for call in (lambda: program(y, z), program.prepare, lambda: program.prepare(callbacks={"nothing": print})):
        with pytest.raises(ValueError, match="'on_result'.*runtime-bound callbacks"):
            call()
    assert (y == 1).all()


def test_what_a_callback_gets():
    program = compiled(Abstract, DistributedConfig(device_ids=[0]))
    notes = empty_shared((8,), np.int64)

    def on_result(args):
        first, second = args
        assert (len(args), args.tensor_count(), args.scalar_count(), args.scalar(0)) == (2, 2, 1, -5)
        assert (first.shapes, first.strides, first.dtype) == ((2, 3), (3, 1), 1)
        assert str(first.dtype) == "DataType.FLOAT16" and second.dtype == sub_workers.DataType.BOOL
        assert len(first.buffer) == 12 and not first.buffer.readonly and args[-1] is second
        y = _tensor_from_continuous(first)
        assert isinstance(y, torch.Tensor) and y.dtype == torch.float16
        y *= 4
        notes[0] += int(_tensor_from_continuous(second).sum())
        notes[1] = os.getpid()

    y, z = np.ones((2, 3), np.float16), np.ones(4, np.bool_)
    with program.prepare(callbacks={"on_result": on_result}) as worker:
        worker(y, z)
        worker(y, z)
        assert notes[1] in worker._native.sub_pids
    assert (y == 16).all() and notes[0] == 8


def test_conversion_of_mapped_arguments():
    class Arg:
        pass

    data = np.arange(6, dtype=np.int16)
    for dtype in (3, "DataType.INT16", sub_workers.DataType.INT16, "int16", np.int16, torch.int16, pl.INT16):
        arg = Arg()
        arg.buffer, arg.shapes, arg.strides, arg.dtype = memoryview(data).cast("B"), (3, 2), (1, 3), dtype
        tensor = _tensor_from_continuous(arg)
        assert tensor.tolist() == [[0, 3], [1, 4], [2, 5]]
    tensor[0, 0] = 9
    assert data[0] == 9
    arg = Arg()
    arg.data, arg.shapes, arg.dtype = data.ctypes.data, (2, 3), 3
    assert _tensor_from_continuous(arg).tolist() == [[9, 1, 2], [3, 4, 5]]
    for arg.dtype in (99, None, "float64"):
        with pytest.raises(TypeError, match="no element type"):
            _tensor_from_continuous(arg)
    with pytest.raises(TypeError, match="MappedArg"):
        _tensor_from_continuous(3)


@pytest.mark.parametrize(
    "callbacks, error, words",
    [
        ({"scale": 3}, TypeError, "must be callable"),
        ({"scale": lambda: None}, TypeError, "single positional"),
        ({"scale": lambda a, b: None}, TypeError, "single positional"),
        ({"scale": lambda *, a: None}, TypeError, "single positional"),
        ({"scal": print}, ValueError, "scal are not sub-workers.*Available sub-workers: scale"),
        ({"host": print, "scale": print}, ValueError, "host are not sub-workers"),
    ],
)
def test_callbacks_that_do_not_fit(callbacks, error, words):
    with pytest.raises(error, match=words):
        compiled(Steps).prepare(callbacks=callbacks)


@pytest.mark.parametrize("operation", ["call", "submit", "close", "reset_persistent_windows"])
def test_a_function_cannot_use_the_worker_that_waits_for_it(operation, monkeypatch):
    """Where it is a thread, and so could: an error, no waiting for ever."""
    monkeypatch.setenv("PYPTO_TRANSPORT", "threads")
    program = compiled(Steps)
    x, out = np.ones((2, N), np.float32), np.zeros((2, N), np.float32)

    def scale(args):
        {
            "call": lambda: worker(x, out),
            "submit": lambda: worker.submit(program, x, out),
            "close": lambda: worker.close(),
            "reset_persistent_windows": lambda: worker.reset_persistent_windows(),
        }[operation]()

    with program.prepare(callbacks={"scale": scale}) as worker:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="called in a SubWorker of <DistributedWorker.*whose call waits for it"):
                worker(x, out)
    with program.prepare(callbacks={"scale": lambda args: program(x, out)}) as worker:
        worker(x, np.zeros_like(out))  # a call with workers of its own
    assert (out == 12).all()


def test_callbacks_replace_functions():
    program = compiled(Steps)
    x, out = np.ones((2, N), np.float32), np.zeros((2, N), np.float32)

    def five(args, more=None):
        _tensor_from_continuous(args[1])[:] = 5

    with pytest.warns(DeprecationWarning, match="sub_worker_overrides is deprecated"):
        worker = program.prepare(sub_worker_overrides={"scale": five})
    with worker:
        worker(x, out)
        assert (out == 10).all()
    with pytest.warns(DeprecationWarning):
        worker = program.prepare(sub_worker_overrides={"scale": print}, callbacks={"scale": five})
    with worker:
        worker(x, out)
        assert (out == 10).all()
    with program.prepare(callbacks={"scale": id}) as worker:  # a builtin
        worker(x, out)


def test_several_programs():
    other = copy_program(pl.FP32, [4])
    steps = ir.compile(Steps, platform="cpu", distributed_config=DistributedConfig(device_ids=[0]))
    notes = empty_shared((1,), np.int64)

    def note(args):
        notes[0] += 1

    again = copy_program(pl.FP32, [5])
    with DistributedWorker([other, again, steps], callbacks={"copy": note}) as worker:
        assert len(worker._native.sub_pids) == 1
        a, b = np.ones(4, np.float32), np.zeros(4, np.float32)
        worker.run(other, a, b)
        worker.run(again, np.ones(5, np.float32), np.zeros(5, np.float32))
        assert notes[0] == 2 and (b == 0).all()


# ---- what is refused ----

REFUSED = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
        pl.store(pl.load(y, [0], [4]), [0], y)  # core

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
        self.k(y)  # chip

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def sub(y: pl.InOut[pl.Tensor[[4], pl.FP32]]):
        ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, y: pl.InOut[pl.Tensor[[4], pl.FP32]], x: pl.Tensor[[4], pl.FP32], z: pl.InOut[pl.Tensor[[5], pl.FP32]]):
        self.chip(y)
        self.sub(y)  # host
"""


@pytest.mark.parametrize(
    "old, new, error, words",
    [
        ("self.k(y)  # chip", "self.k(y)\n        self.sub(y)", ParserError, "SubWorker 'sub' is called from a wrapper"),
        ("pl.store(pl.load(y, [0], [4]), [0], y)  # core", "self.sub(y)", ParserError, "'sub' is called from a kernel"),
        ("self.sub(y)  #", "self.sub(y, device=0)  #", ParserError, "'sub' runs on no device"),
        ("self.sub(y)  #", "self.sub(y, y)  #", ParserError, r"expects 1 argument\(s\), got 2"),
        ("self.sub(y)  #", "self.sub(z)  #", ParserError, "has type"),
        ("self.sub(y)  #", "self.sub(x)  #", ParserError, "'x' is only read"),
        (
            "self.sub(y)  #",
            "b = pld.alloc_window_buffer(16)\n        self.sub(pld.window(b, [4], dtype=pl.FP32))  #",
            ParserError,
            "cannot see the window",
        ),
        ("def sub(y: pl.InOut[pl.Tensor[[4], pl.FP32]])", "def sub(y)", ParserTypeError, "missing type annotation"),
        ("def sub(y: pl.InOut[pl.Tensor[[4], pl.FP32]])", "def sub(y: pl.Tensor)", ParserError, "Incomplete type"),
        (
            "def sub(y: pl.InOut[pl.Tensor[[4], pl.FP32]])",
            "def sub(y: pld.DistributedTensor[[4], pl.FP32])",
            ParserError,
            "does not take windows",
        ),
        ("def sub(y", "def sub(self, y", ParserSyntaxError, "must not declare 'self'"),
    ],
)
def test_programs_that_are_refused(old, new, error, words):
    pl.parse(REFUSED)
    assert old in REFUSED
    with pytest.raises(error, match=words):
        pl.parse(REFUSED.replace(old, new, 1))


def test_names_that_are_taken():
    external = "@pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)\ndef {}(y: pl.InOut[pl.Tensor[[4], pl.FP32]]):\n    pass\n"
    pl.parse(external.format("other") + REFUSED.replace("self.sub(y)", "other(y)"))
    with pytest.raises(ParserSyntaxError, match="'sub' conflicts with program function"):
        pl.parse(external.format("sub") + REFUSED.replace("self.sub(y)", "sub(y)"))
    with pytest.raises(ParserSyntaxError, match="must not declare 'self'"):
        pl.parse(external.format("other").replace("y:", "self, y:"))


def test_rows_on_several_ranks_cannot_be_seen_at_once():
    program = compiled(Steps)
    out = np.zeros((2, N), np.float32)
    whole = ir.compile(
        pl.parse(REFUSED.replace("y: pl.InOut[pl.Tensor[[4], pl.FP32]], x", "y: pl.InOut[pl.Tensor[[2, 4], pl.FP32]], x")
                 .replace("self.chip(y)", "pass").replace("def sub(y: pl.InOut[pl.Tensor[[4]", "def sub(y: pl.InOut[pl.Tensor[[2, 4]")
                 .replace("...", "y += 1")),
        platform="cpu", distributed_config=TWO,
    )
    with DistributedWorker([program, whole]) as worker:
        rows = worker.alloc_stacked_tensor(torch.ones(2, N))
        worker.run(program, rows, out)
        assert (out == 12).all()
        rows = worker.alloc_stacked_tensor(torch.ones(2, 4))
        with pytest.raises(ValueError, match="rows 0 to 1 of 'y' at once"):
            worker.run(whole, rows, np.zeros(4, np.float32), np.zeros(5, np.float32))


def test_extents_known_when_it_runs():
    @pl.program
    class P:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def pair(a: pl.Tensor[[NR], pl.FP32], b: pl.Tensor[[NR], pl.FP32]):
            assert a.shape == b.shape

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, a: pl.Tensor[[pl.dynamic("A")], pl.FP32], b: pl.Tensor[[pl.dynamic("B")], pl.FP32]):
            self.pair(a, b)

    program = compiled(P, DistributedConfig(device_ids=[0]))
    four, five = np.ones(4, np.float32), np.ones(5, np.float32)
    program(four, four)
    with pytest.raises(TypeError, match="dynamic dimension NR of pair is 4 in 'a' and 5 in 'b'"):
        program(four, five)
    program(np.ones(0, np.float32), np.ones(0, np.float32))
