"""Collectives in host functions: where they may stand, on which windows and devices, with which signals. What they
compute is compared with NumPy for every element type, over sizes and numbers of ranks."""

import re

import numpy as np
import pytest
import torch

import pypto
from programs import config, from_text
from transfers import DTYPES, FLOATS, INTS, array, assert_same, small_values, values, zeros

# ---- what is refused ----

PROGRAM = """
@pl.jit.incore
def touch(win: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]]):
    pl.store(pl.load(win, [0, 0], [4, 8]), [0, 0], win)

@pl.jit.incore
def ring(sig: pl.InOut[pld.DistributedTensor[[4, 1], pl.INT32]]):
    pl.write(sig, [0, 0], 0)

@pl.jit.host
def host(x: pl.Tensor[[NR, 4, 8], pl.FP32]):
    n = pld.world_size()
{body}
"""

# Windows by name: the size of the buffer, the view, the kernel that takes it.
WINDOWS = {
    "a": ("[4, 8], dtype=pl.FP32", "[4, 8], dtype=pl.FP32", "touch"),
    "b": ("[4, 8], dtype=pl.FP32", "[4, 8], dtype=pl.FP32", "touch"),
    "s": ("4096", "[n, 1], dtype=pl.INT32", "ring"),
    "c": ("4096", "[n], dtype=pl.INT32", None),
    "d": ("4096", "[n, 1], dtype=pl.INT32", "ring"),
}


def compile_host(body, everywhere=True):
    """Around the body there are the windows that it mentions; a dispatch to each device receives them."""
    used = [name for name in WINDOWS if re.search(rf"\b{name}(_buf)?\b", body)]
    lines = [f"{name}_buf = pld.alloc_window_buffer({WINDOWS[name][0]})" for name in used]
    lines += [f"{name} = pld.window({name}_buf, {WINDOWS[name][1]})" for name in used]
    for name in used if everywhere else ():
        kernel = WINDOWS[name][2]
        if kernel is not None:
            lines += ["for r in pl.range(n):", f"    {kernel}({name}, device=r)"]
    lines += body.strip().split("\n")
    return from_text(PROGRAM.format(body="\n".join("    " + line for line in lines)))["host"].compile()


# ---- which devices ----

PAIR = "for r in pl.range(2):\n    touch(a, device=r)\n    touch(b, device=r)\n"


@pytest.mark.parametrize(
    "body, words",
    [
        (
            PAIR + "pld.tensor.broadcast(a, pld.window(s_buf, [4], dtype=pl.INT32), root=2)",
            r"root \(2\) must be a valid",
        ),
        (
            PAIR + "pld.tensor.broadcast(a, pld.window(s_buf, [4], dtype=pl.INT32), root=5)",
            r"root \(5\) must be a valid rank in \[0, 2\)",
        ),
        (
            PAIR + "pld.tensor.allreduce(a, pld.window(s_buf, [1], dtype=pl.INT32))",
            r"signal shape\[0\] .*participating device count",
        ),
        (
            PAIR + "pld.tensor.allreduce(a, pld.window(s_buf, [2, 2], dtype=pl.INT32), mode='ring')",
            r"must be at least 2\*\(NR-1\) \+ 1",
        ),
        (
            PAIR + "pld.tensor.allreduce(a, pld.window(s_buf, [3, 1], dtype=pl.INT32), mode='ring')",
            r"signal shape\[1\] is 1",
        ),
        ("pld.tensor.barrier(s)", "signal buffer has no inferred comm-domain coverage"),
    ],
)
def test_refused_for_these_devices(body, words):
    with pytest.raises(ValueError, match=words):
        compile_host(body, everywhere=False)


