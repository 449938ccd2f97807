"""What workers that keep tensors for their ranks have in common.

`Worker` is the abstract base: a subclass says how memory is allocated, freed and copied, and gets tensors on top of
that. A tensor that was given out is tracked by rank and address until it is freed. Whether a tensor is the one that
lives at its address, or an earlier one of the same address, is told by the allocation object that it carries.

`MemoryWorker` is the base of the workers of this package: memory of the worker set (`_core.Worker`).
"""

from __future__ import annotations

import atexit
import operator
import threading
import weakref
from abc import ABC, abstractmethod

from .. import _core
from .._dtypes import checked_dtype
from .._pickling import NeverChanged, OfThisProcess
from ..errors import (
    DeviceError,
    IndexError as PyptoIndexError,
    TypeError as PyptoTypeError,
    ValueError as PyptoValueError,
)
from . import host_memory
from ._numbers import checked_bytes, is_int
from .device_tensor import (
    RESIDENT,
    DeviceTensor,
    checked_shape,
    size_of,
)

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    class Closable(Protocol):
        def close(self) -> None: ...

_CLOSED = "PYPTO-H410"


class Worker(OfThisProcess, ABC):
    """Base of `DistributedWorker` and `ChipWorker`: what runs programs and keeps tensors between calls.

    Sizes (nbytes) are bytes, pointers (ptr, dst_dev_ptr and so on) are addresses as ints, worker_id is a rank.
    """

    _instead = "pass on what it was made from, as output_dir of its programs, and make another one there"

    def __init__(self) -> None:
        # What alloc_tensor() has given out, by rank and address.
        self._owned_tensors: dict[tuple[int, int], DeviceTensor] = {}

    # ---- what a subclass says ----

    @abstractmethod
    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Memory of a rank: its address. Its content is undefined."""

    @abstractmethod
    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Frees what malloc() gave for that rank."""

    @abstractmethod
    def copy_to(
        self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0
    ) -> None:
        """Copies nbytes from src_host_ptr, memory of the caller, to dst_dev_ptr, which malloc() gave."""

    @abstractmethod
    def copy_from(
        self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0
    ) -> None:
        """Copies nbytes from src_dev_ptr, which malloc() gave, to dst_host_ptr, memory of the caller."""

    @abstractmethod
    def run(self, compiled: Any, *args: Any, config: Any = None) -> Any:
        """Runs a compiled program with args, and waits for its end. config is a RunConfig or None."""

    @abstractmethod
    def register(self, compiled: Any) -> Any:
        """A compiled program as a function: a `RegistrationHandle`."""

    def _require_ready(self, operation: str) -> None:
        """Raises unless the worker can be used now."""

    def _prepare_init(self, init: Any) -> Any:
        """The tensor to upload in the place of `init`, which has the right shape and dtype."""
        return init

    def _buffer_for_ptr(self, ptr: int, *, worker_id: int = 0) -> Any:
        """The allocation at an address, for DeviceTensor.buffer; None where there are no such objects."""
        return None

    def _upload(self, ptr: int, source: int, nbytes: int, worker_id: int) -> None:
        """Fills memory that nobody else knows yet."""
        self.copy_to(ptr, source, nbytes, worker_id=worker_id)

    def _release(self, ptr: int, worker_id: int) -> None:
        """Frees memory of a worker that is about to end."""
        self.free(ptr, worker_id=worker_id)

    # ---- tensors ----

    def alloc_tensor(
        self, shape: Any, dtype: Any, *, init: Any = None, worker_id: int = 0
    ) -> DeviceTensor:
        """A tensor in the memory of a rank, which stays there until `free_tensor` or `close`.

        shape, dtype   of the tensor; dtype of torch, of NumPy, one such as pl.FP32, or a name
        init           a host tensor of that shape and dtype, copied in now; without it the content is undefined
        worker_id      the rank

        Programs get it in place, without a copy either way; `copy_from` brings back what is in it.

        Raises TypeError for what is no shape, dtype or tensor, ValueError for extents below 1 and an init that does not
        fit, IndexError for a rank that there is not, MemoryError when the machine does not have the memory.
        """
        self._require_ready("alloc_tensor")
        shape = checked_shape(shape)
        dtype = checked_dtype(dtype)
        if init is not None:
            host_memory.check_tensor(init, "init")
            if tuple(init.shape) != shape or not host_memory.has_dtype(init, dtype):
                raise PyptoValueError(
                    f"init must have shape {shape} and dtype {dtype}; "
                    f"it has shape {tuple(init.shape)} and dtype {init.dtype}"
                )
            init = self._prepare_init(init)
        nbytes = size_of(shape, dtype)
        ptr = self.malloc(nbytes, worker_id=worker_id)
        try:
            if init is not None:
                self._upload(ptr, host_memory.address_of(init), nbytes, worker_id)
            buffer = self._buffer_for_ptr(ptr, worker_id=worker_id)
            tensor = DeviceTensor(ptr, shape, dtype, buffer=buffer)
        except BaseException:
            self.free(ptr, worker_id=worker_id)
            raise
        self._owned_tensors[worker_id, ptr] = tensor
        return tensor

    def free_tensor(self, tensor: DeviceTensor, *, worker_id: int = 0) -> None:
        """Frees a tensor that alloc_tensor() gave for the rank worker_id, when the calls in flight are over. Again: does
        nothing.

        Raises ValueError for a tensor of another rank, and for one whose address belongs to a newer tensor.
        """
        self._require_ready("free_tensor")
        if not isinstance(tensor, DeviceTensor):
            raise PyptoTypeError(
                f"free_tensor() takes a DeviceTensor, not {type(tensor).__name__}"
            )
        _check_id(worker_id)
        tracked = self._owned_tensors.get((worker_id, tensor.data_ptr))
        if tracked is None:
            self._check_freed(tensor, worker_id)
            return
        if not _is_same(tracked, tensor):
            raise PyptoValueError(
                f"stale DeviceTensor: it was freed, and {tensor.data_ptr:#x} now is {tracked!r}"
            )
        self.free(tensor.data_ptr, worker_id=worker_id)
        self._owned_tensors.pop((worker_id, tensor.data_ptr), None)

    def _check_freed(self, tensor: DeviceTensor, worker_id: int) -> None:
        """Nothing is tracked there: it must have been freed, and not be somebody else's."""
        for owner, ptr in list(self._owned_tensors):
            if ptr == tensor.data_ptr and _is_same(self._owned_tensors[owner, ptr], tensor):
                raise PyptoValueError(
                    f"worker_id={worker_id} does not match the owning worker: the tensor lies on rank {owner}"
                )

    def _free_owned_tensors(self) -> None:
        """At the end: those that were forgotten. A line for the debugger's log, a warning when one cannot be freed."""
        forgotten = list(self._owned_tensors.items())
        if forgotten:
            import logging

            log = logging.getLogger(__name__)
        for (worker_id, ptr), tensor in forgotten:
            try:
                self._release(ptr, worker_id)
                log.debug("freed %r of rank %d, which was still there", tensor, worker_id)
            except Exception as error:
                log.warning("leaking %r of rank %d, which cannot be freed: %s", tensor, worker_id, error)
        self._owned_tensors.clear()


