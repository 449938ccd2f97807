"""Views of tensors and windows that are valid in part only: pl.slice(valid_shape=, clamp=),
pl.tensor.view(valid_shape=).

`View` is the oracle: the element at each place of the view, with NaN where nothing counts. What the
program loads of it must be the elements that count, and 0 elsewhere. Numbers that are known at run time only
come as n = 1, read from the tensor."""

import numpy as np
import pytest

import pypto
from op_programs import moved, ramp
from programs import config, from_text

SIZES = [(0, 0), (1, 1), (3, 5), (4, 8), (2, 8), (4, 1), (0, 8)]
ASK = "n = pl.cast(pl.read(x, [0, 0]), pl.INDEX)"
BACK = "pl.store(pl.load(v, [0, 0], [4, 8]), [0, 0], z)"


class View:
    """A view as an array of which only a box counts; the rest is NaN."""

    def __init__(self, elements):
        self.elements = elements

    def slice(self, shape, offset, valid=None):
        elements = np.full(shape, np.nan, np.float32)
        box = tuple(slice(o, o + (s if valid is None else valid[i]))
                    for i, (o, s) in enumerate(zip(offset, shape)))
        part = self.elements[box]
        elements[tuple(slice(0, extent) for extent in part.shape)] = part
        return View(elements)

    def tile(self):
        return np.nan_to_num(self.elements, nan=0.0)


def listed(values, at_run_time):
    """A list of the numbers; those known at run time only are sums with n - 1."""
    return "[" + ", ".join(f"n + {v - 1}" if at_run_time else str(v) for v in values) + "]"


@pytest.mark.parametrize("at_run_time", [False, True])
@pytest.mark.parametrize("valid", SIZES)
def test_valid_shape(valid, at_run_time):
    a = ramp()
    out = moved([ASK, f"v = pl.slice(x, [4, 8], [1, 2], valid_shape={listed(valid, at_run_time)})", BACK], a,
                out_shape=(4, 8))
    np.testing.assert_array_equal(out, View(a).slice((4, 8), (1, 2), valid).tile())


@pytest.mark.parametrize("at_run_time", [False, True])
@pytest.mark.parametrize("offset", [(0, 0), (2, 2), (3, 3), (5, 9), (6, 0), (0, 10), (40, 40)])
@pytest.mark.parametrize("valid", [None, (3, 5)])
def test_clamp(offset, valid, at_run_time):
    a = ramp()
    given = "" if valid is None else f", valid_shape={listed(valid, at_run_time)}"
    out = moved([ASK, f"v = pl.slice(x, [4, 8], {listed(offset, at_run_time)}{given}, clamp=True)", BACK],
                a, out_shape=(4, 8))
    np.testing.assert_array_equal(out, View(a).slice((4, 8), offset, valid).tile())


def test_what_is_asked_for_must_lie_inside_the_rest_need_not():
    a = ramp()
    out = moved([ASK, "v = pl.slice(x, [4, 8], [n + 3, 4], valid_shape=[2, 6])", BACK], a, out_shape=(4, 8))
    np.testing.assert_array_equal(out, View(a).slice((4, 8), (4, 4), (2, 6)).tile())


@pytest.mark.parametrize("offset, valid", [((0, 0), None), ((1, 2), None), ((1, 2), (2, 2)), ((2, 3), (0, 1)),
                                           ((3, 0), (1, 3))])
def test_slices_of_slices(offset, valid):
    """The smaller of what is asked for, and what counts there."""
    a = ramp()
    given = "" if valid is None else f", valid_shape={listed(valid, True)}"
    out = moved([ASK, "u = pl.slice(x, [5, 8], [1, 1], valid_shape=[3, n + 4])",
                 f"v = pl.slice(u, [2, 5], {listed(offset, True)}{given})",
                 "pl.store(pl.load(v, [0, 0], [2, 5]), [0, 0], z)"], a, out_shape=(2, 5))
    expected = View(a).slice((5, 8), (1, 1), (3, 5)).slice((2, 5), offset, valid)
    np.testing.assert_array_equal(out, expected.tile())


