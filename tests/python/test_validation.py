"""compiled.validate_ir(): what a program computes against what it should."""

import re

import numpy as np
import pytest
import torch

import pypto.language as pl
from artifact_programs import N, AddAndSub, Double, Sum
from pypto import ir
from pypto.ir import CompiledProgram, DistributedCompiledProgram, DistributedConfig

ROW = np.arange(N, dtype=np.float32).reshape(1, N)
BOTH = np.arange(2 * N, dtype=np.float32).reshape(2, 1, N)


@pytest.fixture(scope="module")
def double(tmp_path_factory):
    return ir.compile(Double, tmp_path_factory.mktemp("double"), platform="cpu")


@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy])
def test_what_is_right(double, make):
    x, y, twice = make(ROW.copy()), make(np.full_like(ROW, -1)), make(2 * ROW)
    for tensors in ([x], (x,), x, {"x": x}, [x, y], {"y": y, "x": x}):
        for expected in (twice, [twice], {"y": twice}):
            assert double.validate_ir(tensors, expected) is None
    double.validate_ir([x], 1.04 * twice)
    assert (np.asarray(y) == -1).all()  # arguments are copies


@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy])
def test_what_is_wrong_is_named(double, make):
    wanted = 2 * ROW
    wanted[0, 3] = wanted[0, 9] = 7
    words = (
        "orch behind passes_dump/07_after_names.ir: output 'y' at [0, 3] is 6.0, expected 7.0 "
        "(rtol=0.05, atol=0.05); 2 of 16 elements differ"
    )
    with pytest.raises(AssertionError, match=re.escape(words)):
        double.validate_ir([make(ROW)], make(wanted))
    double.validate_ir([make(ROW)], make(wanted), rtol=0, atol=11)
    with pytest.raises(AssertionError, match="2 of 16"):
        double.validate_ir([make(ROW)], make(wanted), rtol=0, atol=0)


def test_not_a_number(double):
    row = ROW.copy()
    row[0, 1] = np.nan
    double.validate_ir([row], 2 * row)
    with pytest.raises(AssertionError, match=r"at \[0, 1\] is 2\.0, expected nan"):
        double.validate_ir([ROW], 2 * row)


def test_several_ranks(tmp_path):
    config = DistributedConfig(device_ids=[0, 1])
    compiled = ir.compile(Sum, tmp_path / "out", platform="cpu", distributed_config=config)
    total = np.broadcast_to(BOTH.sum(axis=0), BOTH.shape)
    compiled.validate_ir([BOTH], total)
    DistributedCompiledProgram.from_dir(tmp_path / "out").validate_ir([BOTH], total)
    with pytest.raises(AssertionError, match=r"output 'y' at \[0, 0, 0\]"):
        compiled.validate_ir([BOTH], total + 9)


def test_an_edited_program_is_what_runs(tmp_path):
    compiled = ir.compile(Double, tmp_path, platform="cpu")
    path = tmp_path / "program.c"
    path.write_text(path.read_text().replace("2.0f", "3.0f"))
    compiled.validate_ir([ROW], 2 * ROW)
    CompiledProgram.from_dir(tmp_path).validate_ir([ROW], 3 * ROW)


def test_one_of_several_orchestrations(tmp_path):
    compiled = ir.compile(AddAndSub, tmp_path, platform="cpu")
    compiled.orch_add.validate_ir([ROW, ROW], 2 * ROW)
    with pytest.raises(TypeError, match="Multi-orch"):
        compiled.validate_ir([ROW, ROW], 2 * ROW)


@pl.program
class Flags:
    """Outputs that are no floats, and one that is read, too; nothing is returned."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[1, 8], pl.INT32], count: pl.InOut[pl.Tensor[[1, 8], pl.INT32]], n: pl.Scalar[pl.INT32]):
        pl.store(pl.add(pl.load(count, [0, 0], [1, 8]), pl.mul(pl.load(x, [0, 0], [1, 8]), n)), [0, 0], count)

    @pl.function(type=pl.FunctionType.Orchestration)
    def orch(self, x: pl.Tensor[[1, 8], pl.INT32], count: pl.InOut[pl.Tensor[[1, 8], pl.INT32]], n: pl.Scalar[pl.INT32]):
        self.kernel(x, count, n)


def test_integers_exactly(tmp_path):
    compiled = ir.compile(Flags, tmp_path, platform="cpu")
    x, count = np.full((1, 8), 2**30, np.int32), np.arange(8, dtype=np.int32).reshape(1, 8)
    compiled.validate_ir([x, count, 1], x + count, rtol=0, atol=0)
    compiled.validate_ir({"x": x, "count": count, "n": 1}, {"count": x + count}, rtol=0, atol=0)
    with pytest.raises(AssertionError, match=r"is 1073741824, expected 1073741825"):
        compiled.validate_ir([x, count, 1], x + count + np.eye(1, 8, dtype=np.int32), rtol=0, atol=0)
    assert (count == np.arange(8)).all()


def test_without_stages(double, tmp_path):
    compiled = ir.compile(Double, tmp_path, platform="cpu", dump_passes=False)
    with pytest.raises(FileNotFoundError, match="has no passes_dump.*dump_passes=True"):
        compiled.validate_ir([ROW], 2 * ROW)


@pytest.mark.parametrize(
    "tensors, expected, error, words",
    [
        ([], 2 * ROW, TypeError, r"tensors of orch must be 2, in order \(x, y\), got 0"),
        ([ROW], [ROW, ROW], TypeError, r"expected of orch must be 1, in order \(y\), got 2"),
        ({"z": ROW}, 2 * ROW, ValueError, "there is no 'z'"),
        ({"y": ROW}, 2 * ROW, ValueError, "'x' is missing"),
        ([ROW], {"x": ROW}, ValueError, "there is no 'x'"),
        ([ROW], {}, ValueError, "it is empty"),
        ([ROW], ROW[0], ValueError, r"has shape \(1, 16\), expected has \(16,\)"),
        ([ROW.astype(int)], ROW, TypeError, "dtype"),
    ],
)
def test_what_cannot_be_compared(double, tensors, expected, error, words):
    with pytest.raises(error, match=words):
        double.validate_ir(tensors, expected)
