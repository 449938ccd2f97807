"""Scopes and tasks: kernels where they are submitted, ids, blocks, a predicate, what leaves a scope."""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")


@pl.jit.incore
def scale(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]], by: pl.Scalar[pl.FP32]):
    row = pl.tile.get_block_idx()
    pl.store(pl.mul(pl.load(x, [row, 0], [1, 8]), by), [row, 0], y)
    return y


@pl.jit
def chip(
    x: pl.Tensor[[4, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[4, 8], pl.FP32]],
    epoch: pl.Tensor[[1, 1], pl.INT32],
    bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
    to: pl.Scalar[pl.INT32],
):
    with pl.manual_scope():
        prev = None
        for k in pl.range(4):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate", deps=[prev]) as gate:
                need: pl.Scalar[pl.INT32] = pl.read(epoch, [0, 0])
                pld.system.defer_wait(bell, [0, 0], need)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy", deps=[gate]) as prev:
                y = pl.store(pl.load(x, [k, 0], [1, 8]), [k, 0], y)
        y, scaled = pl.spmd_submit(scale, y, pl.no_dep(y), 2.0, core_num=4, deps=[prev])
        done = pl.system.task_dummy(deps=[gate, scaled])
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="ring"):
            pld.system.notify(bell, to, [0, 0], need, op=pld.NotifyOp.Set)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="sums"):
        total = pl.row_sum(x)
    for i in pl.spmd(4, predicate=(epoch[0, 0] > 1)):
        pl.write(y, [i, 0], pl.read(total, [i, 0]))
    return y


@pl.jit.host
def host(
    x: pl.Tensor[[NR, 4, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 4, 8], pl.FP32]],
    epoch: pl.Tensor[[1, 1], pl.INT32],
    s: pl.Out[pl.Tensor[[4, 8], pl.FP32]],
):
    buffer = pld.alloc_window_buffer(4)
    for r in pl.range(pld.world_size()):
        bell = pld.window(buffer, [1, 1], dtype=pl.INT32)
        chip(x[r], y[r], epoch, bell, (r + 1) % pld.world_size(), device=r)
    with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
        with pl.at(level=pl.Level.CORE_GROUP):
            s = pl.assemble(s, pl.mul(x[0], 3.0), [0, 0])
    return y
