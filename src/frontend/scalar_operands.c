/* Operands of operators: what is accepted, and to which type two of them are brought. */
#include "frontend/scalars_internal.h"
#include "ops/dtypes.h"
#include <string.h>

bool is_real(const dsl_value *v)
{
    return ir_is_float(v->expr->dtype);
}

double literal_real(const dsl_value *v)
{
    return is_real(v) ? v->real : (double)constant_value(v->expr);
}

/* What to write for an operator that tiles and tensors do not have. */
static const char *operation_hint(const char *op)
{
    static const struct {
        const char *op;
        const char *hint;
    } rows[] = {
        {"//", "a / b divides tiles, and drops the fraction of integers: pl.div(a, b)"},
        {"**", "multiply it by itself: pl.mul(t, t)"},
        {"@", "matrices are multiplied by pl.matmul(a, b)"},
        {"min", "of tiles it is pl.minimum(a, b), and pl.row_min(t) along an axis"},
        {"max", "of tiles it is pl.maximum(a, b), and pl.row_max(t) along an axis"},
    };
    const char *word = strncmp(op, "pl.", 3) == 0 ? op + 3 : op;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].op, word) == 0)
            return rows[i].hint;
    }
    if (strpbrk(op, "<>=!") != NULL)
        return "tiles are compared by pl.cmp(a, b, cmp_type=\"lt\"), which makes a mask for pl.sel";
    return "operators take numbers";
}

bool need_scalar(lowering *fl, const char *op, const dsl_value *v)
{
    if (v->kind == VALUE_SCALAR)
        return true;
    if (v->kind == VALUE_POISON)
        return false;
    if (v->kind == VALUE_OTHER) {
        report(fl->fe, DIAG_BAD_CLOSURE, v->span, NULL, "Unsupported closure variable type: %s",
               describe(fl->a, v));
        return false;
    }
    const char *hint = "operators take numbers";
    if (v->kind == VALUE_VAR && (v->var->type.kind == IR_TILE || v->var->type.kind == IR_TENSOR))
        hint = fl->ir->plane == PLD_PLANE_CORE
                   ? operation_hint(op)
                   : "what computes with tensors is an in-core function (@pl.jit.incore): call one";
    report(fl->fe, DIAG_BAD_SCALAR, v->span, hint,
           "an operand of '%s' must be ScalarExpr or Var with ScalarType, not %s", op,
           describe(fl->a, v));
    return false;
}

bool need_scalars(lowering *fl, const char *op, const dsl_value *x, const dsl_value *y)
{
    return need_scalar(fl, op, x) && need_scalar(fl, op, y);
}

bool need_number(lowering *fl, const char *op, const dsl_value *v)
{
    if (v->expr->dtype == PYPTO_TASK_ID) {
        report(fl->fe, DIAG_BAD_SCALAR, v->span,
               "list them in deps=", "'%s' does not accept ids of tasks: they are no numbers", op);
        return false;
    }
    if (v->expr->dtype != PYPTO_BOOL)
        return true;
    report(fl->fe, DIAG_BAD_SCALAR, v->span,
           "compute with numbers; combine conditions with and, or, not",
           "'%s' does not accept bool dtype", op);
    return false;
}

dsl_value category_error(lowering *fl, const char *op, const dsl_value *x, const dsl_value *y,
                         pypto_span span)
{
    return report(fl->fe, DIAG_BAD_SCALAR, span, "convert one side: pl.cast(x, pl.FP32)",
                  "'%s' requires same numeric dtype category, not %s and %s", op,
                  pypto_dtype_name(x->expr->dtype), pypto_dtype_name(y->expr->dtype));
}

bool adapt_literal(lowering *fl, const char *op, dsl_value *literal, const dsl_value *other,
                   pypto_span span)
{
    pypto_dtype dtype = other->expr->dtype;
    bool fits_category = dtype_same_category(literal->expr->dtype, dtype) ||
                         (ir_is_integer(literal->expr->dtype) && ir_is_float(dtype));
    if (!fits_category) {
        category_error(fl, op, literal, other, span);
        return false;
    }
    if (ir_is_integer(dtype) && !dtype_holds_constant(dtype, literal->expr)) {
        report(fl->fe, DIAG_BAD_SCALAR, literal->span,
               arena_printf(fl->a, "convert the other side to a wider type: pl.cast(x, pl.%s)",
                            is_beyond_index(literal->expr) ? "UINT64" : "INT64"),
               "%s does not fit %s, the type of the other operand",
               constant_text(fl->a, literal->expr), pypto_dtype_name(dtype));
        return false;
    }
    if (is_real(literal))
        literal->expr = ir_convert(fl->a, ir_float(fl->a, literal->real), dtype, literal->span);
    else
        literal->expr = ir_convert(fl->a, literal->expr, dtype, literal->span);
    literal->literal = false;
    return true;
}

/* The type that two typed scalars compute in: the wider one, the left one when both are equal. */
static pypto_dtype promote(pypto_dtype x, pypto_dtype y)
{
    return dtype_bits(y) > dtype_bits(x) ? y : x;
}

static bool holds(pypto_dtype wide, pypto_dtype narrow)
{
    return dtype_widens(narrow, wide) || (dtype_is_index(narrow) && dtype_is_index(wide));
}

bool scalar_meeting(const dsl_value *const *values, int64_t count, pypto_dtype *dtype)
{
    for (int64_t i = 0; i < count; i++) {
        if (values[i]->kind != VALUE_SCALAR)
            return false;
        if (i == 0 || !holds(*dtype, values[i]->expr->dtype))
            *dtype = values[i]->expr->dtype;
    }
    for (int64_t i = 0; i < count; i++) {
        if (!holds(*dtype, values[i]->expr->dtype))
            return false;
    }
    return count > 0;
}

bool scalar_unify(lowering *fl, const char *op, dsl_value *x, dsl_value *y, pypto_span span,
                  pypto_dtype *dtype)
{
    if (x->literal && !y->literal && !adapt_literal(fl, op, x, y, span))
        return false;
    if (y->literal && !x->literal && !adapt_literal(fl, op, y, x, span))
        return false;
    if (!dtype_same_category(x->expr->dtype, y->expr->dtype)) {
        category_error(fl, op, x, y, span);
        return false;
    }
    *dtype = promote(x->expr->dtype, y->expr->dtype);
    if (dtype_is_index(x->expr->dtype) && dtype_is_index(y->expr->dtype))
        return true;
    x->expr = ir_convert(fl->a, x->expr, *dtype, x->span);
    y->expr = ir_convert(fl->a, y->expr, *dtype, y->span);
    return true;
}
