/* Arithmetic on single elements, for the loops over tiles that kernels consist of: conversions of
 * 16-bit floats, exp and log, and the operations whose C operator does not do what the language
 * says (division by zero, NaN in a maximum, shifts by too much).
 *
 * Included by pld.h. All of it is inline, without branches and without calls, so that compilers
 * turn a loop over it into vector code. And all of it gives the same bits whatever the width of the
 * vectors, the compiler and the CPU: IEEE operations in a fixed order, no fused multiply-add, nothing of libm.
 * Programs must be compiled with -ffp-contract=off (and -fwrapv, -fno-math-errno), as pypto does.
 *
 * Names end in the element type that they compute in: i8 i16 i32 i64 u8 u16 u32 u64, and f32, which
 * 16-bit floats compute in as well: converted, one operation, rounded once. */
#ifndef PYPTO_PLD_MATH_H
#define PYPTO_PLD_MATH_H

#include <pypto/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- bits ---- */

static inline uint32_t pld_float_bits(float value)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float pld_bits_float(uint32_t bits)
{
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- 16-bit floats ---- */

/* FP16 is IEEE binary16, BF16 the upper half of binary32. To 16 bits: nearest, ties to even; too
 * large becomes infinity; too small becomes a subnormal or a zero of the same sign. A NaN stays a
 * NaN of the same sign, made quiet, with the upper bits of its payload: bit for bit as the
 * conversion instructions of x86-64 and arm64. */
static inline float pld_fp16_to_float(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    const uint32_t size = bits & 0x7fffu;
    /* A subnormal counts units of 2^-24. The conversion and the product are exact. */
    const uint32_t small = pld_float_bits((float)(int32_t)size * 0x1p-24f);
    /* The exponents' biases differ by 112; infinity and NaN keep their exponent of ones. */
    const uint32_t normal = (size << 13) + (112u << 23);
    const uint32_t special = (size << 13) | 0x7f800000u | (size > 0x7c00u ? 0x00400000u : 0u);
    const uint32_t finite = size < 0x0400u ? small : normal;
    return pld_bits_float(sign | (size < 0x7c00u ? finite : special));
}

static inline uint16_t pld_float_to_fp16(float value)
{
    const uint32_t bits = pld_float_bits(value);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t size = bits & 0x7fffffffu;
    /* Adding 1/2 puts the last bit that stays at 2^-24 and rounds there. */
    const uint32_t small = pld_float_bits(pld_bits_float(size) + 0.5f) - 0x3f000000u;
    /* May carry into the exponent, up to infinity: both are the right answer. */
    const uint32_t normal = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
    const uint32_t nan = 0x7e00u | (size >> 13 & 0x3ffu);
    const uint32_t finite = size < 0x38800000u ? small : normal;
    const uint32_t large = size > 0x7f800000u ? nan : 0x7c00u;
    return (uint16_t)(sign | (size < 0x47800000u ? finite : large));
}

static inline float pld_bf16_to_float(uint16_t bits)
{
    return pld_bits_float((uint32_t)bits << 16);
}

static inline uint16_t pld_float_to_bf16(float value)
{
    const uint32_t bits = pld_float_bits(value);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const uint32_t nan = bits >> 16 | 0x0040u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* ---- exp and log ---- */

/* e^x, within 1 unit in the last place, subnormal results included.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2: n by adding and taking away 1.5 * 2^23, which rounds to an
 * integer, and ln 2 in two parts, of which n times the first is exact. Then e^r = 1 + r + r^2 q(r),
 * where q is the polynomial of degree 4 with the least largest relative error on that interval
 * (fitted by repeated weighted least squares; 3e-9). 2^n is multiplied in two steps, so that results
 * overflow to infinity and lose bits as subnormals in the last one only. */
static inline float pld_exp_f32(float x)
{
    const float low = x < -104.0f ? -104.0f : x; /* comparisons let NaN through */
    const float at = low > 89.0f ? 89.0f : low;
    const float shifted = at * 0x1.715476p+0f + 0x1.8p+23f;
    const float n = shifted - 0x1.8p+23f;
    const int32_t whole = (int32_t)(pld_float_bits(shifted) - 0x4b400000u);
    const float r = (at - n * 0x1.62ep-1f) - n * 0x1.0bfbe8p-15f;
    float q = 0x1.6a2432p-10f;
    q = q * r + 0x1.1239e4p-7f;
    q = q * r + 0x1.5558f2p-5f;
    q = q * r + 0x1.555492p-3f;
    q = q * r + 0x1.fffffcp-2f;
    const float value = 1.0f + (r + r * r * q);
    const int32_t half = whole >> 1;
    const float scale = pld_bits_float((uint32_t)(half + 127) << 23);
    const float rest = pld_bits_float((uint32_t)(whole - half + 127) << 23);
    return value * scale * rest;
}

/* The natural logarithm, within 1 unit in the last place; log(0) is minus infinity, of a negative
 * number NaN.
 *
 * x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2). With s = f / (2 + f),
 * log(1 + f) = 2 atanh(s) = 2 s + s z R(z), z = s^2, with R again the polynomial of least error (1e-11).
 * It is summed as f - (f^2/2 - s (f^2/2 + z R)), whose largest term is exact. */
static inline float pld_log_f32(float x)
{
    const uint32_t tiny = x < 0x1p-126f; /* subnormal: count from 2^25 times as much */
    const uint32_t bits = pld_float_bits(tiny ? x * 0x1p+25f : x);
    const uint32_t moved = bits - 0x3f3504f3u; /* sqrt(1/2) */
    const int32_t k = ((int32_t)moved >> 23) - (tiny ? 25 : 0);
    const float f = pld_bits_float((moved & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    const float s = f / (2.0f + f);
    const float z = s * s;
    float r = 0x1.e2f9a2p-3f;
    r = r * z + 0x1.2438c4p-2f;
    r = r * z + 0x1.999a7ap-2f;
    r = r * z + 0x1.555554p-1f;
    const float half = 0.5f * f * f;
    const float n = (float)k;
    const float value = n * 0x1.62ep-1f - ((half - (s * (half + z * r) + n * 0x1.0bfbe8p-15f)) - f);
    const float above = x < __builtin_inff() ? value : x; /* infinity and NaN stay */
    const float defined = x < 0.0f ? __builtin_nanf("") : above;
    return x == 0.0f ? -__builtin_inff() : defined;
}

/* ---- sin and cos ---- */

/* Both are within 1 unit in the last place for every finite number; infinity gives NaN.
 *
 * In double: x = n pi/2 + r with |r| <= pi/4, then the series of the sine or the cosine of r, whichever the
 * quadrant n mod 4 asks for: what is left out is below 2e-9. Up to 2^16 the difference x - n pi/2 is exact
 * enough with pi/2 in two parts, of which n times the first (25 bits) is exact. Beyond ("far"), where x may have more
 * digits in front of the point than pi/2 behind it in any fixed number of parts, r comes from those bits of 2/pi
 * that matter for the exponent of x (M. Payne, R. Hanek: Radian reduction for trigonometric functions, SIGNUM
 * Newsletter 18, 1983). That takes three times as long, so loops over tiles first look whether anything is far. */

/* Whether x is finite and at least 2^16 away from 0. */
static inline bool pld_is_far_f32(float x)
{
    return (pld_float_bits(x) & 0x7fffffffu) - 0x47800000u < 0x38000000u;
}

/* From r and n: sin(x), or with quarter = 1 sin(x + pi/2). */
static inline float pld_sine_of(double r, uint32_t n, uint32_t quarter)
{
    const uint32_t quadrant = n + quarter;
    const double z = r * r;
    const double sine =
        r * (1.0 + z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880)))));
    const double cosine =
        1.0 +
        z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 - z * (1.0 / 3628800)))));
    const double value = (quadrant & 1u) != 0 ? cosine : sine;
    return (float)((quadrant & 2u) != 0 ? -value : value);
}

