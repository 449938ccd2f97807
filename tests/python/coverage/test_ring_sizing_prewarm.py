"""The host binds the result of a call without `device=` to an annotated name and returns it."""

import numpy as np

import pypto.language as pl
from pypto.runtime import RunConfig
from launch import compiled, numbers

N = 32


@pl.program
class AddOnce:
    @pl.function(type=pl.FunctionType.InCore)
    def add_kernel(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        c: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        total = pl.add(pl.load(a, [0, 0], [N, N]), pl.load(b, [0, 0], [N, N]))
        done = pl.store(total, [0, 0], c)
        return done

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        c: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        done = self.add_kernel(a, b, c)
        return done

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        c: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        done: pl.Tensor[[N, N], pl.FP32] = self.chip(a, b, c)
        return done


def test_ring_sizing_prewarm(ranks, transport):
    a, b = numbers(N, N), numbers(N, N, first=500)
    run = compiled(AddOnce, ranks)
    c = np.zeros_like(a)
    for _ in range(3):
        run(a, b, c)
        assert (c == a + b).all()
        c[:] = 0
    assert (run(a, b) == a + b).all()


def test_prepared_sizes(ranks, transport):
    sizes = RunConfig(platform="cpu", ring_task_window=64, ring_heap=8 << 20, ring_dep_pool=256)
    a, b = numbers(N, N), numbers(N, N, first=500)
    with compiled(AddOnce, ranks).prepare(sizes) as worker:
        c = np.zeros_like(a)
        worker(a, b, c, config=sizes)
        assert (c == a + b).all()
