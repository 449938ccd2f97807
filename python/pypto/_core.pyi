"""The extension module; python/module/ is its source. For this package alone."""

from typing import Any

def version() -> str: ...
def digest(bytes: bytes, /) -> str: ...
def compile(
    function: Any,
    programs: list[Program],
    names: tuple[str, ...],
    arguments: tuple[Any, ...] | None,
    platform: str,
    /,
) -> Program: ...
def check(functions: tuple[Any, ...], /) -> None: ...
def lower(
    function: Any,
    names: tuple[str, ...],
    arguments: tuple[Any, ...] | None,
    platform: str,
    stages: bool = False,
    /,
) -> tuple[str, str, str, list[tuple[str, str]]]: ...
def load(directory: str, /) -> Program: ...
def refuse(
    code: str,
    message: str,
    hint: str | None,
    file: str | None,
    line: int,
    column: int,
    end_column: int,
    source: str | None,
    /,
) -> None: ...
def dump_syntax(definition: Any, filename: str, /) -> str: ...
def resolve(function: Any, name: str, /) -> str: ...
def ops() -> list[tuple[list[str], str, str]]: ...
def enums() -> list[tuple[str, str, str, int]]: ...
def later(path: str, /) -> str | None: ...
def dtypes() -> list[tuple[str, str, int, str]]: ...
def settings() -> list[tuple[str, str, str, str, bool]]: ...
def setting(name: str) -> Any: ...
def abandon(threads: list[int], /) -> None: ...
def is_abandoned() -> bool: ...
def include_dir() -> str: ...
def shutdown() -> None: ...

class Program:
    name: str
    object_path: str
    output_dir: str
    parameters: list[tuple[str, str, list[int] | None, str]]
    extents: list[list[int | str] | None]
    parameter_count: int
    stats: dict[str, Any]
    sub_workers: dict[str, Any]
    def note_sub_workers(self, functions: list[Any], /) -> None: ...
    def run(
        self,
        arguments: tuple[Any, ...],
        device_ids: list[int],
        title: str,
        lint: int,
        records: tuple[Any, ...] | None = None,
        subs: tuple[int, list[tuple[Program, str, Any]]] | None = None,
        /,
    ) -> None: ...

class Worker:
    closed: bool
    usable: bool
    pids: list[int]
    sub_pids: list[int]
    domain_count: int
    copied_bytes: int
    def __init__(
        self,
        device_ids: list[int],
        title: str,
        persistent: int,
        shared_only: bool,
        subs: tuple[int, list[tuple[Program, str, Any]]] | None = None,
        startup_timeout_ns: int = 0,
        /,
    ) -> None: ...
    def run(
        self,
        program: Program,
        arguments: tuple[Any, ...],
        lint: int,
        records: tuple[Any, ...] | None = None,
        /,
    ) -> None: ...
    def submit(
        self,
        program: Program,
        arguments: tuple[Any, ...],
        lint: int,
        records: tuple[Any, ...] | None = None,
        /,
    ) -> Run: ...
    def times(self) -> list[tuple[int, int, str, int, int, int, int]]: ...
    def load(self, program: Program, /) -> None: ...
    def alloc(self, rank: int, bytes: int, /) -> int: ...
    def free(self, rank: int, address: int, /) -> None: ...
    def copy(self, target: int, source: int, bytes: int, /) -> None: ...
    def fill(self, target: int, source: int, bytes: int, /) -> None: ...
    def committed(self, rank: int, /) -> int: ...
    def reset_windows(self) -> None: ...
    def close(self) -> None: ...

class SharedMemory:
    def __init__(self, bytes: int, /) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Run:
    done: bool
    error: BaseException | None
    def wait(self, timeout_ns: int, /) -> bool: ...
