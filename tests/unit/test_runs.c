/* Calls in flight: two at once, the third waits for the oldest, each has its own result and its own failure; handles in
 * every order; threads; Ctrl-C; the end of a set with calls in flight. */
#include "base/diag.h"

#include <pypto/pypto.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "order.h"
#include "worker_sets.h"

/* What a kernel does before it writes `value` into its row: nothing, sleeps so many milliseconds, fails on
 * rank 1, waits for a signal that never comes, or computes on rank 0 until told. */
enum { AT_ONCE = 0, FAILS = -1, HANGS = -2, COMPUTES = -3 };

enum { OUT, BELL, VALUE, WHAT };

/* In memory that the ranks share. */
static struct {
    _Atomic bool enough;
} * told;

static _Atomic pid_t waiter; /* a thread that is about to wait for a call */

static void kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *bell = args[BELL].tensor;
    const int64_t what = args[WHAT].integer;
    if (what > 0)
        usleep((useconds_t)what * 1000);
    if (what == FAILS && pld_get_comm(core, bell)->rank == 1)
        pld_fail(core, "as asked");
    if (what == HANGS)
        pld_wait(core, bell, PLD_AT(0), 1, PLD_GE);
    while (what == COMPUTES && pld_get_comm(core, bell)->rank == 0 && !told->enough)
        pld_poll(core);
    pld_write_int(core, args[OUT].tensor, PLD_AT(0), args[VALUE].integer);
}

static const pld_param params[] = {
    {.name = "out", .kind = PLD_PARAM_TENSOR, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "bell", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "value", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "what", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_function kernel_function = {.name = "kernel",
                                             .file = "kernels.c",
                                             .line = 1,
                                             .plane = PLD_PLANE_CORE,
                                             .run = kernel,
                                             .nparams = 4,
                                             .params = params};

static void wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &kernel_function, args, 4);
}

static const pld_function chip_function = {.name = "chip",
                                           .file = "kernels.c",
                                           .line = 1,
                                           .plane = PLD_PLANE_CHIP,
                                           .run = wrapper,
                                           .nparams = 4,
                                           .params = params};

static void host_function(pld_host *host, const pld_arg *args)
{
    const int64_t ranks = pld_world_size(host);
    const pld_buffer buffer = pld_alloc_window(host, 0, 4, pld_all_devices(host));
    const pld_tensor bell = pld_window_view(host, buffer, PYPTO_INT32, 1, PLD_EXTENTS(1));
    if (args[2].integer == 12345)
        pld_host_fail(host, "no such thing");
    for (int64_t r = 0; r < ranks; ++r) {
        const pld_tensor row = pld_index(host, args[0].tensor, 1, PLD_AT(r));
        pld_dispatch(host, r, &chip_function,
                     PLD_ARGS(PLD_TENSOR(&row), PLD_TENSOR(&bell), PLD_INT(args[1].integer),
                              PLD_INT(args[2].integer)),
                     4);
    }
}

