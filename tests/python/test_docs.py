"""The documentation runs: the Python blocks of each page, in order, as one script; and its table of
environment variables is the library's."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pypto import _core

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [page for page in sorted(DOCS.glob("*.md")) if "```python" in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_environment_table_is_complete():
    text = (DOCS / "running.md").read_text()
    documented = re.findall(r"^\| `(PYPTO_\w+)` \|", text, re.M)
    assert sorted(documented) == sorted(setting[0] for setting in _core.settings())
