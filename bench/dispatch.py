"""What a call costs from Python, on two devices: microseconds, medians of batches, and the fastest batch, because the
machines this runs on are shared.

    dispatch.py [--batches N] [--calls N]

    prepared, one-shot        a call of a compiled program with an empty kernel, back to back
    ... after idleness        the same after 20 ms without one
    submit ... result         two calls in flight, per call
    per argument              what a further tensor of 64 elements costs: copied, and in place
    staging                   copying 64 MiB in, beside the fastest of memcpy in the same batch
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
    """Named lists of measurements, and their differences batch by batch."""

    def __init__(self):
        self.rows = {}

    def add(self, name, value):
        self.rows.setdefault(name, []).append(value)

    def show(self):
        print(f"{'us, P=2':<44}{'median':>10}{'fastest':>10}{'slowest':>10}")
        for name, values in self.rows.items():
            print(f"  {name:<42}{statistics.median(values):10.2f}{min(values):10.2f}{max(values):10.2f}  n={len(values)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    x = np.ones((2, N), np.float32)
    many = [np.ones((2, N), np.float32) for _ in range(9)]
    shared = [empty_shared((2, N)) for _ in range(9)]
    huge = np.ones((2, 8 << 20), np.float32)
    target = np.empty_like(huge)
    small, wide, big = one.compile(config=CONFIG), nine.compile(config=CONFIG), large.compile(config=CONFIG)
    rows = Rows()
    with small.prepare(extra_compiled=[wide, big]) as worker:
        def call_of(program, arguments):
            return lambda: worker.run(program, *arguments)

        prepared, one_shot = call_of(small, [x]), lambda: small(x)
        in_place = call_of(small, [shared[0]])
        wide_copied, wide_shared = call_of(wide, many), call_of(wide, shared)
        staged = call_of(big, [huge])
        for call in (prepared, in_place, wide_copied, wide_shared, one_shot, staged):
            per_call(call, 3)
        for _ in range(options.batches):
            rows.add("prepared, copied", base := per_call(prepared, options.calls))
            rows.add("prepared, in place", base_shared := per_call(in_place, options.calls))
            rows.add("prepared, after idleness", after_idleness(prepared))
            rows.add("submit ... result, two in flight", in_flight(worker, small, [x], options.calls))
            rows.add("per argument, copied", (per_call(wide_copied, options.calls) - base) / 8)
            rows.add("per argument, in place", (per_call(wide_shared, options.calls) - base_shared) / 8)
            rows.add("one-shot", per_call(one_shot, options.calls))
            rows.add("one-shot, after idleness", after_idleness(one_shot))
            copy = min(per_call(lambda: np.copyto(target, huge), 1) for _ in range(2))
            stage = min(per_call(staged, 1) for _ in range(2))
            rows.add("staging 64 MiB : memcpy (ratio)", stage / copy)
    shutdown()
    rows.show()


if __name__ == "__main__":
    main()
