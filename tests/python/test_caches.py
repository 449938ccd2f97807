"""The cache of compiled programs when it is shared, damaged, full, somebody else's, or gone; and how the C compiler is
called. What SECURITY.md says about them is tested here and in test_artifacts.py, test_reloaded.py."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import warnings

import numpy as np
import pytest

import pypto
import pypto.runtime
from programs import config, from_text
from pypto.runtime import RunConfig
from test_compile import SCALE, rows

SCRIPT = (
    "import numpy as np, pypto.language as pl, pypto.language.distributed as pld\n"
    "NR = pl.dynamic('NR')\n" + SCALE + "x = np.ones((1, 4), np.float32); y = x * 0\n"
    "host(x, y)\nassert (y == 2).all()\nprint(host.stats['front_hit'], host.stats['back_hit'])\n"
)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(script, *before, **environment):
    """Runs the script; the hits that it tells of."""
    done = subprocess.run(
        [*before, sys.executable, script], capture_output=True, text=True, timeout=120,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run.told = done.stderr
    return done.stdout.split()


def cannot_be_used(place, why):
    """Whether the last run warned of the cache, once, at a line of the script, and said why."""
    words = f"the cache of compiled programs, {place}, cannot be used"
    return run.told.count(words) == 1 and why in run.told and "script.py:" in run.told and "PYPTO-C308" in run.told


def objects(cache):
    return sorted((cache / "v1/object").iterdir())


# ---- shared ----


def test_processes_that_compile_the_same_at_once(cache, script):
    command = [sys.executable, script]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in started:
        process.communicate(timeout=120)
        assert process.returncode == 0
    (only,) = objects(cache)
    assert {path.name for path in only.iterdir()} == {
        "program.c", "program.ir", "program.json", "program.so", "program.sum"
    }  # fmt: skip
    assert run(script) == ["True", "True"]


def test_the_cache_is_private(cache, script):
    old = os.umask(0)
    try:
        run(script)
    finally:
        os.umask(old)
    for path in [cache, *cache.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


# ---- damaged ----


@pytest.mark.parametrize("damage", ["truncated", "poisoned", "empty", "missing", "no sum", "wrong sum"])
def test_a_damaged_object_is_made_again(cache, script, damage):
    run(script)
    (folder,) = objects(cache)
    target = folder / "program.so"
    content = target.read_bytes()
    if damage == "truncated":
        target.write_bytes(content[: len(content) // 2])
    elif damage == "poisoned":
        middle = len(content) // 2
        target.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif damage == "empty":
        target.write_bytes(b"")
    elif damage == "missing":
        target.unlink()
    elif damage == "no sum":
        (folder / "program.sum").unlink()
    else:
        (folder / "program.sum").write_text("1 00\n")
    assert run(script) == ["False", "False"]
    assert run(script) == ["True", "True"]
    assert len(objects(cache)) == 1


def test_a_damaged_manifest_is_made_again(cache, script):
    run(script)
    (manifest,) = (cache / "v1/front").iterdir()
    manifest.write_bytes(manifest.read_bytes().replace(b"variant", b"variand"))
    assert run(script) == ["False", "True"]
    assert run(script) == ["True", "True"]


# ---- not usable ----


def left_over(tmp_path, script, **environment):
    """Runs the script without a usable cache, twice; what that leaves among temporary files."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for _ in range(2):
        assert run(script, TMPDIR=str(temporary), **environment) == ["False", "False"]
    return list(temporary.iterdir())


def test_a_cache_that_cannot_be_made(tmp_path, script):
    (tmp_path / "file").write_text("")
    assert left_over(tmp_path, script, PYPTO_CACHE_DIR=str(tmp_path / "file")) == []
    assert cannot_be_used(tmp_path / "file/v1", "cannot make the directory")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/v1").write_text("")
    assert left_over(tmp_path / "other", script, PYPTO_CACHE_DIR=str(tmp_path / "other")) == []
    assert cannot_be_used(tmp_path / "other/v1", "it is no directory")


