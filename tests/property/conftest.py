"""Random programs: what they are checked against, and how many.

`pytest tests/property` runs the same examples every time, as CI does. `make soak` sets
PYPTO_PROPERTY=soak: new examples each time, many more, and failures are remembered in .hypothesis."""

import os
import pathlib
import sys

import hypothesis
from hypothesis.internal.conjecture import engine

# The helpers of the other Python tests.
sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))

from run_fixtures import no_workers_left, private_cache  # noqa: E402, F401

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
