"""Random distributed programs made of schedules.

The streams of a program share nothing but inputs, parts of output tensors, and kernels that mix the outputs of
two, so their tasks overlap, and each rank submits them in an order of its own. What orders tasks of different
streams (mixing, a wrapper that looks at a token) stands in the same place on all ranks: else it would deadlock.

Hypothesis draws the sizes and a seed, from which all else follows: a failing program shrinks to fewer ranks,
streams, dispatches and events."""

import dataclasses
import random

import numpy as np
from hypothesis import strategies as st

from schedules import COLUMNS, EXACT, NUMPY, ROWS, STORAGE, WINDOWS, Stream, adds, columns_of
from transfers import DTYPES


class Delays:
    """How long ranks compute for nothing, in places that the program has and in times that each run draws."""

    def __init__(self):
        self.slots = 1

    def take(self):
        self.slots += 1
        return self.slots - 1

    def times(self, ranks, rng):
        return rng.choice([0, 0, 0, 100, 10000, 50000], (ranks, self.slots)).astype(np.int32)


# A wrapper calls its kernels; or submits them after others of the same streams; or does so in a manual scope, where
# only that orders them.
STYLES = ["calls", "submits", "manual"]


def part(s, at):
    return f"[:, {columns_of(s.dtype, at)}:{columns_of(s.dtype, at + COLUMNS)}]"


