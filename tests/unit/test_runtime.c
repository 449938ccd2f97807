/* Worker sets end to end, without compiler or Python: hand-written programs on forked processes and
 * on threads. What must hold is said in each test's name. Under ThreadSanitizer only threads are
 * run: it does not support threads in a forked child. */
#include "base/diag.h"
#include "transport/segment.h"

#include <pypto/pypto.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "order.h"
#include "worker_sets.h"

/* ---- kernels ---- */

enum { DATA, SIGNAL, MODE };

/* One arrival at a barrier whose cells count rounds. */
static void barrier(pld_core *core, const pld_tensor *signal, int64_t round)
{
    const pld_comm *ctx = pld_get_comm(core, signal);
    for (int32_t peer = 0; peer < ctx->nranks; ++peer)
        if (peer != ctx->rank)
            pld_notify(core, signal, peer, PLD_AT(ctx->rank, 0), 1, PLD_ATOMIC_ADD);
    for (int32_t source = 0; source < ctx->nranks; ++source)
        if (source != ctx->rank)
            pld_wait(core, signal, PLD_AT(source, 0), round, PLD_GE);
}

/* Rounds of: write my cell, barrier, read everybody's, barrier. */
/* Without end when their number is negative. */
static void rounds_kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *data = args[DATA].tensor;
    const pld_tensor *signal = args[SIGNAL].tensor;
    const pld_comm *ctx = pld_get_comm(core, data);
    for (int64_t round = 0; round < args[MODE].integer || args[MODE].integer < 0; ++round) {
        const int32_t base = (int32_t)(round % 1000) * 100;
        const int32_t mine = base + ctx->rank;
        pld_store(core, &mine, data, PLD_AT(0), PLD_EXTENTS(1));
        barrier(core, signal, 2 * round + 1);
        for (int32_t peer = 0; peer < ctx->nranks; ++peer) {
            int32_t theirs;
            pld_remote_load(core, &theirs, data, peer, PLD_AT(0), PLD_EXTENTS(1));
            if (theirs != base + peer)
                pld_fail(core, "round %d: rank %d has %d", (int)round, peer, theirs);
        }
        barrier(core, signal, 2 * round + 2);
    }
}

enum {
    FAULT_NONE,
    FAULT_WAIT_FOR_EVER, /* all ranks wait for a cell that nobody sets */
    FAULT_RANK1_FAILS,   /* rank 1 fails once the others are under way and wait for it */
    FAULT_OUT_OF_BOUNDS,
    FAULT_BAD_PEER,
    FAULT_SEGV,
    FAULT_SPIN, /* rank 1 computes for ever, without device calls */
    FAULT_SELF_KILL,
    FAULT_STOPPED, /* rank 0 fails while rank 1 gets no CPU, as on a busy machine */
    FAULT_DIRTY    /* leaves its window full */
};

/* In memory that the ranks share. */
static struct {
    _Atomic bool spins; /* rank 1 has begun to */
} * told;

