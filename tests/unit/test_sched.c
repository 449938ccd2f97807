/* What a rank's scheduler decides by itself, without other ranks. */
#include "sched/sched.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
    /* The system may move this thread back before it is looked at, but not each time. */
    for (int moved = 0; moved < 10;) {
        sched s;
        begin(&s);
        const int cpu = sched_getcpu();
        waits_on(&s, 0, cpu);
        moved += sched_has_cpu(&s) && atomic_load(&segment_rank(&s.seg, 1)->cpu) != cpu + 1;
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&before, &after));
        end(&s);
    }
}

/* ---- failures ---- */

/* A page that nobody may read until somebody has tried to, and what was seen at that moment. */
static struct {
    char *page;
    const failure_record *failure;
    int32_t tries;
    uint64_t published;
} guarded;

static void open_page(int number)
{
    (void)number;
    ++guarded.tries;
    guarded.published = atomic_load(&guarded.failure->call);
    mprotect(guarded.page, 4096, PROT_READ);
}

/* The host may be looking at a rank's failure already, because another rank has failed first: while a rank still writes,
 * here the last of its texts, nothing must be there to be found. */
static void test_a_failure_is_published_when_it_is_complete(void **state)
{
    (void)state;
    sched s;
    begin(&s);
    const struct sigaction ours = {.sa_handler = open_page};
    struct sigaction before;
    guarded.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(guarded.page, MAP_FAILED);
    assert_int_equal(sigaction(SIGSEGV, &ours, &before), 0);
    for (int32_t call = 5; call < 9; ++call) { /* each slot twice: old failures are there */
        const failure_record *f = guarded.failure = &s.header->failure[call_slot((uint64_t)call)];
        char text[16];
        snprintf(text, sizeof text, "%d", (int)call);
        assert_int_equal(mprotect(guarded.page, 4096, PROT_READ | PROT_WRITE), 0);
        memcpy(guarded.page, text, sizeof text);
        assert_int_equal(mprotect(guarded.page, 4096, PROT_NONE), 0);
        guarded.tries = 0;
        sched_fail(&s, (uint64_t)call, 1, 2, call, DIAG_INTERNAL, text, guarded.page);
        assert_int_equal(guarded.tries, 1);
        assert_int_not_equal(guarded.published, call);
        assert_int_equal(atomic_load(&f->call), call);
        assert_int_equal(f->line, call);
        assert_string_equal(f->text, text);
        assert_string_equal(f->note, text);
    }
    sigaction(SIGSEGV, &before, NULL);
    munmap(guarded.page, 4096);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cpu_is_shared_with_whom_waited_there),
        cmocka_unit_test(test_the_higher_of_two_on_a_cpu_moves_and_stays_free),
        cmocka_unit_test(test_a_failure_is_published_when_it_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
