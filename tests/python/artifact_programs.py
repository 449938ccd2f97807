"""Programs whose output directories the tests look into."""

import pypto.language as pl
import pypto.language.distributed as pld

N = 16
Row = pl.Tensor[[1, N], pl.FP32]
Rows = pl.Tensor[[2, 1, N], pl.FP32]
Window = pld.DistributedTensor[[1, N], pl.FP32]


@pl.program
class Sum:
    """y[r] = the sum of x over both ranks."""

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def orchestrator(self, x: Rows, y: pl.Out[Rows]) -> Rows:
        data_buf = pld.alloc_window_buffer(N * 4)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, N], dtype=pl.FP32)
            self.publish(x[r], data, device=r)
        data = pld.window(data_buf, [1, N], dtype=pl.FP32)
        pld.tensor.allreduce(data, op=pld.ReduceOp.Sum)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, N], dtype=pl.FP32)
            self.fetch(data, y[r], device=r)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def publish(self, x: Row, data: pl.InOut[Window]):
        self.store(x, data)

    @pl.function(type=pl.FunctionType.Orchestration)
    def fetch(self, data: pl.InOut[Window], y: pl.Out[Row]):
        self.load(data, y)

    @pl.function(type=pl.FunctionType.InCore)
    def store(self, x: Row, data: pl.InOut[Window]):
        pl.store(pl.load(x, [0, 0], [1, N]), [0, 0], data)

    @pl.function(type=pl.FunctionType.InCore)
    def load(self, data: pl.InOut[Window], y: pl.Out[Row]):
        pl.store(pl.load(data, [0, 0], [1, N]), [0, 0], y)


@pl.program
class Double:
    """y = 2 x, without a host function."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: Row, y: pl.Out[Row]) -> Row:
        return pl.store(pl.mul(pl.load(x, [0, 0], [1, N]), 2.0), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def orch(self, x: Row, y: pl.Out[Row]) -> Row:
        return self.kernel(x, y)


@pl.program
class AddAndSub:
    """Two orchestrations, each with a kernel of its own."""

    @pl.function(type=pl.FunctionType.InCore)
    def add(self, a: Row, b: Row, z: pl.Out[Row]) -> Row:
        return pl.store(pl.add(pl.load(a, [0, 0], [1, N]), pl.load(b, [0, 0], [1, N])), [0, 0], z)

    @pl.function(type=pl.FunctionType.InCore)
    def sub(self, a: Row, b: Row, z: pl.Out[Row]) -> Row:
        return pl.store(pl.sub(pl.load(a, [0, 0], [1, N]), pl.load(b, [0, 0], [1, N])), [0, 0], z)

    @pl.function(type=pl.FunctionType.Orchestration)
    def orch_sub(self, a: Row, b: Row, z: pl.Out[Row]) -> Row:
        return self.sub(a, b, z)

    @pl.function(type=pl.FunctionType.Orchestration)
    def orch_add(self, a: Row, b: Row, z: pl.Out[Row]) -> Row:
        return self.add(a, b, z)


_COLLECTIVE = """\
@pl.program
class Collective:
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[2, 2, 8], pl.{dtype}]):
        data_buf = pld.alloc_window_buffer([2, 8], dtype=pl.{dtype})
        more_buf = pld.alloc_window_buffer([2, 8], dtype=pl.{dtype})
        sig_buf = pld.alloc_window_buffer([3, 2], dtype=pl.INT32)
        count_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        counts_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [2, 8], dtype=pl.{dtype})
            more = pld.window(more_buf, [2, 8], dtype=pl.{dtype})
            ring = pld.window(sig_buf, [3, 2], dtype=pl.INT32)
            sent = pld.window(count_buf, [2, 1], dtype=pl.INT32)
            got = pld.window(counts_buf, [2, 1], dtype=pl.INT32)
            self.chip(x[r], data, more, ring, sent, got, device=r)
        data = pld.window(data_buf, [2, 8], dtype=pl.{dtype})
        row = pld.window(data_buf, [1, 8], dtype=pl.{dtype})
        more = pld.window(more_buf, [2, 8], dtype=pl.{dtype})
        sig = pld.window(sig_buf, [2, 1], dtype=pl.INT32)
        ring = pld.window(sig_buf, [3, 2], dtype=pl.INT32)
        sent = pld.window(count_buf, [2, 1], dtype=pl.INT32)
        got = pld.window(counts_buf, [2, 1], dtype=pl.INT32)
        {call}

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: pl.Tensor[[2, 8], pl.{dtype}],
             data: pl.InOut[pld.DistributedTensor[[2, 8], pl.{dtype}]],
             more: pl.InOut[pld.DistributedTensor[[2, 8], pl.{dtype}]],
             ring: pl.InOut[pld.DistributedTensor[[3, 2], pl.INT32]],
             sent: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
             got: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]]):
        self.kernel(x, data)

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[2, 8], pl.{dtype}],
               data: pl.InOut[pld.DistributedTensor[[2, 8], pl.{dtype}]]):
        pl.store(pl.load(x, [0, 0], [2, 8]), [0, 0], data)
"""


def collective(call, dtype="FP32"):
    """A program with one collective in its host function."""
    return pl.parse_program(_COLLECTIVE.format(call=call, dtype=dtype))
