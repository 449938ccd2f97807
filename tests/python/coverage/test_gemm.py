"""Two kernels in one wrapper: the first fills a window, the second multiplies matrices; memory
spaces do not change values."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
M, K, N = 64, 64, 64


@pl.program
class Gemm:
    @pl.function(type=pl.FunctionType.InCore)
    def touch(
        self, box: pl.InOut[pld.DistributedTensor[[M, N], pl.FP32]]
    ) -> pld.DistributedTensor[[M, N], pl.FP32]:
        ones = pl.tile.full([M, N], dtype=pl.FP32, value=1.0)
        return pl.store(ones, [0, 0], box)

    @pl.function(type=pl.FunctionType.InCore)
    def multiply(
        self,
        a: pl.Tensor[[M, K], pl.FP32],
        b: pl.Tensor[[K, N], pl.FP32],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ) -> pl.Tensor[[M, N], pl.FP32]:
        a_mat = pl.load(a, offsets=[0, 0], shapes=[M, K], target_memory=pl.MemorySpace.Mat)
        b_mat = pl.load(b, offsets=[0, 0], shapes=[K, N], target_memory=pl.MemorySpace.Mat)
        left = pl.move(a_mat, target_memory=pl.MemorySpace.Left)
        right = pl.move(b_mat, target_memory=pl.MemorySpace.Right)
        return pl.store(pl.matmul(left, right), offsets=[0, 0], output_tensor=c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        box: pl.InOut[pld.DistributedTensor[[M, N], pl.FP32]],
        a: pl.Tensor[[M, K], pl.FP32],
        b: pl.Tensor[[K, N], pl.FP32],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ) -> pl.Tensor[[M, N], pl.FP32]:
        self.touch(box)
        return self.multiply(a, b, c)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        a: pl.Tensor[[NR, M, K], pl.FP32],
        b: pl.Tensor[[K, N], pl.FP32],
        c: pl.Out[pl.Tensor[[NR, M, N], pl.FP32]],
    ) -> pl.Tensor[[NR, M, N], pl.FP32]:
        buffer = pld.alloc_window_buffer(M * N * pl.FP32.get_byte())
        for r in pl.range(pld.world_size()):
            box = pld.window(buffer, [M, N], dtype=pl.FP32)
            self.chip(box, a[r], b, c[r], device=r)
        return c


def test_gemm(ranks, transport):
    a, b = numbers(ranks, M, K) % 17, numbers(K, N) % 13
    c = np.zeros((ranks, M, N), np.float32)
    compiled(Gemm, ranks)(a, b, c)
    assert (c == a @ b).all()
