"""Where the source text of a function comes from, and its place in the syntax tree of its file.

Texts come from `linecache`, which knows files, notebook cells and whatever else was registered
there; `python -c` and a redirected `python < file` are read from where Python got them. Each file
is parsed once, by Python itself, and only when a compile needs it. By then the file may have been
edited, so that it no longer is what Python runs: functions carry the stamp of their file at the time
they were defined, and a text of another stamp is none of theirs. The extension calls `find` and
`line_text`.
"""

from __future__ import annotations

import os
import sys

from . import _core

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ._jit import JITFunction

_ONLY_AST = 0x400  # ast.PyCF_ONLY_AST, without importing ast
_DEFINITIONS = ("FunctionDef", "AsyncFunctionDef")


class SourceFile:
    """One source text as a whole."""

    __slots__ = ("filename", "lines", "stamp", "digest", "_tree")

    def __init__(self, filename: str, lines: list[str], stamp: tuple[int, int] | None) -> None:
        self.filename = filename
        self.lines = lines
        self.stamp = stamp
        self.digest: str = _core.digest("".join(lines).encode("utf-8", "surrogatepass"))
        self._tree: Any = None

    def tree(self) -> Any:
        """The ast.Module. Raises SyntaxError when the text is not what Python once ran."""
        if self._tree is None:
            self._tree = compile("".join(self.lines), self.filename, "exec", _ONLY_AST, True)
        return self._tree


_files: dict[str, SourceFile] = {}


def stamp_of(filename: str) -> tuple[int, int] | None:
    """Changes when the file is written; None when the source is in no file."""
    try:
        status = os.stat(filename)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


def has_changed(jit: JITFunction) -> bool:
    """Whether the file is there and no longer the one that the function was defined in."""
    now = stamp_of(jit._function.__code__.co_filename)
    return now is not None and jit._stamp is not None and now != jit._stamp


def load(jit: JITFunction) -> SourceFile | None:
    """The source that a function was defined in; None when it cannot be had, or not any more."""
    import linecache

    function = jit._function
    filename = function.__code__.co_filename
    known = _files.get(filename)
    if known is not None and known.stamp is not None and known.stamp == jit._stamp:
        return known
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, function.__globals__)
    if not lines:
        lines = _interpreter_input(filename).splitlines(keepends=True)
    if not lines or has_changed(jit):
        return None
    if known is None or (known.lines is not lines and known.lines != lines):
        known = _files[filename] = SourceFile(filename, lines, jit._stamp)
    known.stamp = jit._stamp
    return known


def find(jit: JITFunction) -> tuple[str, Any] | str:
    """(file name, ast.FunctionDef) of a function, or what has become of its source."""
    source = load(jit)
    if source is None:
        return "its file has changed since it was loaded" if has_changed(jit) else ""
    try:
        tree = source.tree()
    except SyntaxError:
        return ""
    code = jit._function.__code__
    node = _find_definition(tree.body, code.co_name, code.co_firstlineno)
    return "" if node is None else (source.filename, node)


def enclosing_class(source: SourceFile, line: int) -> Any:
    """The ast.ClassDef that a line is directly in; None when there is none."""
    import ast

    found = None
    for node in ast.walk(source.tree()):
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0):
            found = node if found is None or node.lineno > found.lineno else found
    return found


def returns_value(jit: JITFunction) -> bool:
    """Whether a DSL function gives anything back, as far as its source is known."""
    import ast

    found = find(jit)
    if isinstance(found, str):
        return False
    node = found[1]
    if node.returns is not None:
        return not (isinstance(node.returns, ast.Constant) and node.returns.value is None)
    return any(isinstance(inner, ast.Return) and inner.value for inner in ast.walk(node))


def line_text(filename: str, line: int) -> str | None:
    """A line, counted from 1, of a file that `load` has seen; without its newline."""
    source = _files.get(filename)
    if source is None or not 0 < line <= len(source.lines):
        return None
    return source.lines[line - 1].rstrip("\r\n")


def _first_line(node: Any) -> int:
    """As code objects count: decorators belong to the definition."""
    decorators = getattr(node, "decorator_list", None)
    return min(decorators[0].lineno, node.lineno) if decorators else node.lineno


def _find_definition(body: list[Any], name: str, line: int) -> Any:
    for node in body:
        first = _first_line(node)
        if not first <= line <= node.end_lineno:
            continue
        if type(node).__name__ in _DEFINITIONS and node.name == name and first == line:
            return node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                if field == "cases":  # match_case nodes have no place of their own
                    inner = [statement for case in inner for statement in case.body]
                found = _find_definition(inner, name, line)
                if found is not None:
                    return found
    return None


def _interpreter_input(filename: str) -> str:
    """What Python itself was given to run: the text after -c, or a file that is its input."""
    if filename == "<string>" and sys.argv[:1] == ["-c"]:
        # Options of Python come before "-c", those of the program after its text.
        for index, word in enumerate(sys.orig_argv[1:], 2):
            if word == "-c" or (word[:1] == "-" and word[1:2] != "-" and word[-1:] == "c"):
                return "".join(sys.orig_argv[index : index + 1])
    if filename == "<stdin>":
        try:
            return os.pread(0, os.fstat(0).st_size, 0).decode("utf-8", "replace")
        except OSError:  # a terminal or a pipe: it has been read and is gone
            pass
    return ""


def in_class_body(frame: Any) -> bool:
    """Whether a frame executes a class statement."""
    return "__qualname__" in frame.f_locals and "__module__" in frame.f_locals


def noun(value: Any) -> str:
    """What a decorator was given instead of what it is for."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if hasattr(value, "__wrapped__"):
        return f"{value!r}"
    if hasattr(value, "__code__"):
        return f"the function {value.__name__}"
    name = type(value).__name__
    return repr(value) if isinstance(value, str) else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def refuse(
    code: str, message: str, hint: str | None, function: Any, frame: Any = None
) -> NoReturn:
    """Raises a diagnostic that points at `def name` of a function, or at the line that a frame is
    in."""
    file, line, column, end = None, 0, 0, 0
    if function is not None:
        code_object = function._function.__code__
        file, line = code_object.co_filename, code_object.co_firstlineno
        found = find(function)
        if not isinstance(found, str):
            file, node = found
            line, column = node.lineno, node.col_offset
            end = column + len("def ") + len(node.name)
    elif frame is not None:
        import linecache

        file, line = frame.f_code.co_filename, frame.f_lineno
        text = linecache.getline(file, line).rstrip("\r\n")
        column, end = len(text) - len(text.lstrip()), len(text)
        _core.refuse(code, message, hint, file, line, column, end, text or None)
    source = line_text(file, line) if file else None
    _core.refuse(code, message, hint, file, line, column, end, source)
    raise AssertionError  # for type checkers: refuse() has raised
