"""Ctrl-C, and other signals, while a call waits or computes. Each script sends the signal to itself
from a thread once the call waits, and prints how it ended."""

import os
import subprocess
import sys

import pytest

PROGRAM = """\
import os, signal, sys
sys.path.insert(0, {folder!r})
import numpy as np
import pypto.language as pl, pypto.language.distributed as pld
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig
from waiting_threads import send

NR = pl.dynamic("NR")

@pl.jit.incore
def kernel(
    x: pl.Tensor[[4096], pl.FP32],
    y: pl.Out[pl.Tensor[[4096], pl.FP32]],
    rounds: pl.Tensor[[4096], pl.FP32],
    signal: pl.InOut[pld.DistributedTensor[[NR], pl.INT32]],
    busy: pl.Scalar[pl.INT64],
):
    ctx = pld.get_comm_ctx(signal)
    acc = pl.load(x, [0], [4096])
    for i in pl.range(busy):
        acc = pl.add(acc, 1.0)
    if pld.rank(ctx) == 0:
        pld.system.notify(signal, peer=1, offsets=[0], value=1, op=pld.NotifyOp.AtomicAdd)
    else:
        pld.system.wait(signal, offsets=[0], expected=1, cmp=pld.WaitCmp.Ge)
    pl.store(acc, [0], y)

@pl.jit
def wrapper(
    x: pl.Tensor[[4096], pl.FP32],
    y: pl.Out[pl.Tensor[[4096], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR], pl.INT32]],
    busy: pl.Scalar[pl.INT64],
):
    kernel(x, y, x, signal, busy)

@pl.jit.host
def host(
    x: pl.Tensor[[NR, 4096], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 4096], pl.FP32]],
    busy0: pl.Scalar[pl.INT64],
    busy1: pl.Scalar[pl.INT64],
):
    buffer = pld.alloc_window_buffer(2 * pl.INT32.get_byte())
    signal = pld.window(buffer, [2], dtype=pl.INT32)
    wrapper(x[0], y[0], signal, busy0, device=0)
    wrapper(x[1], y[1], signal, busy1, device=1)

cfg = RunConfig(platform="cpu", distributed_config=DistributedConfig(device_ids=[0, 1]))
x = np.zeros((2, 4096), np.float32)
y = np.zeros_like(x)
host(x, y, 1, 1, config=cfg)  # compiled, and the workers are up
FOREVER = 2**60

def after_it():
    \"\"\"The next call works.\"\"\"
    host(x, y, 1, 2, config=cfg)
    assert (y[0] == 1).all() and (y[1] == 2).all()
"""


def run(script, transport):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(folder=os.path.dirname(__file__)) + script],
        env={**os.environ, "PYPTO_TRANSPORT": transport},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_ctrl_c_while_one_rank_computes_and_one_waits():
    words = run(
        """
send(signal.SIGINT)
try:
    host(x, y, FOREVER, 1, config=cfg)
except KeyboardInterrupt:
    print("interrupted")
after_it()
""",
        "shm",
    )
    assert words == ["interrupted"]


def test_the_exception_of_a_signal_handler_ends_the_call():
    words = run(
        """
def handler(number, frame):
    raise LookupError("mine")
signal.signal(signal.SIGUSR1, handler)
send(signal.SIGUSR1, 0.01)
try:
    host(x, y, FOREVER, FOREVER, config=cfg)
except LookupError as error:
    print(error)
after_it()
""",
        "shm",
    )
    assert words == ["mine"]


@pytest.mark.parametrize("transport", ["shm", "threads"])
def test_a_signal_handler_that_returns_does_not(transport):
    words = run(
        """
seen = []
signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
sender = send(signal.SIGUSR1, 0.01)
host(x, y, 2_000_000, 1, config=cfg)
sender.join()
print(len(seen), (y[0] == 2_000_000).all())
after_it()
""",
        transport,
    )
    assert words == ["1", "True"]


@pytest.mark.parametrize("transport", ["shm", "threads"])
def test_ctrl_c_ends_a_computing_kernel_without_killing_it(transport):
    words = run(
        """
def children():
    return open(f"/proc/self/task/{os.getpid()}/children").read().split()
before = children()
send(signal.SIGINT)
try:
    host(x, y, FOREVER, FOREVER, config=cfg)
except KeyboardInterrupt:
    print("interrupted")
after_it()
print(children() == before)
""",
        transport,
    )
    assert words == ["interrupted", "True"]