static const pld_param entry_params[] = {
    {.name = "out",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_OUT,
     .dtype = PYPTO_INT64,
     .ndim = 2,
     .shape = {-1, 1},
     .world_dim = 0},
    {.name = "value", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "what", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const char *const dims[] = {"NR"};
static const pld_function host_entry = {.name = "host",
                                        .file = "host.c",
                                        .line = 1,
                                        .plane = PLD_PLANE_HOST,
                                        .run_host = host_function,
                                        .nparams = 3,
                                        .params = entry_params,
                                        .ndims = 1,
                                        .dims = dims};
static const pld_function *const functions[] = {&kernel_function, &chip_function, &host_entry};
static const pld_buffer_info buffers[] = {{"bell_buf", 1, PLD_NO_COLLECTIVES}};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "runs",
                                  .nfunctions = 3,
                                  .host = 2,
                                  .functions = functions,
                                  .nbuffers = 1,
                                  .buffers = buffers};

/* ---- asking ---- */

static pypto_program *program;

typedef struct request {
    int64_t out[2];
    pypto_argument arguments[3];
    pypto_run *run;
} request;

static void prepare(request *r, int64_t value, int64_t what)
{
    *r = (request){.arguments = {{.kind = PLD_ARG_TENSOR},
                                 {.kind = PLD_ARG_INT, .integer = value},
                                 {.kind = PLD_ARG_INT, .integer = what}}};
    r->arguments[0].tensor = (pypto_tensor){
        .data = r->out, .dtype = PYPTO_INT64, .ndim = 2, .shape = {2, 1}, .stride = {1, 1}};
}

static void need(pypto_status status)
{
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("%s", pypto_status_text(&status));
}

static void send(pypto_worker *w, request *r, int64_t value, int64_t what)
{
    prepare(r, value, what);
    need(pypto_worker_submit(w, program, r->arguments, 3, &r->run));
    assert_non_null(r->run);
}

/* Sends a call that does not end before told->enough. */
static void send_endless(pypto_worker *w, request *r, int64_t value)
{
    told->enough = false;
    send(w, r, value, COMPUTES);
}

static pypto_error_kind await(request *r)
{
    bool over = false;
    pypto_status status = pypto_run_wait(r->run, -1, &over);
    assert_true(over);
    assert_true(pypto_run_done(r->run));
    const pypto_error_kind kind = status.kind;
    pypto_status_clear(&status);
    pypto_run_release(r->run);
    return kind;
}

static void expect_done(request *r, int64_t value)
{
    assert_int_equal(await(r), PYPTO_ERROR_NONE);
    assert_int_equal(r->out[0], value);
    assert_int_equal(r->out[1], value);
}

/* ---- tests ---- */

static void test_results_in_any_order(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *w = make_set(starts[s], 2, 0, NULL);
        request first, second;
        send(w, &first, 1, 20);
        send(w, &second, 2, AT_ONCE);
        expect_done(&second, 2);
        expect_done(&first, 1);
        send(w, &first, 3, AT_ONCE);
        send(w, &second, 4, 20);
        expect_done(&first, 3);
        expect_done(&second, 4);
        pypto_worker_close(w);
    }
}

static void test_many_submissions(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    static request requests[50];
    for (int i = 0; i < 50; ++i)
        send(w, &requests[i], i, i % 7 == 0 ? 1 : AT_ONCE);
    for (int i = 49; i >= 0; --i)
        expect_done(&requests[i], i);
    pypto_worker_close(w);
}

static void test_waiting_for_a_time(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    request r;
    send_endless(w, &r, 5);
    bool over = true;
    need(pypto_run_wait(r.run, 1000000, &over));
    assert_false(over);
    assert_false(pypto_run_done(r.run));
    told->enough = true;
    expect_done(&r, 5);
    pypto_worker_close(w);
}

/* The other call goes on, whichever of the two fails, and the set with it. */
static void test_a_call_fails_alone(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *w = make_set(starts[s], 2, 0, NULL);
        request good, bad;
        send(w, &bad, 1, FAILS);
        send(w, &good, 2, AT_ONCE);
        expect_done(&good, 2);
        assert_int_equal(await(&bad), PYPTO_ERROR_DEVICE);
        send(w, &good, 3, 20);
        send(w, &bad, 4, FAILS);
        assert_int_equal(await(&bad), PYPTO_ERROR_DEVICE);
        expect_done(&good, 3);
        send(w, &bad, 5, HANGS);
        send(w, &good, 6, AT_ONCE);
        assert_int_equal(await(&bad), PYPTO_ERROR_DEADLOCK);
        expect_done(&good, 6);
        assert_true(pypto_worker_usable(w));
        pypto_worker_close(w);
    }
}

/* A rank that computes for a call drops others all the same: it is not taken for one that does not answer. */
static void test_a_call_that_computes_outlives_failed_ones(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *w = make_set(starts[s], 2, 0, NULL);
        request good, bad;
        send_endless(w, &good, 1);
        for (int i = 0; i < 3; ++i) {
            send(w, &bad, 2, FAILS);
            assert_int_equal(await(&bad), PYPTO_ERROR_DEVICE);
        }
        assert_false(pypto_run_done(good.run));
        told->enough = true;
        expect_done(&good, 1);
        assert_true(pypto_worker_usable(w));
        pypto_worker_close(w);
    }
}

