/* The loops behind fold.h, one for each element type and operator, made from a table of types. Compiled once
 * for each kind of CPU; FOLD_OF is the name of the function that finds one.
 *
 * A loop takes the elements by lines of 64 bytes of accumulator: vectors that the compiler makes of as many of
 * the CPU's as it takes. Sources are read and targets written a line of each at a time, whole cache lines
 * where they are aligned. Two lines are in work at once. */
#include "collective/fold.h"

#include <string.h>

#define LINE 64

#define LINE_OF(suffix, type) typedef type line_##suffix __attribute__((vector_size(LINE)))

LINE_OF(i8, int8_t);
LINE_OF(i16, int16_t);
LINE_OF(i32, int32_t);
LINE_OF(i64, int64_t);
LINE_OF(u8, uint8_t);
LINE_OF(u16, uint16_t);
LINE_OF(u32, uint32_t);
LINE_OF(u64, uint64_t);
LINE_OF(f32, float);

/* ---- operators ---- */

/* In each lane a where the lane of the mask is all ones, b where it is zero. All three are `line_bits`. */
#define SELECT(mask, a, b) (((a) & (mask)) | ((b) & ~(mask)))

/* Integers wrap: they are added and multiplied without sign, which gives the same bits. */
#define INTEGER_FOLDS(suffix, bits)                                                \
    static inline void sum_##suffix(line_##suffix *a, const line_##suffix *b)      \
    {                                                                              \
        *a = (line_##suffix)((line_##bits) * a + (line_##bits) * b);               \
    }                                                                              \
    static inline void prod_##suffix(line_##suffix *a, const line_##suffix *b)     \
    {                                                                              \
        *a = (line_##suffix)((line_##bits) * a * (line_##bits) * b);               \
    }                                                                              \
    static inline void max_##suffix(line_##suffix *a, const line_##suffix *b)      \
    {                                                                              \
        const line_##bits larger = (line_##bits)(*a > *b);                         \
        *a = (line_##suffix)SELECT(larger, (line_##bits) * a, (line_##bits) * b);  \
    }                                                                              \
    static inline void min_##suffix(line_##suffix *a, const line_##suffix *b)      \
    {                                                                              \
        const line_##bits smaller = (line_##bits)(*a < *b);                        \
        *a = (line_##suffix)SELECT(smaller, (line_##bits) * a, (line_##bits) * b); \
    }

INTEGER_FOLDS(i8, u8)
INTEGER_FOLDS(i16, u16)
INTEGER_FOLDS(i32, u32)
INTEGER_FOLDS(i64, u64)
INTEGER_FOLDS(u8, u8)
INTEGER_FOLDS(u16, u16)
INTEGER_FOLDS(u32, u32)
INTEGER_FOLDS(u64, u64)

static inline void sum_f32(line_f32 *a, const line_f32 *b)
{
    *a = *a + *b;
}

static inline void prod_f32(line_f32 *a, const line_f32 *b)
{
    *a = *a * *b;
}

/* Equal floats have equal bits, but for the zeros: of these the larger one has no sign, the smaller one has
 * it. What is neither larger, smaller nor equal is NaN. */
#define FLOAT_ORDER(name, compare, join)                                          \
    static inline void name(line_f32 *a, const line_f32 *b)                       \
    {                                                                             \
        const line_u32 x = (line_u32)*a, y = (line_u32)*b;                        \
        const line_u32 ordered = SELECT((line_u32)(*a compare * b), x, y);        \
        const line_u32 value = SELECT((line_u32)(*a == *b), (x join y), ordered); \
        *a = (line_f32)SELECT((line_u32)(*a == *a), value, x);                    \
    }

FLOAT_ORDER(max_f32, >, &)
FLOAT_ORDER(min_f32, <, |)

/* ---- to and from memory ---- */

/* `bytes` are a whole step, or less at the end. */
#define WHOLE_LANES(suffix)                                                                \
    static inline void load_##suffix(line_##suffix *line, const char *from, int64_t bytes) \
    {                                                                                      \
        *line = (line_##suffix){0};                                                        \
        memcpy(line, from, (size_t)bytes);                                                 \
    }                                                                                      \
    static inline void store_##suffix(const line_##suffix *line, char *to, int64_t bytes)  \
    {                                                                                      \
        memcpy(to, line, (size_t)bytes);                                                   \
    }

WHOLE_LANES(i8)
WHOLE_LANES(i16)
WHOLE_LANES(i32)
WHOLE_LANES(i64)
WHOLE_LANES(u8)
WHOLE_LANES(u16)
WHOLE_LANES(u32)
WHOLE_LANES(u64)

static inline void load_f32(line_f32 *line, const char *from, int64_t bytes)
{
    *line = (line_f32){0};
    memcpy(line, from, (size_t)bytes);
}

static inline void canonical(line_u32 *bits, const line_f32 *line)
{
    const line_u32 nan = (line_u32){0} + 0x7fc00000u;
    *bits = SELECT((line_u32)(*line == *line), (line_u32)*line, nan);
}

static inline void store_f32(const line_f32 *line, char *to, int64_t bytes)
{
    line_u32 bits;
    canonical(&bits, line);
    memcpy(to, &bits, (size_t)bytes);
}

#define FLOATS (LINE / (int)sizeof(float))

#define HALVES(suffix, widen, narrow)                                                 \
    static inline void load_##suffix(line_f32 *line, const char *from, int64_t bytes) \
    {                                                                                 \
        uint16_t halves[FLOATS] = {0};                                                \
        float floats[FLOATS];                                                         \
        memcpy(halves, from, (size_t)bytes);                                          \
        for (int i = 0; i < FLOATS; ++i)                                              \
            floats[i] = widen(halves[i]);                                             \
        memcpy(line, floats, sizeof floats);                                          \
    }                                                                                 \
    static inline void store_##suffix(const line_f32 *line, char *to, int64_t bytes)  \
    {                                                                                 \
        line_u32 bits;                                                                \
        canonical(&bits, line);                                                       \
        uint16_t halves[FLOATS];                                                      \
        float floats[FLOATS];                                                         \
        memcpy(floats, &bits, sizeof floats);                                         \
        for (int i = 0; i < FLOATS; ++i)                                              \
            halves[i] = narrow(floats[i]);                                            \
        memcpy(to, halves, (size_t)bytes);                                            \
    }

HALVES(fp16, pld_fp16_to_float, pld_float_to_fp16)
HALVES(bf16, pld_bf16_to_float, pld_float_to_bf16)

/* ---- loops ---- */

/* Folds `part` bytes of each source from `at` on. */
#define ONE_LINE(op, suffix, wide, part)                   \
    do {                                                   \
        line_##wide value, next;                           \
        load_##suffix(&value, sources[0] + at, part);      \
        for (int32_t i = 1; i < source_count; ++i) {       \
            load_##suffix(&next, sources[i] + at, part);   \
            op##_##wide(&value, &next);                    \
        }                                                  \
        for (int32_t i = 0; i < target_count; ++i)         \
            store_##suffix(&value, targets[i] + at, part); \
    } while (0)

/* Elements of `type` that are folded as `wide`, `lanes` in a line. Behind the pairs of lines come a line, a part of
 * one, and last a few single elements, because copying parts costs more than they do. */
#define LOOP(op, suffix, type, wide, lanes)                                                       \
    static void run_##op##_##suffix(const char *const *sources, int32_t source_count,             \
                                    char *const *targets, int32_t target_count, int64_t count)    \
    {                                                                                             \
        const int64_t width = (int64_t)sizeof(type), bytes = count * width, step = (lanes)*width; \
        int64_t at = 0;                                                                           \
        for (; at + 2 * step <= bytes; at += 2 * step) {                                          \
            line_##wide a, b, x, y;                                                               \
            load_##suffix(&a, sources[0] + at, step);                                             \
            load_##suffix(&b, sources[0] + at + step, step);                                      \
            for (int32_t i = 1; i < source_count; ++i) {                                          \
                load_##suffix(&x, sources[i] + at, step);                                         \
                load_##suffix(&y, sources[i] + at + step, step);                                  \
                op##_##wide(&a, &x);                                                              \
                op##_##wide(&b, &y);                                                              \
            }                                                                                     \
            for (int32_t i = 0; i < target_count; ++i) {                                          \
                store_##suffix(&a, targets[i] + at, step);                                        \
                store_##suffix(&b, targets[i] + at + step, step);                                 \
            }                                                                                     \
        }                                                                                         \
        for (; at + step <= bytes; at += step)                                                    \
            ONE_LINE(op, suffix, wide, step);                                                     \
        if (bytes - at > 4 * width) {                                                             \
            const int64_t part = bytes - at;                                                      \
            ONE_LINE(op, suffix, wide, part);                                                     \
            return;                                                                               \
        }                                                                                         \
        for (; at < bytes; at += width)                                                           \
            ONE_LINE(op, suffix, wide, width);                                                    \
    }

#define FOLDS(suffix, type, wide, lanes)                \
    LOOP(sum, suffix, type, wide, lanes)                \
    LOOP(max, suffix, type, wide, lanes)                \
    LOOP(min, suffix, type, wide, lanes)                \
    LOOP(prod, suffix, type, wide, lanes)               \
    static const fold folds_##suffix[] = {              \
        [PLD_SUM] = {sizeof(type), run_sum_##suffix},   \
        [PLD_MAX] = {sizeof(type), run_max_##suffix},   \
        [PLD_MIN] = {sizeof(type), run_min_##suffix},   \
        [PLD_PROD] = {sizeof(type), run_prod_##suffix}, \
    };

#define OWN_LANES(suffix, type) FOLDS(suffix, type, suffix, LINE / (int64_t)sizeof(type))

OWN_LANES(i8, int8_t)
OWN_LANES(i16, int16_t)
OWN_LANES(i32, int32_t)
OWN_LANES(i64, int64_t)
OWN_LANES(u8, uint8_t)
OWN_LANES(u16, uint16_t)
OWN_LANES(u32, uint32_t)
OWN_LANES(u64, uint64_t)
OWN_LANES(f32, float)
FOLDS(fp16, uint16_t, f32, FLOATS)
FOLDS(bf16, uint16_t, f32, FLOATS)

const fold *FOLD_OF(pypto_dtype dtype, pld_reduce_op op)
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
