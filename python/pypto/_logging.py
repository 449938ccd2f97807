"""What the compiler says of its work on standard error: how much of it, and the messages.

The runtime has a log of its own, `pypto.runtime.log_config`. This module is imported with the package, and imports
nothing that Python has not loaded anyway.
"""

from __future__ import annotations

import sys
from _thread import _local

from . import _core

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

    from .log_level import LogLevel

NAMES = ("DEBUG", "INFO", "WARN", "ERROR", "FATAL", "EVENT", "NONE")
DEBUG, INFO, WARN, ERROR, FATAL, EVENT, NONE = range(len(NAMES))

_FALLBACK = WARN
_thread = _local()  # .level: of this thread alone
_level = _FALLBACK

# Whether anybody may want to know of programs that are compiled: looked at on the way of each call.
tells_compiles = False


def _number_of(level: Any) -> int:
    if isinstance(level, int) and not isinstance(level, bool) and 0 <= level < len(NAMES):
        return int(level)
    from .errors import TypeError as PyptoTypeError

    raise PyptoTypeError(f"a log level is a member of pypto.LogLevel, not {level!r}")


def _from_environment() -> int:
    """PYPTO_LOG_LEVEL: a name in any case, or a number."""
    return number_in_environment("PYPTO_LOG_LEVEL", _FALLBACK)


def number_in_environment(name: str, fallback: int) -> int:
    """What a variable stands for that is read when a module is imported: a bad value is a warning, for an import should not fail."""
    try:
        return int(_core.setting(name))
    except ValueError as error:
        import warnings

        warnings.warn(f"{str(error).splitlines()[0]}; the default counts", stacklevel=2)
        return fallback


def set_log_level(level: LogLevel) -> None:
    """Sets from which level on the compiler tells of its work. TypeError for what is no LogLevel."""
    global _level
    _level = _number_of(level)
    _note()


def get_log_level() -> LogLevel:
    """The level that counts in this thread."""
    from .log_level import LogLevel

    return LogLevel(_effective())


def _set_thread_log_level(level: LogLevel) -> None:
    """Sets the level of this thread alone, whatever set_log_level() says."""
    _thread.level = _number_of(level)
    _note()


def _clear_thread_log_level() -> None:
    """This thread follows set_log_level() again."""
    _thread.__dict__.pop("level", None)


def _effective() -> int:
    return _thread.__dict__.get("level", _level)


def _note() -> None:
    global tells_compiles
    tells_compiles = tells_compiles or _effective() <= INFO


def log(level: int, message: str) -> None:
    """Prints a message if its level is wanted in this thread."""
    if level >= _effective() != NONE and sys.stderr is not None:
        sys.stderr.write(f"[pypto {NAMES[level]}] {message}\n")


def log_debug(message: str) -> None:
    """Prints message to standard error if the compiler's log level is DEBUG."""
    log(DEBUG, message)


def log_info(message: str) -> None:
    """Prints message to standard error if the compiler's log level is at most INFO."""
    log(INFO, message)


def log_warn(message: str) -> None:
    """Prints message to standard error if the compiler's log level is at most WARN."""
    log(WARN, message)


def log_error(message: str) -> None:
    """Prints message to standard error if the compiler's log level is at most ERROR."""
    log(ERROR, message)


def log_fatal(message: str) -> None:
    """Prints message to standard error if the compiler's log level is at most FATAL. The process goes on."""
    log(FATAL, message)


def log_event(message: str) -> None:
    """Prints message to standard error unless the compiler's log level is NONE."""
    log(EVENT, message)


def tell_compiled(program: Any, platform: str, is_known: bool) -> None:
    """Says how a program came about."""
    if is_known:
        log(DEBUG, f"{program.name} for {platform} has been compiled before")
        return
    stats = program.stats
    parts = []
    for part, hit, ns in (
        ("its source", stats["front_hit"], stats["front_ns"]),
        ("its native code", stats["back_hit"], stats["back_ns"]),
    ):
        how = "found in the cache" if hit else "compiled"
        parts.append(f"{part} {how} in {ns / 1e6:.1f} ms")
    log(INFO, f"{program.name} for {platform}: {', '.join(parts)}")
    log(DEBUG, f"{program.name} for {platform}: {program.object_path}")


_level = _from_environment()
_note()