static void test_both_fail_each_with_its_own_words(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    request first, second;
    send(w, &first, 1, FAILS);
    send(w, &second, 2, FAILS);
    assert_int_equal(await(&second), PYPTO_ERROR_DEVICE);
    assert_int_equal(await(&first), PYPTO_ERROR_DEVICE);
    send(w, &first, 1, FAILS);
    send(w, &second, 2, FAILS);
    request third;
    send(w, &third, 3, AT_ONCE); /* waits for the first */
    expect_done(&third, 3);
    assert_int_equal(await(&first), PYPTO_ERROR_DEVICE);
    assert_int_equal(await(&second), PYPTO_ERROR_DEVICE);
    pypto_worker_close(w);
}

static void *end_it_when_another_waits(void *argument)
{
    (void)argument;
    order_until_it_polls(&waiter);
    told->enough = true;
    return NULL;
}

/* The caller's tensors are copied when a call begins and back when it ends; so one that reads or overwrites what
 * another writes has to wait. */
static void test_a_call_waits_for_one_that_writes_its_tensors(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    request first, other, same;
    send_endless(w, &first, 1);
    send(w, &other, 2, AT_ONCE);
    assert_false(pypto_run_done(first.run));
    told->enough = true;
    expect_done(&other, 2);
    expect_done(&first, 1);

    send_endless(w, &first, 1);
    pthread_t ender;
    assert_int_equal(pthread_create(&ender, NULL, end_it_when_another_waits, NULL), 0);
    atomic_store(&waiter, gettid());
    prepare(&same, 3, AT_ONCE);
    same.arguments[0].tensor.data = first.out;
    need(pypto_worker_submit(w, program, same.arguments, 3, &same.run));
    assert_int_equal(await(&same), PYPTO_ERROR_NONE);
    assert_int_equal(first.out[0], 3); /* of the later call, though the first took longer */
    pthread_join(ender, NULL);
    assert_int_equal(await(&first), PYPTO_ERROR_NONE);
    assert_int_equal(first.out[0], 3);
    pypto_worker_close(w);
}

/* The one that dies is a process, or it would be this one. */
static void test_a_death_ends_all_that_is_in_flight(void **state)
{
    (void)state;
#ifdef NO_FORK
    print_message("ThreadSanitizer supports no threads in a forked child: skipped\n");
    skip();
#endif
    pypto_worker *w = make_set(PYPTO_START_FORK, 2, 0, NULL);
    request first, second;
    send_endless(w, &first, 1);
    send_endless(w, &second, 2);
    assert_int_equal(kill((pid_t)pypto_worker_pid(w, 0), SIGKILL), 0);
    assert_int_equal(await(&first), PYPTO_ERROR_WORKER_DIED);
    assert_int_equal(await(&second), PYPTO_ERROR_WORKER_DIED);
    assert_false(pypto_worker_usable(w));
    pypto_worker_close(w);
}

static void test_mistakes_are_told_at_once(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    request running, r;
    send(w, &running, 7, 20);
    prepare(&r, 1, 12345);
    pypto_status status = pypto_worker_submit(w, program, r.arguments, 3, &r.run);
    assert_int_not_equal(status.kind, PYPTO_ERROR_NONE);
    assert_null(r.run);
    pypto_status_clear(&status);
    status = pypto_worker_submit(w, program, r.arguments, 2, &r.run);
    assert_int_equal(status.kind, PYPTO_ERROR_TYPE);
    assert_null(r.run);
    pypto_status_clear(&status);
    expect_done(&running, 7);
    pypto_worker_close(w);
}

static void test_handles_may_go_before_their_calls(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    static request requests[10];
    for (int i = 0; i < 10; ++i) {
        send(w, &requests[i], i, 1);
        pypto_run_release(requests[i].run);
    }
    pypto_run_release(NULL);
    pypto_worker_close(w);
    for (int i = 0; i < 10; ++i)
        assert_int_equal(requests[i].out[1], i);
}

static void test_the_end_waits_for_what_is_in_flight(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *w = make_set(starts[s], 2, 0, NULL);
        request first, second;
        send(w, &first, 8, 30);
        send(w, &second, 9, FAILS);
        pypto_worker_close(w);
        expect_done(&first, 8);
        assert_int_equal(await(&second), PYPTO_ERROR_DEVICE);
    }
}

static _Atomic bool interrupts;

static bool interrupted(void *context)
{
    (void)context;
    return interrupts;
}

