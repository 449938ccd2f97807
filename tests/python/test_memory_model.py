"""Who sees what, sentence by sentence: what notify and wait order, what a window is to its own rank, and views of windows.
One ring of ranks; each rank has two windows `w` and `v` like its rows of `x` and `y`, and four cells of `s` per peer."""

import numpy as np
import pytest

from programs import config, from_text

TEXT = """
@pl.jit.incore
def k(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]],
      w: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]], v: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
      s: pl.InOut[pld.DistributedTensor[[NR, 4], pl.INT32]]):
    ctx = pld.get_comm_ctx(w)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    right = (me + 1) % n
    left = (me - 1) % n
{body}

@pl.jit
def c(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]],
      w: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]], v: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
      s: pl.InOut[pld.DistributedTensor[[NR, 4], pl.INT32]]):
    k(x, y, w, v, s)

@pl.jit.host
def h(x: pl.Tensor[[NR, 4, 8], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4, 8], pl.FP32]]):
    w_buf = pld.alloc_window_buffer([4, 8], dtype=pl.FP32)
    v_buf = pld.alloc_window_buffer([4, 8], dtype=pl.FP32)
    s_buf = pld.alloc_window_buffer(16 * pld.world_size())
    for r in pl.range(pld.world_size()):
        w = pld.window(w_buf, [4, 8], dtype=pl.FP32)
        v = pld.window(v_buf, [4, 8], dtype=pl.FP32)
        s = pld.window(s_buf, [pld.world_size(), 4], dtype=pl.INT32)
        c(x[r], y[r], w, v, s, device=r)
    return y
"""
RANKS = [1, 2, 4, 64]
FILL = "w[:, :] = x"
MEET = """
pld.system.notify(s, peer=right, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
pld.system.wait(s, offsets=[left, 0], expected=1, cmp=pld.WaitCmp.Ge)
"""


def of_left(x):
    return np.roll(x, 1, axis=0)


def at(x, rows, columns, values):
    """Zeros but for a box."""
    y = np.zeros_like(x)
    y[:, rows, columns] = values
    return y


def run(body, ranks):
    lines = "".join(f"    {line}\n" for part in body for line in part.strip("\n").splitlines())
    h = from_text(TEXT.format(body=lines))["h"]
    x = np.random.default_rng(ranks).integers(0, 50, (ranks, 4, 8)).astype(np.float32)
    y = np.zeros_like(x)
    h(x, y, config=config(ranks))
    return x, y


# ---- the memory model ----

