/* Statements but for those that have a header of their own (loops.h, scopes.h). */
#ifndef FRONTEND_STATEMENTS_H
#define FRONTEND_STATEMENTS_H

#include "frontend/lower.h"

void lower_block(lowering *fl, const syntax_block *block);
/* Whether no name stands twice in the tuple, but `_`; reports otherwise. */
bool check_named_once(lowering *fl, const syntax_expr *names);
/* A return, and one of that value (returns.c). */
void lower_return(lowering *fl, const syntax_stmt *s);
void lower_returned(lowering *fl, const syntax_stmt *s, dsl_value v);
/* name = v, as an assignment of the script does it. */
void assign_name(lowering *fl, int64_t name, dsl_value v, pypto_span span);
/* After the body: the return annotation against what the body returns. */
void check_results(lowering *fl);

#endif
