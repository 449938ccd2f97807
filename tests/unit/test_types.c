/* Names and sizes of element types; the version. */
#include <pypto/pypto.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void element_types(void **state)
{
    (void)state;
    assert_string_equal(pypto_dtype_name(PYPTO_FP32), "fp32");
    assert_string_equal(pypto_dtype_name(PYPTO_BF16), "bfloat16");
    assert_string_equal(pypto_dtype_name(PYPTO_BOOL), "bool");
    assert_string_equal(pypto_dtype_name(PYPTO_INDEX), "index");
    assert_int_equal(pypto_dtype_bytes(PYPTO_BOOL), 1);
    assert_int_equal(pypto_dtype_bytes(PYPTO_FP16), 2);
    assert_int_equal(pypto_dtype_bytes(PYPTO_FP32), 4);
    assert_int_equal(pypto_dtype_bytes(PYPTO_UINT64), 8);
    assert_int_equal(pypto_dtype_bytes(PYPTO_INDEX), 8);
    for (int i = 0; i < PYPTO_DTYPE_COUNT; i++)
        assert_true(pypto_dtype_bytes((pypto_dtype)i) > 0);
}

static void numbers_that_are_no_type(void **state)
{
    (void)state;
    assert_string_equal(pypto_dtype_name(PYPTO_DTYPE_COUNT), "?");
    assert_int_equal(pypto_dtype_bytes(PYPTO_DTYPE_COUNT), 0);
    int32_t wild = -1;
    pypto_dtype dtype;
    memcpy(&dtype, &wild, sizeof dtype);
    assert_string_equal(pypto_dtype_name(dtype), "?");
    assert_int_equal(pypto_dtype_bytes(dtype), 0);
}

static void version(void **state)
{
    (void)state;
    assert_string_equal(pypto_version(), PYPTO_VERSION);
#ifdef PYPTO_BUILD_VERSION
    assert_string_equal(PYPTO_VERSION, PYPTO_BUILD_VERSION);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(element_types),
        cmocka_unit_test(numbers_that_are_no_type),
        cmocka_unit_test(version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
