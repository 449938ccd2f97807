"""Every row of the coverage table is covered or says when it will be, and every test here is of a
row."""

import re
from pathlib import Path

import pytest

from pitfalls import ACCEPTANCE, PITFALLS
from rows import EXERCISES, ROWS

FOLDER = Path(__file__).parent
OTHERS = {"test_rows.py", "test_conformance.py"}


def test_every_row_is_accounted_for():
    assert len(ROWS) == 55
    assert all(re.fullmatch(r"test_\w+\.py|issue \d: .+", entry) for entry in ROWS.values())
    tests = [entry for entry in ROWS.values() if not entry.startswith("issue")]
    assert len(set(tests)) == len(tests)
    assert set(tests) == {path.name for path in FOLDER.glob("test_*.py")} - OTHERS


def test_every_exercise_is_accounted_for():
    examples = {row for row in ROWS if re.match(r"\d\d_", row)}
    assert len(EXERCISES) == 39 and len(examples) == 7
    assert set(EXERCISES) <= set(ROWS) and examples <= set(EXERCISES)
    arrived = {row for row in EXERCISES if not ROWS[row].startswith("issue")}
    for row in arrived - examples:
        assert any(not entry.startswith("issue") for entry in EXERCISES[row].values()), row


TESTS = [
    (row, entry)
    for row, exercises in EXERCISES.items()
    for entry in exercises.values()
    if not entry.startswith("issue")
]


@pytest.mark.parametrize("row, entry", TESTS)
def test_exercises_name_tests(row, entry):
    file, _, name = entry.rpartition(" ")
    text = (FOLDER / (file or ROWS[row])).read_text()
    assert f"\ndef {name}(" in text
    if name == "test_example":
        assert len(list((FOLDER.parents[2] / "examples").glob(f"{row}.py"))) == 1


def test_the_tests_run_programs():
    for name in set(ROWS.values()) & {path.name for path in FOLDER.glob("test_*.py")}:
        text = (FOLDER / name).read_text()
        assert "transport)" in text and "assert" in text, name


SHOWN = [(row, entry) for row, entries in [*PITFALLS.items(), *ACCEPTANCE.items()] for entry in entries]


@pytest.mark.parametrize("row, entry", SHOWN)
def test_pitfalls_name_tests(row, entry):
    file, name = entry.split()
    assert f"\ndef {name}(" in (FOLDER.parent / file).read_text()


def test_every_pitfall_is_accounted_for():
    assert len(PITFALLS) == 34 and len(ACCEPTANCE) == 5
    assert all(PITFALLS.values()) and all(ACCEPTANCE.values())
    text = (FOLDER.parent / "test_pitfalls.py").read_text()
    named = {entry.split()[1] for entries in PITFALLS.values() for entry in entries if entry.startswith("test_pitfalls.py")}
    assert set(re.findall(r"(?m)^def (test_\w+)", text)) == named
