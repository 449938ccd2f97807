"""RunConfig and DistributedConfig: defaults, validation, and the words of their errors."""

import dataclasses
import itertools
import warnings

import pytest

import pypto.runtime
from pypto.ir import DistributedConfig
from pypto.ir.distributed_compiled_program import DistributedConfig as SameConfig
from pypto.runtime import RunConfig


def test_distributed_config():
    assert SameConfig is DistributedConfig
    default = DistributedConfig()
    assert (default.device_ids, default.num_sub_workers, default.aicpu_thread_num) == ([0], 0, 0)
    assert default.runtime == "tensormap_and_ringbuffer"
    assert DistributedConfig((4, 5)) == DistributedConfig(device_ids=[4, 5])
    assert DistributedConfig([0]).device_ids is not DistributedConfig([0]).device_ids


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"device_ids": []}, "device_ids must not be empty"),
        ({"device_ids": [0, -1]}, "device_ids must be non-negative"),
        ({"device_ids": [1, 1]}, "device_ids must be distinct"),
        ({"device_ids": [0, 2**31]}, r"device_ids must be below 2\*\*31, got \[0, 2147483648\]"),
        ({"device_ids": [10**20]}, r"device_ids must be below 2\*\*31"),
        ({"device_ids": range(65)}, "device_ids must be 64 at most"),
        ({"device_ids": itertools.count()}, "device_ids must be 64 at most"),
        ({"num_sub_workers": -1}, "num_sub_workers must be non-negative"),
        ({"num_sub_workers": 65}, "num_sub_workers must be 64 at most, got 65"),
        ({"num_sub_workers": 2**40}, "num_sub_workers must be 64 at most, got 1099511627776"),
        ({"aicpu_thread_num": 1}, "aicpu_thread_num"),
        ({"aicpu_thread_num": -2}, "aicpu_thread_num"),
    ],
)
def test_distributed_config_refuses(fields, words):
    with pytest.raises(ValueError, match=words):
        DistributedConfig(**fields)


@pytest.mark.parametrize("ids", [["0"], [1.0], 3, [True]])
def test_device_ids_are_integers(ids):
    with pytest.raises(TypeError, match="device_ids must be a list of integers"):
        DistributedConfig(device_ids=ids)


def test_run_config_defaults():
    config = RunConfig()
    assert len(dataclasses.fields(config)) == 28
    assert config.lint == "warn"
    assert (config.platform, config.device_id, config.rtol) == ("a2a3sim", 0, 1e-5)
    assert config.distributed_config is None and config.backend_type == "Ascend910B"
    assert not config.any_dfx_enabled() and not config.save_kernels
    assert RunConfig(platform="a5").backend_type == "Ascend950"


def test_run_config_as_a_value():
    config = RunConfig(platform="cpu", distributed_config=DistributedConfig([1, 2]))
    assert config == dataclasses.replace(config) != RunConfig(platform="cpu")
    assert (
        repr(config)
        == f"RunConfig(platform='cpu', distributed_config={config.distributed_config!r})"
    )
    assert eval(repr(config)) == config
    with pytest.raises(TypeError):
        hash(config)


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim", "a5", "a5sim", "cpu"])
def test_platforms(platform):
    assert RunConfig(platform=platform).platform == platform


@pytest.mark.parametrize("platform", ["", "A2A3", "gpu", None])
def test_unknown_platforms(platform):
    with pytest.raises(ValueError, match="Invalid platform"):
        RunConfig(platform=platform)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"ring_task_window": 3}, r"ring_task_window must be a power of 2 >= 4"),
        ({"ring_task_window": 6}, r"ring_task_window must be a power of 2 >= 4"),
        ({"ring_task_window": True}, r"ring_task_window must be a power of 2 >= 4"),
        ({"ring_task_window": 4.0}, r"ring_task_window must be a power of 2 >= 4"),
        ({"ring_heap": 512}, r"ring_heap must be a power of 2 >= 1024"),
        ({"ring_dep_pool": 2**31}, r"ring_dep_pool must be in \[4, INT32_MAX\]"),
        ({"ring_heap": [1024] * 3}, r"ring_heap must have exactly 4 entries"),
        ({"ring_heap": [1024, 0, 3, 0]}, r"ring_heap entries must be a power of 2 >= 1024"),
        ({"device_id": -1}, "device_id must be a non-negative integer"),
        ({"device_id": 2**31}, r"device_id must be a non-negative integer below 2\*\*31, got 2147483648"),
        ({"enable_chip_swimlane": 5}, r"collection level in 0\.\.4"),
        ({"enable_chip_swimlane": 1, "enable_l2_swimlane": 1}, "pass only enable_chip_swimlane"),
    ],
)
def test_run_config_refuses(fields, words):
    with pytest.raises(ValueError, match=words):
        RunConfig(**fields)


def test_run_config_refuses_types():
    with pytest.raises(TypeError, match="enable_chip_swimlane"):
        RunConfig(enable_chip_swimlane="full")
    with pytest.raises(TypeError, match="distributed_config must be a pypto.ir.DistributedConfig"):
        RunConfig(distributed_config={"device_ids": [0]})


def test_ring_sizes_that_are_good():
    config = RunConfig(ring_task_window=8, ring_heap=(0, 1024, 2048, 0), ring_dep_pool=5)
    assert config.ring_heap == [0, 1024, 2048, 0]


def test_recordings_force_save_kernels():
    for field in [
        "enable_chip_swimlane",
        "enable_dump_args",
        "enable_pmu",
        "enable_dep_gen",
        "enable_scope_stats",
    ]:
        config = RunConfig(**{field: True})
        assert config.any_dfx_enabled() and config.save_kernels
    assert RunConfig(enable_chip_swimlane=True).enable_chip_swimlane == 4
    assert RunConfig(enable_dump_args=True).enable_dump_args == 1


def test_the_former_name_of_the_swimlane():
    with pytest.warns(DeprecationWarning, match="enable_l2_swimlane is deprecated") as made:
        config = RunConfig(enable_l2_swimlane=2)
    assert config.enable_chip_swimlane == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert config.enable_l2_swimlane == 2
        assert dataclasses.replace(config, platform="cpu").enable_chip_swimlane == 2
        assert "enable_l2_swimlane" not in dataclasses.asdict(config)
    with pytest.warns(DeprecationWarning, match="enable_l2_swimlane is deprecated") as told:
        config.enable_l2_swimlane = True
    assert made[0].filename == told[0].filename == __file__
    assert config.enable_chip_swimlane == 4


def test_shutdown_at_any_time():
    pypto.runtime.shutdown()
    pypto.runtime.shutdown()
