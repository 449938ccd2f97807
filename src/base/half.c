/* The 16-bit floating types that C has no portable name for: conversions of FP16 (IEEE binary16)
 * and BF16 (the upper half of binary32) from and to float. Called by emitted kernels through pld.h.
 *
 * Integer arithmetic only: the result depends neither on the compiler nor on the rounding mode of
 * the thread. To 16 bits: nearest, ties to even; too large becomes infinity; too small becomes a
 * subnormal or a zero of the same sign. A NaN stays a NaN of the same sign, made quiet, with the
 * upper bits of its payload: bit for bit as the conversion instructions of x86-64 and arm64. */
#include <pypto/pld.h>

#include <string.h>

#define F32_SIGN 0x80000000u
#define F32_INFINITY 0x7f800000u
#define F32_QUIET 0x00400000u
#define F32_HIDDEN 0x00800000u

#define F16_INFINITY 0x7c00u
#define F16_QUIET 0x0200u
#define F16_FRACTION 0x03ffu

/* Difference of the exponent biases (127 and 15), in place of the float's exponent. */
#define REBIAS (112u << 23)

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* bits / 2^shift, to nearest, ties to even. */
static uint32_t shift_rounding(uint32_t bits, uint32_t shift)
{
    uint32_t half = 1u << (shift - 1);
    return (bits + half - 1 + (bits >> shift & 1)) >> shift;
}

float pld_fp16_to_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t fraction = bits & F16_FRACTION;
    uint32_t exponent = bits & F16_INFINITY;
    if (exponent == F16_INFINITY) {
        uint32_t quiet = fraction != 0 ? F32_QUIET : 0;
        return bits_float(sign | F32_INFINITY | quiet | fraction << 13);
    }
    if (exponent != 0)
        return bits_float(sign | (((exponent | fraction) << 13) + REBIAS));
    if (fraction == 0)
        return bits_float(sign);
    /* fraction * 2^-24: move its leading one to where a float does not store it. */
    uint32_t places = (uint32_t)__builtin_clz(fraction) - 8;
    uint32_t scaled = fraction << places & (F32_HIDDEN - 1);
    return bits_float(sign | (126 - places) << 23 | scaled);
}

uint16_t pld_float_to_fp16(float value)
{
    uint32_t bits = float_bits(value);
    uint32_t sign = (bits & F32_SIGN) >> 16;
    uint32_t size = bits & ~F32_SIGN;
    uint32_t exponent = size >> 23;
    uint32_t result;
    if (size > F32_INFINITY) {
        result = F16_INFINITY | F16_QUIET | (size >> 13 & F16_FRACTION);
    } else if (exponent > 127 + 15) {
        result = F16_INFINITY;
    } else if (exponent > 112) {
        /* May carry into the exponent, up to infinity: both are the right answer. */
        result = shift_rounding(size - REBIAS, 13);
    } else if (exponent >= 102) {
        /* A subnormal counts units of 2^-24; 102 is the exponent of 2^-25, half of one. */
        result = shift_rounding((size & (F32_HIDDEN - 1)) | F32_HIDDEN, 126 - exponent);
    } else {
        result = 0;
    }
    return (uint16_t)(sign | result);
}

uint16_t pld_float_to_bf16(float value)
{
    uint32_t bits = float_bits(value);
    if ((bits & ~F32_SIGN) > F32_INFINITY)
        return (uint16_t)((bits | F32_QUIET) >> 16);
    return (uint16_t)shift_rounding(bits, 16);
}
