"""Objects that are of this process alone: processes, memory and loaded code stand behind them. Pickling one says what to
pass on instead."""

from __future__ import annotations

from . import _core

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

_NOT_PICKLED = "PYPTO-H427"


class OfThisProcess:
    """Base of classes whose objects are neither pickled nor copied; `_instead` says what to do."""

    __slots__ = ()
    _instead = ""

    def __reduce_ex__(self, protocol: Any) -> str:
        message = f"cannot pickle or copy a {type(self).__name__}: it is of this process"
        _core.refuse(_NOT_PICKLED, message, self._instead, None, 0, 0, 0, None)
        raise AssertionError("refuse() raises")


class NeverChanged(OfThisProcess):
    """The same of objects that never change: a copy is the object."""

    __slots__ = ()

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self
