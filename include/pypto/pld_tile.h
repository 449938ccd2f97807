/* Operations on whole tiles, packed row-major: reductions along an axis and matrix products. Programs
 * that use one include this file; it is pure C over pld_math.h.
 *
 * Sums have an order of their own, which no vector width changes: a row is dealt out to 64 lanes, element
 * c to lane c % 64; each lane adds up what it gets in order; then the upper half of the lanes is added to the
 * lower half until one is left. Columns are summed row by row. 16-bit floats accumulate in FP32 and round
 * once at the end.
 *
 * Names end in the type of the elements: i8 ... u64, f32, fp16, bf16. */
#ifndef PYPTO_PLD_TILE_H
#define PYPTO_PLD_TILE_H

#include <pypto/pld_math.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLD_LANES 64

#define PLD_SAME(x) (x)
#define PLD_SUM(suffix, a, b) ((a) + (b))
#define PLD_PRODUCT(suffix, a, b) ((a) * (b))
#define PLD_LARGEST(suffix, a, b) pld_max_##suffix(a, b)
#define PLD_SMALLEST(suffix, a, b) pld_min_##suffix(a, b)

/* One reduction of one element type. `element` is how it is stored, `value` what it is computed in (of
 * type `suffix`), `get` and `put` convert between them; `start` is the result of no elements.
 *
 * The row function takes each of `rows` rows of `columns` elements, of which the first `valid` count. The
 * column function takes the first `valid` of rows of `columns` elements each. */
#define PLD_REDUCTION(operation, name, element, suffix, value, get, put, combine, start)           \
    static inline void pld_row_##operation##_##name(element *out, const element *x, int64_t rows,  \
                                                    int64_t columns, int64_t valid)                \
    {                                                                                              \
        for (int64_t r = 0; r < rows; ++r, x += columns) {                                         \
            value lane[PLD_LANES];                                                                 \
            for (int l = 0; l < PLD_LANES; ++l)                                                    \
                lane[l] = start;                                                                   \
            int64_t c = 0;                                                                         \
            for (; c + PLD_LANES <= valid; c += PLD_LANES)                                         \
                for (int l = 0; l < PLD_LANES; ++l)                                                \
                    lane[l] = (value)combine(suffix, lane[l], (value)get(x[c + l]));               \
            for (int l = 0; c + l < valid; ++l)                                                    \
                lane[l] = (value)combine(suffix, lane[l], (value)get(x[c + l]));                   \
            for (int half = PLD_LANES / 2; half > 0; half /= 2)                                    \
                for (int l = 0; l < half; ++l)                                                     \
                    lane[l] = (value)combine(suffix, lane[l], lane[l + half]);                     \
            out[r] = (element)put(lane[0]);                                                        \
        }                                                                                          \
    }                                                                                              \
    static inline void pld_col_##operation##_##name(element *out, const element *x, int64_t valid, \
                                                    int64_t columns)                               \
    {                                                                                              \
        for (int64_t c = 0; c < columns; c += PLD_LANES) {                                         \
            const int width = columns - c < PLD_LANES ? (int)(columns - c) : PLD_LANES;            \
            value lane[PLD_LANES];                                                                 \
            for (int l = 0; l < width; ++l)                                                        \
                lane[l] = start;                                                                   \
            for (int64_t r = 0; r < valid; ++r)                                                    \
                for (int l = 0; l < width; ++l)                                                    \
                    lane[l] = (value)combine(suffix, lane[l], (value)get(x[r * columns + c + l])); \
            for (int l = 0; l < width; ++l)                                                        \
                out[c + l] = (element)put(lane[l]);                                                \
        }                                                                                          \
    }

#define PLD_REDUCTIONS(name, element, suffix, value, get, put, least, most)               \
    PLD_REDUCTION(sum, name, element, suffix, value, get, put, PLD_SUM, (value)0)         \
    PLD_REDUCTION(prod, name, element, suffix, value, get, put, PLD_PRODUCT, (value)1)    \
    PLD_REDUCTION(max, name, element, suffix, value, get, put, PLD_LARGEST, (value)least) \
    PLD_REDUCTION(min, name, element, suffix, value, get, put, PLD_SMALLEST, (value)most)

