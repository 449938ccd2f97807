"""Python's syntax tree as the front end gets it. One function per construct; `dump` is the text of
python/module/syntax_dump.c without places, unless a test is about places."""

import ast
import re
import textwrap

import pytest

from pypto import _core


def dump(source, places=False):
    definition = ast.parse(textwrap.dedent(source)).body[0]
    text = _core.dump_syntax(definition, "file.py")
    return text if places else re.sub(r" \d+:\d+-(\d+:)?\d+", "", text)


def expression(source):
    """The dump of one expression."""
    lines = dump(f"def f():\n    return {source}\n").splitlines()
    assert lines[0] == "def f"
    return lines[1].removeprefix("  return = ")


def statement(source):
    text = dump("def f():\n" + textwrap.indent(textwrap.dedent(source), "    "))
    return textwrap.dedent(text.removeprefix("def f\n")).rstrip("\n")


@pytest.mark.parametrize(
    "source, expected",
    [
        ("x", "name(x)"),
        ("1", "int(1)"),
        ("-1", "unary(-, int(1))"),
        ("9223372036854775807", "int(9223372036854775807)"),
        ("9223372036854775808", "int(9223372036854775808)"),
        ("18446744073709551615", "int(18446744073709551615)"),
        ("18446744073709551616", "int(too large)"),
        ("0.1", "float(0.10000000000000001)"),
        ("True", "bool(true)"),
        ("None", "none"),
        ("'ring'", 'string("ring")'),
        ("pl.FP32.get_byte()", "name(pl).FP32.get_byte()"),
        ("f(1, *a, k=2, **kw)", "name(f)(int(1), starred(name(a)), k=int(2), **=name(kw))"),
        ("f(k=1)", "name(f)(k=int(1))"),
        ("x[r]", "name(x)[name(r)]"),
        ("x[q, r]", "name(x)[name(q), name(r)]"),
        ("x[()]", "name(x)[]"),
        ("x[1:, ::2]", "name(x)[slice(int(1), -, -), slice(-, -, int(2))]"),
        ("x[...]", "name(x)[other(ellipsis)]"),
        ("[1, 2]", "list(int(1), int(2))"),
        ("(1, 2)", "tuple(int(1), int(2))"),
        ("not x", "unary(not, name(x))"),
        ("~x", "unary(~, name(x))"),
        ("+x", "unary(+, name(x))"),
        ("a and b and c", "and(name(a), name(b), name(c))"),
        ("a or b", "or(name(a), name(b))"),
        ("a < b <= c", "compare(name(a) < name(b) <= name(c))"),
        ("a not in b", "compare(name(a) not in name(b))"),
        ("a is not b", "compare(name(a) is not name(b))"),
        ("a if c else b", "ifexp(name(a), name(c), name(b))"),
        ("lambda: 1", "other(Lambda)"),
        ("[i for i in x]", "comprehension(name(i), name(i), name(x))"),
        ("[i for i in x if i]", "other(ListComp)"),
        ("[i for i in x for j in y]", "other(ListComp)"),
        ("{1: 2}", "other(Dict)"),
        ("f'{x}'", "other(JoinedStr)"),
        ("(y := 1)", "other(NamedExpr)"),
        ("1j", "other(complex)"),
        ("b'x'", "other(bytes)"),
        ("'\\ud800'", "other(str)"),
    ],
)
def test_expressions(source, expected):
    assert expression(source) == expected


