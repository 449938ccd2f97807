/* What a rank's scheduler decides by itself, without other ranks. */
#include "sched/sched.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A set of three in which this thread is rank 1. */
static void begin(sched *s)
{
    segment seg;
    pypto_status status = transport_threads.create(3, 0, &seg);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    status = sched_init(s, seg, 1, -1);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
}

static void end(sched *s)
{
    segment seg = s->seg;
    sched_destroy(s);
    transport_threads.detach(&seg);
}

static void waits_on(const sched *s, int32_t rank, int cpu)
{
    atomic_store(&segment_rank(&s->seg, rank)->cpu, cpu + 1);
}

static void test_a_cpu_is_shared_with_whom_waited_there(void **state)
{
    (void)state;
    sched s;
    begin(&s);
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    const int cpu = sched_getcpu();
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);

    assert_true(sched_has_cpu(&s)); /* nobody has waited */
    assert_int_equal(atomic_load(&segment_rank(&s.seg, 1)->cpu), cpu + 1);
    waits_on(&s, 0, cpu + 1);
    assert_true(sched_has_cpu(&s));
    waits_on(&s, 2, cpu);
    assert_false(sched_has_cpu(&s));
    waits_on(&s, 2, cpu - 1);
    assert_true(sched_has_cpu(&s));
    waits_on(&s, 0, cpu);
    assert_false(sched_has_cpu(&s)); /* there is no other that it may use */
    sched_leaves_cpu(&s);
    assert_int_equal(atomic_load(&segment_rank(&s.seg, 1)->cpu), 0);

    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    end(&s);
}

static void test_the_higher_of_two_on_a_cpu_moves_and_stays_free(void **state)
{
    (void)state;
    cpu_set_t before, after;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (CPU_COUNT(&before) < 2)
        skip();
    /* The system may move this thread back before it is looked at. */
    int moved = 0;
    for (int turn = 0; turn < 20; ++turn) {
        sched s;
        begin(&s);
        const int cpu = sched_getcpu();
        waits_on(&s, 0, cpu);
        moved += sched_has_cpu(&s) && atomic_load(&segment_rank(&s.seg, 1)->cpu) != cpu + 1;
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&before, &after));
        end(&s);
    }
    assert_true(moved >= 10);
}

/* ---- failures ---- */

#define FAILED_CALLS 3000

typedef struct failing {
    sched s;
    _Atomic uint64_t reported; /* calls of which somebody has read the failure */
} failing;

static void *fail_calls(void *argument)
{
    failing *f = argument;
    for (int32_t call = 1; call <= FAILED_CALLS; ++call) {
        char text[16];
        snprintf(text, sizeof text, "%d", (int)call);
        sched_fail(&f->s, (uint64_t)call, call, call, call, (diag_code)call, text, text);
        while (atomic_load_explicit(&f->reported, memory_order_acquire) < (uint64_t)call)
            sched_yield();
    }
    return NULL;
}

/* Whoever finds a failure of a call, as a host that another rank has woken, finds all of it, and nothing of what the rank
 * failed with before. */
static void test_a_failure_is_published_whole(void **state)
{
    (void)state;
    failing f = {.reported = 0};
    begin(&f.s);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_calls, &f), 0);
    int32_t wrong = 0;
    for (int32_t call = 1; call <= FAILED_CALLS; ++call) {
        const failure_record *failure = &f.s.header->failure[call_slot((uint64_t)call)];
        for (int32_t turn = 0;
             atomic_load_explicit(&failure->call, memory_order_acquire) != (uint64_t)call;)
            if (++turn % 1000 == 0)
                sched_yield();
        wrong += failure->order != (uint64_t)call || failure->code != call ||
                 failure->program != call || failure->function != call || failure->line != call ||
                 atoi(failure->text) != call || atoi(failure->note) != call;
        atomic_store_explicit(&f.reported, (uint64_t)call, memory_order_release);
    }
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    end(&f.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cpu_is_shared_with_whom_waited_there),
        cmocka_unit_test(test_the_higher_of_two_on_a_cpu_moves_and_stays_free),
        cmocka_unit_test(test_a_failure_is_published_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
