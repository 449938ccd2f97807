"""The files that say how the program of a folder is called: compiled_meta.json, distributed_meta.json.

Written last, so that a folder with one is complete. Read strictly: each field has exactly the type and the values that
are written, nothing is missing and nothing is there besides; else a ValueError names the file and the field.
"""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import asdict, fields
from pathlib import Path

from .. import _core
from .._dtypes import DTYPES, DataType
from ..errors import FileNotFoundError as PyptoFileNotFoundError, ValueError as PyptoValueError
from .distributed_config import DistributedConfig

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .runnable import ParameterInfo

COMPILED = "compiled_meta.json"
DISTRIBUTED = "distributed_meta.json"
_SCHEMA = {COMPILED: 1, DISTRIBUTED: 2}
_KEYS = ("schema", "params", "num_return_types", "platform", "backend_type")
_DIRECTIONS = ("In", "Out", "InOut")
_BY_TEXT: dict[str, DataType] = {str(dtype): dtype for dtype in DTYPES.values()}
_MOST_RETURNED = 1 << 16


class Sidecar:
    """What such a file says.

    params            ParameterInfo, in order
    num_return_types  how many values a call in return style gives
    platform, backend_type
    distributed_config   None for a program without a host function
    baked                scalars that it was compiled for, by the number of the parameter; a call may leave all of them out
    """

    def __init__(
        self,
        params: list[ParameterInfo],
        num_return_types: int,
        platform: str,
        backend_type: str,
        distributed_config: DistributedConfig | None,
        baked: dict[int, Any],
    ) -> None:
        self.params = params
        self.num_return_types = num_return_types
        self.platform = platform
        self.backend_type = backend_type
        self.distributed_config = distributed_config
        self.baked = baked

    @property
    def name(self) -> str:
        return COMPILED if self.distributed_config is None else DISTRIBUTED

    def text(self) -> str:
        content: dict[str, Any] = {
            "schema": _SCHEMA[self.name],
            "params": [
                {"name": p.name, "direction": p.direction, "shape": p.shape, "dtype": str(p.dtype)}
                | ({"value": _in_json(self.baked[i])} if i in self.baked else {})
                for i, p in enumerate(self.params)
            ],
            "num_return_types": self.num_return_types,
            "platform": self.platform,
            "backend_type": self.backend_type,
        }
        if self.distributed_config is not None:
            content["distributed_config"] = asdict(self.distributed_config)
        return json.dumps(content, indent=2) + "\n"


def _in_json(number: Any) -> Any:
    """JSON has no NaN and no infinity."""
    return number if math.isfinite(number) else str(number)


def read(folder: Path, name: str, platforms: tuple[str, ...], backends: tuple[str, ...]) -> Sidecar:
    """The sidecar of that name. Raises FileNotFoundError when it is not there."""
    path = folder / name
    try:
        # O_NONBLOCK: to open a pipe would wait for somebody who writes.
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            content = file.read() if regular else b""
    except FileNotFoundError:
        multi = " (a multi-orch program has none, each of its next_levels/<name> has one)"
        raise PyptoFileNotFoundError(
            f"{path} does not exist: {folder} is not the output directory of a compile of this kind"
            + (multi if name == COMPILED else "")
        ) from None
    except OSError as error:
        raise PyptoValueError(f"{path} cannot be read: {error.strerror}") from None
    if not regular:
        raise PyptoValueError(f"{path} cannot be read: it is no regular file")
    reader = _Reader(path)
    return reader.sidecar(reader.parsed(content), name, platforms, backends)


