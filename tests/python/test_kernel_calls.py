"""Kernels that call kernels, and results that are several values."""

import numpy as np
import pytest

import pypto
from programs import config, from_text

TEXT = """
@pl.jit.incore
def scale(x: pl.Tensor[[4, 8], pl.INT32], y: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
          n: pl.Scalar[pl.INT32]):
    if n == 0:
        return y
    t = pl.load(x, [0, 0], [4, 8])
    u = pl.mul(t, n)
    return pl.store(pl.add(u, t), [0, 0], y)

@pl.jit.incore
def both(x: pl.Tensor[[4, 8], pl.INT32], y: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
         z: pl.Out[pl.Tensor[[4, 8], pl.INT32]]):
    before = pl.load(x, [0, 0], [4, 8])
    y = scale(x, y, 2)
    scale(y, z, 3)
    sum = pl.add(before, pl.load(z, [0, 0], [4, 8]))
    z = pl.store(sum, [0, 0], z)
    return z, y

@pl.jit
def c(x: pl.Tensor[[4, 8], pl.INT32], y: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
      z: pl.Out[pl.Tensor[[4, 8], pl.INT32]]):
    first, second = both(x, y, z)
    scale(second, first, {again})
    return second, first

@pl.jit.host
def h(x: pl.Tensor[[NR, 4, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, 4, 8], pl.INT32]],
      z: pl.Out[pl.Tensor[[NR, 4, 8], pl.INT32]]):
    for r in pl.range(pld.world_size()):
        c(x[r], y[r], z[r], device=r)
    return y, z
"""


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("again", [0, 1])
def test_a_kernel_calls_kernels(devices, again):
    x = np.arange(devices * 32, dtype=np.int32).reshape(devices, 4, 8)
    y, z = np.zeros_like(x), np.zeros_like(x)
    from_text(TEXT.format(again=again))["h"](x, y, z, config=config(devices))
    assert (y == 3 * x).all()
    assert (z == (6 * x if again else 13 * x)).all()


def test_a_window_has_the_callees_shape():
    text = """
@pl.jit.incore
def fill(w: pl.InOut[pld.DistributedTensor[[8, 4], pl.INT32]], t: pl.Tensor[[8, 4], pl.INT32]):
    pl.store(pl.load(t, [0, 0], [8, 4]), [0, 0], w)

@pl.jit.incore
def k(x: pl.Tensor[[8, 4], pl.INT32], y: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
      w: pl.InOut[pld.DistributedTensor[[4, 8], pl.INT32]]):
    fill(w, x)
    return pl.store(pl.load(w, [0, 0], [4, 8]), [0, 0], y)

@pl.jit
def c(x: pl.Tensor[[8, 4], pl.INT32], y: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
      w: pl.InOut[pld.DistributedTensor[[4, 8], pl.INT32]]):
    return k(x, y, w)

@pl.jit.host
def h(x: pl.Tensor[[NR, 8, 4], pl.INT32], y: pl.Out[pl.Tensor[[NR, 4, 8], pl.INT32]]):
    b = pld.alloc_window_buffer(128)
    for r in pl.range(pld.world_size()):
        w = pld.window(b, [4, 8], dtype=pl.INT32)
        c(x[r], y[r], w, device=r)
    return y
"""
    x = np.arange(64, dtype=np.int32).reshape(2, 8, 4)
    y = np.zeros((2, 4, 8), dtype=np.int32)
    from_text(text)["h"](x, y, config=config(2))
    assert (y.reshape(x.shape) == x).all()


