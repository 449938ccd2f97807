"""The key words that messages about collectives are searched for, a row each: a call with the mistake, and the words.
What is refused elsewhere and has a meaning here is in the second table, and runs."""

import numpy as np
import pytest

import pypto
from programs import config, from_text

PROGRAM = """
SIG = pld.DistributedTensor[[2, 1], pl.INT32]
RING = pld.DistributedTensor[[2, 2], pl.INT32]
WIN = pld.DistributedTensor[[2, 8], pl.FP32]
ROW = pld.DistributedTensor[[1, 8], pl.FP32]
BLOCKS = pld.DistributedTensor[[4, 8], pl.FP32]
COUNTS = pl.Tensor[[2], pl.INT32]
TEN = pl.Tensor[[2, 8], pl.FP32]

@pl.jit.incore
def kernel(s: pl.InOut[SIG], g: pl.InOut[RING], w: pl.InOut[WIN], v: pl.InOut[WIN], b: pl.InOut[BLOCKS],
           d: pl.InOut[BLOCKS], sc: pl.InOut[SIG], rc: pl.InOut[SIG], k: COUNTS, x: TEN, y: pl.Out[TEN],
           n: pl.Scalar[pl.INT64]):
    t = pl.load(x, [0, 0], [2, 8])
    {kernel}
    pl.store(t, [0, 0], y)

@pl.jit
def wrapper(s: pl.InOut[SIG], g: pl.InOut[RING], w: pl.InOut[WIN], v: pl.InOut[WIN], b: pl.InOut[BLOCKS],
            d: pl.InOut[BLOCKS], sc: pl.InOut[SIG], rc: pl.InOut[SIG], k: COUNTS, x: TEN, y: pl.Out[TEN],
            n: pl.Scalar[pl.INT64]):
    kernel(s, g, w, v, b, d, sc, rc, k, x, y, n)

@pl.jit.host
def host(k: COUNTS, x: TEN, y: pl.Out[pl.Tensor[[2, 2, 8], pl.FP32]]):
    sb = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    s = pld.window(sb, [2, 1], dtype=pl.INT32)
    gb = pld.alloc_window_buffer([4, 2], dtype=pl.INT32)
    g = pld.window(gb, [2, 2], dtype=pl.INT32)
    wb = pld.alloc_window_buffer([2, 8], dtype=pl.FP32)
    w = pld.window(wb, [2, 8], dtype=pl.FP32)
    vb = pld.alloc_window_buffer([2, 8], dtype=pl.FP32)
    v = pld.window(vb, [2, 8], dtype=pl.FP32)
    bb = pld.alloc_window_buffer([4, 8], dtype=pl.FP32)
    b = pld.window(bb, [4, 8], dtype=pl.FP32)
    db = pld.alloc_window_buffer([4, 8], dtype=pl.FP32)
    d = pld.window(db, [4, 8], dtype=pl.FP32)
    scb = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    sc = pld.window(scb, [2, 1], dtype=pl.INT32)
    rcb = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    rc = pld.window(rcb, [2, 1], dtype=pl.INT32)
    for r in pl.range({devices}):
        wrapper(s, g, w, v, b, d, sc, rc, k, x, y[r], r, device=r)
    {host}
"""


def run(place, call, devices="pld.world_size()"):
    parts = {"kernel": "pass", "host": "pass", "devices": devices, place: call}
    x = np.ones((2, 8), np.float32)
    y = np.zeros((2, 2, 8), np.float32)
    from_text(PROGRAM.format(**parts))["host"](np.zeros(2, np.int32), x, y, config=config(2))
    assert (y == 1).all()


def window(view, shape, of, dtype="FP32"):
    """A call of a host function with a view of its own."""
    return lambda call: f"{view} = pld.window({of}, {shape}, dtype=pl.{dtype}); pld.tensor.{call}"


def both(call, words):
    return [("kernel", f"pld.tensor.{call}", words), ("host", f"pld.tensor.{call}", words)]


