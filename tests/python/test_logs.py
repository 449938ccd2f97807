"""What compiler and runtime tell of their work: levels, threads, the environment."""

import logging
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import pypto
import pypto.runtime
from pypto import LogLevel, pypto_core
from pypto.runtime import RunConfig, benchmark, configure_log, log_config, log_level
from programs import config, from_text
from worker_programs import shift

N = 64


@pytest.fixture(autouse=True)
def as_it_was():
    compiler, runtime = pypto.get_log_level(), log_level()
    yield
    pypto_core._clear_thread_log_level()
    pypto.set_log_level(compiler)
    configure_log(runtime)


def program(tag):
    """A function that no test has compiled before."""
    return from_text(f'''
@pl.jit.host
def host(y: pl.Out[pl.Tensor[[1, {N}], pl.INT32]]):
    chip(y[0], device=0)

@pl.jit
def chip(y: pl.Out[pl.Tensor[[{N}], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.write(y, [0], {tag})
''')["host"]


def script(text, **environment):
    """Standard error of a script."""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


# ---- the compiler ----


def test_levels():
    assert [(level.name, level.value) for level in LogLevel] == [
        ("DEBUG", 0), ("INFO", 1), ("WARN", 2), ("ERROR", 3), ("FATAL", 4), ("EVENT", 5), ("NONE", 6),
    ]
    assert pypto_core.LogLevel is LogLevel
    for level in LogLevel:
        pypto.set_log_level(level)
        assert pypto.get_log_level() is level
    with pytest.raises(TypeError, match="LogLevel"):
        pypto.set_log_level("INFO")
    with pytest.raises(TypeError, match="LogLevel"):
        pypto.set_log_level(7)


def test_compiles_are_told_of(capfd):
    y = np.zeros((1, N), np.int32)
    pypto.set_log_level(LogLevel.INFO)
    host = program(4711)
    host(y, config=RunConfig(platform="cpu"))
    text = capfd.readouterr().err
    assert "[pypto INFO] host for cpu: its source compiled in " in text and "its native code compiled in" in text
    host(y, config=RunConfig(platform="cpu"))
    assert capfd.readouterr().err == ""
    pypto.set_log_level(LogLevel.DEBUG)
    host(y, config=RunConfig(platform="cpu"))
    assert "[pypto DEBUG] host for cpu has been compiled before" in capfd.readouterr().err
    pypto.set_log_level(LogLevel.NONE)
    program(4712)(y, config=RunConfig(platform="cpu"))
    assert capfd.readouterr().err == ""


def test_a_thread_has_a_level_of_its_own():
    pypto.set_log_level(LogLevel.ERROR)
    seen = []

    def run():
        seen.append(pypto.get_log_level())
        pypto_core._set_thread_log_level(LogLevel.DEBUG)
        seen.append(pypto.get_log_level())
        pypto_core._clear_thread_log_level()
        pypto_core._clear_thread_log_level()
        seen.append(pypto.get_log_level())

    thread = threading.Thread(target=run)
    pypto_core._set_thread_log_level(LogLevel.NONE)
    thread.start()
    thread.join()
    assert seen == [LogLevel.ERROR, LogLevel.DEBUG, LogLevel.ERROR]
    assert pypto.get_log_level() is LogLevel.NONE
    pypto.set_log_level(LogLevel.INFO)
    assert pypto.get_log_level() is LogLevel.NONE
    pypto_core._clear_thread_log_level()
    assert pypto.get_log_level() is LogLevel.INFO


@pytest.mark.parametrize("text, level", [("debug", 0), ("NONE", 6), ("3", 3), ("", 2), ("loud", 2), ("9", 2)])
def test_the_environment(text, level):
    told = script(
        f"import pypto\nassert pypto.get_log_level() == {level}, pypto.get_log_level()", PYPTO_LOG_LEVEL=text
    )
    assert ("PYPTO_LOG_LEVEL" in told) == (text in ("loud", "9"))


# ---- the runtime ----


@pytest.mark.parametrize("name, level", [
    ("debug", 10), ("info", 20), ("timing", 25), ("warn", 30), ("warning", 30), ("error", 40), ("null", 60),
    ("DEBUG", 10), (" Info ", 20), ("33", 33), (17, 17), (logging.ERROR, 40), ("nonsense", 25),
])
def test_levels_of_the_runtime(name, level):
    configure_log(name)
    assert log_level() == level == logging.getLogger("simpler").level


