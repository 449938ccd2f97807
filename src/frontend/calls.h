/* Calls of DSL functions, and how the tasks that they submit are launched. */
#ifndef FRONTEND_CALLS_H
#define FRONTEND_CALLS_H

#include "frontend/lower.h"

/* A function that is being spliced into the one at hand. */
typedef struct splice {
    struct splice *outer;
    int32_t function;
    int32_t depth; /* of its body */
    bool returned;
    dsl_value value; /* what it returned */
} splice;

/* A task that is about to be submitted, by the next call: what the script says besides the arguments. */
typedef struct launch_request {
    ir_launch launch;
    const char *const *independent; /* names of variables whose arguments order nothing */
    int32_t independent_count;
    const char *const *marked; /* names of variables whose arguments are marked for dumps */
    int32_t marked_count;
    ir_stmt *call; /* the call that has taken it; NULL: none yet */
} launch_request;

/* ---- calls.c ---- */

dsl_value lower_call(lowering *fl, int32_t function, const syntax_expr *call);
/* pl.func_attr({...}): checked, and without effect. */
dsl_value lower_func_attr(lowering *fl, const syntax_expr *call);

/* ---- launches.c ---- */

/* The value of no task. */
dsl_value no_task(arena *a, pypto_span span);
/* deps=[...]: the tasks in it. `own`: the name that the new task's id is assigned to, or NULL. */
bool lower_deps(lowering *fl, const syntax_expr *list, const char *own, ir_launch *launch);
/* predicate=(t[i] > 0) */
bool lower_predicate(lowering *fl, const syntax_expr *e, ir_launch *launch);
/* A number of blocks. `what` names it in messages: "core_num". */
bool lower_blocks(lowering *fl, const syntax_expr *e, const char *what, ir_launch *launch);
/* no_dep_args=[...] and dumps=[...]: names of tensors. */
bool lower_name_list(lowering *fl, const char *word, const char *key, const syntax_expr *list,
                     const char *const **names, int32_t *count);
/* True or False, written so. */
bool check_bool_literal(lowering *fl, const char *word, const char *key, const syntax_expr *e);
/* The argument itself of pl.no_dep(x), and *independent becomes true; NULL after an error. */
const syntax_expr *without_no_dep(lowering *fl, const syntax_expr *e, bool *independent);
/* Adds an argument to those that order nothing; reports one that the set has no place for. */
bool add_independent(lowering *fl, int64_t argument, pypto_span span, uint64_t *set);
/* Gives a call of a wrapper its launch, from the request (or NULL) and the scope around it. */
void attach_launch(lowering *fl, ir_stmt *call, launch_request *request, uint64_t independent_args);
/* A new variable for the id of the call's task, which is assigned to the name (-1: to none). */
ir_var *capture_task(lowering *fl, ir_stmt *call, int64_t name, pypto_span span);
/* pl.submit, pl.spmd_submit, pl.system.task_dummy. */
dsl_value lower_submit(lowering *fl, const syntax_expr *e, bool blocks);
dsl_value lower_join(lowering *fl, const syntax_expr *e);

#endif
