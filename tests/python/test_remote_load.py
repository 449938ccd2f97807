"""pld.remote_load: a box of a peer's slice of a window becomes a tile."""

import numpy as np
import pytest

import pypto
from programs import config, from_text
from transfers import DTYPES, array, assert_fails, assert_same, run, text_of, values

RANKS = [1, 2, 3, 4]

# Rank r ends with the input of rank r - 1.
RING = """
pld.tensor.put(win, me, inp)
ARRIVE 1
t = {load}
pl.store(t, [0, 0], out)
"""
LOAD = "pld.tile.remote_load(win, peer=prev, offsets=[0, 0], shape=[{rows}, {columns}])"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ranks", RANKS)
def test_ring(ranks, dtype, transport):
    x = values((ranks, 3, 17), dtype)
    body = RING.format(load=LOAD.format(rows=3, columns=17))
    assert_same(run(body, x, dtype), array(x)[[r - 1 for r in range(ranks)]])


@pytest.mark.parametrize("columns", [1, 2, 255, 4096])
def test_sizes(columns):
    x = values((2, 1, columns), "INT64")
    assert_same(run(RING.format(load=LOAD.format(rows=1, columns=columns)), x, "INT64"), x[::-1])


def test_at_64_ranks(transport):
    x = values((64, 1, 5), "FP32")
    body = RING.format(load=LOAD.format(rows=1, columns=5))
    assert_same(run(body, x, "FP32"), np.roll(x, 1, axis=0))


@pytest.mark.parametrize(
    "load",
    [
        "pld.remote_load(win, prev, [1, 2], [2, 3])",
        "pld.tile.remote_load(target=win, peer=prev, offsets=[1, 2], shape=[2, 3])",
        "pld.remote_load(win[1:4, 1:6], prev, [0, 1], [2, 3])",
        "pld.remote_load(win, prev, [me * 0 + 1, 2], [2, 3], valid_shape=[2, 3])",
    ],
)
def test_boxes(load):
    x = values((2, 4, 6), "FP16")
    assert_same(run(RING.format(load=load), x, "FP16", out=[2, 3]), x[::-1, 1:3, 2:5])


def test_any_number_of_dimensions():
    for shape in ([7], [2, 3, 4], [2, 1, 2, 3, 2]):
        zeros = [0] * len(shape)
        body = f"""
pld.tensor.put(win, me, inp)
ARRIVE 1
pl.store(pld.remote_load(win, nxt, {zeros}, {shape}), {zeros}, out)
"""
        x = values((2, *shape), "INT16")
        assert_same(run(body, x, "INT16"), x[::-1])


@pytest.mark.parametrize("ranks", [2, 64])
@pytest.mark.parametrize("rows, columns", [(0, 0), (1, 3), (2, 5), (3, 6), (0, 6)])
def test_only_the_valid_part_is_read(rows, columns, ranks):
    """The tile is larger than the window; what is valid of it goes on to the output."""
    body = """
pld.tensor.put(win, me, inp)
ARRIVE 1
rows = pl.cast(pl.read(win, [0, 0]), pl.INDEX)
columns = pl.cast(pl.read(win, [0, 1]), pl.INDEX)
t = pld.remote_load(win, nxt, [0, 0], [8, 8], valid_shape=[rows, columns])
pl.store(t, [0, 0], out)
"""
    x = values((ranks, 3, 6), "INT32")
    x[:, 0, :2] = rows, columns
    expected = np.zeros((ranks, 8, 8), np.int32)
    expected[:, :rows, :columns] = np.roll(x, -1, axis=0)[:, :rows, :columns]
    assert_same(run(body, x, "INT32", out=[8, 8]), expected)


@pytest.mark.parametrize("ranks", [2, 64])
def test_a_constant_valid_part(ranks):
    body = RING.format(load="pld.remote_load(win, prev, [1, 4], [4, 8], valid_shape=[2, 2])")
    x = values((ranks, 3, 6), "UINT8")
    expected = np.zeros((ranks, 4, 8), np.uint8)
    expected[:, :2, :2] = np.roll(x, 1, axis=0)[:, 1:3, 4:6]
    assert_same(run(body, x, "UINT8", out=[4, 8]), expected)


def test_self_is_a_peer():
    body = RING.replace("ARRIVE 1\n", "").format(load="pld.remote_load(win, me, [0, 0], [1, 8])")
    x = values((3, 1, 8), "FP32")
    assert_same(run(body, x, "FP32"), x)


