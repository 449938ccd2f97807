"""The class form: `@pl.program` on a class whose methods carry `@pl.function(...)`.

A program is read when its class statement runs: names of the surrounding code are taken then, once,
and every mistake is raised there. The class becomes an `ir.Program`, its methods `ir.Function`s.
`ir.compile` makes something that runs out of it.
"""

from __future__ import annotations

import sys

from . import _core, _source
from ._jit import _CHIP, _CORE, _FUNCTION, _HOST, _snapshot

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from types import FrameType, FunctionType as PythonFunction
    from typing import Any, Callable, NoReturn

_BAD_CLASS, _BAD_METHOD, _UNSUPPORTED = "PYPTO-S120", "PYPTO-S121", "PYPTO-S102"
_OPTIONS = ("type", "level", "role", "attrs", "auto_scope", "strict_ssa", "external_source")
_CALLBACK, _OPAQUE = 3, 4  # no planes: host code, and what takes its plane from its callers


def _enumerations() -> Any:
    from . import language

    return language


class Function:
    """A function of a program: a method with `@pl.function`, or one outside of a class that
    programs call by its name.

    name                what it is called
    type, level, role   members of pl.FunctionType, pl.Level, pl.Role, as written; what `type` implies is filled in;
                        None where nothing is said
    attrs               what `attrs=` said
    """

    # What the extension relies on: _function, _plane, _scopes, _inlined, is_sub_worker, _siblings,
    # _program_name, _strict_ssa, identity().
    __pypto_kind__ = "function"

    def __init__(self, function: PythonFunction, options: dict[str, Any]) -> None:
        pl = _enumerations()
        self._function = function
        self._stamp = _source.stamp_of(function.__code__.co_filename)
        self._siblings: dict[str, Function] | None = None
        self._program_name: str | None = None
        self._scopes: tuple[dict[str, Any], ...] = ({},)
        self._identity: str | None = None
        self._strict_ssa = bool(options.get("strict_ssa"))
        self.name: str = function.__name__
        self.type: Any = options.get("type", pl.FunctionType.Opaque)
        self.level: Any = options.get("level")
        self.role: Any = options.get("role")
        self.attrs: dict[str, Any] = options.get("attrs") or {}
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._check_options(pl, options)
        self._plane = self._find_plane(pl)
        self._inlined = self.type == pl.FunctionType.Inline
        self._no_auto_scope = options.get("auto_scope") is False

    @property
    def func_type(self) -> Any:
        """Another name of `type`."""
        return self.type

    @property
    def is_sub_worker(self) -> bool:
        """Whether host functions call it as ordinary Python, in a process of its own."""
        return self._plane == _CALLBACK

    @property
    def requires_runtime_binding(self) -> bool:
        """Whether it is a SubWorker whose body is `...`: `prepare(callbacks={name: function})` gives it one."""
        if not self.is_sub_worker:
            return False
        found = _source.find(self)
        return not isinstance(found, str) and _is_ellipsis(found[1].body)

    def _check_options(self, pl: Any, options: dict[str, Any]) -> None:
        for option, enumeration in (
            ("type", pl.FunctionType),
            ("level", pl.Level),
            ("role", pl.Role),
        ):
            value = getattr(self, option)
            if value is not None and not isinstance(value, enumeration):
                _source.refuse(
                    _BAD_CLASS,
                    f"@pl.function: {option}= must be a member of pl.{enumeration.__name__}, "
                    f"not {value!r}",
                    f"write {option}=pl.{enumeration.__name__}.{list(enumeration)[1].name}",
                    self,
                )
        if options.get("external_source") is not None:
            _source.refuse(
                _UNSUPPORTED,
                f"@pl.function on '{self.name}': external_source= names a kernel for the hardware's "
                "tool-chain, which is not here",
                "write the kernel as the body of the function",
                self,
            )
        implied = {
            pl.FunctionType.Orchestration: (pl.Level.CHIP, pl.Role.Orchestrator),
            pl.FunctionType.InCore: (pl.Level.CHIP_DIE, pl.Role.SubWorker),
        }.get(self.type)
        if implied is None:
            return
        for option, meant in zip(("level", "role"), implied):
            if getattr(self, option) not in (None, meant):
                _source.refuse(
                    _BAD_CLASS,
                    f"@pl.function on '{self.name}': {option}={getattr(self, option)!r} "
                    f"contradicts type={self.type!r}, which implies {option}={meant!r}",
                    f"leave {option}= out",
                    self,
                )
            setattr(self, option, meant)

    def _find_plane(self, pl: Any) -> int:
        types, levels = pl.FunctionType, pl.Level
        if self.type in (types.Group, types.Spmd, types.Graph):
            _source.refuse(
                _UNSUPPORTED,
                f"@pl.function(type=pl.FunctionType.{self.type.name}): functions of this type describe "
                "how hardware schedules kernels, and are not supported",
                "write type=pl.FunctionType.InCore for a kernel, "
                "type=pl.FunctionType.Orchestration for what calls kernels",
                self,
            )
        if self.type in (types.InCore, types.AIC, types.AIV):
            return _CORE
        if self.level is None:
            return _CHIP if self.type == types.Orchestration else _OPAQUE
        if self.level >= levels.HOST:
            return _CALLBACK if self.role == pl.Role.SubWorker else _HOST
        return _CHIP if self.level == levels.CHIP else _CORE

    def identity(self) -> str:
        """A text that changes whenever the source text or the place of the function does: what caches go by."""
        if self._identity is None:
            source = _source.load(self)
            where = self._function.__code__.co_firstlineno
            place = "without source" if source is None else f"{source.filename}:{where} "
            digest = "" if source is None else source.digest
            kind = f"@pl.function {self.type.name} {self._plane}"
            self._identity = f"{self.__qualname__} {kind} {place}{digest}"
        return self._identity

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises TypeError, whatever its args: the program is compiled with `ir.compile`, and called."""
        from .errors import TypeError as PyptoTypeError

        raise PyptoTypeError(
            f"{self.name} is a function of a program: it is compiled, not called; compile the "
            "program with ir.compile(...)"
        )

    def __repr__(self) -> str:
        return f"<ir.Function {self.name} {self.type!r}>"


def _is_ellipsis(body: list[Any]) -> bool:
    """Whether statements are nothing but `...`, behind a doc-string perhaps."""
    values = [getattr(getattr(s, "value", None), "value", None) for s in body]
    return values[-1:] == [...] and (len(values) == 1 or (len(values) == 2 and isinstance(values[0], str)))


class Program:
    """A program in class form. Immutable; `ir.compile(program, ...)` makes it runnable.

    name        of the class
    functions   name -> Function, in the order of writing
    """

    def __init__(self, name: str, functions: dict[str, Function], text: str = "") -> None:
        self.name = name
        self.functions = functions
        self._text = text
        self._programs: dict[Any, list[_core.Program]] = {}  # by platform and entry

    @classmethod
    def _of_text(cls, name: str, text: str) -> Program:
        """What a lowering gives: its text is IR."""
        import re

        functions = re.findall(r"^(?:host|chip|core) (\w+)", text, re.MULTILINE)
        return cls(name, dict.fromkeys(functions), text)  # type: ignore[arg-type]

    def get_function(self, name: str) -> Function | None:
        """The function of that name, or None."""
        return self.functions.get(name)

    def as_python(self) -> str:
        """The text that the program was made from."""
        return self._text

    @property
    def entry(self) -> Function | None:
        """Where a run starts: the host function, else the only orchestration; None when neither
        decides."""
        for plane in (_HOST, _CHIP):
            found = [f for f in self.functions.values() if f._plane == plane]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def __str__(self) -> str:
        return self._text or repr(self)

    def __repr__(self) -> str:
        return f"<ir.Program {self.name}: {', '.join(self.functions)}>"


# ---- the decorators ----


def _names_around(frame: FrameType, members: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """What names mean, as they are now: the locals of the frame that executes a class statement (or
    decorates a function), its module's names, what the class body defines, builtins."""
    scope = _snapshot(frame) or {}
    return ({}, scope, _snapshot(frame, frame.f_globals), members, frame.f_builtins)