static void fault_kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *data = args[DATA].tensor;
    const pld_tensor *signal = args[SIGNAL].tensor;
    const pld_comm *ctx = pld_get_comm(core, data);
    int32_t word = 0;
    switch (args[MODE].integer) {
    case FAULT_WAIT_FOR_EVER: pld_wait(core, signal, PLD_AT(ctx->rank, 0), 7, PLD_EQ); break;
    case FAULT_RANK1_FAILS:
        if (ctx->rank == 1) {
            for (int32_t peer = 0; peer < ctx->nranks; ++peer)
                if (peer != 1)
                    pld_wait(core, signal, PLD_AT(peer, 0), 1, PLD_GE);
            pld_fail(core, "rank 1 gives up");
        }
        pld_notify(core, signal, 1, PLD_AT(ctx->rank, 0), 1, PLD_SET);
        pld_wait(core, signal, PLD_AT(1, 0), 1, PLD_GE);
        break;
    case FAULT_OUT_OF_BOUNDS: pld_load(core, &word, data, PLD_AT(INT64_MAX), PLD_EXTENTS(1)); break;
    case FAULT_BAD_PEER: pld_notify(core, signal, ctx->rank - 1, PLD_AT(0, 0), 1, PLD_SET); break;
    case FAULT_SEGV:
        if (ctx->rank == 1)
            raise(SIGSEGV);
        pld_wait(core, signal, PLD_AT(1, 0), 1, PLD_GE);
        break;
    case FAULT_SPIN:
        if (ctx->rank == 1)
            told->spins = true;
        for (volatile int64_t i = 0; ctx->rank == 1; i = i + 1)
            ;
        pld_wait(core, signal, PLD_AT(1, 0), 1, PLD_GE);
        break;
    case FAULT_SELF_KILL:
        if (ctx->rank == 0)
            raise(SIGKILL);
        break;
    case FAULT_STOPPED:
        if (ctx->rank == 0) {
            pld_wait(core, signal, PLD_AT(0, 0), 1, PLD_GE);
            pld_fail(core, "rank 0 gives up");
        }
        pld_notify(core, signal, 0, PLD_AT(0, 0), 1, PLD_SET);
        raise(SIGSTOP); /* no device call between, so it cannot drop the call before */
        pld_wait(core, signal, PLD_AT(1, 0), 1, PLD_GE);
        break;
    case FAULT_DIRTY:
        pld_load(core, &word, data, PLD_AT(0), PLD_EXTENTS(1));
        if (word != 0)
            pld_fail(core, "the window holds %d", word);
        word = 0x5a5a5a5a;
        pld_store(core, &word, data, PLD_AT(0), PLD_EXTENTS(1));
        pld_notify(core, signal, ctx->rank, PLD_AT(0, 0), 1, PLD_SET);
        break;
    default: break;
    }
}

/* ---- wrappers, tables ---- */

static const pld_param step_params[] = {
    {.name = "data", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "signal", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "mode", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};

#define CORE_FUNCTION(function_name, code)                                                \
    {                                                                                     \
        .name = (function_name), .file = "kernels.c", .line = 1, .plane = PLD_PLANE_CORE, \
        .run = (code), .nparams = 3, .params = step_params                                \
    }

static const pld_function rounds_function = CORE_FUNCTION("rounds", rounds_kernel);
static const pld_function fault_function = CORE_FUNCTION("fault", fault_kernel);

static void rounds_wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &rounds_function, args, 3);
}

static void fault_wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &fault_function, args, 3);
}

#define CHIP_FUNCTION(function_name, code)                                                \
    {                                                                                     \
        .name = (function_name), .file = "kernels.c", .line = 1, .plane = PLD_PLANE_CHIP, \
        .run = (code), .nparams = 3, .params = step_params                                \
    }

static const pld_function rounds_chip = CHIP_FUNCTION("rounds_chip", rounds_wrapper);
static const pld_function fault_chip = CHIP_FUNCTION("fault_chip", fault_wrapper);

static void dispatch_all(pld_host *host, const pld_function *wrapper, int64_t mode, int64_t repeat)
{
    const int64_t ranks = pld_world_size(host);
    const pld_buffer data_buf = pld_alloc_window(host, 0, 4, pld_all_devices(host));
    const pld_buffer signal_buf = pld_alloc_window(host, 1, 4 * ranks, pld_all_devices(host));
    pld_tensor data = pld_window_view(host, data_buf, PYPTO_INT32, 1, PLD_EXTENTS(1));
    pld_tensor signal = pld_window_view(host, signal_buf, PYPTO_INT32, 2, PLD_EXTENTS(ranks, 1));
    for (int64_t r = 0; r < ranks; ++r)
        for (int64_t i = 0; i < repeat; ++i)
            pld_dispatch(host, r, wrapper,
                         PLD_ARGS(PLD_TENSOR(&data), PLD_TENSOR(&signal), PLD_INT(mode)), 3);
}

static void rounds_host(pld_host *host, const pld_arg *args)
{
    dispatch_all(host, &rounds_chip, args[0].integer, 1);
}

static void fault_host(pld_host *host, const pld_arg *args)
{
    dispatch_all(host, &fault_chip, args[0].integer, 1);
}

/* Ten thousand dispatches for rank 0 before the first for rank 1; the last of each rank meet in a
 * barrier. */
