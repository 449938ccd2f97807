"""Scopes: pl.at at its levels, pl.spmd and its blocks, pl.cluster, pl.split_aiv, pl.scope; what a scope
takes from around it and leaves behind."""

import re

import numpy as np
import pytest

import pypto
from pypto.language.parser import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from programs import config, from_text
from task_programs import inputs, run, text_of

RANKS = [1, 2, 4]

COPY = "pl.store(pl.load(x, [0, 0], [1, 8]), [{row}, 0], z)"


def refused(body, error, words, options=""):
    x, z = inputs()
    with pytest.raises(error, match=words) as caught:
        from_text(text_of(body, options=options))["host"](x, z, config=config(1))
    return caught.value


# ---- a kernel where it is submitted ----


def test_a_scope_is_a_kernel(transport):
    body = """
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):
        t = pl.load(x, [0, 0], [1, 8])
        z = pl.store(t, [3, 0], z)
    return z
    """
    x, z = run(body, ranks=2)
    np.testing.assert_array_equal(z[:, 3], x[:, 0])
    assert not z[:, :3].any()


def test_it_takes_numbers_by_value():
    body = """
    n = 3
    for k in pl.range(4):
        row = k * 2
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.add(pl.load(x, [0, 0], [1, 8]), pl.cast(row, pl.INT32) * n)
            pl.store(t, [row, 0], z)
        row = 100
    last = k
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, 8]), [k + last + 3, 0], z)
    """
    x, z = run(body)
    for row in (0, 2, 4, 6):
        np.testing.assert_array_equal(z[0, row], x[0, 0] + 3 * row)
    np.testing.assert_array_equal(z[0, 9], x[0, 0])


def test_names_of_handles_carry_on():
    body = """
    out = z
    for k in pl.range(3):
        with pl.at(level=pl.Level.CORE_GROUP):
            for c in pl.range(2):
                out = pl.store(pl.load(x, [0, 4 * c], [1, 4]), [k, 4 * c], out)
    same = out
    with pl.at(level=pl.Level.CORE_GROUP):
        inner = same
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(inner, [2, 0], [1, 8]), [5, 0], inner)
    return inner
    """
    x, z = run(body)
    for row in (0, 1, 2, 5):
        np.testing.assert_array_equal(z[0, row], x[0, 0])


def test_a_handle_that_a_loop_carries():
    body = """
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], z)
    now = z[0:1, 0:8]
    for k in pl.range(15):
        next = z[k + 1 : k + 2, 0:8]
        with pl.at(level=pl.Level.CORE_GROUP):
            next = pl.store(pl.add(pl.load(now, [0, 0], [1, 8]), 1), [0, 0], next)
        now = next
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0], x[0] + np.arange(16)[:, None])


def test_a_name_may_be_another_thing_in_each_scope():
    body = """
    for k in pl.range(2):
        with pl.at(level=pl.Level.CORE_GROUP):
            e: pl.Scalar[pl.INT32] = pl.read(x, [0, 0])
            pl.write(z, [k, 0], e)
        with pl.at(level=pl.Level.CORE_GROUP):
            e: pl.Scalar[pl.INDEX] = pl.cast(pl.read(x, [0, 1]), pl.INDEX)
            pl.write(z, [k, e], 7)
        with pl.at(level=pl.Level.CORE_GROUP):
            e = pl.load(x, [0, 0], [1, 8])
            pl.store(e, [k + 4, 0], z)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, :2, :3], [[1, 0, 7]] * 2)
    np.testing.assert_array_equal(z[0, 4:6], x[0, [0, 0]])


def test_tensor_style_in_a_scope():
    body = """
    with pl.at(level=pl.Level.CORE_GROUP):
        z[0:1, :] = pl.add(pl.mul(x, 2), x)
        z = pl.assemble(z, pl.add(pl.slice(x, [1, 4], [0, 2]), 0), [2, 4])
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, 0], 3 * x[0, 0])
    np.testing.assert_array_equal(z[0, 2, 4:], x[0, 0, 2:6])


def test_tiles_leave_a_scope_as_tensors():
    body = """
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.mul(x, 2)
        unused = pl.add(t, 1)
    with pl.at(level=pl.Level.CORE_GROUP):
        u = pl.add(t, x)
        z[0:1, :] = u
        w = pl.create_tensor([1, 8], dtype=pl.INT32)
        w = pl.assemble(w, t, [0, 0])
    put(w, z, 3)
    z2 = u[0:1, 0:8]
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.add(pl.load(z2, [0, 0], [1, 8]), pl.load(t, [0, 0], [1, 8])), [1, 0], z)
    put(t, z, 2)
    """
    x, z = run(body, ranks=2)
    np.testing.assert_array_equal(z[:, :4], x * [[3], [5], [2], [2]])


def test_numbers_leave_a_scope():
    body = """
    with pl.at(level=pl.Level.CORE_GROUP):
        linger(x, 1000)
        n = pl.read(x, [0, 3])
        flag = n > 3
    if flag:
        put(x, z, n)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.write(z, [n + 1, 0], n)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, 4], x[0, 0])
    assert z[0, 5, 0] == 4


