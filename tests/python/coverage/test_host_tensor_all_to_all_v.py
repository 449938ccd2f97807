"""All-to-all of ragged counts in the host function: blocks of rows, of which the receiver is told how many count."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

MAX_RECV = 4
SIZE = 64


def exchange(ranks):
    rows = ranks * MAX_RECV

    @pl.program
    class HostAllToAllV:
        @pl.function(type=pl.FunctionType.InCore)
        def stage(
            self,
            x: pl.Tensor[[rows, SIZE], pl.FP32],
            counts: pl.Tensor[[ranks, 1], pl.INT32],
            data: pl.InOut[pld.DistributedTensor[[rows, SIZE], pl.FP32]],
            send: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
        ):
            for row in pl.range(rows):
                pl.store(pl.load(x, [row, 0], [1, SIZE]), [row, 0], data)
            for peer in pl.range(ranks):
                pl.write(send, [peer, 0], pl.read(counts, [peer, 0]))

        @pl.function(type=pl.FunctionType.InCore)
        def result(
            self,
            target: pl.InOut[pld.DistributedTensor[[rows, SIZE], pl.FP32]],
            received: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
            y: pl.Out[pl.Tensor[[rows, SIZE], pl.FP32]],
        ) -> pl.Tensor[[rows, SIZE], pl.FP32]:
            for source in pl.range(ranks):
                count = pl.read(received, [source, 0])
                for k in pl.range(count):
                    row = source * MAX_RECV + k
                    y = pl.store(pl.load(target, [row, 0], [1, SIZE]), [row, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip_stage(
            self,
            x: pl.Tensor[[rows, SIZE], pl.FP32],
            counts: pl.Tensor[[ranks, 1], pl.INT32],
            data: pl.InOut[pld.DistributedTensor[[rows, SIZE], pl.FP32]],
            send: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
        ):
            self.stage(x, counts, data, send)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip_result(
            self,
            target: pl.InOut[pld.DistributedTensor[[rows, SIZE], pl.FP32]],
            received: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
            y: pl.Out[pl.Tensor[[rows, SIZE], pl.FP32]],
        ) -> pl.Tensor[[rows, SIZE], pl.FP32]:
            return self.result(target, received, y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            x: pl.Tensor[[ranks, rows, SIZE], pl.FP32],
            counts: pl.Tensor[[ranks, ranks, 1], pl.INT32],
            y: pl.Out[pl.Tensor[[ranks, rows, SIZE], pl.FP32]],
        ) -> pl.Tensor[[ranks, rows, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer(rows * SIZE * pl.FP32.get_byte())
            target_buf = pld.alloc_window_buffer(rows * SIZE * pl.FP32.get_byte())
            signal_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
            send_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
            received_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
            data = pld.window(data_buf, [rows, SIZE], dtype=pl.FP32)
            target = pld.window(target_buf, [rows, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [ranks, 1], dtype=pl.INT32)
            send = pld.window(send_buf, [ranks, 1], dtype=pl.INT32)
            received = pld.window(received_buf, [ranks, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                self.chip_stage(x[r], counts[r], data, send, device=r)
            target = pld.tensor.all_to_all_v(data, target, signal, send, received)
            for r in pl.range(pld.world_size()):
                self.chip_result(target, received, y[r], device=r)
            return y

    return HostAllToAllV


def test_host_all_to_all_v(ranks, transport):
    x = numbers(ranks, ranks * MAX_RECV, SIZE)
    counts = (np.arange(ranks * ranks, dtype=np.int32) * 3 % (MAX_RECV + 1)).reshape(ranks, ranks, 1)
    y = np.zeros_like(x)
    compiled(exchange(ranks), ranks)(x, counts, y)
    expected = np.zeros_like(x)
    for source in range(ranks):
        for rank in range(ranks):
            n = counts[source, rank, 0]
            block = x[source, rank * MAX_RECV :][:n]
            expected[rank, source * MAX_RECV :][:n] = block
    assert (y == expected).all()
