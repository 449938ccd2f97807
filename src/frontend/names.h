/* What a name outside the function means. */
#ifndef FRONTEND_NAMES_H
#define FRONTEND_NAMES_H

#include "frontend/frontend.h"
#include "frontend/lower.h"

const name_value *resolve_name(frontend *fe, int32_t function, const char *name);
/* The value of a name that is none of the function's own; reports undefined ones. */
dsl_value outer_name(lowering *fl, const char *name, pypto_span span);
/* What `a.b.c` means when its first name is none of the function's own: a dotted name of pypto, a
 * member of a module or object of the script, or another method (`self.b`). NULL when it is something
 * else; NAME_UNDEFINED when there is no such member. */
const name_value *outer_meaning(lowering *fl, const syntax_expr *e);
/* What a dotted name of pypto stands for. */
dsl_value path_value(arena *a, const char *path, pypto_span span);
/* The value of an attribute whose object is a Python object outside the function. False: it is not. */
bool outer_member(lowering *fl, const syntax_expr *e, dsl_value *v);

#endif
