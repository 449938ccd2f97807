"""Checks of numbers that callers give: counts, sizes, seconds; of Python or of NumPy."""

from __future__ import annotations

import math
import numbers
import operator

from ..errors import (
    MemoryError as PyptoMemoryError,
    TypeError as PyptoTypeError,
    ValueError as PyptoValueError,
)

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

_MOST_BYTES = 2**63 - 1


def is_int(value: Any) -> bool:
    """Whether it counts something. Neither True and False nor arrays do, though an array of one element is an index."""
    return isinstance(value, (int, numbers.Integral)) and not isinstance(value, bool)


def checked_count(value: Any, name: str, least: int) -> int:
    if not is_int(value):
        raise PyptoTypeError(f"{name} must be an int, got {value!r}")
    if value < least:
        words = {0: "non-negative", 1: "positive"}.get(least, f"at least {least}")
        raise PyptoValueError(f"{name} must be {words}, got {value}")
    return operator.index(value)


def plain_number(value: Any) -> Any:
    """A number of Python, NumPy or ctypes as one of Python; None for anything else."""
    if isinstance(value, (bool, int, float)):
        return value
    kind = type(value)
    if kind.__module__ == "ctypes":
        value = getattr(value, "value", None)
    elif kind.__module__ == "numpy" and not hasattr(kind, "__setitem__"):  # no array
        value = value.item()
    return value if isinstance(value, (bool, int, float)) else None


def is_seconds(value: Any) -> bool:
    """Whether it is a real number; it may be infinite or negative."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Of a real number; ints of any size are."""
    return isinstance(value, int) or math.isfinite(value)


def checked_bytes(nbytes: int) -> int:
    """Sizes that no machine has are as much too large as those that this machine has not."""
    if nbytes > _MOST_BYTES:
        raise PyptoMemoryError(f"{nbytes} bytes of memory were asked for, which no machine has")
    return nbytes