# ---- what is refused ----

REFUSED = [
    ("pld.tile.remote_load(inp, 0, [0, 0], [1, 8])", "target must be a DistributedTensor, got Tensor"),
    ("pld.tile.remote_load(win, [0], [0, 0], [1, 8])", "peer must be a scalar"),
    ("pld.tile.remote_load(win, 64, [0, 0], [1, 8])", "peer 64 does not exist"),
    ("pld.tile.remote_load(win, -1, [0, 0], [1, 8])", "peer -1 does not exist"),
    ("pld.tile.remote_load(win, 0, [0], [1, 8])", "offsets rank is 1"),
    ("pld.tile.remote_load(win, 0, [0, 0], [8])", "shape rank is 1"),
    ("pld.tile.remote_load(win, 0, [0, 0], [1, 8], [8])", "valid_shape rank is 1"),
    ("pld.tile.remote_load(win, 0, 0, [1, 8])", "offsets must be a list or tuple"),
    ("pld.tile.remote_load(win, 0, [0, 0], [1, 8], [1, 2.5])", "valid_shape 1 must be an integer scalar"),
    ("pld.tile.remote_load(win, 0, [0, 0], [1, 8], [-1, 8])", "valid_shape 0 is provably negative"),
    ("pld.tile.remote_load(win, 0, [0, 0], [1, 8], [1, 9])", "valid_shape 1 is 9"),
    ("pld.tile.remote_load(win, 0, [0, 1], [1, 8])", "reads past the end of dimension 1"),
    ("pld.tile.remote_load(win, 0, [0, 2], [1, 8])", "or give a smaller valid_shape="),
    ("pld.tile.remote_load(win, 0, [me, 0], [2, 8])", "reads past the end of dimension 0"),
    ("pld.tile.remote_load(win, 0, [0, -1], [1, 4])", "must be non-negative"),
    ("pld.tile.remote_load(win, 0, [0, 0], [1, me])", "must be a constant"),
    ("pld.tile.remote_load(win, 0, [0, 0], [0, 8])", "must be positive"),
    ("pld.tile.remote_load()", "missing 4 required positional arguments"),
    ("pld.tile.remote_load(win, 0, [0, 0], [1, 8], [1, 8], 1)", "positional arguments but 6 were given"),
    ("pld.tile.remote_load(win, 0, [0, 0], [1, 8], rows=1)", "unexpected keyword argument 'rows'"),
]


@pytest.mark.parametrize("statement, words", REFUSED, ids=lambda value: value)
def test_refused(statement, words):
    host = from_text(text_of(statement, "FP32", [1, 8]))["host"]
    x = values((1, 1, 8), "FP32")
    with pytest.raises(pypto.Error) as caught:
        host(x, np.zeros_like(x), config=config(1))
    assert words in str(caught.value)
    assert statement in str(caught.value)


# ---- what is found when it runs ----

OUTSIDE = [
    ("pld.remote_load(win, me + n, [0, 0], [1, 8])", r"peer <me + n> does not exist: the domain of window 'win_buf' \(parameter 'win'\) has ranks 0 to <n - 1>$"),
    ("pld.remote_load(win, me - n, [0, 0], [1, 8])", "peer <me - n> does not exist"),
    ("pld.remote_load(win, nxt, [0, me + 5], [1, 4])", r"a remote load of \[1, 4\] at \[0, <me + 5>\] leaves window 'win_buf' \(parameter 'win'\) of shape \[1, 8\]: dimension 1 ends at 8"),
    ("pld.remote_load(win, nxt, [me - n, 0], [1, 8])", r"at \[<me - n>, 0\] leaves"),
    ("pld.remote_load(win, nxt, [0, 4], [1, 8], [1, 5 + me % 4])", "dimension 1 ends at 8"),
    ("pld.remote_load(win, nxt, [0, 0], [1, 8], [1, me + 9])", "valid_shape 1 is <me + 9>, but the tile has 8"),
    ("pld.remote_load(win, nxt, [0, 0], [1, 8], [1, me - n])", "valid_shape 1 is <me - n>"),
]


@pytest.mark.parametrize("ranks", [2, 64])
@pytest.mark.parametrize("statement, words", OUTSIDE, ids=lambda value: value)
def test_outside_at_run_time(statement, words, ranks, transport):
    assert_fails(statement, statement, words, "FP32", [1, 8], ranks)
