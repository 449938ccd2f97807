"""The syntax of random programs. Each node knows two things: the source text that stands for it, and,
independently of it, what it does. Expressions have `str(node)` and `node.value(frame)`; statements have
`lines()` and `run(frame)`, a generator that yields whenever it has to wait for another rank."""

import dataclasses

import numpy as np

import values
from values import Tile, cut

INDENT = "    "


class BreakLoop(Exception):
    pass


class ContinueLoop(Exception):
    pass


@dataclasses.dataclass
class Frame:
    """The variables of one function on one rank. Tensors are arrays, and so are the ranks' windows."""

    names: dict
    rank: int = 0
    ranks: int = 1
    windows: dict = dataclasses.field(default_factory=dict)  # name: one array per rank


# ---- scalars ----


@dataclasses.dataclass
class Var:
    name: str
    dtype: str

    def __str__(self):
        return self.name

    def value(self, frame):
        return frame.names[self.name]


@dataclasses.dataclass
class Literal:
    """Takes the type of what it meets."""

    number: object
    dtype: str

    def __str__(self):
        return repr(self.number)

    def value(self, frame):
        return self.number if self.dtype not in values.FLOATS else np.float32(self.number)


@dataclasses.dataclass
class Binary:
    operator: str
    a: object
    b: object

    @property
    def dtype(self):
        return self.a.dtype if self.operator in ("<<", ">>") else values.promoted(self.a.dtype, self.b.dtype)

    def __str__(self):
        return f"({self.a} {self.operator} {self.b})"

    def value(self, frame):
        x, y = self.a.value(frame), self.b.value(frame)
        if self.operator not in ("<<", ">>"):
            x = values.convert(x, self.a.dtype, self.dtype)
            y = values.convert(y, self.b.dtype, self.dtype)
        return values.binary(self.operator, x, y, self.dtype)


@dataclasses.dataclass
class Unary:
    operator: str
    a: object

    @property
    def dtype(self):
        return self.a.dtype

    def __str__(self):
        return f"({self.operator}{self.a})"

    def value(self, frame):
        x = self.a.value(frame)
        if values.is_int(self.dtype):
            return values.wrap(-x if self.operator == "-" else ~x, self.dtype)
        return np.float32(-x)


@dataclasses.dataclass
class Extreme:
    function: str
    a: object
    b: object

    @property
    def dtype(self):
        return values.promoted(self.a.dtype, self.b.dtype)

    def __str__(self):
        return f"pl.{self.function}({self.a}, {self.b})"

    def value(self, frame):
        x = values.convert(self.a.value(frame), self.a.dtype, self.dtype)
        y = values.convert(self.b.value(frame), self.b.dtype, self.dtype)
        return min(x, y) if self.function == "min" else max(x, y)


@dataclasses.dataclass
class Cast:
    a: object
    dtype: str

    def __str__(self):
        return f"pl.cast({self.a}, pl.{self.dtype})"

    def value(self, frame):
        return values.convert(self.a.value(frame), self.a.dtype, self.dtype)


@dataclasses.dataclass
class Choice:
    a: object
    condition: object
    b: object

    @property
    def dtype(self):
        return self.a.dtype

    def __str__(self):
        return f"({self.a} if {self.condition} else {self.b})"

    def value(self, frame):
        return (self.a if self.condition.value(frame) else self.b).value(frame)


@dataclasses.dataclass
class Compare:
    """A chain: operands[0] operators[0] operands[1] ..."""

    operands: list
    operators: list
    dtype = "BOOL"

    def __str__(self):
        words = [str(self.operands[0])]
        for operator, operand in zip(self.operators, self.operands[1:]):
            words += [operator, str(operand)]
        return f"({' '.join(words)})"

    def value(self, frame):
        for a, operator, b in zip(self.operands, self.operators, self.operands[1:]):
            x, y = values.comparable(a.value(frame), a.dtype, b.value(frame), b.dtype)
            if not values.COMPARISONS[operator](x, y):
                return False
        return True


