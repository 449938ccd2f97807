"""Resident tensors: memory that a worker keeps for its ranks, described.

A `DeviceTensor` is one block on one rank, a `StackedDeviceTensor` a block per row, each on a rank of its own. Both
are plain descriptions. Whether the memory lives is the business of the worker that gave it out (runtime_base.py).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

from .._dtypes import checked_dtype, element_bytes, element_of, same_element
from ..errors import (
    IndexError as PyptoIndexError,
    TypeError as PyptoTypeError,
    ValueError as PyptoValueError,
)
from ._numbers import is_int

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


@dataclass(frozen=True)
class DeviceTensor:
    """A tensor in the memory of a rank, made by `alloc_tensor` of a worker; only such ones can be passed to programs.

    data_ptr   address of its first byte
    shape      tuple of positive ints; row-major, without gaps
    dtype      its element type, as it was given: of torch, of NumPy, or one such as pl.FP32. Of a name, such as "float32",
               it is what the name stands for
    buffer     the allocation that it lies in; None when nobody vouches for the address
    nbytes     how much memory it is

    Raises ValueError or TypeError for a pointer, shape or dtype that cannot be, and for a buffer of another address.
    """

    # What the extension looks for; it reads data_ptr, shape and _element.
    __pypto_kind__ = "resident"

    data_ptr: int
    shape: tuple[int, ...]
    dtype: Any
    buffer: Any = field(default=None, kw_only=True, compare=False, repr=False)

    _good_in = None  # the state of a worker's memory in which it was found to be there (MemoryWorker)
    if TYPE_CHECKING:
        _element: str | None
        _nbytes: int

    def __post_init__(self) -> None:
        if not is_int(self.data_ptr) or self.data_ptr <= 0:
            raise PyptoValueError(f"data_ptr must be a positive int, got {self.data_ptr!r}")
        object.__setattr__(self, "shape", checked_shape(self.shape))
        object.__setattr__(self, "dtype", checked_dtype(self.dtype))
        if self.buffer is not None:
            _check_buffer(self.buffer, self.data_ptr)
        # What each call asks for is worked out once.
        element = element_of(self.dtype)
        object.__setattr__(self, "_element", None if element is None else element.name)
        object.__setattr__(self, "_nbytes", size_of(self.shape, self.dtype))

    @property
    def nbytes(self) -> int:
        """How much memory it is, in bytes."""
        return self._nbytes


@dataclass(frozen=True)
class StackedDeviceTensor:
    """A tensor [B, ...] whose row i is a `DeviceTensor` on rank worker_ids[i]. Made by
    `DistributedWorker.alloc_stacked_tensor`.

    shards      the rows, in order
    full_shape  of the whole; `shape` is the same
    worker_ids  the rank of each row, all distinct
    dtype       of all rows

    x[i], and x[i, ...] with nothing but full extents behind the index, is row i.
    """

    __pypto_kind__ = "resident"

    shards: tuple[DeviceTensor, ...]
    full_shape: tuple[int, ...]
    worker_ids: tuple[int, ...]

    _good_in = None
    if TYPE_CHECKING:
        _element: str | None

    def __post_init__(self) -> None:
        for name, of in (("shards", "DeviceTensors"), ("worker_ids", "ranks")):
            object.__setattr__(self, name, as_tuple(getattr(self, name), name, of))
        object.__setattr__(self, "full_shape", checked_stack_shape(self.full_shape))
        count = self.full_shape[0]
        if len(self.shards) != count:
            raise PyptoValueError(
                f"a stacked tensor of shape {self.full_shape} has {count} shards, got {len(self.shards)}"
            )
        check_worker_ids(self.worker_ids, count)
        for i, shard in enumerate(self.shards):
            if not isinstance(shard, DeviceTensor):
                raise PyptoTypeError(
                    f"shard {i} must be a DeviceTensor, not {type(shard).__name__}"
                )
            if shard.shape != self.full_shape[1:]:
                raise PyptoValueError(
                    f"shard {i} has shape {shard.shape}; the per-shard shape of {self.full_shape} "
                    f"is {self.full_shape[1:]}"
                )
            if not same_element(shard.dtype, self.shards[0].dtype):
                raise PyptoValueError(
                    f"all shards must have one dtype: shard 0 is {self.shards[0].dtype}, "
                    f"shard {i} {shard.dtype}"
                )
        object.__setattr__(self, "_element", self.shards[0]._element)

    @property
    def shape(self) -> tuple[int, ...]:
        """The same as full_shape."""
        return self.full_shape

    @property
    def dtype(self) -> Any:
        """The element type of all rows, as it was given."""
        return self.shards[0].dtype

    @property
    def nbytes(self) -> int:
        """How much memory all rows are, in bytes."""
        return sum(shard.nbytes for shard in self.shards)

    def __len__(self) -> int:
        """How many rows it has."""
        return len(self.shards)

    def __getitem__(self, index: Any) -> DeviceTensor:
        """Row `index`: an int from 0 on, alone or followed by full slices or an Ellipsis. Raises TypeError, IndexError or
        ValueError for anything else."""
        first, *rest = index if isinstance(index, tuple) and index else (index,)
        if not is_int(first):
            raise PyptoTypeError(
                f"the leading index of a stacked tensor must be an int, got {first!r}"
            )
        row: int = operator.index(first)
        if not 0 <= row < len(self.shards):
            raise PyptoIndexError(f"shard {row} is out of range: there are {len(self.shards)}")
        self._check_whole(rest)
        return self.shards[row]

    def _check_whole(self, rest: list[Any]) -> None:
        """What stands behind the leading index must leave the row as it is."""
        extents = self.full_shape[1:]
        dots = sum(part is Ellipsis for part in rest)
        if dots > 1:
            raise PyptoIndexError("a subscript can have at most one Ellipsis")
        if len(rest) - dots > len(extents):
            raise PyptoIndexError(
                f"too many indices: {len(rest) - dots + 1} for a tensor of {len(self.full_shape)} dimensions"
            )
        at = next((i for i, part in enumerate(rest) if part is Ellipsis), len(rest))
        behind = rest[at + 1 :]
        pairs = [*zip(rest[:at], extents), *zip(behind, extents[len(extents) - len(behind) :])]
        for part, extent in pairs:
            if not isinstance(part, slice) or part.indices(extent) != (0, extent, 1):
                raise PyptoValueError(
                    f"only whole-shard views can be taken: {part!r} is not all of an extent of {extent}"
                )


RESIDENT = (DeviceTensor, StackedDeviceTensor)


def refuse_in_one_shot(name: str, arguments: Iterable[Any]) -> None:
    """The workers of a one-shot call of a host function own no tensors."""
    if any(isinstance(argument, RESIDENT) for argument in arguments):
        raise PyptoTypeError(
            f"{name}: resident tensors belong to a worker that stays. Use compiled.prepare(), "
            "worker.alloc_tensor() or worker.alloc_stacked_tensor(), and call the same prepared DistributedWorker"
        )


def refuse_without_worker(
    name: str, arguments: tuple[Any, ...], check_kinds: Callable[[tuple[Any, ...]], None]
) -> None:
    """The same of a call that runs on one device, with no ChipWorker around it."""
    residents = [argument for argument in arguments if isinstance(argument, RESIDENT)]
    if residents:
        check_kinds(arguments)
    for argument in residents:
        if isinstance(argument, DeviceTensor) and argument.buffer is None:
            raise PyptoTypeError(
                f"{name}: a raw-pointer DeviceTensor, which nobody vouches for, cannot be passed; pass what "
                "ChipWorker.alloc_tensor() gave"
            )
        raise PyptoValueError(
            f"{name}: {argument!r} is not a live allocation owned by this ChipWorker: the call has one of its own; use "
            "worker.run(compiled, ...), or `with worker:` around the call"
        )


# ---- checks ----


def as_tuple(values: Any, name: str, of: str) -> tuple[Any, ...]:
    """A sequence that the caller gives. What has no order is none, and the characters of a text are not meant."""
    try:
        if isinstance(values, (str, bytes, dict, set, frozenset)):
            raise TypeError
        return tuple(values)
    except TypeError:
        raise PyptoTypeError(f"{name} must be a sequence of {of}, got {values!r}") from None


def _extents(shape: Any) -> tuple[Any, ...]:
    """A single int is the shape of a vector."""
    return (shape,) if is_int(shape) else as_tuple(shape, "shape", "ints")


def checked_shape(shape: Any) -> tuple[int, ...]:
    extents = _extents(shape)
    if not extents:
        raise PyptoValueError("shape must be non-empty")
    for extent in extents:
        if not is_int(extent):
            raise PyptoTypeError(f"shape must contain ints, got {extent!r} in {extents}")
    extents = tuple(operator.index(extent) for extent in extents)
    if min(extents) <= 0:
        raise PyptoValueError(f"shape must be all positive, got {extents}")
    return extents


def checked_stack_shape(shape: Any) -> tuple[int, ...]:
    extents = _extents(shape)
    if len(extents) < 2:
        raise PyptoValueError(f"a stacked tensor has rank >= 2, got shape {extents}")
    if is_int(extents[0]) and extents[0] < 1:
        raise PyptoValueError(f"a stacked tensor has at least one shard, got shape {extents}")
    return checked_shape(extents)


def check_worker_ids(ids: tuple[Any, ...], count: int) -> None:
    if len(ids) != count:
        raise PyptoValueError(f"worker_ids must have {count} entries, one per shard, got {len(ids)}")
    for worker_id in ids:
        if not is_int(worker_id) or worker_id < 0:
            raise PyptoValueError(f"worker_ids must be ranks, from 0 on, got {worker_id!r}")
    if len(set(ids)) != len(ids):
        raise PyptoValueError(f"worker_ids must be distinct, got {list(ids)}")


def size_of(shape: tuple[int, ...], dtype: Any) -> int:
    nbytes = element_bytes(dtype)
    for extent in shape:
        nbytes *= extent
    return nbytes


def _check_buffer(buffer: Any, data_ptr: int) -> None:
    base = getattr(buffer, "base", None)
    if not is_int(base) or not callable(getattr(buffer, "tensor", None)):
        raise PyptoTypeError(
            "buffer must be the allocation of a worker, with an integer `base` and a callable "
            f"`tensor`, not {type(buffer).__name__}"
        )
    if base != data_ptr:
        raise PyptoValueError(f"data_ptr {data_ptr:#x} does not match the buffer's base {base:#x}")
