import pypto.language as pl
import pypto.language.distributed as pld
NR = pl.dynamic('NR')
N = 8
DT = pl.FP32
OP = pld.NotifyOp.Set
@pl.jit.incore
def k(y: pl.Out[pl.Tensor[[4, N], pl.FP32]], w: pld.DistributedTensor[[4, N], pl.FP32], s: pld.DistributedTensor[[NR, 1], pl.INT32]):
    pl.store(pl.load(y, [0, 0], [4, N]), [0, 0], w)
    pld.system.notify(s, 0, [0, 0], 1, op=OP)
@pl.jit.incore
def into(y: pl.Out[pl.Tensor[[4, N], pl.FP32]]):
    pl.store(pl.load(y, [0, 0], [4, N]), [0, 0], y)
@pl.jit
def c(y: pl.Out[pl.Tensor[[4, N], pl.FP32]], w: pld.DistributedTensor[[4, N], pl.FP32], s: pld.DistributedTensor[[NR, 1], pl.INT32]):
    k(y, w, s)
    into(w)
@pl.jit.host
def h(y: pl.Out[pl.Tensor[[NR, 4, N], pl.FP32]]):
    wb = pld.alloc_window_buffer([4, N], dtype=pl.FP32)
    sb = pld.alloc_window_buffer(pld.world_size() * 4)
    for r in pl.range(pld.world_size()):
        w = pld.window(wb, [4, N], dtype=pl.FP32)
        s = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)
        c(y[r], w, s, device=r)
