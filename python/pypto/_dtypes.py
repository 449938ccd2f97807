"""Element types: the class DataType and its instances, made from the table of <pypto/types.h>."""

from __future__ import annotations

import sys

from . import _core

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any


class DataType:
    """An element type, such as `pl.FP32`. There is one object per type; compare with `==` or `is`.

    `str()` gives the lower-case name ("fp32", "int32"; BF16 is "bfloat16").
    """

    __slots__ = ("name", "_text", "_bits")
    __pypto_kind__ = "path"
    __pypto_type_path__ = "pl.DataType"

    def __init__(self, name: str, text: str, bits: int) -> None:
        self.name = name
        self._text = text
        self._bits = bits

    def get_byte(self) -> int:
        """Bytes of one element in memory."""
        return (self._bits + 7) // 8

    def get_bit(self) -> int:
        """Bits that one element needs: 1 for BOOL."""
        return self._bits

    @property
    def __pypto_path__(self) -> str:
        return "pl." + self.name

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "pl." + self.name

    def __reduce__(self) -> str:
        return self.name  # pickle and copy find the one object in this module


DTYPES: dict[str, DataType] = {
    name: DataType(name, text, 1 if name == "BOOL" else bits)
    for name, text, bits, _ in _core.dtypes()
}
globals().update(DTYPES)

# ---- the element types of other libraries, which are not imported here ----

# What torch and NumPy (with ml_dtypes) call an element type: ours.
_ELEMENTS: dict[str, DataType] = {
    **{name.lower(): DTYPES[name] for name in DTYPES if name.strip("UINT") in ("8", "16", "32", "64")},
    "bool": DTYPES["BOOL"],
    "float16": DTYPES["FP16"],
    "float32": DTYPES["FP32"],
    "bfloat16": DTYPES["BF16"],
    "float8_e4m3fn": DTYPES["FP8E4M3FN"],
    "float8_e5m2": DTYPES["FP8E5M2"],
    "float8_e8m0fnu": DTYPES["FP8E8M0"],
    "float4_e2m1fn_x2": DTYPES["UINT8"],  # the bytes of pairs
}

# What the elements of a host tensor are called, by our name where it is not that in small letters; the best comes first. Where
# a library has no such type it is signed numbers of the same bits, or bytes (pypto_dtype_carries() of <pypto/types.h>).
_HOST_NAMES: dict[str, tuple[str, ...]] = {
    "BF16": ("bfloat16",),
    "FP16": ("float16",),
    "FP32": ("float32",),
    "FP4": ("uint8",),
    "FP8E4M3FN": ("float8_e4m3fn", "uint8"),
    "FP8E5M2": ("float8_e5m2", "uint8"),
    "FP8E8M0": ("float8_e8m0fnu", "uint8"),
    "INDEX": ("int64",),
    "INT4": ("uint8",),
    "UINT16": ("uint16", "int16"),
    "UINT32": ("uint32", "int32"),
    "UINT4": ("uint8",),
    "UINT64": ("uint64", "int64"),
}