@dataclasses.dataclass
class Logic:
    word: str
    a: object
    b: object
    dtype = "BOOL"

    def __str__(self):
        return f"({self.a} {self.word} {self.b})"

    def value(self, frame):
        first = self.a.value(frame)
        return self.b.value(frame) if first == (self.word == "and") else first


@dataclasses.dataclass
class Not:
    a: object
    dtype = "BOOL"

    def __str__(self):
        return f"(not {self.a})"

    def value(self, frame):
        return not self.a.value(frame)


@dataclasses.dataclass
class Read:
    """An element of a tensor or a tile."""

    source: str
    indices: list
    dtype: str

    def __str__(self):
        return f"pl.read({self.source}, [{', '.join(map(str, self.indices))}])"

    def value(self, frame):
        source = frame.names[self.source]
        array = source.array if isinstance(source, Tile) else source
        element = array[tuple(i.value(frame) for i in self.indices)]
        return np.float32(element) if self.dtype in values.FLOATS else element.item()


# ---- statements ----


def at(offsets):
    return f"[{', '.join(map(str, offsets))}]"


def box(offsets, shape, frame):
    starts = [offset.value(frame) for offset in offsets]
    return tuple(slice(start, start + extent) for start, extent in zip(starts, shape))


@dataclasses.dataclass
class Assign:
    name: str
    expression: object

    def lines(self):
        yield f"{self.name} = {self.expression}"

    def run(self, frame):
        frame.names[self.name] = self.expression.value(frame)
        yield from ()


@dataclasses.dataclass
class Augment:
    name: str
    operator: str
    expression: object
    dtype: str

    def lines(self):
        yield f"{self.name} {self.operator}= {self.expression}"

    def run(self, frame):
        whole = Binary(self.operator, Var(self.name, self.dtype), self.expression)
        frame.names[self.name] = whole.value(frame)
        yield from ()


@dataclasses.dataclass
class Part:
    """A slice that counts in part only. valid: None, or an expression per dimension. With clamp it may reach
    over the end."""

    offsets: list
    shape: tuple
    valid: list
    clamp: bool

    def text(self, source):
        valid = "" if self.valid is None else f", valid_shape={at(self.valid)}"
        return (f"pl.slice({source}, {list(self.shape)}, {at(self.offsets)}{valid}"
                f"{', clamp=True' if self.clamp else ''})")

    def cut(self, source, frame):
        """The elements that count, and zeros."""
        part = source[box(self.offsets, self.shape, frame)]
        counts = part.shape
        if self.valid is not None:
            counts = tuple(min(v.value(frame), n) for v, n in zip(self.valid, counts))
        elements = np.zeros(self.shape, source.dtype)
        inside = tuple(slice(0, n) for n in counts)
        elements[inside] = part[inside]
        return elements, counts


@dataclasses.dataclass
class Load:
    """valid: None, or an expression per dimension. view: indices of leading dimensions that are dropped
    before. peer: of a window, another rank's. part: of that slice, from its first element."""

    name: str
    source: str
    offsets: list
    shape: tuple
    valid: list = None
    view: list = ()
    peer: object = None
    part: Part = None

    def lines(self):
        source = self.source + (at(self.view) if self.view else "")
        source = source if self.part is None else self.part.text(source)
        valid = "" if self.valid is None else f", valid_shape={at(self.valid)}"
        if self.peer is None:
            call = f"pl.load({source}, {at(self.offsets)}, {list(self.shape)}{valid})"
        else:
            call = (f"pld.tile.remote_load({source}, peer={self.peer}, offsets={at(self.offsets)}, "
                    f"shape={list(self.shape)}{valid})")
        yield f"{self.name} = {call}"

    def run(self, frame):
        if self.peer is not None:
            source = frame.windows[self.source][self.peer.value(frame)]
        else:
            source = frame.names[self.source]
        for index in self.view:
            source = source[index.value(frame)]
        counts = self.shape
        if self.part is not None:
            source, counts = self.part.cut(source, frame)
        array = source[box(self.offsets, self.shape, frame)].copy()
        valid = self.shape if self.valid is None else tuple(v.value(frame) for v in self.valid)
        valid = tuple(min(pair) for pair in zip(valid, counts))
        frame.names[self.name] = cut(array, valid)
        yield from ()