PLD_REDUCTIONS(i8, int8_t, i8, int8_t, PLD_SAME, PLD_SAME, INT8_MIN, INT8_MAX)
PLD_REDUCTIONS(i16, int16_t, i16, int16_t, PLD_SAME, PLD_SAME, INT16_MIN, INT16_MAX)
PLD_REDUCTIONS(i32, int32_t, i32, int32_t, PLD_SAME, PLD_SAME, INT32_MIN, INT32_MAX)
PLD_REDUCTIONS(i64, int64_t, i64, int64_t, PLD_SAME, PLD_SAME, INT64_MIN, INT64_MAX)
PLD_REDUCTIONS(u8, uint8_t, u8, uint8_t, PLD_SAME, PLD_SAME, 0, UINT8_MAX)
PLD_REDUCTIONS(u16, uint16_t, u16, uint16_t, PLD_SAME, PLD_SAME, 0, UINT16_MAX)
PLD_REDUCTIONS(u32, uint32_t, u32, uint32_t, PLD_SAME, PLD_SAME, 0, UINT32_MAX)
PLD_REDUCTIONS(u64, uint64_t, u64, uint64_t, PLD_SAME, PLD_SAME, 0, UINT64_MAX)
PLD_REDUCTIONS(f32, float, f32, float, PLD_SAME, PLD_SAME, -__builtin_inff(), __builtin_inff())
PLD_REDUCTIONS(fp16, uint16_t, f32, float, pld_fp16_to_float, pld_float_to_fp16, -__builtin_inff(),
               __builtin_inff())
PLD_REDUCTIONS(bf16, uint16_t, f32, float, pld_bf16_to_float, pld_float_to_bf16, -__builtin_inff(),
               __builtin_inff())

/* out = a x b where `fresh`, else out + a x b. Shapes and valid extents of a and b have two entries; what
 * lies outside the valid part of a fresh result is 0. Products are added in the order of k. */
#define PLD_MATMUL(name, element, result, get)                                                    \
    static inline void pld_matmul_##name(                                                         \
        result *out, const element *a, const element *b, const int64_t *a_shape,                  \
        const int64_t *b_shape, const int64_t *a_valid, const int64_t *b_valid, bool fresh)       \
    {                                                                                             \
        const int64_t inner = a_valid[1] < b_valid[0] ? a_valid[1] : b_valid[0];                  \
        const int64_t stride = b_shape[1];                                                        \
        if (fresh)                                                                                \
            __builtin_memset(out, 0, (size_t)(a_shape[0] * stride) * sizeof *out);                \
        for (int64_t i = 0; i < a_valid[0]; ++i) {                                                \
            for (int64_t j = 0; j < b_valid[1]; j += PLD_LANES) {                                 \
                const int width = b_valid[1] - j < PLD_LANES ? (int)(b_valid[1] - j) : PLD_LANES; \
                result *row = out + i * stride + j;                                               \
                result sum[PLD_LANES];                                                            \
                for (int l = 0; l < PLD_LANES; ++l)                                               \
                    sum[l] = l < width ? row[l] : (result)0;                                      \
                if (width == PLD_LANES) {                                                         \
                    for (int64_t k = 0; k < inner; ++k) {                                         \
                        const result factor = (result)get(a[i * a_shape[1] + k]);                 \
                        for (int l = 0; l < PLD_LANES; ++l)                                       \
                            sum[l] += factor * (result)get(b[k * stride + j + l]);                \
                    }                                                                             \
                } else {                                                                          \
                    for (int64_t k = 0; k < inner; ++k) {                                         \
                        const result factor = (result)get(a[i * a_shape[1] + k]);                 \
                        for (int l = 0; l < width; ++l)                                           \
                            sum[l] += factor * (result)get(b[k * stride + j + l]);                \
                    }                                                                             \
                }                                                                                 \
                for (int l = 0; l < width; ++l)                                                   \
                    row[l] = sum[l];                                                              \
            }                                                                                     \
        }                                                                                         \
    }
PLD_MATMUL(f32, float, float, PLD_SAME)
PLD_MATMUL(fp16, uint16_t, float, pld_fp16_to_float)
PLD_MATMUL(bf16, uint16_t, float, pld_bf16_to_float)
PLD_MATMUL(i8, int8_t, int32_t, PLD_SAME)

#undef PLD_SAME
#undef PLD_SUM
#undef PLD_PRODUCT
#undef PLD_LARGEST
#undef PLD_SMALLEST
#undef PLD_REDUCTION
#undef PLD_REDUCTIONS
#undef PLD_MATMUL

#ifdef __cplusplus
}
#endif
#endif
