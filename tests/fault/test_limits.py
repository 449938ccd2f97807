"""Limits of the process (ulimit): a call works within them or says what is missing, nothing is left behind then, and calls are
good again when the limit is gone."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from processes import PATIENCE, wait_until_it_runs, workers_of

BARRIER = """
for peer in pl.range(n):
    if peer != me:
        pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
for src in pl.range(n):
    if src != me:
        pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
"""
DRIVER = """
import resource

def state():
    children = open(f"/proc/self/task/{{os.getpid()}}/children").read().split()
    return len(children), len(os.listdir("/proc/self/fd")), open("/proc/self/maps").read().count("memfd")

def attempt(call):
    outputs[:] = 0
    try:
        call()
        return f"good {{(outputs == 1).all()}}"
    except Exception as error:
        return "failed " + " ".join(str(error).split())

compiled = host.compile(inputs, outputs, config=CONFIG)
compiled(inputs, outputs)
shutdown()
before = state()
worker = compiled.prepare() if {prepared} else None
if worker:
    worker(inputs, outputs)
which = resource.RLIMIT_{limit}
limits = resource.getrlimit(which)
here = len(os.listdir("/proc/self/fd")) - 1  # less the folder
resource.setrlimit(which, ({value}, limits[1]))
results = [attempt(lambda: (worker or compiled)(inputs, outputs)) for _ in range(2)]
shutdown()
resource.setrlimit(which, limits)
for result in results:
    print("WITHIN", result)
print("AFTER", attempt(lambda: compiled(inputs, outputs)))
if worker:
    print("WORKER", attempt(lambda: worker(inputs, outputs)))
    worker.close()
shutdown()
print("LEFT", [now - then for now, then in zip(state(), before)])
"""


@pytest.fixture
def within(script):
    """What two calls come to under a limit."""

    def run(limit, value, prepared=False):
        driver = DRIVER.format(limit=limit, value=value, prepared=prepared)
        code, out, err = script(BARRIER, driver).run(OPENBLAS_NUM_THREADS="1")  # its threads have stacks, one per CPU
        assert code == 0, err
        assert "AFTER good True" in out and "LEFT [0, 0, 0]" in out, out
        assert ("WORKER good True" in out) == prepared, out
        return [line.removeprefix("WITHIN ") for line in out.splitlines() if line.startswith("WITHIN")]

    return run


# The largest that the user may have: a thread with a stack of that size does not fit anywhere.
LARGE = "1 << 40 if limits[1] == resource.RLIM_INFINITY else limits[1]"


@pytest.mark.parametrize(
    "limit, value",
    [
        ("AS", 4 << 30),
        ("AS", 1 << 30),
        ("FSIZE", 64 << 20),
        ("NOFILE", "here + 24"),
        ("STACK", 64 << 10),
        ("STACK", LARGE),
        ("MEMLOCK", 0),
    ],
)
def test_a_limit_that_leaves_room(within, limit, value):
    assert within(limit, value) == ["good True"] * 2


@pytest.mark.parametrize(
    "limit, value, words",
    [
        ("AS", 64 << 20, "hint: raise `ulimit -v`, which is 65536"),
        ("STACK", 4096, "hint: raise `ulimit -s`, which is 4"),
        ("FSIZE", 0, "ulimit -f"),
        ("FSIZE", 4096, "cannot map at least 16 MiB of shared memory: File too large hint: raise `ulimit -f`, which is 4"),
        *[("NOFILE", f"here + {more}", "hint: raise `ulimit -n`, which is ") for more in range(7)],
    ],
)
def test_a_limit_that_does_not(within, limit, value, words):
    for result in within(limit, value):
        assert result.startswith("failed ") and words in result


@pytest.mark.parametrize("limit, value", [("AS", 64 << 20), ("FSIZE", 0), ("NOFILE", "here"), ("STACK", 4096)])
def test_a_worker_that_runs_needs_no_more(within, limit, value):
    assert within(limit, value, prepared=True) == ["good True"] * 2


def test_every_number_of_files(script):
    """From none to enough, in steps of one: whatever is the first that cannot be had."""
    driver = """
    import resource

    compiled = host.compile(inputs, outputs, config=CONFIG)
    compiled(inputs, outputs)
    shutdown()
    files = len(os.listdir("/proc/self/fd"))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for count in range(3, 41):
        outputs[:] = 0
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, most))
        try:
            compiled(inputs, outputs)
            result = "good" if (outputs == 1).all() else "wrong"
        except OSError as error:
            result = str(error).replace("\\n", " ")
        shutdown()
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        print(count, len(os.listdir("/proc/self/fd")) - files, result)
    """
    code, out, err = script(BARRIER, driver).run()
    assert code == 0, err
    results = [line.split(" ", 2) for line in out.splitlines()]
    assert [int(count) for count, _, _ in results] == list(range(3, 41))
    assert {left for _, left, _ in results} == {"0"}
    good = [count for count, _, result in results if result == "good"]
    assert good == [str(count) for count in range(int(good[0]), 41)]  # more is always as good
    for count, _, result in results[: -len(good)]:
        assert "Too many open files" in result and f"raise `ulimit -n`, which is {count}, or use fewer devices" in result


# ---- processes ----

PROCESSES = """
import resource

