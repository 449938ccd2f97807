"""The quick start with every size, element type, number of ranks and transport: bit for bit what
NumPy computes in the kernel's own order."""

import numpy as np
import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from programs import allreduce, allreduce_expected, config

SIZES = [1, 3, 256, 1000, 20001]
RANKS = [1, 2, 3, 4, 8, 16]
DTYPES = {"FP32": (pl.FP32, np.float32), "INT32": (pl.INT32, np.int32)}

_orchestrators = {}


def orchestrator_for(size, name):
    """One per size and element type: any number of ranks shares its program."""
    if (size, name) not in _orchestrators:
        _orchestrators[size, name] = allreduce(size, DTYPES[name][0])
    return _orchestrators[size, name]


def random_inputs(ranks, size, dtype):
    generator = np.random.default_rng(ranks * 100_003 + size)
    if dtype is np.int32:
        return generator.integers(-(2**31), 2**31, (ranks, 1, size), dtype=np.int32)
    return generator.standard_normal((ranks, 1, size), dtype=np.float32)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ranks", RANKS)
def test_equals_numpy(ranks, size, name, transport):
    inputs = random_inputs(ranks, size, DTYPES[name][1])
    outputs = np.zeros_like(inputs)
    with np.errstate(over="ignore"):
        expected = allreduce_expected(inputs)
    result = orchestrator_for(size, name)(inputs, outputs, config=config(ranks))
    assert result is None
    np.testing.assert_array_equal(outputs.view(np.uint32), expected.view(np.uint32))


def test_documented_example(transport):
    inputs = torch.tensor([[[1.0, 2, 3]], [[10, 20, 30]]])
    outputs = torch.zeros_like(inputs)
    allreduce(3)(inputs, outputs, config=config(2))
    assert outputs.tolist() == [[[11, 22, 33]], [[11, 22, 33]]]


@pytest.mark.parametrize("ids", [[0, 1], [4, 5], [7, 2], [0]])
def test_device_ids_name_no_hardware(ids, transport):
    inputs = torch.randn(len(ids), 1, 256)
    outputs = torch.zeros_like(inputs)
    orchestrator_for(256, "FP32")(inputs, outputs, config=config(ids))
    np.testing.assert_array_equal(outputs.numpy(), allreduce_expected(inputs.numpy()))


def test_same_bits_in_every_run(transport):
    inputs = random_inputs(4, 1000, np.float32)
    first = np.zeros_like(inputs)
    orchestrator_for(1000, "FP32")(inputs, first, config=config(4))
    for _ in range(20):
        again = np.zeros_like(inputs)
        orchestrator_for(1000, "FP32")(inputs, again, config=config(4))
        assert first.tobytes() == again.tobytes()


def test_integer_sums_are_equal_on_all_ranks(transport):
    inputs = random_inputs(4, 1000, np.int32)
    outputs = np.zeros_like(inputs)
    orchestrator_for(1000, "INT32")(inputs, outputs, config=config(4))
    for rank in range(1, 4):
        np.testing.assert_array_equal(outputs[0], outputs[rank])


def test_default_config_is_one_device():
    inputs = torch.randn(1, 1, 256)
    outputs = torch.zeros_like(inputs)
    orchestrator_for(256, "FP32")(inputs, outputs)
    assert torch.equal(inputs, outputs)


def test_inputs_are_not_changed(transport):
    inputs = random_inputs(2, 256, np.float32)
    before = inputs.copy()
    orchestrator_for(256, "FP32")(inputs, np.zeros_like(inputs), config=config(2))
    np.testing.assert_array_equal(inputs, before)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_three_planes_without_windows(ranks, transport):
    """z[r] = a[r] + r: the rank travels as a scalar through all planes."""
    width = 32

    @pl.jit.incore
    def bump(
        a: pl.Tensor[[1, width], pl.FP32],
        z: pl.Out[pl.Tensor[[1, width], pl.FP32]],
        who: pl.Scalar[pl.INT32],
    ):
        z = pl.store(
            pl.add(pl.load(a, [0, 0], [1, width]), pl.cast(who, target_type=pl.FP32)), [0, 0], z
        )
        return z

    @pl.jit
    def per_card(
        a: pl.Tensor[[1, width], pl.FP32],
        z: pl.Out[pl.Tensor[[1, width], pl.FP32]],
        who: pl.Scalar[pl.INT32],
    ):
        return bump(a, z, who)

    @pl.jit.host
    def everywhere(
        a: pl.Tensor[[ranks, 1, width], pl.FP32], z: pl.Out[pl.Tensor[[ranks, 1, width], pl.FP32]]
    ):
        for r in pl.range(pld.world_size()):
            per_card(a[r], z[r], r, device=r)

    a = torch.randn(ranks, 1, width)
    z = torch.zeros_like(a)
    everywhere(a, z, config=config(ranks))
    assert torch.equal(z, a + torch.arange(ranks).reshape(-1, 1, 1))
