"""What annotations may say, and what they may not: each row of the language's list of rejections,
with the class of the exception and its key words."""

import types

import numpy as np
import pytest

import pypto.language as pl
from programs import config, from_text
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.language.parser import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError

consts = types.ModuleType("consts")
consts.SIZE = 8
consts.SHAPE = [1, 8]
consts.DT = pl.FP32

NR = pl.dynamic("NR")
NAMES = {
    "consts": consts,
    "N2": NR * 2,
    "SIZE": 8,
    "SHAPE": (1, 8),
    "BAD_SHAPE": [1, "x"],
    "TEXT": "abc",
    "DT": pl.FP32,
    "LAYOUT": pl.DN,
    "MX": pl.MX_A_ZZ,
}

PROGRAM = """\
@pl.jit.incore
def kernel(x: {x}, y: pl.Out[{x}]):
    pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], y)

@pl.jit
def wrapper(x: {x}, y: pl.Out[{x}]):
    kernel(x, y)

@pl.jit.host
def host(x: pl.Tensor[[NR, 1, 8], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 8], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        wrapper(x[r], y[r], device=r)
"""


def runs(text, ranks=2):
    host = from_text(text, **NAMES)["host"]
    x = np.arange(ranks * 8, dtype=np.float32).reshape(ranks, 1, 8)
    y = np.zeros_like(x)
    host(x, y, config=config(ranks))
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "annotation",
    [
        "pl.Tensor[[1, 8], pl.FP32]",
        "pl.Tensor((1, 8), pl.FP32)",
        "pl.Tensor",
        "pl.Tensor[[1, SIZE], DT]",
        "pl.Tensor[[SIZE // 8, 2 * SIZE - 8], DT]",
        "pl.Tensor[[1, consts.SIZE], consts.DT]",
        "pl.Tensor[consts.SHAPE, pl.FP32]",
        "pl.Tensor[SHAPE, pl.FP32]",
        "pl.Tensor[[SHAPE[0], SHAPE[1]], pl.FP32]",
        "pl.Tensor[[1, pl.dynamic('K')], pl.FP32]",
        "pl.Tensor[[1, 8], pl.FP32, pl.ND]",
        "pl.Tensor[[1, 8], pl.FP32, pl.MX_A_ZZ]",
        "pl.Tensor[[1, 8], pl.FP32, MX]",
        "pl.Tensor[[1, 8], pl.FP32, pl.MemRef(0, 32)]",
        "'pl.Tensor[[1, 8], pl.FP32]'",
    ],
)
def test_accepted(annotation):
    plain = annotation.strip("'")
    runs(PROGRAM.replace("pl.Out[{x}]", f"pl.Out[{plain}]").replace("{x}", annotation))


def test_string_annotations_of_a_module():
    text = PROGRAM.format(x="pl.Tensor[[1, consts.SIZE], DT]")
    runs("from __future__ import annotations\n" + text)


def test_dimensions_through_a_variable():
    text = PROGRAM.format(x="pl.Tensor[[1, 8], pl.FP32]").replace(
        "y: pl.Out[pl.Tensor[[NR, 1, 8], pl.FP32]]):",
        "y: pl.Out[pl.Tensor[[NR, 1, 8], pl.FP32]], z: pl.Tensor[[N2, 1], pl.FP32]):",
    )
    host = from_text(text, **NAMES)["host"]
    x = np.ones((2, 1, 8), np.float32)
    host(x, x * 0, np.zeros((4, 1), np.float32), config=config(2))
    with pytest.raises(ValueError, match=r"does not have the extent .* declares: \(NR \* 2\), which is \d+; it has \d+"):
        host(x, x * 0, np.zeros((3, 1), np.float32), config=config(2))