def children():
    return open(f"/proc/self/task/{{os.getpid()}}/children").read().split()

def attempt(call):
    outputs[:] = 0
    try:
        call()
        return f"good {{(outputs == 1).all()}}"
    except Exception as error:
        return " ".join(f"{{type(error).__name__}} {{error}}".split())

compiled = host.compile(inputs, outputs, config=CONFIG)
print("BEFORE", attempt(lambda: compiled(inputs, outputs)))
shutdown()
mine = len(os.listdir("/proc/self/task"))
most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
for more in range({more}):
    resource.setrlimit(resource.RLIMIT_NPROC, (mine + more, most))
    result = attempt(lambda: compiled(inputs, outputs))
    shutdown()
    while len(os.listdir("/proc/self/task")) > mine:  # threads that have been joined may count a little longer
        pass
    print("WITHIN", mine + more, children(), result)
resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
print("AFTER", attempt(lambda: compiled(inputs, outputs)))
"""


@pytest.fixture
def unprivileged(script):
    """Runs a script as a user whom the limit of processes binds, and of whom there are no other processes: as root another
    user, else the same in a user namespace."""
    folder = tempfile.mkdtemp()

    def run(text, program=None, **env):
        path = Path(folder) / "script.py"
        path.write_text(script(BARRIER, text).path.read_text() if program is None else program + textwrap.dedent(text))
        options = {}
        command = [sys.executable, str(path)]
        if os.geteuid() == 0:
            user = 20000 + os.getpid() % 40000  # another one in each run of the tests
            os.chmod(path, 0o644)
            try:
                os.chown(folder, user, user)
            except OSError as error:  # a container without other users
                pytest.skip(f"there is no other user here: {error}")
            options = {"user": user, "group": user, "extra_groups": []}
        else:
            command = ["unshare", "-r", *command]
        folders = {"HOME": folder, "TMPDIR": folder, "PYPTO_CACHE_DIR": f"{folder}/cache", "PYPTO_PROG_BUILD_DIR": f"{folder}/build"}
        env = {**os.environ, **folders, **env}
        options |= {"env": env, "cwd": folder, "capture_output": True, "text": True}
        probe = [*command[:-1], "-c", "import pypto.runtime, numpy"]
        try:
            done = subprocess.run(probe, **options)
        except OSError as error:
            pytest.skip(f"an unprivileged user cannot start Python here: {error}")
        if done.returncode != 0:
            pytest.skip(f"an unprivileged user cannot use pypto here: {done.stderr[-200:]}")
        done = subprocess.run(command, timeout=PATIENCE, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    yield run
    shutil.rmtree(folder)


@pytest.mark.parametrize("transport", ["shm", "threads"])
def test_a_limit_of_processes(unprivileged, transport):
    """Two ranks are four threads; of each that is one too many it is said."""
    before, *within, after = unprivileged(PROCESSES.format(more=8), PYPTO_TRANSPORT=transport)
    assert before == "BEFORE good True" and after == "AFTER good True"
    results = []
    for line in within:
        limit, children, result = re.fullmatch(r"WITHIN (\d+) (\[.*?\]) (.*)", line).groups()
        assert children == "[]"
        results.append(result)
        if result != "good True":
            assert "Resource temporarily unavailable" in result and f"raise `ulimit -u`, which is {limit}," in result
    assert results[0] != "good True" and results[4:] == ["good True"] * 4


SUB_WORKER = """
import os
import signal
import numpy as np
import pypto
import pypto.language as pl
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.runtime import shutdown


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64], pl.FP32], y: pl.Out[pl.Tensor[[64], pl.FP32]]):
        pl.store(pl.load(x, [0], [64]), [0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def step(y: pl.InOut[pl.Tensor[[64], pl.FP32]]):
        y *= 1

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, inputs: pl.Tensor[[64], pl.FP32], outputs: pl.Out[pl.Tensor[[64], pl.FP32]]):
        self.k(inputs, outputs)
        self.step(outputs)


class host:
    compile = lambda *args, config: ir.compile(P, platform="cpu", distributed_config=DistributedConfig(device_ids=[0, 1]))


CONFIG = None
inputs, outputs = np.ones(64, np.float32), np.zeros(64, np.float32)
"""


def test_a_limit_of_processes_for_sub_workers(unprivileged):
    """A SubWorker is a process of two threads as well. (torch would wait for ever for one that it cannot start.)"""
    before, *within, after = unprivileged(PROCESSES.format(more=9), program=SUB_WORKER)
    assert before == "BEFORE good True" and after == "AFTER good True"
    results = [re.fullmatch(r"WITHIN (\d+) \[\] (.*)", line).groups() for line in within]
    for limit, result in results[:6]:
        assert "Resource temporarily unavailable" in result and f"raise `ulimit -u`, which is {limit}," in result
    assert "SubWorker 0" in results[5][1] and [result for _, result in results[6:]] == ["good True"] * 3


def test_a_sub_worker_that_cannot_be_forked_again(unprivileged):
    """The worker goes on when there is room again."""
    driver = """
    import resource

    def attempt():
        outputs[:] = 0
        try:
            worker(inputs, outputs)
            return f"good {(outputs == 1).all()}"
        except Exception as error:
            return " ".join(str(error).split())

    def sub_worker():
        children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
        (pid,) = [pid for pid in children if "pypto-worker" not in open(f"/proc/{pid}/cmdline").read()]
        return int(pid)

    worker = host.compile(config=CONFIG).prepare()
    print(attempt())
    os.kill(sub_worker(), signal.SIGKILL)
    os.waitid(os.P_PID, sub_worker(), os.WEXITED | os.WNOWAIT)
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    resource.setrlimit(resource.RLIMIT_NPROC, (2, most))
    print(attempt())
    print(attempt())
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    print(attempt())
    worker.close()
    """
    first, *failed, last = unprivileged(driver, program=SUB_WORKER)
    assert first == last == "good True" and len(failed) == 2
    for result in failed:
        assert "cannot start the worker process (a copy of this program)" in result and "`ulimit -u`, which is 2," in result


def test_a_limit_of_processes_for_the_compiler(unprivileged):
    """Compiling needs a process, too; a later attempt is good."""
    driver = """
    import resource

    mine = len(os.listdir("/proc/self/task"))
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    resource.setrlimit(resource.RLIMIT_NPROC, (mine, most))
    try:
        host.compile(inputs, outputs, config=CONFIG)
    except Exception as error:
        print(type(error).__name__, " ".join(str(error).split()))
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    host.compile(inputs, outputs, config=CONFIG)(inputs, outputs)
    print((outputs == 1).all())
    """
    failed, good = unprivileged(driver)
    assert "Resource temporarily unavailable" in failed and "ulimit -u" in failed and good == "True"


# ---- what kernels take ----


@pytest.mark.parametrize(
    "taken, words",
    [
        ("t = pl.tile.full([1, 100 << 20], pl.FP32, 1.0)\nacc = pl.add(acc, t[0:1, 0:SIZE])", "no memory for its 400 MiB of tiles"),
        ("t = pl.create_tensor([1, 100 << 20], dtype=pl.FP32)\npl.store(acc, [0, 0], t)", "pl.create_tensor: no memory for"),
    ],
)
def test_address_space_for_kernels(script, taken, words):
    """Of what the machine has, but the limit of the address space forbids."""
    driver = """
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (400 << 20, most))
    try:
        run()
    except MemoryError as error:
        print(" ".join(str(error).split()))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    shutdown()
    run()
    print((outputs == 2).all() or (outputs == 1).all())
    """
    code, out, err = script(taken, driver, ranks=1).run(OPENBLAS_NUM_THREADS="1")
    assert code == 0, err
    failed, good = out.splitlines()
    assert words in failed and "see `ulimit -v`, which is 409600" in failed and good == "True"


# ---- fewer files than workers ----

FEWER = """
import resource