def test_scratch_of_callees_counts():
    """Two kernels of 160 KiB each do not fit a device's 256 KiB when one calls the other."""
    text = """
@pl.jit.incore
def inner(x: pl.Tensor[[4, 10240], pl.FP32], y: pl.Out[pl.Tensor[[4, 10240], pl.FP32]]):
    return pl.store(pl.load(x, [0, 0], [4, 10240]), [0, 0], y)

@pl.jit.incore
def outer(x: pl.Tensor[[4, 10240], pl.FP32], y: pl.Out[pl.Tensor[[4, 10240], pl.FP32]]):
    t = pl.load(x, [0, 0], [4, 10240])
    inner(x, y)
    return pl.store(t, [0, 0], y)

@pl.jit
def c(x: pl.Tensor[[4, 10240], pl.FP32], y: pl.Out[pl.Tensor[[4, 10240], pl.FP32]]):
    return outer(x, y)

@pl.jit.host
def h(x: pl.Tensor[[NR, 4, 10240], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4, 10240], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        c(x[r], y[r], device=r)
    return y
"""
    x = np.ones((1, 4, 10240), dtype=np.float32)
    y = np.zeros_like(x)
    host = from_text(text)["h"]
    host(x, y, config=config(1))
    assert (y == 1).all()
    with pytest.raises(pypto.CompilerError, match="at the same time"):
        host(x, y, config=config(1, "a2a3"))


# ---- kernels that the host dispatches ----

DIRECT = """
M = pl.dynamic("M")

@pl.jit.incore
def push(x: pl.Tensor[[M, 8], pl.INT32], w: pl.InOut[pld.DistributedTensor[[M, 8], pl.INT32]],
         s: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]], n: pl.Scalar[pl.INT32]):
    ctx = pld.get_comm_ctx(w)
    peer = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    for i in pl.range(x.shape[0]):
        pld.tile.remote_store(pl.mul(pl.load(x, [i, 0], [1, 8]), n), w, peer, [i, 0])
    pld.system.notify(s, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)

@pl.jit.incore
def take(w: pl.InOut[pld.DistributedTensor[[M, 8], pl.INT32]], s: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
         y: pl.Out[pl.Tensor[[M, 8], pl.INT32]]):
    pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    for i in pl.range(y.shape[0]):
        y = pl.store(pl.load(w, [i, 0], [1, 8]), [i, 0], y)
    return y

@pl.jit.incore
def double(y: pl.InOut[pl.Tensor[[M, 8], pl.INT32]]):
    for i in pl.range(y.shape[0]):
        pl.store(pl.add(pl.load(y, [i, 0], [1, 8]), pl.load(y, [i, 0], [1, 8])), [i, 0], y)
    return y

@pl.jit
def chip(y: pl.InOut[pl.Tensor[[M, 8], pl.INT32]]):
    return double(y)

@pl.jit.host
def h(x: pl.Tensor[[NR, M, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, M, 8], pl.INT32]]):
    b = pld.alloc_window_buffer(4096)
    c = pld.alloc_window_buffer(4)
    for r in pl.range(pld.world_size()):
        w = pld.window(b, [M, 8], dtype=pl.INT32)
        s = pld.window(c, [1, 1], dtype=pl.INT32)
        push(x[r], w, s, 3, device=r)
        filled = take(w, s, y[r], device=r)
        double(filled, device=r)
        chip(y[r], device=r)
    return y
"""


@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 5])
def test_a_host_function_dispatches_kernels(devices, rows):
    x = np.arange(devices * rows * 8, dtype=np.int32).reshape(devices, rows, 8)
    y = np.zeros_like(x)
    from_text(DIRECT)["h"](x, y, config=config(devices))
    assert (y == 12 * np.roll(x, 1, axis=0)).all()


def test_a_host_method_dispatches_kernel_methods():
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.mul(pl.load(x, [0, 0], [4, 8]), 2.0), [0, 0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[2, 4, 8], pl.FP32], y: pl.Out[pl.Tensor[[2, 4, 8], pl.FP32]]) -> pl.Tensor[[2, 4, 8], pl.FP32]:
        for r in pl.range(2):
            self.kernel(x[r], y[r], device=r)
        return y
"""
    compiled = pypto.ir.compile(from_text(text)["P"], platform="cpu", distributed_config=config(2).distributed_config)
    x = np.ones((2, 4, 8), np.float32)
    assert (compiled(x) == 2).all()


def test_a_dispatched_kernel_with_windows_needs_a_device():
    text = DIRECT.replace("push(x[r], w, s, 3, device=r)", "push(x[r], w, s, 3)")
    with pytest.raises(pypto.Error, match="the dispatch of 'push' passes a window, so it needs 'device='"):
        from_text(text)["h"].compile()