def test_numbers_that_need_no_kernel_are_computed_again():
    """The first two tasks end only after the last one, which needs their numbers."""
    body = """
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP) as ready:
            need: pl.Scalar[pl.INT32] = pl.read(x, [0, 1]) + pl.read(x, [0, peer]) * 2
            pld.system.defer_wait(sig, [0, 0], need)
        with pl.at(level=pl.Level.CORE_GROUP):
            pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)
            row = (peer + 2) * 2
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.write(z, [row, 0], need)
            pld.system.notify(sig, 0, [0, 0], need, op=pld.NotifyOp.Set)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[ready]):
            pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], z)
    """
    x, z = run(body)
    assert z[0, 4, 0] == x[0, 0, 1] + 2 * x[0, 0, 0]
    np.testing.assert_array_equal(z[0, 0], x[0, 0])


def test_numbers_that_others_use_over_and_over_are_not_written_out():
    doubled = "\n".join(f"    n{k + 1} = n{k} + n{k}" for k in range(9))
    body = f"""
    with pl.at(level=pl.Level.CORE_GROUP):
        linger(x, 1)
        n0 = peer + 1
    {doubled.strip()}
    put(x, z, n9 % 3)
    """.replace("\n    n", "\n        n")
    x, z = inputs()
    program = from_text(text_of(body))["host"].compile(x, z, config=config(1))
    program(x, z)
    np.testing.assert_array_equal(z[0, 512 % 3], x[0, 0])
    assert (program.output_dir / "program.ir").read_text().count(" + ") < 64


def test_scopes_in_a_loop_carry_numbers_and_tensors():
    body = """
    total = pl.const(0, pl.INT32)
    with pl.at(level=pl.Level.CORE_GROUP):
        sum = pl.mul(x, 0)
    for k in pl.range(5):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = total + pl.read(x, [0, k])
            sum = pl.add(sum, x)
        with pl.at(level=pl.Level.CORE_GROUP):
            z = pl.assemble(z, sum, [k, 0])
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.add(sum, 100), [6, 0], z)
    pl.write(z, [7, 0], total)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, :5], x[0, 0] * np.arange(1, 6)[:, None])
    np.testing.assert_array_equal(z[0, 6], 5 * x[0, 0] + 100)
    assert z[0, 7, 0] == 15


def test_values_of_scopes_meet_behind_an_if():
    body = """
    if pl.read(x, [0, 0]) > 1:
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.mul(x, 2)
            n = pl.read(x, [0, 1])
    else:
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.mul(x, 3)
            n = pl.read(x, [0, 2])
    put(t, z, n)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, 3], 3 * x[0, 0])


def test_a_name_of_a_scope_in_a_loop_that_is_read_behind_it():
    body = """
    for k in pl.range(3):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.add(x, pl.cast(k, pl.INT32))
    put(t, z, k)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, 2], x[0, 0] + 2)


def test_a_scope_with_dynamic_dimensions_and_calls():
    text = """
M = pl.dynamic("M")

@pl.jit.incore
def first(t: pl.Tensor[[M, 8], pl.INT32], out: pl.Out[pl.Tensor[[M, 8], pl.INT32]], k: pl.Scalar[pl.INDEX]):
    pl.store(pl.load(t, [k, 0], [1, 8]), [k, 0], out)

@pl.jit
def chip(t: pl.Tensor[[M, 8], pl.INT32], out: pl.Out[pl.Tensor[[M, 8], pl.INT32]]):
    upper = t[1:M, 0:8]
    with pl.at(level=pl.Level.CORE_GROUP):
        for k in pl.range(M):
            first(t, out, k)
    with pl.at(level=pl.Level.CORE_GROUP):
        for k in pl.range(M - 1):
            pl.store(pl.add(pl.load(out, [k, 0], [1, 8]), pl.load(upper, [k, 0], [1, 8])), [k, 0], out)