def _is_same(tracked: DeviceTensor, tensor: DeviceTensor) -> bool:
    """Whether two descriptions are of one allocation, not only of one address."""
    if tracked.buffer is not None or tensor.buffer is not None:
        return tracked.buffer is tensor.buffer
    return tracked is tensor


class Allocation(NeverChanged):
    """A block of memory of a rank; `DeviceTensor.buffer` of what lies in it.

    base, nbytes   where it is, and how large
    worker_id      the rank
    """

    __slots__ = ("base", "nbytes", "worker_id", "_owner")
    _instead = "copy it to a host tensor first: worker.copy_from(...); a description without buffer can be pickled"

    def __init__(self, base: int, nbytes: int, worker_id: int, owner: Any) -> None:
        self.base: int = base
        self.nbytes: int = nbytes
        self.worker_id: int = worker_id
        self._owner = weakref.ref(owner)

    def tensor(self, shape: Any, dtype: Any) -> DeviceTensor:
        """The same memory, from its first byte, as a tensor of another shape or dtype. It lives as long as the allocation.
        ValueError when it is larger."""
        made = DeviceTensor(self.base, shape, dtype, buffer=self)
        if made.nbytes > self.nbytes:
            raise PyptoValueError(
                f"a tensor of shape {made.shape} and dtype {dtype} has {made.nbytes} bytes, "
                f"the allocation {self.nbytes}"
            )
        return made

    def __repr__(self) -> str:
        return f"<Allocation {self.base:#x} {self.nbytes} bytes on rank {self.worker_id}>"


