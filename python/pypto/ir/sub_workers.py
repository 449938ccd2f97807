"""SubWorkers in an output directory: the text of each Python function, and the names of those that have none.

The text is that of the script, without decorators. What else the script defines is not in it: a function that is to be run
from a directory imports what it needs; `torch` is there.
"""

from __future__ import annotations

import json
import os
import stat
import textwrap
from pathlib import Path

from .. import _core, _source
from ..errors import ValueError as PyptoValueError
from .folder import Folder, file_name

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

FOLDER = "sub_workers"
REQUIRED = f"{FOLDER}/__required__.json"


def _path_of(name: str) -> str:
    return f"{FOLDER}/{file_name(name)}.py"


def write(folder: Folder, native: _core.Program) -> None:
    """Those of a program, if it calls any."""
    functions = native.sub_workers
    if not functions:
        folder.remove(REQUIRED)
        return
    required = []
    for name, function in functions.items():
        text = None if function is None or function.requires_runtime_binding else _text_of(function)
        if text is None:
            required.append(name)
            folder.remove(_path_of(name))
        else:
            folder.write(_path_of(name), text)
    folder.write(REQUIRED, json.dumps(required) + "\n")


def _text_of(function: Any) -> str | None:
    """None: the source is not to be had."""
    if isinstance(function, Stored):
        return function.text
    found = _source.find(function)
    source = _source.load(function)
    if isinstance(found, str) or source is None:
        return None
    node = found[1]
    lines = textwrap.dedent("".join(source.lines[node.lineno - 1 : node.end_lineno]))
    return f"from __future__ import annotations\n\n\n{lines.rstrip()}\n"


# ---- reading back ----


class Stored:
    """A function of a directory, as far as workers ask it."""

    def __init__(self, name: str, path: Path, text: str | None) -> None:
        self.__name__ = name
        self.is_sub_worker = True
        self.requires_runtime_binding = text is None
        self.text = text
        self._path = path

    @property
    def _function(self) -> Any:
        scope: dict[str, Any] = {"__name__": self.__name__}
        exec(compile(self.text or "", str(self._path), "exec", 0, True), scope)
        try:
            return scope[self.__name__]
        except KeyError:
            raise PyptoValueError(f"{self._path} defines no function {self.__name__}") from None


def load(folder: Path, native: _core.Program) -> None:
    """Gives a program that was loaded from a directory the functions that it calls."""
    names = list(native.sub_workers)
    if not names:
        return
    path = folder / REQUIRED
    try:
        required = json.loads(_owned_text(path))
    except (FileNotFoundError, json.JSONDecodeError):
        required = None
    if not isinstance(required, list) or not set(map(str, required)) <= set(names):
        raise PyptoValueError(
            f"{path} is no list of SubWorkers of this program; write the directory anew with ir.compile()"
        )
    stored = []
    for name in names:
        where = folder / _path_of(name)
        try:
            text = None if name in required else _owned_text(where)
        except FileNotFoundError:
            raise PyptoValueError(f"{where} is missing; write the directory anew with ir.compile()") from None
        stored.append(Stored(name, where, text))
    native.note_sub_workers(stored)


def _owned_text(path: Path) -> str:
    """What a file says that belongs to this user, or to root, and that nobody else may write: it is to be run."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), encoding="utf-8") as file:
        status = os.fstat(file.fileno())
        if status.st_uid not in (0, os.geteuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PyptoValueError(f"{path} belongs to somebody else, or others may write it: it is not run")
        return file.read()
