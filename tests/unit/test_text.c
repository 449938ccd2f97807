/* The text buffer: on the heap and on an arena, growth, quoting, failure, and locales. */
#include "base/alloc.h"
#include "base/format.h"
#include "base/text.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void pieces_join(void **state)
{
    (void)state;
    arena *a = arena_create();
    text texts[2] = {{.a = a}, {.a = NULL}};
    for (int i = 0; i < 2; i++) {
        text *t = &texts[i];
        text_add(t, "");
        assert_string_equal(t->bytes, "");
        text_add(t, "for ");
        text_add_n(t, "peerless", 4);
        text_printf(t, " in %d..%s", 0, "nranks");
        assert_string_equal(t->bytes, "for peer in 0..nranks");
        assert_int_equal(t->length, strlen(t->bytes));
        assert_false(t->failed);
        text_free(t);
        assert_null(t->bytes);
        assert_int_equal(t->length, 0);
    }
    arena_destroy(a);
}

/* Every length around the growth steps, so that the NUL never falls off. */
static void growth_keeps_the_content(void **state)
{
    (void)state;
    text t = {0};
    for (int i = 0; i < 3000; i++) {
        if (i % 2 == 0)
            text_add_n(&t, "x", 1);
        else
            text_printf(&t, "%c", 'y');
        assert_int_equal(t.bytes[t.length], '\0');
    }
    assert_int_equal(t.length, 3000);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(t.bytes[i], i % 2 == 0 ? 'x' : 'y');
    text_printf(&t, "%*d", 100000, 7);
    assert_int_equal(t.length, 103000);
    assert_int_equal(t.bytes[102999], '7');
    text_free(&t);
}

static void assert_quoted(const char *string, const char *expected)
{
    text t = {0};
    text_quoted(&t, string);
    assert_string_equal(t.bytes, expected);
    text_free(&t);
}

static void quoting(void **state)
{
    (void)state;
    assert_quoted("", "\"\"");
    assert_quoted("a b", "\"a b\"");
    assert_quoted("say \"x\\y\"", "\"say \\\"x\\\\y\\\"\"");
    assert_quoted("\n\t\r\b\f", "\"\\n\\t\\r\\b\\f\"");
    assert_quoted("\x01"
                  "7\x7f",
                  "\"\\0017\\177\"");
    assert_quoted("\xe7\xaa\x97", "\"\xe7\xaa\x97\"");
    assert_quoted("?/", "\"?/\"");
    assert_quoted("\?\?/", "\"?\\077/\""); /* no trigraph */
}

static void json_strings(void **state)
{
    (void)state;
    text t = {0};
    text_json(&t, "a \"b\" \\ \n\x01\xe7\xaa\x97\x7f");
    assert_string_equal(t.bytes, "\"a \\\"b\\\" \\\\ \\u000a\\u0001\xe7\xaa\x97\x7f\"");
    text_free(&t);
}

static void exhausted_heap_sets_failed(void **state)
{
    (void)state;
    text t = {0};
    alloc_fail_at(1);
    text_add(&t, "lost");
    assert_true(t.failed);
    text_add(&t, "lost too");
    text_printf(&t, "%d", 1);
    text_quoted(&t, "x");
    assert_int_equal(t.length, 0);
    text_free(&t);

    text grown = {0};
    text_add(&grown, "kept");
    alloc_fail_at(1);
    text_printf(&grown, "%*d", 1000, 1);
    assert_true(grown.failed);
    assert_string_equal(grown.bytes, "kept");
    text_free(&grown);
    alloc_fail_at(0);
}

static void exhausted_arena_jumps(void **state)
{
    (void)state;
    arena *a = arena_create();
    jmp_buf recovery;
    arena_set_recovery(a, &recovery);
    text t = {.a = a};
    if (setjmp(recovery) == 0) {
        alloc_fail_at(1);
        text_add(&t, "lost");
        fail_msg("text_add returned without memory");
    }
    arena_destroy(a);
}

/* Emitted C must say 0.5 in every locale. The test can only prove it where such a locale exists. */
static void numbers_do_not_follow_the_locale(void **state)
{
    (void)state;
    const char *names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8", "nl_NL.UTF-8"};
    bool found = false;
    for (int i = 0; i < 4 && !found; i++)
        found = setlocale(LC_ALL, names[i]) != NULL;
    char buffer[16];
    assert_int_equal(format_text(buffer, sizeof buffer, "%g", 0.5), 3);
    setlocale(LC_ALL, "C");
    assert_string_equal(buffer, "0.5");
    assert_int_equal(format_text(buffer, 3, "%s", "longer"), 6);
    assert_string_equal(buffer, "lo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_join),
        cmocka_unit_test(growth_keeps_the_content),
        cmocka_unit_test(quoting),
        cmocka_unit_test(json_strings),
        cmocka_unit_test(exhausted_heap_sets_failed),
        cmocka_unit_test(exhausted_arena_jumps),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