@pytest.mark.parametrize(
    "annotation, words",
    [
        ("pl.Tensor[[1, 8], pl.FP32, pl.DN]", r"pl\.Tensor\[\.\.\., pl\.DN\] is not supported"),
        ("pl.Tensor[[1, 8], pl.FP32, pl.NZ]", r"pl\.Tensor\[\.\.\., pl\.NZ\] is not supported"),
        ("pl.Tensor[[1, 8], pl.FP32, LAYOUT]", r"pl\.Tensor\[\.\.\., LAYOUT\] is not supported"),
        ("pl.Tensor[[1, 8], pl.FP32, pl.ZZ]", "Unknown layout 'pl.ZZ'"),
        ("pl.Tensor[[1, 8], pl.FP32, NOTHING]", "Unknown layout 'NOTHING'"),
        ("pl.Tensor[[1, 8], pl.FP32, SIZE]", "must be a TensorLayout"),
        ("pl.Tensor[[1, 8], pl.FP32, 3]", "must be a TensorLayout"),
        ("pl.Tensor[[1, 8], pl.FP32, consts.Q(1)]", "must be a TensorLayout"),
        ("pl.Tensor[[1, 8], pl.FP64]", "Unknown dtype 'pl.FP64'"),
        ("pl.Tensor[[1, 8], TEXT]", "'TEXT' must be a DataType"),
        ("pl.Tensor[[1, 8], 3]", "must be a DataType"),
        ("pl.Tensor[[1, NOTHING], pl.FP32]", "Unknown shape variable 'NOTHING'"),
        ("pl.Tensor[NOTHING, pl.FP32]", "Unknown shape variable 'NOTHING'"),
        ("pl.Tensor[[1, consts.NONE], pl.FP32]", "Unknown shape variable 'consts.NONE'"),
        ("pl.Tensor[[1, TEXT], pl.FP32]", "must be int or pl.dynamic"),
        ("pl.Tensor[SIZE, pl.FP32]", "must be a list or tuple"),
        ("pl.Tensor[1 + 2, pl.FP32]", "must be a list or tuple"),
        ("pl.Tensor[BAD_SHAPE, pl.FP32]", "element 1 must be int"),
        ("pl.Tensor[[1, 8.0], pl.FP32]", "Cannot resolve expression"),
        ("pl.Tensor[[1, max(8, 1)], pl.FP32]", "Cannot resolve expression"),
        ("pl.Tensor[[1, consts.pick(8).x], pl.FP32]", "Cannot resolve expression"),
        ("pl.Tensor[[1, TEXT[0]], pl.FP32]", "Cannot resolve expression"),
        ("pl.Tensor[[1, SHAPE[5]], pl.FP32]", "Failed to evaluate expression"),
        ("tuple[pl.Tensor, pl.Tensor]", "Parameter type cannot be a tuple"),
        ("pl.Tuple[pl.Tensor, pl.Tensor]", "Parameter type cannot be a tuple"),
        ("pl.Tile[[1, 8], pl.FP32]", "a Tile is local"),
        ("pl.Tile[[1, 8], pl.FP32, pl.NZ]", "Tile does not accept layouts like pl.NZ"),
        ("pl.InOut[pl.Scalar[pl.INT32]]", "Scalar parameters cannot have InOut direction"),
        ("pl.Tensor[[1, 8], pl.FP32, pl.TensorView(depth=1)]", "Unknown TensorView keyword 'depth'"),
    ],
)
def test_refused(annotation, words):
    text = PROGRAM.replace("x: {x}", f"x: '''{annotation}'''", 1)
    text = text.replace("{x}", "pl.Tensor[[1, 8], pl.FP32]")
    with pytest.raises(ParserTypeError, match=words) as caught:
        runs(text)
    assert caught.value.span["line"] == 2


def test_a_view_in_a_jit_annotation():
    annotation = "pl.Tensor[[1, 8], pl.FP32, pl.TensorView()]"
    with pytest.raises(TypeError, match="does not yet support"):
        runs(PROGRAM.format(x="pl.Tensor[[1, 8], pl.FP32]").replace(
            "pl.Tensor[[1, 8], pl.FP32]", annotation, 1))


def test_dynamic_names():
    with pytest.raises(ValueError, match="must be a valid identifier"):
        pl.dynamic("1x")
    with pytest.raises(TypeError, match="no value while Python runs"):
        bool(pl.dynamic("N"))


@pytest.mark.parametrize(
    "returns, words",
    [
        ("tuple[tuple[pl.Tensor, pl.Tensor], pl.Tensor]", "Nested tuple types"),
        ("pl.Tuple[pl.Tuple[pl.Tensor, pl.Tensor], pl.Tensor]", "Nested tuple types"),
    ],
)
def test_refused_results(returns, words):
    text = PROGRAM.format(x="pl.Tensor[[1, 8], pl.FP32]").replace("):\n    pl.store", f") -> {returns}:\n    pl.store")
    with pytest.raises(ParserTypeError, match=words):
        runs(text)