/* Of a number that is not far. */
static inline float pld_near_sine_f32(float x, uint32_t quarter)
{
    const double wide = (double)x;
    const double shifted = wide * 0x1.45f306dc9c883p-1 + 0x1.8p+52;
    const double n = shifted - 0x1.8p+52;
    uint64_t bits;
    __builtin_memcpy(&bits, &shifted, sizeof bits);
    const double r = wide - n * 0x1.921fb5p+0 - n * 0x1.110b4611a6263p-26;
    return pld_sine_of(r, (uint32_t)bits, quarter);
}

/* Of a number that is far. |x| = m 2^q with q from 0 to 7 in steps of 8 bits of 2/pi: bits in front of those give
 * whole turns, and of those behind the next 96 nothing is left in the 62 bits that a quarter turn has here. */
static inline float pld_far_sine_f32(float x, uint32_t quarter)
{
    /* The 32 bits of 2/pi from bit 8 i - 16 behind the point on. */
    static const uint32_t two_over_pi[] = {
        0x0000a2f9u, 0x00a2f983u, 0xa2f9836eu, 0xf9836e4eu, 0x836e4e44u, 0x6e4e4415u,
        0x4e441529u, 0x441529fcu, 0x1529fc27u, 0x29fc2757u, 0xfc2757d1u, 0x2757d1f5u,
        0x57d1f534u, 0xd1f534ddu, 0xf534ddc0u, 0x34ddc0dbu, 0xddc0db62u, 0xc0db6295u,
        0xdb629599u, 0x6295993cu, 0x95993c43u, 0x993c4390u, 0x3c439041u,
    };
    const uint32_t bits = pld_float_bits(x);
    const uint32_t place = (bits >> 23 & 0xffu) - 136;
    const uint32_t *word = two_over_pi + (place >> 3);
    const uint64_t m = (uint64_t)((bits & 0x7fffffu) | 0x800000u) << (place & 7);
    const uint64_t turn = (m * word[0] << 32) + m * word[4] + (m * word[8] >> 32);
    const uint64_t n = (turn + (UINT64_C(1) << 61)) >> 62;
    const double rest = (double)(int64_t)(turn - (n << 62));
    const double r = rest * 0x1.921fb54442d18p-62;
    const bool negative = bits >> 31 != 0;
    return pld_sine_of(negative ? -r : r, negative ? 0u - (uint32_t)n : (uint32_t)n, quarter);
}

