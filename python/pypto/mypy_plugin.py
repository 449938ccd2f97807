"""Lets mypy check programs: `plugins = pypto.mypy_plugin` in its configuration.

Annotations of DSL functions hold numbers, `pl.Tensor[[1, 256], pl.FP32]`, where a type checker wants
types. Behind this plugin they all mean Any, and what stands in their brackets is not looked at: the
compiler checks that. Only mypy imports this module.
"""

from __future__ import annotations

from typing import Callable, Optional, Type as TypeOf

from mypy.plugin import AnalyzeTypeContext, Plugin
from mypy.types import AnyType, Type, TypeOfAny

from ._dtypes import DTYPES
from .language import _annotations

_MODULES = ("pypto.language", "pypto.language.distributed")
_NAMES = {name for name, value in vars(_annotations).items() if hasattr(value, "__pypto_type_path__")}
_NAMES |= set(DTYPES)


def _anything(context: AnalyzeTypeContext) -> Type:
    return AnyType(TypeOfAny.explicit)


class DslTypes(Plugin):
    """What annotations are made of is Any."""

    def get_type_analyze_hook(
        self, fullname: str
    ) -> Optional[Callable[[AnalyzeTypeContext], Type]]:
        module, _, name = fullname.rpartition(".")
        return _anything if module in _MODULES and name in _NAMES else None


def plugin(version: str) -> TypeOf[Plugin]:
    """What mypy asks for."""
    return DslTypes
