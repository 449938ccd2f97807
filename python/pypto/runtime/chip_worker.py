"""ChipWorker: a worker that stays, for programs without a host function, which run on one device."""

from __future__ import annotations

import os
import threading
from contextvars import ContextVar

from .. import _core
from .._jit import _lint_of, _title
from ..errors import (
    DeviceError,
    TypeError as PyptoTypeError,
    ValueError as PyptoValueError,
)
from ..ir.options import flag
from . import host_memory
from ._numbers import is_int
from .registration import RegistrationHandle, Registrations
from .run_config import RunConfig, checked_config
from .runtime_base import MemoryWorker, close_at_exit, closed_error

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from .device_tensor import DeviceTensor

_LEVEL = 2
RUNTIME = "tensormap_and_ringbuffer"

# Workers that `with` has published, innermost last.
_active: ContextVar[tuple[ChipWorker, ...]] = ContextVar("pypto_chip_workers", default=())


class ChipWorker(MemoryWorker):
    """A worker for one device, which stays until `close()`: for `CompiledProgram`s and `@pl.jit` functions.

    config       its platform and device_id are those of the worker; None is RunConfig()
    level        2: one device
    runtime      compared with that of programs
    enable_sdma  recorded, for `current(require_sdma=True)`
    auto_init    False leaves the start to `init()`
    platform, device_id   what config said

    Inside of `with worker:` calls of programs for the same platform and device run on it by themselves; the end of the
    block closes it. Any thread may call it; calls take turns. Its rank is 0, so worker_id is always 0.

    Raises ValueError for another level, TypeError for what is no RunConfig.
    """

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        level: int = _LEVEL,
        runtime: str = RUNTIME,
        enable_sdma: bool = False,
        auto_init: bool | None = None,
    ) -> None:
        super().__init__()
        if not is_int(level) or level != _LEVEL:
            raise PyptoValueError(f"ChipWorker only supports level=2, got {level!r}")
        config = checked_config(config) or RunConfig()
        self.level: int = level
        self.platform: str = config.platform
        self.device_id: int = config.device_id
        self.runtime: str = runtime
        if not isinstance(runtime, str):
            raise PyptoTypeError(f"runtime must be a name, got {runtime!r}")
        self.enable_sdma: bool = flag("enable_sdma", enable_sdma)
        self._lock = threading.Lock()
        self._initialized = False
        self._cids: dict[_core.Program, int] = {}
        self._registrations = Registrations()
        if flag("auto_init", auto_init, optional=True) is not False:
            self.init()

    # ---- its life ----

    @property
    def initialized(self) -> bool:
        """Whether it runs: after init(), before close(), and not when its process has died."""
        return self._initialized and self._native.usable

    def init(self) -> None:
        """Starts it; again, does nothing. After close(), and when its process has died, it starts anew, without tensors
        and programs."""
        if self._initialized and self._process == os.getpid() and not self._native.usable:
            self.close()
        with self._lock:
            if not self._initialized:
                self._native = _core.Worker([self.device_id], _title("ChipWorker"), 0, False)
                self._process = os.getpid()
                self._initialized = True
                close_at_exit(self)

    def close(self) -> None:
        """Ends it: forgotten tensors are freed, handles closed. Again: does nothing."""
        with self._lock:
            if not self._initialized:
                return
            if self._process == os.getpid():  # a child of fork() owns none of it
                self._free_owned_tensors()
            self._initialized = False
            self._device_buffers.clear()
            self._memory_state = object()
            self._cids.clear()
            self._registrations.close()
            native = self._native
        native.close()

    def _require_ready(self, operation: str) -> None:
        if not self._initialized:
            raise closed_error(
                f"{operation}() needs an initialized ChipWorker: it is closed, or was made with auto_init=False",
                "call init()",
            )

    def _require_alive(self, operation: str) -> None:
        """Its memory can still be read when its process has died."""
        self._require_ready(operation)
        if self._process == os.getpid() and not self._native.usable:
            raise closed_error(
                f"{operation}() needs an initialized ChipWorker: the process of this one has died",
                "call init(), which starts it anew, without tensors and programs",
            )

    # ---- the worker of a scope ----

    @staticmethod
    def current(
        *,
        level: int = _LEVEL,
        platform: str,
        device_id: int,
        runtime: str = RUNTIME,
        require_sdma: bool = False,
    ) -> ChipWorker | None:
        """The innermost worker that an enclosing `with` has published and nobody has closed, of those whose level, platform,
        device_id and runtime are these; or None.

        require_sdma   RuntimeError when that worker was made without enable_sdma=True
        """
        for worker in reversed(_active.get()):
            if worker._key() != (level, platform, device_id, runtime) or not worker._initialized:
                continue
            if require_sdma and not worker.enable_sdma:
                raise DeviceError(f"{worker!r} was created without enable_sdma=True")
            return worker
        return None

    def _key(self) -> tuple[int, str, int, str]:
        return self.level, self.platform, self.device_id, self.runtime

    def __enter__(self) -> ChipWorker:
        for other in _active.get():
            if other._key() == self._key():
                raise PyptoValueError(
                    f"{other!r} is already active in an enclosing scope, for the same level, platform, "
                    "device_id and runtime"
                )
        self.init()
        _active.set((*_active.get(), self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _active.set(tuple(worker for worker in _active.get() if worker is not self))
        self.close()

    # ---- programs ----

    def run(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> Any:
        """Runs a program as `compiled(*args, config=config)` does, on this worker, and returns what that returns.

        Raises ValueError when the program is for another platform or runtime, TypeError when it has a host function,
        RuntimeError before `init()` and after `close()`, and what the program fails with.
        """
        self._require_alive("run")
        program = self._checked(compiled)
        whole, result = program._completed(args)
        program._check_config(config, stacklevel=3)
        self._check_device(config)
        self._run_whole(program, whole, config)
        return result

    def register(self, compiled: Any) -> RegistrationHandle:
        """Loads a compiled program now; gives it as a function. The same program again has the same `cid`. Raises what `run`
        does before anything runs."""
        self._require_alive("register")
        return self._registrations.add(self, compiled, self._load(self._checked(compiled)._program))

    @property
    def aicpu_dlopen_count(self) -> int:
        """How many programs the worker has loaded."""
        return len(self._cids)

    @property
    def host_dlopen_count(self) -> int:
        """How many of them this process has opened: all."""
        return len(self._cids)

    def _checked(self, compiled: Any) -> Any:
        """What the program starts with, once it is known to fit."""
        from ..ir.compiled_program import CompiledProgram, Orchestration

        if isinstance(compiled, CompiledProgram):
            compiled = compiled._only("a call of a ChipWorker")
        if not isinstance(compiled, Orchestration):
            raise PyptoTypeError(
                "ChipWorker runs programs without a host function (CompiledProgram), not "
                f"{type(compiled).__name__}; those with one have compiled.prepare()"
            )
        if compiled.platform != self.platform:
            raise PyptoValueError(
                f"{compiled.name} was compiled for platform {compiled.platform!r}, this ChipWorker is for "
                f"platform {self.platform!r}"
            )
        runtime = getattr(compiled, "runtime_name", RUNTIME)
        if runtime != self.runtime:
            raise PyptoValueError(
                f"{compiled.name} was compiled for runtime {runtime!r}, this ChipWorker is for runtime {self.runtime!r}"
            )
        return compiled

    def _check_device(self, config: RunConfig | None) -> None:
        """A configuration that names another device is not meant for this worker. Device 0 may be nobody's choice."""
        if config is not None and config.device_id not in (0, self.device_id):
            import warnings

            warnings.warn(
                f"the call's device_id={config.device_id} has no effect on {self!r}", stacklevel=3
            )

    def _load(self, native: _core.Program) -> int:
        with self._lock:
            if native not in self._cids:
                self._native.load(native)
                self._cids[native] = len(self._cids)
            return self._cids[native]

    def _run_whole(self, program: Any, arguments: tuple[Any, ...], config: Any) -> None:
        """A call of an Orchestration with one argument per parameter."""
        names = program.param_names
        records = program._records(config)
        self._run_native(
            program._program, arguments, _lint_of(config), records, names.__getitem__
        )

    def _run_native(
        self,
        native: _core.Program,
        arguments: tuple[Any, ...],
        lint: int,
        records: tuple[Any, ...] | None,
        name_of: Callable[[int], str],
    ) -> None:
        """A call whose arguments are complete; `name_of` gives the names of parameters."""
        self._require_alive("run")
        self._check_residents(native, arguments, name_of)
        self._load(native)
        self._native.run(native, arguments, lint, records)

    # ---- memory ----

    def _check_worker_id(self, worker_id: Any) -> None:
        if not is_int(worker_id) or worker_id != 0:
            raise PyptoValueError(f"ChipWorker only supports worker_id=0, got {worker_id!r}")

    def _allocation(self, ptr: Any, worker_id: Any, name: str) -> Any:
        self._check_worker_id(worker_id)
        return super()._allocation(ptr, worker_id, name)

    def free_tensor(self, tensor: DeviceTensor, *, worker_id: int = 0) -> None:
        """Frees a tensor that alloc_tensor() gave. Again: does nothing. ValueError for another worker_id than 0 and for a
        tensor of another worker."""
        self._require_ready("free_tensor")
        self._check_worker_id(worker_id)
        super().free_tensor(tensor, worker_id=worker_id)

    def _prepare_init(self, init: Any) -> Any:
        return host_memory.plain_copy(init)

    def __repr__(self) -> str:
        state = "" if self.initialized else " not initialized"
        return f"<ChipWorker {self.platform} device={self.device_id}{state}>"
