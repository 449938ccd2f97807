"""Two kernels of one wrapper: the first pushes to a peer and shakes hands, the second reads the
window, which is an input to both, and must see what came."""

import torch

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
W = 64


@pl.program
class PushThenRead:
    @pl.function(type=pl.FunctionType.InCore)
    def push(
        self,
        x: pl.Tensor[[1, W], pl.BF16],
        box: pld.DistributedTensor[[NR, W], pl.BF16],
        bell: pld.DistributedTensor[[NR, 1], pl.INT32],
        me: pl.Scalar[pl.INT32],
        n: pl.Scalar[pl.INT32],
    ):
        tile = pl.load(x, [0, 0], [1, W])
        for step in pl.range(n):
            peer = (me + step) % n
            if peer != me:
                pld.tile.remote_store(tile, target=box, peer=peer, offsets=[me, 0])
                pld.system.notify(
                    target=bell, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd
                )
        for source in pl.range(n):
            if source != me:
                pld.system.wait(
                    signal=bell, offsets=[source, 0], expected=1, cmp=pld.WaitCmp.Ge
                )

    @pl.function(type=pl.FunctionType.InCore)
    def read(
        self,
        box: pld.DistributedTensor[[NR, W], pl.BF16],
        y: pl.Out[pl.Tensor[[NR, W], pl.BF16]],
        n: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[NR, W], pl.BF16]:
        for source in pl.range(n):
            y = pl.store(pl.load(box, [source, 0], [1, W]), [source, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[1, W], pl.BF16],
        y: pl.Out[pl.Tensor[[NR, W], pl.BF16]],
        box: pld.DistributedTensor[[NR, W], pl.BF16],
        bell: pld.DistributedTensor[[NR, 1], pl.INT32],
        me: pl.Scalar[pl.INT32],
        n: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[NR, W], pl.BF16]:
        self.push(x, box, bell, me, n)
        return self.read(box, y, n)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[NR, 1, W], pl.BF16],
        y: pl.Out[pl.Tensor[[NR, NR, W], pl.BF16]],
    ) -> pl.Tensor[[NR, NR, W], pl.BF16]:
        boxes = pld.alloc_window_buffer(NR * W * pl.BF16.get_byte())
        bells = pld.alloc_window_buffer(NR * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            box = pld.window(boxes, [NR, W], dtype=pl.BF16)
            bell = pld.window(bells, [NR, 1], dtype=pl.INT32)
            self.chip(x[r], y[r], box, bell, r, pld.world_size(), device=r)
        return y


def test_remote_store_window_raw(ranks, transport):
    x = torch.from_numpy(numbers(ranks, 1, W) % 128 + 1).bfloat16()
    y = torch.zeros(ranks, ranks, W, dtype=torch.bfloat16)
    compiled(PushThenRead, ranks)(x, y)
    for rank in range(ranks):
        expected = x[:, 0].clone()
        expected[rank] = 0      # nobody writes a rank's own row
        assert torch.equal(y[rank], expected)
