"""What the language refuses, construct by construct: a kernel body, the class of the exception, and the
words that it must have. One mistake gives one message; several come together."""

import re
import warnings

import numpy as np
import pytest

import pypto
import pypto.language as pl
from programs import from_text
from pypto.language.parser import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

KERNEL = """\
class Plain:
    pass

THING = Plain()
LIST = [1, 2]

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
          n: pl.Scalar[pl.INT32], f: pl.Scalar[pl.FP32]):
        t = pl.load(x, [0, 0], [8, 8])
{body}
"""


def kernel(body):
    return KERNEL.format(body="\n".join("        " + line for line in body.split("\n")))


@pytest.mark.parametrize(
    "body, error, words",
    [
        # names
        ("z = zzz", UndefinedVariableError, "Undefined variable 'zzz'"),
        ("z = THING + 1", ParserTypeError, "Unsupported closure variable type: .*Plain"),
        ("z = pl.FP99.get_byte()", ParserTypeError, "Unknown DataType 'pl.FP99'"),
        ("self.g(x)", UndefinedVariableError, "'g' is not defined in program 'P'"),
        # loops
        ("for i in [1, 2]:\n    pass", ParserSyntaxError, r"must use pl.range\(\)"),
        ("for i in range(3):\n    pass", ParserSyntaxError, r"must use pl.range\(\), not range"),
        ("for i in pl.unroll(0, 4, 0):\n    pass", ParserSyntaxError, "step cannot be zero"),
        ("for i in pl.range(4, **LIST):\n    pass", ParserSyntaxError, r"does not accept \*\*kwargs"),
        ("while n:\n    pass", ParserTypeError, "while condition must be a Bool-typed scalar"),
        ("if n:\n    pass", ParserTypeError, "if condition must be a Bool-typed scalar"),
        # statements
        ("del t", UnsupportedFeatureError, "Unsupported statement type: Delete"),
        ("assert n", UnsupportedFeatureError, "Unsupported statement type: Assert"),
        ("import os", UnsupportedFeatureError, "Unsupported statement type: Import"),
        ("raise n", UnsupportedFeatureError, "Unsupported statement type: Raise"),
        ("def g():\n    pass", UnsupportedFeatureError, "Unsupported statement type: FunctionDef"),
        ("try:\n    pass\nfinally:\n    pass", UnsupportedFeatureError, "Unsupported statement type: Try"),
        ("a = b = 3", ParserSyntaxError, "Unsupported assignment"),
        ("a, b = n", ParserSyntaxError, "cannot unpack a Scalar"),
        ("a, b = (n, f, n)", ParserSyntaxError, "cannot unpack 3 values into 2 names"),
        ("(a, b[0]) = n, f", ParserSyntaxError, "Tuple unpacking target must be a variable name"),
        ("return 3", ParserSyntaxError, "returns storage of its parameters"),
        # expressions
        ("z = +t", ParserSyntaxError, "must be ScalarExpr or Var with ScalarType"),
        ("z = n < t", ParserSyntaxError, "must be ScalarExpr or Var with ScalarType"),
        ("z = pl.min(n, t)", ParserSyntaxError, "must be ScalarExpr or Var with ScalarType"),
        ("z = n + f", ParserSyntaxError, "requires same numeric dtype category"),
        ("z = n + True", ParserSyntaxError, "does not accept bool dtype"),
        ("z = n in LIST", UnsupportedFeatureError, "Unsupported comparison 'in'"),
        ("z = n is None", UnsupportedFeatureError, "Unsupported comparison 'is'"),
        ("z = n ** 2", UnsupportedFeatureError, r"Unsupported binary operator '\*\*'"),
        ("z = n @ n", UnsupportedFeatureError, "Unsupported binary operator '@'"),
        ("z = [n for i in LIST]", UnsupportedFeatureError, "ListComp"),
        ("z = lambda: 1", UnsupportedFeatureError, "Lambda"),
        ("z = f'{{n}}'", UnsupportedFeatureError, "JoinedStr"),
        ("z = {{1: 2}}", UnsupportedFeatureError, "Dict"),
        ("z = {{1}}", UnsupportedFeatureError, "Set"),
        ("z = x.foo", UnsupportedFeatureError, "Standalone attribute access not supported: '.foo'"),
        ("z = n.shape", UnsupportedFeatureError, "Standalone attribute access not supported"),
        ("print(n)", UnsupportedFeatureError, "Unsupported function call: 'print'"),
        ("z = len(LIST)", UnsupportedFeatureError, "Unsupported function call: 'len'"),
        ("t.foo()", UnsupportedFeatureError, "Unsupported function call: a Tile has no method 'foo'"),
        # subscripts
        ("a = (n, f)\nz = a[-1]", ParserTypeError, "index must be non-negative"),
        ("a = (n, f)\nz = a[n]", ParserTypeError, "the index of a tuple must be a constant"),
        ("a = (n, f)\nz = a[2]", ParserTypeError, "past the end of the tuple"),
        ("z = n[0]", ParserTypeError, "Subscript requires Tuple, Tensor, Tile, or Array"),
        ("z = x[0, 0, 0]", ParserTypeError, "3 indices but the tensor is 2D"),
        ("z = x[f, 0]", ParserTypeError, "index element 0 must be an integer scalar.*must be an index expression"),
        ("z = pl.load(x, [0, f], [8, 8])", ParserTypeError, "offset 1 must be an integer or index scalar.*must be an index expression"),
        ("z = pl.load(x, [0, 0], [8.0, 8])", ParserTypeError, "shape 0 must be .*must be an index expression"),
        ("z = pl.load(x, ['a', 0], [8, 8])", ParserTypeError, "must be an index expression"),
        ("z = pl.cast(t, pl.INT32, mode='up')", InvalidOperationError, "Invalid rounding mode: mode must be"),
        ("for i, (a, a) in pl.range(2, init_values=(1, 2)):\n    a, b = pl.yield_(a, a)", ParserSyntaxError, "conflicting bindings: 'a'"),
        ("for i, (i, a) in pl.range(2, init_values=(1, 2)):\n    b, a = pl.yield_(i, a)", ParserSyntaxError, "conflicting bindings: 'i'"),
        ("for i, (a, b) in pl.range(2, init_values=(1, 2)):\n    a, a = pl.yield_(a, b)", ParserSyntaxError, "conflicting bindings: 'a'"),
        ("a, a = n, f", ParserSyntaxError, "conflicting bindings: 'a' is named for two values"),
        ("a, (b, b) = n, (f, f)", ParserSyntaxError, "Tuple unpacking target must be a variable name"),
        ("z = x[::2, 0]", UnsupportedFeatureError, "step"),
        ("z = t[n:, :]", UnsupportedFeatureError, "Dynamic lower bounds"),
        ("y[0:4, 0:8] = pl.slice(t, [8, 8], [0, 0])", ParserTypeError, "shape mismatch on source axis 0"),
        ("y[0:8] = n", ParserTypeError, "Subscript-write source must also be"),
        # operations
        ("z = pl.nonsense(x)", InvalidOperationError, "Unknown operation 'pl.nonsense'"),
        ("z = pl.tile.nonsense(x)", InvalidOperationError, "Unknown operation 'pl.tile.nonsense'"),
        ("z = pld.nonsense(x)", InvalidOperationError, "Unknown distributed operation 'pld.nonsense'"),
        ("z = pl.exp(n)", InvalidOperationError, "pl.exp.*expected.*got Scalar"),
        ("z = pl.load(x, [0], [8, 8])", ParserTypeError, "the length of the list must match"),
        ("z = pl.load(x, [0, 0], [8, n])", ParserTypeError, "positive static extent"),
        ("z = pl.load(x, [0, 0], [8, 8], 3, 4, 5, 6, 7)", InvalidOperationError, "positional arguments but"),
        ("z = pl.const(n, pl.INT32)", ParserTypeError, "must be a numeric literal"),
        ("z = pl.const(3)", InvalidOperationError, "missing 1 required positional argument: 'dtype'"),
        ("pl.write(y, [0, 0], t)", InvalidOperationError, "value must be a scalar"),
        ("pl.write(y, [0, 0], n)", ParserSyntaxError, "requires same numeric dtype category"),
        ("pl.store(t, [0, 0], x)", ParserTypeError, "parameter 'x' is only read"),
        ("b = pld.alloc_window_buffer(4)", ParserSyntaxError, "can only be called in HOST orchestration context"),
        # words, articles and hints that fit
        ('z = pl.cmps(t, 1.0, cmp_type="less")', InvalidOperationError, '"gt" or "ge", not .less'),
        ('z = pl.cast(t, pl.FP32, mode="rond")', InvalidOperationError, "not 'rond'(.|\n)*mean 'round'"),
        ("z = pl.cast(t, pl.FP32, mode=pl.FP32)", InvalidOperationError, '"odd", not a dtype'),
        ("y[0, 0] = pl.FP33", InvalidOperationError, "did you mean pl.FP32?"),
        ("y[0, 0] = None", InvalidOperationError, "must be a scalar, not None"),
        ("y[0, 0] = n", ParserSyntaxError, "does not go with elements of fp32"),
        ("z = n << 40", ParserSyntaxError, "leaves nothing of an int32"),
        ("y[:] = pl.slice(t, [4, 8], [0, 0])", ParserTypeError, "hint: take the part of the source"),
        (
            "z = pl.slice(t, [4, 8], [0, 0], valid_shape=[-1, 8])",
            ParserTypeError,
            r"provably negative: -1(.|\n)*make it at least 0",
        ),
        # while compiling
        ("pl.static_assert(n > 1)", ParserError, "compile-time evaluable"),
        ("pl.static_assert(1 > 2, 'no')", ParserError, "static_assert failed: no"),
        ("pl.static_assert(True, n)", ParserSyntaxError, "must be a string literal"),
        ("pl.static_assert()", ParserSyntaxError, "1 or 2 arguments"),
    ],
)
def test_refused(body, error, words):
    text = kernel(body.replace("{{", "{").replace("}}", "}"))
    with pytest.raises(error, match=words) as caught:
        from_text(text)
    assert len(caught.value.diagnostics) == 1
    first = text[: text.index("        t = pl.load")].count("\n") + 2
    assert first <= caught.value.span["line"] <= text.count("\n") + 1


