"""Values that no parameter of the host side takes: each is an error of the package that names the parameter, whatever the
value is, and nothing has happened. The table has one row per parameter, with what it does take."""

import ctypes
import mmap

import numpy as np
import pytest
import torch

import pypto
import pypto.language as pl
from pypto import ir
from pypto.ir import CompiledProgram, DistributedCompiledProgram, DistributedConfig, PassContext
from pypto.runtime import (
    ChipWorker,
    DeviceTensor,
    DistributedWorker,
    RunConfig,
    StackedDeviceTensor,
    benchmark,
    configure_log,
    empty_shared,
    execute_compiled,
    execute_distributed_compiled,
    run,
)
from pypto.runtime.debug import replay
from worker_programs import N, compiled, expected, prepared_job, rows, shift

Row = pl.Tensor[[N], pl.FP32]


@pl.program
class Double:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: Row, z: pl.Out[Row]) -> Row:
        return pl.store(pl.mul(pl.load(a, [0], [N]), 2.0), [0], z)

    @pl.function(type=pl.FunctionType.Orchestration)
    def orch(self, a: Row, z: pl.Out[Row]) -> Row:
        return self.kernel(a, z)


class Nothing:
    """An object of the user's that means nothing here."""


VALUES = [
    None, "x", "", b"x", "\0", "\ud800", -1, 0, 1, 2, 2**31, 2**64, -(2**70), 1.5, float("nan"), float("inf"), 1j,
    True, [], [1], (1, 2), [None], ["a"], {}, {"a": 1}, {1}, range(3), Nothing(), Nothing, len, lambda: 0, ...,
    NotImplemented, np.int64(-1), np.float32(1), np.zeros(()), np.zeros(2), torch.tensor(1), torch.zeros(2), pl.FP32, pypto,
]  # fmt: skip


# ---- what a parameter takes ----


def nothing_else(value):
    return False


def none(value):
    return value is None


def flag(value):
    return isinstance(value, bool) or type(value) is int and value in (0, 1)


def flag_or_none(value):
    return value is None or flag(value)


def text(value):
    return isinstance(value, str)


def path_or_none(value):
    return value is None or isinstance(value, str)


def number(value):
    return isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool) and value >= 0


def level(most):
    """Also a tensor of one element is an index in Python."""
    return lambda v: isinstance(v, (int, np.integer)) and 0 <= v <= most or isinstance(v, torch.Tensor) and v.ndim == 0


def integer(least, most):
    return lambda v: isinstance(v, (int, np.integer)) and not isinstance(v, bool) and least <= v <= most


def threads(most):
    return lambda v: v is None or integer(0, most)(v) and v != 1


def ring(least):
    return lambda v: v is None or integer(least, 2**31)(v) or integer(2**64, 2**64)(v)


# ---- configuration ----

RUN_CONFIG = {
    "platform": nothing_else, "device_id": integer(0, 2**31 - 1), "rtol": number, "atol": number, "strategy": none,
    "dump_passes": lambda v: isinstance(v, bool), "save_kernels": flag, "save_kernels_dir": path_or_none,
    "codegen_only": flag, "enable_chip_swimlane": level(4), "enable_dump_args": level(2), "enable_pmu": level(2**31 - 1),
    "enable_dep_gen": flag, "enable_scope_stats": flag, "compile_profiling": flag, "diagnostic_phase": none,
    "golden_data_dir": path_or_none, "aicpu_thread_num": threads(4), "ring_task_window": ring(4),
    "ring_heap": ring(1024), "ring_dep_pool": lambda v: v is None, "distributed_config": none,
    "analyze_auto_scopes_for_deps": flag, "memory_planner": none, "dump_ptoas_passes": flag, "lint": nothing_else,
}  # fmt: skip
counter = lambda v: not isinstance(v, bool) and level(2**64)(v)  # noqa: E731
DISTRIBUTED_CONFIG = {
    "device_ids": lambda v: isinstance(v, (list, tuple, range)) and v in ([1], (1, 2), range(3)),
    "num_sub_workers": counter, "runtime": text,
    "aicpu_thread_num": lambda v: counter(v) and not (isinstance(v, int) and v == 1),
}  # fmt: skip
COMPILE = {
    "strategy": none, "dump_passes": lambda v: isinstance(v, bool), "backend_type": none, "skip_ptoas": flag,
    "verification_level": none, "diagnostic_phase": none, "memory_planner": none, "enable_pypto_l0c_double_buffer": flag_or_none,
    "profiling": flag, "platform": none, "distributed_config": none, "analyze_auto_scopes_for_deps": flag,
    "emit_source_loc": flag_or_none, "dump_ptoas_passes": flag, "runtime": none,
}  # fmt: skip


