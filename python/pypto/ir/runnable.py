"""What all compiled programs are: a native program with its parameters, and how many arguments a call of it has. Makes the
outputs of calls in return style."""

from __future__ import annotations

import os
import sys

from .. import _core
from .._dtypes import DataType, host_zeros
from .._jit import _lint_of, _settings_of, _title, sub_workers_of
from .._misplaced import refuse_misplaced
from .._pickling import NeverChanged
from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from .artifact import Settings
    from .sidecar import Sidecar


class ParameterInfo:
    """One parameter of the function that a program starts with.

    name        as written
    direction   "In", "Out" or "InOut"
    shape       extents; -1 stands for a dynamic dimension; None for a scalar
    dtype       its element type, such as pl.FP32
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


ParamInfo = ParameterInfo


def zeros_like_these(args: tuple[Any, ...]) -> Any:
    """What makes a zeroed tensor for a parameter: of the library that the arguments are from; where they do not say, of torch if
    the script has it."""
    from ..runtime.host_memory import library_of

    given = {library_of(arg) for arg in args if getattr(arg, "shape", ())}
    library = sys.modules.get("torch")
    if library is None or "torch" not in given and "numpy" in given:
        import numpy

        library = numpy
    return lambda p: host_zeros(library, p.shape, p.dtype)


class Runnable(NeverChanged):
    """One program and how it is called.

    name           of the function that it starts with
    parameters     of that function: ParameterInfo, in order
    output_dir     where the program was written to, an absolute path without symbolic links
    platform       whose limits it was checked against

    Made from
    native         the program; None for one that was compiled with skip_ptoas
    sidecar        how it is called
    output_dir     None: in the cache only
    """

    def __init__(
        self,
        name: str,
        native: _core.Program | None,
        sidecar: Sidecar,
        output_dir: Path | None,
        settings: Settings,
    ) -> None:
        from pathlib import Path

        self._native = native
        self._baked = sidecar.baked
        self._settings = settings
        self._returned = sidecar.num_return_types
        self.name: str = name
        self.platform: str = sidecar.platform
        self._backend = sidecar.backend_type
        if output_dir is None:
            assert native is not None
            output_dir = Path(native.output_dir)
        self.output_dir: Path = output_dir
        self.parameters: list[ParameterInfo] = sidecar.params

    @property
    def _program(self) -> _core.Program:
        """The native program; one that was compiled without cannot run."""
        if self._native is None:
            from .artifact import not_runnable

            raise not_runnable(self.output_dir)
        if not os.path.exists(self._native.object_path) and self._is_written():
            self._native = _core.load(str(self.output_dir))  # the cache was cleared; this is a copy
        return self._native

    def _is_written(self) -> bool:
        """Whether the program is in a directory of its own, beside that in the cache."""
        return (self.output_dir / "program.so").exists()

    def load(self) -> Any:
        """Loads the native code, which a call does by itself. Returns the program.

        Raises FileNotFoundError when it was compiled with skip_ptoas=True.
        """
        self._program.name
        return self

    @property
    def runtime_name(self) -> str:
        """What `ir.compile(runtime=)` said, as on disk: "tensormap_and_ringbuffer" or "host_build_graph". Recorded only."""
        return self._settings.runtime

    @property
    def runtime_config(self) -> dict[str, Any]:
        """RUNTIME_CONFIG of kernel_config.py: `runtime`, and `aicpu_thread_num` if it is not 0."""
        return self._settings.runtime_config

    @property
    def backend_type(self) -> str:
        """What hardware the platform stands for: "Ascend910B" or "Ascend950"."""
        return self._backend

    @property
    def param_names(self) -> list[str]:
        """The names of the parameters, in order."""
        return [parameter.name for parameter in self.parameters]

    @property
    def has_return(self) -> bool:
        """Whether a call in return style gives anything."""
        return self._returned > 0

    @property
    def output_indices(self) -> list[int]:
        """Which parameters a call in return style allocates: the numbers of the `Out` ones, from 0."""
        return [i for i, parameter in enumerate(self.parameters) if parameter.direction == "Out"]

    @property
    def object_path(self) -> Path:
        """The shared object with the native code: `program.so` in the output directory."""
        return self.output_dir / os.path.basename(self._program.object_path)

    @property
    def stats(self) -> dict[str, Any]:
        """How the program came about: whether either half was found in the cache (`front_hit`, `back_hit`), and how
        many nanoseconds it took (`front_ns`, `back_ns`)."""
        return self._program.stats

    def validate_ir(
        self, tensors: Any, expected: Any, *, rtol: float = 5e-2, atol: float = 5e-2
    ) -> None:
        """Runs the program on copies of its arguments, and compares what it writes with what it should.

        tensors    the arguments: in order, or by name; `Out` ones may be left out, and are zeros then
        expected   outputs: all in order, the only one, or some by name
        rtol, atol   a difference up to atol + rtol * |expected| is none; NaN equals NaN

        Raises AssertionError with the stage of the compile, output, index and both values; FileNotFoundError unless the
        program was compiled with dump_passes: the stages before the last one are text, which cannot be run.
        """
        from .validation import validate

        validate(self, tensors, expected, rtol, atol)

    def _get_metadata(self) -> tuple[list[ParameterInfo], list[int], list[ParameterInfo]]:
        """The parameters, which of them are pure outputs, and what a call in return style gives."""
        outputs = self.output_indices
        returned = [self.parameters[i] for i in outputs] if self.has_return else []
        return self.parameters, outputs, returned

    def _check_config(self, config: Any, stacklevel: int) -> None:
        """Refuses what is no configuration, and warns of what it says in vain."""
        if config is None:
            return
        in_vain = ""
        if _settings_of(config, self.name)[0] != self.platform:
            in_vain = (
                f"{self.name} was compiled for platform {self.platform!r}; "
                f"the call's {config.platform!r} has no effect"
            )
        elif config.codegen_only:
            in_vain = f"{self.name} is called, and runs: codegen_only=True has no effect"
        in_vain = in_vain or self._in_vain(config)
        if in_vain:
            import warnings

            warnings.warn(in_vain, stacklevel=stacklevel)

    def _in_vain(self, config: Any) -> str:
        """What else of a call's configuration has no effect; "" as a rule."""
        return ""

    def _in_place(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of a call that works in place: one per parameter, but for baked scalars."""
        if self._baked and len(args) == len(self.parameters) - len(self._baked):
            args = self._with_baked(args)
        if len(args) != len(self.parameters):
            raise self._wrong_count(str(len(self.parameters)), args)
        self._check_baked(args)
        return args

    def _wrong_count(self, expected: str, args: tuple[Any, ...]) -> PyptoTypeError:
        problem = f"{self.name} expects {expected} arguments ({', '.join(self.param_names)}), got {len(args)}"
        refuse_misplaced(problem, args)
        return PyptoTypeError(problem)

    def _check_baked(self, args: tuple[Any, ...]) -> None:
        """A number that the program was compiled for cannot be another one in a call."""
        from ..runtime._numbers import plain_number

        for i, baked in self._baked.items():
            given = plain_number(args[i])
            if given is None:
                continue  # no number: the library says what is wrong
            if given != baked and (given == given or baked == baked):
                name = self.parameters[i].name
                raise PyptoValueError(
                    f"{self.name} was compiled for {name}={baked!r}, and is called with {given!r}; compile "
                    f"it with {name}=pl.RUNTIME to choose in the call"
                )

    def _completed(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """The arguments of a call in either style, one per parameter; and what the call gives."""
        made: list[Any] = []
        if self._baked:
            args = self._with_baked(args)
        if len(args) != len(self.parameters):
            args, made = self._with_outputs(args)
        if self._baked:
            self._check_baked(args)
        if not made:
            return args, None
        return args, made[0] if len(made) == 1 else tuple(made)

    def _run(self, args: tuple[Any, ...], device_ids: list[int], config: Any) -> None:
        """Runs the program with one argument per parameter."""
        records = self._records(config)
        subs = sub_workers_of(self._program, self._sub_workers_wanted)
        self._program.run(args, device_ids, _title(self.name), _lint_of(config), records, subs)

    _sub_workers_wanted = 0

    _per_rank = False  # whether records of a call have a folder for each dispatch

    def _records(self, config: Any) -> Any:
        """What the call is to record; None as a rule."""
        if config is None or not config.any_dfx_enabled():
            return None
        from ..runtime._records import wanted_of

        return wanted_of(config, self.output_dir, self._per_rank)

    def _with_baked(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """With the scalars that the program was compiled for, if the call leaves them out."""
        count, outputs = len(self.parameters) - len(self._baked), self.output_indices
        if len(args) == count:
            places = list(range(len(self.parameters)))
        elif len(args) == count - len(outputs):
            places = [i for i in range(len(self.parameters)) if i not in outputs]
        else:
            return args
        given = iter(args)
        return tuple(self._baked[i] if i in self._baked else next(given) for i in places)

    def _with_outputs(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
        """The arguments of a call in return style, completed; and what was made for it."""
        count, outputs = len(self.parameters), self.output_indices
        returns = len(outputs) > 0 and self.has_return
        if not returns or len(args) != count - len(outputs):
            alternative = f" or {count - len(outputs)} (return)" if returns else ""
            raise self._wrong_count(f"{count} (in-place){alternative}", args)
        make = zeros_like_these(args)
        given, made = iter(args), []
        whole: list[Any] = []
        for parameter in self.parameters:
            if parameter.direction != "Out":
                whole.append(next(given))
                continue
            if -1 in (parameter.shape or ()):
                raise PyptoValueError(
                    f"{self.name}: the shape {parameter.shape} of '{parameter.name}' contains "
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
        return f"<{type(self).__name__} {self.name} {self.platform} {self.output_dir}>"
