"""Programs for prepared workers that compute for a while, fail, or wait in vain, as the call asks. No import of torch or
pytest: scripts of their own use them too."""

import time
from contextlib import contextmanager

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from programs import NR, config
from pypto.runtime import empty_shared

N = 64


@pl.jit.incore
def job_kernel(
    x: pl.Tensor[[N], pl.INT32],
    y: pl.Out[pl.Tensor[[N], pl.INT32]],
    bell: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
    adds: pl.Scalar[pl.INT64],
    at: pl.Scalar[pl.INT64],
):
    acc = pl.load(x, [0], [N])
    for i in pl.range(adds):
        acc = pl.add(acc, 1)
    if at < 0:
        pld.system.wait(bell, offsets=[0], expected=1, cmp=pld.WaitCmp.Ge)
    pl.store(acc, [0], y)
    pl.write(y, [at], 7)


@pl.jit
def job_chip(
    x: pl.Tensor[[N], pl.INT32],
    y: pl.Out[pl.Tensor[[N], pl.INT32]],
    bell: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
    adds: pl.Scalar[pl.INT64],
    at: pl.Scalar[pl.INT64],
):
    job_kernel(x, y, bell, adds, at)


@pl.jit.host
def job(
    x: pl.Tensor[[NR, N], pl.INT32],
    y: pl.Out[pl.Tensor[[NR, N], pl.INT32]],
    adds: pl.Scalar[pl.INT64],
    at: pl.Scalar[pl.INT64],
):
    """y = x + adds, and y[:, at] = 7: a place that does not exist fails, a negative one waits in vain."""
    buffer = pld.alloc_window_buffer(pl.INT32.get_byte())
    bell = pld.window(buffer, [1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        job_chip(x[r], y[r], bell, adds, at, device=r)


@pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
def until_open(gate: pl.Tensor[[1], pl.INT32], y: pl.InOut[pl.Tensor[[NR, N], pl.INT32]]):
    """Stays until `gate` is open; y is there for its order only."""
    while not gate[0]:
        time.sleep(0.001)


@pl.jit.host
def held_job(
    x: pl.Tensor[[NR, N], pl.INT32],
    y: pl.Out[pl.Tensor[[NR, N], pl.INT32]],
    gate: pl.Tensor[[1], pl.INT32],
    adds: pl.Scalar[pl.INT64],
    at: pl.Scalar[pl.INT64],
):
    """`job` that begins when the test opens `gate`, and so is in flight for as long as the test wants."""
    buffer = pld.alloc_window_buffer(pl.INT32.get_byte())
    bell = pld.window(buffer, [1], dtype=pl.INT32)
    until_open(gate, y)
    for r in pl.range(pld.world_size()):
        job_chip(x[r], y[r], bell, adds, at, device=r)


@contextmanager
def closed_gate():
    """A gate for `held_job`: opened by gate[0] = 1, at the latest when the block ends."""
    gate = empty_shared((1,), np.int32)
    try:
        yield gate
    finally:
        gate[0] = 1


@pl.jit.host
def shift(x: pl.Tensor[[NR, N], pl.INT32], y: pl.Out[pl.Tensor[[NR, N], pl.INT32]]):
    """y = x + 1, y[:, 0] = 7"""
    buffer = pld.alloc_window_buffer(pl.INT32.get_byte())
    bell = pld.window(buffer, [1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        job_chip(x[r], y[r], bell, 1, 0, device=r)


@pl.jit.incore
def count_kernel(
    y: pl.Out[pl.Tensor[[1], pl.INT32]],
    bell: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
    at: pl.Scalar[pl.INT64],
):
    me = pld.rank(pld.get_comm_ctx(bell))
    pld.system.notify(bell, peer=me, offsets=[0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(bell, offsets=[0], expected=1, cmp=pld.WaitCmp.Ge)
    pl.write(y, [at], pl.read(bell, [0]))


@pl.jit
def count_chip(
    y: pl.Out[pl.Tensor[[1], pl.INT32]],
    bell: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
    at: pl.Scalar[pl.INT64],
):
    count_kernel(y, bell, at)


@pl.jit.host
def count(y: pl.Out[pl.Tensor[[NR, 1], pl.INT32]], at: pl.Scalar[pl.INT64]):
    """y = how often its window was counted up; `at` must be 0, else it fails"""
    buffer = pld.alloc_window_buffer(pl.INT32.get_byte())
    bell = pld.window(buffer, [1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        count_chip(y[r], bell, at, device=r)


FAR = 1000  # a place that does not exist
VAIN = -1
SLOW = 3_000_000  # likely to be in flight for a while; what must be takes held_job
FOREVER = 2**60


def compiled(program=job, devices=2, **fields):
    return program.compile(config=config(devices), **fields)


def prepared_job(devices=2, program=job):
    return compiled(program, devices, adds=pl.RUNTIME, at=pl.RUNTIME)


def expected(x, adds, at=0):
    y = np.int32(x) + np.int32(adds)
    y[:, at] = 7
    return y


def rows(first=0, devices=2):
    return (np.arange(devices * N, dtype=np.int32) + np.int32(first)).reshape(devices, N)
