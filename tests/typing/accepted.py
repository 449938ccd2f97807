"""Programs that mypy accepts: what annotations, bodies and calls may look like. Not run."""

from typing import Any

import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig

NR = pl.dynamic("NR")
W = 256
SHAPE = [1, W]
DT = pl.FP32
Row = pl.Tensor[[1, W], pl.FP32]


@pl.jit.incore
def kernel(
    x: pl.Tensor[[1, W], pl.FP32],
    y: pl.Out[pl.Tensor[[1, W * 2 // 2], DT]],
    box: pl.InOut[pld.DistributedTensor[[NR * 2, W], pl.FP32]],
    named: Row,
    shaped: pl.Tensor[SHAPE, pl.FP32],
    text: "pl.Out[pl.Tensor[[1, W], pl.FP32]]",
    bare: pl.Tensor,
    ctx: pld.CommCtx,
    n: pl.Scalar[pl.INT32],
    f: pl.FP32 = 1.5,
) -> pl.Tensor[[1, W], pl.FP32]:
    t = pl.load(x, [0, 0], [1, W])
    s: pl.Tile[[1, W], pl.FP32] = pl.load(x, offsets=[0, 0], shapes=[1, W])
    acc = t + s * f - t / 2.0
    if n != 0 and n < 4:
        acc = pl.maximum(acc, -t)
    for i in pl.range(0, W, 16):
        y[0:1, i : i + 16] = x[0:1, i : i + 16]
    for c, (cur,) in pl.range(4, init_values=(acc,)):
        done = pl.yield_(pl.add(cur, float(c)))
    k: pl.Scalar[pl.INT64] = 0
    while k < n:
        k = k + 1
    rows, columns = x.shape
    pl.static_assert(columns == W, "rows of W")
    size = pl.FP32.get_byte() * W + rows
    pl.write(y, [0, 0], pl.read(x, [0, k % size]))
    pld.system.notify(box, peer=n, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(box, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    return pl.store(done, [0, 0], y)


@pl.jit
def wrapper(x: Row, y: pl.Out[Row], box: pld.DistributedTensor[[NR, W], pl.FP32]):
    kernel(x, y, box, x, x, x, x, None, 3)


@pl.jit.host
def host(
    inputs: pl.Tensor[[NR, 1, W], pl.FP32], outputs: pl.Out[pl.Tensor[[NR, 1, W], pl.FP32]]
):
    buffer = pld.alloc_window_buffer(pld.world_size() * W * pl.FP32.get_byte())
    for r in pl.range(pld.world_size()):
        box = pld.window(buffer, [pld.world_size(), W], dtype=pl.FP32)
        wrapper(inputs[r], outputs[r], box, device=r)


def factory(width: int, dtype: pl.DataType) -> Any:
    columns = width * 2

    @pl.program
    class Scale:
        @pl.function(type=pl.FunctionType.InCore)
        def body(
            self,
            a: pl.Tensor[[1, columns], dtype],
            b: pl.Out[pl.Tensor[[1, columns], dtype]],
        ) -> tuple[pl.Tensor[[1, columns], dtype], pl.Tensor[[1, columns], dtype]]:
            b = pl.store(pl.mul(pl.load(a, [0, 0], [1, columns]), 3.0), [0, 0], b)
            return a, b

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, a: pl.Tensor[[1, columns], dtype], b: pl.Out[pl.Tensor[[1, columns], dtype]]):
            return self.body(a, b)

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def clip(a: pl.Tensor[[1, columns], dtype], b: pl.Out[pl.Tensor[[1, columns], dtype]]):
            b[:] = a.clamp(0.0, 1.0)

    return Scale


def main() -> None:
    config = RunConfig(distributed_config=DistributedConfig(device_ids=[0, 1]))
    x = torch.ones(2, 1, W)
    host(x, torch.zeros_like(x), config=config)
    compiled = host.compile(x, x, config=config)
    compiled(x, x)
    single = ir.compile(factory(8, pl.FP32), platform="cpu")
    result = single(torch.ones(1, 16))
    print(result.sum(), single.output_dir / "program.c")
