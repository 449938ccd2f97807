"""What drivers and test suites import: each name is there, and those of this file's subject do what they say. (The others have
tests of their own.)"""

import importlib
import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from artifact_programs import N, AddAndSub, Double, Sum
from pypto import ir
from pypto.ir import DiagnosticCheck, DiagnosticCheckSet, PassManager
from pypto.ir.compiled_program import extract_param_infos
from pypto.runtime import RunConfig, ScalarSpec, TensorSpec, debug, runner
from pypto.runtime.device_runner import compile_and_assemble

SURFACE = {
    "pypto": """LogLevel set_log_level get_log_level DataType Error InternalError check internal_check internal_check_span
        log_debug log_info log_warn log_error log_fatal log_event DT_FP32 DT_INT32 DT_BOOL __version__
        language ir runtime backend codegen passes testing compile_profiling""",
    "pypto.backend": "BackendType set_backend_type get_backend_type get_backend_instance reset_for_testing",
    "pypto.ir": """compile CompiledProgram Program Function FunctionType Level Role ParamDirection ArgDirection PassContext
        PassManager PassDumpLevel OptimizationStrategy VerificationLevel DiagnosticPhase DiagnosticCheck DiagnosticCheckSet
        TensorType TileType ScalarType DistributedTensorType DistributedConfig""",
    "pypto.ir.compiled_program": "CompiledProgram ParamInfo extract_param_infos",
    "pypto.ir.distributed_compiled_program": "DistributedConfig DistributedCompiledProgram _DISTRIBUTED_META_FILENAME",
    "pypto.ir.pass_manager": "OptimizationStrategy PassManager",
    "pypto.language.parser": "ParserError ParserSyntaxError UnsupportedFeatureError",
    "pypto.language.parser.diagnostics": """ParserError ParserSyntaxError ParserTypeError UndefinedVariableError
        SSAViolationError UnsupportedFeatureError InvalidOperationError ScopeIsolationError""",
    "pypto.passes": "MemoryPlanner PassContext DiagnosticCheckSet",
    "pypto.pypto_core": "LogLevel DataType _set_thread_log_level _clear_thread_log_level",
    "pypto.pypto_core.passes": "MemoryPlanner",
    "pypto.runtime": """run benchmark compile_program execute_compiled execute_distributed_compiled configure_log log_level
        ensure_pto_isa_root pto_isa_include_dir BenchmarkStats TraceInvocation TraceSpan ChipWorker DeviceTensor
        StackedDeviceTensor DistributedWorker DistributedRunHandle RegistrationHandle RunConfig RunResult ScalarSpec TensorSpec
        Worker shutdown""",
    "pypto.runtime.debug": "replay invalidate_binary_cache rebuild_kernel_cpp_from_pto write_run_script",
    "pypto.runtime.device_runner": "compile_and_assemble",
    "pypto.runtime.distributed_runner": "_tensor_from_continuous execute_distributed DistributedWorker",
    "pypto.runtime.golden_writer": """_data_dir_has_files _extract_compute_golden _materialize_tensors _save_data_files
        generate_golden_source""",
    "pypto.runtime.runner": """RunConfig RunResult execute_compiled compile_program _DfxOpts _execute_on_device
        validate_persisted_outputs _SWIMLANE_CLI_HELP _SWIMLANE_FULL_LEVEL _SWIMLANE_MAX_LEVEL""",
    "pypto.runtime.runtime_base": "Worker",
    "pypto.runtime.tensor_spec": "TensorSpec ScalarSpec",
}
NAMES = [(module, name) for module, names in SURFACE.items() for name in names.split()]


@pytest.mark.parametrize("module, name", NAMES)
def test_each_name_can_be_imported(module, name):
    scope = {}
    exec(f"from {module} import {name}", scope)
    assert scope[name] is getattr(importlib.import_module(module), name)


def test_the_name_of_the_sidecar_is_one():
    from pypto.ir import distributed_compiled_program, sidecar

    assert distributed_compiled_program._DISTRIBUTED_META_FILENAME == sidecar.DISTRIBUTED


def test_what_the_package_lists_is_there():
    for module in SURFACE:
        found = importlib.import_module(module)
        for name in getattr(found, "__all__", ()):
            assert getattr(found, name) is not None
    assert {"check", "passes", "log_info", "LogLevel"} <= set(dir(pypto))


