/* Scalar expressions: makes their nodes and folds constants.
 *
 * Folding follows what the emitted C computes, so that a program does not change its meaning when
 * a value becomes known: integers narrower than 64 bits wrap, floats round once to their dtype, //
 * and % round towards minus infinity. What has no sensible constant value (64-bit overflow,
 * division by 0, a shift by more than the width) is left as it is written, for the front end to
 * complain about or the emitted C to compute. Besides constants only the neutral elements of
 * integers go (x + 0, x * 1), and chains (x + 1) - 1 join: they come from shapes, and equality of
 * shapes wants them gone.
 *
 * An integer constant is kept canonical: sign- or zero-extended from its dtype's width. A UINT64
 * above INT64_MAX is kept as its bit pattern. */
#include "ir/ir.h"

#include "base/diag.h"

#include <pypto/pld.h>

#include <limits.h>
#include <math.h>

/* ---- dtypes ---- */

static char dtype_class(pypto_dtype dtype)
{
    static const char classes[PYPTO_DTYPE_COUNT] = {
#define DTYPE_CLASS(name, text, bits, class_) class_,
        PYPTO_DTYPES(DTYPE_CLASS)
#undef DTYPE_CLASS
    };
    if ((int)dtype < 0 || dtype >= PYPTO_DTYPE_COUNT)
        return '?';
    return classes[dtype];
}

bool ir_is_integer(pypto_dtype dtype)
{
    return dtype_class(dtype) == 'i' || dtype_class(dtype) == 'u';
}

bool ir_is_float(pypto_dtype dtype)
{
    return dtype_class(dtype) == 'f';
}

static int dtype_bits(pypto_dtype dtype)
{
    return (int)pypto_dtype_bytes(dtype) * CHAR_BIT;
}

static bool is_wide_signed(pypto_dtype dtype)
{
    return dtype == PYPTO_INT64 || dtype == PYPTO_INDEX;
}

/* The canonical constant of `dtype` with the low bits of `value`. */
static int64_t wrap_int(int64_t value, pypto_dtype dtype)
{
    switch (dtype) {
    case PYPTO_BOOL: return value != 0;
    case PYPTO_INT8: return (int8_t)value;
    case PYPTO_INT16: return (int16_t)value;
    case PYPTO_INT32: return (int32_t)value;
    case PYPTO_UINT8: return (uint8_t)value;
    case PYPTO_UINT16: return (uint16_t)value;
    case PYPTO_UINT32: return (uint32_t)value;
    default: return value;
    }
}

/* Rounds to the nearest number with `digits` significant binary digits, ties to even; 2^low is the
 * smallest step there is (that of the subnormals), 2^high the first power that is too large. */
static double round_to(double value, int digits, int low, int high)
{
    if (value == 0.0 || !isfinite(value))
        return value;
    int exponent;
    frexp(value, &exponent);
    int step = exponent - digits > low ? exponent - digits : low;
    double rounded = ldexp(nearbyint(ldexp(value, -step)), step);
    return fabs(rounded) >= ldexp(1.0, high) ? copysign(INFINITY, value) : rounded;
}

static double round_float(double value, pypto_dtype dtype)
{
    if (dtype == PYPTO_FP16)
        return round_to(value, 11, -24, 16);
    if (dtype == PYPTO_BF16)
        return round_to(value, 8, -133, 128);
    return (double)(float)value;
}

/* ---- leaves ---- */

static ir_expr *new_expr(arena *a, ir_expr_kind kind, pypto_dtype dtype, pypto_span span)
{
    ir_expr *e = arena_new(a, ir_expr);
    e->kind = kind;
    e->dtype = dtype;
    e->span = span;
    return e;
}

static const ir_expr *constant_int(arena *a, int64_t value, pypto_dtype dtype, pypto_span span)
{
    ir_expr *e = new_expr(a, dtype == PYPTO_BOOL ? IR_BOOL : IR_INT, dtype, span);
    e->integer = wrap_int(value, dtype);
    return e;
}

