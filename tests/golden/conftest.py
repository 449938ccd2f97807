"""`pytest tests/golden --update-golden` writes the expected files anew; review the difference."""


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the expected files anew")
