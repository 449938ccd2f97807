"""Whole tensors from rank to rank, without a tile in between: put pushes one, get fetches one.

A tile's size is known when the program is compiled, and a device has only so much room for tiles. put and get copy
from memory to memory, as much as there is. A pair of ranks needs no barrier: one signal says that the data is there.

    python examples/06_put_get.py [--mode put|get] [-d 0,1] [-p cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
ROWS, COLUMNS = 256, 512        # 512 KiB of FP32: more than the tiles of a device together


@pl.jit.incore
def put(
    x: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    inbox: pl.InOut[pld.DistributedTensor[[ROWS, COLUMNS], pl.FP32]],
    bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(inbox)
    after = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    pld.tensor.put(inbox, after, x)
    pld.system.notify(bell, peer=after, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)     # "yours has arrived"
    pld.system.wait(bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    for i in pl.range(ROWS):
        y = pl.store(pl.load(inbox, [i, 0], [1, COLUMNS]), [i, 0], y)
    return y


@pl.jit.incore
def get(
    x: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    outbox: pl.InOut[pld.DistributedTensor[[ROWS, COLUMNS], pl.FP32]],
    bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(outbox)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    pld.tensor.put(outbox, me, x)       # a rank is a peer of its own
    pld.system.notify(bell, peer=(me + 1) % n, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)  # "mine is ready"
    pld.system.wait(bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    pld.tensor.get(y, (me - 1) % n, outbox)
    return y


def ring(kernel):
    """The program around one of the two kernels."""

    @pl.jit
    def device(
        x: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
        y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[ROWS, COLUMNS], pl.FP32]],
        bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
    ):
        return kernel(x, y, box, bell)

    @pl.jit.host
    def host(
        x: pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32], y: pl.Out[pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32]]
    ):
        box_buffer = pld.alloc_window_buffer([ROWS, COLUMNS], dtype=pl.FP32)
        bell_buffer = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            box = pld.window(box_buffer, [ROWS, COLUMNS], dtype=pl.FP32)
            bell = pld.window(bell_buffer, [1, 1], dtype=pl.INT32)
            device(x[r], y[r], box, bell, device=r)
        return y

    return host


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options(modes=("put", "get"))
x = np.arange(len(given.devices) * ROWS * COLUMNS, dtype=np.float32).reshape(-1, ROWS, COLUMNS) + 1
y = np.zeros_like(x)
program = ring({"put": put, "get": get}[given.mode]).compile(x, y, config=config(given))
if not given.compile_only:
    program(x, y)
    for rank in range(len(x)):
        print(f"rank {rank} has [{', '.join(map(str, y[rank, 0, :3]))}, ...]")
    finish((y == np.roll(x, 1, axis=0)).all())
