"""Many tasks that wait without holding a core, each with another that reads what came. What all of them wait for is
sent by the task that is submitted last."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled

NR = pl.dynamic("NR")
W = 8


def waiting(count):
    @pl.program
    class Waiting:
        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            epoch: pl.Tensor[[1, W], pl.INT32],
            y: pl.Out[pl.Tensor[[count, W], pl.INT32]],
            box: pl.InOut[pld.DistributedTensor[[1, W], pl.INT32]],
            bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
            peer: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[count, W], pl.INT32]:
            with pl.manual_scope():
                for k in pl.range(count):
                    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate") as gate:
                        need: pl.Scalar[pl.INT32] = pl.read(epoch, [0, 0])
                        pld.system.defer_wait(bell, [0, 0], need, cmp=pld.WaitCmp.Ge)
                    with pl.at(level=pl.Level.CORE_GROUP, name_hint="use", deps=[gate]):
                        y = pl.store(pl.load(box, [0, 0], [1, W]), [k, 0], y)
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="announce"):
                    row = pl.load(epoch, [0, 0], [1, W])
                    pld.tile.remote_store(row, target=box, peer=peer, offsets=[0, 0])
                    value: pl.Scalar[pl.INT32] = pl.read(epoch, [0, 0])
                    pld.system.notify(
                        target=bell, peer=peer, offsets=[0, 0], value=value, op=pld.NotifyOp.Set
                    )
            return y

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            epoch: pl.Tensor[[NR, 1, W], pl.INT32],
            y: pl.Out[pl.Tensor[[NR, count, W], pl.INT32]],
        ) -> pl.Tensor[[NR, count, W], pl.INT32]:
            boxes = pld.alloc_window_buffer(W * pl.INT32.get_byte())
            bells = pld.alloc_window_buffer(pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                box = pld.window(boxes, [1, W], dtype=pl.INT32)
                bell = pld.window(bells, [1, 1], dtype=pl.INT32)
                self.chip(epoch[r], y[r], box, bell, (r + 1) % pld.world_size(), device=r)
            return y

    return Waiting


@pytest.mark.parametrize("count", [4, 16, 48])
def test_the_last_task_opens_all_gates(count, ranks, transport):
    run = compiled(waiting(count), ranks)
    for epoch in (1, 2, 3):
        given = np.arange(ranks * W, dtype=np.int32).reshape(ranks, 1, W) + 100 * epoch
        given[:, :, 0] = epoch
        y = np.zeros((ranks, count, W), np.int32)
        run(given, y)
        assert (y == np.roll(given, 1, axis=0)).all()


def test_epochs_without_resets(ranks, transport):
    """The bells hold what the epoch before has left: a gate opens for its own only."""
    with compiled(waiting(16), ranks).prepare(persistent=True, reset_persistent_windows=False) as worker:
        for epoch in (1, 2, 3):
            given = np.arange(ranks * W, dtype=np.int32).reshape(ranks, 1, W) + 100 * epoch
            given[:, :, 0] = epoch
            y = np.zeros((ranks, 16, W), np.int32)
            worker(given, y)
            assert (y == np.roll(given, 1, axis=0)).all()


@pl.program
class Ready:
    """Gates on a cell that is high enough when they register."""

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        y: pl.Out[pl.Tensor[[3, W], pl.INT32]],
        bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
        me: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[3, W], pl.INT32]:
        with pl.manual_scope():
            with pl.at(level=pl.Level.CORE_GROUP) as rung:
                pld.system.notify(target=bell, peer=me, offsets=[0, 0], value=5, op=pld.NotifyOp.Set)
            for k in pl.range(3):
                with pl.at(level=pl.Level.CORE_GROUP, deps=[rung]) as gate:
                    pld.system.defer_wait(bell, [0, 0], k + 3, cmp=pld.WaitCmp.Ge)
                with pl.at(level=pl.Level.CORE_GROUP, deps=[gate]):
                    level = pl.read(bell, [0, 0]) + pl.cast(k, pl.INT32)
                    y = pl.store(pl.tile.full([1, W], dtype=pl.INT32, value=1) * level, [k, 0], y)
        return y

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, y: pl.Out[pl.Tensor[[NR, 3, W], pl.INT32]]) -> pl.Tensor[[NR, 3, W], pl.INT32]:
        bells = pld.alloc_window_buffer(pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            bell = pld.window(bells, [1, 1], dtype=pl.INT32)
            self.chip(y[r], bell, r, device=r)
        return y


def test_gates_that_are_open_already(ranks, transport):
    run = compiled(Ready, ranks)
    for _ in range(3):
        y = np.zeros((ranks, 3, W), np.int32)
        run(y)
        assert (y == np.array([5, 6, 7])[:, None]).all()
