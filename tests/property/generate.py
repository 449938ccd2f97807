"""Draws random programs. Every choice is Hypothesis', so a failing program shrinks: to fewer kernels and
statements, to literals, to small shapes. What is drawn is always a program that the language allows; where
the compiler knows a constant it may refuse (a divisor of 0, an index out of bounds), so divisors, shift
counts and offsets are made such that it cannot.

A Writer fills one kernel. It keeps the names in scope with their types; a block sees the names around it and
may assign to them, and what it defines is gone behind it."""

import dataclasses

import numpy as np
from hypothesis import strategies as st

import nodes
import operations
import values
from nodes import Binary, Cast, Choice, Compare, Extreme, Literal, Logic, Not, Param, Read, Unary, Var
from values import ALL, FLOATS, HALVES, INTS, Tile

SHAPES = [(1,), (5,), (1, 8), (3, 7), (4, 16), (2, 33), (2, 3, 5)]
# Signatures of the table of operations whose calls can be drawn.
TABLE = operations.table()
ELEMENTWISE = [
    (spelling, name, [kind for _, kind, required in params if required])
    for name, rows in TABLE.items()
    if name in operations.ORACLES
    for spelling, params in rows
]
HALF_LITERALS = [0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 0.125]
ROUNDING = ["round", "rint", "floor", "ceil", "trunc"]


@dataclasses.dataclass(frozen=True)
class TileType:
    shape: tuple
    dtype: str
    full: bool = True  # all of it is valid
    ulps: int = 0  # how far it may be from what the interpreter says


def draw_literal(draw, dtype):
    if dtype in FLOATS:
        return Literal(draw(st.sampled_from(HALF_LITERALS)), dtype)
    low, high = values.limits(dtype)
    high = min(high, 2**63 - 1)  # Python integers end there for the compiler
    small = st.integers(max(low, -3), min(high, 9))
    return Literal(draw(small | st.sampled_from([low, high]) if dtype != "INDEX" else small), dtype)


