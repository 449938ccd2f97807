"""The decorators `@pl.jit`, `@pl.jit.host`, `@pl.jit.incore` and the rest of their family: what they accept."""

from __future__ import annotations

import sys

from . import _source
from ._jit import _CHIP, _CORE, _FUNCTION, _HOST, JITFunction, _snapshot
from .errors import TypeError as PyptoTypeError, ValueError as PyptoValueError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any, Callable, NoReturn, overload

_DECORATORS = {_HOST: "@pl.jit.host", _CHIP: "@pl.jit", _CORE: "@pl.jit.incore"}
_BAD_DECORATOR = "PYPTO-S114"
_OWN_OBJECT = (("self",), ("cls",))  # first parameters of methods


def _with_article(word: str) -> str:
    return f"{'an' if word[:1] in 'aeiou' else 'a'} {word}"


class _Decorator:
    """One decorator, usable as `@d` and as `@d(...)`."""

    def __init__(self, plane: int, doc: str, accepts: frozenset[str], name: str = "") -> None:
        self._plane = plane
        self._name = name or _DECORATORS[plane]
        self._accepts = accepts
        self.__doc__ = doc

    if TYPE_CHECKING:

        @overload
        def __call__(self, function: Callable[..., Any], /) -> JITFunction: ...

        @overload
        def __call__(self, **options: Any) -> Callable[[Callable[..., Any]], JITFunction]: ...

    def __call__(self, function: Any = None, /, **options: Any) -> Any:
        name = self._name
        for option in options:
            if option not in self._accepts:
                _source.refuse(
                    _BAD_DECORATOR,
                    f"{name} does not accept {_with_article(option)}= argument",
                    f"it accepts {', '.join(f'{known}=' for known in sorted(self._accepts)) or 'none'}",
                    None,
                    sys._getframe(1),
                )
        if function is None:
            return lambda decorated: self._make(decorated, sys._getframe(1), options)
        return self._make(function, sys._getframe(1), options)

    def _make(self, function: Any, frame: Any, options: dict[str, Any]) -> JITFunction:
        if not isinstance(function, _FUNCTION):
            _source.refuse(
                _BAD_DECORATOR,
                f"{self._name} decorates a function, not {_source.noun(function)}",
                "for a class there is @pl.program, for its methods @pl.function"
                if isinstance(function, type)
                else "write one decorator, right above a def; options are keywords",
                None,
                frame,
            )
        if _source.in_class_body(frame) and function.__code__.co_varnames[:1] in _OWN_OBJECT:
            _source.refuse(
                _BAD_DECORATOR,
                f"{self._name} decorates a function, not the method '{function.__name__}' of a class",
                "move it out of the class; or write @pl.program above the class and @pl.function(...) "
                "above its methods",
                None,
                frame,
            )
        if self._name == "@pl.jit.inline" and _has_directions(function):
            import warnings

            warnings.warn(
                "Direction annotations are deprecated on @pl.jit.inline functions: they have no "
                "parameters once they are inlined",
                DeprecationWarning,
                stacklevel=3,
            )
        made = JITFunction(function, self._plane, _snapshot(frame), self._name)
        made._no_auto_scope = options.get("auto_scope") is False
        return made

    def __repr__(self) -> str:
        return self._name


_EXTERN_SOURCES = {
    "aic": ("source",),
    "aiv": ("source",),
    "mix": ("aic_source", "aiv_source"),
}


def _check_extern(options: dict[str, Any]) -> None:
    """The arguments of `@pl.jit.extern`."""
    import os

    known = ("core_type", "source", "aic_source", "aiv_source", "include_dirs")
    for option in options:
        if option not in known:
            raise PyptoTypeError(
                f"@pl.jit.extern does not accept {_with_article(option)}= argument; "
                f"it takes {', '.join(known)}"
            )
    core_type = options.get("core_type")
    if core_type not in _EXTERN_SOURCES:
        raise PyptoValueError(
            f'@pl.jit.extern: core_type must be "aic", "aiv" or "mix", not {core_type!r}'
        )
    wanted = _EXTERN_SOURCES[core_type]
    if any(options.get(name) is None for name in wanted):
        both = "both " if len(wanted) > 1 else ""
        raise PyptoValueError(
            f'@pl.jit.extern: core_type="{core_type}" requires {both}{" and ".join(wanted)}'
        )
    for name in ("source", "aic_source", "aiv_source"):
        if options.get(name) is not None and name not in wanted:
            raise PyptoValueError(f'@pl.jit.extern: core_type="{core_type}" has no {name}')
    for name in wanted:
        try:
            path = os.fspath(options[name])
        except TypeError:
            raise PyptoTypeError(
                f"@pl.jit.extern: {name} must be a path, not {options[name]!r}"
            ) from None
        if not os.path.isfile(path):
            raise PyptoValueError(f"@pl.jit.extern: source file not found: {path}")
    folders = options.get("include_dirs") or ()
    if not isinstance(folders, (list, tuple)) or not all(
        isinstance(folder, (str, os.PathLike)) for folder in folders
    ):
        raise PyptoTypeError(
            f"@pl.jit.extern: include_dirs must be a sequence of paths, not {folders!r}"
        )


def _has_directions(function: Any) -> bool:
    """Whether a parameter is annotated with Out or InOut."""
    return any(
        getattr(getattr(a, "form", None), "__name__", "") in ("Out", "InOut")
        or isinstance(a, str)
        and a.partition("[")[0].rpartition(".")[2] in ("Out", "InOut")
        for a in function.__annotations__.values()
    )


class _Jit(_Decorator):
    """`pl.jit` itself, with the rest of the family as attributes."""

    incore = _Decorator(
        _CORE,
        "Makes a function an in-core kernel: it works on tiles, on one core of one device.",
        frozenset({"level"}),
    )
    host = _Decorator(
        _HOST,
        "Makes a function a host orchestrator: it allocates windows and dispatches wrappers.",
        frozenset({"auto_scope"}),
    )

    inline = _Decorator(
        _CORE,
        "Makes a function part of those that call it: it has no code of its own.",
        frozenset({"auto_scope"}),
        "@pl.jit.inline",
    )
    opaque = _Decorator(
        _CORE,
        "Makes a function that wrappers and kernels call; it becomes part of them.",
        frozenset(),
        "@pl.jit.opaque",
    )

    @staticmethod
    def extern(**options: Any) -> Callable[[Any], JITFunction]:
        """Declares a kernel that is written in C++ for the hardware's own tool-chain. The arguments
        are checked; a program that calls such a kernel is refused, because nothing here compiles it.

        core_type       "aic", "aiv", or "mix" for both kinds of cores
        source          the file of an "aic" or "aiv" kernel
        aic_source, aiv_source   the files of a "mix" kernel
        include_dirs    where its headers are
        """
        _check_extern(options)
        frame = sys._getframe(1)

        def decorate(function: Any) -> JITFunction:
            if not isinstance(function, _FUNCTION):
                raise PyptoTypeError(
                    f"@pl.jit.extern decorates a function, not {_source.noun(function)}"
                )
            return JITFunction(function, _CORE, _snapshot(frame), "@pl.jit.extern")

        return decorate

    if not TYPE_CHECKING:  # type checkers know the attributes that there are

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"pl.jit has no attribute {name!r}")


jit = _Jit(
    _CHIP,
    "Makes a function a per-device wrapper: a host function dispatches it, and it calls kernels.",
    frozenset({"auto_scope"}),
)
