"""A compiled program with a host function, and the devices that it runs on."""

from __future__ import annotations

import os
import warnings

from .. import _core
from .._dtypes import DTYPES, DataType
from .._jit import _settings_of, _title
from ..errors import TypeError as PyptoTypeError
from .distributed_config import DistributedConfig

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from ..runtime import RunConfig


class ParameterInfo:
    """One parameter of the host function.

    name        as written
    direction   "In", "Out" or "InOut"
    shape       -1 stands for a dynamic dimension; None for a scalar
    dtype       its element type
    """

    __slots__ = ("name", "direction", "shape", "dtype")

    def __init__(
        self, name: str, direction: str, shape: list[int] | None, dtype: DataType | None
    ) -> None:
        self.name = name
        self.direction = direction
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"<{self.direction} {self.name}: {self.shape} {self.dtype}>"


class DistributedCompiledProgram:
    """A program that is ready to run: `compiled(*tensors)`. Made by `JITFunction.compile`."""

    def __init__(
        self, program: _core.Program, platform: str, distributed_config: DistributedConfig
    ) -> None:
        from pathlib import Path

        self._program = program
        self._distributed_config = distributed_config
        self._name: str = program.name
        self.platform = platform
        self.output_dir = Path(program.output_dir)
        self.parameters = [
            ParameterInfo(name, direction, shape, DTYPES.get(dtype))
            for name, direction, shape, dtype in program.parameters
        ]

    @property
    def param_names(self) -> list[str]:
        return [parameter.name for parameter in self.parameters]

    @property
    def object_path(self) -> Path:
        """The shared object with the native code."""
        return self.output_dir / os.path.basename(self._program.object_path)

    @property
    def stats(self) -> dict[str, Any]:
        """How the program came about: cache hits and nanoseconds of either half."""
        return self._program.stats

    def __call__(self, *args: Any, config: "RunConfig | None" = None) -> None:
        """Runs the program in place, on the devices it was compiled with.

        There is one argument per parameter. `config` is accepted for its run-time fields; its
        devices and platform are not looked at.
        """
        if config is not None and _settings_of(config, self._name)[0] != self.platform:
            warnings.warn(
                f"{self._name} was compiled for platform {self.platform!r}; "
                f"the call's {config.platform!r} has no effect",
                stacklevel=2,
            )
        if len(args) != len(self.parameters):
            raise PyptoTypeError(
                f"{self._name} expects {len(self.parameters)} (in-place) arguments "
                f"({', '.join(self.param_names)}), got {len(args)}"
            )
        self._program.run(args, self._distributed_config.device_ids, _title(self._name))

    def __fspath__(self) -> str:
        return os.fspath(self.output_dir)

    def __str__(self) -> str:
        return str(self.output_dir)

    def __repr__(self) -> str:
        what = f"{self._name} {self.platform} devices={self._distributed_config.device_ids}"
        return f"<DistributedCompiledProgram {what} {self.output_dir}>"