static void test_an_interrupt_cancels_all(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, interrupted);
    request first, second;
    send_endless(w, &first, 1);
    send_endless(w, &second, 2);
    interrupts = true;
    assert_int_equal(await(&first), PYPTO_ERROR_INTERRUPTED);
    interrupts = false;
    assert_int_equal(await(&second), PYPTO_ERROR_INTERRUPTED);
    send_endless(w, &first, 3);
    send_endless(w, &second, 4);
    interrupts = true;
    assert_int_equal(await(&second), PYPTO_ERROR_INTERRUPTED); /* the older one, too */
    interrupts = false;
    assert_true(pypto_run_done(first.run));
    assert_int_equal(await(&first), PYPTO_ERROR_INTERRUPTED);
    send(w, &first, 5, AT_ONCE);
    expect_done(&first, 5);
    pypto_worker_close(w);
}

static pypto_worker *shared;

static void *submit_many(void *argument)
{
    const int64_t base = *(const int64_t *)argument;
    for (int64_t i = 0; i < 30; ++i) {
        request r;
        send(shared, &r, base + i, i % 5 == 0 ? 1 : AT_ONCE);
        expect_done(&r, base + i);
    }
    return NULL;
}

static void test_threads_share_a_set(void **state)
{
    (void)state;
    static const int64_t bases[] = {100, 200, 300, 400};
    pthread_t threads[4];
    shared = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    for (int i = 0; i < 4; ++i)
        assert_int_equal(
            pthread_create(&threads[i], NULL, submit_many, (void *)(intptr_t)&bases[i]), 0);
    for (int i = 0; i < 4; ++i)
        pthread_join(threads[i], NULL);
    pypto_worker_close(shared);
}

static void *await_it(void *argument)
{
    atomic_store(&waiter, gettid());
    return (void *)(intptr_t)await(argument);
}

/* A thread that waits for a call keeps no other from submitting one, nor from cancelling both. */
static void test_a_call_is_submitted_while_another_thread_waits(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *w = make_set(starts[s], 2, 0, NULL);
        request first, second;
        send_endless(w, &first, 1);
        pthread_t waiting;
        assert_int_equal(pthread_create(&waiting, NULL, await_it, &first), 0);
        order_until_it_polls(&waiter); /* or else it may not be there yet, which would be no test */
        send(w, &second, 2, AT_ONCE);
        assert_false(pypto_run_done(first.run));
        told->enough = true;
        void *kind;
        assert_int_equal(pthread_join(waiting, &kind), 0);
        assert_int_equal((intptr_t)kind, PYPTO_ERROR_NONE);
        expect_done(&second, 2);

        send_endless(w, &first, 3);
        assert_int_equal(pthread_create(&waiting, NULL, await_it, &first), 0);
        order_until_it_polls(&waiter);
        send_endless(w, &second, 4);
        pypto_worker_cancel(w);
        assert_int_equal(await(&second), PYPTO_ERROR_INTERRUPTED);
        assert_int_equal(pthread_join(waiting, &kind), 0);
        assert_int_equal((intptr_t)kind, PYPTO_ERROR_INTERRUPTED);
        send(w, &first, 5, AT_ONCE);
        expect_done(&first, 5);
        pypto_worker_close(w);
    }
}

static int open_program(void **state)
{
    (void)state;
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(told, MAP_FAILED);
    need(pypto_program_from_table(&table, &program));
    return 0;
}

static int close_program(void **state)
{
    (void)state;
    pypto_program_release(program);
    munmap(told, sizeof *told);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_in_any_order),
        cmocka_unit_test(test_many_submissions),
        cmocka_unit_test(test_waiting_for_a_time),
        cmocka_unit_test(test_a_call_fails_alone),
        cmocka_unit_test(test_a_call_that_computes_outlives_failed_ones),
        cmocka_unit_test(test_both_fail_each_with_its_own_words),
        cmocka_unit_test(test_a_call_waits_for_one_that_writes_its_tensors),
        cmocka_unit_test(test_a_death_ends_all_that_is_in_flight),
        cmocka_unit_test(test_mistakes_are_told_at_once),
        cmocka_unit_test(test_handles_may_go_before_their_calls),
        cmocka_unit_test(test_the_end_waits_for_what_is_in_flight),
        cmocka_unit_test(test_an_interrupt_cancels_all),
        cmocka_unit_test(test_threads_share_a_set),
        cmocka_unit_test(test_a_call_is_submitted_while_another_thread_waits),
    };
    return cmocka_run_group_tests(tests, open_program, close_program);
}
