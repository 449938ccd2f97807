"""DeviceTensor and StackedDeviceTensor by themselves: what they describe, what they refuse, what indexing gives."""

import dataclasses
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pypto.language as pl
from pypto.runtime import DeviceTensor, ScalarSpec, StackedDeviceTensor, TensorSpec

PTR = 0x1000


def buffer(base=PTR):
    return SimpleNamespace(base=base, tensor=lambda shape, dtype: None)


# ---- DeviceTensor ----


@pytest.mark.parametrize(
    "dtype, nbytes",
    [
        (torch.float32, 4), (torch.bfloat16, 2), (torch.float64, 8), (torch.bool, 1),
        (np.float32, 4), (np.dtype("int64"), 8), (np.uint16, 2),
        (pl.FP32, 4), (pl.BF16, 2), (pl.BOOL, 1), (pl.FP8E4M3FN, 1), (pl.INDEX, 8),
    ],
)
def test_what_it_describes(dtype, nbytes):
    tensor = DeviceTensor(PTR, [3, 5], dtype)
    assert (tensor.data_ptr, tensor.shape, tensor.dtype) == (PTR, (3, 5), dtype)
    assert tensor.nbytes == 15 * nbytes and tensor.buffer is None


NAMED = {
    pl.FP32: ["float32", "fp32", "FP32", "torch.float32", "np.float32", "numpy.float32", "pl.FP32"],
    pl.BF16: ["bfloat16", "bf16", "torch.bfloat16"],
    pl.FP8E4M3FN: ["float8_e4m3fn", "FP8E4M3FN"],
    pl.BOOL: ["bool", "BOOL"],
    pl.INT64: ["int64"],
    np.dtype("int64"): ["i8", "long", int],
    np.dtype("float64"): ["float64", "torch.float64", "double", float],
}


@pytest.mark.parametrize("meant, given", [(meant, given) for meant, names in NAMED.items() for given in names])
def test_names_of_element_types(meant, given):
    tensor = DeviceTensor(PTR, (4,), given)
    assert tensor.dtype == meant and tensor == DeviceTensor(PTR, (4,), meant)
    assert tensor._element == DeviceTensor(PTR, (4,), meant)._element


def test_whatever_takes_an_element_type_takes_names():
    """All go through pypto._dtypes.as_dtype()."""
    for given in ("float32", "pl.FP32", np.float32, np.dtype("f4"), torch.float32, pl.FP32):
        assert TensorSpec("x", [2], given).create_tensor().dtype == torch.float32
        assert ScalarSpec("s", 1, given).value == 1
    with pytest.raises(ValueError, match="must be in -128..127"):
        ScalarSpec("s", 200, "int8")
    with pytest.raises(TypeError, match="dtype of x must be an element type that programs have"):
        TensorSpec("x", [2], "float64")


def test_the_buffer_is_no_part_of_what_it_is():
    plain, owned = DeviceTensor(PTR, (4,), torch.float32), DeviceTensor(PTR, (4,), torch.float32, buffer=buffer())
    assert plain == owned and hash(plain) == hash(owned) and len({plain, owned}) == 1
    assert "buffer" not in repr(owned) and "float32" in repr(owned) and "(4,)" in repr(owned) and str(PTR) in repr(owned)
    assert plain != DeviceTensor(PTR, (2, 2), torch.float32)
    assert DeviceTensor(PTR, torch.Size([4, np.int64(2)]), torch.int8).shape == (4, 2)


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ((0, (4,), torch.float32), ValueError, "positive int"),
        ((-1, (4,), torch.float32), ValueError, "positive int"),
        ((True, (4,), torch.float32), ValueError, "positive int"),
        (("16", (4,), torch.float32), ValueError, "positive int"),
        ((1.5, (4,), torch.float32), ValueError, "positive int"),
        ((PTR, (), torch.float32), ValueError, "non-empty"),
        ((PTR, (4, 0), torch.float32), ValueError, "all positive"),
        ((PTR, (4, -2), torch.float32), ValueError, "all positive"),
        ((PTR, (4, 2.0), torch.float32), TypeError, "must contain ints"),
        ((PTR, (True, 2), torch.float32), TypeError, "must contain ints"),
        ((PTR, (4,), "float33"), TypeError, 'or a name such as "float32"; got \'float33\''),
        ((PTR, (4,), ">f4"), TypeError, "must be an element type"),
        ((PTR, (4,), object), TypeError, "must be an element type"),
        ((PTR, (4,), np.dtype("O")), TypeError, "must be an element type"),
        ((PTR, (4,), None), TypeError, "must be an element type"),
        ((PTR, (4,), np.dtype(">f4")), TypeError, "must be an element type"),
        ((PTR, (4,), pl.INT4), TypeError, "must be an element type"),
    ],
)
def test_what_it_cannot_be(arguments, error, words):
    with pytest.raises(error, match=words):
        DeviceTensor(*arguments)


