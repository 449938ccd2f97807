/* Arithmetic among literals, as Python does it: integers are exact as far as 64 bits go, and an error beyond;
 * floats are doubles. */
#include "frontend/scalars_internal.h"

#include <math.h>
#include <string.h>

dsl_value too_large(lowering *fl, pypto_span span)
{
    return report(fl->fe, DIAG_BAD_SCALAR, span, "use smaller numbers",
                  "the result does not fit 64 bits");
}

dsl_value zero_division(lowering *fl, pypto_span span)
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

dsl_value literal_float_binary(lowering *fl, const char *op, double x, double y, pypto_span span)
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

dsl_value literal_int_binary(lowering *fl, const char *op, const dsl_value *x, const dsl_value *y,
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
