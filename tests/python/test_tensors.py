"""Tensors of the caller: every library, layout and element type that is accepted, and those that
are refused. The program copies inputs to outputs, rank by rank, through a kernel."""

import array
import ctypes

import numpy as np
import pytest
import torch

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from programs import NR, config

_copies = {}


def copy_program(dtype, columns):
    """inputs [NR, columns] -> outputs [NR, columns]"""
    if (dtype, columns) in _copies:
        return _copies[dtype, columns]

    @pl.jit.incore
    def kernel(x: pl.Tensor[[columns], dtype], y: pl.Out[pl.Tensor[[columns], dtype]]):
        pl.store(pl.load(x, [0], [columns]), [0], y)

    @pl.jit
    def wrapper(x: pl.Tensor[[columns], dtype], y: pl.Out[pl.Tensor[[columns], dtype]]):
        kernel(x, y)

    @pl.jit.host
    def copy(
        inputs: pl.Tensor[[NR, columns], dtype], outputs: pl.Out[pl.Tensor[[NR, columns], dtype]]
    ):
        for r in pl.range(pld.world_size()):
            wrapper(inputs[r], outputs[r], device=r)

    _copies[dtype, columns] = copy
    return copy


def run(inputs, outputs, dtype=pl.FP32, columns=6):
    copy_program(dtype, columns)(inputs, outputs, config=config(2))


def ramp(dtype=np.float32, shape=(2, 6)):
    return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)


# Element type -> what NumPy and torch (the oldest supported) call it.
DTYPES = {
    pl.INT8: (np.int8, torch.int8),
    pl.INT16: (np.int16, torch.int16),
    pl.INT32: (np.int32, torch.int32),
    pl.INT64: (np.int64, torch.int64),
    pl.UINT8: (np.uint8, torch.uint8),
    pl.UINT16: (np.uint16, None),
    pl.UINT32: (np.uint32, None),
    pl.UINT64: (np.uint64, None),
    pl.FP16: (np.float16, torch.float16),
    pl.BF16: (None, torch.bfloat16),
    pl.FP32: (np.float32, torch.float32),
    pl.BOOL: (np.bool_, torch.bool),
}


@pytest.mark.parametrize("dtype", [d for d in DTYPES if DTYPES[d][0]], ids=str)
def test_element_types_of_numpy(dtype):
    inputs = ramp(DTYPES[dtype][0])
    outputs = np.zeros_like(inputs)
    run(inputs, outputs, dtype)
    np.testing.assert_array_equal(outputs, inputs)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if DTYPES[d][1]], ids=str)
def test_element_types_of_torch(dtype):
    inputs = torch.arange(1, 13).reshape(2, 6).to(DTYPES[dtype][1])
    outputs = torch.zeros_like(inputs)
    run(inputs, outputs, dtype)
    assert torch.equal(outputs, inputs)


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("library", ["NumPy", "torch"])
def test_unsigned_elements_come_as_signed_ones_with_the_same_bits(library, bits):
    exact = np.array([[0, 1, 2 ** (bits - 1), 2**bits - 1, 7, 2 ** (bits - 1) - 1]] * 2, f"u{bits // 8}")
    inputs = exact.view(f"i{bits // 8}")
    outputs = np.zeros_like(inputs)
    given = (torch.from_numpy(inputs), torch.from_numpy(outputs)) if library == "torch" else (inputs, outputs)
    run(*given, getattr(pl, f"UINT{bits}"))
    np.testing.assert_array_equal(outputs.view(exact.dtype), exact)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_elements_of_index_come_as_int64(library):
    inputs = np.array([[0, -1, 2**62, 7, 8, 9]] * 2, np.int64)
    outputs = np.zeros_like(inputs)
    run(library(inputs), library(outputs), pl.INDEX)
    np.testing.assert_array_equal(outputs, inputs)


