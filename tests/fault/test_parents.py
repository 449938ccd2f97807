"""What the calling program may be doing: threads of its own, forks, processes of multiprocessing, several worker sets; Ctrl-C in
every state; memory that does not suffice. Calls are right, and in the end nothing is left."""

import os
import signal

import pytest
from processes import PATIENCE, assert_all_gone, until, wait_for_line, wait_until_it_runs, wait_until_it_sleeps

BARRIER = """
for peer in pl.range(n):
    if peer != me:
        pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
for src in pl.range(n):
    if src != me:
        pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
"""
# Computes for as long as its input says; says when it does.
COMPUTE = """
if pl.read(inp, [0, 0]) > 1000.0:
    pl.printf("RUNNING\\n")
for i in pl.range(pl.cast(pl.read(inp, [0, 0]), pl.INT64)):
    acc = pl.mul(acc, 0.9999999)
"""
HELPERS = """
compiled = host.compile(inputs, outputs, config=CONFIG)

def good(call, times=5):
    for k in range(times):
        x = np.full_like(inputs, k)
        y = np.zeros_like(x)
        call(x, y)
        if not (y == x).all():
            return False
    return True

def left():
    children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    return len(children), open("/proc/self/maps").read().count("memfd")
"""
ALL_KINDS = """
with compiled.prepare() as worker, compiled.prepare() as other:
    print("PREPARED", good(worker), good(other))
    h = [worker.submit(compiled, inputs, outputs), other.submit(compiled, inputs, np.zeros_like(outputs))]
    print("SUBMITTED", [x.result() for x in h], (outputs == 1).all())
    print("ONE-SHOT", good(compiled))
"""
BUSY = {
    "OpenBLAS": """
a = np.random.rand(600, 600)
stop = False
def busy():
    while not stop:
        a @ a
a @ a
""",
    "torch with two threads": """
import torch
torch.set_num_threads(2)
a = torch.rand(600, 600)
stop = False
def busy():
    while not stop:
        a @ a
a @ a
""",
    "Python": """
stop = False
def busy():
    n = 0
    while not stop:
        n += 1
""",
}


@pytest.mark.parametrize("transport", ["shm", "threads"])
@pytest.mark.parametrize("kind", BUSY)
def test_threads_that_are_busy(script, kind, transport):
    s = script(
        BARRIER,
        HELPERS + BUSY[kind] + "threads = [threading.Thread(target=busy) for _ in range(2)]\n"
        "for t in threads: t.start()\n"
        "try:\n" + "".join(f"    {line}\n" for line in ALL_KINDS.strip().splitlines()) + "finally:\n    stop = True\n"
        "for t in threads: t.join()\nshutdown()\nprint('LEFT', left())",
    )
    code, out, err = s.run(PYPTO_TRANSPORT=transport)
    assert code == 0, err
    assert "PREPARED True True" in out and "SUBMITTED [None, None] True" in out and "ONE-SHOT True" in out
    assert "LEFT (0, 0)" in out


CHILDREN = {
    "that does nothing": "os._exit(0)",
    "that ends as Python does": "sys.exit(0)",
    "that closes the worker": "worker.close(); os._exit(0)",
    "that drops the worker": "del worker; import gc; gc.collect(); os._exit(0)",
    "that may not use it": """
try:
    worker(inputs, outputs)
    os._exit(1)
except RuntimeError as error:
    os._exit(0 if "belongs to the process" in str(error) else 2)
""",
    "with calls of its own": "os._exit(0 if good(compiled) else 1)",
    "with a worker of its own": """
with compiled.prepare() as own:
    fine = good(own)
shutdown()
os._exit(0 if fine and left()[0] == 0 else 1)
""",
}


@pytest.mark.parametrize("transport", ["shm", "threads"])
@pytest.mark.parametrize("child", CHILDREN)
def test_a_forked_child(script, child, transport):
    """With a call in flight. The parent's workers go on, whatever it does."""
    body = "".join(f"    {line}\n" for line in CHILDREN[child].strip().splitlines())
    s = script(
        BARRIER,
        HELPERS
        + "good(compiled)\nworker = compiled.prepare()\nhandle = worker.submit(compiled, inputs, outputs)\n"
        + f"child = os.fork()\nif child == 0:\n{body}"
        + """
print("CHILD", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
handle.result()
print("RESULT", (outputs == 1).all(), good(worker), good(compiled))
worker.close()
shutdown()
print("LEFT", left())
""",
    )
    code, out, err = s.run(PYPTO_TRANSPORT=transport)
    assert code == 0, err
    assert "CHILD 0" in out and "RESULT True True True" in out and "LEFT (0, 0)" in out
    assert "Traceback" not in err


