"""What a call costs from Python, on two devices: microseconds, medians of batches, and the fastest batch, because the
machines this runs on are shared.

    dispatch.py [--batches N] [--calls N]

    prepared, one-shot        a call of a compiled program with an empty kernel, back to back
    ... after idleness        the same after 20 ms without one
    submit ... result         two calls in flight, per call
    per argument              what a further tensor of 64 elements costs, from calls with one and with nine: of NumPy and of
                              torch, copied and in place
    staging                   a call that copies 64 MiB in, by the time of a memcpy: fastest of three each, in the same batch
"""

import argparse
import statistics
import time

import numpy as np

import pypto.language as pl
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig, empty_shared, shutdown

NR = pl.dynamic("NR")
N = 64
CONFIG = RunConfig(distributed_config=DistributedConfig(device_ids=[0, 1]))


@pl.jit.incore
def empty_kernel(x: pl.Tensor[[N], pl.FP32]):
    pass


@pl.jit
def empty_chip(x: pl.Tensor[[N], pl.FP32]):
    empty_kernel(x)


@pl.jit.host
def one(x: pl.Tensor[[NR, N], pl.FP32]):
    for r in pl.range(2):
        empty_chip(x[r], device=r)


@pl.jit.host
def nine(
    x: pl.Tensor[[NR, N], pl.FP32],
    a: pl.Tensor[[NR, N], pl.FP32],
    b: pl.Tensor[[NR, N], pl.FP32],
    c: pl.Tensor[[NR, N], pl.FP32],
    d: pl.Tensor[[NR, N], pl.FP32],
    e: pl.Tensor[[NR, N], pl.FP32],
    f: pl.Tensor[[NR, N], pl.FP32],
    g: pl.Tensor[[NR, N], pl.FP32],
    h: pl.Tensor[[NR, N], pl.FP32],
):
    for r in pl.range(2):
        empty_chip(x[r], device=r)


LARGE = pl.dynamic("LARGE")


@pl.jit.host
def large(x: pl.Tensor[[NR, LARGE], pl.FP32]):
    for r in pl.range(2):
        empty_chip(x[r, 0:N], device=r)


def per_call(call, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count * 1e6


def after_idleness(call):
    time.sleep(0.02)
    return per_call(call, 1)


def in_flight(worker, program, arguments, count):
    start = time.perf_counter()
    handles = [worker.submit(program, *arguments) for _ in range(count)]
    for handle in handles:
        handle.result()
    return (time.perf_counter() - start) / count * 1e6


class Rows:
    """Named lists of measurements, and what medians and fastest batches of two of them say of a further argument."""

    def __init__(self):
        self.rows = {}
        self.pairs = []

    def add(self, name, value):
        self.rows.setdefault(name, []).append(value)

    def add_argument(self, name, one, nine):
        self.add(f"one argument, {name}", one)
        self.add(f"nine arguments, {name}", nine)
        if name not in self.pairs:
            self.pairs.append(name)

    def show(self):
        print(f"{'us, P=2':<44}{'median':>10}{'fastest':>10}{'slowest':>10}")
        for name, values in self.rows.items():
            print(f"  {name:<42}{statistics.median(values):10.2f}{min(values):10.2f}{max(values):10.2f}  n={len(values)}")
        for name in self.pairs:
            one, nine = self.rows[f"one argument, {name}"], self.rows[f"nine arguments, {name}"]
            each = [(pick(nine) - pick(one)) / 8 for pick in (statistics.median, min)]
            print(f"  {'per argument, ' + name:<42}{each[0]:10.2f}{each[1]:10.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    import torch

    x = np.ones((2, N), np.float32)
    kinds = {
        "NumPy, copied": lambda: np.ones((2, N), np.float32),
        "NumPy, in place": lambda: empty_shared((2, N)),
        "torch, copied": lambda: torch.ones(2, N),
        "torch, in place": lambda: torch.ones(2, N).share_memory_(),
    }
    tensors = {name: [make() for _ in range(9)] for name, make in kinds.items()}
    huge = np.ones((2, 8 << 20), np.float32)
    target = np.empty_like(huge)
    small, wide, big = one.compile(config=CONFIG), nine.compile(config=CONFIG), large.compile(config=CONFIG)
    rows = Rows()
    with small.prepare(extra_compiled=[wide, big]) as worker:
        def call_of(program, arguments):
            return lambda: worker.run(program, *arguments)

        prepared, one_shot = call_of(small, [x]), lambda: small(x)
        staged = call_of(big, [huge])
        arguments = {name: (call_of(small, of[:1]), call_of(wide, of)) for name, of in tensors.items()}
        for call in (prepared, one_shot, staged, *(call for pair in arguments.values() for call in pair)):
            per_call(call, 3)
        for _ in range(options.batches):
            rows.add("prepared", per_call(prepared, options.calls))
            rows.add("prepared, after idleness", after_idleness(prepared))
            rows.add("submit ... result, two in flight", in_flight(worker, small, [x], options.calls))
            rows.add("one-shot", per_call(one_shot, options.calls))
            rows.add("one-shot, after idleness", after_idleness(one_shot))
            for name, (with_one, with_nine) in arguments.items():
                rows.add_argument(name, per_call(with_one, options.calls), per_call(with_nine, options.calls))
            copy = min(per_call(lambda: np.copyto(target, huge), 1) for _ in range(3))
            stage = min(per_call(staged, 1) for _ in range(3))
            rows.add("staging 64 MiB, times memcpy", stage / copy)
    shutdown()
    rows.show()


if __name__ == "__main__":
    main()
