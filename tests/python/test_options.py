"""Options of ir.compile, of functions and of calls: each is used, or checked and told when it has no effect."""

import dataclasses
import inspect
import pathlib
import threading
import warnings

import numpy as np
import pytest

import pypto
import pypto.language as pl
from artifact_programs import N, Double, Sum
from programs import config, from_text
from pypto import backend, ir
from pypto.ir import DistributedConfig, PassContext
from pypto.runtime import RunConfig, RunResult, compile_program, run
from test_compile import SCALE, rows

ROW = np.arange(N, dtype=np.float32).reshape(1, N)
BOTH = np.arange(2 * N, dtype=np.float32).reshape(2, 1, N)
TWO = DistributedConfig(device_ids=[0, 1])


def test_parameters_of_compile_in_order():
    assert list(inspect.signature(ir.compile).parameters) == [
        "program", "output_dir", "strategy", "dump_passes", "backend_type", "skip_ptoas",
        "verification_level", "diagnostic_phase", "disabled_diagnostics", "memory_planner",
        "enable_pypto_l0c_double_buffer", "profiling", "platform", "distributed_config",
        "analyze_auto_scopes_for_deps", "emit_source_loc", "dump_ptoas_passes", "runtime",
    ]  # fmt: skip


# What is accepted, beyond the default, and what is refused with which words.
OPTIONS = {
    "strategy": ([ir.OptimizationStrategy.Default, "Default"], ["Fast", 3]),
    "dump_passes": ([True, False, *ir.PassDumpLevel], ["all", 2, None]),
    "backend_type": ([*backend.BackendType, "Ascend950"], ["Ascend42", 3]),
    "skip_ptoas": ([False], ["yes", None, 2]),
    "verification_level": ([*ir.VerificationLevel, "BASIC"], ["MORE", 1]),
    "diagnostic_phase": ([*ir.DiagnosticPhase, "PrePipeline"], ["Later", 1]),
    "memory_planner": ([*ir.MemoryPlanner, "PTOAS"], ["MINE", 1]),
    "enable_pypto_l0c_double_buffer": ([True, False], ["yes"]),
    "profiling": ([False], ["yes", None]),
    "analyze_auto_scopes_for_deps": ([True], ["yes", None]),
    "emit_source_loc": ([True, False], ["yes"]),
    "dump_ptoas_passes": ([True], ["yes", None]),
    "runtime": ([*ir.RuntimeKind, "host_build_graph"], ["mine", 1]),
    "disabled_diagnostics": ([{"anything"}], []),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_compile(name):
    good, bad = OPTIONS[name]
    for value in good:
        compiled = ir.compile(Double, **{name: value})
        assert (compiled(ROW) == 2 * ROW).all(), value
    for value in bad:
        with pytest.raises((TypeError, ValueError), match=f"{name} must be") as caught:
            ir.compile(Double, **{name: value})
        assert isinstance(caught.value, pypto.Error)


def test_the_runtime_is_recorded():
    compiled = ir.compile(Double, runtime=ir.RuntimeKind.HOST_BUILD_GRAPH, platform="cpu")
    assert compiled.runtime_name == "host_build_graph"
    assert ir.CompiledProgram.from_dir(compiled).runtime_name == "host_build_graph"
    assert ir.compile(Double, platform="cpu").runtime_name == "tensormap_and_ringbuffer"


def test_a_platform_wins_over_a_backend():
    assert ir.compile(Double, backend_type="Ascend950").platform == "a5sim"
    compiled = ir.compile(Double, backend_type="Ascend950", platform="a2a3")
    assert (compiled.platform, compiled.backend_type) == ("a2a3", backend.BackendType.Ascend910B)
    try:
        backend.set_backend_type(backend.BackendType.Ascend950)
        assert backend.get_backend_type() is backend.get_backend_instance() is backend.BackendType.Ascend950
        assert ir.compile(Double).platform == "a5sim"
        assert ir.compile(Double, backend_type="Ascend910B").platform == "a2a3sim"
    finally:
        backend.reset_for_testing()
    assert ir.compile(Double).platform == "a2a3sim"
    with pytest.raises(TypeError, match="takes a BackendType, not int"):
        backend.set_backend_type(3)
    with pytest.raises(ValueError, match="backend_type must be one of"):
        backend.get_backend_instance("Ascend42")


@pytest.mark.parametrize("platform, most", [("a2a3", 4), ("a2a3sim", 4), ("a5", 5), ("a5sim", 5)])
def test_scheduler_threads_are_limited(platform, most):
    good, bad = (DistributedConfig([0, 1], aicpu_thread_num=n) for n in (most, most + 1))
    compiled = ir.compile(Sum, platform=platform, distributed_config=good)
    assert compiled.runtime_config["aicpu_thread_num"] == most
    ir.compile(Sum, platform="cpu", distributed_config=bad)
    words = f"aicpu_thread_num must be at most {most} on platform '{platform}', got {most + 1}"
    with pytest.raises(ValueError, match=words):
        ir.compile(Sum, platform=platform, distributed_config=bad)
    for fields in ({"distributed_config": bad}, {"aicpu_thread_num": most + 1}):
        with pytest.raises(ValueError, match=words):
            RunConfig(platform=platform, **fields)


# ---- PassContext ----


@pytest.mark.parametrize(
    "name, value",
    [
        ("verification_level", ir.VerificationLevel.NONE),
        ("diagnostic_phase", ir.DiagnosticPhase.PrePipeline),
        ("memory_planner", ir.MemoryPlanner.PYPTO),
        ("runtime", ir.RuntimeKind.HOST_BUILD_GRAPH),
    ],
)
def test_what_a_context_sets_is_refused(name, value):
    with PassContext():
        words = rf"compile\(\) was given {name} while a PassContext is already active"
        with pytest.raises(RuntimeError, match=words):
            ir.compile(Double, **{name: value})
        ir.compile(Double)
    ir.compile(Double, **{name: value})


def test_the_order_of_checks_of_a_compile(tmp_path):
    """The platform, then the directory, which is made, then what a context sets."""
    given = {"runtime": ir.RuntimeKind.HOST_BUILD_GRAPH}
    with PassContext():
        with pytest.raises(ValueError, match="Invalid platform"):
            ir.compile(Double, output_dir=tmp_path / "first", platform="gpu", **given)
        with pytest.raises(OSError, match="output_dir cannot be used"):
            ir.compile(Double, output_dir="/dev/null/x", **given)
        with pytest.raises(RuntimeError, match="already active"):
            ir.compile(Double, output_dir=tmp_path / "second", **given)
    assert [folder.name for folder in tmp_path.iterdir()] == ["second"]


@pytest.mark.parametrize("name", ["diagnostic_phase", "memory_planner"])
@pytest.mark.parametrize("entry", ["compile", "lower", "__call__"])
def test_what_a_context_sets_is_refused_for_functions(name, entry):
    host = from_text(SCALE)["host"]
    value = {"diagnostic_phase": "PrePipeline", "memory_planner": "PYPTO"}[name]
    settings = RunConfig(platform="cpu", **{name: value})
    call = getattr(host, entry)
    call(rows(1), rows(1), config=settings)
    with PassContext():
        operation = r"lower\(\)" if entry == "lower" else r"compile\(\)"
        with pytest.raises(RuntimeError, match=f"{operation}.*{name}"):
            call(rows(1), rows(1), config=settings)


def test_contexts_nest_and_belong_to_their_thread():
    assert PassContext.current() is None
    with PassContext(runtime="host_build_graph") as outer:
        assert PassContext.current() is outer
        assert ir.compile(Double, platform="cpu").runtime_name == "host_build_graph"
        host = from_text(SCALE)["host"]
        assert host.compile(config=config(1)).runtime_name == "host_build_graph"
        with PassContext() as inner:
            assert PassContext.current() is inner
            assert ir.compile(Double, platform="cpu").runtime_name == "tensormap_and_ringbuffer"
        assert PassContext.current() is outer
        seen = []
        thread = threading.Thread(target=lambda: seen.append(PassContext.current()))
        thread.start()
        thread.join()
        assert seen == [None]
    assert PassContext.current() is None
    assert host.compile(config=config(1)).runtime_name == "tensormap_and_ringbuffer"
    with pytest.raises(ValueError, match="memory_planner must be MemoryPlanner.PYPTO, "):
        PassContext(memory_planner="MINE")


# ---- RunConfig ----

FIELDS = {
    "dump_passes": (ir.PassDumpLevel.EXPLICIT, "all"),
    "save_kernels": (True, "yes"),
    "save_kernels_dir": (pathlib.Path("x"), 3),
    "codegen_only": (True, "yes"),
    "enable_dump_args": (2, 3),
    "enable_pmu": (4, -1),
    "enable_dep_gen": (True, "yes"),
    "enable_scope_stats": (1, "yes"),
    "compile_profiling": (True, "yes"),
    "diagnostic_phase": ("PrePipeline", "Later"),
    "golden_data_dir": ("x", 3),
    "aicpu_thread_num": (4, 1),
    "rtol": (0, -1.0),
    "atol": (1e-3, "small"),
    "analyze_auto_scopes_for_deps": (True, "yes"),
    "memory_planner": ("DSA_RP", "MINE"),
    "dump_ptoas_passes": (True, "yes"),
    "device_id": (3, 1.5),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields(name):
    good, bad = FIELDS[name]
    made = RunConfig(**{name: good})
    assert dataclasses.replace(made, platform="a5").platform == "a5"
    assert dataclasses.asdict(made)[name] == getattr(made, name) != getattr(RunConfig(), name)
    assert name in repr(made)
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        RunConfig(**{name: bad})


@pytest.mark.parametrize(
    "name, value",
    [("num_sub_workers", "0"), ("num_sub_workers", True), ("aicpu_thread_num", 2.0), ("runtime", 3)],
)
def test_types_of_distributed_config(name, value):
    with pytest.raises(TypeError, match=f"{name} must be"):
        DistributedConfig(**{name: value})


# ---- what has no effect says so ----


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"platform": "a5"}, "compiled for platform 'cpu'; the call's 'a5' has no effect"),
        ({"codegen_only": True}, "codegen_only=True has no effect"),
        ({"device_id": 7}, r"runs on devices \[0, 1\]; the call's device_id=7 has no effect"),
        ({"distributed_config": DistributedConfig([0, 2])}, r"call's DistributedConfig.*\[0, 2\].*no effect"),
    ],
)
def test_settings_without_effect_are_told(fields, words):
    compiled = ir.compile(Sum, platform="cpu", distributed_config=TWO)
    settings = RunConfig(**{"platform": "cpu", **fields})
    with pytest.warns(UserWarning, match=words) as told:
        assert (compiled(BOTH, config=settings) == BOTH.sum(axis=0)).all()
    assert told[0].filename == __file__
    with compiled.prepare() as worker, pytest.warns(UserWarning, match=words) as told:
        worker(BOTH, np.zeros_like(BOTH), config=settings)
    assert told[0].filename == __file__


