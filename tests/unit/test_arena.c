/* The arena and the arrays on it: alignment, zeroing, growth, the jump when memory is exhausted. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static arena *a;
static jmp_buf recovery;

static int make_arena(void **state)
{
    (void)state;
    a = arena_create();
    return a == NULL ? -1 : 0;
}

static int drop_arena(void **state)
{
    (void)state;
    alloc_fail_at(0);
    arena_destroy(a);
    return 0;
}

static void memory_is_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    unsigned char *pieces[2000];
    for (int i = 0; i < 2000; i++) {
        int bytes = i % 97;
        pieces[i] = arena_alloc(a, bytes);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        for (int k = 0; k < bytes; k++)
            assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], i % 251, (size_t)bytes);
    }
    for (int i = 0; i < 2000; i++)
        for (int k = 0; k < i % 97; k++)
            assert_int_equal(pieces[i][k], i % 251);
    assert_ptr_not_equal(pieces[0], pieces[97]); /* both of 0 bytes */
}

static void large_pieces_leave_the_chunk_in_use(void **state)
{
    (void)state;
    char *before = arena_alloc(a, 16);
    char *large = arena_alloc(a, 3 * (int64_t)1024 * 1024);
    char *after = arena_alloc(a, 16);
    large[0] = large[3 * 1024 * 1024 - 1] = 1;
    assert_true(after - before < 256);
}

static void strings(void **state)
{
    (void)state;
    assert_string_equal(arena_strdup(a, "peer"), "peer");
    assert_string_equal(arena_strndup(a, "peer 3", 4), "peer");
    assert_string_equal(arena_strndup(a, "ab", 100), "ab");
    assert_string_equal(arena_strndup(a, "ab", 0), "");
    assert_string_equal(arena_printf(a, "[%d, %s]", 1, "256"), "[1, 256]");
    assert_int_equal(strlen(arena_printf(a, "%*d", 40000, 1)), 40000);
}

static void arrays_grow(void **state)
{
    (void)state;
    VEC(int64_t) v = {0};
    for (int64_t i = 0; i < 10000; i++)
        vec_push(a, &v, i * i);
    assert_int_equal(v.count, 10000);
    assert_true(v.capacity >= 10000 && v.capacity < 20001);
    for (int64_t i = 0; i < 10000; i++)
        assert_int_equal(v.items[i], i * i);
}

typedef enum request { ALLOC, ALLOC_NEGATIVE, ALLOC_MAX, ARRAY_OVERFLOW, PRINTF } request;

/* Whether the request jumps to the recovery point. */
static bool jumps(request what)
{
    arena_set_recovery(a, &recovery);
    if (setjmp(recovery) != 0)
        return true;
    switch (what) {
    case ALLOC: arena_alloc(a, 8); break;
    case ALLOC_NEGATIVE: arena_alloc(a, -1); break;
    case ALLOC_MAX: arena_alloc(a, INT64_MAX); break;
    case ARRAY_OVERFLOW: arena_alloc_array(a, INT64_MAX / 4, 8); break;
    case PRINTF: arena_printf(a, "%d", 5); break;
    }
    return false;
}

static void exhausted_memory_jumps(void **state)
{
    (void)state;
    alloc_fail_at(1); /* the arena has no chunk yet */
    assert_true(jumps(ALLOC));
    assert_false(jumps(ALLOC));
    assert_true(jumps(ALLOC_NEGATIVE));
    assert_true(jumps(ALLOC_MAX));
    assert_true(jumps(ARRAY_OVERFLOW));
    assert_false(jumps(PRINTF));
}

typedef struct guarded {
    int begun, ended;
    bool inner; /* what the guard inside of it has answered */
} guarded;

static void too_much(void *context)
{
    guarded *g = context;
    g->begun++;
    arena_alloc(a, INT64_MAX);
    g->ended++;
}

static void too_much_inside(void *context)
{
    guarded *g = context;
    g->inner = arena_guard(a, too_much, g);
    arena_alloc(a, 8);
    g->ended++;
    arena_alloc(a, INT64_MAX); /* leaves these steps, not those that are over */
    g->ended++;
}

static void guards_end_steps_that_find_no_memory(void **state)
{
    (void)state;
    guarded g = {.inner = true};
    assert_false(arena_guard(a, too_much_inside, &g));
    assert_false(g.inner);
    assert_int_equal(g.begun, 1);
    assert_int_equal(g.ended, 1);
}

static pypto_status take_bytes(arena *own, void *context)
{
    const int64_t *bytes = context;
    arena_alloc(own, *bytes);
    return diag_status(DIAG_BAD_PLATFORM, NULL, "the step's own");
}

static void runs_fail_as_their_step_does(void **state)
{
    (void)state;
    int64_t few = 8, many = INT64_MAX;
    pypto_status status = arena_run(take_bytes, &few);
    assert_string_equal(status.diagnostics->message, "the step's own");
    pypto_status_clear(&status);
    status = arena_run(take_bytes, &many);
    assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
    pypto_status_clear(&status);
    alloc_fail_at(1); /* no arena */
    status = arena_run(take_bytes, &few);
    assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
    pypto_status_clear(&status);
    alloc_fail_at(0);
}

static void creation_can_fail(void **state)
{
    (void)state;
    alloc_fail_at(1);
    assert_null(arena_create());
    arena_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_is_aligned_zeroed_and_apart, make_arena, drop_arena),
        cmocka_unit_test_setup_teardown(large_pieces_leave_the_chunk_in_use, make_arena,
                                        drop_arena),
        cmocka_unit_test_setup_teardown(strings, make_arena, drop_arena),
        cmocka_unit_test_setup_teardown(arrays_grow, make_arena, drop_arena),
        cmocka_unit_test_setup_teardown(exhausted_memory_jumps, make_arena, drop_arena),
        cmocka_unit_test_setup_teardown(guards_end_steps_that_find_no_memory, make_arena,
                                        drop_arena),
        cmocka_unit_test(runs_fail_as_their_step_does),
        cmocka_unit_test(creation_can_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
