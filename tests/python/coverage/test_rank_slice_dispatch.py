"""The loop over the ranks is one dispatch and nothing else; kernels work on parts of their tensor."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
ROWS, COLUMNS, STEP = 16, 32, 4


@pl.program
class RankSlices:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
        b: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
        c: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLUMNS], pl.FP32]:
        for i in pl.parallel(ROWS // STEP):
            left = pl.slice(a, [STEP, COLUMNS], [i * STEP, 0])
            right = pl.slice(b, [STEP, COLUMNS], [i * STEP, 0])
            c = pl.assemble(c, pl.add(left, right), [i * STEP, 0])
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        a: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
        b: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
        c: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLUMNS], pl.FP32]:
        return self.kernel(a, b, c)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        a: pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32],
        b: pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32],
        c: pl.Out[pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32]],
    ):
        for r in pl.parallel(pld.world_size()):
            self.chip(a[r], b[r], c[r], device=r)


def test_rank_slice_dispatch(ranks, transport):
    a, b = numbers(ranks, ROWS, COLUMNS), numbers(ranks, ROWS, COLUMNS, first=70)
    c = np.zeros_like(a)
    compiled(RankSlices, ranks)(a, b, c)
    assert (c == a + b).all()
