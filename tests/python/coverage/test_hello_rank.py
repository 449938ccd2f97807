"""Each device gets its number as a scalar, turns it into a float and adds it to its tile."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import numbers
from programs import config

NR = pl.dynamic("NR")


@pl.jit.incore
def greet(
    x: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]], who: pl.Scalar[pl.INT32]
):
    tile = pl.load(x, [0, 0], [8, 8])
    y = pl.store(pl.add(tile, pl.cast(who, target_type=pl.FP32)), [0, 0], y)
    return y


@pl.jit
def device(
    x: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]], who: pl.Scalar[pl.INT32]
):
    y = greet(x, y, who)
    return y


@pl.jit.host
def everyone(x: pl.Tensor[[NR, 8, 8], pl.FP32], y: pl.Out[pl.Tensor[[NR, 8, 8], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        device(x[r], y[r], r, device=r)
    return y


def test_hello_rank(ranks, transport):
    x = numbers(ranks, 8, 8)
    y = np.zeros_like(x)
    everyone(x, y, config=config(ranks))
    assert (y == x + np.arange(ranks, dtype=np.float32)[:, None, None]).all()
