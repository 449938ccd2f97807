"""A barrier in the host function between two dispatches: its result bound to the signal's name, and as a statement."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
SIZE = 64


@pl.program
class HostBarrier:
    @pl.function(type=pl.FunctionType.InCore)
    def publish(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR], pl.INT32]],
    ) -> pld.DistributedTensor[[1, SIZE], pl.FP32]:
        return pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], box)

    @pl.function(type=pl.FunctionType.InCore)
    def fetch(
        self,
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        ctx = pld.get_comm_ctx(box)
        peer = (pld.rank(ctx) + 1) % pld.nranks(ctx)
        theirs = pld.tile.remote_load(box, peer=peer, offsets=[0, 0], shape=[1, SIZE])
        return pl.store(theirs, [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip_publish(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR], pl.INT32]],
    ) -> pld.DistributedTensor[[1, SIZE], pl.FP32]:
        return self.publish(x, box, signal)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip_fetch(
        self,
        box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    ) -> pl.Tensor[[1, SIZE], pl.FP32]:
        return self.fetch(box, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[2, NR, 1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[2, NR, 1, SIZE], pl.FP32]],
    ) -> pl.Tensor[[2, NR, 1, SIZE], pl.FP32]:
        box_buf = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
        signal_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        box = pld.window(box_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size()], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            self.chip_publish(x[0, r], box, signal, device=r)
        signal = pld.tensor.barrier(signal)
        for r in pl.range(pld.world_size()):
            self.chip_fetch(box, y[0, r], device=r)
        signal = pld.tensor.barrier(signal)
        for r in pl.range(pld.world_size()):
            self.chip_publish(x[1, r], box, signal, device=r)
        pld.tensor.barrier(signal)
        for r in pl.range(pld.world_size()):
            self.chip_fetch(box, y[1, r], device=r)
        return y


def test_host_barrier(ranks, transport):
    x = numbers(2, ranks, 1, SIZE)
    y = np.zeros_like(x)
    compiled(HostBarrier, ranks)(x, y)
    assert (y == np.roll(x, -1, axis=1)).all()
