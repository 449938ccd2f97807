"""Compiled programs that run on one device: `CompiledProgram` is what becomes of a program without a host function;
`DistributedCompiledProgram`, of one with it, has a module of its own. What they share is in runnable.py."""

from __future__ import annotations

import os

from .. import _core
from .._jit import active_chip_worker, refuse_residents
from .._pickling import NeverChanged
from ..errors import RuntimeError as PyptoRuntimeError, TypeError as PyptoTypeError
from .runnable import ParameterInfo, ParamInfo, Runnable

__all__ = ["CompiledProgram", "Orchestration", "ParamInfo", "ParameterInfo", "extract_param_infos"]

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from .._program import Program
    from ..runtime import RunConfig


def extract_param_infos(program: Any, platform: str | None = None) -> list[ParameterInfo]:
    """The parameters of the function that program starts with: a compiled one, or an `ir.Program`, which goes through the front end for
    platform. TypeError for anything else, and where several orchestrations would have to be told apart."""
    if isinstance(program, (Runnable, CompiledProgram)):
        return list(program.parameters)
    from .._program import Program
    from ..backend import platform_for
    from .artifact import Sources
    from .compiling import described, entries_of, parameter_names

    if not isinstance(program, Program):
        raise PyptoTypeError(
            f"extract_param_infos() takes an ir.Program or a compiled one, not {type(program).__name__}"
        )
    (entry, *others) = entries_of(program)
    if others:
        raise PyptoTypeError(
            f"program {program.name} has several orchestrations; compile it, and select one"
        )
    target = platform_for(platform, None)
    sources = Sources(_core.lower(entry, parameter_names(entry), None, target)[:3], None)
    return described(sources, entry, target, None).params


_INSTEAD = "pickle its output_dir, and load it there: CompiledProgram.from_dir(output_dir)"


class Orchestration(Runnable):
    """A per-device function that runs on one device, started without a host function:
    `compiled(*tensors)`."""

    _instead = _INSTEAD

    def __call__(self, *args: Any, config: "RunConfig | None" = None) -> Any:
        """Runs it on one device: `config.device_id`, 0 without a config.

        args     one per parameter (scalars that it was compiled for may be left out): it works in place and
                 returns None. Without the `Out` ones it makes them, filled with zeros, and returns them: one, or
                 a tuple in the order of parameters
        config   a RunConfig: its device_id, lint and what it records count

        Raises TypeError for a wrong number of arguments and for what does not fit its parameter, ValueError
        for outputs of dynamic shape that it should make, and DeviceError or what derives from it for a failure while
        running. Any thread may call it.
        """
        from ..runtime import runner

        whole, result = self._completed(args)
        self._check_config(config, stacklevel=3)
        runner.execute_compiled(self, whole, config)
        return result

    def _run(self, args: tuple[Any, ...], device_ids: list[int], config: Any) -> None:
        worker = active_chip_worker(self.platform, device_ids[0])
        if worker is not None:
            worker._run_whole(self, args, config)
            return
        refuse_residents(self.name, args, self._program.check_kinds)
        super()._run(args, device_ids, config)


