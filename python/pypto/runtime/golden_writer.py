"""Expected results on disk, for harnesses that compile here and compare elsewhere: a directory with `in/<name>.pt` for each input
and `out/<name>.pt` for each expected output, and the text of a script that makes them."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import ValueError as PyptoValueError
from .tensor_spec import ScalarSpec, TensorSpec

__all__ = ["generate_golden_source"]

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

_INPUTS, _OUTPUTS = "in", "out"


def _path(data_dir: Any, kind: str, name: str) -> Path:
    return Path(os.fspath(data_dir)) / kind / f"{name}.pt"


def _materialize_tensors(specs: "Iterable[TensorSpec | ScalarSpec]") -> dict[str, Any]:
    """The arguments that are described, by name: tensors of torch, and numbers."""
    return {
        spec.name: spec.create_tensor() if isinstance(spec, TensorSpec) else spec.value
        for spec in specs
    }


def _save_data_files(
    data_dir: Any, inputs: "Mapping[str, Any]", outputs: "Mapping[str, Any]"
) -> None:
    """Writes the tensors of both to the directory."""
    import torch

    for kind, tensors in ((_INPUTS, inputs), (_OUTPUTS, outputs)):
        for name, tensor in tensors.items():
            path = _path(data_dir, kind, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save(torch.as_tensor(tensor), path)


def _data_dir_has_files(data_dir: Any, specs: "Iterable[TensorSpec | ScalarSpec]") -> bool:
    """Whether the directory has a file for each of the tensors: what goes in, or for outputs, what is expected."""
    return all(
        _path(data_dir, _OUTPUTS if spec.is_output else _INPUTS, spec.name).is_file()
        for spec in specs
        if isinstance(spec, TensorSpec)
    )


def _load(data_dir: Any, kind: str, name: str) -> Any:
    import torch

    return torch.load(_path(data_dir, kind, name), weights_only=True)


def _extract_compute_golden(function: "Callable[..., Any]") -> str:
    """The text of a function that computes expected results, as one of its own that is called `compute_golden`. ValueError when
    its source is not known, or it needs names of the place where it is defined."""
    import ast
    import inspect
    import textwrap

    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError) as error:
        raise PyptoValueError(f"the source of {function!r} is not known: {error}") from None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise PyptoValueError(f"{function!r} is not made by def")
    if function.__code__.co_freevars:
        raise PyptoValueError(
            f"{function.__name__} needs {', '.join(function.__code__.co_freevars)} of the function around it"
        )
    definition.name = "compute_golden"
    definition.decorator_list = []
    return ast.unparse(definition) + "\n"


def generate_golden_source(
    specs: "Iterable[TensorSpec | ScalarSpec]", compute_golden: "Callable[..., Any]"
) -> str:
    """The text of a script that makes the inputs and the expected outputs of a program whose arguments are specs, and writes them to the directory that it is given:
    `python golden.py DIR`. `compute_golden(tensors)` gets all arguments by name and fills the outputs in place. Inputs are saved in
    the text as they are now, so that it needs nothing but torch."""
    specs = list(specs)
    values = _materialize_tensors(specs)
    lines = ['"""Makes inputs and expected outputs: python golden.py DIR"""', "", "import sys", "", "import torch", "", ""]
    lines += [_extract_compute_golden(compute_golden), "", "tensors = {"]
    for spec in specs:
        value = values[spec.name]
        if isinstance(spec, TensorSpec):
            value = f"torch.tensor({value.tolist()!r}, dtype={value.dtype}).reshape({spec.shape!r})"
            value = value.replace("nan", "float('nan')").replace("inf", "float('inf')")
        lines.append(f"    {spec.name!r}: {value},")
    inputs = [s.name for s in specs if isinstance(s, TensorSpec) and not s.is_output]
    outputs = [s.name for s in specs if isinstance(s, TensorSpec) and s.is_output]
    lines += [
        "}",
        f"inputs = {{name: tensors[name].clone() for name in {inputs!r}}}",
        "compute_golden(tensors)",
        f"outputs = {{name: tensors[name] for name in {outputs!r}}}",
        "",
        "from pypto.runtime.golden_writer import _save_data_files",
        "",
        "_save_data_files(sys.argv[1], inputs, outputs)",
        "",
    ]
    return "\n".join(lines)
