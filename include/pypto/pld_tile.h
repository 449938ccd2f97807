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

/* ---- comparisons, places of extremes, moved elements ---- */

/* What a mask's bit says. */
enum { PLD_CMP_EQ, PLD_CMP_NE, PLD_CMP_LT, PLD_CMP_LE, PLD_CMP_GT, PLD_CMP_GE };

/* Valid extents of the mask of a tile: bytes instead of columns. */
static inline void pld_mask_valid(int32_t ndim, const int64_t *valid, int64_t *mask)
{
    for (int32_t d = 0; d < ndim; ++d)
        mask[d] = d < ndim - 1 ? valid[d] : (valid[d] + 7) / 8;
}

static inline void pld_transpose_valid(int32_t ndim, const int64_t *valid, int64_t *out)
{
    for (int32_t d = 0; d < ndim; ++d)
        out[d] = valid[d < ndim - 2 ? d : 2 * ndim - 3 - d];
}

/* The functions of one element type; `value` is what elements compare in, `get` converts to it.
 *
 * pld_cmp: bit c % 8 of byte c / 8 of a row is whether a compares to b in column c; a row has a multiple
 * of 32 bytes, zeros behind the `valid` columns. b is every `step`-th element.
 * pld_row_argmax ...: a later element wins only if it is larger (smaller), so a NaN never does.
 * pld_concat: the valid columns of a, then those of b, then zeros.
 * pld_fillpad: the valid part of a tile of `from` in one of `shape`. */
#define PLD_MOVES(name, element, value, get)                                                      \
    static inline bool pld_holds_##name(value a, value b, int code)                               \
    {                                                                                             \
        switch (code) {                                                                           \
        case PLD_CMP_EQ: return a == b;                                                           \
        case PLD_CMP_NE: return a != b;                                                           \
        case PLD_CMP_LT: return a < b;                                                            \
        case PLD_CMP_LE: return a <= b;                                                           \
        case PLD_CMP_GT: return a > b;                                                            \
        default: return a >= b;                                                                   \
        }                                                                                         \
    }                                                                                             \
    static inline void pld_cmp_##name(uint8_t *out, const element *a, const element *b,           \
                                      int64_t step, int64_t rows, int64_t columns, int64_t valid, \
                                      int code)                                                   \
    {                                                                                             \
        const int64_t bytes = (columns + 255) / 256 * 32;                                         \
        for (int64_t r = 0; r < rows; ++r) {                                                      \
            for (int64_t k = 0; k < bytes; ++k) {                                                 \
                unsigned byte = 0;                                                                \
                for (int64_t c = k * 8; c < valid && c < k * 8 + 8; ++c) {                        \
                    const int64_t i = r * columns + c;                                            \
                    byte |= (unsigned)pld_holds_##name((value)get(a[i]), (value)get(b[i * step]), \
                                                       code)                                      \
                            << (c - k * 8);                                                       \
                }                                                                                 \
                out[r * bytes + k] = (uint8_t)byte;                                               \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static inline void pld_transpose_##name(element *out, const element *x, int32_t ndim,         \
                                            const int64_t *shape, int64_t axis1, int64_t axis2)   \
    {                                                                                             \
        const int64_t p = axis1 < 0 ? axis1 + ndim : axis1;                                       \
        const int64_t q = axis2 < 0 ? axis2 + ndim : axis2;                                       \
        const int64_t low = p < q ? p : q;                                                        \
        const int64_t high = p < q ? q : p;                                                       \
        int64_t outer = 1, middle = 1, inner = 1;                                                 \
        for (int32_t d = 0; d < ndim; ++d) {                                                      \
            outer *= d < low ? shape[d] : 1;                                                      \
            middle *= d > low && d < high ? shape[d] : 1;                                         \
            inner *= d > high ? shape[d] : 1;                                                     \
        }                                                                                         \
        const int64_t n = shape[low];                                                             \
        const int64_t m = shape[high];                                                            \
        for (int64_t o = 0; o < outer; ++o)                                                       \
            for (int64_t j = 0; j < m; ++j)                                                       \
                for (int64_t k = 0; k < middle; ++k)                                              \
                    for (int64_t i = 0; i < n; ++i) {                                             \
                        const element *from = x + (((o * n + i) * middle + k) * m + j) * inner;   \
                        for (int64_t l = 0; l < inner; ++l)                                       \
                            *out++ = from[l];                                                     \
                    }                                                                             \
    }                                                                                             \
    static inline void pld_concat_##name(element *out, const element *a, const element *b,        \
                                         int64_t rows, int64_t a_columns, int64_t b_columns,      \
                                         int64_t a_valid, int64_t b_valid)                        \
    {                                                                                             \
        for (int64_t r = 0; r < rows; ++r) {                                                      \
            for (int64_t c = 0; c < a_valid; ++c)                                                 \
                *out++ = a[r * a_columns + c];                                                    \
            for (int64_t c = 0; c < b_valid; ++c)                                                 \
                *out++ = b[r * b_columns + c];                                                    \
            for (int64_t c = a_valid + b_valid; c < a_columns + b_columns; ++c)                   \
                *out++ = 0;                                                                       \
        }                                                                                         \
    }                                                                                             \
    static inline void pld_fillpad_##name(element *out, const element *x, int32_t ndim,           \
                                          const int64_t *shape, const int64_t *from,              \
                                          const int64_t *valid, element pad)                      \
    {                                                                                             \
        const int64_t columns = shape[ndim - 1];                                                  \
        int64_t rows = 1;                                                                         \
        for (int32_t d = 0; d < ndim - 1; ++d)                                                    \
            rows *= shape[d];                                                                     \
        for (int64_t r = 0; r < rows; ++r) {                                                      \
            int64_t left = r, stride = from[ndim - 1], at = 0, count = valid[ndim - 1];           \
            for (int32_t d = ndim - 2; d >= 0; --d) {                                             \
                const int64_t index = left % shape[d];                                            \
                count = index < valid[d] ? count : 0;                                             \
                at += index * stride;                                                             \
                stride *= from[d];                                                                \
                left /= shape[d];                                                                 \
            }                                                                                     \
            for (int64_t c = 0; c < count; ++c)                                                   \
                *out++ = x[at + c];                                                               \
            for (int64_t c = count; c < columns; ++c)                                             \
                *out++ = pad;                                                                     \
        }                                                                                         \
    }                                                                                             \
    PLD_PLACE(argmax, name, element, value, get, >)                                               \
    PLD_PLACE(argmin, name, element, value, get, <)

