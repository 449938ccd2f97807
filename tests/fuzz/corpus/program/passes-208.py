import pypto.language as pl
import pypto.language.distributed as pld
NR = pl.dynamic('NR')
N = 8
DT = pl.FP32
OP = pld.NotifyOp.Set
@pl.jit.incore
def k(x: pl.Tensor[[4, N], pl.FP32], y: pl.Out[pl.Tensor[[4, N], pl.FP32]]):
    return pl.store(pl.load(x, [0, 0], [4, N]), [0, 0], y)
@pl.jit
def c2(x: pl.Tensor[[4, N], pl.FP32], y: pl.Out[pl.Tensor[[4, N], pl.FP32]], n: pl.Scalar[pl.INT32]):
    return k(x, y)
@pl.jit
def c3(x: pl.Tensor[[4, N], pl.FP32], w: pl.InOut[pld.DistributedTensor[[1, N], pl.FP32]], s: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    pass
P = 4
@pl.jit.host
def h(x: pl.Tensor[[NR, 4, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4, N], pl.FP32]], q: pl.Scalar[pl.INDEX]):
    c2(x[0], y[0], q)
    c2(x[1], y[1], q + 1, device=(q + 1) % 2)
