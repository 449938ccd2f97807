"""Programs read back from their output directories."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import pypto
from artifact_programs import N, AddAndSub, Double, Sum
from programs import config, from_text
from pypto import ir
from pypto.ir import CompiledProgram, DistributedCompiledProgram, DistributedConfig
from pypto.runtime import RunConfig, debug, execute_compiled, execute_distributed_compiled
from test_compile import SCALE, rows

TWO = DistributedConfig(device_ids=[0, 1])
ROW = np.arange(N, dtype=np.float32).reshape(1, N)
BOTH = np.arange(2 * N, dtype=np.float32).reshape(2, 1, N)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A cache where nothing is yet, so that what runs is what the directory has."""
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Directories of both kinds, to be copied."""
    folder = tmp_path_factory.mktemp("kept")
    ir.compile(Double, folder / "one", platform="cpu")
    ir.compile(Sum, folder / "host", platform="cpu", distributed_config=TWO)
    return folder


@pytest.fixture
def one(kept, tmp_path):
    return pathlib.Path(shutil.copytree(kept / "one", tmp_path / "one"))


@pytest.fixture
def host(kept, tmp_path):
    return pathlib.Path(shutil.copytree(kept / "host", tmp_path / "host"))


# ---- running them ----


def test_a_program_for_one_device(one, transport):
    compiled = CompiledProgram.from_dir(one)
    assert (compiled(ROW) == 2 * ROW).all()
    y = np.zeros_like(ROW)
    assert compiled(ROW, y, config=RunConfig(platform="cpu", device_id=1)) is None
    assert (y == 2 * ROW).all()
    assert compiled.program is None and compiled.output_dir == one.resolve()
    assert compiled == one and compiled == CompiledProgram.from_dir(str(one))
    assert os.fspath(compiled) == str(compiled) == str(one) and hash(compiled) == hash(one)
    assert (compiled.param_names, compiled.output_indices, compiled.has_return) == (["x", "y"], [1], True)
    assert compiled.load() is not None and compiled.orchestration_names == []
    with pytest.raises(TypeError, match=r"orch expects 2 \(in-place\) or 1 \(return\) arguments \(x, y\)"):
        compiled()
    with pytest.raises(RuntimeError, match="live IR"):
        compiled["orch"]


def test_a_program_with_a_host_function(host, transport):
    compiled = DistributedCompiledProgram.from_dir(host)
    assert (compiled(BOTH) == BOTH.sum(axis=0)).all()
    with compiled.prepare() as worker:
        y = np.zeros_like(BOTH)
        worker(BOTH, y)
        assert (y == BOTH.sum(axis=0)).all()
    assert compiled._distributed_config == TWO and compiled.program is None
    parameters, outputs, returned = compiled._get_metadata()
    assert [(p.name, p.direction, p.shape, str(p.dtype)) for p in parameters] == [
        ("x", ir.ParamDirection.In, [2, 1, N], "fp32"),
        ("y", ir.ParamDirection.Out, [2, 1, N], "fp32"),
    ]
    assert outputs == [1] and returned == [parameters[1]]
    assert compiled != DistributedCompiledProgram.from_dir(host)  # each is itself
    assert str(host) in repr(compiled)


def test_what_is_given_wins(one, host):
    config = DistributedConfig(device_ids=[7, 5])
    compiled = DistributedCompiledProgram.from_dir(host, platform="a5", distributed_config=config)
    assert (compiled.platform, compiled.backend_type) == ("a5", "Ascend950")
    assert compiled._distributed_config is config
    assert (compiled(BOTH) == BOTH.sum(axis=0)).all()
    assert CompiledProgram.from_dir(one, backend_type="Ascend950").platform == "a5sim"
    assert CompiledProgram.from_dir(one).platform == "cpu"
    with pytest.raises(ValueError, match="Invalid platform"):
        CompiledProgram.from_dir(one, platform="gpu")
    with pytest.raises(ValueError, match="backend_type must be one of"):
        CompiledProgram.from_dir(one, backend_type="Ascend42")


def test_one_of_several_orchestrations(tmp_path):
    compiled = ir.compile(AddAndSub, tmp_path / "out", platform="cpu")
    with pytest.raises(FileNotFoundError, match=r"compiled_meta\.json.*multi-orch"):
        CompiledProgram.from_dir(compiled)
    again = CompiledProgram.from_dir(compiled.orch_add)
    assert (again(ROW, ROW) == 2 * ROW).all() and again.name == "orch_add"


def test_functions_of_calls(one, host):
    assert (debug.replay(one, ROW) == 2 * ROW).all()
    assert (debug.replay(host, BOTH, config=RunConfig(platform="cpu")) == BOTH.sum(axis=0)).all()
    assert (execute_compiled(one, [ROW]) == 2 * ROW).all()
    three = DistributedConfig(device_ids=[4, 9])
    result = execute_distributed_compiled(host, [BOTH], platform="a2a3", distributed_config=three)
    assert (result == BOTH.sum(axis=0)).all()
    with pytest.raises(FileNotFoundError, match=r"kernel_config\.py"):
        debug.replay(one / "kernels")
    with pytest.raises(ValueError, match="no expected results"):
        debug.replay(one, ROW, validate=True)


def test_another_process(host):
    code = (
        "import sys, numpy as np; from pypto.ir import DistributedCompiledProgram as D\n"
        f"x = np.ones((2, 1, {N}), np.float32); assert (D.from_dir(sys.argv[1])(x) == 2).all()"
    )
    subprocess.run([sys.executable, "-c", code, host], check=True, timeout=60)


def test_compiled_functions_come_back(tmp_path):
    function = from_text(SCALE)["host"]
    settings = config(2)
    settings.save_kernels_dir = str(tmp_path / "out")
    function.compile(rows(2), rows(2), config=settings)
    y = np.zeros_like(rows(3))
    three = DistributedConfig(device_ids=[0, 1, 2])
    DistributedCompiledProgram.from_dir(tmp_path / "out", distributed_config=three)(rows(3), y)
    assert (y == 2 * rows(3)).all()


# ---- the native code ----


def modified(folder):
    return {path: path.stat().st_mtime_ns for path in pathlib.Path(folder).rglob("*")}


def test_it_is_used_as_it_is(one, cache, monkeypatch):
    monkeypatch.setenv("PYPTO_CC", "/nonexistent")  # nothing needs a compiler
    before = modified(one)
    compiled = CompiledProgram.from_dir(one)
    assert (compiled(ROW) == 2 * ROW).all()
    assert modified(one) == before and len(list(cache.glob("v1/object/*/program.so"))) == 1


def test_another_program_in_the_same_folder(tmp_path, transport):
    """The dynamic loader takes files of one name for one object: what is loaded is not the file in the folder."""
    settings = RunConfig(platform="cpu", distributed_config=TWO, save_kernels_dir=str(tmp_path / "folder"))
    compiled = []
    for factor in ("FACTOR = 2", "FACTOR = 3"):
        compiled.append((factor, from_text(SCALE.replace("FACTOR = 2", factor))["host"].compile(rows(2), rows(2), config=settings)))
        compiled.append((factor, DistributedCompiledProgram.from_dir(tmp_path / "folder")))
    for factor, each in compiled:
        y = np.zeros_like(rows(2))
        each(rows(2), y)
        assert (y == int(factor[-1]) * rows(2)).all()


@pytest.mark.parametrize(
    "damage",
    ["truncated", "poisoned", "missing", "another machine", "another text", "invalidated", "empty"],
)
def test_it_is_made_again(one, cache, damage):
    object_path, sums = one / "program.so", one / "program.sum"
    content = object_path.read_bytes()
    if damage == "truncated":
        object_path.write_bytes(content[:5000])
    elif damage == "poisoned":
        object_path.write_bytes(content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    elif damage == "missing":
        object_path.unlink()
    elif damage == "another machine":
        size, machine, source = sums.read_text().splitlines()
        sums.write_text(f"{size}\nmachine {'0' * 32}\n{source}\n")
    elif damage == "another text":
        text = (one / "program.c").read_text()
        (one / "program.c").write_text(text.replace("2.0f", "3.0f"))
    elif damage == "invalidated":
        debug.invalidate_binary_cache(one)
    elif damage == "empty":
        sums.write_text("")
    factor = 3 if damage == "another text" else 2
    before = modified(one)
    compiled = CompiledProgram.from_dir(one)
    assert (compiled(ROW) == factor * ROW).all()
    assert modified(one) == before and len(list(cache.glob("v1/object/*/program.so"))) == 1
    assert not compiled.stats["back_hit"] and CompiledProgram.from_dir(one).stats["back_hit"]


@pytest.mark.parametrize("sums", ["kept", "gone"])
def test_an_edited_text_that_does_not_compile(one, cache, sums):
    text = (one / "program.c").read_text()
    (one / "program.c").write_text(text + "int broken = ;\n")
    if sums == "gone":
        (one / "program.sum").unlink()
    with pytest.raises(pypto.CompilerError, match="program.c that was edited") as caught:
        CompiledProgram.from_dir(one)
    assert "correct what was edited" in caught.value.hint and "report" not in str(caught.value)
    assert f"the C file is {one / 'program.c'}" in str(caught.value)


def test_a_text_that_was_not_edited_is_not_blamed(one, cache, monkeypatch, tmp_path):
    (one / "program.so").unlink()
    refuses = tmp_path / "cc"
    refuses.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    refuses.chmod(0o700)
    monkeypatch.setenv("PYPTO_CC", str(refuses))
    with pytest.raises(pypto.CompilerError, match="failed on the emitted C") as caught:
        CompiledProgram.from_dir(one)
    assert "edited" not in str(caught.value)


def test_a_sum_that_is_gone_is_done_without(one, host, cache):
    for folder in (one, host):
        (folder / "program.sum").unlink()
    assert (CompiledProgram.from_dir(one)(ROW) == 2 * ROW).all()
    assert (DistributedCompiledProgram.from_dir(host)(BOTH) == BOTH.sum(axis=0)).all()


@pytest.mark.parametrize("what", ["link", "dangling", "pipe", "folder"])
def test_a_sum_that_is_no_file(one, what):
    path = one / "program.sum"
    path.rename(one / "moved")
    if what in ("link", "dangling"):
        path.symlink_to("moved" if what == "link" else "nowhere")
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(ValueError, match=r"program\.sum is not loaded: it is a link or no file"):
        CompiledProgram.from_dir(one)


def test_without_a_compiler_that_is_an_error(one, cache, monkeypatch):
    (one / "program.so").unlink()
    monkeypatch.setenv("PYPTO_CC", "/nonexistent")
    with pytest.raises(pypto.CompilerError, match="PYPTO_CC"):
        CompiledProgram.from_dir(one)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
HOWS = ["group", "others", "link", pytest.param("owner", marks=AS_ROOT)]


@pytest.mark.parametrize("victim", ["", "program.so", "program.c", "program.sum"])
@pytest.mark.parametrize("how", HOWS)
def test_what_others_could_have_written_is_not_loaded(one, victim, how):
    path = one / victim
    if how == "owner":
        os.chown(path, 12345, -1)
    elif how == "link" and victim:
        path.rename(one / "moved")
        path.symlink_to("moved")
    else:  # the directory itself may be reached through links
        path.chmod(0o720 if how == "group" else 0o702)
    with pytest.raises(ValueError, match="loaded") as caught:
        CompiledProgram.from_dir(one)
    assert caught.value.code == "PYPTO-C307" and "go-w" in caught.value.hint


def test_it_may_be_reached_through_a_link(one, tmp_path):
    (tmp_path / "link").symlink_to(one)
    compiled = CompiledProgram.from_dir(tmp_path / "link")
    assert compiled.output_dir == one.resolve() and (compiled(ROW) == 2 * ROW).all()


def test_a_directory_without_text(one):
    (one / "program.c").unlink()
    with pytest.raises(ValueError, match=r"there is no .*program\.c"):
        CompiledProgram.from_dir(one)


# ---- the sidecar ----


def test_the_kind_must_be_right(one, host):
    with pytest.raises(FileNotFoundError, match=r"distributed_meta\.json"):
        DistributedCompiledProgram.from_dir(one)
    with pytest.raises(FileNotFoundError, match=r"compiled_meta\.json"):
        CompiledProgram.from_dir(host)
    with pytest.raises(FileNotFoundError, match=r"compiled_meta\.json"):
        CompiledProgram.from_dir(one / "nowhere")


COMMON = {
    "schema": (0, 2**70, True, "1", None, ...),
    "params": ({}, [[]], [{}], [{"name": "x"}], None, ...),
    "num_return_types": (-1, True, 1.0, "1", 2**40, ...),
    "platform": ("gpu", 1, None, ["cpu"], ...),
    "backend_type": ("Ascend42", "", 0, None, ...),
    "extra": (1,),
}
PARAM = {
    "name": ("", 1, None, ...),
    "direction": ("in", "Inout", 0, True, ...),
    "shape": ((), [-2], [True], [1.5], "1", [2**63], {}, [None], ...),
    "dtype": ("FP32", "float32", "", 1, None, ...),
    "extra": (1,),
}
CONFIG = {
    "device_ids": ([], [-1], [1, 1], [True], ["0"], 0, None, [2**31], ...),
    "num_sub_workers": (-1, True, "0", 1.0, None, ...),
    "runtime": (1, None, [], ...),
    "aicpu_thread_num": (1, -1, True, None, ...),
    "extra": (1,),
}
FIELDS = [("compiled_meta.json", (), COMMON), ("distributed_meta.json", (), COMMON)]
FIELDS += [("compiled_meta.json", ("params", 0), PARAM)]
FIELDS += [("distributed_meta.json", ("distributed_config",), {**CONFIG})]
CASES = [
    (name, path, key, value)
    for name, path, table in FIELDS
    for key, values in table.items()
    for value in values
    if not (key == "shape" and value == ())
]


@pytest.mark.parametrize("name, path, key, value", CASES, ids=str)
def test_a_malformed_sidecar(kept, tmp_path, name, path, key, value):
    """Whatever the value: the error names the file and what to do, also when everything is overridden."""
    source = kept / ("one" if name == "compiled_meta.json" else "host")
    content = json.loads((source / name).read_text())
    place = content
    for step in path:
        place = place[step]
    if value is ...:
        del place[key]
    else:
        place[key] = value
    (tmp_path / name).write_text(json.dumps(content))
    words = r"schema" if key == "schema" else r"malformed.*compile the program again with ir\.compile\(\)"
    with pytest.raises(ValueError, match=words) as caught:
        if name == "compiled_meta.json":
            CompiledProgram.from_dir(tmp_path, platform="a5")
        else:
            DistributedCompiledProgram.from_dir(tmp_path, platform="a5", distributed_config=TWO)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "1", '{"schema": 1, "schema": 1}', "\xff", "[" * 100000, '{"schema": ' + "9" * 5000 + "}"],
    ids=range(9),
)
def test_what_is_no_sidecar(one, text):
    (one / "compiled_meta.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"compiled_meta\.json is malformed.*ir\.compile\(\)"):
        CompiledProgram.from_dir(one)


def test_a_sidecar_of_another_program(one):
    path = one / "compiled_meta.json"
    path.write_text(path.read_text().replace('"x"', '"z"'))
    with pytest.raises(ValueError, match="params are not those of the program beside it"):
        CompiledProgram.from_dir(one)


@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
def test_a_sidecar_that_is_no_file(one, what):
    path = one / "compiled_meta.json"
    path.rename(one / "moved")
    if what == "link":
        path.symlink_to("moved")
    elif what == "pipe":  # nobody is waited for who would write into it
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(ValueError, match="cannot be read"):
        CompiledProgram.from_dir(one)


def test_devices_that_are_none(host):
    with pytest.raises(TypeError, match="must be a pypto.ir.DistributedConfig, not list"):
        DistributedCompiledProgram.from_dir(host, distributed_config=[0, 1])


# ---- what calls go through ----


def test_who_replaces_the_runners_sees_all_calls(one, host, monkeypatch):
    from pypto.runtime import distributed_runner, runner

    seen = []
    monkeypatch.setattr(runner, "execute_compiled", lambda *args: seen.append(args))
    monkeypatch.setattr(distributed_runner, "execute_distributed", lambda *args: seen.append(args))
    settings = RunConfig(platform="cpu")
    first = CompiledProgram.from_dir(one)
    result = first(ROW, config=settings)
    assert (result == 0).all() and len(seen[0][1]) == 2 and seen[0][2] is settings
    second = DistributedCompiledProgram.from_dir(host)
    second(BOTH)
    assert seen[1][0] is second and seen[1][2] is None


@pytest.mark.filterwarnings("ignore::pypto.LintWarning")  # the wrapper does not use its second device
@pytest.mark.parametrize("kind", ["host", "one device", "one device with a distributed_config"])
def test_calls_of_functions_go_through_them_too(kind, monkeypatch):
    from pypto.runtime import distributed_runner, runner

    seen = []
    of_host = kind != "one device"
    module, name = (distributed_runner, "execute_distributed") if of_host else (runner, "execute_compiled")
    monkeypatch.setattr(module, name, lambda *args: seen.append(args))
    function = from_text(SCALE)["host" if kind == "host" else "wrapper"]
    x = rows(2) if kind == "host" else rows(2)[0]
    y = np.zeros_like(x)
    settings = RunConfig(platform="cpu", distributed_config=DistributedConfig([3, 1]) if of_host else None)
    for _ in range(2):
        assert function(x, y, config=settings) is None
    (first, arguments, given), again = seen
    assert (y == 0).all() and given is settings and again[0] is first
    assert arguments[0] is x and arguments[1] is y
    assert first.param_names[:2] == ["x", "y"] and pathlib.Path(first.object_path).exists()
    if of_host:
        assert first._distributed_config == settings.distributed_config
    monkeypatch.undo()
    function(x, y, config=settings)
    assert y.any()
    getattr(module, name)(*again)  # what was held back runs as well


def test_calls_without_the_runners():
    """A script that only calls loads none of them."""
    code = (
        "import sys, numpy as np; sys.path.insert(0, sys.argv[1])\n"
        "from programs import config, from_text; from test_compile import SCALE, rows\n"
        "y = np.zeros_like(rows(2)); from_text(SCALE)['host'](rows(2), y, config=config(2)); assert (y == 2 * rows(2)).all()\n"
        "y = np.zeros_like(rows(2)[0]); from_text(SCALE)['wrapper'](rows(2)[0], y, config=None)\n"
        "assert (y == 2 * rows(2)[0]).all()\n"
        "assert not [m for m in sys.modules if m.startswith('pypto.') and m.endswith('runner')]"
    )
    subprocess.run([sys.executable, "-c", code, pathlib.Path(__file__).parent], check=True, timeout=60)