static const ir_expr *constant_float(arena *a, double value, pypto_dtype dtype, pypto_span span)
{
    ir_expr *e = new_expr(a, IR_FLOAT, dtype, span);
    e->real = round_float(value, dtype);
    e->exact = e->real;
    return e;
}

const ir_expr *ir_int(arena *a, int64_t value)
{
    return constant_int(a, value, PYPTO_INDEX, SPAN_NONE);
}

const ir_expr *ir_int_of(arena *a, int64_t value, pypto_dtype dtype)
{
    if (ir_is_float(dtype))
        return constant_float(a, (double)value, dtype, SPAN_NONE);
    return constant_int(a, value, dtype, SPAN_NONE);
}

/* A literal that becomes a 16-bit constant is rounded once, from the number that was written. */
const ir_expr *ir_float(arena *a, double value)
{
    ir_expr *e = new_expr(a, IR_FLOAT, PYPTO_FP32, SPAN_NONE);
    e->real = round_float(value, PYPTO_FP32);
    e->exact = value;
    return e;
}

const ir_expr *ir_bool(arena *a, bool value)
{
    return constant_int(a, value, PYPTO_BOOL, SPAN_NONE);
}

const ir_expr *ir_ref(arena *a, ir_var *var)
{
    ir_expr *e = new_expr(a, IR_VAR, var->type.dtype, SPAN_NONE);
    e->var = var;
    return e;
}

const ir_expr *ir_op(arena *a, const struct op_def *op, const ir_operand *operands, int32_t count,
                     pypto_dtype dtype, pypto_span span)
{
    ir_expr *e = new_expr(a, IR_OP, dtype, span);
    e->op_def = op;
    e->operands = operands;
    e->operand_count = count;
    return e;
}

bool ir_is_const_int(const ir_expr *e, int64_t *value)
{
    if (e == NULL || e->kind != IR_INT || (e->dtype == PYPTO_UINT64 && e->integer < 0))
        return false;
    *value = e->integer;
    return true;
}

/* ---- constants ---- */

static bool is_int_constant(const ir_expr *e)
{
    return e->kind == IR_INT || e->kind == IR_BOOL;
}

/* The three operators that can overflow. False: no 64-bit result. */
static bool fold_sum(ir_operator op, int64_t x, int64_t y, bool wide, int64_t *result)
{
    bool overflow = op == IR_ADD   ? __builtin_add_overflow(x, y, result)
                    : op == IR_SUB ? __builtin_sub_overflow(x, y, result)
                                   : __builtin_mul_overflow(x, y, result);
    return !(overflow && wide);
}

static bool fold_shift(ir_operator op, int64_t x, int64_t count, pypto_dtype dtype, int64_t *result)
{
    if (count < 0 || count >= dtype_bits(dtype))
        return false;
    if (op == IR_SHR) {
        *result = dtype == PYPTO_UINT64 ? (int64_t)((uint64_t)x >> count) : x >> count;
        return true;
    }
    *result = (int64_t)((uint64_t)x << count);
    return !(is_wide_signed(dtype) && *result >> count != x);
}

static bool fold_division(ir_operator op, int64_t x, int64_t y, pypto_dtype dtype, int64_t *result)
{
    if (y == 0 || (x == INT64_MIN && y == -1 && dtype != PYPTO_UINT64))
        return false;
    if (dtype == PYPTO_UINT64)
        *result = (int64_t)(op == IR_MOD ? (uint64_t)x % (uint64_t)y : (uint64_t)x / (uint64_t)y);
    else
        *result = op == IR_MOD ? pld_floormod(x, y) : pld_floordiv(x, y);
    return true;
}

