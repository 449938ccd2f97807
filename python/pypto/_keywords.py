"""Configuration classes: a misspelt keyword is answered with the nearest right one, and a field that is set later is checked
as in the constructor."""

from __future__ import annotations

import dataclasses
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
    known = cls.__dataclass_fields__
    names = tuple(known)
    fixed = {name: field.default for name, field in known.items() if field.default is not dataclasses.MISSING}
    made = {name: field.default_factory for name, field in known.items() if name not in fixed}

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs.keys() - known.keys():
            import difflib

            near = difflib.get_close_matches(name, known, 1)
            raise PyptoTypeError(
                f"{cls.__name__}() got an unexpected keyword argument {name!r}; "
                + (f"did you mean {near[0]!r}?" if near else f"help({cls.__name__}) lists them")
            )
        given = dict(zip(names, args))
        if len(args) > len(given) or given.keys() & kwargs.keys():
            init(self, *args, **kwargs)  # which words the error
        fields = vars(self)  # not one by one: each would be checked with all others
        fields.update(fixed)
        for name in made.keys() - given.keys() - kwargs.keys():
            fields[name] = made[name]()
        fields.update(given)
        fields.update(kwargs)
        self.__post_init__()

    def __setattr__(self: Any, name: str, value: Any) -> None:
        fields = vars(self)
        if name not in fields or name not in known:
            object.__setattr__(self, name, value)
            return
        others = {field: fields[field] for field in known}
        fields.update(vars(cls(**(others | {name: value}))))

    cls.__init__ = __init__
    cls.__setattr__ = __setattr__
    return cls
