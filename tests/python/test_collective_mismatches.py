"""Ranks that disagree about a collective: for everything that they have to agree on, in kernels and between kernels and
host functions, a wrong program with what it is told, and the programs beside it in which all do the same."""

import functools

import numpy as np
import pytest

import pypto
from programs import config, from_text

PROGRAM = """\
R = pld.ReduceOp

@pl.jit.incore
def kernel(inp: pl.Tensor[[2, 600], pl.FP32], win: pl.InOut[pld.DistributedTensor[[2, 600], pl.FP32]],
           other: pl.InOut[pld.DistributedTensor[[2, 600], pl.FP32]],
           whole: pl.InOut[pld.DistributedTensor[[2, 600], pl.INT32]],
           sig: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
           sig2: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
           ring: pl.InOut[pld.DistributedTensor[[2, 2], pl.INT32]], plan: pl.Tensor[[2], pl.INT32]):
    me = pld.rank(pld.get_comm_ctx(win))
    if pl.read(plan, [me]) == 1:
{first}
    else:
{second}

@pl.jit
def wrapper(inp: pl.Tensor[[2, 600], pl.FP32], win: pl.InOut[pld.DistributedTensor[[2, 600], pl.FP32]],
            other: pl.InOut[pld.DistributedTensor[[2, 600], pl.FP32]],
            whole: pl.InOut[pld.DistributedTensor[[2, 600], pl.INT32]],
            sig: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
            sig2: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
            ring: pl.InOut[pld.DistributedTensor[[2, 2], pl.INT32]], plan: pl.Tensor[[2], pl.INT32]):
    kernel(inp, win, other, whole, sig, sig2, ring, plan)

@pl.jit.host
def host(inp: pl.Tensor[[2, 600], pl.FP32], plan: pl.Tensor[[2], pl.INT32]):
    win_buf = pld.alloc_window_buffer([2, 600], dtype=pl.FP32)
    other_buf = pld.alloc_window_buffer([2, 600], dtype=pl.FP32)
    whole_buf = pld.alloc_window_buffer([2, 600], dtype=pl.INT32)
    sig_buf = pld.alloc_window_buffer([2], dtype=pl.INT32)
    sig2_buf = pld.alloc_window_buffer([2], dtype=pl.INT32)
    ring_buf = pld.alloc_window_buffer([2, 2], dtype=pl.INT32)
    win = pld.window(win_buf, [2, 600], dtype=pl.FP32)
    other = pld.window(other_buf, [2, 600], dtype=pl.FP32)
    whole = pld.window(whole_buf, [2, 600], dtype=pl.INT32)
    sig = pld.window(sig_buf, [2, 1], dtype=pl.INT32)
    sig2 = pld.window(sig2_buf, [2, 1], dtype=pl.INT32)
    ring = pld.window(ring_buf, [2, 2], dtype=pl.INT32)
    for r in pl.range(2):
        wrapper(inp, win, other, whole, sig, sig2, ring, plan, device=r)
{behind}
"""


def program(first, second, behind=()):
    def indented(lines, by):
        return "\n".join(" " * by + line for line in lines)

    return from_text(
        PROGRAM.format(first=indented(first, 8), second=indented(second, 8), behind=indented(behind, 4))
    )["host"]


@functools.cache
def host_of(first, second, behind):
    return program(first.split("; "), second.split("; "), behind.split("; ") if behind else [])


def run(wrong, choice):
    """Ranks whose choice is 1 do the first, the others the second."""
    first, second, behind = wrong
    host_of(first, second, behind)(np.ones((2, 600), np.float32), np.array(choice, np.int32), config=config(2))


ALLREDUCE = "pld.tensor.allreduce(win, sig)"
BARRIER = "pld.tensor.barrier(sig)"
BROADCAST = "pld.tensor.broadcast(win, sig, root=0)"
DISAGREE = "ranks disagree about a collective"
FROM = "window '{}_buf' from byte {}"

