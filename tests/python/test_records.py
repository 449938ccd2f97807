"""Records of a call: swimlanes, the order among tasks, scopes, the content of arguments, and where their files lie."""

import json
import os
from collections import Counter

import numpy as np
import pytest

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.runtime import ChipWorker, RunConfig
from programs import config, from_text
from task_programs import inputs, text_of

ROWS = 16
BODY = """
    t = pl.create_tensor([1, 8], dtype=pl.INT32)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], t)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(t, [0, 0], [1, 8]), [0, 0], z)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, 8]), [1, 0], z)
    with pl.manual_scope():
        with pl.spmd(4) as first:
            b = pl.tile.get_block_idx()
            pl.store(pl.load(x, [0, 0], [1, 8]), [4 + b, 0], z)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[first]):
            pl.store(pl.load(z, [4, 0], [1, 8]), [8, 0], z)
            pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)
"""


def compiled(ranks=2, body=BODY):
    x, z = inputs(ranks)
    return from_text(text_of(body))["host"].compile(x, z, config=config(ranks))


def recorded(program, ranks=2, **flags):
    """Calls a program once; the folder of its records."""
    x, z = inputs(ranks)
    program(x, z, config=RunConfig(platform=program.platform, **flags))
    return program.output_dir / "dfx_outputs"


def folders(dfx):
    return {str(path.relative_to(dfx)): path for path in sorted(dfx.glob("rank*/d*"))}


def read(path):
    return json.loads(path.read_text())


# ---- which files, and where ----

EVERY = {
    "enable_chip_swimlane": {"chip_swimlane_records.json", "deps.json", "name_map.json", "merged_swimlane"},
    "enable_dep_gen": {"deps.json", "name_map.json"},
    "enable_scope_stats": {"scope_stats/scope_stats.jsonl"},
    "enable_dump_args": {"args_dump/args_dump.json", "args_dump/args.bin"},
    "enable_pmu": {"pmu.csv"},
}


def names_in(folder):
    names = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    return {"merged_swimlane" if name.startswith("merged_swimlane_") else name for name in names}


@pytest.mark.parametrize("flag", EVERY)
def test_files_of_a_flag(flag, transport):
    found = folders(recorded(compiled(), **{flag: True}))
    assert sorted(found) == ["rank0/d0", "rank1/d0"]
    for folder in found.values():
        assert names_in(folder) == EVERY[flag] | {"dispatch_program.json"}
        assert all(p.stat().st_size > 0 for p in folder.rglob("*") if p.is_file() and p.name != "args.bin")
        assert read(folder / "dispatch_program.json") == {"program": "chip"}


def test_off_leaves_nothing(transport):
    program = compiled()
    x, z = inputs(2)
    program(x, z)
    program(x, z, config=RunConfig(platform=program.platform))
    with program.prepare() as worker:
        worker(x, z, config=RunConfig(platform=program.platform))
    assert not (program.output_dir / "dfx_outputs").exists()


def test_each_dispatch_has_a_folder_and_stale_ones_go(transport):
    program = compiled()
    dfx = recorded(program, enable_dep_gen=True)
    stale = dfx / "rank0" / "d7"
    stale.mkdir()
    (stale / "deps.json").write_text("old")
    (dfx / "rank9" / "d0").mkdir(parents=True)
    (dfx / "mine.txt").write_text("mine")
    recorded(program, enable_pmu=1)
    assert sorted(folders(dfx)) == ["rank0/d0", "rank1/d0"]
    assert names_in(dfx / "rank0" / "d0") == {"pmu.csv", "dispatch_program.json"}
    assert (dfx / "mine.txt").read_text() == "mine"


TWICE = """
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.add(pl.load(z, [0, 0], [1, 8]), 1), [0, 0], z)
"""


def test_numbers_of_dispatches():
    text = text_of(TWICE).replace("device=r)", "device=r)\n        chip(x[r], z[r], win, sig, 0, device=r)")
    x, z = inputs(2)
    program = from_text(text)["host"].compile(x, z, config=config(2))
    found = folders(recorded(program, enable_chip_swimlane=1))
    assert sorted(found) == ["rank0/d0", "rank0/d1", "rank1/d0", "rank1/d1"]
    ends = [read(f / "chip_swimlane_records.json")["aicore_tasks"][0][4] for f in found.values()]
    starts = [read(f / "chip_swimlane_records.json")["aicore_tasks"][0][3] for f in found.values()]
    assert ends[0] <= starts[1] and ends[2] <= starts[3]  # the second adds to what the first left