POOLS = {
    "Pool": "context.Pool(2) as pool",
    "ProcessPoolExecutor": "concurrent.futures.ProcessPoolExecutor(2, context) as pool",
}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing(script, method, pool):
    s = script(
        BARRIER,
        HELPERS
        + f"""
import concurrent.futures, multiprocessing

def job(number):
    with compiled.prepare() as worker:
        return number, good(worker), good(compiled, 2)

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    with compiled.prepare() as worker, {POOLS[pool]}:
        good(worker)
        results = pool.map_async(job, range(4)) if hasattr(pool, "map_async") else pool.map(job, range(4))
        print("OURS", good(worker, 20))
        print("THEIRS", results.get() if hasattr(results, "get") else list(results))
        if hasattr(pool, "close"):
            pool.close()
            pool.join()
    shutdown()
    if "{method}" == "fork":
        print("LEFT", left())
    else:  # its resource tracker and its server stay
        print("MAPS", left()[1])
""",
    )
    code, out, err = s.run()
    assert code == 0, err
    assert "OURS True" in out and "THEIRS " + str([(k, True, True) for k in range(4)]) in out
    assert "LEFT (0, 0)" in out or "MAPS 0" in out


def test_other_threads_run_while_one_waits_and_sets_do_not_wait_for_each_other(script):
    s = script(
        COMPUTE,
        HELPERS
        + """
endless = np.full_like(inputs, 2.0**60)
short = np.zeros_like(inputs)
with compiled.prepare() as one, compiled.prepare() as other:
    one(short, outputs), other(short, outputs)
    def short_calls():
        sys.stdin.readline()
        for k in range(5):
            other(short, outputs)
            print("SHORT", k, flush=True)
    t = threading.Thread(target=short_calls)
    t.start()
    try:
        one(endless, outputs)
    except KeyboardInterrupt:
        print("INTERRUPTED", flush=True)
    t.join()
""",
    )
    process = s.start()
    wait_until_it_runs(process, range(2))
    wait_until_it_sleeps(process.pid)
    process.stdin.write("\n")
    process.stdin.flush()
    for k in range(5):
        wait_for_line(process, f"SHORT {k}")
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert out == "INTERRUPTED\n"


STATES = {
    "run": "worker(inputs, outputs)",
    "submit of a third": "[worker.submit(compiled, inputs, np.zeros_like(outputs)) for _ in range(3)]",
    "result": "worker.submit(compiled, inputs, outputs).result()",
    "wait with a limit": "worker.submit(compiled, inputs, outputs).wait(100000)",
    "done": """
handle = worker.submit(compiled, inputs, outputs)
try:
    while not handle.done:
        pass
except KeyboardInterrupt:  # of this loop, not of the call
    print("LOOKED", flush=True)
    handle.result()
""",
    "close": "worker.submit(compiled, inputs, outputs); worker.close()",
    "free": """
pointer = worker.malloc(64)
worker.submit(compiled, inputs, outputs)
worker.free(pointer)
""",
    "copy behind a call": """
pointer = worker.malloc(64)
worker.submit(compiled, inputs, outputs)
worker.copy_from(inputs.ctypes.data, pointer, 64)
""",
    "benchmark": "pypto.runtime.benchmark(compiled, (inputs, outputs), rounds=2, warmup=0)",
    "one-shot": "compiled(inputs, outputs)",
    "the turn of another thread": """
def theirs():
    try:
        worker(inputs, np.zeros_like(outputs))
    except BaseException as error:  # Ctrl-C ends all that is in flight
        print("THEIRS", type(error).__name__, flush=True)
t = threading.Thread(target=theirs)
t.start()
sys.stdin.readline()  # it is the other thread's turn
worker(inputs, outputs)
""",
}


@pytest.mark.parametrize("transport", ["shm", "threads"])
@pytest.mark.parametrize("state", STATES)
def test_ctrl_c_in_every_state(script, state, transport):
    body = "".join(f"        {line}\n" for line in STATES[state].strip().splitlines())
    s = script(
        COMPUTE,
        HELPERS
        + f"""
worker = compiled.prepare()
worker(np.zeros_like(inputs), outputs), compiled(np.zeros_like(inputs), outputs)
inputs[:] = 2.0**60
try:
    if True:
{body}
except KeyboardInterrupt:
    print("INTERRUPTED", flush=True)
for t in threading.enumerate():
    if t is not threading.current_thread():
        t.join()
inputs[:] = 0
if not worker.closed:
    try:
        worker(inputs, outputs)
    except RuntimeError as error:
        print("CLOSED", str(error).splitlines()[0])
try:
    worker.close()
except BaseException as error:
    print("CLOSE RAISED", type(error).__name__)
with compiled.prepare() as worker:
    print("NEXT", good(lambda x, y: (worker(np.zeros_like(x), y), np.copyto(y, x))))
compiled(inputs, outputs)
shutdown()
print("LEFT", left())
""",
    )
    process = s.start(PYPTO_TRANSPORT=transport)
    wait_until_it_runs(process, range(2))
    if state == "the turn of another thread":
        process.stdin.write("\n")
        process.stdin.flush()
    if state == "done":  # looks again and again
        os.kill(process.pid, signal.SIGINT)
        wait_for_line(process, "LOOKED")
    wait_until_it_sleeps(process.pid)
    os.kill(process.pid, signal.SIGINT)
    wait_for_line(process, "INTERRUPTED")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "NEXT True" in out and "LEFT (0, 0)" in out
    assert "Traceback" not in err


