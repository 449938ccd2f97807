"""The distributed part of the language: `import pypto.language.distributed as pld`.

Window buffers and their views, the ranks of a communication domain, signals between them, and
access to the memory of peers.
"""

from .. import _operations
from .._annotations import CommCtx, DistributedTensor

__pypto_path__ = "pld"
__getattr__ = _operations.missing("pld", __name__)

__all__ = ["CommCtx", "DistributedTensor"]
__all__ += _operations.fill("pld", globals())