def test_one_device(tmp_path, transport):
    """A program without a host function has its files in dfx_outputs itself."""

    @pl.program
    class Alone:
        @pl.function(type=pl.FunctionType.InCore)
        def twice(self, a: pl.Tensor[[4, 8], pl.FP32], c: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
            t = pl.load(a, [0, 0], [4, 8])
            return pl.store(pl.add(t, t), [0, 0], c)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, a: pl.Tensor[[4, 8], pl.FP32], c: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
            c = self.twice(a, c)
            return c

    program = ir.compile(Alone, output_dir=tmp_path / "alone", platform="a2a3")
    a, c = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    program(a, c, config=RunConfig(platform="a2a3", enable_chip_swimlane=True, enable_pmu=4))
    dfx = tmp_path / "alone" / "dfx_outputs"
    assert names_in(dfx) == {
        "chip_swimlane_records.json", "deps.json", "name_map_alone.json", "merged_swimlane", "pmu.csv",
    }
    names = read(dfx / "name_map_alone.json")
    assert names["level"] == 2 and names["orchestrator_name"] is None
    assert "twice" in names["callable_id_to_name"].values()
    assert (c == 2).all()


def test_a_worker_of_one_device(tmp_path, transport):
    @pl.program
    class Alone:
        @pl.function(type=pl.FunctionType.InCore)
        def twice(self, a: pl.Tensor[[4, 8], pl.FP32], c: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
            t = pl.load(a, [0, 0], [4, 8])
            return pl.store(pl.add(t, t), [0, 0], c)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, a: pl.Tensor[[4, 8], pl.FP32], c: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
            c = self.twice(a, c)
            return c

    program = ir.compile(Alone, output_dir=tmp_path / "alone", platform="cpu")
    a, c = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    with ChipWorker(RunConfig(platform="cpu")) as worker:
        worker.run(program, a, c, config=RunConfig(platform="cpu", enable_dep_gen=True))
        program(a, c, config=RunConfig(platform="cpu", enable_scope_stats=True))  # finds the worker
    assert names_in(tmp_path / "alone" / "dfx_outputs") == {"scope_stats/scope_stats.jsonl"}


def test_a_jit_call():
    host = from_text(text_of(BODY))["host"]
    x, z = inputs(2)
    cfg = config(2)
    cfg.enable_dep_gen = True
    host(x, z, config=cfg)
    found = folders(host.compile(x, z, config=cfg).output_dir / "dfx_outputs")
    assert sorted(found) == ["rank0/d0", "rank1/d0"]


# ---- the calls of a worker ----


def test_each_call_of_a_worker_decides(transport):
    program = compiled()
    dfx = program.output_dir / "dfx_outputs"
    with_deps = RunConfig(platform=program.platform, enable_dep_gen=True)
    with program.prepare() as worker:
        x, z = inputs(2)
        worker(x, z)
        assert not dfx.exists()
        handles = [worker.submit(program, x, inputs(2)[1], config=c) for c in (None, with_deps, None, with_deps)]
        assert handles[0].done and handles[1].done and handles[2].done  # a recorded call waits for those before it
        for handle in handles:
            handle.result()
        assert sorted(folders(dfx)) == ["rank0/d0", "rank1/d0"]
        for path in folders(dfx).values():
            (path / "deps.json").unlink()
        worker(x, z)
        assert not any((path / "deps.json").exists() for path in folders(dfx).values())


def test_persistent_windows():
    program = compiled(body="    put(x, z, 0)\n")
    with program.prepare(persistent=True) as worker:
        x, z = inputs(2)
        for _ in range(3):
            worker(x, z, config=RunConfig(platform=program.platform, enable_scope_stats=True))
    assert len(folders(program.output_dir / "dfx_outputs")) == 2


def test_a_call_that_fails_has_records_up_to_there():
    body = """
    put(x, z, 0)
    put(x, z, 99)
    """
    program = compiled(body=body)
    with pytest.raises(RuntimeError, match="99"):
        recorded(program, enable_dep_gen=True, enable_scope_stats=True)
    dfx = program.output_dir / "dfx_outputs"
    assert any(len(read(f / "deps.json")["tasks"]) == 2 for f in folders(dfx).values())


def test_sixty_four_ranks():
    found = folders(recorded(compiled(64), 64, enable_chip_swimlane=4))
    assert len(found) == 64
    for folder in found.values():
        assert len(read(folder / "chip_swimlane_records.json")["aicore_tasks"]) == 9


# ---- swimlanes ----

KEYS = ["aicore_tasks", "aicpu_tasks", "aicpu_scheduler_phases", "aicpu_orchestrator_phases"]


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_levels(level):
    program = compiled()
    for folder in folders(recorded(program, enable_chip_swimlane=level)).values():
        records = read(folder / "chip_swimlane_records.json")
        assert records["chip_swimlane_level"] == level
        assert [key for key in KEYS if key in records] == KEYS[:level]


def test_what_ran_when(transport):
    program = compiled()
    for folder in folders(recorded(program, enable_chip_swimlane=True)).values():
        records = read(folder / "chip_swimlane_records.json")
        meta = records["metadata"]
        assert meta["clock_freq_hz"] == 10**9 and meta["dropped"] == 0
        assert meta["num_cores"] == len(meta["core_types"]) == len(meta["core_to_thread"]) >= 1
        assert set(meta["core_types"]) <= {"aic", "aiv"}
        blocks = Counter(row[1] for row in records["aicore_tasks"])
        assert blocks == {0: 1, 1: 1, 2: 1, 3: 4, 4: 1, 5: 1}
        # Rows of both tables belong together by core and the number on that core.
        outer = {(core, reg): (begin, end) for core, reg, begin, end in records["aicpu_tasks"]}
        assert len(outer) == len(records["aicore_tasks"]) == 9
        span = {}
        for core, task, reg, start, end in records["aicore_tasks"]:
            dispatched, finished = outer[core, reg]
            assert 0 < dispatched <= start <= end <= finished
            assert core < meta["num_cores"]
            first, last = span.get(task, (start, end))
            span[task] = (min(first, start), max(last, end))
        for edge in read(folder / "deps.json")["edges"]:
            assert span[int(edge["pred"])][1] <= span[int(edge["succ"])][0]
        # On a core nothing overlaps.
        rows = sorted((row[0], row[3], row[4]) for row in records["aicore_tasks"])
        assert all(a[2] <= b[1] for a, b in zip(rows, rows[1:]) if a[0] == b[0])
        (phases,) = records["aicpu_scheduler_phases"]
        assert {"dispatch", "complete"} <= {p["kind"] for p in phases} <= {"dispatch", "complete", "idle"}
        assert all(p["start_cycles"] <= p["end_cycles"] for p in phases)
        (submissions,) = records["aicpu_orchestrator_phases"]
        assert [s["task_id"] for s in submissions] == [0, 1, 2, 3, 4, 5]
        assert [s["submit_idx"] for s in submissions] == [0, 1, 2, 3, 4, 5]


def test_waiting_tasks_have_cores_of_their_own():
    body = """
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], z)
        pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    """
    for folder in folders(recorded(compiled(1, body), 1, enable_chip_swimlane=True)).values():
        (waits, notifies) = sorted(read(folder / "chip_swimlane_records.json")["aicore_tasks"], key=lambda r: r[1])
        assert waits[0] != notifies[0]
        assert waits[3] <= notifies[3] and notifies[4] <= waits[4]


def test_a_trace_that_viewers_open(transport):
    dfx = recorded(compiled(), enable_chip_swimlane=True)
    (whole,) = dfx.glob("merged_swimlane_*.json")
    events = read(whole)["traceEvents"]
    bars = [e for e in events if e["ph"] == "X"]
    assert Counter(e["pid"] for e in bars) == {0: 9, 1: 9}
    assert all(e["args"]["cpu"] in range(os.cpu_count()) for e in bars)
    assert all(e["dur"] >= 0 and e["name"].endswith(f"(r0t{e['args']['task_id']})") for e in bars)
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys() and starts
    for name, start in starts.items():
        assert start["ts"] <= ends[name]["ts"]
        for arrow in (start, ends[name]):  # each lies in a bar of its thread
            assert any(
                b["pid"] == arrow["pid"] and b["tid"] == arrow["tid"]
                and b["ts"] - 1e-3 <= arrow["ts"] <= b["ts"] + b["dur"] + 1e-3
                for b in bars
            )
    assert {e["args"]["name"] for e in events if e.get("name") == "process_name"} == {"rank 0", "rank 1"}
    for folder in folders(dfx).values():
        (one,) = folder.glob("merged_swimlane_*.json")
        assert len([e for e in read(one)["traceEvents"] if e["ph"] == "X"]) == 9


# ---- order ----


def test_tasks_and_edges(transport):
    for folder in folders(recorded(compiled(), enable_dep_gen=True)).values():
        deps = read(folder / "deps.json")
        tasks = {int(t["task_id"]): t for t in deps["tasks"]}
        assert [tasks[i]["scope"] for i in range(6)] == ["auto"] * 3 + ["manual"] * 2 + ["auto"]
        assert [tasks[i]["block_num"] for i in range(6)] == [1, 1, 1, 4, 1, 1]
        names = read(folder / "name_map.json")["callable_id_to_name"]
        assert all(str(t["kernel_ids"][1]) in names for t in deps["tasks"])
        edges = {(int(e["pred"]), int(e["succ"])): e for e in deps["edges"]}
        assert set(edges) == {(0, 1), (1, 2), (3, 4)}  # 1 and 2 both have z
        made, given = edges[0, 1], edges[3, 4]
        assert made["source"] == "creator" and "wait" in made["flags"]
        assert given["source"] == "explicit" and given["arg"] == -1 and "tensor_id" not in given
        tensors = {t["tensor_id"]: t for t in deps["tensors"]}
        assert tensors[made["tensor_id"]]["buffer_numel"] == "8"
        for task in deps["tasks"]:
            for arg in task["args"]:
                if arg["type"] != "SCALAR":
                    assert arg["tensor_id"] in tensors
                    assert len(arg["shape"]) == len(arg["strides"])


def test_edges_that_others_imply_are_left_out():
    body = """
    put(x, z, 0)
    put(x, z, 1)
    move(z, 1, 2)
    put(x, z, 3)
    """
    (folder,) = folders(recorded(compiled(1, body), 1, enable_dep_gen=True)).values()
    edges = read(folder / "deps.json")["edges"]
    assert [(e["pred"], e["succ"]) for e in edges] == [("0", "1"), ("1", "2"), ("2", "3")]
    for edge in edges:
        assert edge["source"] == "tensormap" and edge["overlap"] == "covered"
        assert edge["producer_shape"] == edge["consumer_shape"] == [16, 8]
        assert edge["producer_start_offset"] == edge["consumer_start_offset"] == 0


def test_disjoint_parts_have_no_edge():
    body = """
    a = pl.slice(z, [1, 8], [0, 0])
    b = pl.slice(z, [1, 8], [1, 0])
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], a)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], b)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(z, [0, 0], [2, 8]), [4, 0], z)
    """
    (folder,) = folders(recorded(compiled(1, body), 1, enable_dep_gen=True)).values()
    deps = read(folder / "deps.json")
    assert {(e["pred"], e["succ"]) for e in deps["edges"]} == {("0", "2"), ("1", "2")}
    offsets = {e["pred"]: e["producer_start_offset"] for e in deps["edges"]}
    assert offsets == {"0": 0, "1": 8}
    assert all(e["overlap"] == "other" for e in deps["edges"])


# ---- scopes ----


def test_the_root_scope(transport):
    for folder in folders(recorded(compiled(), enable_scope_stats=True)).values():
        lines = (folder / "scope_stats" / "scope_stats.jsonl").read_text().splitlines()
        head, *scopes = map(json.loads, lines)
        assert head["version"] == 6 and head["dropped"] == 0 and head["total"] == len(scopes)
        assert head["fatal"] is False
        for name in ("task_window_max", "heap_max", "dep_pool_max"):
            assert len(head[name]) == 4
        assert head["heap_max"][0] >= 32  # t
        root = [s for s in scopes if s["depth"] == 0]
        assert [s["phase"] for s in root] == ["begin", "end"]
        assert all(s["site"].rpartition(":")[2].isdigit() for s in root)
        assert root[0]["task_window_end"] == 0 and root[1]["task_window_end"] == 6


def scopes_of(folder):
    """What the lines say: scope, name, phase, depth, line within the wrapper, tasks submitted so far."""
    head, *scopes = map(json.loads, (folder / "scope_stats" / "scope_stats.jsonl").read_text().splitlines())
    assert head["dropped"] == 0 and head["total"] == len(scopes)
    first = int(scopes[0]["site"].rpartition(":")[2])
    return [
        (s["scope"], s["name"], s["phase"], s["depth"], int(s["site"].rpartition(":")[2]) - first, s["task_window_end"])
        for s in scopes
    ]


NESTED = """
    t = pl.create_tensor([1, 8], dtype=pl.INT32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gather"):
        pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], t)
    with pl.cluster(name_hint="both"):
        with pl.manual_scope():
            with pl.spmd(2) as first:
                b = pl.tile.get_block_idx()
                pl.store(pl.load(x, [0, 0], [1, 8]), [4 + b, 0], z)
            with pl.at(level=pl.Level.CORE_GROUP, deps=[first]):
                pl.store(pl.load(z, [4, 0], [1, 8]), [8, 0], z)
        put(t, z, 0)
    for i in pl.spmd(2):
        pl.store(pl.load(x, [0, 0], [1, 8]), [10 + i, 0], z)
    put(x, z, 1)
"""


def test_nested_scopes(transport):
    """Each has its lines, its kind and its name; what it held shows where it begins and ends."""
    for folder in folders(recorded(compiled(body=NESTED), enable_scope_stats=True)).values():
        found = scopes_of(folder)
        at = found[1][4]
        names = [(*scope[:4], scope[4] - at, scope[5]) for scope in found[1:-1]]
        assert names == [
            ("pl.at", "gather", "begin", 1, 0, 0),
            ("pl.at", "gather", "end", 1, 0, 1),
            ("pl.cluster", "both", "begin", 1, 2, 1),
            ("pl.manual_scope", "chip", "begin", 2, 3, 1),
            ("pl.spmd", "chip", "begin", 3, 4, 1),
            ("pl.spmd", "chip", "end", 3, 4, 2),
            ("pl.at", "chip", "begin", 3, 7, 2),
            ("pl.at", "chip", "end", 3, 7, 3),
            ("pl.manual_scope", "chip", "end", 2, 3, 3),
            ("pl.cluster", "both", "end", 1, 2, 4),
            ("pl.spmd", "chip", "begin", 1, 10, 4),
            ("pl.spmd", "chip", "end", 1, 10, 5),
        ]
        assert found[0] == ("function", "chip", "begin", 0, 0, 0)
        assert found[-1] == ("function", "chip", "end", 0, 0, 6)


LEFT = """
    for i in pl.range(4):
        with pl.cluster():
            with pl.manual_scope():
                put(x, z, i)
                if i == 2:
                    break
        with pl.cluster(name_hint="second"):
            put(x, z, i)
"""


FAILING = """
    with pl.cluster(name_hint="both"):
        with pl.manual_scope():
            put(x, z, 0)
            pl.write(z, [99 * pl.read(x, [0, 0]), 0], 1)
"""


def test_what_a_failure_leaves_open_ends_with_it(transport):
    """Lines are in pairs, and those at the end say that the call has failed; so do bars of the trace."""
    program = compiled(1, FAILING)
    x, z = inputs(1)
    x[:] = 1
    with pytest.raises(RuntimeError, match="leaves parameter"):
        program(x, z, config=RunConfig(platform=program.platform, enable_scope_stats=True, enable_chip_swimlane=2))
    dfx = program.output_dir / "dfx_outputs"
    (folder,) = folders(dfx).values()
    head, *scopes = map(json.loads, (folder / "scope_stats" / "scope_stats.jsonl").read_text().splitlines())
    assert head["fatal"] is True and head["total"] == len(scopes)
    names = ["function", "pl.cluster", "pl.manual_scope"]
    begun = [s["scope"] for s in scopes if s["phase"] == "begin"]
    assert begun[:3] == names
    failed = [s["scope"] for s in scopes if s.get("failed")]
    assert failed == names[::-1] == [s["scope"] for s in scopes[-3:]]
    assert all(s["phase"] == "end" for s in scopes[-3:]) and 2 * len(begun) == len(scopes)
    (trace,) = dfx.glob("merged_swimlane_*.json")
    events = read(trace)["traceEvents"]
    assert [e["args"] for e in events if e["ph"] == "e"] == [{"failed": True}]


def test_a_kernel_that_fails_has_a_bar_that_says_so(transport):
    program = compiled(1, """
    put(x, z, 0)
    put(x, z, 99)
""")
    with pytest.raises(RuntimeError, match="99"):
        recorded(program, 1, enable_chip_swimlane=2)
    (trace,) = (program.output_dir / "dfx_outputs").glob("merged_swimlane_*.json")
    bars = {e["args"]["task_id"]: e["args"].get("failed", False) for e in read(trace)["traceEvents"] if e["ph"] == "X"}
    assert bars[1] is True and bars.get(0, False) is False


def test_scopes_that_a_jump_leaves():
    """They end where the scope around them does, or the next one begins: lines are always in pairs."""
    (folder,) = folders(recorded(compiled(1, LEFT), 1, enable_scope_stats=True)).values()
    open_scopes, seen = [], Counter()
    for scope, name, phase, depth, _, _ in scopes_of(folder):
        if phase == "begin":
            assert depth == len(open_scopes)
            open_scopes.append((scope, name, depth))
            seen[scope, name] += 1
        else:
            assert open_scopes.pop() == (scope, name, depth)
    assert not open_scopes
    assert seen == {
        ("function", "chip"): 1, ("pl.cluster", "chip"): 3, ("pl.manual_scope", "chip"): 3, ("pl.cluster", "second"): 2
    }


# ---- the content of arguments ----


def test_content_of_arguments(transport):
    program = compiled(body="    put(x, z, 2)\n    move(z, 2, 5)\n")
    x, z = inputs(2)
    program(x, z, config=RunConfig(platform=program.platform, enable_dump_args=2))
    for rank in range(2):
        folder = program.output_dir / "dfx_outputs" / f"rank{rank}" / "d0" / "args_dump"
        index = read(folder / "args_dump.json")
        assert index["dump_args_level"] == 2 and index["bin_file"] == "args.bin"
        assert index["truncated_args"] == index["dropped_records"] == 0
        content = (folder / "args.bin").read_bytes()

        def held(task, arg, stage):
            (entry,) = [
                e for e in index["args"]
                if (e["task_id"], e["arg_index"], e["stage"]) == (str(task), arg, stage)
            ]
            assert entry["dtype"] == "int32" and entry["kind"] == "tensor" and not entry["truncated"]
            part = content[entry["bin_offset"] : entry["bin_offset"] + entry["bin_size"]]
            return np.frombuffer(part, np.int32).reshape(entry["shape"])

        np.testing.assert_array_equal(held(0, 0, "before_dispatch"), x[rank])
        np.testing.assert_array_equal(held(0, 1, "after_completion")[2], x[rank, 0])
        np.testing.assert_array_equal(held(1, 0, "before_dispatch")[2], x[rank, 0])
        np.testing.assert_array_equal(held(1, 0, "after_completion")[5], x[rank, 0])
        scalars = [(e["task_id"], e["arg_index"], e["value"]) for e in index["args"] if e["kind"] == "scalar"]
        assert scalars == [("0", 2, "2"), ("1", 1, "2"), ("1", 2, "5")]


# ---- bounds ----


def test_no_room(monkeypatch):
    """What finds no room is counted; the call is right all the same."""
    monkeypatch.setenv("PYPTO_RECORD_BYTES", "2500")
    program = compiled()
    x, z = inputs(2)
    program(x, z, config=RunConfig(platform=program.platform, enable_chip_swimlane=True, enable_dump_args=2))
    np.testing.assert_array_equal(z[:, 8], x[:, 0])
    for folder in folders(program.output_dir / "dfx_outputs").values():
        deps = read(folder / "deps.json")
        assert deps["dropped"] > 0 and len(deps["tasks"]) < 6
        assert read(folder / "chip_swimlane_records.json")["metadata"]["dropped"] > 0


def test_a_place_that_cannot_be_written(tmp_path):
    program = compiled()
    x, z = inputs(2)
    config = RunConfig(platform=program.platform, enable_chip_swimlane=True)
    program(x, z, config=config)
    folder = program.output_dir / "dfx_outputs"
    folder.rename(tmp_path / "moved")
    folder.write_text("")
    z[:] = 0
    with pytest.raises(OSError, match="cannot make the directory.*dfx_outputs") as caught:
        program(x, z, config=config)
    assert isinstance(caught.value, pypto.errors.SystemError) and caught.value.code == "PYPTO-I003"
    folder.unlink()
    program(x, z, config=config)
    np.testing.assert_array_equal(z[:, 8], x[:, 0])


LINKS = ["dfx_outputs", "dfx_outputs/rank0", "dfx_outputs/rank1"]


@pytest.mark.parametrize("link", LINKS)
def test_links_are_not_followed(tmp_path, link, transport):
    """Neither to write nor to remove what an earlier call has left; told before anything runs."""
    program = compiled()
    x, z = inputs(2)
    there = tmp_path / "elsewhere"
    (there / "rank0/d0").mkdir(parents=True)
    (there / "d0").mkdir()
    for name in ("rank0/d0/deps.json", "d0/deps.json", "deps.json"):
        (there / name).write_text("mine")
    before = sorted(there.rglob("*"))
    place = program.output_dir / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(there)
    with pytest.raises(OSError, match=f"{link}: a part of it is a symbolic link, which is not followed"):
        program(x, z, config=RunConfig(platform=program.platform, enable_dep_gen=True))
    assert not z.any()
    assert sorted(there.rglob("*")) == before and (there / "deps.json").read_text() == "mine"
    place.unlink()
    program(x, z, config=RunConfig(platform=program.platform, enable_dep_gen=True))
    assert sorted(folders(program.output_dir / "dfx_outputs")) == ["rank0/d0", "rank1/d0"]


def test_links_in_the_place_of_files_are_replaced(tmp_path):
    program = compiled()
    there = tmp_path / "elsewhere"
    there.mkdir()
    (there / "deps.json").write_text("mine")
    dfx = program.output_dir / "dfx_outputs"
    (dfx / "rank0").mkdir(parents=True)
    (dfx / "rank0" / "d0").symlink_to(there)
    (dfx / "deps.json").symlink_to(there / "deps.json")
    recorded(program, enable_dep_gen=True)
    assert not (dfx / "deps.json").exists() and not (dfx / "rank0" / "d0").is_symlink()
    assert [p.name for p in there.iterdir()] == ["deps.json"] and (there / "deps.json").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of somebody else's")
@pytest.mark.parametrize("place", ["dfx_outputs", "dfx_outputs/rank1"])
def test_somebody_elses_directory(place):
    program = compiled()
    x, z = inputs(2)
    (program.output_dir / place).mkdir(parents=True)
    os.chown(program.output_dir / place, 12345, -1)
    with pytest.raises(OSError, match=f"{place}: a directory of it belongs to another user"):
        program(x, z, config=RunConfig(platform=program.platform, enable_pmu=1))
    assert not z.any() and not list((program.output_dir / place).iterdir())


def test_records_are_private():
    before = os.umask(0)
    try:
        dfx = recorded(compiled(), enable_scope_stats=True)
    finally:
        os.umask(before)
    assert {p.stat().st_mode & 0o777 for p in [dfx, *dfx.rglob("*")]} == {0o700, 0o600}


def test_levels_that_do_not_exist():
    with pytest.raises(ValueError, match="collection level in"):
        RunConfig(enable_chip_swimlane=5)
    with pytest.raises(ValueError, match="enable_dump_args"):
        RunConfig(enable_dump_args=3)
    with pytest.raises(TypeError, match="enable_pmu"):
        RunConfig(enable_pmu="memory")


# ---- collectives ----


@pl.jit.host
def summed(
    x: pl.Tensor[[pl.dynamic("NR"), 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[pl.dynamic("NR"), 1, 64], pl.FP32]]
):
    buffer = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
    data = pld.window(buffer, [1, 64], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        copy_chip(x[r], data, device=r)
    data = pld.tensor.allreduce(data)
    for r in pl.range(pld.world_size()):
        copy_back(data, y[r], device=r)


@pl.jit
def copy_chip(x: pl.Tensor[[1, 64], pl.FP32], data: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)


@pl.jit
def copy_back(data: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], y)


@pytest.mark.parametrize("ranks", [1, 3])
def test_collectives_are_dispatches_like_others(ranks, transport):
    x = np.ones((ranks, 1, 64), np.float32)
    y = np.zeros_like(x)
    cfg = RunConfig(
        platform="cpu",
        distributed_config=DistributedConfig(device_ids=list(range(ranks))),
        enable_chip_swimlane=2,
    )
    program = summed.compile(x, y, config=cfg)
    program(x, y, config=cfg)
    assert (y == ranks).all()
    dfx = program.output_dir / "dfx_outputs"
    for rank in range(ranks):
        names = [read(dfx / f"rank{rank}" / f"d{k}" / "dispatch_program.json")["program"] for k in range(3)]
        assert names[0] == "copy_chip" and "allreduce" in names[1] and names[2] == "copy_back"
        assert len(read(dfx / f"rank{rank}" / "d1" / "chip_swimlane_records.json")["aicore_tasks"]) == 1


# ---- arguments that are marked ----

MARKED = [
    ("put(x, z, 0)", []),
    ("pl.dump_tag(x)\nput(x, z, 0)", [(0, 0)]),
    ("put(x, z, 0)\npl.dump_tag(z)\nput(x, z, 1)\nmove(z, 0, 1)", [(1, 1), (2, 0)]),
    ("pl.submit(put, x, z, 0, dumps=[z])\nput(x, z, 1)", [(0, 1)]),
    ("pl.submit(put, x, z, 0, dumps=[x, z])", [(0, 0), (0, 1)]),
    ("pl.spmd_submit(block, z, core_num=4, dumps=[z])", [(0, 0)]),
    (
        "with pl.at(level=pl.Level.CORE_GROUP, dumps=[z]):\n"
        "    pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], z)",
        [(0, 1)],
    ),
]


@pytest.mark.parametrize("body, marked", MARKED)
def test_marked_arguments(body, marked):
    program = compiled(1, body)
    x, z = inputs(1)
    program(x, z, config=RunConfig(platform=program.platform, enable_dump_args=True))
    (folder,) = folders(program.output_dir / "dfx_outputs").values()
    index = read(folder / "args_dump" / "args_dump.json")
    assert index["dump_args_level"] == 1
    found = {(int(e["task_id"]), e["arg_index"]) for e in index["args"] if e["kind"] == "tensor"}
    assert found == set(marked)
    assert not any(e["kind"] == "scalar" for e in index["args"])


# ---- schemas ----

SCOPE_KEYS = (
    "site phase depth ring task_window_start task_window_end heap_start heap_end dep_pool_start dep_pool_end tensormap"
).split()
ARG_KEYS = (
    "task_id func_id role stage arg_index kind dtype shape strides start_offset is_contiguous truncated overwritten "
    "bin_offset bin_size"
).split()
GEOMETRY = ["shape", "start_offset", "strides"]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim"])
def test_schemas(ranks, platform):
    """Every file of every rank has the keys that readers look for, whatever the platform is."""
    x, z = inputs(ranks)
    cfg = config(ranks)
    cfg.platform = platform
    program = from_text(text_of(BODY))["host"].compile(x, z, config=cfg)
    dfx = recorded(
        program, ranks, enable_chip_swimlane=True, enable_dump_args=2, enable_pmu=2, enable_dep_gen=True,
        enable_scope_stats=True,
    )
    assert len(folders(dfx)) == ranks
    for folder in folders(dfx).values():
        lanes = read(folder / "chip_swimlane_records.json")
        assert lanes["chip_swimlane_level"] == 4 and KEYS == [k for k in lanes if k.startswith("aic")]
        assert {"clock_freq_hz", "num_cores", "core_types", "core_to_thread"} <= lanes["metadata"].keys()
        assert all(len(row) == 5 for row in lanes["aicore_tasks"]) and all(len(row) == 4 for row in lanes["aicpu_tasks"])
        for phase in sum(lanes["aicpu_scheduler_phases"], []):
            assert {"kind", "start_cycles", "end_cycles", "loop_iter", "tasks_processed"} <= phase.keys()
        for phase in sum(lanes["aicpu_orchestrator_phases"], []):
            assert {"submit_idx", "task_id", "start_cycles", "end_cycles"} <= phase.keys()
        deps = read(folder / "deps.json")
        for task in deps["tasks"]:
            assert {"task_id", "scope", "kernel_ids", "block_num", "args"} <= task.keys()
            assert task["task_id"].isdecimal() and len(task["kernel_ids"]) == 3
            for arg in task["args"]:
                assert {"idx", "type"} <= arg.keys()
                assert arg["type"] == "SCALAR" or {"tensor_id", "dtype", *GEOMETRY} <= arg.keys()
        for tensor in deps["tensors"]:
            assert {"tensor_id", "buffer_addr", "version", "dtype", "buffer_numel"} <= tensor.keys()
        for edge in deps["edges"]:
            assert {"pred", "succ", "arg", "source", "flags"} <= edge.keys() and set(edge["flags"]) <= {"wait", "retain"}
            if edge["source"] != "explicit":
                assert {"tensor_id", *(f"consumer_{g}" for g in GEOMETRY)} <= edge.keys()
            if edge["source"] == "tensormap":
                assert edge["overlap"] in ("covered", "other") and {f"producer_{g}" for g in GEOMETRY} <= edge.keys()
        head, *scopes = map(json.loads, (folder / "scope_stats/scope_stats.jsonl").read_text().splitlines())
        assert {"version", "fatal", "dropped", "total", "task_window_max", "heap_max", "dep_pool_max", "tensormap_max"} <= head.keys()
        assert scopes and all(set(SCOPE_KEYS) <= scope.keys() for scope in scopes)
        dump = read(folder / "args_dump/args_dump.json")
        assert {"run_dir", "bin_format", "dump_args_level", "bin_file", "args"} <= dump.keys()
        assert dump["args"] and all(set(ARG_KEYS) <= arg.keys() for arg in dump["args"])
        names = read(folder / "name_map.json")
        assert names.keys() == {"level", "orchestrator_name", "callable_id_to_name"}
        assert [p for p in folder.glob("merged_swimlane_*.json") if p.stat().st_size]


# ---- SubWorkers ----


@pl.program
class Checked:
    """y = 2 x on each device, then two SubWorkers, then y + 1 on each device."""

    @pl.function(type=pl.FunctionType.InCore)
    def double_kernel(self, x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]):
        pl.store(pl.mul(pl.load(x, [0], [8]), 2.0), [0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def double(self, x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]):
        return self.double_kernel(x, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def negate(y: pl.InOut[pl.Tensor[[2, 8], pl.FP32]]):
        if bool((y > 100).any()):
            raise ValueError("too large")
        y *= -1

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def look(y: pl.Tensor[[2, 8], pl.FP32]):
        pass

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[2, 8], pl.FP32], y: pl.InOut[pl.Tensor[[2, 8], pl.FP32]], out: pl.Out[pl.Tensor[[2, 8], pl.FP32]]):
        for r in pl.range(2):
            self.double(x[r], y[r], device=r)
        self.negate(y)
        self.look(y)
        for r in pl.range(2):
            self.double(y[r], out[r], device=r)
        return out


def checked(tmp_path):
    return ir.compile(
        Checked, output_dir=tmp_path / "out", platform="cpu", distributed_config=DistributedConfig(device_ids=[0, 1])
    )


def dispatches_of(dfx):
    """{folder: what it is called in `after` lists}"""
    found = {}
    for path in sorted([*dfx.glob("rank*/d*"), *dfx.glob("sub*/d*")]):
        deps = read(path / "deps.json")
        found[str(path.relative_to(dfx))] = {
            f"{'sub' if 'sub' in e else 'rank'}{e.get('sub', e.get('rank'))}/d{e['dispatch']}" for e in deps["after"]
        }
    return found


def test_sub_workers(tmp_path, transport):
    """They have folders, lanes and an order of their own, as dispatches of one task."""
    pytest.importorskip("torch")
    program = checked(tmp_path)
    x, y, out = (np.ones((2, 8), np.float32) for _ in range(3))
    program(x, y, out, config=RunConfig(
        platform="cpu", enable_chip_swimlane=4, enable_dep_gen=True, enable_scope_stats=True, enable_pmu=1,
    ))
    assert (out == -4).all()
    dfx = tmp_path / "out" / "dfx_outputs"
    after = dispatches_of(dfx)
    (negate,) = [f for f in after if read(dfx / f / "dispatch_program.json") == {"program": "negate"}]
    (look,) = [f for f in after if read(dfx / f / "dispatch_program.json") == {"program": "look"}]
    assert {negate, look} == {"sub0/d0", "sub1/d0"}
    assert after == {
        "rank0/d0": set(), "rank1/d0": set(),
        negate: {"rank0/d0", "rank1/d0"}, look: {"rank0/d0", "rank1/d0", negate},
        "rank0/d1": {"rank0/d0", negate}, "rank1/d1": {"rank1/d0", negate},
    }
    span = {}
    for folder in after:
        deps = read(dfx / folder / "deps.json")
        (task,) = deps["tasks"]
        names = read(dfx / folder / "name_map.json")["callable_id_to_name"]
        name = names[str(task["kernel_ids"][1])]
        assert name == {negate: "negate", look: "look"}.get(folder, "double_kernel")
        records = read(dfx / folder / "chip_swimlane_records.json")
        ((_, _, _, start, end),) = records["aicore_tasks"]
        span[folder] = (start, end)
        owner = "sub" if folder.startswith("sub") else "rank"
        assert records["metadata"][owner] == deps[owner] == int(folder[len(owner)])
    for folder, before in after.items():
        for earlier in before:
            assert span[earlier][1] <= span[folder][0]
    assert [s[:4] for s in scopes_of(dfx / negate)] == [("function", "negate", "begin", 0), ("function", "negate", "end", 0)]
    (argument,) = read(dfx / negate / "deps.json")["tasks"][0]["args"]
    assert argument["type"] == "INOUT" and argument["shape"] == [2, 8]
    (whole,) = dfx.glob("merged_swimlane_*.json")
    events = read(whole)["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
    assert processes == {0: "rank 0", 1: "rank 1", 2: "SubWorker 0", 3: "SubWorker 1"}
    bars = {e["name"].partition("(")[0]: e["pid"] for e in events if e["ph"] == "X"}
    assert {bars["negate"], bars["look"]} == {2, 3}
    starts = {e["id"]: e["pid"] for e in events if e["ph"] == "s"}
    ends = {e["id"]: e["pid"] for e in events if e["ph"] == "f"}
    arrows = {(starts[i], ends[i]) for i in starts}
    assert starts.keys() == ends.keys()
    assert {(0, bars["negate"]), (1, bars["negate"]), (bars["negate"], bars["look"]), (bars["negate"], 0)} <= arrows


def test_records_of_sub_workers_go_and_come(tmp_path):
    """Those of an earlier call are removed; one that fails has its own."""
    pytest.importorskip("torch")
    program = checked(tmp_path)
    x, y, out = (np.ones((2, 8), np.float32) for _ in range(3))
    dfx = tmp_path / "out" / "dfx_outputs"
    recorded = RunConfig(platform="cpu", enable_dep_gen=True)
    with program.prepare() as worker:
        worker(x, y, out, config=recorded)
        assert {p.name for p in dfx.glob("sub*")} == {"sub0", "sub1"}
        with pytest.raises(RuntimeError, match="too large"):
            worker(100 * x, y, out, config=recorded)
        found = dispatches_of(dfx)
        assert {f for f in found if f.startswith("sub")} <= {"sub0/d0", "sub1/d0"}
        names = {read(dfx / f / "dispatch_program.json")["program"]: read(dfx / f / "deps.json")["tasks"] for f in found}
        assert len(names["negate"]) == 1 and not names.get("look")
        worker(x, y, out)
        worker(x, y, out, config=RunConfig(platform="cpu", enable_pmu=1))
        assert (out == -4).all()
    assert {p.name for p in dfx.glob("sub*/d0/*")} == {"pmu.csv", "dispatch_program.json"}


def many_arguments(first, last):
    """The text of a program that calls a kernel of 65 arguments twice: x, 63 numbers, z."""
    numbers = [f"s{i}" for i in range(63)]
    kernel = f"""
@pl.jit.incore
def many(x: pl.Tensor[[1, 8], pl.INT32], {", ".join(f"{s}: pl.Scalar[pl.INDEX]" for s in numbers)},
         z: pl.InOut[pl.Tensor[[N, 8], pl.INT32]]):
    pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], z)
    return z

"""
    call = f"many({first}, {', '.join('1' for _ in numbers)}, {last})"
    return text_of(f"{call}\n{call}").replace("@pl.jit\ndef chip", kernel + "@pl.jit\ndef chip")


def test_no_dep_of_one_argument_leaves_the_one_64_behind_it_alone():
    program = from_text(many_arguments("pl.no_dep(x)", "z"))["host"].compile(*inputs(), config=config(1))
    (folder,) = folders(recorded(program, ranks=1, enable_dep_gen=True)).values()
    assert [edge["arg"] for edge in read(folder / "deps.json")["edges"]] == [64]


def test_no_dep_is_for_the_first_64_arguments():
    with pytest.raises(ParserSyntaxError, match="for the first 64 arguments of a task, and this is number 65"):
        from_text(many_arguments("x", "pl.no_dep(z)"))["host"].compile(*inputs(), config=config(1))
