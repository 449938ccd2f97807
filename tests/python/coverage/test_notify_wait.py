"""Only signals: each rank counts up a cell of the next rank and writes down what it finds in its
own."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled

NR = pl.dynamic("NR")


@pl.program
class Signals:
    @pl.function(type=pl.FunctionType.InCore)
    def ring(
        self,
        out: pl.Out[pl.Tensor[[1, 1], pl.INT32]],
        bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
        peer: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, 1], pl.INT32]:
        pld.system.notify(
            target=bell, peer=peer, offsets=[0, 0], value=7, op=pld.NotifyOp.AtomicAdd
        )
        pld.system.wait(signal=bell, offsets=[0, 0], expected=7, cmp=pld.WaitCmp.Ge)
        seen: pl.Scalar[pl.INT32] = pl.read(bell, [0, 0])
        pl.write(out, [0, 0], seen)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        out: pl.Out[pl.Tensor[[1, 1], pl.INT32]],
        bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
        peer: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, 1], pl.INT32]:
        return self.ring(out, bell, peer)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, out: pl.Out[pl.Tensor[[NR, 1, 1], pl.INT32]]
    ) -> pl.Tensor[[NR, 1, 1], pl.INT32]:
        buffer = pld.alloc_window_buffer(pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            bell = pld.window(buffer, [1, 1], dtype=pl.INT32)
            self.chip(out[r], bell, (r + 1) % pld.world_size(), device=r)
        return out


def test_notify_wait(ranks, transport):
    run = compiled(Signals, ranks)
    for _ in range(3):      # each call finds its signals at zero
        out = np.zeros((ranks, 1, 1), np.int32)
        run(out)
        assert (out == 7).all()


def test_one_allocation(ranks, transport):
    program = compiled(Signals, ranks)
    with program.prepare(persistent=True) as worker:
        for _ in range(3):
            out = np.zeros((ranks, 1, 1), np.int32)
            worker(out)
            assert (out == 7).all()
        assert worker.domain_count == 1