class Writer:
    def __init__(self, draw, prefix, params, helpers=(), class_form=False):
        self.draw = draw
        self.prefix = prefix
        self.params = params
        self.helpers = list(helpers)
        self.class_form = class_form
        self.scalars = {p.name: p.dtype for p in params if p.kind == "scalar"}
        self.tensors = {p.name: p for p in params if p.kind in ("tensor", "out")}
        self.tiles = {}
        self.ranges = {}  # loop variables: (least, most)
        self.fixed = set()  # scalars that nobody may assign to
        self.loops = 0
        self.depth = 0
        self.count = 0
        self.budget = 14

    def pick(self, items):
        return self.draw(st.sampled_from(items))

    def chance(self, one_in):
        return self.draw(st.integers(0, one_in - 1)) == one_in - 1

    def fresh(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    # ---- scalar expressions; nothing is a constant but literals beside a variable ----

    def variable(self, dtype):
        """An expression of that type that the compiler cannot know."""
        own = [name for name, d in self.scalars.items() if d == dtype]
        if own and not self.chance(4):
            return Var(self.pick(own), dtype)
        integers = [name for name, d in self.scalars.items() if values.is_int(d)]
        source = self.pick(sorted(integers))
        at = self.scalars[source]
        if dtype in FLOATS:  # small numbers: sums and products stay exact
            return Cast(Binary("%", Var(source, at), Literal(5, at)), dtype)
        return Var(source, at) if at == dtype else Cast(Var(source, at), dtype)

    def read(self, dtype):
        """An element of a tensor of integers, or nothing."""
        sources = [p for p in self.tensors.values() if p.dtype == dtype and dtype in INTS]
        if not sources:
            return None
        source = self.pick(sources)
        return Read(source.name, [self.offset(extent, 1) for extent in source.shape], dtype)

    def scalar(self, dtype, depth=2):
        kind = self.draw(st.integers(0, 9)) if depth > 0 else 0
        if kind <= 2:
            return self.variable(dtype)
        if kind == 3 and dtype in INTS:
            return self.read(dtype) or self.variable(dtype)
        if kind == 4:
            return Choice(self.scalar(dtype, depth - 1), self.condition(depth - 1), self.scalar(dtype, depth - 1))
        if kind == 5:
            return Unary(self.pick(["-", "~"] if dtype not in FLOATS else ["-"]), self.scalar(dtype, depth - 1))
        if dtype in FLOATS:
            operator = self.pick(sorted(values.FLOAT_OPERATORS))
            other = draw_literal(self.draw, dtype) if kind == 6 else self.variable(dtype)
            return Binary(operator, self.scalar(dtype, depth - 1), other)
        if kind == 6:
            narrow = [d for d in INTS if values.bits(d) < values.bits(dtype)]
            if narrow and self.chance(2):
                return Binary("+", self.scalar(self.pick(narrow), depth - 1), self.scalar(dtype, depth - 1))
            return Extreme(self.pick(["min", "max"]), self.scalar(dtype, depth - 1), self.scalar(dtype, depth - 1))
        return self.int_binary(dtype, depth)

    def int_binary(self, dtype, depth):
        operator = self.pick(sorted(values.INT_OPERATORS))
        left = self.scalar(dtype, depth - 1)
        if operator in ("<<", ">>"):
            if self.chance(2):
                return Binary(operator, left, Literal(self.draw(st.integers(0, values.bits(dtype) - 1)), dtype))
            return Binary(operator, left, self.variable(self.pick(["INT32", "UINT8", "INT64"])))
        if self.chance(2):
            right = draw_literal(self.draw, dtype)
            if operator in ("//", "%") and right.number == 0:
                right = Literal(3, dtype)
            return Binary(operator, left, right)
        return Binary(operator, left, self.variable(dtype))

    def condition(self, depth=1):
        kind = self.draw(st.integers(0, 6)) if depth > 0 else 0
        flags = [name for name, d in self.scalars.items() if d == "BOOL"]
        if kind == 4:
            return Not(self.condition(depth - 1))
        if kind == 5:
            return Logic(self.pick(["and", "or"]), self.condition(depth - 1), self.condition(depth - 1))
        if kind == 6 and flags:
            return Var(self.pick(sorted(flags)), "BOOL")
        dtype = self.pick(INTS)
        operands = [self.scalar(dtype, depth), self.pick([0, 1])]
        operands[1] = draw_literal(self.draw, dtype) if operands[1] else self.variable(self.pick(INTS))
        if self.chance(4):
            operands.append(draw_literal(self.draw, operands[1].dtype))
            if isinstance(operands[1], Literal):
                operands[1] = self.variable(dtype)
                operands[2] = draw_literal(self.draw, dtype)
        operators = [self.pick(sorted(values.COMPARISONS)) for _ in operands[1:]]
        return Compare(operands, operators)

    def offset(self, extent, size):
        """An integer from 0 to extent - size."""
        room = extent - size
        loops = [name for name, (low, high) in self.ranges.items() if low >= 0 and high <= room]
        if loops and not self.chance(3):
            return Var(self.pick(sorted(loops)), "INDEX")
        if room > 0 and self.chance(3):
            return Binary("%", self.variable(self.pick(["INT32", "UINT8", "INT64"])), Literal(room + 1, "INT8"))
        return Literal(self.draw(st.integers(0, room)), "INDEX")

    # ---- tiles ----

    def new_tile(self, kind, letter="t"):
        """The name that gets a tile of that type: an old one, which is assigned to, or a new one. A name may
        hold a full tile in one branch and another one in the next: it is then taken for one that is not full."""
        old = [name for name, known in self.tiles.items()
               if known in (kind, dataclasses.replace(kind, full=False))]
        if old and self.chance(2):
            return self.pick(sorted(old))
        return self.fresh(letter)

    def keep(self, name, kind, statement):
        self.tiles.setdefault(name, kind)
        return statement

    def load(self):
        source = self.pick(list(self.tensors.values()))
        view = []
        shape = source.shape
        if len(shape) > 1 and self.chance(4):
            view, shape = [self.offset(shape[0], 1)], shape[1:]
        extents = tuple(n if not self.chance(4) else self.draw(st.integers(1, n)) for n in shape)
        offsets = [self.offset(n, extent) for n, extent in zip(shape, extents)]
        valid = None
        if self.chance(4) and max(extents) > 1:
            valid = [self.extent(extent) for extent in extents]
        part = self.part(shape, extents) if self.chance(5) else None
        if part is not None:
            offsets = [Literal(0, "INDEX")] * len(shape)
        kind = TileType(extents, source.dtype, valid is None and part is None)
        name = self.new_tile(kind)
        return self.keep(name, kind, nodes.Load(name, source.name, offsets, extents, valid, view, part=part))

    def part(self, shape, extents):
        """A slice of at least the extents, of which at least one element counts."""
        clamp = self.chance(2)
        sizes = tuple(extent + self.draw(st.integers(0, 2)) for extent in extents)
        sizes = sizes if clamp else tuple(map(min, sizes, shape))
        offsets = [self.offset(n, 1 if clamp else size) for n, size in zip(shape, sizes)]
        valid = [self.extent(size) for size in sizes] if self.chance(2) else None
        return nodes.Part(offsets, sizes, valid, clamp)

    def extent(self, most):
        """A number from 1 to most."""
        if most == 1 or self.chance(2):
            return Literal(self.draw(st.integers(1, most)), "INDEX")
        return self.unknown_extent(most)

    def unknown_extent(self, most):
        return Binary("+", Binary("%", self.variable("INT64"), Literal(most, "INT8")), Literal(1, "INT64"))

    def some_tile(self, accept):
        fitting = [name for name, kind in self.tiles.items() if kind.ulps == 0 and accept(kind)]
        return self.pick(sorted(fitting)) if fitting else None

    def elementwise(self):
        spelling, name, kinds = self.pick(ELEMENTWISE)
        oracle, dtypes, ulps = operations.ORACLES[name]
        left = self.some_tile(lambda kind: kind.dtype in dtypes)
        if left is None:
            return self.load()
        kind = self.tiles[left]
        operands = [left]
        for wanted in kinds[1:]:
            right = None
            if "tile" in wanted:
                right = self.some_tile(lambda other: other.full and other.dtype == kind.dtype and other.shape == kind.shape)
            if right is None and "scalar" in wanted:
                literal = kind.dtype in HALVES or self.chance(2)
                right = draw_literal(self.draw, kind.dtype) if literal else self.scalar(kind.dtype, 1)
            if right is None:
                return self.load()
            operands.append(right)
        result = dataclasses.replace(kind, ulps=ulps)
        target = self.new_tile(result)

        def meaning(a, *rest):
            wide = np.float32 if kind.dtype in FLOATS else values.NUMPY[kind.dtype]
            others = [b.array if isinstance(b, Tile) else b for b in rest]
            others = [np.broadcast_to(np.asarray(b, wide), a.array.shape) for b in others]
            out = oracle(kind.dtype, a.array.astype(wide), *others)
            return values.cut(values.rounded(out, kind.dtype) if kind.dtype in FLOATS else out, a.valid)

        return self.keep(target, result, nodes.Operation(target, spelling, operands, meaning))

    def cast(self):
        source = self.some_tile(lambda kind: True)
        if source is None:
            return self.load()
        kind = self.tiles[source]
        to = self.pick([dtype for dtype in ALL if dtype != kind.dtype])
        mode = self.pick(ROUNDING) if kind.dtype in FLOATS and to in INTS else ""
        result = dataclasses.replace(kind, dtype=to)
        target = self.new_tile(result)

        def meaning(a):
            return values.cut(operations.cast(a.array, kind.dtype, to, mode), a.valid)

        extra = f"pl.{to}" + (f", mode='{mode}'" if mode else "")
        return self.keep(target, result, nodes.Operation(target, "pl.cast", [source], meaning, extra))

    def reduce(self):
        word = self.pick(sorted(operations.REDUCTIONS))
        dtypes = operations.REDUCTIONS[word][1]
        source = self.some_tile(lambda kind: kind.dtype in dtypes and len(kind.shape) > 1)
        if source is None:
            return self.load()
        return self.reduce_to(source, word, self.chance(2))

    def reduce_to(self, source, word, row):
        oracle = operations.REDUCTIONS[word][0]
        kind = self.tiles[source]
        shape = (*kind.shape[:-1], 1) if row else (1, *kind.shape[1:])
        dtype = "INT32" if word.startswith("arg") else kind.dtype
        result = TileType(shape, dtype, kind.full)
        target = self.new_tile(result)

        def meaning(a):
            part = a.array[a.inside]
            part = part.astype(np.float32) if kind.dtype in FLOATS else part
            out = oracle(part, part.ndim - 1 if row else 0)
            out = values.rounded(out, kind.dtype) if kind.dtype in FLOATS else out
            whole = np.zeros(shape, values.NUMPY[dtype])
            whole[tuple(slice(0, n) for n in out.shape)] = out
            return Tile(whole, out.shape)

        spelling = f"pl.{'row' if row else 'col'}_{word}"
        return self.keep(target, result, nodes.Operation(target, spelling, [source], meaning))

    def expand(self):
        word = self.pick(sorted(operations.EXPANDS))
        oracle, dtypes, ulps = operations.EXPANDS[word]
        row = self.chance(2)

        def vector_of(shape):
            return (*shape[:-1], 1) if row else (1, *shape[1:])

        left = self.some_tile(lambda k: k.full and k.dtype in dtypes and len(k.shape) == 2)
        if left is None:
            return self.reduce()
        kind = self.tiles[left]
        vector = TileType(vector_of(kind.shape), kind.dtype)
        right = self.some_tile(lambda k: k == vector)
        if right is None:
            return self.reduce_to(left, "max", row)
        result = dataclasses.replace(kind, ulps=ulps)
        target = self.new_tile(result)

        def meaning(a, v):
            wide = np.float32 if kind.dtype in FLOATS else values.NUMPY[kind.dtype]
            out = oracle(kind.dtype, a.array.astype(wide), v.array.astype(wide))
            return values.full_tile(values.rounded(out, kind.dtype) if kind.dtype in FLOATS else np.array(out))

        spelling = f"pl.{'row' if row else 'col'}_expand{word}"
        return self.keep(target, result, nodes.Operation(target, spelling, [left, right], meaning))

    def constant(self):
        shape, dtype = self.pick(SHAPES), self.pick(ALL)
        kind = TileType(shape, dtype)
        target = self.new_tile(kind)
        literal = draw_literal(self.draw, dtype)

        def meaning():
            return values.full_tile(np.full(shape, literal.number, values.NUMPY[dtype]))

        extra = f"{list(shape)}, pl.{dtype}, {literal}"
        return self.keep(target, kind, nodes.Operation(target, "pl.tile.full", [], meaning, extra))

    def reshape(self):
        source = self.some_tile(lambda kind: kind.full and len(kind.shape) > 1)
        if source is None:
            return self.load()
        kind = self.tiles[source]
        result = TileType((int(np.prod(kind.shape)), 1)[:: self.pick([1, -1])], kind.dtype)
        target = self.new_tile(result)

        def meaning(a):
            return values.full_tile(a.array.reshape(result.shape))

        return self.keep(target, result,
                         nodes.Operation(target, "pl.reshape", [source], meaning, str(list(result.shape))))

    def transpose(self):
        source = self.some_tile(lambda kind: kind.full and len(kind.shape) == 2)
        if source is None:
            return self.load()
        kind = self.tiles[source]
        result = TileType(kind.shape[::-1], kind.dtype)
        target = self.new_tile(result)
        meaning = lambda a: values.full_tile(a.array.T.copy())
        return self.keep(target, result, nodes.Operation(target, "pl.transpose", [source], meaning, "0, 1"))

    def select(self):
        """A mask, and a choice by it."""
        left = self.some_tile(lambda kind: kind.full)
        if left is None:
            return self.load()
        kind = self.tiles[left]
        right = self.some_tile(lambda other: other == kind)
        word = self.pick(sorted(operations.COMPARISONS))
        compare = operations.COMPARISONS[word]
        mask = self.fresh("c")
        target = self.new_tile(kind)
        made = nodes.Operation(mask, "pl.cmp", [left, right], lambda a, b: compare(a.array, b.array),
                               f"cmp_type='{word}'")
        chosen = nodes.Operation(target, "pl.sel", [mask, left, right],
                                 lambda m, a, b: values.full_tile(np.where(m, a.array, b.array)))
        return self.keep(target, kind, nodes.Sequence([made, chosen]))

    def copy(self):
        source = self.some_tile(lambda kind: kind.full)
        if source is None:
            return self.load()
        kind = self.tiles[source]
        target = self.new_tile(kind)
        return self.keep(target, kind, nodes.Operation(
            target, "pl.move", [source], lambda a: values.full_tile(a.array.copy()), "pl.MemorySpace.Vec"))

    # ---- statements ----

    def store(self):
        outs = [p for p in self.tensors.values() if p.kind == "out"]
        pairs = [
            (name, out)
            for name, kind in sorted(self.tiles.items())
            for out in outs
            if kind.dtype == out.dtype and len(kind.shape) == len(out.shape) and kind.ulps == 0
            and all(n <= room for n, room in zip(kind.shape, out.shape))
        ]
        if not pairs:
            return self.load()
        name, out = self.pick(pairs)
        shape = self.tiles[name].shape
        offsets = [self.offset(room, n) for room, n in zip(out.shape, shape)]
        form = self.pick(["store", "rebind", "slice"])
        if form == "slice" and not (self.tiles[name].full and all(isinstance(o, (Var, Literal)) for o in offsets)):
            form = "store"
        return nodes.Store(name, offsets, shape, out.name, form)

    def write(self):
        outs = [p for p in self.tensors.values() if p.kind == "out" and p.dtype in INTS]
        if not outs:
            return self.store()
        out = self.pick(outs)
        return nodes.Write(out.name, [self.offset(n, 1) for n in out.shape], self.scalar(out.dtype))

    def assign(self):
        own = [name for name in self.scalars if name not in self.fixed]
        if own and self.chance(2):
            name = self.pick(sorted(own))
            dtype = self.scalars[name]
            if dtype in values.INTS and self.chance(2):
                operator = self.pick(["+", "-", "*", "&", "|", "^"])
                return nodes.Augment(name, operator, self.scalar(dtype, 1), dtype)
        else:
            dtype = self.pick(INTS + ["INT32", "INT32", "FP32", "BOOL"])
            name = self.fresh("v")
        expression = self.condition() if dtype == "BOOL" else self.scalar(dtype)
        if expression.dtype != dtype:
            expression = Cast(expression, dtype)
        self.scalars[name] = dtype
        return nodes.Assign(name, expression)

    def block(self, most=3):
        """What it defines is gone behind it."""
        saved = dict(self.scalars), dict(self.tiles), dict(self.ranges)
        self.depth += 1
        body = [self.statement() for _ in range(self.draw(st.integers(1, most)))]
        self.depth -= 1
        self.scalars, self.tiles, self.ranges = saved
        return body

    def branch(self):
        conditions = [self.condition() for _ in range(self.draw(st.integers(1, 2)))]
        blocks = [self.block() for _ in conditions]
        if self.chance(2):
            blocks.append(self.block())
        return nodes.If(conditions, blocks)

    def for_loop(self):
        name = self.fresh("i")
        stop = self.draw(st.integers(0, 4))
        if stop > 0 and self.chance(3):
            bounds = [Binary("%", self.variable("INT32"), Literal(stop + 1, "INT8"))]
            stop += 1
        elif self.chance(3):
            bounds = [Literal(stop, "INDEX"), Literal(-1, "INDEX"), Literal(-1, "INDEX")]
            stop += 1
        else:
            bounds = [Literal(stop, "INDEX")]
        saved = dict(self.scalars), dict(self.tiles), dict(self.ranges)
        self.scalars[name] = "INDEX"
        self.fixed.add(name)
        self.ranges[name] = (0, max(stop - 1, 0))
        self.loops += 1
        body = self.block(4)
        self.loops -= 1
        before, behind = self.last_turn(body, saved[0])
        self.scalars, self.tiles, self.ranges = saved
        return nodes.Sequence([*before, nodes.For(name, bounds, body), *behind])

    def last_turn(self, body, scalars):
        """A name that only the loop binds, and that is read behind it if a turn has come so far."""
        if self.chance(2):
            return [], []
        seen, last, result = self.fresh("seen"), self.fresh("last"), self.fresh("v")
        dtype = self.pick(INTS)
        expression = self.scalar(dtype)
        inside, self.scalars = self.scalars, scalars
        start = nodes.Assign(result, Cast(self.variable("INT32"), dtype))
        self.scalars = inside
        at = self.draw(st.integers(0, len(body)))
        body[at:at] = [nodes.Assign(last, Cast(expression, dtype)),
                       nodes.Assign(seen, Cast(Literal(1, "INDEX"), "INT32"))]
        scalars[result] = dtype
        read = nodes.If([Compare([Var(seen, "INT32"), Literal(0, "INT32")], ["!="])],
                        [[nodes.Assign(result, Var(last, dtype))]])
        return [start, nodes.Assign(seen, Cast(Literal(0, "INDEX"), "INT32"))], [read]

    def while_loop(self):
        """A counter that nobody else touches, raised where no continue can pass it by."""
        name = self.fresh("w")
        dtype = self.pick(INTS)
        start = nodes.Assign(name, Binary("&", self.variable(dtype), Literal(3, dtype)))
        saved = dict(self.scalars), dict(self.tiles), dict(self.ranges)
        self.scalars[name] = dtype
        self.fixed.add(name)
        self.loops += 1
        body = self.block(4)
        self.loops -= 1
        before, behind = self.last_turn(body, saved[0])
        self.scalars, self.tiles, self.ranges = saved
        condition = Compare([Var(name, dtype), Literal(4, dtype)], ["<"])
        if self.chance(3):
            condition = Logic("and", condition, self.condition())
        raised = nodes.Augment(name, "+", Literal(1, dtype), dtype)
        return nodes.Sequence([start, *before, nodes.While(condition, [raised, *body]), *behind])

    def jump(self):
        return nodes.If([self.condition()], [[nodes.Jump(self.pick(["break", "continue"]))]])

    def call(self):
        """Of a helper, with tensors of this kernel that fit."""
        for helper in self.helpers:
            arguments = []
            for p in helper.params:
                if p.kind == "scalar":
                    arguments.append(self.scalar(p.dtype, 1))
                    continue
                fitting = [q.name for q in self.tensors.values()
                           if (q.shape, q.dtype) == (p.shape, p.dtype) and (p.kind == "tensor" or q.kind == "out")]
                if not fitting:
                    break
                arguments.append(self.pick(sorted(fitting)))
            else:
                return nodes.Call(helper, arguments, "self." if self.class_form else "")
        return self.elementwise()

    def statement(self):
        self.budget -= 1
        choices = [self.elementwise] * 6 + [self.load] * 2 + [self.store] * 3 + [self.assign] * 3
        choices += [self.cast, self.reduce, self.expand, self.constant, self.reshape, self.copy, self.write]
        choices += [self.transpose, self.select]
        if self.helpers:
            choices += [self.call] * 2
        if self.depth < 3 and self.budget > 0:
            choices += [self.branch, self.for_loop, self.for_loop, self.while_loop]
        if self.loops > 0:
            choices += [self.jump]
        return self.pick(choices)()


def draw_params(draw, prefix, shapes=SHAPES, dtypes=ALL):
    shape = draw(st.sampled_from(shapes))
    dtype = draw(st.sampled_from(dtypes))
    other = draw(st.sampled_from(dtypes))
    params = [
        Param(f"{prefix}x", "tensor", dtype, shape),
        Param(f"{prefix}y", "tensor", other, shape),
        Param(f"{prefix}z", "out", dtype, shape),
    ]
    if draw(st.booleans()):
        params.append(Param(f"{prefix}u", "out", other, draw(st.sampled_from(shapes))))
    params += [Param(f"{prefix}n", "scalar", "INT32"), Param(f"{prefix}b", "scalar", "BOOL")]
    params += [Param(f"{prefix}m", "scalar", draw(st.sampled_from(INTS)))]
    if draw(st.booleans()):
        params.append(Param(f"{prefix}f", "scalar", "FP32"))
    return params


def last_stores(writer, results):
    """Ends a kernel: every variable goes to an output of its own, so that no statement is for nothing."""
    for name, kind in sorted(writer.tiles.items()):
        out = Param(f"{writer.prefix}{name}", "out", kind.dtype, kind.shape)
        writer.params.append(out)
        results[out.name] = kind.ulps
        yield nodes.Store(name, [Literal(0, "INDEX")] * len(kind.shape), kind.shape, out.name)
    for suffix, dtype, floats in [("ints", "INT64", False), ("floats", "FP32", True)]:
        own = [name for name, d in writer.scalars.items() if (d in FLOATS) == floats]
        if own:
            out = Param(f"{writer.prefix}{suffix}", "out", dtype, (len(own),))
            writer.params.append(out)
            for i, name in enumerate(own):
                value = Var(name, writer.scalars[name])
                value = value if value.dtype == dtype else Cast(value, dtype)
                yield nodes.Write(out.name, [Literal(i, "INDEX")], value)


def draw_kernel(draw, name, results, helpers=(), params=None, class_form=False):
    params = draw_params(draw, f"{name}_") if params is None else params
    writer = Writer(draw, f"{name}_", params, helpers, class_form)
    body = [writer.load() for _ in range(draw(st.integers(1, 3)))]
    body += [*(writer.statement() for _ in range(draw(st.integers(1, 16)))), writer.store()]
    body += last_stores(writer, results)
    return nodes.Kernel(name, params, body)


def draw_helper(draw, name, params, class_form):
    """A kernel that `name` can call: it has the tensors of that kernel and a number."""
    tensors = [dataclasses.replace(p, name=p.name.replace(name, "h")) for p in params if p.kind in ("tensor", "out")]
    own = [*tensors, Param("h_n", "scalar", "INT32"), Param("h_m", "scalar", "INT64")]
    writer = Writer(draw, "h_", own)
    body = [writer.load(), *(writer.elementwise() for _ in range(draw(st.integers(1, 3)))), writer.store()]
    return nodes.Kernel("helper", own, body)


def exchange(draw, name):
    """A kernel of all ranks: rounds of store, barrier, remote loads from chosen peers, barrier."""
    shape = draw(st.sampled_from([(1, 8), (2, 5)]))
    dtype = draw(st.sampled_from(ALL))
    params = [
        Param(f"{name}_x", "tensor", dtype, shape),
        Param(f"{name}_z", "out", dtype, shape),
        Param(f"{name}_w", "window", dtype, shape),
        Param(f"{name}_s", "signal", "INT32"),
        Param(f"{name}_n", "scalar", "INT32"),
    ]
    x, z, w, s, n = (p.name for p in params)
    zeros = [Literal(0, "INDEX")] * len(shape)
    me, ranks, peer = Var("me", "INT32"), Var("ranks", "INT32"), Var("p", "INDEX")
    body = [nodes.Identity(w, "me", "ranks"), nodes.Load("t", x, zeros, shape)]
    barriers = 0
    wide = np.float32 if dtype in FLOATS else values.NUMPY[dtype]

    def add(a, b):
        out = a.array.astype(wide) + b.array.astype(wide)
        return values.full_tile(values.rounded(out, dtype) if dtype in FLOATS else out)

    def barrier():
        nonlocal barriers
        barriers += 1
        everybody = [nodes.Notify(s, peer, [me, Literal(0, "INDEX")], Literal(1, "INT32"))]
        yield nodes.For("p", [ranks], everybody)
        yield nodes.For("p", [ranks], [nodes.Wait(s, [peer, Literal(0, "INDEX")], Literal(barriers, "INT32"))])

    for _ in range(draw(st.integers(1, 2))):
        body += [nodes.Store("t", zeros, shape, w), *barrier()]
        step = Binary("+", Var(n, "INT32"), Literal(draw(st.integers(0, 5)), "INT32"))
        chosen = Binary("%", Binary("+", me, step), ranks)
        body += [nodes.Load("q", w, zeros, shape, peer=chosen)]
        body += [nodes.Operation("t", "pl.add", ["t", "q"], add)]
        if draw(st.booleans()):
            body += [nodes.For("p", [ranks], [
                nodes.If([Compare([peer, me], ["!="])], [[
                    nodes.Load("q", w, zeros, shape, peer=peer),
                    nodes.Operation("t", "pl.add", ["t", "q"], add),
                ]]),
            ])]
        body += [*barrier()]
    body += [nodes.Store("t", zeros, shape, z)]
    return nodes.Kernel(name, params, body)


@st.composite
def programs(draw, most_kernels=3):
    """(program, ranks, {output: units in the last place}). Outputs that are not named are exact."""
    results = {}
    class_form = draw(st.booleans())
    kernels, calls = [], []
    for i in range(draw(st.integers(1, most_kernels))):
        name = f"k{i}"
        helpers = []
        params = draw_params(draw, f"{name}_")
        if not kernels and draw(st.booleans()):
            helpers = [draw_helper(draw, name, params, class_form)]
            kernels += helpers
        kernels.append(draw_kernel(draw, name, results, helpers, params, class_form))
        calls.append(kernels[-1])
    if draw(st.booleans()):
        kernels.append(exchange(draw, "e"))
        calls.append(kernels[-1])

    def argument(p):
        rank = Var("rank", "INT32")
        if p.dtype == "BOOL":
            return Compare([rank, Literal(draw(st.integers(0, 2)), "INT32")], ["<"])
        if p.dtype in FLOATS:
            return Cast(rank, p.dtype)
        number = Binary("*", rank, Literal(draw(st.integers(-9, 300)), "INT32"))
        return Binary("+", number, Literal(draw(st.integers(-3, 40)), "INT32"))

    all_calls = [
        nodes.Call(k, [argument(p) if p.kind == "scalar" else p.name for p in k.params]) for k in calls
    ]
    ranks = draw(st.integers(1, 4))
    return nodes.Program(kernels, all_calls, class_form), ranks, results