@pytest.mark.parametrize("form", ["tuple", "pl.Tuple"])
def test_tuple_results(form):
    text = """\
@pl.jit.incore
def kernel(x: T, y: pl.Out[T], z: pl.Out[T]) -> FORM[T, T]:
    t = pl.load(x, [0, 0], [1, 8])
    return pl.store(t, [0, 0], y), pl.store(pl.mul(t, 2.0), [0, 0], z)

@pl.jit
def wrapper(x: T, y: pl.Out[T], z: pl.Out[T]) -> FORM[T, T]:
    a, b = kernel(x, y, z)
    return a, b

@pl.jit.host
def host(x: H, y: pl.Out[H], z: pl.Out[H]) -> FORM[H, H]:
    for r in pl.range(pld.world_size()):
        wrapper(x[r], y[r], z[r], device=r)
    return y, z
"""
    text = text.replace("FORM", form).replace("H", "pl.Tensor[[2, 1, 8], pl.FP32]")
    text = text.replace("T,", "pl.Tensor[[1, 8], pl.FP32],").replace("T]", "pl.Tensor[[1, 8], pl.FP32]]")
    host = from_text(text)["host"]
    x = np.ones((2, 1, 8), np.float32)
    y, z = host.compile(config=config(2))(x)
    assert (y == 1).all() and (z == 2).all()


# ---- scalars of the entry ----

SCALARS = """\
@pl.jit.incore
def kernel(x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]], f: pl.FP32,
           n: pl.Scalar[pl.INT32], on: pl.BOOL):
    t = pl.mul(pl.load(x, [0], [4]), f)
    for i in pl.range(n):
        t = pl.add(t, 1.0)
    if on:
        t = pl.mul(t, 2.0)
    pl.store(t, [0], y)

@pl.jit
def wrapper(x: pl.Tensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.FP32]], f: pl.FP32,
            n: pl.Scalar[pl.INT32], on: pl.BOOL):
    kernel(x, y, f, n, on)

@pl.jit.host
def host(x: pl.Tensor[[1, 4], pl.FP32], y: pl.Out[pl.Tensor[[1, 4], pl.FP32]], f: pl.FP32,
         n: pl.Scalar[pl.INT32], on: pl.BOOL = False):
    wrapper(x[0], y[0], f, n, on, device=0)
"""


def ones():
    return np.ones((1, 4), np.float32), np.zeros((1, 4), np.float32)


def test_scalars_of_a_call():
    host = from_text(SCALARS)["host"]
    x, y = ones()
    host(x, y, 2.5, 3)
    assert y.tolist() == [[5.5] * 4]
    host(x, y, f=2, n=1, on=True)
    assert y.tolist() == [[6.0] * 4]


def test_signature_mode():
    host = from_text(SCALARS)["host"]
    x, y = ones()
    baked = host.compile(f=2.0, n=3)
    baked(x, y)
    assert y.tolist() == [[5] * 4]
    baked(x, y, 2.0, 3, False)
    assert y.tolist() == [[5] * 4]
    assert host.compile(f=2.0, n=3) is baked
    assert host.compile(f=2.0, n=4) is not baked

    open_one = host.compile(f=2.0, n=pl.RUNTIME, on=pl.RUNTIME)
    for n, on in [(0, False), (4, True)]:
        open_one(x, y, 2.0, n, on)
        assert y.tolist() == [[(2 + n) * (1 + on)] * 4]

    for call in (host.compile, lambda: host.compile(f=1.0)):
        with pytest.raises(TypeError, match="scalar parameter 'n' has no value"):
            call()
    with pytest.raises(TypeError, match="'x' received pl.RUNTIME, but is a tensor"):
        host.compile(x=pl.RUNTIME, f=1.0, n=1)
    with pytest.raises(TypeError, match="'n' received pl.RUNTIME"):
        host.compile(x, y, 1.0, pl.RUNTIME)
    with pytest.raises(TypeError, match="unexpected keyword argument 'q'"):
        host.compile(f=1.0, n=1, q=1)
    with pytest.raises(TypeError, match="bare 'pl.Tensor'"):
        from_text(SCALARS.replace("x: pl.Tensor[[1, 4], pl.FP32], y", "x: pl.Tensor, y"))[
            "host"
        ].compile(f=1.0, n=1)


