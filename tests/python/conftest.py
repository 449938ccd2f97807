"""What all Python tests share: a cache of their own, and no workers left behind."""

import pytest


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


@pytest.fixture(params=["shm", "threads"])
def transport(request, monkeypatch):
    """Runs a test once with a process and once with a thread per device."""
    monkeypatch.setenv("PYPTO_TRANSPORT", request.param)
    return request.param
