"""All-reduce, built in: one line in place of 08, 09 and 10.

In a kernel it is a statement like any other. In the host function it stands between the dispatches that fill and
read the windows, runs on every device that shares them, and brings its own signal if it is given none.

The result is the same in both places, on all ranks and in every run, to the last bit: the ranks' numbers are added
in the order of ranks, whichever way the data takes. And it is the result of 08.

    python examples/11_builtin_allreduce.py [--mode kernel|host] [-d 0,1,2] [-p cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
SIZE = 256


# ---- in a kernel ----


@pl.jit.incore
def allreduce(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    rows = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], rows)
    rows = pld.tensor.allreduce(rows, signal, op=pld.ReduceOp.Sum)
    y = pl.store(pl.load(rows, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit
def device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    rows: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    return allreduce(x, y, rows, signal)


@pl.jit.host
def in_kernel(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    row_buffer = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buffer = pld.alloc_window_buffer([NR, 1], dtype=pl.INT32)    # a cell for each rank, zero before and after
    for r in pl.range(pld.world_size()):
        rows = pld.window(row_buffer, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buffer, [NR, 1], dtype=pl.INT32)
        device(x[r], y[r], rows, signal, device=r)
    return y


# ---- in the host function ----


@pl.jit.incore
def publish(x: pl.Tensor[[1, SIZE], pl.FP32], rows: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]]):
    rows = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], rows)
    return rows


@pl.jit.incore
def consume(rows: pld.DistributedTensor[[1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]]):
    y = pl.store(pl.load(rows, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit.host
def on_host(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    row_buffer = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    rows = pld.window(row_buffer, [1, SIZE], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        publish(x[r], rows, device=r)
    rows = pld.tensor.allreduce(rows, op=pld.ReduceOp.Sum)
    for r in pl.range(pld.world_size()):
        consume(rows, y[r], device=r)
    return y


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options(modes=("kernel", "host"))
x = np.random.default_rng(8).standard_normal((len(given.devices), 1, SIZE), dtype=np.float32)
y = np.zeros_like(x)
program = {"kernel": in_kernel, "host": on_host}[given.mode].compile(x, y, config=config(given))
if not given.compile_only:
    program(x, y)
    total = x[0].copy()
    for row in x[1:]:
        total += row
    print(f"every rank has [{', '.join(f'{v:.4f}' for v in y[0, 0, :3])}, ...]")
    finish((y == total).all())
