"""Names of the compiler that test suites import from here."""

from .._dtypes import DataType
from .._logging import _clear_thread_log_level, _set_thread_log_level, get_log_level, set_log_level
from ..log_level import LogLevel

__all__ = [
    "DataType",
    "LogLevel",
    "_clear_thread_log_level",
    "_set_thread_log_level",
    "get_log_level",
    "set_log_level",
]
