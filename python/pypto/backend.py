"""Platforms, and the hardware that they stand for. Every platform runs on this machine's CPUs; which one it is decides
whose scratch memory limits a program is checked against, and what `platform` says.
"""

from __future__ import annotations

from enum import Enum

from .errors import TypeError as PyptoTypeError, ValueError as PyptoValueError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BackendType",
    "get_backend_instance",
    "get_backend_type",
    "reset_for_testing",
    "set_backend_type",
]

PLATFORMS = ("a2a3", "a2a3sim", "a5", "a5sim", "cpu")


class BackendType(str, Enum):
    """The hardware. Equal to its name as a string, too."""

    Ascend910B = "Ascend910B"
    Ascend950 = "Ascend950"

    __str__ = str.__str__


BACKENDS = tuple(BackendType.__members__)
_chosen = BackendType.Ascend910B


def checked_platform(platform: Any) -> str:
    """The platform, if there is one of that name; else ValueError."""
    if not isinstance(platform, str) or platform not in PLATFORMS:
        raise PyptoValueError(
            f"Invalid platform {platform!r}; it must be one of {', '.join(PLATFORMS)}"
        )
    return str(platform)


def backend_of(platform: str) -> BackendType:
    """What hardware a platform stands for; that of "cpu" is the default."""
    return BackendType.Ascend950 if platform.startswith("a5") else BackendType.Ascend910B


def checked_backend(backend: Any) -> BackendType:
    """A BackendType, or the name of one, as a BackendType."""
    name = getattr(backend, "name", backend)
    if not isinstance(name, str) or name not in BACKENDS:
        raise PyptoValueError(f"backend_type must be one of {', '.join(BACKENDS)}, got {backend!r}")
    return BackendType[name]


def platform_for(platform: Any, backend: Any) -> str:
    """The platform of a compile: the one that is given, else the simulator of the backend, else of the chosen one."""
    given = None if platform is None else checked_platform(platform)
    wanted = _chosen if backend is None else checked_backend(backend)
    if given is not None:
        return given
    return "a5sim" if wanted is BackendType.Ascend950 else "a2a3sim"


def set_backend_type(backend: Any) -> None:
    """What a compile without platform= and backend_type= is for, in this process from now on: the simulator of `backend`, a
    BackendType or the name of one. TypeError or ValueError for anything else."""
    global _chosen
    if not isinstance(backend, (str, BackendType)):
        raise PyptoTypeError(f"set_backend_type() takes a BackendType, not {type(backend).__name__}")
    _chosen = checked_backend(backend)


def get_backend_type() -> BackendType:
    """What `set_backend_type` has set; Ascend910B at first."""
    return _chosen


def get_backend_instance(backend: Any = None) -> BackendType:
    """The backend, which here has no state: its type. None is the one that `set_backend_type` has set."""
    return _chosen if backend is None else checked_backend(backend)


def reset_for_testing() -> None:
    """Makes the choice of `set_backend_type` what it is at the start of the process."""
    set_backend_type(BackendType.Ascend910B)
