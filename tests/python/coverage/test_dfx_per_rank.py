"""`pl.dynamic` written inline, twice: both are the same dimension, because they have the same name. And the records of
a call, which each rank has of its own."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from launch import compiled, numbers
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig

ROWS, COLUMNS = 16, 32


@pl.program
class InlineDynamic:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
        c: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLUMNS], pl.FP32]:
        for i in pl.parallel(ROWS):
            row = pl.slice(a, [1, COLUMNS], [i, 0])
            c = pl.assemble(c, pl.add(row, row), [i, 0])
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        a: pl.Tensor[[ROWS, COLUMNS], pl.FP32],
        c: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLUMNS], pl.FP32]:
        return self.kernel(a, c)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        a: pl.Tensor[[pl.dynamic("NR"), ROWS, COLUMNS], pl.FP32],
        c: pl.Out[pl.Tensor[[pl.dynamic("NR"), ROWS, COLUMNS], pl.FP32]],
    ):
        for r in pl.range(pld.world_size()):
            self.chip(a[r], c[r], device=r)


def test_dfx_per_rank(ranks, transport):
    a = numbers(ranks, ROWS, COLUMNS)
    c = np.zeros_like(a)
    compiled(InlineDynamic, ranks)(a, c)
    assert (c == a + a).all()


def test_the_two_are_one_dimension(transport):
    with pytest.raises((TypeError, ValueError), match="NR"):
        compiled(InlineDynamic, 2)(numbers(2, ROWS, COLUMNS), numbers(3, ROWS, COLUMNS))


def has_content(path):
    return path.is_file() and path.stat().st_size > 0


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim"])
@pytest.mark.parametrize("devices", [2, 4])
def test_profiles(devices, platform, tmp_path, transport):
    program = ir.compile(
        InlineDynamic,
        output_dir=tmp_path,
        platform=platform,
        distributed_config=DistributedConfig(device_ids=list(range(devices))),
    )
    a = numbers(devices, ROWS, COLUMNS)
    c = np.zeros_like(a)
    program(a, c, config=RunConfig(platform=platform, enable_dep_gen=True, enable_scope_stats=True))
    assert (c == a + a).all()
    for rank in range(devices):
        folder = program.output_dir / "dfx_outputs" / f"rank{rank}" / "d0"
        assert has_content(folder / "deps.json")
        assert has_content(folder / "scope_stats" / "scope_stats.jsonl")
    c[:] = 0
    program(a, c, config=RunConfig(platform=platform, enable_chip_swimlane=True))
    assert (c == a + a).all()
    for rank in range(devices):
        folder = program.output_dir / "dfx_outputs" / f"rank{rank}" / "d0"
        assert has_content(folder / "chip_swimlane_records.json")
        assert has_content(folder / "deps.json")
        assert any(has_content(trace) for trace in folder.glob("merged_swimlane_*.json"))


def test_data_is_updated_once(transport):
    """A call that is recorded runs once: what it adds to is added to once."""

    @pl.program
    class Adds:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, c: pl.InOut[pl.Tensor[[ROWS, COLUMNS], pl.FP32]]):
            return pl.store(pl.add(pl.load(c, [0, 0], [ROWS, COLUMNS]), 1.0), [0, 0], c)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, c: pl.InOut[pl.Tensor[[ROWS, COLUMNS], pl.FP32]]):
            c = self.kernel(c)
            return c

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, c: pl.InOut[pl.Tensor[[pl.dynamic("NR"), ROWS, COLUMNS], pl.FP32]]):
            for r in pl.range(pld.world_size()):
                self.chip(c[r], device=r)

    c = np.zeros((2, ROWS, COLUMNS), np.float32)
    program = compiled(Adds, 2)
    program(c, config=RunConfig(platform="cpu", enable_chip_swimlane=True))
    assert (c == 1).all()
