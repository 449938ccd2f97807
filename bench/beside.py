"""pypto beside Open MPI, P = 2, 4, 8: pairs of programs that do the same, one with each. The cells of
beside.h are transfers and allreduces that a kernel makes of them, those of collectives.h the collectives.

Each round runs canary, pypto, canary, Open MPI for every P, so that both see the same machine as far as there is
one. A ratio is taken within a round; what is printed is the median of the rounds. In a last column stands the
ratio of the fastest batches of all, which says more than medians do when others use the machine.

    beside.py [--rounds N] [--ranks P,P,...] [--programs FOLDER] [--pairs NAME,...] [CELL...]
"""

import argparse
import dataclasses
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RANKS = (2, 4, 8)
SECONDS = 300  # for one program, which takes a few


@dataclasses.dataclass(frozen=True)
class Pair:
    """A program by pypto, NAME.c, and its peer, NAME_mpi.c."""

    name: str
    title: str

    def aim(self, cell, ranks):
        """The time of pypto against that of Open MPI that a cell may take."""
        kind, size = cell
        if self.name != "collectives" or kind != "allreduce":
            return 1.2
        return 1 / 3 if ranks == 2 and size >= 1 << 16 else 1


PAIRS = (
    Pair("beside", "Transfers, and allreduces by hand, beside Open MPI"),
    Pair("collectives", "Collectives beside Open MPI"),
)

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


def build(pair, folder):
    """The peer program, compiled into `folder`."""
    program = os.path.join(folder, pair.name + "_mpi")
    mpicc = command("mpicc.openmpi", "mpicc")
    subprocess.run(
        [mpicc, "-std=c17", "-D_GNU_SOURCE", "-O3", "-march=native", "-o", program, str(ROOT / "bench" / (pair.name + "_mpi.c"))],
        check=True,
    )
    return program


def start_by_mpi(arguments, ranks):
    """How MPI starts it: a CPU for each rank, or all of them yielding where there are too few."""
    cpus = len(os.sched_getaffinity(0))
    placed = ["--bind-to", "core"] if ranks <= cpus else ["--oversubscribe", "--bind-to", "none"]
    return [command("mpirun.openmpi", "mpirun"), "-n", str(ranks), *placed, *arguments]


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


def print_cells(ours, theirs, aim):
    """One row for each way that pypto has; against the best way of Open MPI. Returns those cells whose best way
    misses its aim."""
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
        if best[0] > aim(cell):
            behind.append((*best, aim(cell)))
    return behind


def beside(pair, rounds, programs, ranks=RANKS, cells=()):
    """`programs`: where the pairs' programs by pypto are; `cells`: the names of some, or all."""
    print(pair.title)
    reason = why_not()
    if reason is not None:
        print(f"  skipped: {reason}")
        return
    program = str(programs / pair.name)
    canary, ours, theirs = [], {p: [] for p in ranks}, {p: [] for p in ranks}
    with tempfile.TemporaryDirectory(prefix="pypto-bench-") as folder:
        peer = build(pair, folder)

        def sing():
            done = subprocess.run([program, "canary"], check=True, capture_output=True, text=True)
            canary.append(float(done.stdout))

        for _ in range(rounds):
            for p in ranks:
                sing()
                ours[p].append(cells_of([program, str(p), *cells]))
                sing()
                theirs[p].append(cells_of(start_by_mpi([peer, str(p), *cells], p)))
    print(f"  canary, one way of a flag, ns      {spread(canary)}  n={len(canary)}")
    for p in ranks:
        print(f" P={p}")
        missed = print_cells(ours[p], theirs[p], lambda cell, p=p: pair.aim(cell, p))
        for ratio, of_min, name, aim in missed:
            print(f"  not within {aim:.2f} of Open MPI: {name}, {ratio:.2f} times ({of_min:.2f} of the fastest batches)")
        if not missed:
            print("  no cell takes longer than it may beside Open MPI")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)))
    parser.add_argument("--programs", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("--pairs", default=",".join(pair.name for pair in PAIRS))
    parser.add_argument("cells", nargs="*", metavar="CELL")
    options = parser.parse_args()
    for pair in PAIRS:
        if pair.name in options.pairs.split(","):
            beside(pair, options.rounds, options.programs, tuple(map(int, options.ranks.split(","))), options.cells)


if __name__ == "__main__":
    main()
