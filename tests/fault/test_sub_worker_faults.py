"""SubWorkers that exit, are killed, hang, or are forked while other threads are busy: one call fails, and nothing is left."""

import os
import re
import signal

import pytest
from processes import PATIENCE, assert_all_gone, wait_for_line

SCRIPT = '''
import os, signal, sys, threading, time
import numpy as np
{imports}
import pypto
import pypto.language as pl
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.runtime import empty_shared, shutdown

marks = empty_shared((4,), np.int64)


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64], pl.FP32], y: pl.Out[pl.Tensor[[64], pl.FP32]]):
        pl.store(pl.add(pl.load(x, [0], [64]), 1.0), [0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def step(y: pl.InOut[pl.Tensor[[64], pl.FP32]]):
        what()
        y *= 2

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[64], pl.FP32], y: pl.Out[pl.Tensor[[64], pl.FP32]]):
        self.k(x, y)
        self.step(y)
        self.k(y, y)


program = ir.compile(P, platform="cpu", distributed_config=DistributedConfig(device_ids=[0, 1]))
x, y = np.ones(64, np.float32), np.zeros(64, np.float32)


def what():
    if marks[0] == 1:
        os._exit(7)
    if marks[0] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if marks[0] == 3:
        marks[1] = os.getpid()
        while True:
            pass
    if marks[0] == 4:
        marks[1] = os.getpid()
        time.sleep(1000)
    if marks[0] == 5:
        os.closerange(0, 1 << 16)
    if marks[0] == 6:
        os.closerange(3, 1 << 16)
        for k in range(40):  # other files, with the numbers of those that were closed
            os.open("others", os.O_CREAT | os.O_RDWR)


def check(run=program):
    marks[0] = 0
    y[:] = 0
    run(x, y)
    assert (y == 5).all(), y


def left():
    shutdown()
    try:
        os.waitpid(-1, os.WNOHANG)
        print("CHILDREN")
    except ChildProcessError:
        pass
    print("LEFT", len(os.listdir("/proc/self/fd")), open("/proc/self/maps").read().count("pypto-segment"))


check()
left()
{driver}
left()
'''


@pytest.fixture
def sub_script(as_script):
    return lambda driver, imports="": as_script(SCRIPT.format(driver=driver, imports=imports))


def finished(s, **env):
    code, out, err = s.run(**env)
    assert code == 0, err
    assert "Traceback" not in err
    lines = [line for line in out.splitlines() if line.startswith("LEFT")]
    assert "CHILDREN" not in out and len(set(lines)) == 1 and lines[0].endswith(" 0"), out
    return out


CLOSES = "ended, because the function closed file descriptors of the runtime"
DIES = """
for one_shot in (True, False, False):
    worker = None if one_shot else program.prepare()
    run = worker or program
    for k in range(3):
        marks[0] = {what}
        try:
            run(x, y)
        except pypto.WorkerDiedError as error:
            print("DIED", error)
        check(run)
    if worker:
        worker.close()
"""


@pytest.mark.parametrize("what, words", [(1, "exit code 7"), (2, "signal 9 (SIGKILL)"), (5, CLOSES), (6, CLOSES)])
def test_a_death_costs_its_call(sub_script, what, words):
    out = finished(sub_script(DIES.format(what=what)))
    assert out.count("DIED") == out.count("step failed on SubWorker 0: its process (pid ") == 9
    assert len(re.findall(rf"\(pid \d+\) (died, )?{re.escape(words)}", out)) == 9
    assert out.count("exited before mailbox completion: ") == 9


def test_killed_between_calls(sub_script):
    finished(
        sub_script(
            """
with program.prepare() as worker:
    for k in range(3):
        check(worker)
        (old,) = worker._native.sub_pids
        os.kill(old, signal.SIGKILL)
        os.waitid(os.P_PID, old, os.WEXITED | os.WNOWAIT)
        check(worker)
        assert worker._native.sub_pids != [old]
"""
        )
    )


HANGS = """
for one_shot in (True, False):
    worker = None if one_shot else program.prepare()
    run = worker or program
    marks[0], marks[1] = {what}, 0
    threading.Thread(target=waited).start()
    try:
        run(x, y)
    except KeyboardInterrupt:
        print("INTERRUPTED", flush=True)
    assert not os.path.exists(f"/proc/{{marks[1]}}")
    check(run)
    if worker:
        worker.close()
"""
WAITED = """
def hangs():
    while marks[1] == 0:
        time.sleep(0.01)


def waited():
    hangs()
    os.kill(os.getpid(), signal.SIGINT)


"""


@pytest.mark.parametrize("what", [3, 4])
def test_ctrl_c_ends_what_hangs(sub_script, what):
    out = finished(sub_script(WAITED + HANGS.format(what=what)))
    assert out.count("INTERRUPTED") == 2


BUSY = """
stop = False
printed = 0


def busy(prints):
    global printed
    while not stop or printed < 100:
        if prints:  # only one: threads that write at the same time garble what they write, in this Python
            sys.stdout.write(f"busy {printed}\\n")
            printed += 1
        sorted(range(1000))


threads = [threading.Thread(target=busy, args=(k == 0,)) for k in range(3)]
for t in threads:
    t.start()
while printed == 0:
    pass
for k in range(30):
    check()
with program.prepare() as worker:
    for k in range(30):
        check(worker)
stop = True
for t in threads:
    t.join()
print()
"""
POOLS = """
a = torch.ones(400, 400)
assert torch.get_num_threads() == 2
(a @ a).exp().sum()
(np.ones((400, 400)) @ np.ones((400, 400))).sum()


def what():
    assert torch.get_num_threads() == 1
    assert (a @ a)[0, 0] == 400 and (a @ a).exp().isinf().all()
    assert (np.ones((400, 400)) @ np.ones((400, 400)))[0, 0] == 400


for k in range(5):
    check()
with program.prepare() as worker:
    for k in range(5):
        check(worker)
assert torch.get_num_threads() == 2
(a @ a).exp().sum()
"""


def test_forks_while_threads_are_busy(sub_script):
    """They print: a SubWorker waits for none of them, and prints nothing of theirs."""
    lines = [line for line in finished(sub_script(BUSY)).splitlines() if line.startswith("busy")]
    assert len(lines) >= 100 and lines == [f"busy {k}" for k in range(len(lines))]


def test_forks_after_thread_pools_were_used(sub_script):
    pytest.importorskip("torch")
    finished(sub_script(POOLS, "import torch\ntorch.set_num_threads(2)"))


def test_the_parent_is_killed(sub_script):
    s = sub_script(WAITED + "marks[0] = 3\nprint('GO', flush=True)\nthreading.Thread(target=lambda: (hangs(), print('SUB', marks[1], flush=True))).start()\nprogram(x, y)")
    process = s.start()
    wait_for_line(process, "GO")
    pid = int(wait_for_line(process, "SUB").split()[1])
    assert pid > 0 and os.path.exists(f"/proc/{pid}")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert_all_gone([pid])


def test_nothing_grows(sub_script):
    finished(
        sub_script(
            """
def memory():
    return int(open("/proc/self/statm").read().split()[1]) * 4096


for k in range(10):
    check()
before = memory()
for k in range(60):
    check()
assert memory() - before < 4 << 20, memory() - before
"""
        )
    )
