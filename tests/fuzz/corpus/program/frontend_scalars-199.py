import pypto.language as pl
import pypto.language.distributed as pld
NR = pl.dynamic('NR')
N = 8
DT = pl.FP32
OP = pld.NotifyOp.Set
@pl.jit.incore
def k(x: pl.Tensor[[4, N], pl.FP32], y: pl.Out[pl.Tensor[[4, N], pl.FP32]], w: pl.InOut[pld.DistributedTensor[[4, N], pl.FP32]], s: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]], n: pl.Scalar[pl.INT32], f: pl.Scalar[pl.FP32], b: pl.Scalar[pl.BOOL]):
    u, v = n, n + 1
    u, v = v, u
    pld.system.wait(s, [u, 0], v, cmp=pld.WaitCmp.Eq)
@pl.jit
def c(x: pl.Tensor[[4, N], pl.FP32], y: pl.Out[pl.Tensor[[4, N], pl.FP32]], w: pl.InOut[pld.DistributedTensor[[4, N], pl.FP32]], s: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]], n: pl.Scalar[pl.INT32], f: pl.Scalar[pl.FP32], b: pl.Scalar[pl.BOOL]):
    return k(x, y, w, s, n, f, b)
@pl.jit.host
def h(x: pl.Tensor[[NR, 4, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4, N], pl.FP32]]):
    wb = pld.alloc_window_buffer([4, N], dtype=pl.FP32)
    sb = pld.alloc_window_buffer(pld.world_size() * 4)
    for r in pl.range(pld.world_size()):
        w = pld.window(wb, [4, N], dtype=pl.FP32)
        s = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)
        c(x[r], y[r], w, s, r, 1.5, True, device=r)
    return y