@pytest.mark.parametrize("given, declared", [(np.uint32, pl.INT32), (np.int16, pl.UINT32), (np.int8, pl.UINT16)])
def test_other_element_types_are_refused(given, declared):
    inputs = ramp(given)
    with pytest.raises(pypto.Error, match="has dtype|declared"):
        run(inputs, np.zeros_like(inputs), declared)


# ---- layouts ----


def test_torch_views():
    base = torch.arange(48.0).reshape(4, 12)
    outputs = torch.zeros(6, 2)
    run(base[::2, 3:9], outputs.t())
    assert torch.equal(outputs.t(), base[::2, 3:9])


def test_torch_expanded_input():
    row = torch.arange(6.0)
    outputs = torch.zeros(2, 6)
    run(row.expand(2, 6), outputs)
    assert torch.equal(outputs, row.expand(2, 6))


def test_numpy_negative_strides():
    inputs = ramp()[::-1, ::-1]
    outputs = np.zeros((2, 6), np.float32)
    run(inputs, outputs)
    np.testing.assert_array_equal(outputs, inputs)


def test_numpy_output_with_negative_strides():
    inputs = ramp()
    memory = np.zeros((2, 6), np.float32)
    run(inputs, memory[::-1, ::-1])
    np.testing.assert_array_equal(memory[::-1, ::-1], inputs)


def test_numpy_column_major():
    inputs = np.asfortranarray(ramp())
    outputs = np.zeros((2, 6), np.float32, order="F")
    run(inputs, outputs)
    np.testing.assert_array_equal(outputs, inputs)


def test_what_is_between_the_rows_of_an_output_stays():
    inputs = ramp()
    memory = np.full((4, 9), 7, np.float32)
    run(inputs, memory[::2, 1:7])
    np.testing.assert_array_equal(memory[::2, 1:7], inputs)
    memory[::2, 1:7] = 7
    assert (memory == 7).all()


def test_inputs_may_be_read_only():
    inputs = ramp()
    inputs.flags.writeable = False
    outputs = np.zeros((2, 6), np.float32)
    run(inputs, outputs)
    np.testing.assert_array_equal(outputs, inputs)


def test_one_tensor_as_input_and_output():
    data = ramp()
    run(data, data)
    np.testing.assert_array_equal(data, ramp())


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_other_names_of_an_output_see_the_result(prepared, shared):
    """Arrays, tensors and views that had the memory before the call; a call never moves it somewhere else."""
    copy = copy_program(pl.FP32, 6)
    whole = np.zeros((3, 2, 6), np.float32)
    tensor = torch.from_numpy(whole)
    tensor = tensor.share_memory_() if shared else tensor
    other, row, address = tensor.numpy(), tensor[1], tensor.data_ptr()
    x = torch.ones(2, 6)
    if prepared:
        with copy.compile(x, x, config=config(2)).prepare() as worker:
            worker(x, row)
    else:
        copy(x, row, config=config(2))
    assert (other[1] == 1).all() and (tensor[1] == 1).all() and tensor.data_ptr() == address
    assert not other[0].any() and not other[2].any()
    assert shared or (whole[1] == 1).all()


def test_torch_and_numpy_in_one_call():
    outputs = torch.zeros(2, 6)
    run(ramp(), outputs)
    np.testing.assert_array_equal(outputs.numpy(), ramp())


# ---- torch's peculiarities ----


def test_parameters_and_gradients():
    inputs = torch.nn.Parameter(torch.arange(12.0).reshape(2, 6))
    outputs = torch.zeros(2, 6)
    run(inputs, outputs)
    assert torch.equal(outputs, inputs)
    outputs = torch.nn.Parameter(torch.zeros(2, 6))
    with torch.no_grad():
        run(inputs, outputs)
    assert torch.equal(outputs, inputs)


def test_subclass_of_tensor():
    class Mine(torch.Tensor):
        pass

    inputs = torch.arange(12.0).reshape(2, 6).as_subclass(Mine)
    outputs = torch.zeros(2, 6)
    run(inputs, outputs)
    assert torch.equal(outputs, inputs.as_subclass(torch.Tensor))


