/* The loops behind fold.h, one set per element type and operator, made from a table of types. Each is a loop
 * that compilers turn into vector code, over a piece that stays in the cache. */
#include "collective/fold.h"

#include <string.h>

/* ---- one element ---- */

static inline float canonical(float x)
{
    return x == x ? x : pld_bits_float(0x7fc00000u);
}

static inline float sum_f32(float a, float b)
{
    return a + b;
}

static inline float prod_f32(float a, float b)
{
    return a * b;
}

/* Equal floats have equal bits, but for the zeros: of these the larger one has no sign, the smaller one has
 * it. What is neither larger, smaller nor equal is NaN. */
static inline float max_f32(float a, float b)
{
    const float same = pld_bits_float(pld_float_bits(a) & pld_float_bits(b));
    const float ordered = a > b ? a : b;
    const float value = a == b ? same : ordered;
    return a == a ? value : a;
}

static inline float min_f32(float a, float b)
{
    const float same = pld_bits_float(pld_float_bits(a) | pld_float_bits(b));
    const float ordered = a < b ? a : b;
    const float value = a == b ? same : ordered;
    return a == a ? value : a;
}

/* Integers wrap. `bits` is an unsigned type in which no sum or product is undefined, and which has the lower bits of
 * each; it is no wider than it must be, because vectors of wider elements hold fewer. */
#define INTEGER_FOLDS(suffix, type, bits)            \
    static inline type sum_##suffix(type a, type b)  \
    {                                                \
        return (type)((bits)a + (bits)b);            \
    }                                                \
    static inline type prod_##suffix(type a, type b) \
    {                                                \
        return (type)((bits)a * (bits)b);            \
    }                                                \
    static inline type max_##suffix(type a, type b)  \
    {                                                \
        return a > b ? a : b;                        \
    }                                                \
    static inline type min_##suffix(type a, type b)  \
    {                                                \
        return a < b ? a : b;                        \
    }

INTEGER_FOLDS(i8, int8_t, uint32_t)
INTEGER_FOLDS(i16, int16_t, uint32_t)
INTEGER_FOLDS(i32, int32_t, uint32_t)
INTEGER_FOLDS(i64, int64_t, uint64_t)
INTEGER_FOLDS(u8, uint8_t, uint32_t)
INTEGER_FOLDS(u16, uint16_t, uint32_t)
INTEGER_FOLDS(u32, uint32_t, uint32_t)
INTEGER_FOLDS(u64, uint64_t, uint64_t)

#define SAME(x) (x)

/* ---- loops ---- */

/* Elements of `type` that are folded as `wide`. */
#define CONVERSIONS(suffix, type, wide, widen, narrow)                       \
    static void first_##suffix(void *acc, const void *source, int64_t count) \
    {                                                                        \
        wide *restrict to = acc;                                             \
        const type *restrict from = source;                                  \
        for (int64_t i = 0; i < count; ++i)                                  \
            to[i] = widen(from[i]);                                          \
    }                                                                        \
    static void result_##suffix(void *target, void *acc, int64_t count)      \
    {                                                                        \
        type *restrict to = target;                                          \
        const wide *restrict from = acc;                                     \
        for (int64_t i = 0; i < count; ++i)                                  \
            to[i] = narrow(from[i]);                                         \
    }

#define NEXT(suffix, type, wide, widen, op, wide_suffix)                           \
    static void next_##op##_##suffix(void *acc, const void *source, int64_t count) \
    {                                                                              \
        wide *restrict to = acc;                                                   \
        const type *restrict from = source;                                        \
        for (int64_t i = 0; i < count; ++i)                                        \
            to[i] = op##_##wide_suffix(to[i], widen(from[i]));                     \
    }

#define FOLDS(suffix, type, wide, widen, narrow, wide_suffix)                             \
    CONVERSIONS(suffix, type, wide, widen, narrow)                                        \
    NEXT(suffix, type, wide, widen, sum, wide_suffix)                                     \
    NEXT(suffix, type, wide, widen, max, wide_suffix)                                     \
    NEXT(suffix, type, wide, widen, min, wide_suffix)                                     \
    NEXT(suffix, type, wide, widen, prod, wide_suffix)                                    \
    static const fold folds_##suffix[] = {                                                \
        [PLD_SUM] = {sizeof(type), first_##suffix, next_sum_##suffix, result_##suffix},   \
        [PLD_MAX] = {sizeof(type), first_##suffix, next_max_##suffix, result_##suffix},   \
        [PLD_MIN] = {sizeof(type), first_##suffix, next_min_##suffix, result_##suffix},   \
        [PLD_PROD] = {sizeof(type), first_##suffix, next_prod_##suffix, result_##suffix}, \
    };

#define NARROW_FP16(x) pld_float_to_fp16(canonical(x))
#define NARROW_BF16(x) pld_float_to_bf16(canonical(x))

FOLDS(i8, int8_t, int8_t, SAME, SAME, i8)
FOLDS(i16, int16_t, int16_t, SAME, SAME, i16)
FOLDS(i32, int32_t, int32_t, SAME, SAME, i32)
FOLDS(i64, int64_t, int64_t, SAME, SAME, i64)
FOLDS(u8, uint8_t, uint8_t, SAME, SAME, u8)
FOLDS(u16, uint16_t, uint16_t, SAME, SAME, u16)
FOLDS(u32, uint32_t, uint32_t, SAME, SAME, u32)
FOLDS(u64, uint64_t, uint64_t, SAME, SAME, u64)
FOLDS(f32, float, float, SAME, canonical, f32)
FOLDS(fp16, uint16_t, float, pld_fp16_to_float, NARROW_FP16, f32)
FOLDS(bf16, uint16_t, float, pld_bf16_to_float, NARROW_BF16, f32)

const fold *fold_of(pypto_dtype dtype, pld_reduce_op op)
{
    static const fold *const tables[PYPTO_DTYPE_COUNT] = {
        [PYPTO_INT8] = folds_i8,    [PYPTO_INT16] = folds_i16,  [PYPTO_INT32] = folds_i32,
        [PYPTO_INT64] = folds_i64,  [PYPTO_UINT8] = folds_u8,   [PYPTO_UINT16] = folds_u16,
        [PYPTO_UINT32] = folds_u32, [PYPTO_UINT64] = folds_u64, [PYPTO_INDEX] = folds_i64,
        [PYPTO_FP16] = folds_fp16,  [PYPTO_BF16] = folds_bf16,  [PYPTO_FP32] = folds_f32,
    };
    if (dtype < 0 || dtype >= PYPTO_DTYPE_COUNT || tables[dtype] == NULL || op < PLD_SUM ||
        op > PLD_PROD)
        return NULL;
    return &tables[dtype][op];
}

void fold_piece(const fold *f, const char *const *sources, int32_t source_count,
                char *const *targets, int32_t target_count, int64_t count)
{
    _Alignas(64) char acc[FOLD_PIECE * 8];
    f->first(acc, sources[0], count);
    for (int32_t i = 1; i < source_count; ++i)
        f->next(acc, sources[i], count);
    f->result(targets[0], acc, count);
    for (int32_t i = 1; i < target_count; ++i)
        memcpy(targets[i], targets[0], (size_t)(count * f->width));
}
