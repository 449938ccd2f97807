"""A training loop with `submit`: while a step is computed, the next batch is made.

Each device has its part of a batch and a copy of the weights. A step computes the gradient of the squared error of its
rows, adds it up over the devices, and takes a step down. Weights and batches are in shared memory, so nothing is copied; there
are two sets of batches, because two steps can be on the way. Steps that touch the same weights are
computed in the order in which they were submitted: nobody has to wait for that here.

    python examples/runtime/training_loop.py [--devices 0,1] [--platform cpu] [--compile-only]
"""

import sys
from pathlib import Path

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.runtime import DistributedRunHandle, empty_shared

sys.path.append(str(Path(__file__).resolve().parents[1]))
from running import config, finish, options  # noqa: E402

NR = pl.dynamic("NR")
ROWS, WEIGHTS = 16, 32                  # ROWS of each device, in each batch
STEPS = 40


@pl.jit.incore
def step_kernel(
    x: pl.Tensor[[ROWS, WEIGHTS], pl.FP32],
    target: pl.Tensor[[ROWS, WEIGHTS], pl.FP32],
    weights: pl.InOut[pl.Tensor[[1, WEIGHTS], pl.FP32]],
    gradient: pl.InOut[pld.DistributedTensor[[1, WEIGHTS], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    w = pl.load(weights, [0, 0], [1, WEIGHTS])
    total = pl.mul(w, 0.0)
    for i in pl.range(ROWS):
        row = pl.load(x, [i, 0], [1, WEIGHTS])
        error = pl.sub(pl.mul(w, row), pl.load(target, [i, 0], [1, WEIGHTS]))
        total = pl.add(total, pl.mul(error, row))
    pl.store(total, [0, 0], gradient)
    pld.tensor.allreduce(gradient, signal)
    y = pl.sub(w, pl.mul(pl.load(gradient, [0, 0], [1, WEIGHTS]), 1.0 / 256))
    y = pl.store(y, [0, 0], weights)


@pl.jit
def step_device(
    x: pl.Tensor[[ROWS, WEIGHTS], pl.FP32],
    target: pl.Tensor[[ROWS, WEIGHTS], pl.FP32],
    weights: pl.InOut[pl.Tensor[[1, WEIGHTS], pl.FP32]],
    gradient: pl.InOut[pld.DistributedTensor[[1, WEIGHTS], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    step_kernel(x, target, weights, gradient, signal)


@pl.jit.host
def step(
    x: pl.Tensor[[NR, ROWS, WEIGHTS], pl.FP32],
    target: pl.Tensor[[NR, ROWS, WEIGHTS], pl.FP32],
    weights: pl.InOut[pl.Tensor[[NR, 1, WEIGHTS], pl.FP32]],
):
    gradient_buf = pld.alloc_window_buffer([1, WEIGHTS], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        gradient = pld.window(gradient_buf, [1, WEIGHTS], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        step_device(x[r], target[r], weights[r], gradient, signal, device=r)


def make_batch(number, wanted, x, target):
    """Rows of -1 and 1, and what the wanted weights make of them."""
    x[:] = np.random.default_rng(number).choice([-1.0, 1.0], x.shape)
    np.multiply(x, wanted, out=target)


if __name__ == "__main__":
    arguments = options()
    compiled = step.compile(config=config(arguments))
    if arguments.compile_only:
        sys.exit()
    n = len(arguments.devices)
    wanted = np.linspace(-2, 2, WEIGHTS, dtype=np.float32)
    weights = empty_shared((n, 1, WEIGHTS))             # zeros
    batches = [(empty_shared((n, ROWS, WEIGHTS)), empty_shared((n, ROWS, WEIGHTS))) for _ in range(2)]
    handles: dict[int, DistributedRunHandle] = {}       # of the batch in each place
    with compiled.prepare() as worker:
        for number in range(STEPS):
            place = number % 2
            if place in handles:
                handles[place].result()                 # its batch may be overwritten now
            make_batch(number, wanted, *batches[place])
            handles[place] = worker.submit(compiled, *batches[place], weights)
        for handle in handles.values():
            handle.result()
        copied = worker.copied_bytes
    # Each step multiplies the distance by 1 - 16 n / 256, because the squares of a row are 1.
    left = 2 * abs(1 - ROWS * n / 256) ** STEPS
    distance = float(np.abs(weights - wanted).max())
    print(f"{STEPS} steps on {n} devices: distance {distance:.1e}, {copied} bytes copied")
    finish(abs(distance - left) < 1e-3 and copied == 0 and (weights == weights[0]).all())