@dataclasses.dataclass
class Store:
    """form: "store" calls pl.store, "slice" assigns to a slice. rebind: the result gets the name again."""

    tile: str
    offsets: list
    shape: tuple
    target: str
    form: str = "store"

    def lines(self):
        if self.form == "slice":
            parts = [f"{o}:{o} + {n}" for o, n in zip(self.offsets, self.shape)]
            yield f"{self.target}[{', '.join(parts)}] = {self.tile}"
        else:
            rebind = f"{self.target} = " if self.form == "rebind" else ""
            yield f"{rebind}pl.store({self.tile}, {at(self.offsets)}, {self.target})"

    def run(self, frame):
        tile = frame.names[self.tile]
        frame.names[self.target][box(self.offsets, tile.valid, frame)] = tile.array[tile.inside]
        yield from ()


@dataclasses.dataclass
class Write:
    """One element of a tensor or a tile."""

    target: str
    indices: list
    expression: object

    def lines(self):
        yield f"pl.write({self.target}, {at(self.indices)}, {self.expression})"

    def run(self, frame):
        target = frame.names[self.target]
        array = target.array if isinstance(target, Tile) else target
        array[tuple(i.value(frame) for i in self.indices)] = self.expression.value(frame)
        yield from ()


@dataclasses.dataclass
class Operation:
    """name = spelling(arguments, extra); `meaning` gets the operands' values and gives a Tile. An operand
    is the name of a tile or a scalar expression."""

    name: str
    spelling: str
    operands: list
    meaning: object
    extra: str = ""

    def lines(self):
        words = ", ".join([str(operand) for operand in self.operands] + [self.extra] * (self.extra != ""))
        yield f"{self.name} = {self.spelling}({words})"

    def run(self, frame):
        operands = [
            frame.names[operand] if isinstance(operand, str) else operand.value(frame)
            for operand in self.operands
        ]
        with np.errstate(all="ignore"):
            frame.names[self.name] = self.meaning(*operands)
        yield from ()


def block_lines(block):
    for statement in block or [Pass()]:
        yield from (INDENT + line for line in statement.lines())


def run_block(block, frame):
    for statement in block:
        yield from statement.run(frame)


@dataclasses.dataclass
class Pass:
    def lines(self):
        yield "pass"

    def run(self, frame):
        yield from ()


@dataclasses.dataclass
class Sequence:
    """Several statements in the place of one."""

    body: list

    def lines(self):
        for statement in self.body:
            yield from statement.lines()

    def run(self, frame):
        yield from run_block(self.body, frame)


@dataclasses.dataclass
class Jump:
    word: str

    def lines(self):
        yield self.word

    def run(self, frame):
        yield from ()
        raise BreakLoop if self.word == "break" else ContinueLoop


@dataclasses.dataclass
class If:
    """conditions[i] goes with blocks[i]; one more block is the else."""

    conditions: list
    blocks: list

    def lines(self):
        for i, condition in enumerate(self.conditions):
            yield f"{'elif' if i else 'if'} {condition}:"
            yield from block_lines(self.blocks[i])
        if len(self.blocks) > len(self.conditions):
            yield "else:"
            yield from block_lines(self.blocks[-1])

    def run(self, frame):
        for condition, block in zip(self.conditions, self.blocks):
            if condition.value(frame):
                yield from run_block(block, frame)
                return
        if len(self.blocks) > len(self.conditions):
            yield from run_block(self.blocks[-1], frame)


@dataclasses.dataclass
class For:
    name: str
    bounds: list
    body: list
    iterator: str = "range"

    def lines(self):
        yield f"for {self.name} in pl.{self.iterator}({', '.join(map(str, self.bounds))}):"
        yield from block_lines(self.body)

    def run(self, frame):
        for i in range(*(bound.value(frame) for bound in self.bounds)):
            frame.names[self.name] = i
            try:
                yield from run_block(self.body, frame)
            except ContinueLoop:
                pass
            except BreakLoop:
                break