def compile_double(**options):
    return ir.compile(Double, **{"platform": "cpu"} | options)


ROWS = [
    *((RunConfig, name, takes) for name, takes in RUN_CONFIG.items()),
    *((DistributedConfig, name, takes) for name, takes in DISTRIBUTED_CONFIG.items()),
    *((compile_double, name, takes) for name, takes in COMPILE.items()),
    (PassContext, "instruments", lambda v: hasattr(v, "__iter__") and getattr(v, "shape", 1) != ()),
    (PassContext, "verification_level", none),
    (PassContext, "diagnostic_phase", none),
    (PassContext, "memory_planner", none),
    (PassContext, "runtime", none),
]


def check(call, name, takes, values=VALUES):
    """Each value that is not taken is refused by name; at least some are not."""
    refused = [value for value in values if not takes(value)]
    assert refused
    for value in refused:
        with pytest.raises(pypto.Error) as caught:
            call(**{name: value})
        assert name in str(caught.value), (value, str(caught.value))
        assert isinstance(caught.value, (TypeError, ValueError, IndexError, MemoryError)), value


@pytest.mark.parametrize("call, name, takes", ROWS, ids=lambda v: v if isinstance(v, str) else "")
def test_options(call, name, takes):
    check(call, name, takes)


def test_every_option_has_a_row():
    without = {"backend_type", "disabled_diagnostics"}  # the first always follows from the platform; the second is anything
    assert RunConfig.__dataclass_fields__.keys() - without == RUN_CONFIG.keys()
    assert DistributedConfig.__dataclass_fields__.keys() == DISTRIBUTED_CONFIG.keys()


@pytest.mark.parametrize("cls, rows", [(RunConfig, RUN_CONFIG), (DistributedConfig, DISTRIBUTED_CONFIG)])
def test_fields_that_are_set_later(cls, rows):
    """An assignment is checked as the constructor is; a refused one leaves what was there."""
    made = cls()
    for name, takes in rows.items():
        check(lambda **fields: [setattr(made, *field) for field in fields.items()], name, takes)
    assert made == cls()


def test_what_follows_from_a_field_that_is_set_later():
    made = RunConfig()
    made.platform = "a5"
    assert made.backend_type is pypto.backend.BackendType.Ascend950
    made.aicpu_thread_num = 5
    with pytest.raises(ValueError, match="aicpu_thread_num must be at most 4"):
        made.platform = "a2a3"
    made.enable_chip_swimlane = True
    assert (made.platform, made.enable_chip_swimlane, made.save_kernels) == ("a5", 4, True)
    made.note = "of the user's"
    assert made.note == "of the user's"


def test_bools_of_numpy():
    assert RunConfig(codegen_only=np.bool_(True)).codegen_only is True


NO_PATHS = [value for value in VALUES if not isinstance(value, (str, bytes))]


def test_directories_that_are_no_paths():
    for value in NO_PATHS:
        for call in (
            lambda path: ir.compile(Double, output_dir=0 if path is None else path, platform="cpu"),  # None is a new one
            CompiledProgram.from_dir,
            DistributedCompiledProgram.from_dir,
        ):
            with pytest.raises(TypeError, match="dir must be a path, not") as caught:
                call(value)
            assert isinstance(caught.value, pypto.Error)


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_directories_that_cannot_be(value):
    for call in (
        lambda: ir.compile(Double, output_dir=value, platform="cpu"),
        lambda: shift.compile(config=RunConfig(platform="cpu", save_kernels_dir=value)),
        lambda: CompiledProgram.from_dir(value),
    ):
        with pytest.raises(ValueError, match="dir must be a path, which .* cannot be") as caught:
            call()
        assert isinstance(caught.value, pypto.Error)


