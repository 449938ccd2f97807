"""benchmark() and what it gives: BenchmarkStats, TraceInvocation, TraceSpan."""

import sys

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from programs import NR, config
from pypto import ir
from pypto.runtime import BenchmarkStats, RunConfig, TraceInvocation, TraceSpan, benchmark
from worker_programs import job, shift

N = 64


@pl.program
class Alone:
    @pl.function(type=pl.FunctionType.InCore)
    def add(self, x: pl.Tensor[[N], pl.FP32], y: pl.InOut[pl.Tensor[[N], pl.FP32]]):
        return pl.store(pl.add(pl.load(x, [0], [N]), pl.load(y, [0], [N])), [0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: pl.Tensor[[N], pl.FP32], y: pl.InOut[pl.Tensor[[N], pl.FP32]]):
        y = self.add(x, y)
        return y


def arguments(ranks=2):
    return np.ones((ranks, N), np.int32), np.zeros((ranks, N), np.int32)


def compiled(ranks=2):
    return job.compile(adds=pl.RUNTIME, at=pl.RUNTIME, config=config(ranks))


# ---- calls ----


def test_one_device(transport):
    program = ir.compile(Alone, platform="cpu")
    x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
    stats = benchmark(program, (x, y), rounds=7, warmup=2)
    assert (y == 9).all()  # each call ran once
    assert stats.rounds == 7 and stats.warmup == 2
    assert len(stats.device_wall_us) == len(stats.host_wall_us) == len(stats.call_wall_us) == 7
    assert stats.samples is stats.device_wall_us
    assert not stats.all_zero_device
    for device, host, call in zip(stats.device_wall_us, stats.host_wall_us, stats.call_wall_us):
        assert 0 < device <= host <= call
    assert len(stats.invocations) == 7 and stats.rounds_dispatches == []
    assert {i.task_name for i in stats.invocations} == {"chip"}
    assert stats.per_rank("device") == stats.per_dispatch("device") == {}
    assert stats.per_round("device") == stats.device_wall_us
    assert stats.dispatch_groups() == {} and not stats.fallback_flattened


def test_config_and_device():
    program = ir.compile(Alone, platform="cpu")
    x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
    benchmark(program, (x, y), rounds=1, warmup=0, platform="cpu", device_id=5)
    benchmark(program, (x, y), rounds=1, warmup=0, config=RunConfig(platform="cpu", device_id=3))
    assert (y == 2).all()


def test_times_that_find_no_room(monkeypatch):
    """Fewer times would look like fewer dispatches."""
    program = ir.compile(Alone, platform="cpu")
    x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
    monkeypatch.setenv("PYPTO_RECORD_BYTES", "1024")
    stats = benchmark(program, (x, y), rounds=2, warmup=0)
    assert len(stats.device_wall_us) == 2  # three events do find room
    many = MANY.compile(config=config(1))
    with pytest.raises(MemoryError, match="times of rank 0 found no room: 1024 bytes") as caught:
        benchmark(many, (x.reshape(1, N), y.reshape(1, N)), rounds=2, warmup=0)
    assert "PYPTO_RECORD_BYTES" in str(caught.value)


@pl.jit.incore
def one_kernel(x: pl.Tensor[[N], pl.FP32], y: pl.InOut[pl.Tensor[[N], pl.FP32]]):
    pl.store(pl.add(pl.load(x, [0], [N]), pl.load(y, [0], [N])), [0], y)


@pl.jit
def one_chip(x: pl.Tensor[[N], pl.FP32], y: pl.InOut[pl.Tensor[[N], pl.FP32]]):
    one_kernel(x, y)


@pl.jit.host
def MANY(x: pl.Tensor[[1, N], pl.FP32], y: pl.InOut[pl.Tensor[[1, N], pl.FP32]]):
    for i in pl.range(50):
        one_chip(x[0], y[0], device=0)


def test_ranks(transport):
    x, y = arguments()
    program = compiled()
    stats = benchmark(program, (x, y, 200, 0), rounds=5, warmup=1)
    assert (y[:, 1] == 201).all()
    assert len(stats.rounds_dispatches) == 5
    for ranks, device, host in zip(stats.rounds_dispatches, stats.device_wall_us, stats.host_wall_us):
        assert len(ranks) == 2 and all(len(d) == 1 for d in ranks.values())
        assert device == max(d[0].device_wall_us for d in ranks.values()) > 0
        assert host == max(d[0].host_wall_us for d in ranks.values()) >= device
    by_rank = stats.per_rank("device")
    assert len(by_rank) == 2
    assert [max(values) for values in zip(*by_rank.values())] == stats.device_wall_us
    by_dispatch = stats.per_dispatch("device")
    assert {(pid, 0): values for pid, values in by_rank.items()} == by_dispatch
    assert stats.dispatch_tasks() == {key: "job_chip" for key in by_dispatch}
    assert all(len(group) == 5 for group in stats.dispatch_groups().values())
    assert not stats.fallback_flattened and not stats.unstable_dispatch_slots


def test_time_grows_with_work():
    x, y = arguments(1)
    program = compiled(1)
    little = benchmark(program, (x, y, 1, 0), rounds=5)
    much = benchmark(program, (x, y, 200000, 0), rounds=5)
    assert much.device_us_min > little.device_us_min


@pl.jit.incore
def add_one(y: pl.InOut[pl.Tensor[[N], pl.INT32]], count: pl.InOut[pld.DistributedTensor[[1], pl.INT32]]):
    n = pl.read(count, [0])
    pl.write(y, [0], n)
    pl.write(count, [0], n + 1)


@pl.jit
def counting(y: pl.InOut[pl.Tensor[[N], pl.INT32]], count: pl.InOut[pld.DistributedTensor[[1], pl.INT32]]):
    add_one(y, count)


@pl.jit.host
def calls(y: pl.InOut[pl.Tensor[[NR, N], pl.INT32]]):
    """y[:, 0] is how many calls the windows have seen before."""
    buffer = pld.alloc_window_buffer(4)
    for r in pl.range(pld.world_size()):
        count = pld.window(buffer, [1], dtype=pl.INT32)
        counting(y[r], count, device=r)


@pytest.mark.parametrize("options, seen", [
    ({}, 0),
    ({"persistent": True}, 0),
    ({"persistent": True, "reset_persistent_windows": False}, 5),
])
def test_persistent_windows(options, seen):
    y = np.zeros((2, N), np.int32)
    stats = benchmark(calls.compile(y, config=config(2)), (y,), rounds=4, warmup=2, **options)
    assert (y[:, 0] == seen).all()
    assert len(stats.device_wall_us) == 4


def test_records_of_the_last_round():
    x, y = arguments()
    program = shift.compile(x, y, config=config(2))
    cfg = RunConfig(platform=program.platform, enable_dep_gen=True)
    stats = benchmark(program, (x, y), rounds=2, warmup=0, config=cfg)
    assert len(stats.device_wall_us) == 2
    assert (program.output_dir / "dfx_outputs" / "rank1" / "d0" / "deps.json").exists()


def test_standard_error_is_left_alone(capfd):
    x, y = arguments()
    print("before", file=sys.stderr)
    benchmark(shift.compile(x, y, config=config(2)), (x, y), rounds=2)
    print("behind", file=sys.stderr)
    assert capfd.readouterr().err == "before\nbehind\n"


def test_a_failure_is_the_programs():
    x, y = arguments()
    with pytest.raises(RuntimeError, match="job_kernel"):
        benchmark(compiled(), (x, y, 0, 999), rounds=2)


# ---- what cannot be ----


@pytest.mark.parametrize("options, word", [
    ({"rounds": 0}, "rounds must be positive"),
    ({"rounds": -1}, "rounds must be positive"),
    ({"warmup": -1}, "warmup must be non-negative"),
    ({"config": RunConfig(), "platform": "cpu"}, "not both"),
    ({"config": RunConfig(), "device_id": 1}, "not both"),
    ({"platform": "cpu"}, "do not apply to an L3"),
    ({"device_id": 0}, "do not apply to an L3"),
])
def test_refused_with_a_host_function(options, word):
    x, y = arguments()
    with pytest.raises(ValueError, match=word):
        benchmark(shift.compile(x, y, config=config(2)), (x, y), **options)


@pytest.mark.parametrize("options", [{"rounds": 1.5}, {"rounds": True}, {"rounds": "3"}, {"warmup": None}])
def test_numbers_that_are_none(options):
    x, y = arguments()
    with pytest.raises(TypeError, match="must be an int, got"):
        benchmark(shift.compile(x, y, config=config(2)), (x, y), **options)


@pytest.mark.parametrize("options", [{"persistent": True}, {"reset_persistent_windows": False}])
def test_refused_without(options):
    program = ir.compile(Alone, platform="cpu")
    with pytest.raises(ValueError, match="apply only to an L3"):
        benchmark(program, (np.ones(N, np.float32), np.ones(N, np.float32)), **options)


@pl.jit.host
def nothing(x: pl.Tensor[[NR, N], pl.INT32], y: pl.Out[pl.Tensor[[NR, N], pl.INT32]]):
    for r in pl.range(0):
        idle(x[r], y[r], device=r)


@pl.jit
def idle(x: pl.Tensor[[N], pl.INT32], y: pl.Out[pl.Tensor[[N], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0], [N]), [0], y)


def test_nothing_to_measure():
    x, y = arguments()
    with pytest.raises(RuntimeError, match=r"no \[STRACE\] markers captured"):
        benchmark(nothing.compile(x, y, config=config(2)), (x, y), rounds=2)


def test_no_program():
    with pytest.raises(TypeError, match="takes a compiled program, not int"):
        benchmark(3, ())
    with pytest.raises(TypeError, match="expects 2"):
        benchmark(ir.compile(Alone, platform="cpu"), (np.ones(N, np.float32),))


# ---- numbers, of times that are made up ----

ROOT, DEVICE = "chip.run", "chip.run.runner_run.device_wall"


def made(pid, inv, name, began, lasted, slot=0, waited=0):
    """An invocation of so many us, that ran for `lasted` from `began` on; it had waited before."""
    rows = (
        (0, ROOT, began - waited, lasted + waited, {"task": slot, "task_name": name}),
        (2, DEVICE, began, lasted, {"clk": "dev"}),
        (3, DEVICE + ".orch", began, lasted / 2, {"clk": "dev"}),
        (3, DEVICE + ".sched", began, lasted, {"clk": "dev"}),
    )
    spans = [TraceSpan(pid, pid, inv, 0, d, n, ts * 1000, dur * 1000, a) for d, n, ts, dur, a in rows]
    return TraceInvocation(pid, inv, 0, spans)


def two_rounds(second="b"):
    """Two ranks; the first has two dispatches that overlap for 4 us."""
    rounds = []
    for k in (0, 100):
        rounds.append({
            1: [made(1, 0, "a", k, 10, 0, waited=1), made(1, 1, second if k else "b", k + 6, 10, 1)],
            2: [made(2, 2, "a", k, 12 + k / 10)],
        })
    invocations = [i for ranks in rounds for group in ranks.values() for i in group]
    return BenchmarkStats(
        device_wall_us=[20.0, 22.0], host_wall_us=[21.0, 22.0], rounds=2, warmup=1,
        invocations=invocations, rounds_dispatches=rounds,
    )


def test_metrics():
    stats = two_rounds()
    assert stats.per_round("device") == [20, 22]
    assert stats.per_round("host") == [21, 22]
    assert stats.per_round("effective") == [20, 22]
    assert stats.per_round("union") == [16, 22]
    assert stats.per_rank("device") == {1: [20, 20], 2: [12, 22]}
    assert stats.per_rank("union") == {1: [16, 16], 2: [12, 22]}
    assert stats.per_dispatch("device") == {(1, 0): [10, 10], (1, 1): [10, 10], (2, 0): [12, 22]}
    assert stats.dispatch_tasks() == {(1, 0): "a", (1, 1): "b", (2, 0): "a"}
    for view in (stats.per_round, stats.per_rank, stats.per_dispatch):
        with pytest.raises(ValueError, match="metric must be one of"):
            view("cycles")


def test_dispatches_that_change():
    stats = two_rounds(second="c")
    assert stats.unstable_dispatch_slots == [(1, 1)] and not stats.fallback_flattened
    assert stats.per_dispatch("device").keys() == {(1, 0), (2, 0)}
    assert stats.per_rank("device") == {1: [20, 20], 2: [12, 22]}
    stats = two_rounds()
    stats.rounds_dispatches[1][1].pop()
    assert stats.fallback_flattened
    assert stats.per_dispatch("device") == stats.dispatch_groups() == stats.dispatch_tasks() == {}
    assert stats.per_rank("device") == {1: [20, 10], 2: [12, 22]}


def test_aggregates():
    stats = BenchmarkStats(device_wall_us=[4.0, 1.0, 2.0, 3.0, 10.0])
    assert (stats.device_us_min, stats.device_us_median, stats.device_us_max) == (1, 3, 10)
    assert stats.device_us_mean == 4 and stats.device_us_stdev == pytest.approx(np.std([4, 1, 2, 3, 10], ddof=1))
    for name in ("min", "median", "mean", "max", "stdev"):
        assert getattr(stats, "device_wall_us_" + name) == getattr(stats, "device_us_" + name)
        assert getattr(BenchmarkStats(), "device_us_" + name) == 0.0
    assert BenchmarkStats(device_wall_us=[3.0]).device_us_stdev == 0.0
    assert BenchmarkStats(device_wall_us=[0.0, 0.0]).all_zero_device
    assert not BenchmarkStats().all_zero_device and not stats.all_zero_device


def test_spans():
    one = made(1, 0, "a", 5, 10, 3, waited=2)
    assert one.root().name == ROOT and one.task == 3 and one.task_name == "a"
    assert one.by_name()[DEVICE].is_device and not one.root().is_device
    assert one.by_name()[DEVICE].dur_us == one.device_wall_us == one.effective_us == 10
    assert one.host_wall_us == 12
    empty = TraceInvocation(1, 0, 0, [])
    assert empty.root() is None and empty.task is None and empty.task_name is None
    assert empty.device_wall_us == empty.effective_us == 0 and empty.format_tree() == ""


def test_trees(capsys):
    stats = two_rounds()
    tree = stats.format_tree()  # the first round is the median of two
    assert tree.count(ROOT) == 3 and "pid 2, dispatch 0" in tree and "12.000 us [dev]" in tree
    assert "22.000 us" in stats.format_tree(1) and "22000 ns" in stats.format_tree(1, us=False)
    assert stats.format_tree(-1) == stats.format_tree(1)
    with pytest.raises(ValueError, match="launch must be a round"):
        stats.format_tree(2)
    with pytest.raises(TypeError, match="launch must be a round or None, got 'first'"):
        stats.format_tree("first")
    stats.print_tree()
    assert capsys.readouterr().out == tree + "\n"
    assert BenchmarkStats().format_tree() == "(nothing was measured)" == BenchmarkStats().format_mean_tree()


def test_mean_trees(capsys):
    stats = two_rounds()
    mean = stats.mean_invocation(pid=2)
    assert mean.device_wall_us == 17 and mean.task_name == "a"
    assert stats.mean_invocation(pid=1, slot=1).device_wall_us == 10
    for options in ({}, {"pid": 1}, {"slot": 0}, {"pid": 7}):
        with pytest.raises(ValueError, match=f"dispatches match pid={options.get('pid')} slot={options.get('slot')}"):
            stats.mean_invocation(**options)
    deviation = "+- 7.071 us"
    bounds = "[12.000 us .. 22.000 us]"
    for spread, has_deviation, has_bounds in (
        ("stdev", True, False), ("minmax", False, True), ("both", True, True), ("none", False, False),
    ):
        tree = stats.format_mean_tree(pid=2, spread=spread)
        assert "17.000 us" in tree
        assert (deviation in tree, bounds in tree) == (has_deviation, has_bounds)
    with pytest.raises(ValueError, match="spread must be one of"):
        stats.format_mean_tree(spread="iqr")
    stats.print_mean_tree(pid=2)
    assert deviation in capsys.readouterr().out


def test_trees_without_a_host_function():
    program = ir.compile(Alone, platform="cpu")
    stats = benchmark(program, (np.ones(N, np.float32), np.zeros(N, np.float32)), rounds=3)
    assert stats.format_tree().splitlines()[0].split()[:2] == [ROOT, "chip"]
    assert [line.split()[0] for line in stats.format_tree(2).splitlines()[1:]] == [
        "bind", "runner_run", "device_wall", "orch", "sched",
    ]
    assert stats.mean_invocation().device_wall_us == pytest.approx(stats.device_us_mean)
    assert "+-" in stats.format_mean_tree()
