"""Running programs: the configuration of a run, workers that stay, and the end of idle ones."""

import os as _os

from .. import _core
from .run_config import RunConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .bench import benchmark
    from .benchmark_stats import BenchmarkStats
    from .device_tensor import DeviceTensor, StackedDeviceTensor
    from .chip_worker import ChipWorker
    from .distributed_runner import execute_distributed_compiled
    from .distributed_worker import DistributedRunHandle, DistributedWorker
    from .registration import RegistrationHandle
    from .runner import RunResult, compile_program, execute_compiled, run
    from .log_config import configure_log, log_level
    from .runtime_base import Worker
    from .shared_tensors import empty_shared
    from .device_headers import ensure_pto_isa_root, pto_isa_include_dir
    from .tensor_spec import ScalarSpec, TensorSpec
    from .trace_spans import TraceInvocation, TraceSpan

_LATER = {
    "BenchmarkStats": "benchmark_stats",
    "ChipWorker": "chip_worker",
    "DeviceTensor": "device_tensor",
    "DistributedRunHandle": "distributed_worker",
    "DistributedWorker": "distributed_worker",
    "RegistrationHandle": "registration",
    "RunResult": "runner",
    "ScalarSpec": "tensor_spec",
    "StackedDeviceTensor": "device_tensor",
    "TensorSpec": "tensor_spec",
    "TraceInvocation": "trace_spans",
    "TraceSpan": "trace_spans",
    "Worker": "runtime_base",
    "benchmark": "bench",
    "compile_program": "runner",
    "configure_log": "log_config",
    "empty_shared": "shared_tensors",
    "ensure_pto_isa_root": "device_headers",
    "execute_compiled": "runner",
    "execute_distributed_compiled": "distributed_runner",
    "log_level": "log_config",
    "pto_isa_include_dir": "device_headers",
    "run": "runner",
}

__all__ = [
    "BenchmarkStats",
    "ChipWorker",
    "DeviceTensor",
    "DistributedRunHandle",
    "DistributedWorker",
    "RegistrationHandle",
    "RunConfig",
    "RunResult",
    "ScalarSpec",
    "StackedDeviceTensor",
    "TensorSpec",
    "TraceInvocation",
    "TraceSpan",
    "Worker",
    "benchmark",
    "compile_program",
    "configure_log",
    "empty_shared",
    "ensure_pto_isa_root",
    "execute_compiled",
    "execute_distributed_compiled",
    "log_level",
    "pto_isa_include_dir",
    "run",
    "shutdown",
]


def __getattr__(name: str) -> "Any":
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module("." + _LATER[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def shutdown() -> None:
    """Ends all idle worker processes at once and releases their memory. Runs by itself at exit.

    One-shot calls keep their workers for the next call; after this no process, descriptor or
    mapping of the package is left until the next call starts new ones. Workers that were prepared stay
    until they are closed. Safe at any time.
    """
    _core.shutdown()


if _os.environ.get("PYPTO_RUNTIME_LOG"):
    from .log_config import configure_from_environment

    configure_from_environment()