@dataclasses.dataclass
class Program:
    ranks: int
    streams: list
    delays: Delays
    shared: dict  # stream: (the one whose output tensor holds its output, at which column)
    columns: dict  # of the output tensors of streams that have one
    dispatches: list  # of {device: [(words of a call, streams)]}
    between: list  # of what the host function does behind each of them
    at_host: bool  # whether parts of shared outputs are taken by the host or by the wrapper
    styles: dict  # of {(dispatch, device): how the wrapper submits}, see STYLES

    def mine(self, device, used=None):
        return [s for s in self.streams if device in s.devices and (used is None or s.number in used)]

    def argument(self, s, name, device):
        if name == "out":
            home, at = self.shared[s.number]
            return f"out{home}[{device}]" + (part(s, at) if self.at_host and self.columns[home] > COLUMNS else "")
        return f"{name}_{s.number}" + ("" if name.startswith(WINDOWS) else f"[{device}]")

    def passed(self, s, name):
        if name == "out" and not self.at_host:
            home, at = self.shared[s.number]
            if self.columns[home] > COLUMNS:
                return f"out{home}{part(s, at)}"
            return f"out{home}"
        return f"{name}_{s.number}"

    def wrapper_params(self, device, used):
        """(name, annotation, argument of the host)"""
        homes = set()
        for s in self.mine(device, used):
            for name, kind in s.params():
                if name == "out" and not self.at_host:
                    home, _ = self.shared[s.number]
                    if home not in homes:
                        homes.add(home)
                        columns = columns_of(s.dtype, self.columns[home])
                        kind = f"pl.InOut[pl.Tensor[[{ROWS}, {columns}], pl.{s.dtype}]]"
                        yield f"out{home}", kind, f"out{home}[{device}]"
                    continue
                yield f"{name}_{s.number}", kind, self.argument(s, name, device)

    def call(self, words):
        kind, s, number = words
        if kind == "mix":
            a, b = self.streams[s], self.streams[number]
            return f"mix_{a.dtype}({self.passed(a, 'out')}, {self.passed(b, 'out')})"
        stream = self.streams[s]
        if kind == "rows":
            return f"rows_{stream.dtype}({self.passed(stream, 'out')})"
        if kind == "look":  # the wrapper waits for the task that writes the token
            return f"pl.write(token_{s}, [0], pl.read(token_{s}, [{number + 1}]) - {number + 1})"
        return f"kernel{s}_{number}(delays, {', '.join(self.passed(stream, name) for name, _ in stream.params())})"

    def calls(self, style, todo):
        """The lines of a wrapper."""
        last = {}
        for k, (words, used) in enumerate(todo):
            call, tid = self.call(words), f"t{k}"
            deps = f"deps=[{', '.join(sorted({last[s] for s in used if s in last}))}]"
            if words[0] == "rows":
                yield f"with pl.spmd({words[2]}, {deps}) as {tid}:"
                yield "    " + call
            elif words[0] == "look" or style == "calls":
                yield call
                continue
            else:
                name, _, arguments = call.partition("(")
                yield f"_, {tid} = pl.submit({name}, {arguments[:-1]}, {deps})"
            last |= {s: tid for s in used}

    def body(self, style, todo):
        if style == "manual":
            yield "    with pl.manual_scope():"
            todo = [each for each in todo if each[0][0] != "look"]  # that would have to name what it waits for
        for line in self.calls(style, todo):
            yield ("        " if style == "manual" else "    ") + line

    def text(self):
        slots, lines = self.delays.slots, []
        for dtype in sorted({s.dtype for s in self.streams}):
            columns = columns_of(dtype, COLUMNS)
            kind = f"pl.Tensor[[{ROWS}, {columns}], pl.{dtype}]"
            more = f"pl.add(pl.load(a, [0, 0], [{ROWS}, {columns}]), t)" if adds(dtype) else "t"
            one_more = "pl.add(t, 1)" if adds(dtype) else "t"
            lines += [
                "@pl.jit.incore",
                f"def mix_{dtype}(a: pl.InOut[{kind}], b: {kind}):",
                f"    t = pl.load(b, [0, 0], [{ROWS}, {columns}])",
                f"    pl.store({more}, [0, 0], a)",
                "@pl.jit.incore",
                f"def rows_{dtype}(a: pl.InOut[{kind}]):",
                "    row = pl.tile.get_block_idx()",
                f"    t = pl.load(a, [row, 0], [1, {columns}])",
                f"    pl.store({one_more}, [row, 0], a)",
            ]
        for s in self.streams:
            for number in range(len(s.segments) - 1):
                lines += s.kernel(number, slots)
        host = []
        for d, calls in enumerate(self.dispatches):
            for device, todo in calls.items():
                used = {s for _, streams in todo for s in streams}
                params = list(self.wrapper_params(device, used))
                lines += [
                    "@pl.jit",
                    f"def chip{d}_{device}(delays: pl.Tensor[[{slots}], pl.INT32], "
                    + ", ".join(f"{name}: {kind}" for name, kind, _ in params)
                    + "):",
                    *self.body(self.styles[d, device], todo),
                ]
                arguments = ", ".join(argument for _, _, argument in params)
                host.append(f"    chip{d}_{device}(delays[{device}], {arguments}, device={device})")
            host += ["    " + line for line in self.between[d]]
        lines += ["@pl.jit.host", "def host("]
        lines += [f"    {name}: {kind}," for name, kind, _ in self.arrays()] + ["):"]
        for s in self.streams:
            for name, kind in s.params():
                if name.startswith(WINDOWS):
                    shape, dtype = kind[kind.index("[[") + 1 : -2].rsplit(", ", 1)
                    lines += [
                        f"    {name}_{s.number}_buf = pld.alloc_window_buffer({shape}, dtype={dtype})",
                        f"    {name}_{s.number} = pld.window({name}_{s.number}_buf, {shape}, dtype={dtype})",
                    ]
        return "\n".join(lines + host) + "\n"

    def arrays(self):
        """The host's parameters: (name, annotation, (what is passed, what it is afterwards))."""
        ranks = self.ranks
        kind = f"pl.Tensor[[{ranks}, {self.delays.slots}], pl.INT32]"
        yield "delays", kind, None
        for s in self.streams:
            dtype = f"pl.{s.dtype}"

            def rows(parts, default):
                whole = np.stack([default] * ranks)
                whole[s.devices] = parts
                return whole

            none = np.zeros((ROWS, COLUMNS), NUMPY[s.dtype])
            inputs = rows(s.inputs, none)
            kind = f"pl.Tensor[[{ranks}, {ROWS}, {columns_of(s.dtype, COLUMNS)}], {dtype}]"
            yield f"inp_{s.number}", kind, (inputs, inputs)
            tokens = np.tile(np.zeros(len(s.segments), np.int32), (ranks, 1))
            counted = rows(np.arange(len(s.segments)), tokens[0])
            kind = f"pl.InOut[pl.Tensor[[{ranks}, {len(s.segments)}], pl.INT32]]"
            yield f"token_{s.number}", kind, (tokens, counted)
            none = np.zeros((ranks, len(s.devices)), np.int32)
            kind = f"pl.InOut[pl.Tensor[[{ranks}, {len(s.devices)}], pl.INT32]]"
            yield f"counts_{s.number}", kind, (none, rows(s.received_rows, none[0]))
            for w, ((r, c), dump) in enumerate(zip(s.shapes, s.dumps)):
                empty = np.zeros((ranks, r, c), NUMPY[s.dtype])
                kind = f"pl.InOut[pl.Tensor[[{ranks}, {r}, {columns_of(s.dtype, c)}], {dtype}]]"
                yield f"dump{w}_{s.number}", kind, (empty, rows(dump, empty[0]))
        for home, columns in self.columns.items():
            dtype = self.streams[home].dtype
            empty = np.zeros((ranks, ROWS, columns), NUMPY[dtype])
            full = empty.copy()
            for s in self.streams:
                if self.shared[s.number][0] == home:
                    at = self.shared[s.number][1]
                    full[s.devices, :, at : at + COLUMNS] = s.outputs
            shape = f"[{ranks}, {ROWS}, {columns_of(dtype, columns)}]"
            yield f"out{home}", f"pl.InOut[pl.Tensor[{shape}, pl.{dtype}]]", (empty, full)

    def dtype(self, name):
        """Element type of one of the host's parameters."""
        if name == "delays" or name.startswith(("token", "counts")):
            return "INT32"
        return self.streams[int(name.removeprefix("out") if name.startswith("out") else name.split("_")[1])].dtype


