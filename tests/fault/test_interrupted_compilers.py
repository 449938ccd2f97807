"""Ctrl-C while the C compiler runs, sent to the script alone: the compiler ends, and nothing is left of its work.

The compiler is a program of the test's. It says that it runs, through one pipe, and goes on when it is told to,
through another: never, unless the test does so.
"""

import os
import select
import signal
import textwrap

import pytest
from processes import PATIENCE, until, wait_for_line

# `first` is what it does before it says that it runs, and `others` the numbers of other processes. Behind -o stands the object's name.
COMPILER = """\
#!/bin/sh
{first}
words="$*"
object=${{words#*-o }}
echo half > "${{object%% *}}"
echo $$ {others} > {folder}/runs
read answer < {folder}/goes_on
exec cc "$@"
"""

HELPER = """\
trap '' TERM
(exec sleep 1000000) &
"""

DRIVER = """
def attempt(what):
    try:
        what()
        print("GOOD", (outputs == 1).all())
    except KeyboardInterrupt as error:
        print("INTERRUPTED", flush=True)

{before}
attempt({what})
os.environ["PYPTO_CC"] = "cc"
attempt({what})
"""

COMPILED = """
os.environ["PYPTO_CC"] = "cc"
compiled = host.compile(inputs, outputs, config=CONFIG)
os.remove(compiled.output_dir / "program.so")
for folder in __import__("glob").glob(os.environ["PYPTO_CACHE_DIR"] + "/v1/object/*"):
    __import__("shutil").rmtree(folder)
with open(compiled.output_dir / "program.c", "a") as file:
    file.write("/* edited */")
os.environ["PYPTO_CC"] = os.environ["SLOW_CC"]
from pypto.ir import DistributedCompiledProgram
"""


class Compiler:
    """The compiler, and the pipes to it."""

    def __init__(self, folder, first="", others=""):
        self.path = folder / "slow-cc"
        self.path.write_text(COMPILER.format(first=first, others=others, folder=folder))
        self.path.chmod(0o700)
        self.pipes = {}
        for name in ("runs", "goes_on"):
            os.mkfifo(folder / name)
            # Open for both, so that no opening waits for the other side.
            self.pipes[name] = os.open(folder / name, os.O_RDWR)

    def wait_until_it_runs(self, process):
        """Returns the numbers of its processes."""
        words = b""
        while not words.endswith(b"\n"):
            ready, _, _ = select.select([self.pipes["runs"], process.stdout], [], [])
            assert self.pipes["runs"] in ready, (process.stdout.read(), process.stderr.read())
            words += os.read(self.pipes["runs"], 100)
        return [int(word) for word in words.split()]

    def let_it_go_on(self):
        os.write(self.pipes["goes_on"], b"\n")

    def close(self):
        for pipe in self.pipes.values():
            os.close(pipe)


@pytest.fixture
def compiler(tmp_path):
    made = []

    def make(**words):
        made.append(Compiler(tmp_path, **words))
        return made[0]

    yield make
    for one in made:
        one.close()


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def environment(folder, compiler, cache="cache"):
    (folder / "tmp").mkdir()
    return {
        "PYPTO_CC": str(compiler.path),
        "SLOW_CC": str(compiler.path),
        "PYPTO_CACHE_DIR": str(folder / cache),
        "TMPDIR": str(folder / "tmp"),
    }


def left_in(folder):
    """All files below, without the folders of the cache itself."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() or path.name.startswith("pypto-"))


@pytest.mark.parametrize(
    "what, before, cache",
    [
        ("run", "", "cache"),
        ("run", "", "no_cache"),
        ("lambda: DistributedCompiledProgram.from_dir(compiled.output_dir)(inputs, outputs)", COMPILED, "cache"),
    ],
    ids=["a call", "without a cache", "a folder"],
)
def test_ctrl_c_of_the_script_ends_the_compiler(script, compiler, tmp_path, what, before, cache):
    cc = compiler()
    (tmp_path / "no_cache").write_text("a file where a folder should be")
    s = script("", DRIVER.format(what=what, before=textwrap.dedent(before)))
    process = s.start(group=True, **environment(tmp_path, cc, cache))
    pids = cc.wait_until_it_runs(process)
    os.kill(process.pid, signal.SIGINT)
    assert wait_for_line(process, "INTERRUPTED")
    assert not any(map(lives, pids))
    out, err = process.communicate(timeout=PATIENCE)
    assert out.split() == ["GOOD", "True"], err
    assert process.returncode == 0, err
    assert left_in(tmp_path / "tmp") == []
    if cache == "cache":
        assert not [name for name in left_in(tmp_path / "cache") if "pypto-" in name or "failed" in name]


def test_nothing_is_in_the_cache_afterwards(script, compiler, tmp_path):
    cc = compiler()
    s = script("", "try:\n    run()\nexcept KeyboardInterrupt:\n    print('INTERRUPTED')")
    process = s.start(group=True, **environment(tmp_path, cc))
    cc.wait_until_it_runs(process)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert out.split() == ["INTERRUPTED"], err
    assert left_in(tmp_path / "tmp") == left_in(tmp_path / "cache") == []


def test_a_deaf_compiler_and_its_helpers_are_killed(script, compiler, tmp_path):
    cc = compiler(first=HELPER, others="$!")
    s = script("", "try:\n    run()\nexcept KeyboardInterrupt:\n    print('INTERRUPTED')")
    process = s.start(group=True, **environment(tmp_path, cc))
    pids = cc.wait_until_it_runs(process)
    assert len(pids) == 2
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert out.split() == ["INTERRUPTED"], err
    until(lambda: not any(map(lives, pids)))


def test_the_compiler_goes_on_when_the_handler_raises_nothing(script, compiler, tmp_path):
    cc = compiler()
    driver = "signal.signal(signal.SIGINT, lambda number, frame: print('HANDLED', flush=True))\nrun()\nprint((outputs == 1).all())"
    s = script("", driver)
    process = s.start(group=True, **environment(tmp_path, cc))
    cc.wait_until_it_runs(process)
    os.kill(process.pid, signal.SIGINT)
    wait_for_line(process, "HANDLED")
    cc.let_it_go_on()
    out, err = process.communicate(timeout=PATIENCE)
    assert (out.split(), process.returncode) == (["True"], 0), err
