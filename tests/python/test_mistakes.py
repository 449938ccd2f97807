"""What users get wrong in the host's part: decorators, configurations, arguments; and what only the run shows.
Each message names what was written and what to write."""

import numpy as np
import pytest

import pypto
import pypto.language as pl
from programs import config, from_text
from pypto.ir import DistributedConfig
from pypto.language.parser import ParserSyntaxError, ParserTypeError
from pypto.runtime import RunConfig

PROGRAM = """\
@pl.jit.incore
def kernel(x: pl.Tensor[[8, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]], n: pl.Scalar[pl.INT32]):
    {kernel}

@pl.jit
def wrapper(x: pl.Tensor[[8, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]], n: pl.Scalar[pl.INT32]):
    {wrapper}

@pl.jit.host
def host(x: pl.Tensor[[8, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]], n: pl.Scalar[pl.INT32]):
    {host}
"""
PARTS = {
    "kernel": "pl.store(pl.load(x, [0, 0], [8, 32]), [0, 0], y)",
    "wrapper": "kernel(x, y, n)",
    "host": "wrapper(x, y, n, device=0)",
}


def run(n=1, x=None, y=None, **parts):
    text = PROGRAM
    for name, code in {**PARTS, **parts}.items():
        text = text.replace("{" + name + "}", code.replace("\n", "\n    "))
    x = np.ones((8, 32), np.float32) if x is None else x
    y = np.zeros((8, 32), np.float32) if y is None else y
    from_text(text)["host"](x, y, n, config=config(1))
    return y


# ---- kernels ----


@pytest.mark.parametrize(
    "use",
    ["y[0:8, 0:32] = m", "pl.store(m, [0, 0], y)", "z = pl.cast(m, pl.FP32)", "z = m + t", "z = pl.exp(m)"],
)
def test_a_mask_is_no_tile_of_numbers(use):
    code = "t = pl.load(x, [0, 0], [8, 32])\nm = pl.cmps(t, 0.5, cmp_type='gt')\n" + use
    with pytest.raises(ParserTypeError) as caught:
        run(kernel=code)
    assert "one bit per element" in caught.value.hint and "pl.sels(mask, tile, scalar)" in caught.value.hint


@pytest.mark.parametrize(
    "code, hint, instead",
    [
        ("print(n)", "pl.printf", 'pl.printf("x is %d", n)'),
        ("i = range(3)", "pl.range(...)", "for i in pl.range(3):\n    y[i, 0] = 1.0"),
        ("y[0, 0] = float(n)", "pl.cast(x, pl.FP32)", "y[0, 0] = pl.cast(n, pl.FP32)"),
        ("y[int(x[0, 0]), 0] = 1.0", "pl.cast(x, pl.INT32)", "y[pl.cast(x[0, 0], pl.INT32), 0] = 1.0"),
        ("if bool(n):\n    y[0, 0] = 1.0", "x != 0", "if n != 0:\n    y[0, 0] = 1.0"),
        ("for i in pl.range(len(x)):\n    y[i, 0] = 1.0", "pl.tensor.dim(x, 0)", "for i in pl.range(pl.tensor.dim(x, 0)):\n    y[i, 0] = 1.0"),
        ("y[:, 0:1] = sum(pl.load(x, [0, 0], [8, 32]))", "pl.row_sum", "y[:, 0:1] = pl.row_sum(pl.load(x, [0, 0], [8, 32]), pl.create_tile([8, 32], pl.FP32))"),
    ],
)
def test_a_function_of_python_says_what_to_write(code, hint, instead):
    with pytest.raises(pypto.Error) as caught:
        run(kernel=code)
    assert "Unsupported function call" in str(caught.value) and hint in caught.value.hint
    run(kernel=instead)


def test_masks_go_where_bytes_go():
    code = "t = pl.load(x, [0, 0], [8, 32])\nm = pl.cmps(t, 0.5, cmp_type='gt')\n"
    code += "y[:] = pl.sel(pl.and_(m, m), t, t)"
    np.testing.assert_array_equal(run(kernel=code), np.ones((8, 32), np.float32))


