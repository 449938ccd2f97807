"""Output directories: where they are, what is in them, and that nothing gets out of them."""

import json
import os
import pathlib
import re
import runpy
import stat
import subprocess
import sys

import numpy as np
import pytest

import pypto
import pypto.language as pl
from artifact_programs import N, AddAndSub, Double, Sum, collective
from programs import config, from_text
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig
from test_compile import SCALE, rows

PROGRAM = {"program.c", "program.ir", "program.json", "program.so", "program.sum"}
TWO = DistributedConfig(device_ids=[0, 1])
STAGES = ["front_end", "infer_domains", "spread", "mark_signals", "effects", "release", "plan_scratch", "names"]


def dumps(*numbers):
    return {f"passes_dump/{number:02}_after_{STAGES[number]}.ir" for number in numbers}


CHANGING = dumps(0, 6, 7)  # of a program without windows


def tree(folder):
    """The files below a folder, by their relative paths."""
    found = pathlib.Path(folder).rglob("*")
    return {str(path.relative_to(folder)) for path in found if not path.is_dir()}


@pytest.fixture
def base(monkeypatch, tmp_path):
    """Where default output directories go."""
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "base"))
    return tmp_path / "base"


# ---- what is in them ----


def test_a_program_for_one_device(tmp_path):
    compiled = ir.compile(Double, tmp_path / "out", platform="cpu")
    assert tree(compiled) == PROGRAM | CHANGING | {
        "kernel_config.py",
        "orchestration/orch.c",
        "kernels/kernel.c",
        "compiled_meta.json",
        "debug/run.py",
    }
    described = runpy.run_path(str(compiled.output_dir / "kernel_config.py"))
    assert described["RUNTIME_CONFIG"] == compiled.runtime_config
    assert compiled.runtime_config == {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0}
    assert described["ORCHESTRATION"] == {
        "source": "orchestration/orch.c",
        "function_name": "orch",
        "signature": ["In", "Out"],
    }
    (kernel,) = described["KERNELS"]
    assert (kernel["func_id"], kernel["name"], kernel["source"]) == (0, "kernel", "kernels/kernel.c")
    text = (compiled.output_dir / "kernels/kernel.c").read_text()
    assert "static void kernel(pld_core *core" in text and "pld_store(" in text and "orch" not in text


def test_a_program_with_a_host_function(tmp_path):
    compiled = ir.compile(Sum, tmp_path / "out", platform="cpu", distributed_config=TWO)
    names = ("publish", "store"), ("fetch", "load"), ("builtin.tensor.allreduce__sum__fp32", "allreduce")
    parts = {
        f"next_levels/{folder}/{file}"
        for folder, kernel in names
        for file in (
            "kernel_config.py",
            f"orchestration/{folder if '.' not in folder else kernel}.c",
            f"kernels/{kernel}.c",
        )
    }
    assert tree(compiled) == PROGRAM | dumps(0, 1, 2, 3, 6, 7) | parts | {
        "orchestration/host_orch.c",
        "distributed_meta.json",
        "debug/run.py",
    }
    assert "pld_dispatch(" in (compiled.output_dir / "orchestration/host_orch.c").read_text()


def test_several_orchestrations(tmp_path):
    compiled = ir.compile(AddAndSub, tmp_path / "out", platform="cpu")
    assert tree(compiled) == {
        f"next_levels/orch_{name}/{file}"
        for name in ("add", "sub")
        for file in PROGRAM
        | CHANGING
        | {"kernel_config.py", f"orchestration/orch_{name}.c", f"kernels/{name}.c", "compiled_meta.json"}
    }


@pytest.mark.parametrize("program, marker", [(Double, "kernel_config.py"), (Sum, "orchestration/host_orch.c")])
def test_skip_ptoas_leaves_sources_only(tmp_path, program, marker):
    whole = tree(ir.compile(program, tmp_path / "whole", platform="cpu"))
    compiled = ir.compile(program, tmp_path / "out", platform="cpu", skip_ptoas=True)
    left_out = {name for name in whole if name.endswith("kernel_config.py")}
    assert tree(compiled) == whole - left_out - {"program.so", "program.sum", "debug/run.py"}
    with pytest.raises(FileNotFoundError, match=r"kernel_config\.py.*generated with skip_ptoas=True"):
        compiled(*(np.zeros((2, 1, N), np.float32),) * 2)
    with pytest.raises(FileNotFoundError, match=r"kernel_config\.py.*skip_ptoas=True"):
        type(compiled).from_dir(compiled)
    ir.compile(program, tmp_path / "whole", platform="cpu", skip_ptoas=True)  # what was there goes
    assert tree(tmp_path / "whole") == tree(compiled) | {"debug/run.py"}


