"""Random programs whose meaning is the order of their calls: wrappers that call kernels and start scopes on parts of
their tensors and may return tensors of their own, and a host function that dispatches them to devices.

Python says what a program means: it runs the same text, with something simple in the place of `pl`, one call after the
other. Names are drawn from few on purpose: scopes and loops of one wrapper
share them.

Between devices a dispatch is ordered behind those that write what it reads, but not behind those that read what it writes.
Places keeps the host functions within that."""

import contextlib
import types

import numpy as np
from hypothesis import strategies as st

DEVICES = 3
PRIME = 1000003

HEAD = f"""\
T = pl.Tensor[[8], pl.INT64]
Half = pl.Tensor[[4], pl.INT64]

@pl.jit.incore
def spread(x: T, z: pl.Out[T], k: pl.Scalar[pl.INT64]):
    for i in pl.range(8):
        z[i] = (x[i] * 3 + k + pl.cast(i, pl.INT64)) % {PRIME}

@pl.jit.incore
def fold(x: Half, z: pl.InOut[Half], k: pl.Scalar[pl.INT64]):
    for i in pl.range(4):
        z[i] = (z[i] * 7 + x[3 - i] + k) % {PRIME}

@pl.jit.incore
def mix(x: T, y: T, z: pl.InOut[T], k: pl.Scalar[pl.INT64]):
    for i in pl.range(8):
        z[i] = (z[i] + x[i] * y[7 - i] + k) % {PRIME}

"""

ALL = ["x", "y", "z", "t", "u"]  # of a wrapper: x is only read, t and u are its own
WRITTEN = ALL[1:]


