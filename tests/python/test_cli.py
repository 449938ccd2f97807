"""The `pypto` command, and what a slow compile says."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from programs import from_text
from pypto import _core
from test_compile import SCALE, rows

COMMAND = pathlib.Path(sys.prefix) / "bin" / "pypto"


def run(*words, status=0, **environment):
    done = subprocess.run(
        [COMMAND, *words], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_usage():
    assert run("--version") == f"pypto {_core.version()}\n"
    assert run("--help").startswith("usage: pypto COMMAND")
    assert "there is no command 'dance'" in run("dance", status=2)
    assert "usage" in run(status=2)


def test_doctor(cache):
    text = run("doctor")
    for word in ("compiler", "CPUs", "memory", "limits", f"{cache}/v1", "flags: -std=c17"):
        assert word in text
    for name, _, help_text, *_ in _core.settings():
        assert name in text and help_text in text
    assert f"PYPTO_CACHE_DIR    {cache}   (set)" in text


def test_doctor_without_a_compiler(cache):
    done = subprocess.run(
        [COMMAND, "doctor"],
        capture_output=True,
        text=True,
        env={"PATH": "/nonexistent", "PYPTO_CC": "/nonexistent/cc"},
    )
    assert done.returncode == 1
    assert "NOT FOUND: there is no C compiler" in done.stdout


def test_explain_knows_every_code():
    listed = run("explain", "--list").splitlines()
    codes = [line.split()[0] for line in listed]
    assert len(codes) == len(set(codes)) > 60
    for code in codes:
        text = run("explain", code)
        assert text.startswith(f"{code}: ") and "What to do: " in text


def test_explain_spellings():
    assert run("explain", "s106") == run("explain", "PYPTO-S106")
    assert "    y = zzz\n" in run("explain", "S106")
    assert "there is no diagnostic 'S999'" in run("explain", "S999", status=1)
    assert "usage" in run("explain", status=2)


def test_cache_and_programs(cache):
    assert "0 programs" in run("cache")
    assert run("cache", "list") == ""
    host = from_text(SCALE)["host"]
    compiled = host.compile(rows(1), rows(1))
    assert "1 programs" in run("cache")
    (line,) = run("cache", "list").splitlines()
    digest, size, unit, name = line.split()
    assert pathlib.Path(compiled._program.output_dir).name.startswith(digest) and name == "host" and float(size) > 1

    ir = (compiled.output_dir / "program.ir").read_text()
    for word in ("host", digest, digest[:4], str(compiled.output_dir)):
        assert run("ir", word) == ir
    assert run("c", "host") == (compiled.output_dir / "program.c").read_text()
    assert "there is no program 'guest'" in run("ir", "guest", status=1)
    assert "usage" in run("ir", status=2)

    assert run("cache", "clear").startswith(f"removed {cache}/v1")
    assert not (cache / "v1").exists()
    assert "usage" in run("cache", "melt", status=2)


def test_a_slow_compile_says_so(cache, monkeypatch, capfd, tmp_path):
    slow = tmp_path / "slow-cc"
    slow.write_text('#!/bin/sh\nsleep 1.1\nexec cc "$@"\n')
    slow.chmod(0o755)
    host = from_text(SCALE)["host"]
    host.compile(rows(1), rows(1))
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("PYPTO_CC", str(slow))
    host = from_text(SCALE.replace("FACTOR = 2", "FACTOR = 7"))["host"]
    y = np.zeros_like(rows(1))
    host(rows(1), y)
    (line,) = capfd.readouterr().err.splitlines()
    assert re.fullmatch(r"pypto: compiled host in \d\.\d s, \d\.\d s of it in the C compiler", line)
    host(rows(1), y)
    assert capfd.readouterr().err == ""
