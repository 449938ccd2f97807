"""Limits of the process (ulimit): a call works within them or says what is missing, nothing is left behind then, and calls are
good again when the limit is gone."""

import pytest

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
        code, out, err = script(BARRIER, driver).run()
        assert code == 0, err
        assert "AFTER good True" in out and "LEFT [0, 0, 0]" in out, out
        assert ("WORKER good True" in out) == prepared, out
        return [line.removeprefix("WITHIN ") for line in out.splitlines() if line.startswith("WITHIN")]

    return run


@pytest.mark.parametrize("limit, value", [("AS", 4 << 30), ("AS", 1 << 30), ("FSIZE", 64 << 20), ("NOFILE", "here + 24")])
def test_a_limit_that_leaves_room(within, limit, value):
    assert within(limit, value) == ["good True"] * 2


@pytest.mark.parametrize(
    "limit, value, words",
    [
        ("AS", 64 << 20, "ulimit -v"),
        ("FSIZE", 0, "ulimit -f"),
        ("FSIZE", 4096, "cannot map shared memory: File too large"),
        *[("NOFILE", f"here + {more}", "ulimit -n") for more in range(7)],
    ],
)
def test_a_limit_that_does_not(within, limit, value, words):
    for result in within(limit, value):
        assert result.startswith("failed ") and words in result


@pytest.mark.parametrize("limit, value", [("AS", 64 << 20), ("FSIZE", 0), ("NOFILE", "here")])
def test_a_worker_that_runs_needs_no_more(within, limit, value):
    assert within(limit, value, prepared=True) == ["good True"] * 2
