"""Memory that a control group limits to less than the machine has: what does not fit is an error, however many ask at
once; nobody is killed, and what fits runs."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from processes import until

MIB = 1 << 20
SCRIPT = """
import sys
import numpy as np
import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig, shutdown

NR = pl.dynamic("NR")
Row = pl.Tensor[[1, 64], pl.FP32]
Rows = pl.Tensor[[NR, 1, 64], pl.FP32]
Signal = pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]


def program(mib):
    size = mib << 18

    @pl.jit.incore
    def tile_kernel(y: pl.Out[Row]):
        t = pl.tile.full([1, size], pl.FP32, 1.0)
        pl.store(t[0:1, 0:64], [0, 0], y)

    @pl.jit.incore
    def tensor_kernel(y: pl.Out[Row], t: pl.Out[pl.Tensor[[1, size], pl.FP32]], all_have: Signal):
        ctx = pld.get_comm_ctx(all_have)
        one = pl.tile.full([1, 64], pl.FP32, 1.0)
        pl.store(one, [0, 0], t)
        pl.store(one, [0, 0], y)
        # None ends, and gives its tensor back, before all have theirs.
        for peer in pl.range(pld.nranks(ctx)):
            pld.system.notify(all_have, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(all_have, [0, 0], pld.nranks(ctx), cmp=pld.WaitCmp.Ge)

    @pl.jit.incore
    def window_kernel(y: pl.Out[Row], w: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]]):
        one = pl.tile.full([1, 64], pl.FP32, 1.0)
        pl.store(one, [0, 0], w)
        pl.store(one, [0, 0], y)

    @pl.jit
    def tile(y: pl.Out[Row]):
        tile_kernel(y)

    @pl.jit
    def blocks(y: pl.Out[Row]):
        for block in pl.spmd(3):
            t = pl.tile.full([1, size], pl.FP32, 1.0)
            if block == 2:
                pl.store(t[0:1, 0:64], [0, 0], y)

    @pl.jit
    def tensor(y: pl.Out[Row], all_have: Signal):
        tensor_kernel(y, pl.create_tensor([1, size], pl.FP32), all_have)

    @pl.jit
    def window(y: pl.Out[Row], w: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]]):
        window_kernel(y, w)

    @pl.jit.host
    def tiles(y: pl.Out[Rows]):
        for r in pl.range(pld.world_size()):
            tile(y[r], device=r)
        return y

    @pl.jit.host
    def several_blocks(y: pl.Out[Rows]):
        for r in pl.range(pld.world_size()):
            blocks(y[r], device=r)
        return y

    @pl.jit.host
    def tensors(y: pl.Out[Rows]):
        buffer = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            tensor(y[r], pld.window(buffer, [1, 1], dtype=pl.INT32), device=r)
        return y

    @pl.jit.host
    def windows(y: pl.Out[Rows]):
        buffer = pld.alloc_window_buffer([1, size], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            window(y[r], pld.window(buffer, [1, size], dtype=pl.FP32), device=r)
        return y

    return {{"tiles": tiles, "blocks": several_blocks, "tensors": tensors, "windows": windows}}


def call(what, mib, ranks):
    y = np.zeros((ranks, 1, 64), np.float32)
    config = RunConfig(platform="cpu", distributed_config=DistributedConfig(device_ids=list(range(ranks))))
    try:
        program(mib)[what](y, config=config)
        print("good", (y == 1).all(), flush=True)
    except pypto.Error as error:
        print(type(error).__name__, " ".join(str(error).split()), flush=True)


{driver}
"""


class Group:
    """A control group of its own, of either version."""

    def __init__(self, folder, version, mib):
        self.folder = folder
        self.version = version
        folder.mkdir()
        try:
            (folder / ("memory.limit_in_bytes" if version == 1 else "memory.max")).write_text(str(mib * MIB))
            if (folder / "memory.swap.max").exists():
                (folder / "memory.swap.max").write_text("0")
        except OSError:
            folder.rmdir()
            raise

    def remove(self):
        """False while a process in it is still ending."""
        try:
            self.folder.rmdir()
        except OSError:
            return False
        return True

    def killed(self):
        """How often somebody had to be killed."""
        text = (self.folder / ("memory.oom_control" if self.version == 1 else "memory.events")).read_text()
        return [int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")][0]

    def command(self, *command):
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh", *command]


@pytest.fixture
def limited():
    """Makes a control group with so many MiB."""
    groups = []

    def make(mib):
        name = f"pypto-test-{os.getpid()}-{len(groups)}"
        for parent, version in (("/sys/fs/cgroup/memory", 1), ("/sys/fs/cgroup", 2)):
            try:
                groups.append(Group(Path(parent) / name, version, mib))
                return groups[-1]
            except OSError as error:
                reason = error
        pytest.skip(f"a control group cannot be made here: {reason}")

    yield make
    for group in groups:
        until(group.remove, f"the end of all processes in {group.folder}")


@pytest.fixture
def run(as_script, limited):
    """Runs a driver within so many MiB; what its calls came to."""

    def run(mib, driver):
        group = limited(mib)
        script = as_script(SCRIPT.format(driver=driver))
        code, out, err = script.run(command=group.command(sys.executable, str(script.path)))
        assert code == 0, err
        assert group.killed() == 0
        return out.splitlines()

    return run


TILES = "no memory for its {} MiB of tiles: use smaller tiles.*MiB of memory are available"
MORE = "{} more MiB of memory were asked for, [0-9]+ MiB are available"


@pytest.mark.parametrize(
    "what, mib, ranks, words",
    [
        ("tiles", 100, 4, TILES.format(100)),
        ("tiles", 20, 16, TILES.format(20)),
        ("tiles", 400, 1, TILES.format(400)),
        ("blocks", 100, 4, TILES.format(100)),
        ("tensors", 100, 4, "pl.create_tensor: " + MORE.format(100)),
        ("windows", 100, 4, "window 'buffer' on 4 devices: " + MORE.format(400)),
    ],
)
def test_what_the_ranks_ask_for_together(run, what, mib, ranks, words):
    """Each of them alone could have it, but for one that is larger than the group. Ranks keep tiles that they have used, and
    have tensors together."""
    first, second, small, again = run(
        300,
        f"""
call({what!r}, {mib}, {ranks})
call({what!r}, {mib}, {ranks})
call({what!r}, 1, {ranks})
shutdown()
call({what!r}, 40, 3)
""",
    )
    for line in (first, second):
        assert line.startswith("MemoryError") and re.search(words, line), line
    assert small == again == "good True"


def test_blocks_that_run_one_after_the_other_share_their_memory(run):
    assert run(300, "call('blocks', 60, 2)\n") == ["good True"]


def test_pages_of_files_do_not_count(run, tmp_path):
    """They are part of what the group uses, but can be dropped."""
    system = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True).stdout.strip()
    if system in ("tmpfs", "ramfs"):
        pytest.skip(f"files in {tmp_path} are of a {system}: their pages cannot be dropped")
    fill = f"""
    import os
    with open({str(tmp_path / "file")!r}, "wb") as file:
        for _ in range(120):
            file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    """
    assert run(200, textwrap.dedent(fill) + "call('tiles', 40, 2)\n") == ["good True"]