"""
    chip = from_text(text)["chip"]
    for rows in (1, 2, 7):
        t = np.arange(rows * 8, dtype=np.int32).reshape(rows, 8)
        out = np.zeros_like(t)
        chip(t, out, config=config(1))
        expected = t.copy()
        expected[:-1] += t[1:]
        np.testing.assert_array_equal(out, expected)


def test_parts_over_dynamic_dimensions_in_a_scope():
    """Extents that are dimensions around the scope are as fixed in it: its name for them is a parameter."""
    text = """
M = pl.dynamic("M")

@pl.jit
def chip(t: pl.Tensor[[2 * M, M], pl.INT32], out: pl.Out[pl.Tensor[[2 * M, M], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        last = t[M : 2 * M, :]
        for k in pl.range(M):
            row = out[k, :]
            for i in pl.range(M):
                pl.write(row, [i], pl.read(last, [i, k]))
    for b in pl.spmd(2):
        row = out[M + b * (M - 1), 0:M]
        for i in pl.range(M):
            pl.write(row, [i], b + 1)
"""
    chip = from_text(text)["chip"]
    for m in (2, 5):
        t = np.arange(2 * m * m, dtype=np.int32).reshape(2 * m, m)
        out = np.zeros_like(t)
        chip(t, out, config=config(1))
        expected = np.zeros_like(t)
        expected[:m] = t[m:].T
        expected[m] = 1
        expected[2 * m - 1] = 2
        np.testing.assert_array_equal(out, expected)


def test_a_number_is_no_extent_of_a_part_in_a_scope_either():
    text = """
@pl.jit
def chip(t: pl.Tensor[[4, 4], pl.INT32], out: pl.Out[pl.Tensor[[4, 4], pl.INT32]]):
    n = pl.read(t, [0, 0])
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.write(out[0:n, :], [0, 0], 1)
"""
    with pytest.raises(pypto.Error, match="only known at run time"):
        t = np.ones((4, 4), np.int32)
        from_text(text)["chip"](t, np.zeros_like(t), config=config(1))


def test_a_return_in_a_scope():
    body = f"""
    with pl.at(level=pl.Level.CORE_GROUP):
        return {COPY.format(row=1)}
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, 1], x[0, 0])


def test_scopes_in_inlined_functions():
    text = text_of("both(x, z, 2)").replace(
        "@pl.jit\ndef chip",
        """
@pl.jit.inline
def both(source, target, row):
    with pl.at(level=pl.Level.CORE_GROUP) as tid:
        target = pl.store(pl.load(source, [0, 0], [1, 8]), [row, 0], target)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
        t = pl.load(target, [row, 0], [1, 8])
        pl.store(t, [row + 1, 0], target)

@pl.jit
def chip""",
    )
    x, z = inputs()
    from_text(text)["host"](x, z, config=config(1))
    np.testing.assert_array_equal(z[0, 2:4], x[0, [0, 0]])


@pytest.mark.parametrize("level", ["POD", "CLUSTER_0", "AIV", "GLOBAL"])
def test_other_levels_are_marks(level):
    body = f"""
    with pl.at(level=pl.Level.{level}):
        put(x, z, 2)
        row = 3
    put(x, z, row)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, 2:4], x[0, [0, 0]])


@pytest.mark.parametrize(
    "options",
    [
        "optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=2)]",
        "optimizations=[]",
        "allow_early_resolve=True, windowize=False",
        "dumps=[x, z], no_dep_args=[win]",
        "deps=[], name_hint='a_name'",
        "deps=[None]",
    ],
)
def test_options(options):
    body = f"with pl.at(level=pl.Level.CORE_GROUP, {options}):\n    {COPY.format(row=1)}"
    x, z = run(body)
    np.testing.assert_array_equal(z[0, 1], x[0, 0])


# ---- in a host function ----

HOST = """
@pl.jit.host
def host(a: pl.Tensor[[8, 8], pl.FP32], s: pl.Out[pl.Tensor[[8, 8], pl.FP32]], t: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
{body}
"""


def run_host(body, devices=1):
    import textwrap

    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    s, t = np.zeros_like(a), np.zeros_like(a)
    text = HOST.format(body=textwrap.indent(textwrap.dedent(body), "    "))
    from_text(text)["host"](a, s, t, config=config(devices))
    return a, s, t


@pytest.mark.parametrize("devices", RANKS)
def test_a_program_in_one_host_function(devices, transport):
    body = """
    with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
        with pl.at(level=pl.Level.CORE_GROUP):
            res = pl.assemble(s, pl.mul(a, 2.0), [0, 0])
    with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.assemble(t, pl.add(res, a), [0, 0])
    return res
    """
    a, s, t = run_host(body, devices)
    np.testing.assert_array_equal(s, 2 * a)
    np.testing.assert_array_equal(t, 3 * a)


def test_a_class_with_one_function():
    import pypto.language as pl
    from pypto import ir

    @pl.program
    class Whole:
        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def main(
            self, a: pl.Tensor[[8, 8], pl.FP32], s: pl.Out[pl.Tensor[[8, 8], pl.FP32]]
        ) -> pl.Tensor[[8, 8], pl.FP32]:
            with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
                with pl.at(level=pl.Level.CORE_GROUP):
                    res = pl.assemble(s, pl.mul(a, 2.0), [0, 0])
            return res

    compiled = ir.compile(
        Whole, platform="cpu", distributed_config=ir.DistributedConfig(device_ids=[0, 1])
    )
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    s = np.zeros_like(a)
    compiled(a, s)
    np.testing.assert_array_equal(s, 2 * a)


def test_numbers_enter_a_wrapper_too():
    body = """
    for r in pl.range(4):
        with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
            row = 2 * r
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.add(pl.load(a, [row, 0], [1, 8]), pl.cast(r, pl.FP32)), [r, 0], s)
    """
    a, s, _ = run_host(body, 2)
    np.testing.assert_array_equal(s[:4], a[::2] + np.arange(4, dtype=np.float32)[:, None])
    assert not s[4:].any()


def where_it_fails(text, ranks, rows):
    """The rank of a dispatch that fails, by the place of its bad row number."""
    ranks_of = []
    for bad in range(rows):
        x, z = inputs(rows)
        x[:, :, 0] = 0
        x[bad, 0, 0] = 99
        with pytest.raises(pypto.DeviceError) as caught:
            from_text(text)["host"](x, z, config=config(ranks))
        ranks_of.append(int(re.search(r"failed on rank (\d+)", caught.value.message).group(1)))
    return ranks_of


ROUND = """
@pl.jit
def plain(x: pl.Tensor[[1, 8], pl.INT32], z: pl.InOut[pl.Tensor[[N, 8], pl.INT32]]):
    put(x, z, pl.cast(pl.read(x, [0, 0]), pl.INDEX))

@pl.jit.host
def host(x: pl.Tensor[[NR, 1, 8], pl.INT32], z: pl.InOut[pl.Tensor[[NR, N, 8], pl.INT32]]):
    for r in pl.range({rows}):
        {dispatch}
"""

SCOPE = """with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
            put(x[r], z[r], pl.cast(pl.read(x, [r, 0, 0]), pl.INDEX))"""


@pytest.mark.parametrize("dispatch", ["plain(x[r], z[r])", SCOPE])
def test_dispatches_without_device_go_round(dispatch, transport):
    text = text_of("put(x, z, 0)")
    text = text[: text.index("@pl.jit.host")] + ROUND.format(rows=5, dispatch=dispatch)
    assert where_it_fails(text, 3, 5) == [0, 1, 2, 0, 1]
    x, z = inputs(5)
    x[:, :, 0] = 4
    from_text(text)["host"](x, z, config=config(3))
    np.testing.assert_array_equal(z[:, 4], x[:, 0])


# ---- blocks ----


@pytest.mark.parametrize("blocks", [1, 2, 7, 16])
def test_blocks_of_a_kernel(blocks, transport):
    body = f"""
    with pl.spmd({blocks}) as tid:
        z = block(z)
    return z
    """
    _, z = run(body, ranks=2)
    expected = np.arange(1, 17) * (np.arange(16) < blocks)
    np.testing.assert_array_equal(z[:, :, 3], [expected] * 2)


def test_blocks_of_a_body():
    body = """
    n = pl.read(x, [0, 4])
    for i in pl.spmd(n, sync_start=False, name_hint="rows"):
        pl.store(pl.add(pl.load(x, [0, 0], [1, 8]), pl.cast(i, pl.INT32)), [i, 0], z)
    with pl.spmd(core_num=2, optimizations=[pl.split(pl.SplitMode.NONE)]):
        b = pl.tile.get_block_idx()
        count = pl.tile.get_block_num()
        pl.write(z, [8 + b, 0], pl.cast(count, pl.INT32) + 10 * pl.cast(pl.tensor.get_block_idx(), pl.INT32))
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, :6], np.concatenate([x[0, [0] * 5] + np.arange(5)[:, None], z[0, 5:6]]))
    assert not z[0, 5:8].any()
    np.testing.assert_array_equal(z[0, 8:10, 0], [2, 12])