def test_scalars_of_a_class_form_entry_stay_parameters():
    text = SCALARS.replace("@pl.jit.incore", "    @pl.function(type=pl.FunctionType.InCore)")
    text = text.replace("@pl.jit.host", "    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)")
    text = text.replace("@pl.jit", "    @pl.function(type=pl.FunctionType.Orchestration)")
    text = "\n".join(
        line if line.startswith("    @") else "    " + line for line in text.splitlines()
    )
    for name in ("kernel", "wrapper", "host"):
        text = text.replace(f"def {name}(", f"def {name}(self, ")
    text = text.replace("    wrapper(x", "    self.wrapper(x").replace("    kernel(x", "    self.kernel(x")
    program = from_text("@pl.program\nclass P:\n" + text.replace(" = False", ""))["P"]
    run = ir.compile(program, distributed_config=DistributedConfig(device_ids=[0]))
    x, y = ones()
    run(x, y, 3.0, 2, True)
    assert y.tolist() == [[10] * 4]


def test_lower():
    host = from_text(SCALARS)["host"]
    x, y = ones()
    program = host.lower(x, y, 2.0, 3)
    assert isinstance(program, ir.Program) and program.name == "host"
    assert list(program.functions) == ["kernel", "wrapper", "host"]
    assert "host host" in program.as_python()
    assert host.stats == {}
    with pytest.raises(TypeError, match="has no value"):
        host.lower()


# ---- bind_dynamic ----

BOUND = """\
M = pl.dynamic("M")

@pl.jit.incore
def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    K = pl.dynamic("K")
    x.bind_dynamic(0, K)
    y.bind_dynamic(0, K)
    for i in pl.range(K):
        pl.store(pl.load(x, [i, 0], [1, 4]), [i, 0], y)

@pl.jit
def wrapper(x: pl.Tensor[[M, 4], pl.FP32], y: pl.Out[pl.Tensor[[M, 4], pl.FP32]]):
    kernel(x, y)

@pl.jit.host
def host(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    x.bind_dynamic(1, M)
    y.bind_dynamic(1, pl.dynamic("M"))
    for r in pl.range(pld.world_size()):
        wrapper(x[r], y[r], device=r)
"""


def test_bind_dynamic():
    host = from_text(BOUND)["host"]
    for rows in (1, 5, 9):
        x = np.random.default_rng(rows).standard_normal((2, rows, 4), dtype=np.float32)
        y = np.zeros_like(x)
        host(x, y, config=config(2))
        np.testing.assert_array_equal(x, y)
    assert sum(map(len, host._programs.values())) == 1


@pytest.mark.parametrize("call", ["x.bind_dynamic(3, M)", "x.bind_dynamic(1)", "x.bind_dynamic(1, 4)"])
def test_bind_dynamic_refuses(call):
    host = from_text(BOUND.replace("x.bind_dynamic(1, M)", call))["host"]
    x = np.zeros((1, 2, 4), np.float32)
    with pytest.raises(pl.parser.InvalidOperationError, match="bind_dynamic takes a dimension of 'x'"):
        host(x, x)


# ---- pl.func_attr ----


@pytest.mark.parametrize(
    "lines, words",
    [
        (["pl.func_attr({'a': 1}, 2)"], "exactly one positional dict argument"),
        (["pl.func_attr(a=1)"], "exactly one positional dict argument"),
        (["pl.func_attr(SIZE)"], "must be a dict literal"),
        (["pl.func_attr({1: 2})"], "keys must be strings"),
        (["pl.func_attr({TEXT: 2})"], "key must be a string literal"),
        (["pass", "pl.func_attr({'a': 1})"], "must appear before every other statement"),
        (["pl.func_attr({'a': 1, 'a': 2})"], "duplicate key 'a'"),
        (["pl.func_attr({'a': 1})", "pl.func_attr({'a': 2})"], "duplicate key 'a'"),
        (["pl.func_attr({'auto_scope': True})"], "'auto_scope' cannot be set with pl.func_attr"),
        (["pl.func_attr({'external_source': 1})"], "'external_source' cannot be set"),
        (["pl.func_attr({'a': 1, 'b': [2]})", "pl.func_attr({'c': 3})"], None),
    ],
)
def test_func_attr(lines, words):
    text = PROGRAM.format(x="pl.Tensor[[1, 8], pl.FP32]")
    text = text.replace("    kernel(x, y)", "".join(f"    {line}\n" for line in lines) + "    kernel(x, y)")
    if words is None:
        return runs(text)
    with pytest.raises(ParserSyntaxError, match=words):
        runs(text)


