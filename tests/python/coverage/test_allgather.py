"""All-gather by hand: every rank ends with the rows of all."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
GATHERED = pl.dynamic("GATHERED")
SIZE = 64


@pl.program
class AllGather:
    @pl.function(type=pl.FunctionType.InCore)
    def gather(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, GATHERED], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[1, GATHERED], pl.FP32]:
        ctx = pld.get_comm_ctx(box)
        me = pld.rank(ctx)
        n = pld.nranks(ctx)
        mine = pl.load(x, [0, 0], [1, SIZE])
        box = pl.store(mine, [0, 0], box)
        for peer in pl.range(n):
            if peer != me:
                pld.system.notify(
                    arrived, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd
                )
        y = pl.store(mine, [0, me * SIZE], y)
        for peer in pl.range(n):
            if peer != me:
                pld.system.wait(arrived, offsets=[peer, 0], expected=1, cmp=pld.WaitCmp.Ge)
                theirs = pld.tile.remote_load(box, peer=peer, offsets=[0, 0], shape=[1, SIZE])
                y = pl.store(theirs, [0, peer * SIZE], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, GATHERED], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[1, GATHERED], pl.FP32]:
        return self.gather(x, y, box, arrived)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[NR, 1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, 1, NR * SIZE], pl.FP32]],
    ) -> pl.Tensor[[NR, 1, NR * SIZE], pl.FP32]:
        boxes = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
        arrivals = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            box = pld.window(boxes, [1, SIZE], dtype=pl.FP32)
            arrived = pld.window(arrivals, [pld.world_size(), 1], dtype=pl.INT32)
            self.chip(x[r], y[r], box, arrived, device=r)
        return y


def test_allgather(ranks, transport):
    x = numbers(ranks, 1, SIZE)
    y = np.zeros((ranks, 1, ranks * SIZE), np.float32)
    compiled(AllGather, ranks)(x, y)
    assert (y == x.reshape(1, 1, -1)).all()
