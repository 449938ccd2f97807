/* The intermediate representation of a program: typed, structured, with the user's own names.
 *
 * One ir_program holds all functions that a host function (or wrapper) reaches. A function's body
 * is a tree of statements; control flow stays structured, so that the emitted C reads like the
 * script.
 *
 * Variables, not SSA. A variable is a place: assigning a tile computes into the variable's own
 * scratch memory, so a loop-carried accumulator keeps one place and nothing is copied at the
 * loop's end. Assigning a *handle* (tensor, window, comm) binds it: no bytes move. A name that the
 * script rebinds to another type in straight-line code becomes a second variable.
 *
 * Operands of operations are variables or scalar expressions; nested tile calls are flattened into
 * compiler-made variables by the front end, so every operation is a statement with a source span.
 * Scalar expressions are pure trees: evaluating one has no effect.
 *
 * Everything lives on the program's arena and is freed with it. Not thread-safe. */
#ifndef IR_IR_H
#define IR_IR_H

#include "base/arena.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"

#include <pypto/program.h>
#include <pypto/status.h>

typedef struct ir_var ir_var;
typedef struct ir_expr ir_expr;
typedef struct ir_stmt ir_stmt;
typedef struct ir_function ir_function;
typedef struct ir_program ir_program;
struct op_def; /* ops/ops.h */

/* ---- types ---- */

typedef enum ir_kind {
    IR_NONE,   /* no value */
    IR_SCALAR, /* dtype */
    IR_TENSOR, /* handle to memory: dtype, shape */
    IR_WINDOW, /* handle to a window slice (pld.DistributedTensor): dtype, shape */
    IR_TILE,   /* private block in scratch memory: dtype, static shape */
    IR_ARRAY,  /* the same of scalars, pl.array: dtype, one static dimension */
    IR_BUFFER, /* result of pld.alloc_window_buffer */
    IR_COMM    /* result of pld.get_comm_ctx */
} ir_kind;

/* A value. `shape[i]` is an integer expression: a constant, or made of dimension variables. */
typedef struct ir_type {
    ir_kind kind;
    pypto_dtype dtype; /* SCALAR, TENSOR, WINDOW, TILE */
    int32_t ndim;
    const ir_expr *shape[PYPTO_MAX_DIMS];
    /* TILE: has an extent of valid elements, from the origin, that the program computes beside it. TENSOR,
     * WINDOW: may have one; the handle carries it. */
    bool ragged;
    /* TILE: what matrix products add up in; may be stored as a narrower float. No part of equality. */
    bool accumulator;
    /* TILE: the bits that a comparison gives, for messages. No part of equality. */
    bool mask;
} ir_type;

/* ---- scalar expressions ---- */

typedef enum ir_expr_kind {
    IR_INT,     /* integer */
    IR_FLOAT,   /* real */
    IR_BOOL,    /* integer 0 or 1 */
    IR_VAR,     /* var: scalar, loop or dimension variable */
    IR_UNARY,   /* op, a */
    IR_BINARY,  /* op, a, b */
    IR_CONVERT, /* a converted to `dtype` */
    IR_OP       /* a pure operation with a scalar result: op_def, operands (pld.rank(ctx), ...) */
} ir_expr_kind;

/* Operands of a binary operation have the result's dtype (comparisons: one dtype; INDEX and INT64
 * count as the same), except the counts of shifts. DIV is for floats; // and % round towards minus
 * infinity. */
typedef enum ir_operator {
    IR_NEG,
    IR_NOT,
    IR_INVERT, /* unary */
    IR_ADD,
    IR_SUB,
    IR_MUL,
    IR_DIV,
    IR_FLOORDIV,
    IR_MOD,
    IR_SHL,
    IR_SHR,
    IR_BITAND,
    IR_BITOR,
    IR_BITXOR,
    IR_MIN,
    IR_MAX,
    IR_LT,
    IR_LE,
    IR_GT,
    IR_GE,
    IR_EQ,
    IR_NE, /* dtype BOOL */
    IR_AND,
    IR_OR
} ir_operator;

typedef enum ir_operand_kind {
    IR_OPERAND_NONE,  /* an optional parameter that was not given */
    IR_OPERAND_VAR,   /* var: tile, tensor, window, buffer, comm */
    IR_OPERAND_EXPR,  /* expr: a scalar */
    IR_OPERAND_LIST,  /* exprs[count]: offsets, extents, a shape */
    IR_OPERAND_DTYPE, /* dtype */
    IR_OPERAND_ENUM,  /* number: value of an enumeration member */
    IR_OPERAND_TEXT   /* text */
} ir_operand_kind;

