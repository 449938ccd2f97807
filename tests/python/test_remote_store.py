"""pld.remote_store: a tile goes into a peer's slice of a window."""

import numpy as np
import pytest

import pypto
from programs import config, from_text
from transfers import (
    DTYPES,
    FLOATS,
    INTS,
    array,
    assert_fails,
    assert_same,
    host_of,
    run,
    small_values,
    text_of,
    values,
    zeros,
)

RANKS = [1, 2, 3, 4]

RING = """
t = pl.load(inp, [0, 0], [{rows}, {columns}])
pld.tile.remote_store(t, target=win, peer=nxt, offsets=[0, 0])
ARRIVE 1
pl.store(pl.load(win, [0, 0], [{rows}, {columns}]), [0, 0], out)
"""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ranks", RANKS)
def test_ring(ranks, dtype, transport):
    x = values((ranks, 3, 17), dtype)
    result = run(RING.format(rows=3, columns=17), x, dtype)
    assert_same(result, array(x)[[r - 1 for r in range(ranks)]])


@pytest.mark.parametrize("columns", [1, 2, 255, 4096])
def test_sizes(columns):
    x = values((2, 1, columns), "FP32")
    assert_same(run(RING.format(rows=1, columns=columns), x, "FP32"), array(x)[::-1])


def test_at_64_ranks(transport):
    x = values((64, 1, 5), "INT32")
    assert_same(run(RING.format(rows=1, columns=5), x, "INT32"), np.roll(x, 1, axis=0))


def test_offsets_and_neighbours_of_the_box():
    body = """
a = pl.load(inp, [0, 0], [2, 3])
b = pl.load(inp, [0, 3], [2, 3])
pld.remote_store(b, win, nxt, [1, 1])
pld.remote_store(a, win, nxt, [3, 5], atomic=pld.AtomicType.None_)
ARRIVE 1
pl.store(pl.load(win, [0, 0], [6, 8]), [0, 0], out)
"""
    x = values((3, 2, 6), "INT16")
    expected = np.zeros((3, 6, 8), np.int16)
    for r in range(3):
        expected[r, 1:3, 1:4] = x[r - 1][:, 3:]
        expected[r, 3:5, 5:8] = x[r - 1][:, :3]
    assert_same(run(body, x, "INT16", out=[6, 8], win=[6, 8]), expected)


def test_leading_dimensions_take_one_index_each():
    body = """
for i in pl.range(2):
    t = pl.load(inp, [i, 0, 0], [1, 2, 4])
    pld.tile.remote_store(t, win, nxt, [1 - i, 1, 0, 2])
ARRIVE 1
pl.store(pl.load(win, [0, 0, 0, 0], [2, 2, 2, 6]), [0, 0, 0, 0], out)
"""
    x = values((2, 2, 2, 4), "UINT8")
    expected = np.zeros((2, 2, 2, 2, 6), np.uint8)
    for r in range(2):
        for i in range(2):
            expected[r, 1 - i, 1, :, 2:] = x[1 - r, i]
    assert_same(run(body, x, "UINT8", out=[2, 2, 2, 6], win=[2, 2, 2, 6]), expected)


@pytest.mark.parametrize("ranks", [2, 64])
@pytest.mark.parametrize("rows, columns", [(0, 0), (1, 3), (2, 5), (4, 8), (3, 0)])
def test_only_the_valid_part_goes(rows, columns, ranks):
    body = """
rows = pl.cast(pl.read(inp, [4, 0]), pl.INDEX)
columns = pl.cast(pl.read(inp, [4, 1]), pl.INDEX)
t = pl.load(inp, [0, 0], [4, 8], valid_shape=[rows, columns])
pld.tile.remote_store(t, win, nxt, [4 - rows, 8 - columns])
ARRIVE 1
pl.store(pl.load(win, [0, 0], [4, 8]), [0, 0], out)
"""
    x = values((ranks, 5, 8), "INT32")
    x[:, 4, :2] = rows, columns
    expected = np.zeros((ranks, 4, 8), np.int32)
    for r in range(ranks):
        expected[r, 4 - rows :, 8 - columns :] = x[r - 1, :rows, :columns]
    assert_same(run(body, x, "INT32", out=[4, 8], win=[4, 8]), expected)


