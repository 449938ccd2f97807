/* Questions about element types that typing asks all the time. Pure, header-only. */
#ifndef OPS_DTYPES_H
#define OPS_DTYPES_H

#include "ir/ir.h"

/* 'b' bool, 'i' signed, 'u' unsigned, 'f' float, 't' task, 's' and 'n' floats and integers for storage only;
 * '?' for a number that is no element type. */
static inline char dtype_class(pypto_dtype dtype)
{
    switch (dtype) {
#define DTYPE_CLASS(name, text, bits, class_) \
    case PYPTO_##name: return class_;
        PYPTO_DTYPES(DTYPE_CLASS)
#undef DTYPE_CLASS
    case PYPTO_DTYPE_COUNT: break;
    }
    return '?';
}

/* As a script writes it after "pl.": "FP32". */
static inline const char *dtype_spelling(pypto_dtype dtype)
{
    switch (dtype) {
#define DTYPE_SPELLING(name, text, bits, class_) \
    case PYPTO_##name: return #name;
        PYPTO_DTYPES(DTYPE_SPELLING)
#undef DTYPE_SPELLING
    case PYPTO_DTYPE_COUNT: break;
    }
    return "?";
}

static inline int32_t dtype_bits(pypto_dtype dtype)
{
    switch (dtype) {
#define DTYPE_BITS(name, text, bits, class_) \
    case PYPTO_##name: return bits;
        PYPTO_DTYPES(DTYPE_BITS)
#undef DTYPE_BITS
    case PYPTO_DTYPE_COUNT: break;
    }
    return 0;
}

/* A type that is stored and converted, but never computed with. */
static inline bool dtype_is_storage(pypto_dtype dtype)
{
    return dtype_class(dtype) == 's' || dtype_class(dtype) == 'n';
}

/* Floats and integers of any kind. */
static inline bool dtype_is_floating(pypto_dtype dtype)
{
    return dtype_class(dtype) == 'f' || dtype_class(dtype) == 's';
}

/* A type that operations compute with: an integer or a float, neither bool nor one for storage only. */
static inline bool dtype_is_number(pypto_dtype dtype)
{
    return ir_is_integer(dtype) || ir_is_float(dtype);
}

static inline bool dtype_is_signed(pypto_dtype dtype)
{
    return dtype_class(dtype) == 'i';
}

/* Both integers, both floats, both bool or both tasks: what a conversion may do unasked. */
static inline bool dtype_same_category(pypto_dtype x, pypto_dtype y)
{
    return (ir_is_integer(x) && ir_is_integer(y)) || (ir_is_float(x) && ir_is_float(y)) ||
           (x == PYPTO_BOOL && y == PYPTO_BOOL) || (x == PYPTO_TASK_ID && y == PYPTO_TASK_ID);
}

/* INDEX and INT64 are one type under two names: no conversion stands between them. */
static inline bool dtype_is_index(pypto_dtype dtype)
{
    return dtype == PYPTO_INDEX || dtype == PYPTO_INT64;
}

/* An integer expression where a shape, offset or bound wants one. */
static inline const ir_expr *as_index(arena *a, const ir_expr *e, pypto_span span)
{
    return dtype_is_index(e->dtype) ? e : ir_convert(a, e, PYPTO_INDEX, span);
}

/* Whether an integer type holds the value. */
static inline bool dtype_holds(pypto_dtype dtype, int64_t value)
{
    int32_t bits = dtype_bits(dtype);
    if (dtype_class(dtype) == 'u')
        return value >= 0 && (bits >= 63 || value < (int64_t)1 << bits);
    if (dtype_class(dtype) != 'i')
        return false;
    return bits >= 64 || (value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1));
}

/* What constants are computed in: holds INT64 and UINT64, and their products but for the largest. */
__extension__ typedef __int128 wide_int;

static inline wide_int constant_value(const ir_expr *e)
{
    return e->dtype == PYPTO_UINT64 ? (wide_int)(uint64_t)e->integer : e->integer;
}

/* Whether an integer type holds the constant. */
static inline bool dtype_holds_constant(pypto_dtype dtype, const ir_expr *e)
{
    const wide_int value = constant_value(e);
    return value <= INT64_MAX ? dtype_holds(dtype, (int64_t)value) : dtype == PYPTO_UINT64;
}

/* An integer constant from 2^63 on: no extent, offset or bound. */
static inline bool is_beyond_index(const ir_expr *e)
{
    return e->kind == IR_INT && constant_value(e) > INT64_MAX;
}

/* An integer constant in decimal. */
static inline const char *constant_text(arena *a, const ir_expr *e)
{
    return e->dtype == PYPTO_UINT64 ? arena_printf(a, "%llu", (unsigned long long)e->integer)
                                    : arena_printf(a, "%lld", (long long)e->integer);
}

/* Whether `wide` holds every value of `narrow`. */
static inline bool dtype_widens(pypto_dtype narrow, pypto_dtype wide)
{
    if (narrow == wide)
        return true;
    char from = dtype_class(narrow);
    char to = dtype_class(wide);
    int32_t spare = dtype_bits(wide) - dtype_bits(narrow);
    if (from == to && from != 'f')
        return spare >= 0;
    if (from == 'f' && to == 'f')
        return wide == PYPTO_FP32;
    return from == 'u' && to == 'i' && spare > 0;
}

#endif
