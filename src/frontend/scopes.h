/* with, and the functions that bodies of scopes become. */
#ifndef FRONTEND_SCOPES_H
#define FRONTEND_SCOPES_H

#include "frontend/calls.h"

/* A scope that has been lowered and called: what it has computed can still become a result of it. */
struct scope_call {
    ir_function *f;
    ir_stmt *call;
    ir_block *block; /* where the call stands */
    bool defers;     /* it only waits: what it has read can be read behind it just as well */
    bool gives;      /* it may have a result */
};

/* A scope whose body becomes a function of its own: lowering.ir is that function meanwhile. */
typedef struct outline {
    struct outline *outer;
    int32_t depth;         /* of its body */
    const splice *spliced; /* where it stands */
    const syntax_stmt
        *returned;   /* a return of the body, which the function around it makes; NULL: none */
    dsl_value value; /* what that gives */
    bool copies;     /* its statement, a pl.assemble of a host function, is to be a kernel */
} outline;

/* ---- keywords.c ---- */

/* The arguments of a construct that is no operation, by the place of their names in `keys`. */
typedef struct keyword_rules {
    const char *word;        /* "pl.at", for messages */
    const char *const *keys; /* NULL behind the last */
    int32_t positional;      /* how many of the first may be given by position */
    const char *too_many;    /* message for more of them; NULL: the plain one */
} keyword_rules;
bool bind_keywords(lowering *fl, const keyword_rules *rules, const syntax_expr *call,
                   const syntax_expr **given);
/* Reports a mistake in a scope or a launch; false. */
bool bad_scope(lowering *fl, pypto_span span, const char *hint, const char *message);

/* ---- scopes.c ---- */

void lower_with(lowering *fl, const syntax_stmt *s);
/* Whether the loop is one of those that lower_scope_loop() lowers. */
bool is_scope_loop(lowering *fl, const syntax_stmt *s);
/* for i in pl.spmd(n): or pl.split_aiv(2, mode=...): True: it was one of them, and is done. */
bool lower_scope_loop(lowering *fl, const syntax_stmt *s);
/* pl.dump_tag(x) */
dsl_value lower_dump_tag(lowering *fl, const syntax_expr *e);

/* ---- outline.c ---- */

typedef struct outline_request {
    pld_plane plane;
    const char *name;
    pypto_span span;
    const syntax_block *body;
    int64_t block_index; /* a name that holds the block's index in the body, or -1 */
    pypto_span block_span;
    launch_request *launch;
    const syntax_expr *early; /* allow_early_resolve=, or NULL */
    bool copies;              /* see struct outline */
} outline_request;

/* Lowers the body as a function of its own and calls it here; false after an error. */
bool lower_outlined(lowering *fl, const outline_request *request);
/* An operation that becomes a task of a wrapper (op_def.as_task): a kernel that does nothing else, called here.
 * Its operands, which are checked, are handles, scalars and constants. */
dsl_value lower_as_task(lowering *fl, const op_call *call);
/* The value of an INSIDE binding is needed outside: it becomes a result of its scope, and the binding BOUND.
 * False: it stays inside. */
bool keep_scope_value(lowering *fl, int64_t name, binding *b);
/* Puts the scopes that f calls in front of it: fe->finished. */
void finish_scopes(frontend *fe, const ir_function *f);

/* ---- host_copies.c ---- */

/* pl.assemble(...) as a statement, assigned or returned, in a host function. True: it was that, and is done. */
bool lower_host_copy(lowering *fl, const syntax_stmt *s);

/* ---- deferred.c ---- */

/* Whether it waits by pld.system.defer_wait. */
bool has_deferred_wait(const ir_function *f);
/* The rules for such scopes, and true for all others. */
bool check_deferred(lowering *fl, const outline_request *request, const ir_stmt *call);

#endif