# ---- tensors and scalars that are described ----

ROW = np.arange(N, dtype=np.float32).reshape(1, N)


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, torch.zeros(2, 3)),
        (1.5, torch.full((2, 3), 1.5)),
        (torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3)),
        (np.arange(6).reshape(2, 3), torch.arange(6.0).reshape(2, 3)),
        (torch.ones, torch.ones(2, 3)),
        (lambda: torch.full((2, 3), 4), torch.full((2, 3), 4.0)),
        (lambda shape: np.full(shape, 5), torch.full((2, 3), 5.0)),
        (lambda: 7, torch.full((2, 3), 7.0)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, np.float32, pl.FP32])
def test_tensors_that_are_described(value, expected, dtype):
    made = TensorSpec("x", (2, 3), dtype, init_value=value).create_tensor()
    assert made.dtype is torch.float32 and torch.equal(made, expected) and made is not value


def test_random_tensors_and_other_element_types():
    spec = TensorSpec("x", [4], torch.bfloat16, init_value=torch.randn)
    assert spec.create_tensor().dtype is torch.bfloat16 and spec.shape == [4] and not spec.is_output
    assert TensorSpec("x", [4], pl.BOOL, True).create_tensor().tolist() == [True] * 4
    assert TensorSpec("x", [], np.int64, 3).create_tensor().item() == 3
    held = torch.zeros(4)
    made = TensorSpec("x", [4], pl.FP32, held).create_tensor()
    made[0] = 1
    assert held[0] == 0  # a copy


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (("x y", [1], pl.FP32), ValueError, "name must be that of a parameter"),
        ((3, [1], pl.FP32), ValueError, "name must be that of a parameter"),
        (("x", [-1], pl.FP32), ValueError, "shape of x must be of integers >= 0"),
        (("x", [True], pl.FP32), ValueError, "shape of x must be of integers >= 0"),
        (("x", [1.5], pl.FP32), ValueError, "shape of x must be of integers >= 0"),
        (("x", [1], "float"), TypeError, "dtype of x must be an element type"),
        (("x", [1], torch.complex64), TypeError, "dtype of x must be an element type"),
    ],
)
def test_tensors_that_cannot_be_described(arguments, error, words):
    with pytest.raises(error, match=words):
        TensorSpec(*arguments)


def test_an_initial_value_of_another_shape():
    with pytest.raises(ValueError, match=r"init_value of x has shape \(3,\), not \(2,\)"):
        TensorSpec("x", [2], pl.FP32, torch.zeros(3)).create_tensor()


def test_specs_compare():
    assert TensorSpec("x", (2,), pl.FP32, 1) == TensorSpec("x", [2], torch.float32, 1.0)
    assert TensorSpec("x", (2,), pl.FP32, 1) != TensorSpec("x", [2], pl.FP32, 2)
    assert TensorSpec("x", (2,), pl.FP32) != TensorSpec("x", [2], pl.FP32, is_output=True) != "x"
    assert ScalarSpec("n", 1) == ScalarSpec("n", 1) != ScalarSpec("n", 1, pl.INT32)


@pytest.mark.parametrize("value, dtype", [(3, None), (3, pl.INT32), (-128, pl.INT8), (255, np.uint8), (1.5, pl.FP32), (True, pl.BOOL)])
def test_scalars_that_are_described(value, dtype):
    spec = ScalarSpec("n", value, dtype)
    assert spec.value == value and spec.dtype is dtype and str(value) in repr(spec)


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (("n", "3"), TypeError, "value of n must be a number, not str"),
        (("n", 3, "whole"), TypeError, "dtype of n must be an element type"),
        (("n", 256, pl.UINT8), ValueError, r"value of n must be in 0\.\.255, got 256"),
        (("n", -129, pl.INT8), ValueError, r"value of n must be in -128\.\.127"),
        (("n", 1.5, pl.INT32), ValueError, "value of n must be in"),
        (("n", math.nan, pl.INT32), ValueError, "value of n must be in"),
        (("", 1), ValueError, "name must be"),
    ],
)
def test_scalars_that_cannot_be_described(arguments, error, words):
    with pytest.raises(error, match=words):
        ScalarSpec(*arguments)


# ---- what is expected, on disk ----


def compute(tensors):
    tensors["y"][:] = tensors["x"] * tensors["n"]


