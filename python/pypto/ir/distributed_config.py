"""DistributedConfig: the devices of a run."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from .._keywords import checked, integer
from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError

MOST_DEVICES = 64  # PYPTO_MAX_RANKS of <pypto/types.h>
MOST_SUB_WORKERS = 64  # of a worker set


@checked
@dataclass
class DistributedConfig:
    """The devices of a run. A device here is a worker process; ids name no hardware.

    device_ids         distinct, >= 0, in rank order
    num_sub_workers    of a program that calls SubWorkers: at least so many processes run them; it has one per
                       function anyway, and 64 at most
    runtime            recorded
    aicpu_thread_num   scheduler threads per device: 0 lets the runtime choose, else at least 2

    Raises ValueError for anything else.
    """

    device_ids: list[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: str = "tensormap_and_ringbuffer"
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        ids = self.device_ids
        try:
            if isinstance(ids, (bytes, dict, set, frozenset)):  # iterable, but no list of ranks
                raise TypeError
            given = itertools.islice(ids, MOST_DEVICES + 1)
            vars(self)["device_ids"] = [integer(device) for device in given]
        except TypeError:
            raise PyptoTypeError(f"device_ids must be a list of integers, got {ids!r}") from None
        if len(self.device_ids) > MOST_DEVICES:
            raise PyptoValueError(f"device_ids must be {MOST_DEVICES} at most: more were given")
        if not self.device_ids:
            raise PyptoValueError("device_ids must not be empty: give one id per device")
        if min(self.device_ids) < 0:
            raise PyptoValueError(f"device_ids must be non-negative, got {self.device_ids}")
        if max(self.device_ids) >= 2**31:
            raise PyptoValueError(f"device_ids must be below 2**31, got {self.device_ids}")
        if len(set(self.device_ids)) != len(self.device_ids):
            raise PyptoValueError(f"device_ids must be distinct, got {self.device_ids}")
        for name in ("num_sub_workers", "aicpu_thread_num"):
            value = getattr(self, name)
            try:
                vars(self)[name] = integer(value)
            except TypeError:
                raise PyptoTypeError(f"{name} must be an integer, got {value!r}") from None
        if not isinstance(self.runtime, str):
            raise PyptoTypeError(f"runtime must be a name, got {self.runtime!r}")
        if self.num_sub_workers < 0:
            raise PyptoValueError(
                f"num_sub_workers must be non-negative, got {self.num_sub_workers}"
            )
        if self.num_sub_workers > MOST_SUB_WORKERS:
            raise PyptoValueError(
                f"num_sub_workers must be {MOST_SUB_WORKERS} at most, got {self.num_sub_workers}"
            )
        if self.aicpu_thread_num >= 2**31:
            raise PyptoValueError(
                f"aicpu_thread_num must be below 2**31, got {self.aicpu_thread_num}"
            )
        if self.aicpu_thread_num < 0 or self.aicpu_thread_num == 1:
            raise PyptoValueError(
                f"aicpu_thread_num must be 0 (default) or at least 2, got {self.aicpu_thread_num}"
            )