class MemoryWorker(Worker):
    """A worker whose memory is that of a worker set."""

    _native: _core.Worker

    def __init__(self) -> None:
        super().__init__()
        self._device_buffers: dict[tuple[int, int], Allocation] = {}
        self._memory_state = object()  # another one behind each free

    def _check_worker_id(self, worker_id: Any) -> None:
        """Raises for a rank that there is not."""
        raise NotImplementedError

    # ---- memory ----

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Memory of the rank worker_id: its address. Its content is undefined; it stays until `free` or `close`.

        Raises ValueError unless nbytes is a positive int, IndexError for a rank that there is not, MemoryError when the
        machine does not have the memory.
        """
        self._require_ready("malloc")
        self._check_worker_id(worker_id)
        _check_positive(nbytes, "nbytes")
        ptr = self._native.alloc(worker_id, checked_bytes(nbytes))
        allocation = Allocation(ptr, operator.index(nbytes), operator.index(worker_id), self)
        self._device_buffers[worker_id, ptr] = allocation
        return ptr

    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Frees what `malloc` gave as `ptr` for the rank worker_id, when the calls in flight are over. ValueError for any
        other address."""
        self._require_ready("free")
        self._allocation(ptr, worker_id, "ptr")
        self._release(ptr, worker_id)
        self._owned_tensors.pop((worker_id, ptr), None)

    def _release(self, ptr: int, worker_id: int) -> None:
        self._memory_state = object()
        self._native.free(worker_id, operator.index(ptr))
        self._device_buffers.pop((worker_id, ptr), None)

    def copy_to(
        self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0
    ) -> None:
        """Copies nbytes from an address of this process into memory of the rank worker_id, when the calls in flight are over.

        dst_dev_ptr    what `malloc` gave for that rank, or the data_ptr of a tensor; ValueError for any other
                       address, and for more bytes than are there
        src_host_ptr   taken as it is: an address that is none crashes the process
        """
        self._require_ready("copy_to")
        self._check_copy("src_host_ptr", src_host_ptr, "dst_dev_ptr", dst_dev_ptr, nbytes, worker_id)
        self._native.copy(*map(operator.index, (dst_dev_ptr, src_host_ptr, nbytes)))

    def copy_from(
        self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0
    ) -> None:
        """Copies nbytes from src_dev_ptr, memory of the rank worker_id, to dst_host_ptr, an address of this process; as
        `copy_to`, the other way."""
        self._require_ready("copy_from")
        self._check_copy("dst_host_ptr", dst_host_ptr, "src_dev_ptr", src_dev_ptr, nbytes, worker_id)
        self._native.copy(*map(operator.index, (dst_host_ptr, src_dev_ptr, nbytes)))

    def committed_device_memory(self, worker_id: int = 0) -> int:
        """Bytes that the rank worker_id has given out and not got back."""
        self._require_ready("committed_device_memory")
        self._check_worker_id(worker_id)
        return self._native.committed(worker_id)

    def _upload(self, ptr: int, source: int, nbytes: int, worker_id: int) -> None:
        self._native.fill(ptr, source, nbytes)

    def _buffer_for_ptr(self, ptr: int, *, worker_id: int = 0) -> Allocation | None:
        return self._device_buffers.get((worker_id, ptr))

    def _check_freed(self, tensor: DeviceTensor, worker_id: int) -> None:
        super()._check_freed(tensor, worker_id)
        owner = tensor.buffer._owner() if isinstance(tensor.buffer, Allocation) else self
        if owner not in (None, self):
            raise PyptoValueError(
                f"{tensor!r} is not a live allocation owned by this {type(self).__name__}: it belongs to another worker"
            )

    def _allocation(self, ptr: Any, worker_id: Any, name: str) -> Allocation:
        _check_id(worker_id)
        found = self._device_buffers.get((worker_id, ptr)) if is_int(ptr) else None
        if found is None:
            raise PyptoValueError(
                f"{name}={ptr!r} is not the base address of a live allocation of worker_id={worker_id!r}: "
                "it may be an interior pointer, freed, or of another rank or worker"
            )
        return found

    def _check_copy(
        self, host_name: str, host: Any, name: str, ptr: Any, nbytes: Any, worker_id: Any
    ) -> None:
        _check_positive(nbytes, "nbytes")
        _check_positive(host, host_name)
        if host >= 2**64:
            raise PyptoValueError(f"{host_name}={host:#x} is no address")
        allocation = self._allocation(ptr, worker_id, name)
        if nbytes > allocation.nbytes:
            raise PyptoValueError(
                f"nbytes: {nbytes} bytes are more than the {allocation.nbytes} of the allocation"
            )

    # ---- arguments of calls ----

    def _check_residents(
        self, program: _core.Program, arguments: tuple[Any, ...], name_of: Callable[[int], str]
    ) -> None:
        """Refuses resident tensors that are not of this worker or do not live any more; `name_of` gives the names of
        parameters. What has been found good stays so until something is freed. Where something has to be looked at, so
        are the kinds of all arguments: who has both wrong learns of those first."""
        state = self._memory_state
        unknown = [
            (i, argument)
            for i, argument in enumerate(arguments)
            if isinstance(argument, RESIDENT) and argument._good_in is not state
        ]
        if unknown:
            program.check_kinds(arguments)
        for i, argument in unknown:
            what = f"argument '{name_of(i)}'"
            if isinstance(argument, DeviceTensor):
                self._check_resident(argument, what, None)
            else:
                for k, shard in enumerate(argument.shards):
                    self._check_resident(shard, f"{what}: shard {k}", argument.worker_ids[k])
            object.__setattr__(argument, "_good_in", state)

    def _check_resident(self, tensor: DeviceTensor, what: str, worker_id: int | None) -> None:
        kind = type(self).__name__
        if tensor.buffer is None:
            raise PyptoTypeError(
                f"{what} is a raw-pointer DeviceTensor, which nobody vouches for; pass what the "
                f"same {kind}.alloc_tensor() gave"
            )
        rank: Any = getattr(tensor.buffer, "worker_id", None) if worker_id is None else worker_id
        if self._device_buffers.get((rank, tensor.data_ptr)) is not tensor.buffer:
            raise PyptoValueError(
                f"{what} is not a live allocation owned by this {kind}"
                + self._why_not(tensor, rank)
            )
        if tensor.nbytes > tensor.buffer.nbytes:
            raise PyptoValueError(
                f"{what} has {tensor.nbytes} bytes, its allocation {tensor.buffer.nbytes}"
            )

    def _why_not(self, tensor: DeviceTensor, rank: Any) -> str:
        allocation = tensor.buffer
        if not isinstance(allocation, Allocation):
            return ""
        owner = allocation._owner()
        if owner is not None and owner is not self:
            return ": it belongs to another worker"
        if rank != allocation.worker_id:
            return f" for rank {rank}: it lies on rank {allocation.worker_id}"
        return ": it was freed"


