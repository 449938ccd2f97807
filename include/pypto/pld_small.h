/* Element types that are stored and converted, never computed with: floats of 8 and 4 bits, integers of 4
 * bits. Included by pld.h; like pld_math.h pure, inline, without branches, the same bits everywhere.
 *
 *   fp8e4m3fn   S EEEE MMM   bias 7; no infinity, NaN is all ones; largest 448
 *   fp8e5m2     S EEEEE MM   bias 15; infinity and NaN as in IEEE types; largest 57344
 *   fp8e8m0     EEEEEEEE     2^(E - 127), NaN is all ones; no sign, no zero: a scale
 *   fp4         S EE M       0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
 *   int4 uint4  two's complement, and not
 *
 * Types of 4 bits lie two in a byte, the one with the even index in the lower half. */
#ifndef PYPTO_PLD_SMALL_H
#define PYPTO_PLD_SMALL_H

#include <pypto/pld_math.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How to leave the values between two neighbours. */
typedef enum pld_rounding {
    PLD_TO_NEAREST, /* ties to even */
    PLD_TO_ZERO,
    PLD_FROM_ZERO,
    PLD_TO_ODD /* towards 0, the last bit set when that lost anything */
} pld_rounding;

/* The code of |x|, as if larger ones had no end: exponent above `fraction` bits, whose smallest normal
 * numbers have the exponent `least`. What is beyond 2^16 counts as 2^16, NaN as well.
 *
 * |x| divided by the value of the last bit is exact, and rounds to an integer; a carry out of the
 * fraction is what the code of the next exponent is. */
static inline uint32_t pld_small_code(float x, int fraction, int least, pld_rounding rounding)
{
    const uint32_t size = pld_float_bits(x) & 0x7fffffffu;
    const uint32_t bits = size < 0x47800000u ? size : 0x47800000u;
    const int own = (int)(bits >> 23) - 127;
    const int exponent = own < least ? least : own;
    const float unit = pld_bits_float((uint32_t)(fraction - exponent + 127) << 23);
    const float exact = pld_bits_float(bits) * unit;
    const float below = __builtin_floorf(exact);
    const float above = __builtin_ceilf(exact);
    const float nearest = __builtin_rintf(exact);
    const float whole = rounding == PLD_TO_NEAREST  ? nearest
                        : rounding == PLD_FROM_ZERO ? above
                                                    : below;
    const uint32_t lost = rounding == PLD_TO_ODD && below != exact;
    return ((uint32_t)(exponent - least) << fraction) + ((uint32_t)whole | lost);
}

/* A code of which the sign is cut off, as a value; special codes are the caller's. */
static inline float pld_small_value(uint32_t code, int fraction, int least)
{
    const uint32_t exponent = code >> fraction;
    const float small =
        (float)(int32_t)code * pld_bits_float((uint32_t)(least - fraction + 127) << 23);
    const uint32_t normal = (code << (23 - fraction)) + ((uint32_t)(least + 126) << 23);
    return exponent == 0 ? small : pld_bits_float(normal);
}

static inline uint8_t pld_to_fp8e4m3fn(float x, pld_rounding rounding)
{
    const uint32_t bits = pld_float_bits(x);
    const uint32_t code = pld_small_code(x, 3, -6, rounding);
    const bool inward = rounding == PLD_TO_ZERO || rounding == PLD_TO_ODD;
    const bool finite = (bits & 0x7fffffffu) < 0x7f800000u;
    const uint32_t large = inward && finite ? 0x7eu : 0x7fu; /* there is no infinity */
    return (uint8_t)((bits >> 24 & 0x80u) | (code <= 0x7eu ? code : large));
}

static inline uint8_t pld_to_fp8e5m2(float x, pld_rounding rounding)
{
    const uint32_t bits = pld_float_bits(x);
    const uint32_t size = bits & 0x7fffffffu;
    const uint32_t code = pld_small_code(x, 2, -14, rounding);
    const bool inward = rounding == PLD_TO_ZERO || rounding == PLD_TO_ODD;
    const uint32_t large = inward && size < 0x7f800000u ? 0x7bu : 0x7cu;
    const uint32_t number = code <= 0x7bu ? code : large;
    return (uint8_t)((bits >> 24 & 0x80u) | (size > 0x7f800000u ? 0x7fu : number));
}

/* Large numbers become 6, NaN as well. */
static inline uint8_t pld_to_fp4(float x, pld_rounding rounding)
{
    const uint32_t bits = pld_float_bits(x);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const uint32_t code = pld_small_code(x, 1, 0, rounding);
    return (uint8_t)((nan ? 0u : bits >> 28 & 8u) | (code < 7u ? code : 7u));
}

