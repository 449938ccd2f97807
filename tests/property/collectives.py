"""Collectives in random schedules: which are drawn, what they compute, how they are written in a kernel and in a host
function.

A stream that has them has two windows [n, SIZE] for those that need a part for each rank, two of [n * m, SIZE] and two of
counts for all_to_all_v, and three buffers of signals, so that consecutive collectives may use one signal or several."""

import re

import numpy as np

OPS = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}
# Around the borders between flags, stages and windows, for elements of one to eight bytes; 6 is what `inp` has.
SIZES = [1, 2, 6, 6, 9, 15, 60, 130, 1200]
SIGNALS = 3  # in `many`


class Collectives:
    """The part of a Stream that draws them."""

    def part_columns(self):
        return self.pick(SIZES)

    def signals(self):
        if not self.collective:
            return {}
        return {
            "sig": [self.n, 1],
            "ring": [2 * self.n - 1, self.n],
            "many": [SIGNALS * self.n],
            "send": [self.n, 1],
            "recv": [self.n, 1],
        }

    def signal(self):
        at = self.chooser.randint(0, SIGNALS - 1) * self.n
        return self.pick(["sig", f"many[{at} : {at + self.n}]"])

    def mode(self, host):
        """A signal, and a mode that goes with it. A host function's signal for a ring has one row more."""
        modes = ["sig", "sig, mode='mesh'", "sig, mode='auto'"]
        ring = "ring" if host else f"ring[0 : {2 * self.n - 2}, :]"
        if host or self.n > 1:
            modes += [f"{ring}, mode='ring'", f"{ring}, mode='auto'"]
        return self.pick([*modes, "", "core_num=3", "mode='auto'"] if host else modes)

    def of_collective(self):
        self.each(lambda q: "pld.tensor.barrier({})", [self.signal()] * self.n)

    def each(self, call, signals):
        """One call for all ranks, or the same one written for each."""
        calls = [call(q).format(signal) for q, signal in enumerate(signals)]
        if len(set(calls)) == 1 and self.chance(2):
            self.emit(None, calls[0])
            return
        for q, text in enumerate(calls):
            self.emit(q, text)

    # ---- what they do ----

    def drawn_fold(self, parts):
        """An operator, and the fold of the parts; None where the result would not be exact."""
        op = self.pick(list(OPS))
        result = parts[0].copy()
        for each in parts[1:]:
            result = OPS[op](result, each)
            if self.exact is not None and result.max() > self.exact:
                return op, None
        return op, result

    def enter(self, accesses):
        """All ranks enter, behind all that any has done, and do their accesses: (rank, kind, place, box)."""
        for q in range(self.n):
            self.tick(q)
        self.join_all()
        for q in range(self.n):
            self.tick(q)
        for access in accesses:
            self.note(*access)

    def rows_of(self, places, host):
        """A window, whole or some of its rows, as it is written and as a box."""
        rows, columns = places[0].data.shape
        name = places[0].name
        if host or self.chance(2):
            return name, (slice(0, rows), slice(0, columns))
        begin = self.chooser.randint(0, rows - 1)
        end = self.chooser.randint(begin + 1, rows)
        return f"{name}[{begin}:{end}, :]", (slice(begin, end), slice(0, columns))

    def join(self, host=False):
        """One collective of all ranks. Of the host: its text, or None if none can stand here."""
        kinds = [self.broadcast, self.allgather, self.all_to_all, self.all_to_all_v]
        if self.folds:
            kinds += [self.allreduce, self.allreduce, self.reduce_scatter]
        drawn = self.pick(kinds)(host)
        if drawn is None:
            return None
        call, signal = drawn
        if host:  # where names are those of all streams
            return re.sub(r"(?<!')\b(win\d+|sig|ring|send|recv)(_buf)?\b", rf"\1_{self.number}\2", call(0).format(signal))
        if self.chance(3):
            self.delay(self.chooser.randint(0, self.n - 1))
        self.each(call, [signal] * self.n)
        return None

    def part_of(self, places):
        """A view that counts in part."""
        shape = places[0].data.shape
        valid = [self.chooser.randint(1, k) for k in shape]
        view = f"pl.slice({places[0].name}, {list(shape)}, [0, 0], valid_shape={valid})"
        return view, tuple(slice(0, k) for k in valid)

    def allreduce(self, host):
        places = self.pick(self.windows)
        name, box = self.part_of(places) if not host and self.chance(3) else self.rows_of(places, host)
        op, result = self.drawn_fold([p.data[box] for p in places])
        if result is None:
            return None
        accesses = [(q, kind, p, box) for q, p in enumerate(places) for kind in ("read", "write")]
        self.enter(accesses)
        for p in places:
            p.data[box] = result
        signal = self.mode(host)
        between = ", " if signal else ""
        return lambda q: f"pld.tensor.allreduce({name}{between}{{}}, op=pld.ReduceOp.{op})", signal

    def reduce_scatter(self, host):
        places = self.windows[self.pick(self.parts)]
        op, result = self.drawn_fold([p.data for p in places])
        if result is None:
            return None
        whole = tuple(slice(0, k) for k in places[0].data.shape)
        mine = [(slice(q, q + 1), whole[1]) for q in range(self.n)]
        accesses = [(q, "read", p, whole) for q, p in enumerate(places)]
        accesses += [(q, "write", p, mine[q]) for q, p in enumerate(places)]
        self.enter(accesses)
        for q, p in enumerate(places):
            p.data[mine[q]] = result[mine[q]]
        signal = "sig" if host else self.signal()
        return lambda q: f"pld.tensor.reduce_scatter({places[0].name}, {{}}, op=pld.ReduceOp.{op})", signal

    def broadcast(self, host):
        root = self.chooser.randint(0, self.n - 1)
        places = self.pick(self.windows)
        name, box = self.rows_of(places, host)
        accesses = [(q, "read" if q == root else "write", p, box) for q, p in enumerate(places)]
        self.enter(accesses)
        value = places[root].data[box].copy()
        for p in places:
            p.data[box] = value
        signal = "sig" if host else self.signal()
        return lambda q: f"pld.tensor.broadcast({name}, {{}}, root={root})", signal

    def sources(self, host, tensors):
        """The target, and a place for each rank's input: the other window, or one of so many tensors where they fit."""
        target, other = self.chooser.sample(self.parts, 2)
        target, inputs = self.windows[target], list(self.windows[other])
        rows, columns = target[0].data.shape
        if not host and columns == self.own[0][0].data.shape[1] and rows <= self.own[0][0].data.shape[0]:
            inputs = [self.pick([place, *self.own[q][:tensors]]) for q, place in enumerate(inputs)]
        return target, inputs

    def exchange(self, target, inputs, boxes, received):
        whole = tuple(slice(0, k) for k in target[0].data.shape)
        accesses = [(q, "read", p, boxes[q]) for q, p in enumerate(inputs)]
        accesses += [(q, "write", p, whole) for q, p in enumerate(target)]
        self.enter(accesses)
        for p, value in zip(target, received):
            p.data[whole] = value

    def allgather(self, host):
        target, inputs = self.sources(host, 2)
        columns = target[0].data.shape[1]
        rows = [0 if host else self.chooser.randint(0, self.n - 1) for _ in inputs]
        boxes = [(slice(row, row + 1), slice(0, columns)) for row in rows]
        gathered = np.concatenate([p.data[box] for p, box in zip(inputs, boxes)])
        self.exchange(target, inputs, boxes, [gathered] * self.n)

        def call(q):
            row = f"{inputs[q].name}[{rows[q]}:{rows[q] + 1}, :]"
            if host:
                row = f"pld.window({inputs[q].name}_buf, [1, {self.columns(columns)}], dtype=pl.{self.dtype})"
            return f"pld.tensor.allgather({row}, {target[0].name}, {{}})"

        return call, "sig" if host else self.signal()

    def all_to_all(self, host):
        target, inputs = self.sources(host, 1)  # `out` may have gaps between its rows
        box = (slice(0, self.n), slice(0, target[0].data.shape[1]))
        sent = np.stack([p.data[box] for p in inputs])
        self.exchange(target, inputs, [box] * self.n, sent.swapaxes(0, 1).copy())

        def call(q):
            rows = "" if inputs[q].window >= 0 else f"[0:{self.n}, :]"
            return f"pld.tensor.all_to_all({inputs[q].name}{rows}, {target[0].name}, {{}})"

        return call, "sig" if host else self.signal()

    def all_to_all_v(self, host):
        target, inputs = (self.windows[w] for w in self.chooser.sample(self.blocks, 2))
        rows = target[0].data.shape[0] // self.n
        for q in range(self.n):
            if host or self.chance(2):
                continue
            p = self.chooser.randint(0, self.n - 1)
            self.sent_rows[q, p] = self.chooser.randint(0, rows)
            self.emit(q, f"pl.write(send, [{self.peer(q, p)}, 0], {self.sent_rows[q, p]})")
        whole = tuple(slice(0, k) for k in target[0].data.shape)
        sent = np.stack([p.data for p in inputs]).reshape(self.n, self.n, rows, -1)
        received = sent.swapaxes(0, 1).reshape(self.n, *target[0].data.shape)
        self.exchange(target, inputs, [whole] * self.n, received.copy())
        self.received_rows = self.sent_rows.T.copy()
        call = f"pld.tensor.all_to_all_v({inputs[0].name}, {target[0].name}, {{}}, send, recv)"
        return lambda q: call, "sig"  # which has to be of two dimensions