def test_a_script_of_expected_results(tmp_path):
    from pypto.runtime import golden_writer

    specs = [
        TensorSpec("x", [1, 3], torch.float32, torch.tensor([[1.0, math.inf, math.nan]])),
        ScalarSpec("n", 2),
        TensorSpec("y", [1, 3], torch.float32, is_output=True),
    ]
    (tmp_path / "golden.py").write_text(golden_writer.generate_golden_source(specs, compute))
    assert not golden_writer._data_dir_has_files(tmp_path / "data", specs)
    subprocess.run([sys.executable, tmp_path / "golden.py", tmp_path / "data"], check=True, timeout=120)
    assert golden_writer._data_dir_has_files(tmp_path / "data", specs)
    right = torch.tensor([[2.0, math.inf, math.nan]])
    runner.validate_persisted_outputs(tmp_path / "data", {"y": right})
    right[0, 0] = 3
    with pytest.raises(AssertionError, match=r"output 'y' does not match golden .*y\.pt: at \[0, 0\] is 3\.0, expected 2\.0"):
        runner.validate_persisted_outputs(tmp_path / "data", {"y": right})
    runner.validate_persisted_outputs(tmp_path / "data", {"y": right}, atol=1)
    with pytest.raises(FileNotFoundError, match="with what is expected of z"):
        runner.validate_persisted_outputs(tmp_path / "data", {"z": right})


def test_functions_that_compute_what_is_expected():
    from pypto.runtime.golden_writer import _extract_compute_golden as extract

    scope = {}
    exec(extract(compute), scope)
    tensors = {"x": torch.ones(2), "y": torch.zeros(2), "n": 3}
    scope["compute_golden"](tensors)
    assert tensors["y"].tolist() == [3, 3]
    outer = 3

    def inner(tensors):
        tensors["y"][:] = outer

    for wrong, words in ((inner, "needs outer"), (lambda tensors: None, "is not (made by def|known)"), (len, "is not known")):
        with pytest.raises(ValueError, match=words):
            extract(wrong)


# ---- directories ----


def test_a_directory_becomes_a_program(tmp_path):
    ir.compile(Double, tmp_path / "one", platform="cpu")
    program, name, settings = compile_and_assemble(tmp_path / "one", "a5")
    assert (program(ROW) == 2 * ROW).all() and program.platform == "a5"
    assert name == "tensormap_and_ringbuffer" and settings["runtime"] == name
    ir.compile(AddAndSub, tmp_path / "two", platform="cpu")
    program, _, _ = compile_and_assemble(tmp_path / "two/next_levels/orch_add")
    assert (program(ROW, ROW) == 2 * ROW).all()
    ir.compile(Double, tmp_path / "none", platform="cpu", skip_ptoas=True)
    with pytest.raises(FileNotFoundError, match=r"kernel_config\.py.*skip_ptoas=True"):
        compile_and_assemble(tmp_path / "none")


def test_execute_on_device(tmp_path):
    both = np.arange(2 * N, dtype=np.float32).reshape(2, 1, N)
    ir.compile(Sum, tmp_path, platform="cpu", distributed_config=ir.DistributedConfig([0, 1]))
    assert (runner._execute_on_device(tmp_path, [both], RunConfig(platform="cpu")) == both.sum(axis=0)).all()


def test_what_is_recorded():
    assert not runner._DfxOpts.of(RunConfig()).any()
    options = runner._DfxOpts.of(RunConfig(enable_chip_swimlane=True, enable_dep_gen=True))
    assert options.any() and options.enable_chip_swimlane == 4 and options.enable_dep_gen and not options.enable_pmu


