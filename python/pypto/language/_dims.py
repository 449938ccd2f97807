"""Dimensions that are not known when a program is built: `pl.dynamic("N")` and arithmetic on it.

Annotations are evaluated by Python when a function is defined, so these objects must survive
`[NR * 2, SIZE]`; what the shape means is read from the source, not from them.
"""

from __future__ import annotations

from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any


class Dimension:
    """A dynamic dimension or an expression of some. Has no value, and so no truth either."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise PyptoTypeError(
            f"{self!r} has no value while Python runs: it is bound at each call, and only DSL code "
            "can compare it"
        )

    __hash__ = object.__hash__


class DynVar(Dimension):
    """A dimension that stays open when the program is built and is bound at each call.

    In a host function the extent of the argument decides; `NR` in
    `pl.Tensor[[NR, 1, 256], pl.FP32]` is the number of devices when the host loops over them.
    `name` must be an identifier; two dimensions with the same name are the same dimension.
    """

    __slots__ = ("name",)
    __pypto_kind__ = "dynamic"
    __pypto_type_path__ = "pl.dynamic"

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise PyptoValueError(f"pl.dynamic({name!r}): the name must be a valid identifier")
        self.name = name

    def __repr__(self) -> str:
        return f"pl.dynamic({self.name!r})"


class DimExpr(Dimension):
    """What arithmetic on a dynamic dimension gives."""

    __slots__ = ("left", "operator", "right")
    __pypto_kind__ = "expression"

    def __init__(self, left: Any, operator: str, right: Any) -> None:
        self.left = left
        self.operator = operator
        self.right = right

    def __repr__(self) -> str:
        return f"({self.left!r} {self.operator} {self.right!r})"


def _define(method: str, symbol: str, reflected: bool) -> None:
    def forward(self: Dimension, other: Any) -> DimExpr:
        return DimExpr(self, symbol, other)

    def backward(self: Dimension, other: Any) -> DimExpr:
        return DimExpr(other, symbol, self)

    setattr(Dimension, f"__{method}__", forward)
    if reflected:
        setattr(Dimension, f"__r{method}__", backward)


_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
for _method, _symbol in (_ARITHMETIC | _COMPARISONS).items():
    _define(_method, _symbol, _method in _ARITHMETIC)


# A name of its own for what programs write; the class is for isinstance.
dynamic = DynVar

# What type hints of helpers use for "an int or a dimension".
IntLike = int | Dimension


class _Runtime:
    # In `f.compile(n=pl.RUNTIME)`: the scalar stays a parameter.
    __slots__ = ()

    def __repr__(self) -> str:
        return "pl.RUNTIME"


RUNTIME = _Runtime()