#define PLD_PLACE(operation, name, element, value, get, beats)                                     \
    static inline void pld_row_##operation##_##name(int32_t *out, const element *x, int64_t rows,  \
                                                    int64_t columns, int64_t valid)                \
    {                                                                                              \
        for (int64_t r = 0; r < rows; ++r, x += columns) {                                         \
            value best = (value)get(x[0]);                                                         \
            int64_t place = 0;                                                                     \
            for (int64_t c = 1; c < valid; ++c) {                                                  \
                const value next = (value)get(x[c]);                                               \
                place = next beats best ? c : place;                                               \
                best = next beats best ? next : best;                                              \
            }                                                                                      \
            out[r] = (int32_t)place;                                                               \
        }                                                                                          \
    }                                                                                              \
    static inline void pld_col_##operation##_##name(int32_t *out, const element *x, int64_t valid, \
                                                    int64_t columns)                               \
    {                                                                                              \
        for (int64_t c = 0; c < columns; c += PLD_LANES) {                                         \
            const int width = columns - c < PLD_LANES ? (int)(columns - c) : PLD_LANES;            \
            value best[PLD_LANES];                                                                 \
            int32_t place[PLD_LANES] = {0};                                                        \
            for (int l = 0; l < width; ++l)                                                        \
                best[l] = (value)get(x[c + l]);                                                    \
            for (int64_t r = 1; r < valid; ++r)                                                    \
                for (int l = 0; l < width; ++l) {                                                  \
                    const value next = (value)get(x[r * columns + c + l]);                         \
                    place[l] = next beats best[l] ? (int32_t)r : place[l];                         \
                    best[l] = next beats best[l] ? next : best[l];                                 \
                }                                                                                  \
            for (int l = 0; l < width; ++l)                                                        \
                out[c + l] = place[l];                                                             \
        }                                                                                          \
    }

