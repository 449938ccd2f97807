"""What arguments a program takes, as harnesses describe them: name, shape, element type, and what is in them at first."""

from __future__ import annotations

from .._dtypes import DataType, as_dtype, checked_dtype, element_of, host_zeros
from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["ScalarSpec", "TensorSpec"]


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise PyptoValueError(f"name must be that of a parameter, got {name!r}")
    return name


class TensorSpec:
    """A tensor argument.

    name         of the parameter
    shape        extents, integers >= 0
    dtype        element type: of torch, of NumPy, such as `pl.FP32`, or a name of one
    init_value   what is in it at first: None zeros; a number; a tensor or array of that shape, which is copied; or a
                 function that gives one of these, called with the shape if it takes an argument, as torch.randn does
    is_output    whether the program writes it

    Raises TypeError and ValueError for what is none of that. Equal to another one that says the same.
    """

    def __init__(
        self,
        name: str,
        shape: Iterable[int],
        dtype: Any,
        init_value: Any = None,
        is_output: bool = False,
    ) -> None:
        self.name: str = _checked_name(name)
        self.shape: list[int] = list(shape)
        for extent in self.shape:
            if isinstance(extent, bool) or not isinstance(extent, int) or extent < 0:
                raise PyptoValueError(
                    f"shape of {name} must be of integers >= 0, got {self.shape!r}"
                )
        self.dtype: Any = checked_dtype(dtype, f"dtype of {name}", ours=True)
        self.init_value: Any = init_value
        self.is_output: bool = bool(is_output)

    def create_tensor(self) -> Any:
        """A new torch.Tensor as described. ValueError when the initial value has another shape."""
        import torch

        if isinstance(self.dtype, torch.dtype):
            tensor = torch.zeros(self.shape, dtype=self.dtype)
        else:
            element = element_of(self.dtype)
            assert element is not None  # the constructor has looked
            tensor = host_zeros(torch, self.shape, element)
        value = self.init_value
        if callable(value):
            value = value(self.shape) if _takes_argument(value) else value()
        if value is None:
            return tensor
        if hasattr(value, "shape") and tuple(value.shape) not in (tuple(self.shape), ()):
            raise PyptoValueError(
                f"init_value of {self.name} has shape {tuple(value.shape)}, not {tuple(self.shape)}"
            )
        tensor.copy_(torch.as_tensor(value))
        return tensor

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        mine, others = (
            (s.name, s.shape, element_of(s.dtype), s.is_output) for s in (self, other)
        )
        return mine == others and (self.init_value is other.init_value or _is_equal(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        output = ", output" if self.is_output else ""
        return f"<TensorSpec {self.name}: {self.shape} {self.dtype}{output}>"


def _is_equal(one: TensorSpec, other: TensorSpec) -> bool:
    """Of initial values that are two objects: numbers by what they are, others not."""
    numbers = (bool, int, float)
    return (
        isinstance(one.init_value, numbers)
        and isinstance(other.init_value, numbers)
        and one.init_value == other.init_value
    )


def _takes_argument(function: Any) -> bool:
    import inspect

    try:
        inspect.signature(function).bind(())
    except TypeError:
        return False
    except ValueError:  # of C functions, as torch.randn, nobody knows it
        pass
    return True


class ScalarSpec:
    """A number as an argument.

    name    of the parameter
    value   the number: bool, int or float
    dtype   its element type, such as `pl.INT32` or "int32", or None: as the parameter says

    Raises TypeError for what is no number or no element type, ValueError for an integer that the element type does not have.
    Equal to another one that says the same.
    """

    def __init__(self, name: str, value: bool | int | float, dtype: Any = None) -> None:
        self.name: str = _checked_name(name)
        if not isinstance(value, (bool, int, float)):
            raise PyptoTypeError(f"value of {name} must be a number, not {type(value).__name__}")
        element = None
        if isinstance(as_dtype(dtype), DataType):
            dtype = as_dtype(dtype)  # of any width: it is no memory
            element = element_of(dtype)
        elif dtype is not None:
            dtype = checked_dtype(dtype, f"dtype of {name}", ours=True)
            element = element_of(dtype)
        if element is not None and element.name.startswith(("INT", "UINT")):
            signed, bits = element.name.startswith("INT"), element.get_bit()
            least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
            if value % 1 != 0 or not least <= value <= most:
                raise PyptoValueError(f"value of {name} must be in {least}..{most}, got {value!r}")
        self.value: bool | int | float = value
        self.dtype: Any = dtype

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScalarSpec):
            return NotImplemented
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<ScalarSpec {self.name}: {self.value!r}{'' if self.dtype is None else f' {self.dtype}'}>"
