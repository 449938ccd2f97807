"""A compiled program with a host function, and the devices that it runs on."""

from __future__ import annotations

from dataclasses import replace

from .._jit import refuse_residents
from .distributed_config import DistributedConfig as DistributedConfig
from .runnable import ParameterInfo as ParameterInfo, Runnable

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    import os
    from pathlib import Path
    from typing import Any

    from collections.abc import Callable, Iterable, Mapping

    from .. import _core
    from .._program import Program
    from ..runtime import DistributedWorker, RunConfig
    from .artifact import Settings
    from .sidecar import Sidecar


_DISTRIBUTED_META_FILENAME = "distributed_meta.json"  # by the name that suites import; sidecar.DISTRIBUTED


class DistributedCompiledProgram(Runnable):
    """A program with a host function, ready to run: `compiled(*tensors)`. Made by `ir.compile` and
    `JITFunction.compile`. Equal to itself only.

    program   what it was compiled from; None for a function and after `from_dir`
    """

    _instead = "pickle its output_dir, and load it there: DistributedCompiledProgram.from_dir(output_dir)"
    _per_rank = True

    def __init__(
        self,
        name: str,
        native: _core.Program | None,
        sidecar: Sidecar,
        output_dir: Path | None,
        settings: Settings,
        program: Any = None,
    ) -> None:
        super().__init__(name, native, sidecar, output_dir, settings)
        assert sidecar.distributed_config is not None
        self.program: Program | None = program
        # The caller's own, for who looks at it; what happens to that later is no matter to the program.
        self._distributed_config = sidecar.distributed_config
        self._devices = replace(sidecar.distributed_config)
        self._sub_workers_wanted = sidecar.distributed_config.num_sub_workers

    @classmethod
    def from_dir(
        cls,
        dir: "str | os.PathLike[str]",
        *,
        platform: str | None = None,
        backend_type: Any = None,
        distributed_config: DistributedConfig | None = None,
    ) -> DistributedCompiledProgram:
        """The program in the output directory `dir` of an earlier compile, also of another process or machine.

        `platform`, `backend_type` and `distributed_config`, if given, win over what the directory says. Its code runs in this process and its workers:
        directory and files must belong to you, or to root, and nobody else may have the right to write
        them.

        Raises FileNotFoundError when it is no such directory; ValueError when a file of it is malformed
        or could be somebody else's.
        """
        from .artifact import reload

        path, sidecar, native, settings = reload(
            dir, platform, backend_type, distributed_config, True
        )
        return cls(native.name, native, sidecar, path, settings)

    def __call__(self, *args: Any, config: "RunConfig | None" = None) -> Any:
        """Runs the program on the devices it was compiled with, and returns when every rank is done.

        args     one per parameter (scalars that it was compiled for may be left out): it works in place and
                 returns None. Without the `Out` ones it makes them, filled with zeros, and returns them: one, or
                 a tuple in the order of parameters
        config   a RunConfig: its lint and what it records count; platform and devices are those of the compile

        Raises TypeError for a wrong number of arguments and for what does not fit its parameter, ValueError
        for ranks that do not exist and for outputs of dynamic shape that it should make, and DeviceError or what derives
        from it for a failure while running. Any thread may call it.
        """
        from ..runtime import distributed_runner

        refuse_residents(self.name, args)
        whole, result = self._completed(args)
        self._check_config(config, stacklevel=3)
        distributed_runner.execute_distributed(self, whole, config)
        return result

    def _in_vain(self, config: RunConfig) -> str:
        mine, given = self._devices, config.distributed_config
        if given is not None and given != mine:
            return f"{self.name} was compiled with {mine}; the call's {given} has no effect"
        if config.device_id != 0 and config.device_id not in mine.device_ids:
            return (
                f"{self.name} runs on devices {mine.device_ids}; the call's device_id="
                f"{config.device_id} has no effect"
            )
        return ""

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
        """Workers that stay, for this program and `extra_compiled`. The other parameters are those of
        `DistributedWorker`: config, persistent, reset_persistent_windows, callbacks, sub_worker_overrides,
        startup_timeout_s, shared_only."""
        from ..runtime.distributed_worker import DistributedWorker, listed

        return DistributedWorker(
            [self, *listed(extra_compiled)],
            config,
            persistent=persistent,
            reset_persistent_windows=reset_persistent_windows,
            callbacks=callbacks,
            sub_worker_overrides=sub_worker_overrides,
            startup_timeout_s=startup_timeout_s,
            shared_only=shared_only,
        )

    def __repr__(self) -> str:
        what = f"{self.name} {self.platform} devices={self._devices.device_ids}"
        return f"<DistributedCompiledProgram {what} {self.output_dir}>"
