"""Random schedules of several ranks, together with what they compute.

A schedule is a list of events in the order in which they are drawn, each by one rank: transfers, local
copies, notifies, waits. Executing them in that order is what the model does; the ranks execute them at the
same time, each its own in order. Both come to the same result because two events that conflict (one writes
what the other reads or writes; adds do not conflict with adds) are always ordered: every rank has a vector
clock, a wait joins the clock that was current at the notify, every cell remembers when it was last read,
added to and written. An event that would conflict is preceded by a signal from the rank in question, or is
not drawn. As a wait only waits for a notify drawn before it, nothing can deadlock.

A collective (collectives.py) is an event of all ranks: what each has done before it precedes what any does behind it.
When a rank is done with its own slices of the operands is known to that rank alone, so a peer that touches them next needs a
signal. Between dispatches the host function may have collectives, too.

A Stream is such a list on windows of its own, cut into kernels; a token that each kernel increments keeps its
kernels in order on each rank."""

import dataclasses
import re

import numpy as np

import values
from collectives import Collectives

ROWS, COLUMNS = 4, 6
# Floats are whole numbers that are not negative and not larger, so that sums in any order are exact.
EXACT = {"FP32": 2**24, "FP16": 2**11, "BF16": 2**8}
# Types for storage: they move, and nothing is computed. Two elements of 4 bits lie in a byte; the arrays count bytes.
PACKED = ["FP4", "INT4", "UINT4"]
STORAGE = ["FP8E4M3FN", "FP8E5M2", "FP8E8M0", *PACKED]
NUMPY = values.NUMPY | {name: np.dtype("u1") for name in STORAGE}
FULL = (slice(0, ROWS), slice(0, COLUMNS))
# How parameters begin that are windows.
WINDOWS = ("win", "bell", "sig", "ring", "many", "send", "recv")


def adds(dtype):
    return dtype != "BOOL" and dtype not in STORAGE


def columns_of(dtype, columns):
    """How many elements so many columns of an array are."""
    return columns * 2 if dtype in PACKED else columns


@dataclasses.dataclass
class Place:
    """Memory of one rank. `clocks` is None where no other rank can reach it; else the latest accesses of each
    kind to each cell by each rank, in ticks of that rank."""

    name: str
    window: int  # number of the window, -1: none
    owner: int
    data: np.ndarray
    clocks: dict | None = None


def place(name, window, owner, data, ranks):
    kinds = {kind: np.zeros((*data.shape, ranks), int) for kind in ("read", "add", "write")}
    return Place(name, window, owner, data, kinds if window >= 0 else None)


CONFLICTS = {"read": ["write", "add"], "add": ["write", "read"], "write": ["write", "read", "add"]}


