"""A rank takes back the credit that it received by notifying itself with a negative number."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled

NR = pl.dynamic("NR")
CREDIT, ROUNDS = 3, 4


def program(kernel):
    """A program around a kernel that gets an output, a signal cell, its own rank and that of a peer."""

    @pl.program
    class Around:
        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            out: pl.Out[pl.Tensor[[1, 2], pl.INT32]],
            bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
            own: pl.Scalar[pl.INT32],
            peer: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[1, 2], pl.INT32]:
            return kernel(out, bell, own, peer)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self, out: pl.Out[pl.Tensor[[NR, 1, 2], pl.INT32]]
        ) -> pl.Tensor[[NR, 1, 2], pl.INT32]:
            buffer = pld.alloc_window_buffer(pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                bell = pld.window(buffer, [1, 1], dtype=pl.INT32)
                self.chip(out[r], bell, r, (r + 1) % pld.world_size(), device=r)
            return out

    return Around


@pl.function(type=pl.FunctionType.InCore)
def spend(
    out: pl.Out[pl.Tensor[[1, 2], pl.INT32]],
    bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
    own: pl.Scalar[pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[1, 2], pl.INT32]:
    rounds: pl.Scalar[pl.INT32] = 0
    for _ in pl.unroll(ROUNDS):
        pld.system.notify(
            target=bell, peer=peer, offsets=[0, 0], value=CREDIT, op=pld.NotifyOp.AtomicAdd
        )
        pld.system.wait(signal=bell, offsets=[0, 0], expected=CREDIT, cmp=pld.WaitCmp.Ge)
        pld.system.notify(
            target=bell, peer=own, offsets=[0, 0], value=-CREDIT, op=pld.NotifyOp.AtomicAdd
        )
        rounds = rounds + pl.const(1, pl.INT32)
    # The credit of the peer's last round has arrived, so nothing more will: all of it is spent.
    left: pl.Scalar[pl.INT32] = pl.read(bell, [0, 0])
    pl.write(out, [0, 0], rounds)
    pl.write(out, [0, 1], left)
    return out


@pl.function(type=pl.FunctionType.InCore)
def spend_at_once(
    out: pl.Out[pl.Tensor[[1, 2], pl.INT32]],
    bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
    own: pl.Scalar[pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[1, 2], pl.INT32]:
    for _ in pl.unroll(ROUNDS):
        pld.system.notify(target=bell, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal=bell, offsets=[0, 0], expected=ROUNDS, cmp=pld.WaitCmp.Ge)
    pl.write(out, [0, 0], pl.read(bell, [0, 0]))
    spent = pl.const(-ROUNDS, pl.INT32)
    pld.system.notify(bell, own, [0, 0], spent, op=pld.NotifyOp.AtomicAdd)
    pl.write(out, [0, 1], pl.read(bell, [0, 0]))
    return out


@pytest.mark.parametrize("kernel", [spend, spend_at_once], ids=["in rounds", "at once"])
def test_self_notify_credit_reset(kernel, ranks, transport):
    run = compiled(program(kernel), ranks)
    for _ in range(3):
        out = np.full((ranks, 1, 2), -1, np.int32)
        run(out)
        assert (out == [ROUNDS, 0]).all()


@pytest.mark.parametrize("kernel", [spend, spend_at_once], ids=["in rounds", "at once"])
def test_without_resets(kernel, ranks, transport):
    prepared = compiled(program(kernel), ranks)
    with prepared.prepare(persistent=True, reset_persistent_windows=False) as worker:
        for _ in range(3):
            out = np.full((ranks, 1, 2), -1, np.int32)
            worker(out)
            assert (out == [ROUNDS, 0]).all()