def test_no_level():
    for wrong in (None, 1.5, True, ["debug"]):
        with pytest.raises(TypeError, match="log level"):
            configure_log(wrong)


@pytest.mark.parametrize("level, expected", [
    (5, LogLevel.DEBUG), (10, LogLevel.DEBUG), (11, LogLevel.INFO), (20, LogLevel.INFO), (25, LogLevel.WARN),
    (30, LogLevel.WARN), (40, LogLevel.ERROR), (41, LogLevel.NONE), (60, LogLevel.NONE),
])
def test_the_compiler_follows(level, expected):
    log_config._sync_to_pypto(level)
    assert pypto.get_log_level() is expected
    pypto.set_log_level(LogLevel.EVENT)
    configure_log(level)
    assert pypto.get_log_level() is LogLevel.EVENT
    configure_log(level, sync_pypto=True)
    assert pypto.get_log_level() is expected


def test_messages(caplog, tmp_path):
    x, y = np.zeros((2, N), np.int32), np.zeros((2, N), np.int32)
    compiled = shift.compile(x, y, config=config(2))

    def use():
        caplog.clear()
        with compiled.prepare() as worker:
            worker(x, y)
        benchmark(compiled, (x, y), rounds=2)
        return [(r.levelno, r.getMessage()) for r in caplog.records if r.name == "simpler"]

    configure_log("timing")
    (only,) = use()
    assert only[0] == 25 and only[1].startswith("benchmark of shift: <BenchmarkStats 2 rounds")
    configure_log("info")
    levels = [level for level, _ in use()]
    assert levels == [20, 20, 20, 25, 20] or levels == [20, 20, 20, 20, 25]
    configure_log("debug")
    assert any(level == 10 and "a call of shift" in text for level, text in use())
    configure_log("null")
    assert use() == []
    configure_log("info")
    caplog.clear()
    compiled(x, y, config=RunConfig(platform=compiled.platform, enable_pmu=1))
    assert any("records of a call go to" in r.getMessage() for r in caplog.records)


@pytest.mark.parametrize("environment, runtime, compiler", [
    ({}, 25, 2),
    ({"PYPTO_RUNTIME_LOG": "DEBUG"}, 10, 2),
    ({"PYPTO_RUNTIME_LOG": "info", "PYPTO_RUNTIME_LOG_SYNC": "1"}, 20, 1),
    ({"PYPTO_RUNTIME_LOG": "info", "PYPTO_RUNTIME_LOG_SYNC": "0"}, 20, 2),
    ({"PYPTO_RUNTIME_LOG": "nonsense"}, 25, 2),
    ({"PYPTO_RUNTIME_LOG": "15"}, 15, 2),
    ({"PYPTO_RUNTIME_LOG": "info", "PYPTO_RUNTIME_LOG_SYNC": "yes"}, 20, 1),
    ({"PYPTO_RUNTIME_LOG": "info", "PYPTO_RUNTIME_LOG_SYNC": "maybe"}, 20, 2),
    ({"PYPTO_RUNTIME_LOG_SYNC": "1"}, 25, 2),
])
def test_the_environment_of_the_runtime(environment, runtime, compiler):
    told = script(
        "import pypto.runtime\n"
        f"assert pypto.get_log_level() == {compiler}, pypto.get_log_level()\n"
        f"assert pypto.runtime.log_level() == {runtime}, pypto.runtime.log_level()\n",
        **environment,
    )
    assert ("the default counts" in told) == any(v in ("nonsense", "maybe") for v in environment.values())


def test_where_messages_go():
    """To standard error, unless the script has handlers; and without a word where it has not asked."""
    text = "from pypto.runtime.log_config import logger\n"
    assert script(text + "logger.info('a')") == ""
    text += "from pypto.runtime import configure_log\nconfigure_log('info')\n"
    assert script(text + "logger.info('a %d', 1)") == "[simpler INFO] a 1\n"
    assert script(text + "configure_log('timing')\nlogger.log(25, 'b')\nlogger.info('a')") == "[simpler TIMING] b\n"
    assert script("import logging\nlogging.basicConfig(format='%(message)s')\n" + text + "logger.info('a')") == "a\n"


def test_nothing_is_loaded_for_it():
    script("import sys, pypto, pypto.runtime\nassert 'logging' not in sys.modules")
