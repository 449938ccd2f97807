"""Tasks of a wrapper: ids, deps=, manual scopes, pl.submit, predicates, deferred waits, and the order that
arguments make."""

import random
import re

import numpy as np
import pytest

import pypto
import pypto.language as pl
from pypto.language.parser import InvalidOperationError, ParserSyntaxError, ParserTypeError
from task_programs import inputs, run, text_of
from programs import config, from_text

RANKS = [1, 2, 4]


def refused(body, error, words, options=""):
    x, z = inputs()
    with pytest.raises(error, match=words) as caught:
        from_text(text_of(body, options=options))["host"](x, z, config=config(1))
    return caught.value


# ---- deferred waits ----

GATES = """
with pl.manual_scope():
    for k in pl.range({count}):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate") as gate:
            e: pl.Scalar[pl.INT32] = pl.read(x, [0, 0])
            pld.system.defer_wait(signal=sig, offsets=[0, 0], expected=e, cmp=pld.WaitCmp.Ge)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="use", deps=[gate]) as _done:
            z = pl.store(pl.load(win, [0, 0], [1, 8]), [k, 0], z)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="announce"):
        pld.tile.remote_store(pl.load(x, [0, 0], [1, 8]), target=win, peer=peer, offsets=[0, 0])
        e: pl.Scalar[pl.INT32] = pl.read(x, [0, 0])
        pld.system.notify(target=sig, peer=peer, offsets=[0, 0], value=e, op=pld.NotifyOp.Set)
"""


@pytest.mark.parametrize("count", [1, 8, 64, 200])
@pytest.mark.parametrize("ranks", RANKS)
def test_gates_that_the_last_task_opens(ranks, count, transport):
    x = np.arange(ranks * 8, dtype=np.int32).reshape(ranks, 1, 8)
    x[:, :, 0] = 3
    _, z = run(GATES.format(count=count), ranks, rows=count, x=x)
    np.testing.assert_array_equal(z, np.roll(x, 1, axis=0).repeat(count, axis=1))


def test_gates_at_64_ranks(transport):
    test_gates_that_the_last_task_opens(64, 8, transport)


def test_a_kernel_with_a_name_may_defer_as_well():
    body = """
    announce(x, win, sig, peer)
    use(win, z)
    """
    kernels = """
@pl.jit.incore
def announce(x: pl.Tensor[[1, 8], pl.INT32], win: pl.InOut[pld.DistributedTensor[[1, 8], pl.INT32]],
             sig: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]], peer: pl.Scalar[pl.INT32]):
    pld.tile.remote_store(pl.load(x, [0, 0], [1, 8]), win, peer, [0, 0])
    pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.Set)
    pld.system.defer_wait(sig, [0, 0], 1)

@pl.jit.incore
def use(win: pl.InOut[pld.DistributedTensor[[1, 8], pl.INT32]], z: pl.Out[pl.Tensor[[N, 8], pl.INT32]]):
    pl.store(pl.load(win, [0, 0], [1, 8]), [0, 0], z)

"""
    text = text_of(body).replace("@pl.jit\ndef chip", kernels + "@pl.jit\ndef chip")
    x, z = inputs(4)
    from_text(text)["host"](x, z, config=config(4))
    np.testing.assert_array_equal(z[:, 0], np.roll(x, 1, axis=0)[:, 0])


