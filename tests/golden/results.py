# Results that wrappers make themselves: the callers create them. See test_golden.py.

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
M = pl.dynamic("M")


@pl.jit.incore
def double_kernel(x: pl.Tensor[[M, 8], pl.FP32], y: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    for i in pl.range(M):
        pl.store(pl.mul(pl.load(x, [i, 0], [1, 8]), 2.0), [i, 0], y)
    return y


@pl.jit
def twice_and_more(x: pl.Tensor[[M, 8], pl.FP32], n: pl.Scalar[pl.INT32]):
    rows = M + n
    twice = pl.create_tensor([M, 8], dtype=pl.FP32)
    more = pl.create_tensor([rows, 8], dtype=pl.FP32)
    twice = double_kernel(x, twice)
    double_kernel(twice, more[:M])
    return twice, more


@pl.jit
def double(x: pl.Tensor[[M, 8], pl.FP32], y: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    return double_kernel(x, y)


@pl.jit.host
def host(x: pl.Tensor[[NR, 4, 8], pl.FP32], out: pl.Out[pl.Tensor[[NR, 6, 8], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        twice, more = twice_and_more(x[r], 2, device=r)
        double(more, out[r], device=r)
    first, last = twice_and_more(x[0], 0)
    return out, first