# What differs: (of rank 0, of rank 1, words of the report).
WRONG = {
    "kind": (ALLREDUCE, BARRIER, [DISAGREE, "allreduce(1200 x fp32, op=Sum, mode=mesh", "calls barrier in kernel"]),
    "kind of the same shape": (
        "pld.tensor.reduce_scatter(win, sig)", "pld.tensor.allgather(inp[0:1, :], win, sig)",
        [DISAGREE, "reduce_scatter(600 x fp32, op=Sum", "allgather(600 x fp32"]),
    "all_to_all and all_to_all_v": (
        "pld.tensor.all_to_all(inp, win, sig)",
        "pld.tensor.all_to_all_v(inp, win, sig, plan, sig2)",
        [DISAGREE, "all_to_all(600 x fp32", "all_to_all_v(600 x fp32"]),
    "element type": (
        BROADCAST, "pld.tensor.broadcast(whole, sig, root=0)", [DISAGREE, "1200 x fp32", "1200 x int32"]),
    "count": (
        BROADCAST, "pld.tensor.broadcast(win[0:1, :], sig, root=0)", [DISAGREE, "(1200 x fp32", "(600 x fp32"]),
    "count of a reduction": (
        "pld.tensor.allreduce(win[0:1, 0:5], sig)", "pld.tensor.allreduce(win[0:1, 0:6], sig)",
        [DISAGREE, "(5 x fp32", "(6 x fp32"]),
    "root": (BROADCAST, BROADCAST.replace("root=0", "root=1"), [DISAGREE, "root=0", "root=1"]),
    "operator": (ALLREDUCE, "pld.tensor.allreduce(win, sig, op=R.Max)", [DISAGREE, "op=Sum", "op=Max"]),
    "operator of reduce_scatter": (
        "pld.tensor.reduce_scatter(win, sig, op=R.Min)", "pld.tensor.reduce_scatter(win, sig, op=R.Prod)",
        [DISAGREE, "op=Min", "op=Prod"]),
    "target": (
        ALLREDUCE, "pld.tensor.allreduce(other, sig)", [DISAGREE, FROM.format("win", 0), FROM.format("other", 0)]),
    "part of the target": (
        "pld.tensor.allreduce(win[0:1, :], sig)", "pld.tensor.allreduce(win[1:2, :], sig)",
        [DISAGREE, FROM.format("win", 0), FROM.format("win", 2400)]),
    "mode": (
        ALLREDUCE, "pld.tensor.allreduce(win, sig, mode='auto')", [DISAGREE, "mode=mesh", "mode=auto"]),
    "mode on a ring": (
        "pld.tensor.allreduce(win, ring, mode='ring')", "pld.tensor.allreduce(win, ring, mode='auto')",
        [DISAGREE, "mode=ring", "mode=auto"]),
    "order": (
        f"{BARRIER}; {ALLREDUCE}", f"{ALLREDUCE}; {BARRIER}", [DISAGREE, "calls barrier in kernel", "calls allreduce("]),
    "order behind one that fits": (
        f"{BARRIER}; {BROADCAST}; {ALLREDUCE}", f"{BARRIER}; {ALLREDUCE}; {BROADCAST}",
        [DISAGREE, "calls broadcast(", "calls allreduce("]),
    "not joining": (
        ALLREDUCE, "pl.read(inp, [0, 0])",
        ["rank 0 is in allreduce on signal 'sig_buf'", "rank 1 has ended its part of the call"]),
    "joining once less": (
        f"{BARRIER}; {BARRIER}", BARRIER,
        ["rank 0 is in barrier on signal 'sig_buf'", "rank 1 has ended its part of the call"]),
    "signal": (
        BARRIER, "pld.tensor.barrier(sig2)",
        ["rank 0 is in barrier on signal 'sig_buf'", "rank 1 is in barrier on signal 'sig2_buf'"]),
    "signal, between others": (
        f"{BARRIER}; pld.tensor.allreduce(win, sig2)", f"pld.tensor.allreduce(win, sig2); {BARRIER}",
        ["in barrier on signal 'sig_buf'", "in allreduce on signal 'sig2_buf'"]),
}
# With a collective of the host function behind: (of rank 0, of rank 1, of the host function, words).
NOTHING = "pl.read(inp, [0, 0])"
BETWEEN = {
    "a kernel's and the host's": (
        BARRIER, NOTHING, ALLREDUCE, [DISAGREE, "calls barrier in kernel", "calls allreduce(1200 x fp32, op=Sum"]),
    "the host's of the same kind": (
        "pld.tensor.broadcast(win, sig, root=1)", NOTHING, BROADCAST, [DISAGREE, "root=1", "root=0"]),
    "one less than the host's": (
        BARRIER, NOTHING, BARRIER,
        ["is in barrier on signal 'sig_buf'", "rank 1 has ended its part of the call"]),
}
CASES = {name: ((first, second, ""), words) for name, (first, second, words) in WRONG.items()}
CASES |= {name: ((first, second, behind), words) for name, (first, second, behind, words) in BETWEEN.items()}


@pytest.mark.parametrize("name", CASES)
def test_disagreement(name, transport):
    wrong, words = CASES[name]
    for choice in ([1, 0], [0, 1]):
        with pytest.raises(pypto.CollectiveMismatchError) as caught:
            run(wrong, choice)
        text = str(caught.value)
        if choice == [0, 1]:
            words = [word.translate(str.maketrans("01", "10")) if word.startswith("rank ") else word for word in words]
        assert [word for word in words if word not in text] == [], text
        assert "PYPTO-R508" in text and "<text " in text
        # The workers go on, and all do the first, or all the second.
        run(wrong, [1, 1])
        run(wrong, [0, 0])
