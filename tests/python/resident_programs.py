"""Programs for tensors that live in a worker. No import of torch or pytest."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from programs import NR, config

N = 16


@pl.jit.incore
def add_kernel(
    x: pl.Tensor[[N], pl.FP32], weight: pl.Tensor[[N], pl.FP32], y: pl.InOut[pl.Tensor[[N], pl.FP32]]
):
    total = pl.add(pl.load(x, [0], [N]), pl.load(weight, [0], [N]))
    pl.store(pl.add(pl.load(y, [0], [N]), total), [0], y)


@pl.jit
def add_chip(
    x: pl.Tensor[[N], pl.FP32], weight: pl.Tensor[[N], pl.FP32], y: pl.InOut[pl.Tensor[[N], pl.FP32]]
):
    add_kernel(x, weight, y)


@pl.jit.host
def one(
    x: pl.Tensor[[N], pl.FP32], weight: pl.Tensor[[N], pl.FP32], y: pl.InOut[pl.Tensor[[N], pl.FP32]]
):
    """y += x + weight, on rank 0"""
    add_chip(x, weight, y, device=0)


@pl.jit.host
def each(
    x: pl.Tensor[[NR, N], pl.FP32],
    weight: pl.Tensor[[NR, N], pl.FP32],
    y: pl.InOut[pl.Tensor[[NR, N], pl.FP32]],
):
    """The same by rows, row r on rank r"""
    for r in pl.range(pld.world_size()):
        add_chip(x[r], weight[r], y[r], device=r)


@pl.jit.host
def crossed(
    x: pl.Tensor[[2, N], pl.FP32],
    weight: pl.Tensor[[2, N], pl.FP32],
    y: pl.InOut[pl.Tensor[[2, N], pl.FP32]],
):
    """Row 0 on rank 1, row 1 on rank 0"""
    add_chip(x[0], weight[0], y[0], device=1)
    add_chip(x[1], weight[1], y[1], device=0)


@pl.jit.host
def in_turn(
    first: pl.InOut[pl.Tensor[[N], pl.FP32]],
    second: pl.InOut[pl.Tensor[[N], pl.FP32]],
    third: pl.InOut[pl.Tensor[[N], pl.FP32]],
    ones: pl.Tensor[[N], pl.FP32],
):
    """Each += 2, on whatever ranks"""
    add_chip(ones, ones, first)
    add_chip(ones, ones, second)
    add_chip(ones, ones, third)


@pl.jit.host
def both_on_one(
    x: pl.Tensor[[2, N], pl.FP32],
    weight: pl.Tensor[[2, N], pl.FP32],
    y: pl.InOut[pl.Tensor[[2, N], pl.FP32]],
):
    """Both rows on rank 0"""
    for r in pl.range(2):
        add_chip(x[r], weight[r], y[r], device=0)


@pl.jit.incore
def bare_kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    pl.store(pl.load(x, [0], [N]), [0], y)


@pl.jit
def bare_chip(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    bare_kernel(x, y)


@pl.jit.host
def bare(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    """y = x; shapes and element types are those of the samples"""
    bare_chip(x, y, device=0)


def compiled(program, devices=2):
    return program.compile(config=config(devices))


def numbers(*shape, first=1):
    return (np.arange(np.prod(shape), dtype=np.float32) + first).reshape(shape)