compiled = host.compile(inputs, outputs, config=CONFIG)
worker = compiled.prepare()
resource.setrlimit(resource.RLIMIT_NOFILE, (8, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    worker(inputs, outputs)
    print("GOOD", (outputs == 1).all())
except Exception as error:
    print(type(error).__name__, error)
    worker.close()
"""


def test_a_call_of_more_workers_than_files(script):
    """The limit was lowered behind their start: poll() takes no more entries than that."""
    code, out, err = script(BARRIER, FEWER, ranks=12).run()
    assert code == 0 and out == "GOOD True\n", out + err


def test_the_end_of_one_of_more_workers_than_files(script):
    running = script('pl.printf("RUNNING\\n")\nfor i in pl.range(LONG):\n    acc = pl.add(acc, inp[:])', FEWER, ranks=12)
    process = running.start()
    wait_until_it_runs(process, range(12))
    os.kill(workers_of(process.pid)[7], signal.SIGKILL)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and "WorkerDiedError" in out and "rank 7" in out, out + err


# ---- file systems ----


@pytest.fixture
def mounted():
    """The words in front of a command that runs it with a small file system at a place."""

    def command(place, options):
        Path(place).mkdir(exist_ok=True)
        mount = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o {options} none "$0" && exec "$@"', str(place)]
        probe = subprocess.run([*mount, "true"], capture_output=True, text=True)
        if probe.returncode != 0:
            pytest.skip(f"file systems cannot be mounted here: {probe.stderr.strip()}")
        return mount

    if shutil.which("unshare") is None:
        pytest.skip("file systems cannot be mounted here: there is no unshare")
    return command


def run_mounted(script, mount, **env):
    code, out, err = script.run(command=[*mount, sys.executable, str(script.path)], **env)
    assert code == 0, err
    return out.splitlines()


ATTEMPT = """
import warnings
warnings.simplefilter("always")
warnings.showwarning = lambda message, kind, *rest: print("WARNING", message)

def attempt(call):
    outputs[:] = 0
    try:
        call()
        print("good", (outputs == 1).all())
    except Exception as error:
        print(type(error).__name__, " ".join(str(error).split()))
"""


@pytest.mark.parametrize("options", ["size=4k", "size=4k,nr_inodes=2", "ro"])
def test_nothing_is_needed_of_dev_shm(script, mounted, options):
    driver = ATTEMPT + """
shared = pypto.runtime.empty_shared(inputs.shape, np.float32)
shared[:] = 1
attempt(lambda: host(inputs, outputs, config=CONFIG))
attempt(lambda: host(shared, outputs, config=CONFIG))
"""
    assert run_mounted(script(BARRIER, driver), mounted("/dev/shm", options)) == ["good True"] * 2


@pytest.mark.parametrize(
    "options, words",
    [("size=4k", "No space left"), ("size=16k", "No space left"), ("size=1m,nr_inodes=3", "No space left"), ("ro", "Read-only")],
)
def test_an_output_directory_without_room(script, mounted, tmp_path, options, words):
    """The program is in the cache, so the call is good."""
    place = tmp_path / "place"
    driver = ATTEMPT + "attempt(lambda: host.compile(inputs, outputs, config=CONFIG)(inputs, outputs))\n"
    warning, good = run_mounted(script(BARRIER, driver), mounted(place, options), PYPTO_PROG_BUILD_DIR=str(place))
    assert words in warning and "set PYPTO_PROG_BUILD_DIR" in warning and good == "good True"


@pytest.mark.parametrize(
    "options, words",
    [
        ("size=4k", "No space left on device hint: free some space on that file system"),
        ("size=16k", "No space left on device hint: free some space on that file system"),
        ("size=1m,nr_inodes=3", "No space left on device hint: free some space on that file system"),
        ("ro", "Read-only file system hint: choose a directory on a file system that can be written to"),
    ],
)
def test_records_without_room(script, mounted, tmp_path, options, words):
    """Told when the call is over; nothing half-written is left, the next call is good."""
    driver = ATTEMPT + f"""
compiled = host.compile(inputs, outputs, config=CONFIG)
RECORDS = RunConfig(
    platform="cpu", enable_chip_swimlane=True, enable_dep_gen=True, enable_scope_stats=True, enable_dump_args=2
)
records = compiled.output_dir / "dfx_outputs"
records.mkdir()
assert os.system(f"mount -t tmpfs -o {options} none {{records}}") == 0
attempt(lambda: compiled(inputs, outputs, config=RECORDS))
print("LEFT", [name for _, _, files in os.walk(records) for name in files if name.endswith(".tmp")])
attempt(lambda: compiled(inputs, outputs))
"""
    failed, left, good = run_mounted(script(BARRIER, driver), mounted(tmp_path / "place", options))
    assert failed.startswith("SystemError cannot ") and words in failed
    assert left == "LEFT []" and good == "good True"


def test_folders_that_go_or_may_not_be_used(unprivileged):
    """What a call does not need it does without; records are told to be missing, and come again with their folder."""
    driver = ATTEMPT + """
import shutil

RECORDS = RunConfig(platform="cpu", enable_chip_swimlane=True, enable_dep_gen=True)
compiled = host.compile(inputs, outputs, config=CONFIG)
folder = compiled.output_dir
records = folder / "dfx_outputs"
recorded = lambda: compiled(inputs, outputs, config=RECORDS)
plain = lambda: compiled(inputs, outputs)
attempt(recorded)
shutil.rmtree(folder)
attempt(recorded)  # makes it again
shutdown()
attempt(plain)
for place, mode in ((records, 0o500), (records, 0), (folder, 0)):
    os.chmod(place, mode)
    attempt(recorded)
    shutdown()
    attempt(plain)
    os.chmod(place, 0o700)
attempt(recorded)
cache = os.environ["PYPTO_CACHE_DIR"] + "/v1"
os.chmod(cache, 0o500)
os.makedirs("gone")
os.chdir("gone")
os.rmdir("../gone")
OTHER = RunConfig(platform="a2a3sim", distributed_config=CONFIG.distributed_config)
attempt(lambda: host(inputs, outputs, config=OTHER))
os.chmod(cache, 0o700)
"""
    out = [line for line in unprivileged(driver) if not line.startswith("WARNING")]
    assert out[:3] == ["good True"] * 3 and out[4::2] == ["good True"] * 4 and len(out) == 11
    for failed in out[3:9:2]:
        assert failed.startswith("SystemError cannot") and "dfx_outputs" in failed
        assert "Permission denied hint: look at the permissions of that path" in failed
    assert out[9:] == ["good True"] * 2
