"""Every row of the coverage table is covered or says when it will be, and every test here is of a
row."""

import re
from pathlib import Path

from rows import ROWS

FOLDER = Path(__file__).parent
OTHERS = {"test_rows.py", "test_conformance.py"}


def test_every_row_is_accounted_for():
    assert len(ROWS) == 55
    assert all(re.fullmatch(r"test_\w+\.py|issue \d: .+", entry) for entry in ROWS.values())
    tests = [entry for entry in ROWS.values() if not entry.startswith("issue")]
    assert len(set(tests)) == len(tests)
    assert set(tests) == {path.name for path in FOLDER.glob("test_*.py")} - OTHERS


def test_the_tests_run_programs():
    for name in set(ROWS.values()) & {path.name for path in FOLDER.glob("test_*.py")}:
        text = (FOLDER / name).read_text()
        assert "transport)" in text and "assert" in text, name
