/* Between verify.c and verify_values.c. */
#ifndef PASSES_VERIFY_INTERNAL_H
#define PASSES_VERIFY_INTERNAL_H

#include "passes/passes.h"

#include "base/diag.h"

typedef struct verifier {
    ir_program *p; /* read only, but op_check wants to allocate */
    ir_function *f;
    const ir_stmt *s;
    const char *after;
    int64_t words;
    uint64_t *defined; /* variables that are assigned here, by id */
    /* Of the innermost loop: what is assigned at every break and continue so far; NULL: none yet. */
    uint64_t *at_break;
    uint64_t *at_continue;
    int32_t loops;
    pypto_status *errors;
} verifier;

static inline bool verify_failed(const verifier *v)
{
    return !status_ok(*v->errors);
}

/* Reports a defect at the statement that is looked at, if it is the first one. */
void verify_fail(verifier *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* verify_values.c */
void verify_expr(verifier *v, const ir_expr *e);
void verify_integer(verifier *v, const ir_expr *e, const char *what);
void verify_do(verifier *v, const ir_stmt *s);
void verify_call(verifier *v, const ir_stmt *s);
void verify_assign(verifier *v, const ir_stmt *s);

#endif
