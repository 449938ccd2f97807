"""`benchmark`: how long a compiled program runs, measured by the ranks themselves.

The workers of a benchmark stay for all its rounds. Each round is a call that records when its dispatches began and ended
(`_records.TIMES`), which costs a few looks at the clock per dispatch.
"""

from __future__ import annotations

import time

from .. import _core
from .._jit import _lint_of, _title, refuse_residents
from ..errors import DeviceError, TypeError as PyptoTypeError, ValueError as PyptoValueError
from ..ir.options import flag
from . import _telling
from ._numbers import checked_count
from ._records import TIMES
from .benchmark_stats import BenchmarkStats
from .device_tensor import as_tuple
from .run_config import RunConfig, checked_config
from .trace_spans import TraceInvocation, invocation_of, total_of

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def benchmark(
    compiled: Any,
    args: Sequence[Any],
    *,
    rounds: int = 100,
    warmup: int = 3,
    platform: str | None = None,
    device_id: int | None = None,
    config: RunConfig | None = None,
    persistent: bool = False,
    reset_persistent_windows: bool | None = None,
) -> BenchmarkStats:
    """Calls a compiled program `warmup + rounds` times and measures the rounds.

    compiled     a CompiledProgram (one of its functions, if it has several) or a DistributedCompiledProgram
    args         as for a call in place; outputs are written in every round
    platform, device_id
                 for a program without a host function; not together with config
    config       a RunConfig for the calls
    persistent, reset_persistent_windows
                 as `prepare` takes them, for a program with a host function

    Raises ValueError for numbers and combinations that cannot be, DeviceError (a RuntimeError) when nothing was measured
    because the program dispatches nothing, and what the program raises.
    """
    from ..ir import CompiledProgram, DistributedCompiledProgram
    from ..ir.compiled_program import Orchestration

    rounds = checked_count(rounds, "rounds", 1)
    warmup = checked_count(warmup, "warmup", 0)
    persistent = flag("persistent", persistent)
    chosen = platform is not None or device_id is not None
    if config is not None and chosen:
        raise PyptoValueError("give config, or platform and device_id, not both")
    distributed = isinstance(compiled, DistributedCompiledProgram)
    if distributed and chosen:
        raise PyptoValueError(
            "platform and device_id do not apply to an L3 program (one with a host function): it "
            "has the platform and devices it was compiled for"
        )
    if not distributed and (persistent or reset_persistent_windows is not None):
        raise PyptoValueError(
            "persistent and reset_persistent_windows apply only to an L3 program (one with a host "
            "function)"
        )
    checked_config(config)
    arguments = as_tuple(args, "args", "arguments")
    if distributed:
        with compiled.prepare(
            config, persistent=persistent, reset_persistent_windows=reset_persistent_windows
        ) as worker:
            native, arguments = worker._checked(compiled, arguments, config)
            return _measure(worker._native, native, arguments, compiled, config, rounds, warmup, True)
    if isinstance(compiled, CompiledProgram):
        compiled = compiled._only("benchmark()")
    if not isinstance(compiled, Orchestration):
        raise PyptoTypeError(
            f"benchmark() takes a compiled program, not {type(compiled).__name__}"
        )
    if chosen:
        config = RunConfig(
            platform=compiled.platform if platform is None else platform,
            device_id=0 if device_id is None else device_id,
        )
    arguments = compiled._in_place(arguments)
    compiled._check_config(config, stacklevel=3)
    refuse_residents(compiled.name, arguments, compiled._program.check_kinds)
    workers = _core.Worker([getattr(config, "device_id", 0)], _title(compiled.name), 0, False)
    try:
        return _measure(
            workers, compiled._program, arguments, compiled, config, rounds, warmup, False
        )
    finally:
        workers.close()


def _measure(
    workers: _core.Worker,
    native: _core.Program,
    arguments: tuple[Any, ...],
    compiled: Any,
    config: RunConfig | None,
    rounds: int,
    warmup: int,
    distributed: bool,
) -> BenchmarkStats:
    lint = _lint_of(config)
    records = compiled._records(config)
    records = TIMES if records is None else (*records[:-1], True)
    pids = [pid or rank for rank, pid in enumerate(workers.pids)]
    for _ in range(warmup):
        workers.run(native, arguments, lint, records)
    stats = BenchmarkStats(rounds=rounds, warmup=warmup)
    for _ in range(rounds):
        began = time.perf_counter_ns()
        workers.run(native, arguments, lint, records)
        stats.call_wall_us.append((time.perf_counter_ns() - began) / 1000)
        ranks: dict[int, list[TraceInvocation]] = {}
        for times in workers.times():
            invocation = invocation_of(pids[times[0]], len(stats.invocations), times)
            stats.invocations.append(invocation)
            ranks.setdefault(invocation.pid, []).append(invocation)
        for metric, samples in (("device", stats.device_wall_us), ("host", stats.host_wall_us)):
            if ranks:
                samples.append(max(total_of(group, metric) for group in ranks.values()))
        if distributed:
            stats.rounds_dispatches.append(ranks)
    if not stats.host_wall_us:
        raise DeviceError(
            f"no [STRACE] markers captured: {compiled.name} dispatches nothing, so there is "
            "nothing to measure"
        )
    _telling.tell(_telling.TIMING, "benchmark of %s: %r", compiled.name, stats)
    return stats
