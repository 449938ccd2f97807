"""What all Python tests share."""

import pytest

from run_fixtures import no_workers_left, private_cache  # noqa: F401


@pytest.fixture(params=["shm", "threads"])
def transport(request, monkeypatch):
    """Runs a test once with a process and once with a thread per device."""
    monkeypatch.setenv("PYPTO_TRANSPORT", request.param)
    return request.param
