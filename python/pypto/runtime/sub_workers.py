"""SubWorkers: Python functions that a host function calls, in forked copies of this process.

Which function is bound to which name is settled here, when workers are prepared or a one-shot call begins; `_core` forks,
and calls `begin`, `run` and `flush`. A function with a body gets tensors; a callback, which takes its place, one list of
mapped arguments.
"""

from __future__ import annotations

import enum
import io
import os
import resource
import sys
import threading
import time

from .. import _core
from .._dtypes import as_dtype, element_of
from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError
from ..ir.distributed_config import MOST_SUB_WORKERS

__all__ = ["DataType", "MappedArg", "MappedArgs"]

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    Bound = tuple[int, list[tuple[_core.Program, str, Any]]]



class DataType(enum.IntEnum):
    """Element types of mapped arguments."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    INT16 = 3
    INT8 = 4
    UINT8 = 5
    BFLOAT16 = 6
    INT64 = 7
    UINT64 = 8
    UINT16 = 9
    UINT32 = 10
    BOOL = 11
    FP8E4M3FN = 12
    FP8E8M0 = 13
    FP4E2M1 = 14
    FP8E5M2 = 15

    __str__ = enum.Enum.__str__


# By the names of `pl`.
_DTYPES = {"FP32": "FLOAT32", "FP16": "FLOAT16", "BF16": "BFLOAT16", "INDEX": "INT64"}
_TORCH = {
    "FLOAT32": "float32",
    "FLOAT16": "float16",
    "BFLOAT16": "bfloat16",
    "FP8E4M3FN": "float8_e4m3fn",
    "FP8E5M2": "float8_e5m2",
    "FP8E8M0": "float8_e8m0fnu",
}
_NUMPY = {
    "FLOAT32": "float32",
    "FLOAT16": "float16",
    "BFLOAT16": "uint16",
    "FP8E4M3FN": "uint8",
    "FP8E5M2": "uint8",
    "FP8E8M0": "uint8",
}


class MappedArg:
    """A tensor argument of a callback: the memory itself, no copy.

    buffer    writable memoryview of bytes from the first element on; valid until the callback returns
    shapes    extents
    strides   in elements
    dtype     a DataType
    """

    __slots__ = ("buffer", "shapes", "strides", "dtype", "_memory", "_first")

    def __init__(
        self, memory: memoryview, first: int, shapes: tuple[int, ...], strides: tuple[int, ...], name: str
    ) -> None:
        self.dtype: DataType = DataType[_DTYPES.get(name, name)]
        self.shapes: tuple[int, ...] = shapes
        self.strides: tuple[int, ...] = strides
        self._memory = memory
        self._first = first  # elements in front of it: with negative strides
        self.buffer: memoryview = memory[first * _width(self.dtype) :]

    def __repr__(self) -> str:
        return f"<MappedArg {self.dtype.name} {self.shapes}>"


class MappedArgs:
    """What a callback gets: its tensor arguments as a sequence, and its numbers."""

    __slots__ = ("_tensors", "_scalars")

    def __init__(self, tensors: list[MappedArg], scalars: list[Any]) -> None:
        self._tensors = tensors
        self._scalars = scalars

    def __len__(self) -> int:
        """How many tensors there are."""
        return len(self._tensors)

    def __getitem__(self, index: Any) -> Any:
        """The tensor `index` as a MappedArg, counting tensors only."""
        return self._tensors[index]

    def __iter__(self) -> Iterator[MappedArg]:
        return iter(self._tensors)

    def tensor_count(self) -> int:
        """The same as len()."""
        return len(self._tensors)

    def scalar_count(self) -> int:
        """How many numbers there are."""
        return len(self._scalars)

    def scalar(self, index: int) -> Any:
        """The number `index`, counting numbers only: an int, float or bool."""
        return self._scalars[index]

    def __repr__(self) -> str:
        return f"<MappedArgs {self._tensors} {self._scalars}>"


# ---- tensors ----


def _width(dtype: DataType) -> int:
    name = dtype.name
    if name.endswith("64"):
        return 8
    if name.endswith("32"):
        return 4
    return 2 if name.endswith("16") else 1


def _dtype_of(value: Any) -> DataType:
    """From the member, its text "DataType.FLOAT32", its number, or whatever else is an element type."""
    if isinstance(value, str) and value.startswith("DataType."):
        value = DataType.__members__.get(value.partition(".")[2], value)
    try:
        return DataType(getattr(value, "value", value))
    except ValueError:
        element = element_of(as_dtype(value))
        if element is None or _DTYPES.get(element.name, element.name) not in DataType.__members__:
            raise PyptoTypeError(f"{value!r} is no element type of a mapped argument") from None
        return DataType[_DTYPES.get(element.name, element.name)]


def _torch_dtype(torch: Any, dtype: DataType) -> Any:
    found = getattr(torch, _TORCH.get(dtype.name, dtype.name.lower()), None)
    if found is None and dtype.name.startswith("FP"):
        return torch.uint8
    if found is None:
        raise PyptoTypeError(f"this version of torch has no element type {dtype.name}")
    return found


def _torch_view(torch: Any, arg: MappedArg) -> Any:
    dtype = _torch_dtype(torch, arg.dtype)
    if len(arg._memory) == 0:
        return torch.empty(arg.shapes, dtype=dtype)
    whole = torch.frombuffer(arg._memory, dtype=dtype)
    return whole.as_strided(arg.shapes, arg.strides, arg._first)


def _numpy_view(arg: MappedArg) -> Any:
    import numpy

    dtype = numpy.dtype(_NUMPY.get(arg.dtype.name, arg.dtype.name.lower()))
    if len(arg._memory) == 0:
        return numpy.empty(arg.shapes, dtype)
    strides = [stride * dtype.itemsize for stride in arg.strides]
    return numpy.ndarray(arg.shapes, dtype, arg._memory, arg._first * dtype.itemsize, strides)


def _find_torch() -> Any:
    """torch, if it is installed; None."""
    try:
        import torch
    except ImportError:
        return None
    return torch


def _tensor_from_continuous(arg: Any) -> Any:
    """A tensor of torch over the memory of a mapped argument, without a copy; of NumPy where torch is not installed.

    arg   has `buffer` and `shapes`, `strides` and `dtype`, as MappedArg does; or `data`, an address, instead of the buffer.
    TypeError for anything else.
    """
    if hasattr(arg, "buffer"):
        if not isinstance(arg, MappedArg):
            arg = _mapped(arg.buffer, arg)
    elif hasattr(arg, "data") and hasattr(arg, "shapes"):
        import ctypes
        import math

        size = math.prod(arg.shapes) * _width(_dtype_of(arg.dtype))
        memory = (ctypes.c_char * size).from_address(int(arg.data))
        arg = _mapped(memoryview(memory).cast("B"), arg, contiguous=True)
    else:
        raise PyptoTypeError(f"{type(arg).__name__} is no MappedArg: it has no buffer and no data")
    torch = _find_torch()
    return _numpy_view(arg) if torch is None else _torch_view(torch, arg)


def _mapped(memory: Any, like: Any, contiguous: bool = False) -> MappedArg:
    dtype = _dtype_of(like.dtype)
    shapes = tuple(like.shapes)
    strides = None if contiguous else getattr(like, "strides", None)
    if strides is None:
        strides = tuple(_packed(shapes))
    return MappedArg(memoryview(memory).cast("B"), 0, shapes, tuple(strides), dtype.name)


def _packed(shapes: tuple[int, ...]) -> list[int]:
    strides, step = [], 1
    for extent in reversed(shapes):
        strides.append(step)
        step *= max(extent, 1)
    return strides[::-1]


# ---- what is bound ----


class _Body:
    """A SubWorker's own function: called with tensors of torch, or of NumPy, and numbers."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._torch = _find_torch()

    def __call__(self, arguments: list[Any]) -> None:
        torch = self._torch
        if torch is not None and "torch" in self._function.__code__.co_names:
            self._function.__globals__.setdefault("torch", torch)
        given = []
        for argument in arguments:
            if isinstance(argument, tuple):
                mapped = MappedArg(*argument)
                argument = _numpy_view(mapped) if torch is None else _torch_view(torch, mapped)
            given.append(argument)
        self._function(*given)