@pytest.mark.parametrize("op", ["Set", "AtomicAdd"])
@pytest.mark.parametrize("wait", ["defer_wait(sig, [0, 0], 1)", "wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_notify_does_not_come_behind_an_earlier_wait(ranks, wait, op, transport):
    """Nor in an automatic scope, and nobody has to take the task's id: the call ends when the signal has come."""
    body = f"""
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.{wait}
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], z)
        pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.{op})
    """
    x, z = run(body, ranks)
    np.testing.assert_array_equal(z[:, 0], x[:, 0])


def test_the_call_is_not_over_before_a_deferred_wait_is(transport):
    body = """
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate"):
        pld.system.defer_wait(sig, [0, 0], 2)
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    """
    x, z = inputs(2)
    with pytest.raises(pypto.DeadlockError, match=r"is over only after 'sb'\[0, 0\] >= 2, which is 1 .* in gate"):
        from_text(text_of(body))["host"](x, z, config=config(2))


def gate(lines, before="", **options):
    extra = "".join(f", {name}={value}" for name, value in options.items())
    lines = "\n    ".join(lines.split("\n"))
    return f"{before}\nwith pl.at(level=pl.Level.CORE_GROUP{extra}) as gate:\n    {lines}\n"


WAIT = "pld.system.defer_wait(sig, [0, 0], 0)"


@pytest.mark.parametrize(
    "lines",
    [
        WAIT,
        f"for i in pl.range(64):\n    {WAIT}",
        f"for i in pl.unroll(2):\n    {WAIT}\nn = 1 + 2",
        f"n = pl.read(x, [0, 0])\nif n > 100:\n    {WAIT}",
        f"for i in pl.range(3):\n    m = pl.read(x, [0, 1])\n{WAIT}",
        f"for i in pl.range(1):\n    m = pl.read(x, [0, 1])\n    {WAIT}",
        "pld.system.defer_wait(sig, [0, 0], pl.read(x, [0, 0]) - 1)",
        # the longer of two branches counts
        f"if pl.read(x, [0, 0]) > 3:\n    for i in pl.range(64):\n        {WAIT}\nelse:\n    for i in pl.range(60):\n        {WAIT}",
        # what is waited for may come out of branches and loops
        "n = pl.read(x, [0, 0])\nif n > 3:\n    e = n\nelse:\n    e = n - 1\nfor i in pl.range(n):\n    e = e * 2\n"
        "pld.system.defer_wait(sig, [0, 0], e)",
    ],
)
def test_what_a_deferred_wait_may_stand_with(lines):
    x, z = run(gate(lines) + "put(x, z, 0)")
    np.testing.assert_array_equal(z[0, 0], x[0, 0])


@pytest.mark.parametrize(
    "lines, words",
    [
        ("pld.system.defer_wait(sig, [0, 0], 0, cmp=pld.WaitCmp.Eq)", "only supports WaitCmp.Ge"),
        ("pld.system.defer_wait(sig, [0, 0], 1.5)", "defer_wait: expected must be an integer or index scalar, not fp32"),
        ("pld.system.defer_wait(sig, [0, 0], x)", "defer_wait: expected must be a scalar, not a Tensor"),
        ("pld.system.defer_wait(sig, [0.5, 0], 1)", "defer_wait: offset 0 must be an integer or index scalar, not fp32"),
        ("pld.system.defer_wait(x, [0, 0], 1)", "defer_wait: signal must be a DistributedTensor, got Tensor"),
        ("pld.system.defer_wait(sig, [0, 0], -1)", r"expected must be in \[0, INT32_MAX\]"),
        ("pld.system.defer_wait(sig, [0, 0], 1 << 31)", r"expected must be in \[0, INT32_MAX\]"),
        (f"for i in pl.range(65):\n    {WAIT}", "at most 64 conditions"),
        (f"if pl.read(x, [0, 0]) > 3:\n    for i in pl.range(64):\n        {WAIT}\n{WAIT}", "at most 64 conditions"),
        (f"for i in pl.range(0):\n    {WAIT}", "statically known positive trip count"),
        (f"n = pl.read(x, [0, 0])\nwhile n > 3:\n    {WAIT}\n    n = n - 1", "statically known positive trip count"),
        (f"for i in pl.range(pl.read(x, [0, 0])):\n    {WAIT}", "statically known positive trip count"),
        (
            f"for i in pl.range(2):\n    m = pl.read(x, [0, i])\n    {WAIT}",
            "loop may execute tensor reads .* after registering",
        ),
        (f"{WAIT}\nm = pl.read(x, [0, 0])", "cannot execute tensor reads after a registration"),
        (f"t = pl.load(x, [0, 0], [1, 8])\n{WAIT}", "cannot create or update payload tensors"),
        (f"pl.write(z, [0, 0], 1)\n{WAIT}", "cannot create or update payload tensors"),
        (f"linger(x, 1)\n{WAIT}", "supports only a pre-registration tensor.read"),
        (
            f"pld.system.wait(sig, [0, 0], 0, cmp=pld.WaitCmp.Ge)\n{WAIT}",
            "supports only a pre-registration tensor.read",
        ),
        ("n = pld.system.defer_wait(sig, [0, 0], 0)", "used as a standalone statement"),
        (
            "pld.system.defer_wait(pl.slice(sig, [1, 1], [0, 0]), [0, 0], 0)",
            "direct DistributedTensor function parameter",
        ),
    ],
)
def test_what_a_deferred_wait_may_not(lines, words):
    refused(gate(lines), ValueError, words)


@pytest.mark.parametrize(
    "lines, words",
    [
        ("pld.system.defer_wait(sig, [0, 0], pl.read(x, [0, 0]) - 2)", r"expected must be in \[0, INT32_MAX\], and is -1"),
        (
            "pld.system.defer_wait(sig, [0, 0], pl.cast(pl.read(x, [0, 1]), pl.INT64) << 30)",
            r"expected must be in \[0, INT32_MAX\], and is 2147483648",
        ),
        ("pld.system.defer_wait(sig, [pl.read(x, [0, 1]), 0], 0)", r"signal cell \[2, 0\] is outside"),
        ("pld.system.defer_wait(sig, [0, pl.read(x, [0, 0]) - 2], 0)", r"signal cell \[0, -1\] is outside"),
    ],
)
def test_what_a_deferred_wait_may_not_at_run_time(lines, words):
    x, z = inputs()
    with pytest.raises(pypto.DeviceError, match=words):
        from_text(text_of(gate(lines)))["host"](x, z, config=config(1))


def test_unsigned_thresholds_are_what_they_count():
    """200 in a UINT8 is not -56."""
    body = gate(
        """n = pl.cast(pl.read(x, [0, 0]) + 199, pl.UINT8)
pld.system.defer_wait(sig, [0, 0], n)"""
    ) + """
with pl.at(level=pl.Level.CORE_GROUP, deps=[gate]):
    pl.write(z, [0, 0], pl.read(sig, [0, 0]))
with pl.manual_scope():
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.notify(sig, 0, [0, 0], 200, op=pld.NotifyOp.Set)
"""
    _, z = run(body)
    assert z[0, 0, 0] == 200


def test_a_part_of_a_window_has_no_deferred_wait():
    body = "part = pl.slice(sig, [1, 1], [0, 0])\n" + gate("pld.system.defer_wait(part, [0, 0], 0)")
    refused(body, ValueError, "direct DistributedTensor function parameter")


def test_what_depends_on_a_deferring_task_may_resolve_early():
    body = """
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP) as gate:
            pld.system.defer_wait(sig, [0, 0], 1)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[gate], allow_early_resolve=True):
            pl.store(pl.load(win, [0, 0], [1, 8]), [0, 0], z)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], win)
            pld.system.notify(sig, 0, [0, 0], 1, op=pld.NotifyOp.Set)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, 0], x[0, 0])


def test_a_deferring_scope_has_no_options():
    refused(gate(WAIT, allow_early_resolve=True), ValueError, "cannot use allow_early_resolve=True")
    block = f"for i in pl.spmd(2):\n    {WAIT}\n"
    refused(block, ValueError, "must be in a task-level .* single-block task.* nesting .* unsupported")
    block = f"for i in pl.spmd(1, predicate=(x[0, 0] > 0)):\n    {WAIT}\n"
    refused(block, ValueError, "cannot use a dispatch predicate")


def test_a_deferred_wait_needs_an_int32_window():
    body = gate("pld.system.defer_wait(x, [0, 0], 0)")
    refused(body, ValueError, "must be a DistributedTensor")
    body = gate("pld.system.defer_wait(win2, [0, 0], 0)")
    text = text_of(body).replace("sig: pl.InOut", "win2: pl.InOut[pld.DistributedTensor[[1, 1], pl.FP32]],\n         sig: pl.InOut")
    text = text.replace("chip(x[r], z[r], win, sig", "chip(x[r], z[r], win, pld.window(sb, [1, 1], dtype=pl.FP32), sig")
    x, z = inputs()
    with pytest.raises(ValueError, match="signal dtype must be INT32"):
        from_text(text)["host"](x, z, config=config(1))


# ---- order ----


def test_a_chain_by_ids_in_a_manual_scope():
    body = """
    with pl.manual_scope():
        prev = None
        for k in pl.range(15):
            with pl.at(level=pl.Level.CORE_GROUP, deps=[prev]) as tid:
                n = pl.read(x, [0, 0]) * ((15 - k) % 4) * 500
                for i in pl.range(n):
                    pl.read(x, [0, 1])
                t = pl.load(z, [k, 0], [1, 8])
                pl.store(pl.add(t, 1), [k + 1, 0], z)
            prev = tid
    """
    _, z = run(body)
    np.testing.assert_array_equal(z[0, :, 0], np.arange(16))


@pytest.mark.parametrize("use, row", [("tid", 1), ("first", 0), ("tid, first", 1)])
def test_an_id_may_be_bound_again(use, row):
    """The name means the task that bound it last; what was copied before means the one of then. The task whose row is used
    waits for a signal of the last one, so without an edge the row would be copied before it is there."""
    def task(number):
        wait = "pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)" if number == row else "pass"
        return f"""
        with pl.at(level=pl.Level.CORE_GROUP) as tid:
            {wait}
            pl.store(pl.load(x, [0, 0], [1, 8]), [{number}, 0], z)"""
    body = f"""
    with pl.manual_scope():{task(0)}
        first = tid{task(1)}
        with pl.at(level=pl.Level.CORE_GROUP, deps=[{use}]):
            pl.store(pl.load(z, [{row}, 0], [1, 8]), [2, 0], z)
        with pl.at(level=pl.Level.CORE_GROUP):
            pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.Set)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[:, 2], x[:, 0])


