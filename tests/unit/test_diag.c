/* Diagnostics: the table, building and joining statuses, what they look like, exhausted memory. */
#include "base/alloc.h"
#include "base/diag.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_text(const pypto_status *status, const char *expected)
{
    char *text = pypto_status_text(status);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

/* Renders one diagnostic with a source line. */
static void assert_underlined(const char *source, pypto_span span, const char *expected)
{
    pypto_status status = STATUS_OK;
    diag_add(&status, DIAG_SHAPE_MISMATCH, span, NULL, "m");
    diag_source(&status, source);
    char *text = pypto_status_text(&status);
    assert_non_null(text);
    const char *lines = strchr(text, '\n');
    assert_string_equal(lines != NULL ? lines + 1 : "", expected);
    free(text);
    pypto_status_clear(&status);
}

static void the_table_is_sound(void **state)
{
    (void)state;
    for (int i = 0; i < DIAG_COUNT; i++) {
        const diag_info *info = diag_lookup((diag_code)i);
        assert_int_equal(strncmp(info->code, "PYPTO-", 6), 0);
        assert_int_equal(strlen(info->code), 10);
        assert_true(info->kind != PYPTO_ERROR_NONE);
        assert_true(strlen(info->title) > 0);
        assert_true(strlen(pypto_error_kind_name(info->kind)) > 0);
        const diag_explanation *e = diag_explain((diag_code)i);
        if (e->meaning == NULL || e->fix == NULL || e->example == NULL)
            fail_msg("%s has no row in src/base/explanations.def", info->code);
        assert_true(strlen(e->meaning) > 0 && strlen(e->fix) > 0);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(info->code, diag_lookup((diag_code)k)->code);
    }
    assert_ptr_equal(diag_lookup(DIAG_COUNT), diag_lookup(DIAG_INTERNAL));
    assert_string_equal(pypto_error_kind_name(PYPTO_ERROR_NONE), "");
    assert_string_equal(pypto_error_kind_name(PYPTO_ERROR_INTERRUPTED), "KeyboardInterrupt");
    assert_string_equal(pypto_error_kind_name((pypto_error_kind)99), "");
}

/* The messages of a status, in order. */
static void assert_messages(const pypto_status *status, const char *expected)
{
    char all[256] = "";
    for (const pypto_diagnostic *d = status->diagnostics; d != NULL; d = d->next) {
        strcat(all, d->message);
        strcat(all, " ");
    }
    assert_string_equal(all, expected);
}

static void errors_are_sorted_by_importance_and_place(void **state)
{
    (void)state;
    static const struct {
        diag_code code;
        const char *file;
        int line;
        int column;
        const char *message;
    } rows[] = {
        {DIAG_BAD_DEVICE_SET, "a", 1, 0, "whole"},   {DIAG_SHAPE_MISMATCH, "a", 2, 4, "type2"},
        {DIAG_SHAPE_MISMATCH, "a", 2, 1, "type1"},   {DIAG_UNDEFINED_NAME, "b", 1, 0, "name2"},
        {DIAG_BAD_ANNOTATION, "a", 9, 0, "name1"},   {DIAG_BAD_LOOP, "a", 10, 0, "form"},
        {DIAG_UNDEFINED_NAME, "b", 1, 0, "name2"},   {DIAG_UNDEFINED_NAME, NULL, 0, 0, "name3"},
        {DIAG_SHAPE_MISMATCH, "a", 2, 4, "another"}, {DIAG_UNDEFINED_NAME, "b", 1, 0, "name2"},
    };
    pypto_status status = STATUS_OK;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        diag_add(&status, rows[i].code,
                 (pypto_span){rows[i].file, rows[i].line, rows[i].column, 0, 0}, NULL, "%s",
                 rows[i].message);
    assert_int_equal(status.kind, PYPTO_ERROR_VALUE);
    diag_sort(&status);
    assert_messages(&status, "name1 name2 name3 form type1 type2 another whole ");
    assert_int_equal(status.kind, PYPTO_ERROR_PARSER_TYPE);
    diag_sort(&status);
    assert_messages(&status, "name1 name2 name3 form type1 type2 another whole ");
    pypto_status_clear(&status);
    diag_sort(&status);
    assert_true(status_ok(status));
}

static void success_owns_nothing(void **state)
{
    (void)state;
    pypto_status status = PYPTO_OK_INIT;
    assert_true(status_ok(status));
    assert_text(&status, "");
    diag_note(&status, "ignored");
    diag_source(&status, "ignored");
    pypto_status_clear(&status);
    assert_true(status_ok(status));
}

static void a_status_owns_copies(void **state)
{
    (void)state;
    char file[] = "script.py";
    char hint[] = "do this";
    pypto_status status = STATUS_OK;
    diag_add(&status, DIAG_NO_SOURCE, (pypto_span){file, 3, 0, 3, 1}, hint, "%s %d", "rank", 7);
    file[0] = hint[0] = 'X';
    const pypto_diagnostic *d = status.diagnostics;
    assert_int_equal(status.kind, PYPTO_ERROR_PARSER_SYNTAX);
    assert_int_equal(d->kind, PYPTO_ERROR_PARSER_SYNTAX);
    assert_string_equal(d->code, "PYPTO-S101");
    assert_string_equal(d->span.file, "script.py");
    assert_string_equal(d->hint, "do this");
    assert_string_equal(d->message, "rank 7");
    assert_null(d->note);
    assert_null(d->source);
    assert_null(d->next);
    pypto_status_clear(&status);
    assert_null(status.diagnostics);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
}

static void everything_is_shown(void **state)
{
    (void)state;
    pypto_status status = STATUS_OK;
    diag_add(&status, DIAG_SHAPE_MISMATCH, (pypto_span){"script.py", 12, 8, 12, 20},
             "load both with the same extents", "the shapes %s and %s do not agree", "[1, 256]",
             "[1, 128]");
    diag_source(&status, "    x = pl.add(a, b)\n");
    diag_note(&status, "a comes from line %d", 10);
    diag_note(&status, "rank 0 waits\n    for signal[1, 0] >= 1");
    diag_add(&status, DIAG_UNDEFINED_NAME, (pypto_span){"script.py", 14, 4, 14, 7}, NULL,
             "acc is not defined");
    assert_int_equal(status.kind, PYPTO_ERROR_PARSER_TYPE);
    assert_text(&status,
                "script.py:12:9: ParserTypeError [PYPTO-T203]: the shapes [1, 256] and [1, 128] do "
                "not agree\n"
                "        x = pl.add(a, b)\n"
                "            ^~~~~~~~~~~~\n"
                "note: a comes from line 10\n"
                "rank 0 waits\n"
                "    for signal[1, 0] >= 1\n"
                "hint: load both with the same extents\n"
                "\n"
                "script.py:14:5: UndefinedVariableError [PYPTO-S106]: acc is not defined");
    pypto_status_clear(&status);
}

static void without_a_place(void **state)
{
    (void)state;
    pypto_status status = diag_status(DIAG_DEADLOCK, "send it", "deadlock of %d ranks", 2);
    diag_note(&status, "rank 0 waits");
    diag_source(&status, "no line is known, so this is not shown");
    assert_text(&status, "deadlock of 2 ranks\nnote: rank 0 waits\nhint: send it");
    pypto_status_clear(&status);
    status = diag_status(DIAG_DEADLOCK, "send it", "deadlock of %d ranks", 2);
    diag_note(&status, "  rank 0 waits");
    diag_note(&status, "  rank 1 waits");
    assert_text(&status,
                "deadlock of 2 ranks\nnote:\n  rank 0 waits\n  rank 1 waits\nhint: send it");
    pypto_status_clear(&status);

    status = STATUS_OK;
    diag_add(&status, DIAG_NO_SOURCE, (pypto_span){"lost.py", 0, 0, 0, 0}, NULL, "gone");
    assert_text(&status, "lost.py: ParserSyntaxError [PYPTO-S101]: gone");
    pypto_status_clear(&status);
}

static void underlining(void **state)
{
    (void)state;
    /* One character, an empty span, a span that knows no end. */
    assert_underlined("x = y", (pypto_span){"f", 1, 4, 1, 5}, "    x = y\n        ^");
    assert_underlined("x = y", (pypto_span){"f", 1, 4, 1, 4}, "    x = y\n        ^");
    assert_underlined("x = y", (pypto_span){"f", 1, 2, 0, 0}, "    x = y\n      ^");
    /* A place that is only a line, as run-time errors have it: the whole statement. */
    assert_underlined("    f(a)  ", (pypto_span){"f", 1, 0, 0, 0}, "        f(a)\n        ^~~~");
    /* Over several lines: to the end of this one, without the blanks behind it. */
    assert_underlined("f(a,  \r\n", (pypto_span){"f", 1, 0, 2, 3}, "    f(a,\n    ^~~~");
    /* Nonsense stays inside the line. */
    assert_underlined("ab", (pypto_span){"f", 1, 7, 1, 9}, "    ab\n      ^");
    assert_underlined("ab", (pypto_span){"f", 1, -3, 1, 900}, "    ab\n    ^~");
    assert_underlined("", (pypto_span){"f", 1, 0, 1, 5}, "    \n    ^");
}

static void underlining_in_terminal_cells(void **state)
{
    (void)state;
    /* Tabs become blanks up to the next multiple of eight, in front of the span and inside it. */
    assert_underlined("\tx = 1", (pypto_span){"f", 1, 1, 1, 2}, "            x = 1\n            ^");
    assert_underlined("ab\tcd", (pypto_span){"f", 1, 0, 1, 5}, "    ab      cd\n    ^~~~~~~~~~");
    /* Columns are bytes: an accent has two and one cell, a Chinese character three and two. */
    assert_underlined("\xc3\xa9 = y", (pypto_span){"f", 1, 5, 1, 6}, "    \xc3\xa9 = y\n        ^");
    assert_underlined("\xe7\xaa\x97\xe5\x8f\xa3 = y", (pypto_span){"f", 1, 0, 1, 6},
                      "    \xe7\xaa\x97\xe5\x8f\xa3 = y\n    ^~~~");
    assert_underlined("\xe7\xaa\x97 = y", (pypto_span){"f", 1, 6, 1, 7},
                      "    \xe7\xaa\x97 = y\n         ^");
    /* A combining accent takes no cell; an emoji two. */
    assert_underlined("e\xcc\x81 = y", (pypto_span){"f", 1, 6, 1, 7},
                      "    e\xcc\x81 = y\n        ^");
    assert_underlined("\xf0\x9f\x98\x80+y", (pypto_span){"f", 1, 5, 1, 6},
                      "    \xf0\x9f\x98\x80+y\n       ^");
    /* What is not UTF-8 or not printable still takes its place. */
    assert_underlined("\xff\x80\x01\xe7\xaa", (pypto_span){"f", 1, 3, 1, 5},
                      "    ?? ??\n       ^~");
}

static void joining(void **state)
{
    (void)state;
    pypto_status all = STATUS_OK;
    pypto_status none = STATUS_OK;
    diag_append(&all, &none);
    assert_true(status_ok(all));
    pypto_status first = diag_status(DIAG_BAD_INDEX, NULL, "first");
    diag_append(&all, &first);
    assert_true(status_ok(first));
    pypto_status rest = diag_status(DIAG_BAD_LOOP, NULL, "second");
    diag_add(&rest, DIAG_BAD_LOOP, SPAN_NONE, NULL, "third");
    diag_append(&all, &rest);
    assert_true(status_ok(rest));
    diag_append(&all, &none);
    assert_int_equal(all.kind, PYPTO_ERROR_PARSER_TYPE);
    assert_text(&all, "first\n\nsecond\n\nthird");
    pypto_status_clear(&all);
}

static void system_errors(void **state)
{
    (void)state;
    pypto_status status = diag_system(ENOENT, NULL, "open %s", "x.so");
    assert_int_equal(status.kind, PYPTO_ERROR_SYSTEM);
    assert_text(&status, "cannot open x.so: No such file or directory");
    assert_null(status.diagnostics->hint);
    pypto_status_clear(&status);
    status = diag_system(EMFILE, NULL, "open x.so");
    assert_non_null(strstr(status.diagnostics->hint, "ulimit -n"));
    pypto_status_clear(&status);
    status = diag_system(ENOSPC, "use smaller windows", "reserve");
    assert_string_equal(status.diagnostics->hint, "use smaller windows");
    pypto_status_clear(&status);
}

/* Whichever allocation fails, the result is the constant diagnostic, and nothing leaks. */
static void exhausted_memory_is_reported_without_memory(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 5; n++) {
        pypto_status status = STATUS_OK;
        diag_add(&status, DIAG_BAD_INDEX, SPAN_NONE, NULL, "earlier error");
        alloc_fail_at(n);
        diag_add(&status, DIAG_BAD_INDEX, (pypto_span){"f.py", 1, 0, 1, 1}, "hint", "later");
        alloc_fail_at(0);
        if (n == 5) { /* object, file, hint, message: there is no fifth */
            assert_int_equal(status.kind, PYPTO_ERROR_PARSER_TYPE);
        } else {
            assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
            assert_ptr_equal(status.diagnostics, diag_no_memory().diagnostics);
        }
        pypto_status_clear(&status);
        assert_true(status_ok(status));
    }
    alloc_fail_at(1);
    pypto_status status = diag_system(EIO, NULL, "read");
    assert_ptr_equal(status.diagnostics, diag_no_memory().diagnostics);
    pypto_status_clear(&status);
}

