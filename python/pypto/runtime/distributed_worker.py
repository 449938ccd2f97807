"""Prepared workers: a set of worker processes that stays, for any number of calls of its programs.

`DistributedWorker` starts them once; a call then costs what it does and nothing else. `submit` does not wait, and
gives a `DistributedRunHandle`. Two calls can be in flight; a third one first waits for the oldest. What runs where and in
which order is the library's business (`_core.Worker`): here are the checks, and who has been told of which failure.
"""

from __future__ import annotations

import os
import threading
import warnings

from .. import _core
from .._jit import _lint_of, _title
from ..errors import (
    RuntimeError as PyptoRuntimeError,
    TimeoutError as PyptoTimeoutError,
    TypeError as PyptoTypeError,
    ValueError as PyptoValueError,
)
from .._pickling import OfThisProcess
from ..ir.options import flag
from . import _telling, sub_workers
from ._numbers import is_finite, is_seconds
from .registration import RegistrationHandle, Registrations
from .run_config import RunConfig, checked_config
from .runtime_base import check_rank, close_at_exit, closed_error
from .stacked_memory import StackedMemory, check_plain

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Any, TypeAlias

    from ..ir import CompiledProgram, DistributedCompiledProgram

    # `compile` of a `@pl.jit.host` function makes the second; type checkers know that it is one of the two.
    Compiled: TypeAlias = "CompiledProgram | DistributedCompiledProgram"

_LONGEST_WAIT_S = 4e9  # a century or so; its nanoseconds fit into 64 bits
_PERSISTENT = {False: 0, "reset": 1, "keep": 2}  # pypto_persistence of worker.h


class DistributedRunHandle(OfThisProcess):
    """A call that may still be in flight. Made by `DistributedWorker.submit`; safe to use from any thread.

    It keeps the arguments alive until the call is over. Nobody needs to hold it: the call goes on without, and a
    failure that nobody has asked for is raised by the worker's `close()`.
    """

    __slots__ = ("_run", "_worker", "_told")
    _instead = "wait for it here, with result(), and pass on the outputs"

    def __init__(self, run: _core.Run, worker: DistributedWorker) -> None:
        self._run = run
        self._worker = worker
        self._told = False

    def result(self, timeout: float | None = None) -> None:
        """Waits until the call is over, `timeout` seconds at most; None is for ever. Its outputs then are in the
        tensors it was given.

        Raises what the call failed with, each time the same object; TimeoutError when the time is over and the call is
        not: it goes on, and can be asked again; ValueError for a timeout that is negative or not finite.
        """
        nanoseconds = _nanoseconds(timeout)
        try:
            over = self._run.wait(nanoseconds)
        except BaseException as error:
            self._told = self._told or error is self._run.error
            raise
        if not over:
            raise PyptoTimeoutError(
                f"the call of {self._worker!r} is not over after {timeout} seconds; it goes on"
            )
        self._told = True

    def wait(self, timeout: float | None = None) -> None:
        """The same as `result(timeout)`."""
        self.result(timeout)

    @property
    def done(self) -> bool:
        """Whether the call is over, well or not. Never waits, never raises."""
        return self._run.done

    def _has_news(self) -> bool:
        """Whether it has failed and nobody knows. What has cancelled it was raised somewhere: Ctrl-C, and SystemExit of
        threads that are left when Python ends."""
        error = self._run.error
        cancelled = isinstance(error, (KeyboardInterrupt, SystemExit))
        return error is not None and not self._told and not cancelled

    def __repr__(self) -> str:
        if not self.done:
            state = "in flight"
        else:
            state = "done" if self._run.error is None else f"failed: {type(self._run.error).__name__}"
        return f"<DistributedRunHandle {state}>"


