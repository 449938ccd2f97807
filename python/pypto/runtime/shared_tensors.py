"""Host tensors that workers use where they are, without a copy."""

from __future__ import annotations

import math
import operator

from .. import _core
from .._dtypes import DataType, as_dtype, is_dtype, library_with, numpy_dtype_of
from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError
from ._numbers import checked_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def empty_shared(shape: int | Sequence[int], dtype: Any = "float32") -> Any:
    """A tensor in shared memory: calls of compiled programs use it where it is and copy nothing.

    shape   its extents, or one
    dtype   an element type of torch, and the result is a torch tensor; of NumPy or of `pl`, or a name, and it is a
            NumPy array. BF16 NumPy does not have: pass torch.bfloat16.

    Its elements are zero. The memory lives until nobody uses the tensor or a view of it any more. Forked processes
    share it; to pass it to processes that are not forked, use torch's `share_memory_()` or
    `multiprocessing.shared_memory`, which programs use in place, too.

    Raises MemoryError when the machine has not that much memory left, ValueError for a negative extent, TypeError for
    what is no element type.
    """
    extents = _extents(shape)
    count = math.prod(extents)
    meant = as_dtype(dtype)
    if meant is None:
        raise PyptoTypeError(f"dtype={dtype!r} is no element type of torch, NumPy or pl")
    if library_with(meant) == "torch":
        return _torch_tensor(extents, count, meant)
    import numpy

    if isinstance(meant, DataType):
        ours, meant = meant, numpy_dtype_of(meant)
        if meant is None or not is_dtype(ours):
            raise PyptoTypeError(f"NumPy has no element type {ours}: pass one of torch, or uint8 for bytes")
    wanted = numpy.dtype(meant)
    if wanted.hasobject:
        raise PyptoTypeError("Python objects cannot be in shared memory")
    if count == 0 or wanted.itemsize == 0:
        return numpy.zeros(extents, wanted)
    memory = _core.SharedMemory(checked_bytes(count * wanted.itemsize))
    return numpy.frombuffer(memory, wanted).reshape(extents)


def _torch_tensor(extents: tuple[int, ...], count: int, dtype: Any) -> Any:
    import torch

    if count == 0:
        return torch.zeros(extents, dtype=dtype)
    memory = _core.SharedMemory(checked_bytes(count * torch.empty((), dtype=dtype).element_size()))
    return torch.frombuffer(memory, dtype=dtype).reshape(extents)


def _extents(shape: Any) -> tuple[int, ...]:
    try:
        extents = tuple(operator.index(extent) for extent in ([shape] if hasattr(shape, "__index__") else shape))
    except TypeError:
        raise PyptoTypeError(f"shape must be an int or a sequence of ints, not {shape!r}") from None
    if any(extent < 0 for extent in extents):
        raise PyptoValueError(f"shape: extents must not be negative: {shape!r}")
    return extents
