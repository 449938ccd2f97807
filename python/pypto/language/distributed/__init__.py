"""The distributed part of the language: `import pypto.language.distributed as pld`.

Window buffers and their views, the ranks of a communication domain, signals between them, and
access to the memory of peers.
"""

from .. import AtomicType, _operations  # local stores have it, too
from .._annotations import CommCtx, DistributedTensor

CommCtxType = CommCtx

__pypto_path__ = "pld"
__getattr__ = _operations.missing("pld", __name__)

__all__ = ["AtomicType", "CommCtx", "CommCtxType", "DistributedTensor"]
__all__ += _operations.fill("pld", globals())
