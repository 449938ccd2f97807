"""put in its forms: whole slices, added, in chunks, parts; and a kernel that returns early on most
ranks. The host computes the peer and passes it as INT32."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
R, W = 8, 32


def putting(kernel):
    """A program around a kernel that gets an input, an output, a window, a signal cell and a peer."""

    @pl.program
    class Putting:
        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            x: pl.Tensor[[R, W], pl.FP32],
            y: pl.Out[pl.Tensor[[R, W], pl.FP32]],
            box: pld.DistributedTensor[[R, W], pl.FP32],
            bell: pld.DistributedTensor[[1, 1], pl.INT32],
            peer: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[R, W], pl.FP32]:
            return kernel(x, y, box, bell, peer)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            x: pl.Tensor[[NR, R, W], pl.FP32],
            y: pl.Out[pl.Tensor[[NR, R, W], pl.FP32]],
        ) -> pl.Tensor[[NR, R, W], pl.FP32]:
            boxes = pld.alloc_window_buffer(R * W * pl.FP32.get_byte())
            bells = pld.alloc_window_buffer(pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                box = pld.window(boxes, [R, W], dtype=pl.FP32)
                bell = pld.window(bells, [1, 1], dtype=pl.INT32)
                self.chip(x[r], y[r], box, bell, (r + 1) % pld.world_size(), device=r)
            return y

    return Putting


@pl.function(type=pl.FunctionType.InCore)
def whole(
    x: pl.Tensor[[R, W], pl.FP32],
    y: pl.Out[pl.Tensor[[R, W], pl.FP32]],
    box: pld.DistributedTensor[[R, W], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[R, W], pl.FP32]:
    pld.tensor.put(box, peer, x, atomic=pld.AtomicType.None_)
    pld.system.notify(target=bell, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal=bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    return pl.store(pl.load(box, [0, 0], [R, W]), [0, 0], y)


@pl.function(type=pl.FunctionType.InCore)
def chunks(
    x: pl.Tensor[[R, W], pl.FP32],
    y: pl.Out[pl.Tensor[[R, W], pl.FP32]],
    box: pld.DistributedTensor[[R, W], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[R, W], pl.FP32]:
    pld.tensor.put(
        box, peer, x, atomic=pld.AtomicType.None_, chunk_rows=3, chunk_cols=16, pipeline=True
    )
    pld.system.notify(target=bell, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal=bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    return pl.store(pl.load(box, [0, 0], [R, W]), [0, 0], y)


@pl.function(type=pl.FunctionType.InCore)
def one_chunk_after_the_other(
    x: pl.Tensor[[R, W], pl.FP32],
    y: pl.Out[pl.Tensor[[R, W], pl.FP32]],
    box: pld.DistributedTensor[[R, W], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[R, W], pl.FP32]:
    ctx = pld.get_comm_ctx(box)
    after = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    pld.tensor.put(box, after, x, chunk_rows=2, chunk_cols=16)
    pld.system.notify(target=bell, peer=after, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal=bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    return pl.store(pl.load(box, [0, 0], [R, W]), [0, 0], y)


@pl.function(type=pl.FunctionType.InCore)
def row_to_another_row(
    x: pl.Tensor[[R, W], pl.FP32],
    y: pl.Out[pl.Tensor[[R, W], pl.FP32]],
    box: pld.DistributedTensor[[R, W], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[R, W], pl.FP32]:
    pld.tensor.put(box, peer, x, dst_offsets=[1, 0], src_offsets=[0, 0], shape=[1, W])
    pld.system.notify(target=bell, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal=bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    return pl.store(pl.load(box, [0, 0], [R, W]), [0, 0], y)


@pl.function(type=pl.FunctionType.InCore)
def parts(
    x: pl.Tensor[[R, W], pl.FP32],
    y: pl.Out[pl.Tensor[[R, W], pl.FP32]],
    box: pld.DistributedTensor[[R, W], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[R, W], pl.FP32]:
    for i in pl.range(R):       # row i of x becomes row R - 1 - i there, its halves swapped
        to = R - 1 - i
        pld.tensor.put(
            box,
            peer,
            x,
            dst_offsets=[to, 0],
            src_offsets=[i, W // 2],
            shape=[1, W // 2],
            atomic=pld.AtomicType.None_,
        )
        pld.tensor.put(box, peer, x, [to, W // 2], [i, 0], [1, W // 2])
    pld.system.notify(target=bell, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal=bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    return pl.store(pl.load(box, [0, 0], [R, W]), [0, 0], y)


@pl.function(type=pl.FunctionType.InCore)
def gather_sum(
    x: pl.Tensor[[R, W], pl.FP32],
    y: pl.Out[pl.Tensor[[R, W], pl.FP32]],
    box: pld.DistributedTensor[[R, W], pl.FP32],
    bell: pld.DistributedTensor[[1, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
) -> pl.Tensor[[R, W], pl.FP32]:
    ctx = pld.get_comm_ctx(box)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    pld.tensor.put(box, 0, x, atomic=pld.AtomicType.Add, chunk_rows=2, chunk_cols=W)
    pld.system.notify(bell, peer=0, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    if me == 0:
        pld.system.wait(signal=bell, offsets=[0, 0], expected=n, cmp=pld.WaitCmp.Ge)
        total = pl.load(box, [0, 0], [R, W])
        return pl.store(total, [0, 0], y)
    return y


def expected_whole(x):
    return np.roll(x, 1, axis=0)


def expected_row(x):
    y = np.zeros_like(x)
    y[:, 1] = np.roll(x, 1, axis=0)[:, 0]
    return y


def expected_parts(x):
    came = np.roll(x, 1, axis=0)[:, ::-1]
    return np.roll(came, W // 2, axis=2)


def expected_sum(x):
    y = np.zeros_like(x)
    y[0] = x.sum(axis=0)
    return y


@pytest.mark.parametrize(
    "kernel, expected",
    [
        (whole, expected_whole),
        (chunks, expected_whole),
        (one_chunk_after_the_other, expected_whole),
        (row_to_another_row, expected_row),
        (parts, expected_parts),
        (gather_sum, expected_sum),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)
def test_put(kernel, expected, ranks, transport):
    x = numbers(ranks, R, W)
    y = np.zeros_like(x)
    compiled(putting(kernel), ranks)(x, y)
    assert (y == expected(x)).all()