# ---- where names of dimensions come from ----

ROWS = """\
@pl.jit.incore
def kernel({kernel}, n: pl.Out[pl.Tensor[[1], pl.INT32]]):
    pl.write(n, [0], {value})

@pl.jit
def wrapper({wrapper}, n: pl.Out[pl.Tensor[[1], pl.INT32]]):
    kernel({call}, n)
"""


def rows(annotation, value="N", extent=3):
    """What `value` is in a kernel with a parameter of that type and a tensor of `extent` rows."""
    text = "N = pl.dynamic('N')\n" + ROWS.format(
        kernel=f"x: {annotation}", wrapper=f"x: {annotation}", call="x", value=value
    )
    n = np.zeros(1, np.int32)
    from_text(text)["wrapper"](np.ones((extent, 4), np.float32), n)
    return int(n[0])


@pytest.mark.parametrize(
    "dimension, value",
    [
        ("N", 6),
        ("N + 2", 4),
        ("N - 2", 8),
        ("10 - N", 4),
        ("N * 2", 3),
        ("3 * N - 3", 3),
        ("N // 4", 24),
        ("pl.dynamic('N')", 6),
        ("pl.dynamic('N') * pl.const(2, pl.INT32)", 3),
    ],
)
def test_recovered_dimensions(dimension, value):
    assert rows(f"pl.Tensor[[{dimension}, 4], pl.FP32]", extent=6) == value


def test_dimensions_that_no_number_fits():
    with pytest.raises(TypeError, match="dimension 0 is 5, which"):
        rows("pl.Tensor[[N * 2, 4], pl.FP32]", extent=5)


@pytest.mark.parametrize(
    "annotation",
    [
        "'pl.Tensor[[N, 4], pl.FP32]'",
        "pl.Tensor[[N, 4], 'pl.FP32']",
        "pl.InOut['pl.Tensor[[N, 4], pl.FP32]']",
        "'pl.InOut[\\'pl.Tensor[[N, 4], pl.FP32]\\']'",
        "pl.Tensor((N, 4), pl.FP32)",
    ],
)
def test_strings_anywhere(annotation):
    assert rows(annotation) == 3


def test_a_string_inside_that_is_no_expression():
    with pytest.raises(ParserTypeError, match="is not a Python expression"):
        rows("pl.InOut['pl.Tensor[[N, 4']")


def test_constants_in_shapes():
    assert rows("pl.Tensor[[pl.const(3, pl.INT32), 4], pl.FP32]", value="7") == 7
    assert pl.const(3, pl.INT32) == 3
    with pytest.raises(TypeError):
        pl.const(3)


SCALAR_DIM = """\
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, m: pl.Scalar[pl.INDEX], x: "pl.Tensor[[m * 2, 4], pl.FP32]",
               y: pl.Out["pl.Tensor[[m, 4], pl.FP32]"]):
        for i in pl.range(m):
            pl.store(pl.load(x, [2 * i, 0], [1, 4]), [i, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def run(self, m: pl.Scalar[pl.INDEX], x: "pl.Tensor[[m * 2, 4], pl.FP32]",
            y: pl.Out["pl.Tensor[[m, 4], pl.FP32]"]):
        self.kernel(m, x, y)
"""


def test_a_scalar_parameter_is_a_dimension():
    run = ir.compile(from_text(SCALAR_DIM)["P"], platform="cpu")
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    y = np.zeros((3, 4), np.float32)
    run(3, x, y)
    np.testing.assert_array_equal(y, x[::2])
    with pytest.raises(ValueError, match="'x' does not have the extent that 'run' declares: .m . 2"):
        run(2, x, y[:2])
    with pytest.raises(ValueError, match="'y' does not have the extent that 'run' declares: m"):
        run(3, x, y[:2])


