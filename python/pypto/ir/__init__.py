"""Compiled programs and how they are configured."""

from .distributed_config import DistributedConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .distributed_compiled_program import DistributedCompiledProgram, ParameterInfo

__all__ = ["DistributedCompiledProgram", "DistributedConfig", "ParameterInfo"]


def __getattr__(name: str) -> object:
    if name in ("DistributedCompiledProgram", "ParameterInfo"):
        from . import distributed_compiled_program

        return getattr(distributed_compiled_program, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
