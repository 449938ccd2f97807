/* Names of the function that is being lowered: what they are bound to, where their values live, and how
 * they are read and assigned. bindings.c has the functions, and the rules. */
#ifndef FRONTEND_BINDINGS_H
#define FRONTEND_BINDINGS_H

#include "base/map.h"
#include "base/vec.h"
#include "frontend/values.h"

typedef struct lowering lowering;

typedef enum binding_state {
    BINDING_UNBOUND,  /* assigned somewhere in the function, but not yet on this path */
    BINDING_BOUND,    /* value */
    BINDING_POISONED, /* its definition failed */
    BINDING_PARTIAL,  /* defined on some of the paths that lead here: span, by_loop */
    BINDING_CONFLICT, /* defined with different types on the paths that lead here: v, other */
    BINDING_OUTSIDE, /* v is a value of the function around the scope at `span`, and cannot enter it */
    BINDING_INSIDE,  /* v is a value of the scope at `span`, whose function is over: scope */
    BINDING_LOOP_END /* was the variable of a loop that has ended: loop, block, previous */
} binding_state;

typedef struct scope_call scope_call;

/* A binding does not change once others may see it; assigning makes a new one. Only `read` is a
 * mark. */
typedef struct binding {
    binding_state state;
    dsl_value v;
    pypto_span span;       /* of the definition; PARTIAL: of the `if`, or of the loop */
    bool by_loop;          /* PARTIAL: because a loop may not run */
    dsl_value other;       /* CONFLICT: what the other definition binds */
    pypto_span other_span; /* CONFLICT: of the other one */
    int32_t depth;         /* nesting of the block that holds the definition */
    bool read;
    /* BOUND, LOOP_END, INSIDE: only if a loop has had a turn, or a turn that came so far (open_names.c). */
    bool open;
    /* v.var belongs to this name alone: assigning a handle sets it at run time. */
    bool cell;
    /* In a loop body: the binding from before the loop that this one stands for. */
    struct binding *origin;
    /* LOOP_END: the FOR statement, the block it stands in, what the name was before. */
    ir_stmt *loop;
    ir_block *block;
    struct binding *previous;
    const scope_call *scope; /* INSIDE: NULL when the value cannot leave it */
} binding;

typedef VEC(ir_var *) var_list;
typedef VEC(int64_t) name_set;

/* A place behind which a name is bound: the end of a block, in front of the jump that ends it. */
typedef struct bound_place {
    ir_block *block;
    bool jumps;
    pypto_span span;
} bound_place;

/* What belongs to one name. A loop with explicit carries has its own for the names that live in it only,
 * and so has a scope that becomes a function. */
typedef struct name_storage {
    var_list vars; /* one per type of scalar and tile */
    /* While bindings are open: where the name is bound for certain, and the BOOL variable that says
     * whether such a place has been passed; NULL until somebody asks. */
    VEC(bound_place) places;
    ir_var *guard;
} name_storage;

/* An answer of crosses_scopes(), which looks through the whole function. */
typedef struct name_crossing {
    bool known;
    bool crosses;
} name_crossing;

typedef struct name_scope {
    map index; /* name -> &positions[i] */
    const char **names;
    binding **bindings;
    int32_t
        *assignments; /* statements of the function that bind the name; a parameter counts as one */
    name_storage *storage;
    name_crossing *crossings;
    int64_t *slots; /* per name: scratch of whoever collects names, -1 between uses */
    int64_t count;
    int64_t capacity;
} name_scope;

/* What a name was bound to before; names.bindings is changed by binding_set() only, which records it. */
typedef struct name_change {
    int64_t name;
    binding *b;
} name_change;
typedef VEC(name_change) name_changes;

/* ---- declaring, binding, reading ---- */

void binding_declare(lowering *fl, const char *name, bool assigned);
/* Declares every name that the block binds. */
void binding_collect(lowering *fl, const syntax_block *block);
int64_t binding_find(const lowering *fl, const char *name); /* -1: none of the function's names */
/* The indices of the names that a block binds, each once, in order. */
void names_bound(const lowering *fl, const syntax_block *block, name_set *set);
bool name_set_has(const name_set *set, int64_t name);
/* Adds the name if it is not there. */
void name_set_add(arena *a, name_set *set, int64_t name);
void bind_name(lowering *fl, int64_t name, dsl_value v, pypto_span span);
void binding_poison(lowering *fl, int64_t name);
/* Reads a name of the function. */
dsl_value binding_read(lowering *fl, int64_t name, pypto_span span);
/* Where an operation with a result of that type computes when it is assigned to the name (-1: to
 * none). */
ir_var *binding_target(lowering *fl, int64_t name, const ir_type *type, pypto_span span);
ir_var *temporary(lowering *fl, const ir_type *type, pypto_span span);
/* target = v, for a scalar, tile or handle; nothing when it is there already. */
void emit_assign(lowering *fl, ir_var *target, const dsl_value *v, pypto_span span);
/* Whether the variable is one of the function that is being lowered. */
bool is_own(const lowering *fl, const ir_var *var);
/* What is read before it is assigned starts as no task, or as false: at the head of fl->ir. */
void clear_late_vars(lowering *fl);
/* Gives a value that will be read later a place of its own where it could change until then. */
dsl_value settle(lowering *fl, dsl_value v);
void insert_stmt(lowering *fl, ir_block *block, int64_t at, ir_stmt *s);
void binding_set(lowering *fl, int64_t name, binding *b);
/* Takes back what was bound since fl->trail.count was `mark`. */
void binding_undo(lowering *fl, int64_t mark);
/* Whether the variable belongs to the name, so that it may be assigned. */
bool binding_owns(const lowering *fl, int64_t name, const ir_var *var);
/* The variable of a loop that has ended is needed after it: it becomes a BOUND binding. */
void keep_loop_variable(lowering *fl, int64_t name, binding *b);
/* LOOP_END and INSIDE bindings whose value is needed: they become BOUND, where that is possible. */
void keep_value(lowering *fl, int64_t name, binding *b);
bool is_cell(const lowering *fl, const ir_var *var);
/* Marks a binding, and those from before the enclosing loops that it stands for, as read. */
void mark_read(binding *b);

#endif
