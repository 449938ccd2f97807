"""Two independent wrappers fill tensors of the host function, a Python function adds them into the output, and the call
returns it: two times `a`."""

import numpy as np

import pypto.language as pl
from launch import compiled, numbers

N = 8
Square = pl.Tensor[[N, N], pl.FP32]


@pl.program
class Twice:
    @pl.function(type=pl.FunctionType.InCore)
    def add(self, a: Square, b: Square, r: pl.Out[Square]) -> pl.Tensor[[N, N], pl.FP32]:
        return pl.store(pl.add(pl.load(a, [0, 0], [N, N]), pl.load(b, [0, 0], [N, N])), [0, 0], r)

    @pl.function(type=pl.FunctionType.InCore)
    def sub(self, a: Square, b: Square, r: pl.Out[Square]) -> pl.Tensor[[N, N], pl.FP32]:
        return pl.store(pl.sub(pl.load(a, [0, 0], [N, N]), pl.load(b, [0, 0], [N, N])), [0, 0], r)

    @pl.function(type=pl.FunctionType.Orchestration)
    def plus(self, a: Square, b: Square, r: pl.Out[Square]) -> pl.Tensor[[N, N], pl.FP32]:
        return self.add(a, b, r)

    @pl.function(type=pl.FunctionType.Orchestration)
    def minus(self, a: Square, b: Square, r: pl.Out[Square]) -> pl.Tensor[[N, N], pl.FP32]:
        return self.sub(a, b, r)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def join(u: Square, v: Square, out: pl.Out[Square]) -> pl.Tensor[[N, N], pl.FP32]:
        out[:] = u + v

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, a: Square, b: Square, out: pl.Out[Square]) -> pl.Tensor[[N, N], pl.FP32]:
        p = pl.create_tensor([N, N], dtype=pl.FP32)
        q = pl.create_tensor([N, N], dtype=pl.FP32)
        u = self.plus(a, b, p)
        v = self.minus(a, b, q)
        w = self.join(u, v, out)
        return w


def test_parallel_reduce(ranks, transport):
    run = compiled(Twice, ranks)
    a, b = numbers(N, N), numbers(N, N, first=200)
    result = run(a, b)
    assert (result == 2 * a).all()
    out = np.zeros_like(a)
    assert run(a, b, out) is None
    assert (out == 2 * a).all()
