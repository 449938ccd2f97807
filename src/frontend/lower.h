/* What the files of the front end share: the state of one compile, of one function being lowered, the
 * values that expressions evaluate to, and who offers what.
 *
 *   lower.c        the driver, sources of functions, specialisations, errors
 *   names.c        what a name outside the function means; facts; dotted paths of pl and pld
 *   scope.c        names of the function: bindings, targets of assignments, joins of paths
 *   annotations.c  annotation syntax to types
 *   dims.c         pl.dynamic dimensions: symbols, how a function recovers them, checks at calls
 *   marks.c        which dimensions of bare parameters are dynamic because of callees
 *   signature.c    parameters of a function from its annotations and its caller's or entry's arguments
 *   entry.c        where a program starts: arguments from Python; the host function of those without
 *   expressions.c  names, attributes, subscripts, lists; dispatches to the next three
 *   builtins.c     min, max, abs, static_assert, extents, `a if c else b`
 *   scalars.c      arithmetic, comparisons, literals
 *   operations.c   operations of the table: argument binding and IR
 *   subscripts.c   x[...]: views, elements, assignments
 *   host_views.c   x[...] in host functions
 *   arrays.c       pl.array: elements
 *   printing.c     pl.printf
 *   tensor_values.c  tensors where kernels want tiles
 *   calls.c        calls between DSL functions
 *   launches.c     how a task is submitted: deps, pl.no_dep, predicates, pl.submit
 *   scopes.c       with and its contexts: pl.at, pl.spmd, pl.manual_scope ...
 *   outline.c      the body of a scope as a function of its own
 *   deferred.c     rules for scopes with pld.system.defer_wait
 *   keywords.c     arguments of what is no operation
 *   statements.c   assignments and returns
 *   flow.c         paths, what names are bound to where they meet; if
 *   loops.c        for and while, break and continue, explicit carries
 *   iterators.c    pl.range and its relatives
 *   writes.c       parameters that are written must be declared so
 *
 * Idea of errors: whatever fails reports once and evaluates to VALUE_POISON; whoever meets a poisoned
 * value stays silent and passes it on. So one mistake gives one message, and the rest of the program
 * is still checked. */
#ifndef FRONTEND_LOWER_H
#define FRONTEND_LOWER_H

#include "base/diag.h"
#include "base/map.h"
#include "base/text.h"
#include "frontend/frontend.h"
#include "ops/ops.h"

typedef struct frontend frontend;
typedef struct instance instance;
typedef struct lowering lowering;

/* ---- values ---- */

typedef enum value_kind {
    VALUE_POISON,   /* its error has been reported */
    VALUE_NONE,     /* None, or the result of an operation that has none */
    VALUE_SCALAR,   /* expr */
    VALUE_VAR,      /* var: tile or handle */
    VALUE_TUPLE,    /* items: tuple or list */
    VALUE_STRING,   /* text */
    VALUE_DTYPE,    /* dtype */
    VALUE_ENUM,     /* text: the enumeration, integer: the member's value */
    VALUE_PATH,     /* text: any other object of pypto: module, operation, type form, enumeration */
    VALUE_FUNCTION, /* integer: the embedder's number of a DSL function */
    VALUE_OTHER     /* text: Python type of an object that the DSL cannot use */
} value_kind;

typedef struct dsl_value {
    value_kind kind;
    pypto_span span;
    const ir_expr *expr;
    /* SCALAR: a number as Python has it, from literals and constants of the script. It takes the dtype of
     * what it meets, and arithmetic among literals is Python's (`real` is not rounded to FP32 yet). */
    bool literal;
    double real;
    ir_var *var;
    const struct dsl_value *items;
    int32_t count;
    const char *text;
    int64_t integer;
    pypto_dtype dtype;
} dsl_value;

/* ---- names of the function ---- */

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

/* A scope that has been lowered and called: what it has computed can still become a result of it. */
typedef struct scope_call {
    ir_function *f;
    ir_stmt *call;
    ir_block *block; /* where the call stands */
    bool defers;     /* it only waits: what it has read can be read behind it just as well */
    bool gives;      /* it may have a result */
} scope_call;

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

