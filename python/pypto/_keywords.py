"""Configuration classes: a misspelt keyword is answered with the nearest right one, and a field that is set later is checked
as in the constructor."""

from __future__ import annotations

import functools
import operator

from .errors import TypeError as PyptoTypeError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any


def integer(value: Any) -> int:
    """An int, of Python or NumPy; TypeError for anything else, and for True and False."""
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def checked(cls: Any) -> Any:
    """A dataclass whose constructor says what a keyword that it does not have may have meant, and which no assignment can
    make one that the constructor would have refused. Its `__post_init__` changes fields through `vars(self)`."""
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

    def __setattr__(self: Any, name: str, value: Any) -> None:
        known = vars(self)
        if name not in known or name not in cls.__dataclass_fields__:
            object.__setattr__(self, name, value)
            return
        others = {field: known[field] for field in cls.__dataclass_fields__}
        known.update(vars(cls(**(others | {name: value}))))

    cls.__init__ = __init__
    cls.__setattr__ = __setattr__
    return cls
