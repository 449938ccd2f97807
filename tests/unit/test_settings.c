/* The table of environment variables: names, defaults, numbers, and that nothing is cached. */
#include "base/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_table_is_complete(void **state)
{
    (void)state;
    for (int i = 0; i < SETTING_COUNT; i++) {
        const char *name = setting_name((setting)i);
        assert_int_equal(strncmp(name, "PYPTO_", 6), 0);
        assert_true(strlen(setting_help((setting)i)) > 10);
        assert_non_null(setting_text((setting)i));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(name, setting_name((setting)k));
    }
}

static void text_or_default(void **state)
{
    (void)state;
    unsetenv("PYPTO_TRANSPORT");
    assert_string_equal(setting_text(SETTING_TRANSPORT), "shm");
    setenv("PYPTO_TRANSPORT", "threads", 1);
    assert_string_equal(setting_text(SETTING_TRANSPORT), "threads");
    setenv("PYPTO_TRANSPORT", "", 1);
    assert_string_equal(setting_text(SETTING_TRANSPORT), "shm");
    unsetenv("PYPTO_TRANSPORT");
    unsetenv("PYPTO_CC");
    assert_string_equal(setting_text(SETTING_CC), "");
}

static void numbers(void **state)
{
    (void)state;
    setenv("PYPTO_SPIN", "500", 1);
    assert_int_equal(setting_int(SETTING_SPIN), 500);
    setenv("PYPTO_SPIN", "-7", 1);
    assert_int_equal(setting_int(SETTING_SPIN), -7);
    const char *no_numbers[] = {"", "many", "5x", "99999999999999999999"};
    for (int i = 0; i < 4; i++) {
        setenv("PYPTO_SPIN", no_numbers[i], 1);
        assert_int_equal(setting_int(SETTING_SPIN), 0);
    }
    unsetenv("PYPTO_SPIN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(text_or_default),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
