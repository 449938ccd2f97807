"""Options of compiles, by another name that drivers import them by; they are those of `pypto.ir`."""

from .ir.options import (
    DiagnosticCheck as DiagnosticCheck,
    DiagnosticCheckSet as DiagnosticCheckSet,
    DiagnosticPhase as DiagnosticPhase,
    MemoryPlanner as MemoryPlanner,
    PassContext as PassContext,
    RuntimeKind as RuntimeKind,
    VerificationLevel as VerificationLevel,
)