static void the_constant_diagnostic_is_never_changed(void **state)
{
    (void)state;
    pypto_status status = diag_no_memory();
    assert_string_equal(status.diagnostics->code, diag_lookup(DIAG_OUT_OF_MEMORY)->code);
    assert_int_equal(status.kind, diag_lookup(DIAG_OUT_OF_MEMORY)->kind);
    diag_note(&status, "note");
    diag_source(&status, "source");
    diag_add(&status, DIAG_BAD_INDEX, SPAN_NONE, NULL, "more");
    pypto_status other = diag_status(DIAG_BAD_INDEX, NULL, "other");
    diag_append(&status, &other);
    assert_true(status_ok(other));
    assert_null(status.diagnostics->note);
    assert_null(status.diagnostics->source);
    assert_null(status.diagnostics->next);

    other = diag_status(DIAG_BAD_INDEX, NULL, "other");
    diag_append(&other, &status);
    assert_true(status_ok(status));
    assert_ptr_equal(other.diagnostics, diag_no_memory().diagnostics);
    pypto_status_clear(&other);
}

static void lost_facts_do_not_lose_the_error(void **state)
{
    (void)state;
    pypto_status status = diag_status(DIAG_BAD_INDEX, NULL, "error");
    diag_note(&status, "kept");
    for (int64_t n = 1; n <= 2; n++) {
        alloc_fail_at(n);
        diag_note(&status, "lost");
        alloc_fail_at(0);
        assert_string_equal(status.diagnostics->note, "kept");
    }
    alloc_fail_at(1);
    diag_source(&status, "lost");
    assert_null(status.diagnostics->source);
    alloc_fail_at(1);
    assert_null(pypto_status_text(&status));
    assert_text(&status, "error\nnote: kept");
    pypto_status_clear(&status);
}

int main(void)
{
    unsetenv("PYPTO_CODES_LOG"); /* what is made here says nothing about who makes it elsewhere */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(errors_are_sorted_by_importance_and_place),
        cmocka_unit_test(success_owns_nothing),
        cmocka_unit_test(a_status_owns_copies),
        cmocka_unit_test(everything_is_shown),
        cmocka_unit_test(without_a_place),
        cmocka_unit_test(underlining),
        cmocka_unit_test(underlining_in_terminal_cells),
        cmocka_unit_test(joining),
        cmocka_unit_test(system_errors),
        cmocka_unit_test(exhausted_memory_is_reported_without_memory),
        cmocka_unit_test(the_constant_diagnostic_is_never_changed),
        cmocka_unit_test(lost_facts_do_not_lose_the_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
