"""Random programs: what they are checked against, and how many.

`pytest tests/property` runs the same examples every time, as CI does. `make soak` sets
PYPTO_PROPERTY=soak: new examples each time, many more, and failures are remembered in .hypothesis."""

import os
import pathlib
import sys

import hypothesis
import pytest
from hypothesis.internal.conjecture import engine

# The helpers of the other Python tests.
sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))

COMMON = dict(
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    print_blob=False,
)
hypothesis.settings.register_profile("ci", derandomize=True, max_examples=40, database=None, **COMMON)
hypothesis.settings.register_profile("soak", max_examples=2000, **COMMON)
# Five minutes of shrinking are for nobody's patience; what they gain shows in the first.
engine.MAX_SHRINKING_SECONDS = 60
hypothesis.settings.load_profile(os.environ.get("PYPTO_PROPERTY", "ci"))


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory):
    """Compiled programs go to a folder of this test run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_workers_left():
    yield
    import pypto.runtime

    pypto.runtime.shutdown()
