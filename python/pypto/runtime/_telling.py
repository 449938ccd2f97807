"""Messages of the runtime to its log, `log_config`, which is loaded only when somebody may listen."""

from __future__ import annotations

import sys

DEBUG, INFO, TIMING = 10, 20, 25

# Whether each call is to be told of: looked at on its way. configure_log() sets it.
tells_calls = False


def tell(level: int, text: str, *values: object) -> None:
    """`text` with its values, as logging formats them."""
    if "logging" not in sys.modules:
        return  # whoever has handlers or levels has loaded it
    from .log_config import logger

    logger.log(level, text, *values, stacklevel=3)