typedef struct name_scope {
    map index; /* name -> &positions[i] */
    const char **names;
    binding **bindings;
    int32_t
        *assignments; /* statements of the function that bind the name; a parameter counts as one */
    name_storage *storage;
    int64_t *slots; /* per name: scratch of whoever collects names, -1 between uses */
    int64_t count;
    int64_t capacity;
} name_scope;

/* What a name was bound to before; names.bindings is changed by scope_set() only, which records it. */
typedef struct name_change {
    int64_t name;
    binding *b;
} name_change;
typedef VEC(name_change) name_changes;

/* A way to reach a place where paths meet: what it binds, other than all did where they parted. */
typedef struct flow_path {
    ir_block *block; /* where it ends */
    bool jumps;      /* by a break or continue, which is the block's last statement */
    name_changes changes;
} flow_path;
typedef VEC(flow_path) flow_paths;

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
typedef VEC(int64_t) name_set;
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

/* A function that is being spliced into the one at hand. */
typedef struct splice {
    struct splice *outer;
    int32_t function;
    int32_t depth; /* of its body */
    bool returned;
    dsl_value value; /* what it returned */
} splice;

/* A scope whose body becomes a function of its own: lowering.ir is that function meanwhile. */
typedef struct outline {
    struct outline *outer;
    int32_t depth;         /* of its body */
    const splice *spliced; /* where it stands */
    const syntax_stmt
        *returned;   /* a return of the body, which the function around it makes; NULL: none */
    dsl_value value; /* what that gives */
} outline;

/* A task that is about to be submitted, by the next call: what the script says besides the arguments. */
typedef struct launch_request {
    ir_launch launch;
    const char *const *independent; /* names of variables whose arguments order nothing */
    int32_t independent_count;
    ir_stmt *call; /* the call that has taken it; NULL: none yet */
} launch_request;