def test_all_blocks_are_there_at_once():
    """Block 0 waits for the last one."""
    body = """
    for i in pl.spmd(9):
        if i == 0:
            pld.system.wait(sig, [0, 0], 8, cmp=pld.WaitCmp.Ge)
            pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], z)
        else:
            pld.system.notify(sig, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, 0], x[0, 0])


def test_what_depends_on_blocks_comes_after_the_last():
    body = """
    for i in pl.spmd(8):
        linger(x, (8 - pl.cast(i, pl.INT32)) * 200)
        pl.store(pl.load(x, [0, 0], [1, 8]), [i, 0], z)
    move(z, 7, 8)
    move(z, 0, 9)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, :10], x[0, [0] * 10])


def test_ids_order_blocks():
    body = """
    with pl.manual_scope():
        with pl.spmd(4) as first:
            block(z)
        with pl.spmd(4, deps=[first]) as second:
            b = pl.tile.get_block_idx()
            pl.store(pl.load(z, [3 - b, 0], [1, 8]), [4 + b, 0], z)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[second]):
            pl.store(pl.load(z, [4, 0], [1, 8]), [8, 0], z)
    """
    _, z = run(body)
    np.testing.assert_array_equal(z[0, :9, 0], [1, 2, 3, 4, 4, 3, 2, 1, 4])


