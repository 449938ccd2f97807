"""All-to-all by hand: row r of every rank goes to rank r, pushed as parts of tensors."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
SIZE = 64


@pl.program
class AllToAll:
    @pl.function(type=pl.FunctionType.InCore)
    def exchange(
        self,
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[NR, SIZE], pl.FP32]:
        ctx = pld.get_comm_ctx(box)
        me = pld.rank(ctx)
        n = pld.nranks(ctx)
        for peer in pl.range(n):
            if peer != me:
                pld.tensor.put(box, peer, x, [me, 0], [peer, 0], [1, SIZE])
                pld.system.notify(arrived, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
        y = pl.store(pl.load(x, [me, 0], [1, SIZE]), [me, 0], y)
        for source in pl.range(n):
            if source != me:
                pld.system.wait(
                    signal=arrived, offsets=[source, 0], expected=1, cmp=pld.WaitCmp.Ge
                )
                y = pl.store(pl.load(box, [source, 0], [1, SIZE]), [source, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[NR, SIZE], pl.FP32]:
        return self.exchange(x, y, box, arrived)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[NR, NR, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]],
    ) -> pl.Tensor[[NR, NR, SIZE], pl.FP32]:
        boxes = pld.alloc_window_buffer(NR * SIZE * pl.FP32.get_byte())
        arrivals = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            box = pld.window(boxes, [NR, SIZE], dtype=pl.FP32)
            arrived = pld.window(arrivals, [NR, 1], dtype=pl.INT32)
            self.chip(x[r], y[r], box, arrived, device=r)
        return y


def test_all_to_all(ranks, transport):
    x = numbers(ranks, ranks, SIZE)
    y = np.zeros_like(x)
    compiled(AllToAll, ranks)(x, y)
    assert (y == x.swapaxes(0, 1)).all()
