/* The map: lookup, replacement, order of iteration, growth. */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static arena *a;

static int make_arena(void **state)
{
    (void)state;
    a = arena_create();
    return a == NULL ? -1 : 0;
}

static int drop_arena(void **state)
{
    (void)state;
    arena_destroy(a);
    return 0;
}

static void absent_keys_are_null(void **state)
{
    (void)state;
    map m = map_make(a);
    int x = 1;
    assert_null(map_get(&m, "x"));
    map_set(&m, "x", &x);
    assert_null(map_get(&m, "y"));
    assert_null(map_get(&m, ""));
    assert_null(map_get(&m, "xx"));
    assert_ptr_equal(map_get(&m, "x"), &x);
}

static void keys_are_copied_and_values_replaced(void **state)
{
    (void)state;
    map m = map_make(a);
    int first = 1;
    int second = 2;
    char key[] = "acc";
    map_set(&m, key, &first);
    key[0] = 'X';
    assert_ptr_equal(map_get(&m, "acc"), &first);
    map_set(&m, "acc", &second);
    assert_ptr_equal(map_get(&m, "acc"), &second);
    assert_int_equal(m.count, 1);
    map_set(&m, "", &first);
    assert_ptr_equal(map_get(&m, ""), &first);
}

static void many_keys_keep_their_order(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static int values[COUNT];
    map m = map_make(a);
    char key[32];
    for (int i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "name_%d", i);
        map_set(&m, key, &values[i]);
    }
    assert_int_equal(m.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "name_%d", i);
        assert_ptr_equal(map_get(&m, key), &values[i]);
        assert_string_equal(m.entries[i].key, key);
        assert_ptr_equal(m.entries[i].value, &values[i]);
    }
    assert_null(map_get(&m, "name_20000"));
    assert_true(m.slot_count >= COUNT * 4 / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(absent_keys_are_null, make_arena, drop_arena),
        cmocka_unit_test_setup_teardown(keys_are_copied_and_values_replaced, make_arena,
                                        drop_arena),
        cmocka_unit_test_setup_teardown(many_keys_keep_their_order, make_arena, drop_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