def test_several_mistakes_come_together_without_their_consequences():
    body = (
        "u = pl.lod(x, [0, 0], [8, 8])\n"  # u is nothing, and what follows from it is silent
        "v = pl.add(u, t)\n"
        "pl.store(v, [0, 0], y)\n"
        "w = u[0, 0] + missing\n"
        "if n:\n"
        "    w = w + 1\n"
        "for i in pl.range(w):\n"
        "    q = pl.mul(t, n + f)\n"
        "    if f > 0.0:\n"
        "        r = 3\n"
        "pl.write(y, [0, r], q)"
    )
    with pytest.raises(InvalidOperationError) as caught:
        from_text(kernel(body))
    assert [d.message.partition(":")[0] for d in caught.value.diagnostics] == [
        "Unknown operation 'pl.lod'",
        "Undefined variable 'missing'",
        "Undefined variable 'r' on some paths",
        "if condition must be a Bool-typed scalar, not a Scalar of type int32",
        "'+' requires same numeric dtype category, not int32 and fp32",
    ]
    assert "did you mean 'pl.load'" in caught.value.hint
    shown = str(caught.value)
    assert shown.index("pl.lod") < shown.index("missing") < shown.index("on some paths")


# ---- strict_ssa=True ----


def strict(body):
    return kernel(body).replace("@pl.program", "@pl.program(strict_ssa=True)")


