"""The words of a compile's options, and `PassContext`, which sets some of them for a block of statements.

Most of them tune how the hardware's tool-chain works. Here they are checked, so that a misspelt one is told, and
recorded or without effect; docs/configuration.md says which.
"""

from __future__ import annotations

from contextvars import ContextVar
from enum import Enum, IntEnum

from ..errors import (
    RuntimeError as PyptoRuntimeError,
    TypeError as PyptoTypeError,
    ValueError as PyptoValueError,
)

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class OptimizationStrategy(Enum):
    """How a program is optimised; there is one way."""

    Default = "Default"


class PassDumpLevel(IntEnum):
    """Which stages of a compile `dump_passes` writes: none, those that change the IR, or all. The IR behind all passes is always
    in the output directory."""

    NONE = 0
    CONCISE = 1
    EXPLICIT = 2


class VerificationLevel(Enum):
    """How much the IR is checked between passes. Here it is always checked behind each of them."""

    NONE = "NONE"
    BASIC = "BASIC"
    ROUNDTRIP = "ROUNDTRIP"


class DiagnosticPhase(Enum):
    """When warnings and hints are looked for."""

    NONE = "NONE"
    PrePipeline = "PrePipeline"
    PostPass = "PostPass"
    PostPipeline = "PostPipeline"


class DiagnosticCheck(Enum):
    """What the lint of a call looks for, for `RunConfig.disabled_diagnostics`. The value is the code that
    `pypto explain` knows."""

    ReusedArrival = "PYPTO-W601"
    MixedSignal = "PYPTO-W602"
    OvershotWait = "PYPTO-W603"
    SignalLeft = "PYPTO-W604"
    WrappedSignal = "PYPTO-W605"
    ClampedCount = "PYPTO-W606"
    IdleDevice = "PYPTO-W607"


class DiagnosticCheckSet(set):  # type: ignore[type-arg]
    """A set of `DiagnosticCheck`s, made of checks: members, or their names or codes. Everything that a set of Python does works."""

    def __init__(self, checks: Iterable[Any] = ()) -> None:
        super().__init__(chosen("check", check, DiagnosticCheck) for check in checks)

    def insert(self, check: Any) -> None:
        """Adds a check: a member, or its name or code."""
        self.add(chosen("check", check, DiagnosticCheck))

    def contains(self, check: Any) -> bool:
        """Whether a check is in it: a member, or its name or code."""
        return chosen("check", check, DiagnosticCheck) in self


def bits_of(disabled: Any) -> int:
    """The lint's own of what is disabled, a bit for each; others never come up."""
    given = disabled if isinstance(disabled, (set, frozenset, list, tuple)) else (disabled,)
    known = list(DiagnosticCheck)
    return sum({1 << known.index(check) for check in given if isinstance(check, DiagnosticCheck)})


class MemoryPlanner(Enum):
    """Who places tiles in scratch memory. The limits of the platform hold with each."""

    PYPTO = "PYPTO"
    DSA_RP = "DSA_RP"
    PTOAS = "PTOAS"


class RuntimeKind(Enum):
    """What schedules tasks on the hardware; recorded. The value is the name on disk."""

    TENSORMAP_AND_RINGBUFFER = "tensormap_and_ringbuffer"
    HOST_BUILD_GRAPH = "host_build_graph"


def chosen(name: str, value: Any, words: Any, otherwise: Any = None) -> Any:
    """The member of an enumeration that an option means: itself, its name or its value; None is `otherwise`."""
    if value is None:
        return otherwise
    if isinstance(value, words):
        return value
    for member in words:
        if isinstance(value, str) and value in (member.name, member.value):
            return member
    known = ", ".join(f"{words.__name__}.{member.name}" for member in words)
    kind = PyptoValueError if isinstance(value, (str, Enum)) else PyptoTypeError
    raise kind(f"{name} must be {known}, got {value!r}")


def flag(name: str, value: Any, optional: bool = False) -> Any:
    """True or False, also as 1 or 0; None as well where the option is optional."""
    if isinstance(value, int) and value in (0, 1) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    if optional and value is None:
        return None
    raise PyptoTypeError(f"{name} must be True or False, got {value!r}")


def dump_level(value: Any) -> PassDumpLevel:
    """`dump_passes`: True is CONCISE."""
    if isinstance(value, PassDumpLevel):
        return value
    if isinstance(value, bool):
        return PassDumpLevel.CONCISE if value else PassDumpLevel.NONE
    raise PyptoTypeError(f"dump_passes must be True, False or a PassDumpLevel, got {value!r}")


_active: ContextVar[tuple[PassContext, ...]] = ContextVar("pypto_pass_contexts", default=())


class PassContext:
    """Options of all compiles in a `with` block: `with PassContext(runtime=RuntimeKind.HOST_BUILD_GRAPH): ...`.

    instruments            recorded
    verification_level, diagnostic_phase, disabled_diagnostics, memory_planner, runtime   as for `ir.compile`

    In the block a compile may not be given verification_level, diagnostic_phase, memory_planner or runtime:
    RuntimeError. The innermost block counts.
    """

    SETS = ("verification_level", "diagnostic_phase", "memory_planner", "runtime")

    def __init__(
        self,
        instruments: Iterable[Any] = (),
        verification_level: VerificationLevel | str | None = None,
        diagnostic_phase: DiagnosticPhase | str | None = None,
        disabled_diagnostics: Any = None,
        memory_planner: MemoryPlanner | str | None = None,
        runtime: RuntimeKind | str | None = None,
    ) -> None:
        try:
            self.instruments: list[Any] = list(instruments)
        except TypeError:
            what = type(instruments).__name__
            raise PyptoTypeError(f"instruments must be a list, not {what}") from None
        self.verification_level: VerificationLevel | None = chosen("verification_level", verification_level, VerificationLevel)
        self.diagnostic_phase: DiagnosticPhase | None = chosen("diagnostic_phase", diagnostic_phase, DiagnosticPhase)
        self.disabled_diagnostics: Any = disabled_diagnostics
        self.memory_planner: MemoryPlanner | None = chosen("memory_planner", memory_planner, MemoryPlanner)
        self.runtime: RuntimeKind | None = chosen("runtime", runtime, RuntimeKind)

    @staticmethod
    def current() -> PassContext | None:
        """That of the innermost block that is running, in this thread or task."""
        active = _active.get()
        return active[-1] if active else None

    def __enter__(self) -> PassContext:
        """Compiles of this thread or task follow it, until the end of the block."""
        _active.set((*_active.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        _active.set(_active.get()[:-1])


def refuse_under_context(operation: str, **given: Any) -> PassContext | None:
    """The active context, if an operation has not been given what that sets; else RuntimeError."""
    context = PassContext.current()
    for name, value in given.items():
        if context is not None and value is not None:
            raise PyptoRuntimeError(
                f"{operation} was given {name} while a PassContext is already active; set it there: "
                f"PassContext({name}=...)"
            )
    return context


# Scheduler threads of a device, at most, by platform; "cpu" has no limit.
_MOST_THREADS = {"a2a3": 4, "a2a3sim": 4, "a5": 5, "a5sim": 5}


def checked_threads(count: int | None, platform: str) -> None:
    """aicpu_thread_num against what the platform has."""
    most = _MOST_THREADS.get(platform)
    if count is not None and most is not None and count > most:
        raise PyptoValueError(
            f"aicpu_thread_num must be at most {most} on platform {platform!r}, got {count}"
        )
