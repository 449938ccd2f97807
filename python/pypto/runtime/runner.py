"""Runs of programs for one device, and the configuration of runs.

`execute_compiled` is what every such call goes through, of a compiled program and of a function: it is looked up here
when a call is made, so that who replaces it (a test that only compiles) sees all calls.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from .run_config import RunConfig as RunConfig, checked_config

__all__ = [
    "RunConfig",
    "RunResult",
    "compile_program",
    "execute_compiled",
    "run",
    "validate_persisted_outputs",
]

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any

    from ..ir import CompiledProgram, DistributedCompiledProgram
    from ..ir.compiled_program import Orchestration


@dataclass
class RunResult:
    """What a test harness notes of one run. `str()` begins with PASS or FAIL.

    passed           whether it went well
    test_name        what was run
    error            why not
    execution_time   seconds
    profile          anything
    """

    passed: bool
    test_name: str | None = None
    error: str | None = None
    execution_time: float | None = None
    profile: Any = None

    def __str__(self) -> str:
        words = ["PASS" if self.passed else "FAIL"]
        if self.test_name:
            words.append(self.test_name)
        if self.execution_time is not None:
            words.append(f"({self.execution_time:.3f} s)")
        return " ".join(words) + (f": {self.error}" if self.error else "")


def compile_program(
    program: Any, work_dir: "str | os.PathLike[str] | None" = None, **options: Any
) -> "CompiledProgram | DistributedCompiledProgram":
    """The same as `ir.compile(program, output_dir=work_dir, **options)`."""
    from ..ir import compile

    return compile(program, work_dir, **options)


def run(
    program: Any, *tensors: Any, config: RunConfig | None = None
) -> "CompiledProgram | DistributedCompiledProgram":
    """Compiles a program in class form, or a function of `@pl.jit`, and runs it in place with these tensors (and numbers), if
    there are any and `config.codegen_only` is false. Returns the compiled program.

    config   a RunConfig; None is RunConfig()

    Raises what the compile and the call raise.
    """
    from .._jit import JITFunction
    from ..ir import compile

    config = checked_config(config) or RunConfig()
    if isinstance(program, JITFunction):
        compiled = program.compile(*tensors, config=config)
    else:
        compiled = compile(
            program,
            config.save_kernels_dir,
            config.strategy,
            config.dump_passes,
            config.backend_type,
            diagnostic_phase=config.diagnostic_phase,
            disabled_diagnostics=config.disabled_diagnostics,
            memory_planner=config.memory_planner,
            profiling=config.compile_profiling,
            platform=config.platform,
            distributed_config=config.distributed_config,
            analyze_auto_scopes_for_deps=config.analyze_auto_scopes_for_deps,
            dump_ptoas_passes=config.dump_ptoas_passes,
        )
    if tensors and not config.codegen_only:
        compiled(*tensors, config=config)
    return compiled


def execute_compiled(
    compiled: "Orchestration | str | os.PathLike[str]", args: Any, config: RunConfig | None = None
) -> Any:
    """Runs a program for one device, with its arguments in a sequence `args`, on `config.device_id`; `compiled` may be its
    output directory. Returns what a call does, and raises what that and `CompiledProgram.from_dir` raise."""
    from .device_tensor import as_tuple
    from ..ir.compiled_program import CompiledProgram, Orchestration

    if isinstance(compiled, Orchestration):
        compiled._run(as_tuple(args, "args", "arguments"), [0 if config is None else config.device_id], config)
        return None
    if not isinstance(compiled, CompiledProgram):
        compiled = CompiledProgram.from_dir(compiled)
    return compiled(*as_tuple(args, "args", "arguments"), config=config)


def validate_persisted_outputs(
    data_dir: "str | os.PathLike[str]", outputs: "Mapping[str, Any]", *, rtol: float = 1e-5, atol: float = 1e-5
) -> None:
    """Compares outputs, {name: tensor}, with those that are expected, `out/<name>.pt` of data_dir (`golden_writer`). A difference up to
    atol + rtol * |expected| is none, NaN equals NaN.

    Raises AssertionError with the first element that "does not match golden", FileNotFoundError for a file that is not there."""
    from ..errors import FileNotFoundError as PyptoFileNotFoundError
    from ..ir.validation import difference
    from .golden_writer import _load, _OUTPUTS, _path

    for name, actual in outputs.items():
        path = _path(data_dir, _OUTPUTS, name)
        if not path.is_file():
            raise PyptoFileNotFoundError(f"there is no {path}, with what is expected of {name}")
        found = difference(actual, _load(data_dir, _OUTPUTS, name), rtol, atol)
        if found:
            raise AssertionError(f"output {name!r} does not match golden {path}: {found}")


# Names that test harnesses import.
_SWIMLANE_FULL_LEVEL = 4
_SWIMLANE_MAX_LEVEL = 4
_SWIMLANE_CLI_HELP = "what a swimlane records: 0 nothing, 1 tasks, ... 4 all"


@dataclass(frozen=True)
class _DfxOpts:
    """What of a run is recorded: the five fields of a RunConfig by themselves."""

    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False

    @classmethod
    def of(cls, config: RunConfig) -> _DfxOpts:
        return cls(**{f.name: getattr(config, f.name) for f in fields(cls)})

    def any(self) -> bool:
        """Whether anything is."""
        return any(getattr(self, f.name) for f in fields(self))


def _execute_on_device(
    work_dir: "str | os.PathLike[str]", args: Any, config: RunConfig | None = None
) -> Any:
    """Runs the program of an output directory, with or without a host function; returns what a call does."""
    from .debug import replay

    return replay(work_dir, *args, config=config)
