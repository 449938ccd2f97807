/* The heap's door: zeroing, overflow, and the counter that makes the n-th allocation fail. */
#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void zeroed_memory_is_zero(void **state)
{
    (void)state;
    unsigned char *bytes = alloc_zeroed(100, 3);
    assert_non_null(bytes);
    for (int i = 0; i < 300; i++)
        assert_int_equal(bytes[i], 0);
    memset(bytes, 7, 300);
    bytes = alloc_resize(bytes, 200, 3);
    assert_non_null(bytes);
    for (int i = 0; i < 300; i++)
        assert_int_equal(bytes[i], 7);
    alloc_free(bytes);
    alloc_free(NULL);
}

static void nothing_is_a_valid_size(void **state)
{
    (void)state;
    void *none = alloc_zeroed(0, 8);
    assert_non_null(none);
    none = alloc_resize(none, 5, 0);
    assert_non_null(none);
    free(none); /* as the public interface promises */
}

static void impossible_sizes_fail(void **state)
{
    (void)state;
    assert_null(alloc_zeroed(-1, 8));
    assert_null(alloc_zeroed(8, -1));
    assert_null(alloc_zeroed(INT64_MAX / 2, 3));
    assert_null(alloc_zeroed(INT64_MAX, 1));
    int *kept = alloc_zeroed(1, sizeof(int));
    *kept = 42;
    assert_null(alloc_resize(kept, INT64_MAX, 2));
    assert_int_equal(*kept, 42);
    alloc_free(kept);
}

static void arrays_grow_by_doubling(void **state)
{
    (void)state;
    int *items = NULL;
    int64_t capacity = 0;
    int64_t moves = 0;
    for (int i = 0; i < 1000; i++) {
        const int64_t before = capacity;
        assert_true(alloc_grow(items, capacity, i + 1));
        assert_true(capacity > i);
        moves += capacity != before;
        items[i] = i;
    }
    assert_true(moves < 10);
    assert_true(alloc_grow(items, capacity, 5000)); /* further than to the double */
    assert_true(capacity >= 5000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    alloc_free(items);
}

static void an_array_that_cannot_grow_stays(void **state)
{
    (void)state;
    int *items = NULL;
    int64_t capacity = 0;
    assert_true(alloc_grow(items, capacity, 1));
    items[0] = 42;
    int *const kept = items;
    const int64_t before = capacity;
    alloc_fail_at(1);
    assert_false(alloc_grow(items, capacity, capacity + 1));
    assert_false(alloc_grow(items, capacity, INT64_MAX));
    assert_ptr_equal(items, kept);
    assert_int_equal(capacity, before);
    assert_int_equal(items[0], 42);
    alloc_free(items);
}

static void strings(void **state)
{
    (void)state;
    char *copy = alloc_strdup("window");
    assert_string_equal(copy, "window");
    alloc_free(copy);
    char *empty = alloc_strdup("");
    assert_string_equal(empty, "");
    alloc_free(empty);
    char *text = alloc_printf("%s %d", "rank", -3);
    assert_string_equal(text, "rank -3");
    alloc_free(text);
    char *wide = alloc_printf("%*d", 5000, 1);
    assert_int_equal(strlen(wide), 5000);
    alloc_free(wide);
}

static void only_the_chosen_allocation_fails(void **state)
{
    (void)state;
    alloc_fail_at(3);
    void *first = alloc_zeroed(1, 1);
    void *second = alloc_resize(NULL, 1, 1);
    void *third = alloc_strdup("fails");
    void *fourth = alloc_printf("%d", 4);
    assert_non_null(first);
    assert_non_null(second);
    assert_null(third);
    assert_non_null(fourth);
    alloc_fail_at(1);
    assert_null(alloc_resize(second, 100, 1));
    alloc_fail_at(1);
    alloc_fail_at(0);
    void *fifth = alloc_zeroed(1, 1);
    assert_non_null(fifth);
    alloc_free(first);
    alloc_free(second);
    alloc_free(fourth);
    alloc_free(fifth);
}

static void checked_sizes(void **state)
{
    (void)state;
    int64_t result = 17;
    assert_true(size_mul(3, 5, &result));
    assert_int_equal(result, 15);
    assert_false(size_mul(INT64_MAX, 2, &result));
    assert_true(size_add(INT64_MAX - 1, 1, &result));
    assert_true(result == INT64_MAX);
    assert_false(size_add(INT64_MAX, 1, &result));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_memory_is_zero),
        cmocka_unit_test(nothing_is_a_valid_size),
        cmocka_unit_test(impossible_sizes_fail),
        cmocka_unit_test(arrays_grow_by_doubling),
        cmocka_unit_test(an_array_that_cannot_grow_stays),
        cmocka_unit_test(strings),
        cmocka_unit_test(only_the_chosen_allocation_fails),
        cmocka_unit_test(checked_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