def test_self_is_a_peer():
    body = """
t = pl.load(inp, [0, 0], [1, 8])
pld.tile.remote_store(t, win, me, [0, 0])
pl.store(pl.load(win, [0, 0], [1, 8]), [0, 0], out)
"""
    x = values((3, 1, 8), "FP32")
    assert_same(run(body, x, "FP32"), x)


def test_the_tile_may_be_used_again_at_once():
    body = """
t = pl.load(inp, [0, 0], [1, 4])
for i in pl.range(4):
    pld.tile.remote_store(t, win, nxt, [i, 0])
    t = pl.add(t, t)
ARRIVE 1
pl.store(pl.load(win, [0, 0], [4, 4]), [0, 0], out)
"""
    x = values((2, 1, 4), "FP32")
    expected = np.concatenate([x[::-1] * np.float32(2**i) for i in range(4)], axis=1)
    assert_same(run(body, x, "FP32", out=[4, 4], win=[4, 4]), expected)


# ---- atomic adds ----

CONTENTION = """
t = pl.load(inp, [0, 0], [2, 9])
for round in pl.range({rounds}):
    for to in pl.range(n):
        pld.tile.remote_store(t, win, to, [1, 0], atomic=pld.AtomicType.Add)
ARRIVE 1
pl.store(pl.load(win, [0, 0], [3, 9]), [0, 0], out)
"""


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS])
@pytest.mark.parametrize("ranks", RANKS)
def test_no_add_is_lost(ranks, dtype, transport):
    rounds = 9 if dtype in ("BF16", "INT8", "UINT8") else 25
    x = small_values((ranks, 2, 9), dtype)
    result = array(run(CONTENTION.format(rounds=rounds), x, dtype, out=[3, 9], win=[3, 9]))
    total = array(x).astype(np.float64).sum(axis=0) * rounds
    for r in range(ranks):
        assert_same(result[r, 0], np.zeros(9))
        assert_same(result[r, 1:].astype(np.float64), total)


@pytest.mark.parametrize("dtype", ["INT32", "FP32"])
def test_no_add_is_lost_at_64_ranks(dtype, transport):
    test_no_add_is_lost(64, dtype, transport)


def test_integers_wrap():
    x = np.full((1, 2, 9), 100, np.int8)
    result = run(CONTENTION.format(rounds=3), x, "INT8", out=[3, 9], win=[3, 9])
    assert_same(result[0, 1:], np.full((2, 9), 300 - 256))


@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
def test_each_add_rounds(dtype):
    x = zeros((1, 2, 9), dtype)
    x[:] = 1 + 2**-7
    result = array(run(CONTENTION.format(rounds=7), x, dtype, out=[3, 9], win=[3, 9]))
    total = zeros((1,), dtype)
    for _ in range(7):
        total = total + x[0, 0, :1]
    assert (result[0, 1:] == array(total)).all()


# ---- what is refused ----

REFUSED = [
    ("pld.tile.remote_store(t, inp, 0, [0, 0])", "target must be a DistributedTensor, got Tensor"),
    ("pld.tile.remote_store(inp, win, 0, [0, 0])", "src_tile expected Tile, got Tensor"),
    ("pld.tile.remote_store(t, win, [0], [0, 0])", "peer must be a scalar"),
    ("pld.tile.remote_store(t, win, 64, [0, 0])", "peer 64 does not exist"),
    ("pld.tile.remote_store(t, win, -1, [0, 0])", "peer -1 does not exist"),
    ("pld.tile.remote_store(t, win, 0, [0])", "offsets rank is 1"),
    ("pld.tile.remote_store(t, win, 0, 0)", "offsets must be a list or tuple"),
    ("pld.tile.remote_store(t, win, 0, [-1, 0])", "must be non-negative"),
    (
        "pld.tile.remote_store(t, win, 0, [1, 0])",
        "push exceeds the peer's target region in dimension 0",
    ),
    (
        "pld.tile.remote_store(t, win, nxt, [me, 4])",
        "push exceeds the peer's target region in dimension 1",
    ),
    ("pld.tile.remote_store(pl.cast(t, pl.FP16), win, 0, [0, 0])", "dtype"),
    ("pld.tile.remote_store(pl.load(inp, [0], [8]), win, 0, [0, 0])", "offsets rank"),
    ("pld.tile.remote_store(t, win, 0, [0, 0], pld.AtomicType.Add)", "4 positional argument"),
    ("pld.tile.remote_store(t, win, 0, [0, 0], atomic=7)", "atomic must be AtomicType.None_ or"),
    ("pld.tile.remote_store(t, win, 0, [0, 0], extra=1)", "unexpected keyword argument"),
    ("pld.tile.remote_store(t, win, 0)", "missing 1 required positional argument: 'offsets'"),
    ("pl.add(t, pld.tile.remote_store(t, win, 0, [0, 0]))", "rhs expected Tile or Scalar, got None"),
]