@pytest.mark.parametrize(
    "body, error, words",
    [
        ("t = pl.mul(t, 2.0)", SSAViolationError, "'t' is already defined at line 12"),
        ("y = pl.store(t, [0, 0], y)", SSAViolationError, "'y' is already defined"),
        ("a, t = 1, 2", SSAViolationError, "'t' is already defined"),
        ("i = 0\nwhile i < 4:\n    i += 1", SSAViolationError, "'i' is already defined"),
        ("y[0:4, 0:8] = pl.load(x, [0, 0], [4, 8])", UnsupportedFeatureError, "before SSA conversion"),
    ],
)
def test_strict_ssa(body, error, words):
    from_text(kernel(body))
    with pytest.raises(error, match=words):
        from_text(strict(body))
    with pytest.raises(error, match=words):
        from_text(kernel(body).replace("pl.FunctionType.InCore", "pl.FunctionType.InCore, strict_ssa=True"))


def test_strict_ssa_allows_single_definitions():
    from_text(
        strict(
            "if n > 1:\n"
            "    u = pl.mul(t, 2.0)\n"
            "else:\n"
            "    u = t\n"
            "for i in pl.range(4):\n"
            "    v = pl.mul(u, 2.0)\n"
            "for j, (a,) in pl.range(4, init_values=(t,)):\n"
            "    b = pl.yield_(pl.mul(a, 2.0))\n"
            "pl.store(b, [0, 0], y)"
        )
    )