static inline float pld_sin_f32(float x)
{
    return pld_is_far_f32(x) ? pld_far_sine_f32(x, 0) : pld_near_sine_f32(x, 0);
}

static inline float pld_cos_f32(float x)
{
    return pld_is_far_f32(x) ? pld_far_sine_f32(x, 1) : pld_near_sine_f32(x, 1);
}

static inline float pld_sqrt_f32(float x)
{
    return __builtin_sqrtf(x);
}

static inline float pld_abs_f32(float x)
{
    return pld_bits_float(pld_float_bits(x) & 0x7fffffffu);
}

/* ---- rounding to integers ---- */

static inline float pld_rint_f32(float x)
{
    return __builtin_rintf(x);
}

static inline float pld_floor_f32(float x)
{
    return __builtin_floorf(x);
}

static inline float pld_ceil_f32(float x)
{
    return __builtin_ceilf(x);
}

static inline float pld_trunc_f32(float x)
{
    return __builtin_truncf(x);
}

/* To the nearest integer, of two equally near ones to the one further from 0. */
static inline float pld_round_f32(float x)
{
    const float whole = __builtin_truncf(x);
    const float one = x < 0.0f ? -1.0f : 1.0f;
    return pld_abs_f32(x - whole) >= 0.5f ? whole + one : whole;
}

/* To the nearest integer, of two equally near ones to the odd one. */
static inline float pld_odd_f32(float x)
{
    const float below = __builtin_floorf(x);
    const float rest = x - below;
    const float half = below * 0.5f;
    const float odd = __builtin_floorf(half) == half ? below + 1.0f : below;
    const float near = rest > 0.5f ? below + 1.0f : below;
    return rest == 0.5f ? odd : near;
}

/* A rounded value as an integer: what is out of range becomes the nearest integer, NaN 0. */
#define PLD_CONVERSION(suffix, type, low, least, high, most)   \
    static inline type pld_f32_to_##suffix(float x)            \
    {                                                          \
        const float inside = x >= low && x < high ? x : 0.0f;  \
        const type converted = (type)inside;                   \
        const type above = x >= high ? (type)most : converted; \
        return x < low ? (type)least : above;                  \
    }
