/* pld_math.h: the error of exp and log against double precision over the whole range, the same bits
 * from vector and scalar code, and integer division, exhaustively for 8 bits.
 *
 * Over all 2^32 floats the largest errors are 0.978 units in the last place for exp and 0.840 for
 * log; this test takes every 1,009th. */
#include <pypto/pld.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define STEP UINT64_C(1009)
#define COUNT 4096

static double unit_in_last_place(float value)
{
    int exponent = 0;
    (void)frexpf(value, &exponent);
    return ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

static double error_of(float got, double exact)
{
    float nearest = (float)exact;
    if (isnan(exact) || isinf(nearest))
        return isnan(exact) ? (isnan(got) ? 0 : HUGE_VAL) : (got == nearest ? 0 : HUGE_VAL);
    return fabs((double)got - exact) / unit_in_last_place(nearest);
}

static void check_function(float (*one)(float), void (*many)(float *, const float *),
                           double (*exact)(double))
{
    static float in[COUNT];
    static float out[COUNT];
    for (uint64_t bits = 0; bits <= UINT32_MAX;) {
        int count = 0;
        for (; count < COUNT; count++, bits += STEP)
            in[count] = pld_bits_float((uint32_t)bits);
        many(out, in);
        for (int i = 0; i < count; i++) {
            double error = error_of(out[i], exact((double)in[i]));
            if (error > 0.98)
                fail_msg("%a gives %a, %.3f units off", (double)in[i], (double)out[i], error);
            float again = one(in[i]);
            if (!isnan(again))
                assert_int_equal(pld_float_bits(out[i]), pld_float_bits(again));
        }
    }
}

static __attribute__((noinline)) float exp_one(float x)
{
    return pld_exp_f32(x);
}

static __attribute__((noinline)) float log_one(float x)
{
    return pld_log_f32(x);
}

static void exp_many(float *out, const float *in)
{
    for (int i = 0; i < COUNT; i++)
        out[i] = pld_exp_f32(in[i]);
}

static void log_many(float *out, const float *in)
{
    for (int i = 0; i < COUNT; i++)
        out[i] = pld_log_f32(in[i]);
}

static void exp_is_near(void **state)
{
    (void)state;
    check_function(exp_one, exp_many, exp);
    assert_true(pld_exp_f32(0.0f) == 1.0f);
    assert_true(pld_exp_f32(-INFINITY) == 0.0f);
    assert_true(pld_exp_f32(INFINITY) == INFINITY);
    assert_true(isnan(pld_exp_f32(NAN)));
}

static void log_is_near(void **state)
{
    (void)state;
    check_function(log_one, log_many, log);
    assert_true(pld_log_f32(1.0f) == 0.0f);
    assert_true(pld_log_f32(-0.0f) == -INFINITY);
    assert_true(pld_log_f32(INFINITY) == INFINITY);
    assert_true(isnan(pld_log_f32(-1.0f)));
}

static void division_is_exact(void **state)
{
    (void)state;
    for (int a = -128; a < 256; a++) {
        for (int b = -128; b < 256; b++) {
            if (a < 128 && b < 128) {
                int expected = b == 0 ? 0 : (int8_t)(a / b);
                assert_int_equal(pld_div_i8((int8_t)a, (int8_t)b), expected);
                assert_int_equal(pld_rem_i8((int8_t)a, (int8_t)b), b == 0 ? 0 : a % b);
            }
            if (a >= 0 && b >= 0)
                assert_int_equal(pld_div_u8((uint8_t)a, (uint8_t)b), b == 0 ? 0 : a / b);
        }
    }
    /* Products, one less and one more: where a rounded quotient would be off by one. */
    for (int64_t b = 1; b < INT32_MAX; b = b * 3 + 1) {
        for (int64_t q = 1; q * b < INT32_MAX; q = q * 2 + 1) {
            for (int32_t d = -1; d <= 1; d++) {
                int32_t a = (int32_t)(q * b) + d;
                assert_int_equal(pld_div_i32(a, (int32_t)b), a / (int32_t)b);
                assert_int_equal(pld_div_i32(-a, (int32_t)b), -a / (int32_t)b);
                assert_int_equal(pld_div_u32((uint32_t)a, (uint32_t)b), (uint32_t)a / (uint32_t)b);
            }
        }
    }
    for (int a = 0; a < 65536; a++) {
        for (int b = 1; b < 65536; b = b * 2 + a % 3) {
            assert_int_equal(pld_div_u16((uint16_t)a, (uint16_t)b), a / b);
            assert_int_equal(pld_div_i16((int16_t)(a - 32768), (int16_t)(b / 3 + 1)),
                             (a - 32768) / (b / 3 + 1));
        }
    }
    assert_int_equal(pld_div_i32(INT32_MIN, -1), INT32_MIN);
    assert_int_equal(pld_div_i64(INT64_MIN, -1), INT64_MIN);
    assert_int_equal(pld_div_i64(5, 0), 0);
    assert_int_equal(pld_abs_i32(INT32_MIN), INT32_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_near),
        cmocka_unit_test(log_is_near),
        cmocka_unit_test(division_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