class _Callback:
    """A function that was given for a SubWorker: called with one sequence of mapped arguments."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, arguments: list[Any]) -> None:
        tensors = [MappedArg(*a) for a in arguments if isinstance(a, tuple)]
        self._function(MappedArgs(tensors, [a for a in arguments if not isinstance(a, tuple)]))


def check_callbacks(callbacks: Mapping[str, Any]) -> None:
    for name, function in callbacks.items():
        if not callable(function):
            raise PyptoTypeError(f"callbacks[{name!r}] must be callable, got {function!r}")
        import inspect

        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            continue  # a builtin that does not tell
        try:
            signature.bind(None)
        except TypeError:
            raise PyptoTypeError(
                f"callbacks[{name!r}] must take a single positional argument, the list of mapped "
                f"arguments; its signature is {name}{signature}"
            ) from None


def bind(
    programs: list[_core.Program], wanted: int, callbacks: Mapping[str, Callable[..., Any]] | None = None
) -> Bound | None:
    """What `_core` takes: how many SubWorkers, and what they run. None when no program calls any.

    wanted      DistributedConfig.num_sub_workers: there are at least so many if there are any
    callbacks   take the place of the functions of these names
    """
    given = callbacks or {}
    bound: list[tuple[_core.Program, str, Any]] = []
    known: set[str] = set()
    most = 0
    for program in programs:
        functions = program.sub_workers
        known |= functions.keys()
        most = max(most, len(functions))
        for name, function in functions.items():
            if name in given:
                bound.append((program, name, _Callback(given[name])))
            elif function is None or function.requires_runtime_binding:
                raise PyptoValueError(
                    f"SubWorker {name!r} of {program.name} has no body: the program needs runtime-bound "
                    f"callbacks, compiled.prepare(callbacks={{{name!r}: function}})"
                )
            else:
                bound.append((program, name, _Body(function._function)))
    unknown = sorted(given.keys() - known)
    if unknown:
        raise PyptoValueError(
            f"callbacks: {', '.join(unknown)} are not sub-workers of any prepared program. "
            f"Available sub-workers: {', '.join(sorted(known)) or 'none'}"
        )
    if not bound:
        return None
    return min(max(wanted, most), MOST_SUB_WORKERS), bound


# ---- in the parent before a fork, and in the SubWorker ----


def flush() -> None:
    """Writes what is in the buffers of the standard streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # closed, missing, or somebody's own
            pass


