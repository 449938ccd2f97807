"""The documentation runs.

The Python blocks of a page, in order, are one script. A block marked `python body` is the body
of the page's kernel that has `...` for one; it runs on two devices, and its last comments say
what must then be true, for each rank, of x and y (what the rank was given and what it wrote), xs
(what all were given), r (its number) and n; or which error it is. A block marked `text NAME` is what the
script's string NAME is at its end, with lines counted from the top of the block that they are in. Tables of
names are the library's."""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from programs import config, from_text
from pypto import _core
from pypto._dtypes import DTYPES
from pypto.language._operations import Operation

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [page for page in sorted(DOCS.glob("*.md")) if "```python" in page.read_text()]


def blocks(page, mark="", language="python"):
    """The blocks of a page with a mark, with the line that each begins at."""
    text = page.read_text()
    for found in re.finditer(rf"^```{language}{mark}\n(.*?)^```", text, re.S | re.M):
        yield text.count("\n", 0, found.start(1)) + 1, found.group(1)


def shown(text, script, parts):
    """A text as the page shows it: places in the script by the line of their block."""

    def place(found):
        line = int(found.group(1))
        for part in parts:
            if line <= part.count("\n"):
                return f"script.py:{line}"
            line -= part.count("\n") + 1

    return re.sub(rf"{re.escape(str(script))}:(\d+)", place, text)


ROOT = DOCS.parent
FOLDERS = [folder.name for folder in (ROOT / "src").iterdir() if folder.is_dir()]


def is_in_the_tree(name):
    """A path, from the root or from src/, python/ or python/pypto; sources of one name without their endings."""
    places = [ROOT / above / name for above in ("", "src", "python", "python/pypto")]
    return any(place.with_name(place.name + ending).exists() for place in places for ending in ("", ".c", ".h", ".py"))


def test_files_that_pages_name_are_in_the_tree():
    inside = "|".join(["src", "python", "tests", "scripts", "bench", "examples", "docs", "include", "module", *FOLDERS])
    for page in DOCS.glob("*.md"):
        named = re.findall(rf"`((?:{inside})/[\w./-]*)`", page.read_text())
        assert [name for name in named if not is_in_the_tree(name)] == [], page.name


def test_files_that_comments_name_are_in_the_tree():
    sources = [path for folder in ("src", "python", "include", "tests", "examples") for path in (ROOT / folder).rglob("*.*")]
    known = {path.name for path in sources} | {"script.py", "fs.h"}  # the user's, and the system's
    for path in sources:
        if path.suffix not in (".c", ".h", ".def") or "tests" in path.parts:
            continue
        comments = " ".join(re.findall(r"/\*.*?\*/", path.read_text(), re.S))
        named = re.findall(r"\b([a-z]\w+\.(?:c|h|def|py|pml))\b", comments)
        assert set(named) <= known, path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path):
    script, strings = tmp_path / "page.py", tmp_path / "strings.json"
    parts = [text for _, text in blocks(page)]
    names = re.findall(r"^```text (\w+)$", page.read_text(), re.M)
    save = f"import json\njson.dump([{', '.join(names)}], open({str(strings)!r}, 'w'))\n"
    script.write_text("\n".join([*parts, save]))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for name, text in zip(names, json.loads(strings.read_text()), strict=True):
        ((_, block),) = blocks(page, " " + name, "text")
        assert block == shown(text, script, parts).rstrip("\n") + "\n"


BODIES = [(page, *block) for page in PAGES for block in blocks(page, " body")]
NAMES = [f"{page.name}:{line}" for page, line, _ in BODIES]


@pytest.mark.parametrize("page, line, body", BODIES, ids=NAMES)
def test_body_blocks_hold(page, line, body):
    lines = body.splitlines()
    claims = [text[2:] for text in itertools.takewhile(lambda text: text[0] == "#", reversed(lines))]
    assert claims, f"{page.name}:{line} claims nothing"
    (program,) = [text for _, text in blocks(page) if re.search(r"^    \.\.\.", text, re.M)]
    indented = "\n".join("    " + text for text in lines)
    host = from_text(re.sub(r"^    \.\.\..*$", lambda _: indented, program, flags=re.M))["host"]
    xs = np.arange(64, dtype=np.float32).reshape(2, 4, 8)
    ys = np.zeros_like(xs)
    for claim in claims:
        if re.match(r"\w+Error: ", claim):
            name, _, words = claim.partition(": ")
            with pytest.raises(getattr(pypto.errors, name)) as caught:
                host(xs, ys, 3, config=config(2))
            assert words in str(caught.value)
            continue
        ys[:] = 0
        host(xs, ys, 3, config=config(2))
        for r in range(2):
            names = {"np": np, "x": xs[r], "y": ys[r], "xs": xs, "r": r, "n": 3}
            assert np.all(eval(claim, names)), f"{page.name}:{line}, rank {r}: {claim}\n{ys[r]}"


def test_environment_table_is_complete():
    text = (DOCS / "running.md").read_text()
    rows = re.findall(r"^\| `(PYPTO_\w+)` \|[^|]*\|([^|]*)\|", text, re.M)
    settings = {name: valid for name, _, _, valid, _ in _core.settings()}
    assert sorted(name for name, _ in rows) == sorted(settings)
    for name, told in rows:
        valid, told = settings[name], told.strip().replace("10^", "1e")
        if valid in ("", settings["PYPTO_SHARED_ONLY"]):
            assert told == ("anything" if valid == "" else "a switch")
        elif ".." not in valid:
            assert re.findall(r"`(\w+)`", told) == re.split("[|,]", valid)
        else:
            low, high = re.search(r"(\d+)\.\.(\d+)", valid).groups()
            assert re.search(r"(\S+) to (\S+)$", told).groups() in {(low, high), (low, f"1e{len(high) - 1}")}
            assert told.startswith("a level, or ") == ("|" in valid)


def operations():
    """The names of all operations, each in the shortest namespace that has it."""
    for root, module in (("pl", pl), ("pld", pld)):
        own = {name for name in module.__all__ if isinstance(getattr(module, name), Operation)}
        yield from (f"{root}.{name}" for name in own)
        for part in {"tile", "tensor", "array", "system", "prefetch"} & set(module.__all__):
            for name, value in vars(getattr(module, part)).items():
                if isinstance(value, Operation) and name not in own:
                    yield f"{root}.{part}.{name}"


def test_table_of_operations_is_complete():
    text = (DOCS / "language.md").read_text()
    rows = re.findall(r"^\|[^|]*\| `(pld?[\w. ]*)` \| `([a-z_0-9 ]+)` \|$", text, re.M)
    documented = [f"{prefix}.{name}" for prefixes, names in rows for prefix in prefixes.split()
                  for name in names.split()]
    assert len(documented) == len(set(documented))
    there = set(operations())
    assert set(documented) - there == set(), "in the table of docs/language.md, but gone"
    assert there - set(documented) == set(), "add them to the table of docs/language.md"


def test_table_of_element_types_is_complete():
    section = (DOCS / "language.md").read_text().partition("## 15. ")[2].partition("## 16. ")[0]
    documented = {}
    for names, sizes in re.findall(r"^\| ((?:`\w+` ?)+) \| ([\d ]+) \|", section, re.M):
        documented |= dict(zip(re.findall(r"\w+", names), map(int, sizes.split()), strict=True))
    assert documented == {name: dtype.get_byte() for name, dtype in DTYPES.items()}