# ---- warnings ----

REBOUND = "y = pl.add(t, t)"


def test_an_output_that_is_only_rebound():
    with pytest.warns(UserWarning, match=r"OutParamWriteDropped: 'y' is only rebound in 'k'") as caught:
        from_text(kernel(REBOUND))
    (warning,) = caught
    assert warning.lineno == kernel(REBOUND).splitlines().index("        " + REBOUND) + 1
    assert warning.filename.startswith("<text")


@pytest.mark.parametrize(
    "body", [REBOUND + "\nreturn", "y[:] = pl.add(t, t)", "y = pl.store(t, [0, 0], y)", "z = t", "pl.store(t, [0, 0], y)\ny = t"]
)
def test_outputs_that_are_written_give_no_warning(body):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from_text(kernel(body))
    assert len(caught) == body.endswith("return")


def test_a_warning_may_be_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="OutParamWriteDropped"):
            from_text(kernel(REBOUND))


def test_functions_of_jit_warn_when_they_are_compiled():
    text = """
@pl.jit.incore
def k(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]):
    y = pl.add(pl.load(x, [0], [8]), 1.0)

@pl.jit
def w(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]):
    k(x, y)
"""
    wrapper = from_text(text)["w"]
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    with pytest.warns(UserWarning, match="OutParamWriteDropped"):
        wrapper(x, y)
    assert (y == 0).all()


@pytest.mark.parametrize(
    "body, name",
    [
        ("import math\nz = math.inf", "math"),
        ("import os.path\nz = os", "os"),
        ("from math import inf as big\nz = big", "big"),
        ("def g(a):\n    inner = a\nz = g(1)", "g"),
        ("a = b = 3\nz = a + b", "a"),
        ("try:\n    z = 1\nexcept E as e:\n    z = e\nw = z + 1", "z"),
        ("match n:\n    case [first, *rest]:\n        z = first\nw = rest", "rest"),
    ],
)
def test_what_a_refused_statement_binds_is_no_second_mistake(body, name):
    with pytest.raises(pypto.Error) as caught:
        pl.parse(kernel(body))
    assert len(caught.value.diagnostics) == 1
    with pytest.raises(UndefinedVariableError, match=f"Undefined variable '{name}'"):
        pl.parse(kernel(f"w = {name}"))