def host_zeros(library: Any, shape: list[int], dtype: DataType) -> Any:
    """A tensor of zeros for a parameter, of torch or NumPy: the module `library`. ValueError where that has none like it."""
    if dtype.get_bit() < 8 and dtype.name != "BOOL":  # two elements in a byte
        shape = [*shape[:-1], shape[-1] // 2]
    for name in _HOST_NAMES.get(dtype.name, (dtype.name.lower(),)):
        try:
            element = getattr(library, name) if library.__name__ == "torch" else library.dtype(name)
        except (AttributeError, TypeError):
            continue
        return library.zeros(shape, dtype=element)
    from .errors import ValueError as PyptoValueError

    raise PyptoValueError(
        f"{library.__name__} has no element type for {dtype}: pass the output, too, or tensors of torch"
    )


def _of_torch(dtype: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(dtype, torch.dtype)


def _of_numpy(dtype: Any) -> Any:
    """The numpy.dtype that is meant, or None."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not (
        isinstance(dtype, numpy.dtype)
        or isinstance(dtype, type)
        and issubclass(dtype, numpy.generic)
    ):
        return None
    meant = numpy.dtype(dtype)
    return meant if meant.isnative and meant.itemsize > 0 and not meant.hasobject else None


_PREFIXES = ("torch.", "numpy.", "np.", "pl.", "DataType.")
_BY_TEXT: dict[str, DataType] = {str(dtype): dtype for dtype in DTYPES.values()}


def _named(name: str) -> Any:
    """What a name stands for: of ours and of those that torch and NumPy share it is ours, else what NumPy says. Or None."""
    word = name.rpartition(".")[2] if name.startswith(_PREFIXES) else name
    ours = DTYPES.get(word.upper()) or _BY_TEXT.get(word) or _ELEMENTS.get(word)
    if ours is not None or not word.isprintable():  # "\\0" is bool to NumPy
        return ours
    return _numpy_dtype(word)


def _numpy_dtype(given: Any) -> Any:
    """What NumPy takes it for, or None."""
    import numpy

    try:
        return numpy.dtype(given)
    except (TypeError, ValueError, SyntaxError):
        return None


def as_dtype(given: Any) -> Any:
    """What a caller means by an element type: one of torch, of NumPy or of this package, as it is; what a name or a class of
    Python stands for. None for what is none. Whatever accepts an element type on the host side asks here."""
    if isinstance(given, str):
        return _named(given)
    if isinstance(given, DataType) or _of_torch(given):
        return given
    if isinstance(given, list) or isinstance(given, type) and given in (bool, int, float, complex):
        return _numpy_dtype(given)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(given, numpy.dtype):
        return given
    return given if _of_numpy(given) is not None else None


def checked_dtype(given: Any, name: str = "dtype", ours: bool = False) -> Any:
    """The same for memory whose bytes are told apart. TypeError for what is none; with `ours`, also for one that programs do
    not have."""
    dtype = as_dtype(given)
    if is_dtype(dtype) and (not ours or element_of(dtype) is not None):
        return dtype
    from .errors import TypeError as PyptoTypeError

    whose = " that programs have" if ours else ""
    raise PyptoTypeError(
        f"{name} must be an element type{whose}: of torch, of NumPy, one such as pl.FP32, or a name such as \"float32\"; "
        f"got {given!r}"
    )


def numpy_dtype_of(dtype: DataType) -> Any:
    """NumPy's own, or None where it has none."""
    return _numpy_dtype(_HOST_NAMES.get(dtype.name, (dtype.name.lower(),))[0])


def is_dtype(dtype: Any) -> bool:
    """Whether it is an element type of whole bytes: of torch, of NumPy, or of this package."""
    if isinstance(dtype, DataType):
        return dtype.name != "TASK_ID" and (dtype._bits >= 8 or dtype.name == "BOOL")
    return _of_torch(dtype) or _of_numpy(dtype) is not None


def element_of(dtype: Any) -> DataType | None:
    """What a program calls the element type; None when it has none like it."""
    if isinstance(dtype, DataType):
        return DTYPES["INT64"] if dtype.name == "INDEX" else dtype
    name = str(dtype).rpartition(".")[2] if _of_torch(dtype) else getattr(_of_numpy(dtype), "name", "")
    return _ELEMENTS.get(name)


def library_with(dtype: Any) -> str:
    """Whose element type it is: "torch", "numpy", or "" for one of ours and what is none."""
    return "torch" if _of_torch(dtype) else "numpy" if _of_numpy(dtype) is not None else ""


def element_bytes(dtype: Any) -> int:
    """Bytes of one element."""
    if isinstance(dtype, DataType):
        return dtype.get_byte()
    if _of_torch(dtype):
        return int(sys.modules["torch"].empty((), dtype=dtype).element_size())
    return int(_of_numpy(dtype).itemsize)


def same_element(one: Any, other: Any) -> bool:
    """Whether two element types, maybe of two libraries, are the same."""
    if not (is_dtype(one) and is_dtype(other)):
        return False
    element = element_of(one)
    if element is None or element_of(other) is None:
        return bool(one is other or (_of_torch(one) == _of_torch(other) and one == other))
    return element is element_of(other)