@pytest.mark.parametrize("value", ["", "a" * 300, "a/" * 3000, "/dev/null", "/dev/null/x", "/proc/x"])
def test_directories_that_cannot_be_made(value):
    with pytest.raises(OSError, match="output_dir cannot be used") as caught:
        ir.compile(Double, output_dir=value, platform="cpu")
    assert caught.value.filename == value


def test_a_path_of_bytes(tmp_path):
    folder = bytes(tmp_path / "made")
    assert ir.compile(Double, output_dir=folder, platform="cpu").output_dir == tmp_path / "made"
    assert CompiledProgram.from_dir(folder).name == "orch"


# ---- programs and configurations of calls ----


@pytest.fixture(scope="module")
def single():
    return ir.compile(Double, platform="cpu")


@pytest.fixture(scope="module")
def distributed():
    return prepared_job()


@pytest.fixture(scope="module")
def worker(distributed):
    with distributed.prepare() as made:
        yield made


@pytest.fixture(scope="module")
def chip_worker():
    made = ChipWorker(RunConfig(platform="cpu"))
    yield made
    made.close()


def test_what_is_no_program(worker, chip_worker, distributed):
    for value in VALUES:
        for call, words in (
            (ir.compile, "takes an ir.Program"),
            (DistributedWorker, "compiled program"),
            (worker.run, "registered when this worker is created"),
            (worker.submit, "registered when this worker is created"),
            (worker.register, "registered when this worker is created"),
            (chip_worker.run, "ChipWorker runs programs without a host function"),
            (chip_worker.register, "ChipWorker runs programs without a host function"),
        ):
            with pytest.raises(pypto.Error, match=words):
                call(value)
        if isinstance(value, list) and not value:
            continue  # none more
        with pytest.raises(pypto.Error, match="compiled programs with a host function"):
            distributed.prepare(extra_compiled=value)


def test_one_more_program_needs_no_list(distributed):
    other = compiled(shift)
    with distributed.prepare(extra_compiled=other) as worker:
        y = np.zeros((2, N), np.int32)
        worker.run(other, rows(), y)
        np.testing.assert_array_equal(y, expected(rows(), 1))


def test_what_is_no_configuration(worker, chip_worker, single, distributed):
    """Also the class in the place of an object, and an object that looks like one."""
    a, z, x, y = np.ones(N, np.float32), np.zeros(N, np.float32), rows(), np.zeros((2, N), np.int32)

    class Alike:
        platform, distributed_config, lint = "cpu", None, "warn"

    calls = [
        lambda c: shift(x, y, config=c),
        lambda c: shift.compile(config=c),
        lambda c: shift.lower(config=c),
        lambda c: single(a, z, config=c),
        lambda c: distributed(x, y, 1, 0, config=c),
        lambda c: distributed.prepare(c),
        lambda c: worker(x, y, 1, 0, config=c),
        lambda c: worker.run(distributed, x, y, 1, 0, config=c),
        lambda c: worker.submit(distributed, x, y, 1, 0, config=c),
        lambda c: worker.register(distributed)(x, y, 1, 0, config=c),
        lambda c: ChipWorker(c),
        lambda c: run(Double, config=c),
        lambda c: execute_compiled(single, [a, z], c),
        lambda c: replay(single.output_dir, a, z, config=c),
        lambda c: benchmark(single, [a, z], config=c),
        lambda c: chip_worker.run(single, a, z, config=c),
        lambda c: chip_worker.register(single)(a, z, config=c),
    ]
    for value in [*VALUES[1:], RunConfig, Alike(), DistributedConfig()]:
        for call in calls:
            with pytest.raises(TypeError, match="config must be a pypto.runtime.RunConfig, not") as caught:
                call(value)
            assert isinstance(caught.value, pypto.Error)


