"""The numbered examples and those of workers (runtime/) run, on several sets of devices, and say OK."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = [*sorted(FOLDER.glob("[0-9][0-9]_*.py")), *sorted(FOLDER.glob("runtime/*.py"))]
MODES = {
    "05_remote_load_store": ["load", "store"],
    "06_put_get": ["put", "get"],
    "11_builtin_allreduce": ["kernel", "host"],
    "12_broadcast": ["hand", "builtin"],
    "13_allgather": ["hand", "builtin"],
    "14_reduce_scatter": ["hand", "builtin"],
    "15_all_to_all": ["hand", "builtin"],
}
WAYS = [(path, ["--mode", mode] if mode else []) for path in EXAMPLES for mode in MODES.get(path.stem, [""])]
WAYS += [(FOLDER / "04_barrier.py", ["--use-builtin"])]
NAMES = [" ".join([path.stem, *mode[-1:]]) for path, mode in WAYS]


def run(example, *arguments, **environment):
    return subprocess.run(
        [sys.executable, str(example), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("devices", ["0", "0,1", "3,1,0,2"])
@pytest.mark.parametrize("example, mode", WAYS, ids=NAMES)
def test_example(example, mode, devices, transport):
    done = run(example, *mode, "-d", devices, "-p", "a2a3sim")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "OK"


@pytest.mark.parametrize("example, mode", WAYS, ids=NAMES)
def test_example_only_compiled(example, mode):
    done = run(example, *mode, "--compile-only")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("example, mode", WAYS, ids=NAMES)
def test_example_notices_a_wrong_result(example, mode, tmp_path):
    """With kernels that write nothing to their output the check of the example has to fail."""
    text, count = re.subn(r"(?m)^( +)(y = pl\.store\(|pld\.tensor\.get\(y,).*$", r"\1pass", example.read_text())
    assert count >= 1
    wrong = tmp_path / example.name
    wrong.write_text(text)
    done = run(wrong, *mode, PYTHONPATH=str(FOLDER))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "WRONG"), done.stderr


def test_example_with_a_mode_that_it_does_not_have():
    done = run(FOLDER / "06_put_get.py", "--mode", "load")
    assert done.returncode == 2 and "choose from" in done.stderr


def test_programs_of_the_size_benchmark(tmp_path):
    """`make bench` compiles them up to the C compiler; they must be programs."""
    script = FOLDER.parent / "bench" / "compile_size.py"
    done = run(script, "150", "400", PYPTO_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    lengths = [int(line.split("\t")[0]) for line in done.stdout.splitlines()]
    assert 120 <= lengths[0] <= 250 and 370 <= lengths[1] <= 500
