/* FP16 and BF16 conversions: all values there and back, every rounding boundary, NaNs. */
#include <pypto/pld.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

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

/* The value of FP16 bits by the definition, in double. */
static double fp16_value(uint32_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double fraction = (double)(bits & 1023);
    double size = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) != 0 ? -size : size;
}

static void fp16_values_are_right(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = pld_fp16_to_float((uint16_t)bits);
        if ((bits & 0x7c00) == 0x7c00) {
            uint32_t quiet = (bits & 0x3ff) != 0 ? 0x400000u : 0;
            uint32_t expected = (bits & 0x8000) << 16 | 0x7f800000u | quiet | (bits & 0x3ff) << 13;
            assert_int_equal(float_bits(value), expected);
        } else {
            assert_int_equal(float_bits(value), float_bits((float)fp16_value(bits)));
        }
    }
}

static void fp16_round_trip(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint32_t back = pld_float_to_fp16(pld_fp16_to_float((uint16_t)bits));
        bool is_nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
        assert_int_equal(back, is_nan ? bits | 0x200 : bits);
    }
}

/* Between each FP16 value and the next: the middle goes to the even one, its neighbours to the near
 * one. Covers subnormals, the step to normals, and the step to infinity (65520 is the middle). */
static void fp16_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        double above = bits == 0x7bff ? 65536.0 : fp16_value(bits + 1);
        float middle = (float)((fp16_value(bits) + above) / 2); /* exact */
        uint32_t even = bits + (bits & 1);
        assert_int_equal(pld_float_to_fp16(middle), even);
        assert_int_equal(pld_float_to_fp16(nextafterf(middle, 0)), bits);
        assert_int_equal(pld_float_to_fp16(nextafterf(middle, INFINITY)), bits + 1);
        assert_int_equal(pld_float_to_fp16(-middle), even | 0x8000);
    }
}

static void fp16_extremes(void **state)
{
    (void)state;
    assert_int_equal(pld_float_to_fp16(65519.996f), 0x7bff);
    assert_int_equal(pld_float_to_fp16(65520.0f), 0x7c00);
    assert_int_equal(pld_float_to_fp16(3.4e38f), 0x7c00);
    assert_int_equal(pld_float_to_fp16(-INFINITY), 0xfc00);
    assert_int_equal(pld_float_to_fp16(1e-10f), 0);
    assert_int_equal(pld_float_to_fp16(-1e-10f), 0x8000);
    assert_int_equal(pld_float_to_fp16(bits_float(1)), 0); /* smallest float */
    assert_int_equal(pld_float_to_fp16(-0.0f), 0x8000);
    /* NaNs whose payload lies below what FP16 keeps must not become infinity. */
    assert_int_equal(pld_float_to_fp16(bits_float(0x7f800001u)), 0x7e00);
    assert_int_equal(pld_float_to_fp16(bits_float(0xffc00000u)), 0xfe00);
    assert_int_equal(pld_float_to_fp16(bits_float(0x7fffffffu)), 0x7fff);
}

static void bf16_round_trip(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint32_t back = pld_float_to_bf16(pld_bf16_to_float((uint16_t)bits));
        bool is_nan = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0;
        assert_int_equal(back, is_nan ? bits | 0x40 : bits);
    }
}

static void bf16_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7f80; bits++) {
        uint32_t even = bits + (bits & 1);
        assert_int_equal(pld_float_to_bf16(bits_float(bits << 16 | 0x8000)), even);
        assert_int_equal(pld_float_to_bf16(bits_float(bits << 16 | 0x7fff)), bits);
        assert_int_equal(pld_float_to_bf16(bits_float(bits << 16 | 0x8001)), bits + 1);
        assert_int_equal(pld_float_to_bf16(bits_float(0x80000000u | bits << 16 | 0x8001)),
                         (bits + 1) | 0x8000);
    }
    assert_int_equal(pld_float_to_bf16(bits_float(0x7f800001u)), 0x7fc0);
    assert_int_equal(pld_float_to_bf16(bits_float(0xffffffffu)), 0xffff);
    assert_int_equal(pld_float_to_bf16(INFINITY), 0x7f80);
}

#if defined(__F16C__)
#include <immintrin.h>
/* The portable conversion and the processor's agree on every float bit pattern that is sampled. */
static void fp16_equals_the_instruction(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 997) {
        float value = bits_float((uint32_t)bits);
        uint16_t instruction = (uint16_t)_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
        assert_int_equal(pld_float_to_fp16(value), instruction);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp16_values_are_right),
        cmocka_unit_test(fp16_round_trip),
        cmocka_unit_test(fp16_rounds_to_nearest_even),
        cmocka_unit_test(fp16_extremes),
        cmocka_unit_test(bf16_round_trip),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
#if defined(__F16C__)
        cmocka_unit_test(fp16_equals_the_instruction),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