static void flood_host(pld_host *host, const pld_arg *args)
{
    const int64_t ranks = pld_world_size(host);
    const pld_buffer data_buf = pld_alloc_window(host, 0, 4, pld_all_devices(host));
    const pld_buffer signal_buf = pld_alloc_window(host, 1, 4 * ranks, pld_all_devices(host));
    pld_tensor data = pld_window_view(host, data_buf, PYPTO_INT32, 1, PLD_EXTENTS(1));
    pld_tensor signal = pld_window_view(host, signal_buf, PYPTO_INT32, 2, PLD_EXTENTS(ranks, 1));
    for (int64_t r = 0; r < ranks; ++r) {
        pld_dispatch(host, r, &rounds_chip,
                     PLD_ARGS(PLD_TENSOR(&data), PLD_TENSOR(&signal), PLD_INT(1)), 3);
        for (int64_t i = 0; i < args[0].integer; ++i)
            pld_dispatch(host, r, &fault_chip,
                         PLD_ARGS(PLD_TENSOR(&data), PLD_TENSOR(&signal), PLD_INT(FAULT_NONE)), 3);
    }
}

static const pld_param mode_param[] = {{.name = "mode", .kind = PLD_PARAM_SCALAR, .world_dim = -1}};

#define HOST_FUNCTION(function_name, code)                                             \
    {                                                                                  \
        .name = (function_name), .file = "host.c", .line = 1, .plane = PLD_PLANE_HOST, \
        .run_host = (code), .nparams = 1, .params = mode_param                         \
    }

static const pld_function rounds_entry = HOST_FUNCTION("rounds_host", rounds_host);
static const pld_function fault_entry = HOST_FUNCTION("fault_host", fault_host);
static const pld_function flood_entry = HOST_FUNCTION("flood_host", flood_host);

static const pld_buffer_info buffers[] = {{"data_buf", 1, PLD_NO_COLLECTIVES},
                                          {"signal_buf", 2, PLD_NO_COLLECTIVES}};

#define PROGRAM(variable, entry)                                                 \
    static const pld_function *const variable##_functions[] = {                  \
        &rounds_function, &fault_function, &rounds_chip, &fault_chip, &(entry)}; \
    static const pld_program variable = {.abi = PLD_ABI,                         \
                                         .size = sizeof(pld_program),            \
                                         .name = #variable,                      \
                                         .nfunctions = 5,                        \
                                         .host = 4,                              \
                                         .functions = variable##_functions,      \
                                         .nbuffers = 2,                          \
                                         .buffers = buffers}

PROGRAM(rounds_program, rounds_entry);
PROGRAM(fault_program, fault_entry);
PROGRAM(flood_program, flood_entry);

/* ---- running ---- */

static bool wants_interrupt;

static bool interrupted_if_wanted(void *context)
{
    (void)context;
    return wants_interrupt;
}

static pypto_worker *make_worker(pypto_start start, int32_t ranks, bool (*interrupted)(void *))
{
    return make_set(start, ranks, 0, interrupted);
}

static pypto_status run(pypto_worker *worker, const pld_program *table, int64_t mode)
{
    pypto_program *program = NULL;
    pypto_status status = pypto_program_from_table(table, &program);
    const pypto_argument argument = {.kind = PLD_ARG_INT, .integer = mode};
    if (status.kind == PYPTO_ERROR_NONE)
        status = pypto_worker_run(worker, program, &argument, 1);
    pypto_program_release(program);
    return status;
}

static void run_ok(pypto_worker *worker, const pld_program *table, int64_t mode)
{
    pypto_status status = run(worker, table, mode);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("run: %s", pypto_status_text(&status));
}

