import pypto.language as pl
import pypto.language.distributed as pld
NR = pl.dynamic('NR')
N = 8
DT = pl.FP32
OP = pld.NotifyOp.Set
@pl.jit.incore
def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    pl.store(pl.load(x, [0, 0], [1, 4]), [0, 0], y)
@pl.jit
def c(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    k(x, y)
    k(y, y)
    k(x, y)
@pl.jit.host
def h(x: pl.Tensor[[NR, 4, 4], pl.FP32], y: pl.Out[pl.Tensor[[NR, 2, 4], pl.FP32]], z: pl.Out[pl.Tensor[[4, NR * 2 + 1], pl.FP32]]):
    c(x[0], y[0])
    c(x[1], y[1])
    c(x[0], z)
