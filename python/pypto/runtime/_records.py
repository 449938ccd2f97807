"""What a RunConfig wants recorded of a call, as the library takes it (python/module/records.c)."""

from __future__ import annotations

from . import _telling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    from .run_config import RunConfig

    Wanted = tuple[str | None, bool, int, int, int, bool, bool, bool]

FOLDER = "dfx_outputs"

# Only when dispatches began and ended, which Worker.times() then tells.
TIMES: Wanted = (None, False, 0, 0, 0, False, False, True)


def wanted_of(
    config: RunConfig | None, output_dir: str | PathLike[str], per_rank: bool
) -> Wanted | None:
    """None unless a flag is on. Files go below `output_dir`: with `per_rank`, into a folder for each dispatch of
    each rank."""
    if config is None or not config.any_dfx_enabled():
        return None
    directory = f"{output_dir}/{FOLDER}"
    _telling.tell(_telling.INFO, "records of a call go to %s", directory)
    return (
        directory,
        per_rank,
        config.enable_chip_swimlane,
        config.enable_dump_args,
        config.enable_pmu,
        bool(config.enable_dep_gen),
        bool(config.enable_scope_stats),
        False,
    )