/* The call must fail with this code, and the text must contain each of the words. */
static void run_fails(pypto_worker *worker, int64_t mode, diag_code code, const char *const *words)
{
    pypto_status status = run(worker, &fault_program, mode);
    assert_int_not_equal(status.kind, PYPTO_ERROR_NONE);
    char *text = pypto_status_text(&status);
    if (strcmp(status.diagnostics->code, diag_lookup(code)->code) != 0)
        fail_msg("expected %s, got: %s", diag_lookup(code)->code, text);
    for (; *words != NULL; ++words)
        if (strstr(text, *words) == NULL)
            fail_msg("'%s' is not in: %s", *words, text);
    free(text);
    pypto_status_clear(&status);
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- tests ---- */

static void test_rounds_are_right_at_any_rank_count(void **state)
{
    (void)state;
    const int32_t ranks[] = {1, 2, 3, 4, 8, 16};
    for (int s = 0; s < START_COUNT; ++s) {
        for (size_t i = 0; i < sizeof ranks / sizeof *ranks; ++i) {
            pypto_worker *worker = make_worker(starts[s], ranks[i], NULL);
            run_ok(worker, &rounds_program, ranks[i] > 4 ? 50 : 500);
            run_ok(worker, &rounds_program, 0);
            pypto_worker_close(worker);
        }
    }
}

static void test_posting_never_waits_for_execution(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *worker = make_worker(starts[s], 2, NULL);
        run_ok(worker, &flood_program, 10000);
        run_ok(worker, &flood_program, 10);
        pypto_worker_close(worker);
    }
}

static void test_deadlock_is_reported_and_the_set_stays_usable(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *worker = make_worker(starts[s], 3, NULL);
        for (int i = 0; i < 3; ++i) {
            run_fails(worker, FAULT_WAIT_FOR_EVER, DIAG_DEADLOCK,
                      WORDS("3 of 3 ranks", "rank 0: waits for 'signal_buf'[0, 0] == 7, which is 0",
                            "rank 2: waits for 'signal_buf'[2, 0] == 7", "parameter 'signal'",
                            "in fault at kernels.c:"));
            assert_true(pypto_worker_usable(worker));
            run_ok(worker, &rounds_program, 10);
        }
        pypto_worker_close(worker);
    }
}

static void test_failures_name_the_first_cause(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *worker = make_worker(starts[s], 3, NULL);
        run_fails(worker, FAULT_RANK1_FAILS, DIAG_KERNEL_FAILED,
                  WORDS("fault failed on rank 1: rank 1 gives up",
                        "rank 0: stopped in fault at kernels.c:"));
        run_fails(worker, FAULT_OUT_OF_BOUNDS, DIAG_INDEX_OUT_OF_BOUNDS,
                  WORDS("window 'data_buf' (parameter 'data')", "9223372036854775807"));
        run_fails(worker, FAULT_BAD_PEER, DIAG_PEER_OUT_OF_RANGE,
                  WORDS("peer -1 does not exist", "ranks 0 to 2", "signal_buf"));
        run_ok(worker, &rounds_program, 10);
        pypto_worker_close(worker);
    }
}

static void test_windows_are_zero_at_every_call(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *worker = make_worker(starts[s], 4, NULL);
        for (int i = 0; i < 200; ++i)
            run_ok(worker, &fault_program, FAULT_DIRTY);
        pypto_worker_close(worker);
    }
}

static void test_a_cancelled_wait_leaves_the_set_usable(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *worker = make_worker(starts[s], 2, interrupted_if_wanted);
        pypto_status status = run(worker, &rounds_program, 1); /* loads the program */
        assert_int_equal(status.kind, PYPTO_ERROR_NONE);
        wants_interrupt = true;
        status = run(worker, &rounds_program, -1);
        wants_interrupt = false;
        assert_int_equal(status.kind, PYPTO_ERROR_INTERRUPTED);
        pypto_status_clear(&status);
        assert_true(pypto_worker_usable(worker));
        pypto_worker_close(worker);
    }
}

static void test_a_start_that_is_cancelled_leaves_nothing(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 1};
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
        options.device_ids = ids;
        options.device_count = 2;
        options.start = starts[s];
        options.interrupted = interrupted_if_wanted;
        wants_interrupt = true;
        pypto_worker *worker;
        pypto_status status = pypto_worker_create(&options, &worker);
        wants_interrupt = false;
        assert_int_equal(status.kind, PYPTO_ERROR_INTERRUPTED);
        assert_null(worker);
        pypto_status_clear(&status);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    }
}