def test_there_is_nothing_to_rebuild(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no \.pto files.*program\.c"):
        debug.rebuild_kernel_cpp_from_pto(tmp_path)


def test_headers():
    include = pathlib.Path(pypto.runtime.pto_isa_include_dir())
    assert (include / "pypto/pld.h").is_file() and include.is_absolute()
    assert pypto.runtime.ensure_pto_isa_root() == str(include.parent)


def test_headers_that_are_not_there(tmp_path):
    environment = dict(os.environ, PYPTO_INCLUDE_DIR=str(tmp_path))
    code = "from pypto.runtime import pto_isa_include_dir as f; print(f())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == str(tmp_path)  # what was set is believed, as by the compiler


# ---- checks and messages ----


def test_checks():
    for check in (pypto.check, pypto.internal_check, pypto.internal_check_span):
        check(True, "fine")
    with pytest.raises(ValueError, match="^too long$") as caught:
        pypto.check([], "too long")
    assert isinstance(caught.value, pypto.Error)
    with pytest.raises(pypto.InternalError, match="too long"):
        pypto.internal_check(0, "too long")
    with pytest.raises(pypto.InternalError, match=r"too long \(a\.py:3\)"):
        pypto.internal_check_span(0, "too long", {"file": "a.py", "line": 3})


def test_messages(capsys):
    before = pypto.get_log_level()
    try:
        for level in pypto.LogLevel:
            pypto.set_log_level(level)
            for name in ("debug", "info", "warn", "error", "fatal", "event"):
                getattr(pypto, f"log_{name}")(f"of {name}")
            told = capsys.readouterr().err.splitlines()
            wanted = [other for other in pypto.LogLevel if level <= other < pypto.LogLevel.NONE]
            assert told == [f"[pypto {other.name}] of {other.name.lower()}" for other in wanted]
    finally:
        pypto.set_log_level(before)


# ---- passes and parameters ----


@pytest.mark.parametrize("program", [Double, Sum])
def test_passes_by_themselves(program, tmp_path):
    manager = PassManager.get_strategy(ir.OptimizationStrategy.Default)
    after = manager.run_passes(program, "cpu")
    compiled = ir.compile(program, tmp_path, platform="cpu", dump_passes=ir.PassDumpLevel.EXPLICIT)
    assert str(after) == (compiled.output_dir / "program.ir").read_text()
    assert after.name == program.name and set(program.functions) <= set(after.functions)
    stages = manager.run_each(program, platform="cpu")
    files = sorted((compiled.output_dir / "passes_dump").iterdir())
    assert [f"{i:02}_after_{name}.ir" for i, (name, _) in enumerate(stages)] == [file.name for file in files]
    assert [str(one) for _, one in stages] == [file.read_text() for file in files]


def test_passes_that_cannot_be_run():
    with pytest.raises(ValueError, match="strategy must be OptimizationStrategy.Default"):
        PassManager("Fast")
    with pytest.raises(TypeError, match="takes an ir.Program, not int"):
        PassManager().run_passes(3)
    with pytest.raises(TypeError, match="several orchestrations"):
        PassManager().run_passes(AddAndSub)
    with pytest.raises(ValueError, match="Invalid platform"):
        PassManager().run_passes(Double, "gpu")


def test_parameters_of_programs():
    def rows(infos):
        return [(p.name, p.direction, p.shape, p.dtype) for p in infos]

    expected = [("x", "In", [1, N], pl.FP32), ("y", "Out", [1, N], pl.FP32)]
    assert rows(extract_param_infos(Double)) == rows(extract_param_infos(ir.compile(Double, platform="cpu"))) == expected
    assert rows(extract_param_infos(Sum, "cpu"))[0] == ("x", "In", [2, 1, N], pl.FP32)
    for wrong, words in ((AddAndSub, "several orchestrations"), (3, "or a compiled one, not int")):
        with pytest.raises(TypeError, match=words):
            extract_param_infos(wrong)


def test_types_have_two_names():
    assert (ir.TensorType, ir.TileType, ir.ScalarType) == (pl.Tensor, pl.Tile, pl.Scalar)
    assert ir.DistributedTensorType is pld.DistributedTensor


# ---- checks of the lint ----


def test_sets_of_checks():
    checks = DiagnosticCheckSet(["IdleDevice", "PYPTO-W601"])
    assert checks == {DiagnosticCheck.IdleDevice, DiagnosticCheck.ReusedArrival}
    checks.insert(DiagnosticCheck.ClampedCount)
    assert checks.contains("ClampedCount") and not checks.contains(DiagnosticCheck.SignalLeft) and len(checks) == 3
    checks.remove(DiagnosticCheck.ClampedCount)
    for wrong in ("Nothing", 3):
        with pytest.raises((TypeError, ValueError), match="check must be DiagnosticCheck.ReusedArrival"):
            checks.insert(wrong)


def test_checks_are_those_that_the_library_explains():
    for check in DiagnosticCheck:
        done = subprocess.run([pathlib.Path(sys.executable).parent / "pypto", "explain", check.value], capture_output=True, text=True)
        assert done.returncode == 0 and check.value in done.stdout