@pytest.mark.parametrize("program, changing", [(Double, {0, 6, 7}), (Sum, {0, 1, 2, 3, 6, 7})])
def test_stages(tmp_path, program, changing):
    """Each is written where it changes the IR, or all are; and what an earlier compile has left goes."""
    levels = {True: changing, ir.PassDumpLevel.CONCISE: changing, ir.PassDumpLevel.EXPLICIT: set(range(8)), False: set()}
    text = {}
    for level, numbers in levels.items():
        compiled = ir.compile(program, tmp_path / "out", platform="cpu", dump_passes=level)
        found = {name for name in tree(compiled) if name.startswith("passes_dump/")}
        assert found == dumps(*numbers)
        text.update({name: (compiled.output_dir / name).read_text() for name in found})
    first, last = (text[f"passes_dump/{stage}.ir"] for stage in ("00_after_front_end", "07_after_names"))
    assert last == (compiled.output_dir / "program.ir").read_text()
    assert " at 0" not in first and " at 0" in last  # places of tiles
    previous = None
    for number, stage in enumerate(STAGES):
        now = text[f"passes_dump/{number:02}_after_{stage}.ir"]
        assert (now != previous) == (number in changing)
        previous = now


def test_stages_of_other_compiles(tmp_path):
    settings = config(2)
    settings.save_kernels_dir = str(tmp_path / "function")
    function = from_text(SCALE)["host"]
    assert not any("passes_dump" in name for name in tree(function.compile(rows(2), rows(2), config=settings)))
    settings.dump_passes = True
    compiled = function.compile(rows(2), rows(2), config=settings)
    assert dumps(0, 7) < tree(compiled) and function.compile(rows(2), rows(2), config=settings) is compiled
    assert CHANGING < tree(ir.compile(Double, tmp_path / "skips", platform="cpu", skip_ptoas=True))
    (tmp_path / "skips/passes_dump/mine.ir").write_text("")
    ir.compile(Double, tmp_path / "skips", platform="cpu", dump_passes=False)
    assert {name for name in tree(tmp_path / "skips") if "passes" in name} == {"passes_dump/mine.ir"}


def test_a_new_program_is_lowered_once(tmp_path, monkeypatch):
    """Its stages are those of the compile; one that the cache has is lowered for them."""
    lowered = []
    lower = pypto._core.lower
    monkeypatch.setattr(pypto._core, "lower", lambda *args: lowered.append(args) or lower(*args))
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "cache"))
    settings, host = config(2), from_text(SCALE)["host"]
    settings.dump_passes = True
    first = host.compile(rows(2), rows(2), config=settings)
    assert dumps(0, 7) < tree(first) and not lowered
    host._programs.clear()
    again = host.compile(rows(2), rows(2), config=settings)
    assert dumps(0, 7) < tree(again) and len(lowered) == 1
    ir.compile(Double, tmp_path / "out", platform="cpu", skip_ptoas=True)
    assert len(lowered) == 2


def test_skip_ptoas_with_several_orchestrations(tmp_path):
    compiled = ir.compile(AddAndSub, tmp_path / "out", platform="cpu", skip_ptoas=True)
    for name in ("add", "sub"):
        folder = compiled[f"orch_{name}"].output_dir
        assert folder == compiled.output_dir / "next_levels" / f"orch_{name}"
        assert (folder / f"orchestration/orch_{name}.c").exists()
        assert tree(folder / "kernels") == {f"{name}.c"}
        assert not (folder / "kernel_config.py").exists()