class DistributedWorker(StackedMemory):
    """Worker processes for one or several compiled programs, which stay until `close()`.

    compiled_or_list          what `ir.compile` or `compile` of a `@pl.jit.host` function made; all for the same
                              platform and device_ids
    config                    accepted: nothing has to be warmed up
    persistent                windows stay from call to call, one set per program; calls then do not overlap
    reset_persistent_windows  whether they are zero when a call begins; None: they are
    callbacks                 {name: function}: what a host function calls in SubWorkers, instead of the functions of
                              these names; each gets one sequence of mapped arguments
    sub_worker_overrides      the former name of callbacks
    inherited_host_tensors    accepted: any tensor may be passed at any time, it need not exist now
    startup_timeout_s         seconds within which all workers have to be ready, else RuntimeError; None: 300
    shared_only               refuse tensors that would have to be copied, because they are not in shared memory
                              (TypeError); None: as the environment variable PYPTO_SHARED_ONLY says

    platform, device_ids      those that the programs were compiled for

    A context manager: `with DistributedWorker(compiled) as worker`. Any thread may call it. A host tensor of torch
    or NumPy, made at any time, is copied in before the call and back after it, as far as the program writes it; one
    in shared memory (`empty_shared`, `share_memory_()`, mapped files) is used where it is. A tensor of `alloc_tensor` or
    `alloc_stacked_tensor` stays where it is.

    Raises ValueError and TypeError for programs and options that do not go together, before anything is started;
    RuntimeError when a worker does not come up.
    """

    def __init__(
        self,
        compiled_or_list: Compiled | Iterable[Compiled],
        config: RunConfig | None = None,
        *,
        persistent: bool = False,
        reset_persistent_windows: bool | None = None,
        callbacks: Mapping[str, Callable[..., Any]] | None = None,
        sub_worker_overrides: Mapping[str, Callable[..., Any]] | None = None,
        inherited_host_tensors: Iterable[Any] | None = None,
        startup_timeout_s: float | None = None,
        shared_only: bool | None = None,
    ) -> None:
        super().__init__()
        self._closed = True  # until it is made
        self._close_complete = True
        callbacks = _merged_callbacks(callbacks, sub_worker_overrides)
        persistent = flag("persistent", persistent)
        resets = flag("reset_persistent_windows", reset_persistent_windows, optional=True)
        shared_only = flag("shared_only", shared_only, optional=True)
        if resets and not persistent:
            raise PyptoValueError("reset_persistent_windows=True requires persistent=True")
        keeps = persistent and resets is False
        self._inherited_host_tensors = _checked_inherited(inherited_host_tensors)
        startup_timeout_ns = _startup_nanoseconds(startup_timeout_s)
        checked_config(config)
        programs = _checked_programs(compiled_or_list)
        self._programs = {program: program._program for program in programs}
        first = programs[0]
        wanted = max(program._devices.num_sub_workers for program in programs)
        bound = sub_workers.bind(list(self._programs.values()), wanted, callbacks)
        self.platform: str = first.platform
        self.device_ids: list[int] = list(first._devices.device_ids)
        self._active_dispatch_handles: list[DistributedRunHandle] = []
        self._untold: DistributedRunHandle | None = None
        self._lock = threading.Lock()
        self._registrations = Registrations()
        self._process = os.getpid()
        mode = _PERSISTENT["keep" if keeps else "reset"] if persistent else _PERSISTENT[False]
        if shared_only is None:
            shared_only = bool(_core.setting("PYPTO_SHARED_ONLY"))
        self._bound = bound
        self._native = _core.Worker(
            self.device_ids,
            _title(first.name),
            mode,
            shared_only,
            bound,
            startup_timeout_ns,
        )
        for native in self._programs.values():
            self._native.load(native)
        self._closed = False
        self._close_complete = False
        close_at_exit(self)
        pids = ", ".join(map(str, self._native.pids))
        _telling.tell(_telling.INFO, "%r: workers started, processes %s", self, pids)

    # ---- calls ----

    def __call__(self, *args: Any, config: RunConfig | None = None) -> None:
        """Runs the only program with args, one per parameter, in place; blocks until every rank is done. TypeError when there
        are several. Else as `run`."""
        self._require_open("__call__")
        if len(self._programs) != 1:
            names = ", ".join(program.name for program in self._programs)
            raise PyptoTypeError(
                f"the call is ambiguous: this worker has {names}; use worker.run(compiled, ...)"
            )
        (compiled,) = self._programs
        native, arguments = self._checked(compiled, args, config)
        self._native.run(native, arguments, _lint_of(config), config and compiled._records(config))

    def run(
        self, compiled: Compiled, *args: Any, config: RunConfig | None = None
    ) -> None:
        """Runs one of the worker's programs with args, one per parameter, in place; blocks until every rank is done. Of
        config, lint and what it records count.

        Raises RuntimeError after `close()`; ValueError for a program that the worker does not have; TypeError and
        ValueError for args that do not fit, before anything runs; and DeviceError or what derives from it for a
        failure while running, which ends this call alone unless a worker process died.
        """
        self._require_open("run")
        native, arguments = self._checked(compiled, args, config)
        self._native.run(native, arguments, _lint_of(config), config and compiled._records(config))

    def submit(
        self, compiled: Compiled, *args: Any, config: RunConfig | None = None
    ) -> DistributedRunHandle:
        """The same without waiting for its end. The tensors among args must stay as they are until then.

        Two calls can be in flight: a third one waits for the oldest, whose failure its own handle tells. A call that
        reads or writes a host tensor that one in flight writes also waits for that one. What fails
        before anything runs is raised here.
        """
        self._require_open("submit")
        native, arguments = self._checked(compiled, args, config)
        records = config and compiled._records(config)
        run = self._native.submit(native, arguments, _lint_of(config), records)
        handle = DistributedRunHandle(run, self)
        with self._lock:
            self._forget_done()
            self._active_dispatch_handles.append(handle)
        return handle

    def register(self, compiled: Compiled) -> RegistrationHandle:
        """The program as a function: `worker.register(compiled)(*tensors)`. ValueError for one that the worker does not
        have."""
        self._require_open("register")
        self._require_program(compiled)
        return self._registrations.add(self, compiled, 0)

    def _require_open(self, operation: str) -> None:
        if self._closed:
            raise closed_error(f"{operation}() called after close()", "create another worker")
        if self._bound is not None:
            self._refuse_inside(operation)

    def _refuse_inside(self, operation: str) -> None:
        """Raises in a SubWorker of this worker: it would wait for itself."""
        if sub_workers.is_inside(self._bound):
            raise PyptoRuntimeError(
                f"{operation}() called in a SubWorker of {self!r}, whose call waits for it; call it when that is over"
            )

    def _require_ready(self, operation: str) -> None:
        self._require_open(operation)

    def _check_worker_id(self, worker_id: Any) -> None:
        check_rank(worker_id, len(self.device_ids))

    def _prepare_init(self, init: Any) -> Any:
        check_plain(init, "init")
        return init

    def _require_program(self, compiled: Any) -> None:
        try:
            known = compiled in self._programs
        except TypeError:  # something that cannot be hashed, such as a tensor: the program was forgotten
            known = False
        if not known:
            what = getattr(compiled, "name", type(compiled).__name__)
            raise PyptoValueError(
                f"{what} must be registered when this worker is created: "
                "DistributedWorker([first, second]) or first.prepare(extra_compiled=[second])"
            )

    def _checked(
        self, compiled: Any, args: tuple[Any, ...], config: Any
    ) -> tuple[_core.Program, tuple[Any, ...]]:
        """What the library takes, once all that can be said beforehand has been checked."""
        self._require_program(compiled)
        arguments = compiled._in_place(args)
        native = self._programs[compiled]
        self._check_residents(native, arguments, lambda i: str(compiled.parameters[i].name))
        if config is not None:
            compiled._check_config(config, stacklevel=4)
        if _telling.tells_calls:
            _telling.tell(_telling.DEBUG, "%r: a call of %s", self, compiled.name)
        return native, arguments

    def _forget_done(self) -> None:
        """Drops the handles of calls that are over; of those that failed and told nobody, it keeps the first."""
        for handle in list(self._active_dispatch_handles):
            if not handle.done:
                continue
            self._active_dispatch_handles.remove(handle)
            if handle._has_news() and self._untold is None:
                self._untold = handle

    # ---- the rest ----

    @property
    def closed(self) -> bool:
        """Whether `close()` has been called."""
        return self._closed

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers, by rank; 0 for a rank that is a thread of this process (PYPTO_TRANSPORT=threads)."""
        return list(self._native.pids)

    @property
    def domain_count(self) -> int:
        """Communication domains that have got windows so far."""
        return self._native.domain_count

    @property
    def copied_bytes(self) -> int:
        """Bytes of arguments that have been copied for the workers, or back, so far. Tensors in shared memory need no
        copy: see `empty_shared`."""
        return self._native.copied_bytes

    def reset_persistent_windows(self) -> None:
        """Makes all persistent windows zero, also those that a failed call has left in an unknown state."""
        self._require_open("reset_persistent_windows")
        self._native.reset_windows()

    def release_inherited_host_tensor_refs(self) -> None:
        """Lets go of the tensors given as inherited_host_tensors; they may be passed all the same."""
        self._inherited_host_tensors = ()

    def close(self) -> None:
        """Waits for the calls in flight, oldest first, and ends the workers. Again: does nothing.

        Raises the first failure that nobody has been told of, when all is done.
        """
        if not self._closed:
            self._refuse_inside("close")
        with self._lock:
            if self._close_complete:
                return
            if self._closed and not self._native.closed and self._closing:
                return  # another thread is at it
            self._closed = self._closing = True
        first: BaseException | None = None
        try:
            if self._process == os.getpid():
                first = self._drain()
                self._free_owned_tensors()
                self._registrations.close()
            self._native.close()
            self._close_complete = True
        finally:
            self._closing = False
        _telling.tell(_telling.INFO, "%r: workers ended", self)
        if first is not None:
            raise first

    _closing = False

    def _drain(self) -> BaseException | None:
        """Waits for all handles; the first failure that nobody has been told of."""
        with self._lock:
            handles = [self._untold, *self._active_dispatch_handles]
            self._untold = None
            self._active_dispatch_handles.clear()
        first: BaseException | None = None
        for handle in handles:
            if handle is None or (handle.done and not handle._has_news()):
                continue
            try:
                handle.result()
            except BaseException as error:
                first = first or error
        return first

    def __enter__(self) -> DistributedWorker:
        self._require_open("__enter__")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except Exception as late:
            if error is None:
                raise
            if late is not error:  # the cause is not to be hidden by what came after it
                error.add_note(f"closing the worker then raised {type(late).__name__}: {late}")

    def __repr__(self) -> str:
        names = ", ".join(program.name for program in self._programs)
        state = " closed" if self._closed else ""
        return f"<DistributedWorker {names} devices={self.device_ids}{state}>"


# ---- checks ----


def _nanoseconds(timeout: Any) -> int:
    if timeout is None:
        return -1
    if not is_seconds(timeout):
        raise PyptoTypeError(f"timeout must be seconds or None, not {type(timeout).__name__}")
    if not is_finite(timeout) or timeout < 0:
        raise PyptoValueError(f"timeout must be non-negative finite seconds, got {timeout!r}")
    return int(min(timeout, _LONGEST_WAIT_S) * 1e9)


def _startup_nanoseconds(seconds: Any) -> int:
    if seconds is None:
        return 0
    if not is_seconds(seconds) or not is_finite(seconds) or seconds <= 0:
        raise PyptoValueError(f"startup_timeout_s must be positive finite seconds, got {seconds!r}")
    return max(1, int(min(seconds, _LONGEST_WAIT_S) * 1e9))


def _merged_callbacks(callbacks: Any, overrides: Any) -> dict[str, Any]:
    if overrides is not None:
        warnings.warn(
            "sub_worker_overrides is deprecated; use callbacks", DeprecationWarning, stacklevel=3
        )
    for name, given in (("callbacks", callbacks), ("sub_worker_overrides", overrides)):
        if given is not None and not hasattr(given, "keys"):
            raise PyptoTypeError(
                f"{name} must be a mapping of names to functions, not {type(given).__name__}"
            )
    merged: dict[str, Any] = {**(overrides or {}), **(callbacks or {})}
    sub_workers.check_callbacks(merged)
    return merged


def _checked_inherited(tensors: Iterable[Any] | None) -> tuple[Any, ...]:
    if tensors is not None and (hasattr(tensors, "shape") or not hasattr(tensors, "__iter__")):
        raise PyptoTypeError(
            f"inherited_host_tensors must be a list of tensors, not {type(tensors).__name__}"
        )
    kept = () if tensors is None else tuple(tensors)
    for i, tensor in enumerate(kept):
        if type(tensor).__module__.partition(".")[0] != "torch" or not hasattr(tensor, "data_ptr"):
            raise PyptoTypeError(
                f"inherited_host_tensors[{i}] must be a torch.Tensor, not {type(tensor).__name__}"
            )
        if tensor.device.type != "cpu" or not tensor.is_contiguous():
            raise PyptoValueError(
                f"inherited_host_tensors[{i}] must be a contiguous CPU tensor; it is "
                f"{tensor.device}, strides {tuple(tensor.stride())}"
            )
    return kept


def listed(programs: Any) -> list[Any]:
    """One thing or several, as a list."""
    if isinstance(programs, (str, bytes, dict)) or getattr(programs, "shape", None) is not None:
        return [programs]  # things that are no list of programs
    try:
        return list(programs)
    except TypeError:
        return [programs]


def _checked_programs(compiled_or_list: Any) -> list[DistributedCompiledProgram]:
    from ..ir import DistributedCompiledProgram

    programs = listed(compiled_or_list)
    if not programs:
        raise PyptoValueError("DistributedWorker needs at least one compiled program")
    for program in programs:
        if not isinstance(program, DistributedCompiledProgram):
            raise PyptoTypeError(
                "DistributedWorker and prepare(extra_compiled=) take compiled programs with a host function "
                f"(DistributedCompiledProgram), not {type(program).__name__}"
            )
    first = programs[0]
    for other in programs[1:]:
        if other.platform != first.platform:
            raise PyptoValueError(
                "all programs of a worker must be for the same platform: "
                f"{first.name} is for {first.platform!r}, {other.name} for {other.platform!r}"
            )
        ids, others = first._devices.device_ids, other._devices.device_ids
        if ids != others:
            raise PyptoValueError(
                "all programs of a worker must have the same device_ids: "
                f"{first.name} has {ids}, {other.name} {others}"
            )
        for runtime, another in (
            (first.runtime_name, other.runtime_name),
            (first._devices.runtime, other._devices.runtime),
        ):
            if runtime != another:
                raise PyptoValueError(
                    "all programs of a worker must have the same runtime: "
                    f"{first.name} has {runtime!r}, {other.name} {another!r}"
                )
    return programs
