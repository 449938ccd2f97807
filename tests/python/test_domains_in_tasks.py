"""A communication domain that a wrapper asks for may go where its windows go: into kernels, by any way to start one, and into
scopes. "A ctx may also be a function parameter and then feeds rank/nranks." """

import numpy as np
import pytest

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir import DistributedConfig
from programs import config, from_text

TEXT = """
@pl.jit.incore
def note(y: pl.Out[pl.Tensor[[1, 8], pl.INT32]], ctx: pld.CommCtx, at: pl.Scalar[pl.INDEX] = 0):
    y[0, at] = pld.rank(ctx)
    y[0, at + 1] = pld.nranks(ctx)
    return y

@pl.jit
def w(y: pl.Out[pl.Tensor[[1, 8], pl.INT32]], d: pl.InOut[pld.DistributedTensor[[1, 8], pl.INT32]],
      e: pl.InOut[pld.DistributedTensor[[NR, 4], pl.INT32]]):
    ctx = pld.get_comm_ctx(d)
{body}

@pl.jit.host
def h(y: pl.Out[pl.Tensor[[NR, 1, 8], pl.INT32]]):
    d_buf = pld.alloc_window_buffer(32)
    e_buf = pld.alloc_window_buffer(16 * pld.world_size())
    for r in pl.range(pld.world_size()):
        d = pld.window(d_buf, [1, 8], dtype=pl.INT32)
        e = pld.window(e_buf, [pld.world_size(), 4], dtype=pl.INT32)
        w(y[r], d, e, device=r)
    return y
"""
BODIES = {
    "a kernel": "note(y, ctx)",
    "by name, unnamed": "note(ctx=pld.get_comm_ctx(d), y=y)",
    "of a dynamic window, of a part": "note(y, pld.get_comm_ctx(e))\nnote(y, pld.get_comm_ctx(d[0:1, 0:4]))",
    "another name": "same = ctx\nnote(y, same)",
    "a scope": "with pl.at(level=pl.Level.CORE_GROUP):\n    y[0, 0] = pld.rank(ctx)\n    y[0, 1] = pld.nranks(ctx)",
    "a scope that calls a kernel": "with pl.at(level=pl.Level.CORE_GROUP):\n    note(y, ctx)",
    "blocks": "for i in pl.spmd(2):\n    y[0, i] = pld.rank(ctx) if i == 0 else pld.nranks(ctx)",
    "a loop": "for i in pl.range(2):\n    note(y, ctx)\n    with pl.at(level=pl.Level.CORE_GROUP):\n        y[0, 1] = pld.nranks(ctx)",
}


def host(body):
    return from_text(TEXT.format(body="".join(f"    {line}\n" for line in body.splitlines())))["h"]


@pytest.mark.parametrize("way", BODIES)
def test_ways_into_a_task(way):
    h = host(BODIES[way])
    for devices in (1, 2, 5):
        y = np.full((devices, 1, 8), -1, np.int32)
        h(y, config=config(devices))
        assert (y[:, 0, 0] == np.arange(devices)).all() and (y[:, 0, 1] == devices).all()


def test_many_ranks(transport):
    y = np.full((64, 1, 8), -1, np.int32)
    host("note(y, ctx)")(y, config=config(64))
    assert (y[:, 0, 0] == np.arange(64)).all() and (y[:, 0, 1] == 64).all()


@pl.program
class Submitted:
    @pl.function(type=pl.FunctionType.InCore)
    def note(
        self, y: pl.Out[pl.Tensor[[1, 2], pl.INT32]], ctx: pld.CommCtx
    ) -> pl.Tensor[[1, 2], pl.INT32]:
        pl.write(y, [0, 0], pld.rank(ctx))
        pl.write(y, [0, 1], pld.nranks(ctx))
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        y: pl.Out[pl.Tensor[[1, 2], pl.INT32]],
        z: pl.Out[pl.Tensor[[1, 2], pl.INT32]],
        low: pl.InOut[pld.DistributedTensor[[1, 2], pl.INT32]],
        high: pl.InOut[pld.DistributedTensor[[1, 2], pl.FP32]],
    ):
        of_low = pld.get_comm_ctx(low)
        y, first = pl.submit(self.note, y, of_low)
        z, second = pl.submit(self.note, z, pld.get_comm_ctx(high), deps=[first])

    @pl.function(type=pl.FunctionType.Orchestration)
    def alone(
        self,
        y: pl.Out[pl.Tensor[[1, 2], pl.INT32]],
        w: pl.InOut[pld.DistributedTensor[[1, 2], pl.INT32]],
    ):
        y = self.note(y, pld.get_comm_ctx(w))

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, y: pl.Out[pl.Tensor[[3, 1, 2], pl.INT32]], z: pl.Out[pl.Tensor[[3, 1, 2], pl.INT32]]
    ):
        low_buf = pld.alloc_window_buffer(8)
        high_buf = pld.alloc_window_buffer(8)
        low = pld.window(low_buf, [1, 2], dtype=pl.INT32)
        high = pld.window(high_buf, [1, 2], dtype=pl.FP32)
        self.alone(y[0], low, device=0)
        self.chip(y[1], z[1], low, high, device=1)
        self.chip(y[2], z[2], low, high, device=2)


def test_submitted_with_two_domains_in_class_form(transport):
    """The kernel is told which domain: device 1 is rank 1 of {0, 1, 2} and rank 0 of {1, 2}."""
    compiled = ir.compile(
        Submitted, platform="cpu", distributed_config=DistributedConfig(device_ids=[0, 1, 2])
    )
    y, z = np.full((2, 3, 1, 2), -1, np.int32)
    compiled(y, z)
    assert y.tolist() == [[[0, 3]], [[1, 3]], [[2, 3]]]
    assert z.tolist() == [[[-1, -1]], [[0, 2]], [[1, 2]]]


@pytest.mark.parametrize(
    "body, problem",
    [
        ("note(y, d)", "argument 'ctx' of 'note' must be a CommCtx, not a DistributedTensor"),
        (
            "f = pl.read(y, [0, 0])\nif f > 0:\n    c = ctx\nelse:\n    c = pld.get_comm_ctx(e)\nnote(y, c)",
            "argument 'ctx' of 'note' must be a CommCtx of one window, not one that the path decides",
        ),
        ("note(y, 1)", "argument 'ctx' of 'note' must be a CommCtx, not a Scalar"),
    ],
)
def test_what_is_no_domain(body, problem):
    with pytest.raises(pypto.Error, match="PYPTO-S111") as caught:
        host(body)(np.zeros((1, 1, 8), np.int32), config=config(1))
    assert problem in str(caught.value)


def test_a_host_function_has_none():
    text = TEXT.format(body="    pass").replace("w(y[r], d, e, device=r)", "note(y[r], d, device=r)")
    with pytest.raises(pypto.Error, match="'note' takes a communication domain, which a host function cannot"):
        from_text(text)["h"](np.zeros((1, 1, 8), np.int32), config=config(1))
