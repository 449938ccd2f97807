"""Fixtures of every run that starts workers: a cache of its own, and none of them left behind. A conftest.py
imports them; pytest finds them there."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory):
    """Compiled programs and their output directories go to folders of this test run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path_factory.mktemp("build_output")))
        patch.setenv("PYPTO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_workers_left():
    yield
    import pypto.runtime

    pypto.runtime.shutdown()
