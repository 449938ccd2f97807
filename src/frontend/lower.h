/* The state of the front end: of one compile, and of the one function that is being lowered. Headers, by
 * subject, and the files that answer for them:
 *
 *   lower.h        lower.c         the driver, sources of functions, specialisations, errors
 *                  entry.c         where a program starts: arguments from Python; the host function of
 *                                  those without
 *   values.h       values.c        what expressions evaluate to
 *   bindings.h     bindings.c      names of the function: bindings, targets of assignments
 *   names.h        names.c         what a name outside the function means; facts; dotted paths of pl and pld
 *   signature.h    annotations.c   annotation syntax to types
 *                  annotation_words.c, annotation_shapes.c, annotation_slots.c  its parts
 *                  dims.c          pl.dynamic dimensions: symbols, how a function recovers them, checks at calls
 *                  marks.c         which dimensions of bare parameters are dynamic because of callees
 *                  signature.c     parameters, from annotations and the caller's or entry's arguments
 *                  writes.c        parameters that are written must be declared so
 *   scalars.h      scalars.c       typed arithmetic, conversions
 *                  scalar_operands.c  what operators accept, and to which type two of them are brought
 *                  literals.c      arithmetic among literals, as Python does it
 *                  comparisons.c   comparisons, `and`, `or`, conditions
 *   expressions.h  expressions.c   names, attributes, lists; dispatches to the others
 *                  builtins.c      min, max, abs, static_assert, extents, `a if c else b`
 *                  operations.c    operations of the table: argument binding and IR
 *                  tensor_values.c tensors where kernels want tiles
 *                  printing.c      pl.printf
 *                  host_collectives.c  collectives in host functions
 *                  host_copies.c   pl.assemble in host functions
 *   subscripts.h   subscripts.c    x[...]: views, elements, assignments
 *                  host_views.c    x[...] in host functions
 *                  arrays.c        pl.array: elements
 *   calls.h        calls.c         calls between DSL functions
 *                  call_arguments.c  their arguments
 *                  made_results.c  results that the callee makes itself
 *                  splices.c       calls of functions that have no code of their own
 *   early_returns.h  early_returns.c  their returns in branches
 *                  attributes.c    pl.func_attr
 *                  launches.c      how a task is submitted: deps, pl.no_dep, predicates, pl.submit
 *   scopes.h       scopes.c        with and its contexts
 *                  scope_at.c      pl.at
 *                  scope_spmd.c    pl.spmd
 *                  scope_arguments.c  what several scopes take
 *                  outline.c       the body of a scope as a function of its own
 *                  outline_names.c, outline_results.c  what its names mean, and what it gives
 *                  deferred.c      rules for scopes with pld.system.defer_wait
 *                  keywords.c      arguments of what is no operation
 *   statements.h   statements.c    assignments and returns
 *   flow.h         flow.c          paths, what names are bound to where they meet; if
 *                  open_names.c    names that a loop binds only if it has had a turn
 *                  mentions.c      looking ahead in the text: where names are read and bound
 *   loops.h        loops.c         for and while, break and continue
 *                  loop_ends.c     what names are bound to in the next turn, and behind the loop
 *                  carries.c       explicit carries: init_values and pl.yield_
 *                  iterators.c     pl.range and its relatives
 *
 * Idea of errors: whatever fails reports once and evaluates to VALUE_POISON; whoever meets a poisoned
 * value stays silent and passes it on. So one mistake gives one message, and the rest of the program
 * is still checked. */
#ifndef FRONTEND_LOWER_H
#define FRONTEND_LOWER_H

#include "base/diag.h"
#include "base/map.h"
#include "base/text.h"
#include "frontend/bindings.h"
#include "frontend/frontend.h"
#include "frontend/values.h"

typedef struct frontend frontend;
typedef struct instance instance;
typedef struct lowering lowering;
typedef struct splice splice;
typedef struct outline outline;
typedef struct launch_request launch_request;
typedef struct loop_frame loop_frame;
typedef struct carry_frame carry_frame;
typedef struct loop_memory loop_memory;
typedef VEC(loop_memory *) loop_memories;

/* ---- one compile ---- */

/* A function that is or has been lowered for one typing of its arguments. */
typedef enum instance_state { INSTANCE_RUNNING, INSTANCE_DONE, INSTANCE_FAILED } instance_state;

struct instance {
    const char *key;
    int32_t function;
    ir_function *ir;
    instance_state state;
    bool signature_ok;    /* the parameters' types are known */
    ir_function *wrapper; /* of a kernel that the host dispatches; else NULL */
};

struct frontend {
    arena *a;
    const frontend_embedder *embedder;
    frontend_result *result;
    ir_program *program;
    pypto_status errors;
    int64_t error_count; /* ever added, also those that a repeated loop body dropped */
    bool checking;       /* frontend_check() */
    map answers;         /* "function name" -> name_value */
    map sources;         /* "function" -> source_entry */
    VEC(instance *) instances;
    VEC(ir_function *) finished; /* callees before callers */
};