def test_windows_of_different_devices():
    body = "touch(a, device=0)\nfor r in pl.range(2):\n    touch(b, device=r)\npld.tensor.all_to_all(a, b, s)"
    with pytest.raises(pypto.DomainError, match="must resolve to the same comm-domain scope") as raised:
        compile_host(body, everywhere=False)
    assert "'a' is of the devices 0 and 'b' of the devices 0, 1" in str(raised.value)


def test_data_that_no_dispatch_receives():
    with pytest.raises(pypto.DomainError, match="'a_buf' is viewed but not consumed by any chip_orch dispatch"):
        compile_host("pld.tensor.allreduce(a)", everywhere=False)


@pytest.mark.parametrize(
    "body, code",
    [
        ("unused = pld.alloc_window_buffer(64)\nfor r in pl.range(n):\n    touch(a, device=r)", "PYPTO-T216"),
        ("w = pld.window(a_buf, [4, 8], dtype=pl.FP32)", "PYPTO-T216"),
        ("for r in pl.range(0, n, 2):\n    touch(a, device=r)", "PYPTO-T215"),
        ("touch(a, device=0)\nfor r in pl.range(2):\n    touch(b, device=r)\npld.tensor.all_to_all(a, b, s)", "PYPTO-T223"),
    ],
)
def test_mistakes_about_domains_are_value_errors(body, code):
    """They are InternalErrors, too, which scripts for other versions of PyPTO expect; nothing asks for a report."""
    for expected in (ValueError, pypto.InternalError):
        with pytest.raises(expected) as caught:
            compile_host(body, everywhere=False)
        assert type(caught.value) is pypto.DomainError
        assert caught.value.code == code and caught.value.hint
        assert "report" not in str(caught.value)


# ---- what they compute ----

FRAME = """
@pl.jit.incore
def fill(x: pl.Tensor[[{inp}], pl.{dtype}], win: pl.Out[pld.DistributedTensor[[{inp}], pl.{dtype}]]):
    pld.tensor.put(win, pld.rank(pld.get_comm_ctx(win)), x)

@pl.jit.incore
def give(win: pld.DistributedTensor[[{out}], pl.{dtype}], y: pl.Out[pl.Tensor[[{out}], pl.{dtype}]]):
    pld.tensor.get(y, pld.rank(pld.get_comm_ctx(win)), win)

@pl.jit.host
def host(x: pl.Tensor[[NR, {inp}], pl.{dtype}], y: pl.Out[pl.Tensor[[NR, {out}], pl.{dtype}]]):
    n = pld.world_size()
    data_buf = pld.alloc_window_buffer([{inp}], dtype=pl.{dtype})
    data = pld.window(data_buf, [{inp}], dtype=pl.{dtype})
{windows}
    for r in pl.range(n):
        fill(x[r], data, device=r)
{body}
    for r in pl.range(n):
        give({result}, y[r], device=r)
    return y
"""
SIGNAL = ("signal", "[n, 1]", "INT32")


def frame(body, dtype, inp, out=None, windows=(), result="data"):
    """A host function that fills `data` on each device, runs the body, and gives back what is in the result."""
    lines = []
    for name, shape, element in windows:
        lines.append(f"{name}_buf = pld.alloc_window_buffer({shape}, dtype=pl.{element})")
        lines.append(f"{name} = pld.window({name}_buf, {shape}, dtype=pl.{element})")

    def indented(lines):
        return "\n".join("    " + line for line in lines)

    shapes = {"inp": ", ".join(map(str, inp)), "out": ", ".join(map(str, out or inp))}
    text = FRAME.format(
        **shapes, dtype=dtype, windows=indented(lines), body=indented(body.strip("\n").split("\n")), result=result
    )
    return from_text(text)["host"]


def outputs(host, x, dtype, out=None, devices=None):
    y = zeros((len(x), *(out or x.shape[1:])), dtype)
    host(x, y, config=config(devices or len(x)))
    return y


FOLDS = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}