# Adds of bytes, because copying would be over too soon. Both ways of walking over a box: one run, many rows.
TRANSFER = """
@pl.jit.incore
def adding(y: pl.Out[pl.Tensor[[1], pl.INT32]], win: pl.InOut[pld.DistributedTensor[[ROWS, 4], pl.UINT8]],
           times: pl.Scalar[pl.INT64]):
    me = pld.rank(pld.get_comm_ctx(win))
    for i in pl.range(times):
        pld.tensor.put(win, me, win, [0, 0], [0, 0], [ROWS, COLUMNS], atomic=pld.AtomicType.Add)
    pl.write(y, [0], 1)

@pl.jit
def transfer_wrapper(y: pl.Out[pl.Tensor[[1], pl.INT32]],
                     win: pl.InOut[pld.DistributedTensor[[ROWS, 4], pl.UINT8]], times: pl.Scalar[pl.INT64]):
    adding(y, win, times)

@pl.jit.host
def transfer(y: pl.Out[pl.Tensor[[NR, 1], pl.INT32]], times: pl.Scalar[pl.INT64]):
    buffer = pld.alloc_window_buffer([ROWS, 4], dtype=pl.UINT8)
    win = pld.window(buffer, [ROWS, 4], dtype=pl.UINT8)
    for r in pl.range(pld.world_size()):
        transfer_wrapper(y[r], win, times, device=r)

def children():
    return open(f"/proc/self/task/{os.getpid()}/children").read().split()
done = np.zeros((2, 1), np.int32)
transfer(done, 0, config=cfg)
before = children()
send(signal.SIGINT)
try:
    transfer(done, FOREVER, config=cfg)
except KeyboardInterrupt:
    print("interrupted")
after_it()
print(children() == before)
"""


@pytest.mark.parametrize("transport", ["shm", "threads"])
@pytest.mark.parametrize("columns", [4, 3])
def test_ctrl_c_in_the_middle_of_a_large_transfer(columns, transport):
    """Always in one of many. A transfer that did not look would be over 50 ms too late, and its worker killed."""
    sizes = f"ROWS, COLUMNS = {1 << 26}, {columns}\n"
    assert run(sizes + TRANSFER, transport) == ["interrupted", "True"]


# Host functions that never end: one dispatches, one computes only, in the other a dispatch is in one branch. The signal
# comes when the first dispatch has written what everybody sees at once.
ENDLESS = """
import threading, time
from pypto.runtime import empty_shared
seen = empty_shared((2, 4096), np.float32)

def send_when_seen(number):
    def run():
        while not seen.any():
            time.sleep(0.001)
        os.kill(os.getpid(), number)
    threading.Thread(target=run).start()

@pl.jit.host
def dispatches(x: pl.Tensor[[NR, 4096], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4096], pl.FP32]]):
    while True:
        copied(x[0], y[0], device=0)

@pl.jit.host
def computes(x: pl.Tensor[[NR, 4096], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4096], pl.FP32]]):
    copied(x[0], y[0], device=0)
    k = 1
    while k > 0:
        k = k % 7 + 1

@pl.jit.host
def branches(x: pl.Tensor[[NR, 4096], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4096], pl.FP32]]):
    for i in pl.range(2**62):
        if i < 3:
            copied(x[0], y[0], device=0)

@pl.jit
def copied(x: pl.Tensor[[4096], pl.FP32], y: pl.Out[pl.Tensor[[4096], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = x[:] + 1.0
"""


@pytest.mark.parametrize("transport", ["shm", "threads"])
@pytest.mark.parametrize("endless", ["dispatches", "computes", "branches"])
def test_ctrl_c_ends_a_host_function(endless, transport):
    words = run(
        ENDLESS
        + f"""
send_when_seen(signal.SIGINT)
try:
    {endless}(x, seen, config=cfg)
except KeyboardInterrupt:
    print("interrupted")
after_it()
""",
        transport,
    )
    assert words == ["interrupted"]


def test_ctrl_c_in_a_host_function_cancels_what_is_in_flight():
    words = run(
        ENDLESS
        + """
from pypto.runtime import DistributedWorker
busy = host.compile(config=cfg, busy0=pl.RUNTIME, busy1=pl.RUNTIME)
endless = dispatches.compile(config=cfg)
with DistributedWorker([busy, endless]) as worker:
    before = worker.submit(busy, x, y, 1, FOREVER)
    send_when_seen(signal.SIGINT)
    try:
        worker.submit(endless, x, seen)
    except KeyboardInterrupt:
        print("interrupted")
    try:
        before.result()
    except KeyboardInterrupt:
        print("before")
    worker.run(busy, x, y, 1, 2)
    assert (y[0] == 1).all() and (y[1] == 2).all()
""",
        "shm",
    )
    assert words == ["interrupted", "before"]


def test_a_signal_handler_in_the_middle_of_a_host_function():
    """It has the script's stack, and may make calls; the host function goes on behind it."""
    words = run(
        ENDLESS
        + """
def deep(n):
    return deep(n - 1) if n else after_it()
def handler(number, frame):
    deep(800)
    print("handled")
    send_when_seen(signal.SIGINT)
signal.signal(signal.SIGUSR1, handler)
send_when_seen(signal.SIGUSR1)
try:
    branches(x, seen, config=cfg)
except KeyboardInterrupt:
    print("interrupted")
after_it()
""",
        "shm",
    )
    assert words == ["handled", "interrupted"]
