"""A wrapper for the devices, and a Python function that looks at what they have made: it raises when something is
wrong, or another one takes its place when workers are prepared."""

import numpy as np
import pytest

import pypto.language as pl
from launch import compiled, numbers
from pypto.runtime import empty_shared
from pypto.runtime.distributed_runner import _tensor_from_continuous

N = 128
Square = pl.Tensor[[N, N], pl.FP32]


@pl.program
class Checked:
    @pl.function(type=pl.FunctionType.InCore)
    def tile_add(self, a: Square, b: Square, f: pl.Out[Square]) -> pl.Tensor[[N, N], pl.FP32]:
        return pl.store(pl.add(pl.load(a, [0, 0], [N, N]), pl.load(b, [0, 0], [N, N])), [0, 0], f)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip_orch(self, a: Square, b: Square, f: pl.Out[Square]) -> pl.Tensor[[N, N], pl.FP32]:
        out_f = self.tile_add(a, b, f)
        return out_f

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def verify(f: Square):
        expected = torch.full((128, 128), 5.0)  # noqa: F821
        if not torch.allclose(f, expected):  # noqa: F821
            raise AssertionError(f"max diff = {(f - expected).abs().max().item()}")

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host_orch(self, a: Square, b: Square, f: pl.Out[Square]) -> pl.Tensor[[N, N], pl.FP32]:
        out_f = self.chip_orch(a, b, f)
        self.verify(out_f)
        return out_f


def test_results_are_verified(ranks, transport):
    run = compiled(Checked, ranks)
    a, b, f = (np.full((N, N), value, np.float32) for value in (2, 3, 0))
    run(a, b, f)
    assert (f == 5).all()
    with pytest.raises(RuntimeError, match="sub_worker: AssertionError: max diff = 1.0"):
        run(a, np.full_like(b, 4), f)
    run(a, b, f)


def test_another_function_verifies(ranks, transport):
    run = compiled(Checked, ranks)
    a, b, f = numbers(N, N), numbers(N, N, first=7), np.zeros((N, N), np.float32)
    mark = empty_shared((2,), np.int64)

    def verify(args):
        mark[0] += 1
        mark[1] = int(_tensor_from_continuous(args[0]).sum().item() == (a + b).sum())

    with run.prepare(callbacks={"verify": verify}) as worker:
        worker(a, b, f)
        worker(a, b, f)
    assert (f == a + b).all() and mark.tolist() == [2, 1]
    with pytest.raises(ValueError, match="not sub-workers"):
        run.prepare(callbacks={"verifi": verify})
