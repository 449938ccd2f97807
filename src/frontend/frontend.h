/* The front end: syntax trees of DSL functions -> typed IR.
 *
 * frontend_lower() starts at the entry function, asks for the syntax of every DSL function that it
 * reaches, evaluates names and annotations, specialises on constants, types everything and builds the
 * IR. All errors of a program are collected, each with its place; a name whose definition failed gets no
 * follow-up errors.
 *
 * It knows no Python: what a free name means is asked of the embedder through `resolve`, once per
 * (function, name), and each answer that influenced the program is recorded (frontend_fact) so that a
 * cache can check later whether it still holds. */
#ifndef FRONTEND_FRONTEND_H
#define FRONTEND_FRONTEND_H

#include "base/export.h"
#include "frontend/syntax.h"
#include "ir/ir.h"

/* What a name outside a DSL function's own scope stands for. */
typedef enum name_kind {
    NAME_UNDEFINED, /* text: what the script's code raised when asked; NULL: there is no such name */
    NAME_INT,
    NAME_UINT, /* integer: as bits of a uint64_t, for numbers from 2^63 on */
    NAME_FLOAT,
    NAME_BOOL,
    NAME_NONE,
    NAME_STRING,
    NAME_PATH,     /* text: canonical dotted name of an object of pypto: "pl", "pld", "pld.system",
                      "pl.load", "pl.FP32", "pld.NotifyOp", "pld.NotifyOp.Set", "pl.Tensor", "pl.Out" */
    NAME_DYNAMIC,  /* text: symbol of a pl.dynamic */
    NAME_FUNCTION, /* function, plane: a DSL function */
    NAME_LIST,     /* items[count]: list or tuple */
    NAME_TYPE,     /* text[items[count]]: an annotation that the script has given a name */
    NAME_DIM,      /* text: operator, items[2]: arithmetic on dynamic dimensions, NR * 2 */
    NAME_OTHER     /* text: the Python type's name */
} name_kind;

typedef struct name_value {
    name_kind kind;
    int64_t integer;
    double real;
    const char *text;
    int32_t function; /* the embedder's number for it */
    struct name_value *items;
    int32_t count;
} name_value;

/* A DSL function as the embedder knows it. */
typedef struct frontend_source {
    const syntax_function *syntax; /* of a SubWorker the signature only: its body is no DSL */
    pld_plane plane;
    bool inlined;       /* has no code of its own: spliced into its callers */
    bool no_auto_scope; /* decorated with auto_scope=False */
    bool is_extern;     /* written in another language, for another tool-chain */
} frontend_source;

typedef struct frontend_embedder {
    void *context;
    /* The meaning of `name` in function number `function`: closure, then globals, then builtins.
     * `name` may be dotted: "consts.SIZE" is a member of a Python object, and in a method "self.step"
     * is another method of the program. Strings and items on `a`. */
    name_value (*resolve)(void *context, arena *a, int32_t function, const char *name);
    /* The function's source, or NULL after adding a diagnostic. Strings on `a`. */
    const frontend_source *(*source)(void *context, arena *a, int32_t function,
                                     pypto_status *errors);
    /* A line that pl.static_print prints. NULL: it goes nowhere. */
    void (*print)(void *context, const char *line);
    /* A warning about a place of the script. NULL: it goes nowhere. */
    void (*warn)(void *context, pypto_span span, const char *message);
    /* Text of a line of a file for error messages, on `a`; NULL when unknown. */
    const char *(*line_text)(void *context, arena *a, const char *file, int32_t line);
} frontend_embedder;

/* What is known of one argument of the entry. */
typedef enum frontend_arg_kind {
    FRONTEND_TENSOR,
    FRONTEND_INT,
    FRONTEND_UINT, /* from 2^63 on: `integer` is the bits of a uint64_t */
    FRONTEND_FLOAT,
    FRONTEND_BOOL,
    FRONTEND_OPEN,   /* not given: a tensor as it is annotated; a scalar needs a value */
    FRONTEND_RUNTIME /* a scalar that stays a parameter */
} frontend_arg_kind;
typedef struct frontend_arg {
    frontend_arg_kind kind;
    pypto_dtype dtype;
    int32_t ndim;
    int64_t shape[PYPTO_MAX_DIMS];
    int64_t integer;
    double real;
} frontend_arg;

/* One answer of `resolve` that the program depends on. `value` is canonical text ("int 256"). */
typedef struct frontend_fact {
    int32_t function;
    const char *name;
    const char *value;
} frontend_fact;

typedef struct frontend_result {
    ir_program *program;
    VEC(frontend_fact) facts;
    /* Per argument of the entry: what a later call must match to use the same program. Dynamic extents
     * are -1. */
    VEC(frontend_arg) pattern;
} frontend_result;

/* Canonical text of a name's meaning, for facts. On `a`. */
const char *name_value_text(arena *a, const name_value *value) EXPORTED(name_value_text);

/* Everything on `a`, whose recovery point is set. `args` has `arg_count` entries, or is NULL when the
 * annotations alone decide (a compile without sample arguments). On failure *result is of no use. */
PYPTO_NODISCARD pypto_status frontend_lower(arena *a, const frontend_embedder *embedder,
                                            int32_t entry, const frontend_arg *args,
                                            int32_t arg_count, frontend_result *result);

/* Lowers functions for what their annotations say, only to find their errors: how a program in class
 * form is checked when its class statement runs. Kernels that the functions call are covered by their
 * callers. */
PYPTO_NODISCARD pypto_status frontend_check(arena *a, const frontend_embedder *embedder,
                                            const int32_t *functions, int32_t count)
    EXPORTED(frontend_check);
#endif