PLD_CONVERSION(i8, int8_t, -128.0f, INT8_MIN, 128.0f, INT8_MAX)
PLD_CONVERSION(i16, int16_t, -32768.0f, INT16_MIN, 32768.0f, INT16_MAX)
PLD_CONVERSION(i32, int32_t, -0x1p31f, INT32_MIN, 0x1p31f, INT32_MAX)
PLD_CONVERSION(i64, int64_t, -0x1p63f, INT64_MIN, 0x1p63f, INT64_MAX)
PLD_CONVERSION(u8, uint8_t, 0.0f, 0, 256.0f, UINT8_MAX)
PLD_CONVERSION(u16, uint16_t, 0.0f, 0, 65536.0f, UINT16_MAX)
PLD_CONVERSION(u32, uint32_t, 0.0f, 0, 0x1p32f, UINT32_MAX)
PLD_CONVERSION(u64, uint64_t, 0.0f, 0, 0x1p64f, UINT64_MAX)
#undef PLD_CONVERSION

/* An integer as FP32, rounded to odd: the last bit is set when bits were lost, so that rounding the result to
 * fewer bits gives what rounding the integer would. */
static inline float pld_u64_to_f32_odd(uint64_t x)
{
    const uint32_t shift = x >> 24 == 0 ? 0 : 40 - (uint32_t)__builtin_clzll(x | 1);
    const uint64_t kept = x >> shift;
    const bool lost = kept << shift != x;
    return (float)((kept | lost) << shift);
}

