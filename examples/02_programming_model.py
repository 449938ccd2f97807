"""The three levels of a program, and what each of them can do.

The host function runs once, in this process: it decides what goes to which device. A wrapper runs on its
device: it decides which kernels run there, and on what. A kernel loads, computes and stores. Here every
device scales the two halves of its part by different factors, and adds its rank.

    python examples/02_programming_model.py [--devices 0,1] [--platform cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
HALF, COLUMNS = 4, 32


@pl.jit.incore
def scale(
    x: pl.Tensor[[HALF, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[HALF, COLUMNS], pl.FP32]],
    factor: pl.Scalar[pl.FP32],
    rank: pl.Scalar[pl.INT32],
):
    tile = pl.mul(pl.load(x, [0, 0], [HALF, COLUMNS]), factor)
    # Integers and floats mix only where the program says so.
    y = pl.store(pl.add(tile, pl.cast(rank, pl.FP32)), [0, 0], y)
    return y


@pl.jit
def device(
    x: pl.Tensor[[2 * HALF, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[2 * HALF, COLUMNS], pl.FP32]],
    rank: pl.Scalar[pl.INT32],
):
    # Slices are views: nothing is copied, and the kernels write into y itself.
    scale(x[0:HALF, :], y[0:HALF, :], 2.0, rank)
    scale(x[HALF : 2 * HALF, :], y[HALF : 2 * HALF, :], 0.5, rank)
    return y


@pl.jit.host
def host(
    x: pl.Tensor[[NR, 2 * HALF, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 2 * HALF, COLUMNS], pl.FP32]],
):
    for r in pl.range(pld.world_size()):
        device(x[r], y[r], r, device=r)
    return y


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options()
x = np.random.default_rng(2).standard_normal((len(given.devices), 2 * HALF, COLUMNS), np.float32)
y = np.zeros_like(x)
program = host.compile(x, y, config=config(given))
if not given.compile_only:
    program(x, y)
    ranks = np.arange(len(x), dtype=np.float32).reshape(-1, 1, 1)
    expected = x * np.repeat(np.float32([2.0, 0.5]), HALF).reshape(1, -1, 1) + ranks
    print(f"rank 0 scaled {x[0, 0, 0]:.4f} to {y[0, 0, 0]:.4f} and {x[0, HALF, 0]:.4f} to {y[0, HALF, 0]:.4f}")
    finish((y == expected).all())
