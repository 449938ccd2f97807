"""Very many hand-written barriers in one call. Each rank counts what it finds wrong: behind barrier k every peer's
cell says k; the cells alternate, so that nobody overwrites what a peer has yet to read."""

import numpy as np
import pytest

from transfers import assert_same, run

ALL_TO_ALL = """
    for to in pl.range(n):
        if to != me:
            pld.system.notify(bell, to, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for by in pl.range(n):
        if by != me:
            pld.system.wait(bell, [by, 0], k, cmp=pld.WaitCmp.Ge)
"""
# Rank 0 collects everybody, and releases them.
CENTRAL = """
    if me == 0:
        pld.system.wait(bell, [0, 0], (n - 1) * k, cmp=pld.WaitCmp.Eq)
        for to in pl.range(1, n):
            pld.system.notify(bell, to, [0, 0], k, op=pld.NotifyOp.Set)
    else:
        pld.system.notify(bell, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(bell, [0, 0], k, cmp=pld.WaitCmp.Eq)
"""
# A wave that goes round twice: the first time everybody is behind the ranks before it, the second time behind all.
WAVES = """
    for wave in pl.range(2):
        if me > 0:
            pld.system.wait(bell, [0, 0], 2 * k - 1 + wave, cmp=pld.WaitCmp.Ge)
        pld.system.notify(bell, nxt, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        if me == 0:
            pld.system.wait(bell, [0, 0], 2 * k - 1 + wave, cmp=pld.WaitCmp.Ge)
"""
BARRIERS = {"all to all": ALL_TO_ALL, "central": CENTRAL, "waves": WAVES}


def barriers(ranks, count, barrier):
    body = f"""
bad = pl.const(0, pl.INT32)
for round in pl.range({count}):
    k = pl.cast(round + 1, pl.INT32)
    pl.write(win, [0, k % 2], k)
{barrier.strip(chr(10))}
    for by in pl.range(n):
        if pl.read(pld.tile.remote_load(win, by, [0, k % 2], [1, 1]), [0, 0]) != k:
            bad = bad + 1
pl.write(out, [0, 0], bad)
"""
    x = np.zeros((ranks, 1, 1), np.int32)
    assert_same(run(body, x, "INT32", win=[1, 2]), x)


@pytest.mark.parametrize("name", BARRIERS)
@pytest.mark.parametrize("ranks, count", [(2, 1000), (4, 100), (7, 30), (64, 3)])
def test_barriers_in_a_row(ranks, count, name, transport):
    barriers(ranks, count, BARRIERS[name])


def test_a_hundred_thousand_barriers(transport):
    barriers(2, 100000, ALL_TO_ALL)