@pytest.mark.parametrize(
    "place, code",
    [
        ("kernel", "y[n, 0] = 1.0"),
        ("kernel", "y[0, 0] = x[n, 0]"),
        ("kernel", "pl.store(pl.load(x, [n, 0], [8, 32]), [0, 0], y)"),
        ("kernel", "t = pl.load(x, [0, 0], [8, 32])\ny[0, 0] = t[n, 0]"),
        ("wrapper", "y[n, 0] = 1.0\nkernel(x, y, n)"),
    ],
)
def test_negative_indices_while_running(place, code):
    with pytest.raises(pypto.DeviceError, match="negative index -1 (in|of) dimension 0"):
        run(-1, **{place: code})


@pytest.mark.parametrize("code", ["y[0, 0] = 1.0", "y[0:4] = x[0:4]", "y[0, 0] += 1.0"])
def test_a_host_function_writes_no_elements(code):
    with pytest.raises(ParserSyntaxError, match="does not touch their elements") as caught:
        run(host=code + "\nwrapper(x, y, n, device=0)")
    assert "@pl.jit" in caught.value.hint


@pytest.mark.parametrize("place", ["kernel", "wrapper", "host"])
def test_foreign_context_managers(place):
    code = "with open('file') as file:\n    number = 3\n    text = file\nz = number + text\n" + PARTS[place]
    with pytest.raises(ParserSyntaxError, match="'open' is none") as caught:
        run(**{place: code})
    assert len(caught.value.diagnostics) == 1
    assert "pl.at(...)" in caught.value.hint and "pl.spmd(...)" in caught.value.hint
    with pytest.raises(ParserSyntaxError, match="pl.scop is none") as caught:
        run(**{place: "with pl.scop():\n    z = 3\n" + PARTS[place]})
    assert "did you mean pl.scope(...)?" in caught.value.hint


@pytest.mark.parametrize(
    "device, error, words",
    [
        ("True", ParserSyntaxError, "'device' must be an integer scalar, not a Scalar of type bool"),
        ("1.5", ParserSyntaxError, "'device' must be an integer scalar, not a Scalar of type fp32"),
        ("x", ParserSyntaxError, "'device' must be an integer scalar, not a Tensor"),
        ("-1", ParserTypeError, "'device' -1 does not exist"),
        ("1", ValueError, r"device 1 does not exist: the run has 1"),
        ("n", ValueError, r"device 1 does not exist: the run has 1"),
    ],
)
def test_devices_that_are_none(device, error, words):
    with pytest.raises(error, match=words):
        run(host=f"wrapper(x, y, n, device={device})")


# ---- decorators ----


def test_decorators_on_the_wrong_things():
    with pytest.raises(TypeError, match="@pl.jit.incore decorates a function, not the method 'f'") as caught:

        class Plain:
            @pl.jit.incore
            def f(self, x: pl.Tensor[[4], pl.FP32]):
                pass

    assert "@pl.program" in caught.value.hint and caught.value.span["file"] == __file__
    with pytest.raises(TypeError, match="@pl.jit decorates a function, not the class Plain") as caught:
        pl.jit(type("Plain", (), {}))
    assert "@pl.program" in caught.value.hint
    with pytest.raises(TypeError, match="@pl.jit decorates a function, not <@pl.jit function") as caught:
        pl.jit(pl.jit(lambda: None))
    assert "one decorator" in caught.value.hint
    with pytest.raises(ParserSyntaxError, match="@pl.program decorates a class, not the function f") as caught:

        @pl.program
        def f():
            pass

    assert "@pl.jit" in caught.value.hint
    with pytest.raises(ParserSyntaxError, match="@pl.function decorates a function, not the class") as caught:
        pl.function(type("Plain", (), {}))
    assert "@pl.program" in caught.value.hint
    with pytest.raises(ParserSyntaxError, match="@pl.function decorates a function, not 'InCore'") as caught:
        pl.function("InCore")
    assert "type=pl.FunctionType.InCore" in caught.value.hint


def test_functions_in_a_class_that_are_no_methods():
    class Kernels:
        @pl.jit
        def f(x: pl.Tensor[[4], pl.FP32]):
            pass

    Kernels.f(np.zeros(4, np.float32), config=config(1))


@pytest.mark.parametrize("decorator", ["@pl.function(type=pl.FunctionType.InCore)", "@pl.inline"])
def test_two_methods_of_one_name(decorator):
    text = f"""\
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[4], pl.FP32]):
        pass

    {decorator}
    def f(self, y: pl.Tensor[[4], pl.FP32]):
        pass
"""
    with pytest.raises(ParserSyntaxError, match="'f' is defined twice in one class: in line 3, and here") as caught:
        from_text(text)
    assert caught.value.span["line"] == 8