typedef struct ir_operand {
    ir_operand_kind kind;
    ir_var *var;
    const ir_expr *expr;
    const ir_expr *const *exprs;
    int32_t count;
    pypto_dtype dtype;
    int64_t number;
    const char *text;
    pypto_span span;
} ir_operand;

struct ir_expr {
    ir_expr_kind kind;
    pypto_dtype dtype; /* of the result */
    int64_t integer;
    double real;
    double exact; /* of a literal: before it was rounded to FP32; else the same as real */
    ir_var *var;
    ir_operator op;
    const ir_expr *a;
    const ir_expr *b;
    const struct op_def *op_def;
    const ir_operand *operands;
    int32_t operand_count;
    pypto_span span;
};

/* ---- variables ---- */

typedef enum ir_var_kind {
    IR_VAR_PARAM,
    IR_VAR_LOCAL,
    IR_VAR_LOOP, /* induction variable: lives in the bodies of the FOR statements that name it, and
                    is read-only there. A script that rebinds it or uses it afterwards gets a LOCAL
                    that the body sets */
    IR_VAR_DIM   /* a pl.dynamic dimension; its value comes from ir_function.dims */
} ir_var_kind;

struct ir_var {
    ir_var_kind kind;
    int32_t id;         /* unique in its function, in order of creation */
    const char *name;   /* the user's name, or "t0", "t1", ... for compiler-made ones; may repeat */
    bool is_made;       /* made by the compiler, which is free to call it otherwise in C */
    int32_t version;    /* 0 for the first variable of that name in its function, then 1, 2, ... */
    const char *c_name; /* unique in its function, no C keyword: set by passes/names */
    ir_type type;
    pypto_span span;         /* of the first definition */
    pld_direction direction; /* PARAM */
    bool is_extent;          /* PARAM of a scope: a dimension of the function around */
    uint32_t uses; /* PARAM that is a window of a kernel: pld_use bits, by passes/effects */
    /* For handles: the parameter or allocation whose storage this names, itself if it is one; NULL
     * when it depends on control flow. */
    ir_var *root;
    /* Paths on which nothing is assigned lead to statements that read it: those do not use what they get, or a
     * check stands in front of them. */
    bool may_be_unset;
    int64_t scratch_offset; /* TILE: set by passes/plan_scratch, bytes; -1 before */
    int32_t buffer; /* BUFFER: index in ir_program.buffers; WINDOW on the host: of its buffer */
};

/* ---- statements ---- */

typedef enum ir_stmt_kind {
    IR_ASSIGN,   /* target = value (scalar); or target = source (handle: bind; tile: copy) */
    IR_DO,       /* [target =] op_def(operands) */
    IR_CALL,     /* [target =] callee(args) [device=] [launch]: a dispatch on the host, a task in a
                    wrapper, whose id `target` gets; without callee a task that does nothing */
    IR_FOR,      /* for target in range(start, stop, step): body. step is not 0 at compile time */
    IR_WHILE,    /* while value: body */
    IR_IF,       /* if value: body else: orelse */
    IR_BREAK,    /* leaves the innermost loop; last in its block */
    IR_CONTINUE, /* the next turn of the innermost loop; last in its block */
    IR_RETURN    /* leaves the function early; what is returned is in ir_function.results */
} ir_stmt_kind;

typedef VEC(ir_stmt *) ir_block;

/* How a wrapper submits a task, where that is not left to its arguments: pld_submit_options. */
typedef struct ir_launch {
    const ir_expr *blocks; /* NULL: one */
    bool manual;
    uint64_t independent_args;   /* bit i: argument i orders nothing */
    uint64_t marked_args;        /* bit i: argument i is marked for dumps */
    const ir_expr *const *after; /* of dtype TASK_ID */
    int32_t after_count;
    /* The task runs only if this element of `tested` compares so; NULL: always. */
    ir_var *tested;
    const ir_expr *const *element; /* one index per dimension */
    ir_operator compare;
    const ir_expr *limit;
} ir_launch;

/* The devices of a window: see pld_alloc_window. Filled by passes/infer_domains; ALL wins over the
 * mask, otherwise the union of the mask and the run-time ranges. */
typedef struct ir_device_set {
    bool all;
    uint64_t mask;
} ir_device_set;

