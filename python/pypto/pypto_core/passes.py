"""Options of compiles, by the name that drivers import them by; they are those of `pypto.ir`."""

from ..ir.options import (
    DiagnosticPhase as DiagnosticPhase,
    MemoryPlanner as MemoryPlanner,
    PassContext as PassContext,
    RuntimeKind as RuntimeKind,
    VerificationLevel as VerificationLevel,
)