flat = window("u", "[2]", "sb", "INT32")
short = window("u", "[1]", "sb", "INT32")
dynamic = window("u", "[2, pld.world_size()]", "sb", "INT32")
SUM = "op=pld.ReduceOp.Sum"
REFUSED = [
    # what all have in common
    *both("barrier(x)", "pld.tensor.barrier.*signal must be a DistributedTensor"),
    *both("allreduce(x, s)", "pld.tensor.allreduce.*target must be a DistributedTensor"),
    *both("broadcast(x, s, root=0)", "target must be a DistributedTensor"),
    *both("allgather(x, x, s)", "target must be a DistributedTensor"),
    *both("reduce_scatter(x, s)", "target must be a DistributedTensor"),
    *both("all_to_all(x, x, s)", "target must be a DistributedTensor"),
    *both("all_to_all_v(b, x, s, sc, rc)", "target must be a DistributedTensor"),
    *both("all_to_all_v(b, d, s, sc, k)", "recv_counts must be a DistributedTensor"),
    *both("barrier(w)", "pld.tensor.barrier.*signal must have INT32 element type"),
    *both("allreduce(w, v)", "signal must have INT32 element type"),
    *both("broadcast(w, v, root=0)", "signal must have INT32 element type"),
    ("kernel", "pld.tensor.allgather(w[0:1, :], v, w)", "signal must have INT32 element type"),
    *both("reduce_scatter(w, v)", "signal must have INT32 element type"),
    *both("all_to_all(w, v, b)", "signal must have INT32 element type"),
    *both("all_to_all_v(b, d, w, sc, rc)", "signal must have INT32 element type"),
    *both("barrier()", "requires exactly 1 positional argument"),
    *both("barrier(s, s)", "requires exactly 1 positional argument"),
    *both("all_to_all(w, v)", "missing 1 required .*'signal'"),
    *both("all_to_all_v(b, d, s, sc)", "requires 5 args|missing 1 required .*'recv_counts'"),
    *both("foo(w, s)", r"pld\.tensor\.foo"),
    # allreduce
    *both(f"allreduce(w, s, {SUM}, mode='tree')", 'mode must be "ring" or "mesh"'),
    *both("allreduce(w, s, op=pld.NotifyOp.Set)", "ReduceOp.Sum, Max, Min, or Prod"),
    *both(f"allreduce(w, s, {SUM}, core_num=True)", "core_num must be a compile-time int"),
    *both(f"allreduce(w, s, {SUM}, core_num=1.0)", "core_num must be a compile-time int"),
    ("kernel", f"pld.tensor.allreduce(w, s, {SUM}, core_num=n + 1)", "core_num must be a compile-time int"),
    *both(f"allreduce(w, s, {SUM}, core_num=0)", "core_num must be positive"),
    *both(f"allreduce(w, None, {SUM})", "signal cannot be None"),
    *both(f"allreduce(w, {SUM}, mode='ring')", "requires an explicit signal"),
    ("kernel", f"pld.tensor.allreduce(w, {SUM})", "requires an explicit signal outside host orchestrator functions"),
    ("kernel", f"pld.tensor.allreduce(w, s, {SUM}, core_num=2)", "supported only in a HOST orchestrator"),
    ("kernel", f"pld.tensor.allreduce(w, pl.reshape(s, [2]), {SUM})", r"signal must be 2D \[NR, 1\]"),
    ("kernel", f"pld.tensor.allreduce(w, g, {SUM})", r"signal shape\[1\] must be 1"),
    ("kernel", f"pld.tensor.allreduce(w, s, {SUM}, mode='ring')", r"must equal 2\*\(NR-1\)"),
    ("host", window("u", "[2, 2, 1]", "gb", "INT32")(f"allreduce(w, u, {SUM})"), "signal must be 1D"),
    ("host", flat(f"allreduce(w, u, {SUM}, mode='ring')"), "must be 2D"),
    # barrier, broadcast
    ("kernel", "pld.tensor.barrier(g)", r"signal shape\[1\] must be 1"),
    ("kernel", "pld.tensor.broadcast(w, s, root=-1)", "root rank must be non-negative"),
    ("kernel", "pld.tensor.broadcast(w, s, root=2)", r"root \(2\) must be a valid rank in \[0, 2\)"),
    ("kernel", "pld.tensor.broadcast(w, s, root=n + 2)", r"root \(\d\) must be a valid rank in \[0, 2\)"),
    ("kernel", "pld.tensor.broadcast(w, s)", "missing 1 required .*'root'"),
    ("host", "pld.tensor.broadcast(w, s, root=5)", r"root \(5\) must be a valid rank in \[0, 2\)"),
    ("host", "pld.tensor.broadcast(w, s, root=-1)", "root rank must be non-negative"),
    # allgather
    ("kernel", "pld.tensor.allgather(w, v, s)", r"must be \[1, SIZE\]"),
    ("kernel", "pld.tensor.allgather(k, v, s)", r"must be 2D \[1, SIZE\]"),
    ("kernel", "pld.tensor.allgather(x[0:1, 0:4], v, s)", "target SIZE must equal input SIZE"),
    ("kernel", "pld.tensor.allgather(k, sc, s)", r"must be 2D \[1, SIZE\]"),
    ("kernel", "pld.tensor.allgather(sc[0:1, :], v, s)", "target dtype"),
    ("kernel", "pld.tensor.allgather(w, w, s)", r"must be \[1, SIZE\]|must be different"),
    # reduce_scatter
    ("kernel", "pld.tensor.reduce_scatter(w, s, op=pld.WaitCmp.Ge)", "op must be ReduceOp.Sum"),
    ("host", window("u", "[16]", "wb")("reduce_scatter(u, s)"), r"must be 2D \[NR, SIZE\]"),
    # all_to_all
    ("kernel", "pld.tensor.all_to_all(w, w, s)", "different windows"),
    ("kernel", "pld.tensor.all_to_all(b, w, s)", "target shape must equal input shape"),
    ("kernel", "pld.tensor.all_to_all(sc, w, s)", "target dtype"),
    # all_to_all_v
    ("kernel", "pld.tensor.all_to_all_v(b, d, k, k, rc)", "signal must be a DistributedTensor"),
    ("kernel", "pld.tensor.all_to_all_v(b, b, s, k, rc)", "different windows"),
    ("kernel", "pld.tensor.all_to_all_v(b, d, s, x, rc)", "send_counts must have INT32 element type"),
    ("kernel", "pld.tensor.all_to_all_v(b, d, s, g, rc)", r"send_counts must be 1D \[NR\]"),
    ("kernel", "pld.tensor.all_to_all_v(b, d, s, k[0:1], rc)", "send_counts dim 0"),
    ("kernel", "pld.tensor.all_to_all_v(b, d, s, k, g)", "recv_counts second dimension must be 1"),
    ("kernel", "pld.tensor.all_to_all_v(b[0:3, :], d[0:3, :], s, k, rc)", "must divide target dim 0"),
]

