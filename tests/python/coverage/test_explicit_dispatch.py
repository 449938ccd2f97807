"""Programs of one worker that are registered and called by handles; dispatches without `device=` go around; what
one program leaves in a resident tensor another one reads."""

import logging

import numpy as np
import pytest

import pypto.language as pl
from launch import compiled, numbers
from programs import config
from pypto.ir import DistributedCompiledProgram
from pypto.runtime import DistributedWorker
from test_multi_program_kv_cache import append, attend

N = 16


@pl.program
class Both:
    """Two wrappers, dispatched without a device: a + b, and a - b."""

    @pl.function(type=pl.FunctionType.InCore)
    def add_kernel(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        y: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        return pl.store(pl.add(pl.load(a, [0, 0], [N, N]), pl.load(b, [0, 0], [N, N])), [0, 0], y)

    @pl.function(type=pl.FunctionType.InCore)
    def sub_kernel(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        y: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        return pl.store(pl.sub(pl.load(a, [0, 0], [N, N]), pl.load(b, [0, 0], [N, N])), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def add(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        y: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        return self.add_kernel(a, b, y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def sub(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        y: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        return self.sub_kernel(a, b, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        total: pl.Out[pl.Tensor[[N, N], pl.FP32]],
        rest: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ):
        self.add(a, b, total)
        self.sub(a, b, rest)


def test_explicit_dispatch(ranks, transport):
    program = compiled(Both, ranks)
    a, b = numbers(N, N), numbers(N, N, first=300)
    worker = program.prepare()
    handle = worker.register(program)
    assert handle.compiled is program and not handle.closed
    for form in (handle, worker, lambda *args: worker.run(program, *args)):
        total, rest = np.zeros_like(a), np.zeros_like(a)
        assert form(a, b, total, rest) is None
        assert (total == a + b).all() and (rest == a - b).all()
    worker.close()
    assert handle.closed
    with pytest.raises(RuntimeError, match="called after close"):
        worker.run(program, a, b, a.copy(), a.copy())


@pytest.mark.parametrize("persistent", [False, True])
def test_dispatches_without_device_go_around(persistent, transport):
    """The second is on rank 1, if there is one: a tensor of rank 0 is none of its."""
    a = numbers(N, N)
    for ranks in (1, 2):
        program = compiled(Both, ranks)
        with program.prepare(persistent=persistent) as worker:
            resident = worker.alloc_tensor((N, N), pl.FP32, init=np.zeros_like(a))
            rest = np.zeros_like(a)
            if ranks == 1:
                worker(a, resident, a.copy(), rest)
                assert (rest == a).all()
            else:
                with pytest.raises(ValueError, match="'b' is dispatched on rank 1, but is resident on rank 0"):
                    worker(a, resident, a.copy(), rest)


def test_two_programs(ranks, transport, caplog):
    caplog.set_level(logging.DEBUG)
    sample = np.zeros((N, N), np.float32)
    first = append.compile(sample, sample, config=config(ranks))
    second = attend.compile(sample, sample, sample, config=config(ranks))
    with DistributedWorker([first, second]) as worker:
        cache = worker.alloc_tensor((N, N), pl.FP32)
        assert len(worker._owned_tensors) == 1
        for step in range(3):
            new, query, out = numbers(N, N, first=step), numbers(N, N, first=600), np.zeros_like(sample)
            worker.run(first, new, cache)
            worker.run(second, query, cache, out)
            assert (out == query + new).all()
        with pytest.raises(TypeError, match="ambiguous"):
            worker(query, cache, out)
    assert len(worker._owned_tensors) == 0
    assert not [record for record in caplog.records if "leaking" in record.getMessage()]


def test_compiled_for_samples(ranks, transport):
    sample = np.zeros((N, N), np.float32)
    program = append.compile(sample, sample, config=config(ranks))
    assert isinstance(program, DistributedCompiledProgram)
    new, cache = numbers(N, N), np.zeros((N, N), np.float32)
    with program.prepare() as worker:
        worker(new, cache)
    assert (cache == new).all()
