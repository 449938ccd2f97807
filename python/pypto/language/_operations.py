"""Operations and enumerations as Python objects, made from the tables of the compiler.

They have a signature, a doc-string and a name, so that `help(pl.load)` and editors work. They never
run: DSL code is read, not executed.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from .. import _core
from ..errors import TypeError as PyptoTypeError, UnsupportedFeatureError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, NoReturn


class Operation:
    # An operation of the DSL. No doc-string here: help() would show it for each of them.
    __pypto_kind__ = "path"

    def __init__(self, path: str, signature: str, doc: str, module: str) -> None:
        self.__pypto_path__ = path
        self.__name__ = path.rpartition(".")[2]
        self.__qualname__ = path
        self.__module__ = module
        self.__doc__ = doc
        # inspect.signature reads this from whatever looks like a method descriptor, hence __get__.
        self.__text_signature__ = signature

    def __get__(self, instance: Any, owner: Any = None) -> "Operation":
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise PyptoTypeError(
            f"{self.__pypto_path__} is part of the DSL: it is compiled, not called; "
            "use it inside a @pl.jit, @pl.jit.incore or @pl.jit.host function"
        )

    def __repr__(self) -> str:
        return f"<operation {self.__pypto_path__}{self.__text_signature__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _operation_named, (self.__pypto_path__,)


class _Constant(Operation):
    # pl.const, which Python meets in annotations and default values: the number itself.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (lambda value, dtype: value)(*args, **kwargs)


def _python_signature(columns: str, spelling: str) -> str:
    """ "x: tile, *, dtype: dtype = None" -> "(x, *, dtype=None)". A name each for pl., pl.tensor. and
    pl.tile. stands as "input/tensor/tile"."""
    words = []
    level = {"tensor": 1, "tile": 2}.get(spelling.split(".")[1], 0)
    for column in filter(None, columns.split(", ")):
        names, _, kind = column.partition(":")
        name = (names.split("/")[: level + 1])[-1]
        _, equals, default = kind.partition("=")
        words.append(f"{name.strip()}={default.strip()}" if equals else name.strip())
    return f"({', '.join(words)})"


class Enumeration(IntEnum):
    """Base of the enumerations of the DSL."""

    __str__ = Enum.__str__

    @property
    def __pypto_path__(self) -> str:
        return f"{type(self).__pypto_type_path__}.{self.name}"


# An enum's body would make a member of it.
setattr(Enumeration, "__pypto_kind__", "path")

_PACKAGES = {"pl": "pypto.language", "pld": "pypto.language.distributed"}
_operations: dict[str, Operation] = {}


def _operation_named(path: str) -> Operation:
    return _operations[path]


def _make_operations() -> None:
    for spellings, signature, doc in _core.ops():
        root = spellings[0].partition(".")[0]
        if root not in _PACKAGES:
            continue  # written as syntax, not by name
        kind = _Constant if spellings[0] == "pl.const" else Operation
        made = kind(
            spellings[0], _python_signature(signature, spellings[0]), doc, _PACKAGES[root]
        )
        for spelling in spellings:
            parameters = _python_signature(signature, spelling)
            words = doc
            other = _operations.get(spelling)
            if other is not None:
                # The kind of an argument decides which of several is meant: the name stays, and
                # help() tells of all.
                parameters = other.__text_signature__
                words = other.__doc__ if doc in other.__doc__ else f"{other.__doc__}\n\n{doc}"
            elif parameters == made.__text_signature__:
                _operations[spelling] = made
                continue
            _operations[spelling] = Operation(spelling, parameters, words, _PACKAGES[root])


_make_operations()


def fill(root: str, scope: dict[str, Any]) -> list[str]:
    """Puts all operations and enumerations of "pl" or "pld" into a module's namespace,
    sub-namespaces (`pl.tile`) included. Returns the names it defined."""
    names = []
    for spelling, operation in _operations.items():
        first, *middle, name = spelling.split(".")
        if first != root:
            continue
        target = scope
        for part in middle:
            if part not in target:
                target[part] = _namespace(f"{root}.{part}", f"{_PACKAGES[root]}.{part}")
                names.append(part)
            target = target[part].__dict__
        target[name] = operation
        if not middle:
            names.append(name)

    members: dict[str, dict[str, int]] = {}
    for module, enumeration, member, value in _core.enums():
        if module == root:
            members.setdefault(enumeration, {})[member] = value
    for name, values in members.items():
        made = Enumeration(name, values, module=_PACKAGES[root], qualname=name)
        setattr(made, "__pypto_type_path__", f"{root}.{name}")
        scope[name] = made
        names.append(name)
    return names


def _namespace(path: str, name: str) -> ModuleType:
    module = type(_core)(name, f"Operations spelled {path}.<name>.")
    module.__dict__["__pypto_path__"] = path
    module.__dict__["__getattr__"] = missing(path, name)
    return module


class NotYetError(UnsupportedFeatureError, AttributeError):
    """A name that the language has, but this version does not. Also an AttributeError, so that
    hasattr() and getattr() with a default work."""


def missing(path: str, module: str) -> Any:
    """The __getattr__ of a module: says which names are still to come."""

    def __getattr__(name: str) -> NoReturn:
        words = _core.later(f"{path}.{name}")
        if words is not None:
            raise NotYetError(words)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