# Checks that only a host function has.
REFUSED_ON_HOST = [
    (flat(f"allreduce(w, u, {SUM}, core_num=2)"), "rank-1 signal is valid only when one signal lane is required"),
    (f"pld.tensor.allreduce(w, s, {SUM}, core_num=2)", "must be at least the required lane count"),
    (dynamic(f"allreduce(w, u, {SUM})"), r"rank-2 signal shape\[1\] must be constant"),
    (f"pld.tensor.allreduce(w, g, {SUM}, mode='ring')", r"must be at least 2\*\(NR-1\) \+ 1"),
    (f"pld.tensor.allreduce(w, g, {SUM}, mode='ring', core_num=2)", 'mode="ring" does not support core_num > 1'),
    (window("u", "[2, 1]", "wb", "INT32")(f"allreduce(w, u, {SUM})"), "src and signal must be different window allocations"),
    (f"for i in pl.range(2):\n        pld.tensor.allreduce(w, {SUM})", "without an explicit signal is not supported inside a for/while"),
    (f"q = (pld.tensor.allreduce(w, s, {SUM}), 1)", "must be a direct assignment"),
    (window("u", "[2, 1]", "wb", "INT32")("broadcast(w, u, root=0)"), "target and signal must be different window allocations"),
    ("pld.tensor.allgather(x, v, s)", "input must be a window-bound DistributedTensor"),
    (window("u", "[1, 8]", "vb")("allgather(u, v, s)"), "must be different"),
    (window("u", "[2, 1]", "wb", "INT32")("reduce_scatter(w, u)"), "target and signal must be different window allocations"),
    ("pld.tensor.all_to_all(x, v, s)", "input must be a window-bound DistributedTensor"),
    (window("u", "[2, 8]", "vb")("all_to_all(u, v, s)"), "input and target must be different window allocations"),
    (window("u", "[2, 1]", "vb", "INT32")("all_to_all(v, w, u)"), "input and signal must be different window allocations"),
    ("pld.tensor.all_to_all_v(b, d, s, k, rc)", "send_counts must be a window-bound DistributedTensor"),
    (window("u", "[2, 1]", "sb", "INT32")("all_to_all_v(b, d, s, sc, u)"), "signal and recv_counts must be different window allocations"),
    (window("u", "[2, 1]", "scb", "INT32")("all_to_all_v(b, d, s, sc, u)"), "send_counts and recv_counts must be different window allocations"),
    (window("u", "[2, 1]", "db", "INT32")("all_to_all_v(b, d, s, sc, u)"), "target and recv_counts must be different window allocations"),
    ("for i in pl.range(2):\n        pld.tensor.all_to_all_v(b, d, s, sc, rc)", "all_to_all_v is not supported inside a for/while loop"),
    (f"q = pld.tensor.allreduce(pld.tensor.allreduce(w, s, {SUM}), s, {SUM})", "must be a direct assignment"),
]


