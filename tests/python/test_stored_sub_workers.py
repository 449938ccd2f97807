"""SubWorkers of programs in output directories: what is written, and that a directory runs."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.ir import DistributedCompiledProgram, DistributedConfig
from pypto.runtime.distributed_runner import _tensor_from_continuous

N = 8


@pl.program
class P:
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def halve(y: pl.InOut[pl.Tensor[[N], pl.FP32]]):
        """With a text of its own."""
        import math

        y *= math.sqrt(0.25)
        if y[0] < 0:
            raise ValueError("negative")

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def later(y: pl.InOut[pl.Tensor[[N], pl.FP32]]): ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, y: pl.InOut[pl.Tensor[[N], pl.FP32]]):
        self.halve(y)
        self.later(y)


@pl.program
class Whole:
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def halve(y: pl.InOut[pl.Tensor[[N], pl.FP32]]):
        y *= torch.tensor(0.5)  # noqa: F821

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, y: pl.InOut[pl.Tensor[[N], pl.FP32]]):
        self.halve(y)


@pytest.fixture
def stored(tmp_path):
    def write(program):
        ir.compile(
            program, tmp_path / program.name, platform="cpu", distributed_config=DistributedConfig(device_ids=[0])
        )
        return tmp_path / program.name

    return write


def triple(args):
    _tensor_from_continuous(args[0]).mul_(3)


def test_texts_and_names(stored):
    folder = stored(P) / "sub_workers"
    assert sorted(os.listdir(folder)) == ["__required__.json", "halve.py"]
    assert json.loads((folder / "__required__.json").read_text()) == ["later"]
    text = (folder / "halve.py").read_text()
    assert "@pl" not in text and "\ndef halve(y: pl.InOut" in text and "math.sqrt" in text
    assert json.loads((stored(Whole) / "sub_workers" / "__required__.json").read_text()) == []


def test_a_directory_runs(stored):
    y = np.ones(N, np.float32)
    DistributedCompiledProgram.from_dir(stored(Whole))(y)
    assert (y == 0.5).all()
    program = DistributedCompiledProgram.from_dir(stored(P))
    with pytest.raises(ValueError, match="'later'.*runtime-bound callbacks"):
        program(y)
    with program.prepare(callbacks={"later": triple}) as worker:
        worker(y)
        assert (y == 0.75).all()
        with pytest.raises(RuntimeError, match="sub_worker: ValueError: negative") as caught:
            worker(-y)
        assert "sub_workers/halve.py" in str(caught.value)


def test_a_directory_runs_in_another_process(stored):
    script = """
        import sys
        import numpy as np
        from pypto.ir import DistributedCompiledProgram
        y = np.ones(8, np.float32)
        DistributedCompiledProgram.from_dir(sys.argv[1])(y)
        print(y[0])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(stored(Whole))], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("0.5\n", "")


def test_directories_that_are_refused(stored):
    folder = stored(Whole)
    text = folder / "sub_workers" / "halve.py"
    text.chmod(0o666)
    with pytest.raises(ValueError, match="halve.py.* others may write it"):
        DistributedCompiledProgram.from_dir(folder)
    text.unlink()
    with pytest.raises(ValueError, match="halve.py is missing.*ir.compile"):
        DistributedCompiledProgram.from_dir(folder)
    (folder / "sub_workers" / "__required__.json").write_text("[3]")
    with pytest.raises(ValueError, match="no list of SubWorkers"):
        DistributedCompiledProgram.from_dir(folder)