struct ir_stmt {
    ir_stmt_kind kind;
    pypto_span span;
    ir_var *target;       /* ASSIGN, DO and CALL (may be NULL), FOR */
    const ir_expr *value; /* ASSIGN of a scalar, IF, WHILE */
    ir_var *source;       /* ASSIGN of a handle or tile */
    const struct op_def *op_def;
    ir_operand
        *operands; /* DO: one per parameter of the op; CALL: one per parameter of the callee */
    int32_t operand_count;
    ir_function *callee;   /* CALL; NULL: a task that only waits for others */
    const ir_expr *device; /* CALL on the host; NULL: round robin */
    /* CALL on the host, instead of a device: on each of the devices that share its windows. infer_domains
     * fills the set in, spread makes calls with devices of it. */
    ir_device_set *spread;
    const ir_launch *launch; /* CALL in a wrapper; NULL: one block, ordered by its arguments */
    const ir_expr *start;
    const ir_expr *stop;
    const ir_expr *step;
    ir_block body;
    ir_block orelse;
};

/* ---- functions and programs ---- */

/* A dynamic dimension of a function and how its value is found: extent `dim` of parameter `param`
 * equals scale * value + offset (scale != 0), or value // quotient where that is not 0: the value is then the
 * smallest that fits, extent * quotient. */
typedef struct ir_dim {
    ir_var *var;
    int32_t param;
    int32_t dim;
    int64_t scale;
    int64_t offset;
    int64_t quotient;
} ir_dim;

struct ir_function {
    const char *name;   /* the user's */
    const char *c_name; /* unique in the program: set by passes/names */
    pld_plane plane;
    bool is_scope; /* the body of a scope of its only caller */
    /* A kernel that the front end has made for a collective of a host function: its only statement. */
    bool is_collective;
    int32_t index; /* in ir_program.functions */
    pypto_span span;
    VEC(ir_var *) params;
    VEC(ir_var *) vars; /* all variables, params and dims first, by id */
    map latest;         /* name -> the variable of that name that was created last */
    VEC(ir_dim) dims;
    ir_block body;
    /* The parameters that the function returns (their storage), in order; often none or one. */
    VEC(ir_var *) results;
    int64_t scratch_bytes; /* set by passes/plan_scratch */
    /* HOST: per parameter the dimension subscripted by a loop over all devices, or -1. */
    VEC(int32_t) world_dims;
};

typedef struct ir_buffer {
    const char *name;
    pypto_span span;
    ir_device_set devices;
    pld_collectives collectives;
    /* Used by a part of the function that the constants of the script have left out: may have no other use. */
    bool left_out;
} ir_buffer;

struct ir_program {
    arena *a;
    const char *name;
    VEC(ir_function *) functions; /* callees before callers; the entry is last */
    VEC(ir_buffer) buffers;
    bool collectives_only; /* kernels have collectives, and reach slices of peers in no other way */
};

/* ---- builder (ir/build.c): nodes on the program's arena ---- */

ir_program *ir_program_create(arena *a, const char *name);
/* Appended to p->functions. */
ir_function *ir_function_create(ir_program *p, const char *name, pld_plane plane, pypto_span span);
/* Appended to f->vars, a PARAM to f->params too (a DIM's row in f->dims is the caller's business).
 * A parameter that is a handle, and a BUFFER, is its own root; buffer and scratch_offset are -1. */
ir_var *ir_var_create(ir_program *p, ir_function *f, ir_var_kind kind, const char *name,
                      ir_type type, pypto_span span);
ir_stmt *ir_stmt_create(ir_program *p, ir_block *into, ir_stmt_kind kind, pypto_span span);

ir_type ir_scalar_type(pypto_dtype dtype);

/* Expressions fold constants, with Python's floor rules for // and %. What overflows 64 bits,
 * divides by 0 or shifts too far stays unfolded; narrower integers wrap. */
const ir_expr *ir_int(arena *a, int64_t value); /* dtype INDEX */
const ir_expr *ir_int_of(arena *a, int64_t value,
                         pypto_dtype dtype);     /* any dtype; wraps or rounds */
const ir_expr *ir_float(arena *a, double value); /* dtype FP32 */
const ir_expr *ir_bool(arena *a, bool value);
const ir_expr *ir_ref(arena *a, ir_var *var);
const ir_expr *ir_unary(arena *a, ir_operator op, const ir_expr *x, pypto_dtype dtype,
                        pypto_span span);
