"""What a name in a DSL function means: where it is looked up, and how Python objects are described
to the compiler."""

import re

import numpy as np
import pytest

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from pypto import _core
from pypto.language import Tensor as Renamed
from pypto.language import dynamic, load
from programs import config, from_text

SIZE = 256
SHADOWED = "global"
mutable = 1
cycle = [1]
cycle.append(cycle)


@pl.jit.incore
def kernel():
    pass


@pl.jit
def wrapper():
    pass


@pl.jit.host
def host():
    pass


def meaning(value):
    """What the compiler is told about a value."""
    namespace = {"value": value, "pl": pl}
    exec("@pl.jit\ndef f(): pass", namespace)
    return _core.resolve(namespace["f"], "value")


@pytest.mark.parametrize(
    "value, expected",
    [
        (3, "int 3"),
        (-(2**63), "int -9223372036854775808"),
        (2**63, "int 9223372036854775808"),
        (2**64 - 1, "int 18446744073709551615"),
        (2**64, "other int of more than 64 bits"),
        (-(2**63) - 1, "other int of more than 64 bits"),
        (True, "bool 1"),
        (False, "bool 0"),
        (None, "none"),
        ("ring", 'string "ring"'),
        ("\ud800", "other str"),
        (np.int32(7), "int 7"),
        (np.uint64(2**63), "int 9223372036854775808"),
        (np.bool_(True), "bool 1"),
        ([1, (True, "x"), []], 'list [int 1, list [bool 1, string "x"], list []]'),
        (pl, "path pl"),
        (pld, "path pld"),
        (pypto, "path pypto"),
        (pld.system, "path pld.system"),
        (pl.tile, "path pl.tile"),
        (pl.load, "path pl.load"),
        (pl.tile.load, "path pl.load"),
        (pld.remote_load, "path pld.tile.remote_load"),
        (pl.FP32, "path pl.FP32"),
        (pl.Tensor, "path pl.Tensor"),
        (pl.Out, "path pl.Out"),
        (pl.dynamic, "path pl.dynamic"),
        (pld.DistributedTensor, "path pld.DistributedTensor"),
        (pld.NotifyOp, "path pld.NotifyOp"),
        (pld.NotifyOp.Set, "path pld.NotifyOp.Set"),
        (pl.dynamic("world_size"), "dynamic world_size"),
        (pl.dynamic("N") * 2, "dim (dynamic N * int 2)"),
        (4 // (pl.dynamic("N") - 1), "dim (int 4 // dim (dynamic N - int 1))"),
        (pl.Tensor[[1], pl.FP32], "type pl.Tensor[list [int 1], path pl.FP32]"),
        (np.zeros(1), "other ndarray"),
        (np.zeros(()), "other ndarray"),
        (np, "other module"),
        (np.float32, "other type"),
        (np.complex64(1), "other complex64"),
        (1j, "other complex"),
        (object(), "other object"),
        (len, "other builtin_function_or_method"),
    ],
)
def test_values(value, expected):
    assert meaning(value) == expected


@pytest.mark.parametrize("value", [0.1, np.float32(0.1), np.float64(0.1), float("inf")])
def test_floats_are_exact(value):
    assert (
        meaning(value)
        == meaning(float(value))
        != meaning(float(np.nextafter(np.float32(value), 0)))
    )


def test_a_list_in_itself_is_no_constant():
    assert meaning(cycle).startswith("list [int 1, list [")
    assert "other list" in meaning(cycle)


def test_functions_carry_their_identity_and_number():
    @pl.jit.host
    def f():
        pass

    text = _core.resolve(f, "kernel")
    assert re.fullmatch(
        rf"function kernel @pl\.jit\.incore {re.escape(__file__)}:\d+ [0-9a-f]{{32}} #1", text
    )
    assert _core.resolve(host, "host").endswith("#0")
    assert "wrapper @pl.jit " in _core.resolve(f, "wrapper")


def test_objects_with_a_getattr_are_left_alone():
    class Greedy:
        def __getattr__(self, name):
            raise AssertionError(f"asked for {name}")

    assert meaning(Greedy()) == "other Greedy"


def test_order_closure_locals_globals_builtins():
    SHADOWED = "local"
    only_in_annotation = 5

    @pl.jit
    def f(x: pl.Tensor[[only_in_annotation], pl.FP32]):
        return SHADOWED

    assert _core.resolve(f, "SHADOWED") == 'string "local"'
    assert _core.resolve(f, "only_in_annotation") == "int 5"
    assert _core.resolve(f, "SIZE") == "int 256"
    assert _core.resolve(f, "Renamed") == "path pl.Tensor"
    assert _core.resolve(f, "load") == "path pl.load"
    assert _core.resolve(f, "dynamic") == "path pl.dynamic"
    assert _core.resolve(f, "len") == "other builtin_function_or_method"
    assert _core.resolve(f, "nowhere") == "undefined"
    SHADOWED = "changed later"
    only_in_annotation = 6
    assert _core.resolve(f, "SHADOWED") == 'string "changed later"'  # a cell, like in Python
    assert _core.resolve(f, "only_in_annotation") == "int 5"  # a snapshot: no cell holds it


def test_a_cell_that_is_still_empty_is_undefined():
    @pl.jit
    def f():
        return later

    assert _core.resolve(f, "later") == "undefined"
    later = 1
    assert _core.resolve(f, "later") == "int 1"


def test_globals_are_read_as_they_are_now():
    global mutable
    mutable = 1
    assert _core.resolve(host, "mutable") == "int 1"
    mutable = 2
    assert _core.resolve(host, "mutable") == "int 2"


def test_snapshots_do_not_keep_arrays_alive():
    import weakref

    class Big:
        pass

    def factory():
        big = Big()
        scalar = np.int64(3)

        @pl.jit
        def f():
            pass

        return f, weakref.ref(big)

    f, big = factory()
    assert big() is None
    assert _core.resolve(f, "big") == "other Big"
    assert _core.resolve(f, "scalar") == "int 3"


def test_references_are_given_back():
    import sys

    for value in [object(), [1, 2, 3], np.zeros(3), "text" * 10, np.int32(3), pl.load, kernel]:

        @pl.jit
        def f():
            return value

        _core.resolve(f, "value")
        before = sys.getrefcount(value), sys.getrefcount(f)
        for _ in range(10):
            _core.resolve(f, "value")
            _core.resolve(f, "nowhere")
        assert (sys.getrefcount(value), sys.getrefcount(f)) == before


# ---- annotations that have a name ----

ALIASES = """\
@pl.jit.incore
def kernel(x: Row, y: OutRow, n: Number):
    t = pl.load(x, [0, 0], [1, 8])
    t = pl.mul(t, n)
    pl.store(t, [0, 0], y)

@pl.jit
def wrapper(x: Bare, y: pl.Out[Row], n: Number) -> Row:
    kernel(x, y, n)
    return y

@pl.jit.host
def host(x: Rows, y: pl.Out[Rows], n: Number) -> Rows:
    for r in pl.range(pld.world_size()):
        wrapper(x[r], y[r], n, device=r)
    return y
"""


def aliases(dtype, array_dtype):
    row = pl.Tensor[[1, 8], dtype]
    namespace = from_text(
        ALIASES,
        Row=row,
        OutRow=pl.Out[row],
        Bare=pl.Tensor,
        Rows=pl.Tensor[[pl.dynamic("NR"), 1, 8], dtype],
        Number=pl.Scalar[dtype],
    )
    x = np.arange(16).reshape(2, 1, 8).astype(array_dtype)
    y = np.zeros_like(x)
    namespace["host"](x, y, 3, config=config(2))
    np.testing.assert_array_equal(y, x * 3)


def test_annotations_may_have_names():
    aliases(pl.FP32, np.float32)
    aliases(pl.INT32, np.int32)


def test_what_a_named_annotation_is_told_as():
    assert meaning(pl.Tensor[[1, pl.dynamic("N")], pl.FP32]) == (
        "type pl.Tensor[list [int 1, dynamic N], path pl.FP32]"
    )
    assert meaning(pl.Out[pl.Tensor]) == "type pl.Out[path pl.Tensor]"
