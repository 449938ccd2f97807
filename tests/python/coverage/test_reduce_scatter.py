"""Reduce-scatter by hand: rank r ends with the sum of everybody's part r."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
STAGED = pl.dynamic("STAGED")
SIZE = 64


@pl.program
class ReduceScatter:
    @pl.function(type=pl.FunctionType.InCore)
    def scatter(
        self,
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        staged: pl.InOut[pld.DistributedTensor[[1, STAGED], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        ctx = pld.get_comm_ctx(staged)
        me = pld.rank(ctx)
        n = pld.nranks(ctx)
        for part in pl.range(n):
            row = pl.load(x, [part, 0], [1, SIZE])
            staged = pl.store(row, [0, part * SIZE], staged)
        for peer in pl.range(n):
            if peer != me:
                pld.system.notify(
                    arrived, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd
                )
        for peer in pl.range(n):
            if peer != me:
                pld.system.wait(arrived, offsets=[peer, 0], expected=1, cmp=pld.WaitCmp.Ge)
        total = pl.load(staged, [0, me * SIZE], [1, SIZE])
        for peer in pl.range(n):
            if peer != me:
                theirs = pld.tile.remote_load(
                    staged, peer=peer, offsets=[0, me * SIZE], shape=[1, SIZE]
                )
                total = pl.add(total, theirs)
        return pl.store(total, [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        staged: pl.InOut[pld.DistributedTensor[[1, STAGED], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        return self.scatter(x, y, staged, arrived)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[NR, NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
    ) -> pl.Tensor[[NR, 1, SIZE], pl.FP32]:
        parts = pld.alloc_window_buffer(NR * SIZE * pl.FP32.get_byte())
        arrivals = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            staged = pld.window(parts, [1, NR * SIZE], dtype=pl.FP32)
            arrived = pld.window(arrivals, [pld.world_size(), 1], dtype=pl.INT32)
            self.chip(x[r], y[r], staged, arrived, device=r)
        return y


def test_reduce_scatter(ranks, transport):
    x = numbers(ranks, ranks, SIZE)
    y = np.zeros((ranks, 1, SIZE), np.float32)
    compiled(ReduceScatter, ranks)(x, y)
    assert (y[:, 0] == x.sum(axis=0)).all()
