"""Random distributed programs (distributed.py, schedules.py) against the model of the same programs, on both transports and with
random delays in the ranks. A failure prints the smallest program that Hypothesis finds, and the seed of the delays."""

import numpy as np
import pytest
import torch
from hypothesis import given, note, settings
from hypothesis import strategies as st

from programs import config, from_text
from distributed import programs
from transfers import array

RUNS = 3


def passed(x, dtype):
    return torch.from_numpy(x.copy()).bfloat16() if dtype == "BF16" else x.copy()


def check(host, program, times):
    expected, arguments = {}, []
    for name, _, pair in program.arrays():
        before, expected[name] = (times, times) if pair is None else pair
        arguments.append(passed(before, program.dtype(name)))
    host(*arguments, config=config(program.ranks))
    for (name, after), argument in zip(expected.items(), arguments):
        np.testing.assert_array_equal(array(argument), after, err_msg=name)


@settings(max_examples=min(settings().max_examples, 300))
@given(programs(), st.integers(0, 2**32 - 1))
def test_random_schedules(program, seed):
    note(f"ranks = {program.ranks}, seed = {seed}\n{program.text()}")
    host = from_text(program.text())["host"]
    rng = np.random.default_rng(seed)
    for transport in ("shm", "threads"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYPTO_TRANSPORT", transport)
            for _ in range(RUNS):
                check(host, program, program.delays.times(program.ranks, rng))
