/* Fibers: switching keeps registers and stacks apart, a dropped fiber can start anew, a stack
 * overflow hits the guard page. */
#include "sched/fiber.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static fiber *home;

typedef struct counter {
    fiber *self;
    int64_t integers;
    double reals;
    int rounds;
} counter;

/* Keeps values in registers across switches; a mixed-up register changes the sums. */
static void count(void *argument)
{
    counter *c = argument;
    int64_t integer = 0;
    double real = 0.5;
    for (int i = 1;; ++i) {
        integer += i;
        real *= 1.0 + 1.0 / (double)i;
        c->integers = integer;
        c->reals = real;
        c->rounds = i;
        fiber_switch(c->self, home, false);
    }
}

static void test_many_fibers_keep_their_state(void **state)
{
    (void)state;
    enum { FIBERS = 50, ROUNDS = 1000 };
    counter counters[FIBERS] = {{NULL, 0, 0, 0}};
    home = fiber_of_thread();
    for (int i = 0; i < FIBERS; ++i) {
        counters[i].self = fiber_create(16384);
        assert_non_null(counters[i].self);
        fiber_reset(counters[i].self, count, &counters[i]);
    }
    for (int round = 1; round <= ROUNDS; ++round)
        for (int i = 0; i < FIBERS; ++i)
            fiber_switch(home, counters[i].self, false);
    for (int i = 0; i < FIBERS; ++i) {
        assert_int_equal(counters[i].rounds, ROUNDS);
        assert_int_equal(counters[i].integers, ROUNDS * (ROUNDS + 1) / 2);
        assert_true(counters[i].reals > 500.0 && counters[i].reals < 501.0); /* 0.5 * (n + 1) */
        fiber_destroy(counters[i].self);
    }
    fiber_destroy(home);
}

static void test_a_dropped_fiber_starts_anew(void **state)
{
    (void)state;
    home = fiber_of_thread();
    counter c = {.self = fiber_create(16384)};
    for (int run = 0; run < 100; ++run) {
        fiber_reset(c.self, count, &c);
        for (int i = 0; i <= run; ++i)
            fiber_switch(home, c.self, false);
        assert_int_equal(c.rounds, run + 1);
    }
    fiber_destroy(c.self);
    fiber_destroy(home);
    fiber_destroy(NULL);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static int64_t dig(int64_t depth)
{
    volatile char hole[1024];
    hole[0] = (char)depth;
    return depth == 0 ? 0 : dig(depth - 1) + hole[0];
}

static void overflow(void *argument)
{
    (void)argument;
    _exit((int)(dig(1000000) & 1)); /* must not get here */
}

static void test_overflow_hits_the_guard_page(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        home = fiber_of_thread();
        fiber *f = fiber_create(16384);
        fiber_reset(f, overflow, NULL);
        fiber_switch(home, f, false);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGSEGV);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_fibers_keep_their_state),
        cmocka_unit_test(test_a_dropped_fiber_starts_anew),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(test_overflow_hits_the_guard_page),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