@pytest.mark.parametrize(
    "call, dtype, variant",
    [
        (f"pld.tensor.allreduce(data, sig, op=pld.ReduceOp.{op})", dtype, f"allreduce__{op.lower()}__{text}")
        for op in ("Sum", "Max", "Min", "Prod")
        for dtype, text in (("FP32", "fp32"), ("FP16", "fp16"))
    ]
    + [
        ("pld.tensor.allreduce(data, core_num=2)", "FP32", "allreduce__sum__fp32"),
        ("pld.tensor.allreduce(data, ring, mode='ring')", "FP32", "allreduce_ring__sum__fp32"),
        ("pld.tensor.barrier(sig)", "FP32", "barrier__fp32"),
        ("pld.tensor.broadcast(data, sig, root=0)", "FP32", "broadcast__root0__fp32"),
        ("pld.tensor.broadcast(data, sig, root=1)", "BF16", "broadcast__root1__bfloat16"),
        ("pld.tensor.reduce_scatter(data, sig)", "FP32", "reduce_scatter__sum__fp32"),
        ("pld.tensor.allgather(row, more, sig)", "FP32", "allgather__fp32"),
        ("pld.tensor.all_to_all(data, more, sig)", "FP32", "all_to_all__fp32"),
        ("pld.tensor.all_to_all_v(data, more, sig, sent, got)", "FP32", "all_to_all_v__fp32"),
    ],
)
def test_collectives_of_host_functions(tmp_path, call, dtype, variant):
    compiled = ir.compile(
        collective(call, dtype), tmp_path, platform="cpu", distributed_config=TWO, skip_ptoas=True
    )
    assert {path.name for path in (compiled.output_dir / "next_levels").iterdir()} == {
        "chip",
        f"builtin.tensor.{variant}",
    }


def test_a_collective_is_recorded_once(tmp_path):
    call = "pld.tensor.allreduce(data, sig); pld.tensor.allreduce(more, core_num=2)"
    compiled = ir.compile(collective(call), tmp_path, platform="cpu", distributed_config=TWO)
    parts = compiled.output_dir / "next_levels"
    assert {path.name for path in parts.iterdir()} == {"chip", "builtin.tensor.allreduce__sum__fp32"}
    assert (parts / "builtin.tensor.allreduce__sum__fp32/kernel_config.py").is_file()


def test_sidecars(tmp_path):
    compiled = ir.compile(Sum, tmp_path / "host", platform="a5sim", distributed_config=TWO)
    row = {"shape": [2, 1, N], "dtype": "fp32"}
    common = {
        "params": [{"name": "x", "direction": "In", **row}, {"name": "y", "direction": "Out", **row}],
        "num_return_types": 1,
        "platform": "a5sim",
        "backend_type": "Ascend950",
    }
    assert json.loads((compiled.output_dir / "distributed_meta.json").read_text()) == {
        "schema": 2,
        **common,
        "distributed_config": {
            "device_ids": [0, 1],
            "num_sub_workers": 0,
            "runtime": "tensormap_and_ringbuffer",
            "aicpu_thread_num": 0,
        },
    }
    compiled = ir.compile(Double, tmp_path / "one", platform="a5sim")
    for param in common["params"]:
        param["shape"] = [1, N]
    assert json.loads((compiled.output_dir / "compiled_meta.json").read_text()) == {"schema": 1, **common}


def test_a_profile_of_the_compile(tmp_path):
    compiled = ir.compile(Double, tmp_path, platform="cpu", profiling=True)
    report = json.loads((compiled.output_dir / "report/pipeline_profile.json").read_text())
    assert report == compiled.stats
    assert "C compiler" in (compiled.output_dir / "report/pipeline_profile.txt").read_text()


def test_what_the_c_compiler_was_given_is_there_when_it_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYPTO_CC", "/bin/false")
    with pytest.raises(pypto.CompilerError, match="failed on the emitted C"):
        ir.compile(collective("pld.tensor.barrier(sig)", "INT16"), tmp_path / "out", platform="cpu")
    assert "static void kernel(" in (tmp_path / "out/program.c").read_text()
    assert not (tmp_path / "out/program.so").exists()


# ---- one directory for several compiles ----


