"""One run of the quick start with a clock: prints one `name<TAB>milliseconds` line per part.

    compile       source, key and load, or front end, C compiler and load
      front       of it: from the source to the key, or to the emitted C
      back        of it: the C compiler; 0 when its result is in the cache
    workers_up    first call less second call: starting the workers and giving them the program
    call          the second call: stage, dispatch, run, copy back
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
    compiled = milliseconds(lambda: program.orchestrator.compile(inputs, outputs, config=config))
    stats = program.orchestrator.stats
    first = milliseconds(lambda: program.orchestrator(inputs, outputs, config=config))
    second = milliseconds(lambda: program.orchestrator(inputs, outputs, config=config))
    end = milliseconds(shutdown)
    if not torch.equal(outputs[0], inputs.sum(0)):
        sys.exit("the result is wrong")
    print(f"compile\t{compiled:.3f}")
    print(f"front\t{stats['front_ns'] / 1e6:.3f}")
    print(f"back\t{stats['back_ns'] / 1e6:.3f}")
    print(f"workers_up\t{first - second:.3f}")
    print(f"call\t{second:.3f}")
    print(f"end\t{end:.3f}")


main()