def folded(x, op, dtype):
    """In the order of ranks; 16-bit floats in 32 bits, and rounded once."""
    terms = array(x).astype(np.float32) if dtype in ("FP16", "BF16") else array(x)
    total = terms[0]
    with np.errstate(over="ignore"):
        for term in terms[1:]:
            total = FOLDS[op](total, term).astype(terms.dtype)
    if dtype == "BF16":
        return torch.from_numpy(np.ascontiguousarray(total)).bfloat16()
    return total.astype(np.float16) if dtype == "FP16" else total


SIGNALS = {
    "omitted": ("data", None),
    "omitted for 3 cores": ("data, core_num=3", None),
    "flat": ("data, signal", "[n]"),
    "column": ("data, signal", "[n, 1]"),
    "longer": ("data, signal", "[n + 3]"),
    "two lanes": ("data, signal, core_num=2", "[n, 2]"),
    "more lanes": ("data, signal, core_num=4", "[n, 6]"),
    "ring": ("data, signal, mode='ring'", "[2 * (n - 1) + 1, n]"),
    "auto, column": ("data, signal, mode='auto'", "[n, 1]"),
    "auto, ring": ("data, signal, mode='auto'", "[2 * (n - 1) + 1, n]"),
    "auto, omitted": ("data, mode='auto'", None),
}


@pytest.mark.parametrize("form", SIGNALS)
def test_allreduce_with_any_signal(form, transport):
    arguments, shape = SIGNALS[form]
    windows = [("signal", shape, "INT32")] if shape else []
    host = frame(f"pld.tensor.allreduce({arguments})", "FP32", [1, 257], windows=windows)
    for ranks in (1, 2, 4):
        x = values((ranks, 1, 257), "FP32")
        assert_same(outputs(host, x, "FP32"), np.stack([folded(x, "Sum", "FP32")] * ranks))


PAIRS = [(dtype, op) for i, dtype in enumerate(INTS + FLOATS) for op in [list(FOLDS)[i % 4], list(FOLDS)[(i + 1) % 4]]]


@pytest.mark.parametrize("dtype, op", PAIRS)
def test_folds(dtype, op):
    """allreduce of any shape, then reduce_scatter of its rows, in the other dimension."""
    host = frame(
        f"""
data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.{op})
again = pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.{op})
""",
        dtype,
        [3, 17],
        windows=[SIGNAL],
        result="again",
    )
    x = small_values((3, 3, 17), dtype) if op == "Prod" else values((3, 3, 17), dtype)
    once = folded(x, op, dtype)
    expected = np.stack([array(once)] * 3)
    for rank in range(3):
        three = torch.stack([once[rank]] * 3) if dtype == "BF16" else np.stack([once[rank]] * 3)
        expected[rank, rank] = array(folded(three, op, dtype))
    assert_same(outputs(host, x, dtype), expected)


@pytest.mark.parametrize("dtype, size", [("FP32", 1), ("FP16", 1), ("FP16", 8193), ("FP32", 65537), ("UINT8", 100003)])
def test_sizes(dtype, size):
    host = frame("pld.tensor.allreduce(data, op=pld.ReduceOp.Max)", dtype, [size])
    for ranks in (2, 3):
        x = values((ranks, size), dtype)
        assert_same(outputs(host, x, dtype), np.stack([folded(x, "Max", dtype)] * ranks))


@pytest.mark.parametrize("dtype", DTYPES)
def test_moves(dtype):
    """all_to_all, then broadcast of what rank 1 has got, then allgather of a row of it."""
    ranks, size = 3, 37
    host = frame(
        """
other = pld.tensor.all_to_all(data, other, signal)
other = pld.tensor.broadcast(other, signal, root=1)
all = pld.tensor.allgather(pld.window(other_buf, [1, 37], dtype=pl.DTYPE), all, signal)
""".replace("DTYPE", dtype),
        dtype,
        [ranks, size],
        windows=[("other", "[3, 37]", dtype), ("all", "[3, 37]", dtype), SIGNAL],
        result="all",
    )
    x = values((ranks, ranks, size), dtype)
    expected = np.stack([np.stack([array(x)[0, 1]] * ranks)] * ranks)
    assert_same(outputs(host, x, dtype), expected)


