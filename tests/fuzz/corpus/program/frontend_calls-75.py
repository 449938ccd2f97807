import pypto.language as pl
import pypto.language.distributed as pld
NR = pl.dynamic('NR')
N = 8
DT = pl.FP32
OP = pld.NotifyOp.Set
@pl.jit
def c(a: pld.DistributedTensor[[1, N], pl.FP32], b: pl.Tensor[[2, 4], pl.FP32]):
    pass
@pl.jit.host
def h(x: pl.Tensor[[NR, 1], pl.FP32]):
    wb = pld.alloc_window_buffer(32)
    w = pld.window(wb, [N], dtype=pl.FP32)
    v = pld.window(wb, [2, 4], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        c(w, v, device=r)