class _Reader:
    """Checks of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def refuse(self, what: str) -> NoReturn:
        raise PyptoValueError(
            f"{self.path} is malformed: {what}; compile the program again with ir.compile()"
        )

    def parsed(self, content: bytes) -> Any:
        try:
            return json.loads(content, object_pairs_hook=self.unique)
        except PyptoValueError:
            raise
        except (ValueError, RecursionError) as error:
            self.refuse(f"it is no JSON ({error})")

    def unique(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            self.refuse("a key occurs twice")
        return found

    def keyed(self, value: Any, keys: tuple[str, ...], what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.refuse(f"{what} must be an object")
        for key in keys:
            if key not in value:
                self.refuse(f"{what} has no {key!r}")
        for key in value:
            if key not in keys:
                self.refuse(f"{what} has an unknown key {key!r}")
        return value

    def integer(self, value: Any, least: int, most: int, what: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.refuse(f"{what} must be an integer from {least} to {most}, it is {value!r}")
        return value

    def word(self, value: Any, words: Any, what: str) -> str:
        if not isinstance(value, str) or value not in words:
            self.refuse(f"{what} must be one of {', '.join(words)}, it is {value!r}")
        return value

    def listed(self, value: Any, what: str) -> list[Any]:
        if not isinstance(value, list):
            self.refuse(f"{what} must be a list")
        return value

    def param(self, value: Any, what: str) -> ParameterInfo:
        from .runnable import ParameterInfo

        given = isinstance(value, dict) and value.get("shape", 0) is None and "value" in value
        keys = ("name", "direction", "shape", "dtype")
        row = self.keyed(value, (*keys, "value") if given else keys, what)
        if not isinstance(row["name"], str) or not row["name"]:
            self.refuse(f"{what}.name must be a name")
        direction = self.word(row["direction"], _DIRECTIONS, f"{what}.direction")
        dtype = self.word(row["dtype"], _BY_TEXT, f"{what}.dtype")
        shape = row["shape"]
        if shape is not None:
            shape = [
                self.integer(extent, -1, 2**63 - 1, f"{what}.shape[{d}]")
                for d, extent in enumerate(self.listed(shape, f"{what}.shape"))
            ]
        return ParameterInfo(row["name"], direction, shape, _BY_TEXT[dtype])

    def number(self, value: Any, dtype: DataType, what: str) -> Any:
        """That a scalar was compiled for."""
        if dtype.name == "BOOL":
            return self.word(str(value), ("True", "False"), what) == "True"
        if dtype.name.strip("U").startswith("IN"):
            return self.integer(value, -(2**63), 2**64 - 1, what)
        if value in ("nan", "inf", "-inf") or isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value) if isinstance(value, str) else value
        self.refuse(f"{what} is no number of type {dtype}: {value!r}")

    def config(self, value: Any) -> DistributedConfig:
        what = "distributed_config"
        row = self.keyed(value, tuple(f.name for f in fields(DistributedConfig)), what)
        for name in ("num_sub_workers", "aicpu_thread_num"):
            self.integer(row[name], 0, 2**31 - 1, f"{what}.{name}")
        if not isinstance(row["runtime"], str):
            self.refuse(f"{what}.runtime must be a name")
        for i, device in enumerate(self.listed(row["device_ids"], f"{what}.device_ids")):
            self.integer(device, 0, 2**31 - 1, f"{what}.device_ids[{i}]")
        try:
            return DistributedConfig(**row)
        except PyptoValueError as error:
            self.refuse(str(error))

    def sidecar(
        self, content: Any, name: str, platforms: tuple[str, ...], backends: tuple[str, ...]
    ) -> Sidecar:
        if not isinstance(content, dict):
            self.refuse("it must be an object")
        schema = content.get("schema")
        if isinstance(schema, bool) or schema != _SCHEMA[name]:
            self.refuse(f"schema must be {_SCHEMA[name]}, it is {schema!r}")
        distributed = name == DISTRIBUTED
        row = self.keyed(content, (*_KEYS, "distributed_config") if distributed else _KEYS, "it")
        params = [
            self.param(value, f"params[{i}]")
            for i, value in enumerate(self.listed(row["params"], "params"))
        ]
        platform = self.word(row["platform"], platforms, "platform")
        backend = self.word(row["backend_type"], backends, "backend_type")
        count = self.integer(row["num_return_types"], 0, _MOST_RETURNED, "num_return_types")
        config = self.config(row["distributed_config"]) if distributed else None
        baked = {
            i: self.number(value["value"], param.dtype, f"params[{i}].value")
            for i, (value, param) in enumerate(zip(row["params"], params))
            if "value" in value
        }
        return Sidecar(params, count, platform, backend, config, baked)


def check_against(path: Path, sidecar: Sidecar, native: _core.Program) -> None:
    """That the two are of one program."""
    said = [(p.name, p.direction, p.shape, p.dtype.name if p.dtype else "") for p in sidecar.params]
    if said != [tuple(row) for row in native.parameters]:
        _Reader(path / sidecar.name).refuse("its params are not those of the program beside it")
