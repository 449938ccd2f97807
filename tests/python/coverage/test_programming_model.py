"""Host, wrapper and kernel: the kernel scales its tile and adds its rank."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import numbers
from programs import config

NR = pl.dynamic("NR")
ROWS, COLUMNS, FACTOR = 4, 16, 2.5


@pl.jit.incore
def scale(
    x: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    rank: pl.Scalar[pl.INT32],
):
    scaled = pl.mul(pl.load(x, [0, 0], [ROWS, COLUMNS]), FACTOR)
    return pl.store(pl.add(scaled, pl.cast(rank, target_type=pl.FP32)), [0, 0], y)


@pl.jit
def device(
    x: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    rank: pl.Scalar[pl.INT32],
):
    return scale(x, y, rank)


@pl.jit.host
def host(
    x: pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32], y: pl.Out[pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32]]
):
    for r in pl.range(pld.world_size()):
        device(x[r], y[r], r, device=r)
    return y


def test_programming_model(ranks, transport):
    x = numbers(ranks, ROWS, COLUMNS)
    y = np.zeros_like(x)
    run = host.compile(x, y, config=config(ranks))
    run(x, y)
    assert (y == x * FACTOR + np.arange(ranks, dtype=np.float32)[:, None, None]).all()
