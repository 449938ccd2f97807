"""Comparing what a program computes with what it should: `validate_ir` of compiled programs.

The text of a stage cannot be run, so what runs is the native code that was made of the last of them.
"""

from __future__ import annotations

from ..errors import (
    FileNotFoundError as PyptoFileNotFoundError,
    TypeError as PyptoTypeError,
    ValueError as PyptoValueError,
)
from .artifact import PASSES, dumped

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

    from .runnable import Runnable


def validate(program: Runnable, tensors: Any, expected: Any, rtol: float, atol: float) -> None:
    """See `Runnable.validate_ir`."""
    stages = dumped(program.output_dir)
    if not stages:
        raise PyptoFileNotFoundError(
            f"{program.output_dir} has no {PASSES}: compile {program.name} with dump_passes=True"
        )
    written = [p for p in program.parameters if p.direction != "In"]
    made = [p for p in written if p.direction == "Out"]
    by_name = _by_name(program, expected, written, "expected")
    whole = [p for p in program.parameters]
    left_out = {p.name for p in made} if program.has_return else set()
    given = _by_name(program, tensors, whole, "tensors", left_out)
    arguments = [_copied(given[p.name]) for p in whole if p.name in given]
    returned = program(*arguments)  # type: ignore[operator]
    results = {p.name: value for p, value in zip([p for p in whole if p.name in given], arguments)}
    if returned is not None:
        outputs = returned if isinstance(returned, tuple) else (returned,)
        results.update(zip((p.name for p in made), outputs))
    for name, wanted in by_name.items():
        found = difference(results[name], wanted, rtol, atol)
        if found:
            raise AssertionError(
                f"{program.name} behind {PASSES}/{stages[-1]}: output {name!r} {found}"
            )


def _by_name(
    program: Runnable, values: Any, parameters: list[Any], what: str, may_lack: Any = frozenset()
) -> dict[str, Any]:
    """Values by the names of parameters, from a dictionary, a sequence in declared order, or what is the only one."""
    names = [p.name for p in parameters]
    if isinstance(values, dict):
        unknown = [name for name in values if name not in names]
        lacking = [name for name in names if name not in values and name not in may_lack] if what == "tensors" else []
        if unknown or lacking or not values:
            raise PyptoValueError(
                f"{what} of {program.name} must be of {', '.join(names)}; "
                + (f"there is no {unknown[0]!r}" if unknown else f"{lacking[0]!r} is missing" if lacking else "it is empty")
            )
        return values
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == len(names):
        return dict(zip(names, values))
    short = [name for name in names if name not in may_lack]
    if len(values) == len(short):
        return dict(zip(short, values))
    raise PyptoTypeError(
        f"{what} of {program.name} must be {len(names)}, in order ({', '.join(names)}), got {len(values)}"
    )


def _copied(value: Any) -> Any:
    """An argument that may be written without the caller's seeing it."""
    if hasattr(value, "detach"):
        return value.detach().clone()
    return value.copy() if hasattr(value, "copy") else value


def _array(value: Any) -> Any:
    import numpy

    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if value.dtype.is_floating_point else value
        value = value.numpy()
    return numpy.asarray(value)


def difference(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    """What differs between two tensors; "" if nothing does. ValueError when their shapes do."""
    import numpy

    actual, expected = _array(actual), _array(expected)
    if actual.shape != expected.shape:
        raise PyptoValueError(f"the output has shape {actual.shape}, expected has {expected.shape}")
    kinds = actual.dtype.kind, expected.dtype.kind
    if "b" in kinds or rtol == atol == 0 and "f" not in kinds:
        wrong = actual != expected  # exact, also where floats tell no difference
    else:
        wrong = ~numpy.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True)
    if not wrong.any():
        return ""
    index = tuple(int(i) for i in numpy.argwhere(wrong)[0])
    return (
        f"at {list(index)} is {actual[index]}, expected {expected[index]} "
        f"(rtol={rtol}, atol={atol}); {int(wrong.sum())} of {wrong.size} elements differ"
    )