#ifndef NO_FORK
static void test_a_crash_is_reported_with_rank_signal_and_line(void **state)
{
    (void)state;
    pypto_worker *worker = make_worker(PYPTO_START_FORK, 3, NULL);
    run_fails(worker, FAULT_SEGV, DIAG_WORKER_DIED,
              WORDS("rank 1 (pid ", "SIGSEGV", "in fault at kernels.c:"));
    assert_false(pypto_worker_usable(worker));
    run_fails(worker, FAULT_NONE, DIAG_WORKER_CLOSED, WORDS("lost a worker"));
    pypto_worker_close(worker);
    worker = make_worker(PYPTO_START_FORK, 2, NULL);
    run_fails(worker, FAULT_SELF_KILL, DIAG_WORKER_DIED, WORDS("rank 0", "SIGKILL"));
    pypto_worker_close(worker);
}

/* Lets a child go on some time after it has been stopped. */
static void *let_it_go_on(void *argument)
{
    const pid_t pid = *(const pid_t *)argument;
    siginfo_t info;
    if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) == 0) {
        usleep(300000);
        kill(pid, SIGCONT);
    }
    return NULL;
}

/* A rank is not given up for what the machine does to it. */
static void test_a_rank_that_does_not_run_keeps_the_set_usable(void **state)
{
    (void)state;
    pypto_worker *worker = make_worker(PYPTO_START_FORK, 2, NULL);
    pid_t stopped = (pid_t)pypto_worker_pid(worker, 1);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, let_it_go_on, &stopped), 0);
    run_fails(worker, FAULT_STOPPED, DIAG_KERNEL_FAILED,
              WORDS("fault failed on rank 0: rank 0 gives up"));
    pthread_join(thread, NULL);
    assert_true(pypto_worker_usable(worker));
    run_ok(worker, &rounds_program, 10);
    pypto_worker_close(worker);
}

static _Atomic pid_t waiter;
static _Atomic bool spinning_so_far = true;
static bool still_spinning(void *context)
{
    (void)context;
    return !spinning_so_far;
}

static void *stop_later(void *argument)
{
    (void)argument;
    for (int i = 0; i < PATIENCE_MS && !told->spins; ++i)
        usleep(1000);
    order_until_it_polls(&waiter);
    usleep(100000); /* time for a wrong report */
    spinning_so_far = false;
    raise(SIGINT);
    return NULL;
}

static void ignore_signal(int number)
{
    (void)number;
}

/* Rank 1 computes, rank 0 waits for it: that is no deadlock, however long it takes. SIGINT on
 * another thread ends it, by killing the rank that does not listen. */
static void test_a_computing_rank_is_no_deadlock_and_can_be_cancelled(void **state)
{
    (void)state;
    signal(SIGINT, ignore_signal);
    pypto_worker *worker = make_worker(PYPTO_START_FORK, 2, still_spinning);
    pthread_t thread;
    told->spins = false;
    atomic_store(&waiter, gettid());
    assert_int_equal(pthread_create(&thread, NULL, stop_later, NULL), 0);
    pypto_status status = run(worker, &fault_program, FAULT_SPIN);
    pthread_join(thread, NULL);
    assert_int_equal(status.kind, PYPTO_ERROR_INTERRUPTED);
    pypto_status_clear(&status);
    assert_false(pypto_worker_usable(worker));
    pypto_worker_close(worker);
    signal(SIGINT, SIG_DFL);
}
#endif

int main(void)
{
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_are_right_at_any_rank_count),
        cmocka_unit_test(test_posting_never_waits_for_execution),
        cmocka_unit_test(test_deadlock_is_reported_and_the_set_stays_usable),
        cmocka_unit_test(test_failures_name_the_first_cause),
        cmocka_unit_test(test_windows_are_zero_at_every_call),
        cmocka_unit_test(test_a_cancelled_wait_leaves_the_set_usable),
        cmocka_unit_test(test_a_start_that_is_cancelled_leaves_nothing),
#ifndef NO_FORK
        cmocka_unit_test(test_a_crash_is_reported_with_rank_signal_and_line),
        cmocka_unit_test(test_a_rank_that_does_not_run_keeps_the_set_usable),
        cmocka_unit_test(test_a_computing_rank_is_no_deadlock_and_can_be_cancelled),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
