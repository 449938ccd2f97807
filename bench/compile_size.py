"""Compiles DSL programs of several lengths with a clock, up to the C compiler.

Prints one `lines<TAB>milliseconds<TAB>of them on the CPU` line per program. The time goes from the call of `.compile` to the start of
the C compiler: capturing the source, Python's parser, front end, passes, emission, keys. In its place stands a
program that fails at once, because it would take a hundred times as long. A program has one kernel for
every 100 lines or so; their bodies mix loads, arithmetic, reductions, scalars, loops, branches, elements and
stores. Run by bench/run.py in a process of its own each time, with a cache of its own.

    compile_size.py [lines]...
"""

import linecache
import os
import sys
import time

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig

PARAMETERS = """\
    x: pl.Tensor[[64, 128], pl.FP32],
    y: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
    w: pl.InOut[pld.DistributedTensor[[64, 128], pl.FP32]],
    n: pl.Scalar[pl.INT32],
"""

# 20 lines; # is the number of the block.
BLOCK = """\
    a# = pl.load(x, [(n + #) % 56, 0], [8, 128])
    b# = pl.mul(a#, 0.5)
    c# = pl.add(pl.exp(b#), a#)
    s# = pl.row_sum(c#)
    d# = pl.row_expand_sub(c#, s#)
    k# = (n * 3 + #) % 48
    if k# > 24:
        d# = pl.maximum(d#, a#)
        k# = k# - 24
    else:
        d# = d# * 2.0 + b#
    w = pl.store(d#, [k#, 0], w)
    for i# in pl.range(2, 6):
        e# = pl.load(w, [k# + i#, 0], [1, 128])
        if i# != 3:
            e# = pl.add(e#, pl.read(x, [i#, #]))
        y = pl.store(e#, [k# + i#, 0], y)
    pl.write(y, [63, #], pl.cast(k# + n, pl.FP32))
    t# = pl.slice(d#, [4, 64], [0, 32])
    y[0:4, 64:128] = t#
"""
BLOCKS_OF_KERNEL = 5


def program(lines):
    """The source of a program of about that many lines, and how many it has."""
    parts, kernels, block = [], 0, 0
    while sum(part.count("\n") for part in parts) < lines - 30:
        parts.append(f"@pl.jit.incore\ndef kernel{kernels}(\n{PARAMETERS}):\n")
        for _ in range(BLOCKS_OF_KERNEL):
            parts.append(BLOCK.replace("#", str(block % 100)))
            block += 1
        parts.append("    return y\n\n")
        kernels += 1
    calls = "".join(f"    kernel{k}(x, y, w, n)\n" for k in range(kernels))
    parts.append(f"@pl.jit\ndef chip(\n{PARAMETERS}):\n{calls}    return y\n\n")
    parts.append(
        "@pl.jit.host\n"
        "def host(\n"
        "    x: pl.Tensor[[2, 64, 128], pl.FP32],\n"
        "    y: pl.Out[pl.Tensor[[2, 64, 128], pl.FP32]],\n"
        "):\n"
        "    buffer = pld.alloc_window_buffer([64, 128], dtype=pl.FP32)\n"
        "    for r in pl.range(pld.world_size()):\n"
        "        w = pld.window(buffer, [64, 128], dtype=pl.FP32)\n"
        "        chip(x[r], y[r], w, r, device=r)\n"
        "    return y\n"
    )
    text = "".join(parts)
    return text, text.count("\n")


def compile_time(lines):
    """The length of a program, and the milliseconds until its C was there: passed, and on the CPU."""
    text, length = program(lines)
    name = f"<{lines} lines>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {"pl": pl, "pld": pld}
    exec(compile(text, name, "exec"), scope)
    config = RunConfig(platform="cpu", distributed_config=DistributedConfig(device_ids=[0, 1]))
    start, cpu = time.perf_counter(), time.process_time()
    try:
        scope["host"].compile(config=config)
    except pypto.CompilerError:
        return length, (time.perf_counter() - start) * 1e3, (time.process_time() - cpu) * 1e3
    sys.exit("the C compiler was called, or not needed; PYPTO_CACHE_DIR must be empty")


def main():
    os.environ["PYPTO_CC"] = "false"
    compile_time(100)       # imports and first-time costs are not the program's
    for lines in map(int, sys.argv[1:] or ["500", "1000", "2000", "4000"]):
        print("{}\t{:.3f}\t{:.3f}".format(*compile_time(lines)))


main()
