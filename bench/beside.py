"""pypto beside Open MPI: the cells of beside.h, P = 2, 4, 8.

Each round runs canary, pypto, canary, Open MPI for every P, so that both see the same machine as far as there is
one. A ratio is taken within a round; what is printed is the median of the rounds. In a last column stands the
ratio of the fastest batches of all, which says more than medians do when others use the machine.

    beside.py [--rounds N] [--ranks P,P,...] [--program PATH]
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AIM = 1.2  # behind Open MPI by no more than this in any cell
RANKS = (2, 4, 8)
SECONDS = 300  # for one program, which takes a few


# mpirun refuses root unless it is told twice.
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def command(*names):
    """The first of the commands that exists, or None."""
    return next(filter(None, map(shutil.which, names)), None)


def why_not():
    """Why there is nothing to be beside of; None when there is."""
    mpicc, mpirun = command("mpicc.openmpi", "mpicc"), command("mpirun.openmpi", "mpirun")
    if mpicc is None or mpirun is None:
        return "Open MPI is not installed (scripts/install-deps bench installs it)"
    done = subprocess.run([mpirun, "--version"], env=ENV, capture_output=True, text=True)
    if "open-mpi.org" not in done.stdout:
        return f"{mpirun} is not Open MPI"
    return None


def build(folder):
    """The peer program, compiled into `folder`."""
    program = os.path.join(folder, "beside_mpi")
    mpicc = command("mpicc.openmpi", "mpicc")
    subprocess.run(
        [mpicc, "-std=c17", "-D_GNU_SOURCE", "-O3", "-o", program, str(ROOT / "bench" / "beside_mpi.c")],
        check=True,
    )
    return program


def start_by_mpi(program, ranks):
    """How MPI starts it: a CPU for each rank, or all of them yielding where there are too few."""
    cpus = len(os.sched_getaffinity(0))
    placed = ["--bind-to", "core"] if ranks <= cpus else ["--oversubscribe", "--bind-to", "none"]
    return [command("mpirun.openmpi", "mpirun"), "-n", str(ranks), *placed, program]


def cells_of(arguments):
    """What a program printed: {(cell, bytes): {way: (median, min)}}"""
    done = subprocess.run(arguments, env=ENV, check=True, capture_output=True, text=True, timeout=SECONDS)
    cells = {}
    for line in done.stdout.splitlines():
        cell, way, size, median, least, _ = line.split("\t")
        cells.setdefault((cell, int(size)), {})[way] = (float(median), float(least))
    return cells


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def spread(values):
    return f"{statistics.median(values):10.3f} {min(values):10.3f} {max(values):10.3f}"


def print_cells(ours, theirs):
    """One row for each way that pypto has; against the best way of Open MPI. Returns those cells whose best way is
    behind by more than the aim."""
    print(f"  {'cell':<26} {'pypto, us: median        min        max':>34}   {'Open MPI: median        min        max':>34}   ratio  of min  n")
    behind = []
    for cell in ours[0]:
        best = None
        for way in ours[0][cell]:
            mine = [run[cell][way][0] for run in ours]
            peers = [min(median for median, _ in run[cell].values()) for run in theirs]
            ratio = statistics.median(a / b for a, b in zip(mine, peers))
            of_min = min(run[cell][way][1] for run in ours) / min(
                least for run in theirs for _, least in run[cell].values()
            )
            name = f"{cell[0]} {way} {size_text(cell[1])}"
            print(f"  {name:<26} {spread(mine)}   {spread(peers)}   {ratio:5.2f}  {of_min:6.2f}  {len(mine)}")
            if best is None or ratio < best[0]:
                best = (ratio, of_min, name)
        if best[0] > AIM:
            behind.append(best)
    return behind


def beside(rounds, program, ranks=RANKS):
    print("Beside Open MPI")
    reason = why_not()
    if reason is not None:
        print(f"  skipped: {reason}")
        return
    canary, ours, theirs = [], {p: [] for p in ranks}, {p: [] for p in ranks}
    with tempfile.TemporaryDirectory(prefix="pypto-bench-") as folder:
        peer = build(folder)

        def sing():
            done = subprocess.run([str(program), "canary"], check=True, capture_output=True, text=True)
            canary.append(float(done.stdout))

        for _ in range(rounds):
            for p in ranks:
                sing()
                ours[p].append(cells_of([str(program), str(p)]))
                sing()
                theirs[p].append(cells_of(start_by_mpi(peer, p)))
    print(f"  canary, one way of a flag, ns      {spread(canary)}  n={len(canary)}")
    for p in ranks:
        print(f" P={p}")
        behind = print_cells(ours[p], theirs[p])
        for ratio, of_min, name in behind:
            print(f"  behind by more than {AIM}: {name}, {ratio:.2f} times ({of_min:.2f} of the fastest batches)")
        if not behind:
            print(f"  in no cell behind by more than {AIM}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)))
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "bench" / "beside")
    options = parser.parse_args()
    beside(options.rounds, options.program, tuple(int(p) for p in options.ranks.split(",")))


if __name__ == "__main__":
    main()