@pytest.mark.parametrize("manual", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_a_random_graph_under_random_delays(seed, manual):
    """Row k is the sum of the rows that it depends on, and 1; ids order it, or the rows' own memory."""
    dice = random.Random(seed)
    lines, expected = [], []
    for k in range(14):
        before = [d for d in range(k) if dice.random() < 0.3]
        deps = f", deps=[{', '.join(f't{d}' for d in before)}]" if manual else ""
        lines.append(f"r{k} = z[{k}:{k + 1}, 0:8]")
        lines.append(f"with pl.at(level=pl.Level.CORE_GROUP{deps}) as t{k}:")
        lines.append(f"    linger(x, {dice.choice([0, 200, 2000])})")
        lines.append("    s = pl.full([1, 8], dtype=pl.INT32, value=1)")
        lines.extend(f"    s = pl.add(s, pl.load(r{d}, [0, 0], [1, 8]))" for d in before)
        lines.append(f"    pl.store(s, [0, 0], r{k})")
        expected.append(1 + sum(expected[d] for d in before))
    body = "\n".join(lines)
    if manual:
        body = "with pl.manual_scope():\n    " + body.replace("\n", "\n    ")
    _, z = run(body, ranks=2)
    np.testing.assert_array_equal(z[:, :14, 5], [expected] * 2)


def test_an_order_that_follows_from_arguments():
    body = """
    put(x, z, 0)
    for k in pl.range(15):
        linger(x, ((15 - k) % 4) * 500)
        move(z, k, k + 1)
    """
    x, z = run(body, ranks=2)
    np.testing.assert_array_equal(z, x.repeat(16, axis=1))


@pytest.mark.parametrize("ranks", RANKS)
def test_a_blocking_wait_that_a_later_independent_kernel_releases(ranks, transport):
    body = """
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="reader"):
        pld.system.wait(sig, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        pl.store(pl.load(win, [0, 0], [1, 8]), [0, 0], z)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="writer", no_dep_args=[sig, win]):
        pld.tile.remote_store(pl.load(x, [0, 0], [1, 8]), win, peer, [0, 0])
        pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.Set)
    """
    x, z = run(body, ranks)
    np.testing.assert_array_equal(z[:, 0], np.roll(x, 1, axis=0)[:, 0])


def test_disjoint_slices_overlap():
    """The first task waits for the second, which writes another row of the same tensor."""
    body = """
    low = z[0:1, 0:8]
    high = z[1:2, 0:8]
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(sig, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], low)
    with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[sig]):
        pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], high)
        pld.system.notify(sig, 0, [0, 0], 1, op=pld.NotifyOp.Set)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, :2], x[0, [0, 0]])


def test_no_dep_takes_the_edge_of_an_argument_away():
    body = """
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(sig, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], z)
    put(x, pl.no_dep(z), 1)
    with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[sig]):
        pld.system.notify(sig, 0, [0, 0], 1, op=pld.NotifyOp.Set)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, :2], x[0, [0, 0]])


