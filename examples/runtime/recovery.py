"""A program that fails, and goes on: what an error says, and what works after it.

Three kinds of failures of calls on prepared workers. A kernel that leaves its tensor ends its own call: other
calls, also one that is on the way at the same time, do not notice. Ranks that wait for a signal which nobody sends are
found, and the report says who waits for what. A worker process that dies, here because it is killed, costs the
set: it is replaced by another one. In the end all work has been done.

    python examples/runtime/recovery.py [--devices 0,1] [--platform cpu] [--compile-only]
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np

import pypto
import pypto.language as pl
import pypto.language.distributed as pld

sys.path.append(str(Path(__file__).resolve().parents[1]))
from running import config, finish, options  # noqa: E402

NR = pl.dynamic("NR")
SIZE = 64


@pl.jit.incore
def job_kernel(
    x: pl.Tensor[[SIZE], pl.FP32],
    out: pl.Out[pl.Tensor[[SIZE], pl.FP32]],
    bell: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
    mark: pl.Scalar[pl.INT64],
    rings: pl.Scalar[pl.INT64],
):
    me = pld.rank(pld.get_comm_ctx(bell))
    pld.system.notify(bell, peer=me, offsets=[0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(bell, offsets=[0], expected=rings, cmp=pld.WaitCmp.Ge)
    y = pl.add(pl.load(x, [0], [SIZE]), 1.0)
    y = pl.store(y, [0], out)
    pl.write(out, [mark], 7.0)


@pl.jit
def job_device(
    x: pl.Tensor[[SIZE], pl.FP32],
    out: pl.Out[pl.Tensor[[SIZE], pl.FP32]],
    bell: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
    mark: pl.Scalar[pl.INT64],
    rings: pl.Scalar[pl.INT64],
):
    job_kernel(x, out, bell, mark, rings)


@pl.jit.host
def job(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    out: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    mark: pl.Scalar[pl.INT64],
    rings: pl.Scalar[pl.INT64],
):
    """out = x + 1, and out[:, mark] = 7. Rings once, and waits for so many rings."""
    bell_buf = pld.alloc_window_buffer([1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        bell = pld.window(bell_buf, [1], dtype=pl.INT32)
        job_device(x[r], out[r], bell, mark, rings, device=r)


class Workers:
    """A prepared worker that is replaced when it has lost a process."""

    def __init__(self, compiled):
        self.compiled = compiled
        self.worker = compiled.prepare()
        self.replaced = 0

    def __call__(self, *arguments):
        """Runs a call; once more when a worker died, because that says nothing against the call."""
        try:
            self.worker(*arguments)
        except pypto.WorkerDiedError:
            self.worker.close()
            self.worker = self.compiled.prepare()
            self.replaced += 1
            self.worker(*arguments)


def right(x, out, mark):
    wanted = x + 1
    wanted[:, mark] = 7
    return np.array_equal(out, wanted)


if __name__ == "__main__":
    arguments = options()
    compiled = job.compile(config=config(arguments), mark=pl.RUNTIME, rings=pl.RUNTIME)
    if arguments.compile_only:
        sys.exit()
    n = len(arguments.devices)
    x = np.arange(n * SIZE, dtype=np.float32).reshape(n, SIZE)
    outs = [np.zeros_like(x) for _ in range(4)]
    workers = Workers(compiled)
    checks = []

    # A mistake in a kernel: the error has the rank, the kernel and its line; the other call is not touched.
    bad = workers.worker.submit(compiled, x, outs[0], SIZE, 1)
    workers(x, outs[1], 3, 1)
    try:
        bad.result()
    except pypto.DeviceError as error:
        print("failed:", str(error).splitlines()[0])
        checks.append("rank" in str(error))
    checks.append(right(x, outs[1], 3))

    # A wait that nobody can satisfy.
    try:
        workers(x, outs[0], 0, 2)
    except pypto.DeadlockError as error:
        print("stuck:", str(error).splitlines()[0])
        checks.append(f"{n} of {n} ranks" in str(error) and "bell_buf" in str(error))
    workers(x, outs[2], 5, 1)
    checks.append(right(x, outs[2], 5))

    # A process that is gone. (Ranks that are threads, for debuggers, cannot be killed alone.)
    pids = [pid for pid in workers.worker.pids if pid != 0]
    if pids:
        os.kill(pids[-1], signal.SIGKILL)
    workers(x, outs[3], 6, 1)
    checks.append(right(x, outs[3], 6) and workers.replaced == (1 if pids else 0))
    workers.worker.close()
    print(f"{len(checks)} checks, {workers.replaced} worker set replaced")
    finish(len(checks) == 5 and all(checks))
