"""Runs of programs for one device, and the configuration of runs.

`execute_compiled` is what every such call goes through: it is looked up here when a call is made, so that who replaces
it (a test that only compiles) sees all calls.
"""

from __future__ import annotations

from .run_config import RunConfig as RunConfig

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    import os
    from typing import Any

    from ..ir.compiled_program import Orchestration


def execute_compiled(
    compiled: "Orchestration | str | os.PathLike[str]", args: Any, config: RunConfig | None = None
) -> Any:
    """Runs a program for one device, with its arguments in a sequence, on `config.device_id`; `compiled` may be its
    output directory. Returns what a call does."""
    from ..ir.compiled_program import CompiledProgram, Orchestration

    if isinstance(compiled, Orchestration):
        compiled._run(tuple(args), [0 if config is None else config.device_id], config)
        return None
    if not isinstance(compiled, CompiledProgram):
        compiled = CompiledProgram.from_dir(compiled)
    return compiled(*args, config=config)
