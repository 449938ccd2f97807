import pypto.language as pl
import pypto.language.distributed as pld
NR = pl.dynamic('NR')
N = 8
DT = pl.FP32
OP = pld.NotifyOp.Set
@pl.jit
def c(x: pl.Tensor[[N], pl.FP32]):
    pass
@pl.jit.host
def h(a: pl.Tensor[[NR, N], pl.FP32], b: pl.Tensor[[3, NR, N], pl.FP32], d: pl.Tensor[[3, NR, N], pl.FP32], e: pl.Tensor[[NR, N], pl.FP32]):
    n = pld.world_size()
    for r in pl.range(n):
        c(a[r])
        c(b[2, r])
        c(d[1][r])
    for i in pl.range(2):
        c(e[i])
    for k in pl.range(1, n):
        c(e[k])