def test_a_function_may_be_defined_again():
    """Notebooks run their cells again."""
    text = "@pl.jit\ndef f(x: pl.Out[pl.Tensor[[1], pl.FP32]]):\n    x[0] = {}\n"
    x = np.zeros(1, np.float32)
    from_text(text.format(1.0) + text.format(2.0))["f"](x, config=config(1))
    assert x[0] == 2


# ---- configurations ----


@pytest.mark.parametrize(
    "make, wrong, right",
    [
        (RunConfig, "platfrom", "did you mean 'platform'?"),
        (RunConfig, "distributed", "did you mean 'distributed_config'?"),
        (DistributedConfig, "devices_ids", "did you mean 'device_ids'?"),
        (DistributedConfig, "xyz", r"help\(DistributedConfig\) lists them"),
    ],
)
def test_misspelt_keywords(make, wrong, right):
    with pytest.raises(TypeError, match=f"{make.__name__}.*unexpected keyword argument '{wrong}'; {right}"):
        make(**{wrong: 1})


# ---- arguments ----


def test_torch_tensors_with_gradients():
    torch = pytest.importorskip("torch")
    x = torch.ones(8, 32, requires_grad=True)
    y = torch.zeros(8, 32)
    run(x=x, y=y)
    assert (y == 1).all() and not y.requires_grad
    y = torch.zeros(8, 32, requires_grad=True)
    with pytest.raises(TypeError, match="'y' of 'host' is written, but requires a gradient") as caught:
        run(x=x, y=y)
    assert "detach()" in caught.value.hint and (y == 0).all()
    with torch.no_grad():
        run(x=x, y=y)
    run(x=2 * x.detach(), y=y.detach())
    assert (y == 2).all()


def test_functions_without_parameters():
    names = from_text("@pl.jit\ndef f():\n    pass\n\n@pl.jit.host\ndef h():\n    f(device=0)\n")
    names["f"](config=config(1))
    names["h"](config=config(1))
    names["f"].compile()
    with pytest.raises(TypeError, match=r"f\(\) takes 0 positional arguments but 1 was given"):
        names["f"](1)


# ---- extents that only the run knows ----

DYNAMIC = """\
M = pl.dynamic("M")
K = pl.dynamic("K")

@pl.jit.incore
def kernel(x: pl.Tensor[[K, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    {code}

@pl.jit
def wrapper(x: pl.Tensor[[K, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    kernel(x, y)
"""


@pytest.mark.parametrize(
    "code, rows, have, wanted",
    [
        ("y[:] = x", (4, 6), 4, 6),
        ("y[0:M] = x", (6, 4), 6, 4),
        ("y[0:M, :] = x[0:K, :]", (4, 6), 4, 6),
        ("y[0:4, :] = x", (6, 8), 6, 4),
        ("y[:] = x[0:2, :]", (4, 6), 2, 6),
        ("y[:] = pl.load(x, [0, 0], [4, 32])", (4, 6), 4, 6),
    ],
)
def test_parts_take_sources_of_their_extent(code, rows, have, wanted):
    """check.misfit compares them when the program runs."""
    wrapper = from_text(DYNAMIC.replace("{code}", code))["wrapper"]
    x = np.ones((rows[0], 32), np.float32)
    y = np.zeros((rows[1], 32), np.float32)
    with pytest.raises(pypto.DeviceError, match=f"source has {have} .*dimension 0, .* target has {wanted}") as caught:
        wrapper(x, y, config=config(1))
    assert caught.value.span["line"] == 6 and (y == 0).all()
    same = np.ones((wanted, 32), np.float32), np.zeros((rows[1] if ":4" in code else wanted, 32), np.float32)
    if "0:2" not in code and "load" not in code:
        wrapper(*same, config=config(1))
        assert (same[1][:wanted] == 1).all()


def test_a_tile_that_is_valid_in_part_writes_that_part():
    code = "y[:] = pl.load(x, [0, 0], [8, 32], valid_shape=[K, 32])"
    y = np.zeros((6, 32), np.float32)
    from_text(DYNAMIC.replace("{code}", code))["wrapper"](np.ones((4, 32), np.float32), y, config=config(1))
    assert (y[:4] == 1).all() and (y[4:] == 0).all()