def test_ctrl_c_while_the_compiler_runs(script, tmp_path):
    """From a terminal, which sends it to the compiler as well."""
    compiler, started = tmp_path / "cc", tmp_path / "started"
    compiler.write_text(f"#!/bin/sh\ntouch {started}\nexec sleep 1000\n")
    compiler.chmod(0o700)
    s = script(
        BARRIER,
        """
try:
    run()
except KeyboardInterrupt:
    print("INTERRUPTED")
os.environ["PYPTO_CC"] = "cc"
run()
shutdown()
children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
print("AFTER", (outputs == 1).all(), children)
""",
    )
    process = s.start(group=True, PYPTO_CC=str(compiler), PYPTO_CACHE_DIR=str(tmp_path / "cache"))
    until(started.exists)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert out == "INTERRUPTED\nAFTER True []\n"


def test_many_calls_need_no_more(script):
    """Of each kind, those that fail among them."""
    s = script(
        "if pl.read(inp, [0, 0]) < 0.0:\n    acc = pl.load(inp, [0, pl.cast(n, pl.INDEX) * 1000], [1, SIZE])\n" + BARRIER,
        HELPERS
        + """
import gc
def resources():
    gc.collect()
    maps = sum(1 for _ in open("/proc/self/maps"))
    return len(os.listdir("/proc/self/fd")), maps, int(open("/proc/self/statm").read().split()[1]) * 4096

bad = np.full_like(inputs, -1)
def calls(number):
    for _ in range(number):
        for call in (compiled, worker, lambda x, y: host(x, y, config=CONFIG), lambda x, y: worker.submit(compiled, x, y).result()):
            call(inputs, outputs)
            try:
                call(bad, outputs)
            except pypto.DeviceError:
                continue
            print("NO ERROR")

with compiled.prepare() as worker:
    calls(20)
    before = resources()
    calls(100)
    print("GROWN", *[now - then for now, then in zip(resources(), before)])
shutdown()
print("LEFT", left())
""",
    )
    code, out, err = s.run()
    assert code == 0, err
    fds, maps, memory = map(int, out.split("GROWN ")[1].split()[:3])
    assert fds == 0 and maps <= 2 and memory < 2 << 20, out
    assert "NO ERROR" not in out and "LEFT (0, 0)" in out


@pytest.mark.parametrize("transport", ["shm", "threads"])
def test_memory_that_does_not_suffice(script, transport):
    """An argument larger than the machine: the call fails, the worker goes on."""
    s = script(
        BARRIER,
        HELPERS
        + """
import mmap
from pypto.runtime import empty_shared

@pl.jit.incore
def touch(x: pl.Tensor[[SIZE], pl.FP32]):
    pass

@pl.jit
def touch_chip(x: pl.Tensor[[SIZE], pl.FP32]):
    touch(x)

MANY = pl.dynamic("MANY")

@pl.jit.host
def wide(x: pl.Tensor[[NR, MANY], pl.FP32]):
    for r in pl.range(2):
        touch_chip(x[r, 0:SIZE], device=r)

big = wide.compile(config=CONFIG)
private = np.frombuffer(mmap.mmap(-1, 1 << 38, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000), np.float32)
with compiled.prepare(extra_compiled=[big]) as worker:
    for k in range(3):
        try:
            worker.run(big, private.reshape(2, -1))
        except MemoryError as error:
            print("MEMORY", "MiB" in str(error))
        try:
            empty_shared(1 << 45, np.int8)
        except MemoryError as error:
            print("MEMORY", "MiB" in str(error) or "larger" in str(error))
        print("GOOD", good(lambda x, y: worker.run(compiled, x, y)))
shutdown()
print("LEFT", left())
""",
    )
    code, out, err = s.run(PYPTO_TRANSPORT=transport)
    assert code == 0, err
    assert out.count("MEMORY True") == 6 and out.count("GOOD True") == 3 and "LEFT (0, 0)" in out


def test_a_process_that_is_killed_in_a_call_leaves_nothing(script):
    s = script(COMPUTE, HELPERS + 'worker = compiled.prepare()\ninputs[:] = 2.0**60\nh = worker.submit(compiled, inputs, outputs)\nprint("GO", *worker._native.pids, flush=True)\nh.result()')
    process = s.start()
    pids = [int(word) for word in wait_for_line(process, "GO").split()[1:]]
    process.kill()
    process.communicate()
    assert_all_gone(pids)