def test_settings_with_effect_are_not():
    compiled = ir.compile(Sum, platform="cpu", distributed_config=TWO)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(BOTH, config=RunConfig(platform="cpu", device_id=1, distributed_config=TWO))
        ir.compile(Double, platform="cpu")(ROW, config=RunConfig(platform="cpu", device_id=9))


def test_codegen_only_of_a_call_of_a_function():
    host = from_text(SCALE)["host"]
    y = np.zeros_like(rows(1))
    with pytest.warns(UserWarning, match=r"host is called.*host\.compile\(\) only compiles") as told:
        host(rows(1), y, config=RunConfig(platform="cpu", codegen_only=True))
    assert told[0].filename == __file__ and (y == 2 * rows(1)).all()


# ---- run() and what goes with it ----


def test_run():
    y = np.zeros_like(ROW)
    assert isinstance(run(Double, ROW, y), ir.CompiledProgram) and (y == 2 * ROW).all()
    y[:] = 0
    compiled = run(Double, ROW, y, config=RunConfig(platform="a5", codegen_only=True))
    assert compiled.platform == "a5" and (y == 0).all()
    assert run(Double).program is Double
    total = np.zeros_like(BOTH)
    compiled = run(Sum, BOTH, total, config=RunConfig(platform="cpu", distributed_config=TWO))
    assert compiled._distributed_config == TWO and (total == BOTH.sum(axis=0)).all()
    z = np.zeros_like(rows(2))
    run(from_text(SCALE)["host"], rows(2), z, config=config(2))
    assert (z == 2 * rows(2)).all()