/* `dtype` is that of the operands. */
static bool fold_ints(ir_operator op, int64_t x, int64_t y, pypto_dtype dtype, int64_t *result)
{
    bool less = dtype == PYPTO_UINT64 ? (uint64_t)x < (uint64_t)y : x < y;
    switch (op) {
    case IR_ADD:
    case IR_SUB:
    case IR_MUL: return fold_sum(op, x, y, is_wide_signed(dtype), result);
    case IR_FLOORDIV:
    case IR_MOD: return fold_division(op, x, y, dtype, result);
    case IR_SHL:
    case IR_SHR: return fold_shift(op, x, y, dtype, result);
    case IR_BITAND: *result = x & y; return true;
    case IR_BITOR: *result = x | y; return true;
    case IR_BITXOR: *result = x ^ y; return true;
    case IR_MIN: *result = less ? x : y; return true;
    case IR_MAX: *result = less ? y : x; return true;
    case IR_LT: *result = less; return true;
    case IR_GE: *result = !less; return true;
    case IR_LE: *result = less || x == y; return true;
    case IR_GT: *result = !less && x != y; return true;
    case IR_EQ: *result = x == y; return true;
    case IR_NE: *result = x != y; return true;
    case IR_AND: *result = x && y; return true;
    case IR_OR: *result = x || y; return true;
    default: return false;
    }
}

/* Double has more than twice the digits of FP32, so computing in it and rounding once is exact. */
static bool fold_float_arithmetic(ir_operator op, double x, double y, double *result)
{
    switch (op) {
    case IR_ADD: *result = x + y; return true;
    case IR_SUB: *result = x - y; return true;
    case IR_MUL: *result = x * y; return true;
    case IR_DIV: *result = x / y; return y != 0.0;
    case IR_MIN: *result = isnan(x) || x < y ? x : y; return true;
    case IR_MAX: *result = isnan(x) || x > y ? x : y; return true;
    default: return false;
    }
}

static bool fold_float_comparison(ir_operator op, double x, double y, bool *result)
{
    switch (op) {
    case IR_LT: *result = x < y; return true;
    case IR_LE: *result = x <= y; return true;
    case IR_GT: *result = x > y; return true;
    case IR_GE: *result = x >= y; return true;
    case IR_EQ: *result = x == y; return true;
    case IR_NE: *result = x != y; return true;
    default: return false;
    }
}

/* The constant that `x op y` is, or NULL. */
static const ir_expr *fold_constants(arena *a, ir_operator op, const ir_expr *x, const ir_expr *y,
                                     pypto_dtype dtype, pypto_span span)
{
    if (is_int_constant(x) && is_int_constant(y)) {
        int64_t value;
        return fold_ints(op, x->integer, y->integer, x->dtype, &value)
                   ? constant_int(a, value, dtype, span)
                   : NULL;
    }
    if (x->kind == IR_FLOAT && y->kind == IR_FLOAT) {
        double value;
        bool truth;
        if (fold_float_arithmetic(op, x->real, y->real, &value))
            return constant_float(a, value, dtype, span);
        if (fold_float_comparison(op, x->real, y->real, &truth))
            return constant_int(a, truth, PYPTO_BOOL, span);
    }
    return NULL;
}

/* ---- neutral elements and chains ---- */

/* `x op y` when y is an integer constant that changes nothing. */
static bool is_neutral(ir_operator op, int64_t y)
{
    switch (op) {
    case IR_ADD:
    case IR_SUB:
    case IR_SHL:
    case IR_SHR:
    case IR_BITOR:
    case IR_BITXOR: return y == 0;
    case IR_MUL:
    case IR_FLOORDIV: return y == 1;
    default: return false;
    }
}

/* (x + c) - d and the like as x + (c - d), for 64-bit signed integers; NULL when it is no such
 * chain. */
static const ir_expr *fold_chain(arena *a, ir_operator op, const ir_expr *x, int64_t d,
                                 pypto_dtype dtype, pypto_span span)
{
    int64_t c;
    int64_t sum;
    if ((op != IR_ADD && op != IR_SUB) || !is_wide_signed(dtype) || x->kind != IR_BINARY ||
        (x->op != IR_ADD && x->op != IR_SUB) || !ir_is_const_int(x->b, &c))
        return NULL;
    bool same = x->op == op;
    if (!fold_sum(same ? IR_ADD : IR_SUB, c, d, true, &sum))
        return NULL;
    /* A negative constant reads better, and compares equal, as the other operator. */
    ir_operator joined = x->op;
    if (sum < 0 && sum != INT64_MIN) {
        joined = joined == IR_ADD ? IR_SUB : IR_ADD;
        sum = -sum;
    }
    return ir_binary(a, joined, x->a, constant_int(a, sum, dtype, span), dtype, span);
}

