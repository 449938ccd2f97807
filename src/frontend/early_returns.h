/* Early returns of functions that are spliced in: see early_returns.c. */
#ifndef FRONTEND_EARLY_RETURNS_H
#define FRONTEND_EARLY_RETURNS_H

#include "frontend/lower.h"
#include "frontend/syntax.h"

/* A body without them: what it returns is what these names are bound to at its end. */
typedef struct early_returns {
    syntax_block body;
    const char *const *names;
    int32_t count;
} early_returns;

/* Whether the body has a return in a branch. */
bool returns_early(const syntax_block *body);
/* The names of the function are declared. False: it would become too long. */
bool part_at_returns(const lowering *fl, const syntax_function *f, early_returns *found);

#endif
