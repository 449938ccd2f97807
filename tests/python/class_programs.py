"""Programs in class form that several tests run."""

import pypto.language as pl
import pypto.language.distributed as pld
from programs import from_text

NR = pl.dynamic("NR")


def allreduce(size):
    """The quick start, with the host function first: all its calls are forward references."""

    @pl.program
    class AllReduce:
        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def orchestrator(
            self,
            inputs: pl.Tensor[[NR, 1, size], pl.FP32],
            outputs: pl.Out[pl.Tensor[[NR, 1, size], pl.FP32]],
        ) -> pl.Tensor[[NR, 1, size], pl.FP32]:
            data_buf = pld.alloc_window_buffer(size * pl.FP32.get_byte())
            signal_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, size], dtype=pl.FP32)
                signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
                self.chip_orch(inputs[r], outputs[r], data, signal, device=r)
            return outputs

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip_orch(
            self,
            inp: pl.Tensor[[1, size], pl.FP32],
            out: pl.Out[pl.Tensor[[1, size], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        ) -> pl.Tensor[[1, size], pl.FP32]:
            return self.reduce_step(inp, out, data, signal)

        @pl.function(type=pl.FunctionType.InCore)
        def reduce_step(
            self,
            inp: pl.Tensor[[1, size], pl.FP32],
            out: pl.Out[pl.Tensor[[1, size], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        ) -> pl.Tensor[[1, size], pl.FP32]:
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

    return AllReduce


G = pl.dynamic("G")
W = 32


@pl.program
class Shift:
    """Rank r ends with the row of rank r - 1, fetched from that rank's window."""

    @pl.function(type=pl.FunctionType.InCore)
    def hop(
        self,
        a: pl.Tensor[[1, W], pl.FP32],
        z: pl.Out[pl.Tensor[[1, W], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, W], pl.FP32]],
        bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
        nxt: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, W], pl.FP32]:
        ctx = pld.get_comm_ctx(box)
        box = pl.store(pl.load(a, [0, 0], [1, W]), [0, 0], box)
        pld.system.notify(bell, peer=nxt, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        before = (pld.rank(ctx) - 1) % pld.nranks(ctx)
        return pl.store(
            pld.tile.remote_load(box, peer=before, offsets=[0, 0], shape=[1, W]), [0, 0], z
        )

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        a: pl.Tensor[[1, W], pl.FP32],
        z: pl.Out[pl.Tensor[[1, W], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, W], pl.FP32]],
        bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
        nxt: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, W], pl.FP32]:
        return self.hop(a, z, box, bell, nxt)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, a: pl.Tensor[[G, 1, W], pl.FP32], z: pl.Out[pl.Tensor[[G, 1, W], pl.FP32]]
    ) -> pl.Tensor[[G, 1, W], pl.FP32]:
        bb = pld.alloc_window_buffer(W * pl.FP32.get_byte())
        sb = pld.alloc_window_buffer(pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            box = pld.window(bb, [1, W], dtype=pl.FP32)
            bell = pld.window(sb, [1, 1], dtype=pl.INT32)
            self.chip(a[r], z[r], box, bell, (r + 1) % pld.world_size(), device=r)
        return z


def scaler(ranks, width, dtype, factor):
    """A factory: z[r] = a[r] * factor + r, and sums of two inputs; everything static."""
    columns = width * 2
    shape = [1, columns]

    @pl.program
    class Scaler:
        @pl.function(type=pl.FunctionType.InCore)
        def body(self, a: pl.Tensor[shape, dtype], z: pl.Out[pl.Tensor[shape, dtype]]):
            t = pl.load(a, [0, 0], [1, columns])
            z = pl.store(pl.mul(t, factor), [0, 0], z)
            return z

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, a: "pl.Tensor[shape, dtype]", z: "pl.Out[pl.Tensor[shape, dtype]]"):
            y = self.body(a, z)
            return y

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            a: pl.Tensor[[ranks, 1, columns], dtype],
            z: pl.Out[pl.Tensor[[ranks, 1, columns], dtype]],
        ) -> pl.Tensor[[ranks, 1, columns], dtype]:
            for r in pl.range(pld.world_size()):
                self.chip(a[r], z[r], device=r)
            return z

    return Scaler


_OF_HOST_FUNCTION = '''
import pypto.language as pl
import pypto.language.distributed as pld

NR, N = pl.dynamic("NR"), 16
Row = pl.Tensor[[N], pl.FP32]


@pl.program
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def double_kernel(self, x: Row, y: pl.Out[Row]):
        pl.store(pl.mul(pl.load(x, [0], [N]), 2.0), [0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def double(self, x: Row, y: pl.Out[Row]):
        self.double_kernel(x, y)

    @pl.function(type=pl.FunctionType.InCore)
    def times_kernel(self, x: Row, k: pl.Scalar[pl.{dtype}], y: pl.Out[Row]):
        pl.store(pl.mul(pl.load(x, [0], [N]), pl.cast(k, pl.FP32)), [0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def times(self, x: Row, k: pl.Scalar[pl.{dtype}], y: pl.Out[Row]):
        self.times_kernel(x, k, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def add(y: Row, total: pl.InOut[Row]):
        total += y

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, {parameters}):
{body}
'''


def of_host_function(parameters, body, dtype="FP32"):
    """A program made of the text of its host function: parameters, and lines of its body. These can dispatch `double` and `times`,
    which multiply a Row of N = 16 numbers by two and by a number of that dtype, and call the SubWorker `add`."""
    indented = "\n".join("        " + line for line in body.split("\n"))
    return from_text(_OF_HOST_FUNCTION.format(parameters=parameters, body=indented, dtype=dtype))["Program"]