struct lowering {
    frontend *fe;
    arena *a;
    instance *self;
    int32_t function; /* the embedder's number */
    const syntax_function *syntax;
    ir_function *ir;
    name_scope names;
    VEC(dim_symbol) symbols;
    ir_block *block; /* where statements go */
    int32_t depth;   /* 0 in the function's own block */
    int32_t loops;   /* enclosing loops */
    loop_frame *loop;
    carry_frame *carries; /* of the loop whose body is at hand */
    bool in_branch;       /* a branch of an if is nearer than any loop */
    /* The part of an expression at hand is not evaluated always: the right side of `and`, a choice. */
    bool sometimes;
    const ir_expr
        *reached; /* only if this is true, for parts whose statements stand in front; or NULL */
    name_changes trail;
    VEC(loop_memory *) loop_memories;
    VEC(ir_var *) cells;     /* handles that statements set at run time */
    splice *spliced;         /* the innermost; NULL in the function's own body */
    outline *outlined;       /* the innermost */
    launch_request *launch;  /* of the call that is evaluated next */
    bool manual;             /* in pl.manual_scope: arguments order nothing */
    bool no_auto_scope;      /* an option of the function: pl.scope() may stand in it */
    const ir_expr *lane;     /* in pl.split_aiv: what pl.tile.get_subblock_idx() is; NULL: 0 */
    VEC(ir_var *) late_vars; /* read before they are assigned: task ids 0, BOOLs false at first */
    bool terminated;         /* the current path has returned */
    int32_t temporaries;
    bool returned; /* a return statement was seen: ir->results is set */
    bool result_poisoned;
    bool in_signature;         /* annotations may introduce symbols */
    VEC(ir_var *) world_loops; /* loop variables that run over all devices */
    VEC(ir_var *) world_sizes; /* variables that hold pld.world_size() */
    VEC(ir_var *) rank_counts; /* variables that hold pld.nranks(ctx) */
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

static inline dsl_value poison(void)
{
    return (dsl_value){.kind = VALUE_POISON};
}

/* ---- names.c ---- */

const name_value *resolve_name(frontend *fe, int32_t function, const char *name);
/* The value of a name that is none of the function's own; reports undefined ones. */
dsl_value outer_name(lowering *fl, const char *name, pypto_span span);
/* What `a.b.c` means when its first name is none of the function's own: a dotted name of pypto, a
 * member of a module or object of the script, or another method (`self.b`). NULL when it is something
 * else; NAME_UNDEFINED when there is no such member. */
const name_value *outer_meaning(lowering *fl, const syntax_expr *e);
/* The value of an attribute whose object is a Python object outside the function. False: it is not. */
bool outer_member(lowering *fl, const syntax_expr *e, dsl_value *v);
/* What a dotted name of pypto stands for. */
dsl_value path_value(arena *a, const char *path, pypto_span span);
/* For messages: "a Tile", "the dtype fp32", "pl.load". */
const char *describe(arena *a, const dsl_value *v);

/* ---- scope.c ---- */

void scope_declare(lowering *fl, const char *name, bool assigned);
/* Declares every name that the block binds. */
void scope_collect(lowering *fl, const syntax_block *block);
int64_t scope_find(const lowering *fl, const char *name); /* -1: none of the function's names */
/* The indices of the names that a block binds, each once, in order. */
void names_bound(const lowering *fl, const syntax_block *block, name_set *set);
void scope_bind(lowering *fl, int64_t name, dsl_value v, pypto_span span);
void scope_poison(lowering *fl, int64_t name);
/* Reads a name of the function. */
dsl_value scope_read(lowering *fl, int64_t name, pypto_span span);
/* Where an operation with a result of that type computes when it is assigned to the name (-1: to
 * none). */
ir_var *scope_target(lowering *fl, int64_t name, const ir_type *type, pypto_span span);
ir_var *temporary(lowering *fl, const ir_type *type, pypto_span span);
/* The variable that a bound value lives in, NULL for constants and compile-time objects. */
ir_var *value_var(const dsl_value *v);
dsl_value var_value(arena *a, ir_var *var, pypto_span span);
/* target = v, for a scalar, tile or handle; nothing when it is there already. */
void emit_assign(lowering *fl, ir_var *target, const dsl_value *v, pypto_span span);
/* Gives a value that will be read later a place of its own where it could change until then. */
dsl_value settle(lowering *fl, dsl_value v);
void insert_stmt(lowering *fl, ir_block *block, int64_t at, ir_stmt *s);
void scope_set(lowering *fl, int64_t name, binding *b);
/* Takes back what was bound since fl->trail.count was `mark`. */
void scope_undo(lowering *fl, int64_t mark);
/* Whether the variable belongs to the name, so that it may be assigned. */
bool scope_owns(const lowering *fl, int64_t name, const ir_var *var);
/* The variable of a loop that has ended is needed after it: it becomes a BOUND binding. */
void keep_loop_variable(lowering *fl, int64_t name, binding *b);
bool is_cell(const lowering *fl, const ir_var *var);
bool same_value(const dsl_value *x, const dsl_value *y);
/* Marks a binding, and those from before the enclosing loops that it stands for, as read. */
void mark_read(binding *b);
/* What to do about two values that one name cannot hold. */
const char *retype_hint(arena *a, const dsl_value *x, const dsl_value *y);
/* A value's type as messages name it: "int32", "Tile[[4, 8], fp32]". */
const char *type_name(arena *a, const dsl_value *v);
/* The type of a value that a variable can hold; false for compile-time objects. */
bool value_type(const dsl_value *v, ir_type *type);

/* ---- annotations.c ---- */

typedef enum annotation_form {
    ANNOTATION_FAILED, /* reported */
    ANNOTATION_TYPE,   /* type */
    ANNOTATION_BARE,   /* kind alone: pl.Tensor, pld.DistributedTensor */
    ANNOTATION_TUPLE,  /* items: results only */
    ANNOTATION_NONE    /* None: results only */
} annotation_form;

typedef struct dsl_annotation {
    annotation_form form;
    ir_type type;
    pld_direction direction;
    const struct dsl_annotation *items;
    int32_t count;
    pypto_span span;
} dsl_annotation;

/* The element type of that name but for a typing error, as "pl.FP32", or NULL. */
const char *nearest_dtype(arena *a, const char *path);
dsl_annotation read_annotation(lowering *fl, const syntax_expr *e);
/* Whether the annotation is a bare pl.Tensor or pld.DistributedTensor, also inside pl.Out/pl.InOut;
 * reports nothing. */
bool annotation_is_bare(frontend *fe, int32_t function, const syntax_expr *e);
/* Whether it is pld.CommCtx; reports nothing. */
bool annotation_is_comm(frontend *fe, int32_t function, const syntax_expr *e);

/* ---- dims.c ---- */

/* The value of a pl.dynamic symbol. In a signature its variable comes into being at the first mention;
 * in a body it must exist. NULL after reporting. */
const ir_expr *symbol_expr(lowering *fl, const char *name, pypto_span span);
/* The scalar parameter of that name, as far as the signature has been read; NULL when there is none. */
const ir_expr *scalar_param(const lowering *fl, const char *name);
/* Finds for every symbol the parameter that defines it; reports those that none does. */
void bind_symbols(lowering *fl);
/* An argument's type against the callee's parameter, dimension by dimension. `found` holds what the
 * callee's symbols have been matched with so far, one entry per ir->dims. */
typedef struct dim_match {
    const ir_expr **found;
    int32_t count;
} dim_match;
dim_match dim_match_make(arena *a, const ir_function *callee);
/* NULL, or what does not fit: "dimension 0 is 4, but 2 is declared". The ranks are equal. */
const char *match_dims(arena *a, dim_match *match, const ir_function *callee, int32_t param,
                       const ir_type *argument);

/* ---- marks.c ---- */

/* Whether a dimension of a bare parameter is dynamic because a function that it is passed to says so. */
bool dimension_is_marked(frontend *fe, int32_t function, const char *param, int32_t dim);

/* ---- signature.c ---- */

/* x.bind_dynamic(0, M) of a parameter: lower_signature() has dealt with it. */
bool is_bind_dynamic(const lowering *fl, const syntax_expr *e);
void lower_signature(lowering *fl, const given_param *given, int32_t count);

/* ---- entry.c ---- */

/* Lowers the entry and all that it reaches into fe->program; makes a host function where there is none.
 * `args` as frontend_lower() has them. */
void lower_entry(frontend *fe, int32_t entry, const frontend_arg *args, int32_t arg_count);
/* The per-device wrapper whose body is a call of that kernel; made at the first request. */
ir_function *wrapper_of(frontend *fe, instance *kernel);

/* ---- expressions.c ---- */

/* `target` is the name that the value will be assigned to, or -1: operations compute in its place. */
dsl_value eval(lowering *fl, const syntax_expr *e);
dsl_value eval_into(lowering *fl, const syntax_expr *e, int64_t target);
/* x op y: scalars, or tiles with tiles and scalars. */
dsl_value value_binary(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span,
                       int64_t target);
/* [f(k) for k in range(n)] with constant bounds: a tuple of its elements. */
dsl_value eval_comprehension(lowering *fl, const syntax_expr *e);
/* A scalar of an integer type; reports otherwise as "<what> must be an integer scalar". */
bool eval_integer(lowering *fl, const syntax_expr *e, const char *what, dsl_value *v);

/* ---- builtins.c ---- */

/* Whether the dotted name is a word of the language rather than an operation; if so, its value. */
bool lower_builtin(lowering *fl, const char *path, const syntax_expr *e, dsl_value *result);
/* The same for calls of Python's own functions. */
bool lower_python_builtin(lowering *fl, const syntax_expr *e, int64_t target, dsl_value *result);
dsl_value lower_conditional(lowering *fl, const syntax_expr *e, int64_t target);
/* The extents of a tensor, window or tile; false for anything else. */
bool shape_value(lowering *fl, const dsl_value *v, pypto_span span, dsl_value *result);

/* ---- scalars.c ---- */

dsl_value literal_int(arena *a, int64_t number, pypto_span span);
dsl_value literal_float(arena *a, double number, pypto_span span);
dsl_value literal_bool(arena *a, bool truth, pypto_span span);
dsl_value scalar_value(const ir_expr *expr, pypto_span span);
dsl_value scalar_binary(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span);
dsl_value scalar_unary(lowering *fl, const char *op, dsl_value x, pypto_span span);
dsl_value scalar_compare(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span);
dsl_value scalar_logic(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span);
/* IR_MIN or IR_MAX of two numbers; `what` names it in messages. */
dsl_value scalar_extreme(lowering *fl, const char *what, ir_operator op, dsl_value x, dsl_value y,
                         pypto_span span);
/* Brings two scalars to one type, which *dtype becomes. False after reporting. */
bool scalar_unify(lowering *fl, const char *op, dsl_value *x, dsl_value *y, pypto_span span,
                  pypto_dtype *dtype);
/* The type of a name that is any of the values where paths meet: the widest, if it holds every value of
 * the others. False: there is none. */
bool scalar_meeting(const dsl_value *const *values, int64_t count, pypto_dtype *dtype);
/* A scalar as a number of that type: literals must fit, integers wrap, floats round; between integers
 * and floats it is an error. `what` names it in the message. */
dsl_value scalar_convert(lowering *fl, dsl_value v, pypto_dtype dtype, const char *what);
/* A BOOL scalar for `if`; reports others. */
bool condition(lowering *fl, const syntax_expr *e, const char *statement, dsl_value *v);

/* ---- operations.c ---- */

/* A call of an operation of the table; `written` is its spelling in the script, which decides which
 * forms of it may be meant. */
dsl_value lower_operation(lowering *fl, const op_def *op, const char *written,
                          const syntax_expr *call, int64_t target);
/* An operation on values: those of its first `count` parameters; the others have their defaults. */
dsl_value lower_values(lowering *fl, const op_def *op, const dsl_value *values, int32_t count,
                       pypto_span span, int64_t target);
/* ---- tensor_values.c ---- */

/* A tensor or window in a kernel: operations on tiles take it as a whole. */
bool is_tensor_operand(const lowering *fl, const dsl_value *v);
/* Whether such a value is given for a parameter that takes a tile. */
bool stands_for_tile(const lowering *fl, const op_def *op, int32_t index, const dsl_value *v);
/* The tile of a whole tensor; `what` names the operation in messages. */
dsl_value load_whole(lowering *fl, const char *what, const dsl_value *v);

/* ---- subscripts.c ---- */

/* What stands in brackets, dimension by dimension. */
typedef struct subscript {
    const ir_type *type; /* of the value that it belongs to */
    const ir_expr *offsets[PYPTO_MAX_DIMS];
    const ir_expr *extents[PYPTO_MAX_DIMS]; /* constant 0: an index, which drops the dimension */
    /* Of a tile: how much of the extent is valid, where a slice ends at a bound known at run time only. */
    const ir_expr *valid[PYPTO_MAX_DIMS];
    bool ragged;     /* any of them is not the extent */
    int32_t indices; /* how many of those */
} subscript;

/* The first `count` expressions as a list. */
dsl_value list_value(lowering *fl, const ir_expr *const *exprs, int32_t count, pypto_span span);
/* x[...] of a tensor, window or tile: a view, a part of a tile, or an element. */
dsl_value lower_subscript(lowering *fl, dsl_value base, const syntax_expr *e, int64_t target);
/* target[...] = v */
void lower_subscript_write(lowering *fl, const syntax_expr *target, dsl_value v, pypto_span span);

/* ---- arrays.c ---- */

bool is_array(const dsl_value *v);
/* array[i], and array[i] = v. */
dsl_value lower_array_item(lowering *fl, dsl_value array, const syntax_expr *e, int64_t target);
void lower_array_write(lowering *fl, dsl_value array, const syntax_expr *target, dsl_value v,
                       pypto_span span);
/* pl.array.update_element, its operands checked: the array with one element changed. */
dsl_value update_array(lowering *fl, const op_call *call, int64_t target);

/* ---- printing.c ---- */

dsl_value lower_printf(lowering *fl, const syntax_expr *e);

/* ---- host_views.c ---- */

dsl_value lower_host_view(lowering *fl, dsl_value base, const subscript *sub, pypto_span span,
                          int64_t target);
/* The statement that defines a variable, NULL when there is none. */
const ir_stmt *find_definition(const ir_block *block, const ir_var *var);

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
/* Gives a call of a wrapper its launch, from the request (or NULL) and the scope around it. */
void attach_launch(lowering *fl, ir_stmt *call, launch_request *request, uint64_t independent_args);
/* A new variable for the id of the call's task, which is assigned to the name (-1: to none). */
ir_var *capture_task(lowering *fl, ir_stmt *call, int64_t name, pypto_span span);
/* pl.submit, pl.spmd_submit, pl.system.task_dummy. */
dsl_value lower_submit(lowering *fl, const syntax_expr *e, bool blocks);
dsl_value lower_join(lowering *fl, const syntax_expr *e);

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
} outline_request;

