"""Programs that several tests run, and what their results must be."""

import linecache

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig

NR = pl.dynamic("NR")


def allreduce(size, dtype=pl.FP32):
    """The quick start's host function for rows of `size` elements of `dtype`."""

    @pl.jit.incore
    def reduce_step(
        inp: pl.Tensor[[1, size], dtype],
        out: pl.Out[pl.Tensor[[1, size], dtype]],
        data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[1, size], dtype]:
        ctx = pld.get_comm_ctx(data)
        my_rank = pld.rank(ctx)
        nranks = pld.nranks(ctx)
        local = pl.load(inp, [0, 0], [1, size])
        data = pl.store(local, [0, 0], data)
        for peer in pl.range(nranks):
            if peer != my_rank:
                pld.system.notify(
                    signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd
                )
        for src in pl.range(nranks):
            if src != my_rank:
                pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
        acc = pl.load(data, [0, 0], [1, size])
        for peer in pl.range(nranks):
            if peer != my_rank:
                acc = pl.add(
                    acc, pld.tile.remote_load(data, peer=peer, offsets=[0, 0], shape=[1, size])
                )
        return pl.store(acc, [0, 0], out)

    @pl.jit
    def chip_orch(
        inp: pl.Tensor[[1, size], dtype],
        out: pl.Out[pl.Tensor[[1, size], dtype]],
        data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ) -> pl.Tensor[[1, size], dtype]:
        return reduce_step(inp, out, data, signal)

    @pl.jit.host
    def orchestrator(
        inputs: pl.Tensor[[NR, 1, size], dtype],
        outputs: pl.Out[pl.Tensor[[NR, 1, size], dtype]],
    ) -> pl.Tensor[[NR, 1, size], dtype]:
        data_buf = pld.alloc_window_buffer(size * dtype.get_byte())
        signal_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, size], dtype=dtype)
            signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
            chip_orch(inputs[r], outputs[r], data, signal, device=r)
        return outputs

    return orchestrator


def allreduce_expected(inputs):
    """What each rank computes, in its order: the own row first, then the peers' by rank."""
    outputs = np.empty_like(inputs)
    for rank in range(len(inputs)):
        total = inputs[rank].copy()
        for peer in range(len(inputs)):
            if peer != rank:
                total = total + inputs[peer]
        outputs[rank] = total
    return outputs


def config(devices, platform="cpu"):
    """RunConfig for a number of devices, or for a list of ids."""
    ids = list(range(devices)) if isinstance(devices, int) else devices
    return RunConfig(platform=platform, distributed_config=DistributedConfig(device_ids=ids))


_texts = 0


def from_text(text, **names):
    """Runs DSL source as if it came from a file of its own, which linecache knows. Returns the
    namespace; `pl`, `pld` and NR are there already."""
    global _texts
    _texts += 1
    filename = f"<text {_texts}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"pl": pl, "pld": pld, "NR": NR, **names}
    exec(compile(text, filename, "exec"), namespace)
    return namespace
