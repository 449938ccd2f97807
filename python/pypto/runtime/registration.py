"""Programs of a worker as functions."""

from __future__ import annotations

import weakref

from .._pickling import OfThisProcess
from .runtime_base import closed_error

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

    from .run_config import RunConfig
    from .runtime_base import Worker


class RegistrationHandle(OfThisProcess):
    """One program of a worker, to be called like a function. Made by `register`; it keeps the worker alive.

    compiled   the program
    cid        its number on the worker
    closed     whether it, or the worker, has been closed

    A context manager, which unregisters at its end.
    """

    __slots__ = ("_worker", "compiled", "cid", "closed", "__weakref__")
    _instead = "pass on output_dir of its program, and register that with a worker there"

    def __init__(self, worker: Worker, compiled: Any, cid: int) -> None:
        self._worker = worker
        self.compiled: Any = compiled
        self.cid: int = cid
        self.closed: bool = False

    def unregister(self) -> None:
        """Closes the handle; the worker keeps the program. Again: does nothing."""
        self.closed = True

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        """As `worker.run(compiled, *args, config=config)`. Raises RuntimeError when the handle is closed."""
        if self.closed:
            raise closed_error(
                "the handle is unregistered, or its worker closed", "register the program again"
            )
        return self._worker.run(self.compiled, *args, config=config)

    def __enter__(self) -> RegistrationHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.unregister()

    def __repr__(self) -> str:
        return f"<RegistrationHandle {self.cid} {self.compiled!r}{' closed' if self.closed else ''}>"


class Registrations:
    """The handles that a worker has given out, as long as somebody holds them."""

    def __init__(self) -> None:
        self._handles: weakref.WeakSet[RegistrationHandle] = weakref.WeakSet()

    def add(self, worker: Worker, compiled: Any, cid: int) -> RegistrationHandle:
        handle = RegistrationHandle(worker, compiled, cid)
        self._handles.add(handle)
        return handle

    def close(self) -> None:
        """The worker is closed."""
        for handle in list(self._handles):
            handle.unregister()
        self._handles.clear()
