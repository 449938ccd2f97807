/* Typed arithmetic on scalars: what operators of the script become, and conversions.
 *
 * Two kinds of number meet here. A *literal* (also a constant of the script, and whatever is computed
 * from literals alone) is Python's: integers are exact, floats are doubles, `/` divides truly (literals.c).
 * It has no element type of its own and takes that of the operand it meets, if it fits; alone, an integer is
 * INDEX and a float FP32. A *typed* scalar has an element type: integers go with integers and floats
 * with floats, the wider type wins, and everything else asks for pl.cast.
 *
 * The IR wants both operands of an operation in one type, so conversions are put in here. */
#include "frontend/scalars_internal.h"
#include "ops/dtypes.h"
#include <string.h>

static const operator_row operators[] = {
    {"+", IR_ADD, false},      {"-", IR_SUB, false},  {"*", IR_MUL, false},   {"/", IR_DIV, false},
    {"//", IR_FLOORDIV, true}, {"%", IR_MOD, true},   {"<<", IR_SHL, true},   {">>", IR_SHR, true},
    {"&", IR_BITAND, true},    {"|", IR_BITOR, true}, {"^", IR_BITXOR, true},
};

const operator_row *find_operator(const char *spelling)
{
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (strcmp(operators[i].spelling, spelling) == 0)
            return &operators[i];
    }
    return NULL;
}

static dsl_value typed_binary(lowering *fl, const operator_row *row, dsl_value x, dsl_value y,
                              pypto_span span)
{
    bool shift = row->op == IR_SHL || row->op == IR_SHR;
    bool divides = row->op == IR_DIV || row->op == IR_FLOORDIV || row->op == IR_MOD;
    pypto_dtype dtype = x.expr->dtype;
    if (row->integers_only && (is_real(&x) || is_real(&y)))
        return report(fl->fe, DIAG_BAD_SCALAR, span, "convert to an integer type with pl.cast",
                      "'%s' needs integers", row->spelling);
    /* A shift count has a type of its own; the result has that of what is shifted. */
    if (!shift && !scalar_unify(fl, row->spelling, &x, &y, span, &dtype))
        return poison();
    int64_t number = 0;
    bool known = ir_is_const_int(y.expr, &number);
    if (shift &&
        (is_beyond_index(y.expr) || (known && (number < 0 || number >= dtype_bits(dtype)))))
        return report(fl->fe, DIAG_BAD_SCALAR, y.span,
                      "shift by fewer bits, or convert to a wider type first",
                      "a shift by %s leaves nothing of %s %s", constant_text(fl->a, y.expr),
                      text_article(pypto_dtype_name(dtype)), pypto_dtype_name(dtype));
    if (divides && ((known && number == 0) || (y.expr->kind == IR_FLOAT && y.expr->real == 0.0)))
        return zero_division(fl, span);
    if (row->op == IR_DIV && !ir_is_float(dtype))
        return report(fl->fe, DIAG_BAD_SCALAR, span,
                      "integers are divided by //, which rounds down", "'/' divides floats, not %s",
                      pypto_dtype_name(dtype));
    const ir_expr *result = ir_binary(fl->a, row->op, x.expr, y.expr, dtype, span);
    bool constant = ir_is_const_int(x.expr, &number) && ir_is_const_int(y.expr, &number);
    if (constant && result->kind == IR_BINARY)
        return too_large(fl, span);
    return scalar_value(result, span);
}

dsl_value scalar_binary(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span)
{
    if (!need_scalars(fl, op, &x, &y) || !need_number(fl, op, &x) || !need_number(fl, op, &y))
        return poison();
    const operator_row *row = find_operator(op);
    bool power = strcmp(op, "**") == 0;
    if ((row == NULL && !power) || (power && !(x.literal && y.literal)))
        return report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, span,
                      power ? "** is for constants only" : "use + - * / // % << >> & | ^",
                      "Unsupported binary operator '%s'", op);
    if (!x.literal || !y.literal)
        return typed_binary(fl, row, x, y, span);
    if (is_real(&x) || is_real(&y))
        return literal_float_binary(fl, op, literal_real(&x), literal_real(&y), span);
    return literal_int_binary(fl, op, &x, &y, span);
}

