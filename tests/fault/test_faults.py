"""Programs that hang, crash, are killed or interrupted: the report names the place, and nothing is left."""

import os
import signal
import time
from pathlib import Path

import pytest
from processes import (
    PATIENCE,
    SIGNAL_NAMES,
    assert_all_gone,
    until,
    wait_for_death,
    wait_for_line,
    wait_for_workers,
    wait_until_it_runs,
    wait_until_it_sleeps,
    workers_of,
)

WAIT_FOR_NOBODY = "pld.system.wait(signal, [me, 0], 7, cmp=pld.WaitCmp.Ge)  # nobody"
COMPUTE = """
pl.printf("RUNNING\\n")
for i in pl.range(LONG):
    acc = pl.add(acc, acc)  # computing
"""
ONE_COMPUTES = """
pl.printf("RUNNING\\n")
if me == 1:
    for i in pl.range(LONG):
        acc = pl.add(acc, acc)  # computing
if me == 0:
    pld.system.wait(signal, [1, 0], 1, cmp=pld.WaitCmp.Ge)  # waiting
"""
IN_A_COLLECTIVE = """
pl.printf("RUNNING\\n")
if me == 1:
    for i in pl.range(LONG):
        acc = pl.add(acc, acc)  # computing
pld.tensor.allreduce(data, signal)  # joining
"""
IN_A_BROADCAST = """
pl.printf("RUNNING\\n")
if me == 1:
    for i in pl.range(LONG):
        acc = pl.add(acc, acc)  # computing
pld.tensor.broadcast(data, signal, root=1)  # joining
"""
COLLECTIVES = """
pl.printf("RUNNING\\n")
for i in pl.range(pl.cast(pl.read(inp, [0, 0]), pl.INT64)):
    pld.tensor.allreduce(data, signal)  # joining
    pld.tensor.barrier(signal)
"""
BROADCASTS = """
pl.printf("RUNNING\\n")
for i in pl.range(pl.cast(pl.read(inp, [0, 0]), pl.INT64)):
    pld.tensor.broadcast(data, signal, root=pl.cast(i % n, pl.INT32))  # joining
"""
BARRIER = """
for peer in pl.range(n):
    if peer != me:
        pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
for src in pl.range(n):
    if src != me:
        pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
"""

# Runs `run()`, prints the error's class and text, then checks that the next call of a good program
# still works (a new set of workers where the old one was lost).
CATCH = """
try:
    run()
except BaseException as error:
    print("RAISED", type(error).__mro__[0].__name__, isinstance(error, RuntimeError))
    print(error)
shutdown()
print("AFTER", len(os.listdir("/proc/self/fd")), "memfd" in open("/proc/self/maps").read())
"""


def test_deadlock_names_ranks_cells_values_and_lines(script):
    s = script(WAIT_FOR_NOBODY, CATCH, ranks=3)
    code, out, err = s.run()
    assert code == 0, err
    line = s.line_of("# nobody")
    assert "RAISED DeadlockError True" in out
    assert "3 of 3 ranks" in out
    for rank in range(3):
        assert f"rank {rank}: waits for 'signal_buf'[{rank}, 0] >= 7, which is 0 (parameter 'signal')" in out
    assert f"in step at {s.path}:{line}" in out
    assert f"{s.path}:{line}" in out.split("note:")[0]


def test_deadlock_through_threads(script):
    s = script(WAIT_FOR_NOBODY, CATCH)
    code, out, err = s.run(PYPTO_TRANSPORT="threads")
    assert code == 0, err
    assert "RAISED DeadlockError True" in out


def test_a_set_is_usable_after_a_deadlock(script):
    s = script(
        WAIT_FOR_NOBODY,
        """
        for i in range(5):
            try:
                run()
            except pypto.DeadlockError:
                print("DEADLOCK", i)
        """,
    )
    code, out, err = s.run()
    assert code == 0, err
    assert out.count("DEADLOCK") == 5


