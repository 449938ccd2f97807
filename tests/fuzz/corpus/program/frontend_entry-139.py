import pypto.language as pl
import pypto.language.distributed as pld
NR = pl.dynamic('NR')
N = 8
DT = pl.FP32
OP = pld.NotifyOp.Set
@pl.jit.host
def h(x: pl.Tensor[[NR, 4, N], pl.FP32], y: pl.Out[pl.Tensor[[2, 4, N], pl.FP32]], q: pl.INDEX):
    pass
