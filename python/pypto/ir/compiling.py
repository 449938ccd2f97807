"""`ir.compile`: from a program in class form to something that runs."""

from __future__ import annotations

import shutil
from pathlib import Path

from .. import _core
from .._jit import _CHIP, _CORE, _HOST
from .._program import Function, Program
from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError
from .compiled_program import CompiledProgram, Orchestration
from .distributed_compiled_program import DistributedCompiledProgram
from .distributed_config import DistributedConfig

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

_PLATFORMS = ("a2a3", "a2a3sim", "a5", "a5sim", "cpu")


def compile(
    program: Any,
    output_dir: "str | PathLike[str] | None" = None,
    strategy: Any = None,
    dump_passes: Any = True,
    backend_type: Any = None,
    skip_ptoas: bool = False,
    verification_level: Any = None,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    memory_planner: Any = None,
    enable_pypto_l0c_double_buffer: Any = None,
    profiling: bool = False,
    platform: str | None = None,
    distributed_config: DistributedConfig | None = None,
    analyze_auto_scopes_for_deps: bool = False,
    emit_source_loc: Any = None,
    dump_ptoas_passes: bool = False,
    runtime: Any = None,
) -> "CompiledProgram | DistributedCompiledProgram":
    """Compiles a program: with a host function for the devices of `distributed_config` (None: one
    device, id 0), without one for one device, which the call chooses.

    program      what `@pl.program` made; to type checkers it is the class
    platform     "a2a3", "a2a3sim", "a5", "a5sim", or "cpu", which has no scratch limit
    output_dir   gets copies of the compiled program, its C text and its IR; None leaves them in
                 the cache only

    The other arguments are accepted so that programs which set them run unchanged.
    """
    if not isinstance(program, Program):
        raise PyptoTypeError(f"ir.compile() takes an ir.Program, not {type(program).__name__}")
    if platform is None:
        is_a5 = "950" in str(getattr(backend_type, "name", backend_type) or "")
        platform = "a5sim" if is_a5 else "a2a3sim"
    if platform not in _PLATFORMS:
        raise PyptoValueError(
            f"Invalid platform {platform!r}; it must be one of {', '.join(_PLATFORMS)}"
        )
    if strategy is not None and getattr(strategy, "name", strategy) != "Default":
        raise PyptoValueError(f"strategy must be OptimizationStrategy.Default, not {strategy!r}")
    if distributed_config is not None and not isinstance(distributed_config, DistributedConfig):
        raise PyptoTypeError(
            "distributed_config must be a pypto.ir.DistributedConfig, "
            f"not {type(distributed_config).__name__}"
        )
    entry = program.entry
    if entry is not None and entry._plane == _HOST:
        native = _native(program, entry, platform)
        return DistributedCompiledProgram(
            native,
            platform,
            distributed_config or DistributedConfig(),
            program=program,
            output_dir=None if output_dir is None else _copy(native, Path(output_dir)),
            source=entry,
        )
    return _without_host(program, platform, None if output_dir is None else Path(output_dir))


def _native(program: Program, entry: Function, platform: str) -> _core.Program:
    code = entry._function.__code__
    names = code.co_varnames[1 : code.co_argcount]
    known = program._programs.setdefault((platform, entry.name), [])
    return _core.compile(entry, known, names, None, platform)


def _without_host(program: Program, platform: str, output_dir: Path | None) -> CompiledProgram:
    """One native program per orchestration; that of several stand in folders of their own."""
    made: dict[str, Orchestration] = {}
    entries = _orchestrations_of(program)
    for entry in entries:
        native = _native(program, entry, platform)
        folder = output_dir
        if output_dir is not None:
            folder = _copy(
                native,
                output_dir / "next_levels" / entry.name if len(entries) > 1 else output_dir,
            )
        made[entry.name] = Orchestration(native, platform, folder, entry, None)
    return CompiledProgram(made, program, output_dir or next(iter(made.values())).output_dir)


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


def _copy(native: _core.Program, target: Path) -> Path:
    target.mkdir(parents=True, exist_ok=True)
    for file in Path(native.output_dir).iterdir():
        if file.is_file():
            shutil.copy(file, target / file.name)
    return target