/* ---- one function ---- */

/* A dynamic dimension as the function's signature mentions it. */
typedef struct dim_symbol {
    const char *name;
    const ir_expr *expr; /* the dimension variable, or the scalar parameter of that name */
    ir_var *var;         /* NULL for a scalar parameter */
    pypto_span span;     /* of the first mention */
    bool bound;
} dim_symbol;

/* What is noted of an IR function while its statements are made. A scope that becomes a function has its own;
 * a function that is spliced in adds to its caller's. */
typedef struct function_notes {
    VEC(dim_symbol) symbols;
    VEC(ir_var *) cells;       /* handles that statements set at run time */
    VEC(ir_var *) late_vars;   /* read before they are assigned: task ids 0, BOOLs false at first */
    VEC(ir_var *) tagged;      /* by pl.dump_tag */
    VEC(ir_var *) world_loops; /* loop variables that run over all devices */
    VEC(ir_var *) world_sizes; /* variables that hold pld.world_size() */
    VEC(ir_var *) rank_counts; /* variables that hold pld.nranks(ctx) */
    int32_t temporaries;
    bool returned; /* a return statement was seen: ir->results is set */
    bool result_poisoned;
} function_notes;

/* Where the lowering is: in which text, with which meaning of its names, and where statements go. Who enters
 * something for a while (the body of a loop, of a scope, of a function that is spliced in) makes a copy, changes
 * what is different there, and goes on with the copy; so nothing has to be put back. What must outlast
 * the copy is behind pointers. The trail is not: a copy takes back what it has bound (binding_undo). */
struct lowering {
    frontend *fe;
    arena *a;
    /* The text. */
    int32_t function; /* the embedder's number */
    const syntax_function *syntax;
    splice *spliced;    /* the innermost; NULL in the function's own body */
    bool no_auto_scope; /* an option of the function: pl.scope() may stand in it */
    bool in_signature;  /* annotations may introduce symbols */
    name_scope names;
    name_changes trail;
    loop_memories *loop_memories;
    loop_frame *loop;
    carry_frame *carries;     /* of the loop whose body is at hand */
    bool in_branch;           /* a branch of an if is nearer than any loop */
    bool terminated;          /* the current path has returned */
    const syntax_expr *whole; /* the value of the statement at hand */
    /* The part of an expression at hand is not evaluated always: the right side of `and`, a choice. */
    bool sometimes;
    const ir_expr
        *reached; /* only if this is true, for parts whose statements stand in front; or NULL */
    launch_request *launch; /* of the call that is evaluated next */
    bool manual;            /* in pl.manual_scope: arguments order nothing */
    int32_t scopes;         /* of a wrapper: how many there are around */
    const ir_expr *lane;    /* in pl.split_aiv: what pl.tile.get_subblock_idx() is; NULL: 0 */
    /* Where statements go. */
    ir_function *ir;
    function_notes *notes;
    outline *outlined; /* the innermost */
    ir_block *block;
    int32_t depth; /* 0 in the function's own block */
    int32_t loops; /* enclosing loops */
};

/* ---- lower.c ---- */

/* Drops variables that no statement names; parameters and dimensions stay. */
void prune_variables(frontend *fe, ir_function *f);
/* Adds a diagnostic with the text of its source line; always VALUE_POISON. */
dsl_value report(frontend *fe, diag_code code, pypto_span span, const char *hint,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
/* For diagnostics that somebody else has just added: counts it and gives it its source line. */
void reported(frontend *fe);
/* The function's source; NULL after an error has been reported (once). */
const frontend_source *source_of(frontend *fe, int32_t function);

/* What is known of an argument when a function is specialised. */
typedef struct given_param {
    enum {
        GIVEN_UNKNOWN, /* an argument whose error has been reported */
        GIVEN_OPEN,    /* the annotation alone decides */
        GIVEN_TYPE,
        GIVEN_CONSTANT
    } kind;
    ir_type type;          /* TYPE: dims are constants or the caller's expressions */
    const ir_expr *number; /* CONSTANT: a scalar of the entry, baked in */
} given_param;

/* The specialisation for these arguments, lowered now or before; NULL when there is no source. */
instance *specialise(frontend *fe, int32_t function, const given_param *given, int32_t count);

/* ---- entry.c ---- */

/* Lowers the entry and all that it reaches into fe->program; makes a host function where there is none.
 * `args` as frontend_lower() has them. */
void lower_entry(frontend *fe, int32_t entry, const frontend_arg *args, int32_t arg_count);
/* A new function with f's parameters and results that does nothing but call it, on the first device if it
 * is one of the host. Whoever asks for it puts it into fe->finished. */
ir_function *caller_of(frontend *fe, ir_function *f, pld_plane plane);
/* The per-device wrapper whose body is a call of that kernel; made at the first request. */
ir_function *wrapper_of(frontend *fe, instance *kernel);

#endif
