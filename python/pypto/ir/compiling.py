"""`ir.compile`: from a program in class form to something that runs; and what it shares with `compile` of a function."""

from __future__ import annotations

from .. import _core, _source
from .._dtypes import DTYPES
from .._jit import _CHIP, _CORE, _HOST, _compiled
from .._program import Function, Program
from ..backend import backend_of, platform_for
from ..errors import (
    CompilerError,
    Error,
    TypeError as PyptoTypeError,
    ValueError as PyptoValueError,
)
from . import artifact
from .artifact import Settings, Sources
from .compiled_program import CompiledProgram, Orchestration
from .distributed_compiled_program import DistributedCompiledProgram
from .distributed_config import DistributedConfig
from .folder import Folder
from .options import (
    DiagnosticPhase,
    MemoryPlanner,
    OptimizationStrategy,
    PassDumpLevel,
    RuntimeKind,
    VerificationLevel,
    checked_threads,
    chosen,
    dump_level,
    flag,
    refuse_under_context,
)
from .runnable import ParameterInfo
from .sidecar import Sidecar

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path
    from typing import Any

    from ..backend import BackendType
    from .options import PassDumpLevel


def compile(
    program: Any,
    output_dir: "str | PathLike[str] | None" = None,
    strategy: OptimizationStrategy | str | None = None,
    dump_passes: bool | PassDumpLevel = True,
    backend_type: BackendType | str | None = None,
    skip_ptoas: bool = False,
    verification_level: VerificationLevel | str | None = None,
    diagnostic_phase: DiagnosticPhase | str | None = None,
    disabled_diagnostics: Any = None,
    memory_planner: MemoryPlanner | str | None = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
    profiling: bool = False,
    platform: str | None = None,
    distributed_config: DistributedConfig | None = None,
    analyze_auto_scopes_for_deps: bool = False,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
    runtime: RuntimeKind | str | None = None,
) -> "CompiledProgram | DistributedCompiledProgram":
    """Compiles a program: with a host function for the devices of `distributed_config` (None: one
    device, id 0), without one for one device, which the call chooses.

    program       what `@pl.program` made; to type checkers it is the class
    output_dir    where to write the program, see docs/artifacts.md; None: a new directory
    backend_type  without a platform: for the simulator of that BackendType
    skip_ptoas    True: write the C text, but do not compile it; the result cannot run
    dump_passes   write the IR behind each pass to passes_dump/: True or CONCISE where it changes, EXPLICIT always
    profiling     True: write how long it took to report/pipeline_profile.json
    platform      "a2a3", "a2a3sim", "a5", "a5sim", or "cpu", which has no scratch limit
    distributed_config   the devices; looked at only if the program has a host function
    runtime       a RuntimeKind, which is recorded

    The others are checked and have no effect: strategy (there is one), verification_level (the IR is always checked), diagnostic_phase, disabled_diagnostics,
    memory_planner (limits always hold), enable_pypto_l0c_double_buffer, analyze_auto_scopes_for_deps (results
    do not depend on it), emit_source_loc (lines always lead to the script), dump_ptoas_passes.

    Raises TypeError and ValueError for options that cannot be, RuntimeError for those that an active
    `PassContext` sets, what is wrong with the program all together as pypto.Error, OSError for an output_dir
    that cannot be written.
    """
    if not isinstance(program, Program):
        hint = "; a function compiles itself: f.compile(...)" if hasattr(program, "compile") else ""
        raise PyptoTypeError(f"ir.compile() takes an ir.Program, not {type(program).__name__}{hint}")
    platform = platform_for(platform, backend_type)
    if output_dir is not None:
        Folder.at(output_dir).close()  # that it cannot be is known before the work
    context = refuse_under_context(
        "compile()",
        verification_level=verification_level,
        diagnostic_phase=diagnostic_phase,
        memory_planner=memory_planner,
        runtime=runtime,
    )
    chosen("strategy", strategy, OptimizationStrategy)
    chosen("verification_level", verification_level, VerificationLevel)
    chosen("diagnostic_phase", diagnostic_phase, DiagnosticPhase)
    chosen("memory_planner", memory_planner, MemoryPlanner)
    dumps = dump_level(dump_passes)
    flag("skip_ptoas", skip_ptoas)
    flag("profiling", profiling)
    flag("analyze_auto_scopes_for_deps", analyze_auto_scopes_for_deps)
    flag("dump_ptoas_passes", dump_ptoas_passes)
    flag("enable_pypto_l0c_double_buffer", enable_pypto_l0c_double_buffer, optional=True)
    flag("emit_source_loc", emit_source_loc, optional=True)
    kind = chosen("runtime", context.runtime if context else runtime, RuntimeKind)
    if distributed_config is not None and not isinstance(distributed_config, DistributedConfig):
        raise PyptoTypeError(
            "distributed_config must be a pypto.ir.DistributedConfig, "
            f"not {type(distributed_config).__name__}"
        )
    entries = entries_of(program)
    distributed = entries[0]._plane == _HOST
    config = (distributed_config or DistributedConfig()) if distributed else None
    threads = config.aicpu_thread_num if config else 0
    checked_threads(threads, platform)
    settings = Settings(kind.value if kind else artifact.DEFAULT_RUNTIME, threads, profiling)
    programs = {}
    failure = None
    for one in entries:
        skips = skip_ptoas or failure is not None
        sources, problem = _sources(program, one, platform, skips, dumps)
        failure = failure or problem
        programs[one.name] = sources, described(sources, one, platform, config)
    where = artifact.write(output_dir, program.name, programs, settings)
    if failure is not None:
        raise failure
    if where is None and skip_ptoas:
        raise PyptoValueError("skip_ptoas=True leaves nothing but files; pass output_dir=")
    return assembled(programs, where, settings, program)