@pytest.mark.parametrize(
    "operator", ["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "|", "^", "&", "@"]
)
def test_binary_operators(operator):
    assert expression(f"a {operator} b") == f"binary({operator}, name(a), name(b))"
    assert statement(f"a {operator}= b") == f"augmented name(a) {operator} = name(b)"


@pytest.mark.parametrize(
    "operator", ["==", "!=", "<", "<=", ">", ">=", "is", "is not", "in", "not in"]
)
def test_comparison_operators(operator):
    assert expression(f"a {operator} b") == f"compare(name(a) {operator} name(b))"


@pytest.mark.parametrize(
    "source, expected",
    [
        ("x = 1", "assign name(x) = int(1)"),
        ("a, b = x", "assign tuple(name(a), name(b)) = name(x)"),
        ("x[0] = 1", "assign name(x)[int(0)] = int(1)"),
        ("a = b = 1", "other Assign"),
        ("x: T = 1", "annotated name(x) : name(T) = int(1)"),
        ("x: T", "annotated name(x) : name(T)"),
        ("x: 'pl.Scalar[T]' = 1", "annotated name(x) : name(pl).Scalar[name(T)] = int(1)"),
        ("f(x)", "expr = name(f)(name(x))"),
        ("return", "return"),
        ("pass", "pass"),
        ("while x: break", "while = name(x)\n  break"),
        ("for i in f(): continue\nelse: pass", "for name(i) = name(f)()\n  continue\nelse\n  pass"),
        (
            "if a: pass\nelif b: x = 1",
            "if = name(a)\n  pass\nelse\n  if = name(b)\n    assign name(x) = int(1)",
        ),
        ("with a as b, c: pass", "with (name(a), name(b), name(c), -)\n  pass"),
        ("assert x", "other Assert"),
        ("raise x", "other Raise"),
        ("import os", "other Import"),
        ("def g(): pass", "other FunctionDef"),
        ("global x", "other Global"),
        ("try: pass\nfinally: pass", "other Try"),
        ("del x", "other Delete"),
        ("match x:\n  case 1: pass", "other Match"),
    ],
)
def test_statements(source, expected):
    assert statement(source) == expected


def test_strings_as_statements_are_comments():
    text = dump('''
        def f():
            """doc"""
            "comment"
            if x:
                "only a comment"
            return 1
        ''')
    assert text == "def f\n  if = name(x)\n  return = int(1)\n"


def test_signature():
    text = dump("def f(a, b: T, c: 'pl.Out[T]' = 1, d=N) -> pl.Tensor: pass")
    assert text == (
        "def f\n"
        "  param a\n"
        "  param b : name(T)\n"
        "  param c : name(pl).Out[name(T)] = int(1)\n"
        "  param d = name(N)\n"
        "  returns name(pl).Tensor\n"
        "  pass\n"
    )


@pytest.mark.parametrize(
    "parameters, expected",
    [
        ("*args", ["*args 1:7-11"]),
        ("*, k", ["the keyword-only parameter 'k' 1:9-10"]),
        ("**kw", ["**kw 1:8-10"]),
        ("a, *r, k", ["*r 1:10-11", "the keyword-only parameter 'k' 1:13-14"]),
        ("a, b, /, c", ["the positional-only marker '/' after 'b' 1:9-10"]),
    ],
)
def test_refused_parameters(parameters, expected):
    lines = dump(f"def f({parameters}): pass", places=True).splitlines()
    assert [line[10:] for line in lines if line.startswith("  refused ")] == expected


def test_async_functions():
    text = dump("async def f(a): pass", places=True)
    assert text.startswith("def f 1:0-11\n") and "  refused 'async' 1:0-11\n" in text


def test_places_are_those_of_ast():
    text = dump("def f(é, b):\n    ü = g(b,\n        k=é)\n", places=True)
    assert text.splitlines() == [
        "def f 1:0-5",
        "  param é 1:6-8",
        "  param b 1:10-11",
        "  assign 2:4-3:13 name(ü 2:4-6) = name(g 2:9-10)(name(b 2:11-12), k 3:8-12=name(é 3:10-12))",
    ]


def test_a_string_annotation_has_the_place_of_the_string():
    text = dump("def f(x:  'pl.Tensor[N]'): pass", places=True)
    assert "param x 1:6-24 : name(pl 1:10-24).Tensor[name(N 1:10-24)]" in text


def test_a_string_annotation_may_have_several_lines():
    assert "param x : name(pl).Tensor[name(N)]" in dump("def f(x: '''\n  pl.Tensor[\n N]'''): pass")


def test_a_string_annotation_that_is_no_expression():
    import pypto.language.parser as parser

    with pytest.raises(parser.ParserTypeError, match="not a Python expression") as caught:
        dump("def f(x: 'pl.Tensor['): pass")
    assert caught.value.span["line"] == 1
    assert caught.value.span["column"] == 9


def test_deep_nesting():
    assert expression("+".join(["x"] * 900)).count("name(x)") == 900