const ir_expr *ir_binary(arena *a, ir_operator op, const ir_expr *x, const ir_expr *y,
                         pypto_dtype dtype, pypto_span span);
const ir_expr *ir_convert(arena *a, const ir_expr *x, pypto_dtype dtype, pypto_span span);
/* A pure operation with a scalar result; `operands` stays in place. */
const ir_expr *ir_op(arena *a, const struct op_def *op, const ir_operand *operands, int32_t count,
                     pypto_dtype dtype, pypto_span span);

bool ir_is_const_int(const ir_expr *e, int64_t *value); /* *value set only when true */
bool ir_is_integer(pypto_dtype dtype);                  /* any of them, INDEX too; not BOOL */
bool ir_is_float(pypto_dtype dtype);
/* Structural equality after folding: the same constant, or the same tree over the same variables,
 * with the operands of commutative operators in either order. NULL equals NULL only. */
bool ir_expr_equal(const ir_expr *x, const ir_expr *y);
bool ir_type_equal(const ir_type *x, const ir_type *y);
/* Whether a variable of type `target` holds a value of type `source`: they are equal, or only `target` has
 * valid extents of its own, which are then the whole shape. */
bool ir_value_fits(const ir_type *source, const ir_type *target);
bool ir_shape_equal(const ir_type *x, const ir_type *y);
/* Elements of a static shape, or -1 when it is dynamic or too large. */
int64_t ir_static_elems(const ir_type *type);
/* The bytes that they take; -1 likewise, or when they cannot be counted. */
int64_t ir_static_bytes(const ir_type *type);
/* What has elements in memory that others see, too: TENSOR and WINDOW. */
bool ir_is_memory(ir_kind kind);
/* Storage: TENSOR, WINDOW, BUFFER, COMM are handles; TILE, ARRAY and SCALAR are values. */
bool ir_is_handle(ir_kind kind);
/* TILE and ARRAY: a variable has a place of its own in scratch memory, and assigning copies. */
bool ir_is_private(ir_kind kind);

/* ---- walking (ir/walk.c) ---- */

typedef void (*ir_var_visitor)(void *context, ir_var *var);
typedef void (*ir_stmt_visitor)(void *context, ir_stmt *stmt);

/* Every variable that an expression, or a statement itself (its blocks apart), reads; once per
 * occurrence, in the order of writing. A handle counts as read wherever it is named as an operand.
 */
void ir_visit_expr(const ir_expr *e, ir_var_visitor visit, void *context);
void ir_visit_uses(const ir_stmt *s, ir_var_visitor visit, void *context);
/* Whether ir_visit_uses() would visit the variable. */
bool ir_reads(const ir_stmt *s, const ir_var *var);
/* The last statement of a block, and of the blocks below, whose target is the variable, or NULL. How many
 * there are is added to *count. */
const ir_stmt *ir_definition(const ir_block *block, const ir_var *var, int64_t *count);
/* The operation whose result the variable is, in the block or below, or NULL. */
const ir_stmt *ir_operation_of(const ir_block *block, const ir_var *var);
/* Where in the block the statement stands; block->count: nowhere. */
int64_t ir_index_of(const ir_block *block, const ir_stmt *s);
/* Whether a handle may stand for a parameter of its function: without a root, control flow decides which one
 * of its kind it is. */
bool ir_may_be(const ir_var *handle, const ir_var *param);
/* The expression with what `replace` gives in place of each variable; NULL where that is NULL for one, or where
 * an operation stands in it, which would run once more. */
typedef const ir_expr *(*ir_replacement)(void *context, ir_var *var);
const ir_expr *ir_substitute(arena *a, const ir_expr *e, ir_replacement replace, void *context);
/* Every statement of a block and of the blocks below, each before those inside it. */
void ir_visit_stmts(const ir_block *block, ir_stmt_visitor visit, void *context);

/* ---- printer (ops/print.c, because it names operations): complete, stable, one statement per
 * line ---- */

void ir_print_program(text *out, const ir_program *p);
void ir_print_function(text *out, const ir_function *f);
void ir_print_type(text *out, const ir_type *type);
void ir_print_expr(text *out, const ir_expr *e);
/* The same as a string on the arena. */
const char *ir_type_text(arena *a, const ir_type *type);
const char *ir_expr_text(arena *a, const ir_expr *e);
const char *ir_kind_name(ir_kind kind); /* "Tensor", "DistributedTensor", "Tile", "Scalar", ... */

#endif