def function(python: Any = None, /, **options: Any) -> Any:
    """Makes a method part of its `@pl.program` class.

    type=   pl.FunctionType.Orchestration: sequences kernels on one device
            pl.FunctionType.InCore: a kernel
            pl.FunctionType.Inline: spliced into its callers
    level=, role=   pl.Level.HOST with pl.Role.Orchestrator: dispatches to the devices;
                    with pl.Role.SubWorker: ordinary Python on the host
    """
    frame = sys._getframe(1)
    for option in options:
        if option not in _OPTIONS:
            _source.refuse(
                _BAD_CLASS,
                f"@pl.function does not accept a {option}= argument",
                ", ".join(f"{name}=" for name in _OPTIONS[:3]),
                None,
                frame,
            )
    if "attrs" in options:
        import warnings

        warnings.warn(
            "attrs= of @pl.function is deprecated; write pl.func_attr({...}) in the body",
            DeprecationWarning,
            stacklevel=2,
        )
    if python is None:
        return lambda decorated: _make_function(decorated, options, sys._getframe(1))
    return _make_function(python, options, frame)


def _make_function(python: Any, options: dict[str, Any], frame: FrameType) -> Function:
    if not isinstance(python, _FUNCTION):
        _source.refuse(
            _BAD_CLASS,
            f"@pl.function decorates a function, not {_source.noun(python)}",
            "write @pl.program above the class, and @pl.function(...) above its methods"
            if isinstance(python, type)
            else "write @pl.function(type=pl.FunctionType.InCore) right above a def",
            None,
            frame,
        )
    made = Function(python, options)
    _check_name(made, frame)
    if not _source.in_class_body(frame):
        made._scopes = _names_around(frame, {})
        if made._plane == _OPAQUE:
            made._plane = _CORE
        if made._plane == _CALLBACK:
            _check_callback(made)
        if not made._inlined:
            _core.check((made,))
        made._inlined = made._inlined or made.type == made.type.Opaque and made._plane == _CORE
    return made