@dataclasses.dataclass
class While:
    condition: object
    body: list

    def lines(self):
        yield f"while {self.condition}:"
        yield from block_lines(self.body)

    def run(self, frame):
        while self.condition.value(frame):
            try:
                yield from run_block(self.body, frame)
            except ContinueLoop:
                pass
            except BreakLoop:
                break


@dataclasses.dataclass
class Notify:
    target: str
    peer: object
    offsets: list
    number: object
    op: str = "AtomicAdd"

    def lines(self):
        yield (f"pld.system.notify({self.target}, peer={self.peer}, offsets={at(self.offsets)}, "
               f"value={self.number}, op=pld.NotifyOp.{self.op})")

    def run(self, frame):
        cells = frame.windows[self.target][self.peer.value(frame)]
        where = tuple(o.value(frame) for o in self.offsets)
        before = cells[where] if self.op == "AtomicAdd" else 0
        cells[where] = before + self.number.value(frame)
        yield from ()


@dataclasses.dataclass
class Wait:
    signal: str
    offsets: list
    expected: object

    def lines(self):
        yield (f"pld.system.wait({self.signal}, offsets={at(self.offsets)}, expected={self.expected}, "
               f"cmp=pld.WaitCmp.Ge)")

    def run(self, frame):
        where = tuple(o.value(frame) for o in self.offsets)
        while frame.windows[self.signal][frame.rank][where] < self.expected.value(frame):
            yield


@dataclasses.dataclass
class Identity:
    """Binds the names of this rank and of the number of ranks."""

    window: str
    rank: str
    ranks: str

    def lines(self):
        yield f"ctx = pld.get_comm_ctx({self.window})"
        yield f"{self.rank} = pld.rank(ctx)"
        yield f"{self.ranks} = pld.nranks(ctx)"

    def run(self, frame):
        frame.names[self.rank], frame.names[self.ranks] = frame.rank, frame.ranks
        yield from ()


# ---- functions ----


@dataclasses.dataclass
class Param:
    """kind: "tensor", "out", "window", "signal" or "scalar"."""

    name: str
    kind: str
    dtype: str
    shape: tuple = ()

    def annotation(self, leading=""):
        if self.kind == "scalar":
            return f"pl.Scalar[pl.{self.dtype}]"
        if self.kind == "signal":
            return "pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]"
        shape = f"[{leading}{', '.join(map(str, self.shape))}], pl.{self.dtype}"
        if self.kind == "window":
            return f"pl.InOut[pld.DistributedTensor[{shape}]]"
        return f"pl.Out[pl.Tensor[{shape}]]" if self.kind == "out" else f"pl.Tensor[{shape}]"


@dataclasses.dataclass
class Kernel:
    name: str
    params: list
    body: list

    @property
    def outs(self):
        return [p for p in self.params if p.kind == "out"]

    def call(self, arguments):
        return f"{self.name}({', '.join(map(str, arguments))})"


@dataclasses.dataclass
class Call:
    """Of another kernel, as a statement. Arguments are names of tensors or scalar expressions."""

    kernel: Kernel
    arguments: list
    prefix: str = ""  # "self." in class form

    def lines(self):
        yield self.prefix + self.kernel.call(self.arguments)

    def run(self, frame):
        inner = dataclasses.replace(frame, names={})
        for param, argument in zip(self.kernel.params, self.arguments):
            if param.kind == "scalar":
                number = argument.value(frame)
                inner.names[param.name] = values.convert(number, argument.dtype, param.dtype)
            else:
                inner.names[param.name] = frame.names[argument]
                if argument in frame.windows:
                    inner.windows = inner.windows | {param.name: frame.windows[argument]}
        yield from run_block(self.kernel.body, inner)


