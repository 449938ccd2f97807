"""`pypto.check` and the like: errors of the package's own classes."""

from __future__ import annotations

from .errors import InternalError, ValueError as PyptoValueError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any


def check(condition: Any, message: str = "check failed") -> None:
    """Raises `pypto.errors.ValueError` with message unless condition is true."""
    if not condition:
        raise PyptoValueError(message)


def internal_check(condition: Any, message: str = "internal check failed") -> None:
    """Raises `pypto.InternalError` with message unless condition is true."""
    if not condition:
        raise InternalError(message)


def internal_check_span(condition: Any, message: str, span: Any = None) -> None:
    """As `internal_check` of condition, with the place that span means, {"file", "line", ...} as errors have it, behind message."""
    if not condition:
        place = f" ({span['file']}:{span['line']})" if span else ""
        raise InternalError(message + place)
