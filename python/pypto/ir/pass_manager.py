"""How programs are optimised: the strategy, of which there is one, and the passes by themselves."""

from __future__ import annotations

from .options import OptimizationStrategy as OptimizationStrategy, chosen

__all__ = ["OptimizationStrategy", "PassManager"]

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any

    from .._program import Program


class PassManager:
    """Runs front end and passes without making code.

    strategy   an `OptimizationStrategy`; None is `Default`
    """

    def __init__(self, strategy: Any = None) -> None:
        self.strategy: Any = chosen(
            "strategy", strategy, OptimizationStrategy, OptimizationStrategy.Default
        )

    @classmethod
    def get_strategy(cls, strategy: Any = None) -> PassManager:
        """The passes of a strategy."""
        return cls(strategy)

    def run_passes(self, program: Any, platform: str | None = None) -> Program:
        """The `ir.Program` behind all passes, whose text is its IR: what `ir.compile` of the program, for the platform, makes code of.
        Raises what is wrong with it, as `ir.compile` does."""
        return self.run_each(program, platform)[-1][1]

    def run_each(self, program: Any, platform: str | None = None) -> list[tuple[str, Program]]:
        """The program, for the platform, behind each stage, with the name of that: the front end's result first, then each pass."""
        from .. import _core
        from .._program import Program
        from ..backend import platform_for
        from ..errors import TypeError as PyptoTypeError
        from .compiling import entries_of, parameter_names

        if not isinstance(program, Program):
            raise PyptoTypeError(f"PassManager takes an ir.Program, not {type(program).__name__}")
        (entry, *others) = entries_of(program)
        if others:
            raise PyptoTypeError(
                f"program {program.name} has several orchestrations, each of which is compiled by itself"
            )
        names = parameter_names(entry)
        stages = _core.lower(entry, names, None, platform_for(platform, None), True)[3]
        return [(name, Program._of_text(program.name, text)) for name, text in stages]