def test_chains_by_chance():
    """Random chains of slices with random loads at their ends, all in one kernel."""
    rng = np.random.default_rng(7)
    a = ramp((9, 11))
    statements, tiles = [ASK], []
    for i in range(60):
        view, name = View(a), "x"
        for depth in range(rng.integers(1, 4)):
            limit = view.elements.shape
            shape = tuple(int(rng.integers(1, s + 1)) for s in limit)
            clamp = rng.random() < 0.5
            offset = tuple(int(rng.integers(0, (s if clamp else s - t) + 1)) for s, t in zip(limit, shape))
            valid = tuple(int(rng.integers(0, t + 1)) for t in shape) if rng.random() < 0.6 else None
            given = "" if valid is None else f", valid_shape={listed(valid, rng.random() < 0.5)}"
            given += ", clamp=True" if clamp else ""
            new = f"v{i}_{depth}"
            statements.append(f"{new} = pl.slice({name}, {list(shape)}, "
                              f"{listed(offset, rng.random() < 0.5)}{given})")
            view, name = view.slice(shape, offset, valid), new
        limit = view.elements.shape
        at = tuple(int(rng.integers(0, s)) for s in limit)
        take = tuple(int(rng.integers(1, s - o + 1)) for s, o in zip(limit, at))
        statements.append(f"pl.store(pl.load({name}, {list(at)}, {list(take)}), [{i}, 0, 0], z)")
        expected = np.zeros((9, 11), np.float32)
        expected[: take[0], : take[1]] = view.slice(take, at).tile()
        tiles.append(expected)
    out = moved(statements, a, out_shape=(60, 9, 11))
    np.testing.assert_array_equal(out, tiles)


def test_dropped_axes_and_parts():
    a = ramp()
    out = moved([
        ASK,
        "v = pl.slice(x, [1, 8], [n, 1], valid_shape=[1, n + 4], drop_dims=[0])",
        "pl.store(pl.load(v, [0], [8]), [0, 0], z)",
        "w = pl.slice(x, [4, 8], [1, 1], valid_shape=[2, n + 5])",
        "pl.store(pl.load(w[1, 2:8], [0], [6]), [1, 0], z)",
        "pl.store(pl.load(w[n + 1, 2:8], [0], [6]), [2, 0], z)",
        "pl.store(pl.load(w[1:3, :], [0, 0], [2, 8]), [3, 0], z)",
        "u = pl.slice(x, [1, 8], [1, 1], valid_shape=[n - 1, 8], drop_dims=[0])",
        "pl.store(pl.load(u, [0], [8]), [5, 0], z)",
    ], a, out_shape=(6, 8))
    expected = np.zeros((6, 8), np.float32)
    expected[0, :5] = a[1, 1:6]
    expected[1, :4] = a[2, 3:7]
    expected[3, :6] = a[2, 1:7]
    np.testing.assert_array_equal(out, expected)


def test_loads_take_the_least():
    """Of valid_shape, the tile, and what counts of the view."""
    a = ramp()
    out = moved([
        ASK,
        "v = pl.slice(x, [5, 9], [1, 1], valid_shape=[3, n + 5])",
        "pl.store(pl.load(v, [1, 1], [4, 8], valid_shape=[4, n + 1]), [0, 0, 0], z)",
        "pl.store(pl.load(v, [1, n + 4], [4, 8], valid_shape=[1, 4]), [1, 0, 0], z)",
        "pl.store(pl.load(v, [2, 3], [4, 8], clamp=True), [2, 0, 0], z)",
        "pl.store(pl.load(v, [3, 0], [2, 8]), [3, 0, 0], z)",
    ], a, out_shape=(4, 4, 8))
    expected = np.zeros((4, 4, 8), np.float32)
    expected[0, :2, :2] = a[2:4, 2:4]
    expected[1, :1, :1] = a[2:3, 6:7]
    expected[2, :1, :3] = a[3:4, 4:7]
    np.testing.assert_array_equal(out, expected)