def test_a_computing_rank_is_no_deadlock(script):
    s = script(
        """
        if me == 1:
            for i in pl.range(200000000):
                acc = pl.mul(acc, 0.9999999)
            pld.system.notify(signal, peer=0, offsets=[1, 0], value=1, op=pld.NotifyOp.Set)
        if me == 0:
            pld.system.wait(signal, [1, 0], 1, cmp=pld.WaitCmp.Ge)
        """,
        """
        run()
        print("DONE", outputs[0].sum())
        """,
    )
    code, out, err = s.run()
    assert code == 0, err
    assert out == "DONE 64.0\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
@pytest.mark.parametrize(
    "body,mark,victim",
    [
        (ONE_COMPUTES, "# computing", 1),
        (ONE_COMPUTES, "# waiting", 0),
        (IN_A_COLLECTIVE, "# joining", 0),
        (IN_A_COLLECTIVE, "# computing", 1),
        (IN_A_BROADCAST, "# joining", 0),
    ],
)
def test_a_killed_worker_is_reported_with_rank_signal_and_line(script, number, body, mark, victim):
    s = script(body, 'print("GO", flush=True)\n' + CATCH)
    process = s.start()
    wait_for_line(process, "GO")
    pids = wait_for_workers(process.pid, 2)
    wait_until_it_runs(process, range(2))
    if mark != "# computing":
        wait_until_it_sleeps(pids[victim])
    os.kill(pids[victim], number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "RAISED WorkerDiedError True" in out
    assert f"rank {victim} (pid {pids[victim]}) died, signal {int(number)} ({SIGNAL_NAMES[number]})" in out
    assert f"in step at {s.path}:" in out
    if mark != "# computing":
        assert f"{s.path}:{s.line_of(mark)}" in out
    assert_all_gone(pids.values())


@pytest.mark.parametrize(
    "body",
    [ONE_COMPUTES, COMPUTE, IN_A_COLLECTIVE, IN_A_BROADCAST],
    ids=["in a wait", "in computing kernels", "in a collective", "in a broadcast"],
)
def test_ctrl_c_ends_the_call(script, body):
    s = script(
        body,
        """
        print("GO", flush=True)
        try:
            run()
        except KeyboardInterrupt:
            print("INTERRUPTED", flush=True)
        """,
    )
    process = s.start()
    wait_for_line(process, "GO")
    pids = wait_for_workers(process.pid, 2)
    wait_until_it_runs(process, range(2))
    for pid in [*pids.values(), process.pid]:  # the script last: its workers go with it
        os.kill(pid, signal.SIGINT)  # a terminal sends it to the whole group
    wait_for_line(process, "INTERRUPTED")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert_all_gone(pids.values())


BETWEEN_COLLECTIVES = """
inputs[:] = 2.0**60
print("GO", flush=True)  # what the ranks say from here on is of this call
try:
    run()
except BaseException as error:
    print("RAISED", type(error).__name__, flush=True)
    print(error)
inputs[:] = 7
run()
print("AGAIN", outputs.sum())
shutdown()
print("AFTER", "memfd" in open("/proc/self/maps").read())
"""


# A row of collectives, and its results of seven of them.
ROWS = pytest.mark.parametrize("row", [COLLECTIVES, BROADCASTS], ids=["collectives", "broadcasts"])


@ROWS
@pytest.mark.parametrize("transport", ["shm", "threads"])
def test_ctrl_c_between_collectives_leaves_usable_workers(script, transport, row):
    """All ranks are in an endless row of collectives; the next call has a short one on the same workers."""
    s = script(row, "inputs[:] = 1\nrun()\n" + BETWEEN_COLLECTIVES, ranks=3)
    process = s.start(PYPTO_TRANSPORT=transport)
    wait_for_line(process, "GO")
    pids = workers_of(process.pid)
    wait_until_it_runs(process, range(3))
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "RAISED KeyboardInterrupt" in out
    assert f"AGAIN {7 * 64 * 3}.0" in out and "AFTER False" in out
    assert "Traceback" not in err
    assert len(pids) == (3 if transport == "shm" else 0)
    assert_all_gone(pids.values())


@ROWS
@pytest.mark.parametrize("victim", [0, 2])
def test_a_rank_killed_between_collectives_is_replaced(script, victim, row):
    s = script(row, "inputs[:] = 1\nrun()\n" + BETWEEN_COLLECTIVES, ranks=3)
    process = s.start()
    wait_for_line(process, "GO")
    pids = wait_for_workers(process.pid, 3)
    wait_until_it_runs(process, range(3))
    os.kill(pids[victim], signal.SIGKILL)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "RAISED WorkerDiedError" in out
    assert f"rank {victim} (pid {pids[victim]}) died, signal 9 (SIGKILL)" in out
    assert f"in step at {s.path}:" in out
    assert f"AGAIN {7 * 64 * 3}.0" in out and "AFTER False" in out
    assert_all_gone(pids.values())


def test_workers_go_when_the_script_is_killed(script):
    s = script(ONE_COMPUTES, 'print("GO", flush=True)\nrun()')
    process = s.start()
    wait_for_line(process, "GO")
    pids = wait_for_workers(process.pid, 2)
    wait_until_it_runs(process, range(2))
    process.kill()
    process.communicate()
    assert_all_gone(pids.values())


def test_nothing_is_left_after_shutdown(script):
    s = script(
        BARRIER,
        """
        run()
        shutdown()
        before = len(os.listdir("/proc/self/fd"))
        for i in range(5):
            run()
            shutdown()
        print("FDS", before, len(os.listdir("/proc/self/fd")))
        print("MAPS", open("/proc/self/maps").read().count("memfd"))
        children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
        print("CHILDREN", len(children))
        """,
        ranks=4,
    )
    code, out, err = s.run()
    assert code == 0, err
    words = out.split()
    assert words[1] == words[2]
    assert words[words.index("MAPS") + 1] == "0"
    assert words[words.index("CHILDREN") + 1] == "0"


def test_workers_idle_without_cpu_and_end_with_the_script(script):
    s = script(BARRIER, 'run()\nprint("GO", flush=True)\nsys.stdin.read()')
    process = s.start()
    wait_for_line(process, "GO")
    pids = wait_for_workers(process.pid, 2)

    def ran():
        """How long they have run, and how often they have left a CPU."""
        times = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13] for pid in pids.values()]
        status = [Path(f"/proc/{pid}/status").read_text().splitlines() for pid in pids.values()]
        return times, [line for lines in status for line in lines if "ctxt_switches" in line]

    def idle_for_a_second():
        before = ran()
        time.sleep(1.0)
        return ran() == before

    until(idle_for_a_second, "a second in which no worker runs")
    process.communicate(input="")
    assert process.returncode == 0
    assert_all_gone(pids.values())