def described(
    sources: Sources,
    source: Any,
    platform: str,
    config: DistributedConfig | None,
    bound: tuple[Any, ...] | None = None,
) -> Sidecar:
    """How a program is called; `bound` are the arguments that it was compiled for."""
    from ..runtime._numbers import plain_number

    by_text = {str(dtype): dtype for dtype in DTYPES.values()}
    entry = sources.entry
    params = [
        ParameterInfo(p["name"], p["direction"], p["shape"], by_text[p["dtype"]])
        for p in entry["params"]
    ]
    returned = len(entry["results"]) or int(_source.returns_value(source))
    numbers = {i: plain_number(value) for i, value in enumerate(bound or ())}
    baked = {i: number for i, number in numbers.items() if number is not None}
    return Sidecar(params, returned, platform, backend_of(platform), config, baked)


def assembled(
    programs: dict[str, tuple[Sources, Sidecar]],
    where: Path | None,
    settings: Settings,
    program: Any,
) -> CompiledProgram | DistributedCompiledProgram:
    """What the caller of a compile gets. `where` is None when the cache alone has the program."""
    made: dict[str, Orchestration] = {}
    for name, (sources, sidecar) in programs.items():
        if sidecar.distributed_config is not None:
            return DistributedCompiledProgram(
                name, sources.native, sidecar, where, settings, program
            )
        folder = where
        if where is not None and len(programs) > 1:
            folder = where / artifact.part_folder(name)
        made[name] = Orchestration(name, sources.native, sidecar, folder, settings)
    return CompiledProgram(made, program, where or next(iter(made.values())).output_dir)


def in_cache(
    native: _core.Program, source: Any, platform: str, config: DistributedConfig | None
) -> CompiledProgram | DistributedCompiledProgram:
    """The program of a call of a function, which is in the cache alone."""
    from dataclasses import replace

    sources = Sources.of(native)
    kept = None if config is None else replace(config)  # the caller's may change
    sidecar = described(sources, source, platform, kept)
    threads = config.aicpu_thread_num if config is not None else 0
    settings = Settings(artifact.DEFAULT_RUNTIME, threads, False)
    return assembled({source.__name__: (sources, sidecar)}, None, settings, None)


def _sources(
    program: Program, entry: Function, platform: str, skips: bool, dumps: PassDumpLevel
) -> tuple[Sources, BaseException | None]:
    """Compiles one entry. When the C compiler fails, what it was given and the failure."""
    names = parameter_names(entry)
    known = program._programs.setdefault((platform, entry.name), [])
    made: Sources | None = None
    failure: BaseException | None = None
    stages: list[tuple[str, str]] = []
    if not skips:
        try:
            native = _compiled(entry, known, names, None, platform, bool(dumps))
            made, stages = Sources.of(native), native.take_stages()
        except CompilerError as problem:
            failure = problem
    if made is None or dumps and not stages:
        try:
            c, ir, description, stages = _core.lower(entry, names, None, platform, bool(dumps))
        except Error:
            if failure is not None:
                raise failure from None
            raise
        made = made or Sources((c, ir, description), None)
    if dumps:
        made.dump(stages, dumps)
    return made, failure


def parameter_names(entry: Function) -> tuple[str, ...]:
    """The names of its parameters, without self."""
    code = entry._function.__code__
    return code.co_varnames[1 : code.co_argcount]


def entries_of(program: Program) -> list[Function]:
    """Where a program starts: its host function, or each of its orchestrations."""
    return [program.entry] if program.entry is not None else _orchestrations_of(program)


def _orchestrations_of(program: Program) -> list[Function]:
    functions = list(program.functions.values())
    hosts = [f.name for f in functions if f._plane == _HOST]
    if hosts:
        raise PyptoValueError(
            f"program {program.name} has several host functions: {', '.join(hosts)}; keep one"
        )
    found = [f for f in functions if f._plane == _CHIP]
    if not found and len(functions) == 1 and not functions[0]._inlined:
        found = [f for f in functions if f._plane == _CORE]
    if not found:
        raise PyptoValueError(
            f"program {program.name} has no Orchestration function: give one method "
            "type=pl.FunctionType.Orchestration, or level=pl.Level.HOST, "
            "role=pl.Role.Orchestrator"
        )
    return found