static const ir_expr *fold_neutral(arena *a, ir_operator op, const ir_expr *x, const ir_expr *y,
                                   pypto_dtype dtype, pypto_span span)
{
    int64_t value;
    if (ir_is_const_int(y, &value)) {
        if (is_neutral(op, value) && x->dtype == dtype)
            return x;
        return fold_chain(a, op, x, value, dtype, span);
    }
    if (ir_is_const_int(x, &value) && (op == IR_ADD || op == IR_MUL) && is_neutral(op, value) &&
        y->dtype == dtype)
        return y;
    return NULL;
}

/* ---- operations ---- */

const ir_expr *ir_unary(arena *a, ir_operator op, const ir_expr *x, pypto_dtype dtype,
                        pypto_span span)
{
    if (is_int_constant(x)) {
        int64_t value = x->integer;
        bool fits = !(is_wide_signed(dtype) && value == INT64_MIN);
        if (op == IR_NEG && fits)
            return constant_int(a, (int64_t)(0 - (uint64_t)value), dtype, span);
        if (op == IR_INVERT)
            return constant_int(a, ~value, dtype, span);
        if (op == IR_NOT)
            return constant_int(a, value == 0, PYPTO_BOOL, span);
    }
    if (x->kind == IR_FLOAT && op == IR_NEG)
        return constant_float(a, -x->real, dtype, span);

    ir_expr *e = new_expr(a, IR_UNARY, dtype, span);
    e->op = op;
    e->a = x;
    return e;
}

const ir_expr *ir_binary(arena *a, ir_operator op, const ir_expr *x, const ir_expr *y,
                         pypto_dtype dtype, pypto_span span)
{
    const ir_expr *folded = fold_constants(a, op, x, y, dtype, span);
    if (folded == NULL && ir_is_integer(dtype))
        folded = fold_neutral(a, op, x, y, dtype, span);
    if (folded != NULL)
        return folded;

    ir_expr *e = new_expr(a, IR_BINARY, dtype, span);
    e->op = op;
    e->a = x;
    e->b = y;
    return e;
}

/* Integer value of a float constant, rounded towards zero; false when it does not fit. */
static bool truncate_float(double value, pypto_dtype dtype, int64_t *result)
{
    if (dtype == PYPTO_BOOL) {
        *result = value != 0.0;
        return true;
    }
    if (!(value > -0x1p63 && value < 0x1p63))
        return false;
    *result = (int64_t)value;
    return wrap_int(*result, dtype) == *result && !(dtype == PYPTO_UINT64 && *result < 0);
}

const ir_expr *ir_convert(arena *a, const ir_expr *x, pypto_dtype dtype, pypto_span span)
{
    if (x->dtype == dtype && x->kind == IR_FLOAT && x->exact != x->real)
        return constant_float(a, x->real, dtype, span); /* a number of that type from here on */
    if (x->dtype == dtype)
        return x;
    if (is_int_constant(x)) {
        if (!ir_is_float(dtype))
            return constant_int(a, x->integer, dtype, span);
        bool huge = x->dtype == PYPTO_UINT64 && x->integer < 0;
        /* Through one rounding only: 64-bit integers do not fit a double. */
        if (dtype == PYPTO_FP32)
            return constant_float(
                a, (double)(huge ? (float)(uint64_t)x->integer : (float)x->integer), dtype, span);
        if (!huge && x->integer <= INT64_C(1) << 53 && x->integer >= -(INT64_C(1) << 53))
            return constant_float(a, (double)x->integer, dtype, span);
    }
    if (x->kind == IR_FLOAT) {
        int64_t value;
        if (ir_is_float(dtype))
            return constant_float(a, x->exact, dtype, span);
        if (truncate_float(x->real, dtype, &value))
            return constant_int(a, value, dtype, span);
    }
    ir_expr *e = new_expr(a, IR_CONVERT, dtype, span);
    e->a = x;
    return e;
}