def test_a_wrapper_reads_what_a_kernel_has_written():
    body = """
    put(x, z, 0)
    n = pl.read(z, [0, 2])
    for k in pl.range(n):
        put(x, z, 1 + k)
    """
    x, z = run(body)
    assert (z[0, :4] == x[0]).all() and not z[0, 4:].any()


# ---- ids ----


def test_ids_that_were_never_assigned_count_as_none():
    body = """
    with pl.manual_scope():
        if pl.read(x, [0, 0]) > 100:
            with pl.at(level=pl.Level.CORE_GROUP) as maybe:
                pl.store(pl.load(x, [0, 0], [1, 8]), [7, 0], z)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[maybe, None, later]) as first:
            pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], z)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[first]) as later:
            pl.store(pl.load(z, [0, 0], [1, 8]), [1, 0], z)
    """
    x, z = run(body)
    assert (z[0, :2] == x[0]).all() and not z[0, 2:].any()


def test_lists_and_comprehensions_of_ids():
    body = """
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP) as a:
            linger(x, 3000)
            pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], z)
        with pl.at(level=pl.Level.CORE_GROUP) as b:
            linger(x, 1000)
            pl.store(pl.load(x, [0, 0], [1, 8]), [1, 0], z)
        ids = [a, b]
        with pl.at(level=pl.Level.CORE_GROUP, deps=[ids[k] for k in range(2)]) as c:
            t = pl.add(pl.load(z, [0, 0], [1, 8]), pl.load(z, [1, 0], [1, 8]))
            pl.store(t, [2, 0], z)
        both = pl.system.task_dummy(deps=[ids, c])
        with pl.at(level=pl.Level.CORE_GROUP, deps=[both]):
            pl.store(pl.load(z, [2, 0], [1, 8]), [3, 0], z)
    """
    x, z = run(body, ranks=2)
    np.testing.assert_array_equal(z[:, 3], 2 * x[:, 0])