def test_operations_on_whole_tensors():
    a = ramp()
    out = moved([
        ASK,
        "v = pl.slice(x, [4, 8], [1, 1], valid_shape=[n + 1, 5])",
        "s = pl.row_sum(v)",
        "pl.store(s, [0, 0, 0], z)",
        "pl.store(pl.add(v, v), [1, 0, 0], z)",
        "pl.store(pl.fillpad(v, pad_value=pl.PadValue.min), [2, 0, 0], z)",
    ], a, out_shape=(3, 4, 8))
    part = a[1:3, 1:6]
    expected = np.zeros((3, 4, 8), np.float32)
    expected[0, :2, :1] = part.sum(axis=1, keepdims=True)
    expected[1, :2, :5] = part + part
    expected[2] = -np.inf
    expected[2, :2, :5] = part
    np.testing.assert_array_equal(out, expected)


def test_assemble_writes_what_counts():
    a = ramp()
    out = moved([
        ASK,
        "v = pl.slice(x, [4, 8], [1, 1], valid_shape=[n + 1, 5])",
        "z = pl.assemble(z, v, [0, 1, 2])",
        "z[1, 0:4, 0:8] = v",
        "z = pl.assemble(z, v, [1, 0, 0], atomic=pl.AtomicType.Add)",
        "e = pl.slice(x, [4, 8], [0, 0], valid_shape=[n - 1, 8])",
        "z = pl.assemble(z, e, [2, 0, 0])",
        "r = pl.slice(x, [4, 8], [4, 5], clamp=True)",
        "z = pl.assemble(z, r, [2, 4, 5])",  # only what counts must fit
    ], a, out_shape=(3, 6, 10))
    expected = np.zeros((3, 6, 10), np.float32)
    expected[0, 1:3, 2:7] = a[1:3, 1:6]
    expected[1, :2, :5] = 2 * a[1:3, 1:6]
    expected[2, 4:, 5:] = a[4:, 5:]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("write", [
    "v = pl.assemble(v, t, [0, 0])", "v = pl.store(t, [0, 0], v)", "pl.store(t, [0, 0], v)",
    "v[0:2, 0:2] = t", "v = pl.assemble(v, pl.slice(y, [2, 2], [0, 0]), [0, 0])"])
def test_what_is_written_through_counts(write):
    """And all else of the view that is there does with it."""
    a = ramp()
    out = moved([
        ASK,
        "z[:] = pl.load(x, [0, 0], [6, 10])",
        "t = pl.load(y, [0, 0], [2, 2])",
        "v = pl.slice(z, [4, 8], [3, 1], valid_shape=[n - 1, 8], clamp=True)",
        write,
        "w = pl.create_tensor([4, 8], dtype=pl.FP32)",
        "w = pl.assemble(w, v, [0, 0])",
        "pl.store(pl.load(w, [0, 0], [3, 8]), [0, 0], z)",
    ], a, 100 * a)
    expected = a.copy()
    expected[3:5, 1:3] = 100 * a[:2, :2]
    expected[:3, :8] = expected[3:6, 1:9]
    np.testing.assert_array_equal(out, expected)


def test_branches_and_loops():
    a = ramp((8, 16))
    out = moved([
        ASK,
        "v = pl.slice(x, [2, 16], [0, 0])",
        "for i in pl.range(4):",
        "    if i != 2:",
        "        v = pl.slice(x, [2, 16], [2 * i, 0], valid_shape=[2, 4 * i])",
        "    else:",
        "        v = pl.slice(x, [2, 16], [n - 1, 0])",
        "    pl.store(pl.load(v, [0, 0], [2, 16]), [2 * i, 0], z)",
        "pl.store(pl.load(v, [0, 0], [1, 16]), [0, 0], z)",
    ], a)
    expected = np.zeros_like(a)
    for i in (1, 3):
        expected[2 * i : 2 * i + 2, : 4 * i] = a[2 * i : 2 * i + 2, : 4 * i]
    expected[4:6] = a[:2]
    expected[0, :12] = a[6, :12]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("valid, shape, expected", [
    ((3, 8), (24,), (24,)), ((3, 8), (6, 4), (6, 4)), ((2, 8), (24,), (16,)), ((2, 8), (6, 4), (4, 4)),
    ((1, 5), (24,), (5,)), ((1, 4), (6, 4), (1, 4)), ((1, 8), (2, 3, 4), (1, 2, 4)), ((0, 5), (6, 4), (0, 0)),
    ((2, 5), (1, 3, 1, 8), (1, 2, 1, 5)), ((1, 3), (2, 3, 4), (1, 1, 3)), ((2, 8), (2, 3, 4), None),
    ((2, 5), (24,), None), ((1, 5), (6, 4), None), ((1, 3), (12, 2), None)])
