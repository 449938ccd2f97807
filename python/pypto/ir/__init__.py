"""Programs and compiled programs, and how they are compiled and configured."""

from enum import Enum, IntEnum

from .._program import Function, Program
from .distributed_config import DistributedConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .compiled_program import CompiledProgram, ParameterInfo, ParamInfo
    from .compiling import compile
    from .pass_manager import PassManager
    from ..language._annotations import (
        DistributedTensor as DistributedTensorType,
        Scalar as ScalarType,
        Tensor as TensorType,
        Tile as TileType,
    )
    from .distributed_compiled_program import DistributedCompiledProgram
    from .options import (
        DiagnosticCheck,
        DiagnosticCheckSet,
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
    "DiagnosticCheck": "options",
    "DiagnosticCheckSet": "options",
    "PassManager": "pass_manager",
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
# What annotations are made of, by the names that IR classes have.
_TYPES = {
    "DistributedTensorType": "DistributedTensor",
    "ScalarType": "Scalar",
    "TensorType": "Tensor",
    "TileType": "Tile",
}

__all__ = [
    "ArgDirection",
    "CompiledProgram",
    "DiagnosticCheck",
    "DiagnosticCheckSet",
    "DiagnosticPhase",
    "DistributedCompiledProgram",
    "DistributedConfig",
    "DistributedTensorType",
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
    "PassManager",
    "Program",
    "Role",
    "RuntimeKind",
    "ScalarType",
    "TensorType",
    "TileType",
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
    if name in _TYPES:
        from ..language import _annotations

        return getattr(_annotations, _TYPES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