def test_without_any_place_for_a_cache(tmp_path, script, monkeypatch):
    for name in ("PYPTO_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert left_over(tmp_path, script) == []
    assert cannot_be_used("the user's cache", "nor HOME says where")


def test_it_is_told_once(tmp_path, monkeypatch):
    """Of each cache, and whatever filters say; a cache that works is no news."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "good"))

    def told():
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(2):
                from_text(SCALE)["host"](rows(1), rows(1))
        assert all(w.category is RuntimeWarning for w in seen)
        return [(str(w.message), w.filename) for w in seen]

    assert told() == []
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "file"))
    ((text, file),) = told()
    assert f"{tmp_path}/file/v1, cannot be used" in text and "Not a directory" in text and file == __file__
    assert told() == []
    (tmp_path / "another").write_text("")
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "another"))
    assert len(told()) == 1


def may_mount():
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return shutil.which("unshare") and subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="file systems cannot be mounted here")
@pytest.mark.parametrize("how", ["size=16k", "size=4k,nr_inodes=4", "ro"])
def test_a_full_or_read_only_cache(tmp_path, script, how):
    (tmp_path / "cache").mkdir()
    (tmp_path / "temporary").mkdir()
    mount = f'mount -t tmpfs -o {how} none "$PYPTO_CACHE_DIR" && exec "$@"'
    for _ in range(2):
        hits = run(
            script, "unshare", "-rm", "sh", "-c", mount, "sh",
            PYPTO_CACHE_DIR=str(tmp_path / "cache"), TMPDIR=str(tmp_path / "temporary"),
        )  # fmt: skip
        assert hits == ["False", "False"]
        assert cannot_be_used(tmp_path / "cache/v1", "Read-only file system" if how == "ro" else "No space left on device")
    assert list((tmp_path / "temporary").iterdir()) == []


def plant(cache, owner=None, mode=None):
    """Makes the cache one that somebody else could have filled, with an object that would be found."""
    root = cache / "v1"
    if mode is not None:
        root.chmod(mode)
    if owner is not None:
        os.chown(root, owner, -1)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


@pytest.mark.parametrize(
    "how", [{"mode": 0o720}, {"mode": 0o702}, pytest.param({"owner": 12345}, marks=AS_ROOT)], ids=str
)
def test_a_cache_that_others_could_have_filled(cache, script, tmp_path, how):
    run(script)
    plant(cache, **how)
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    assert run(script) == ["False", "False"]  # nothing is taken from it, nothing is put there
    assert cannot_be_used(cache / "v1", "it belongs to another user, or others may write to it")
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before


def test_a_file_in_the_place_of_an_object(cache, script):
    """Nothing of it is followed or kept: it is replaced."""
    run(script)
    (folder,) = objects(cache)
    shutil.rmtree(folder)
    folder.symlink_to("/nonexistent")
    assert run(script) == ["False", "False"]
    assert run(script) == ["True", "True"] and not folder.is_symlink()


# ---- gone ----


def test_the_cache_may_be_removed_while_programs_are_in_use(cache):
    host = from_text(SCALE)["host"]
    compiled = host.compile(rows(2), rows(2), config=config(2))
    pypto.runtime.shutdown()
    shutil.rmtree(cache)
    y = np.zeros_like(rows(2))
    compiled(rows(2), y)  # new workers load it from its output directory
    assert (y == 2 * rows(2)).all()
    with compiled.prepare() as worker:
        y[:] = 0
        worker(rows(2), y)
        assert (y == 2 * rows(2)).all()
    pypto.runtime.shutdown()
    y[:] = 0
    host(rows(2), y, config=config(2))  # compiled again
    assert (y == 2 * rows(2)).all() and len(objects(cache)) == 2  # and the output directory's
    shutil.rmtree(cache)
    shutil.rmtree(compiled.output_dir)
    pypto.runtime.shutdown()
    with pytest.raises(pypto.errors.SystemError, match="cannot open the compiled program"):
        compiled(rows(2), y)


# ---- the C compiler ----


def test_no_shell_sees_names_or_words(tmp_path):
    """Files, folders and words of variables that a shell would act on."""
    evil = tmp_path / "a b;touch x;$(touch y)`touch z`'\"&|>w"
    evil.mkdir()
    path = evil / "it's $(touch y);.py"
    path.write_text(SCRIPT)
    compiler = shutil.which("cc")
    for environment in (
        {"PYPTO_CACHE_DIR": str(evil / "$(touch y)")},
        {"PYPTO_CACHE_DIR": str(tmp_path / "cache"), "PYPTO_CC": f"{compiler} -DX=$(touch${{IFS}}y);`touch${{IFS}}z`"},
    ):
        done = subprocess.run(
            [sys.executable, path], capture_output=True, text=True, timeout=120, cwd=tmp_path,
            env={**os.environ, **environment},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert {p.name for p in tmp_path.iterdir()} == {evil.name, "cache"}
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env={**os.environ, "PYPTO_CC": "cc;touch y"},
    )  # fmt: skip
    assert "there is no C compiler 'cc;touch y'" in done.stderr and not (tmp_path / "y").exists()


def test_names_stay_inside_of_the_emitted_c(tmp_path):
    """Text of the script cannot become code: file names, names of functions, messages."""
    folder = tmp_path / 'x"; int injected; \\\n#define pld_load bad\n*'
    folder.mkdir()
    path = folder / " evil.py"  # the whole path has an end of comment in it
    path.write_text(SCRIPT)
    assert run(path, PYPTO_CACHE_DIR=str(tmp_path / "cache")) == ["False", "False"]
    (folder,) = objects(tmp_path / "cache")
    text = (folder / "program.c").read_text()
    assert "\nint injected" not in text and "\n#define" not in text


def test_object_code_is_asked_of_one_directory_only(cache, monkeypatch):
    """LD_LIBRARY_PATH and the current directory do not say what is loaded."""
    host = from_text(SCALE)["host"]
    compiled = host.compile(rows(1), rows(1), config=RunConfig(platform="cpu"))
    assert pathlib.Path(compiled._program.object_path).is_absolute()


def test_security_names_tests_that_exist():
    root = pathlib.Path(__file__).resolve().parents[2]
    claims = (root / "SECURITY.md").read_text()
    rows = [line.split("|")[3] for line in claims.splitlines() if line.startswith("|") and "`test_" in line]
    assert len(rows) > 10
    for row in rows:
        file = None
        for word in row.replace("`", "").replace(",", " ").split():
            if word.endswith(".py"):
                file = root / word if "/" in word else root / "tests/python" / word
            else:
                assert f"def {word}(" in file.read_text(), word