def test_ids_have_a_type():
    """pl.TaskId is pl.Scalar[pl.TASK_ID]; pl.PtrType is pl.Ptr."""
    body = """
    first: pl.TaskId = None
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP, deps=[first]) as tid:
            pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], z)
        second: pl.TaskId = tid
        third: pl.Scalar[pl.TASK_ID] = second
        with pl.at(level=pl.Level.CORE_GROUP, deps=[third]):
            pl.store(pl.load(z, [0, 0], [1, 8]), [1, 0], z)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[:, 1], x[:, 0])
    refused("n: pl.TaskId = 1", pypto.Error, "task_id")
    assert pl.PtrType is pl.Ptr


def test_arrays_of_ids():
    body = """
    ids = pl.array.create(4, pl.TASK_ID)
    with pl.manual_scope():
        for k in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP, deps=[ids[k]]) as tid:
                linger(x, (3 - pl.cast(k, pl.INT32)) * 1000)
                pl.store(pl.load(x, [0, 0], [1, 8]), [k, 0], z)
            ids[k + 1] = tid
        ids[0] = None
        with pl.at(level=pl.Level.CORE_GROUP, deps=[ids]) as last:
            t = pl.add(pl.load(z, [0, 0], [1, 8]), pl.load(z, [1, 0], [1, 8]))
            pl.store(pl.add(t, pl.load(z, [2, 0], [1, 8])), [3, 0], z)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[ids[k] for k in range(4)] ):
            pl.store(pl.load(z, [2, 0], [1, 8]), [4, 0], z)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, :5], x[0, 0] * [[1], [1], [1], [3], [1]])


def test_arrays_do_not_enter_scopes():
    body = """
    numbers = pl.array.create(4, pl.INT32)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.write(z, [0, 0], numbers[0])
    """
    assert "'numbers'" in refused(body, ParserSyntaxError, "cannot enter it").message


def test_submit_gives_a_result_and_an_id():
    body = """
    with pl.manual_scope():
        out, tid = pl.submit(put, x, z, 0)
        for k in pl.range(15):
            out, tid = pl.submit(move, out, k, k + 1, deps=[tid])
        pair = pl.submit(linger, x, 1, deps=[tid])
    """
    x, z = run(body, ranks=2)
    np.testing.assert_array_equal(z, x.repeat(16, axis=1))


