/* Comparisons, `and`, `or`, and the conditions of statements.
 *
 * Numbers are compared by value, whatever their types: no conversion may change what the answer is. */
#include "frontend/expressions.h"
#include "frontend/scalars_internal.h"
#include "ops/dtypes.h"
#include <string.h>

static const operator_row comparisons[] = {
    {"<", IR_LT, false},  {"<=", IR_LE, false}, {">", IR_GT, false},
    {">=", IR_GE, false}, {"==", IR_EQ, false}, {"!=", IR_NE, false},
};

/* Compares by value: where neither type holds the other, both become 64-bit. */
static void unify_comparison(lowering *fl, dsl_value *x, dsl_value *y)
{
    if (dtype_is_index(x->expr->dtype) && dtype_is_index(y->expr->dtype))
        return;
    pypto_dtype dtype = dtype_widens(x->expr->dtype, y->expr->dtype)   ? y->expr->dtype
                        : dtype_widens(y->expr->dtype, x->expr->dtype) ? x->expr->dtype
                        : is_real(x)                                   ? PYPTO_FP32
                                                                       : PYPTO_INDEX;
    x->expr = ir_convert(fl->a, x->expr, dtype, x->span);
    y->expr = ir_convert(fl->a, y->expr, dtype, y->span);
}

/* UINT64 with a signed number: no type holds both. A negative number is below all of the others, and what is
 * not negative may become UINT64. */
static const ir_expr *compare_with_signed(arena *a, ir_operator op, const ir_expr *x,
                                          const ir_expr *y, pypto_span span)
{
    bool left = dtype_is_signed(x->dtype);
    const ir_expr *number = left ? x : y;
    bool below = op == IR_NE || (left ? op == IR_LT || op == IR_LE : op == IR_GT || op == IR_GE);
    const ir_expr *sign = ir_binary(a, below ? IR_LT : IR_GE, number,
                                    ir_int_of(a, 0, number->dtype), PYPTO_BOOL, span);
    const ir_expr *rest = ir_binary(a, op, ir_convert(a, x, PYPTO_UINT64, span),
                                    ir_convert(a, y, PYPTO_UINT64, span), PYPTO_BOOL, span);
    return ir_binary(a, below ? IR_OR : IR_AND, sign, rest, PYPTO_BOOL, span);
}

/* Python compares floats as doubles, and integers by value. */
static dsl_value literal_comparison(lowering *fl, ir_operator op, const dsl_value *x,
                                    const dsl_value *y, pypto_span span)
{
    double a = literal_real(x);
    double b = literal_real(y);
    if (!is_real(x) && !is_real(y)) { /* not as doubles, which do not hold them all */
        const wide_int difference = constant_value(x->expr) - constant_value(y->expr);
        a = difference < 0 ? -1 : difference > 0;
        b = 0;
    }
    bool truth = op == IR_LT   ? a < b
                 : op == IR_LE ? a <= b
                 : op == IR_GT ? a > b
                 : op == IR_GE ? a >= b
                 : op == IR_EQ ? a == b
                               : a != b;
    return literal_bool(fl->a, truth, span);
}

dsl_value scalar_compare(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span)
{
    const operator_row *row = NULL;
    for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++) {
        if (strcmp(comparisons[i].spelling, op) == 0)
            row = &comparisons[i];
    }
    if (row == NULL)
        return report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, span,
                      "compare numbers with < <= > >= == !=", "Unsupported comparison '%s'", op);
    if (!need_scalars(fl, op, &x, &y))
        return poison();
    bool both = x.literal && y.literal;
    if (both && x.expr->dtype != PYPTO_BOOL && y.expr->dtype != PYPTO_BOOL)
        return literal_comparison(fl, row->op, &x, &y, span);
    if (x.literal && !y.literal && !adapt_literal(fl, op, &x, &y, span))
        return poison();
    if (y.literal && !x.literal && !adapt_literal(fl, op, &y, &x, span))
        return poison();
    bool equality = row->op == IR_EQ || row->op == IR_NE;
    bool bools = x.expr->dtype == PYPTO_BOOL;
    if (x.expr->dtype == PYPTO_TASK_ID && !need_number(fl, op, &x))
        return poison();
    if (!dtype_same_category(x.expr->dtype, y.expr->dtype))
        return category_error(fl, op, &x, &y, span);
    if (bools && !equality)
        return report(fl->fe, DIAG_BAD_SCALAR, span,
                      "compute with numbers; combine conditions with and, or, not",
                      "'%s' does not accept bool dtype", op);
    if (!both && (x.expr->dtype == PYPTO_UINT64) != (y.expr->dtype == PYPTO_UINT64) &&
        (dtype_is_signed(x.expr->dtype) || dtype_is_signed(y.expr->dtype)))
        return scalar_value(compare_with_signed(fl->a, row->op, x.expr, y.expr, span), span);
    unify_comparison(fl, &x, &y);
    dsl_value result =
        scalar_value(ir_binary(fl->a, row->op, x.expr, y.expr, PYPTO_BOOL, span), span);
    result.literal = both;
    return result;
}

static bool need_bool(lowering *fl, const char *op, const dsl_value *v)
{
    if (!need_scalar(fl, op, v))
        return false;
    if (v->expr->dtype == PYPTO_BOOL)
        return true;
    report(fl->fe, DIAG_BAD_CONDITION, v->span, "compare it: x != 0",
           "an operand of '%s' must be a Bool-typed scalar, not %s", op,
           pypto_dtype_name(v->expr->dtype));
    return false;
}

dsl_value scalar_logic(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span)
{
    bool first = need_bool(fl, op, &x);
    if (!need_bool(fl, op, &y) || !first)
        return poison();
    bool is_and = strcmp(op, "and") == 0;
    /* A constant side decides, or does not matter: what is left may be a constant condition. */
    if (x.expr->kind == IR_BOOL)
        return (x.expr->integer != 0) == is_and ? y : x;
    if (y.expr->kind == IR_BOOL)
        return (y.expr->integer != 0) == is_and ? x : y;
    return scalar_value(ir_binary(fl->a, is_and ? IR_AND : IR_OR, x.expr, y.expr, PYPTO_BOOL, span),
                        span);
}

bool condition(lowering *fl, const syntax_expr *e, const char *statement, dsl_value *v)
{
    *v = eval(fl, e);
    if (v->kind == VALUE_POISON)
        return false;
    if (v->kind == VALUE_SCALAR && v->expr->dtype == PYPTO_BOOL)
        return true;
    report(fl->fe, DIAG_BAD_CONDITION, e->span,
           v->kind == VALUE_SCALAR ? "compare it: x != 0" : "compare two numbers: a != b",
           "%s condition must be a Bool-typed scalar, not %s", statement, describe(fl->a, v));
    return false;
}
