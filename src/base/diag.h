/* Diagnostics: the table of all of them, and how the compiler and the runtime make them.
 *
 * Each row of diagnostics.def is (NAME, "PYPTO-Xnnn", KIND, "title"): a stable code, the Python
 * class that it becomes, and what it is about in a few words. Letters: S syntax and language, T
 * types, C compiling, R running, H host calls, I internal. Append only; codes are never reused.
 *
 * The errors of one compile are found in the order in which the compiler happens to look, and shown in
 * the order of diag_sort: the most important first. What says that something is not what the rest of the
 * program takes it for comes first (sources, decorators, names, operations, annotations), then form, then
 * types, then rules for the whole program; within each by place. So the class of the exception, which is
 * that of the first, does not depend on how the compiler walks. */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "base/export.h"

#include <pypto/status.h>

#include <stdarg.h>

typedef enum diag_code {
#define DIAG(name, code, kind, title) DIAG_##name,
#include "base/diagnostics.def"
#undef DIAG
    DIAG_COUNT
} diag_code;

typedef struct diag_info {
    const char *code;
    pypto_error_kind kind;
    const char *title;
} diag_info;

const diag_info *diag_lookup(diag_code code) EXPORTED(diag_lookup);

/* What `pypto explain` prints: explanations.def. `example` is "" where none helps. */
typedef struct diag_explanation {
    const char *meaning;
    const char *example;
    const char *fix;
} diag_explanation;

const diag_explanation *diag_explain(diag_code code) EXPORTED(diag_explain);

extern const pypto_span SPAN_NONE;

/* What kernels and host functions say of DIAG_UNBOUND_NAME; the argument is the name. */
#define UNBOUND_TEXT \
    "Variable '%s' is not defined here: the loop that assigns it has had no turn that did so"

/* Adds one diagnostic to a status, after those it has. `hint` may be NULL. When memory is exhausted
 * the status becomes the statically allocated out-of-memory diagnostic. */
void diag_add(pypto_status *status, diag_code code, pypto_span span, const char *hint,
              const char *format, ...) EXPORTED(diag_add) __attribute__((format(printf, 5, 6)));
void diag_vadd(pypto_status *status, diag_code code, pypto_span span, const char *hint,
               const char *format, va_list args) EXPORTED(diag_vadd);

/* Add facts to the diagnostic added last: a note (behind those it has, on lines of their own) and
 * the text of the span's first line. When memory is exhausted the fact is lost, not the
 * diagnostic. */
void diag_note(pypto_status *status, const char *format, ...) __attribute__((format(printf, 2, 3)));
void diag_source(pypto_status *status, const char *line_text) EXPORTED(diag_source);

/* Give the diagnostic added last a place and a hint, unless it has them. */
void diag_place(pypto_status *status, pypto_span span);
void diag_hint(pypto_status *status, const char *hint);

/* A status with one diagnostic without a place: `return diag_status(DIAG_X, hint, "...", ...)`. */
pypto_status diag_status(diag_code code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The status for exhausted memory; owns nothing. */
pypto_status diag_no_memory(void) EXPORTED(diag_no_memory);

/* A failed system call: "cannot <doing>: <strerror(error)>". */
pypto_status diag_system(int error, const char *hint, const char *doing, ...)
    __attribute__((format(printf, 3, 4)));

/* Moves all diagnostics of `from` behind those of `to`; `from` becomes a success. */
void diag_append(pypto_status *to, pypto_status *from) EXPORTED(diag_append);

/* Puts the diagnostics of a finished compile into the order in which users see them, and drops
 * repetitions: a function that is lowered for several types makes the same mistake each time. */
void diag_sort(pypto_status *status);

static inline bool status_ok(pypto_status status)
{
    return status.kind == PYPTO_ERROR_NONE;
}
#define STATUS_OK ((pypto_status){PYPTO_ERROR_NONE, NULL})

#endif