def test_a_forked_child_disowns_the_workers(script):
    s = script(
        BARRIER,
        """
        run()
        child = os.fork()
        if child == 0:
            outputs[:] = 0
            run()                      # workers of its own
            print("CHILD", outputs.sum(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        outputs[:] = 0
        run()                          # ours still serve
        print("PARENT", outputs.sum())
        """,
    )
    code, out, err = s.run()
    assert code == 0, err
    assert "CHILD 128.0" in out and "PARENT 128.0" in out


def test_an_idle_set_that_was_killed_is_replaced(script):
    s = script(BARRIER, 'run()\nprint("GO", flush=True)\ninput()\nrun()\nprint("AGAIN", outputs.sum())')
    process = s.start()
    wait_for_line(process, "GO")
    pids = workers_of(process.pid).values()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_for_death(pids)
    out, err = process.communicate(input="\n", timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "AGAIN 128.0" in out


def test_calls_from_several_threads(script):
    s = script(
        BARRIER,
        """
        results = []

        def work():
            mine = np.zeros_like(inputs)
            for i in range(20):
                mine[:] = 0
                host(inputs, mine, config=CONFIG)
                results.append(mine.sum() == 128)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print("RESULTS", len(results), all(results))
        """,
    )
    code, out, err = s.run()
    assert code == 0, err
    assert "RESULTS 80 True" in out


def test_closed_standard_descriptors_do_not_matter(script):
    s = script(
        BARRIER,
        """
        result = os.open("result.txt", os.O_CREAT | os.O_WRONLY)
        os.dup2(result, 20)
        os.close(result)
        for fd in (0, 1, 2):
            os.close(fd)
        run()
        os.write(20, f"{outputs.sum()}".encode())
        os._exit(0)
        """,
    )
    code, _, _ = s.run()
    assert code == 0
    assert (s.path.parent / "result.txt").read_text() == "128.0"
