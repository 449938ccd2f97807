"""Misspelt keywords of configuration classes: the error names the nearest right one."""

from __future__ import annotations

import functools

from .errors import TypeError as PyptoTypeError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any


def checked(cls: Any) -> Any:
    """A dataclass whose constructor says what a keyword that it does not have may have meant."""
    init = cls.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs.keys() - cls.__dataclass_fields__.keys():
            import difflib

            near = difflib.get_close_matches(name, cls.__dataclass_fields__, 1)
            raise PyptoTypeError(
                f"{cls.__name__}() got an unexpected keyword argument {name!r}; "
                + (f"did you mean {near[0]!r}?" if near else f"help({cls.__name__}) lists them")
            )
        init(self, *args, **kwargs)

    cls.__init__ = __init__
    return cls
