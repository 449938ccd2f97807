/* A loop while it is lowered, for the files that share the work. */
#ifndef FRONTEND_LOOPS_INTERNAL_H
#define FRONTEND_LOOPS_INTERNAL_H

#include "frontend/loops.h"

/* The statement, and one attempt at lowering its body. */
typedef struct loop {
    const syntax_stmt *syntax;
    syntax_block body;
    const syntax_expr *condition; /* of a while, else NULL */
    int64_t target;               /* the loop variable's name, or -1 */
    pypto_span target_span;
    iterator range;
    name_set assigned; /* names that live on after a turn, without the target */
    carry_frame *carries;
    const char *no_jumps;
    /* One attempt. */
    binding **entry; /* of the assigned names, where a turn starts: copies that show who is read */
    bool endless;    /* the condition is always true */
    ir_stmt *stmt;
    flow_paths turns; /* the ends of turns */
    flow_paths breaks;
} loop;

/* Where the turns and the breaks of one attempt come together. */
typedef struct meeting {
    flow_paths paths; /* turns, then breaks */
    int64_t turns;    /* how many are turns */
    binding ***ends;  /* per path, per assigned name */
    binding **target; /* per path; NULL without a loop variable */
} meeting;

/* ---- loops.c ---- */

/* Lowers the body until every name that it carries has a variable. */
void lower_loop(lowering *fl, loop *l);
/* Bounds are evaluated once: one that reads what the body assigns is kept in a temporary. */
const ir_expr *fixed_bound(lowering *fl, const name_set *assigned, const ir_expr *e);
/* "parallel loops", for loops of that kind that refuse break and continue; NULL: they may stand. */
const char *jump_refusal(iterator_kind kind);

/* ---- loop_ends.c ---- */

/* The paths that lead to the end of the body, with what they bind. */
meeting meet(lowering *fl, const loop *l);
/* Brings what the turns end with to where the next turn expects it. False: names in `missing` lack a variable
 * for that, or one of a wider type. */
bool settle_ends(lowering *fl, const loop *l, meeting *m, name_set *missing);
/* Binds the names for what follows the loop. */
void finish_loop(lowering *fl, const loop *l, meeting *m);
/* What a name of `missing` needs: a handle a variable at all, anything else a type that holds what all
 * turns end with. */
void remember(lowering *fl, const loop *l, const meeting *m, loop_memory *memory,
              const name_set *missing);

/* ---- carries.c ---- */

/* A for statement whose iterator has init_values. */
void lower_carrying(lowering *fl, const syntax_stmt *s, const iterator *range);

#endif