dsl_value scalar_extreme(lowering *fl, const char *what, ir_operator op, dsl_value x, dsl_value y,
                         pypto_span span)
{
    if (!need_scalars(fl, what, &x, &y) || !need_number(fl, what, &x) || !need_number(fl, what, &y))
        return poison();
    if (x.literal && y.literal) { /* Python's: the first of equal ones, as it is */
        bool less = literal_real(&y) < literal_real(&x);
        bool more = literal_real(&y) > literal_real(&x);
        if (!is_real(&x) && !is_real(&y)) {
            less = constant_value(y.expr) < constant_value(x.expr);
            more = constant_value(y.expr) > constant_value(x.expr);
        }
        return (op == IR_MIN ? less : more) ? y : x;
    }
    pypto_dtype dtype = PYPTO_INDEX;
    if (!scalar_unify(fl, what, &x, &y, span, &dtype))
        return poison();
    return scalar_value(ir_binary(fl->a, op, x.expr, y.expr, dtype, span), span);
}

dsl_value scalar_unary(lowering *fl, const char *op, dsl_value x, pypto_span span)
{
    arena *a = fl->a;
    if (!need_scalar(fl, op, &x))
        return poison();
    pypto_dtype dtype = x.expr->dtype;
    if (strcmp(op, "not") == 0) {
        if (dtype != PYPTO_BOOL)
            return report(fl->fe, DIAG_BAD_CONDITION, x.span, "compare it: x == 0",
                          "'not' needs a Bool-typed scalar, not %s", pypto_dtype_name(dtype));
        dsl_value result = scalar_value(ir_unary(a, IR_NOT, x.expr, PYPTO_BOOL, span), span);
        result.literal = x.literal;
        return result;
    }
    if (!need_number(fl, op, &x))
        return poison();
    bool invert = strcmp(op, "~") == 0;
    if (invert && is_real(&x))
        return report(fl->fe, DIAG_BAD_SCALAR, span, "convert it: pl.cast(x, pl.INT32)",
                      "'~' needs an integer");
    if (strcmp(op, "+") == 0)
        return x;
    if (x.literal && is_real(&x))
        return literal_float(a, -x.real, span);
    if (x.literal)
        return literal_wide(fl, invert ? ~constant_value(x.expr) : -constant_value(x.expr), span);
    dsl_value result =
        scalar_value(ir_unary(a, invert ? IR_INVERT : IR_NEG, x.expr, dtype, span), span);
    return x.expr->kind == IR_INT && result.expr->kind != IR_INT ? too_large(fl, span) : result;
}

dsl_value scalar_convert(lowering *fl, dsl_value v, pypto_dtype dtype, const char *what)
{
    pypto_dtype from = v.expr->dtype;
    bool int_literal_to_float = v.literal && ir_is_integer(from) && ir_is_float(dtype);
    if (!int_literal_to_float && !dtype_same_category(from, dtype))
        return report(fl->fe, DIAG_DTYPE_MISMATCH, v.span,
                      dtype == PYPTO_BOOL ? "compare it: x != 0"
                                          : arena_printf(fl->a, "convert it: pl.cast(x, pl.%s)",
                                                         dtype_spelling(dtype)),
                      "%s has dtype %s, but %s is wanted", what, pypto_dtype_name(from),
                      pypto_dtype_name(dtype));
    if (v.literal && ir_is_integer(from) && ir_is_integer(dtype) &&
        !dtype_holds_constant(dtype, v.expr))
        return report(fl->fe, DIAG_BAD_SCALAR, v.span,
                      "use a smaller number, or declare a wider type", "%s: %s does not fit %s",
                      what, constant_text(fl->a, v.expr), pypto_dtype_name(dtype));
    const ir_expr *expr = v.literal && is_real(&v) ? ir_float(fl->a, v.real) : v.expr;
    return scalar_value(ir_convert(fl->a, expr, dtype, v.span), v.span);
}
