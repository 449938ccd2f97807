/* Arithmetic among literals, as Python does it: integers are exact as far as 64 bits go, and an error beyond;
 * floats are doubles. */
#include "frontend/scalars_internal.h"

#include <math.h>
#include <string.h>

dsl_value too_large(lowering *fl, pypto_span span)
{
    return report(fl->fe, DIAG_BAD_SCALAR, span,
                  "use smaller numbers, also on the way: 0xffffffffffffffff instead of 2**64 - 1",
                  "the result does not fit 64 bits");
}

dsl_value zero_division(lowering *fl, pypto_span span)
{
    return report(fl->fe, DIAG_BAD_SCALAR, span, "the divisor must not be 0", "division by zero");
}

dsl_value literal_wide(lowering *fl, wide_int number, pypto_span span)
{
    if (number < INT64_MIN || number > (wide_int)UINT64_MAX)
        return too_large(fl, span);
    return number < 0 ? literal_int(fl->a, (int64_t)number, span)
                      : literal_uint(fl->a, (uint64_t)number, span);
}

static dsl_value literal_power(lowering *fl, wide_int base, wide_int exponent, pypto_span span)
{
    if (exponent < 0)
        return literal_float(fl->a, pow((double)base, (double)exponent), span);
    if (base == 0 || base == 1 || base == -1) /* of any exponent */
        return literal_int(
            fl->a, exponent == 0 || (base < 0 && exponent % 2 == 0) ? 1 : (int64_t)base, span);
    wide_int result = 1;
    for (; exponent > 0; exponent--) {
        if (__builtin_mul_overflow(result, base, &result))
            return too_large(fl, span);
    }
    return literal_wide(fl, result, span);
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

/* Rounded down, as Python divides. */
static wide_int floor_divide(wide_int a, wide_int b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* False: not even 128 bits hold it. */
static bool wide_binary(ir_operator op, wide_int a, wide_int b, wide_int *result)
{
    switch (op) {
    case IR_ADD: return !__builtin_add_overflow(a, b, result);
    case IR_SUB: return !__builtin_sub_overflow(a, b, result);
    case IR_MUL: return !__builtin_mul_overflow(a, b, result);
    case IR_FLOORDIV: *result = floor_divide(a, b); return true;
    case IR_MOD: *result = a - b * floor_divide(a, b); return true;
    case IR_SHL:
        *result = 0;
        return a == 0 || (b < 64 && !__builtin_mul_overflow(a, (wide_int)1 << b, result));
    case IR_SHR: *result = a >> (b < 64 ? b : 64); return true;
    case IR_BITAND: *result = a & b; return true;
    case IR_BITOR: *result = a | b; return true;
    case IR_BITXOR: *result = a ^ b; return true;
    default: return false;
    }
}

dsl_value literal_int_binary(lowering *fl, const char *op, const dsl_value *x, const dsl_value *y,
                             pypto_span span)
{
    const wide_int a = constant_value(x->expr);
    const wide_int b = constant_value(y->expr);
    wide_int result = 0;
    if (strcmp(op, "**") == 0)
        return literal_power(fl, a, b, span);
    if ((strcmp(op, "/") == 0 || strcmp(op, "//") == 0 || strcmp(op, "%") == 0) && b == 0)
        return zero_division(fl, span);
    if (strcmp(op, "/") == 0)
        return literal_float(fl->a, (double)a / (double)b, span);
    if ((strcmp(op, "<<") == 0 || strcmp(op, ">>") == 0) && b < 0)
        return report(fl->fe, DIAG_BAD_SCALAR, y->span, "shift the other way",
                      "a shift count must not be negative");
    return wide_binary(find_operator(op)->op, a, b, &result) ? literal_wide(fl, result, span)
                                                             : too_large(fl, span);
}
