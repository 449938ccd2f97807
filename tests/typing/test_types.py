"""The type stubs in use: mypy with pypto.mypy_plugin accepts the examples and the programs of
accepted.py, and finds every mistake in refused.py, where it stands."""

import pathlib
import re

import pytest
from mypy import api

FOLDER = pathlib.Path(__file__).parent
ROOT = FOLDER.parent.parent
EXAMPLES = sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "examples" / "runtime").glob("*.py")])


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """(file name, line) -> what mypy says there."""
    out, err, status = api.run(
        [
            f"--config-file={FOLDER / 'mypy.ini'}",
            f"--cache-dir={tmp_path_factory.mktemp('mypy')}",
            "--no-error-summary",
            *map(str, [*EXAMPLES, FOLDER / "accepted.py", FOLDER / "refused.py"]),
        ]
    )
    assert status in (0, 1) and not err, out + err
    found = {}
    for line in out.splitlines():
        path, number, kind, text = re.fullmatch(r"(.*?):(\d+): (\w+): (.*)", line).groups()
        if kind == "error":
            found.setdefault((pathlib.Path(path).name, int(number)), []).append(text)
    return found


def test_annotations_of_the_package_name_types(tmp_path):
    """What its functions take and give, for whoever calls them with a type checker."""
    parts = [ROOT / "python" / "pypto" / part for part in ("__init__.py", "ir", "runtime", "backend.py", "errors.py")]
    out, err, _ = api.run(
        [f"--config-file={FOLDER / 'mypy.ini'}", f"--cache-dir={tmp_path}", "--no-error-summary", *map(str, parts)]
    )
    assert not err
    assert [line for line in out.splitlines() if line.endswith(("[name-defined]", "[valid-type]"))] == []


@pytest.mark.parametrize("name", [path.name for path in EXAMPLES] + ["accepted.py"])
def test_accepted(complaints, name):
    assert {key: text for key, text in complaints.items() if key[0] == name} == {}


def expected():
    """Line -> words, of refused.py."""
    lines = (FOLDER / "refused.py").read_text().splitlines()
    return {n: line.partition("# error: ")[2] for n, line in enumerate(lines, 1) if "# error: " in line}


@pytest.mark.parametrize("line, words", expected().items())
def test_refused(complaints, line, words):
    said = complaints.get(("refused.py", line), ["nothing"])
    assert any(words in text for text in said)


def test_nothing_else_is_refused(complaints):
    assert {line for name, line in complaints if name == "refused.py"} == set(expected())
