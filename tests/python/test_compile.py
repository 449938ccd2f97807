"""When a program is compiled, when it is found again, and what a compiled program shows."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import pypto
import pypto.language as pl
from pypto import _core
from pypto.ir import DistributedCompiledProgram
from pypto.runtime import RunConfig
from programs import allreduce, allreduce_expected, config, from_text

SCALE = """\
FACTOR = 2

@pl.jit.incore
def kernel(x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]):
    pl.store(pl.mul(pl.load(x, [0], [4]), FACTOR), [0], y)

@pl.jit
def wrapper(x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]):
    kernel(x, y)

@pl.jit.host
def host(x: pl.Tensor[[NR, 4], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        wrapper(x[r], y[r], device=r)
"""


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path))
    return tmp_path


def programs_of(host):
    return [program for known in host._programs.values() for program in known]


def rows(count):
    return np.arange(count * 4, dtype=np.float32).reshape(count, 4)


def test_one_program_for_any_number_of_ranks(cache):
    host = from_text(SCALE)["host"]
    for count in [1, 2, 3]:
        y = np.zeros_like(rows(count))
        host(rows(count), y, config=config(count))
        np.testing.assert_array_equal(y, rows(count) * 2)
        assert host.compile(rows(count), y, config=config(count))._program is programs_of(host)[0]
    assert len(programs_of(host)) == 1


def test_equal_calls_give_the_identical_object(cache):
    host = from_text(SCALE)["host"]
    first = host.compile(rows(2), rows(2), config=config(2))
    assert host.compile(rows(2), rows(2), config=config(2)) is first
    assert host.compile(config=config(2)) is not None
    assert host.compile(rows(2), rows(2), config=config([3, 4])) is not first
    assert host.compile(rows(2), rows(2), config=config(2, "a2a3")) is not first


def test_a_changed_global_is_seen(cache):
    namespace = from_text(SCALE)
    y = np.zeros_like(rows(1))
    namespace["host"](rows(1), y)
    np.testing.assert_array_equal(y, rows(1) * 2)
    namespace["FACTOR"] = 3
    namespace["host"](rows(1), y)
    np.testing.assert_array_equal(y, rows(1) * 3)
    assert len(programs_of(namespace["host"])) == 2
    namespace["FACTOR"] = 2
    namespace["host"](rows(1), y)
    np.testing.assert_array_equal(y, rows(1) * 2)
    assert len(programs_of(namespace["host"])) == 2


def test_an_unrelated_global_is_not(cache):
    namespace = from_text(SCALE)
    namespace["host"](rows(1), rows(1))
    namespace["OTHER"] = 1
    namespace["host"](rows(1), rows(1))
    assert len(programs_of(namespace["host"])) == 1


def test_factories_make_independent_programs(cache):
    inputs = [np.ones((2, 1, size), np.float32) for size in (3, 5)]
    made = [allreduce(size) for size in (3, 5)]
    for orchestrator, x in zip(made, inputs):
        y = np.zeros_like(x)
        orchestrator(x, y, config=config(2))
        np.testing.assert_array_equal(y, allreduce_expected(x))


def test_the_disk_cache_serves_another_process(cache, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, pypto.language as pl, pypto.language.distributed as pld\n"
        "NR = pl.dynamic('NR')\n" + SCALE + "x = np.ones((1, 4), np.float32); y = x * 0\n"
        "host(x, y)\nassert (y == 2).all()\n"
        "print(host.stats['front_hit'], host.stats['back_hit'])\n"
    )

    def run():
        done = subprocess.run([sys.executable, script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert run() == ["False", "False"]
    assert run() == ["True", "True"]
    text = script.read_text()
    script.write_text(text.replace("FACTOR = 2", "FACTOR = 2  # as before"))
    assert run()[0] == "False"  # another text
    script.write_text(text.replace("FACTOR = 2", "FACTOR = 1 + 1"))
    assert run() == ["False", "True"]  # another text, the same C


def test_the_platform_decides_about_scratch(cache):
    """64 Ki elements are more than a core of the device has; the CPU has no limit."""
    text = SCALE.replace("[4]", "[65536]").replace("[NR, 4]", "[NR, 65536]")
    host = from_text(text)["host"]
    x = np.ones((1, 65536), np.float32)
    y = np.zeros_like(x)
    host(x, y, config=config(1, "cpu"))
    assert (y == 2).all()
    with pytest.raises(pypto.Error, match="at the same time"):
        host(x, y, config=config(1, "a2a3"))


def test_compile_without_arguments(cache):
    compiled = from_text(SCALE)["host"].compile(config=config(2))
    y = np.zeros_like(rows(2))
    compiled(rows(2), y)
    np.testing.assert_array_equal(y, rows(2) * 2)


def test_a_compiled_program(cache):
    host = from_text(SCALE)["host"]
    compiled = host.compile(rows(2), rows(2), config=config([4, 5], "a2a3"))
    assert isinstance(compiled, DistributedCompiledProgram)
    assert compiled.platform == "a2a3"
    assert compiled._distributed_config.device_ids == [4, 5]
    assert compiled.param_names == ["x", "y"]
    assert [(p.name, p.direction, p.shape, p.dtype) for p in compiled.parameters] == [
        ("x", "In", [-1, 4], pl.FP32),
        ("y", "Out", [-1, 4], pl.FP32),
    ]
    assert isinstance(compiled.output_dir, pathlib.Path)
    assert str(compiled) == os.fspath(compiled) == str(compiled.output_dir)
    assert compiled.output_dir.parent == pathlib.Path(os.environ["PYPTO_PROG_BUILD_DIR"])
    assert {"program.c", "program.ir", "program.so"} <= set(os.listdir(compiled))
    assert compiled.object_path == compiled.output_dir / "program.so"
    assert "host a2a3 devices=[4, 5]" in repr(compiled)
    assert compiled.stats["front_ns"] > 0 and compiled.stats["back_ns"] > 0
    assert {compiled: 1}[compiled] == 1


def test_calling_a_compiled_program(cache):
    compiled = from_text(SCALE)["host"].compile(rows(2), rows(2), config=config(2))
    y = np.zeros_like(rows(2))
    assert compiled(rows(2), y, config=config(2)) is None
    np.testing.assert_array_equal(y, rows(2) * 2)
    with pytest.raises(TypeError, match=r"host expects 2 \(in-place\) arguments \(x, y\), got 1"):
        compiled(rows(2))
    with pytest.warns(UserWarning, match="compiled for platform 'cpu'"):
        compiled(rows(2), y, config=RunConfig(platform="a5"))
    with pytest.raises(TypeError, match="x"):
        compiled(rows(2).astype(np.int32), y)
    with pytest.raises(TypeError, match="host torch.Tensor"):
        compiled([1, 2], y)


def test_compile_takes_no_options(cache):
    with pytest.raises(TypeError, match="unexpected keyword argument 'skip_ptoas'"):
        from_text(SCALE)["host"].compile(skip_ptoas=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'platform'"):
        from_text(SCALE)["host"].compile(platform="a5")


def test_dump_shows_ir_and_c(cache, monkeypatch, capfd):
    monkeypatch.setenv("PYPTO_DUMP", "ir,c")
    from_text(SCALE)["host"].compile(rows(1), rows(1))
    shown = capfd.readouterr().err
    assert "kernel" in shown and "pld_load" in shown


@pytest.mark.parametrize(
    "name, value",
    [("DUMP", "asm"), ("DUMP", "ir c"), ("SPIN", "abc"), ("SPIN", "-5"), ("SPIN", "9" * 20),
     ("GDB", "x"), ("GDB", "-1"), ("GDB", "64")],
)
def test_settings_that_mean_nothing(cache, monkeypatch, name, value):
    monkeypatch.setenv(f"PYPTO_{name}", value)
    x = np.zeros((1, 1, 8), np.float32)
    with pytest.raises(ValueError, match=f"PYPTO_{name} must be .*, not '{value}'"):
        allreduce(8)(x, x.copy(), config=config(1))


def test_a_compiler_variable_that_names_nothing(cache, monkeypatch):
    monkeypatch.setenv("CC", "/nonexistent/cc -O0")
    x = np.zeros((1, 1, 8), np.float32)
    with pytest.warns(RuntimeWarning, match="CC is '/nonexistent/cc -O0', which names no") as told:
        allreduce(8)(x, x.copy(), config=config(1))
    assert told[0].filename == __file__
    monkeypatch.setenv("CC", "env cc")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        allreduce(16)(np.zeros((1, 1, 16), np.float32), np.zeros((1, 1, 16), np.float32))


SETTINGS = {name: (valid, is_error) for name, _, _, valid, is_error in _core.settings() if valid}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_cannot_be(name, cache, monkeypatch):
    """Every row of the table: nothing is compiled or run with a value that is not valid; logs warn when they are imported."""
    valid, is_error = SETTINGS[name]
    host = from_text(SCALE)["host"]
    y = np.zeros_like(rows(1))
    host(rows(1), y)
    assert y.any()
    y[:] = 0
    monkeypatch.setenv(name, "maybe")
    words = f"{name} must be .*not 'maybe'"
    with pytest.raises(ValueError, match=words) as caught:
        _core.setting(name)
    assert caught.value.code == "PYPTO-H441"
    for alternative in re.split("[|,]", valid):
        assert re.split(r"=|\.\.", alternative)[0] in str(caught.value)
    if not is_error:
        told = subprocess.run([sys.executable, "-c", "import pypto, pypto.runtime"], capture_output=True, text=True,
                              env={**os.environ, "PYPTO_RUNTIME_LOG": os.environ.get("PYPTO_RUNTIME_LOG", "info")})
        assert told.returncode == 0 and re.search(words, told.stderr) and "the default counts" in told.stderr
        host(rows(1), y)
        assert y.any()
        return
    with pytest.raises(ValueError, match=words):
        host(rows(1), y)  # compiled before
    with pytest.raises(ValueError, match=words):
        from_text(SCALE)["host"].compile(rows(2), rows(2), config=config(2))
    with pytest.raises(ValueError, match=words):
        from_text(SCALE)["host"].lower(rows(2), rows(2))
    assert not y.any()
    monkeypatch.delenv(name)
    compiled = host.compile(rows(1), rows(1))
    monkeypatch.setenv(name, "maybe")
    with pytest.raises(ValueError, match=words):
        compiled(rows(1), y)
    with pytest.raises(ValueError, match=words):
        compiled.prepare()
    assert not y.any()
    monkeypatch.setenv(name, "")  # as if it were not there
    compiled(rows(1), y)
    assert y.any()


def test_another_compiler(cache, monkeypatch):
    import shutil

    for compiler in ["gcc", "clang"]:
        if shutil.which(compiler):
            monkeypatch.setenv("PYPTO_CC", compiler)
            y = np.zeros_like(rows(2))
            from_text(SCALE)["host"](rows(2), y, config=config(2))
            np.testing.assert_array_equal(y, rows(2) * 2)


def test_names_that_c_does_not_like(cache):
    text = SCALE.replace("kernel", "printf").replace("wrapper", "main").replace("FACTOR", "double_")
    text = text.replace("(x", "(register").replace(" x[", " register[").replace("(x[", "(register[")
    namespace = from_text(text)
    y = np.zeros_like(rows(1))
    namespace["host"](rows(1), y)
    np.testing.assert_array_equal(y, rows(1) * 2)


def test_scalars_of_the_host_function(cache):
    namespace = from_text(
        SCALE.replace(
            "y: pl.Out[pl.Tensor[[NR, 4], pl.FP32]]):",
            "y: pl.Out[pl.Tensor[[NR, 4], pl.FP32]], n: pl.Scalar[pl.INT32]):",
        ).replace("for r in pl.range(pld.world_size()):", "for r in pl.range(n):")
    )
    y = np.zeros_like(rows(3))
    namespace["host"](rows(3), y, 2, config=config(3))
    np.testing.assert_array_equal(y[:2], rows(3)[:2] * 2)
    assert (y[2] == 0).all()


LONG = """\
@pl.jit.incore
def kernel(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]], r: pl.Scalar[pl.INT32]):
    t = pl.load(x, [0], [8])
{body}
    pl.store(t, [0], y)

