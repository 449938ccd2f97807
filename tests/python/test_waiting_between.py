"""Ranks that wait for each other across domains and dispatches: what is a deadlock, and is told as one, and what
only looks like one."""

import numpy as np
import pytest

import pypto
from programs import config, from_text

# Rank 0 and 1 share `a` with each other, and `b` with rank 2 as well.
GROUPS = """
@pl.jit.incore
def pair(a: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
         b: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]], me: pl.Scalar[pl.INT32]):
    if me == 0:
        {first}
    else:
        {second}

@pl.jit.incore
def alone(b: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]]):
    pld.system.wait(b, [2, 0], 0, cmp=pld.WaitCmp.Ge)

@pl.jit
def pair_chip(a: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
              b: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]], me: pl.Scalar[pl.INT32]):
    pair(a, b, me)

@pl.jit
def alone_chip(b: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]]):
    alone(b)

@pl.jit.host
def host():
    a_buf = pld.alloc_window_buffer(8)
    b_buf = pld.alloc_window_buffer(12)
    for r in pl.range(2):
        a = pld.window(a_buf, [2, 1], dtype=pl.INT32)
        b = pld.window(b_buf, [3, 1], dtype=pl.INT32)
        pair_chip(a, b, r, device=r)
    b = pld.window(b_buf, [3, 1], dtype=pl.INT32)
    alone_chip(b, device=2)
"""

WAIT_A = "pld.system.wait(a, [1 - me, 0], 1, cmp=pld.WaitCmp.Ge)"
WAIT_B = "pld.system.wait(b, [1 - me, 0], 1, cmp=pld.WaitCmp.Ge)"
RING_A = "pld.system.notify(a, 1 - me, [me, 0], 1, op=pld.NotifyOp.Set)"
RING_B = "pld.system.notify(b, 1 - me, [me, 0], 1, op=pld.NotifyOp.Set)"


def both(*lines):
    return "\n        ".join(lines)


def test_two_groups_wait_for_each_other_in_opposite_order(transport):
    """Rank 0 waits in one domain before it notifies in the other, rank 1 the other way round."""
    wrong = GROUPS.format(first=both(WAIT_B, RING_A), second=both(WAIT_A, RING_B))
    with pytest.raises(pypto.DeadlockError) as caught:
        from_text(wrong)["host"](config=config(3))
    text = str(caught.value)
    assert "2 of 3 ranks" in text
    assert "rank 0: waits for 'b_buf'[1, 0] >= 1" in text
    assert "rank 1: waits for 'a_buf'[0, 0] >= 1" in text
    assert "cycle: rank 0 -> rank 1 -> rank 0" in text
    right = GROUPS.format(first=both(RING_A, WAIT_B), second=both(WAIT_A, RING_B))
    from_text(right)["host"](config=config(3))


# Every rank meets every other one in the middle of its dispatch.
MEETING = """
NR = pl.dynamic("NR")

@pl.jit.incore
def meet(x: pl.InOut[pl.Tensor[[{rows}, 8], pl.FP32]], signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    t = pl.load(x, [0, 0], [{rows}, 8])
    pl.store(pl.add(t, 1.0), [0, 0], x)
    pld.tensor.barrier(signal)

@pl.jit
def chip(x: pl.InOut[pl.Tensor[[{rows}, 8], pl.FP32]], signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    meet(x, signal)

@pl.jit.host
def host(x: pl.InOut[pl.Tensor[[{all}, 8], pl.FP32]]):
    buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        signal = pld.window(buf, [pld.world_size(), 1], dtype=pl.INT32)
        chip({part}, signal, device=r)
"""


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_disjoint_parts_of_one_tensor_do_not_chain_ranks(ranks, transport):
    x = np.zeros((ranks, 8), dtype=np.float32)
    from_text(MEETING.format(all="NR", rows=1, part="x[r : r + 1, :]"))["host"](x, config=config(ranks))
    np.testing.assert_array_equal(x, np.ones_like(x))


