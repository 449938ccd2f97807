"""The exception classes of `pypto.language.parser`, under the name that programs import them by."""

from . import *  # noqa: F403
from . import __all__ as __all__
