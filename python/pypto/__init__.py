"""PyPTO: distributed tile kernels, written in Python, run natively.

`import pypto.language as pl` is the language, `import pypto.language.distributed as pld` its
distributed part, `pypto.runtime` and `pypto.ir` configure and describe runs. Importing this package
is cheap: it pulls in neither numpy nor torch, and its sub-packages load when they are first used.
"""

from __future__ import annotations

import atexit as _atexit

from . import _core
from ._dtypes import DTYPES as _DTYPES, DataType
from ._logging import (
    get_log_level,
    log_debug,
    log_error,
    log_event,
    log_fatal,
    log_info,
    log_warn,
    set_log_level,
)
from .errors import (
    CollectiveMismatchError,
    CompilerError,
    DeadlockError,
    DeviceError,
    DomainError,
    Error,
    InternalError,
    LintError,
    LintWarning,
    WorkerDiedError,
)

__version__: str = _core.version()
__pypto_path__ = "pypto"

_atexit.register(_core.shutdown)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._checks import check, internal_check, internal_check_span
    from .log_level import LogLevel

_PACKAGES = frozenset(
    {
        "backend",
        "codegen",
        "compile_profiling",
        "errors",
        "ir",
        "language",
        "passes",
        "pypto_core",
        "runtime",
        "testing",
    }
)
_LATER = {"LogLevel": "log_level", "check": "_checks", "internal_check": "_checks", "internal_check_span": "_checks"}

__all__ = [
    "CollectiveMismatchError",
    "CompilerError",
    "DataType",
    "DeadlockError",
    "DeviceError",
    "DomainError",
    "Error",
    "InternalError",
    "LintError",
    "LintWarning",
    "LogLevel",
    "WorkerDiedError",
    "__version__",
    "check",
    "get_log_level",
    "internal_check",
    "internal_check_span",
    "log_debug",
    "log_error",
    "log_event",
    "log_fatal",
    "log_info",
    "log_warn",
    "set_log_level",
]


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        import importlib

        return importlib.import_module("." + name, __name__)
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module("." + _LATER[name], __name__), name)
    if name.startswith("DT_") and name[3:] in _DTYPES:
        return _DTYPES[name[3:]]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER, *_PACKAGES, *("DT_" + name for name in _DTYPES)])
