"""LogLevel: of what the compiler tells."""

from enum import IntEnum


class LogLevel(IntEnum):
    """From which level on the compiler tells of its work (`pypto.set_log_level`). INFO tells of each program that is compiled,
    DEBUG also of those that are found."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4
    EVENT = 5
    NONE = 6
