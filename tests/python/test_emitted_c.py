"""The C of kernels that use every operation on tiles: no warning from gcc or clang, nothing undefined when it
runs. The headers of the device library are compiled with it."""

import pathlib
import subprocess

import numpy as np
import pytest

from op_programs import ALL, INTS, program, samples, to_torch
from programs import config
from test_ops import ROWS

INCLUDE = pathlib.Path(__file__).parents[2] / "include"
COMPILERS = ["gcc", "clang"]


def statements(dtype):
    """Each elementwise row of test_ops.py, then what moves, compares and reduces."""
    integer = dtype in INTS
    lines = [f"pl.store({expression}, [0, 0], z)" for expression, _, dtypes, _ in ROWS if dtype in dtypes]
    lines += [
        "t = pl.load(x, [0, 0], [3, 8], valid_shape=[2, 5])",
        "n = pl.cast(pl.read(y, [0, 0]), pl.INDEX)",
        "m = pl.cmp(a, b, 2)",
        "pl.store(pl.sel(m, a, b), [0, 0], z)",
        "pl.store(pl.sel(pl.cmps(t, 1), t, b), [0, 0], z)",
        "pl.store(pl.sels(m, a, m, 3), [0, 0], z)",
        "pl.store(pl.tile.transpose_view(pl.transpose(t, 0, 1)), [0, 0], z)",
        "pl.store(pl.slice(pl.concat(t, b), [3, 8], [0, 4]), [0, 0], z)",
        "pl.store(pl.fillpad(t, pl.PadValue.min), [0, 0], z)",
        "pl.store(pl.set_validshape(a, 2, 3), [0, 0], z)",
        f"pl.store(pl.tri(1, [3, 8], [2, 7], pl.{dtype}), [0, 0], z)",
        f"pl.store(pl.cast(pl.cast(pl.row_argmax(t), pl.BOOL), pl.{dtype}), [0, 0], z)",
        f"pl.store(pl.cast(pl.cast(pl.col_argmin(t), pl.BOOL), pl.{dtype}), [0, 0], z)",
        "pl.store(pl.row_expand_add(a, pl.row_sum(a)), [0, 0], z)",
        "pl.store(pl.col_expand_max(a, pl.col_prod(t)), [0, 0], z)",
        "pl.store(a, [0, 0], z, atomic=pl.AtomicType.Add)",
    ]
    if dtype != "INT8":
        lines += [f"pl.store(pl.reinterpret_view(pl.reinterpret_view(a, pl.INT8), pl.{dtype}), [0, 0], z)"]
    for to in [*ALL, "BOOL", "FP8E4M3FN", "FP8E5M2", "FP8E8M0", "FP4", "INT4", "UINT4"]:
        if to != dtype:
            modes = ["round"] if integer else ["rint", "floor", "ceil", "trunc", "odd", "round"]
            lines += [f"pl.store(pl.cast(pl.cast(a, pl.{to}, '{mode}'), pl.{dtype}), [0, 0], z)"
                      for mode in modes]
    return lines


def compiled(dtype):
    return program(statements(dtype), (3, 8), dtype, (3, 8), dtype)


@pytest.mark.parametrize("dtype", ALL)
def test_no_warnings(dtype):
    source = compiled(dtype).compile(config=config(1)).output_dir / "program.c"
    for compiler in COMPILERS:
        done = subprocess.run(
            [compiler, "-std=c17", "-Wall", "-Wextra", "-Werror", "-O1", "-ffp-contract=off", "-fwrapv",
             "-fsyntax-only", f"-I{INCLUDE}", str(source)],
            capture_output=True, text=True,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", ["INT8", "INT64", "UINT32", "FP32", "FP16"])
def test_nothing_is_undefined(dtype, monkeypatch, tmp_path):
    """Every operation on numbers of all sizes; the sanitizer ends the worker where it finds anything."""
    compiler = tmp_path / "checked-gcc"
    compiler.write_text(
        "#!/bin/sh\n"
        "exec gcc -fsanitize=undefined,float-cast-overflow -fsanitize-undefined-trap-on-error \"$@\"\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("PYPTO_CC", str(compiler))
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "cache"))
    a, b = (samples(dtype, (1, 3, 8), k) for k in (1, 2))
    b[0, 0, 0] = 1
    out = to_torch(np.zeros_like(a), dtype)
    compiled(dtype)(to_torch(a, dtype), to_torch(b, dtype), out, config=config(1))
