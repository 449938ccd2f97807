/* What diag.c (which makes diagnostics) and status.c (which releases and renders them) share. */
#ifndef BASE_DIAG_INTERNAL_H
#define BASE_DIAG_INTERNAL_H

#include "base/alloc.h"

#include <pypto/status.h>

/* The diagnostic for exhausted memory: shared by all statuses, neither written nor freed. */
extern pypto_diagnostic diag_exhausted;

/* Frees one diagnostic and its strings; not those that follow it. */
void diag_release(pypto_diagnostic *d);

/* A diagnostic shows its own strings to the world as const. */
static inline void diag_free_text(const char *text)
{
    alloc_free((void *)(uintptr_t)text);
}
#endif
