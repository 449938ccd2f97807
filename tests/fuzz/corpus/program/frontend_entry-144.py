import pypto.language as pl
import pypto.language.distributed as pld
NR = pl.dynamic('NR')
N = 8
DT = pl.FP32
OP = pld.NotifyOp.Set
@pl.jit.host
def h(x: pl.Tensor[[NR], pl.FP32], y: pl.Tensor[[NR * 2], pl.FP32]):
    pass
