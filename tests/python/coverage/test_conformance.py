"""The conformance kernels: small programs with the result that each must produce."""

import textwrap

import numpy as np
import pytest

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers
from programs import config, from_text

G = pl.dynamic("G")
W = 32

# ---- A: a ring shift; rank r ends with the row of rank r - 1 ----


@pl.program
class Shift:
    @pl.function(type=pl.FunctionType.InCore)
    def hop(
        self,
        a: pl.Tensor[[1, W], pl.FP32],
        z: pl.Out[pl.Tensor[[1, W], pl.FP32]],
        box: pl.InOut[pld.DistributedTensor[[1, W], pl.FP32]],
        bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
        nxt: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, W], pl.FP32]:
        t = pl.load(a, [0, 0], [1, W])
        pld.tile.remote_store(t, target=box, peer=nxt, offsets=[0, 0])
        pld.system.notify(bell, peer=nxt, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        return pl.store(pl.load(box, [0, 0], [1, W]), [0, 0], z)

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


def test_ring_shift(ranks, transport):
    a = numbers(ranks, 1, W)
    z = np.zeros_like(a)
    compiled(Shift, ranks)(a, z)
    assert (z == np.roll(a, 1, axis=0)).all()


# ---- B: publish, exchange, consume; each rank's tasks in order, the ranks side by side ----


@pl.program
class PublishAndCollect:
    @pl.function(type=pl.FunctionType.InCore)
    def publish_kernel(
        self,
        a: pl.Tensor[[1, W], pl.FP32],
        d: pl.InOut[pld.DistributedTensor[[1, W], pl.FP32]],
        s: pl.InOut[pld.DistributedTensor[[G], pl.INT32]],
    ):
        ctx = pld.get_comm_ctx(d)
        d = pl.store(pl.load(a, [0, 0], [1, W]), [0, 0], d)
        for peer in pl.range(pld.nranks(ctx)):
            pld.system.notify(
                s, peer=peer, offsets=[pld.rank(ctx)], value=1, op=pld.NotifyOp.AtomicAdd
            )

    @pl.function(type=pl.FunctionType.InCore)
    def collect_kernel(
        self,
        d: pl.InOut[pld.DistributedTensor[[1, W], pl.FP32]],
        s: pl.InOut[pld.DistributedTensor[[G], pl.INT32]],
        z: pl.Out[pl.Tensor[[1, W], pl.FP32]],
    ):
        total = pl.tile.full([1, W], dtype=pl.FP32, value=0.0)
        for peer in pl.range(pld.nranks(pld.get_comm_ctx(d))):
            pld.system.wait(s, offsets=[peer], expected=1, cmp=pld.WaitCmp.Ge)
            theirs = pld.tile.remote_load(d, peer=peer, offsets=[0, 0], shape=[1, W])
            total = pl.add(total, theirs)
        z = pl.store(total, [0, 0], z)

    @pl.function(type=pl.FunctionType.Orchestration)
    def publish(
        self,
        a: pl.Tensor[[1, W], pl.FP32],
        d: pl.InOut[pld.DistributedTensor[[1, W], pl.FP32]],
        s: pl.InOut[pld.DistributedTensor[[G], pl.INT32]],
    ):
        self.publish_kernel(a, d, s)

    @pl.function(type=pl.FunctionType.Orchestration)
    def collect(
        self,
        d: pl.InOut[pld.DistributedTensor[[1, W], pl.FP32]],
        s: pl.InOut[pld.DistributedTensor[[G], pl.INT32]],
        z: pl.Out[pl.Tensor[[1, W], pl.FP32]],
    ):
        self.collect_kernel(d, s, z)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, a: pl.Tensor[[G, 1, W], pl.FP32], z: pl.Out[pl.Tensor[[G, 1, W], pl.FP32]]
    ) -> pl.Tensor[[G, 1, W], pl.FP32]:
        dbuf = pld.alloc_window_buffer(W * pl.FP32.get_byte())
        sbuf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        d = pld.window(dbuf, [1, W], dtype=pl.FP32)
        s = pld.window(sbuf, [pld.world_size()], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            self.publish(a[r], d, s, device=r)
        for r in pl.range(pld.world_size()):
            self.collect(d, s, z[r], device=r)
        return z


def test_publish_and_collect(ranks, transport):
    a = numbers(ranks, 1, W)
    z = np.zeros_like(a)
    compiled(PublishAndCollect, ranks)(a, z)
    assert (z == a.sum(axis=0)).all()


# ---- C: three planes in jit form, no windows; the kernel adds the rank to a whole tile ----


@pl.jit.incore
def bump(
    a: pl.Tensor[[1, W], pl.FP32], z: pl.Out[pl.Tensor[[1, W], pl.FP32]], who: pl.Scalar[pl.INT32]
):
    total = pl.add(pl.load(a, [0, 0], [1, W]), pl.cast(who, target_type=pl.FP32))
    z = pl.store(total, [0, 0], z)
    return z


@pl.jit
def per_card(
    a: pl.Tensor[[1, W], pl.FP32], z: pl.Out[pl.Tensor[[1, W], pl.FP32]], who: pl.Scalar[pl.INT32]
):
    return bump(a, z, who)


@pl.jit.host
def everywhere(a: pl.Tensor[[2, 1, W], pl.FP32], z: pl.Out[pl.Tensor[[2, 1, W], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        per_card(a[r], z[r], r, device=r)


def test_three_planes(transport):
    a = numbers(2, 1, W)
    z = np.zeros_like(a)
    everywhere(a, z, config=config(2))
    assert (z[0] == a[0]).all() and (z[1] == a[1] + 1).all()


# ---- D: two independent tasks on tensors of the host function, and one that joins what they made ----


@pl.program
class Join:
    @pl.function(type=pl.FunctionType.InCore)
    def add(
        self,
        a: pl.Tensor[[8, 8], pl.FP32],
        b: pl.Tensor[[8, 8], pl.FP32],
        c: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
    ) -> pl.Tensor[[8, 8], pl.FP32]:
        return pl.store(pl.add(pl.load(a, [0, 0], [8, 8]), pl.load(b, [0, 0], [8, 8])), [0, 0], c)

    @pl.function(type=pl.FunctionType.InCore)
    def subtract(
        self,
        a: pl.Tensor[[8, 8], pl.FP32],
        b: pl.Tensor[[8, 8], pl.FP32],
        c: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
    ) -> pl.Tensor[[8, 8], pl.FP32]:
        return pl.store(pl.sub(pl.load(a, [0, 0], [8, 8]), pl.load(b, [0, 0], [8, 8])), [0, 0], c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def plus(
        self,
        a: pl.Tensor[[8, 8], pl.FP32],
        b: pl.Tensor[[8, 8], pl.FP32],
        c: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
    ) -> pl.Tensor[[8, 8], pl.FP32]:
        return self.add(a, b, c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def minus(
        self,
        a: pl.Tensor[[8, 8], pl.FP32],
        b: pl.Tensor[[8, 8], pl.FP32],
        c: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
    ) -> pl.Tensor[[8, 8], pl.FP32]:
        return self.subtract(a, b, c)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        a: pl.Tensor[[8, 8], pl.FP32],
        b: pl.Tensor[[8, 8], pl.FP32],
        out: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
    ) -> pl.Tensor[[8, 8], pl.FP32]:
        p = pl.create_tensor([8, 8], dtype=pl.FP32)
        q = pl.create_tensor([8, 8], dtype=pl.FP32)
        u: pl.Tensor[[8, 8], pl.FP32] = self.plus(a, b, p)
        v: pl.Tensor[[8, 8], pl.FP32] = self.minus(a, b, q)
        w = self.plus(u, v, out)
        return w


def test_join(ranks, transport):
    a, b = numbers(8, 8), numbers(8, 8, first=300)
    run = compiled(Join, ranks)     # the three tasks go to the devices in turn
    for _ in range(3):
        assert (run(a, b) == 2 * a).all()


# ---- E: a loop with a carry, whose last step is shorter than the others ----


def tail(n):
    @pl.program
    class Tail:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(
            self, src: pl.Tensor[[1, n], pl.FP32], dst: pl.Out[pl.Tensor[[1, n + 8], pl.FP32]]
        ) -> pl.Tensor[[1, n + 8], pl.FP32]:
            for c, (cur,) in pl.range(0, n, 16, init_values=(dst,)):
                k = pl.min(16, n - c)
                part = pl.load(src, [0, c], [1, 16], valid_shape=[1, k])
                cur = pl.store(part, [0, c], cur)
                fin = pl.yield_(cur)
            return fin

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self, src: pl.Tensor[[1, n], pl.FP32], dst: pl.Out[pl.Tensor[[1, n + 8], pl.FP32]]
        ) -> pl.Tensor[[1, n + 8], pl.FP32]:
            return self.copy(src, dst)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            src: pl.Tensor[[G, 1, n], pl.FP32],
            dst: pl.Out[pl.Tensor[[G, 1, n + 8], pl.FP32]],
        ) -> pl.Tensor[[G, 1, n + 8], pl.FP32]:
            for r in pl.range(pld.world_size()):
                self.chip(src[r], dst[r], device=r)
            return dst

    return Tail


@pytest.mark.parametrize("n", [1, 16, 37])
def test_tail(n, ranks, transport):
    src = numbers(ranks, 1, n)
    dst = np.full((ranks, 1, n + 8), -1, np.float32)
    compiled(tail(n), ranks)(src, dst)
    assert (dst[..., :n] == src).all() and (dst[..., n:] == -1).all()


# ---- F: what the class statement must refuse ----

CLASS = """\
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def g(self, x: pl.Tensor[[4, 4], pl.FP32], y: pl.Out[pl.Tensor[[4, 4], pl.FP32]]):
        return pl.store(pl.load(x, [0, 0], [4, 4]), [0, 0], y)

    @pl.function(type=pl.FunctionType.{plane})
    def f(self, x: pl.Tensor[[4, 4], pl.FP32], y: pl.Out[pl.Tensor[[4, 4], pl.FP32]],
          n: pl.Scalar[pl.INT32]):
{body}

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def h(self, x: pl.Tensor[[1, 4, 4], pl.FP32], y: pl.Out[pl.Tensor[[1, 4, 4], pl.FP32]]):
        one = pld.alloc_window_buffer(4)
        two = pld.alloc_window_buffer(4)
        return y
"""
E = pypto.errors


@pytest.mark.parametrize(
    "plane, body, error, words",
    [
        ("InCore", "for i in [1, 2]:\n    pass", E.ParserSyntaxError, r"must use pl.range\(\)"),
        ("InCore", "if n:\n    pass", E.ParserTypeError, "must be a Bool-typed scalar"),
        ("InCore", "y = pl.nonsense(x)", E.InvalidOperationError, "Unknown operation 'pl.nonsense'"),
        ("InCore", "y = zzz", E.UndefinedVariableError, "Undefined variable"),
        ("InCore", "z = [pl.add(x, x) for _ in range(2)]", E.UnsupportedFeatureError, "ListComp"),
        ("Orchestration", "self.g(x)", E.ParserTypeError, r"expects 2 argument\(s\), got 1"),
        ("InCore", "v = x[0, 0, 0]", E.ParserTypeError, "3 indices but the tensor is 2D"),
        (
            "Orchestration",
            "b = pld.alloc_window_buffer(4)",
            E.ParserSyntaxError,
            "can only be called in HOST orchestration context",
        ),
    ],
)
def test_refused_bodies(plane, body, error, words):
    text = CLASS.format(plane=plane, body=textwrap.indent(body, " " * 8))
    with pytest.raises(error, match=words) as caught:
        from_text(text)
    assert caught.value.span["line"] in (9, 10)


@pytest.mark.parametrize(
    "old, new, error, words",
    [
        ("x: pl.Tensor[[4, 4], pl.FP32], y", "x, y", E.ParserTypeError, "missing type annotation"),
        ("two =", "one =", E.ParserSyntaxError, "already declared in this program"),
        (
            "type=pl.FunctionType.InCore",
            "level=pl.Level.HOST, role=pl.Role.SubWorker",
            E.ParserSyntaxError,
            "must not declare 'self'",
        ),
    ],
)
def test_refused_declarations(old, new, error, words):
    text = CLASS.format(plane="InCore", body=" " * 8 + "return y")
    from_text(text)
    with pytest.raises(error, match=words):
        from_text(text.replace(old, new, 1))
