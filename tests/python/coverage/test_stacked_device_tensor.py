"""Shard 0 goes to device 1 and shard 1 to device 0; the host function has no result."""

import numpy as np

import pypto.language as pl
from launch import compiled, numbers

N = 16


@pl.program
class Crossed:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[N, N], pl.FP32],
        weight: pl.Tensor[[N, N], pl.FP32],
        y: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        total = pl.add(pl.load(x, [0, 0], [N, N]), pl.load(weight, [0, 0], [N, N]))
        return pl.store(total, [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[N, N], pl.FP32],
        weight: pl.Tensor[[N, N], pl.FP32],
        y: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        return self.kernel(x, weight, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[2, N, N], pl.FP32],
        weight: pl.Tensor[[2, N, N], pl.FP32],
        y: pl.Out[pl.Tensor[[2, N, N], pl.FP32]],
    ):
        self.chip(x[0], weight[0], y[0], device=1)
        self.chip(x[1], weight[1], y[1], device=0)


def test_stacked_device_tensor(transport):
    x, weight = numbers(2, N, N), numbers(2, N, N, first=300)
    for devices in (2, [5, 3]):     # ids are names; device= counts positions
        y = np.zeros_like(x)
        compiled(Crossed, devices)(x, weight, y)
        assert (y == x + weight).all()


def test_shards_that_stay(transport):
    x, weight = numbers(2, N, N), numbers(2, N, N, first=300)
    for devices in (2, [5, 3]):
        with compiled(Crossed, devices).prepare() as worker:
            resident = worker.alloc_stacked_tensor(weight, worker_ids=[1, 0])
            y, back = np.zeros_like(x), np.zeros_like(x)
            worker(x, resident, y)
            assert (y == x + weight).all()
            worker.copy_stacked_from(resident, back)
            assert (back == weight).all()
            worker.free_stacked_tensor(resident)