@pl.jit
def wrapper(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]], r: pl.Scalar[pl.INT32]):
    kernel(x, y, r)

@pl.jit.host
def host(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]], r: pl.Scalar[pl.INT32]):
    wrapper(x, y, r, device=0)
"""


@pytest.mark.parametrize(
    "line",
    [
        "    if r == {i}:\n        t = pl.add(t, 1.0)",
        "    t = pl.load(x, [0], [8])\n    pl.store(t, [0], y)",
        "    for i{i} in pl.range(r):\n        t = pl.add(t, 1.0)",
    ],
)
def test_long_kernels_compile_in_seconds(cache, monkeypatch, line):
    """800 branches took 25 s of CPU time in passes of gcc that are quadratic in them."""
    import resource

    monkeypatch.setenv("PYPTO_CC", "gcc")
    body = "\n".join(line.format(i=i) for i in range(800))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    from_text(LONG.format(body=body))["host"].compile(r=pl.RUNTIME)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 10


STEPS = """\
@pl.jit.incore
def kernel(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]], step: pl.Scalar[pl.INT64]):
    t = pl.load(x, [0], [8])
    for i in pl.range(0, 9223372036854775807, 4611686018427387904):
        t = pl.add(t, 1.0)
    for i in pl.range(0, 9223372036854775807, step):
        t = pl.add(t, 1.0)
    pl.store(t, [0], y)

@pl.jit
def wrapper(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]], step: pl.Scalar[pl.INT64]):
    kernel(x, y, step)

@pl.jit.host
def host(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]], step: pl.Scalar[pl.INT64]):
    wrapper(x, y, step, device=0)
"""


def test_huge_steps_end(cache):
    """The loop variable wrapped, and the loop never ended."""
    x = np.zeros(8, np.float32)
    y = np.zeros(8, np.float32)
    from_text(STEPS)["host"](x, y, 2**62, config=config(1))
    np.testing.assert_array_equal(y, 4)