/* Lowers the body as a function of its own and calls it here; false after an error. */
bool lower_outlined(lowering *fl, const outline_request *request);
/* The value of an INSIDE binding is needed outside: it becomes a result of its scope, and the binding BOUND.
 * False: it stays inside. */
bool keep_scope_value(lowering *fl, int64_t name, binding *b);
/* LOOP_END and INSIDE bindings whose value is needed: they become BOUND, where that is possible. */
void keep_value(lowering *fl, int64_t name, binding *b);
/* The rules for scopes with pld.system.defer_wait (deferred.c); true where there is none. */
bool has_deferred_wait(const ir_function *f);
bool check_deferred(lowering *fl, const outline_request *request, const ir_stmt *call);
/* Whether the variable is one of the function that is being lowered. */
bool is_own(const lowering *fl, const ir_var *var);
/* What is read before it is assigned starts as no task, or as false: at the head of fl->ir. */
void clear_late_vars(lowering *fl);
/* Whether the value is, or is made of, variables. */
bool has_variables(const dsl_value *v);
/* Puts the scopes that f calls in front of it: fe->finished. */
void finish_scopes(frontend *fe, const ir_function *f);

/* ---- statements.c ---- */

void lower_block(lowering *fl, const syntax_block *block);
/* A return of that value. */
void lower_returned(lowering *fl, const syntax_stmt *s, dsl_value v);
/* name = v, as an assignment of the script does it. */
void assign_name(lowering *fl, int64_t name, dsl_value v, pypto_span span);
/* After the body: the return annotation against what the body returns. */
void check_results(lowering *fl);

