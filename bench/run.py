"""The figures of the project: `make bench`.

Everything is measured as medians with minimum and maximum over interleaved rounds, because the machines
this runs on are shared. Whole-process figures are paired: each run of the quick start is followed by a run of
its imports alone, and the difference is taken pair by pair.

    run.py [--rounds N] [--peer-rounds N] [--native PATH]
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from beside import PAIRS, beside

ROOT = Path(__file__).resolve().parent.parent
QUICKSTART = ROOT / "examples" / "quickstart.py"
SPLIT = ROOT / "bench" / "quickstart_split.py"
DISPATCH = ROOT / "bench" / "dispatch.py"
COMPILE_SIZE = ROOT / "bench" / "compile_size.py"
# What the quick start imports besides pypto: the floor below which no script of its kind can be.
IMPORTS = "import torch, numpy"


PARTS = ("compile", "front", "back", "workers_up", "call", "end")


def spread(values):
    """Median, minimum, maximum as text."""
    return f"{statistics.median(values):10.3f} {min(values):10.3f} {max(values):10.3f}  n={len(values)}"


def row(name, unit, values):
    print(f"  {name:<34} {unit:<3} {spread(values)}")


def wall_ms(command, env):
    start = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1e3


def split(env):
    """One quick start run with its parts, in milliseconds."""
    done = subprocess.run([sys.executable, str(SPLIT)], env=env, check=True, capture_output=True, text=True)
    return {name: float(value) for name, value in (line.split("\t") for line in done.stdout.splitlines())}


def total(parts):
    """What the quick start costs besides Python and its imports."""
    return parts["compile"] + parts["workers_up"] + parts["call"] + parts["end"]


def quick_start(rounds):
    work = tempfile.mkdtemp(prefix="pypto-bench-")
    env = dict(os.environ, PYPTO_CACHE_DIR=os.path.join(work, "cache"))
    try:
        script = [sys.executable, str(QUICKSTART)]
        imports = [sys.executable, "-c", IMPORTS]
        wall_ms(script, env)
        split(env)
        warm, floor, parts = [], [], []
        for _ in range(rounds):
            warm.append(wall_ms(script, env))
            floor.append(wall_ms(imports, env))
            parts.append(split(env))
        print("Quick start, warm cache (P=2)                     median        min        max")
        row("whole script", "ms", warm)
        row(f"Python and `{IMPORTS}` alone", "ms", floor)
        row("difference, pair by pair", "ms", [a - b for a, b in zip(warm, floor)])
        for part in PARTS:
            row("  " + part, "ms", [p[part] for p in parts])
        row("  compile + workers_up + call + end", "ms", [total(p) for p in parts])
        cold = []
        for _ in range(max(3, rounds // 3)):
            shutil.rmtree(env["PYPTO_CACHE_DIR"], ignore_errors=True)
            cold.append(split(env))
        print("Quick start, cold cache")
        for part in ("compile", "front", "back"):
            row("  " + part, "ms", [p[part] for p in cold])
        row("  sum as above, without cc", "ms", [total(p) - p["back"] for p in cold])
    finally:
        shutil.rmtree(work, ignore_errors=True)


def long_programs(rounds):
    """What a program costs before the C compiler, by its length: linear, and 2,000 lines in less than a second."""
    work = tempfile.mkdtemp(prefix="pypto-bench-")
    env = dict(os.environ, PYPTO_CACHE_DIR=work)
    wall, cpu = {}, {}
    try:
        for _ in range(rounds):
            done = subprocess.run(
                [sys.executable, str(COMPILE_SIZE)], env=env, check=True, capture_output=True, text=True
            )
            for line in done.stdout.splitlines():
                lines, passed, used = line.split("\t")
                wall.setdefault(int(lines), []).append(float(passed))
                cpu.setdefault(int(lines), []).append(float(used))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print("Compiling DSL programs, without cc                median        min        max")
    for lines in wall:
        row(f"{lines} lines", "ms", wall[lines])
        row("  on the CPU", "ms", cpu[lines])
    print("  each length against the one before (CPU medians)")
    sizes = list(cpu)
    for shorter, longer in zip(sizes, sizes[1:]):
        cost = statistics.median(cpu[longer]) / statistics.median(cpu[shorter])
        print(f"    {longer / shorter:.2f} times the lines        {cost:.2f} times the time")


def native(program, ranks):
    print(f"Runtime alone, P={ranks}                               median        min        max")
    done = subprocess.run([str(program), str(ranks)], check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        name, unit, median, *rest = line.split("\t")
        if rest:
            print(f"  {name:<34} {unit:<3} {float(median):10.3f} {float(rest[0]):10.3f} {float(rest[1]):10.3f}  n={rest[2]}")
        else:
            print(f"  {name:<34} {unit:<3} {float(median):10.3f}")


def calls():
    """What a call costs from Python: dispatch.py has its own table."""
    subprocess.run([sys.executable, str(DISPATCH)], check=True)


def transfers(program):
    """One-sided transfers beside memcpy between the same addresses, and the share of their checks."""
    print("Transfers, P=2                                    median        min        max")
    done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    median = {}
    for line in done.stdout.splitlines():
        name, unit, *numbers, count = line.split("\t")
        median[name] = float(numbers[0])
        print(f"  {name:<34} {unit:<3} " + " ".join(f"{float(x):10.3f}" for x in numbers) + f"  n={count}")
    print("  put, get, put of INT32 in place and from 4 bytes further on against memcpy, of medians")
    for name in median:
        kind, _, size = name.rpartition("_")
        if kind == "memcpy_out":
            put, words, apart = (
                median[f"{figure}_{size}"] / median[name] for figure in ("put", "put_int32", "put_int32_apart")
            )
            get = median[f"get_{size}"] / median[f"memcpy_in_{size}"]
            print(f"    {int(size):>9} bytes   {put:6.2f} {get:6.2f} {words:6.2f} {apart:6.2f}")
    checks = median["checked_place"] - median["place_of_put"]
    share = 100 * checks / median["put_notify_1024"]
    print(f"  checks, of a put of 1 KiB that the peer has waited for: {share:.2f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peer-rounds", type=int, default=5, help="of the sections beside Open MPI")
    parser.add_argument("--native", type=Path, default=ROOT / "build" / "bench" / "native")
    options = parser.parse_args()
    quick_start(options.rounds)
    long_programs(options.rounds)
    for ranks in (2, 4):
        native(options.native, ranks)
    calls()
    transfers(options.native.with_name("transfers"))
    for pair in PAIRS:
        beside(pair, options.peer_rounds, options.native.parent)


main()
