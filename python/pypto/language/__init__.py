"""The language: `import pypto.language as pl`.

Types for annotations (`Tensor`, `Out`, ...), element types (`FP32`, ...), decorators (`jit`), and
the operations that DSL functions are written in; `help(pl.load)` tells what one does.
"""

from .._decorators import jit
from .._dtypes import DTYPES as _DTYPES, DataType
from .._jit import JITFunction
from .._program import InlineFunction, function, inline, program
from .._program_text import loads, loads_program, parse, parse_program
from . import _operations, parser
from ._annotations import (
    Array,
    InOut,
    MemRef,
    Out,
    Ptr,
    Scalar,
    TaskId,
    Tensor,
    TensorView,
    Tile,
    TileView,
    Tuple,
)
from ._dims import RUNTIME, DynVar, IntLike, dynamic

__pypto_path__ = "pl"

__getattr__ = _operations.missing("pl", __name__)

globals().update(_DTYPES)

__all__ = [
    "Array",
    "DataType",
    "DynVar",
    "InOut",
    "InlineFunction",
    "IntLike",
    "JITFunction",
    "MemRef",
    "Out",
    "Ptr",
    "RUNTIME",
    "Scalar",
    "TaskId",
    "Tensor",
    "TensorView",
    "Tile",
    "TileView",
    "Tuple",
    "dynamic",
    "function",
    "inline",
    "jit",
    "loads",
    "loads_program",
    "parse",
    "parse_program",
    "parser",
    "program",
    *_DTYPES,
]
# Last: it also defines names that Python has, such as `range`.
__all__ += _operations.fill("pl", globals())

# Names of their own for what programs write most.
Mem = globals()["MemorySpace"]
PtrType = Ptr
globals().update({layout.name: layout for layout in globals()["TensorLayout"]})
__all__ += ["Mem", "PtrType", *(layout.name for layout in globals()["TensorLayout"])]
