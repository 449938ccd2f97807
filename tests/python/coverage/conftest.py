"""What the programs of the coverage table share: the number of ranks that each test is run with."""

import os
import pathlib

import pytest

import emitted


@pytest.fixture(params=[1, 2, 4])
def ranks(request):
    return request.param


@pytest.fixture(scope="package", autouse=True)
def emitted_c_has_no_warnings(private_cache):
    """Of all programs of this folder, asked at its end."""
    cache = pathlib.Path(os.environ["PYPTO_CACHE_DIR"])
    before = set(cache.rglob("program.c"))
    yield
    files = sorted(set(cache.rglob("program.c")) - before)
    said = [emitted.warnings(files, compiler) for compiler in ["gcc", "clang"] if files]
    assert not any(said), "\n".join(said)