def test_reshape(valid, shape, expected):
    """The same elements, which must be a box."""
    a = ramp((3, 8))
    rank = len(shape)
    store = [
        ASK,
        f"v = pl.reshape(pl.slice(x, [3, 8], [0, 0], valid_shape={listed(valid, True)}), {list(shape)})",
        f"t = pl.load(v, {[0] * rank}, {list(shape)})",
        f"pl.store(t, {[0] * rank}, z)"]
    if expected is None:
        with pytest.raises(pypto.Error, match="what is valid of it is no box in that shape"):
            moved(store, a, out_shape=shape)
        return
    out = moved(store, a, out_shape=shape)
    tile = np.zeros(shape, np.float32)
    box = tuple(slice(0, extent) for extent in expected)
    tile[box] = a.reshape(shape)[box]
    np.testing.assert_array_equal(out, tile)


def test_tensor_view():
    a = ramp((4, 6))
    out = moved([
        ASK,
        "v = pl.tensor.view(x, [8, 3], [n + 2, 2])",
        "pl.store(pl.load(v, [0, 0], [8, 3]), [0, 0, 0], z)",
        "w = pl.tensor.view(pl.slice(x, [4, 6], [0, 0], valid_shape=[n + 1, 5]), [8, 3], valid_shape=[n - 1, 3])",
        "pl.store(pl.load(w, [0, 0], [8, 3]), [1, 0, 0], z)",
        "u = pl.tensor.view(pl.slice(x, [4, 6], [0, 0], valid_shape=[n + 1, 6]), [8, 3])",
        "pl.store(pl.load(u, [0, 0], [8, 3]), [2, 0, 0], z)",
    ], a, out_shape=(3, 8, 3))
    expected = np.zeros((3, 8, 3), np.float32)
    expected[0, :3, :2] = a.reshape(8, 3)[:3, :2]
    expected[2, :4] = a.reshape(8, 3)[:4]
    np.testing.assert_array_equal(out, expected)


PASSED = """\
M = pl.dynamic("M")

@pl.jit.incore
def double(v: pl.Tensor[[4, 8], pl.FP32], z: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    z[:] = pl.add(v, v)

@pl.jit.incore
def bare(v: pl.Tensor, z: pl.Out[pl.Tensor]):
    pl.store(pl.load(v, [0, 0], [4, 8]), [0, 0], z)

@pl.jit.incore
def named(v: pl.Tensor[[M, 8], pl.FP32], z: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    t = pl.load(v, [0, 0], [4, 8])
    u = pl.full([4, 8], dtype=pl.FP32, value=0.5)
    m = pl.cast(M, pl.INDEX)
    pl.store(pl.set_validshape(u, m, 1), [0, 0], z)
    pl.store(t, [0, 0], z)

@pl.jit.incore
def caller(v: pl.Tensor[[4, 8], pl.FP32], z: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    double(v, z)

@pl.jit.incore
def inner(z: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]):
    pl.store(pl.full([1, 8], dtype=pl.FP32, value=7.0), [0, 0], z)

@pl.jit
def wrapper(x: pl.Tensor[[6, 10], pl.FP32], z: pl.Out[pl.Tensor[[7, 4, 8], pl.FP32]]):
    n = pl.cast(pl.read(x, [0, 0]), pl.INDEX)
    v = pl.slice(x, [4, 8], [3, 1], valid_shape=[n + 1, 5])
    double(v, z[0])
    double(pl.slice(x, [4, 8], [0, 0]), z[1])
    bare(v, z[2])
    w = pl.slice(x, [4, 8], [n + 3, 5], clamp=True)
    named(w, z[3])
    caller(w, z[4])
    with pl.at(level=pl.Level.CORE_GROUP):
        z[5, 0:4, 0:8] = pl.add(v, w)
    o = pl.slice(z[6], [4, 8], [0, 0], valid_shape=[n - 1, 8])
    inner(o)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(o, [0, 0], [1, 8]), [1, 0], o)

@pl.jit.host
def host(x: pl.Tensor[[NR, 6, 10], pl.FP32], z: pl.Out[pl.Tensor[[NR, 7, 4, 8], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        wrapper(x[r], z[r], device=r)
"""


