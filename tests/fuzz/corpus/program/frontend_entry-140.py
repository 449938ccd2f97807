import pypto.language as pl
import pypto.language.distributed as pld
NR = pl.dynamic('NR')
N = 8
DT = pl.FP32
OP = pld.NotifyOp.Set
@pl.jit.host
def h(i: pl.Scalar[pl.INT8], g: pl.Scalar[pl.FP32], b: pl.Scalar[pl.BOOL]):
    pass
