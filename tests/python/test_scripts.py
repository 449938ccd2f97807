"""Programs as users run them: in a file, from standard input, with -c, in a notebook."""

import linecache
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import pypto.language as pl
from programs import config

HERE = pathlib.Path(__file__).parent
SEED = (HERE / "seed_script.py").read_text()
CHECK = """
assert torch.equal(outputs[0], inputs[0] + inputs[1]), "rank 0"
assert torch.equal(outputs[1], inputs[1] + inputs[0]), "rank 1"
print("ok")
"""
SMALL = """\
import numpy as np, pypto.language as pl, pypto.language.distributed as pld
@pl.jit.incore
def kernel(x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]):
    pl.store(pl.load(x, [0], [4]), [0], y)
@pl.jit
def wrapper(x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]):
    kernel(x, y)
@pl.jit.host
def host(x: pl.Tensor[[1, 4], pl.FP32], y: pl.Out[pl.Tensor[[1, 4], pl.FP32]]):
    wrapper(x[0], y[0], device=0)
x = np.ones((1, 4), np.float32); y = x * 0
host(x, y)
print("ok" if (x == y).all() else "wrong")
"""


def python(*arguments, cwd, **options):
    environment = {**os.environ, **options.pop("env", {})}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("transport", ["shm", "threads"])
def test_the_documented_script(tmp_path, transport):
    (tmp_path / "script.py").write_text(SEED + CHECK)
    done = python("script.py", cwd=tmp_path, env={"PYPTO_TRANSPORT": transport})
    assert (done.stdout, done.stderr) == ("ok\n", "")


def test_the_documented_script_twice_from_the_cache(tmp_path):
    (tmp_path / "script.py").write_text(SEED + CHECK + "print(orchestrator.stats['back_hit'])\n")
    python("script.py", cwd=tmp_path)
    assert python("script.py", cwd=tmp_path).stdout == "ok\nTrue\n"


def test_the_quick_start_example(tmp_path):
    done = python(HERE.parents[1] / "examples" / "quickstart.py", cwd=tmp_path)
    assert [line.partition("  ")[0] for line in done.stdout.splitlines()] == [
        "rank 0: ok",
        "rank 1: ok",
    ]


def test_a_small_script(tmp_path):
    (tmp_path / "a b.py").write_text(SMALL)
    assert python("a b.py", cwd=tmp_path).stdout == "ok\n"


def test_a_file_name_that_needs_quoting(tmp_path):
    name = 'a "quoted" \\ name %d.py'
    (tmp_path / name).write_text(SMALL)
    assert python(name, cwd=tmp_path).stdout == "ok\n"


def test_a_file_name_that_is_no_utf8(tmp_path):
    name = b"\xff \xe9.py"
    path = os.path.join(os.fsencode(tmp_path), name)
    with open(path, "w") as file:
        file.write(SMALL)
    assert python(os.fsdecode(name), cwd=tmp_path).stdout == "ok\n"
    with open(path, "w") as file:
        file.write(SMALL.replace("[4])", "[size])") + "\n")
    code = "import runpy, sys; runpy.run_path(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, timeout=120)
    assert b"\\udcff \\udce9.py:4:31: [PYPTO-S106]: Undefined" in done.stderr, done.stderr
    assert b"[size]), [0], y)" in done.stderr


def test_text_after_c(tmp_path):
    assert python("-c", SMALL, cwd=tmp_path).stdout == "ok\n"
    assert python("-W", "ignore", "-Bc", SMALL, "-c", "more", cwd=tmp_path).stdout == "ok\n"


def test_redirected_standard_input(tmp_path):
    (tmp_path / "script.py").write_text(SMALL)
    with open(tmp_path / "script.py") as file:
        assert python(cwd=tmp_path, stdin=file).stdout == "ok\n"
        file.seek(0)
        assert python("-", "argument", cwd=tmp_path, stdin=file).stdout == "ok\n"


def test_piped_standard_input_cannot_be_read_again(tmp_path):
    done = subprocess.run(
        [sys.executable], cwd=tmp_path, input=SMALL, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "Cannot retrieve source code of 'host'" in done.stderr


def test_a_module(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("from .program import *")
    (tmp_path / "package" / "program.py").write_text(SMALL)
    assert python("-m", "package", cwd=tmp_path).stdout == "ok\n"


def test_a_module_in_an_archive(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("program.py", SMALL)
    code = "import sys; sys.path.insert(0, 'archive.zip'); import program"
    assert python("-c", code, cwd=tmp_path).stdout == "ok\n"


def test_string_annotations(tmp_path):
    (tmp_path / "script.py").write_text("from __future__ import annotations\n" + SMALL)
    assert python("script.py", cwd=tmp_path).stdout == "ok\n"
    quoted = SMALL.replace(" pl.Tensor[[4], pl.FP32],", " 'pl.Tensor[[4], pl.FP32]',")
    assert quoted != SMALL
    (tmp_path / "quoted.py").write_text(quoted)
    assert python("quoted.py", cwd=tmp_path).stdout == "ok\n"


def test_aliases_of_modules_and_names(tmp_path):
    text = SMALL.replace("pypto.language as pl,", "pypto.language as T,").replace("pl.", "T.")
    text = "from pypto.language import load as fetch, Out\n" + text.replace(
        "T.load", "fetch"
    ).replace("T.Out", "Out")
    (tmp_path / "script.py").write_text(text)
    assert python("script.py", cwd=tmp_path).stdout == "ok\n"


def test_full_module_names(tmp_path):
    text = (
        SMALL.replace(" as pl,", ",").replace(" as pld\n", "\n").replace("pl.", "pypto.language.")
    )
    (tmp_path / "script.py").write_text(text)
    assert python("script.py", cwd=tmp_path).stdout == "ok\n"


def test_notebook_cells():
    """As IPython does it: each cell is a file of its own that only linecache knows."""
    namespace = {}
    for number, cell in enumerate(SMALL.split("@pl.jit\n")):
        cell = ("@pl.jit\n" if number else "") + cell
        filename = f"<ipython-input-{number}-0123456789ab>"
        linecache.cache[filename] = (len(cell), None, cell.splitlines(keepends=True), filename)
        exec(compile(cell, filename, "exec"), namespace)
    assert (namespace["x"] == namespace["y"]).all()


def test_methods_and_nested_definitions():
    class Holder:
        size = 4

        def make(self):
            if True:
                for _ in [0]:
                    try:
                        with open(os.devnull):

                            @pl.jit.incore
                            def kernel(
                                x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]
                            ):
                                pl.store(pl.load(x, [0], [4]), [0], y)

                            @pl.jit
                            def wrapper(
                                x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]]
                            ):
                                kernel(x, y)

                    finally:
                        match self.size:
                            case 4:

                                @pl.jit.host
                                def host(
                                    x: pl.Tensor[[1, 4], pl.FP32],
                                    y: pl.Out[pl.Tensor[[1, 4], pl.FP32]],
                                ):
                                    wrapper(x[0], y[0], device=0)

            return host

    x = np.ones((1, 4), np.float32)
    y = np.zeros_like(x)
    Holder().make()(x, y, config=config(1))
    assert (x == y).all()


def test_no_process_is_left(tmp_path):
    (tmp_path / "script.py").write_text(
        SEED + CHECK + "import os, pypto.runtime\npypto.runtime.shutdown()\n"
        "print(open(f'/proc/self/task/{os.getpid()}/children').read().split())\n"
    )
    assert python("script.py", cwd=tmp_path).stdout == "ok\n[]\n"
