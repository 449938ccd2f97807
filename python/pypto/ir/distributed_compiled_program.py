"""A compiled program with a host function, and the devices that it runs on."""

from __future__ import annotations

import os
import warnings

from .. import _core, _source
from .._dtypes import DTYPES, DataType
from .._jit import _settings_of, _title
from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError
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


def _zeros_like_these(args: tuple[Any, ...]) -> Any:
    """What makes a zeroed tensor for a parameter: of the library that the arguments are from."""
    import sys

    of_torch = any(type(arg).__module__.partition(".")[0] == "torch" for arg in args)
    torch = sys.modules.get("torch")
    if torch is not None and (of_torch or not args):
        return lambda p: torch.zeros(p.shape, dtype=getattr(torch, _TORCH.get(p.dtype.name, "_")))

    import numpy

    return lambda p: numpy.zeros(p.shape, dtype=_NUMPY.get(p.dtype.name) or str(p.dtype))


_TORCH = {"FP32": "float32", "FP16": "float16", "BF16": "bfloat16", "BOOL": "bool"} | {
    name: name.lower() for name in DTYPES if name.startswith(("INT", "UINT")) and name[-1].isdigit()
}
_NUMPY = {"FP32": "float32", "FP16": "float16", "BOOL": "bool"} | {
    name: name.lower() for name in DTYPES if name.startswith(("INT", "UINT")) and name[-1].isdigit()
}


class DistributedCompiledProgram:
    """A program that is ready to run: `compiled(*tensors)`. Made by `ir.compile` and
    `JITFunction.compile`."""

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
        from pathlib import Path

        self._program = native
        self.program = program
        self._source = source
        self._baked = baked or {}
        self._distributed_config = distributed_config
        self._name: str = native.name
        self.platform = platform
        self.output_dir = output_dir or Path(native.output_dir)
        self.parameters = [
            ParameterInfo(name, direction, shape, DTYPES.get(dtype))
            for name, direction, shape, dtype in native.parameters
        ]

    @property
    def param_names(self) -> list[str]:
        return [parameter.name for parameter in self.parameters]

    @property
    def has_return(self) -> bool:
        """Whether a call in return style gives anything."""
        return self._source is not None and _source.returns_value(self._source)

    @property
    def output_indices(self) -> list[int]:
        """Which parameters a call in return style allocates: the `Out` ones."""
        return [i for i, parameter in enumerate(self.parameters) if parameter.direction == "Out"]

    @property
    def object_path(self) -> Path:
        """The shared object with the native code."""
        return self.output_dir / os.path.basename(self._program.object_path)

    @property
    def stats(self) -> dict[str, Any]:
        """How the program came about: cache hits and nanoseconds of either half."""
        return self._program.stats

    def __call__(self, *args: Any, config: "RunConfig | None" = None) -> Any:
        """Runs the program on the devices it was compiled with.

        With one argument per parameter (scalars that it was compiled for may be left out) it works
        in place and returns None. Without the `Out` ones
        it makes them, filled with zeros, and returns them: one, or a tuple in declared order.
        `config` is accepted for its run-time fields; its devices and platform are not looked at.
        """
        if config is not None and _settings_of(config, self._name)[0] != self.platform:
            warnings.warn(
                f"{self._name} was compiled for platform {self.platform!r}; "
                f"the call's {config.platform!r} has no effect",
                stacklevel=2,
            )
        made: list[Any] = []
        if self._baked and len(args) == len(self.parameters) - len(self._baked):
            args = self._with_baked(args)
        if len(args) != len(self.parameters):
            args, made = self._with_outputs(args)
        self._program.run(args, self._distributed_config.device_ids, _title(self._name))
        if not made:
            return None
        return made[0] if len(made) == 1 else tuple(made)

    def _with_baked(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """With the scalars that the program was compiled for."""
        given = iter(args)
        return tuple(
            self._baked[i] if i in self._baked else next(given) for i in range(len(self.parameters))
        )

    def _with_outputs(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
        """The arguments of a call in return style, completed; and what was made for it."""
        count, outputs = len(self.parameters), self.output_indices
        returns = len(outputs) > 0 and self.has_return
        if not returns or len(args) != count - len(outputs):
            alternative = f" or {count - len(outputs)} (return)" if returns else ""
            raise PyptoTypeError(
                f"{self._name} expects {count} (in-place){alternative} arguments "
                f"({', '.join(self.param_names)}), got {len(args)}"
            )
        make = _zeros_like_these(args)
        given, made = iter(args), []
        whole: list[Any] = []
        for parameter in self.parameters:
            if parameter.direction != "Out":
                whole.append(next(given))
                continue
            if -1 in (parameter.shape or ()):
                raise PyptoValueError(
                    f"{self._name}: the shape {parameter.shape} of '{parameter.name}' contains "
                    "dynamic dimensions, so it cannot be allocated; pass the tensor"
                )
            made.append(make(parameter))
            whole.append(made[-1])
        return tuple(whole), made

    def __fspath__(self) -> str:
        return os.fspath(self.output_dir)

    def __str__(self) -> str:
        return str(self.output_dir)

    def __repr__(self) -> str:
        what = f"{self._name} {self.platform} devices={self._distributed_config.device_ids}"
        return f"<DistributedCompiledProgram {what} {self.output_dir}>"