/* The sign is lost; 0 becomes the smallest scale, infinity and NaN become NaN. Ties go up. */
static inline uint8_t pld_to_fp8e8m0(float x, pld_rounding rounding)
{
    const uint32_t bits = pld_float_bits(x) & 0x7fffffffu;
    const uint32_t exponent = bits >> 23;
    const uint32_t rest = bits & 0x7fffffu;
    const uint32_t half = exponent == 0 ? 0x400001u : 0x400000u; /* 2^-127 is a subnormal float */
    const bool up = rounding == PLD_TO_NEAREST  ? rest >= half
                    : rounding == PLD_FROM_ZERO ? rest != 0
                                                : false;
    return (uint8_t)(exponent == 255 ? 255u : exponent + up);
}

static inline float pld_fp8e4m3fn_to_float(uint8_t bits)
{
    const uint32_t code = bits & 0x7fu;
    const float size = pld_small_value(code, 3, -6);
    const float value = code == 0x7fu ? __builtin_nanf("") : size;
    return pld_bits_float(pld_float_bits(value) | (uint32_t)(bits & 0x80u) << 24);
}

static inline float pld_fp8e5m2_to_float(uint8_t bits)
{
    const uint32_t code = bits & 0x7fu;
    const float size = pld_small_value(code, 2, -14);
    const float special = code == 0x7cu ? __builtin_inff() : __builtin_nanf("");
    return pld_bits_float(pld_float_bits(code < 0x7cu ? size : special) | (uint32_t)(bits & 0x80u)
                                                                              << 24);
}

static inline float pld_fp4_to_float(uint8_t bits)
{
    return pld_bits_float(pld_float_bits(pld_small_value(bits & 7u, 1, 0)) | (uint32_t)(bits & 8u)
                                                                                 << 28);
}

static inline float pld_fp8e8m0_to_float(uint8_t bits)
{
    const uint32_t scale = bits == 0 ? 0x00400000u : (uint32_t)bits << 23;
    return bits == 255 ? __builtin_nanf("") : pld_bits_float(scale);
}

/* The names of casts, as those of 16-bit floats: to nearest, and in a direction. */
#define PLD_SMALL(name)                                        \
    static inline uint8_t pld_float_to_##name(float x)         \
    {                                                          \
        return pld_to_##name(x, PLD_TO_NEAREST);               \
    }                                                          \
    static inline uint8_t pld_float_to_##name##_trunc(float x) \
    {                                                          \
        return pld_to_##name(x, PLD_TO_ZERO);                  \
    }                                                          \
    static inline uint8_t pld_float_to_##name##_floor(float x) \
    {                                                          \
        const uint8_t up = pld_to_##name(x, PLD_FROM_ZERO);    \
        const uint8_t down = pld_to_##name(x, PLD_TO_ZERO);    \
        return x < 0.0f ? up : down;                           \
    }                                                          \
    static inline uint8_t pld_float_to_##name##_ceil(float x)  \
    {                                                          \
        const uint8_t up = pld_to_##name(x, PLD_FROM_ZERO);    \
        const uint8_t down = pld_to_##name(x, PLD_TO_ZERO);    \
        return x < 0.0f ? down : up;                           \
    }                                                          \
    static inline uint8_t pld_float_to_##name##_odd(float x)   \
    {                                                          \
        return pld_to_##name(x, PLD_TO_ODD);                   \
    }
PLD_SMALL(fp8e4m3fn)
PLD_SMALL(fp8e5m2)
PLD_SMALL(fp8e8m0)
PLD_SMALL(fp4)
#undef PLD_SMALL

/* ---- integers of 4 bits, in the lower half of a byte ---- */

static inline int pld_int4_to_int(uint8_t bits)
{
    return (bits & 15) - ((bits & 8) << 1);
}

static inline int pld_uint4_to_int(uint8_t bits)
{
    return bits & 15;
}

/* Of a rounded value: what is out of range becomes the nearest integer, NaN 0. */
static inline uint8_t pld_f32_to_int4(float x)
{
    const int8_t near = pld_f32_to_i8(x);
    return (uint8_t)((near < -8 ? -8 : near > 7 ? 7 : near) & 15);
}

static inline uint8_t pld_f32_to_uint4(float x)
{
    const uint8_t near = pld_f32_to_u8(x);
    return near > 15 ? 15 : near;
}

#ifdef __cplusplus
}
#endif
#endif