def test_each_move(transport):
    x = values((4, 4, 9), "INT32")
    cases = {
        "other = pld.tensor.all_to_all(data, other, signal)": x.transpose(1, 0, 2),
        "other = pld.tensor.allgather(pld.window(data_buf, [1, 9], dtype=pl.INT32), other, signal)": [x[:, 0]] * 4,
        "other = pld.tensor.broadcast(data, signal, root=3)": [x[3]] * 4,
        "other = pld.tensor.broadcast(data, pld.window(signal_buf, [n], dtype=pl.INT32), root=0)": [x[0]] * 4,
    }
    for body, expected in cases.items():
        # The one that nothing uses is a dead allocation.
        windows = [w for w in [("other", "[4, 9]", "INT32"), SIGNAL] if w[0] == "signal" or "other, signal" in body]
        host = frame(body, "INT32", [4, 9], windows=windows, result="other")
        assert_same(outputs(host, x, "INT32"), np.stack(expected))


COUNTED = """
@pl.jit.incore
def fill(x: pl.Tensor[[{rows}, 5], pl.{dtype}], counts: pl.Tensor[[{p}, 1], pl.INT32],
         win: pl.Out[pld.DistributedTensor[[{rows}, 5], pl.{dtype}]],
         sent: pl.Out[pld.DistributedTensor[[{p}, 1], pl.INT32]]):
    me = pld.rank(pld.get_comm_ctx(win))
    pld.tensor.put(win, me, x)
    pld.tensor.put(sent, me, counts)

@pl.jit.incore
def give(win: pld.DistributedTensor[[{rows}, 5], pl.{dtype}], got: pld.DistributedTensor[[{p}, 1], pl.INT32],
         y: pl.Out[pl.Tensor[[{rows}, 5], pl.{dtype}]], counts: pl.Out[pl.Tensor[[{p}, 1], pl.INT32]]):
    me = pld.rank(pld.get_comm_ctx(win))
    pld.tensor.get(y, me, win)
    pld.tensor.get(counts, me, got)

@pl.jit.host
def host(x: pl.Tensor[[NR, {rows}, 5], pl.{dtype}], sizes: pl.Tensor[[NR, {p}, 1], pl.INT32],
         y: pl.Out[pl.Tensor[[NR, {rows}, 5], pl.{dtype}]], received: pl.Out[pl.Tensor[[NR, {p}, 1], pl.INT32]]):
    n = pld.world_size()
    data_buf = pld.alloc_window_buffer([{rows}, 5], dtype=pl.{dtype})
    other_buf = pld.alloc_window_buffer([{rows}, 5], dtype=pl.{dtype})
    signal_buf = pld.alloc_window_buffer([n], dtype=pl.INT32)
    sent_buf = pld.alloc_window_buffer([n], dtype=pl.INT32)
    got_buf = pld.alloc_window_buffer([n], dtype=pl.INT32)
    data = pld.window(data_buf, [{rows}, 5], dtype=pl.{dtype})
    other = pld.window(other_buf, [{rows}, 5], dtype=pl.{dtype})
    signal = pld.window(signal_buf, {signal}, dtype=pl.INT32)
    sent = pld.window(sent_buf, [n, 1], dtype=pl.INT32)
    got = pld.window(got_buf, [n, 1], dtype=pl.INT32)
    for r in pl.range(n):
        fill(x[r], sizes[r], data, sent, device=r)
    result = pld.tensor.all_to_all_v(data, other, signal, sent, got)
    for r in pl.range(n):
        give(result, got, y[r], received[r], device=r)
"""