def test_a_scalar_parameter_behind_its_dimension():
    text = SCALAR_DIM.replace("m: pl.Scalar[pl.INDEX], x:", "x:").replace(
        'y: pl.Out["pl.Tensor[[m, 4], pl.FP32]"]', "m: pl.Scalar[pl.INDEX]"
    )
    text = "m = pl.dynamic('m')\n" + text
    with pytest.raises(ParserTypeError, match="scalar parameter 'm' stands behind annotations"):
        from_text(text)


COMM = """\
@pl.jit.incore
def count(ctx: pld.CommCtx, y: pl.Out[pl.Tensor[[1], pl.INT32]]):
    pl.write(y, [0], pld.nranks(ctx))

@pl.jit.incore
def kernel(w: pld.DistributedTensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[1], pl.INT32]]):
    ctx = pld.get_comm_ctx(w)
    count(ctx, y)

@pl.jit
def wrapper(w: pld.DistributedTensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[1], pl.INT32]]):
    kernel(w, y)

@pl.jit.host
def host(y: pl.Out[pl.Tensor[[NR, 1], pl.INT32]]):
    buf = pld.alloc_window_buffer(16)
    for r in pl.range(pld.world_size()):
        wrapper(pld.window(buf, [4], dtype=pl.FP32), y[r], device=r)
"""


@pytest.mark.parametrize("name", ["pld.CommCtx", "pld.CommCtxType", '"pld.CommCtxType"', "Ctx"])
def test_a_communication_domain_has_two_names(name):
    text = "from pypto.language.distributed import CommCtxType as Ctx\n" + COMM
    y = np.zeros((2, 1), np.int32)
    from_text(text.replace("ctx: pld.CommCtx", f"ctx: {name}"))["host"](y, config=config(2))
    assert y.tolist() == [[2], [2]]


@pytest.mark.parametrize("name", ["pl.Ptr", "pl.PtrType"])
def test_a_window_buffer_has_two_type_names(name):
    y = np.zeros((2, 1), np.int32)
    from_text(COMM.replace("buf =", f"buf: {name} ="))["host"](y, config=config(2))
    assert y.tolist() == [[2], [2]]


def test_a_communication_domain_as_parameter():
    y = np.zeros((2, 1), np.int32)
    with pytest.raises(ParserTypeError, match="a communication domain cannot be a parameter"):
        from_text(COMM.replace("@pl.jit.incore\ndef count", "@pl.jit\ndef count"))["count"].compile()
    text = COMM.replace("    kernel(w, y)", "    count(pld.get_comm_ctx(w), y)")
    from_text(text)["host"](y, config=config(2))
    assert y.tolist() == [[2], [2]]


RANKS_IN_WRAPPERS = """\
@pl.jit
def wrapper(w: pld.DistributedTensor[[4], pl.FP32], y: pl.Out[pl.Tensor[[4], pl.INT32]]):
    ctx = pld.get_comm_ctx(w)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.write(y, [0], me)
        pl.write(y, [1], n)
    if me == n - 1:
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.write(y, [2], pld.rank(pld.get_comm_ctx(w)))

@pl.jit.host
def host(y: pl.Out[pl.Tensor[[NR, 4], pl.INT32]]):
    buf = pld.alloc_window_buffer(16)
    for r in pl.range(1, 3):
        wrapper(pld.window(buf, [4], dtype=pl.FP32), y[r], device=r)
"""


def test_wrappers_and_scopes_know_their_rank(transport):
    y = np.full((4, 4), -1, np.int32)
    from_text(RANKS_IN_WRAPPERS)["host"](y, config=config(4))
    assert y.tolist() == [[-1] * 4, [0, 2, -1, -1], [1, 2, 1, -1], [-1] * 4]


# ---- numbers of different width ----

WIDTHS = """\
@pl.jit.incore
def kernel(x: pl.Tensor[[4], pl.INT32], y: pl.Out[pl.Tensor[[1], pl.INT64]], n: pl.INT32):
{body}
    pl.write(y, [0], acc)

@pl.jit
def wrapper(x: pl.Tensor[[4], pl.INT32], y: pl.Out[pl.Tensor[[1], pl.INT64]], n: pl.INT32):
    kernel(x, y, n)
"""