# The sentence, the kernel, what comes out.
ORDERED = {
    "a local store before a notify is seen by who has waited, and loads it": (
        [FILL, MEET, "y[:, :] = pld.remote_load(w, left, [0, 0], [4, 8])"],
        of_left,
    ),
    "so is it by who gets it": ([FILL, MEET, "pld.tensor.get(y, left, w)"], of_left),
    "what is put before a notify is there when its receiver has waited": (
        ["pld.tensor.put(w, right, x)", MEET, "y[:, :] = w"],
        of_left,
    ),
    "so is what is stored there": (
        ["pld.remote_store(pl.load(x, [0, 0], [4, 8]), w, right, [0, 0])", MEET, "y[:, :] = w"],
        of_left,
    ),
    "also if others have passed the notify on": (
        [
            """
if me == 0:
    pld.tensor.put(w, n - 1, x)
else:
    pld.system.wait(s, offsets=[me - 1, 0], expected=1, cmp=pld.WaitCmp.Ge)
if me < n - 1:
    pld.system.notify(s, peer=me + 1, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
else:
    y[:, :] = w
"""
        ],
        lambda x: np.concatenate([np.zeros_like(x[1:]), x[:1]]),
    ),
    "notifies to data cells are seen behind one to another cell": (
        [
            """
for p in pl.range(n):
    for i in pl.range(3):
        pld.system.notify(s, peer=p, offsets=[me, i], value=me * 3 + i, op=pld.NotifyOp.Set)
    pld.system.notify(s, peer=p, offsets=[me, 3], value=1, op=pld.NotifyOp.Set)
total = 0
for p in pl.range(n):
    pld.system.wait(s, offsets=[p, 3], expected=1, cmp=pld.WaitCmp.Ge)
    for i in pl.range(3):
        total = total + pl.read(s, [p, i])
pl.write(y, [0, 0], pl.cast(total, pl.FP32))
"""
        ],
        lambda x: at(x, 0, 0, sum(range(3 * len(x)))),
    ),
    "every add to a cell that a wait has seen publishes": (
        [
            """
for p in pl.range(n):
    pld.tensor.put(w, p, x, atomic=pld.AtomicType.Add)
    pld.system.notify(s, peer=p, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
pld.system.wait(s, offsets=[0, 0], expected=n, cmp=pld.WaitCmp.Ge)
y[:, :] = w
"""
        ],
        lambda x: np.broadcast_to(x.sum(0), x.shape),
    ),
    "who has been told that its window was read may overwrite it": (
        [
            """
total = pl.load(x, [0, 0], [4, 8])
for i in pl.range(20):
    w[:, :] = pl.add(x, pl.cast(i, pl.FP32))
    pld.system.notify(s, peer=right, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(s, offsets=[left, 0], expected=i + 1, cmp=pld.WaitCmp.Ge)
    total = pl.add(total, pld.remote_load(w, left, [0, 0], [4, 8]))
    pld.system.notify(s, peer=left, offsets=[me, 1], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(s, offsets=[right, 1], expected=i + 1, cmp=pld.WaitCmp.Ge)
pl.store(total, [0, 0], y)
"""
        ],
        lambda x: x + 20 * of_left(x) + 190,
    ),
    "a rank sees at once what it notifies itself of": (
        [
            """
pld.system.notify(s, peer=me, offsets=[me, 2], value=7, op=pld.NotifyOp.Set)
pl.write(y, [0, 0], pl.cast(pl.read(s, [me, 2]), pl.FP32))
"""
        ],
        lambda x: at(x, 0, 0, 7),
    ),
    "and what it moves to and from itself": (
        ["pld.tensor.put(w, me, x)", "pld.tensor.get(v, me, w)", "y[:, :] = pld.remote_load(v, me, [0, 0], [4, 8])"],
        lambda x: x,
    ),
}


@pytest.mark.parametrize("sentence", ORDERED)
@pytest.mark.parametrize("ranks", RANKS)
def test_who_sees_what(sentence, ranks, transport):
    body, expected = ORDERED[sentence]
    x, y = run(body, ranks)
    assert (y == expected(x)).all()


DISPATCHES = """
@pl.jit.incore
def push_kernel(x: pl.Tensor[[4, 8], pl.FP32], w: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]]) -> {window}:
    w[:, :] = x
    return w

@pl.jit
def push(x: pl.Tensor[[4, 8], pl.FP32], z: pl.Out[pl.Tensor[[4, 8], pl.FP32]],
         w: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]]) -> tuple[{window}, pl.Tensor[[4, 8], pl.FP32]]:
    same = push_kernel(x, w)
    copy(same, z)
    return same, z

@pl.jit.incore
def copy(x: pl.Tensor[[4, 8], pl.FP32], z: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    z[:, :] = x

@pl.jit.incore
def pull_kernel(w: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    y[:, :] = pld.remote_load(w, pld.rank(pld.get_comm_ctx(w)), [0, 0], [4, 8])

@pl.jit
def pull(z: pl.Tensor[[4, 8], pl.FP32], w: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
         y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    pull_kernel(w, y)

@pl.jit.host
def h(x: pl.Tensor[[NR, 4, 8], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4, 8], pl.FP32]],
      z: pl.Out[pl.Tensor[[NR, 4, 8], pl.FP32]]):
    w_buf = pld.alloc_window_buffer([4, 8], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        w = pld.window(w_buf, [4, 8], dtype=pl.FP32)
        own, z_r = push(x[r], z[r], w, device=r)
        pull(z_r, own, y[r], device=r)
    return y, z
"""