def test_arguments_that_are_no_sequence(single, distributed):
    y = np.zeros((2, N), np.int32)
    kept = [np.ones(N, np.float32), np.zeros(N, np.float32)]
    for call in (
        lambda args: execute_compiled(single, args),
        lambda args: execute_compiled(single.output_dir, args),
        lambda args: execute_distributed_compiled(compiled(shift).output_dir, args),
        lambda args: benchmark(single, args, rounds=1),
    ):
        check(lambda args: call(args), "args", lambda v: hasattr(v, "__iter__") and not isinstance(v, (str, bytes, dict, set)) and getattr(v, "shape", 1) != ())
    assert execute_compiled(single, kept) is None
    execute_distributed_compiled(compiled(shift).output_dir, (rows(), y))
    np.testing.assert_array_equal(y, expected(rows(), 1))


def test_other_functions(single):
    for value in NO_PATHS:
        with pytest.raises(TypeError, match="dir must be a path, not") as caught:
            replay(value)
        assert isinstance(caught.value, pypto.Error)
    check(lambda platform: benchmark(single, [], platform=platform), "platform", none)
    check(lambda device_id: benchmark(single, [], device_id=device_id), "device_id", lambda v: v is None or integer(0, 2**31 - 1)(v))
    check(lambda persistent: benchmark(single, [], persistent=persistent), "persistent", lambda v: flag(v) and not v)
    check(lambda sync_pypto: configure_log("timing", sync_pypto=sync_pypto), "sync_pypto", flag)
    for value in (None, "x", 1.5, [None], ["a"], {"a": 1}, Nothing(), len, -1, [2, -1], np.zeros(2), 2**64):
        with pytest.raises(pypto.Error, match="shape|no machine has"):
            empty_shared(value)
    for value in ("x", -1, 1.5, Nothing(), torch.tensor(1), "\ud800", {"a": 1}, len):
        with pytest.raises(pypto.Error, match="dtype"):
            empty_shared(2, value)
    for value in VALUES:
        with pytest.raises(KeyError, match="no orchestration .*; available: orch"):
            single[value]


def test_the_order_of_checks(worker, chip_worker, single, distributed):
    """Closed, then the number of arguments, then the configuration."""
    closed = distributed.prepare()
    closed.close()
    ended = ChipWorker(RunConfig(platform="cpu"))
    ended.close()
    for call in (single, distributed, worker, lambda *a, config: chip_worker.run(single, *a, config=config)):
        with pytest.raises(TypeError, match="expects"):
            call(config="no")
    with pytest.raises(RuntimeError, match="called after close"):
        closed(1, config="no")
    with pytest.raises(RuntimeError, match="initialized ChipWorker"):
        ended.run(single, 1, config="no")


def test_a_configuration_by_position(worker, chip_worker, single, distributed):
    """In the place of a tensor, or behind all of them: the hint says how it is passed."""
    a, x, y = np.ones(N, np.float32), rows(), np.zeros((2, N), np.int32)
    handle = worker.register(distributed)
    calls = [
        (shift, (x, y)),
        (shift.compile, (x, y)),
        (shift.lower, (x, y)),
        (single, (a, np.zeros(N, np.float32))),
        (distributed, (x, y, 1, 0)),
        (worker, (x, y, 1, 0)),
        (handle, (x, y, 1, 0)),
        (lambda *args: worker.submit(distributed, *args), (x, y, 1, 0)),
        (lambda *args: chip_worker.run(single, *args), (a, np.zeros(N, np.float32))),
    ]
    for wrong, hint in (
        (RunConfig(platform="cpu"), "pass it by name: config=..."),
        (DistributedConfig([0, 1]), "config=RunConfig(distributed_config=...)"),
    ):
        for call, args in calls:
            with pytest.raises(TypeError, match=f"; argument {len(args) + 1} is a {type(wrong).__name__}") as caught:
                call(*args, wrong)
            assert hint in caught.value.hint and caught.value.code == "PYPTO-H401"
            with pytest.raises(TypeError, match=type(wrong).__name__) as caught:
                call(*args[:-1], wrong)
            assert hint in caught.value.hint


def test_device_ids_that_are_changed_in_place():
    changed = DistributedConfig([0, 1])
    changed.device_ids[1] = "one"
    with pytest.raises(pypto.Error, match="device_ids"):
        shift(rows(), rows(), config=RunConfig(platform="cpu", distributed_config=changed))
    with pytest.raises(TypeError, match="device_ids must be a list of integers"):
        shift.compile(config=RunConfig(platform="cpu", distributed_config=changed))


