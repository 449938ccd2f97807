"""RunConfig: how a program is compiled and run."""

from __future__ import annotations

import functools
import operator
import os
import warnings
from dataclasses import dataclass, fields

from .._keywords import checked
from ..backend import backend_of, checked_platform
from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError
from ..ir.distributed_config import DistributedConfig
from ..ir.options import (
    DiagnosticPhase,
    MemoryPlanner,
    OptimizationStrategy,
    checked_threads,
    chosen,
    dump_level,
    flag,
)
from ._numbers import is_int, is_seconds

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

    from ..backend import BackendType
    from ..ir.options import PassDumpLevel

_LINT = ("off", "warn", "error")
_FULL_SWIMLANE = 4
_FLAGS = (
    "save_kernels",
    "codegen_only",
    "enable_dep_gen",
    "enable_scope_stats",
    "compile_profiling",
    "analyze_auto_scopes_for_deps",
    "dump_ptoas_passes",
)
_ALIAS = "enable_l2_swimlane"


@checked
@dataclass(repr=False, eq=False)  # made by hand below: dataclass would take 0.3 ms for them
class RunConfig:
    """How a program is compiled and run. What has an effect on compiling:

    platform            whose limits are enforced: "a2a3", "a2a3sim", "a5", "a5sim"; "cpu" has
                        none. Every platform runs on this machine's CPUs.
    distributed_config  the devices of a host function; None is one device, id 0
    save_kernels_dir    where `compile` of a function writes its program; None: a new directory
    dump_passes         whether it writes the IR behind each pass
    compile_profiling   whether it writes how long that took
    codegen_only        of `pypto.runtime.run`: compile, but do not run

    And on a call:

    device_id           the device of a program without a host function
    lint                what is done when a call ends well, but its program uses signals in a way that
                        works by luck: "warn" (pypto.LintWarning), "error" (pypto.LintError), "off"
    disabled_diagnostics   which `pypto.ir.DiagnosticCheck`s the lint does not look for: a set or sequence
    enable_chip_swimlane, enable_dump_args, enable_pmu, enable_dep_gen, enable_scope_stats
                        what of it is recorded, in the program's output directory; any of them sets
                        save_kernels

    The others are checked, and have no effect: strategy, backend_type (it follows from platform),
    save_kernels, diagnostic_phase, aicpu_thread_num, ring_task_window,
    ring_heap, ring_dep_pool, analyze_auto_scopes_for_deps, memory_planner, dump_ptoas_passes; and rtol, atol,
    golden_data_dir, which are for test harnesses. Raises ValueError or TypeError for values that no run
    could have. `enable_l2_swimlane` is the former name of enable_chip_swimlane.
    """

    platform: str = "a2a3sim"
    device_id: int = 0
    rtol: float = 1e-5
    atol: float = 1e-5
    strategy: OptimizationStrategy | str | None = OptimizationStrategy.Default
    backend_type: BackendType | None = None  # always follows from platform
    dump_passes: bool | PassDumpLevel = False
    save_kernels: bool = False
    save_kernels_dir: str | os.PathLike[str] | None = None
    codegen_only: bool = False
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    compile_profiling: bool = False
    diagnostic_phase: DiagnosticPhase | str | None = None
    disabled_diagnostics: Any = None
    golden_data_dir: str | os.PathLike[str] | None = None
    aicpu_thread_num: int | None = None
    ring_task_window: int | list[int] | None = None
    ring_heap: int | list[int] | None = None
    ring_dep_pool: int | list[int] | None = None
    distributed_config: DistributedConfig | None = None
    analyze_auto_scopes_for_deps: bool = False
    memory_planner: MemoryPlanner | str | None = None
    dump_ptoas_passes: bool = False
    lint: str = "warn"

    def __post_init__(self) -> None:
        checked_platform(self.platform)
        known = vars(self)  # what is written here has been checked: `checked` is not to do it again
        known["backend_type"] = backend_of(self.platform)
        self._check_options()
        if not is_int(self.device_id) or not 0 <= self.device_id < 2**31:
            raise PyptoValueError(
                f"device_id must be a non-negative integer below 2**31, got {self.device_id!r}"
            )
        known["device_id"] = operator.index(self.device_id)
        if self.distributed_config is not None and not isinstance(
            self.distributed_config, DistributedConfig
        ):
            raise PyptoTypeError(
                "distributed_config must be a pypto.ir.DistributedConfig, "
                f"not {type(self.distributed_config).__name__}"
            )
        if not isinstance(self.lint, str) or self.lint not in _LINT:
            raise PyptoValueError(f"lint must be one of {', '.join(_LINT)}, got {self.lint!r}")
        known["enable_chip_swimlane"] = _swimlane_level(self.enable_chip_swimlane)
        known["enable_dump_args"] = _level("enable_dump_args", self.enable_dump_args, 2)
        known["enable_pmu"] = _level("enable_pmu", self.enable_pmu, 2**31 - 1)
        for name, (rule, good) in _RING_RULES.items():
            known[name] = _checked_ring(name, getattr(self, name), rule, good)
        if self.any_dfx_enabled():
            known["save_kernels"] = True

    def _check_options(self) -> None:
        """The fields that a compile takes."""
        default = OptimizationStrategy.Default
        known = vars(self)
        known["strategy"] = chosen("strategy", self.strategy, OptimizationStrategy, default)
        dump_level(self.dump_passes)
        known["diagnostic_phase"] = chosen("diagnostic_phase", self.diagnostic_phase, DiagnosticPhase)
        known["memory_planner"] = chosen("memory_planner", self.memory_planner, MemoryPlanner)
        for name in _FLAGS:
            known[name] = flag(name, getattr(self, name))
        for name in ("save_kernels_dir", "golden_data_dir"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, (str, os.PathLike)):
                raise PyptoTypeError(f"{name} must be a path, got {value!r}")
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            if not is_seconds(value) or not value >= 0:
                raise PyptoValueError(f"{name} must be a number >= 0, got {value!r}")
        threads = self.aicpu_thread_num
        if threads is not None and (not is_int(threads) or threads < 0 or threads == 1):
            raise PyptoValueError(
                f"aicpu_thread_num must be None, 0 (default) or at least 2, got {threads!r}"
            )
        checked_threads(threads, self.platform)
        distributed = self.distributed_config
        if isinstance(distributed, DistributedConfig):
            checked_threads(distributed.aicpu_thread_num, self.platform)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __repr__(self) -> str:
        """Only what differs from the defaults."""
        told = (
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if f.name != "backend_type" and getattr(self, f.name) != f.default
        )
        return f"RunConfig({', '.join(told)})"

    def any_dfx_enabled(self) -> bool:
        """Whether any of the five diagnostic recordings is asked for."""
        return bool(
            self.enable_chip_swimlane
            or self.enable_dump_args
            or self.enable_pmu
            or self.enable_dep_gen
            or self.enable_scope_stats
        )

    @property
    def enable_l2_swimlane(self) -> int:
        """The former name of enable_chip_swimlane."""
        return self.enable_chip_swimlane

    @enable_l2_swimlane.setter
    def enable_l2_swimlane(self, level: int) -> None:
        _warn_of_alias(4)  # behind `checked`'s assignment
        self.enable_chip_swimlane = _swimlane_level(level)