def test_spmd_submit():
    body = """
    with pl.manual_scope():
        out, tid = pl.spmd_submit(block, z, core_num=10, sync_start=True)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
            pl.store(pl.load(out, [9, 0], [1, 8]), [12, 0], out)
    """
    _, z = run(body)
    np.testing.assert_array_equal(z[0, :, 0], [*range(1, 11), 0, 0, 10, 0, 0, 0])


@pytest.mark.parametrize(
    "test, runs",
    [("> 1", True), ("< 1", False), (">= 2", True), ("<= 1", False), ("== 2", True), ("!= 2", False)],
)
def test_predicates_are_read_when_the_task_could_start(test, runs):
    body = f"""
    with pl.at(level=pl.Level.CORE_GROUP):
        linger(x, 2000)
        pl.write(z, [5, 0], 2)
    _, tid = pl.submit(put, x, z, 0, predicate=(z[5, 0] {test}))
    with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
        pl.store(pl.load(x, [0, 0], [1, 8]), [1, 0], z)
    """
    x, z = run(body)
    assert (z[0, 0] == (x[0, 0] if runs else 0)).all()
    np.testing.assert_array_equal(z[0, 1], x[0, 0])


@pytest.mark.parametrize(
    "dtype, value, test, runs",
    [
        ("FP32", 1.5, "> 1", True),
        ("FP32", 1.5, "<= 1", False),
        ("FP32", 2.0, "== 2", True),
        ("BF16", -0.5, "< 0", True),
        ("FP16", 0.5, "!= 0", True),
        ("INT8", -3, ">= -3", True),
        ("INT64", 5, "< 5", False),
        ("UINT16", 65535, "== 65535", True),
    ],
)
def test_predicates_of_element_types(dtype, value, test, runs):
    body = f"""
    flags = pl.create_tensor([2, 3], dtype=pl.{dtype}, init_value={value})
    pl.submit(put, x, z, 0, predicate=(flags[1, 2] {test}))
    """
    x, z = run(body)
    assert (z[0, 0] == (x[0, 0] if runs else 0)).all()


def test_a_predicate_out_of_bounds():
    x, z = inputs()
    text = text_of("pl.submit(put, x, z, 0, predicate=(x[0, pl.read(x, [0, 7])] > 0))")
    with pytest.raises(RuntimeError, match="a predicate"):
        from_text(text)["host"](x, z, config=config(1))


@pytest.mark.parametrize(
    "line", ["n = tid + 1", "n = -tid", "n = tid == tid", "n = pl.cast(tid, pl.INT32)", "n = pl.min(tid, tid)"]
)
def test_ids_are_no_numbers(line):
    refused("with pl.at(level=pl.Level.CORE_GROUP) as tid:\n    linger(x, 1)\n" + line, ParserSyntaxError,
            "they are no numbers|ids of tasks are no numbers|numeric dtype category")


def test_explicit_carries_of_ids():
    body = """
    with pl.manual_scope():
        for k, (prev,) in pl.range(0, 15, init_values=(None,)):
            with pl.at(level=pl.Level.CORE_GROUP, deps=[prev]) as tid:
                linger(x, ((15 - pl.cast(k, pl.INT32)) % 4) * 200)
                pl.store(pl.add(pl.load(z, [k, 0], [1, 8]), 1), [k + 1, 0], z)
            last = pl.yield_(tid)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[last]):
            pl.write(z, [0, 0], pl.read(z, [15, 0]))
    """
    _, z = run(body)
    np.testing.assert_array_equal(z[0, :, 0], [15, *range(1, 16)])


def test_ids_are_in_no_tensor():
    x, z = inputs()
    text = text_of("put(x, z, 0)").replace("z: pl.Out[pl.Tensor[[N, 8], pl.INT32]], at", "z: pl.Out[pl.Tensor[[N, 8], pl.TASK_ID]], at")
    with pytest.raises(ParserTypeError, match="scalars and arrays only"):
        from_text(text)["host"](x, z, config=config(1))
    refused("t = pl.create_tensor([4], dtype=pl.TASK_ID)", InvalidOperationError, "scalars and arrays only")


# ---- errors ----


