"""One call on each device: every device gets its number and adds it to its part of a tensor.

    python examples/01_hello_rank.py [--devices 0,1] [--platform cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")       # the number of devices: whatever the call brings
ROWS, COLUMNS = 8, 8


@pl.jit.incore
def greet(
    x: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    rank: pl.Scalar[pl.INT32],
):
    # A kernel computes on tiles: private copies of parts of tensors.
    tile = pl.load(x, [0, 0], [ROWS, COLUMNS])
    tile = pl.add(tile, pl.cast(rank, pl.FP32))
    y = pl.store(tile, [0, 0], y)
    return y


@pl.jit
def device(
    x: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    rank: pl.Scalar[pl.INT32],
):
    # What one device does: here, one kernel.
    return greet(x, y, rank)


@pl.jit.host
def everyone(
    x: pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32]],
):
    for r in pl.range(pld.world_size()):
        device(x[r], y[r], r, device=r)     # x[r] drops the first dimension: [ROWS, COLUMNS]
    return y


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options()
x = np.random.default_rng(1).standard_normal((len(given.devices), ROWS, COLUMNS), np.float32)
y = np.zeros_like(x)
program = everyone.compile(x, y, config=config(given))
if not given.compile_only:
    program(x, y)
    for rank in range(len(x)):
        print(f"rank {rank} added {y[rank, 0, 0] - x[rank, 0, 0]:.0f}")
    finish(all((y[rank] == x[rank] + np.float32(rank)).all() for rank in range(len(x))))
