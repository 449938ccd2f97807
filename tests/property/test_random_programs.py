"""Random programs against the interpreter of the same programs (generate.py, nodes.py). A failure prints the
smallest program that Hypothesis finds, with its inputs' seed and the number of ranks."""

import pathlib
import re

import numpy as np
import pytest
import torch
from hypothesis import given, note, settings
from hypothesis import strategies as st

import emitted
import operations
import values
from generate import programs
from programs import config, from_text
from pypto import ir
from pypto.ir import DistributedConfig


def samples(rng, dtype, shape):
    """Random numbers of all sizes, with the special ones sprinkled in."""
    if dtype in values.INTS:
        low, high = values.limits(dtype)
        x = rng.integers(low, high, shape, values.NUMPY[dtype], endpoint=True)
        special = np.array([0, 1, low, high, 2, 3], values.NUMPY[dtype])
    else:
        x = values.rounded(rng.standard_normal(shape) * 10.0 ** rng.uniform(-2, 2, shape), dtype)
        with np.errstate(all="ignore"):
            special = values.rounded([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 65504, 1.0], dtype)
    return np.where(rng.random(shape) < 0.2, rng.choice(special, shape), x).astype(values.NUMPY[dtype])


def units(x, dtype):
    """Numbers whose differences are units in the last place; NaN is one of them."""
    raw = np.ascontiguousarray(x)
    size = np.int16 if dtype == "FP16" else np.int32
    order = raw.view(size).astype(np.int64)
    order = np.where(order < 0, -(order & np.iinfo(size).max), order)
    order = order >> 16 if dtype == "BF16" else order
    return np.where(np.isnan(raw), np.int64(1) << 40, order)


def check_output(name, got, expected, dtype, ulps):
    if dtype in values.FLOATS:
        wrong = np.abs(units(got, dtype) - units(expected, dtype)) > ulps
    else:
        wrong = got != expected
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(f"{name}{list(where)} is {got[where]!r}, not {expected[where]!r} "
                             f"({wrong.sum()} of {wrong.size} differ)")


def compiled(program, ranks, arrays):
    names = from_text(program.text())
    if program.class_form:
        devices = DistributedConfig(device_ids=list(range(ranks)))
        return ir.compile(names["Random"], platform="cpu", distributed_config=devices)
    return names["host"].compile(*arrays, config=config(ranks))


def run_program(program, ranks, ulps, seed):
    note(f"ranks = {ranks}, seed = {seed}\n{program.text()}")
    params = program.host_params()
    rng = np.random.default_rng(seed)
    inputs = {p.name: samples(rng, p.dtype, (ranks, *p.shape)) for p in params}
    expected = program.interpret(inputs, ranks)

    arrays = [inputs[p.name].copy() for p in params]
    arrays = [torch.from_numpy(a).bfloat16() if p.dtype == "BF16" else a for p, a in zip(params, arrays)]
    run = compiled(program, ranks, arrays)
    run(*arrays)
    for p, array in zip(params, arrays):
        got = array.float().numpy() if p.dtype == "BF16" else array
        check_output(p.name, got, expected[p.name], p.dtype, ulps.get(p.name, 0))
    return run


@given(programs(), st.integers(0, 2**32 - 1))
def test_random_programs(drawn, seed):
    run_program(*drawn, seed)


# Undefined behaviour ends the worker: no library of the sanitizer is needed, and none is there.
TRAPS = {
    "gcc": "gcc -fsanitize=undefined -fsanitize-undefined-trap-on-error",
    "clang": "clang -fsanitize=undefined -fsanitize-trap=undefined",
}


@pytest.mark.parametrize("compiler", list(TRAPS))
@settings(max_examples=max(settings().max_examples // 5, 1))
@given(programs(), st.integers(0, 2**32 - 1))
def test_emitted_c(compiler, drawn, seed):
    """Compiles without warnings, and does nothing undefined."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_CC", TRAPS[compiler])
        run = run_program(*drawn, seed)
    warnings = emitted.warnings([run.output_dir / "program.c"], compiler)
    assert not warnings


def test_every_operation_is_tested():
    """A row of the table of operations is drawn here, or another test mentions it."""
    others = pathlib.Path(__file__).parents[1] / "python"
    words = set(re.findall(r"\w+", " ".join(f.read_text() for f in others.rglob("*.py"))))
    here = set(re.findall(r"\w+", pathlib.Path(__file__).with_name("nodes.py").read_text()))
    names = operations.table()
    assert [n for n in names if not operations.drawn(n) and n not in words | here] == []
