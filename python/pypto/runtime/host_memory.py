"""Tensors of the caller as memory: what uploads read and downloads write. Of torch, which is not imported here, and
NumPy."""

from __future__ import annotations

import sys

from .._dtypes import library_with, same_element
from ..errors import TypeError as PyptoTypeError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any


def library_of(tensor: Any) -> str:
    """"torch", "numpy", or "" for anything else. Of a resident tensor, whose element type it has."""
    if hasattr(type(tensor), "__pypto_kind__"):
        return library_with(getattr(tensor, "dtype", None))
    return _library(tensor)


def _library(tensor: Any) -> str:
    """"torch", "numpy", or "" for anything else."""
    for kind in type(tensor).__mro__:
        library = kind.__module__.partition(".")[0]
        if library in ("torch", "numpy"):
            attribute = "data_ptr" if library == "torch" else "__array_interface__"
            return library if hasattr(tensor, attribute) and hasattr(tensor, "shape") else ""
    return ""


def check_tensor(tensor: Any, name: str) -> None:
    if not _library(tensor):
        raise PyptoTypeError(
            f"{name} must be a torch.Tensor or a NumPy array, not {type(tensor).__name__}"
        )
    if any(kind.__name__ in ("MaskedArray", "MaskedTensor") for kind in type(tensor).__mro__):
        raise PyptoTypeError(
            f"{name} is a {type(tensor).__name__}, and nothing here looks at a mask; pass its values"
        )


def is_plain(tensor: Any) -> bool:
    """Whether its elements lie in CPU memory, aligned, row-major and without gaps, and are what the tensor shows."""
    if _library(tensor) == "torch":
        return bool(
            tensor.device.type == "cpu"
            and tensor.layout is sys.modules["torch"].strided
            and tensor.is_contiguous()
            and not tensor.is_neg()
        )
    flags = tensor.flags
    return bool(flags.c_contiguous and flags.aligned and tensor.dtype.isnative)


def plain_copy(tensor: Any) -> Any:
    """The tensor itself if it is plain, else a copy that is."""
    if is_plain(tensor):
        return tensor
    if _library(tensor) == "torch":
        return tensor.detach().cpu().to_dense().contiguous().resolve_neg()
    return tensor.astype(tensor.dtype.newbyteorder("="), order="C")


def address_of(tensor: Any) -> int:
    """Of its first element; of a plain tensor, all others follow."""
    if _library(tensor) == "torch":
        return int(tensor.data_ptr())
    return int(tensor.__array_interface__["data"][0])


def is_writable(tensor: Any) -> bool:
    return _library(tensor) == "torch" or bool(tensor.flags.writeable)


def has_dtype(tensor: Any, dtype: Any) -> bool:
    return same_element(tensor.dtype, dtype)
