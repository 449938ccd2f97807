"""A program with every collective in its kernel, and what each must give.

Rank r has `inputs[r]` [NR, N] in its window before the collective, and afterwards `outputs[r]` is the window. Each
collective is a branch of the kernel, so that one compile per element type is enough:

    run("allreduce Sum ring", x, "FP32")
"""

import numpy as np
import torch

from programs import config, from_text
from transfers import FLOATS, INTS, zeros

REDUCE_OPS = ["Sum", "Max", "Min", "Prod"]
MODES = ["mesh", "ring", "auto"]
NUMBERS = [*INTS, *FLOATS]

MOVES = {
    "barrier": "pld.tensor.barrier(sig)",
    "broadcast": "win = pld.tensor.broadcast(win, sig, root=root)",
    "allgather": "win = pld.tensor.allgather(row, win, sig)",
    "all_to_all": "win = pld.tensor.all_to_all(inp, win, sig)",
}
FOLDS = {
    f"reduce_scatter {op}": f"win = pld.tensor.reduce_scatter(win, sig, op=pld.ReduceOp.{op})" for op in REDUCE_OPS
}
FOLDS |= {
    f"allreduce {op} {mode}": f"win = pld.tensor.allreduce(win, {signal}, op=pld.ReduceOp.{op}, mode='{mode}')"
    for op in REDUCE_OPS
    for mode, signal in zip(MODES, ["sig", "ring", "ring"])
}
FOLDS["allreduce"] = "win = pld.tensor.allreduce(win, sig, mode='auto')"

PARAMETERS = """\
    inp: pl.Tensor[[NR, N], pl.{dtype}], row: pl.Tensor[[1, N], pl.{dtype}], out: pl.Out[pl.Tensor[[NR, N], pl.{dtype}]],
    win: pl.InOut[pld.DistributedTensor[[NR, N], pl.{dtype}]], sig: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ring: pl.InOut[pld.DistributedTensor[[R, NR], pl.INT32]], plan: pl.Tensor[[2], pl.INT32]"""

PROGRAM = """\
N = pl.dynamic("N")
R = pl.dynamic("R")

@pl.jit.incore
def kernel(
{parameters}
):
    what = pl.read(plan, [0])
    root = pl.read(plan, [1])
    me = pld.rank(pld.get_comm_ctx(win))
    pld.tensor.put(win, me, inp)
{branches}
    pld.tensor.get(out, me, win)

@pl.jit
def wrapper(
{parameters}
):
    kernel(inp, row, out, win, sig, ring, plan)

@pl.jit.host
def host(inputs: pl.Tensor[[NR, NR, N], pl.{dtype}], rows: pl.Tensor[[NR, 1, N], pl.{dtype}],
         outputs: pl.Out[pl.Tensor[[NR, NR, N], pl.{dtype}]],
         plan: pl.Tensor[[2], pl.INT32]):
    P = pld.world_size()
    win_buf = pld.alloc_window_buffer([P, N], dtype=pl.{dtype})
    sig_buf = pld.alloc_window_buffer([P], dtype=pl.INT32)
    ring_buf = pld.alloc_window_buffer([2 * P - 1, P], dtype=pl.INT32)
    for r in pl.range(P):
        win = pld.window(win_buf, [P, N], dtype=pl.{dtype})
        sig = pld.window(sig_buf, [P, 1], dtype=pl.INT32)
        ring = pld.window(ring_buf, [2 * P - 1, P], dtype=pl.INT32)
        wrapper(inputs[r], rows[r], outputs[r], win, sig, ring, plan, device=r)
"""

_hosts = {}


def collectives_of(dtype):
    """The names of the collectives that the element type has; their places are what `plan` counts."""
    return [*MOVES, *(FOLDS if dtype in NUMBERS else {})]


def host_of(dtype):
    if dtype not in _hosts:
        statements = [(MOVES | FOLDS)[name] for name in collectives_of(dtype)]
        branches = "\n".join(f"    if what == {i}:\n        {each}" for i, each in enumerate(statements))
        parameters = PARAMETERS.format(dtype=dtype)
        _hosts[dtype] = from_text(PROGRAM.format(dtype=dtype, parameters=parameters, branches=branches))["host"]
    return _hosts[dtype]


def run(name, inputs, dtype, root=0):
    outputs = zeros(inputs.shape, dtype)
    plan = np.array([collectives_of(dtype).index(name), root], np.int32)
    stack = torch.stack if isinstance(inputs, torch.Tensor) else np.stack
    rows = stack([inputs[r][r : r + 1] for r in range(len(inputs))])
    host_of(dtype)(inputs, rows, outputs, plan, config=config(len(inputs)))
    return bits(outputs)


# ---- what they must give ----


def bits(x):
    """The elements as whole numbers, so that -0 is not 0, and NaN is itself."""
    x = x.view(torch.int16).numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
    return x.view(f"i{x.itemsize}")


def _extreme(x, y, op):
    """Of two float arrays: NaN wins, and +0 is larger than -0."""
    found = np.maximum(x, y) if op == "Max" else np.minimum(x, y)
    negative = np.signbit(x) & np.signbit(y) if op == "Max" else np.signbit(x) | np.signbit(y)
    zero = np.where(negative, np.float32(-0.0), np.float32(0.0))
    return np.where((x == 0) & (y == 0), zero, found).astype(np.float32)


def _step(x, y, op):
    with np.errstate(all="ignore"):
        if op in ("Sum", "Prod"):
            return x + y if op == "Sum" else x * y
        if x.dtype.kind in "iu":
            return np.maximum(x, y) if op == "Max" else np.minimum(x, y)
        return _extreme(x, y, op)


def fold(parts, dtype, op):
    """In the order of ranks from the value of rank 0, 16 bits in FP32 and rounded once; as bits."""
    if dtype not in FLOATS:
        total = np.asarray(parts[0]).copy()
        for part in parts[1:]:
            total = _step(total, np.asarray(part), op)
        return bits(total)
    parts = [p.float().numpy() if isinstance(p, torch.Tensor) else np.asarray(p, np.float32) for p in parts]
    total = parts[0].copy()
    for part in parts[1:]:
        total = _step(total, part, op)
    with np.errstate(all="ignore"):
        halves = torch.from_numpy(total).bfloat16() if dtype == "BF16" else total.astype(np.float16)
    rounded = bits(total if dtype == "FP32" else halves)
    quiet = {"FP32": 0x7FC00000, "FP16": 0x7E00, "BF16": 0x7FC0}[dtype]
    return np.where(np.isnan(total), np.array(quiet, rounded.dtype), rounded)


def expected(name, inputs, dtype, root=0):
    kind, *rest = name.split()
    ranks = len(inputs)
    x = bits(inputs)
    if kind == "barrier" or (ranks == 1 and kind != "allgather"):
        return x
    if kind == "broadcast":
        return np.stack([x[root]] * ranks)
    if kind == "allgather":
        return np.stack([np.stack([x[s, s] for s in range(ranks)])] * ranks)
    if kind == "all_to_all":
        return x.swapaxes(0, 1)
    op = rest[0] if rest else "Sum"
    if kind == "allreduce":
        return np.stack([fold(list(inputs), dtype, op)] * ranks)
    y = x.copy()
    for r in range(ranks):
        y[r, r] = fold([inputs[s][r] for s in range(ranks)], dtype, op)
    return y
