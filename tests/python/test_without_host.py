"""Programs without a host function: an orchestration that Python starts on one device."""

import os

import numpy as np
import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir import CompiledProgram, DistributedCompiledProgram, DistributedConfig
from pypto.runtime import ChipWorker, RunConfig

M = pl.dynamic("M")
W = 32
Row = pl.Tensor[[1, W], pl.FP32]


@pl.program
class AddAndSub:
    @pl.function(type=pl.FunctionType.InCore)
    def add(self, a: Row, b: Row, z: pl.Out[Row]) -> Row:
        return pl.store(pl.add(pl.load(a, [0, 0], [1, W]), pl.load(b, [0, 0], [1, W])), [0, 0], z)

    @pl.function(type=pl.FunctionType.InCore)
    def sub(self, a: Row, b: Row, z: pl.Out[Row]) -> Row:
        return pl.store(pl.sub(pl.load(a, [0, 0], [1, W]), pl.load(b, [0, 0], [1, W])), [0, 0], z)

    @pl.function(type=pl.FunctionType.Orchestration)
    def orch_sub(self, a: Row, b: Row, z: pl.Out[Row]) -> Row:
        return self.sub(a, b, z)

    @pl.function(type=pl.FunctionType.Orchestration)
    def orch_add(self, a: Row, b: Row, z: pl.Out[Row]) -> Row:
        return self.add(a, b, z)


