"""Python in the middle of a program: a callback looks at what the devices have made, and says what it has found.

Each rank squares its row of candidates. Then `on_scores` runs, in a copy of this process, on the very memory of the scores: it
notes the best one in shared memory, which this process reads. A score that makes no sense raises an exception there, which fails
the call here.

    python examples/runtime/callback.py [--devices 0,1] [--platform cpu] [--compile-only]
"""

import sys
from pathlib import Path

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.runtime import empty_shared
from pypto.runtime.distributed_runner import _tensor_from_continuous

sys.path.append(str(Path(__file__).resolve().parents[1]))
from running import config, finish, options  # noqa: E402

NR = pl.dynamic("NR")
WIDTH = 64
LIMIT = 1e6


@pl.program
class Scores:
    @pl.function(type=pl.FunctionType.InCore)
    def square_kernel(self, x: pl.Tensor[[1, WIDTH], pl.FP32], y: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]]):
        row = pl.load(x, [0, 0], [1, WIDTH])
        y = pl.store(pl.mul(row, row), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def square(self, x: pl.Tensor[[1, WIDTH], pl.FP32], y: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]]):
        self.square_kernel(x, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def on_scores(y: pl.Tensor[[NR, 1, WIDTH], pl.FP32]): ...  # who prepares workers says what it does

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def score(self, x: pl.Tensor[[NR, 1, WIDTH], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, WIDTH], pl.FP32]]):
        for r in pl.range(pld.world_size()):
            self.square(x[r], y[r], device=r)
        self.on_scores(y)                           # when all ranks are done: it takes what they write


if __name__ == "__main__":
    arguments = options()
    run = config(arguments)
    program = ir.compile(
        Scores, platform=run.platform, distributed_config=run.distributed_config
    )
    if arguments.compile_only:
        sys.exit()
    best = empty_shared((2,), np.float32)           # memory that both processes see

    def on_scores(args):
        scores = _tensor_from_continuous(args[0]).reshape(-1)
        if float(scores.max()) > LIMIT:
            raise ValueError(f"a score of {float(scores.max())}")
        best[:] = float(scores.max()), int(scores.argmax())

    n = len(arguments.devices)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, 1, WIDTH)).astype(np.float32)
    y = np.zeros_like(x)
    with program.prepare(callbacks={"on_scores": on_scores}) as worker:
        worker(x, y)
        correct = np.array_equal(y, x * x) and best.tolist() == [y.max(), y.argmax()]
        print(f"best of {x.size}: {best[0]:.3f}, number {int(best[1])}")
        try:
            worker(x * 1e4, y)
        except RuntimeError as error:
            print(str(error).splitlines()[0].partition("sub_worker: ")[2])
            correct = correct and "sub_worker: ValueError: a score of" in str(error)
        worker(x, y)                                # the worker goes on
    finish(correct and np.array_equal(y, x * x))
