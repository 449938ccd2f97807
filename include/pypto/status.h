/* Errors as values: what every function of the library that can fail returns.
 *
 * A pypto_status with code 0 is success and owns nothing. Any other status owns a chain of one or
 * more diagnostics on the heap; whoever receives it passes it on or releases it with
 * pypto_status_clear(). The library never prints, exits or aborts.
 *
 * Thread rule: a status is a plain value; use one from one thread at a time. */
#ifndef PYPTO_STATUS_H
#define PYPTO_STATUS_H

#include <pypto/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of error: enum name, Python class that the package raises for it. Append only. */
#define PYPTO_ERROR_KINDS(X)                          \
    X(PARSER_SYNTAX, "ParserSyntaxError")             \
    X(PARSER_TYPE, "ParserTypeError")                 \
    X(UNDEFINED_VARIABLE, "UndefinedVariableError")   \
    X(UNSUPPORTED_FEATURE, "UnsupportedFeatureError") \
    X(INVALID_OPERATION, "InvalidOperationError")     \
    X(TYPE, "TypeError")                              \
    X(VALUE, "ValueError")                            \
    X(COMPILER, "CompilerError")                      \
    X(DEVICE, "DeviceError")                          \
    X(DEADLOCK, "DeadlockError")                      \
    X(WORKER_DIED, "WorkerDiedError")                 \
    X(INTERRUPTED, "KeyboardInterrupt")               \
    X(MEMORY, "MemoryError")                          \
    X(SYSTEM, "SystemError")                          \
    X(INTERNAL, "InternalError")                      \
    X(PARSER, "ParserError")                          \
    X(SSA_VIOLATION, "SSAViolationError")             \
    X(COLLECTIVE_MISMATCH, "CollectiveMismatchError") \
    X(LINT, "LintError")                              \
    X(DOMAIN, "DomainError")

typedef enum pypto_error_kind {
    PYPTO_ERROR_NONE = 0,
#define PYPTO_ERROR_ENUM(name, python) PYPTO_ERROR_##name,
    PYPTO_ERROR_KINDS(PYPTO_ERROR_ENUM)
#undef PYPTO_ERROR_ENUM
} pypto_error_kind;

/* One thing that went wrong. All strings are UTF-8, owned by the diagnostic; `hint`, `note` and
 * `source` may be NULL. `source` is the text of the span's first line, without its newline. */
typedef struct pypto_diagnostic {
    const char *code; /* stable, e.g. "PYPTO-C201"; owned by the library, lives for ever */
    pypto_error_kind kind;
    pypto_span span;
    const char *message; /* what went wrong */
    const char *hint;    /* what to do */
    const char *note;    /* further facts, possibly several lines */
    const char *source;
    struct pypto_diagnostic *next; /* further errors of the same compile */
} pypto_diagnostic;

typedef struct pypto_status {
    pypto_error_kind kind;         /* kind of the first diagnostic; PYPTO_ERROR_NONE is success */
    pypto_diagnostic *diagnostics; /* owned; on success NULL, or what the lint warns of if asked */
} pypto_status;

#define PYPTO_OK_INIT          \
    {                          \
        PYPTO_ERROR_NONE, NULL \
    }

/* Releases what a status owns and makes it a success. */
PYPTO_API void pypto_status_clear(pypto_status *status);

/* The whole status as text: file:line:column, message, the source line with the place underlined,
 * notes and hints. The caller releases it with free(). NULL when memory is exhausted. */
PYPTO_API char *pypto_status_text(const pypto_status *status);

/* "ParserSyntaxError" and so on; "" for success. Never NULL. */
PYPTO_API const char *pypto_error_kind_name(pypto_error_kind kind);

#ifdef __cplusplus
}
#endif
#endif