class Writer:
    def __init__(self, draw):
        self.draw = draw
        self.returned = {}  # by wrapper: how many of its own tensors it returns

    def pick(self, choices):
        return self.draw(st.sampled_from(choices))

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def other(self, taken):
        return self.pick([name for name in ALL if name not in taken])

    def half(self, name):
        return self.pick([f"{name}[0:4]", f"{name}[4:8]", f"{name}[2:6]", f"pl.slice({name}, [4], [3])"])

    # ---- wrappers ----

    def kernel_call(self, k):
        target = self.pick(WRITTEN)
        form = self.pick(["spread", "fold", "fold", "mix", "scope", "scope"])
        if form == "spread":
            return [f"spread({self.other([target])}, {target}, {k})"]
        if form == "mix":
            return [f"mix({self.other([target])}, {self.other([target])}, {target}, {k})"]
        source = self.other([])
        if form == "fold":
            if source == target:
                return [f"fold({target}[0:4], {target}[4:8], {k})"]
            return [f"fold({self.half(source)}, {self.half(target)}, {k})"]
        loop = self.pick(["i", "j"])
        return [
            "with pl.at(level=pl.Level.CORE_GROUP):",
            f"    m = {k}",
            f"    for {loop} in pl.range({self.pick([4, 8])}):",
            f"        m = (m + {source}[7 - {loop}]) % {PRIME}",
            f"        {target}[{loop}] = ({target}[{loop}] + m) % {PRIME}",
        ]

    def statement(self):
        k = self.pick(["n", "n + 1", f"n * 0 + {self.number(0, 99)}"])
        form = self.pick(["plain", "plain", "if", "for", "two", "element"])
        if form == "element":
            return [f"{self.pick(WRITTEN)}[{self.number(0, 7)}] = n + {self.number(0, 9)}"]
        if form == "plain":
            return self.kernel_call(k)
        if form == "if":
            head = f"if n % 2 == {self.number(0, 1)}:"
            lines = [head, *indented(self.kernel_call(k))]
            return lines + ["else:", *indented(self.kernel_call(k))] if self.pick([True, False]) else lines
        loop = self.pick(["i", "j"])
        head = f"for {loop} in pl.range({self.pick(['2', '3', 'n % 3'])}):"
        body = self.kernel_call(f"{k} + pl.cast({loop}, pl.INT64)")
        return [head, *indented(body), *(indented(self.kernel_call(k)) if form == "two" else [])]

    def wrapper(self, name):
        lines = [f"{t} = pl.create_tensor([8], dtype=pl.INT64)" for t in ("t", "u")]
        for _ in range(self.number(1, 6)):
            lines += self.statement()
        own = self.pick([[], ["t"], ["u"], ["t", "u"], ["u", "t"]])
        self.returned[name] = len(own)
        lines += [f"return {', '.join(own)}"] if own else []
        head = ["@pl.jit", f"def {name}(x: T, y: pl.InOut[T], z: pl.InOut[T], n: pl.Scalar[pl.INT64]):"]
        return head + indented(lines) + [""]

    # ---- the host function ----

    def dispatch(self, places):
        wrapper = self.pick(["first", "second"])
        turns = DEVICES if self.pick([True, False]) else 1
        row, device = (
            (self.pick(["r", "(r + 1) % 3", "2 - r"]), self.pick(["r", "(r + 1) % 3", "2 - r"]))
            if turns > 1
            else (str(self.number(0, 2)), str(self.number(0, 2)))
        )
        y, z = self.draw(st.permutations(["a", "b", "c"]))[:2]
        source = self.pick([name for name in ("x", "a", "b", "c") if name not in (y, z)])
        from_row = self.pick([row, "1"])
        steps = [[eval(text, {"r": r}) for text in (device, from_row, row)] for r in range(turns)]
        if not all(places.allow(d, [(source, s)], [(y, t), (z, t)]) for d, s, t in steps):
            return []
        k = f"{self.number(0, 9)}" + (" + pl.cast(r, pl.INT64)" if turns > 1 else "")
        calls = [f"{wrapper}({source}[{from_row}], {y}[{row}], {z}[{row}], {k}, device={device})"]
        if self.returned[wrapper] > 0 and self.pick([True, False]):
            fresh = ["f", "g"][: self.returned[wrapper]]
            calls[0] = f"{', '.join(fresh)} = {calls[0]}"
            calls += self.reader(places, self.pick(fresh), z, row, k, turns)
        return [f"for r in pl.range({DEVICES}):", *indented(calls)] if turns > 1 else calls

    def reader(self, places, fresh, target, row, k, turns):
        """A dispatch of what the one before has made, and of a row that it writes."""
        device = self.pick(["r", "(r + 1) % 3", "2 - r"]) if turns > 1 else str(self.number(0, 2))
        other = self.pick([name for name in "abc" if name != target])
        for r in range(turns):
            at, place = eval(device, {"r": r}), eval(row, {"r": r})
            if not places.allow(at, [], [(target, place), (other, place)]):
                return []
        wrapper = self.pick(["first", "second"])
        return [f"{wrapper}({fresh}, {target}[{row}], {other}[{row}], {k}, device={device})"]

    def host(self):
        places, lines = Places(), []
        for _ in range(self.number(1, 7)):
            lines += self.dispatch(places)
        params = ", ".join(
            f"{name}: {form}" for name, form in zip("xabc", ["Rows"] + ["pl.InOut[Rows]"] * 3)
        )
        head = [f"Rows = pl.Tensor[[{DEVICES}, 8], pl.INT64]", "", "@pl.jit.host", f"def host({params}):"]
        return head + indented(lines or ["pass"])

    def text(self):
        return HEAD + "\n".join(self.wrapper("first") + self.wrapper("second") + self.host()) + "\n"


class Places:
    """Who has read which row of a host tensor since it was written last."""

    def __init__(self):
        self.readers = {}

    def allow(self, device, reads, writes):
        for place in writes:
            if self.readers.pop(place, set()) - {device}:
                return False
        for place in reads:
            self.readers.setdefault(place, set()).add(device)
        return True


def indented(lines):
    return ["    " + line for line in lines]


@st.composite
def texts(draw):
    return Writer(draw).text()


# ---- what it means ----


class Subscripted:
    def __class_getitem__(cls, _):
        return cls


def undecorated(function):
    return lambda *args, device=None: function(*args)


undecorated.incore = undecorated.host = undecorated


class Meaning:
    """Stands for `pl` when Python runs the program itself."""

    Tensor = Out = InOut = Scalar = Subscripted
    INT64 = np.int64
    Level = types.SimpleNamespace(CORE_GROUP=None)
    jit = undecorated
    range = range

    @staticmethod
    def at(level):
        return contextlib.nullcontext()

    @staticmethod
    def create_tensor(shape, dtype):
        return np.zeros(shape, dtype)

    @staticmethod
    def slice(x, shape, offset):
        return x[offset[0] : offset[0] + shape[0]]

    @staticmethod
    def cast(number, dtype):
        return number


def run_plain(text, arrays):
    names = {"pl": Meaning}
    exec(compile(text, "<plain>", "exec"), names)
    names["host"](*arrays)