def test_what_happens_to_a_configuration_later_is_no_matter_to_its_programs():
    given = DistributedConfig([0, 1])
    settings = RunConfig(platform="cpu", distributed_config=given)
    made = [shift.compile(config=settings), DistributedCompiledProgram.from_dir(compiled(shift).output_dir, distributed_config=given)]
    given.device_ids = [0, 1, 2]
    given.device_ids.append(3)
    y = np.zeros((2, N), np.int32)
    for program in made:
        program(rows(), y)
        np.testing.assert_array_equal(y, expected(rows(), 1))
        with program.prepare() as worker:
            assert worker.device_ids == [0, 1]
    with shift.compile(config=settings).prepare() as worker:
        assert worker.device_ids == [0, 1, 2, 3]


def test_samples_that_are_none():
    y = np.zeros((2, N), np.int32)
    for value in (..., NotImplemented, None, "x"):
        with pytest.raises(TypeError, match=r"shift\(\): 'x' must be a tensor, a number or pl\.RUNTIME, not"):
            shift.compile(value, y)


# ---- workers ----

PREPARED = {
    "persistent": flag, "reset_persistent_windows": lambda v: v is None or flag(v) and not v, "shared_only": flag_or_none,
    "startup_timeout_s": lambda v: v is None or number(v) and v > 0 and v != float("inf"),
    "inherited_host_tensors": lambda v: v is None or isinstance(v, (list, str, dict)) and not v,
    "callbacks": lambda v: v in (None, {}) if isinstance(v, (dict, type(None))) else False,
}  # fmt: skip
ON_ONE_DEVICE = {"level": lambda v: type(v) is int and v == 2, "runtime": text, "enable_sdma": flag, "auto_init": flag_or_none}


@pytest.mark.parametrize("name", PREPARED)
def test_prepared_workers(name, distributed):
    check(lambda **given: DistributedWorker(distributed, **given), name, PREPARED[name])


@pytest.mark.parametrize("name", ON_ONE_DEVICE)
def test_chip_workers(name):
    check(lambda **given: ChipWorker(**given), name, ON_ONE_DEVICE[name])


def test_time_limits(worker, distributed):
    y = np.zeros((2, N), np.int32)
    handle = worker.submit(distributed, rows(), y, 1, 0)
    for wait in (handle.result, handle.wait):
        check(wait, "timeout", lambda v: v is None or number(v) and v != float("inf"))
    handle.result()


# ---- memory ----

HOST = np.zeros(64, np.uint8)
MEMORY = {
    "nbytes": lambda v: integer(1, 64)(v) or integer(1, 2**31)(v),
    "worker_id": integer(0, 1),
    "shape": lambda v: integer(1, 2**31)(v) or isinstance(v, (list, tuple)) and v in ([1], (1, 2)),
    "dtype": lambda v: v is pl.FP32,
    "init": none,
}


@pytest.mark.parametrize("kind", ["worker", "chip_worker"])
@pytest.mark.parametrize("name", MEMORY)
def test_memory(kind, name, request):
    made = request.getfixturevalue(kind)
    before = made.committed_device_memory()
    takes = MEMORY[name]
    if name == "nbytes":
        check(made.malloc, name, lambda v: takes(v) or integer(2**64, 2**64)(v))
    elif name == "worker_id":
        takes = takes if kind == "worker" else integer(0, 0)
        check(lambda worker_id: made.malloc(8, worker_id=worker_id), name, takes)
        check(made.committed_device_memory, name, takes)
    else:
        given = {"shape": (4,), "dtype": pl.FP32}
        check(lambda **other: made.alloc_tensor(**given | other), name, lambda v: takes(v) or integer(2**64, 2**64)(v))
    assert made.committed_device_memory() == before


