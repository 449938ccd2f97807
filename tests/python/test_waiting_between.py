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
