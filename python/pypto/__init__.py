"""PyPTO: distributed tile kernels, written in Python, run natively.

`import pypto.language as pl` is the language, `import pypto.language.distributed as pld` its
distributed part, `pypto.runtime` and `pypto.ir` configure and describe runs. Importing this package
is cheap: it pulls in neither numpy nor torch, and its sub-packages load when they are first used.
"""

from __future__ import annotations

import atexit as _atexit

from . import _core
from ._dtypes import DTYPES as _DTYPES, DataType
from ._logging import get_log_level, set_log_level
from .errors import (
    CollectiveMismatchError,
    CompilerError,
    DeadlockError,
    DeviceError,
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
    from .log_level import LogLevel

_PACKAGES = frozenset({"backend", "errors", "ir", "language", "pypto_core", "runtime"})

__all__ = [
    "CollectiveMismatchError",
    "CompilerError",
    "DataType",
    "DeadlockError",
    "DeviceError",
    "Error",
    "InternalError",
    "LintError",
    "LintWarning",
    "LogLevel",
    "WorkerDiedError",
    "__version__",
    "get_log_level",
    "set_log_level",
]


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        import importlib

        return importlib.import_module("." + name, __name__)
    if name == "LogLevel":
        from .log_level import LogLevel

        return LogLevel
    if name.startswith("DT_") and name[3:] in _DTYPES:
        return _DTYPES[name[3:]]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), "LogLevel", *_PACKAGES, *("DT_" + name for name in _DTYPES)])