@pytest.mark.parametrize("statement, words", REFUSED, ids=lambda value: value)
def test_refused(statement, words):
    host = from_text(text_of(f"t = pl.load(inp, [0, 0], [1, 8])\n{statement}", "FP32", [1, 8]))["host"]
    x = values((2, 1, 8), "FP32")
    with pytest.raises(pypto.Error) as caught:
        host(x, np.zeros_like(x), config=config(2))
    assert words in str(caught.value)
    assert statement in str(caught.value)  # the line is shown


def test_bool_does_not_add():
    body = "pld.remote_store(pl.load(inp, [0, 0], [1, 8]), win, 0, [0, 0], atomic=pld.AtomicType.Add)"
    with pytest.raises(pypto.Error, match="requires an fp32/bf16/fp16/int32/int16/int8 dtype .hardware atomic-add dtypes. or another"):
        run(body, values((1, 1, 8), "BOOL"), "BOOL")


@pytest.mark.parametrize(
    "shape, words",
    [([8], "target rank must be >= 2"), ([1, 1, 1, 8], None)],
)
def test_rank_of_the_target(shape, words):
    at = ", ".join("0" for _ in shape)
    body = f"pld.tile.remote_store(pl.load(inp, [0, 0], [1, 8]), win, 0, [{at}])"
    x = values((1, 1, 8), "FP32")
    if words is None:
        run(body, x, "FP32", win=shape)
        return
    with pytest.raises(pypto.Error, match=words):
        run(body, x, "FP32", win=shape)


@pytest.mark.parametrize(
    "shape, words",
    [([8], "src must be at least 2-D"), ([2, 1, 8], "src leading dimension 0 must be 1"), ([1, 1, 8], None)],
)
def test_rank_of_the_tile(shape, words):
    at = ", ".join("0" for _ in shape)
    extents = ", ".join(map(str, shape))
    body = f"pld.tile.remote_store(pl.load(inp, [{at}], [{extents}]), win, 0, [0, 0])"
    x = values((1, *shape), "FP32")
    if words is None:
        run(body, x, "FP32", win=[1, 8])
        return
    with pytest.raises(pypto.Error, match=words):
        run(body, x, "FP32", win=[1, 8])


# ---- what is found when it runs ----

OUTSIDE = [
    ("me + n", "[0, 0]", r"peer <me + n> does not exist: the domain of window 'win_buf' \(parameter 'win'\) has ranks 0 to <n - 1>"),
    ("me - n", "[0, 0]", "peer <me - n> does not exist"),
    ("nxt", "[me + 1, 0]", r"a remote store of \[1, 8\] at \[<me + 1>, 0\] leaves window 'win_buf' \(parameter 'win'\) of shape \[1, 8\]: dimension 0"),
    ("nxt", "[0, me - n]", "negative index <me - n> in dimension 1"),
    ("nxt", "[0, pl.cast(me % 2 + 1, pl.INDEX) * 4611686018427387904]", "dimension 1 ends at 8|negative index -9223372036854775808 in dimension 1"),
]


@pytest.mark.parametrize("ranks", [2, 64])
@pytest.mark.parametrize("peer, offsets, words", OUTSIDE, ids=lambda value: value)
def test_outside_at_run_time(peer, offsets, words, ranks, transport):
    statement = f"pld.tile.remote_store(t, win, {peer}, {offsets})"
    assert_fails(f"t = pl.load(inp, [0, 0], [1, 8])\n{statement}", statement, words, "FP32", [1, 8], ranks)


def test_the_set_works_after_an_error():
    bad = host_of("pld.remote_store(pl.load(inp, [0, 0], [1, 8]), win, me + 9, [0, 0])", "FP32", [1, 8])
    x = values((2, 1, 8), "FP32")
    with pytest.raises(pypto.DeviceError):
        bad(x, np.zeros_like(x), config=config(2))
    assert_same(run(RING.format(rows=1, columns=8), x, "FP32"), x[::-1])
