"""The objects of pl and pld while Python runs: element types, enumerations, dimensions,
annotations, operations, decorators."""

import copy
import inspect
import pickle
import pydoc
import subprocess
import sys

import pytest

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.language.parser import UnsupportedFeatureError

# ---- the package ----


def test_import_is_cheap():
    code = (
        "import sys, pypto\n"
        "heavy = {'torch', 'numpy', 'ast', 'inspect', 'typing', 'dataclasses', 'linecache'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
        "import pypto.language, pypto.language.distributed\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import sys; sys.path[:0] = " + repr(sys.path) + "\n" + code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["[]", "[]"]


def test_packages_load_when_they_are_used():
    assert pypto.language is pl
    assert pypto.runtime.RunConfig is not None
    assert "language" in dir(pypto)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        pypto.nonsense
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        pypto.ir.nonsense


def test_version():
    assert pypto.__version__.count(".") == 2


def test_from_import_everything():
    namespace = {}
    exec("from pypto.language import *\nfrom pypto.language.distributed import *", namespace)
    assert namespace["FP32"] is pl.FP32
    assert namespace["range"] is pl.range
    assert namespace["NotifyOp"] is pld.NotifyOp


# ---- element types ----


@pytest.mark.parametrize(
    "dtype, size, bits, text",
    [
        (pl.BOOL, 1, 1, "bool"),
        (pl.INT8, 1, 8, "int8"),
        (pl.UINT16, 2, 16, "uint16"),
        (pl.INT32, 4, 32, "int32"),
        (pl.INT64, 8, 64, "int64"),
        (pl.FP16, 2, 16, "fp16"),
        (pl.BF16, 2, 16, "bfloat16"),
        (pl.FP32, 4, 32, "fp32"),
        (pl.INDEX, 8, 64, "index"),
    ],
)
def test_element_types(dtype, size, bits, text):
    assert (dtype.get_byte(), dtype.get_bit(), str(dtype)) == (size, bits, text)
    assert repr(dtype) == "pl." + dtype.name
    assert isinstance(dtype, pypto.DataType)
    assert getattr(pypto, "DT_" + dtype.name) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype
    assert {dtype: 1}[dtype] == 1


# ---- enumerations ----


def test_enumerations():
    assert [(m.name, m.value) for m in pld.NotifyOp] == [("AtomicAdd", 0), ("Set", 1)]
    assert [(m.name, m.value) for m in pld.WaitCmp] == [("Eq", 0), ("Ge", 1)]
    assert repr(pld.NotifyOp.Set) == "<NotifyOp.Set: 1>" and str(pld.NotifyOp.Set) == "NotifyOp.Set"
    assert pld.NotifyOp.Set != pld.NotifyOp.AtomicAdd
    assert len({pld.NotifyOp.Set, pld.NotifyOp.AtomicAdd, pld.NotifyOp.Set}) == 2
    assert pickle.loads(pickle.dumps(pld.WaitCmp.Ge)) is pld.WaitCmp.Ge


# ---- dimensions ----


def test_dimension_arithmetic():
    n = pl.dynamic("N")
    assert repr(n) == "pl.dynamic('N')"
    for operator in ["+", "-", "*", "//", "%", "<", "<=", ">", ">=", "==", "!="]:
        made = eval(f"n {operator} 2")
        assert (made.left, made.operator, made.right) == (n, operator, 2)
    for operator in ["+", "-", "*", "//", "%"]:
        made = eval(f"2 {operator} n")
        assert (made.left, made.operator, made.right) == (2, operator, n)
    assert repr((n * 2 + 1) % pl.dynamic("M")) == "(((pl.dynamic('N') * 2) + 1) % pl.dynamic('M'))"


def test_dimensions_have_no_truth():
    n = pl.dynamic("N")
    for value in [n, n + 1, n < 3]:
        with pytest.raises(TypeError, match="has no value while Python runs"):
            bool(value)


@pytest.mark.parametrize("name", ["", "1x", "a b", "a.b", 3, None])
def test_dimension_names(name):
    with pytest.raises(ValueError, match="must be a valid identifier"):
        pl.dynamic(name)


# ---- annotations ----


def test_annotations_accept_anything():
    n = pl.dynamic("N")
    for form in [pl.Tensor, pl.Tile, pl.Scalar, pl.Out, pl.InOut, pl.Tuple, pld.DistributedTensor]:
        made = form[[n, 1, n * 2], pl.FP32]
        assert made.form is form and made.args == ([n, 1, made.args[0][2]], pl.FP32)
        assert form["whatever"].args == ("whatever",)
    assert (
        repr(pl.Out[pl.Tensor[[n, 1], pl.FP32]])
        == "pl.Out[pl.Tensor[[pl.dynamic('N'), 1], pl.FP32]]"
    )
    assert pl.Tensor((64, 64), pl.FP16).args == ((64, 64), pl.FP16)  # the older spelling


def test_annotations_survive_inspection():
    def f(x: pl.Tensor[[1], pl.FP32], y: "pl.Tensor[[N], pl.FP32]") -> pl.Tensor:
        pass

    assert "x: pl.Tensor[[1], pl.FP32]" in str(inspect.signature(f))


# ---- operations ----


def test_signatures_come_from_the_table():
    assert str(inspect.signature(pl.load)).startswith("(tensor, offsets, shapes")
    assert str(inspect.signature(pl.range)) == "(start, stop=None, step=None, *, init_values=None)"
    notify = inspect.signature(pld.system.notify)
    assert list(notify.parameters) == ["target", "peer", "offsets", "value", "op"]
    assert notify.parameters["op"].kind is inspect.Parameter.KEYWORD_ONLY


def test_every_operation_has_help():
    for path, operation in pl._operations._operations.items():
        text = pydoc.plain(pydoc.render_doc(operation))
        assert f"{operation.__name__}{inspect.signature(operation)}" in text
        assert operation.__doc__.partition("\n")[0] in text
        assert repr(operation).startswith(f"<operation {operation.__pypto_path__}(")


def test_help_shows_what_an_operation_does():
    text = pydoc.plain(pydoc.render_doc(pl.load))
    assert "load(tensor, offsets, shapes" in text
    assert "new tile" in text


def test_short_and_long_names_are_the_same_object():
    assert pl.load is pl.tile.load
    assert pld.window is pld.tensor.window
    assert pld.remote_load is pld.tile.remote_load
    assert pld.rank is pld.system.rank and pld.world_size is pld.system.world_size


def test_operations_cannot_be_called():
    for operation, path in [(pl.load, "pl.load"), (pld.system.notify, "pld.system.notify")]:
        with pytest.raises(
            TypeError, match=rf"{path} is part of the DSL: it is compiled, not called"
        ):
            operation(1, x=2)


def test_operations_can_be_pickled_and_copied():
    assert pickle.loads(pickle.dumps(pl.load)) is pl.load
    assert copy.copy(pl.load) is pl.load


# ---- decorators ----


@pl.jit.incore
def at_module_level(a: pl.Tensor[[8], pl.FP32]):
    pass


def test_decorated_functions_can_be_pickled_and_copied():
    assert pickle.loads(pickle.dumps(at_module_level)) is at_module_level
    assert copy.copy(at_module_level) is at_module_level
    assert copy.deepcopy({"f": at_module_level})["f"] is at_module_level


def plain(a, b=2):
    """What it does."""


@pytest.mark.parametrize("decorator", [pl.jit, pl.jit.host, pl.jit.incore])
def test_decorated_functions(decorator):
    for made in [decorator(plain), decorator()(plain)]:
        assert isinstance(made, pl.JITFunction)
        assert made.__name__ == "plain" and made.__doc__ == "What it does."
        assert made.__module__ == __name__ and made.__wrapped__ is plain
        assert str(inspect.signature(made)) == "(a, b=2)"
        assert repr(made) == f"<{decorator!r} function plain>"
        with pytest.raises(AttributeError):
            made.as_python


@pytest.mark.parametrize(
    "decorator, option, words",
    [
        (pl.jit, "level", "@pl.jit does not accept a level= argument"),
        (pl.jit.host, "level", "@pl.jit.host does not accept a level= argument"),
        (pl.jit.incore, "auto_scope", "@pl.jit.incore does not accept an auto_scope= argument"),
        (pl.jit, "nonsense", "@pl.jit does not accept a nonsense= argument"),
        (pl.jit.inline, "level", "@pl.jit.inline does not accept a level= argument"),
        (pl.jit.opaque, "level", "@pl.jit.opaque does not accept a level= argument"),
        (pl.jit.opaque, "auto_scope", "@pl.jit.opaque does not accept an auto_scope= argument"),
    ],
)
def test_decorator_options_that_are_refused(decorator, option, words):
    with pytest.raises(TypeError, match=words):
        decorator(**{option: None})
    with pytest.raises(TypeError, match=words):
        decorator(plain, **{option: None})


@pytest.mark.parametrize("option", ["a level", "an auto_scope"])
def test_options_that_extern_does_not_have(option):
    with pytest.raises(TypeError, match=f"does not accept {option}= argument"):
        pl.jit.extern(core_type="aiv", source=__file__, **{option.split()[1]: None})


def test_decorator_options_that_are_accepted():
    assert all(kind(auto_scope=False)(plain).__name__ == "plain" for kind in (pl.jit.host, pl.jit.inline))
    assert pl.jit(auto_scope=True)(plain).__name__ == "plain"
    assert pl.jit.host(auto_scope=True)(plain).__name__ == "plain"
    assert pl.jit.incore(level=None)(plain).__name__ == "plain"


def test_decorators_want_functions():
    for value in [3, "x", int, len]:
        with pytest.raises(TypeError, match="@pl.jit decorates a function"):
            pl.jit(value)


def test_jit_has_no_other_members():
    with pytest.raises(AttributeError, match="pl.jit has no attribute 'nonsense'"):
        pl.jit.nonsense
