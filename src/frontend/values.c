/* Values: how they are made, and what can be asked of them. Nothing here emits IR or reports errors. */
#include "frontend/values.h"

#include "base/text.h"
#include "ops/dtypes.h"

#include <string.h>

/* ---- making values ---- */

dsl_value literal_int(arena *a, int64_t number, pypto_span span)
{
    return (dsl_value){
        .kind = VALUE_SCALAR, .span = span, .expr = ir_int(a, number), .literal = true};
}

dsl_value literal_uint(arena *a, uint64_t number, pypto_span span)
{
    if (number <= INT64_MAX)
        return literal_int(a, (int64_t)number, span);
    return (dsl_value){.kind = VALUE_SCALAR,
                       .span = span,
                       .expr = ir_int_of(a, (int64_t)number, PYPTO_UINT64),
                       .literal = true};
}

dsl_value literal_float(arena *a, double number, pypto_span span)
{
    return (dsl_value){.kind = VALUE_SCALAR,
                       .span = span,
                       .expr = ir_float(a, number),
                       .literal = true,
                       .real = number};
}

dsl_value literal_bool(arena *a, bool truth, pypto_span span)
{
    return (dsl_value){
        .kind = VALUE_SCALAR, .span = span, .expr = ir_bool(a, truth), .literal = true};
}

dsl_value scalar_value(const ir_expr *expr, pypto_span span)
{
    return (dsl_value){.kind = VALUE_SCALAR, .span = span, .expr = expr};
}

dsl_value var_value(arena *a, ir_var *var, pypto_span span)
{
    if (var->type.kind == IR_SCALAR)
        return scalar_value(ir_ref(a, var), span);
    return (dsl_value){.kind = VALUE_VAR, .var = var, .span = span};
}

dsl_value string_value(const char *string, pypto_span span)
{
    return (dsl_value){.kind = VALUE_STRING, .text = string, .span = span};
}

dsl_value tuple_value(const dsl_value *items, int32_t count, pypto_span span)
{
    return (dsl_value){.kind = VALUE_TUPLE, .items = items, .count = count, .span = span};
}

/* ---- asking about them ---- */

bool is_memory_value(const dsl_value *v)
{
    return v->kind == VALUE_VAR && ir_is_memory(v->var->type.kind);
}

ir_var *value_var(const dsl_value *v)
{
    if (v->kind == VALUE_VAR)
        return v->var;
    return v->kind == VALUE_SCALAR && v->expr->kind == IR_VAR ? v->expr->var : NULL;
}

bool value_type(const dsl_value *v, ir_type *type)
{
    if (v->kind == VALUE_VAR)
        *type = v->var->type;
    else if (v->kind == VALUE_SCALAR)
        *type = ir_scalar_type(v->expr->dtype);
    else
        return false;
    return true;
}

bool has_variables(const dsl_value *v)
{
    if (v->kind == VALUE_TUPLE) {
        for (int32_t i = 0; i < v->count; i++) {
            if (has_variables(&v->items[i]))
                return true;
        }
    }
    bool constant =
        v->kind == VALUE_SCALAR &&
        (v->expr->kind == IR_INT || v->expr->kind == IR_FLOAT || v->expr->kind == IR_BOOL);
    return v->kind == VALUE_VAR || (v->kind == VALUE_SCALAR && !constant);
}

static bool same_text(const char *x, const char *y)
{
    return strcmp(x == NULL ? "" : x, y == NULL ? "" : y) == 0;
}

bool is_domain_of_window(const dsl_value *v)
{
    return v->kind == VALUE_VAR && v->var->type.kind == IR_COMM && v->var->root != NULL &&
           v->var->root->type.kind == IR_WINDOW;
}

bool same_value(const dsl_value *x, const dsl_value *y)
{
    if (x->kind != y->kind)
        return false;
    switch (x->kind) {
    case VALUE_POISON:
    case VALUE_NONE: return true;
    case VALUE_SCALAR:
        return x->literal == y->literal && x->expr->dtype == y->expr->dtype &&
               ir_expr_equal(x->expr, y->expr);
    case VALUE_VAR: return x->var == y->var;
    case VALUE_DTYPE: return x->dtype == y->dtype;
    case VALUE_STRING:
    case VALUE_PATH:
    case VALUE_OTHER: return same_text(x->text, y->text);
    case VALUE_ENUM:
    case VALUE_FUNCTION: return x->integer == y->integer && same_text(x->text, y->text);
    case VALUE_TUPLE: break;
    }
    bool same = x->count == y->count;
    for (int32_t i = 0; same && i < x->count; i++)
        same = same_value(&x->items[i], &y->items[i]);
    return same;
}

/* ---- for messages ---- */

const char *describe(arena *a, const dsl_value *v)
{
    switch (v->kind) {
    case VALUE_POISON: return "an error";
    case VALUE_NONE: return "None";
    case VALUE_SCALAR:
        return arena_printf(a, "a Scalar of type %s", pypto_dtype_name(v->expr->dtype));
    case VALUE_VAR: {
        const char *noun = ir_kind_name(v->var->type.kind);
        return arena_printf(a, "%s %s", text_article(noun), noun);
    }
    case VALUE_TUPLE: return "a list or tuple";
    case VALUE_STRING: return "a string";
    case VALUE_DTYPE: return arena_printf(a, "the dtype %s", pypto_dtype_name(v->dtype));
    case VALUE_ENUM: return arena_printf(a, "a member of %s", v->text);
    case VALUE_PATH: return v->text;
    case VALUE_FUNCTION: return "a function";
    case VALUE_OTHER: return arena_printf(a, "a Python object of type %s", v->text);
    }
    return "?";
}

const char *type_name(arena *a, const dsl_value *v)
{
    ir_type type;
    if (!value_type(v, &type))
        return describe(a, v);
    if (type.kind == IR_SCALAR)
        return pypto_dtype_name(type.dtype);
    return ir_type_text(a, &type);
}

const char *retype_hint(arena *a, const dsl_value *x, const dsl_value *y)
{
    if (x->kind != VALUE_SCALAR || y->kind != VALUE_SCALAR)
        return "use another name for one of the two";
    pypto_dtype dtype = dtype_is_index(x->expr->dtype) ? y->expr->dtype : x->expr->dtype;
    return arena_printf(a,
                        "give both one type: a literal as pl.const(3, pl.%s), any other value as "
                        "pl.cast(x, pl.%s); or use another name for one of the two",
                        dtype_spelling(dtype), dtype_spelling(dtype));
}
