"""Two programs on one worker, and a tensor that both use: the first appends to a cache, the second reads it.

The cache stays on the devices; only what is new is copied there. A program knows nothing of the other: they meet in the
tensors that the script passes.

    python examples/runtime/two_programs.py [--devices 0,1] [--platform cpu] [--compile-only]
"""

import sys
from pathlib import Path

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.runtime import DistributedWorker

sys.path.append(str(Path(__file__).resolve().parents[1]))
from running import config, finish, options  # noqa: E402

NR = pl.dynamic("NR")
STEPS, WIDTH = 6, 16        # the cache has a row for each step


@pl.jit.incore
def append_kernel(
    new: pl.Tensor[[1, WIDTH], pl.FP32],
    cache: pl.InOut[pl.Tensor[[STEPS, WIDTH], pl.FP32]],
    step: pl.Scalar[pl.INT32],
):
    cache = pl.store(pl.load(new, [0, 0], [1, WIDTH]), [step, 0], cache)
    return cache


@pl.jit
def append_device(
    new: pl.Tensor[[1, WIDTH], pl.FP32],
    cache: pl.InOut[pl.Tensor[[STEPS, WIDTH], pl.FP32]],
    step: pl.Scalar[pl.INT32],
):
    return append_kernel(new, cache, step)


@pl.jit.host
def append(
    new: pl.Tensor[[NR, 1, WIDTH], pl.FP32],
    cache: pl.InOut[pl.Tensor[[NR, STEPS, WIDTH], pl.FP32]],
    step: pl.Scalar[pl.INT32],
):
    for r in pl.range(pld.world_size()):
        append_device(new[r], cache[r], step, device=r)


@pl.jit.incore
def attend_kernel(
    query: pl.Tensor[[1, WIDTH], pl.FP32],
    cache: pl.Tensor[[STEPS, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]],
    count: pl.Scalar[pl.INT32],
):
    total = pl.load(query, [0, 0], [1, WIDTH])
    for step in pl.range(count):
        total = pl.add(total, pl.load(cache, [step, 0], [1, WIDTH]))
    y = pl.store(total, [0, 0], y)
    return y


@pl.jit
def attend_device(
    query: pl.Tensor[[1, WIDTH], pl.FP32],
    cache: pl.Tensor[[STEPS, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]],
    count: pl.Scalar[pl.INT32],
):
    return attend_kernel(query, cache, y, count)


@pl.jit.host
def attend(
    query: pl.Tensor[[NR, 1, WIDTH], pl.FP32],
    cache: pl.Tensor[[NR, STEPS, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 1, WIDTH], pl.FP32]],
    count: pl.Scalar[pl.INT32],
):
    """y = query + the rows of the cache so far"""
    for r in pl.range(pld.world_size()):
        attend_device(query[r], cache[r], y[r], count, device=r)


if __name__ == "__main__":
    arguments = options()
    run = config(arguments)
    appending = append.compile(config=run, step=pl.RUNTIME)
    attending = attend.compile(config=run, count=pl.RUNTIME)
    if arguments.compile_only:
        sys.exit()
    n = len(arguments.devices)
    rows = np.arange(STEPS * n * WIDTH, dtype=np.float32).reshape(STEPS, n, 1, WIDTH)
    query, correct = np.ones((n, 1, WIDTH), np.float32), True
    with DistributedWorker([appending, attending]) as worker:
        add, look = worker.register(appending), worker.register(attending)      # the programs as functions
        cache = worker.alloc_stacked_tensor(np.zeros((n, STEPS, WIDTH), np.float32))
        for step in range(STEPS):
            y = np.zeros((n, 1, WIDTH), np.float32)
            add(rows[step], cache, step)
            look(query, cache, y, step + 1)
            correct = correct and np.array_equal(y, query + rows[: step + 1].sum(axis=0))
        whole = np.empty((n, STEPS, WIDTH), np.float32)
        worker.copy_stacked_from(cache, whole)
    correct = correct and np.array_equal(whole, rows[:, :, 0].swapaxes(0, 1))
    print(f"{STEPS} rows on each of {n} devices")
    finish(correct)
