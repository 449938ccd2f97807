"""Folder: a directory of this user's alone that files are written to.

Everything below it is reached through the descriptor of its parent, without following symbolic links, and belongs
to this user; else nothing is written. Directories are made with mode 0700, files with 0600; a file is written beside
its place and renamed, so that readers see the old one or the whole new one.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_NAME = 100


def file_name(name: str) -> str:
    """What a file is called after something of the user's program: the name itself, if it is a Python identifier of
    moderate length, else one that only letters, digits and `_` are left of, with a hash of the whole."""
    if name.isidentifier() and len(os.fsencode(name)) <= _LONGEST_NAME:
        return name
    from .. import _core

    kept = "".join(c if c.isascii() and c.isalnum() else "_" for c in name[:_LONGEST_NAME // 2])
    return f"{kept}_{_core.digest(name.encode('utf-8', 'surrogatepass'))[:16]}"


def path_of(value: Any, name: str) -> str:
    """A path that the caller gives, as a string."""
    try:
        path = os.fsdecode(value)
        if b"\0" not in os.fsencode(path):
            return path
    except TypeError:
        raise PyptoTypeError(f"{name} must be a path, not {type(value).__name__}") from None
    except UnicodeEncodeError:
        pass
    raise PyptoValueError(f"{name} must be a path, which {value!r} cannot be")


class Folder:
    """A context manager; `path` is absolute, without symbolic links."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = self._owned(os.open(path, _DIRECTORY), str(path))

    @classmethod
    def at(cls, path: Any) -> Folder:
        """The directory that the user has named, made if it is not there, with its parents. Nothing in it is removed."""
        path = path_of(path, "output_dir")
        try:
            os.makedirs(path, 0o700, exist_ok=True)
            return cls(Path(os.path.realpath(path)))
        except RecursionError:  # of makedirs, in which each folder is a call
            raise OSError(
                errno.ENAMETOOLONG, "output_dir cannot be used: its path has too many folders", path
            ) from None
        except OSError as error:
            raise OSError(
                error.errno, f"output_dir cannot be used: {error.strerror}", path
            ) from None

    @classmethod
    def new(cls, base: str, stem: str) -> Folder:
        """One that nobody else has: `stem` in `base`, with a number behind it if there is one of that name."""
        os.makedirs(base, 0o700, exist_ok=True)
        number = 0
        while True:
            path = os.path.join(base, stem if number == 0 else f"{stem}_{number}")
            try:
                os.mkdir(path, 0o700)
                return cls(Path(os.path.realpath(path)))
            except FileExistsError:
                number += 1

    def write(self, name: str, content: str | bytes) -> None:
        """Writes a file; `name` may have folders in front, which are made if they are not there."""
        data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        *folders, last = name.split("/")
        parent = self._enter(folders, make=True)
        beside = f".{last}.{os.getpid()}.tmp"
        try:
            try:
                with open(os.open(beside, _NEW_FILE, 0o600, dir_fd=parent), "wb") as file:
                    file.write(data)
                os.rename(beside, last, src_dir_fd=parent, dst_dir_fd=parent)
            except OSError:
                _remove(beside, parent)
                raise
        except OSError as error:
            raise self._explained(error, name) from None
        finally:
            os.close(parent)

    def remove(self, name: str) -> None:
        """Removes a file or link; one that is not there is as good."""
        *folders, last = name.split("/")
        try:
            parent = self._enter(folders, make=False)
        except FileNotFoundError:
            return
        _remove(last, parent)
        os.close(parent)

    def _enter(self, folders: list[str], make: bool) -> int:
        """The descriptor of a folder below, for the caller to close."""
        descriptor = os.dup(self._descriptor)
        for i, folder in enumerate(folders):
            name = "/".join(folders[: i + 1])
            try:
                if make:
                    try:
                        os.mkdir(folder, 0o700, dir_fd=descriptor)
                    except FileExistsError:
                        pass
                below = os.open(folder, _DIRECTORY, dir_fd=descriptor)
            except OSError as error:
                raise self._explained(error, name) from None
            finally:
                os.close(descriptor)
            descriptor = self._owned(below, name)
        return descriptor

    def _owned(self, descriptor: int, name: str) -> int:
        """The descriptor, if what it stands for belongs to this user."""
        owner = os.fstat(descriptor).st_uid
        if owner != os.geteuid():
            os.close(descriptor)
            raise PyptoValueError(
                f"nothing is written to {self.path / name}: it belongs to user {owner}, not to you"
            )
        return descriptor

    def _explained(self, error: OSError, name: str) -> OSError:
        words = error.strerror
        if name and stat.S_ISLNK(_mode(self.path / name)):
            words = "it is a symbolic link, which is not followed"
        return OSError(error.errno, f"the artifact cannot be written: {words}", str(self.path / name))

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()


def _remove(name: str, parent: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except OSError:
        pass


def _mode(path: Path) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0
