"""Configurations among the arguments of a call: they are passed by name."""

from __future__ import annotations

from . import _core

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_COUNT = "PYPTO-H401"

# What python/module/tensors.c says, too, of one that stands where a tensor belongs.
_HINTS = {
    "RunConfig": "pass it by name: config=...",
    "DistributedConfig": "pass it by name, in a RunConfig: config=RunConfig(distributed_config=...)",
}


def refuse_misplaced(problem: str, arguments: Iterable[Any]) -> None:
    """Of a call whose arguments are too many or too few, as `problem` says: raises TypeError with what to do if one of them
    is a configuration. Else whoever asks says what is wrong."""
    for place, argument in enumerate(arguments, 1):
        kind = type(argument)
        if kind.__name__ in _HINTS and kind.__module__.startswith("pypto."):
            message = f"{problem}; argument {place} is a {kind.__name__}"
            _core.refuse(_COUNT, message, _HINTS[kind.__name__], None, 0, 0, 0, None)
