/* Scalar expressions: literals, arithmetic, comparisons, logic and conversions.
 *
 * Two kinds of number meet here. A *literal* (also a constant of the script, and whatever is computed
 * from literals alone) is Python's: integers are exact, floats are doubles, `/` divides truly. It has
 * no element type of its own and takes that of the operand it meets, if it fits; alone, an integer is
 * INDEX and a float FP32. A *typed* scalar has an element type: integers go with integers and floats
 * with floats, the wider type wins, and everything else asks for pl.cast.
 *
 * The IR wants both operands of an operation in one type, so conversions are put in here. */
#include "frontend/scalars.h"
#include "frontend/expressions.h"
#include "frontend/lower.h"

#include "ops/dtypes.h"

#include <math.h>
#include <string.h>

static bool is_float(const dsl_value *v)
{
    return ir_is_float(v->expr->dtype);
}

static double literal_real(const dsl_value *v)
{
    return is_float(v) ? v->real : (double)v->expr->integer;
}

/* ---- operands ---- */

/* What to write for an operator that tiles and tensors do not have. */
static const char *operation_hint(const char *op)
{
    static const struct {
        const char *op;
        const char *hint;
    } rows[] = {
        {"+", "tiles are added by pl.add(a, b)"},
        {"-", "tiles are subtracted by pl.sub(a, b)"},
        {"*", "tiles are multiplied by pl.mul(a, b)"},
        {"/", "tiles are divided by pl.div(a, b), with the tile first; 1 / t is pl.recip(t)"},
        {"//", "tiles are divided by pl.div(a, b), which drops the fraction of integers"},
        {"%", "remainders of tiles are pl.rem(a, b)"},
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

/* Reports anything that is no scalar. */
static bool need_scalar(lowering *fl, const char *op, const dsl_value *v)
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

/* One message even if both are wrong: they are for the same reason. */
static bool need_scalars(lowering *fl, const char *op, const dsl_value *x, const dsl_value *y)
{
    return need_scalar(fl, op, x) && need_scalar(fl, op, y);
}

static bool need_number(lowering *fl, const char *op, const dsl_value *v)
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

static dsl_value category_error(lowering *fl, const char *op, const dsl_value *x,
                                const dsl_value *y, pypto_span span)
{
    return report(fl->fe, DIAG_BAD_SCALAR, span, "convert one side: pl.cast(x, pl.FP32)",
                  "'%s' requires same numeric dtype category, not %s and %s", op,
                  pypto_dtype_name(x->expr->dtype), pypto_dtype_name(y->expr->dtype));
}

/* A literal as a scalar of the other side's type. False after reporting. */
static bool adapt_literal(lowering *fl, const char *op, dsl_value *literal, const dsl_value *other,
                          pypto_span span)
{
    pypto_dtype dtype = other->expr->dtype;
    bool fits_category = dtype_same_category(literal->expr->dtype, dtype) ||
                         (ir_is_integer(literal->expr->dtype) && ir_is_float(dtype));
    if (!fits_category) {
        category_error(fl, op, literal, other, span);
        return false;
    }
    if (ir_is_integer(dtype) && !dtype_holds(dtype, literal->expr->integer)) {
        report(fl->fe, DIAG_BAD_SCALAR, literal->span,
               "convert the other side to a wider type: pl.cast(x, pl.INT64)",
               "%lld does not fit %s, the type of the other operand",
               (long long)literal->expr->integer, pypto_dtype_name(dtype));
        return false;
    }
    if (is_float(literal))
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

/* ---- arithmetic among literals, as Python does it ---- */

static dsl_value too_large(lowering *fl, pypto_span span)
{
    return report(fl->fe, DIAG_BAD_SCALAR, span, "use smaller numbers",
                  "the result does not fit 64 bits");
}

static dsl_value zero_division(lowering *fl, pypto_span span)
{
    return report(fl->fe, DIAG_BAD_SCALAR, span, "the divisor must not be 0", "division by zero");
}

static dsl_value literal_power(lowering *fl, int64_t base, int64_t exponent, pypto_span span)
{
    if (exponent < 0)
        return literal_float(fl->a, pow((double)base, (double)exponent), span);
    int64_t result = 1;
    for (; exponent > 0; exponent--) {
        if (__builtin_mul_overflow(result, base, &result))
            return too_large(fl, span);
        if (result == 0 || (result == 1 && base == 1))
            break;
        if (base == -1) {
            result = exponent % 2 == 0 ? 1 : -1;
            break;
        }
    }
    return literal_int(fl->a, result, span);
}

typedef struct operator_row {
    const char *spelling;
    ir_operator op;
    bool integers_only;
} operator_row;

static const operator_row operators[] = {
    {"+", IR_ADD, false},      {"-", IR_SUB, false},  {"*", IR_MUL, false},   {"/", IR_DIV, false},
    {"//", IR_FLOORDIV, true}, {"%", IR_MOD, true},   {"<<", IR_SHL, true},   {">>", IR_SHR, true},
    {"&", IR_BITAND, true},    {"|", IR_BITOR, true}, {"^", IR_BITXOR, true},
};

static const operator_row *find_operator(const char *spelling)
{
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (strcmp(operators[i].spelling, spelling) == 0)
            return &operators[i];
    }
    return NULL;
}

static dsl_value literal_floats(lowering *fl, const char *op, double x, double y, pypto_span span)
{
    bool divides = strcmp(op, "/") == 0 || strcmp(op, "//") == 0 || strcmp(op, "%") == 0;
    double result = 0.0;
    if (divides && y == 0.0)
        return zero_division(fl, span);
    if (strcmp(op, "+") == 0)
        result = x + y;
    else if (strcmp(op, "-") == 0)
        result = x - y;
    else if (strcmp(op, "*") == 0)
        result = x * y;
    else if (strcmp(op, "/") == 0)
        result = x / y;
    else if (strcmp(op, "//") == 0)
        result = floor(x / y);
    else if (strcmp(op, "%") == 0)
        result = x - y * floor(x / y);
    else if (strcmp(op, "**") == 0)
        result = pow(x, y);
    else
        return report(fl->fe, DIAG_BAD_SCALAR, span, "use integers", "'%s' needs integers", op);
    return literal_float(fl->a, result, span);
}

static dsl_value literal_ints(lowering *fl, const char *op, const dsl_value *x, const dsl_value *y,
                              pypto_span span)
{
    int64_t b = y->expr->integer;
    if (strcmp(op, "**") == 0)
        return literal_power(fl, x->expr->integer, b, span);
    if ((strcmp(op, "/") == 0 || strcmp(op, "//") == 0 || strcmp(op, "%") == 0) && b == 0)
        return zero_division(fl, span);
    if (strcmp(op, "/") == 0)
        return literal_float(fl->a, (double)x->expr->integer / (double)b, span);
    if (strcmp(op, ">>") == 0 && b > 63)
        return literal_int(fl->a, x->expr->integer < 0 ? -1 : 0, span);
    if ((strcmp(op, "<<") == 0 || strcmp(op, ">>") == 0) && b < 0)
        return report(fl->fe, DIAG_BAD_SCALAR, y->span, "shift the other way",
                      "a shift count must not be negative");
    const ir_expr *result =
        ir_binary(fl->a, find_operator(op)->op, x->expr, y->expr, PYPTO_INDEX, span);
    int64_t number = 0;
    return ir_is_const_int(result, &number) ? literal_int(fl->a, number, span)
                                            : too_large(fl, span);
}

/* ---- arithmetic ---- */

static dsl_value typed_binary(lowering *fl, const operator_row *row, dsl_value x, dsl_value y,
                              pypto_span span)
{
    bool shift = row->op == IR_SHL || row->op == IR_SHR;
    bool divides = row->op == IR_DIV || row->op == IR_FLOORDIV || row->op == IR_MOD;
    pypto_dtype dtype = x.expr->dtype;
    if (row->integers_only && (is_float(&x) || is_float(&y)))
        return report(fl->fe, DIAG_BAD_SCALAR, span, "convert to an integer type with pl.cast",
                      "'%s' needs integers", row->spelling);
    /* A shift count has a type of its own; the result has that of what is shifted. */
    if (!shift && !scalar_unify(fl, row->spelling, &x, &y, span, &dtype))
        return poison();
    int64_t number = 0;
    bool known = ir_is_const_int(y.expr, &number);
    if (shift && known && (number < 0 || number >= dtype_bits(dtype)))
        return report(fl->fe, DIAG_BAD_SCALAR, y.span,
                      "shift by fewer bits, or convert to a wider type first",
                      "a shift by %lld leaves nothing of %s %s", (long long)number,
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
    if (is_float(&x) || is_float(&y))
        return literal_floats(fl, op, literal_real(&x), literal_real(&y), span);
    return literal_ints(fl, op, &x, &y, span);
}

dsl_value scalar_extreme(lowering *fl, const char *what, ir_operator op, dsl_value x, dsl_value y,
                         pypto_span span)
{
    if (!need_scalars(fl, what, &x, &y) || !need_number(fl, what, &x) || !need_number(fl, what, &y))
        return poison();
    if (x.literal && y.literal) { /* Python's: the first of equal ones, as it is */
        bool less = literal_real(&y) < literal_real(&x);
        bool more = literal_real(&y) > literal_real(&x);
        if (!is_float(&x) && !is_float(&y)) {
            less = y.expr->integer < x.expr->integer;
            more = y.expr->integer > x.expr->integer;
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
    if (invert && is_float(&x))
        return report(fl->fe, DIAG_BAD_SCALAR, span, "convert it: pl.cast(x, pl.INT32)",
                      "'~' needs an integer");
    if (strcmp(op, "+") == 0)
        return x;
    if (x.literal && is_float(&x))
        return literal_float(a, -x.real, span);
    dsl_value result =
        scalar_value(ir_unary(a, invert ? IR_INVERT : IR_NEG, x.expr, dtype, span), span);
    if (x.expr->kind == IR_INT && result.expr->kind != IR_INT)
        return too_large(fl, span);
    result.literal = x.literal;
    return result;
}

/* ---- comparisons and logic ---- */

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
                        : is_float(x)                                  ? PYPTO_FP32
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

/* Python compares floats as doubles, and integers with them by value. */
static dsl_value literal_comparison(lowering *fl, ir_operator op, const dsl_value *x,
                                    const dsl_value *y, pypto_span span)
{
    double a = literal_real(x);
    double b = literal_real(y);
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
    if (both && (is_float(&x) || is_float(&y)))
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

/* ---- conversion ---- */

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
        !dtype_holds(dtype, v.expr->integer))
        return report(fl->fe, DIAG_BAD_SCALAR, v.span,
                      "use a smaller number, or declare a wider type", "%s: %lld does not fit %s",
                      what, (long long)v.expr->integer, pypto_dtype_name(dtype));
    const ir_expr *expr = v.literal && is_float(&v) ? ir_float(fl->a, v.real) : v.expr;
    return scalar_value(ir_convert(fl->a, expr, dtype, v.span), v.span);
}