@pytest.mark.parametrize("window", ["pld.DistributedTensor[[4, 8], pl.FP32]", "pl.Tensor[[4, 8], pl.FP32]"])
@pytest.mark.parametrize("ranks", RANKS)
def test_later_dispatches_see_all_of_it_and_windows_that_are_returned_keep_their_domain(ranks, window, transport):
    h = from_text(DISPATCHES.format(window=window))["h"]
    x = np.random.default_rng(ranks).random((ranks, 4, 8), np.float32)
    y, z = np.zeros_like(x), np.zeros_like(x)
    h(x, y, z, config=config(ranks))
    assert (y == x).all() and (z == x).all()


# ---- windows as tensors, and views of them ----

USES = {
    "a tile larger than the window, whose valid part is not": (
        [FILL, "pl.store(pl.load(w, [0, 0], [8, 16], valid_shape=[4, 8]), [0, 0], y)"],
        lambda x: x,
    ),
    "elements": (
        ["for i in pl.range(4):\n    pl.write(w, [i, i], pl.read(x, [i, i]))", "y[:, :] = w"],
        lambda x: x * np.eye(4, 8, dtype=np.float32),
    ),
    "parts as sources and targets": (
        ["w[0:2, :] = x[2:4, :]", "w[2:4, :] = pl.load(x, [0, 0], [2, 8])", "y[:, 0:4] = w[:, 4:8]"],
        lambda x: at(x, slice(None), slice(0, 4), np.roll(x, 2, axis=1)[:, :, 4:]),
    ),
    "offsets of a load count from the view": (
        [FILL, MEET, "part = pl.tensor.slice(w, [2, 8], [2, 0])", "y[0:1, :] = pld.remote_load(part, left, [1, 0], [1, 8])"],
        lambda x: at(x, 0, slice(None), of_left(x)[:, 3]),
    ),
    "of a put": (
        ["pld.tensor.put(w[2:4, 4:8], right, x[0:2, 0:4])", MEET, "y[:, :] = w"],
        lambda x: at(x, slice(2, 4), slice(4, 8), of_left(x)[:, :2, :4]),
    ),
    "of a get": (
        [FILL, MEET, "pld.tensor.get(y, left, w[2:4, 4:8], [1, 1], [0, 0], [2, 4])"],
        lambda x: at(x, slice(1, 3), slice(1, 5), of_left(x)[:, 2:, 4:]),
    ),
    "of a remote store": (
        ["pld.remote_store(pl.load(x, [0, 0], [1, 4]), w[2:4, 4:8], right, [1, 0])", MEET, "y[:, :] = w"],
        lambda x: at(x, 3, slice(4, 8), of_left(x)[:, 0, :4]),
    ),
    "a flat view": (
        [FILL, MEET, "flat = pl.reshape(w, [1, 32])", "y[0:1, :] = pld.remote_load(flat, left, [0, 12], [1, 8])"],
        lambda x: at(x, 0, slice(None), of_left(x).reshape(-1, 32)[:, 12:20]),
    ),
    "a view has the domain of its window": (
        [FILL, "y[:, :] = pld.remote_load(w, pld.rank(pld.get_comm_ctx(v[1:2, :])), [0, 0], [4, 8])"],
        lambda x: x,
    ),
    "sums of parts": ([FILL, "y[1:3, :] = pl.add(w[1:3, :], x[1:3, :])"], lambda x: at(x, slice(1, 3), slice(None), 2 * x[:, 1:3])),
    "a window that a loop carries": (
        [
            "u = w",
            "for i in pl.range(4):\n    u = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], u)",
            MEET,
            "y[:, :] = pld.remote_load(u, left, [0, 0], [4, 8])",
        ],
        of_left,
    ),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("ranks", RANKS)
def test_uses_of_windows(use, ranks, transport):
    body, expected = USES[use]
    x, y = run(body, ranks)
    assert (y == expected(x)).all()
