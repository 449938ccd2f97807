"""A compiled program with a host function, and the devices that it runs on."""

from __future__ import annotations

from .. import _core
from .._jit import refuse_residents
from .compiled_program import ParameterInfo as ParameterInfo, Runnable
from .distributed_config import DistributedConfig as DistributedConfig

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from collections.abc import Callable, Iterable, Mapping

    from ..runtime import DistributedWorker, RunConfig


class DistributedCompiledProgram(Runnable):
    """A program that is ready to run: `compiled(*tensors)`. Made by `ir.compile` and
    `JITFunction.compile`."""

    _per_rank = True

    def __init__(
        self,
        native: _core.Program,
        platform: str,
        distributed_config: DistributedConfig,
        *,
        program: Any = None,
        output_dir: Path | None = None,
        source: Any = None,
        baked: dict[int, Any] | None = None,
    ) -> None:
        super().__init__(native, platform, output_dir, source, baked)
        self.program = program
        self._distributed_config = distributed_config

    def __call__(self, *args: Any, config: "RunConfig | None" = None) -> Any:
        """Runs the program on the devices it was compiled with.

        With one argument per parameter (scalars that it was compiled for may be left out) it works
        in place and returns None. Without the `Out` ones it makes them, filled with zeros, and
        returns them: one, or a tuple in declared order. `config` is accepted for its run-time
        fields; its devices and platform are not looked at.
        """
        refuse_residents(self.name, args)
        return self._run(args, config, self._distributed_config.device_ids)

    def prepare(
        self,
        config: "RunConfig | None" = None,
        *,
        extra_compiled: Iterable[DistributedCompiledProgram] = (),
        persistent: bool = False,
        reset_persistent_windows: bool | None = None,
        callbacks: Mapping[str, Callable[..., Any]] | None = None,
        sub_worker_overrides: Mapping[str, Callable[..., Any]] | None = None,
        startup_timeout_s: float | None = None,
        shared_only: bool | None = None,
    ) -> "DistributedWorker":
        """Workers that stay, for this program and `extra_compiled`: see `DistributedWorker`."""
        from ..runtime import DistributedWorker

        return DistributedWorker(
            [self, *extra_compiled],
            config,
            persistent=persistent,
            reset_persistent_windows=reset_persistent_windows,
            callbacks=callbacks,
            sub_worker_overrides=sub_worker_overrides,
            startup_timeout_s=startup_timeout_s,
            shared_only=shared_only,
        )

    def __repr__(self) -> str:
        what = f"{self.name} {self.platform} devices={self._distributed_config.device_ids}"
        return f"<DistributedCompiledProgram {what} {self.output_dir}>"