@pl.program
class Scale:
    """Two outputs, a dynamic dimension behind arithmetic, a scalar."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[M * 2, W], pl.FP32],
        twice: pl.Out[pl.Tensor[[M * 2, W], pl.FP32]],
        k: pl.Scalar[pl.INT32],
        rows: pl.Out[pl.Tensor[[M, 1], pl.INT32]],
    ):
        for i in pl.range(M * 2):
            pl.store(pl.mul(pl.load(a, [i, 0], [1, W]), pl.cast(k, pl.FP32)), [i, 0], twice)
        for i in pl.range(M):
            pl.write(rows, [i, 0], M)

    @pl.function(type=pl.FunctionType.Orchestration)
    def orch(
        self,
        a: pl.Tensor[[M * 2, W], pl.FP32],
        twice: pl.Out[pl.Tensor[[M * 2, W], pl.FP32]],
        k: pl.Scalar[pl.INT32],
        rows: pl.Out[pl.Tensor[[M, 1], pl.INT32]],
    ) -> tuple[pl.Tensor[[M * 2, W], pl.FP32], pl.Tensor[[M, 1], pl.INT32]]:
        self.kernel(a, twice, k, rows)
        return twice, rows


def rows(make=np.ones, count=1):
    return make((count, W), dtype=torch.float32 if make is torch.ones else np.float32)


# ---- class form ----


@pytest.mark.parametrize("make", [np.ones, torch.ones])
def test_one_orchestration_is_called_directly(make, transport):
    @pl.program
    class Double:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, a: Row, z: pl.Out[Row]) -> Row:
            return pl.store(pl.mul(pl.load(a, [0, 0], [1, W]), 2.0), [0, 0], z)

        @pl.function(type=pl.FunctionType.Orchestration)
        def orch(self, a: Row, z: pl.Out[Row]) -> Row:
            return self.kernel(a, z)

    run = ir.compile(Double, platform="cpu")
    assert type(run) is CompiledProgram
    a = rows(make)
    z = a * 0
    assert run(a, z) is None and (z == 2).all()
    result = run(a, config=RunConfig(platform="cpu", device_id=3))
    assert type(result) is type(a) and (result == 2).all()
    assert (run.param_names, run.output_indices, run.has_return) == (["a", "z"], [1], True)
    assert (run.name, run.platform, run.backend_type) == ("orch", "cpu", "Ascend910B")
    assert run.program is Double and run.orchestration_names == []
    assert (run["orch"](a) == 2).all()
    with pytest.raises(TypeError, match=r"expects 2 \(in-place\) or 1 \(return\)"):
        run()
    with pytest.raises(AttributeError, match="no attribute 'orch'"):
        run.orch  # there is nothing to select


def test_a_result_that_is_an_argument_is_not_made():
    """A program that returns its InOut only is called in place, and gives nothing else."""

    @pl.program
    class Twice:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, a: pl.InOut[Row]) -> Row:
            return pl.store(pl.mul(pl.load(a, [0, 0], [1, W]), 2.0), [0, 0], a)

        @pl.function(type=pl.FunctionType.Orchestration)
        def orch(self, a: pl.InOut[Row]) -> Row:
            return self.kernel(a)

    run, a = ir.compile(Twice, platform="cpu"), rows()
    assert run(a) is None and (a == 2).all()
    assert run.has_return and run.output_indices == []
    with pytest.raises(TypeError, match=r"expects 1 \(in-place\) arguments \(a\), got 0"):
        run()


def test_whose_tensors_a_call_in_return_style_makes():
    """Of resident tensors, the library that their element type is of."""

    @pl.program
    class Double:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, a: Row, z: pl.Out[Row]) -> Row:
            return pl.store(pl.mul(pl.load(a, [0, 0], [1, W]), 2.0), [0, 0], z)

        @pl.function(type=pl.FunctionType.Orchestration)
        def orch(self, a: Row, z: pl.Out[Row]) -> Row:
            return self.kernel(a, z)

    run = ir.compile(Double, platform="cpu")
    with ChipWorker(RunConfig(platform="cpu")) as worker:
        for dtype, kind in ((torch.float32, torch.Tensor), (np.float32, np.ndarray), (pl.FP32, torch.Tensor)):
            made = run(worker.alloc_tensor((1, W), dtype, init=np.ones((1, W), np.float32)))
            assert isinstance(made, kind) and (made == 2).all()


@pytest.mark.parametrize("count", [1, 3])
def test_dimensions_and_scalars(count, transport):
    run = ir.compile(Scale, platform="cpu")
    a, twice = rows(count=2 * count), rows(count=2 * count)
    numbers = np.zeros((count, 1), np.int32)
    run(a, twice, 3, numbers)
    assert (twice == 3).all() and (numbers == count).all()
    with pytest.raises(ValueError, match="contains dynamic dimensions"):
        run(a, 3)


def test_dimensions_that_do_not_agree():
    run = ir.compile(Scale, platform="cpu")
    numbers = np.zeros((1, 1), np.int32)
    with pytest.raises(TypeError, match="'twice'"):
        run(rows(count=2), rows(count=4), 3, numbers)
    with pytest.raises(ValueError, match=r"'a' does not have the extent.*M \* 2"):
        run(rows(count=3), rows(count=3), 3, numbers)


def test_several_orchestrations_are_selected(tmp_path, transport):
    run = ir.compile(AddAndSub, platform="cpu", output_dir=tmp_path / "out")
    assert run.orchestration_names == ["orch_add", "orch_sub"]
    a, b = rows() * 5, rows()
    assert (run["orch_add"](a, b) == 6).all()
    assert (run.orch_sub(a, b, config=RunConfig(platform="cpu")) == 4).all()
    with pytest.raises(TypeError, match="select one explicitly"):
        run(a, b, rows())
    with pytest.raises(TypeError, match="Multi-orch"):
        run.param_names
    with pytest.raises(KeyError, match=r"nothing.*orch_add, orch_sub"):
        run["nothing"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        run.nothing
    one = run.orch_add
    assert one.name == "orch_add" and one.param_names == ["a", "b", "z"]
    assert one.output_dir == run.output_dir / "next_levels" / "orch_add"
    assert (one.output_dir / "program.c").exists() and one.output_indices == [2]
    assert {"orch_add", "orch_sub", "orchestration_names"} <= set(dir(run))


def test_a_compiled_program_stands_for_its_directory(tmp_path):
    run = ir.compile(AddAndSub, output_dir=tmp_path / "one")
    same = ir.compile(AddAndSub, output_dir=tmp_path / "other" / ".." / "one")
    other = ir.compile(AddAndSub, output_dir=tmp_path / "two")
    assert run == same and hash(run) == hash(same) and run != other
    assert run == str(tmp_path / "one") and run != 1
    assert os.fspath(run) == str(run) == str((tmp_path / "one").resolve())


def test_a_single_kernel_is_a_program():
    @pl.program
    class Copy:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(self, a: Row, z: pl.Out[Row]) -> Row:
            return pl.store(pl.load(a, [0, 0], [1, W]), [0, 0], z)

    assert (ir.compile(Copy, platform="cpu")(rows()) == 1).all()


def test_programs_without_an_entry():
    @pl.program
    class Kernels:
        @pl.function(type=pl.FunctionType.InCore)
        def one(self, a: Row):
            pl.load(a, [0, 0], [1, W])

        @pl.function(type=pl.FunctionType.InCore)
        def two(self, a: Row):
            pl.load(a, [0, 0], [1, W])

    with pytest.raises(ValueError, match="no Orchestration function"):
        ir.compile(Kernels)


def test_windows_need_a_host_function():
    Box = pld.DistributedTensor[[1, W], pl.FP32]

    @pl.program
    class Windows:
        @pl.function(type=pl.FunctionType.Orchestration)
        def orch(self, a: Row, box: pl.InOut[Box]):
            pass

    with pytest.raises(pl.parser.ParserError, match="'orch' takes a window") as caught:
        ir.compile(Windows)
    assert "host function" in caught.value.hint


# ---- jit form ----


@pl.jit.incore
def double(a: pl.Tensor, z: pl.Out[pl.Tensor], k: pl.INT32 = 2):
    z = pl.store(pl.mul(pl.load(a, [0, 0], [1, W]), pl.cast(k, pl.FP32)), [0, 0], z)
    return z


@pl.jit
def wrapper(a: pl.Tensor, z: pl.Out[pl.Tensor], k: pl.INT32 = 2):
    return double(a, z, k)


def test_a_wrapper_is_called(transport):
    a, z = rows(), rows()
    assert wrapper(a, z) is None and (z == 2).all()
    wrapper(a, z, k=5, config=RunConfig(platform="cpu", device_id=1))
    assert (z == 5).all()
    config = RunConfig(platform="cpu", distributed_config=DistributedConfig(device_ids=[0, 1]))
    wrapper(a, z, 7, config=config)
    assert (z == 7).all()


def test_a_wrapper_is_compiled():
    a = rows()
    run = wrapper.compile(a, rows(), 3)
    assert type(run) is CompiledProgram and run is wrapper.compile(a, rows(), 3)
    assert run is not wrapper.compile(a, rows(), 4)
    z = rows()
    run(a, z)  # the number is baked in
    assert (z == 3).all() and (run(a) == 3).all()
    config = RunConfig(distributed_config=DistributedConfig())
    assert isinstance(wrapper.compile(a, z, config=config), DistributedCompiledProgram)
    assert list(wrapper.lower(a, z).functions) == ["double", "wrapper"]


def test_a_kernel_is_not_called_alone():
    for start in (double, double.compile, double.lower):
        with pytest.raises(TypeError, match="in-core kernel.*call the wrapper"):
            start(rows(), rows())


def test_tiles_larger_than_the_memory_say_how_large():
    @pl.jit.incore
    def huge(y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
        t = pl.tile.full([1, 1 << 50], pl.FP32, 1.0)
        pl.store(t[0:1, 0:8], [0, 0], y)

    @pl.jit
    def chip(y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
        huge(y)

    with pytest.raises(MemoryError, match="huge failed on rank 0: no memory for its [0-9]+ MiB of tiles"):
        chip(np.zeros((1, 8), np.float32), config=RunConfig(platform="cpu"))
