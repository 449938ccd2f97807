"""The language: `import pypto.language as pl`.

Types for annotations (`Tensor`, `Out`, ...), element types (`FP32`, ...), decorators (`jit`), and
the operations that DSL functions are written in; `help(pl.load)` tells what one does.
"""

from .._dtypes import DTYPES as _DTYPES, DataType
from .._jit import JITFunction, jit
from . import _operations, parser
from ._annotations import InOut, Out, Scalar, Tensor, Tile, Tuple
from ._dims import DynVar, dynamic

__pypto_path__ = "pl"

__getattr__ = _operations.missing("pl", __name__)

globals().update(_DTYPES)

__all__ = [
    "DataType",
    "DynVar",
    "InOut",
    "JITFunction",
    "Out",
    "Scalar",
    "Tensor",
    "Tile",
    "Tuple",
    "dynamic",
    "jit",
    "parser",
    *_DTYPES,
]
# Last: it also defines names that Python has, such as `range`.
__all__ += _operations.fill("pl", globals())
