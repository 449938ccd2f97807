"""One run of the quick start with a clock: prints one `name<TAB>milliseconds` line per part.

    first_call    source, key, load (or compile), workers up, run: the first orchestrator(...) call
      front       of it: source to key or emitted C (front end)
      back        of it: the C compiler, or looking up its result
    second_call   the same call again: dispatch, run, copy
    end           pypto.runtime.shutdown()

Run by bench/run.py, in a process of its own each time.
"""

import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
import quickstart_program as program  # noqa: E402
from pypto.ir import DistributedConfig  # noqa: E402
from pypto.runtime import RunConfig, shutdown  # noqa: E402


def milliseconds(action):
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def main():
    config = RunConfig(platform="a2a3", distributed_config=DistributedConfig(device_ids=[0, 1]))
    inputs = torch.arange(2 * program.SIZE, dtype=torch.float32).reshape(2, 1, program.SIZE)
    outputs = torch.zeros_like(inputs)
    first = milliseconds(lambda: program.orchestrator(inputs, outputs, config=config))
    stats = program.orchestrator.stats
    second = milliseconds(lambda: program.orchestrator(inputs, outputs, config=config))
    end = milliseconds(shutdown)
    if not torch.equal(outputs[0], inputs.sum(0)):
        sys.exit("the result is wrong")
    print(f"first_call\t{first:.3f}")
    print(f"front\t{stats['front_ns'] / 1e6:.3f}")
    print(f"back\t{stats['back_ns'] / 1e6:.3f}")
    print(f"second_call\t{second:.3f}")
    print(f"end\t{end:.3f}")


main()
