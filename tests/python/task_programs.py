"""What the tests of scopes and tasks share: a wrapper made of text, with kernels that it may call."""

import textwrap

import numpy as np

from programs import config, from_text

HEAD = """\
NR = pl.dynamic("NR")
N = {rows}


@pl.jit.incore
def put(x: pl.Tensor[[1, 8], pl.INT32], z: pl.Out[pl.Tensor[[N, 8], pl.INT32]], at: pl.Scalar[pl.INDEX]):
    pl.store(pl.load(x, [0, 0], [1, 8]), [at, 0], z)
    return z

@pl.jit.incore
def move(z: pl.InOut[pl.Tensor[[N, 8], pl.INT32]], source: pl.Scalar[pl.INDEX], to: pl.Scalar[pl.INDEX]):
    pl.store(pl.load(z, [source, 0], [1, 8]), [to, 0], z)
    return z

@pl.jit.incore
def linger(turns: pl.Tensor[[1, 8], pl.INT32], k: pl.Scalar[pl.INT32]):
    n = pl.read(turns, [0, 0]) * k
    for i in pl.range(n):
        pl.read(turns, [0, 1])

@pl.jit.incore
def block(z: pl.Out[pl.Tensor[[N, 8], pl.INT32]]):
    b = pl.tile.get_block_idx()
    t = pl.add(pl.tile.full([1, 8], dtype=pl.INT32, value=1), pl.cast(b, pl.INT32))
    pl.store(t, [b, 0], z)
    return z

"""

CHIP = """\
@pl.jit{options}
def chip(x: pl.Tensor[[1, 8], pl.INT32], z: pl.InOut[pl.Tensor[[N, 8], pl.INT32]],
         win: pl.InOut[pld.DistributedTensor[[1, 8], pl.INT32]],
         sig: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]], peer: pl.Scalar[pl.INT32]):
{body}

"""

HOST = """\
@pl.jit.host
def host(x: pl.Tensor[[NR, 1, 8], pl.INT32], z: pl.InOut[pl.Tensor[[NR, N, 8], pl.INT32]]):
    wb = pld.alloc_window_buffer(8 * pl.INT32.get_byte())
    sb = pld.alloc_window_buffer(pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        win = pld.window(wb, [1, 8], dtype=pl.INT32)
        sig = pld.window(sb, [1, 1], dtype=pl.INT32)
        chip(x[r], z[r], win, sig, (r + 1) % pld.world_size(), device=r)
"""


def text_of(body, rows=16, options=""):
    return (
        HEAD.format(rows=rows)
        + CHIP.format(body=textwrap.indent(textwrap.dedent(body), "    "), options=options)
        + HOST
    )


def inputs(ranks=1, rows=16):
    """x counts from 1; z is zero."""
    x = np.arange(ranks * 8, dtype=np.int32).reshape(ranks, 1, 8) + 1
    return x, np.zeros((ranks, rows, 8), np.int32)


def run(body, ranks=1, rows=16, options="", x=None):
    """What z is after the wrapper with that body has run on each rank."""
    first, z = inputs(ranks, rows)
    x = first if x is None else x
    from_text(text_of(body, rows, options))["host"](x, z, config=config(ranks))
    return x, z