def test_passed_to_kernels():
    """A kernel is specialised for views that are valid in part; a write by a kernel makes all of one count."""
    a = ramp()
    out = np.zeros((1, 7, 4, 8), np.float32)
    from_text(PASSED)["host"](a[None], out, config=config(1))
    v = View(a).slice((4, 8), (3, 1), (2, 5)).tile()
    w = View(a).slice((4, 8), (4, 5)).tile()
    expected = np.zeros((7, 4, 8), np.float32)
    expected[0] = 2 * v
    expected[1] = 2 * a[:4, :8]
    expected[2] = v
    expected[3, :, 0] = 0.5
    expected[3, :2, :5] = w[:2, :5]
    expected[4] = 2 * w
    expected[5, :2, :5] = (v + w)[:2, :5]
    expected[6, :2] = 7
    np.testing.assert_array_equal(out[0], expected)


WRITTEN = """\
@pl.jit.incore
def take(w: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]], z: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    z[:] = w

@pl.jit.incore
def relay(w: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]], z: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    take(w, z)

@pl.jit.incore
def bare(w: pl.Tensor, z: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    z[:] = w

@pl.jit.incore
def fill(x: pl.Tensor[[6, 10], pl.FP32], w: pl.InOut[pld.DistributedTensor[[6, 10], pl.FP32]]):
    w[:] = x

@pl.jit.incore
def grow(z: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]) -> pl.Tensor[[4, 8], pl.FP32]:
    for i in pl.range(2):
        z = pl.store(pl.full([1, 8], dtype=pl.FP32, value=7.0), [i, 0], z)
    return z

@pl.jit
def wrapper(x: pl.Tensor[[6, 10], pl.FP32], w: pl.InOut[pld.DistributedTensor[[6, 10], pl.FP32]],
            z: pl.Out[pl.Tensor[[6, 4, 8], pl.FP32]]):
    fill(x, w)
    n = pl.cast(pl.read(x, [0, 0]), pl.INDEX)
    v = pl.slice(w, [4, 8], [4, 3], valid_shape=[n + 1, 5])
    take(v, z[0])
    relay(pl.slice(w, [4, 8], [n + 4, 3], clamp=True), z[1])
    bare(pl.slice(w, [4, 8], [n + 4, 3], clamp=True), z[2])
    o = pl.slice(z[3], [4, 8], [0, 0], valid_shape=[n - 1, 8])
    o = grow(o)
    for i in pl.range(2):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.load(o, [0, 0], [1, 8]), [2 + i, 0])
    bare(o, z[4])
    with pl.at(level=pl.Level.CORE_GROUP):
        u = pl.slice(x, [4, 8], [0, 0], valid_shape=[n, 8])
        for i in pl.range(4):
            pl.store(pl.load(u, [0, i], [1, 2]), [5, i, 2 * i], z)
            u = pl.slice(u, [4, 8], [0, 0], valid_shape=[n, n + 1])

@pl.jit.host
def host(x: pl.Tensor[[NR, 6, 10], pl.FP32], z: pl.Out[pl.Tensor[[NR, 6, 4, 8], pl.FP32]]):
    wb = pld.alloc_window_buffer([6, 10], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        wrapper(x[r], pld.window(wb, [6, 10], dtype=pl.FP32), z[r], device=r)
"""


def test_windows_and_views_that_are_written():
    """Passed on from kernel to kernel, carried by loops, and written by scopes and kernels."""
    a = ramp()
    out = np.zeros((1, 6, 4, 8), np.float32)
    from_text(WRITTEN)["host"](a[None], out, config=config(1))
    expected = np.zeros((6, 4, 8), np.float32)
    expected[0, :2, :5] = a[4:, 3:8]
    expected[1:3, :1, :7] = a[5:, 3:]
    expected[3:5] = 7
    expected[5, 0, :2] = 1, 2
    expected[5, 1, 2] = 2
    np.testing.assert_array_equal(out[0], expected)


