"""pld.tensor.put and pld.tensor.get: boxes of tensors and windows go to peers and come from them."""

import itertools
import re

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
)

RANKS = [1, 2, 3, 4]

# Each leaves rank r with the input of rank r - 1.
RINGS = {
    "put": """
pld.tensor.put(win, peer=nxt, src=inp)
ARRIVE 1
pld.tensor.get(out, peer=me, src=win)
""",
    "get": """
pld.tensor.put(win, peer=me, src=inp)
ARRIVE 1
pld.tensor.get(out, peer=prev, src=win)
""",
    "chunks": """
pld.tensor.put(win, nxt, inp, chunk_rows=2, chunk_cols=4)
ARRIVE 1
pld.tensor.get(out, me, win, chunk_rows=1, chunk_cols=1000000)
""",
    "pipeline": """
pld.tensor.put(win, nxt, inp, atomic=pld.AtomicType.None_, chunk_rows=2, chunk_cols=4, pipeline=True)
ARRIVE 1
pld.tensor.get(out, me, win, chunk_rows=1, chunk_cols=3, pipeline=True)
""",
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("ranks", RANKS)
def test_ring(ranks, ring, dtype, transport):
    x = values((ranks, 5, 7), dtype)
    assert_same(run(RINGS[ring], x, dtype), array(x)[[r - 1 for r in range(ranks)]])


@pytest.mark.parametrize("ring", RINGS)
def test_at_64_ranks(ring, transport):
    x = values((64, 3, 3), "FP32")
    assert_same(run(RINGS[ring], x, "FP32"), np.roll(x, 1, axis=0))


@pytest.mark.parametrize("dtype", ["UINT8", "INT32", "INT64"])
@pytest.mark.parametrize(
    "shape", [[1], [1, 1], [4097], [1000, 3], [2, 3, 4], [1, 5, 1, 3], [2, 2, 2, 2, 2, 2, 2]]
)
def test_shapes(shape, dtype):
    x = values((2, *shape), dtype)
    for ring in RINGS.values():
        assert_same(run(ring, x, dtype), x[::-1])


def test_megabytes():
    x = values((2, 1031, 2053), "FP32")
    assert_same(run(RINGS["put"], x, "FP32"), x[::-1])


# ---- parts ----


def boxes(seed, count):
    """Random source and target shapes with a box that fits both."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        ndim = int(rng.integers(1, 5))
        extents = rng.integers(1, 5, ndim)
        source = extents + rng.integers(0, 4, ndim)
        target = extents + rng.integers(0, 4, ndim)
        yield (
            source.tolist(),
            target.tolist(),
            [int(rng.integers(0, s - e + 1)) for s, e in zip(source, extents)],
            [int(rng.integers(0, t - e + 1)) for t, e in zip(target, extents)],
            extents.tolist(),
        )


def parts(seed):
    """Twelve boxes between two ranks, and three of them at 64."""
    return [(2, *each) for each in enumerate(boxes(seed, 12))] + [(64, *each) for each in enumerate(boxes(seed, 3))]


def part(offsets, extents):
    return tuple(slice(o, o + e) for o, e in zip(offsets, extents))


@pytest.mark.parametrize("ranks, number, box", parts(4), ids=str)
def test_part_put(ranks, number, box):
    source, target, at, to, extents = box
    dtype = DTYPES[number % len(DTYPES)]
    x = values((ranks, *source), dtype, seed=number)
    body = f"""
pld.tensor.put(win, nxt, inp, {to}, {at}, {extents})
ARRIVE 1
pld.tensor.get(out, me, win)
"""
    expected = np.zeros((ranks, *target), array(x).dtype)
    for r in range(ranks):
        expected[r][part(to, extents)] = array(x)[r - 1][part(at, extents)]
    assert_same(run(body, x, dtype, out=target, win=target), expected)


@pytest.mark.parametrize("ranks, number, box", parts(5), ids=str)
def test_part_get(ranks, number, box):
    source, target, at, to, extents = box
    dtype = DTYPES[number % len(DTYPES)]
    x = values((ranks, *source), dtype, seed=number)
    body = f"""
pld.tensor.put(win, me, inp)
ARRIVE 1
pld.tensor.get(out, nxt, win, dst_offsets={to}, src_offsets={at}, shape={extents})
"""
    expected = np.zeros((ranks, *target), array(x).dtype)
    for r in range(ranks):
        expected[r][part(to, extents)] = array(x)[(r + 1) % ranks][part(at, extents)]
    assert_same(run(body, x, dtype, out=target, win=source), expected)


def test_offsets_known_at_run_time_only():
    body = """
for i in pl.range(4):
    pld.tensor.put(win, (me + i) % n, inp, [3 - i, me * 2], [i, 0], [1, 2])
ARRIVE 1
pld.tensor.get(out, me, win)
"""
    x = values((3, 4, 2), "FP16")
    expected = np.zeros((3, 4, 6), np.float16)
    for source, i in itertools.product(range(3), range(4)):
        expected[(source + i) % 3, 3 - i, source * 2 : source * 2 + 2] = x[source, i]
    assert_same(run(body, x, "FP16", out=[4, 6], win=[4, 6]), expected)


def test_between_windows_and_parts_of_them():
    """A window is a source as well; a part of one is a target, and its offsets are its own."""
    body = """
pld.tensor.put(win[0:2, 0:4], me, inp)
ARRIVE 1
pld.tensor.put(win[2:4, 1:5], nxt, win[0:2, 0:4])
ARRIVE 2
pld.tensor.get(win[4:6, 0:3], prev, win[2:4, 1:5], [0, 1], [1, 2], [1, 2])
ARRIVE 3
pld.tensor.get(out, me, win)
"""
    ranks = 3
    x = values((ranks, 2, 4), "INT32")
    expected = np.zeros((ranks, 6, 5), np.int32)
    for r in range(ranks):
        expected[r, 0:2, 0:4] = x[r]
        expected[r, 2:4, 1:5] = x[r - 1]
    for r in range(ranks):
        expected[r, 4, 1:3] = expected[r - 1, 3, 3:5]
    assert_same(run(body, x, "INT32", out=[6, 5], win=[6, 5]), expected)


def test_columns_and_transposing_rows():
    """Strided on one side, packed on the other."""
    body = """
for i in pl.range(6):
    pld.tensor.put(win, nxt, inp, [0, i], [0, 5 - i], [8, 1])
ARRIVE 1
pld.tensor.get(out, me, win)
"""
    for dtype in ["BOOL", "FP16", "INT32", "INT64"]:
        x = values((2, 8, 6), dtype)
        assert_same(run(body, x, dtype), array(x)[::-1, :, ::-1])


@pytest.mark.parametrize("dtype", ["INT32", "FP32"])
@pytest.mark.parametrize("to, at", [(0, 1), (1, 0), (0, 3), (3, 0), (2, 2)])
def test_within_one_window(to, at, dtype):
    """A transfer to itself may overlap: the result is as if the source had been read first."""
    body = f"""
pld.tensor.put(win, me, inp)
pld.tensor.put(win, me, win, [{to}, 1], [{at}, 2], [5, 6])
pld.tensor.get(win, me, win, [{at}, 0], [{at}, 1], [5, 6])
pld.tensor.get(out, me, win)
"""
    x = values((1, 8, 8), dtype)
    expected = x.copy()
    expected[0, to : to + 5, 1:7] = expected[0, at : at + 5, 2:8].copy()
    expected[0, at : at + 5, 0:6] = expected[0, at : at + 5, 1:7].copy()
    assert_same(run(body, x, dtype), expected)


def test_self_is_a_peer():
    body = """
pld.tensor.put(win, me, inp)
pld.tensor.put(win, me, inp, atomic=pld.AtomicType.Add)
pl.store(pl.load(win, [0, 0], [3, 3]), [0, 0], out)
"""
    x = values((2, 3, 3), "FP32")
    assert_same(run(body, x, "FP32"), x + x)


# ---- atomic adds ----

CONTENTION = """
for round in pl.range({rounds}):
    for to in pl.range(n):
        pld.tensor.put(win, to, inp, atomic=pld.AtomicType.Add)
        pld.tensor.put(win, to, inp, [1, 2], [0, 1], [2, 2], atomic=pld.AtomicType.Add)
ARRIVE 1
pld.tensor.get(out, me, win)
"""


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS])
@pytest.mark.parametrize("ranks", RANKS)
def test_no_add_is_lost(ranks, dtype, transport):
    rounds = 4 if dtype in ("BF16", "INT8", "UINT8") else 25
    x = small_values((ranks, 3, 5), dtype)
    once = array(x).astype(np.float64)
    once[:, 1:3, 2:4] += array(x)[:, 0:2, 1:3]
    result = array(run(CONTENTION.format(rounds=rounds), x, dtype)).astype(np.float64)
    for r in range(ranks):
        assert_same(result[r], once.sum(axis=0) * rounds)


@pytest.mark.parametrize("dtype", ["INT32", "FP32"])
def test_no_add_is_lost_at_64_ranks(dtype, transport):
    test_no_add_is_lost(64, dtype, transport)


def test_infinities_and_nan_add():
    x = np.array([np.inf, -np.inf, np.nan, 0.0, 1.0], np.float32).reshape(1, 1, 5)
    y = run("pld.tensor.put(win, me, inp)\n" + CONTENTION.format(rounds=0).replace("range(0)", "range(1)"),
            np.zeros((1, 3, 5), np.float32) + x, "FP32")
    assert_same(y[0, 0], (x + x)[0, 0])


# ---- extents known at run time ----

DYNAMIC = """
ROWS = pl.dynamic("ROWS")
COLS = pl.dynamic("COLS")

@pl.jit.incore
def kernel(inp: pl.Tensor[[ROWS, COLS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
           win: pl.InOut[pld.DistributedTensor[[ROWS, COLS], pl.FP32]],
           bell: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    ctx = pld.get_comm_ctx(win)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    nxt = (me + 1) % n
{body}

@pl.jit
def wrapper(inp: pl.Tensor[[ROWS, COLS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
            win: pl.InOut[pld.DistributedTensor[[ROWS, COLS], pl.FP32]],
            bell: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    kernel(inp, out, win, bell)

@pl.jit.host
def host(inputs: pl.Tensor[[NR, ROWS, COLS], pl.FP32],
         outputs: pl.Out[pl.Tensor[[NR, ROWS, COLS], pl.FP32]]):
    win_buf = pld.alloc_window_buffer(4096)
    bell_buf = pld.alloc_window_buffer(pld.world_size() * 4)
    for r in pl.range(pld.world_size()):
        win = pld.window(win_buf, [ROWS, COLS], dtype=pl.FP32)
        bell = pld.window(bell_buf, [pld.world_size(), 1], dtype=pl.INT32)
        wrapper(inputs[r], outputs[r], win, bell, device=r)
"""

CHUNKS = ", chunk_rows=4, chunk_cols=4"
DYNAMIC_RING = """
    pld.tensor.put(win, nxt, inp, chunk_rows=4, chunk_cols=4)
    for to in pl.range(n):
        pld.system.notify(bell, to, [me, 0], 1, op=pld.NotifyOp.Set)
    for by in pl.range(n):
        pld.system.wait(bell, [by, 0], 1, cmp=pld.WaitCmp.Eq)
    pld.tensor.get(out, me, win, chunk_rows=4, chunk_cols=4)
"""
dynamic_rings = {
    chunks: from_text(DYNAMIC.format(body=DYNAMIC_RING.replace(CHUNKS, chunks)))["host"]
    for chunks in (CHUNKS, ", chunk_cols=4", "")
}


@pytest.mark.parametrize("rows, columns", [(1, 1), (3, 17), (32, 32), (0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("chunks", dynamic_rings)
def test_dynamic_extents(chunks, ranks, rows, columns):
    x = values((ranks, rows, columns), "FP32")
    y = np.full_like(x, -1)
    dynamic_rings[chunks](x, y, config=config(ranks))
    assert_same(y, np.roll(x, 1, axis=0))


@pytest.mark.parametrize("rows, columns", [(3, 5), (0, 5)])
def test_dynamic_extents_at_64_ranks(rows, columns, transport):
    test_dynamic_extents(CHUNKS, 64, rows, columns)


@pytest.mark.parametrize("chunks", [", chunk_rows=1", ""])
def test_dynamic_parts_may_be_empty(chunks):
    body = """
rows = pl.cast(pl.read(inp, [0, 0]), pl.INDEX)
pld.tensor.put(win, nxt, inp, [1, 0], [1, 0], [rows, 3]CHUNKS)
ARRIVE 1
pld.tensor.get(out, me, win)
""".replace("CHUNKS", chunks)
    for rows in range(3):
        x = values((2, 3, 3), "INT32")
        x[:, 0, 0] = rows
        expected = np.zeros_like(x)
        expected[:, 1 : 1 + rows] = x[::-1, 1 : 1 + rows]
        assert_same(run(body, x, "INT32"), expected)


@pytest.mark.parametrize(
    "statement, words",
    [
        ("pld.tensor.put(win, nxt, inp, chunk_rows=-4)", "chunk_rows must be non-negative"),
        ("pld.tensor.put(win, nxt, inp, chunk_rows=4, pipeline=True)", "pipeline=True requires both"),
        ("pld.tensor.put(win, nxt, inp[0:4, 0:4])", "must have the same shape: dimension 0"),
    ],
)
def test_dynamic_extents_that_are_refused(statement, words):
    host = from_text(DYNAMIC.format(body="    " + statement))["host"]
    x = values((2, 4, 4), "FP32")
    with pytest.raises(pypto.Error, match=words):
        host(x, np.zeros_like(x), config=config(2))


def test_static_parts_of_dynamic_windows_need_no_chunks():
    body = "    pld.tensor.put(win, nxt, inp, [0, 0], [1, 2], [2, 2])\n    pld.tensor.get(out, nxt, win, [0, 0], [0, 0], [2, 1])"
    host = from_text(DYNAMIC.format(body=body))["host"]
    x = values((1, 4, 4), "FP32")
    y = np.zeros_like(x)
    host(x, y, config=config(1))
    assert_same(y[0, :2, 0], x[0, 1:3, 2])


# ---- what is refused ----

PARTS = "[0, 0], [0, 0], [1, 8]"
REFUSED = [
    ("pld.tensor.put(inp, nxt, win)", "dst must be a DistributedTensor, got Tensor"),
    ("pld.tensor.get(out, nxt, inp)", "src must be a DistributedTensor, got Tensor"),
    ("pld.tensor.put(win, nxt, pl.load(inp, [0, 0], [1, 8]))", "src expected Tensor or DistributedTensor, got Tile"),
    ("pld.tensor.get(win, [0], win)", "peer must be a scalar"),
    ("pld.tensor.put(win, 2.5, inp)", "peer must be an integer or index scalar"),
    ("pld.tensor.put(win, 64, inp)", "peer 64 does not exist"),
    ("pld.tensor.get(out, -1, win)", "peer -1 does not exist"),
    ("pld.tensor.put(win, nxt, bell)", "same element type"),
    ("pld.tensor.put(win, nxt, inp[0, :])", "same rank"),
    ("pld.tensor.put(win, nxt, inp[0:1, 0:4])", "same static shape: dimension 1 is 8 and 4"),
    ("pld.tensor.put(win, nxt, inp, [0, 0])", "must be provided together"),
    ("pld.tensor.put(win, nxt, inp, shape=[1, 8])", "must be provided together"),
    ("pld.tensor.get(out, nxt, win, src_offsets=[0, 0], shape=[1, 8])", "must be provided together"),
    ("pld.tensor.put(win, nxt, inp, [0], [0, 0], [1, 8])", "dst_offsets rank is 1"),
    ("pld.tensor.put(win, nxt, inp, [0, 0], [0], [1, 8])", "src_offsets rank is 1"),
    ("pld.tensor.put(win, nxt, inp, [0, 0], [0, 0], [8])", "shape rank 1"),
    ("pld.tensor.put(win, nxt, inp, 0, [0, 0], [1, 8])", "dst_offsets must be a list or tuple"),
    ("pld.tensor.put(win, nxt, inp, [-1, 0], [0, 0], [1, 8])", "dst_offsets dimension 0 must be non-negative"),
    ("pld.tensor.get(out, nxt, win, [0, 0], [0, -2], [1, 8])", "src_offsets dimension 1 must be non-negative"),
    ("pld.tensor.put(win, nxt, inp, [1, 0], [0, 0], [1, 8])", "dst subregion dimension 0 exceeds dst shape"),
    ("pld.tensor.put(win, nxt, inp, [0, 0], [0, 4], [1, 5])", "src subregion dimension 1 exceeds src shape"),
    ("pld.tensor.get(out, nxt, win, [me, 0], [0, 0], [2, 8])", "dst subregion dimension 0 exceeds dst shape"),
    ("pld.tensor.put(win, nxt, inp, [0, 0], [0, 0], [1, 0])", "positive"),
    ("pld.tensor.put(win, nxt, inp, chunk_rows=-1)", "chunk_rows must be non-negative"),
    ("pld.tensor.get(out, nxt, win, chunk_cols=-4)", "chunk_cols must be non-negative"),
    ("pld.tensor.put(win, nxt, inp, chunk_rows=me)", "chunk_rows must be a static int"),
    ("pld.tensor.put(win, nxt, inp, chunk_cols=True)", "chunk_cols must be a static int"),
    ("pld.tensor.put(win, nxt, inp, pipeline=True)", "pipeline=True requires both chunk_rows>0 and chunk_cols>0"),
    ("pld.tensor.put(win, nxt, inp, chunk_rows=1, pipeline=True)", "pipeline=True requires both"),
    ("pld.tensor.put(win, nxt, inp, pipeline=1)", "True or False"),
    ("pld.tensor.put(win, nxt, inp, atomic=3)", "atomic must be AtomicType.None_ or"),
    ("pld.tensor.put(win, nxt, inp, atomic=pld.NotifyOp.Set)", "atomic must be AtomicType.None_ or"),
    ("pld.tensor.get(out, nxt, win, atomic=pld.AtomicType.Add)", "unexpected keyword argument 'atomic'"),
    ("pld.tensor.put(win, nxt)", "missing 1 required positional argument: 'src'"),
    ("pld.tensor.put(win, nxt, inp, " + PARTS + ", 1)", "takes from 3 to 6 positional arguments but 7 were given"),
    ("pld.put(win, nxt, inp)", "pld.tensor.put"),
    ("pld.tensor.push(win, nxt, inp)", "pld.tensor"),
]


@pytest.mark.parametrize("statement, words", REFUSED, ids=lambda value: value)
def test_refused(statement, words):
    host = from_text(text_of(statement, "FP32", [1, 8]))["host"]
    x = values((2, 1, 8), "FP32")
    with pytest.raises(pypto.Error) as caught:
        host(x, np.zeros_like(x), config=config(2))
    assert words in str(caught.value)
    assert statement in str(caught.value)


def test_bool_does_not_add():
    with pytest.raises(pypto.Error, match="requires an fp32/bf16/fp16/int32/int16/int8 dtype .hardware atomic-add dtypes. or another"):
        run("pld.tensor.put(win, me, inp, atomic=pl.AtomicType.Add)", values((1, 1, 8), "BOOL"), "BOOL")


def test_a_kernel_only():
    text = text_of("pass", "FP32", [1, 8]).replace(
        "    kernel(inp, out, win, bell)", "    pld.tensor.put(win, 0, inp)"
    )
    x = values((1, 1, 8), "FP32")
    with pytest.raises(pypto.Error, match="should be inside InCore"):
        from_text(text)["host"](x, np.zeros_like(x), config=config(1))


# ---- what is found when it runs ----

OUTSIDE = [
    ("pld.tensor.put(win, me + n, inp)", r"peer <me + n> does not exist: the domain of window 'win_buf' \(parameter 'win'\) has ranks 0 to <n - 1>$"),
    ("pld.tensor.get(out, me - n, win)", "peer <me - n> does not exist"),
    ("pld.tensor.put(win, nxt, inp, [me + 1, 0], [0, 0], [1, 8])", r"a put of \[1, 8\] at \[<me + 1>, 0\] leaves window 'win_buf' \(parameter 'win'\) of shape \[1, 8\]: dimension 0"),
    ("pld.tensor.put(win, nxt, inp, [0, 0], [0, me + 5], [1, 4])", r"a put of \[1, 4\] at \[0, <me + 5>\] leaves parameter 'inp' of shape \[1, 8\]: dimension 1 ends at 8"),
    ("pld.tensor.get(out, nxt, win, [0, me - n], [0, 0], [1, 4])", r"a get of \[1, 4\] at \[0, <me - n>\] leaves parameter 'out'"),
    ("pld.tensor.get(out, nxt, win, [0, 0], [me + 9, 0], [1, 4])", r"a get of \[1, 4\] at \[<me + 9>, 0\] leaves window 'win_buf'"),
    ("pld.tensor.put(win, nxt, inp, [0, 0], [0, 0], [1, 0 - me - 1])", r"a put of \[1, <-1 - me>\] at \[0, 0\] of .*: the extent of dimension 1 is negative"),
    ("pld.tensor.put(win, nxt, inp, [0, 0], [0, 0], [me + 2, 4], chunk_rows=1)", r"a put of \[<me + 2>, 4\] at \[0, 0\] leaves .*: dimension 0 ends at 1"),
    ("pld.tensor.put(win, nxt, inp, [0, 0], [0, 0], [me - n, 4], chunk_rows=1)", r"a put of \[<me - n>, 4\]"),
    ("pld.tensor.put(win, nxt, inp, [0, pl.cast(me % 2 + 1, pl.INDEX) * 4611686018427387904], [0, 0], [1, 8])", "dimension 1 ends at 8|negative index -9223372036854775808 in dimension 1"),
    ("pld.remote_store(inp[0:1, 0:8], win, nxt, [0, me + 1])", r"a remote store of \[1, 8\] at \[0, <me + 1>\] leaves window 'win_buf'"),
    ("pld.remote_store(inp[0:1, 0:8], win, me + n, [0, 0])", "peer <me + n> does not exist"),
    ("pld.tensor.put(win[0:1, 0:4], nxt, inp, [0, me + 1], [0, 0], [1, 4])", r"dimension 1 ends at 4"),
]


@pytest.mark.parametrize("ranks", [2, 64])
@pytest.mark.parametrize("statement, words", OUTSIDE, ids=lambda value: value)
def test_outside_at_run_time(statement, words, ranks, transport):
    assert_fails(statement, statement, words, "FP32", [1, 8], ranks)


# ---- the tensor form of remote_store ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["pld.remote_store", "pld.tensor.remote_store"])
def test_parts_of_tensors_are_stored(name, dtype):
    body = f"""
{name}(inp[0:2, 3:7], win, nxt, [1, 1, 2])
{name}(src=inp[1:2, :], target=win, peer=nxt, offsets=[0, 0, 0])
ARRIVE 1
pld.tensor.get(out, me, win)
"""
    x = values((2, 2, 8), dtype)
    expected = np.zeros((2, 2, 3, 8), array(x).dtype)
    for r in range(2):
        expected[r, 1, 1:3, 2:6] = array(x)[1 - r, :, 3:7]
        expected[r, 0, 0] = array(x)[1 - r, 1]
    assert_same(run(body, x, dtype, out=[2, 3, 8], win=[2, 3, 8]), expected)


def test_what_was_computed_from_tensors():
    body = """
pld.tensor.remote_store(pl.add(inp, inp[0:2, :]), win, nxt, [0, 0])
pld.remote_store(src=inp[0:1, 0:2] + inp[1:2, 0:2], target=win, peer=nxt, offsets=[2, 1])
ARRIVE 1
pld.tensor.get(out, me, win)
"""
    x = values((2, 2, 4), "FP32")
    expected = np.zeros((2, 3, 4), np.float32)
    expected[:, :2] = (x + x)[::-1]
    expected[:, 2, 1:3] = (x[:, 0] + x[:, 1])[::-1, :2]
    assert_same(run(body, x, "FP32", out=[3, 4], win=[3, 4]), expected)


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS])
def test_parts_of_tensors_are_added(dtype):
    body = """
for to in pl.range(n):
    pld.remote_store(inp[0:2, 0:4], win, to, [0, 0], atomic=pld.AtomicType.Add)
ARRIVE 1
pld.tensor.get(out, me, win)
"""
    x = small_values((3, 2, 4), dtype)
    total = array(x).astype(np.float64).sum(axis=0)
    for result in array(run(body, x, dtype)):
        assert_same(result.astype(np.float64), total)


@pytest.mark.parametrize(
    "statement, words",
    [
        ("pld.tensor.remote_store(pl.load(inp, [0, 0], [1, 8]), win, 0, [0, 1])", "push exceeds the peer's"),
        ("pld.tile.remote_store(inp[0:1, 0:8], win, 0, [0, 0])", "src_tile expected Tile, got Tensor"),
        ("pld.remote_store(win[0:1, 0:4], win, 0, [0, 0])", "pld.tensor.put"),
        ("pld.tensor.remote_store(inp[0:1, 0:8], inp, 0, [0, 0])", "target must be a DistributedTensor"),
        ("pld.tensor.remote_store(3, win, 0, [0, 0])", "src_tile expected Tile"),
        ("pld.remote_store(inp[0:1, 0:8], win, 0, [0, 1])", "push exceeds the peer's target region in dimension 1"),
        ("pld.remote_store(inp[0, 0:8], win, 0, [0, 0])", "src must be at least 2-D"),
    ],
)
def test_refused_tensor_form(statement, words):
    test_refused(statement, words)


def test_the_set_works_after_an_error():
    bad = host_of("pld.tensor.put(win, me + 9, inp)", "FP32", [1, 8])
    x = values((2, 1, 8), "FP32")
    with pytest.raises(pypto.DeviceError):
        bad(x, np.zeros_like(x), config=config(2))
    assert_same(run(RINGS["put"], x, "FP32"), x[::-1])


# ---- element types for storage ----


@pytest.mark.parametrize("dtype", ["FP8E4M3FN", "FP8E5M2", "FP8E8M0", "FP4", "INT4", "UINT4"])
def test_types_for_storage_move(dtype):
    """Two elements of 4 bits lie in a byte: columns count elements, the arrays bytes."""
    each = 2 if dtype in ("FP4", "INT4", "UINT4") else 1
    columns = 8 * each
    body = f"""
pld.tensor.put(win[0:2, :], nxt, inp)
pld.remote_store(pl.load(inp, [0, 0], [2, {columns}]), win, nxt, [2, 0])
pld.remote_store(inp[0:1, 0:{4 * each}], win, nxt, [4, {2 * each}])
ARRIVE 1
pld.tensor.get(out, me, win)
pl.store(pld.remote_load(win, nxt, [0, 0], [1, {columns}]), [5, 0], out)
"""
    x = values((2, 2, 8), "UINT8")
    expected = np.zeros((2, 6, 8), np.uint8)
    for r in range(2):
        expected[r, 0:2] = expected[r, 2:4] = x[1 - r]
        expected[r, 4, 2:6] = x[1 - r, 0, :4]
        expected[r, 5] = x[r, 0]
    host = host_of(body, dtype, [2, columns], out=[6, columns], win=[6, columns])
    y = np.zeros_like(expected)
    host(x, y, config=config(2))
    assert_same(y, expected)


@pytest.mark.parametrize("dtype", ["FP8E5M2", "INT4"])
def test_types_for_storage_do_not_add(dtype):
    host = host_of("pld.tensor.put(win, me, inp, atomic=pld.AtomicType.Add)", dtype, [2, 8])
    x = values((1, 2, 8 if dtype == "FP8E5M2" else 4), "UINT8")
    with pytest.raises(pypto.Error, match="requires an fp32/bf16/fp16/int32/int16/int8 dtype .hardware atomic-add dtypes. or another"):
        host(x, np.zeros_like(x), config=config(1))


# ---- how it is printed ----


def test_the_ir_says_what_was_asked():
    body = """
pld.tensor.put(win, nxt, inp)
pld.tensor.put(dst=win, peer=0, src=inp, dst_offsets=[0, 0], src_offsets=[1, 0], shape=[1, 8],
               atomic=pld.AtomicType.Add, chunk_rows=1, chunk_cols=4, pipeline=True)
pld.tensor.get(out, nxt, win, chunk_rows=0, pipeline=False)
pld.remote_store(pl.load(inp, [0, 0], [1, 8]), win, 0, [0, 0], atomic=pld.AtomicType.None_)
pld.remote_store(inp[0:1, :], win, 0, [0, 0], atomic=pld.AtomicType.Add)
"""
    host = from_text(text_of(body, "FP32", [2, 8]))["host"]
    x = values((1, 2, 8), "FP32")
    lines = [line.split(" ;")[0].strip() for line in str(host.lower(x, x)).splitlines()]
    assert [line for line in lines if "put(" in line or "get(" in line] == [
        "pld.tensor.put(win, nxt, inp)",
        "pld.tensor.put(win, 0, inp, [0, 0], [1, 0], [1, 8], atomic=AtomicType.Add, "
        "chunk_rows=1, chunk_cols=4, pipeline=True)",
        "pld.tensor.get(out, nxt, win)",
    ]
    tile, tensor = [line for line in lines if "remote_store(" in line]
    assert tile.startswith("pld.tile.remote_store(") and "atomic" not in tile
    assert tensor.startswith("pld.tensor.remote_store(") and tensor.endswith("atomic=AtomicType.Add)")


# ---- domains of some devices ----

GROUP = """
@pl.jit.incore
def kernel(out: pl.Out[pl.Tensor[[1, 4], pl.INT32]], win: pld.DistributedTensor[[1, 4], pl.INT32],
           bell: pld.DistributedTensor[[1], pl.INT32], to: pl.Scalar[pl.INT32]):
    me = pld.rank(pld.get_comm_ctx(win))
    t = pl.tile.full([1, 4], pl.INT32, 0) + (me + 1)
    pld.remote_store(t, win, to, [0, 0])
    pld.system.notify(bell, to, [0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(bell, [0], 1, cmp=pld.WaitCmp.Ge)
    pld.tensor.get(out, me, win)

@pl.jit
def wrapper(out: pl.Out[pl.Tensor[[1, 4], pl.INT32]], win: pld.DistributedTensor[[1, 4], pl.INT32],
            bell: pld.DistributedTensor[[1], pl.INT32], to: pl.Scalar[pl.INT32]):
    kernel(out, win, bell, to)

@pl.jit.host
def host(outputs: pl.Out[pl.Tensor[[4, 1, 4], pl.INT32]]):
    win_buf = pld.alloc_window_buffer(16)
    bell_buf = pld.alloc_window_buffer(4)
    for r in pl.range(2, 4):
        win = pld.window(win_buf, [1, 4], dtype=pl.INT32)
        bell = pld.window(bell_buf, [1], dtype=pl.INT32)
        wrapper(outputs[r], win, bell, {peer}, device=r)
"""


def test_peers_are_ranks_of_the_domain(transport):
    y = np.zeros((4, 1, 4), np.int32)
    from_text(GROUP.format(peer="3 - r"))["host"](y, config=config(4))
    assert_same(y[:, 0, 0], [0, 0, 2, 1])


def test_a_device_that_was_taken_for_a_rank():
    with pytest.raises(pypto.DeviceError) as caught:
        from_text(GROUP.format(peer="5 - r"))["host"](np.zeros((4, 1, 4), np.int32), config=config(4))
    assert re.search(
        r"peer [23] does not exist: the domain of window 'win_buf' \(parameter 'win'\) has ranks 0 to 1, which "
        r"are the devices \[2, 3\], where device [23] is rank [01]",
        caught.value.message,
    ), caught.value.message


# ---- the lowered forms, which programs printed by a device's compiler have ----

STAGED = """
s = pl.create_tile([1, 4], pl.FP32)
s2 = pl.create_tile([1, 4], pl.FP32)
{body}
"""


@pytest.mark.parametrize(
    "put, get",
    [
        ("win, nxt, inp, s", "out, me, win, s"),
        ("win, nxt, inp, s, s2", "out, me, win, s, s2"),
        ("win, nxt, inp, s, [0, 0], [0, 0], [2, 8]", "out, me, win, s, s2, [0, 0], [0, 0], [2, 8]"),
        (
            "dst=win, peer=nxt, src=inp, stage=s, dst_offsets=[0, 0], src_offsets=[0, 0], shape=[2, 8], "
            "atomic=pld.AtomicType.Add",
            "out, peer=me, src=win, stage=s, stage2=s2",
        ),
    ],
)
def test_staged_forms(put, get):
    body = STAGED.format(body=f"pld.tile.put({put})\nARRIVE 1\npld.tile.get({get})")
    x = values((2, 2, 8), "FP32")
    assert_same(run(body, x, "FP32"), x[::-1])


@pytest.mark.parametrize(
    "statement, words",
    [
        ("pld.tile.put(win, nxt, inp)", "missing 1 required positional argument: 'stage'"),
        ("pld.tile.put(win, nxt, inp, inp)", "stage expected Tile, got Tensor"),
        ("pld.tile.put(win, nxt, inp, pl.create_tile([4], pl.FP32))", "stage must be a 2D VEC staging tile"),
        ("pld.tile.put(win, nxt, inp, pl.create_tile([1, 4], pl.INT32))", "stage dtype must match dst dtype"),
        ("pld.tile.get(out, nxt, win, s, pl.create_tile([1, 4], pl.FP16))", "stage2 dtype must match dst dtype"),
        ("pld.tile.get(out, nxt, win, s, pl.create_tile([1, 2], pl.FP32))", "must have identical shape"),
        ("pld.tile.put(win, nxt, inp, pl.create_tile([3, 8], pl.FP32))", "must fit within"),
        ("pld.tile.put(win, nxt, inp, s, [0, 0], [0, 0], [1, 2])", "must fit within"),
        ("pld.tile.put(win, nxt, inp, s, [0, 0], [0, 0])", "must be provided together"),
        ("pld.tile.put(win, nxt, inp, s, [0, 0], [0, 0], [0, 8])", "must be positive"),
        ("pld.tile.put(win, nxt, inp, s, [0, 0], [0, 0], [1, 8], [1, 8])", "stage2 expected Tile, got list"),
        ("pld.tile.get(out, nxt, win, s, 3)", "stage2 expected Tile or list, got Scalar"),
        ("pld.tile.get(out, nxt, win, s, s2, [1, 0], [0, 0], [2, 8])", "dst subregion dimension 0 exceeds dst shape"),
    ],
)
def test_refused_staged_forms(statement, words):
    body = STAGED.format(body=statement)
    x = values((1, 2, 8), "FP32")
    with pytest.raises(pypto.Error) as caught:
        run(body, x, "FP32")
    assert words in str(caught.value)