_inherited: list[Any] = []  # buffers that nobody may flush any more


def _renew(stream: Any) -> None:
    """Gives a stream, whoever holds it, another buffer. That of the parent may be locked, by a thread that is not here and
    so never unlocks it, and what is in it the parent prints."""
    buffer = getattr(stream, "buffer", None)
    if type(stream) is not io.TextIOWrapper or type(buffer) is not io.BufferedWriter:
        return
    _inherited.append(buffer)
    own = io.BufferedWriter(io.FileIO(buffer.fileno(), "wb", closefd=False))
    stream.__init__(  # type: ignore[misc]
        own, stream.encoding, stream.errors, "\n", stream.line_buffering, stream.write_through
    )


def begin() -> None:
    """In a SubWorker that has just been forked. A thread pool that the parent has used is not there."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):  # one that comes twice gets two
        try:
            _renew(stream)
        except Exception:  # closed
            pass
    torch = sys.modules.get("torch")
    if torch is not None and _can_start_threads():
        torch.set_num_threads(1)
        return
    os.environ["OMP_NUM_THREADS"] = "1"  # for one that is imported later


_MANY_THREADS = 4096


def _can_start_threads() -> bool:
    """Whether there can be a thread for each CPU. torch starts as many, to end them at once, and waits for ever for one that
    the limit of processes forbids; the runtime's own then fails with an error."""
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if limit == resource.RLIM_INFINITY or limit >= _MANY_THREADS:
        return True
    gate = threading.Lock()
    threads = [threading.Thread(target=lambda: gate.acquire() and gate.release()) for _ in range(os.cpu_count() or 1)]
    started = []
    with gate:
        try:
            for thread in threads:
                thread.start()
                started.append(thread)
        except RuntimeError:
            pass
    for thread in started:
        thread.join()
    while len(os.listdir("/proc/self/task")) > 1:  # until they have ended they count
        time.sleep(0)
    return len(started) == len(threads)


# What the library takes of a traceback: FAILURE_NOTE of segment.h.
_LONGEST = 16000


def _shortened(text: str) -> str:
    if len(text.encode("utf-8", "replace")) <= _LONGEST:
        return text
    half = _LONGEST // 8  # characters, of four bytes at most
    return f"{text[:half]}\n  ... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


_running = threading.local()


def is_inside(bound: Bound | None) -> bool:
    """Whether the calling thread runs one of these functions, as a SubWorker that is a thread does."""
    function = getattr(_running, "function", None)
    return function is not None and bound is not None and any(row[2] is function for row in bound[1])


def run(function: Callable[[list[Any]], None], arguments: list[Any]) -> tuple[str, str] | None:
    """Calls what is bound; what it raises as (message, traceback)."""
    process = os.getpid()
    failure = None
    _running.function = function
    try:
        function(arguments)
    except BaseException as error:  # SystemExit, too: a SubWorker ends with its set
        failure = _described(error)
    _running.function = None
    flush()
    if os.getpid() != process:  # a copy that the function has forked; two would do each later call twice
        os._exit(0)
    return failure


def _described(error: BaseException) -> tuple[str, str]:
    import traceback

    try:
        words = str(error)
    except Exception:
        words = "(its text cannot be had)"
    trace = error.__traceback__
    for _ in range(2):  # `run`, and the call in what is bound
        if trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace)
    message = f"sub_worker: {type(error).__name__}: {words}"
    return _plain(message), _plain(_shortened("".join(lines).rstrip()))


def _plain(text: str) -> str:
    """Without what C strings and UTF-8 do not have."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
