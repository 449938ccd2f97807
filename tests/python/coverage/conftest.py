"""What the programs of the coverage table share: the number of ranks that each test is run with."""

import pytest


@pytest.fixture(params=[1, 2, 4])
def ranks(request):
    return request.param
