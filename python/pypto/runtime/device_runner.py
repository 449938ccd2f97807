"""From the directory of a program for one device to something that can be called, by the name that drivers import it by."""

from __future__ import annotations

__all__ = ["compile_and_assemble"]

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    import os
    from typing import Any

    from ..ir import CompiledProgram


def compile_and_assemble(
    work_dir: "str | os.PathLike[str]", platform: str | None = None
) -> "tuple[CompiledProgram, str, dict[str, Any]]":
    """The program of work_dir, the output directory of a compile, or one of its `next_levels/<name>` where each has a program of its own:
    (program, name of its runtime, its RUNTIME_CONFIG). platform wins over what the directory says. Raises as
    `CompiledProgram.from_dir` does: FileNotFoundError where there is none, or was compiled with skip_ptoas."""
    from ..ir import CompiledProgram
    from ..ir.artifact import ONE_DEVICE, not_runnable
    from pathlib import Path

    path = Path(work_dir).resolve()
    if not (path / ONE_DEVICE).is_file():
        raise not_runnable(path)
    program = CompiledProgram.from_dir(path, platform=platform)
    return program, program.runtime_name, program.runtime_config