/* ---- open_names.c ---- */

/* `b`, which the paths that bind the name agree on, as its binding where a way past the loop, or a path that
 * does not bind it, leads too. `loop`: each turn that comes to its end, or breaks, binds it; NULL: not each. */
binding *open_binding(lowering *fl, int64_t name, binding *b, const ir_stmt *loop, flow_path *paths,
                      binding *const *bs, int64_t count);
/* What an open binding holds may never have been assigned. */
void mark_open(const binding *b);
/* The name is bound where these paths end, as far as their bindings are not open themselves. */
void note_bound(lowering *fl, int64_t name, const flow_path *paths, binding *const *bs,
                int64_t count);
/* Fails at run time where the name has not been bound. Behind that it is, for the path at hand. */
void check_bound(lowering *fl, int64_t name, binding *b, pypto_span span);
/* Whether the first mention of the name, in the order of evaluation, reads it. */
bool reads_first(const syntax_block *block, const char *name);

/* ---- flow.c ---- */

void lower_if(lowering *fl, const syntax_stmt *s);
/* What the path that ends here has bound since the trail was `mark`. */
flow_path path_here(lowering *fl, int64_t mark, ir_block *block, bool jumps);
/* What the path has each of the names bound to; called where paths parted. */
binding **path_bindings(lowering *fl, const flow_path *p, const name_set *names);
/* target = what b is bound to, at the end of the path. */
void path_assign(lowering *fl, flow_path *p, ir_var *target, const binding *b);
/* One binding for a name that is bs[i] at the end of paths[i]; assigns on the paths what differs. */
binding *merge_bindings(lowering *fl, int64_t name, pypto_span span, flow_path *paths, binding **bs,
                        int64_t count);
bool same_type(const binding *x, const binding *y);
/* Whether a variable of type `wide` holds what one of type `narrow` does. */
bool type_widens(const ir_type *narrow, const ir_type *wide);
/* The type of one variable that holds what any of the bindings does; false: there is none. */
bool meeting_type(lowering *fl, binding *const *bs, int64_t count, ir_type *type);
void mark_read(binding *b);
binding *copy_binding(lowering *fl, const binding *b);
binding *state_binding(lowering *fl, binding_state state, pypto_span span);
binding *conflict_binding(lowering *fl, const binding *x, const binding *y);

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
/* e calls that operation of pypto, such as "pl.yield_"; evaluates the callee only. */
bool calls_path(lowering *fl, const syntax_expr *e, const char *path);
/* The word of pypto, such as "pl.at", that e calls; NULL for anything else. Reports nothing. */
const char *called_path(lowering *fl, const syntax_expr *e);

/* ---- writes.c ---- */

/* Reports parameters that are written but declared as inputs, and warns of outputs that are only rebound.
 * After the body; ids count variables. */
void check_writes(lowering *fl);

#endif
