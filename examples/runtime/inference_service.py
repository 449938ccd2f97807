"""An inference service: weights that stay on the devices, requests that come one after the other.

The layer's weights are cut into columns, one part for each device, and are copied there once. A request is copied
to the devices, each computes its columns of relu(x @ w), and the parts are put together. While one request is
computed, the next one is already submitted. In the middle new weights arrive, and the service takes them over between two
requests, without being started again.

    python examples/runtime/inference_service.py [--devices 0,1] [--platform cpu] [--compile-only]
"""

import sys
from collections import deque
from pathlib import Path

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld

sys.path.append(str(Path(__file__).resolve().parents[1]))
from running import config, finish, options  # noqa: E402

NR = pl.dynamic("NR")
BATCH, INPUTS, OUTPUTS = 8, 32, 16      # OUTPUTS of each device


@pl.jit.incore
def layer(
    x: pl.Tensor[[BATCH, INPUTS], pl.FP32],
    w: pl.Tensor[[INPUTS, OUTPUTS], pl.FP32],
    y: pl.Out[pl.Tensor[[BATCH, OUTPUTS], pl.FP32]],
):
    left = pl.move(pl.load(x, [0, 0], [BATCH, INPUTS]), target_memory=pl.MemorySpace.Left)
    right = pl.move(pl.load(w, [0, 0], [INPUTS, OUTPUTS]), target_memory=pl.MemorySpace.Right)
    y = pl.store(pl.relu(pl.matmul(left, right)), [0, 0], y)
    return y


@pl.jit
def device(
    x: pl.Tensor[[BATCH, INPUTS], pl.FP32],
    w: pl.Tensor[[INPUTS, OUTPUTS], pl.FP32],
    y: pl.Out[pl.Tensor[[BATCH, OUTPUTS], pl.FP32]],
):
    return layer(x, w, y)


@pl.jit.host
def infer(
    x: pl.Tensor[[BATCH, INPUTS], pl.FP32],
    w: pl.Tensor[[NR, INPUTS, OUTPUTS], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, BATCH, OUTPUTS], pl.FP32]],
):
    for r in pl.range(pld.world_size()):
        device(x, w[r], y[r], device=r)


class Service:
    """Answers requests in order; `with` ends it."""

    def __init__(self, compiled, weights):
        self.compiled = compiled
        self.worker = compiled.prepare()
        self.weights = self.worker.alloc_stacked_tensor(weights)    # one part to each device, once
        self.pending = deque()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.worker.close()         # waits for what is on the way; frees the weights

    def ask(self, x):
        """Begins a request. Two are computed at a time; a third one waits here for the first."""
        y = np.zeros((len(self.weights), BATCH, OUTPUTS), np.float32)
        self.pending.append((self.worker.submit(self.compiled, x, self.weights, y), y))

    def answer(self):
        """The result of the oldest request."""
        handle, y = self.pending.popleft()
        handle.result()
        return np.concatenate(list(y), axis=1)

    def load(self, weights):
        """New weights: for the requests that follow. Those on the way still get the old ones."""
        for part, shard, rank in zip(weights, self.weights.shards, self.weights.worker_ids):
            self.worker.copy_to(shard.data_ptr, part.ctypes.data, part.nbytes, worker_id=rank)


def whole_numbers(*shape, seed):
    """Small, so that sums are exact in any order."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


if __name__ == "__main__":
    arguments = options()
    compiled = infer.compile(config=config(arguments))
    if arguments.compile_only:
        sys.exit()
    n = len(arguments.devices)
    first, second = whole_numbers(n, INPUTS, OUTPUTS, seed=1), whole_numbers(n, INPUTS, OUTPUTS, seed=2)
    requests = [whole_numbers(BATCH, INPUTS, seed=10 + i) for i in range(10)]
    answers = []
    with Service(compiled, first) as service:
        for i, x in enumerate(requests):
            if i == 5:
                service.load(second)
            service.ask(x)
        answers = [service.answer() for _ in requests]
        resident = [service.worker.committed_device_memory(rank) for rank in range(n)]
    correct = resident == [INPUTS * OUTPUTS * 4] * n
    for i, (x, y) in enumerate(zip(requests, answers)):
        weights = np.concatenate(list(first if i < 5 else second), axis=1)
        correct = correct and np.array_equal(y, np.maximum(x @ weights, 0))
    print(f"{len(requests)} requests, {resident[0]} bytes of weights on each of {n} devices")
    finish(correct)
