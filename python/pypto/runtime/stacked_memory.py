"""Stacked tensors of a worker of several ranks: one row on each of them."""

from __future__ import annotations

from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError
from . import host_memory
from .device_tensor import (
    DeviceTensor,
    StackedDeviceTensor,
    as_tuple,
    check_worker_ids,
    checked_stack_shape,
    size_of,
)
from .runtime_base import MemoryWorker

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class StackedMemory(MemoryWorker):
    """The functions of `StackedDeviceTensor`."""

    device_ids: list[int]

    def alloc_stacked_tensor(
        self, host: Any, *, worker_ids: Iterable[int] | None = None
    ) -> StackedDeviceTensor:
        """Copies host[i] into the memory of rank worker_ids[i], for all rows; None is the ranks in order.

        host is a contiguous CPU tensor [B, ...], which may change or go as soon as this returns. When one row cannot be
        allocated, none is. Programs get the tensor in place and dispatch each row on its rank.

        Raises TypeError for what is no tensor, ValueError for one that is not contiguous or has fewer than two
        dimensions and for worker_ids that are not distinct ranks, MemoryError when the machine does not have the memory.
        """
        self._require_ready("alloc_stacked_tensor")
        host_memory.check_tensor(host, "host")
        check_plain(host, "host")
        shape = checked_stack_shape(host.shape)
        ids = tuple(range(shape[0])) if worker_ids is None else as_tuple(worker_ids, "worker_ids", "ranks")
        check_worker_ids(ids, shape[0])
        for worker_id in ids:
            if worker_id >= len(self.device_ids):
                raise PyptoValueError(
                    f"worker_ids {list(ids)}: {worker_id} is out of range, there are {len(self.device_ids)} ranks"
                )
        shards: list[DeviceTensor] = []
        source, nbytes = host_memory.address_of(host), size_of(shape[1:], host.dtype)
        try:
            for i, worker_id in enumerate(ids):
                shard = self.alloc_tensor(shape[1:], host.dtype, worker_id=worker_id)
                shards.append(shard)
                self._upload(shard.data_ptr, source + i * nbytes, nbytes, worker_id)
            return StackedDeviceTensor(tuple(shards), shape, ids)
        except BaseException:
            for shard, worker_id in zip(shards, ids):
                self.free_tensor(shard, worker_id=worker_id)
            raise

    def free_stacked_tensor(self, stacked: StackedDeviceTensor) -> None:
        """Frees all rows of a stacked tensor, when the calls in flight are over. Again: does nothing."""
        self._require_ready("free_stacked_tensor")
        _check_stacked(stacked, "free_stacked_tensor")
        for shard, worker_id in zip(stacked.shards, stacked.worker_ids):
            self.free_tensor(shard, worker_id=worker_id)

    def copy_stacked_from(self, stacked: StackedDeviceTensor, host: Any) -> None:
        """Fills host[i] with row i of a stacked tensor, when the calls in flight are over.

        host   a writable contiguous CPU tensor of the same shape and dtype; else ValueError
        """
        self._require_ready("copy_stacked_from")
        _check_stacked(stacked, "copy_stacked_from")
        host_memory.check_tensor(host, "host")
        for i, (shard, worker_id) in enumerate(zip(stacked.shards, stacked.worker_ids)):
            self._check_resident(shard, f"shard {i}", worker_id)
        if tuple(host.shape) != stacked.full_shape:
            raise PyptoValueError(
                f"host of shape {tuple(host.shape)} does not match stacked full_shape {stacked.full_shape}"
            )
        if not host_memory.has_dtype(host, stacked.dtype):
            raise PyptoValueError(
                f"host of dtype {host.dtype} does not match stacked dtype {stacked.dtype}"
            )
        check_plain(host, "host")
        if not host_memory.is_writable(host):
            raise PyptoValueError("host is read-only")
        target = host_memory.address_of(host)
        for shard, worker_id in zip(stacked.shards, stacked.worker_ids):
            self.copy_from(target, shard.data_ptr, shard.nbytes, worker_id=worker_id)
            target += shard.nbytes


def check_plain(tensor: Any, name: str) -> None:
    if not host_memory.is_plain(tensor):
        raise PyptoValueError(
            f"{name} must be a CPU, contiguous tensor, aligned; pass {name}.cpu().contiguous() of torch, {name}.copy() of NumPy"
        )


def _check_stacked(stacked: Any, operation: str) -> None:
    if not isinstance(stacked, StackedDeviceTensor):
        raise PyptoTypeError(
            f"{operation}() expects a StackedDeviceTensor, not {type(stacked).__name__}"
        )
