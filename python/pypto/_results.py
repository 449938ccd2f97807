"""Tensors that a call makes because the program returns some of its own.

Such a result is a parameter of the native program behind those of the script: an `Out` that a plain call of a
function cannot name. Its shape follows from the other arguments.
"""

from __future__ import annotations

from .errors import ValueError as PyptoValueError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

    from . import _core


def make(program: _core.Program, bound: tuple[Any, ...]) -> list[Any]:
    """The tensors, zeroed, for a call with these arguments."""
    from ._dtypes import DTYPES
    from .ir.runnable import ParameterInfo, zeros_like_these

    zeros = zeros_like_these(bound)
    rows, shapes = program.parameters, program.extents
    known = _known(shapes, bound)
    made = []
    for (name, direction, _, dtype), shape in list(zip(rows, shapes))[len(bound) :]:
        extents: list[Any] = [_value(extent, known) for extent in shape or ()]
        if None in extents:
            raise PyptoValueError(
                f"{program.name}: the shape [{', '.join(map(str, shape or []))}] of the result '{name}' does "
                "not follow from the arguments; make it a pl.Out parameter, and pass the tensor"
            )
        made.append(zeros(ParameterInfo(name, direction, extents, DTYPES[dtype])))
    return made


def _known(shapes: list[Any], bound: tuple[Any, ...]) -> dict[str, int]:
    """Extents by the text of the dimension."""
    known: dict[str, int] = {}
    for shape, value in zip(shapes, bound):
        for text, extent in zip(shape or (), getattr(value, "shape", ())):
            if isinstance(text, str):
                known[_words(_tree(text))] = int(extent)
    return known


def _tree(text: str) -> Any:
    import ast

    return ast.parse(text, mode="eval").body


def _words(tree: Any) -> str:
    import ast

    return ast.unparse(tree)


def _value(extent: int | str, known: dict[str, int]) -> int | None:
    """A dimension of the table: a number, or an expression of other dimensions. None if it needs more."""
    if isinstance(extent, int):
        return extent
    return _evaluated(_tree(extent), known)


def _evaluated(tree: Any, known: dict[str, int]) -> int | None:
    import ast

    if _words(tree) in known:
        return known[_words(tree)]
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if not isinstance(tree, ast.BinOp):
        return None
    left, right = _evaluated(tree.left, known), _evaluated(tree.right, known)
    if left is None or right is None:
        return None
    if isinstance(tree.op, ast.Add):
        return left + right
    if isinstance(tree.op, ast.Sub):
        return left - right
    if isinstance(tree.op, ast.Mult):
        return left * right
    if isinstance(tree.op, ast.FloorDiv) and right != 0:
        return left // right
    return None