@pytest.mark.parametrize("kind", ["worker", "chip_worker"])
def test_addresses(kind, request):
    made = request.getfixturevalue(kind)
    ptr, rank = made.malloc(64), int(kind == "worker")
    host = HOST.ctypes.data
    check(made.free, "ptr", nothing_else)
    check(lambda **wrong: made.copy_to(**{"dst_dev_ptr": ptr, "src_host_ptr": host, "nbytes": 8} | wrong), "dst_dev_ptr", nothing_else)
    check(lambda **wrong: made.copy_from(**{"dst_host_ptr": host, "src_dev_ptr": ptr, "nbytes": 8} | wrong), "src_dev_ptr", nothing_else)
    for name in ("dst_dev_ptr", "src_dev_ptr"):
        copy = made.copy_to if name[0] == "d" else made.copy_from
        other = "src_host_ptr" if name[0] == "d" else "dst_host_ptr"
        check(lambda nbytes: copy(**{name: ptr, other: host}, nbytes=nbytes), "nbytes", integer(1, 64))
        check(lambda worker_id: copy(**{name: ptr, other: host}, nbytes=8, worker_id=worker_id), "worker_id", integer(0, 0))
        no_address = [v for v in VALUES if not integer(1, 2**31)(v)]
        check(lambda **wrong: copy(**{name: ptr}, nbytes=8, **wrong), other, nothing_else, no_address)
    check(lambda worker_id: made.free(ptr, worker_id=worker_id), "worker_id", integer(0, 0))
    made.free(ptr)


def test_addresses_at_which_there_is_nothing(worker):
    """The process lives on: what it is not to read is asked for, not touched."""
    ptr = worker.malloc(64)
    page = mmap.PAGESIZE
    gap = mmap.mmap(-1, 2 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(gap))
    ctypes.CDLL(None).munmap(ctypes.c_void_p(address + page), ctypes.c_size_t(page))
    for host in (1, 2**31, 2**63, 2**64 - 1, address + page, address + page - 8):
        for copy in (lambda: worker.copy_to(ptr, host, 64), lambda: worker.copy_from(host, ptr, 64)):
            with pytest.raises(ValueError, match="64 bytes at the host address .* are no memory of this process"):
                copy()
    worker.copy_to(ptr, address + page - 64, 64)
    ctypes.CDLL(None).munmap(ctypes.c_void_p(address), ctypes.c_size_t(page))
    worker.free(ptr)


def test_freeing(worker):
    tensor = worker.alloc_tensor((4,), pl.FP32)
    for value in VALUES:
        with pytest.raises(TypeError, match="takes a DeviceTensor"):
            worker.free_tensor(value)
        for operation in (worker.free_stacked_tensor, lambda stacked: worker.copy_stacked_from(stacked, HOST)):
            with pytest.raises(TypeError, match="expects a StackedDeviceTensor"):
                operation(value)
    check(lambda worker_id: worker.free_tensor(tensor, worker_id=worker_id), "worker_id", integer(0, 0))
    worker.free_tensor(tensor)
    for rank in ("x", None, [], 0.0):  # also of one that is gone
        with pytest.raises(TypeError, match="worker_id must be an int"):
            worker.free_tensor(tensor, worker_id=rank)


def test_stacks(worker):
    host = np.zeros((2, 4), np.float32)
    check(lambda **wrong: worker.alloc_stacked_tensor(**{"host": host} | wrong), "worker_ids", none)
    for value in VALUES:
        with pytest.raises(pypto.Error, match="host must be|rank >= 2"):
            worker.alloc_stacked_tensor(value)
    shards = [DeviceTensor(64, (4,), pl.FP32), DeviceTensor(128, (4,), pl.FP32)]
    given = {"shards": shards, "full_shape": (2, 4), "worker_ids": (0, 1)}
    for name, words in (("shards", "shard"), ("full_shape", "shape"), ("worker_ids", "worker_ids")):
        for value in VALUES:
            if name == "worker_ids" and value is VALUES[VALUES.index((1, 2))]:
                continue
            with pytest.raises(pypto.Error, match=words):
                StackedDeviceTensor(**given | {name: value})


@pytest.mark.parametrize("name, takes", [
    ("data_ptr", integer(1, 2**64)),
    ("shape", lambda v: integer(1, 2**64)(v) or isinstance(v, (list, tuple)) and v in ([1], (1, 2))),
    ("dtype", lambda v: v is pl.FP32),
    ("buffer", none),
])  # fmt: skip
def test_device_tensors(name, takes):
    given = {"data_ptr": 64, "shape": (4,), "dtype": pl.FP32}
    check(lambda **wrong: DeviceTensor(**given | wrong), name, takes)
