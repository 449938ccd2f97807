"""What a program did: a recorded call, what it says of each task, and how long a call takes.

On each device one task waits for its left neighbour's row while another one computes; the records show that it
did not hold that up.

    python examples/runtime/recorded_run.py [--devices 0,1] [--platform cpu] [--compile-only]
"""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.runtime import benchmark

sys.path.append(str(Path(__file__).resolve().parents[1]))
from running import config, finish, options  # noqa: E402

NR = pl.dynamic("NR")
WIDTH, TURNS = 64, 200


@pl.jit.incore
def receive(
    row: pl.InOut[pld.DistributedTensor[[1, WIDTH], pl.FP32]],
    bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
    y: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]],
):
    pld.system.wait(bell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    y = pl.store(pl.load(row, [0, 0], [1, WIDTH]), [0, 0], y)
    return y


@pl.jit.incore
def send(
    x: pl.Tensor[[1, WIDTH], pl.FP32],
    row: pl.InOut[pld.DistributedTensor[[1, WIDTH], pl.FP32]],
    bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(row)
    right = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    pld.tile.remote_store(pl.load(x, [0, 0], [1, WIDTH]), row, right, [0, 0])
    pld.system.notify(bell, peer=right, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)


@pl.jit.incore
def work(x: pl.Tensor[[1, WIDTH], pl.FP32], z: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]]):
    total = pl.load(x, [0, 0], [1, WIDTH])
    for turn in pl.range(TURNS):
        total = pl.add(total, 1.0)
    z = pl.store(total, [0, 0], z)
    return z


@pl.jit
def device(
    x: pl.Tensor[[1, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]],
    z: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]],
    row: pl.InOut[pld.DistributedTensor[[1, WIDTH], pl.FP32]],
    bell: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
):
    send(x, row, bell)
    receive(row, bell, y)       # waits for the left neighbour ...
    work(x, z)                  # ... and this runs meanwhile


@pl.jit.host
def shift(
    x: pl.Tensor[[NR, 1, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 1, WIDTH], pl.FP32]],
    z: pl.Out[pl.Tensor[[NR, 1, WIDTH], pl.FP32]],
):
    """y[r] = x[r - 1], and z = x + TURNS"""
    rows = pld.alloc_window_buffer([1, WIDTH], dtype=pl.FP32)
    bells = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        row = pld.window(rows, [1, WIDTH], dtype=pl.FP32)
        bell = pld.window(bells, [1, 1], dtype=pl.INT32)
        device(x[r], y[r], z[r], row, bell, device=r)


def tasks_of(folder):
    """{name: (begin, end)} of the tasks of a dispatch, in ns since the call began."""
    names = json.loads((folder / "name_map.json").read_text())["callable_id_to_name"]
    deps = json.loads((folder / "deps.json").read_text())
    records = json.loads((folder / "chip_swimlane_records.json").read_text())
    kernels = {int(task["task_id"]): names[str(task["kernel_ids"][1])] for task in deps["tasks"]}
    return {kernels[task]: (start, end) for _, task, _, start, end in records["aicore_tasks"]}


if __name__ == "__main__":
    arguments = options()
    run = config(arguments)
    compiled = shift.compile(config=run)
    if arguments.compile_only:
        sys.exit()
    n = len(arguments.devices)
    x = np.arange(n * WIDTH, dtype=np.float32).reshape(n, 1, WIDTH)
    y, z = np.zeros_like(x), np.zeros_like(x)

    compiled(x, y, z, config=dataclasses.replace(run, enable_chip_swimlane=True))
    correct = np.array_equal(y, np.roll(x, 1, axis=0)) and np.array_equal(z, x + TURNS)
    folder = compiled.output_dir / "dfx_outputs"
    for r in range(n):
        tasks = tasks_of(folder / f"rank{r}" / "d0")
        correct = correct and tasks.keys() == {"send", "receive", "work"}
        correct = correct and tasks["send"][1] <= tasks["receive"][0]       # it wrote what that reads
        for name, (start, end) in sorted(tasks.items(), key=lambda item: item[1]):
            print(f"rank {r}: {name:<8} ran from {start / 1000:8.1f} us to {end / 1000:8.1f} us")
    (trace,) = folder.glob("merged_swimlane_*.json")
    print(f"open {trace} in https://ui.perfetto.dev")

    stats = benchmark(compiled, (x, y, z), rounds=20)
    print(f"a call took {stats.device_us_median:.1f} us on its slowest device, {min(stats.call_wall_us):.1f} us in all at best")
    finish(correct and stats.device_us_min > 0)
