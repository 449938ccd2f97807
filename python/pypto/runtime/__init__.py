"""Running programs: the configuration of a run, and the end of idle workers."""

from .. import _core
from .run_config import RunConfig

__all__ = ["RunConfig", "shutdown"]


def shutdown() -> None:
    """Ends all idle worker processes at once and releases their memory. Runs by itself at exit.

    One-shot calls keep their workers for the next call; after this no process, descriptor or
    mapping of the package is left until the next call starts new ones. Safe at any time.
    """
    _core.shutdown()
