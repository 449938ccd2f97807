"""Broadcast by hand: the root publishes, everybody else waits for it and fetches."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
SIZE = 64


@pl.program
class Broadcast:
    @pl.function(type=pl.FunctionType.InCore)
    def share(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        ready: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        root: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        ctx = pld.get_comm_ctx(box)
        me = pld.rank(ctx)
        n = pld.nranks(ctx)
        if me == root:
            mine = pl.load(x, [0, 0], [1, SIZE])
            box = pl.store(mine, [0, 0], box)
            for peer in pl.range(n):
                if peer != root:
                    pld.system.notify(
                        ready, peer=peer, offsets=[root, 0], value=1, op=pld.NotifyOp.AtomicAdd
                    )
            y = pl.store(mine, [0, 0], y)
        if me != root:
            pld.system.wait(ready, offsets=[root, 0], expected=1, cmp=pld.WaitCmp.Ge)
            theirs = pld.tile.remote_load(box, peer=root, offsets=[0, 0], shape=[1, SIZE])
            y = pl.store(theirs, [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        ready: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        root: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        return self.share(x, y, box, ready, root)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[NR, 1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
        root: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[NR, 1, SIZE], pl.FP32]:
        boxes = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
        cells = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            box = pld.window(boxes, [1, SIZE], dtype=pl.FP32)
            ready = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
            self.chip(x[r], y[r], box, ready, root, device=r)
        return y


def test_broadcast(ranks, transport):
    x = numbers(ranks, 1, SIZE)
    run = compiled(Broadcast, ranks)
    for root in {0, ranks - 1}:
        y = np.zeros_like(x)
        run(x, y, root)
        assert (y == x[root]).all()
