"""What a benchmark measured."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from ..errors import TypeError as PyptoTypeError, ValueError as PyptoValueError
from ._numbers import is_int
from .trace_spans import METRICS, TraceInvocation, TraceSpan, time_text, total_of, tree_lines

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Callable

_SPREADS = ("stdev", "minmax", "both", "none")


@dataclass
class BenchmarkStats:
    """Times of the rounds of a benchmark, in microseconds. Warm-up rounds are not among them.

    device_wall_us      per round: how long the device ran; with a host function, the longest of the ranks, each with
                        the sum of its dispatches
    host_wall_us        the same with what dispatches waited for before they began
    call_wall_us        per round: the whole call, as its caller sees it
    rounds, warmup      how many there were
    invocations         all dispatches of all rounds
    rounds_dispatches   with a host function, per round: {pid: the dispatches of that rank, in order}
    device_us_min, device_us_median, device_us_mean, device_us_max, device_us_stdev
                        of device_wall_us, 0.0 without rounds; device_wall_us_min and so on are the same
    """

    device_wall_us: list[float] = field(default_factory=list)
    host_wall_us: list[float] = field(default_factory=list)
    rounds: int = 0
    warmup: int = 0
    invocations: list[TraceInvocation] = field(default_factory=list)
    rounds_dispatches: list[dict[int, list[TraceInvocation]]] = field(default_factory=list)
    call_wall_us: list[float] = field(default_factory=list)

    # ---- in numbers ----

    @property
    def samples(self) -> list[float]:
        """Another name of device_wall_us."""
        return self.device_wall_us

    @property
    def device_us_min(self) -> float:
        """The shortest of device_wall_us; 0.0 without rounds."""
        return min(self.device_wall_us, default=0.0)

    @property
    def device_us_median(self) -> float:
        """The median of device_wall_us; 0.0 without rounds."""
        return statistics.median(self.device_wall_us) if self.device_wall_us else 0.0

    @property
    def device_us_mean(self) -> float:
        """The mean of device_wall_us; 0.0 without rounds."""
        return statistics.fmean(self.device_wall_us) if self.device_wall_us else 0.0

    @property
    def device_us_max(self) -> float:
        """The longest of device_wall_us; 0.0 without rounds."""
        return max(self.device_wall_us, default=0.0)

    @property
    def device_us_stdev(self) -> float:
        """The standard deviation of device_wall_us; 0.0 with fewer than two rounds."""
        return statistics.stdev(self.device_wall_us) if len(self.device_wall_us) > 1 else 0.0

    device_wall_us_min = device_us_min
    device_wall_us_median = device_us_median
    device_wall_us_mean = device_us_mean
    device_wall_us_max = device_us_max
    device_wall_us_stdev = device_us_stdev

    @property
    def all_zero_device(self) -> bool:
        """Whether there are samples, all of them 0."""
        return bool(self.device_wall_us) and not any(self.device_wall_us)

    # ---- by round, rank and dispatch ----

    @property
    def fallback_flattened(self) -> bool:
        """Whether ranks had more dispatches in some rounds than in others; then nothing is known by dispatch."""
        return len({tuple((p, len(d)) for p, d in sorted(r.items())) for r in self.rounds_dispatches}) > 1

    @property
    def unstable_dispatch_slots(self) -> list[tuple[int, int]]:
        """(pid, slot) of dispatches that were of one function in some rounds and of another in others; they are
        left out of what is told by dispatch."""
        return [key for key, group in self._groups().items() if len({i.task_name for i in group}) > 1]

    def dispatch_groups(self) -> dict[tuple[int, int], list[TraceInvocation]]:
        """The dispatches of all rounds by (pid, slot): the slot-th one of that rank in each call."""
        unstable = self.unstable_dispatch_slots
        return {key: group for key, group in self._groups().items() if key not in unstable}

    def dispatch_tasks(self) -> dict[tuple[int, int], str | None]:
        """Which function each (pid, slot) runs."""
        return {key: group[0].task_name for key, group in self.dispatch_groups().items()}

    def per_round(self, metric: str) -> list[float]:
        """The metric of each round: the longest of its ranks.

        "device"     the sum of the ranks's dispatches, from the first instruction of each to the end of its tasks
        "host"       with what they waited for before
        "effective"  from the first to the last moment in which their wrappers and tasks ran
        "union"      as "device", but time in which several dispatches of a rank ran counts once
        """
        _check_metric(metric)
        if not self.rounds_dispatches:
            return [total_of([invocation], metric) for invocation in self.invocations]
        return [
            max((total_of(ds, metric) for ds in ranks.values()), default=0.0)
            for ranks in self.rounds_dispatches
        ]

    def per_rank(self, metric: str) -> dict[int, list[float]]:
        """The metric by rank: {pid: [per round]}. Empty without a host function."""
        _check_metric(metric)
        pids = sorted({pid for ranks in self.rounds_dispatches for pid in ranks})
        return {
            pid: [total_of(ranks.get(pid, []), metric) for ranks in self.rounds_dispatches]
            for pid in pids
        }

    def per_dispatch(self, metric: str) -> dict[tuple[int, int], list[float]]:
        """The metric by dispatch: {(pid, slot): [per round]}. Empty without a host function."""
        _check_metric(metric)
        return {
            key: [total_of([invocation], metric) for invocation in group]
            for key, group in self.dispatch_groups().items()
        }

    def _groups(self) -> dict[tuple[int, int], list[TraceInvocation]]:
        groups: dict[tuple[int, int], list[TraceInvocation]] = {}
        if self.fallback_flattened:
            return groups
        for ranks in self.rounds_dispatches:
            for pid, dispatches in sorted(ranks.items()):
                for slot, invocation in enumerate(dispatches):
                    groups.setdefault((pid, slot), []).append(invocation)
        return groups

    # ---- in words ----

    def format_tree(self, launch: int | None = None, *, us: bool = True) -> str:
        """The dispatches of the round `launch` as trees of times; None is the round whose device time is the median.

        us   times are in microseconds, else in nanoseconds
        """
        if not self.invocations:
            return "(nothing was measured)"
        count = len(self.device_wall_us)
        if launch is None:
            launch = sorted(range(count), key=self.device_wall_us.__getitem__)[(count - 1) // 2]
        if not is_int(launch):
            raise PyptoTypeError(f"launch must be a round or None, got {launch!r}")
        if not -count <= launch < count:
            raise PyptoValueError(f"launch must be a round in 0..{count - 1}, got {launch}")
        if not self.rounds_dispatches:
            return self.invocations[launch].format_tree(us=us)
        ranks = self.rounds_dispatches[launch]
        return "\n".join(
            f"pid {pid}, dispatch {slot}\n{invocation.format_tree(us=us)}"
            for pid, dispatches in sorted(ranks.items())
            for slot, invocation in enumerate(dispatches)
        )

    def print_tree(self, launch: int | None = None, *, us: bool = True) -> None:
        """Prints format_tree(launch, us=us)."""
        print(self.format_tree(launch, us=us))

    def mean_invocation(self, *, pid: int | None = None, slot: int | None = None) -> TraceInvocation:
        """A dispatch with the mean times of all rounds. `pid` and `slot` say which, where there are several. Raises
        ValueError unless one is left."""
        matching = self._matching(pid, slot)
        if len(matching) != 1:
            raise PyptoValueError(f"{len(matching)} dispatches match pid={pid} slot={slot}; name one")
        return _mean_of(next(iter(matching.values())))

    def format_mean_tree(
        self,
        *,
        us: bool = True,
        spread: str = "stdev",
        pid: int | None = None,
        slot: int | None = None,
    ) -> str:
        """The mean times of all rounds as a tree for each dispatch.

        us          times are in microseconds, else in nanoseconds
        spread      what stands behind each: "stdev", "minmax", "both" or "none"; ValueError for another one
        pid, slot   only the dispatches of that worker process, and the slot-th one of each call
        """
        if spread not in _SPREADS:
            raise PyptoValueError(f"spread must be one of {', '.join(_SPREADS)}, got {spread!r}")
        matching = self._matching(pid, slot)
        if not matching:
            return "(nothing was measured)"
        parts = []
        for (of, number), group in matching.items():
            lengths = _lengths_of(group)
            tree = "\n".join(
                tree_lines(_mean_of(group).spans, _with_spread(lengths, us, spread))
            )
            parts.append(f"pid {of}, dispatch {number}\n{tree}" if self.rounds_dispatches else tree)
        return "\n".join(parts)

    def print_mean_tree(
        self,
        *,
        us: bool = True,
        spread: str = "stdev",
        pid: int | None = None,
        slot: int | None = None,
    ) -> None:
        """Prints format_mean_tree() with the same us, spread, pid and slot."""
        print(self.format_mean_tree(us=us, spread=spread, pid=pid, slot=slot))

    def _matching(
        self, pid: int | None, slot: int | None
    ) -> dict[tuple[int, int], list[TraceInvocation]]:
        if self.rounds_dispatches:
            groups = self.dispatch_groups()
        else:
            groups = {(self.invocations[0].pid, 0): self.invocations} if self.invocations else {}
        return {
            (p, s): group
            for (p, s), group in groups.items()
            if pid in (None, p) and slot in (None, s)
        }

    def __repr__(self) -> str:
        return (
            f"<BenchmarkStats {self.rounds} rounds, device us: min {self.device_us_min:.3f}, "
            f"median {self.device_us_median:.3f}, mean {self.device_us_mean:.3f}, "
            f"max {self.device_us_max:.3f}, stdev {self.device_us_stdev:.3f}>"
        )


def _check_metric(metric: str) -> None:
    if metric not in METRICS:
        raise PyptoValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")


def _lengths_of(group: list[TraceInvocation]) -> dict[str, list[float]]:
    lengths: dict[str, list[float]] = {}
    for invocation in group:
        for span in invocation.spans:
            lengths.setdefault(span.name, []).append(span.dur)
    return lengths


def _mean_of(group: list[TraceInvocation]) -> TraceInvocation:
    first, lengths = group[0], _lengths_of(group)
    starts: dict[str, list[float]] = {}
    for invocation in group:
        root = invocation.root()
        for span in invocation.spans:
            starts.setdefault(span.name, []).append(span.ts - (root.ts if root else 0))
    spans = [
        TraceSpan(
            span.pid,
            span.tid,
            first.inv,
            span.hid,
            span.depth,
            span.name,
            statistics.fmean(starts[span.name]),
            statistics.fmean(lengths[span.name]),
            dict(span.attrs),
        )
        for span in first.spans
    ]
    return TraceInvocation(first.pid, first.inv, first.hid, spans)


def _with_spread(
    lengths: dict[str, list[float]], us: bool, spread: str
) -> Callable[[TraceSpan], str]:
    def text_of(span: TraceSpan) -> str:
        values = lengths[span.name]
        text = time_text(span.dur, us)
        if spread in ("stdev", "both"):
            deviation = statistics.stdev(values) if len(values) > 1 else 0.0
            text += f" +- {time_text(deviation, us)}"
        if spread in ("minmax", "both"):
            text += f" [{time_text(min(values), us)} .. {time_text(max(values), us)}]"
        return text

    return text_of