def test_a_tensor_that_all_ranks_change_chains_them(transport):
    """Each reads what the one before has written, so none can start while that one waits for all."""
    x = np.zeros((2, 8), dtype=np.float32)
    with pytest.raises((pypto.CollectiveMismatchError, pypto.DeadlockError)) as caught:
        from_text(MEETING.format(all="2", rows=2, part="x"))["host"](x, config=config(2))
    text = str(caught.value)
    assert "chip waits for a dispatch of rank 0" in text
    assert "is in barrier on signal 'buf'" in text


# ---- dispatches that share host tensors ----

ORDER = """
Row = pl.Tensor[[8], pl.INT32]

@pl.jit
def fill(x: Row, y: pl.Out[Row]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(200000):
            pl.read(x, [1])
        y[:] = pl.add(x, 1)

@pl.jit
def add_ten(y: pl.InOut[Row]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.add(y, 10)

@pl.jit
def add_up(rows: pl.Tensor[[NR, 8], pl.INT32], sum: pl.Out[Row]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for r in pl.range(NR):
            sum[:] = pl.add(sum, rows[r])

@pl.jit.host
def host(x: pl.Tensor[[NR, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, 8], pl.INT32]], sum: pl.Out[Row]):
"""
FILL = "    for r in pl.range(pld.world_size()):\n        fill(x[r], y[r], device=r)\n"


def in_order(body):
    x = np.arange(24, dtype=np.int32).reshape(3, 8)
    y, total = np.zeros_like(x), np.zeros(8, np.int32)
    from_text(ORDER + body)["host"](x, y, total, config=config(3))
    return x, y, total


@pytest.mark.parametrize("reader", [0, 1, 2])
def test_a_reader_waits_for_all_that_fill_a_tensor_together(reader, transport):
    x, y, total = in_order(f"{FILL}    add_up(y, sum, device={reader})\n")
    np.testing.assert_array_equal(total, (x + 1).sum(axis=0))


def test_changes_of_one_row_on_several_devices_come_one_after_the_other(transport):
    """Each behind the writer before it; without device= they go around."""
    body = "    fill(x[0], y[0], device=2)\n    for r in pl.range(5):\n        add_ten(y[0])\n"
    x, y, _ = in_order(body)
    np.testing.assert_array_equal(y[0], x[0] + 51)


def test_a_branch_chooses_what_a_dispatch_reads(transport):
    body = """
    for r in pl.range(pld.world_size()):
        if r == 0:
            t = x[2]
        else:
            t = y[r - 1]
        fill(t, y[r], device=r)
"""
    x, y, _ = in_order(body)
    np.testing.assert_array_equal(y, x[2] + np.arange(1, 4)[:, None])


# ---- windows of two domains ----

TWO_DOMAINS = """
Cell = dist.DistributedTensor[[1], pl.INT32]

@pl.jit.incore
def kernel(y: pl.Out[pl.Tensor[[2, 2], pl.INT32]], a: Cell, b: Cell):
    now = a
    for i in pl.range(2):
        ctx = dist.get_comm_ctx(now)
        y[i, 0] = dist.rank(ctx)
        y[i, 1] = dist.nranks(ctx)
        now = b

@pl.jit
def chip(y: pl.Out[pl.Tensor[[2, 2], pl.INT32]], a: Cell, b: Cell):
    kernel(y, a, b)

@pl.jit
def other(b: Cell):
    with pl.at(level=pl.Level.CORE_GROUP):
        dist.system.wait(b, [0], 0, cmp=dist.WaitCmp.Ge)

@pl.jit.host
def host(y: pl.Out[pl.Tensor[[3, 2, 2], pl.INT32]]):
    a_buf = dist.alloc_window_buffer(4)
    b_buf = dist.tensor.alloc_window_buffer(4)
    a = dist.window(a_buf, [1], dtype=pl.INT32)
    b = dist.tensor.window(b_buf, [1], dtype=pl.INT32)
    other(b, device=0)
    for r in pl.range(1, 3):
        chip(y[r], a, b, device=r)
"""


def test_a_kernel_has_a_rank_in_each_domain_of_its_windows():
    """Under one name, too; and `pld` may have another one."""
    y = np.zeros((3, 2, 2), np.int32)
    from_text("import pypto.language.distributed as dist\n" + TWO_DOMAINS)["host"](y, config=config(3))
    assert y.tolist() == [[[0, 0], [0, 0]], [[0, 2], [1, 3]], [[1, 2], [2, 3]]]
