"""Random orders of kernels, scopes and dispatches (orders.py) against the same program in plain Python, on both transports; and
what recorded calls of them tell of that order (exported.py)."""

import tempfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import exported
import orders
from programs import config, from_text

RUNS = 3


@settings(max_examples=min(settings().max_examples, 500))
@given(orders.texts(), st.integers(0, 2**32 - 1))
def test_random_orders(text, seed):
    note(f"seed = {seed}\n{text}")
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(0, 1000, (orders.DEVICES, 8)) for _ in "xabc"]
    expected = [x.copy() for x in arrays]
    orders.run_plain(text, expected)
    host = from_text(text)["host"]
    for transport in ("shm", "threads"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYPTO_TRANSPORT", transport)
            for _ in range(RUNS):
                got = [x.copy() for x in arrays]
                host(*got, config=config(orders.DEVICES))
                for name, is_now, should_be in zip("xabc", got, expected):
                    np.testing.assert_array_equal(is_now, should_be, err_msg=name)


@settings(max_examples=min(settings().max_examples, 300))
@given(orders.texts(), st.integers(0, 2**32 - 1))
def test_records_of_random_orders(text, seed):
    note(f"seed = {seed}\n{text}")
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(0, 1000, (orders.DEVICES, 8)) for _ in "xabc"]
    expected = [x.copy() for x in arrays]
    orders.run_plain(text, expected)
    run = config(orders.DEVICES)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_PROG_BUILD_DIR", folder)
        compiled = from_text(text)["host"].compile(*arrays, config=run)
        got = [x.copy() for x in arrays]
        compiled(*got, config=replace(run, enable_chip_swimlane=1))
        for name, is_now, should_be in zip("xabc", got, expected):
            np.testing.assert_array_equal(is_now, should_be, err_msg=name)
        exported.check_folder(compiled.output_dir / "dfx_outputs")