PLD_MOVES(i8, int8_t, int8_t, PLD_SAME)
PLD_MOVES(i16, int16_t, int16_t, PLD_SAME)
PLD_MOVES(i32, int32_t, int32_t, PLD_SAME)
PLD_MOVES(i64, int64_t, int64_t, PLD_SAME)
PLD_MOVES(u8, uint8_t, uint8_t, PLD_SAME)
PLD_MOVES(u16, uint16_t, uint16_t, PLD_SAME)
PLD_MOVES(u32, uint32_t, uint32_t, PLD_SAME)
PLD_MOVES(u64, uint64_t, uint64_t, PLD_SAME)
PLD_MOVES(f32, float, float, PLD_SAME)
PLD_MOVES(fp16, uint16_t, float, pld_fp16_to_float)
PLD_MOVES(bf16, uint16_t, float, pld_bf16_to_float)

/* ---- parts ---- */

/* How two elements are combined. */
enum { PLD_PART_ADD, PLD_PART_MUL, PLD_PART_MAX, PLD_PART_MIN };

/* The valid part of `a`, combined with b where that is valid too; zeros behind it. */
#define PLD_PARTS(name, element, suffix, value, get, put)                                          \
    static inline element pld_combine_##name(element x, element y, int operation)                  \
    {                                                                                              \
        const value p = (value)get(x), q = (value)get(y);                                          \
        switch (operation) {                                                                       \
        case PLD_PART_ADD: return (element)put((value)(p + q));                                    \
        case PLD_PART_MUL: return (element)put((value)(p * q));                                    \
        case PLD_PART_MAX: return (element)put(pld_max_##suffix(p, q));                            \
        default: return (element)put(pld_min_##suffix(p, q));                                      \
        }                                                                                          \
    }                                                                                              \
    static inline void pld_part_##name(element *out, const element *a, const element *b,           \
                                       int32_t ndim, const int64_t *shape, const int64_t *a_valid, \
                                       const int64_t *b_valid, int operation)                      \
    {                                                                                              \
        const int64_t columns = shape[ndim - 1];                                                   \
        int64_t rows = 1;                                                                          \
        for (int32_t d = 0; d < ndim - 1; ++d)                                                     \
            rows *= shape[d];                                                                      \
        for (int64_t r = 0; r < rows; ++r, out += columns, a += columns, b += columns) {           \
            int64_t left = r, first = a_valid[ndim - 1], both = b_valid[ndim - 1];                 \
            for (int32_t d = ndim - 2; d >= 0; --d) {                                              \
                const int64_t index = left % shape[d];                                             \
                first = index < a_valid[d] ? first : 0;                                            \
                both = index < b_valid[d] ? both : 0;                                              \
                left /= shape[d];                                                                  \
            }                                                                                      \
            both = both < first ? both : first;                                                    \
            for (int64_t c = 0; c < both; ++c)                                                     \
                out[c] = pld_combine_##name(a[c], b[c], operation);                                \
            for (int64_t c = both; c < first; ++c)                                                 \
                out[c] = a[c];                                                                     \
            for (int64_t c = first; c < columns; ++c)                                              \
                out[c] = 0;                                                                        \
        }                                                                                          \
    }
PLD_PARTS(i8, int8_t, i8, int8_t, PLD_SAME, PLD_SAME)
PLD_PARTS(i16, int16_t, i16, int16_t, PLD_SAME, PLD_SAME)
PLD_PARTS(i32, int32_t, i32, int32_t, PLD_SAME, PLD_SAME)
PLD_PARTS(i64, int64_t, i64, int64_t, PLD_SAME, PLD_SAME)
PLD_PARTS(u8, uint8_t, u8, uint8_t, PLD_SAME, PLD_SAME)
PLD_PARTS(u16, uint16_t, u16, uint16_t, PLD_SAME, PLD_SAME)
PLD_PARTS(u32, uint32_t, u32, uint32_t, PLD_SAME, PLD_SAME)
PLD_PARTS(u64, uint64_t, u64, uint64_t, PLD_SAME, PLD_SAME)
PLD_PARTS(f32, float, f32, float, PLD_SAME, PLD_SAME)
PLD_PARTS(fp16, uint16_t, f32, float, pld_fp16_to_float, pld_float_to_fp16)
PLD_PARTS(bf16, uint16_t, f32, float, pld_bf16_to_float, pld_float_to_bf16)

#undef PLD_PARTS
#undef PLD_MOVES
#undef PLD_PLACE
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