def test_buffers_that_are_none():
    with pytest.raises(ValueError, match="does not match"):
        DeviceTensor(PTR, (4,), torch.float32, buffer=buffer(PTR + 64))
    for wrong in (object(), SimpleNamespace(base=PTR), SimpleNamespace(base="x", tensor=print), SimpleNamespace(tensor=print)):
        with pytest.raises(TypeError, match="buffer must be"):
            DeviceTensor(PTR, (4,), torch.float32, buffer=wrong)


def test_it_is_frozen():
    tensor = DeviceTensor(PTR, (4,), torch.float32)
    for name in ("data_ptr", "shape", "dtype", "buffer"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(tensor, name, None)
    assert dataclasses.replace(tensor, shape=(2, 2)).shape == (2, 2)


def test_torch_is_not_imported():
    code = (
        "import sys, pypto.language as pl; from pypto.runtime import DeviceTensor, StackedDeviceTensor, Worker, DistributedWorker;"
        "t = DeviceTensor(64, (4, 2), pl.FP32); s = StackedDeviceTensor((t,), (1, 4, 2), (0,)); assert s[0] is t;"
        "assert not {'torch', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- StackedDeviceTensor ----


def shards(count=3, shape=(4, 5), dtype=torch.float32):
    return tuple(DeviceTensor(PTR * (i + 1), shape, dtype) for i in range(count))


def test_a_stack():
    rows = shards()
    stacked = StackedDeviceTensor(list(rows), [3, 4, 5], [2, 0, 1])
    assert stacked.shards == rows and stacked.worker_ids == (2, 0, 1)
    assert stacked.full_shape == stacked.shape == (3, 4, 5) and stacked.dtype == torch.float32
    assert stacked.nbytes == 3 * 4 * 5 * 4 and len(stacked) == 3 and list(stacked) == list(rows)
    with pytest.raises((AttributeError, TypeError)):
        stacked.shards = ()


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ((shards(1, (3,)), (3,), (0,)), ValueError, "rank >= 2"),
        (((), (0, 4, 5), ()), ValueError, "at least one shard"),
        ((shards(2), (3, 4, 5), (0, 1, 2)), ValueError, "3 shards"),
        ((shards(3), (3, 4, 5), (0, 1)), ValueError, "worker_ids"),
        ((shards(3), (3, 4, 5), (0, 1, 1)), ValueError, "distinct"),
        ((shards(3), (3, 4, 5), (0, 1, -1)), ValueError, "worker_ids"),
        ((shards(3), (3, 4, 5), (0, 1, "2")), ValueError, "worker_ids"),
        (((*shards(2), torch.zeros(4, 5)), (3, 4, 5), (0, 1, 2)), TypeError, "shard 2 must be a DeviceTensor"),
        ((shards(3), (3, 5, 4), (0, 1, 2)), ValueError, "per-shard shape"),
        (((*shards(2), *shards(1, dtype=torch.float16)), (3, 4, 5), (0, 1, 2)), ValueError, "dtype"),
    ],
)
def test_what_a_stack_cannot_be(arguments, error, words):
    with pytest.raises(error, match=words):
        StackedDeviceTensor(*arguments)


WHOLE = slice(None)


@pytest.mark.parametrize(
    "index",
    [
        1, np.int64(1), (1,), (1, ...), (1, WHOLE), (1, WHOLE, WHOLE), (1, slice(0, 4), slice(0, 5)), (1, ..., WHOLE),
        (1, WHOLE, ..., slice(0, 5)), (1, slice(0, 4, 1)),
    ],
)
def test_indexing_gives_the_shard(index):
    rows = shards()
    assert StackedDeviceTensor(rows, (3, 4, 5), (0, 1, 2))[index] is rows[1]


@pytest.mark.parametrize(
    "index, error, words",
    [
        (slice(0, 1), TypeError, "leading index"),
        (..., TypeError, "leading index"),
        ((), TypeError, "leading index"),
        (True, TypeError, "leading index"),
        ("0", TypeError, "leading index"),
        (3, IndexError, "out of range"),
        (-1, IndexError, "out of range"),
        ((0, WHOLE, WHOLE, WHOLE), IndexError, "too many indices"),
        ((0, WHOLE, WHOLE, ..., WHOLE), IndexError, "too many indices"),
        ((0, ..., ...), IndexError, "at most one Ellipsis"),
        ((0, slice(0, 3)), ValueError, "whole-shard"),
        ((0, ..., slice(1, 5)), ValueError, "whole-shard"),
        ((0, 2), ValueError, "whole-shard"),
        ((0, WHOLE, slice(0, 5, 2)), ValueError, "whole-shard"),
    ],
)
def test_what_indexing_refuses(index, error, words):
    with pytest.raises(error, match=words):
        StackedDeviceTensor(shards(), (3, 4, 5), (0, 1, 2))[index]