def _check_positive(value: Any, name: str) -> None:
    if not is_int(value) or value <= 0:
        raise PyptoValueError(f"{name} must be a positive int, got {value!r}")


def _check_id(worker_id: Any) -> None:
    if not is_int(worker_id):
        raise PyptoTypeError(f"worker_id must be an int, got {worker_id!r}")


def check_rank(worker_id: Any, count: int) -> None:
    """For workers of several ranks."""
    _check_id(worker_id)
    if not 0 <= worker_id < count:
        raise PyptoIndexError(
            f"worker_id {worker_id} is out of range: this worker has ranks 0 to {count - 1}"
        )


_live: weakref.WeakSet[Closable] = weakref.WeakSet()


def close_at_exit(worker: Closable) -> None:
    """Workers that are still there when the process ends are closed then; whatever is in flight ends first, unless it
    is a call of a daemon thread: those are cancelled."""
    _live.add(worker)


@atexit.register
def _close_all() -> None:
    # Only daemon threads are left. What they call or wait for may never end.
    _core.abandon([t.ident for t in threading.enumerate() if t.daemon and t.ident is not None])
    first: BaseException | None = None
    for worker in list(_live):
        try:
            worker.close()
        except (KeyboardInterrupt, SystemExit):
            pass  # somebody has wanted that calls end, and knows
        except BaseException as error:
            first = first or error  # when the others are closed, too
    if first is not None:
        raise first


def closed_error(message: str, hint: str) -> BaseException:
    """The error for a use of what has been closed; a daemon thread that is left at the end of Python ends without one."""
    if _core.is_abandoned():
        return SystemExit()
    try:
        _core.refuse(_CLOSED, message, hint, None, 0, 0, 0, None)
    except DeviceError as error:
        return error
    raise AssertionError("refuse() raises")
