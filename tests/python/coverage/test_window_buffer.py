"""A kernel writes its row into a window that it has as an input, and reads it back."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import numbers
from programs import config

NR = pl.dynamic("NR")
SIZE = 256


@pl.jit.incore
def round_trip(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
):
    before = pl.load(box, [0, 0], [1, SIZE])
    box = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], box)
    after = pl.load(box, [0, 0], [1, SIZE])
    y = pl.store(pl.add(before, after), [0, 0], y)
    return y


@pl.jit
def device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    box: pld.DistributedTensor[[1, SIZE], pl.FP32],
):
    return round_trip(x, y, box)


@pl.jit.host
def host(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    buffer = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        box = pld.window(buffer, [1, SIZE], dtype=pl.FP32)
        device(x[r], y[r], box, device=r)
    return y


def test_window_buffer(ranks, transport):
    x = numbers(ranks, 1, SIZE)
    for _ in range(2):      # windows are zero at the start of each call
        y = np.zeros_like(x)
        host(x, y, config=config(ranks))
        assert (y == x).all()
