"""Numbers among the arguments of calls: what fits its parameter is converted, what does not is refused."""

import ctypes
import math

import numpy as np
import pytest

import pypto
import pypto.language as pl
from programs import NR, from_text
from pypto.ir import CompiledProgram, DistributedCompiledProgram, DistributedConfig
from pypto.runtime import RunConfig

_TEXT = """\
@pl.jit.incore
def kernel(y: pl.Out[pl.Tensor[[2], pl.{stored}]], s: pl.Scalar[pl.{dtype}]):
    pl.write(y, [0], {value})

@pl.jit
def chip(y: pl.Out[pl.Tensor[[2], pl.{stored}]], s: pl.Scalar[pl.{dtype}]):
    kernel(y, s)

@pl.jit.host
def host(y: pl.Out[pl.Tensor[[NR, 2], pl.{stored}]], s: pl.Scalar[pl.{dtype}]):
    for r in pl.range(pld.world_size()):
        chip(y[r], s, device=r)
"""
_STORED = {"INDEX": "INT64", "BOOL": "INT32"}
_NUMPY = {"FP16": np.float16, "FP32": np.float32, "BF16": np.float32}
_kept = {}


def echo_of(dtype, function):
    """A function that writes the number that it is given, and a tensor for it."""
    if dtype not in _kept:
        stored = "FP32" if dtype == "BF16" else _STORED.get(dtype, dtype)
        word = {"BOOL": "pl.cast(s, pl.INT32)", "BF16": "pl.cast(s, pl.FP32)"}.get(dtype, "s")
        _kept[dtype] = from_text(_TEXT.format(dtype=dtype, stored=stored, value=word))
    names = _kept[dtype]
    stored = _NUMPY.get(dtype) or np.dtype(_STORED.get(dtype, dtype).lower())
    y = np.zeros(2, stored)
    if function == "host":
        y = y.reshape(1, 2)
    return names[function], y


def echo(dtype, value, function="chip"):
    """What a program writes that was given the number at run time."""
    made, y = echo_of(dtype, function)
    made.compile(config=RunConfig(platform="cpu"), s=pl.RUNTIME)(y, value)
    return y.reshape(2)[0]


INTEGERS = {
    f"{sign}INT{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "U")
    for bits in (8, 16, 32, 64)
}
INTEGERS["INDEX"] = INTEGERS["INT64"]


