/* What a rank's scheduler decides by itself, without other ranks. */
#include "sched/sched.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Keeps this thread where it is; returns the CPU. */
static int32_t stay(void)
{
    cpu_set_t one;
    const int cpu = sched_getcpu();
    assert_true(cpu >= 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    return cpu;
}

static void test_a_cpu_is_shared_with_whom_waited_there(void **state)
{
    (void)state;
    segment seg;
    sched s;
    pypto_status status = transport_threads.create(3, &seg);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    status = sched_init(&s, seg, 1, -1);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    const int32_t cpu = stay();
    assert_false(sched_shares_cpu(&s)); /* nobody has waited */
    assert_int_equal(atomic_load(&segment_rank(&seg, 1)->cpu), cpu + 1);
    atomic_store(&segment_rank(&seg, 0)->cpu, cpu + 2);
    assert_false(sched_shares_cpu(&s));
    atomic_store(&segment_rank(&seg, 2)->cpu, cpu + 1);
    assert_true(sched_shares_cpu(&s));
    atomic_store(&segment_rank(&seg, 2)->cpu, cpu);
    assert_false(sched_shares_cpu(&s));
    sched_destroy(&s);
    transport_threads.detach(&seg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cpu_is_shared_with_whom_waited_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