def _check_name(made: Function, frame: FrameType) -> None:
    """In a class the second of two methods of one name would take the first one's place unseen.
    Outside, a name may be defined again: notebooks and reloading do."""
    first = frame.f_locals.get(made.name)
    if _source.in_class_body(frame) and isinstance(first, Function):
        line = first._function.__code__.co_firstlineno
        _source.refuse(
            _BAD_CLASS,
            f"the method '{made.name}' is defined twice in one class: in line {line}, and here",
            "give one of them another name; self.name(...) calls it",
            made,
        )


class InlineFunction(Function):
    """A function without code of its own: spliced into its callers."""


def inline(python: Any = None, /) -> Any:
    """Makes a function part of those that call it: arguments take the place of parameters, and what
    it returns is the value of the call."""
    pl = _enumerations()
    if python is None:
        return inline
    if not isinstance(python, _FUNCTION):
        _source.refuse(
            _BAD_CLASS,
            f"@pl.inline decorates a function, not {_source.noun(python)}",
            "write it right above a def",
            None,
            sys._getframe(1),
        )
    made = InlineFunction(python, {"type": pl.FunctionType.Inline})
    _check_name(made, sys._getframe(1))
    made._scopes = _names_around(sys._getframe(1), {})
    return made


def program(cls: Any = None, /, **options: Any) -> Any:
    """Makes a class with `@pl.function` methods a program: an `ir.Program`, for `ir.compile`.

    strict_ssa=True   refuses a second assignment to a name, and assignments to parts of tensors
    """
    frame = sys._getframe(1)
    for option in options:
        if option not in ("strict_ssa", "auto_scope"):
            _source.refuse(
                _BAD_CLASS, f"@pl.program does not accept a {option}= argument", None, None, frame
            )
    if cls is None:
        return lambda decorated: _make_program(decorated, sys._getframe(1), options)
    return _make_program(cls, frame, options)


def _make_program(cls: Any, frame: FrameType, options: dict[str, Any]) -> Program:
    if not isinstance(cls, type):
        _source.refuse(
            _BAD_CLASS,
            f"@pl.program decorates a class, not {_source.noun(cls)}",
            "write class Name: below it, with @pl.function(...) methods; a function by itself takes @pl.jit",
            None,
            frame,
        )
    members = dict(vars(cls))
    functions = {f.name: f for f in members.values() if isinstance(f, Function)}
    if not functions:
        _source.refuse(
            _BAD_CLASS,
            f"class {cls.__name__} contains no @pl.function decorated methods",
            "write @pl.function(type=pl.FunctionType.InCore) above its methods",
            None,
            frame,
        )
    scopes = _names_around(
        frame, {name: value for name, value in members.items() if not isinstance(value, Function)}
    )
    for f in functions.values():
        f._scopes = scopes
        f._program_name = cls.__name__
        if f.is_sub_worker:
            _check_callback(f)
            continue  # it takes no self, so it has no siblings
        f._siblings = functions
        f._strict_ssa = f._strict_ssa or bool(options.get("strict_ssa"))
    called = _settle_opaque(functions)
    checked = tuple(
        f
        for f in functions.values()
        if not (f._inlined and (f.name in called or f.type.value))
    )
    _core.check(checked)
    return Program(cls.__name__, functions, _text_of(functions))


def _check_callback(f: Function) -> None:
    if f._function.__code__.co_varnames[:1] == ("self",):
        _source.refuse(
            _BAD_METHOD,
            f"SubWorker '{f.name}' must not declare 'self': its body is ordinary Python, run with "
            "its own parameters only",
            "leave self out",
            f,
        )


def _settle_opaque(functions: dict[str, Function]) -> set[str]:
    """A function without a type is orchestration when the host calls it, else part of its callers.
    Returns the names that occur in any function: who is called is among them."""
    names = {name: set(f._function.__code__.co_names) for name, f in functions.items()}
    of_hosts = set().union(*(names[f.name] for f in functions.values() if f._plane == _HOST))
    for f in functions.values():
        if f._plane == _OPAQUE:
            f._plane = _CHIP if f.name in of_hosts else _CORE
            f._inlined = f._plane == _CORE
    return set().union(*names.values())


def _text_of(functions: dict[str, Function]) -> str:
    """The lines of the class, as far as they can be had."""
    first = min(f._function.__code__.co_firstlineno for f in functions.values())
    source = _source.load(next(iter(functions.values())))
    if source is None:
        return ""
    node = _source.enclosing_class(source, first)
    if node is None:
        return "".join(source.lines)
    import textwrap

    start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return textwrap.dedent("".join(source.lines[start - 1 : node.end_lineno]))