def test_run_uses_the_fields_of_a_compile(tmp_path):
    settings = RunConfig(platform="cpu", save_kernels_dir=str(tmp_path), compile_profiling=True)
    assert run(Double, config=settings).output_dir == tmp_path
    assert (tmp_path / "report/pipeline_profile.json").exists()


def test_compile_program(tmp_path):
    compiled = compile_program(Double, tmp_path, platform="cpu", skip_ptoas=True)
    assert compiled.output_dir == tmp_path and not (tmp_path / "program.so").exists()


def test_run_result():
    assert str(RunResult(True)) == "PASS"
    assert str(RunResult(True, "add", execution_time=1.5)) == "PASS add (1.500 s)"
    failed = RunResult(False, "add", error="wrong")
    assert str(failed) == "FAIL add: wrong" and (failed.profile, failed.passed) == (None, False)


def test_names_that_drivers_import():
    from pypto.ir.pass_manager import OptimizationStrategy
    from pypto.pypto_core.passes import MemoryPlanner
    from pypto.runtime import runner

    assert OptimizationStrategy is ir.OptimizationStrategy and MemoryPlanner is ir.MemoryPlanner
    assert (runner._SWIMLANE_FULL_LEVEL, runner._SWIMLANE_MAX_LEVEL) == (4, 4)
    assert isinstance(runner._SWIMLANE_CLI_HELP, str)
    assert runner.RunConfig is RunConfig and runner.RunResult is RunResult