@pytest.mark.parametrize(
    "expression, hint",
    [
        ("t // 2.0", "pl.div"),
        ("t ** 2", "pl.mul"),
        ("t @ t", "pl.matmul"),
        ("t < 1.0", "pl.cmp"),
        ("pl.min(f, t)", "pl.minimum"),
        ("max(t, f)", "pl.maximum"),
    ],
)
def test_operators_that_tiles_do_not_have_name_the_operation(expression, hint):
    with pytest.raises(ParserSyntaxError, match="must be ScalarExpr") as caught:
        pl.parse(kernel(f"z = {expression}"))
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "body, words, hint",
    [
        ("z = pl.create_tile([], pl.FP32)", "at least one dimension", r"\[1, n\]"),
        ("z = pl.create_tile([1 << 40, 1 << 40], pl.FP32)", "the tile is too large", "a smaller tile, in a loop"),
        ("z = pl.tile.full([8, 8], dtype=pl.FP32, value=f)", "value must be a constant", r"pl\.expands\(tile, x\)"),
        ("z = pl.and_(t, t)", "needs integer elements, not fp32", r"reinterpret_view\(x, pl\.INT32\)$"),
        ("b = pl.cast(t, pl.BF16)\nz = pl.not_(b)", "not bfloat16", r"reinterpret_view\(x, pl\.INT16\)$"),
        ("b = pl.cast(t, pl.BOOL)\nz = pl.and_(b, b)", "not bool", r"^convert the tile: pl\.cast\(x, pl\.INT32\)$"),
        ("z = pl.transpose(t, n, 1)", "must be a constant", "numbers of the axes"),
        ("z = pl.reshape(t, [8, 9])", "the shape asks for 72", "whose product is the number of elements"),
        ("z = pl.reinterpret_view(t, pl.INT16, shape=[8, 8])", "do not fill", "as many bytes"),
        ("z = pl.row_expand_add(t, t)", "shape mismatch between", "reductions along that axis"),
        ("z = pl.set_validshape(t, 9, 8)", "from 0 to the tile's 8", "at most all of it"),
        ("z = pl.matmul_acc(pl.create_tile([4, 4], pl.FP32), t, t)", "the accumulator is", r"pl\.matmul of the two"),
        ("y[:] = pl.slice(x, [8, 8], [0, 0], drop_dims=[0])", "extent 1, which 0 is not", "out of drop_dims"),
        ("z = pl.min()", r"pl\.min takes two numbers", r"help\(pl\.min\)"),
        ("z = pl.tensor.dim(n, 0)", "takes a tensor, not", "pass a tensor"),
        ("z = pl.tensor.dim(x, 2)", "dimension 2 of a tensor with 2", "count from 0"),
        ("pl.static_assert(n > 0)", "must be compile-time evaluable", "constants and static extents"),
        ("pl.static_assert()", "takes 1 or 2 arguments", "condition, "),
        ("pl.cond(n > 0)", "first statement of a pl.while_", r"pl\.while_\(init_values"),
        ("w: pl.Tile[[LIST[2], 8], pl.FP32] = t", "'LIST' has 2 elements", "an index that it has"),
    ],
)
def test_hints_are_of_the_mistake_at_hand(body, words, hint):
    """Not of another one with the same code: what a hint names is what helps here."""
    with pytest.raises(ParserError, match=words) as caught:
        from_text(kernel(body))
    assert re.search(hint, caught.value.hint), caught.value.hint


@pytest.mark.parametrize(
    "body",
    [
        "z = pl.create_tile([1, 8], pl.FP32)",
        "z = pl.expands(t, f)",
        "z = pl.not_(pl.reinterpret_view(pl.cast(t, pl.BF16), pl.INT16))",
        "z = pl.and_(pl.cast(t, pl.INT32), pl.reinterpret_view(t, pl.INT32))",
        "z = pl.reinterpret_view(t, pl.INT16, shape=[8, 16])",
        "z = pl.row_expand_add(t, pl.row_sum(t))",
        "z = pl.matmul_acc(pl.matmul(t, t), t, t)",
    ],
)
def test_what_those_hints_name_is_accepted(body):
    pl.parse(kernel(body))