@pytest.mark.parametrize("call, words", REFUSED_ON_HOST)
def test_words_of_host_functions(call, words):
    with pytest.raises(ValueError, match=words):
        run("host", call)


@pytest.mark.parametrize("place, call, words", REFUSED)
def test_words(place, call, words):
    with pytest.raises(pypto.Error, match=words) as caught:
        run(place, call)
    assert "must be must" not in str(caught.value)


@pytest.mark.parametrize("call", [f"allreduce(w, u, {SUM})", "barrier(u)", "broadcast(w, u, root=0)"])
def test_short_signals(call):
    """Where the number of devices is a constant, the compiler knows; else the run tells (PYPTO-R509)."""
    with pytest.raises(pypto.Error, match=r"signal shape\[0\].*participating device count"):
        run("host", short(call), devices="2")
    with pytest.raises(pypto.Error, match=r"shape \[1\] is no signal for 2 ranks|does not fit 2 ranks"):
        run("host", short(call))


# What has these words elsewhere has a meaning here.
LIFTED = {
    "target dtype must be FP16 or FP32": ("kernel", f"pld.tensor.allreduce(sc, s, {SUM})"),
    "currently supports only FP32": ("host", f"pld.tensor.allreduce(sc, s, {SUM})"),
    "op must be ReduceOp.Sum, in a kernel": ("kernel", "pld.tensor.reduce_scatter(w, s, op=pld.ReduceOp.Max)"),
    "op must be ReduceOp.Sum": ("host", "pld.tensor.reduce_scatter(w, s, op=pld.ReduceOp.Min)"),
    "signal of a host barrier must be 1D": ("host", "pld.tensor.barrier(s)"),
    "must be a plain Tensor [1, SIZE] on the InCore path": ("kernel", "pld.tensor.allgather(w[0:1, :], v, s)"),
    "exceeds the backend AIV core count": ("host", f"pld.tensor.allreduce(w, {SUM}, core_num=200)"),
    "exact multiple of the rank count": (
        "host",
        "u = pld.window(gb, [3, 2], dtype=pl.INT32); q = pld.window(bb, [3], dtype=pl.FP32); "
        f"pld.tensor.allreduce(q, u, {SUM}, mode='ring')",
    ),
    "Sum only, in a ring": ("host", window("u", "[3, 2]", "gb", "INT32")("allreduce(w, u, op=pld.ReduceOp.Max, mode='ring')")),
}


@pytest.mark.parametrize("words", LIFTED)
def test_programs_that_run_here(words):
    run(*LIFTED[words])
