"""Experts on several ranks. Each token goes to K experts, of which every rank has L; the experts scale what they
get and send it back, and the sender adds its K results with weights.

Three kernels: `dispatch` counts, pushes the rows and tells how many there are; `experts` works on as many rows as
came; `combine` waits for its rows and adds them. What is sent where depends on data, so that offsets, trip
counts and peers are known at run time only."""

import numpy as np
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers

NR = pl.dynamic("NR")
ROWS = pl.dynamic("ROWS")       # rows of a window: for each local expert and each rank, T
T, K, D, L = 8, 2, 16, 2
MOST_EXPERTS = 8


@pl.program
class Experts:
    @pl.function(type=pl.FunctionType.InCore)
    def dispatch(
        self,
        x: pl.Tensor[[T, D], pl.FP32],
        chosen: pl.Tensor[[T, K], pl.INT32],
        place: pl.Out[pl.Tensor[[T, K], pl.INT32]],
        sent: pl.Out[pl.Tensor[[1, MOST_EXPERTS], pl.INT32]],
        inbox: pld.DistributedTensor[[ROWS, D], pl.FP32],
        counts: pl.InOut[pld.DistributedTensor[[NR, L], pl.INT32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        me: pl.Scalar[pl.INDEX],
        n: pl.Scalar[pl.INDEX],
    ) -> tuple[pl.Tensor[[T, K], pl.INT32], pl.Tensor[[1, MOST_EXPERTS], pl.INT32]]:
        number = pl.array.create(MOST_EXPERTS, pl.INT32)
        for d in pl.range(MOST_EXPERTS):
            number[d] = pl.const(0, pl.INT32)
        for t in pl.range(T):
            for k in pl.range(K):
                e = pl.cast(pl.read(chosen, [t, k]), pl.INDEX)
                d = e // L
                expert = e - d * L
                to = (expert * n + me) * T + pl.cast(number[e], pl.INDEX)
                pld.tensor.put(
                    dst=inbox,
                    peer=d,
                    src=x,
                    dst_offsets=[to, 0],
                    src_offsets=[t, 0],
                    shape=[1, D],
                )
                pl.write(place, [t, k], number[e])
                number[e] = number[e] + 1
        for d in pl.range(n):
            for expert in pl.range(L):
                rows = number[d * L + expert]
                pld.system.notify(
                    target=counts, peer=d, offsets=[me, expert], value=rows, op=pld.NotifyOp.AtomicAdd
                )
                pl.write(sent, [0, d * L + expert], rows)
            if d != me:
                pld.system.notify(
                    target=arrived, peer=d, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd
                )
        for source in pl.range(n):
            if source != me:
                pld.system.wait(
                    signal=arrived, offsets=[source, 0], expected=1, cmp=pld.WaitCmp.Ge
                )
        return place, sent

    @pl.function(type=pl.FunctionType.InCore)
    def experts(
        self,
        inbox: pld.DistributedTensor[[ROWS, D], pl.FP32],
        outbox: pld.DistributedTensor[[ROWS, D], pl.FP32],
        counts: pld.DistributedTensor[[NR, L], pl.INT32],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        me: pl.Scalar[pl.INDEX],
        n: pl.Scalar[pl.INDEX],
    ):
        for source in pl.range(n):
            for expert in pl.range(L):
                rows = pl.cast(pl.read(counts, [source, expert]), pl.INDEX)
                factor = pl.cast(me * L + expert + 1, pl.FP32)
                for i in pl.range(rows):
                    at = (expert * n + source) * T + i
                    row: pl.Tile[[1, D], pl.FP32] = pl.load(inbox, [at, 0], [1, D])
                    inbox = pl.store(pl.mul(row, factor), [at, 0], inbox)
                    pld.tensor.put(
                        dst=outbox,
                        peer=source,
                        src=inbox,
                        dst_offsets=[(me * L + expert) * T + i, 0],
                        src_offsets=[at, 0],
                        shape=[1, D],
                    )
            pld.system.notify(
                target=arrived, peer=source, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd
            )

    @pl.function(type=pl.FunctionType.InCore)
    def combine(
        self,
        chosen: pl.Tensor[[T, K], pl.INT32],
        weights: pl.Tensor[[T, K], pl.FP32],
        place: pl.Tensor[[T, K], pl.INT32],
        y: pl.Out[pl.Tensor[[T, D], pl.FP32]],
        weight: pl.Out[pl.Tensor[[1, T], pl.FP32]],
        outbox: pld.DistributedTensor[[ROWS, D], pl.FP32],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        n: pl.Scalar[pl.INDEX],
    ) -> tuple[pl.Tensor[[T, D], pl.FP32], pl.Tensor[[1, T], pl.FP32]]:
        for source in pl.range(n):
            pld.system.wait(signal=arrived, offsets=[source, 0], expected=1, cmp=pld.WaitCmp.Ge)
        for t in pl.range(T):
            total = pl.tile.create([1, D], pl.FP32)
            for k in pl.range(K):
                e = pl.cast(pl.read(chosen, [t, k]), pl.INDEX)
                i = pl.cast(pl.read(place, [t, k]), pl.INDEX)
                back = pl.load(outbox, [e * T + i, 0], [1, D])
                total = pl.add(total, pl.mul(back, pl.read(weights, [t, k])))
            y = pl.store(total, [t, 0], y)
        sums = pl.tile.row_sum(pl.load(weights, [0, 0], [T, K]))
        weight = pl.store(pl.tile.reshape(sums, [1, T]), [0, 0], weight)
        return y, weight

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[T, D], pl.FP32],
        chosen: pl.Tensor[[T, K], pl.INT32],
        weights: pl.Tensor[[T, K], pl.FP32],
        place: pl.Out[pl.Tensor[[T, K], pl.INT32]],
        sent: pl.Out[pl.Tensor[[1, MOST_EXPERTS], pl.INT32]],
        y: pl.Out[pl.Tensor[[T, D], pl.FP32]],
        weight: pl.Out[pl.Tensor[[1, T], pl.FP32]],
        inbox: pld.DistributedTensor[[ROWS, D], pl.FP32],
        outbox: pld.DistributedTensor[[ROWS, D], pl.FP32],
        counts: pl.InOut[pld.DistributedTensor[[NR, L], pl.INT32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        returned: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        me: pl.Scalar[pl.INDEX],
        n: pl.Scalar[pl.INDEX],
    ):
        places, numbers = self.dispatch(x, chosen, place, sent, inbox, counts, arrived, me, n)
        self.experts(inbox, outbox, counts, returned, me, n)
        result, total = self.combine(chosen, weights, places, y, weight, outbox, returned, n)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[NR, T, D], pl.FP32],
        chosen: pl.Tensor[[NR, T, K], pl.INT32],
        weights: pl.Tensor[[NR, T, K], pl.FP32],
        place: pl.Out[pl.Tensor[[NR, T, K], pl.INT32]],
        sent: pl.Out[pl.Tensor[[NR, 1, MOST_EXPERTS], pl.INT32]],
        y: pl.Out[pl.Tensor[[NR, T, D], pl.FP32]],
        weight: pl.Out[pl.Tensor[[NR, 1, T], pl.FP32]],
    ):
        inboxes = pld.alloc_window_buffer(NR * L * T * D * pl.FP32.get_byte())
        outboxes = pld.alloc_window_buffer(NR * L * T * D * pl.FP32.get_byte())
        all_counts = pld.alloc_window_buffer(NR * L * pl.INT32.get_byte())
        arrivals = pld.alloc_window_buffer(NR * pl.INT32.get_byte())
        returns = pld.alloc_window_buffer(NR * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            inbox = pld.window(inboxes, [NR * L * T, D], dtype=pl.FP32)
            outbox = pld.window(outboxes, [NR * L * T, D], dtype=pl.FP32)
            counts = pld.window(all_counts, [NR, L], dtype=pl.INT32)
            arrived = pld.window(arrivals, [NR, 1], dtype=pl.INT32)
            returned = pld.window(returns, [NR, 1], dtype=pl.INT32)
            self.chip(
                x[r],
                chosen[r],
                weights[r],
                place[r],
                sent[r],
                y[r],
                weight[r],
                inbox,
                outbox,
                counts,
                arrived,
                returned,
                r,
                pld.world_size(),
                device=r,
            )


def test_ep_dispatch_combine(ranks, transport):
    random = np.random.default_rng(ranks)
    experts = L * ranks
    x = numbers(ranks, T, D)
    chosen = random.integers(0, experts, (ranks, T, K), dtype=np.int32)
    chosen[..., 1] = (chosen[..., 0] + 1) % experts     # K different experts
    weights = random.integers(1, 5, (ranks, T, K)).astype(np.float32)
    place = np.zeros_like(chosen)
    sent = np.zeros((ranks, 1, MOST_EXPERTS), np.int32)
    y = np.zeros_like(x)
    weight = np.zeros((ranks, 1, T), np.float32)
    compiled(Experts, ranks)(x, chosen, weights, place, sent, y, weight)
    factors = (weights * (chosen + 1)).sum(axis=2, keepdims=True)
    assert (y == x * factors).all()
    assert (weight[:, 0] == weights.sum(axis=2)).all()
    for rank in range(ranks):
        assert (sent[rank, 0] == np.bincount(chosen[rank].ravel(), minlength=MOST_EXPERTS)).all()


# ---- the same at full size, in 16-bit floats, with rows that lie without gaps ----

TOKENS, CHOICES, WIDTH, LOCAL, CAPACITY = 128, 6, 4096, 16, 192
ALL = 4 * LOCAL     # experts of four ranks
PAIRS = TOKENS * CHOICES
CELLS, PLACES = pl.dynamic("CELLS"), LOCAL * CAPACITY


@pl.jit.inline
def barrier(arrived, me, n):
    for peer in pl.range(n):
        pld.system.notify(
            target=arrived, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd
        )
    for source in pl.range(n):
        pld.system.wait(signal=arrived, offsets=[source, 0], expected=1, cmp=pld.WaitCmp.Ge)


@pl.program
class ManyExperts:
    """Everybody tells everybody how many rows go from each rank to each expert: cell (from * n + to, expert). So
    each sender knows where its rows begin, and the rows of an expert lie without gaps."""

    @pl.function(type=pl.FunctionType.InCore)
    def dispatch(
        self,
        x: pl.Tensor[[TOKENS, WIDTH], pl.BF16],
        chosen: pl.Tensor[[TOKENS, CHOICES], pl.INT32],
        origin: pl.Tensor[[PAIRS, 8], pl.INT32],
        weight: pl.Tensor[[PAIRS, 8], pl.FP32],
        counts: pl.InOut[pld.DistributedTensor[[CELLS, LOCAL], pl.INT32]],
        counted: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        rows: pld.DistributedTensor[[PLACES, WIDTH], pl.BF16],
        origins: pld.DistributedTensor[[PLACES, 8], pl.INT32],
        weights: pld.DistributedTensor[[PLACES, 8], pl.FP32],
        placed: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        me: pl.Scalar[pl.INDEX],
        n: pl.Scalar[pl.INDEX],
    ):
        sent = pl.array.create(ALL, pl.INT32)
        for t in pl.range(TOKENS):
            for k in pl.range(CHOICES):
                e = pl.cast(pl.read(chosen, [t, k]), pl.INDEX)
                sent[e] = sent[e] + 1
        for d in pl.range(n):
            for expert in pl.range(LOCAL):
                for peer in pl.range(n):
                    pld.system.notify(
                        target=counts,
                        peer=peer,
                        offsets=[me * n + d, expert],
                        value=sent[d * LOCAL + expert],
                        op=pld.NotifyOp.AtomicAdd,
                    )
        barrier(counted, me, n)
        place = pl.array.create(ALL, pl.INT32)
        for d in pl.range(n):
            for expert in pl.range(LOCAL):
                for source in pl.range(me):
                    place[d * LOCAL + expert] += pl.read(counts, [source * n + d, expert])
        for t in pl.range(TOKENS):
            for k in pl.range(CHOICES):
                e = pl.cast(pl.read(chosen, [t, k]), pl.INDEX)
                d = e // LOCAL
                to = (e - d * LOCAL) * CAPACITY + pl.cast(place[e], pl.INDEX)
                pair = t * CHOICES + k
                pld.tensor.put(rows, d, x, [to, 0], [t, 0], [1, WIDTH])
                pld.tensor.put(origins, d, origin, [to, 0], [pair, 0], [1, 8])
                pld.tensor.put(weights, d, weight, [to, 0], [pair, 0], [1, 8])
                place[e] = place[e] + 1
        barrier(placed, me, n)

    @pl.function(type=pl.FunctionType.InCore)
    def experts(
        self,
        counts: pl.InOut[pld.DistributedTensor[[CELLS, LOCAL], pl.INT32]],
        rows: pld.DistributedTensor[[PLACES, WIDTH], pl.BF16],
        origins: pld.DistributedTensor[[PLACES, 8], pl.INT32],
        weights: pld.DistributedTensor[[PLACES, 8], pl.FP32],
        back: pld.DistributedTensor[[PAIRS, WIDTH], pl.BF16],
        returned: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        got: pl.Out[pl.Tensor[[1, LOCAL], pl.INT32]],
        me: pl.Scalar[pl.INDEX],
        n: pl.Scalar[pl.INDEX],
    ) -> pl.Tensor[[1, LOCAL], pl.INT32]:
        for expert in pl.range(LOCAL):
            total: pl.Scalar[pl.INT32] = 0
            for source in pl.range(n):
                total = total + pl.read(counts, [source * n + me, expert])
            pl.write(got, [0, expert], total)
            factor = pl.cast(me * LOCAL + expert + 1, pl.FP32)
            for i in pl.range(total):
                at = expert * CAPACITY + i
                row = pl.cast(pl.load(rows, [at, 0], [1, WIDTH]), pl.FP32)
                row = pl.mul(row, factor * pl.read(weights, [at, 0]))
                rows = pl.store(pl.cast(row, pl.BF16), [at, 0], rows)
                pair = pl.read(origins, [at, 0])
                pld.tensor.put(back, pl.read(origins, [at, 1]), rows, [pair, 0], [at, 0], [1, WIDTH])
        barrier(returned, me, n)
        return got

    @pl.function(type=pl.FunctionType.InCore)
    def combine(
        self,
        y: pl.Out[pl.Tensor[[TOKENS, WIDTH], pl.FP32]],
        back: pld.DistributedTensor[[PAIRS, WIDTH], pl.BF16],
    ) -> pl.Tensor[[TOKENS, WIDTH], pl.FP32]:
        for t in pl.range(TOKENS):
            total = pl.tile.full([1, WIDTH], dtype=pl.FP32, value=0.0)
            for k in pl.range(CHOICES):
                row = pl.load(back, [t * CHOICES + k, 0], [1, WIDTH])
                total = pl.add(total, pl.cast(row, pl.FP32))
            y = pl.store(total, [t, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[TOKENS, WIDTH], pl.BF16],
        chosen: pl.Tensor[[TOKENS, CHOICES], pl.INT32],
        origin: pl.Tensor[[PAIRS, 8], pl.INT32],
        weight: pl.Tensor[[PAIRS, 8], pl.FP32],
        got: pl.Out[pl.Tensor[[1, LOCAL], pl.INT32]],
        y: pl.Out[pl.Tensor[[TOKENS, WIDTH], pl.FP32]],
        counts: pl.InOut[pld.DistributedTensor[[CELLS, LOCAL], pl.INT32]],
        counted: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        rows: pld.DistributedTensor[[PLACES, WIDTH], pl.BF16],
        origins: pld.DistributedTensor[[PLACES, 8], pl.INT32],
        weights: pld.DistributedTensor[[PLACES, 8], pl.FP32],
        placed: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        back: pld.DistributedTensor[[PAIRS, WIDTH], pl.BF16],
        returned: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        me: pl.Scalar[pl.INDEX],
        n: pl.Scalar[pl.INDEX],
    ):
        self.dispatch(
            x, chosen, origin, weight, counts, counted, rows, origins, weights, placed, me, n
        )
        self.experts(counts, rows, origins, weights, back, returned, got, me, n)
        self.combine(y, back)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[NR, TOKENS, WIDTH], pl.BF16],
        chosen: pl.Tensor[[NR, TOKENS, CHOICES], pl.INT32],
        origin: pl.Tensor[[NR, PAIRS, 8], pl.INT32],
        weight: pl.Tensor[[NR, PAIRS, 8], pl.FP32],
        got: pl.Out[pl.Tensor[[NR, 1, LOCAL], pl.INT32]],
        y: pl.Out[pl.Tensor[[NR, TOKENS, WIDTH], pl.FP32]],
    ):
        all_counts = pld.alloc_window_buffer([NR * NR, LOCAL], dtype=pl.INT32)
        all_counted = pld.alloc_window_buffer([NR, 1], dtype=pl.INT32)
        all_rows = pld.alloc_window_buffer([PLACES, WIDTH], dtype=pl.BF16)
        all_origins = pld.alloc_window_buffer([PLACES, 8], dtype=pl.INT32)
        all_weights = pld.alloc_window_buffer([PLACES, 8], dtype=pl.FP32)
        all_placed = pld.alloc_window_buffer([NR, 1], dtype=pl.INT32)
        all_back = pld.alloc_window_buffer([PAIRS, WIDTH], dtype=pl.BF16)
        all_returned = pld.alloc_window_buffer([NR, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            self.chip(
                x[r],
                chosen[r],
                origin[r],
                weight[r],
                got[r],
                y[r],
                pld.window(all_counts, [NR * NR, LOCAL], dtype=pl.INT32),
                pld.window(all_counted, [NR, 1], dtype=pl.INT32),
                pld.window(all_rows, [PLACES, WIDTH], dtype=pl.BF16),
                pld.window(all_origins, [PLACES, 8], dtype=pl.INT32),
                pld.window(all_weights, [PLACES, 8], dtype=pl.FP32),
                pld.window(all_placed, [NR, 1], dtype=pl.INT32),
                pld.window(all_back, [PAIRS, WIDTH], dtype=pl.BF16),
                pld.window(all_returned, [NR, 1], dtype=pl.INT32),
                r,
                pld.world_size(),
                device=r,
            )


def test_full_size(ranks, transport):
    """Powers of two times an expert's number are exact in 16 bits, so the result is too."""
    random = np.random.default_rng(ranks)
    experts = LOCAL * ranks
    x = (2.0 ** random.integers(-2, 3, (ranks, TOKENS, WIDTH))).astype(np.float32)
    chosen = random.permuted(np.tile(np.arange(experts), (ranks, TOKENS, 1)), axis=2)
    chosen = chosen[..., :CHOICES].astype(np.int32)
    number = np.bincount(chosen.ravel(), minlength=experts)
    assert number.max() <= CAPACITY
    origin = np.zeros((ranks, PAIRS, 8), np.int32)
    origin[..., 0] = np.arange(PAIRS)
    origin[..., 1] = np.arange(ranks)[:, None]
    weight = np.zeros((ranks, PAIRS, 8), np.float32)
    weight[..., 0] = 2.0 ** random.integers(-2, 3, (ranks, PAIRS))
    got = np.zeros((ranks, 1, LOCAL), np.int32)
    y = np.zeros_like(x)
    compiled(ManyExperts, ranks)(torch.from_numpy(x).bfloat16(), chosen, origin, weight, got, y)
    assert (got.ravel() == number).all()
    factors = (weight[..., 0].reshape(chosen.shape) * (chosen + 1)).sum(axis=2, keepdims=True)
    assert (y == x * factors).all()