def test_nothing_is_cleared_but_marks_of_another_kind(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    first = ir.compile(Sum, tmp_path, platform="cpu", distributed_config=TWO)
    before = tree(first)
    second = ir.compile(Double, tmp_path, platform="cpu")
    assert first.output_dir == second.output_dir == tmp_path.resolve()
    gone = {"orchestration/host_orch.c", "distributed_meta.json"} | dumps(1, 2, 3)
    assert before - tree(tmp_path) == gone and "notes.txt" in tree(tmp_path)
    ir.compile(AddAndSub, tmp_path, platform="cpu")
    assert {"kernel_config.py", "compiled_meta.json"} & tree(tmp_path) == set()
    ir.compile(Sum, tmp_path, platform="cpu", distributed_config=TWO)
    assert gone <= tree(tmp_path)


def test_no_temporary_file_is_left(tmp_path):
    for _ in range(2):
        ir.compile(Sum, tmp_path, platform="cpu", distributed_config=TWO)
    assert not [name for name in tree(tmp_path) if name.endswith(".tmp") or "/." in "/" + name]


# ---- where they are ----


def test_default_directories(base):
    made = [ir.compile(Double, platform="cpu") for _ in range(3)]
    assert len({compiled.output_dir for compiled in made}) == 3  # in one second or not
    for compiled in made:
        assert compiled.output_dir.parent == base.resolve()
        assert re.fullmatch(r"Double_\d{8}_\d{6}(_\d+)?", compiled.output_dir.name)


def test_without_the_variable_it_is_build_output(monkeypatch, tmp_path):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", "")
    monkeypatch.chdir(tmp_path)
    compiled = ir.compile(Double, platform="cpu")
    assert compiled.output_dir.is_absolute() and compiled.output_dir.parent == tmp_path / "build_output"


def test_calls_of_functions_leave_no_directory(base):
    host = from_text(SCALE)["host"]
    host(rows(2), rows(2), config=config(2))
    assert not base.exists()
    compiled = host.compile(rows(2), rows(2), config=config(2))
    assert re.match(r"host_\d{8}_\d{6}", compiled.output_dir.name) and (base / compiled.output_dir).exists()
    assert host.compile(rows(2), rows(2), config=config(2)) is compiled
    assert len(list(base.iterdir())) == 1


def test_save_kernels_dir(base, tmp_path):
    host = from_text(SCALE)["host"]
    for name in ("one", "two"):
        settings = RunConfig(
            platform="cpu", distributed_config=TWO, save_kernels_dir=str(tmp_path / name)
        )
        compiled = host.compile(rows(2), rows(2), config=settings)
        assert compiled.output_dir == tmp_path / name and "program.c" in tree(tmp_path / name)
    assert not base.exists()


def test_a_default_directory_that_cannot_be_made(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="cannot be written to .*/file.*set PYPTO_PROG_BUILD_DIR"):
        compiled = ir.compile(Double, platform="cpu")
    assert (compiled(np.ones((1, N), np.float32)) == 2).all()
    assert (compiled.output_dir / "program.c").exists()  # in the cache
    with pytest.raises(OSError, match="output_dir cannot be used") as caught:
        ir.compile(Double, tmp_path / "file", platform="cpu")
    assert caught.value.filename == str(tmp_path / "file")


def test_a_default_directory_below_one_that_was_removed(monkeypatch, tmp_path):
    monkeypatch.delenv("PYPTO_PROG_BUILD_DIR", raising=False)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.warns(RuntimeWarning, match="cannot be written to build_output: No such file"):
        compiled = ir.compile(Double, platform="cpu")
    assert (compiled(np.ones((1, N), np.float32)) == 2).all()


# ---- whose they are ----


def test_directories_and_files_are_private(tmp_path):
    old = os.umask(0)
    try:
        ir.compile(Sum, tmp_path / "out", platform="cpu", distributed_config=TWO)
    finally:
        os.umask(old)
    for path in [tmp_path / "out", *(tmp_path / "out").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("link", ["kernels", "debug"])
def test_links_below_are_not_followed(tmp_path, link):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link, which is not followed"):
        ir.compile(Double, tmp_path / "out", platform="cpu")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_file_that_is_a_link_is_replaced(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/program.c").symlink_to(tmp_path / "precious")
    ir.compile(Double, tmp_path / "out", platform="cpu")
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "out/program.c").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of somebody else's")
@pytest.mark.parametrize("below", ["", "kernels"])
def test_somebody_elses_directory_is_refused(tmp_path, below):
    (tmp_path / "out/kernels").mkdir(parents=True)
    os.chown(tmp_path / "out" / below, 12345, -1)
    with pytest.raises(ValueError, match="belongs to user 12345"):
        ir.compile(Double, tmp_path / "out", platform="cpu")


EVIL = "../../ev\"il'\n*/ #"


def test_names_cannot_get_out(base, tmp_path):
    namespace = from_text(SCALE)
    for name in ("host", "wrapper", "kernel"):
        namespace[name].__name__ = EVIL + name
        namespace[name]._function.__name__ = EVIL + name
    y = np.zeros_like(rows(2))
    compiled = namespace["host"].compile(rows(2), y, config=config(2))
    compiled(rows(2), y)
    assert (y == rows(2) * 2).all()
    assert compiled.output_dir.parent == base.resolve() and set(tmp_path.iterdir()) == {base}
    assert all(re.fullmatch(r"[\w./]+", name) for name in tree(compiled)), tree(compiled)
    for described in compiled.output_dir.glob("next_levels/*/kernel_config.py"):
        runpy.run_path(str(described))


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".", "x" * 300, "né" * 80, "\udcff"])
def test_program_names_cannot_get_out(base, name):
    program = ir.Program(name, Double.functions)
    compiled = ir.compile(program, platform="cpu")
    assert compiled.output_dir.parent == base.resolve() and len(compiled.output_dir.name) < 200


