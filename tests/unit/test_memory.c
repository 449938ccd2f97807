/* runtime/memory.c: blocks are zeroed, aligned, used again, and what an idle rank keeps is bounded. */
#include "runtime/memory.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "transport/segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static char *take(memory *m, memory *spare, int64_t bytes)
{
    void *block = NULL;
    pypto_status status = memory_take(m, spare, bytes, &block);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    assert_int_equal((uintptr_t)block % CACHE_LINE, 0);
    bool zero = true;
    for (int64_t i = 0; i < bytes; ++i)
        zero = zero && ((char *)block)[i] == 0;
    assert_true(zero);
    memset(block, 0x5a, (size_t)bytes);
    return block;
}

static void test_blocks(void **state)
{
    (void)state;
    memory m = {0};
    memory spare = {0};
    char *first = take(&m, &spare, 100);
    char *second = take(&m, &spare, 1);
    assert_true(second >= first + 100);
    char *large = take(&m, &spare, 5 << 20);
    memory_give(&m, large, 5 << 20);
    assert_ptr_equal(take(&m, &spare, 5 << 20), large);
    memory_reset(&m, &spare);
    char *again = take(&m, &spare, 5 << 20);
    assert_ptr_equal(again, large);
    assert_ptr_equal(take(&m, &spare, 100), first);
    memory_destroy(&m);
    memory_destroy(&spare);
}

/* What has been given back is cleared, joined with its neighbours, and taken again. */
static void test_given_blocks(void **state)
{
    (void)state;
    memory m = {0};
    memory spare = {0};
    char *block[4];
    for (int i = 0; i < 4; ++i)
        block[i] = take(&m, &spare, 1000);
    memory_give(&m, block[1], 1000);
    memory_give(&m, block[2], 1000);
    assert_ptr_equal(take(&m, &spare, 2000), block[1]);
    memory_give(&m, block[0], 1000);
    assert_ptr_equal(take(&m, &spare, 64), block[0]);
    const int64_t held = spare.held;
    for (int64_t i = 4; i < 16; ++i) /* each is too large for the chunks so far */
        memory_give(&m, take(&m, &spare, i << 18), i << 18);
    assert_true(memory_reuse(&m, &spare, 15 << 18) != NULL);
    assert_null(memory_reuse(&m, &spare, 64 << 18));
    assert_true(spare.held > held);
    memory_reset(&m, &spare);
    assert_null(m.chunks);
    memory_destroy(&spare);
}

/* Chunks that nothing lies in are given back to the system before there is an error. */
static void test_shortage_empties(void **state)
{
    (void)state;
    memory m = {0};
    memory spare = {0};
    char *kept = take(&m, &spare, 100);
    memory_give(&m, take(&m, &spare, 8 << 20), 8 << 20);
    const int64_t held = spare.held;
    void *block;
    pypto_status status = memory_take(&m, &spare, INT64_MAX / 2, &block);
    assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
    pypto_status_clear(&status);
    assert_true(spare.held <= held - (8 << 20));
    assert_int_equal(kept[99], 0x5a);
    memory_reset(&m, &spare);
    memory_destroy(&spare);
}

static void test_much_does_not_stay(void **state)
{
    (void)state;
    memory m = {0};
    memory spare = {0};
    for (int i = 0; i < 5; ++i)
        (void)take(&m, &spare, 30 << 20);
    int64_t blocks = 0;
    memory_reset(&m, &spare);
    alloc_fail_at(1); /* what has stayed needs no allocation */
    for (pypto_status status = STATUS_OK; status.kind == PYPTO_ERROR_NONE; ++blocks) {
        void *block;
        status = memory_take(&m, &spare, 30 << 20, &block);
        if (status.kind != PYPTO_ERROR_NONE) {
            pypto_status_clear(&status);
            break;
        }
    }
    assert_int_equal(blocks, 2);
    memory_destroy(&m);
    memory_destroy(&spare);
}

static void test_shortage(void **state)
{
    (void)state;
    memory m = {0};
    memory spare = {0};
    void *block;
    pypto_status status = memory_take(&m, &spare, INT64_MAX, &block);
    assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
    pypto_status_clear(&status);
    status = memory_take(&m, &spare, INT64_MAX / 2, &block);
    assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
    assert_non_null(strstr(status.diagnostics->message, "are available"));
    pypto_status_clear(&status);
    memory_destroy(&m);
    memory_destroy(&spare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),           cmocka_unit_test(test_given_blocks),
        cmocka_unit_test(test_shortage_empties), cmocka_unit_test(test_much_does_not_stay),
        cmocka_unit_test(test_shortage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