@pytest.mark.parametrize(
    "body, error, words",
    [
        ("a, b, c = pl.submit(put, x, z, 0)", ParserSyntaxError, "must be unpacked"),
        ("a, b = pl.submit(x, z, 0)", ParserSyntaxError, "first argument must be a kernel"),
        ("a, b = pl.submit()", ParserSyntaxError, "first argument must be a kernel"),
        ("a, b = pl.submit(put, x, z, 0, foo=1)", ParserTypeError, "keyword argument 'foo'"),
        ("a, b = pl.spmd_submit(put, x, z, 0)", ParserSyntaxError, "requires core_num"),
        ("a, b = pl.spmd_submit(put, x, z, 0, core_num=0)", ParserSyntaxError, "positive"),
        ("a, b = pl.submit(put, x, z, 0, deps=x)", ParserSyntaxError, "must be a list literal"),
        ("a, b = pl.submit(put, x, z, 0, deps=[x])", ParserTypeError, "TaskId"),
        ("a, b = pl.submit(put, x, z, 0, deps=[3])", ParserTypeError, "TaskId"),
        ("a, b = pl.submit(put, x, z, 0, allow_early_resolve=1)", ParserSyntaxError, "boolean literal"),
        ("a, b = pl.submit(put, x, z, 0, dumps=[x, x])", ParserTypeError, "more than once"),
        ("a, b = pl.submit(put, x, z, 0, dumps=[nobody])", ParserTypeError, "unknown name"),
        ("a, b = pl.submit(put, x, z, 0, dumps=[x[0]])", ParserSyntaxError, "bare tensor names"),
        ("pl.submit(put, x, z, 0, predicate=(1 < x[0, 0] < 3))", ParserSyntaxError, "single comparison"),
        ("pl.submit(put, x, z, 0, predicate=x)", ParserSyntaxError, "single comparison"),
        ("pl.submit(put, x, z, 0, predicate=(x[0] > 1))", ParserSyntaxError, "one tensor element"),
        ("pl.submit(put, x, z, 0, predicate=(peer > 1))", ParserSyntaxError, "one tensor element"),
        ("t = pl.system.task_dummy()", ParserTypeError, "requires keyword argument 'deps'"),
        ("t = pl.system.task_dummy([])", ParserTypeError, "does not accept positional arguments"),
        ("t = pl.no_dep(x)", ParserSyntaxError, "wraps an argument"),
        ("put(pl.no_dep(x, x), z, 0)", ParserSyntaxError, "exactly one argument"),
        (
            "with pl.at(level=pl.Level.CORE_GROUP, deps=[me]) as me:\n    put(x, z, 0)",
            ParserSyntaxError,
            "produced by the task",
        ),
    ],
)
def test_refused(body, error, words):
    refused(body, error, words)


def test_kernels_and_hosts_submit_nothing():
    text = text_of("put(x, z, 0)").replace("    pl.store(pl.load(x, [0, 0], [1, 8]), [at, 0], z)\n",
                                           "    a, b = pl.submit(move, z, 0, 1)\n")
    x, z = inputs()
    with pytest.raises(ParserSyntaxError, match="only be used in a per-device wrapper"):
        from_text(text)["host"](x, z, config=config(1))


# ---- a barrier as a task of a wrapper ----

FENCED = """
@pl.jit.incore
def meet(signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    pld.tensor.barrier(signal)

Row = pl.Tensor[[1, 8], pl.INT32]
Box = pld.DistributedTensor[[1, 8], pl.INT32]
Cells = pld.DistributedTensor[[NR, 1], pl.INT32]

@pl.jit
def chip(x: Row, y: pl.Out[Row], box: pl.InOut[Box], signal: pl.InOut[Cells], bell: pl.InOut[Cells]):
    me = pld.rank(pld.get_comm_ctx(box))
    n = pld.nranks(pld.get_comm_ctx(box))
{body}

@pl.jit.host
def host(x: pl.Tensor[[NR, 1, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, 1, 8], pl.INT32]]):
    box_buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    signal_buf = pld.alloc_window_buffer([NR], dtype=pl.INT32)
    bell_buf = pld.alloc_window_buffer([NR], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(box_buf, [1, 8], dtype=pl.INT32)
        signal = pld.window(signal_buf, [NR, 1], dtype=pl.INT32)
        bell = pld.window(bell_buf, [NR, 1], dtype=pl.INT32)
        chip(x[r], y[r], box, signal, bell, device=r)
"""


