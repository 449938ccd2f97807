"""What a benchmark knows of one dispatch: a tree of times."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

ROOT = "chip.run"
BIND = "chip.run.bind"
RUN = "chip.run.runner_run"
DEVICE = "chip.run.runner_run.device_wall"
WRAPPER = "chip.run.runner_run.device_wall.orch"
TASKS = "chip.run.runner_run.device_wall.sched"

# The time of an invocation that a metric stands for.
METRICS = ("device", "host", "effective", "union")


@dataclass
class TraceSpan:
    """A piece of time.

    pid, tid   of the worker process that it was spent in; of a thread transport, the rank
    inv, hid   of the invocation: its number in the benchmark, and 0
    depth      how many spans it lies in
    name       dotted: "chip.run.bind" lies in "chip.run"
    ts, dur    its begin and length in ns; the clock is that of time.monotonic_ns()
    attrs      {"clk": "dev"} for time of a device; of the outermost span, `task` and `task_name`
    """

    pid: int
    tid: int
    inv: int
    hid: int
    depth: int
    name: str
    ts: float
    dur: float
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def is_device(self) -> bool:
        """Whether it is time of a device, and not of the host's bookkeeping."""
        return self.attrs.get("clk") == "dev"

    @property
    def dur_us(self) -> float:
        """Its length in microseconds."""
        return self.dur / 1000


@dataclass
class TraceInvocation:
    """One dispatch on one rank.

    pid     of the worker process; of a thread transport, the rank
    inv     its number in the benchmark
    hid     0
    spans   its pieces of time, the outermost first
    """

    pid: int
    inv: int
    hid: int
    spans: list[TraceSpan]

    def root(self) -> TraceSpan | None:
        """The outermost span; None when there are none."""
        return min(self.spans, key=lambda span: span.depth, default=None)

    def by_name(self) -> dict[str, TraceSpan]:
        """Spans by their names."""
        return {span.name: span for span in self.spans}

    @property
    def task(self) -> int | None:
        """The how-manieth dispatch of its rank in the call it is, from 0."""
        root = self.root()
        return root.attrs.get("task") if root is not None else None

    @property
    def task_name(self) -> str | None:
        """The name of the per-device function that ran."""
        root = self.root()
        return root.attrs.get("task_name") if root is not None else None

    @property
    def device_wall_us(self) -> float:
        """From the first instruction of its wrapper until all its tasks are over, in microseconds."""
        return self._length(DEVICE)

    @property
    def host_wall_us(self) -> float:
        """The same from when the rank saw the dispatch, with what it waits for before it begins."""
        return self._length(ROOT)

    @property
    def effective_us(self) -> float:
        """From the first to the last moment in which its wrapper or its tasks ran, in microseconds."""
        spans = [s for s in self.spans if s.name in (WRAPPER, TASKS)]
        if not spans:
            return self.device_wall_us
        return (max(s.ts + s.dur for s in spans) - min(s.ts for s in spans)) / 1000

    def format_tree(self, *, us: bool = True) -> str:
        """Its spans as a tree, a line each, in microseconds or, with us=False, nanoseconds."""
        return "\n".join(tree_lines(self.spans, lambda span: time_text(span.dur, us)))

    def _length(self, name: str) -> float:
        span = self.by_name().get(name)
        return span.dur_us if span is not None else 0.0


def length_of(invocation: TraceInvocation, metric: str) -> float:
    if metric == "host":
        return invocation.host_wall_us
    return invocation.effective_us if metric == "effective" else invocation.device_wall_us


def total_of(invocations: Iterable[TraceInvocation], metric: str) -> float:
    """Microseconds of dispatches of one rank together. For "union", time in which several ran counts once."""
    if metric != "union":
        return sum(length_of(invocation, metric) for invocation in invocations)
    spans = [i.by_name()[DEVICE] for i in invocations if DEVICE in i.by_name()]
    total, reached = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.ts):
        end = span.ts + span.dur
        total += max(0.0, end - max(span.ts, reached))
        reached = max(reached, end)
    return total / 1000


def time_text(ns: float, us: bool) -> str:
    return f"{ns / 1000:.3f} us" if us else f"{ns:.0f} ns"


def tree_lines(spans: list[TraceSpan], text_of: Any) -> list[str]:
    """A line for each span, under the one that it lies in."""
    lines = []
    for span in spans:
        label = "  " * span.depth + (span.name.rpartition(".")[2] if span.depth else span.name)
        what = f" {span.attrs['task_name']}" if "task_name" in span.attrs else ""
        clock = " [dev]" if span.is_device else ""
        lines.append(f"{label + what:<32} {text_of(span)}{clock}")
    return lines


def invocation_of(
    pid: int, inv: int, times: tuple[int, int, str, int, int, int, int]
) -> TraceInvocation:
    """From what the library tells of a dispatch (`_core.Worker.times`)."""
    _, index, name, taken, begun, wrapper, over = times
    device = {"clk": "dev"}
    rows = (
        (0, ROOT, taken, over, {"task": index, "task_name": name}),
        (1, BIND, taken, begun, {}),
        (1, RUN, begun, over, {}),
        (2, DEVICE, begun, over, device),
        (3, WRAPPER, begun, wrapper, device),
        (3, TASKS, begun, over, device),
    )
    spans = [
        TraceSpan(pid, pid, inv, 0, depth, span, start, max(0, end - start), dict(attrs))
        for depth, span, start, end, attrs in rows
    ]
    return TraceInvocation(pid, inv, 0, spans)