@dataclasses.dataclass(repr=False)
class Program:
    """Kernels, each called once by one wrapper, which the host dispatches to every device. Parameters of
    the kernels have names of their own, so wrapper and host simply have all of them."""

    kernels: list  # helpers first
    calls: list  # Call nodes of the wrapper
    class_form: bool = False

    def __repr__(self):
        return f"<{len(self.kernels)} kernels, see below>"

    def memory(self):
        return [p for call in self.calls for p in call.kernel.params if p.kind != "scalar"]

    def text(self):
        return self.class_text() if self.class_form else self.jit_text()

    def function(self, head, name, params, body, leading="", first=()):
        signature = ", ".join([*first, *(f"{p.name}: {p.annotation(leading)}" for p in params)])
        return [head, f"def {name}({signature}):", *(INDENT + line for line in body), ""]

    def kernel_lines(self, kernel):
        body = [line for statement in kernel.body for line in statement.lines()]
        return [*body, "return " + ", ".join(p.name for p in kernel.outs)]

    def wrapper_lines(self, prefix=""):
        for call in self.calls:
            outs = [p.name for p in call.kernel.outs]
            yield f"{', '.join(outs)} = {prefix}{call.kernel.call(call.arguments)}"
        yield "return " + ", ".join(p.name for call in self.calls for p in call.kernel.outs)

    def host_lines(self, prefix=""):
        memory = self.memory()
        windows = [p for p in memory if p.kind in ("window", "signal")]
        for p in windows:
            if p.kind == "signal":
                yield f"{p.name}_buf = pld.alloc_window_buffer(pld.world_size() * 4)"
            else:
                yield f"{p.name}_buf = pld.alloc_window_buffer({list(p.shape)}, dtype=pl.{p.dtype})"
        yield "for r in pl.range(pld.world_size()):"
        for p in windows:
            shape = "[pld.world_size(), 1]" if p.kind == "signal" else str(list(p.shape))
            yield f"    {p.name} = pld.window({p.name}_buf, {shape}, dtype=pl.{p.dtype})"
        arguments = [p.name if p in windows else f"{p.name}[r]" for p in memory]
        yield f"    {prefix}wrapper({', '.join(arguments)}, r, device=r)"
        yield "return " + ", ".join(p.name for p in memory if p.kind == "out")

    def host_params(self):
        return [p for p in self.memory() if p.kind in ("tensor", "out")]

    def jit_text(self):
        lines = []
        for kernel in self.kernels:
            lines += self.function("@pl.jit.incore", kernel.name, kernel.params, self.kernel_lines(kernel))
        rank = [Param("rank", "scalar", "INT32")]
        lines += self.function("@pl.jit", "wrapper", self.memory() + rank, self.wrapper_lines())
        lines += self.function("@pl.jit.host", "host", self.host_params(), self.host_lines(), "NR, ")
        return "\n".join(lines)

    def class_text(self):
        lines = []
        for kernel in self.kernels:
            lines += self.function("@pl.function(type=pl.FunctionType.InCore)", kernel.name, kernel.params,
                                   self.kernel_lines(kernel), "", ["self"])
        rank = [Param("rank", "scalar", "INT32")]
        lines += self.function("@pl.function(type=pl.FunctionType.Orchestration)", "wrapper",
                               self.memory() + rank, self.wrapper_lines("self."), "", ["self"])
        lines += self.function("@pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)", "host",
                               self.host_params(), self.host_lines("self."), "NR, ", ["self"])
        return "\n".join(["@pl.program", "class Random:", *(INDENT + line for line in lines)])

    def interpret(self, inputs, ranks):
        """What the tensors hold afterwards; inputs: {name: array with a leading dimension of ranks}."""
        memory = {name: array.copy() for name, array in inputs.items()}
        windows = {}
        for p in self.memory():
            if p.kind in ("window", "signal"):
                shape = p.shape if p.kind == "window" else (ranks, 1)
                windows[p.name] = [np.zeros(shape, values.NUMPY[p.dtype]) for _ in range(ranks)]
        running = []
        for rank in range(ranks):
            names = {name: array[rank] for name, array in memory.items()}
            names |= {name: arrays[rank] for name, arrays in windows.items()}
            running.append(run_block(self.calls, Frame(names | {"rank": rank}, rank, ranks, windows)))
        turns = 0
        while running:
            running = [task for task in running if next(task, "done") != "done"]
            turns += 1
            assert turns < 10000, "the program waits for ever"
        return memory