@pytest.mark.parametrize("function", ["chip", "host"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype, function):
    least, most = INTEGERS[dtype]
    for value in (least, most, 0, 1, np.int8(3), True):
        assert echo(dtype, value, function) == int(value)
    for value in (least - 1, most + 1, 2**64, -(2**64)):
        with pytest.raises(TypeError, match="'s' of .*(does not fit|fit in 64 bits)") as caught:
            echo(dtype, value, function)
        assert isinstance(caught.value, pypto.Error)
    with pytest.raises(TypeError, match=rf"'s' of {function} is the float 1.5, but .* {dtype.lower()} scalar"):
        echo(dtype, 1.5, function)


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16"])
def test_floats(dtype):
    for value in (0.5, -3, 2**40 if dtype != "FP16" else 8, np.float32(0.25), np.float64(-1), math.inf, 2**63):
        if dtype == "FP16" and value == 2**63:
            value = 1
        assert echo(dtype, value) == value
    assert math.isnan(echo(dtype, math.nan))


def test_bools():
    assert (echo("BOOL", True), echo("BOOL", False), echo("BOOL", np.bool_(True)), echo("BOOL", 1)) == (1, 0, 1, 1)
    for value in (2, -1, 2**63, 1.0):
        with pytest.raises(TypeError, match="'s' of 'chip': the number does not fit bool"):
            echo("BOOL", value)


def test_a_tensor_is_no_number():
    with pytest.raises(TypeError, match="'s' of chip must be a number: its parameter is a scalar, int32"):
        echo("INT32", np.zeros(2, np.int32))
    for value in ("3", None, [3]):
        with pytest.raises(TypeError, match="'s' of 'chip' must be a host torch.Tensor, a NumPy array, a DeviceTensor or a number"):
            echo("INT32", value)


CTYPES = {
    "INT8": ctypes.c_int8, "INT16": ctypes.c_int16, "INT32": ctypes.c_int32, "INT64": ctypes.c_int64,
    "UINT8": ctypes.c_uint8, "UINT16": ctypes.c_uint16, "UINT32": ctypes.c_uint32, "UINT64": ctypes.c_uint64,
    "INDEX": ctypes.c_int64, "BOOL": ctypes.c_bool, "FP32": ctypes.c_float, "FP16": ctypes.c_float,
    "BF16": ctypes.c_float,
}  # fmt: skip


@pytest.mark.parametrize("dtype", CTYPES)
def test_numbers_of_ctypes(dtype):
    """One of the parameter's class is taken, one of any other class is not, whatever its value."""
    assert echo(dtype, CTYPES[dtype](1)) == 1
    for other in {*CTYPES.values(), ctypes.c_double} - {CTYPES[dtype]}:
        name = str(getattr(pl, dtype))
        with pytest.raises(TypeError, match=f"another class of ctypes than its parameter, which is {name}"):
            echo(dtype, other(1))


# ---- numbers that a program was compiled for ----


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("function", ["chip", "host"])
def test_integers_of_functions(dtype, function):
    """What a call of a function bakes in, is cut to no fewer bits either."""
    least, most = INTEGERS[dtype]
    made, y = echo_of(dtype, function)
    for value in (least, most):
        made(y, value, config=RunConfig(platform="cpu"))
        assert y.reshape(2)[0] == value
    for value in (least - 1, most + 1, 2**64 - 1 if most < 2**63 else -1):
        for start in (made, made.compile, made.lower):
            with pytest.raises(TypeError, match=f"'s'.*({value} does not fit {dtype.lower()}|does not fit in 64 bits)"):
                start(y, value, config=RunConfig(platform="cpu"))
        with pytest.raises(TypeError, match="'s'.* does not fit"):
            made.compile(s=value)


def test_large_integers_for_floats():
    made, y = echo_of("FP32", "chip")
    made(y, 2**63, config=RunConfig(platform="cpu"))
    assert y[0] == 2.0**63


def test_a_call_must_agree_with_the_compile():
    names = from_text(_TEXT.format(dtype="INT32", stored="INT32", value="s"))
    y = np.zeros(2, np.int32)
    compiled = names["chip"].compile(y, 3, config=RunConfig(platform="cpu"))
    for args in ((y, 3), (y,), (y, np.int64(3))):
        y[:] = 0
        compiled(*args)
        assert y[0] == 3
    with pytest.raises(ValueError, match=r"compiled for s=3, and is called with 4;.*s=pl\.RUNTIME"):
        compiled(y, 4)
    with pytest.raises(TypeError, match="must be a number"):
        compiled(y, y)
    settings = RunConfig(platform="cpu", distributed_config=DistributedConfig())
    distributed = names["host"].compile(y.reshape(1, 2), 3, config=settings)
    with distributed.prepare() as worker:
        worker(y.reshape(1, 2), 3)
        with pytest.raises(ValueError, match="compiled for s=3"):
            worker(y.reshape(1, 2), 5)


@pytest.mark.parametrize("value", [np.int32(3), ctypes.c_int32(3)], ids=str)
def test_numbers_of_other_libraries_that_a_program_was_compiled_for(value):
    names = from_text(_TEXT.format(dtype="INT32", stored="INT32", value="s"))
    y = np.zeros(2, np.int32)
    settings = RunConfig(platform="cpu")
    for compiled in (names["chip"].compile(y, value, config=settings), names["chip"].compile(s=value, config=settings)):
        for args in ((y, 3), (y,), (y, np.int64(3)), (y, ctypes.c_int32(3))):
            y[:] = 0
            compiled(*args)
            assert y[0] == 3
        for other in (4, np.int32(4), ctypes.c_int32(4)):
            with pytest.raises(ValueError, match="compiled for s=3, and is called with 4"):
                compiled(y, other)


@pytest.mark.parametrize("dtype, value, other", [
    ("INT32", -3, 4), ("UINT64", 2**64 - 1, 0), ("BOOL", True, False), ("FP32", 0.5, 1), ("FP32", math.inf, -math.inf),
    ("FP32", math.nan, 0.0), ("FP32", 2, 3),
])  # fmt: skip
def test_a_program_of_a_directory_must_agree_with_its_compile(dtype, value, other):
    made, y = echo_of(dtype, "chip")
    written = made.compile(y, value, config=RunConfig(platform="cpu"))
    again = CompiledProgram.from_dir(written.output_dir)
    again(y)
    assert y[0] == value or math.isnan(value) and math.isnan(y[0])
    again(y, value)
    with pytest.raises(ValueError, match=f"compiled for s={value!r}, and is called with {other!r}"):
        again(y, other)
    host, y = echo_of(dtype, "host")
    settings = RunConfig(platform="cpu", distributed_config=DistributedConfig())
    again = DistributedCompiledProgram.from_dir(host.compile(y, value, config=settings).output_dir)
    again(y)
    with pytest.raises(ValueError, match=f"compiled for s={value!r}"):
        again(y, other)


def test_a_number_that_is_none():
    names = from_text(_TEXT.format(dtype="FP32", stored="FP32", value="s"))
    y = np.zeros(2, np.float32)
    compiled = names["chip"].compile(y, math.nan, config=RunConfig(platform="cpu"))
    compiled(y, math.nan)
    with pytest.raises(ValueError, match="compiled for s=nan"):
        compiled(y, 1.0)


def test_runtime_is_for_compiling_only():
    names = from_text(_TEXT.format(dtype="INT32", stored="INT32", value="s"))
    y = np.zeros(2, np.int32)
    for start in (names["chip"], names["chip"].compile):
        with pytest.raises(TypeError, match=r"'s'.* received pl\.RUNTIME"):
            start(y, pl.RUNTIME)
    for value in ("three", None, [3], {}):
        with pytest.raises(TypeError, match=r"chip\(\): 's' must be a tensor, a number or pl\.RUNTIME"):
            names["chip"].compile(s=value)
    with pytest.raises(TypeError, match="scalar parameter 's'"):
        names["chip"].compile()


# ---- more devices than the program uses ----


def test_devices_with_nothing_to_do_are_told():
    names = from_text(
        _TEXT.format(dtype="INT32", stored="INT32", value="s").replace("pld.world_size()", "s")
    )
    host = names["host"].compile(
        config=RunConfig(platform="cpu", distributed_config=DistributedConfig([0, 1, 2, 3])), s=pl.RUNTIME
    )
    y = np.zeros((4, 2), np.int32)
    with pytest.warns(pypto.LintWarning, match=r"W607.*host dispatches nothing on ranks 2, 3 of the run's 4 devices"):
        host(y, 2)
    assert (y[:, 0] == [2, 2, 0, 0]).all()
    strict = RunConfig(platform="cpu", lint="error")
    with pytest.raises(pypto.LintError, match="on rank 3 of the run's 4"):
        host(y, 3, config=strict)
    host(y, 4, config=strict)
    host(y, 0, config=strict)  # nothing to do at all
    with pytest.raises(ValueError, match="device 4 does not exist: the run has 4") as caught:
        host(np.zeros((5, 2), np.int32), 5)
    assert "device= is a rank" in caught.value.hint