BARRIERS = {
    "wrapper": "pld.tensor.barrier(signal)",
    "scope": "with pl.at(level=pl.Level.CORE_GROUP):\n            pld.tensor.barrier(signal)",
    "kernel": "meet(signal)",
}


@pytest.mark.parametrize("place", BARRIERS)
@pytest.mark.parametrize("ranks", [2, 5])
def test_a_barrier_comes_between_tasks_that_share_nothing_with_it(ranks, place, transport):
    """They are in a window of its domain. A hundred times: without the order it goes wrong within a few."""
    body = """
    for i in pl.range(100):
        with pl.at(level=pl.Level.CORE_GROUP):
            pld.tensor.put(box, (me + 1) % n, x)
        BARRIER
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:, :] = pl.add(y, box)
            box[:, :] = pl.tile.full([1, 8], pl.INT32, 0)
        BARRIER
""".replace("BARRIER", BARRIERS[place])
    x = np.arange(1, ranks * 8 + 1, dtype=np.int32).reshape(ranks, 1, 8)
    y = np.zeros_like(x)
    from_text(FENCED.format(body=body))["host"](x, y, config=config(ranks))
    np.testing.assert_array_equal(y, 100 * np.roll(x, 1, axis=0))


@pytest.mark.parametrize("place", BARRIERS)
def test_a_barrier_does_not_hold_up_waits(place, transport):
    """What a task waits for may come behind the barrier."""
    body = """
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(bell, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        y[:, :] = x
    BARRIER
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.notify(bell, (me + 1) % n, [0, 0], 1, op=pld.NotifyOp.Set)
""".replace("BARRIER", BARRIERS[place])
    x = np.arange(24, dtype=np.int32).reshape(3, 1, 8)
    y = np.zeros_like(x)
    from_text(FENCED.format(body=body))["host"](x, y, config=config(3))
    np.testing.assert_array_equal(y, x)


def test_a_task_that_does_more_than_a_barrier_is_ordered_by_what_it_does(transport):
    """It waits for what a task behind it tells it."""
    body = """
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tensor.barrier(signal)
        pld.system.wait(bell, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        y[:, :] = x
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.notify(bell, (me + 1) % n, [0, 0], 1, op=pld.NotifyOp.Set)
"""
    x = np.arange(24, dtype=np.int32).reshape(3, 1, 8)
    y = np.zeros_like(x)
    from_text(FENCED.format(body=body))["host"](x, y, config=config(3))
    np.testing.assert_array_equal(y, x)


BETWEEN_DEVICES = """
@pl.jit.incore
def slow_copy(source: pl.Tensor[[8], pl.INT64], target: pl.Out[pl.Tensor[[8], pl.INT64]], n: pl.Scalar[pl.INT64]):
    for i in pl.range(n):
        pl.write(target, [0], pl.read(source, [i % 8]))
    for i in pl.range(8):
        pl.write(target, [i], pl.read(source, [i]))

@pl.jit
def chip(source: pl.Tensor[[8], pl.INT64], target: pl.Out[pl.Tensor[[8], pl.INT64]], n: pl.Scalar[pl.INT64]):
    slow_copy(source, target, n)

@pl.jit.host
def host(x: pl.Tensor[[8], pl.INT64], y: pl.InOut[pl.Tensor[[8], pl.INT64]], z: pl.Out[pl.Tensor[[8], pl.INT64]]):
    {statements}
"""


@pytest.mark.parametrize(
    "statements",
    [
        "chip(y, z, 300000, device=0); chip(x, y, 0, device=1)",  # y is read, then written
        "chip(y, z, 300000, device=0); chip(x, z, 0, device=1)",  # z is written twice
        "chip(x, y, 300000, device=0); chip(y, z, 0, device=1)",  # y is written, then read
    ],
)
def test_the_later_dispatch_waits_on_another_device(statements, transport):
    x, y = np.arange(8), np.arange(100, 108)
    z = np.zeros_like(x)
    arrays = {"x": x.copy(), "y": y.copy(), "z": z.copy()}
    for source, target in re.findall(r"chip\((\w), (\w)", statements):
        arrays[target] = arrays[source].copy()
    from_text(BETWEEN_DEVICES.format(statements=statements))["host"](x, y, z, config=config(2))
    assert (y == arrays["y"]).all() and (z == arrays["z"]).all()
