"""A window: memory of which every device has a block of the same size.

Each device writes its row into its own block and reads it back. Nobody looks at a peer's block yet; see
04_barrier.py for that.

    python examples/03_window_buffer.py [--devices 0,1] [--platform cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
SIZE = 256      # 1 KiB of FP32 on each device


@pl.jit.incore
def round_trip(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    window: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
):
    # Windows are zero when a call begins, so this adds nothing to what is read back.
    before = pl.load(window, [0, 0], [1, SIZE])
    window = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], window)
    after = pl.load(window, [0, 0], [1, SIZE])
    y = pl.store(pl.add(before, after), [0, 0], y)
    return y


@pl.jit
def device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    window: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
):
    return round_trip(x, y, window)


@pl.jit.host
def host(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    buffer = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)      # a block on every device
    for r in pl.range(pld.world_size()):
        window = pld.window(buffer, [1, SIZE], dtype=pl.FP32)       # stands for each rank's own block
        device(x[r], y[r], window, device=r)
    return y


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options()
x = np.random.default_rng(3).standard_normal((len(given.devices), 1, SIZE), np.float32)
y = np.zeros_like(x)
program = host.compile(x, y, config=config(given))
if not given.compile_only:
    for _ in range(2):
        y[:] = 0
        program(x, y)
    finish((y == x).all())