def mix(chooser, streams, device):
    """Adds one stream's output to another's on one device; nothing if they do not add."""
    a, b = chooser.sample(streams, 2)
    x, y = (s.outputs[s.devices.index(device)] for s in (a, b))
    result = x + y if adds(a.dtype) else y
    if a.dtype != b.dtype or (a.dtype in EXACT and result.max() > EXACT[a.dtype]):
        return
    x[:] = result
    yield ("mix", a.number, b.number), [a.number, b.number]


def add_to_rows(chooser, streams, device):
    """Adds 1 to some rows of a stream's output on one device, each by a block of its own."""
    s, rows = chooser.choice(streams), chooser.randint(1, ROWS)
    x = s.outputs[s.devices.index(device)]
    if adds(s.dtype) and not (s.dtype in EXACT and x[:rows].max() >= EXACT[s.dtype]):
        x[:rows] += x.dtype.type(1)
    elif adds(s.dtype):
        return
    yield ("rows", s.number, rows), [s.number]


def add_block(chooser, calls, streams, block):
    """Has each device submit the kernels of a block in a random order, but each stream's in its own."""
    for device, todo in calls.items():
        mine = [s for s in streams if device in s.devices]
        numbers = {s.number: [kernel for number, kernel in block if number == s.number] for s in mine}
        turns = [number for number, _ in block if number in numbers]
        chooser.shuffle(turns)
        todo += [(("kernel", number, numbers[number].pop(0)), [number]) for number in turns]
        if len(mine) > 1 and chooser.random() < 0.4:
            todo += mix(chooser, mine, device)
        if mine and chooser.random() < 0.3:
            todo += add_to_rows(chooser, mine, device)
        if turns and chooser.random() < 0.2:
            number, kernel = next(each for each in reversed(block) if each[0] in turns)
            todo.append((("look", number, kernel), [number]))


def add_dispatch(chooser, ranks, streams, most):
    calls = {device: [] for device in range(ranks)}
    for _ in range(chooser.randint(1, 2)):
        block = [(s.number, s.add_kernel(most)) for s in streams for _ in range(chooser.choice([0, 1, 1, 2]))]
        add_block(chooser, calls, streams, block)
    return calls


def host_collectives(chooser, streams):
    """Statements of the host function between two dispatches."""
    several = [s for s in streams if s.collective for _ in range(chooser.choice([0, 1, 2]))]
    return [line for line in (s.join(host=True) for s in several) if line is not None]


@st.composite
def programs(draw):
    ranks = draw(st.sampled_from([2, 3, 4, 1, 8]))
    count, dispatches, most = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(2, 14))
    # Equal seeds are frequent, and should not make equal programs.
    seed = hash((ranks, count, dispatches, most, draw(st.integers(0, 2**32 - 1)))) % 2**32
    chooser, rng, delays = random.Random(seed), np.random.default_rng(seed), Delays()
    dtypes = chooser.sample(DTYPES, 2)
    if chooser.random() < 0.25:
        dtypes[0] = chooser.choice(STORAGE)
    streams, shared, columns = [], {}, {}
    for number in range(count):
        dtype = chooser.choice(dtypes)
        devices = list(range(ranks))
        if chooser.random() < 0.2:
            devices = sorted(chooser.sample(devices, chooser.randint(1, ranks)))
        streams.append(Stream(chooser, number, dtype, devices, delays, rng, chooser.random() < 0.6))
        homes = [home for home in columns if streams[home].dtype == dtype]
        home = chooser.choice([*homes, number])
        shared[number] = home, columns.get(home, 0)
        columns[home] = columns.get(home, 0) + COLUMNS
    calls, between = [], []
    for _ in range(dispatches):
        calls.append(add_dispatch(chooser, ranks, streams, most))
        between.append(host_collectives(chooser, streams))
    between.append([])
    calls.append({device: [] for device in range(ranks)})
    add_block(chooser, calls[-1], streams, [(s.number, s.add_last()) for s in streams])
    calls = [{device: todo for device, todo in each.items() if todo} for each in calls]
    at_host = chooser.random() < 0.5
    styles = {(d, device): chooser.choice(STYLES) for d, each in enumerate(calls) for device in each}
    return Program(ranks, streams, delays, shared, columns, calls, between, at_host, styles)