@pytest.mark.parametrize(
    "form, place",
    [("for i in pl.spmd(n):\n    pl.write(z, [i, 0], 5)", "pl.spmd(n)"), ("with pl.spmd(n):\n    block(z)", "block(z)")],
)
@pytest.mark.parametrize("number", [0, -3])
def test_numbers_of_blocks_that_only_the_run_knows(form, place, number):
    x, z = inputs()
    x[0, 0, 0] = number
    text = text_of(f"n = pl.read(x, [0, 0])\n{form}")
    with pytest.raises(pypto.DeviceError, match=f"cannot run as {number} blocks") as caught:
        from_text(text)["host"](x, z, config=config(1))
    assert place in text.splitlines()[caught.value.span["line"] - 1]
    assert not z.any()


def test_a_predicate_of_blocks():
    body = """
    for i in pl.spmd(4, predicate=(x[0, 0] > 1)):
        pl.write(z, [i, 0], 5)
    with pl.spmd(4, predicate=(x[0, 0] == 1)):
        block(z)
    """
    _, z = run(body)
    np.testing.assert_array_equal(z[0, :5, 0], [1, 2, 3, 4, 0])


# ---- the others ----


def test_clusters_and_marks():
    body = """
    with pl.cluster(name_hint="pair"):
        put(x, z, 0)
        pl.dump_tag(z)
        with pl.at(level=pl.Level.CORE_GROUP) as tid:
            pl.store(pl.load(x, [0, 0], [1, 8]), [1, 0], z)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, :2], x[0, [0, 0]])


def test_lanes():
    body = """
    with pl.at(level=pl.Level.CORE_GROUP):
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            pl.write(z, [lane, 0], 5 + pl.cast(pl.tile.get_subblock_idx(), pl.INT32))
            kept = lane
        pl.write(z, [2 + kept, 0], pl.cast(pl.tile.get_subblock_idx(), pl.INT32) + 9)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            pl.store(pl.load(x, [0, 0], [1, 8]), [4 + lane, 0], z)
    """
    x, z = run(body)
    np.testing.assert_array_equal(z[0, :4, 0], [5, 6, 0, 9])
    np.testing.assert_array_equal(z[0, 4], x[0, 0])
    assert not z[0, 5].any()


@pytest.mark.parametrize("mode, times", [("NONE", 2), ("UP_DOWN", 1), ("LEFT_RIGHT", 1)])
def test_a_lane_notifies_once(mode, times):
    body = f"""
    with pl.at(level=pl.Level.CORE_GROUP):
        for lane in pl.split_aiv(2, mode=pl.SplitMode.{mode}):
            pld.system.notify(sig, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pl.write(z, [0, 0], pl.read(sig, [0, 0]))
    """
    _, z = run(body)
    assert z[0, 0, 0] == times


def test_an_automatic_scope():
    body = """
    with pl.scope():
        put(x, z, 0)
        with pl.scope(mode=pl.ScopeMode.MANUAL):
            pass
        move(z, 0, 1)
    """
    x, z = run(body, options="(auto_scope=False)")
    np.testing.assert_array_equal(z[0, :2], x[0, [0, 0]])
    refused(body, ParserSyntaxError, "requires the function to be auto_scope=False")


# ---- errors ----

CORE = "with pl.at(level=pl.Level.CORE_GROUP{options}){target}:\n    {lines}"


def core(lines=COPY.format(row=0), options="", target=""):
    return CORE.format(lines=lines.replace("\n", "\n    "), options=options, target=target)


@pytest.mark.parametrize(
    "body, words",
    [
        (f"with pl.at():\n    {COPY.format(row=0)}", "requires a level argument"),
        (core(options=", foo=1"), "Unknown keyword argument 'foo'"),
        (core(options=", role=pl.Role.Orchestrator"), "role= is not allowed"),
        (core(options=", optimizations=[3]"), "Unsupported entry"),
        (core(options=", optimizations=[pl.add(1, 2)]"), "Unsupported entry"),
        (core(options=", optimizations=x"), "must be a list literal"),
        (
            core(options=", optimizations=[pl.split(pl.SplitMode.NONE), pl.split(pl.SplitMode.UP_DOWN)]"),
            "[Dd]uplicate.*split",
        ),
        (core(options=", optimizations=[pl.split(2)]"), "member of pl.SplitMode"),
        (core(options=", optimizations=[pl.cross_core_slot(slot_num=0)]"), "positive integer"),
        (core(options=", name_hint='for'"), "valid non-keyword identifier"),
        (core(options=", name_hint='1a'"), "valid non-keyword identifier"),
        (core(options=", name_hint=x"), "valid non-keyword identifier"),
        (core(options=", allow_early_resolve=1"), "must be a boolean literal"),
        (core(options=", deps=x"), "must be a list literal"),
        (core(options=", no_dep_args=x"), "must be a list literal"),
        (core(options=", dumps=['x']"), "bare tensor names"),
        (core(options=", no_dep_args=[peer]"), "bare tensor names"),
        (core(target=" as (a, b)"), "must be a plain variable"),
        (core(lines=core()), "cannot be nested inside"),
        (core(lines="with pl.spmd(2):\n    block(z)"), "cannot be nested inside"),
        (core(lines="with pl.at(level=pl.Level.CHIP):\n    pass"), "cannot be nested inside"),
        ("with pl.at(level=pl.Level.POD) as tid:\n    put(x, z, 0)", "cannot capture a TaskId when nested"),
        ("with pl.manual_scope() as tid:\n    put(x, z, 0)", "only applies to"),
        ("with pl.cluster() as tid:\n    put(x, z, 0)", "only applies to"),
        ("with pl.cluster(), pl.manual_scope():\n    put(x, z, 0)", "one context manager"),
        ("with x:\n    put(x, z, 0)", "holds a scope of pl"),
        ("with open('x'):\n    put(x, z, 0)", "holds a scope of pl"),
        ("with pl.add(x, z):\n    put(x, z, 0)", "holds a scope of pl"),
        ("a = pl.at(level=pl.Level.CORE_GROUP)", "can only stand behind `with`"),
        ("a = pl.spmd(3)", "stands behind `with`, or is the iterator"),
        ("a = pl.split(3)", "entry of optimizations="),
        ("with pl.manual_scope():\n    with pl.manual_scope():\n        pass", "cannot be nested inside"),
        ("with pl.manual_scope():\n    with pl.scope():\n        pass", "cannot be nested inside"),
        ("with pl.manual_scope(1):\n    pass", "takes 0 positional"),
        ("with pl.scope(mode=3):\n    pass", "member of pl.ScopeMode"),
        (core(lines="with pl.manual_scope():\n    pass"), "only be used in a per-device wrapper"),
        # spmd
        ("with pl.spmd(2):\n    pl.load(x, [0, 0], [1, 8])", "neither reads the per-block index"),
        ("with pl.spmd(2):\n    block(z)\n    block(z)", "launches 2 kernels"),
        ("with pl.spmd(2, deps=[]):\n    block(z)", "does not accept 'deps='"),
        ("for i in pl.spmd(2, deps=[]):\n    pl.write(z, [i, 0], 1)", "does not accept 'deps='"),
        ("with pl.spmd(1.5):\n    block(z)", "must be an integer expression"),
        ("with pl.spmd(x):\n    block(z)", "must be an integer expression"),
        ("with pl.spmd(0):\n    block(z)", "must be positive"),
        ("with pl.spmd(-1):\n    block(z)", "positive integer"),
        ("with pl.spmd(1, 2):\n    block(z)", "at most one positional argument"),
        ("with pl.spmd():\n    block(z)", "requires core_num"),
        ("for i in pl.spmd(2, init_values=[z]):\n    block(z)", "does not accept 'init_values='"),
        ("for i, j in pl.spmd(2):\n    block(z)", "single loop variable"),
        ("with pl.spmd(2, core_num=2):\n    block(z)", "multiple values for argument 'core_num'"),
        ("with pl.spmd(2, sync_start=x):\n    block(z)", "must be a boolean literal"),
        # split_aiv
        (core(lines="for a in pl.split_aiv(3, mode=pl.SplitMode.NONE):\n    pass"), "requires n == 2"),
        (core(lines="for a in pl.split_aiv(2):\n    pass"), "requires mode="),
        (core(lines="for a in pl.split_aiv(2, mode=2):\n    pass"), "member of pl.SplitMode"),
        (core(lines="for a, b in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    pass"), "single loop"),
        ("for a in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    pass", "work of a kernel"),
        # dump_tag
        ("pl.dump_tag()", "exactly one positional"),
        ("pl.dump_tag(x[0])", "bare variable name"),
        (core(lines="pl.dump_tag(x)"), "only valid inside an Orchestration"),
    ],
)
def test_refused(body, words):
    refused(body, ParserSyntaxError, words)


@pytest.mark.parametrize(
    "opener",
    [
        "with pl.cluster() as c:",
        "with pl.cluster(), pl.manual_scope():",
        "with pl.at(level=pl.Level.CORE_GROUP, colour=3):",
        "with pl.spmd(0):",
        "with x:",
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[nothing]) as c:",
        "q = nothing\nwith pl.at(level=q) as c:",
        "q = nothing\nfor c in pl.spmd(q):",
        "for c in pl.spmd(0):",
        "for c in pl.split_aiv(3, mode=pl.SplitMode.NONE):",
    ],
)
def test_what_a_refused_scope_would_have_bound_is_no_second_mistake(opener):
    mistakes = (ParserSyntaxError, UndefinedVariableError)
    error = refused(f"{opener}\n    n = 3\n    c = 4\nput(x, z, n + c)", mistakes, "")
    assert len(error.diagnostics) == 1


@pytest.mark.parametrize(
    "body, error, words",
    [
        (core(options=", no_dep_args=[x, x]"), ParserTypeError, "more than once"),
        (core(options=", dumps=[nobody]"), ParserTypeError, "unknown name"),
        (core(options=", deps=[z]"), ParserTypeError, "TaskId"),
        (f"for i in pl.range(2):\n    {core(lines='break')}".replace("\n    ", "\n        ").replace("\n        with", "\n    with"), InvalidOperationError, "outside loop"),
        (core(lines="if pl.read(x, [0, 0]) > 0:\n    return z"), UnsupportedFeatureError, "return inside if or for"),
        (core(lines="undefined_name"), UndefinedVariableError, "Undefined variable"),
    ],
)
def test_refused_otherwise(body, error, words):
    refused(body, error, words)


def test_an_input_that_a_scope_writes():
    error = refused(core(lines="pl.store(pl.load(z, [0, 0], [1, 8]), [0, 0], x)"), ParserTypeError, "only read")
    assert "'x'" in error.message


def test_what_stays_in_a_scope():
    """Views of a kernel's own, and what blocks compute."""
    body = core(lines="v = x[0:1, 0:4]") + "\n" + core(lines="pl.store(pl.load(v, [0, 0], [1, 4]), [0, 0], z)")
    assert "'v'" in refused(body, ParserSyntaxError, "does not outlive it").message
    body = "for i in pl.spmd(2):\n    t = pl.load(x, [0, 0], [1, 8])\n" + core(lines="pl.store(t, [0, 0], z)")
    assert "'t'" in refused(body, ParserSyntaxError, "does not outlive it").message
    body = "for i in pl.spmd(2):\n    n = pl.read(x, [0, 0]) + i\nput(x, z, n)"
    assert "'n'" in refused(body, ParserSyntaxError, "does not outlive it").message


@pytest.mark.parametrize(
    "body, words",
    [
        ("with pl.at(level=pl.Level.CORE_GROUP):\n    s = pl.assemble(s, a, [0, 0])", "directly in a host function"),
        ("with pl.at(level=pl.Level.CHIP, role=pl.Role.SubWorker):\n    pass", "role Orchestrator"),
        ("with pl.at(level=pl.Level.CHIP, deps=[]):\n    pass", "only applies to"),
        ("with pl.at(level=pl.Level.CHIP) as tid:\n    pass", "cannot capture a TaskId"),
        ("with pl.spmd(2):\n    pass", "directly in a host function"),
        ("with pl.manual_scope():\n    pass", "only be used in a per-device wrapper"),
        ("with pl.cluster():\n    pass", "tasks of a per-device wrapper"),
        ("with pl.at(level=pl.Level.CHIP):\n    s = pl.assemble(s, a, [0, 0])", "inside InCore"),
    ],
)
def test_refused_in_host_functions(body, words):
    with pytest.raises(ParserSyntaxError, match=words):
        run_host(body)


def test_a_window_needs_a_device():
    body = """
    b = pld.alloc_window_buffer(32)
    w = pld.window(b, [1, 8], dtype=pl.FP32)
    with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(a, [0, 0], [1, 8]), [0, 0], w)
    """
    with pytest.raises(ParserTypeError, match="passes a window"):
        run_host(body)


# ---- names that scopes use for themselves ----

ADD_ROWS = """
    with pl.at(level=pl.Level.CORE_GROUP):
        for j in pl.range({turns}):
            t = pl.add(pl.load(z, [j, 0], [1, 8]), {amount})
            pl.store(t, [j, 0], z)
"""


def added(turns, amount):
    return ADD_ROWS.format(turns=turns, amount=amount)


def branch(text):
    return text.replace("\n    ", "\n        ")


@pytest.mark.parametrize(
    "body, first_row",
    [
        (added(4, 1) + added(4, 2), 3),
        ("    for q in pl.range(3):\n" + branch(added(4, 1) + added(3, 2)), 9),
        (
            "    if peer == 0:\n"
            + branch(added(4, 1))
            + "    else:\n"
            + branch(added(4, 2))
            + added(2, 4),
            5,
        ),
        ("    for j in pl.range(2):\n" + branch(added(4, 1)) + added(4, 2), 4),
        (added("peer + 4", 1) + added("peer + 2", 2), 3),
    ],
    ids=["twice", "in a loop", "in branches", "name of a loop outside", "computed turns"],
)
def test_scopes_with_the_same_names_have_nothing_to_do_with_each_other(body, first_row):
    x, z = run(body)
    assert (z[0, 0] == first_row).all()


def test_a_scope_does_not_wait_for_an_earlier_one_that_uses_the_same_names():
    body = """
    with pl.at(level=pl.Level.CORE_GROUP):
        for j in pl.range(2):
            pld.system.wait(sig, [0, 0], j + 1, cmp=pld.WaitCmp.Ge)
    with pl.at(level=pl.Level.CORE_GROUP):
        for j in pl.range(2):
            pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    z[0, 0] = 1
    """
    x, z = run(body, ranks=2)
    assert (z[:, 0, 0] == 1).all()


def test_a_loop_variable_of_a_scope_is_read_behind_it():
    body = added(4, 1) + "    z[5, 0] = pl.cast(j, pl.INT32)\n"
    x, z = run(body)
    assert z[0, 5, 0] == 3


def test_a_loop_of_a_scope_without_turns_leaves_its_variable():
    body = "    j = 7\n" + added("peer", 1) + "    z[5, 0] = pl.cast(j, pl.INT32)\n"
    x, z = run(body)
    assert z[0, 5, 0] == 7


def test_the_second_scope_reads_what_the_first_left_in_the_name():
    body = """
    with pl.at(level=pl.Level.CORE_GROUP):
        for j in pl.range(6):
            z[j, 0] = 1
    with pl.at(level=pl.Level.CORE_GROUP):
        for j in pl.range(peer):
            z[j, 1] = 1
        z[7, 1] = pl.cast(j, pl.INT32)
    """
    x, z = run(body)
    assert z[0, 7, 1] == 5


def test_a_number_of_a_scope_goes_around_the_loop_past_a_continue():
    body = """
    k = pl.const(1, pl.INT32)
    for q in pl.range(4):
        z[q, 0] = k
        with pl.at(level=pl.Level.CORE_GROUP):
            k = z[q, 0] * 3
            z[7, 0] = k
        if q < 3:
            continue
        k = pl.const(0, pl.INT32)
    """
    x, z = run(body)
    assert z[0, :8, 0].tolist() == [1, 3, 9, 27, 0, 0, 0, 81]
