/* A scope that becomes a function, while it does, for the files that share the work. */
#ifndef FRONTEND_OUTLINE_INTERNAL_H
#define FRONTEND_OUTLINE_INTERNAL_H

#include "frontend/flow.h"
#include "frontend/scopes.h"

/* A variable of the function around, and the parameter that it is inside. */
typedef struct capture {
    ir_var *param;
    ir_var *outer;
} capture;

typedef struct outlining {
    lowering *fl;              /* of the function around */
    const scope_call *results; /* NULL: values stay in the scope */
    ir_function *f;
    VEC(capture) captures;
    capture *args; /* those of them that are left, one per parameter */
    bool *used;    /* by variable of f */
} outlining;

/* ---- outline_names.c ---- */

/* Before the new function is entered: statements that fetching a name takes stand in the one around. So does
 * the check of a name that may not be bound, if the body starts with reading it. */
void settle_names(lowering *fl, const name_set *names, const outline_request *request);
/* The parameter for a variable of the function around: a scalar or a handle. */
ir_var *captured(outlining *o, ir_var *outer);
/* Binds the names to what they are inside, for the lowering of the body. */
void enter_names(lowering *inside, outlining *o, const name_set *names);
/* At the end of the body: variables of its loops that are read behind it become numbers of it. */
void settle_loop_variables(lowering *inside, const flow_path *end);
/* A value of the body in terms of the function around. False: it exists in the body only. */
bool value_outside(const outlining *o, dsl_value *v);
/* Binds a name that the body has bound to what that is outside. */
void leave_name(const outlining *o, int64_t name, const binding *b);

#endif