class Stream(Collectives):
    def __init__(self, chooser, number, dtype, devices, delays, rng, collective):
        self.chooser, self.number, self.dtype, self.devices, self.delays = chooser, number, dtype, devices, delays
        self.n = n = len(devices)
        self.exact, self.folds = EXACT.get(dtype), adds(dtype)
        self.shapes = [
            (chooser.randint(1, ROWS), chooser.randint(1, COLUMNS + 2)) for _ in range(chooser.randint(1, 2))
        ]
        self.collective = collective
        self.parts = [len(self.shapes), len(self.shapes) + 1] if collective else []
        self.blocks = [len(self.shapes) + 2, len(self.shapes) + 3] if collective else []
        if collective:
            self.shapes += [(n, self.part_columns())] * 2
            self.shapes += [(n * chooser.randint(1, 3), self.part_columns())] * 2
        kind = NUMPY[dtype]
        self.inputs = [rng.integers(0, {"BOOL": 2}.get(dtype, 256 if dtype in STORAGE else 4), (ROWS, COLUMNS)).astype(kind) for _ in devices]
        self.outputs = [np.zeros((ROWS, COLUMNS), kind) for _ in devices]
        self.own = [
            [place("inp", -1, q, self.inputs[q], n), place("out", -1, q, self.outputs[q], n)] for q in range(n)
        ]
        self.windows = [
            [place(f"win{w}", w, q, np.zeros(shape, kind), n) for q in range(n)]
            for w, shape in enumerate(self.shapes)
        ]
        self.dumps = []
        self.sent_rows, self.received_rows = np.zeros((2, n, n), np.int32)  # counts of all_to_all_v: [of, for]
        self.clock = np.zeros((n, n), int)
        self.sent = np.zeros((n, n), int)  # notifies of a cell of its own for each (from, to)
        self.pending = []
        self.barriers = 0
        self.arrivals = np.zeros(n, int)
        self.releases = np.zeros(n, int)
        self.segments = [[]]
        self.names = 0

    # cells of the bell: one for each notifier; one for each in barriers of all; arrivals; releases
    @property
    def cells(self):
        return 2 * self.n + 2

    def columns(self, columns):
        return columns_of(self.dtype, columns)

    def pick(self, items):
        return self.chooser.choice(items)

    def chance(self, one_in):
        return self.chooser.randint(0, one_in - 1) == one_in - 1

    def emit(self, rank, *lines):
        """Lines for one rank, or for all (None)."""
        self.segments[-1].append((rank, lines))

    # ---- signals ----

    def peer(self, me, peer):
        return self.pick([str(peer), f"(me + {(peer - me) % self.n}) % n"])

    def tick(self, rank):
        self.clock[rank, rank] += 1

    def notify(self, by, to):
        self.tick(by)
        self.sent[by, to] += 1
        value, op = self.pick([(1, "AtomicAdd"), (self.sent[by, to], "Set")])
        self.emit(
            by, f"pld.system.notify(bell, {self.peer(by, to)}, [{by}], {value}, op=pld.NotifyOp.{op})"
        )
        self.pending.append((by, to, self.sent[by, to], self.clock[by].copy()))
        return self.pending[-1]

    def wait(self, sent, word="wait"):
        by, to, count, clock = sent
        self.emit(to, f"pld.system.{word}(bell, [{by}], {count}, cmp=pld.WaitCmp.Ge)")
        self.clock[to] = np.maximum(self.clock[to], clock)

    def join_all(self):
        self.clock[:] = self.clock.max(axis=0)
        self.pending.clear()

    def barrier(self):
        for rank in range(self.n):
            self.tick(rank)
        kinds = [self.of_all, self.of_star, self.of_chain, self.of_rounds]
        kind = self.pick([*kinds, self.of_collective] if self.collective else kinds)
        kind()
        self.join_all()

    def of_all(self):
        """Everybody tells everybody."""
        self.barriers += 1
        self.emit(
            None,
            "for to in pl.range(n):",
            "    if to != me:",
            "        pld.system.notify(bell, to, [n + me], 1, op=pld.NotifyOp.AtomicAdd)",
            "for by in pl.range(n):",
            "    if by != me:",
            f"        pld.system.wait(bell, [n + by], {self.barriers}, cmp=pld.WaitCmp.Ge)",
        )

    def of_star(self):
        """Everybody adds to one cell of a rank, which releases everybody."""
        root = self.chooser.randint(0, self.n - 1)
        others = [q for q in range(self.n) if q != root]
        self.arrivals[root] += len(others)
        for q in others:
            self.emit(q, f"pld.system.notify(bell, {self.peer(q, root)}, [2 * n], 1, op=pld.NotifyOp.AtomicAdd)")
        self.emit(root, f"pld.system.wait(bell, [2 * n], {self.arrivals[root]}, cmp=pld.WaitCmp.Eq)")
        for q in others:
            self.releases[q] += 1
            self.emit(root, f"pld.system.notify(bell, {q}, [2 * n + 1], 1, op=pld.NotifyOp.AtomicAdd)")
            self.emit(q, f"pld.system.wait(bell, [2 * n + 1], {self.releases[q]}, cmp=pld.WaitCmp.Ge)")

    def of_chain(self):
        """From one to the next, and back."""
        order = self.chooser.sample(range(self.n), self.n)
        order = [*order, *order[-2::-1]]
        for by, to in zip(order, order[1:]):
            self.wait(self.notify(by, to))

    def of_rounds(self):
        """In each round a rank tells the one that is twice as far as in the last."""
        step = 1
        while step < self.n:
            for sent in [self.notify(q, (q + step) % self.n) for q in range(self.n)]:
                self.wait(sent)
            step *= 2

    # ---- accesses ----

    def ordered(self, me, kind, where, box):
        """Whether this access comes after all that conflict with it, if need be behind signals drawn for it."""
        if where.clocks is None:
            return True
        late = np.zeros(self.n, bool)
        for other in CONFLICTS[kind]:
            late |= (where.clocks[other][box] > self.clock[me]).any(axis=(0, 1))
        late[me] = False
        if late.sum() > 2 or (late.any() and self.chance(3)):
            return False
        for by in np.flatnonzero(late):
            if self.chance(2):
                self.delay(int(by))
            self.wait(self.notify(int(by), me))
        return True

    def note(self, me, kind, where, box):
        if where.clocks is not None:
            where.clocks[kind][box][..., me] = self.clock[me, me]

    def box(self, source, target):
        """Extents, and where they lie in the two."""
        shapes = list(zip(source.shape, target.shape))
        extents = [self.chooser.randint(1, min(pair)) for pair in shapes]
        offsets = [[self.chooser.randint(0, s - e) for s, e in zip(each, extents)] for each in zip(*shapes)]
        boxes = [tuple(slice(o, o + e) for o, e in zip(each, extents)) for each in offsets]
        return extents, offsets, boxes

    def extents(self, extents):
        return [extents[0], self.columns(extents[1])]

    def offsets(self, me, offsets):
        offsets = self.extents(offsets)
        spell = [f"me + {o - me}" if o >= me and self.chance(3) else str(o) for o in offsets]
        return f"[{', '.join(spell)}]"

    def copy(self):
        """One event that moves a box from one place to another."""
        me = self.chooser.randint(0, self.n - 1)
        mine = [*self.own[me], *(w[me] for w in self.windows)]
        far = [w[self.chooser.randint(0, self.n - 1)] for w in self.windows]
        how = self.pick(["tile", "tile", "put", "get", *([] if self.dtype in STORAGE else ["element"])])
        source = self.pick({"tile": mine + far, "get": far}.get(how, mine))
        target = self.pick({"tile": mine[1:] + far, "put": far}.get(how, mine[1:]))
        add = how in ("tile", "put") and adds(self.dtype) and source is not target and self.chance(2)
        extents, (at, to), (source_box, target_box) = self.box(source.data, target.data)
        if how == "element":
            extents = [1, 1]
            source_box, target_box = (tuple(slice(o, o + 1) for o in each) for each in (at, to))
        value = source.data[source_box].copy()
        more = self.chooser.randint(0, 3) if how == "tile" and adds(self.dtype) else 0
        value = value + np.asarray(more, value.dtype) if more else value
        result = target.data[target_box] + value if add else value
        if self.dtype in EXACT and result.max() > EXACT[self.dtype]:
            return
        kind = "add" if add else "write"
        if not self.ordered(me, "read", source, source_box) or not self.ordered(me, kind, target, target_box):
            return
        self.tick(me)
        self.note(me, "read", source, source_box)
        self.note(me, kind, target, target_box)
        target.data[target_box] = result
        self.emit(me, *getattr(self, how)(me, source, target, self.extents(extents), at, to, more, add))

    def tile(self, me, source, target, extents, at, to, more, add):
        at, to = self.offsets(me, at), self.offsets(me, to)
        self.names += 1
        name = f"t{self.names}"
        if source.owner == me and (source.window < 0 or self.chance(2)):
            yield f"{name} = pl.load({source.name}, {at}, {extents})"
        else:
            yield f"{name} = pld.tile.remote_load({source.name}, {self.peer(me, source.owner)}, {at}, {extents})"
        if more:
            yield f"{name} = pl.add({name}, {more})"
        atomic = ", atomic=pld.AtomicType.Add" if add else ""
        if target.owner == me and (target.window < 0 or self.chance(2)):
            yield f"pl.store({name}, {to}, {target.name}{atomic})"
        else:
            peer = self.peer(me, target.owner)
            yield f"pld.tile.remote_store({name}, {target.name}, {peer}, {to}{atomic})"

    def options(self):
        return self.pick(["", "", ", chunk_rows=1", ", chunk_rows=2, chunk_cols=2, pipeline=True"])

    def put(self, me, source, target, extents, at, to, more, add):
        part = f"{self.offsets(me, to)}, {self.offsets(me, at)}, {extents}"
        atomic = ", atomic=pld.AtomicType.Add" if add else ""
        peer = self.peer(me, target.owner)
        yield f"pld.tensor.put({target.name}, {peer}, {source.name}, {part}{atomic}{self.options()})"

    def get(self, me, source, target, extents, at, to, more, add):
        part = f"{self.offsets(me, to)}, {self.offsets(me, at)}, {extents}"
        peer = self.peer(me, source.owner)
        yield f"pld.tensor.get({target.name}, {peer}, {source.name}, {part}{self.options()})"

    def element(self, me, source, target, extents, at, to, more, add):
        yield f"pl.write({target.name}, {self.offsets(me, to)}, pl.read({source.name}, {self.offsets(me, at)}))"

    # ---- events ----

    def delay(self, me):
        slot = self.delays.take()
        self.emit(me, f"for i in pl.range(pl.read(delays, [{slot}])):", "    pl.read(delays, [0])")

    def event(self):
        kind = self.chooser.randint(0, 21 if self.collective else 15)
        if kind <= 9:
            self.copy()
        elif kind == 10:
            self.delay(self.chooser.randint(0, self.n - 1))
        elif kind <= 12 and self.n > 1:
            self.notify(*self.chooser.sample(range(self.n), self.n)[:2])
        elif kind <= 14 and self.pending:
            self.wait(self.pending.pop(self.chooser.randint(0, len(self.pending) - 1)))
        elif kind == 15:
            self.barrier()
        elif kind > 15:
            self.join()

    def add_kernel(self, most):
        for _ in range(self.chooser.randint(most // 2, most)):
            self.event()
        for sent in list(self.pending):
            if self.chance(6):
                self.pending.remove(sent)
                self.wait(sent, "defer_wait")
        return self.cut()

    def cut(self):
        self.segments.append([])
        return len(self.segments) - 2

    def add_last(self):
        """Shows what is in the windows."""
        self.barrier()
        for w, places in enumerate(self.windows):
            self.emit(None, f"pld.tensor.get(dump{w}, me, win{w})")
            self.dumps.append([p.data.copy() for p in places])
        if self.collective:
            self.emit(None, "for by in pl.range(n):", "    pl.write(counts, [by], pl.read(recv, [by, 0]))")
        return self.cut()

    # ---- text ----

    def params(self):
        """(name, annotation, how the host passes it, its part in the wrapper)"""
        s, kind = self.number, f"pl.{self.dtype}"
        yield "inp", f"pl.Tensor[[{ROWS}, {self.columns(COLUMNS)}], {kind}]"
        yield "out", f"pl.InOut[pl.Tensor[[{ROWS}, {self.columns(COLUMNS)}], {kind}]]"
        yield "token", f"pl.InOut[pl.Tensor[[{len(self.segments)}], pl.INT32]]"
        yield "counts", f"pl.InOut[pl.Tensor[[{self.n}], pl.INT32]]"
        for w, (rows, columns) in enumerate(self.shapes):
            yield f"dump{w}", f"pl.InOut[pl.Tensor[[{rows}, {self.columns(columns)}], {kind}]]"
        for w, (rows, columns) in enumerate(self.shapes):
            shape = f"[{rows}, {self.columns(columns)}]"
            yield f"win{w}", f"pl.InOut[pld.DistributedTensor[{shape}, {kind}]]"
        for name, shape in {"bell": [self.cells], **self.signals()}.items():
            yield name, f"pl.InOut[pld.DistributedTensor[{shape}, pl.INT32]]"

    def is_fence(self, number):
        """Whether a kernel would use windows for barriers alone. It would come between all tasks of its rank, those of other
        streams, too, which other ranks may have in another order."""
        text = "\n".join(line for _, lines in self.segments[number] for line in lines)
        rest = re.sub(r"pld\.tensor\.barrier\(.*\)", "", text)
        return rest != text and re.search(rf"\b({'|'.join(WINDOWS)})\d*\b", rest) is None

    def kernel(self, number, slots):
        lines = [
            "@pl.jit.incore",
            f"def kernel{self.number}_{number}(delays: pl.Tensor[[{slots}], pl.INT32], "
            + ", ".join(f"{name}: {kind}" for name, kind in self.params())
            + "):",
            "    me = pld.rank(pld.get_comm_ctx(bell))",
            "    n = pld.nranks(pld.get_comm_ctx(bell))",
        ]
        events = [*self.segments[number], (None, ())]
        branches = {}
        for rank, text in events:
            if rank is not None:
                branches.setdefault(rank, []).extend(text)
                continue
            word = "if"
            for q, body in sorted(branches.items()):
                lines += [f"    {word} me == {q}:", *("        " + line for line in body)]
                word = "elif"
            branches = {}
            lines += ["    " + line for line in text]
        if self.is_fence(number):
            lines.append("    pld.system.wait(bell, [0], 0, cmp=pld.WaitCmp.Ge)")
        lines.append(f"    pl.write(token, [{number + 1}], pl.read(token, [{number}]) + 1)")
        return lines