RANKS = """\
@pl.jit.incore
def fill(x: pl.Tensor[[6, 10], pl.FP32], w: pl.InOut[pld.DistributedTensor[[6, 10], pl.FP32]],
         s: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]], z: pl.Out[pl.Tensor[[6, 6, 10], pl.FP32]]):
    ctx = pld.get_comm_ctx(w)
    peer = 1 - pld.rank(ctx)
    n = pl.cast(pl.read(x, [0, 0]), pl.INDEX)
    w = pl.assemble(w, x, [0, 0])
    pld.system.notify(s, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(s, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    v = pl.slice(w, [4, 8], [1, 1], valid_shape=[n + 1, 5])
    pl.store(pld.tile.remote_load(v, peer=peer, offsets=[1, 2], shape=[3, 6]), [0, 0, 0], z)
    pl.store(pl.load(v, [0, 0], [4, 8]), [1, 0, 0], z)
    d = pl.create_tensor([4, 8], dtype=pl.FP32)
    pld.tensor.get(d, peer, v)
    pld.tensor.get(d, peer, v, dst_offsets=[2, 0], src_offsets=[0, 4], shape=[2, 4])
    pl.store(pl.load(d, [0, 0], [4, 8]), [2, 0, 0], z)
    g = pl.slice(z[3], [4, 8], [0, 0], valid_shape=[n - 1, 0])
    pld.tensor.get(g, peer, v)
    z[4, 0:4, 0:8] = g
    pld.system.notify(s, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(s, offsets=[0, 0], expected=2, cmp=pld.WaitCmp.Ge)
    pld.tensor.put(pl.slice(w, [4, 8], [2, 2]), peer, pl.slice(x, [4, 8], [1, 1], valid_shape=[n, 3]))
    pld.tensor.remote_store(pl.slice(x, [2, 2], [5, 8], clamp=True), w, peer, [0, 0])
    pld.system.notify(s, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(s, offsets=[0, 0], expected=3, cmp=pld.WaitCmp.Ge)
    z = pl.assemble(z, w, [5, 0, 0])

@pl.jit
def wrapper(x: pl.Tensor[[6, 10], pl.FP32], w: pl.InOut[pld.DistributedTensor[[6, 10], pl.FP32]],
            s: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]], z: pl.Out[pl.Tensor[[6, 6, 10], pl.FP32]]):
    fill(x, w, s, z)

@pl.jit.host
def host(x: pl.Tensor[[NR, 6, 10], pl.FP32], z: pl.Out[pl.Tensor[[NR, 6, 6, 10], pl.FP32]]):
    wb = pld.alloc_window_buffer([6, 10], dtype=pl.FP32)
    sb = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        wrapper(x[r], pld.window(wb, [6, 10], dtype=pl.FP32), pld.window(sb, [2, 1], dtype=pl.INT32), z[r],
                device=r)
"""


def test_transfers_move_what_counts():
    x = np.stack([ramp(), 1 + 1000 * (ramp() - 1)])
    out = np.zeros((2, 6, 6, 10), np.float32)
    from_text(RANKS)["host"](x, out, config=config(2))
    for rank in range(2):
        mine, theirs = x[rank], x[1 - rank]
        expected = np.zeros((6, 6, 10), np.float32)
        expected[0, :1, :3] = theirs[2:3, 3:6]
        expected[1, :2, :5] = mine[1:3, 1:6]
        expected[2, :2, :5] = theirs[1:3, 1:6]
        expected[2, 2:4, :1] = theirs[1:3, 5:6]
        expected[3, :2, :5] = theirs[1:3, 1:6]
        expected[4, :2, :5] = theirs[1:3, 1:6]
        expected[5] = mine
        expected[5, 2:3, 2:5] = theirs[1:2, 1:4]
        expected[5, :1, :2] = theirs[5:, 8:]
        np.testing.assert_array_equal(out[rank], expected)


