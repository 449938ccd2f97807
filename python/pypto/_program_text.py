"""Programs from text: `pl.parse` and its like. The text is run as a module of its own, whose lines linecache knows, so that the
compiler finds the source of what it defines."""

from __future__ import annotations

from ._program import Function, Program

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

_texts = 0


def _run_text(text: str, filename: str) -> dict[str, Any]:
    """The names that the text defines."""
    import linecache

    from . import language
    from .language import distributed

    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"__name__": filename, "pl": language, "pld": distributed}
    try:
        code = compile(text, filename, "exec", 0, True)
    except SyntaxError as error:
        raise SyntaxError(f"Failed to compile code: {error}") from error
    exec(code, scope)
    return scope


def _found(scope: dict[str, Any], only: type | None) -> Any:
    from .errors import ValueError as PyptoValueError

    programs = [v for v in scope.values() if isinstance(v, Program)]
    functions = [v for v in scope.values() if isinstance(v, Function)]
    if only is Program and not programs and functions:
        raise PyptoValueError("Expected @pl.program but found @pl.function")
    found = programs or functions
    if not found:
        raise PyptoValueError("No @pl.function or @pl.program found")
    if len(found) > 1:
        names = ", ".join(item.name for item in found)
        raise PyptoValueError(f"Multiple functions/programs found: {names}; give one of them")
    return found[0]


def parse(text: str) -> Any:
    """The one program (or, without a program, the one function) that a text defines. `pl` and `pld`
    are there already."""
    global _texts
    _texts += 1
    return _found(_run_text(text, f"<pypto text {_texts}>"), None)


def parse_program(text: str) -> Program:
    """Like `parse`, for programs only."""
    global _texts
    _texts += 1
    result: Program = _found(_run_text(text, f"<pypto text {_texts}>"), Program)
    return result


def _read(path: Any) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def loads(path: Any) -> Any:
    """`parse` of a file."""
    return _found(_run_text(_read(path), str(path)), None)


def loads_program(path: Any) -> Program:
    """`parse_program` of a file."""
    result: Program = _found(_run_text(_read(path), str(path)), Program)
    return result