@pytest.mark.parametrize("ranks, dtype, signal", [(1, "FP32", "[n, 1]"), (3, "INT8", "[n, 1]"), (4, "FP32", "[n]")])
def test_all_to_all_v(ranks, dtype, signal, transport):
    host = from_text(COUNTED.format(rows=4 * ranks, p=ranks, dtype=dtype, signal=signal))["host"]
    x = values((ranks, 4 * ranks, 5), dtype)
    counts = (np.arange(ranks * ranks, dtype=np.int32) * 2 % 5).reshape(ranks, ranks, 1)
    y = zeros(x.shape, dtype)
    received = np.zeros_like(counts)
    host(x, counts, y, received, config=config(ranks))
    assert_same(received, counts.transpose(1, 0, 2))
    blocks = x.reshape(ranks, ranks, 4, 5).transpose(1, 0, 2, 3)
    for rank in range(ranks):
        for source in range(ranks):
            rows = counts[source, rank, 0]
            assert_same(y[rank, 4 * source :][:rows], blocks[rank, source, :rows])


def test_barrier_between_dispatches(transport):
    """Who reads a neighbour's window behind the barrier finds what was written in front of it."""
    text = """
@pl.jit.incore
def publish(x: pl.Tensor[[1, 64], pl.FP32], box: pl.Out[pld.DistributedTensor[[1, 64], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[NR], pl.INT32]]):
    box = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], box)

@pl.jit.incore
def fetch(box: pld.DistributedTensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
    ctx = pld.get_comm_ctx(box)
    t = pld.tile.remote_load(box, peer=(pld.rank(ctx) + 1) % pld.nranks(ctx), offsets=[0, 0], shape=[1, 64])
    y = pl.store(t, [0, 0], y)

@pl.jit.host
def host(x: pl.Tensor[[2, NR, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, NR, 1, 64], pl.FP32]]):
    box_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    box = pld.window(box_buf, [1, 64], dtype=pl.FP32)
    signal = pld.window(signal_buf, [pld.world_size()], dtype=pl.INT32)
    for i in pl.range(2):
        for r in pl.range(pld.world_size()):
            publish(x[i, r], box, signal, device=r)
        signal = pld.tensor.barrier(signal)
        for r in pl.range(pld.world_size()):
            fetch(box, y[i, r], device=r)
        pld.tensor.barrier(signal)
"""
    host = from_text(text)["host"]
    for ranks in (1, 2, 4):
        x = values((2, ranks, 1, 64), "FP32")
        y = np.zeros_like(x)
        host(x, y, config=config(ranks))
        assert_same(y, np.roll(x, -1, axis=1))


# ---- where they may stand ----


@pytest.mark.parametrize(
    "body, factor",
    [
        ("pld.tensor.allreduce(data, signal)", 3),
        ("other = pld.tensor.allreduce(data, signal)", 3),
        ("other: pld.DistributedTensor[[1, 8], pl.INT32] = pld.tensor.allreduce(data, signal)", 3),
        (
            "data = pld.tensor.allreduce(data)\ndata = pld.tensor.allreduce(data)\npld.tensor.allreduce(data, signal)",
            27,
        ),
        ("for i in pl.range(3):\n    data = pld.tensor.allreduce(data, signal)", 27),
        (
            "for i, (d,) in pl.range(3, init_values=(data,)):\n    d = pld.tensor.allreduce(d, signal)\n    d = pl.yield_(d)",
            27,
        ),
        ("for i in pl.unroll(2):\n    pld.tensor.allreduce(data, signal)", 9),
        ("i = 0\nwhile i < 4:\n    pld.tensor.allreduce(data, signal)\n    i = i + 1", 81),
        ("if n > 2:\n    pld.tensor.allreduce(data)\nelse:\n    pld.tensor.broadcast(data, signal, root=0)", 3),
        ("if n > 5:\n    pld.tensor.allreduce(data)\nelse:\n    pld.tensor.broadcast(data, signal, root=0)", 1),
        (
            "for i in pl.range(4):\n    if i > 1:\n        signal = pld.tensor.barrier(signal)\n        pld.tensor.allreduce(data, signal)",
            9,
        ),
        ("for r in pl.range(n):\n    pld.tensor.allreduce(data, signal)", 27),
        ("for r in pl.range(n):\n    pld.tensor.broadcast(data, signal, root=r)\npld.tensor.allreduce(data)", 3),
    ],
)
def test_places(body, factor):
    host = frame(body, "INT32", [1, 8], windows=[SIGNAL])
    x = np.full((3, 1, 8), 1, np.int32)
    assert_same(outputs(host, x, "INT32"), x * factor)


