"""A window is a tensor to its kernel: it can be sliced, converted, added and assigned to in parts."""

import numpy as np
import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
R, W = 16, 64


def windowed(body, dtype):
    """A program whose kernel `body` gets an input, an output and a window of two inputs' height."""

    @pl.program
    class Windowed:
        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            x: pl.Tensor[[R, W], dtype],
            y: pl.Out[pl.Tensor[[R, W], pl.FP32]],
            box: pld.DistributedTensor[[2 * R, W], dtype],
        ) -> pl.Tensor[[R, W], pl.FP32]:
            return body(x, y, box)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            x: pl.Tensor[[NR, R, W], dtype],
            y: pl.Out[pl.Tensor[[NR, R, W], pl.FP32]],
        ) -> pl.Tensor[[NR, R, W], pl.FP32]:
            buffer = pld.alloc_window_buffer(2 * R * W * dtype.get_byte())
            for r in pl.range(pld.world_size()):
                box = pld.window(buffer, [2 * R, W], dtype=dtype)
                self.chip(x[r], y[r], box, device=r)
            return y

    return Windowed


@pl.function(type=pl.FunctionType.InCore)
def assign_and_read(
    x: pl.Tensor[[R, W], pl.FP32],
    y: pl.Out[pl.Tensor[[R, W], pl.FP32]],
    box: pld.DistributedTensor[[2 * R, W], pl.FP32],
) -> pl.Tensor[[R, W], pl.FP32]:
    box[R : 2 * R, 0:W] = x
    y[:, :] = box[R : 2 * R, :]
    return y


def casting(dtype):
    @pl.function(type=pl.FunctionType.InCore)
    def slice_and_cast(
        x: pl.Tensor[[R, W], dtype],
        y: pl.Out[pl.Tensor[[R, W], pl.FP32]],
        box: pld.DistributedTensor[[2 * R, W], dtype],
    ) -> pl.Tensor[[R, W], pl.FP32]:
        box = pl.store(pl.load(x, [0, 0], [R, W]), [0, 0], box)
        part = pl.tensor.slice(box, [R, W], [0, 0])
        y[:] = pl.cast(part, pl.FP32)
        y[:] = pl.add(y, pl.cast(pl.tensor.slice(box, [R, W], [0, 0]), pl.FP32))
        return y

    return slice_and_cast


@pl.function(type=pl.FunctionType.InCore)
def add_directly(
    x: pl.Tensor[[R, W], pl.FP32],
    y: pl.Out[pl.Tensor[[R, W], pl.FP32]],
    box: pld.DistributedTensor[[2 * R, W], pl.FP32],
) -> pl.Tensor[[R, W], pl.FP32]:
    box[0:R, :] = x
    box[R : 2 * R, :] = pl.add(box[0:R, :], x)
    y[0:R, 0:W] = pl.add(box[0:R, :], box[R : 2 * R, :])
    return y


def test_window_slices(ranks, transport):
    x = numbers(ranks, R, W)
    for body, factor in ((assign_and_read, 1), (add_directly, 3)):
        y = np.zeros_like(x)
        compiled(windowed(body, pl.FP32), ranks)(x, y)
        assert (y == factor * x).all()


@pytest.mark.parametrize("dtype, torch_dtype", [(pl.BF16, torch.bfloat16), (pl.FP16, torch.float16)])
def test_window_cast(dtype, torch_dtype, ranks, transport):
    x = torch.from_numpy(numbers(ranks, R, W) / 7).to(torch_dtype)
    y = torch.zeros(ranks, R, W)
    compiled(windowed(casting(dtype), dtype), ranks)(x, y)
    assert torch.equal(y, x.float() * 2)
