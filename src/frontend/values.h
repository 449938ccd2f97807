/* What expressions evaluate to, and what can be asked of it without evaluating anything. */
#ifndef FRONTEND_VALUES_H
#define FRONTEND_VALUES_H

#include "base/arena.h"
#include "frontend/syntax.h"
#include "ops/ops.h"

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

static inline dsl_value poison(void)
{
    return (dsl_value){.kind = VALUE_POISON};
}

/* ---- making values ---- */

dsl_value literal_int(arena *a, int64_t number, pypto_span span);
/* The same for numbers up to 2^64 - 1: those from 2^63 on are UINT64. */
dsl_value literal_uint(arena *a, uint64_t number, pypto_span span);
dsl_value literal_float(arena *a, double number, pypto_span span);
dsl_value literal_bool(arena *a, bool truth, pypto_span span);
dsl_value scalar_value(const ir_expr *expr, pypto_span span);
dsl_value var_value(arena *a, ir_var *var, pypto_span span);
dsl_value string_value(const char *string, pypto_span span);
dsl_value tuple_value(const dsl_value *items, int32_t count, pypto_span span);

/* ---- asking about them ---- */

/* For messages: "a Tile", "the dtype fp32", "pl.load". */
const char *describe(arena *a, const dsl_value *v);
/* Whether it is a tensor or a window. */
bool is_memory_value(const dsl_value *v);
/* The variable that a bound value lives in, NULL for constants and compile-time objects. */
ir_var *value_var(const dsl_value *v);
/* Whether the value is, or is made of, variables. */
bool has_variables(const dsl_value *v);
/* Whether it is a communication domain of which one window is known: the root of its variable. */
bool is_domain_of_window(const dsl_value *v);
bool same_value(const dsl_value *x, const dsl_value *y);
/* What to do about two values that one name cannot hold. */
const char *retype_hint(arena *a, const dsl_value *x, const dsl_value *y);
/* A value's type as messages name it: "int32", "Tile[[4, 8], fp32]". */
const char *type_name(arena *a, const dsl_value *v);
/* The type of a value that a variable can hold; false for compile-time objects. */
bool value_type(const dsl_value *v, ir_type *type);

#endif