def test_the_result_is_the_window_itself():
    """Under its new name it is passed to dispatches and further collectives, also after paths met."""
    body = """
first = pld.tensor.all_to_all(data, other, signal)
if n > 2:
    last = first
else:
    last = data
last = pld.tensor.allreduce(last, signal)
"""
    for ranks in (2, 3):
        windows = [("other", f"[{ranks}, 8]", "INT32"), SIGNAL]
        host = frame(body, "INT32", [ranks, 8], windows=windows, result="last")
        x = values((ranks, ranks, 8), "INT32")
        moved = x.transpose(1, 0, 2) if ranks > 2 else x
        assert_same(outputs(host, x, "INT32"), np.stack([moved.sum(axis=0, dtype=np.int32)] * ranks))


def test_in_an_inlined_function():
    text = FRAME.replace(
        "@pl.jit.host",
        """@pl.jit.inline
def twice(win, cells):
    win = pld.tensor.allreduce(win, cells)
    return pld.tensor.allreduce(win, cells)

@pl.jit.host""",
    )
    windows = "    s_buf = pld.alloc_window_buffer([n], dtype=pl.INT32)\n    s = pld.window(s_buf, [n], dtype=pl.INT32)"
    body = "    data = twice(data, s)"
    host = from_text(text.format(inp="8", out="8", dtype="INT32", windows=windows, body=body, result="data"))["host"]
    x = values((3, 8), "INT32")
    assert_same(outputs(host, x, "INT32"), [x.sum(axis=0, dtype=np.int32) * 3] * 3)


@pytest.mark.parametrize("returns", ["", " -> pld.DistributedTensor[[1, 8], pl.INT32]"])
def test_returned(returns):
    """The window is over when the caller has it: what it gets is nothing, but the collective has run."""
    text = """
@pl.jit.incore
def fill(x: pl.Tensor[[1, 8], pl.INT32], win: pl.Out[pld.DistributedTensor[[1, 8], pl.INT32]]):
    pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], win)

@pl.jit.host
def host(x: pl.Tensor[[NR, 1, 8], pl.INT32])RETURNS:
    buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    data = pld.window(buf, [1, 8], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        fill(x[r], data, device=r)
    return pld.tensor.allreduce(data)
""".replace("RETURNS", returns)
    host = from_text(text)["host"]
    x = values((2, 1, 8), "INT32")
    assert host(x, config=config(2)) is None
    assert "pld.tensor.allreduce(" in (host.compile().output_dir / "program.ir").read_text()


# ---- signals that are made ----


def test_names_of_made_signals():
    """They count from 0 and leave out what the program calls so itself."""
    body = """
__allreduce_signal_1 = 5
pld.tensor.allreduce(data)
pld.tensor.allreduce(data)
"""
    program = frame(body, "INT32", [1, 8]).compile()
    text = (program.output_dir / "program.ir").read_text()
    for n in (0, 2):
        assert f"var __allreduce_signal_world_size_{n}:" in text
        assert f"var __allreduce_signal_{n}:" in text
        assert re.search(rf"^buffer \d __allreduce_signal_buf_{n}: devices all", text, re.M)
    assert "__allreduce_signal_buf_1" not in text


