"""One-shot runs of programs with a host function.

`execute_distributed` is what every such call goes through, of a compiled program and of a function: it is looked up
here when a call is made, so that who replaces it (a test that only compiles) sees all calls.
"""

from __future__ import annotations

from .distributed_worker import (
    DistributedRunHandle as DistributedRunHandle,
    DistributedWorker as DistributedWorker,
)
from .sub_workers import _tensor_from_continuous as _tensor_from_continuous

__all__ = [
    "DistributedRunHandle",
    "DistributedWorker",
    "execute_distributed",
    "execute_distributed_compiled",
]

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    import os
    from typing import Any

    from ..ir import DistributedCompiledProgram, DistributedConfig
    from .run_config import RunConfig


def execute_distributed(
    compiled: "DistributedCompiledProgram", coerced_args: Any, config: "RunConfig | None" = None
) -> None:
    """Runs a compiled program, and returns when every rank is done.

    coerced_args   one per parameter, in a sequence
    config         the RunConfig of the call, or None
    """
    compiled._run(tuple(coerced_args), compiled._devices.device_ids, config)


def execute_distributed_compiled(
    output_dir: "str | os.PathLike[str]",
    args: Any,
    config: "RunConfig | None" = None,
    *,
    platform: str | None = None,
    distributed_config: "DistributedConfig | None" = None,
) -> Any:
    """Runs the program of an output directory: `DistributedCompiledProgram.from_dir`, and a call of it.

    output_dir                     where a compile has written it
    args                           the arguments of the call, in a sequence
    config                         the RunConfig of the call, or None
    platform, distributed_config   win over what the directory says

    Returns what the call does, and raises what that and `from_dir` raise.
    """
    from ..ir import DistributedCompiledProgram
    from .device_tensor import as_tuple

    compiled = DistributedCompiledProgram.from_dir(
        output_dir, platform=platform, distributed_config=distributed_config
    )
    return compiled(*as_tuple(args, "args", "arguments"), config=config)