BIG = 2**31 - 1


@pytest.mark.parametrize(
    "body, value",
    [
        ("acc = pl.const(0, pl.INT32)\nfor i in pl.range(4):\n    acc = acc + i * pl.read(x, [i])", 6 * BIG),
        ("acc = n\ni = 0\nwhile i < 3:\n    acc = acc + i * acc\n    i = i + 1", 6 * BIG),
        ("acc = n\nif n > 1:\n    acc = pl.cast(n, pl.INT64) + 1", BIG + 1),
        ("acc = n\nif n > 1:\n    acc = 2 ** 40\nelif n > 0:\n    acc = pl.const(1, pl.INT8)", 2**40),
        ("for i, (a,) in pl.range(3, init_values=(n,)):\n    acc = pl.yield_(a + i)", BIG + 3),
        ("acc: pl.Scalar[pl.INT64] = 0\nfor i in pl.range(4):\n    acc = acc + pl.read(x, [i])", 4 * BIG),
    ],
)
def test_numbers_meet_in_the_wider_type(body, value):
    text = WIDTHS.format(body="\n".join("    " + line for line in body.split("\n")))
    y = np.zeros(1, np.int64)
    from_text(text)["wrapper"].compile(n=pl.RUNTIME)(np.full(4, BIG, np.int32), y, BIG)
    assert int(y[0]) == value


@pytest.mark.parametrize(
    "body",
    [
        "acc = n\nif n > 1:\n    acc = pl.const(1, pl.UINT32)",
        "acc = pl.const(1, pl.UINT64)\nfor i in pl.range(n):\n    acc = i",
        "acc = 0\nif n > 1:\n    acc = 1.5",
    ],
)
def test_numbers_without_a_type_for_both(body):
    text = WIDTHS.format(body="\n".join("    " + line for line in body.split("\n")))
    with pytest.raises(ParserTypeError, match="Cannot reassign 'acc' with a different type"):
        from_text(text)["wrapper"].compile(n=pl.RUNTIME)


# ---- dynamic marks of callees ----

MARKS = """\
M = pl.dynamic("M")

@pl.jit.incore
def kernel(x: pl.Tensor[[M, 4], pl.FP32], y: pl.Out[pl.Tensor[[M, 4], pl.FP32]]):
    for i in pl.range(M):
        pl.store(pl.load(x, [i, 0], [1, 4]), [i, 0], y)
    return y

@pl.jit.inline
def between(x, y):
    kernel(x, y)

@pl.jit.inline
def around(made):
    pass

@pl.jit
def wrapper(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    {call}
"""


@pytest.mark.parametrize(
    "call",
    ["kernel(x, y)", "kernel(y=y, x=x)", "between(x, y)", "around(kernel(x, y))", "around(made=kernel(x, y))"],
)
def test_marks_pass_to_callers(call):
    wrapper = from_text(MARKS.format(call=call))["wrapper"]
    programs = set()
    for extent in (2, 5):
        x = np.random.default_rng(extent).standard_normal((extent, 4), dtype=np.float32)
        y = np.zeros_like(x)
        wrapper(x, y)
        np.testing.assert_array_equal(x, y)
        programs.add(wrapper.compile(x, y))
    assert len(programs) == 1


def test_marks_do_not_pass_through_expressions():
    text = MARKS.replace("x: pl.Tensor,", "a: pl.Tensor,").format(
        call="x = a[0]\n    kernel(x, y)"
    )
    wrapper = from_text(text)["wrapper"]
    compiled = {
        wrapper.compile(np.ones((1, n, 4), np.float32), np.ones((n, 4), np.float32)) for n in (2, 3)
    }
    assert len(compiled) == 2


def test_marks_of_a_recursion_end():
    text = MARKS.format(call="kernel(x, y)").replace("    kernel(x, y)\n\n@pl.jit\n", "    between(x, y)\n\n@pl.jit\n")
    text = text.replace("    kernel(x, y)\n", "    between(x, y)\n")
    with pytest.raises(UnsupportedFeatureError, match="calls itself"):
        from_text(text)["wrapper"].compile(np.ones((2, 4), np.float32), np.ones((2, 4), np.float32))