# ---- groups of devices ----

GROUPS = """
@pl.jit.incore
def fill(x: pl.Tensor[[8], pl.INT32], win: pl.Out[pld.DistributedTensor[[8], pl.INT32]]):
    pl.store(pl.load(x, [0], [8]), [0], win)

@pl.jit.incore
def give(win: pld.DistributedTensor[[8], pl.INT32], y: pl.Out[pl.Tensor[[8], pl.INT32]]):
    pl.store(pl.load(win, [0], [8]), [0], y)

@pl.jit.host
def host(x: pl.Tensor[[NR, 8], pl.INT32], y: pl.Out[pl.Tensor[[2, NR, 8], pl.INT32]]):
    a_buf = pld.alloc_window_buffer([8], dtype=pl.INT32)
    b_buf = pld.alloc_window_buffer([8], dtype=pl.INT32)
    s_buf = pld.alloc_window_buffer([4], dtype=pl.INT32)
    a = pld.window(a_buf, [8], dtype=pl.INT32)
    b = pld.window(b_buf, [8], dtype=pl.INT32)
    s = pld.window(s_buf, [3], dtype=pl.INT32)
    for r in pl.range(1, 4):
        fill(x[r], a, device=r)
    fill(x[0], b, device=0)
    fill(x[2], b, device=2)
    b = pld.tensor.allreduce(b)
    for i in pl.range(2):
        a = pld.tensor.allreduce(a, s)
    b = pld.tensor.broadcast(b, ROOT, root=1)
    for r in pl.range(1, 4):
        give(a, y[0, r], device=r)
    give(b, y[1, 0], device=0)
    give(b, y[1, 2], device=2)
"""


def test_groups(transport):
    """A range of devices, and two that are not neighbours; device 2 is of both."""
    text = GROUPS.replace("ROOT", "pld.window(t_buf, [2], dtype=pl.INT32)")
    text = text.replace("    a = pld.w", "    t_buf = pld.alloc_window_buffer([2], dtype=pl.INT32)\n    a = pld.w", 1)
    host = from_text(text)["host"]
    x = values((5, 8), "INT32")
    y = np.zeros((2, 5, 8), np.int32)
    host(x, y, config=config(5))
    expected = np.zeros_like(y)
    expected[0, 1:4] = x[1:4].sum(axis=0, dtype=np.int32) * 3
    expected[1, [0, 2]] = x[0] + x[2]
    assert_same(y, expected)


def test_one_signal_for_two_groups():
    """Its ranks would be those of both groups."""
    with pytest.raises(pypto.DomainError, match="must resolve to the same comm-domain scope"):
        from_text(GROUPS.replace("ROOT", "s"))["host"].compile()


# ---- what only a run can tell ----


@pytest.mark.parametrize(
    "body, error, words",
    [
        (
            "pld.tensor.allreduce(data, pld.window(signal_buf, [2], dtype=pl.INT32))",
            "PYPTO-R509",
            r"parameter 'signal'\) of shape \[2\] does not fit 3 ranks",
        ),
        ("pld.tensor.broadcast(data, signal, root=3)", "PYPTO-R510", "root"),
        ("pld.tensor.reduce_scatter(data, signal)", "PYPTO-R510", "does not have a part for each of 3 ranks"),
    ],
)
def test_wrong_for_the_number_of_devices(body, error, words, transport):
    host = frame(body, "INT32", [4, 8], windows=[("signal", "[n]", "INT32")])
    x = values((3, 4, 8), "INT32")
    with pytest.raises(pypto.DeviceError, match=words) as raised:
        outputs(host, x, "INT32")
    assert re.match(rf"<text \d+>:19: \[{error}\]", str(raised.value))
    x = values((4, 4, 8), "INT32")  # the workers are still there
    assert_same(outputs(frame("pld.tensor.allreduce(data)", "INT32", [4, 8]), x, "INT32")[0], x.sum(0, dtype=np.int32))


