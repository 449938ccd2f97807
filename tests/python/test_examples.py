"""The numbered examples run, on several sets of devices, and say OK."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("[0-9][0-9]_*.py"))


def run(example, *arguments, **environment):
    return subprocess.run(
        [sys.executable, str(example), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("devices", ["0", "0,1", "3,1,0,2"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, devices, transport):
    done = run(example, "--devices", devices, "--platform", "a2a3sim")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "OK"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_only_compiled(example):
    done = run(example, "--compile-only")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_notices_a_wrong_result(example, tmp_path):
    """With a kernel that stores nothing the check of the example has to fail."""
    text = example.read_text()
    last = text.rindex("    y = pl.store(", 0, text.index("@pl.jit\n"))
    line = text[last : text.index("\n", last)]
    wrong = tmp_path / example.name
    wrong.write_text(text.replace(line, "    pass", 1))
    done = run(wrong, PYTHONPATH=str(FOLDER))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "WRONG"), done.stderr


def test_programs_of_the_size_benchmark(tmp_path):
    """`make bench` compiles them up to the C compiler; they must be programs."""
    script = FOLDER.parent / "bench" / "compile_size.py"
    done = run(script, "150", "400", PYPTO_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    lengths = [int(line.split("\t")[0]) for line in done.stdout.splitlines()]
    assert 120 <= lengths[0] <= 250 and 370 <= lengths[1] <= 500