@pytest.mark.parametrize("statement, words", [
    ("v = pl.slice(x, [4, 8], [4, 0])", "reaches past the end of dimension 0"),
    ("v = pl.slice(x, [4, 8], [4, 0], valid_shape=[3, 8])", "reaches past the end of dimension 0"),
    ("v = pl.slice(x, [4, 8], [-1, 0], clamp=True)", "must be non-negative"),
    ("v = pl.slice(x, [4, 8], [0, 0], valid_shape=[5, 8])", "from 0 to the view's 4"),
    ("v = pl.slice(x, [4, 8], [0, 0], valid_shape=[-1, 8])", "provably negative"),
    ("v = pl.slice(x, [4, 8], [0, 0], valid_shape=[4])", "valid_shape rank is 1, but the view has rank 2"),
    ("v = pl.slice(x, [1, 8], [0, 0], valid_shape=[0, 8], drop_dims=[0])", "drop_dims leaves that axis out"),
    ("v = pl.slice(x, [4, 8], [n + 3, 0])", "reaches from 4 to 7 in dimension 0"),
    ("v = pl.slice(x, [4, 8], [n + 3, 0], valid_shape=[n + 2, 8])", "reaches from 4 to 6 in dimension 0"),
    ("v = pl.slice(x, [4, 8], [n - 2, 0], clamp=True)", "reaches from -1 to 2 in dimension 0"),
    ("v = pl.slice(x, [4, 8], [0, 0], valid_shape=[n + 4, 8])", "valid_shape 0 is 5, but the slice has 4"),
    ("v = pl.slice(x, [4, 8], [0, 0], valid_shape=[n - 2, 8])", "valid_shape 0 is -1, but the slice has 4"),
    ("v = pl.slice(pl.slice(x, [4, 8], [0, 0], valid_shape=[n, 8]), [4, 8], [n, 0])", "reaches from 1 to 4"),
    ("v = pl.tensor.view(x, [5, 12], [6, 12])", "from 0 to the view's 5"),
    ("v = pl.tensor.view(x, [5, 12], [n + 5, 12])", "valid_shape 0 is 6, but the view has 5"),
    ("v = pl.slice(z, [4, 8], [n + 3, 0], clamp=True); pl.store(pl.load(x, [0, 0], [3, 8]), [0, 0], v)",
     "dimension 0 ends at 2, needs 0 [+] 3"),
    ("v = pl.slice(x, [4, 8], [n + 3, 0], clamp=True); pl.write(z, [0, 0], pl.read(v, [2, 0]))",
     "dimension 0 ends at 2, needs 2 [+] 1"),
    ("v = pl.slice(x, [4, 8], [0, 0], valid_shape=[n, 8]); t = pl.load(v, [n, 0], [4, 8])",
     "dimension 0 ends at 4, needs 1 [+] 4"),
])
def test_out_of_range(statement, words):
    """Where constants prove it, when the program is compiled; else when it runs."""
    store = "pl.store(pl.load(v, [0, 0], [1, 1]), [0, 0], z)"
    with pytest.raises(pypto.Error, match=words):
        moved([ASK, *statement.split("; "), store], ramp(), out_shape=(6, 10))


def test_refused_by_collectives_and_other_shapes():
    text = RANKS.replace("    v = pl.slice(w, [4, 8]", "    u = pl.slice(w, [6, 10], [0, 0], valid_shape=[n, 10])\n"
                         "    pld.tensor.broadcast(u, s, root=0)\n    v = pl.slice(w, [4, 8]")
    with pytest.raises(pypto.Error, match="target is a view that is valid in part only"):
        from_text(text)["host"](np.zeros((2, 6, 10), np.float32), np.zeros((2, 6, 6, 10), np.float32),
                                config=config(2))
    text = RANKS.replace("    fill(x, w, s, z)",
                         "    fill(x, pl.slice(w, [5, 10], [0, 0], valid_shape=[1, 10]), s, z)")
    with pytest.raises(pypto.Error, match="a view that is valid in part only keeps its shape"):
        from_text(text)["host"](np.zeros((2, 6, 10), np.float32), np.zeros((2, 6, 6, 10), np.float32),
                                config=config(2))