def checked_config(config: Any) -> RunConfig | None:
    """A configuration that the caller gives; TypeError for what is none."""
    if config is not None and not isinstance(config, RunConfig):
        raise PyptoTypeError(
            f"config must be a pypto.runtime.RunConfig, not {type(config).__name__}"
        )
    return config


def _accept_alias(init: Any) -> Any:
    """The former name is a keyword of the constructor, but no field: replace() and asdict() must
    not see it."""

    @functools.wraps(init)
    def __init__(self: RunConfig, *args: Any, **kwargs: Any) -> None:
        if _ALIAS in kwargs:
            if "enable_chip_swimlane" in kwargs or len(args) > 10:
                raise PyptoValueError(
                    f"{_ALIAS} is the former name: pass only enable_chip_swimlane"
                )
            _warn_of_alias(3)
            kwargs["enable_chip_swimlane"] = kwargs.pop(_ALIAS)
        init(self, *args, **kwargs)

    return __init__


RunConfig.__init__ = _accept_alias(RunConfig.__init__)  # type: ignore[method-assign]


def _warn_of_alias(stacklevel: int) -> None:
    warnings.warn(
        f"{_ALIAS} is deprecated; use enable_chip_swimlane", DeprecationWarning, stacklevel=stacklevel
    )


def _swimlane_level(value: Any) -> int:
    if isinstance(value, bool):
        return _FULL_SWIMLANE if value else 0
    try:
        level = operator.index(value)
    except TypeError:
        raise PyptoTypeError(
            f"enable_chip_swimlane must be an int or a bool, not {type(value).__name__}"
        ) from None
    if not 0 <= level <= _FULL_SWIMLANE:
        raise PyptoValueError(
            f"enable_chip_swimlane must be a collection level in 0..{_FULL_SWIMLANE}, got {level}"
        )
    return level


def _level(name: str, value: Any, most: int) -> int:
    try:
        level = operator.index(value)
    except TypeError:
        raise PyptoTypeError(
            f"{name} must be an int or a bool, not {type(value).__name__}"
        ) from None
    if not 0 <= level <= most:
        raise PyptoValueError(f"{name} must be in 0..{most}, got {level}")
    return level


def _is_power_of_two(value: int, least: int) -> bool:
    return value >= least and value & (value - 1) == 0


# Field -> (what its text says, whether an entry is good).
_RING_RULES: dict[str, tuple[str, Any]] = {
    "ring_task_window": ("be a power of 2 >= 4", lambda n: _is_power_of_two(n, 4)),
    "ring_heap": ("be a power of 2 >= 1024", lambda n: _is_power_of_two(n, 1024)),
    "ring_dep_pool": ("be in [4, INT32_MAX]", lambda n: 4 <= n <= 2**31 - 1),
}


def _checked_ring(name: str, value: Any, rule: str, good: Any) -> int | list[int] | None:
    """One size for all four rings, or a list of four, where 0 keeps the default."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        if len(value) != 4:
            raise PyptoValueError(f"{name} must have exactly 4 entries, got {len(value)}")
        for entry in value:
            if not is_int(entry) or (entry != 0 and not good(entry)):
                raise PyptoValueError(f"{name} entries must {rule} or be 0, got {entry!r}")
        return [operator.index(entry) for entry in value]
    if not is_int(value) or not good(value):
        raise PyptoValueError(f"{name} must {rule}, got {value!r}")
    return operator.index(value)
