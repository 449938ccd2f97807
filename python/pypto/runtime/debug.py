"""Running what a compile has left behind: `replay`, and the script debug/run.py in output directories."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import (
    Error,
    FileNotFoundError as PyptoFileNotFoundError,
    ValueError as PyptoValueError,
)
from ..ir import artifact
from ..ir.compiled_program import CompiledProgram
from ..ir.distributed_compiled_program import DistributedCompiledProgram
from ..ir.folder import Folder, path_of

__all__ = [
    "invalidate_binary_cache",
    "rebuild_kernel_cpp_from_pto",
    "replay",
    "write_run_script",
]

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ..ir.runnable import ParameterInfo
    from .run_config import RunConfig


def _reloaded(dir: Any) -> CompiledProgram | DistributedCompiledProgram:
    path = Path(os.path.realpath(path_of(dir, "dir")))
    if (path / artifact.ONE_DEVICE).is_file():
        return CompiledProgram.from_dir(path)
    if (path / artifact.HOST).is_file():
        return DistributedCompiledProgram.from_dir(path)
    raise PyptoFileNotFoundError(
        f"{path} has neither {artifact.ONE_DEVICE} nor {artifact.HOST}: it is no output directory of a compile, or "
        "that of several orchestrations; give one of its next_levels/<name>"
    )


def replay(
    dir: "str | os.PathLike[str]",
    *tensors: Any,
    config: "RunConfig | None" = None,
    recompile: bool = True,
    rebuild_from_pto: bool = True,
    validate: bool = False,
) -> Any:
    """Runs the program of an output directory, with or without a host function; returns what a call of it does. Its
    program.c is compiled again if it was edited, or the native code is not for this machine.

    dir       where a compile has written it
    tensors   the arguments of the call, numbers among them
    config    the RunConfig of the call, or None
    recompile, rebuild_from_pto   accepted; nothing else can be rebuilt
    validate                      ValueError if True: output directories hold no expected results

    Raises FileNotFoundError when the directory is none of a compile, and what `from_dir` and the call raise.
    """
    if validate:
        raise PyptoValueError(
            "replay(validate=True): output directories hold no expected results; compare the outputs yourself"
        )
    return _reloaded(dir)(*tensors, config=config)


def write_run_script(dir: "str | os.PathLike[str]") -> Path:
    """Writes debug/run.py to the output directory `dir`; returns its path. OSError when it cannot be written."""
    with Folder.at(dir) as folder:
        folder.write(artifact.RUNNER, artifact.RUNNER_TEXT)
        return folder.path / artifact.RUNNER


def invalidate_binary_cache(dir: "str | os.PathLike[str]") -> None:
    """Removes the native code from the output directory `dir`; `from_dir` compiles its program.c again."""
    with Folder.at(dir) as folder:
        folder.remove(artifact.OBJECT)


def rebuild_kernel_cpp_from_pto(dir: "str | os.PathLike[str]") -> NoReturn:
    """Raises FileNotFoundError, whatever dir is: kernels are made from C text, and no compile writes .pto files. Edit `program.c`, which
    `from_dir` and `replay` compile again."""
    raise PyptoFileNotFoundError(
        f"{Path(os.path.realpath(dir))} has no .pto files that kernels are made of: they are made of program.c, which "
        "CompiledProgram.from_dir() and replay() compile again when it was edited"
    )


def main(dir: Path, words: list[str]) -> None:
    """What debug/run.py does: runs with one argument per word, the array in a .npy file or a number, and prints what
    the outputs are then. Ends with 2 when the words cannot be arguments, with 1 when the program cannot be loaded or fails."""
    import sys

    try:
        _run(dir, words)
    except Error as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def _run(dir: Path, words: list[str]) -> None:
    compiled = _reloaded(dir)
    parameters, outputs, _ = compiled._get_metadata()
    inputs = [p for i, p in enumerate(parameters) if i not in outputs]
    returns = compiled.has_return and len(inputs) < len(parameters)
    if len(words) != len(parameters) and not (returns and len(words) == len(inputs)):
        _refuse(f"{len(words)} arguments were given", parameters, inputs if returns else parameters)
    told = parameters if len(words) == len(parameters) else inputs
    given = []
    for parameter, word in zip(told, words):
        try:
            given.append(_argument(word))
        except ValueError as error:
            _refuse(f"argument {parameter.name}: {error}", parameters, inputs if returns else parameters)
    returned = compiled(*given)
    by_name = {p.name: value for p, value in zip(told, given) if p.direction != "In"}
    names = [parameters[i].name for i in outputs]
    if returned is not None:
        by_name.update(zip(names, returned if isinstance(returned, tuple) else (returned,)))
    for name, value in by_name.items():
        print(f"{name}: {value.dtype} {value.shape}\n{value}")


def _refuse(problem: str, parameters: list[ParameterInfo], least: list[ParameterInfo]) -> NoReturn:
    import sys

    lines = [f"{Path(sys.argv[0]).name}: {problem}", f"usage: python {sys.argv[0]} ARGUMENT...   (.npy files and numbers)"]
    for p in parameters:
        made = "" if p in least else "   (may be left out with the other outputs: they are made, and printed)"
        lines.append(f"  {p.name}: {p.direction} {p.shape or 'scalar'} {p.dtype}{made}")
    print("\n".join(lines), file=sys.stderr)
    raise SystemExit(2)


def _argument(word: str) -> Any:
    """The array or number that a word of the command line means; ValueError with what is wrong."""
    if not word.endswith(".npy"):
        return _number(word)
    import numpy

    try:
        return numpy.load(word)
    except OSError as error:
        raise ValueError(f"{word} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise ValueError(f"{word} holds no array that can be loaded: {error}") from None


def _number(word: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    raise ValueError(f"{word!r} is neither a .npy file nor a number")