def test_a_signal_that_is_not_zero():
    """A dispatch has left a cell of it set; the report names the line of the collective."""
    text = """
@pl.jit.incore
def fill(x: pl.Tensor[[1, 8], pl.INT32], win: pl.Out[pld.DistributedTensor[[1, 8], pl.INT32]],
         cells: pl.InOut[pld.DistributedTensor[[NR], pl.INT32]]):
    pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], win)
    pl.write(cells, [0], 7)

@pl.jit.host
def host(x: pl.Tensor[[NR, 1, 8], pl.INT32]):
    buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    cell_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    data = pld.window(buf, [1, 8], dtype=pl.INT32)
    cells = pld.window(cell_buf, [pld.world_size()], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        fill(x[r], data, cells, device=r)
    pld.tensor.allreduce(data, cells)
"""
    with pytest.raises(pypto.DeviceError, match="cell 0 of signal .* is 7") as raised:
        from_text(text)["host"](values((2, 1, 8), "INT32"), config=config(2))
    assert re.match(r"<text \d+>:16: \[PYPTO-R509\]: allreduce failed", str(raised.value))


def test_a_thousand_collectives_on_one_signal(transport):
    """Dispatches and collectives of several kinds on the same windows, without anything in between."""
    body = """
for i in pl.range(170):
    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Max)
    other = pld.tensor.all_to_all(data, other, signal)
    signal = pld.tensor.barrier(signal)
    other = pld.tensor.reduce_scatter(other, signal)
    data = pld.tensor.broadcast(other, signal, root=1)
    data = pld.tensor.all_to_all(other, data_again, signal)
    for r in pl.range(n):
        bump(data, i, device=r)
"""
    kernel = """
@pl.jit.incore
def bump(win: pl.InOut[pld.DistributedTensor[[3, 40], pl.INT32]], i: pl.Scalar[pl.INT32]):
    me = pld.rank(pld.get_comm_ctx(win))
    t = pl.load(win, [0, 0], [3, 40])
    win = pl.store(t + (me + i), [0, 0], win)

@pl.jit.host"""
    windows = """
    data_again = pld.window(data_buf, [3, 40], dtype=pl.INT32)
    other_buf = pld.alloc_window_buffer([3, 40], dtype=pl.INT32)
    other = pld.window(other_buf, [3, 40], dtype=pl.INT32)
    signal_buf = pld.alloc_window_buffer([n, 1], dtype=pl.INT32)
    signal = pld.window(signal_buf, [n, 1], dtype=pl.INT32)
"""
    text = FRAME.replace("@pl.jit.host", kernel.strip("\n"))
    body = "\n".join("    " + line for line in body.strip().split("\n"))
    host = from_text(
        text.format(inp="3, 40", out="3, 40", dtype="INT32", windows=windows, body=body, result="data")
    )["host"]
    x = values((3, 3, 40), "INT32")
    state = x.copy()
    for i in range(170):
        state[:] = state.max(axis=0)
        other = state.transpose(1, 0, 2).copy()
        sums = [other[:, rank].sum(axis=0, dtype=np.int32) for rank in range(3)]
        for rank in range(3):
            other[rank, rank] = sums[rank]
        state = np.stack([np.stack([other[1, rank]] * 3) for rank in range(3)])
        state += np.arange(i, i + 3, dtype=np.int32).reshape(3, 1, 1)
    assert_same(outputs(host, x, "INT32"), state)


def test_64_devices(transport):
    x = values((64, 1, 8), "INT32")
    body = "data = pld.tensor.allreduce(data)\npld.tensor.broadcast(data, signal, root=63)"
    host = frame(body, "INT32", [1, 8], windows=[SIGNAL])
    assert_same(outputs(host, x, "INT32"), np.stack([x.sum(axis=0, dtype=np.int32)] * 64))
