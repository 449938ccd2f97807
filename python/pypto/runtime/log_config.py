"""The log of the runtime: Python's logger `simpler`.

    debug    10   each call of a worker
    info     20   workers that start and end, records that are written
    timing   25   what benchmarks measured; the default
    warn     30
    error    40
    null     60   nothing

Messages go where the script's handlers of `logging` send them. Without any they go to standard error, once
`configure_log` has been called.
"""

from __future__ import annotations

import logging
import os
import sys

from .._logging import number_in_environment
from ..errors import TypeError as PyptoTypeError
from ..ir.options import flag
from . import _telling

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

TIMING = 25
NULL = 60
_NAMES = {
    "debug": 10,
    "info": 20,
    "timing": TIMING,
    "warn": 30,
    "warning": 30,
    "error": 40,
    "null": NULL,
}

logger = logging.getLogger("simpler")
logging.addLevelName(TIMING, "TIMING")
logging.addLevelName(NULL, "NULL")
if logger.level == logging.NOTSET:
    logger.setLevel(TIMING)


class _LastResort(logging.Handler):
    """Standard error, while the script has no handlers of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.root.handlers and logger.handlers == [self] and sys.stderr is not None:
            sys.stderr.write(self.format(record) + "\n")


_last_resort = _LastResort()
_last_resort.setFormatter(logging.Formatter("[simpler %(levelname)s] %(message)s"))


def configure_log(level: str | int, *, sync_pypto: bool = False) -> None:
    """Sets from which level on the runtime tells of its work: a name in any case, or a number. A name that does not exist means
    "timing". Workers that are processes of Python take over the level that counts when they start.

    sync_pypto   the compiler's level follows
    """
    number, sync_pypto = _number_of(level), flag("sync_pypto", sync_pypto)
    logger.setLevel(number)
    _telling.tells_calls = number <= logging.DEBUG
    if _last_resort not in logger.handlers:
        logger.addHandler(_last_resort)
    if sync_pypto:
        _sync_to_pypto(number)


def log_level() -> int:
    """The level that counts, as a number."""
    return logger.getEffectiveLevel()


def _number_of(level: Any) -> int:
    if isinstance(level, str):
        text = level.strip().lower()
        return int(text) if text.isdecimal() else _NAMES.get(text, TIMING)
    if isinstance(level, bool) or not isinstance(level, int):
        raise PyptoTypeError(
            f"a log level is a name ({', '.join(_NAMES)}) or a number, not {level!r}"
        )
    return int(level)


def _sync_to_pypto(level: int) -> None:
    """Gives the compiler the level that is closest to one of the runtime."""
    import pypto
    from pypto import LogLevel

    for most, found in (
        (10, LogLevel.DEBUG),
        (20, LogLevel.INFO),
        (30, LogLevel.WARN),
        (40, LogLevel.ERROR),
    ):
        if level <= most:
            pypto.set_log_level(found)
            return
    pypto.set_log_level(LogLevel.NONE)


def configure_from_environment() -> None:
    """PYPTO_RUNTIME_LOG and PYPTO_RUNTIME_LOG_SYNC, if the former is set."""
    if os.environ.get("PYPTO_RUNTIME_LOG"):
        level = number_in_environment("PYPTO_RUNTIME_LOG", TIMING)
        configure_log(level, sync_pypto=bool(number_in_environment("PYPTO_RUNTIME_LOG_SYNC", 0)))