class CompiledProgram(NeverChanged):
    """A program without a host function, ready to run on one device. Made by `ir.compile`, and by
    `compile` of a `@pl.jit` function.

    With one orchestration it is called: `compiled(*tensors)`. With several, each is called by its
    name: `compiled["name"](*tensors)` or `compiled.name(*tensors)`. Equal to whatever names the same
    output directory. With one, it has all members of `Orchestration`, too.

    program        what it was compiled from; None for a function and after `from_dir`
    output_dir     where it was written to, an absolute path without symbolic links
    platform       what it was compiled for
    backend_type   what hardware that stands for: "Ascend910B" or "Ascend950"
    """

    _instead = _INSTEAD

    def __init__(
        self, orchestrations: dict[str, Orchestration], program: Any, output_dir: Path
    ) -> None:
        self._orchestrations = orchestrations
        self.program: Program | None = program
        self.output_dir: Path = output_dir
        any_of_them = next(iter(orchestrations.values()))
        self.platform: str = any_of_them.platform
        self.backend_type: str = any_of_them.backend_type
        self._reloaded = False

    @classmethod
    def from_dir(
        cls, dir: "str | os.PathLike[str]", *, platform: str | None = None, backend_type: Any = None
    ) -> CompiledProgram:
        """The program in the output directory `dir` of an earlier compile, also of another process or machine.

        Of a program with several orchestrations each has a directory of its own, `next_levels/<name>`. `platform`
        and `backend_type`, if given, win over what the directory says. Its code runs in this process: directory and files
        must belong to you, or to root, and nobody else may have the right to write them.

        Raises FileNotFoundError when it is no such directory; ValueError when a file of it is malformed
        or could be somebody else's.
        """
        from .artifact import reload

        path, sidecar, native, settings = reload(dir, platform, backend_type, None, False)
        only = Orchestration(native.name, native, sidecar, path, settings)
        program = cls({native.name: only}, None, path)
        program._reloaded = True
        return program

    @property
    def orchestration_names(self) -> list[str]:
        """What can be selected, sorted; empty when there is nothing to select."""
        return sorted(self._orchestrations) if len(self._orchestrations) > 1 else []

    def __call__(self, *args: Any, config: "RunConfig | None" = None) -> Any:
        """Runs the only orchestration, with `args` and `config` as `Orchestration.__call__` takes them. TypeError when
        there are several."""
        return self._only("a call")(*args, config=config)

    def _records(self, config: Any) -> Any:
        return self._only("a call")._records(config)

    def _only(self, what: str) -> Orchestration:
        if len(self._orchestrations) > 1:
            raise PyptoTypeError(
                f"Multi-orch program with {', '.join(self.orchestration_names)}: {what} needs one "
                f'of them; select one explicitly: compiled["{self.orchestration_names[0]}"](...)'
            )
        return next(iter(self._orchestrations.values()))

    def __getitem__(self, name: str) -> Orchestration:
        """The orchestration of that name. KeyError when there is none; RuntimeError after `from_dir`, which has one."""
        if self._reloaded:
            raise PyptoRuntimeError(
                f"compiled[{name!r}] needs the live IR of the program, which from_dir does not have; call it: "
                "it has one orchestration"
            )
        try:
            return self._orchestrations[name]
        except (KeyError, TypeError):  # the second for what cannot be a key
            known = ", ".join(sorted(self._orchestrations))
            raise KeyError(f"no orchestration {name!r}; available: {known}") from None

    def __getattr__(self, name: str) -> Any:
        orchestrations = self.__dict__.get("_orchestrations", {})
        if name in orchestrations and len(orchestrations) > 1:
            return orchestrations[name]
        if name in _OF_THE_ONLY:
            return getattr(self._only(f"'{name}'"), name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self.orchestration_names, *_SHOWN])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (str, os.PathLike)):
            return NotImplemented
        return os.path.realpath(other) == str(self.output_dir)

    def __hash__(self) -> int:
        return hash(self.output_dir)

    def __fspath__(self) -> str:
        return os.fspath(self.output_dir)

    def __str__(self) -> str:
        return str(self.output_dir)

    def __repr__(self) -> str:
        names = ", ".join(self._orchestrations)
        return f"<CompiledProgram {names} {self.platform} {self.output_dir}>"


_OF_THE_ONLY = (
    "_get_metadata",
    "build_call_config",  # these three are of another substrate: asking one of several for them
    "build_orch_args",  # says that one has to be selected
    "chip_callable",
    "has_return",
    "load",
    "name",
    "object_path",
    "output_indices",
    "param_names",
    "parameters",
    "runtime_config",
    "runtime_name",
    "stats",
    "validate_ir",
)
_SHOWN = [name for name in _OF_THE_ONLY if hasattr(Orchestration, name) or name in ("name", "parameters")]
