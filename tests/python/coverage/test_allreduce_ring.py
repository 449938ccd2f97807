"""All-reduce around a ring: each rank sends a chunk of its row on, n - 1 times to add and n - 1
times to copy. The number of ranks is a constant of the program."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

SIZE = 48


def ring(n_ranks):
    chunk = SIZE // n_ranks

    @pl.program
    class Ring:
        @pl.function(type=pl.FunctionType.InCore)
        def reduce(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            step_done: pl.InOut[pld.DistributedTensor[[2 * n_ranks, 1], pl.INT32]],
            n: pl.Scalar[pl.INDEX],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(box)
            me = pld.rank(ctx)
            n_all = pld.nranks(ctx)
            left = (me - 1 + n) % n
            box = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], box)
            # In step s a rank has finished chunk (me - s) and tells everybody so; cell s of a rank counts
            # who has. Step 0: the own row is there.
            for s in pl.range(2 * n - 1):
                for peer in pl.range(n_all):
                    if peer != me:
                        pld.system.notify(
                            step_done, peer=peer, offsets=[s, 0], value=1, op=pld.NotifyOp.AtomicAdd
                        )
                pld.system.wait(step_done, offsets=[s, 0], expected=n - 1, cmp=pld.WaitCmp.Ge)
                if s != 2 * n - 2:
                    at = ((me - 1 - s + 2 * n) % n) * (SIZE // n)
                    theirs = pld.tile.remote_load(box, peer=left, offsets=[0, at], shape=[1, chunk])
                    if s < n - 1:
                        theirs = pl.add(theirs, pl.load(box, [0, at], [1, chunk]))
                    box = pl.store(theirs, [0, at], box)
            return pl.store(pl.load(box, [0, 0], [1, SIZE]), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            box: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            step_done: pl.InOut[pld.DistributedTensor[[2 * n_ranks, 1], pl.INT32]],
            n: pl.Scalar[pl.INDEX],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.reduce(x, y, box, step_done, n)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            x: pl.Tensor[[n_ranks, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[n_ranks, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[n_ranks, 1, SIZE], pl.FP32]:
            boxes = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
            cells = pld.alloc_window_buffer(2 * n_ranks * pl.INT32.get_byte())
            for r in pl.range(n_ranks):
                box = pld.window(boxes, [1, SIZE], dtype=pl.FP32)
                step_done = pld.window(cells, [2 * n_ranks, 1], dtype=pl.INT32)
                self.chip(x[r], y[r], box, step_done, n_ranks, device=r)
            return y

    return Ring


def test_allreduce_ring(ranks, transport):
    x = numbers(ranks, 1, SIZE)
    y = np.zeros_like(x)
    compiled(ring(ranks), ranks)(x, y)
    assert (y == x.sum(axis=0)).all()


def test_ring_of_some_of_the_devices(transport):
    x = numbers(3, 1, SIZE)
    y = np.zeros_like(x)
    compiled(ring(3), 4)(x, y)
    assert (y == x.sum(axis=0)).all()
