/* The table of environment variables: names, defaults, what each may be, and that nothing is cached. */
#include "base/settings.h"

#include "base/diag.h"

#include <pypto/types.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

static void is_refused(setting s, const char *value)
{
    setenv(setting_name(s), value, 1);
    pypto_status status = setting_check(s);
    if (status_ok(status))
        fail_msg("%s takes '%s'", setting_name(s), value);
    assert_int_equal(status.kind, PYPTO_ERROR_VALUE);
    const char *message = status.diagnostics->message;
    assert_non_null(strstr(message, setting_name(s)));
    assert_non_null(strstr(message, value));
    pypto_status_clear(&status);
    /* Who looks all the same gets the default. */
    const int64_t number = setting_int(s);
    unsetenv(setting_name(s));
    assert_int_equal(number, setting_int(s));
    status = settings_check();
    assert_true(status_ok(status));
}

static void is_taken(setting s, const char *value, int64_t number)
{
    setenv(setting_name(s), value, 1);
    pypto_status status = setting_check(s);
    if (!status_ok(status))
        fail_msg("%s", status.diagnostics->message);
    assert_int_equal(setting_int(s), number);
    unsetenv(setting_name(s));
}

/* An alternative of the table, as it is written there: it is valid, and told to who gives something else. */
static void check_alternative(setting s, const char *alternative, int64_t place)
{
    char value[64];
    long long low, high;
    if (sscanf(alternative, "%lld..%lld", &low, &high) == 2) {
        for (int beyond = 0; beyond < 2; ++beyond) {
            (void)snprintf(value, sizeof value, "%lld", beyond ? high : low);
            is_taken(s, value, beyond ? high : low);
            (void)snprintf(value, sizeof value, "%lld", beyond ? high + 1 : low - 1);
            is_refused(s, value);
        }
        return;
    }
    const char *sign = strchr(alternative, '=');
    const size_t length = sign != NULL ? (size_t)(sign - alternative) : strlen(alternative);
    (void)snprintf(value, sizeof value, " %.*s ", (int)length, alternative);
    is_taken(s, value, sign != NULL ? atoll(sign + 1) : place);
    value[1] ^= 'a' ^ 'A';
    is_taken(s, value, sign != NULL ? atoll(sign + 1) : place);
    value[length + 1] = '\0';
    setenv(setting_name(s), "nothing", 1);
    pypto_status status = setting_check(s);
    value[1] ^= 'a' ^ 'A';
    assert_non_null(strstr(status.diagnostics->message, value + 1));
    pypto_status_clear(&status);
    unsetenv(setting_name(s));
}

/* Every row: what the table says is valid, and nothing else; the default is. */
static void valid_values(void **state)
{
    (void)state;
    for (int i = 0; i < SETTING_COUNT; ++i) {
        const setting s = (setting)i;
        unsetenv(setting_name(s));
        assert_false(setting_is_set(s));
        char valid[256], *rest = valid;
        (void)snprintf(valid, sizeof valid, "%s", setting_valid(s));
        if (valid[0] == '\0') {
            is_taken(s, "any thing", 0);
            continue;
        }
        if (setting_text(s)[0] != '\0')
            is_taken(s, setting_text(s), setting_int(s));
        int64_t place = 0;
        for (const char *at; (at = strsep(&rest, "|,")) != NULL; ++place)
            check_alternative(s, at, place);
        static const char *const bad[] = {"maybe", "5x", "0x10", "99999999999999999999",
                                          "-",     "1 1"};
        for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k)
            is_refused(s, bad[k]);
        is_taken(s, "", setting_int(s));
    }
}

static void ranks(void **state)
{
    (void)state;
    char most[32];
    (void)snprintf(most, sizeof most, "0..%d", PYPTO_MAX_RANKS - 1);
    assert_string_equal(setting_valid(SETTING_GDB), most);
}

static void lists(void **state)
{
    (void)state;
    setenv("PYPTO_DUMP", "c, IR", 1);
    pypto_status status = setting_check(SETTING_DUMP);
    assert_true(status_ok(status));
    assert_true(setting_lists(SETTING_DUMP, "ir") && setting_lists(SETTING_DUMP, "c"));
    setenv("PYPTO_DUMP", "c", 1);
    assert_false(setting_lists(SETTING_DUMP, "ir"));
    is_refused(SETTING_DUMP, "ir,,c");
    is_refused(SETTING_DUMP, "ir;c");
}

/* All that are wrong are told together; logs only warn. */
static void all_at_once(void **state)
{
    (void)state;
    setenv("PYPTO_SPIN", "fast", 1);
    setenv("PYPTO_TRANSPORT", "pigeon", 1);
    setenv("PYPTO_LOG_LEVEL", "loud", 1);
    pypto_status status = settings_check();
    assert_int_equal(status.kind, PYPTO_ERROR_VALUE);
    assert_string_equal(status.diagnostics->message,
                        "PYPTO_TRANSPORT must be shm or threads, not 'pigeon'");
    assert_non_null(strstr(status.diagnostics->next->message, "PYPTO_SPIN"));
    assert_null(status.diagnostics->next->next);
    pypto_status_clear(&status);
    unsetenv("PYPTO_SPIN");
    unsetenv("PYPTO_TRANSPORT");
    unsetenv("PYPTO_LOG_LEVEL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(text_or_default),
        cmocka_unit_test(valid_values),
        cmocka_unit_test(ranks),
        cmocka_unit_test(lists),
        cmocka_unit_test(all_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
