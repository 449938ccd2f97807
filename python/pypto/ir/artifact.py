"""The output directory of a compile: which one, and what is written to it. docs/artifacts.md describes it for users.

A program is three texts and its native object (`Sources`), from the cache. The directory gets all of them, the parts of
the C text in files of their own, a `kernel_config.py` per device program, and last the sidecar by which `from_dir`
reads it back. Nothing that is in the directory already is removed but what would contradict the new program.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

from .. import _core
from ..backend import (
    BACKENDS,
    PLATFORMS,
    backend_of,
    checked_backend,
    checked_platform,
    platform_for,
)
from ..errors import FileNotFoundError as PyptoFileNotFoundError, TypeError as PyptoTypeError
from . import sub_workers
from .distributed_config import DistributedConfig
from .folder import Folder, file_name, path_of
from .options import PassDumpLevel, checked_threads
from .sidecar import COMPILED, DISTRIBUTED, Sidecar, check_against, read

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

DEFAULT_RUNTIME = "tensormap_and_ringbuffer"
OBJECT, SUM, C_TEXT, IR_TEXT, DESCRIPTION = (
    "program.so",
    "program.sum",
    "program.c",
    "program.ir",
    "program.json",
)
ONE_DEVICE = "kernel_config.py"  # marks the directory of a program for one device
HOST = "orchestration/host_orch.c"  # marks that of a program with a host function
PARTS = "next_levels"
PASSES = "passes_dump"
_BASE = "PYPTO_PROG_BUILD_DIR"
_RUNNER = "PYPTO_EMIT_DEBUG_RUNNER"


class Sources:
    """What a program was made of. `native` is None for one that was compiled with skip_ptoas."""

    def __init__(self, texts: tuple[str, str, str], native: _core.Program | None) -> None:
        self.c, self.ir, self._description = texts
        self.native = native
        self.described: dict[str, Any] = json.loads(self._description)
        self.functions: list[dict[str, Any]] = self.described["functions"]
        self.dumps: dict[str, str] = {}  # file -> IR

    @classmethod
    def of(cls, native: _core.Program) -> Sources:
        folder = Path(native.output_dir)
        texts = tuple(
            (folder / name).read_text("utf-8", "surrogateescape")
            for name in (C_TEXT, IR_TEXT, DESCRIPTION)
        )
        return cls(texts, native)  # type: ignore[arg-type]

    def dump(self, stages: list[tuple[str, str]], level: PassDumpLevel) -> None:
        """Keeps the IR of the stages that are to be written."""
        latest = None
        for number, (stage, text) in enumerate(stages):
            if level is PassDumpLevel.EXPLICIT or text != latest:
                self.dumps[f"{PASSES}/{number:02}_after_{stage}.ir"] = text
            latest = text

    @property
    def entry(self) -> dict[str, Any]:
        """The host function."""
        return self.functions[-1]

    def callees(self, function: dict[str, Any], plane: str) -> list[dict[str, Any]]:
        """Which functions of that plane it calls, itself or through others, in the order of their text."""
        seen: set[int] = set()
        open_ends = list(function["calls"])
        while open_ends:
            number = open_ends.pop()
            if number not in seen:
                seen.add(number)
                open_ends += self.functions[number]["calls"]
        return [self.functions[n] for n in sorted(seen) if self.functions[n]["plane"] == plane]

    def part(self, function: dict[str, Any], what: str) -> str:
        """The C text of one function."""
        first, last = function["lines"]
        lines = self.c.split("\n")[first - 1 : last]
        head = f"/* The {what} '{function['c_name']}': lines {first} to {last} of {C_TEXT}. */\n"
        return head + "\n".join(lines) + "\n"


class Settings:
    """What else a directory records of a compile.

    runtime       the wire name of a RuntimeKind
    threads       aicpu_thread_num; 0 is the default
    """

    def __init__(self, runtime: str, threads: int, profile: bool) -> None:
        self.runtime = runtime
        self.threads = threads
        self.profile = profile

    @property
    def runtime_config(self) -> dict[str, Any]:
        return {"runtime": self.runtime, "aicpu_thread_num": self.threads}


# ---- where ----


def default_base() -> str:
    return str(_core.setting(_BASE))


def open_folder(output_dir: Any, name: str) -> Folder | None:
    """The directory of a compile of `name`. None: it may be anywhere, but nowhere can it be made, which is a warning."""
    if output_dir is not None:
        return Folder.at(output_dir)
    import time

    base = default_base()
    try:
        return Folder.new(base, f"{file_name(name)}_{time.strftime('%Y%m%d_%H%M%S')}")
    except OSError as error:
        _warn_of(base, error)
        return None


def _warn_of(base: str, error: OSError) -> None:
    try:
        where = os.path.abspath(base)
    except OSError:  # the current directory has been removed
        where = base
    warnings.warn(
        f"the output directory cannot be written to {where}: {error.strerror}; set "
        f"{_BASE}, or pass output_dir=. The program itself is in the cache",
        RuntimeWarning,
        stacklevel=5,
    )


# ---- what ----


def write(
    output_dir: Any, name: str, programs: dict[str, tuple[Sources, Sidecar]], settings: Settings
) -> Path | None:
    """Writes the directory of a compile: one program, with or without a host function, or several without, by their
    names. Returns where, or None when no directory was asked for and none can be written."""
    folder = open_folder(output_dir, name)
    if folder is None:
        return None
    with folder:
        try:
            _write(folder, programs, settings)
        except OSError as error:
            if output_dir is not None:
                raise
            _warn_of(str(folder.path), error)
            return None
        return folder.path


def _write(
    folder: Folder, programs: dict[str, tuple[Sources, Sidecar]], settings: Settings
) -> None:
    for stale in (COMPILED, DISTRIBUTED, ONE_DEVICE, HOST):
        folder.remove(stale)
    if len(programs) > 1:
        for name, (sources, sidecar) in programs.items():
            _write_program(folder, part_folder(name) + "/", sources, sidecar, settings)
        return
    for sources, sidecar in programs.values():
        _write_program(folder, "", sources, sidecar, settings)
        if settings.profile and sources.native is not None:
            _write_profile(folder, sources.native.stats)
        if sources.native is not None and _emits_runner():
            folder.write(RUNNER, RUNNER_TEXT)


def dumped(path: Path) -> list[str]:
    """The files of stages that a directory has, in their order."""
    try:
        found = os.listdir(path / PASSES)
    except OSError:
        return []
    return sorted(name for name in found if name[:2].isdigit() and name[2:9] == "_after_" and name.endswith(".ir"))


def part_folder(name: str) -> str:
    """Of one of several programs, or of a device program."""
    return f"{PARTS}/{file_name(name)}"


def _write_program(
    folder: Folder, prefix: str, sources: Sources, sidecar: Sidecar, settings: Settings
) -> None:
    for stale in (sidecar.name, OBJECT, SUM, ONE_DEVICE):
        folder.remove(prefix + stale)
    folder.write(prefix + C_TEXT, sources.c)
    folder.write(prefix + IR_TEXT, sources.ir)
    for stale in dumped(folder.path / prefix):
        folder.remove(f"{prefix}{PASSES}/{stale}")
    for name, text in sources.dumps.items():
        folder.write(prefix + name, text)
    folder.write(prefix + DESCRIPTION, sources._description)
    runs = sources.native is not None
    if sources.native is not None:
        kept = Path(sources.native.output_dir)
        folder.write(prefix + OBJECT, (kept / OBJECT).read_bytes())
        folder.write(prefix + SUM, (kept / SUM).read_bytes())
    wrappers = sources.callees(sources.entry, "chip")
    if sidecar.distributed_config is not None:
        for where, wrapper in _device_programs(wrappers, sources):
            _write_device_program(folder, where, sources, wrapper, settings, runs)
        folder.write(HOST, sources.part(sources.entry, "host function"))
        if sources.native is not None:
            sub_workers.write(folder, sources.native)
    elif wrappers:
        _write_device_program(folder, prefix, sources, wrappers[0], settings, runs)
    folder.write(prefix + sidecar.name, sidecar.text())


def _device_programs(
    wrappers: list[dict[str, Any]], sources: Sources
) -> list[tuple[str, dict[str, Any]]]:
    """A folder for each wrapper that the host function dispatches: of its own name, or of the collective that it was
    made for, which is recorded once. Wrappers of one name are told apart by the names that they have in C."""
    folders: dict[str, dict[str, Any]] = {}
    for wrapper in wrappers:
        collective = [
            kernel["collective"]
            for kernel in sources.callees(wrapper, "core")
            if "collective" in kernel
        ]
        if collective:
            folders.setdefault(f"{PARTS}/builtin.tensor.{collective[0]}/", wrapper)
            continue
        where = part_folder(wrapper["name"]) + "/"
        if where in folders:
            where = part_folder(wrapper["c_name"]) + "/"
        folders[where] = wrapper
    return list(folders.items())


def _write_device_program(
    folder: Folder,
    prefix: str,
    sources: Sources,
    wrapper: dict[str, Any],
    settings: Settings,
    runs: bool,
) -> None:
    orchestration = f"orchestration/{file_name(wrapper['name'])}.c"
    folder.write(prefix + orchestration, sources.part(wrapper, "per-device wrapper"))
    kernels = []
    taken: set[str] = set()
    for kernel in sources.callees(wrapper, "core"):
        name = file_name(kernel["name"])
        if name in taken:
            name = file_name(kernel["c_name"])
        taken.add(name)
        folder.write(f"{prefix}kernels/{name}.c", sources.part(kernel, "kernel"))
        kernels.append(
            {
                "func_id": len(kernels),
                "name": kernel["name"],
                "source": f"kernels/{name}.c",
                "core_type": "cpu",
                "signature": [p["direction"] for p in kernel["params"]],
            }
        )
    if runs:
        folder.write(prefix + ONE_DEVICE, _config_text(settings, wrapper, orchestration, kernels))
    else:
        folder.remove(prefix + ONE_DEVICE)


def _config_text(
    settings: Settings, wrapper: dict[str, Any], orchestration: str, kernels: list[dict[str, Any]]
) -> str:
    described = {
        "source": orchestration,
        "function_name": wrapper["name"],
        "signature": [p["direction"] for p in wrapper["params"]],
    }
    lines = ["# What this device program consists of. Written by pypto, for reading: nothing loads it.", ""]
    for name, content in (
        ("RUNTIME_CONFIG", settings.runtime_config),
        ("ORCHESTRATION", described),
    ):
        lines += [f"{name} = {{", *(f"    {key!r}: {value!r}," for key, value in content.items()), "}", ""]
    lines += ["KERNELS = [", *(f"    {kernel!r}," for kernel in kernels), "]", ""]
    return "\n".join(lines)


def _write_profile(folder: Folder, stats: dict[str, Any]) -> None:
    folder.write("report/pipeline_profile.json", json.dumps(stats, indent=2) + "\n")
    front, back = stats["front_ns"] / 1e6, stats["back_ns"] / 1e6
    folder.write(
        "report/pipeline_profile.txt",
        f"front end, passes, emitter  {front:10.3f} ms  {'from the cache' if stats['front_hit'] else ''}\n"
        f"C compiler                  {back:10.3f} ms  {'from the cache' if stats['back_hit'] else ''}\n",
    )


RUNNER = "debug/run.py"
RUNNER_TEXT = '''"""Runs the program in the folder above again: python run.py [x.npy | number] ..."""

import pathlib
import sys

from pypto.runtime import debug

debug.main(pathlib.Path(__file__).resolve().parent.parent, sys.argv[1:])
'''


def _emits_runner() -> bool:
    return bool(_core.setting(_RUNNER))


# ---- reading back ----


def reload(
    folder: Any, platform: Any, backend: Any, config: DistributedConfig | None, distributed: bool
) -> tuple[Path, Sidecar, _core.Program, Settings]:
    """The program of a directory. What is given wins over what the directory says."""
    path = Path(os.path.realpath(path_of(folder, "dir")))
    sidecar = read(path, DISTRIBUTED if distributed else COMPILED, PLATFORMS, BACKENDS)
    if platform is not None:
        sidecar.platform = checked_platform(platform)
        sidecar.backend_type = backend_of(sidecar.platform)
    elif backend is not None:
        sidecar.platform = platform_for(None, backend)
        sidecar.backend_type = checked_backend(backend)
    if config is not None:
        if not isinstance(config, DistributedConfig):
            raise PyptoTypeError(
                f"distributed_config must be a pypto.ir.DistributedConfig, not {type(config).__name__}"
            )
        checked_threads(config.aicpu_thread_num, sidecar.platform)
        sidecar.distributed_config = config
    if not _was_compiled(path, distributed):
        raise not_runnable(path)
    native = _core.load(str(path))
    if distributed:
        sub_workers.load(path, native)
    check_against(path, sidecar, native)
    return path, sidecar, native, _settings_in(path, distributed)


def _was_compiled(path: Path, distributed: bool) -> bool:
    """Whether a compile has left native code, of which anything but program.c may be gone since."""
    if not (path / (HOST if distributed else ONE_DEVICE)).is_file():
        return False
    return os.path.lexists(path / SUM) or not distributed or any((path / PARTS).glob(f"*/{ONE_DEVICE}"))


def _settings_in(path: Path, distributed: bool) -> Settings:
    """RUNTIME_CONFIG of a kernel_config.py, without running it; the defaults where it says nothing."""
    import ast

    found: dict[str, Any] = {}
    files = sorted((path / PARTS).glob(f"*/{ONE_DEVICE}")) if distributed else [path / ONE_DEVICE]
    try:
        for node in ast.parse(files[0].read_bytes()).body if files else ():
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RUNTIME_CONFIG":
                found = ast.literal_eval(node.value)
        return Settings(str(found["runtime"]), int(found["aicpu_thread_num"]), False)
    except (OSError, SyntaxError, ValueError, TypeError, KeyError):
        return Settings(DEFAULT_RUNTIME, 0, False)


def not_runnable(path: Path) -> BaseException:
    return PyptoFileNotFoundError(
        f"{path / ONE_DEVICE} does not exist: the artifact was generated with skip_ptoas=True, or is no output "
        "directory of a compile, and cannot run; compile the program (again, and without skip_ptoas)"
    )