# ---- running one again ----


def test_the_runner(tmp_path):
    compiled = ir.compile(Double, tmp_path / "out", platform="cpu")
    np.save(tmp_path / "x.npy", np.ones((1, N), np.float32))
    script = compiled.output_dir / "debug/run.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path / "x.npy"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"y: float32 (1, {N})\n" + f"[[{' '.join(['2.'] * N)}]]\n"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 2 and "x: In [1, 16] fp32" in done.stderr


@pytest.mark.parametrize(
    "words, code, told",
    [
        (["nowhere.npy"], 2, "run.py: argument x: nowhere.npy cannot be read: No such file"),
        (["text.npy"], 2, "run.py: argument x: text.npy holds no array that can be loaded"),
        (["empty.npy"], 2, "run.py: argument x: empty.npy holds no array that can be loaded"),
        (["objects.npy"], 2, "run.py: argument x: objects.npy holds no array that can be loaded"),
        (["three"], 2, "run.py: argument x: 'three' is neither a .npy file nor a number"),
        (["1", "2", "3"], 2, "run.py: 3 arguments were given"),
        (["3"], 1, "run.py: argument 'x' of orch must be a tensor"),
        (["wide.npy"], 1, "expects shape (1, 16), got [1, 17]"),
    ],
)
def test_mistakes_with_the_runner(one_folder, tmp_path, words, code, told):
    (tmp_path / "text.npy").write_text("1 2 3")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.save(tmp_path / "objects.npy", np.array([None, {}]), allow_pickle=True)
    np.save(tmp_path / "wide.npy", np.ones((1, N + 1), np.float32))
    done = subprocess.run(
        [sys.executable, one_folder / "debug/run.py", *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr and "Traceback" not in done.stderr
    assert ("usage:" in done.stderr) == (code == 2)


def test_the_runner_of_a_broken_directory(tmp_path):
    compiled = ir.compile(Double, tmp_path / "out", platform="cpu")
    (compiled.output_dir / "compiled_meta.json").write_text("{")
    done = subprocess.run([sys.executable, compiled.output_dir / "debug/run.py", "1"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("run.py: ") and "malformed" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def one_folder(tmp_path_factory):
    return ir.compile(Double, tmp_path_factory.mktemp("runner") / "out", platform="cpu").output_dir


def test_without_the_runner(monkeypatch, tmp_path):
    monkeypatch.setenv("PYPTO_EMIT_DEBUG_RUNNER", "no")
    assert "debug/run.py" not in tree(ir.compile(Double, tmp_path, platform="cpu"))
