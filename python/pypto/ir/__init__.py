"""Programs and compiled programs, and how they are compiled and configured."""

from enum import Enum, IntEnum

from .._program import Function, Program
from .distributed_config import DistributedConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .compiled_program import CompiledProgram, ParameterInfo, ParamInfo
    from .compiling import compile
    from .distributed_compiled_program import DistributedCompiledProgram
    from .options import (
        DiagnosticPhase,
        MemoryPlanner,
        OptimizationStrategy,
        PassContext,
        PassDumpLevel,
        RuntimeKind,
        VerificationLevel,
    )


class ParamDirection(str, Enum):
    """What a function does to a parameter. Equal to its name as a string, too."""

    In = "In"
    Out = "Out"
    InOut = "InOut"

    __str__ = str.__str__


class ArgDirection(IntEnum):
    """What a call does to an argument."""

    Input = 0
    Output = 1
    InOut = 2
    OutputExisting = 3
    NoDep = 4
    Scalar = 5


_LATER = {
    "DiagnosticPhase": "options",
    "MemoryPlanner": "options",
    "OptimizationStrategy": "options",
    "PassContext": "options",
    "PassDumpLevel": "options",
    "RuntimeKind": "options",
    "VerificationLevel": "options",
    "CompiledProgram": "compiled_program",
    "DistributedCompiledProgram": "distributed_compiled_program",
    "ParamInfo": "compiled_program",
    "ParameterInfo": "compiled_program",
    "compile": "compiling",
}
_ENUMERATIONS = ("FunctionType", "Level", "Role")

__all__ = [
    "ArgDirection",
    "CompiledProgram",
    "DiagnosticPhase",
    "DistributedCompiledProgram",
    "DistributedConfig",
    "Function",
    "FunctionType",
    "Level",
    "MemoryPlanner",
    "OptimizationStrategy",
    "ParamDirection",
    "ParamInfo",
    "ParameterInfo",
    "PassContext",
    "PassDumpLevel",
    "Program",
    "Role",
    "RuntimeKind",
    "VerificationLevel",
    "compile",
]


def __getattr__(name: str) -> "Any":
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module("." + _LATER[name], __name__), name)
    if name in _ENUMERATIONS:
        from .. import language

        return getattr(language, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
