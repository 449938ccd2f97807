/* Which ranks are given up when a call has failed: those that use their own time for something else, and none
 * that the machine keeps from running, or that the host could not look at. */
#include "host/grace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS INT64_C(1000000)
#define HOUR (3600 * 1000 * MS)

static void one_that_waits_for_a_cpu_has_all_the_time(void **state)
{
    (void)state;
    grace g;
    grace_begin(&g, 5 * HOUR, 0);
    for (int64_t now = 0; now < HOUR; now += 50 * MS)
        assert_in_range(grace_left(&g, 5 * HOUR, false, now), 1, GRACE_LOOK_MS * MS);
}

static void one_that_computes_has_its_time_of_the_cpu(void **state)
{
    (void)state;
    grace g;
    grace_begin(&g, 5 * HOUR, 0);
    assert_int_equal(grace_left(&g, 5 * HOUR + 20 * MS, false, HOUR), 30 * MS);
    assert_int_equal(grace_left(&g, 5 * HOUR + 49 * MS, false, 2 * HOUR), 1 * MS);
    assert_true(grace_left(&g, 5 * HOUR + GRACE_CPU_MS * MS, false, 3 * HOUR) <= 0);
}

static void one_that_sleeps_has_that_long(void **state)
{
    (void)state;
    grace g;
    int64_t now = 0;
    grace_begin(&g, 0, now);
    while (grace_left(&g, 0, true, now) > 0)
        now += 50 * MS;
    assert_int_equal(now, GRACE_IDLE_MS * MS);
    grace_begin(&g, 0, 0);
    for (now = 0; now < 2 * GRACE_IDLE_MS * MS; now += 50 * MS) /* it runs now and then */
        assert_true(grace_left(&g, 0, now % (200 * MS) == 0, now) > 0);
}

/* The host has been stopped for an hour between two looks, and the ranks with it. */
static void a_host_that_has_not_looked_blames_nobody(void **state)
{
    (void)state;
    grace g;
    grace_begin(&g, 0, 0);
    assert_true(grace_left(&g, 0, true, HOUR) > 0);
    assert_true(grace_left(&g, 0, true, 2 * HOUR) > 0);
    int looks = 2;
    for (int64_t now = 3 * HOUR; grace_left(&g, 0, true, now) > 0; now += HOUR)
        ++looks;
    assert_int_equal(looks, GRACE_IDLE_MS / GRACE_LOOK_MS - 1);
}

/* Where the system tells nothing of processes, only sleeping counts, as all of them seem to. */
static void without_knowledge_time_counts(void **state)
{
    (void)state;
    grace g;
    int64_t now = 0;
    grace_begin(&g, -1, now);
    while (grace_left(&g, -1, true, now) > 0)
        now += 100 * MS;
    assert_int_equal(now, GRACE_IDLE_MS * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_waits_for_a_cpu_has_all_the_time),
        cmocka_unit_test(one_that_computes_has_its_time_of_the_cpu),
        cmocka_unit_test(one_that_sleeps_has_that_long),
        cmocka_unit_test(a_host_that_has_not_looked_blames_nobody),
        cmocka_unit_test(without_knowledge_time_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