def negative_view():
    """A real tensor whose memory holds the negated numbers."""
    view = torch.view_as_complex(torch.arange(24.0).reshape(2, 6, 2)).conj().imag
    assert view.is_neg()
    return view


def test_negative_bit_of_an_input_is_resolved():
    inputs, outputs = negative_view(), torch.zeros(2, 6)
    run(inputs, outputs)
    assert torch.equal(outputs, inputs.resolve_neg())


def test_negative_bit_of_an_output_is_refused():
    with pytest.raises(
        TypeError, match="argument 'outputs' of 'copy' is written, but .* with its negative bit"
    ):
        run(torch.zeros(2, 6), negative_view())


# ---- other libraries ----


def test_anything_with_a_buffer():
    inputs = memoryview(array.array("f", range(12))).cast("B").cast("f", (2, 6))
    outputs = (ctypes.c_float * 6 * 2)()
    run(inputs, outputs)
    assert [list(row) for row in outputs] == inputs.tolist()


class Exporter:
    """What a library that only knows DLPack looks like."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bfloat16])
def test_dlpack_inputs(dtype):
    inputs = torch.arange(12).reshape(6, 2).to(dtype).t()
    outputs = torch.zeros(2, 6, dtype=dtype)
    names = {
        torch.float32: pl.FP32,
        torch.int64: pl.INT64,
        torch.uint8: pl.UINT8,
        torch.bfloat16: pl.BF16,
    }
    run(Exporter(inputs), outputs, names[dtype])
    assert torch.equal(outputs, inputs)


def test_dlpack_outputs_are_refused():
    with pytest.raises(TypeError, match="outputs"):
        run(torch.zeros(2, 6), Exporter(torch.zeros(2, 6)))


# ---- elements that are not aligned ----


def field_of_records(values):
    records = np.zeros(values.shape, dtype=[("a", values.dtype), ("b", "i1")])
    records["a"] = values
    return records["a"]


def unaligned_bytes(values):
    memory = bytearray(values.nbytes + 1)
    view = np.frombuffer(memory, values.dtype, values.size, 1).reshape(values.shape)
    view[...] = values
    return view


@pytest.mark.parametrize("dtype, kind", [(pl.FP32, np.float32), (pl.INT64, np.int64), (pl.FP16, np.float16)])
@pytest.mark.parametrize(
    "make",
    [
        field_of_records,
        unaligned_bytes,
        lambda values: unaligned_bytes(values.T.copy()).T,
        lambda values: unaligned_bytes(values[::-1].copy())[::-1],
        lambda values: memoryview(field_of_records(values)),
    ],
    ids=["field", "odd address", "transposed", "backwards", "memoryview"],
)
def test_unaligned_inputs_are_copied(make, dtype, kind, transport):
    inputs = make(ramp(kind))
    assert not np.asarray(inputs).flags.aligned
    outputs = np.zeros((2, 6), kind)
    run(inputs, outputs, dtype)
    np.testing.assert_array_equal(outputs, ramp(kind))


# ---- what is refused ----


class Derived(np.ma.MaskedArray):
    pass


def masked():
    return np.ma.masked_less(ramp(), 3)


def masked_tensor():
    masked = pytest.importorskip("torch.masked")
    values = torch.from_numpy(ramp())
    return masked.masked_tensor(values, values > 3)


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
@pytest.mark.parametrize(
    "make, words",
    [
        (
            lambda: torch.zeros(2, 6, dtype=torch.float64),
            "Unsupported torch dtype torch.float64 of argument 'inputs' of 'copy'",
        ),
        (
            lambda: torch.zeros(2, 6, dtype=torch.complex64),
            "Unsupported torch dtype torch.complex64",
        ),
        (lambda: np.zeros((2, 6)), "Unsupported dtype float64 of argument 'inputs' of 'copy'"),
        (lambda: np.zeros((2, 6), ">f4"), "Unsupported dtype >f4 of argument 'inputs' of 'copy'"),
        (lambda: np.zeros((2, 6), "V3"), r"Unsupported dtype \|V3"),
        (lambda: np.zeros((2, 6), object), "Unsupported dtype object"),
        (lambda: np.zeros((2, 6), "M8[s]"), "Unsupported dtype datetime64"),
        (lambda: np.zeros((1,) * 9, np.float32), "'inputs' of 'copy' has 9 dimensions; at most 8"),
        (lambda: torch.zeros((1,) * 9), "argument 'inputs' of 'copy' has 9 dimensions; at most 8"),
        (masked, r"argument 'inputs' of 'copy' is a masked array(?s:.*)x\.filled\(value\)"),
        (masked_tensor, "'inputs' of 'copy' is a masked tensor"),
        (lambda: masked().view(Derived), "'inputs' of 'copy' is a masked array"),
        (lambda: np.ma.array(ramp()), "'inputs' of 'copy' is a masked array"),
        (
            lambda: torch.zeros(2, 6).to_sparse(),
            "argument 'inputs' of 'copy' must be a dense tensor, not one of layout torch.sparse",
        ),
        (
            lambda: torch.zeros(2, 6, device="meta"),
            "argument 'inputs' of 'copy' must be a host torch.Tensor, not one on device meta",
        ),
        (
            lambda: [[0.0] * 6] * 2,
            "'inputs' of 'copy' must be a host torch.Tensor, a NumPy array, a DeviceTensor or a number, not list",
        ),
        (lambda: None, "not NoneType"),
        (lambda: "text", "not str"),
        (lambda: torch.float32, "not dtype"),
        (lambda: 2**64, "argument 'inputs' of 'copy' does not fit in 64 bits"),
    ],
)
def test_refused_inputs(make, words):
    with pytest.raises(TypeError, match=words) as caught:
        run(make(), np.zeros((2, 6), np.float32))
    assert caught.value.code.startswith("PYPTO-H")


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: read_only(np.zeros((2, 6), np.float32)), "outputs.*read-only|read-only.*outputs"),
        (lambda: bytes(48), "outputs"),
        (lambda: torch.zeros(6).expand(2, 6), "outputs"),
        (
            lambda: unaligned_bytes(ramp()),
            r"'outputs' of 'copy' is written, but is an array whose elements are not aligned(?s:.*)x\.copy\(\)",
        ),
        (lambda: np.ma.masked_less(ramp(), 3), "'outputs' of 'copy' is a masked array"),
        (
            lambda: np.lib.stride_tricks.as_strided(np.zeros(12, np.float32), (2, 6), (8, 4)),
            "outputs",
        ),
    ],
)
def test_refused_outputs(make, words):
    with pytest.raises(TypeError, match=words):
        run(np.zeros((2, 6), np.float32), make())


def test_a_number_where_a_tensor_is_meant():
    with pytest.raises(TypeError, match="inputs"):
        run(3, np.zeros((2, 6), np.float32))


# ---- ownership ----


def test_references_are_given_back():
    import sys

    arguments = [ramp(), torch.zeros(2, 6), Exporter(torch.zeros(2, 6))]
    outputs = np.zeros((2, 6), np.float32)
    run(arguments[0], outputs)
    for inputs in arguments:
        before = sys.getrefcount(inputs), sys.getrefcount(outputs)
        for _ in range(3):
            run(inputs, outputs)
            with pytest.raises(TypeError):
                run(inputs, "no tensor")
        assert (sys.getrefcount(inputs), sys.getrefcount(outputs)) == before


def test_a_buffer_is_released_after_the_call():
    data = bytearray(48)
    run(memoryview(data).cast("f", (2, 6)), np.zeros((2, 6), np.float32))
    data.append(0)  # BufferError while something still holds it