static inline float pld_i64_to_f32_odd(int64_t x)
{
    const float size = pld_u64_to_f32_odd(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
    return x < 0 ? -size : size;
}

static inline float pld_u32_to_f32_odd(uint32_t x)
{
    return pld_u64_to_f32_odd(x);
}

static inline float pld_i32_to_f32_odd(int32_t x)
{
    return pld_i64_to_f32_odd(x);
}

/* To 16-bit floats in a direction: towards 0; down; up; or towards 0 with the last bit set when that
 * lost anything ("odd"). */
#define PLD_DIRECTED(suffix)                                                                \
    static inline uint16_t pld_float_to_##suffix##_trunc(float x)                           \
    {                                                                                       \
        const uint16_t nearest = pld_float_to_##suffix(x);                                  \
        const bool beyond = pld_abs_f32(pld_##suffix##_to_float(nearest)) > pld_abs_f32(x); \
        return (uint16_t)(nearest - beyond);                                                \
    }                                                                                       \
    static inline uint16_t pld_float_to_##suffix##_floor(float x)                           \
    {                                                                                       \
        const uint16_t cut = pld_float_to_##suffix##_trunc(x);                              \
        return (uint16_t)(cut + (pld_##suffix##_to_float(cut) > x));                        \
    }                                                                                       \
    static inline uint16_t pld_float_to_##suffix##_ceil(float x)                            \
    {                                                                                       \
        const uint16_t cut = pld_float_to_##suffix##_trunc(x);                              \
        return (uint16_t)(cut + (pld_##suffix##_to_float(cut) < x));                        \
    }                                                                                       \
    static inline uint16_t pld_float_to_##suffix##_odd(float x)                             \
    {                                                                                       \
        const uint16_t cut = pld_float_to_##suffix##_trunc(x);                              \
        const float back = pld_##suffix##_to_float(cut);                                    \
        return (uint16_t)(cut | (back < x || back > x));                                    \
    }                                                                                       \
    static inline float pld_expdif_##suffix(float a, float b)                               \
    {                                                                                       \
        return pld_exp_f32(pld_##suffix##_to_float(pld_float_to_##suffix(a - b)));          \
    }
PLD_DIRECTED(fp16)
PLD_DIRECTED(bf16)
#undef PLD_DIRECTED

/* e^(a - b), the difference rounded to the element type. */
static inline float pld_expdif_f32(float a, float b)
{
    return pld_exp_f32(a - b);
}

/* ---- minimum and maximum: a NaN wins ---- */

static inline float pld_min_f32(float a, float b)
{
    return a < b || a != a ? a : b;
}

static inline float pld_max_f32(float a, float b)
{
    return a > b || a != a ? a : b;
}

static inline float pld_relu_f32(float x)
{
    return x < 0.0f ? 0.0f : x;
}

static inline float pld_div_f32(float a, float b)
{
    return a / b;
}

/* The exact remainder of a / b with the sign of a. NaN where b is 0 or a infinite.
 *
 * Both are integers times a power of two, the exponent of b. The difference of the exponents is worked off 40
 * bits at a time: the only function here with a loop, so it stays scalar code. */
static inline float pld_rem_f32(float a, float b)
{
    const uint32_t x = pld_float_bits(a) & 0x7fffffffu;
    const uint32_t y = pld_float_bits(b) & 0x7fffffffu;
    if (x >= 0x7f800000u || y > 0x7f800000u || y == 0)
        return a != a ? a : b != b ? b : __builtin_nanf("");
    if (x < y)
        return a;
    const uint32_t x_exponent = x >> 23 != 0 ? x >> 23 : 1;
    const uint32_t y_exponent = y >> 23 != 0 ? y >> 23 : 1;
    const uint64_t divisor = (y & 0x7fffffu) | (y >> 23 != 0 ? 0x800000u : 0u);
    uint64_t rest = ((x & 0x7fffffu) | (x >> 23 != 0 ? 0x800000u : 0u)) % divisor;
    for (uint32_t left = x_exponent - y_exponent; left > 0;) {
        const uint32_t step = left < 40 ? left : 40;
        rest = (rest << step) % divisor;
        left -= step;
    }
    /* 2^(y_exponent - 150): too small for a float, not for a double. */
    const uint64_t unit_bits = (uint64_t)(y_exponent + 1023 - 150) << 52;
    double unit;
    __builtin_memcpy(&unit, &unit_bits, sizeof unit);
    const float size = (float)((double)rest * unit);
    return (pld_float_bits(a) >> 31) != 0 ? -size : size;
}

/* The same with the sign of b, rounded once. */
static inline float pld_mod_f32(float a, float b)
{
    const float rest = pld_rem_f32(a, b);
    const bool other_sign = rest != 0.0f && (rest < 0.0f) != (b < 0.0f);
    return other_sign ? rest + b : rest;
}

/* A value rounded to the element type, between two steps of one operation. */
static inline float pld_step_f32(float x)
{
    return x;
}

static inline float pld_step_fp16(float x)
{
    return pld_fp16_to_float(pld_float_to_fp16(x));
}

static inline float pld_step_bf16(float x)
{
    return pld_bf16_to_float(pld_float_to_bf16(x));
}

/* Whether an element of a triangular matrix is 1. */
static inline int pld_tri(int64_t row, int64_t column, int64_t diagonal, bool upper)
{
    const int64_t distance = column - row;
    return upper ? distance >= diagonal : distance <= diagonal;
}

/* ---- integers ---- */

/* A quotient is truncated; dividing by 0 gives 0, and the least number divided by -1 stays itself. The
 * `wide` float type holds every operand, and no quotient rounds up to the next integer in it, so the
 * division can be the vector unit's. */
#define PLD_COMMON_FUNCTIONS(suffix, type)                                          \
    static inline type pld_min_##suffix(type a, type b)                             \
    {                                                                               \
        return a < b ? a : b;                                                       \
    }                                                                               \
    static inline type pld_max_##suffix(type a, type b)                             \
    {                                                                               \
        return a > b ? a : b;                                                       \
    }                                                                               \
    static inline type pld_step_##suffix(type x)                                    \
    {                                                                               \
        return x;                                                                   \
    }                                                                               \
    static inline type pld_ci_##suffix(type start, int64_t column, bool descending) \
    {                                                                               \
        const uint64_t first = (uint64_t)start;                                     \
        const uint64_t steps = (uint64_t)column;                                    \
        return (type)(descending ? first - steps : first + steps);                  \
    }

#define PLD_SIGNED_FUNCTIONS(suffix, type, unsigned_type, wide)                           \
    PLD_COMMON_FUNCTIONS(suffix, type)                                                    \
    static inline type pld_abs_##suffix(type x)                                           \
    {                                                                                     \
        return x < 0 ? (type)(0u - (unsigned_type)x) : x;                                 \
    }                                                                                     \
    static inline type pld_relu_##suffix(type x)                                          \
    {                                                                                     \
        return x < 0 ? (type)0 : x;                                                       \
    }                                                                                     \
    static inline type pld_div_##suffix(type a, type b)                                   \
    {                                                                                     \
        const wide divisor = b == 0 || b == -1 ? (wide)1 : (wide)b;                       \
        const type quotient = (type)((wide)a / divisor);                                  \
        const type negative = (type)(0u - (unsigned_type)a);                              \
        return b == 0 ? (type)0 : b == -1 ? negative : quotient;                          \
    }                                                                                     \
    static inline type pld_rem_##suffix(type a, type b)                                   \
    {                                                                                     \
        const unsigned_type quotient = (unsigned_type)pld_div_##suffix(a, b);             \
        return (type)(b == 0 ? 0u : (unsigned_type)a - 1u * quotient * (unsigned_type)b); \
    }                                                                                     \
    static inline type pld_mod_##suffix(type a, type b)                                   \
    {                                                                                     \
        const type rest = pld_rem_##suffix(a, b);                                         \
        return rest != 0 && (rest < 0) != (b < 0) ? (type)(rest + b) : rest;              \
    }                                                                                     \
    static inline type pld_shl_##suffix(type a, type count)                               \
    {                                                                                     \
        const type bits = (type)(sizeof(type) * 8);                                       \
        const bool fits = count >= 0 && count < bits;                                     \
        return (type)(fits ? (unsigned_type)a << (fits ? count : 0) : 0);                 \
    }                                                                                     \
    static inline type pld_shr_##suffix(type a, type count)                               \
    {                                                                                     \
        const type most = (type)(sizeof(type) * 8 - 1);                                   \
        return (type)(a >> (count >= 0 && count < most ? count : most));                  \
    }

#define PLD_UNSIGNED_FUNCTIONS(suffix, type, wide)                        \
    PLD_COMMON_FUNCTIONS(suffix, type)                                    \
    static inline type pld_abs_##suffix(type x)                           \
    {                                                                     \
        return x;                                                         \
    }                                                                     \
    static inline type pld_relu_##suffix(type x)                          \
    {                                                                     \
        return x;                                                         \
    }                                                                     \
    static inline type pld_div_##suffix(type a, type b)                   \
    {                                                                     \
        const wide divisor = b == 0 ? (wide)1 : (wide)b;                  \
        const type quotient = (type)((wide)a / divisor);                  \
        return b == 0 ? (type)0 : quotient;                               \
    }                                                                     \
    static inline type pld_rem_##suffix(type a, type b)                   \
    {                                                                     \
        return b == 0 ? (type)0 : (type)(a - pld_div_##suffix(a, b) * b); \
    }                                                                     \
    static inline type pld_mod_##suffix(type a, type b)                   \
    {                                                                     \
        return pld_rem_##suffix(a, b);                                    \
    }                                                                     \
    static inline type pld_shl_##suffix(type a, type count)               \
    {                                                                     \
        const bool fits = count < sizeof(type) * 8;                       \
        return (type)(fits ? a << (fits ? count : 0) : 0);                \
    }                                                                     \
    static inline type pld_shr_##suffix(type a, type count)               \
    {                                                                     \
        const bool fits = count < sizeof(type) * 8;                       \
        return (type)(fits ? a >> (fits ? count : 0) : 0);                \
    }

PLD_SIGNED_FUNCTIONS(i8, int8_t, uint8_t, float)
PLD_SIGNED_FUNCTIONS(i16, int16_t, uint16_t, float)
PLD_SIGNED_FUNCTIONS(i32, int32_t, uint32_t, double)
PLD_SIGNED_FUNCTIONS(i64, int64_t, uint64_t, int64_t)
PLD_UNSIGNED_FUNCTIONS(u8, uint8_t, float)
PLD_UNSIGNED_FUNCTIONS(u16, uint16_t, float)
PLD_UNSIGNED_FUNCTIONS(u32, uint32_t, double)
PLD_UNSIGNED_FUNCTIONS(u64, uint64_t, uint64_t)

#undef PLD_COMMON_FUNCTIONS
#undef PLD_SIGNED_FUNCTIONS
#undef PLD_UNSIGNED_FUNCTIONS

#ifdef __cplusplus
}
#endif
#endif
