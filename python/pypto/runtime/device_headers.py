"""Where the headers are that kernels are compiled with. The hardware's own, PTO-ISA, are not needed: these stand in their place."""

from __future__ import annotations

import os

from .. import _core

__all__ = ["ensure_pto_isa_root", "pto_isa_include_dir"]


def pto_isa_include_dir() -> str:
    """The folder with the headers that compiled programs include, <pypto/pld.h> and others. CompilerError when there is none."""
    return os.path.abspath(_core.include_dir())


def ensure_pto_isa_root() -> str:
    """The folder that has them in its `include`. Nothing is downloaded. CompilerError when there are none."""
    return os.path.dirname(pto_isa_include_dir())
