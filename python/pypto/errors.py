"""The exception classes of the package, one per kind of error.

The C side calls `make` with what a failed call reported. Every exception carries

    message       what went wrong, without place and hint
    code          stable, e.g. "PYPTO-S109"
    span          {"file", "line", "column", "end_line", "end_column"} or None; lines count from 1,
                  columns are the UTF-8 byte offsets of Python's `ast`
    hint, note    what to do, further facts; None where there is nothing to say
    source_lines  the user's lines that the span begins on
    diagnostics   all errors of the same compile, the first included

and `str()` shows all of it, with the user's code underlined. A class that has the name of a builtin
exception derives from it, so that `except ValueError` works as ever.
"""

from __future__ import annotations

import builtins as _builtins

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any as _Any


class Diagnostic:
    """One thing that went wrong: of `Error.diagnostics`.

    code      stable, e.g. "PYPTO-S109"
    kind      name of the class of exception
    message   what went wrong, without place and hint
    span      {"file", "line", "column", "end_line", "end_column"} or None; lines count from 1, columns are the
              UTF-8 byte offsets of Python's `ast`
    hint      what to do, or None
    note      further facts, or None
    source    the user's line that the span begins on, or None
    """

    __slots__ = ("code", "kind", "message", "span", "hint", "note", "source")

    def __init__(
        self,
        code: str | None,
        kind: str,
        message: str,
        span: dict[str, _Any] | None,
        hint: str | None,
        note: str | None,
        source: str | None,
    ) -> None:
        self.code = code
        self.kind = kind
        self.message = message
        self.span = span
        self.hint = hint
        self.note = note
        self.source = source

    def __repr__(self) -> str:
        return f"<{self.code} {self.message!r}>"


class Error(Exception):
    """Base of everything that this package raises."""

    def __init__(self, text: str = "", diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(text)
        first = diagnostics[0] if diagnostics else None
        self.diagnostics: list[Diagnostic] = list(diagnostics)
        self.message: str = first.message if first else text
        self.code: str | None = first.code if first else None
        self.span: dict[str, _Any] | None = first.span if first else None
        self.hint: str | None = first.hint if first else None
        self.note: str | None = first.note if first else None
        self.source_lines: list[str] = [first.source] if first and first.source else []


class ParserError(Error):
    """A DSL function that cannot be understood."""


class ParserSyntaxError(ParserError):
    """A construct that stands where it may not."""


class ParserTypeError(ParserError):
    """Types, shapes or annotations that do not go together."""


class UndefinedVariableError(ParserError):
    """A name that is defined nowhere."""


class SSAViolationError(ParserError):
    """A name that is bound in a way its scope forbids."""


class UnsupportedFeatureError(ParserError):
    """Python that the DSL does not have, or not yet."""


class InvalidOperationError(ParserError):
    """An operation that does not exist or is given the wrong arguments."""


class ScopeIsolationError(ParserError):
    """A name used outside the scope that it belongs to."""


class TypeError(Error, _builtins.TypeError):
    """An argument of the wrong kind, element type or shape."""


class ValueError(Error, _builtins.ValueError):
    """A value that cannot be used."""


class IndexError(Error, _builtins.IndexError):
    """An index that is out of range."""


class FileNotFoundError(Error, _builtins.FileNotFoundError):
    """A file or folder that is not there."""


class MemoryError(Error, _builtins.MemoryError):
    """More memory asked for than the machine has."""


class TimeoutError(Error, _builtins.TimeoutError):
    """Something is not over in the time that the caller gave it; it goes on."""


class RuntimeError(Error, _builtins.RuntimeError):
    """Something asked for at a time when it cannot be."""


class SystemError(Error, _builtins.SystemError, _builtins.OSError):
    """Something that the operating system refused: a full disk, a limit that is reached. Its text has the reason; `errno` is None."""


class CompilerError(Error, _builtins.RuntimeError):
    """No C compiler was found, or it failed."""


class DeviceError(Error, _builtins.RuntimeError):
    """A kernel, or a Python function that a host function calls, failed while it ran."""


class DeadlockError(DeviceError):
    """Ranks wait for signals that nobody will send."""


class CollectiveMismatchError(DeviceError):
    """Ranks that do not call the same collectives with the same operands in the same order."""


class LintError(DeviceError):
    """A call ended well, and RunConfig(lint="error") makes an error of what the lint has found in it."""


class LintWarning(_builtins.UserWarning):
    """A call ended well, but its program uses signals in a way that works by luck. See RunConfig.lint."""


class WorkerDiedError(DeviceError):
    """A worker process ended in the middle of a call."""


class InternalError(Error, _builtins.RuntimeError):
    """A defect of this package. Please report it."""


class DomainError(InternalError, ValueError):
    """Windows, and the devices that share them, do not go together: a mistake of the program.

    A ValueError. It is an InternalError only for scripts that expect that class, which other versions of PyPTO raise here.
    """


_warned: dict[_Any, _Any] = {}


def warn(text: str, file: str | None, line: int) -> None:
    """Warns of something at a line of the script; the same thing once, unless filters say otherwise."""
    import warnings

    message = text.split(": LintError ", 1)[-1]
    warnings.warn_explicit(message, LintWarning, file or "<pypto>", max(line, 1), registry=_warned)


_told_caches: set[str] = set()


def warn_of_cache(code: str, what: str, text: str, level: int) -> None:
    """Warns that compiled programs are not kept: of each cache once in a process, whatever filters say."""
    if what in _told_caches:
        return
    _told_caches.add(what)
    import warnings

    warnings.warn(f"[{code}]: {text}", RuntimeWarning, stacklevel=level)


def make(kind: str, text: str, rows: list[tuple[_Any, ...]]) -> BaseException:
    """The exception for a failed call: `rows` are the arguments of one Diagnostic each."""
    diagnostics = tuple(Diagnostic(*row) for row in rows)
    if kind == "KeyboardInterrupt":
        return KeyboardInterrupt(diagnostics[0].message if diagnostics else text)
    if diagnostics:
        # Python names the class in front of the text, so the first line need not.
        code = f"[{diagnostics[0].code}]: "
        text = text.replace(f": {kind} {code}", f": {code}", 1)
    classes = globals()
    return classes.get(kind, InternalError)(text, diagnostics)
