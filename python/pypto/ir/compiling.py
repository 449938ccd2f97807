"""`ir.compile`: from a program in class form to something that runs."""

from __future__ import annotations

import shutil

from .. import _core
from .._program import Function, Program
from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError
from .distributed_compiled_program import DistributedCompiledProgram
from .distributed_config import DistributedConfig

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

_PLATFORMS = ("a2a3", "a2a3sim", "a5", "a5sim", "cpu")


def compile(
    program: Program,
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
) -> DistributedCompiledProgram:
    """Compiles a program for the devices of `distributed_config` (None: one device, id 0).

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
    entry = _entry_of(program)
    code = entry._function.__code__
    names = code.co_varnames[1 : code.co_argcount]
    known = program._programs.setdefault(platform, [])
    native = _core.compile(entry, known, names, None, platform)
    return DistributedCompiledProgram(
        native,
        platform,
        distributed_config or DistributedConfig(),
        program=program,
        output_dir=None if output_dir is None else _copy(native, output_dir),
        source=entry,
    )


def _entry_of(program: Program) -> Function:
    entry = program.entry
    if entry is not None:
        return entry
    names = [f.name for f in program.functions.values() if f._plane == 0]
    if len(names) > 1:
        raise PyptoValueError(
            f"program {program.name} has several host functions: {', '.join(names)}; keep one"
        )
    raise PyptoValueError(
        f"program {program.name} has no entry: give one method "
        "level=pl.Level.HOST, role=pl.Role.Orchestrator"
    )


def _copy(native: _core.Program, output_dir: Any) -> Any:
    from pathlib import Path

    target = Path(output_dir)
    target.mkdir(parents=True, exist_ok=True)
    for file in Path(native.output_dir).iterdir():
        if file.is_file():
            shutil.copy(file, target / file.name)
    return target
