/* for and while: what is kept per loop while its body is lowered, and what stands behind `in`. */
#ifndef FRONTEND_LOOPS_H
#define FRONTEND_LOOPS_H

#include "frontend/flow.h"

/* The innermost loop that is being lowered. */
typedef struct loop_frame {
    struct loop_frame *outer;
    int64_t mark; /* of the trail, where the body began */
    flow_paths breaks;
    flow_paths continues;
    const char
        *no_jumps; /* "parallel loops": break and continue are refused; NULL: they may stand */
} loop_frame;

/* The loop with explicit carries whose body, not a block inside it, is being lowered. */
typedef struct carry_frame {
    const int64_t *names; /* that hold the carried values */
    int32_t count;
    const syntax_stmt *yield; /* the statement that was found, or NULL */
} carry_frame;

/* What a loop was found to need: names that it carries as handles, and names whose type becomes wider in
 * its body (type_widens). So lowering it again (inside another loop that is lowered again) does not have to find out. */
typedef struct widened_name {
    int64_t name;
    ir_type type;
} widened_name;
typedef struct loop_memory {
    const syntax_stmt *loop;
    name_set carried;
    VEC(widened_name) widened;
    int32_t attempts;
} loop_memory;

/* ---- loops.c ---- */

void lower_for(lowering *fl, const syntax_stmt *s);
void lower_while(lowering *fl, const syntax_stmt *s);
/* break or continue */
void lower_jump(lowering *fl, const syntax_stmt *s);
/* True: the statement was a pl.yield_ that a loop with explicit carries answers for, and is done. That of
 * an if is an assignment like any other. */
bool lower_yield(lowering *fl, const syntax_stmt *s);

/* ---- iterators.c ---- */

typedef enum iterator_kind {
    ITERATOR_RANGE,
    ITERATOR_PARALLEL,
    ITERATOR_UNROLL,
    ITERATOR_PIPELINE,
    ITERATOR_WHILE
} iterator_kind;

/* What stands behind `in` of a for statement. */
typedef struct iterator {
    iterator_kind kind;
    bool ok;
    const ir_expr *start;
    const ir_expr *stop;
    const ir_expr *step;
    const syntax_expr *init_values; /* NULL: none */
    bool over_world;                /* range(pld.world_size()) */
    bool surely_runs;
} iterator;

iterator lower_iterator(lowering *fl, const syntax_expr *e);
/* Reports a mistake in a loop; false. */
bool bad_loop(lowering *fl, pypto_span span, const char *hint, const char *message);
/* e calls that operation of pypto, such as "pl.yield_"; evaluates the callee only. */
bool calls_path(lowering *fl, const syntax_expr *e, const char *path);
/* The word of pypto, such as "pl.at", that e calls; NULL for anything else. Reports nothing. */
const char *called_path(lowering *fl, const syntax_expr *e);

#endif
