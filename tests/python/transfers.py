"""One kernel, one wrapper, one host function around the statements of a test, and data of every element
type. The statements see

    inp, out    this rank's row of the host tensors
    win         the window, [*window], of the same element type
    bell        [NR, 1] signal cells
    me, n, nxt, prev    my rank, the number of ranks, my neighbours

and the lines `ARRIVE k` (notify every rank that my k-th part is done, and wait for theirs).
"""

import re

import numpy as np
import pytest
import torch

import pypto
from programs import config, from_text

INTS = ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"]
FLOATS = ["FP16", "BF16", "FP32"]
DTYPES = ["BOOL", *INTS, *FLOATS]
NUMPY = {name: np.dtype(name.lower()) for name in INTS}
NUMPY |= {"BOOL": np.dtype(bool), "FP32": np.dtype("f4"), "FP16": np.dtype("f2")}

ARRIVE = """\
for to in pl.range(n):
    pld.system.notify(bell, peer=to, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
for by in pl.range(n):
    pld.system.wait(bell, offsets=[by, 0], expected={k}, cmp=pld.WaitCmp.Ge)
"""

KERNEL = """\
@pl.jit.incore
def kernel(inp: pl.Tensor[[{inp}], pl.{dtype}], out: pl.Out[pl.Tensor[[{out}], pl.{dtype}]],
           win: pl.InOut[pld.DistributedTensor[[{win}], pl.{dtype}]],
           bell: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    ctx = pld.get_comm_ctx(win)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    nxt = (me + 1) % n
    prev = (me + n - 1) % n
{body}

@pl.jit
def wrapper(inp: pl.Tensor[[{inp}], pl.{dtype}], out: pl.Out[pl.Tensor[[{out}], pl.{dtype}]],
            win: pl.InOut[pld.DistributedTensor[[{win}], pl.{dtype}]],
            bell: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    kernel(inp, out, win, bell)

@pl.jit.host
def host(inputs: pl.Tensor[[NR, {inp}], pl.{dtype}],
         outputs: pl.Out[pl.Tensor[[NR, {out}], pl.{dtype}]]):
    win_buf = pld.alloc_window_buffer([{win}], dtype=pl.{dtype})
    bell_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        win = pld.window(win_buf, [{win}], dtype=pl.{dtype})
        bell = pld.window(bell_buf, [pld.world_size(), 1], dtype=pl.INT32)
        wrapper(inputs[r], outputs[r], win, bell, device=r)
"""

_hosts = {}


def indented(body):
    lines = []
    for line in body.strip("\n").split("\n"):
        words = line.split()
        indent = line[: len(line) - len(line.lstrip())]
        if words[:1] == ["ARRIVE"]:
            lines += [indent + each for each in ARRIVE.format(k=words[1]).splitlines()]
        else:
            lines.append(line)
    return "\n".join("    " + line for line in lines)


def text_of(body, dtype, inp, out=None, win=None):
    """The program's source; shapes are lists of numbers."""
    inp = ", ".join(map(str, inp))
    out = inp if out is None else ", ".join(map(str, out))
    win = inp if win is None else ", ".join(map(str, win))
    return KERNEL.format(body=indented(body), dtype=dtype, inp=inp, out=out, win=win)


def host_of(body, dtype, inp, out=None, win=None):
    """The host function of a program, one for each text."""
    text = text_of(body, dtype, inp, out, win)
    if text not in _hosts:
        _hosts[text] = from_text(text)["host"]
    return _hosts[text]


def run(body, inputs, dtype, out=None, win=None):
    """What the ranks' outputs are, for inputs [ranks, ...] of `values()`."""
    ranks, *shape = inputs.shape
    host = host_of(body, dtype, shape, out, win)
    outputs = zeros((ranks, *(shape if out is None else out)), dtype)
    host(inputs, outputs, config=config(ranks))
    return outputs


def assert_fails(body, statement, words, dtype, shape, ranks):
    """The ranks fail at `statement`, with a message that matches `words`. There <me + 1> stands for what it is in the
    rank that the error names, and `n` for the number of ranks."""
    text = text_of(body, dtype, shape)
    (line,) = [number for number, each in enumerate(text.splitlines(), 1) if statement in each]
    x = values((ranks, *shape), dtype)
    with pytest.raises(pypto.DeviceError) as caught:
        from_text(text)["host"](x, np.zeros_like(x), config=config(ranks))
    error = caught.value
    names = {"me": int(re.search(r"rank (\d+): ", error.message)[1]), "n": ranks}
    words = re.sub("<(.*?)>", lambda number: str(eval(number[1], names)), words)
    assert re.search(words, error.message, re.MULTILINE), error.message
    assert error.span["line"] == line
    assert f":{line}" in str(error)


def zeros(shape, dtype):
    return torch.zeros(shape, dtype=torch.bfloat16) if dtype == "BF16" else np.zeros(shape, NUMPY[dtype])


def values(shape, dtype, seed=0):
    """Random bits of every kind; floats are numbers, so that they compare. BF16 is a torch tensor."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == "BOOL":
        return rng.random(shape) < 0.5
    if dtype in INTS:
        info = np.iinfo(NUMPY[dtype])
        return rng.integers(info.min, info.max, shape, NUMPY[dtype], endpoint=True)
    x = rng.standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(x).bfloat16() if dtype == "BF16" else x.astype(NUMPY[dtype])


def small_values(shape, dtype, seed=0):
    """Whole numbers so small that sums of them are exact in any element type."""
    x = np.random.default_rng([seed, *shape]).integers(0, 4, shape).astype(np.float32)
    return torch.from_numpy(x).bfloat16() if dtype == "BF16" else x.astype(NUMPY[dtype])


def array(x):
    """As NumPy compares it."""
    return x.float().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)


def assert_same(actual, expected):
    np.testing.assert_array_equal(array(actual), array(expected))
