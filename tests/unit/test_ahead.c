/* Host functions that are faster than their devices: how far ahead they get, with dispatches and with tensors, and
 * what may come while they wait; what a long chain of dispatches costs. The first kernel holds the others up until the host waits, so that nothing depends on who
 * is faster. */
#include "host/host.h"
#include "sched/sched.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker_sets.h"

/* What host/ahead.c lets a host function do. */
#define MOST_RECORDS 4096
#define MOST_BYTES ((int64_t)256 << 20)

enum what { GOES_ON, FAILS, DIES, COMPUTES, WAITS_FOR_LATER, CHAIN };

/* Of the next call; seen by all processes. */
static struct {
    enum what first; /* what the first dispatch does when the host waits */
    int64_t dispatches;
    int64_t tensor_bytes; /* each has one of its own; 0: one for all */
    _Atomic int64_t posted;
    _Atomic int64_t run;
    _Atomic int64_t most; /* that were posted and had not run */
    uint32_t value;       /* of a chain */
    int64_t most_deps;    /* of one of its dispatches */
} * told;

static void hold_up(const pld_core *core)
{
    const set_header *set = core->owner->seg.set;
    while (atomic_load_explicit(&set->host_waiting, memory_order_seq_cst) == 0)
        usleep(100);
}

enum { TENSOR, NUMBER };

static void kernel(pld_core *core, const pld_arg *args)
{
    if (args[NUMBER].integer == 0 && told->first != WAITS_FOR_LATER) {
        hold_up(core);
        if (told->first == FAILS)
            pld_fail(core, "as asked");
        if (told->first == DIES)
            raise(SIGKILL);
        while (told->first == COMPUTES)
            pld_poll(core);
    }
    const int64_t ahead = atomic_load(&told->posted) - atomic_fetch_add(&told->run, 1);
    int64_t most = atomic_load(&told->most);
    while (ahead > most && !atomic_compare_exchange_weak(&told->most, &most, ahead))
        ;
}

/* Device 0 waits for the bell, device 1 rings it. */
static void bell_kernel(pld_core *core, const pld_arg *args)
{
    if (pld_get_comm(core, args[0].tensor)->rank == 0)
        pld_wait(core, args[0].tensor, PLD_AT(0), 1, PLD_GE);
    else
        pld_notify(core, args[0].tensor, 0, PLD_AT(0), 1, PLD_ATOMIC_ADD);
}

/* Each comes after the one before it, or the value is another. */
static void chain_kernel(pld_core *core, const pld_arg *args)
{
    if (args[NUMBER].integer == 0)
        hold_up(core);
    uint32_t *value = (uint32_t *)(void *)args[TENSOR].tensor->data;
    told->value = *value = *value * 3 + (uint32_t)args[NUMBER].integer;
    atomic_fetch_add(&told->run, 1);
}

static const pld_param params[] = {
    {.name = "t", .kind = PLD_PARAM_TENSOR, .direction = PLD_IN, .world_dim = -1},
    {.name = "number", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_param chain_params[] = {
    {.name = "t", .kind = PLD_PARAM_TENSOR, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "number", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_param bell_params[] = {
    {.name = "bell", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
};

#define FUNCTION(label, on, code, its_params, count)                                             \
    {                                                                                            \
        .name = label, .file = "ahead.c", .line = 1, .plane = on, .run = code, .nparams = count, \
        .params = its_params                                                                     \
    }

static const pld_function kernel_function = FUNCTION("kernel", PLD_PLANE_CORE, kernel, params, 2);
static const pld_function bell_function =
    FUNCTION("bell", PLD_PLANE_CORE, bell_kernel, bell_params, 1);

static const pld_function chain_function =
    FUNCTION("chain", PLD_PLANE_CORE, chain_kernel, chain_params, 2);

static void wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &kernel_function, args, 2);
}

static void chain_wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &chain_function, args, 2);
}

static void bell_wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &bell_function, args, 1);
}

static const pld_function chip = FUNCTION("chip", PLD_PLANE_CHIP, wrapper, params, 2);
static const pld_function chain_chip =
    FUNCTION("chain_chip", PLD_PLANE_CHIP, chain_wrapper, chain_params, 2);
static const pld_function bell_chip =
    FUNCTION("bell_chip", PLD_PLANE_CHIP, bell_wrapper, bell_params, 1);

static void host_function(pld_host *host, const pld_arg *args)
{
    (void)args;
    const int64_t ranks = pld_world_size(host);
    const int64_t extent = told->tensor_bytes > 0 ? told->tensor_bytes / 4 : 1;
    const bool bells = told->first == WAITS_FOR_LATER;
    pld_tensor bell;
    if (bells) {
        const pld_buffer buffer = pld_alloc_window(host, 0, 4, pld_all_devices(host));
        bell = pld_window_view(host, buffer, PYPTO_INT32, 1, PLD_EXTENTS(1));
        pld_dispatch(host, 0, &bell_chip, PLD_ARGS(PLD_TENSOR(&bell)), 1);
    }
    pld_tensor t;
    for (int64_t i = 0; i < told->dispatches; ++i) {
        if (i == 0 || told->tensor_bytes > 0)
            t = pld_host_create_tensor(host, PYPTO_INT32, 1, PLD_EXTENTS(extent), 0);
        pld_dispatch(host, bells ? 1 : i % ranks, told->first == CHAIN ? &chain_chip : &chip,
                     PLD_ARGS(PLD_TENSOR(&t), PLD_INT(i)), 2);
        if (told->most_deps < host->w->order.dep_count)
            told->most_deps = host->w->order.dep_count;
        atomic_fetch_add(&told->posted, 1);
        if (told->tensor_bytes > 0)
            pld_host_release_tensor(host, &t);
    }
    if (bells)
        pld_dispatch(host, 1, &bell_chip, PLD_ARGS(PLD_TENSOR(&bell)), 1);
}

static const pld_function host_entry = {.name = "host",
                                        .file = "host.c",
                                        .line = 1,
                                        .plane = PLD_PLANE_HOST,
                                        .run_host = host_function};
static const pld_function *const functions[] = {
    &kernel_function, &bell_function, &chip, &bell_chip, &host_entry, &chain_function, &chain_chip};
static const pld_buffer_info buffers[] = {{"bell_buf", 1, PLD_NO_COLLECTIVES}};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "ahead",
                                  .nfunctions = 7,
                                  .host = 4,
                                  .functions = functions,
                                  .nbuffers = 1,
                                  .buffers = buffers};

static pypto_program *program;

static pypto_status call(pypto_worker *w, enum what first, int64_t dispatches, int64_t tensor_bytes)
{
    told->first = first;
    told->dispatches = dispatches;
    told->tensor_bytes = tensor_bytes;
    told->posted = told->run = told->most = told->most_deps = 0;
    return pypto_worker_run(w, program, NULL, 0);
}

static void good_call(pypto_worker *w, enum what first, int64_t dispatches, int64_t tensor_bytes)
{
    pypto_status status = call(w, first, dispatches, tensor_bytes);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("%s", pypto_status_text(&status));
    assert_int_equal(told->run, dispatches);
}

static void test_dispatches(void **state)
{
    (void)state;
    const int32_t ranks[] = {1, PYPTO_MAX_RANKS};
    for (int i = 0; i < 2; ++i) {
        pypto_worker *w = make_set(PYPTO_START_THREAD, ranks[i], 0, NULL);
        good_call(w, GOES_ON, 3 * MOST_RECORDS, 0);
        assert_in_range(told->most, 1, MOST_RECORDS + 1);
        /* Few are no reason to wait. The first one runs when the host has posted all. */
        good_call(w, GOES_ON, MOST_RECORDS, 0);
        assert_int_equal(told->posted, MOST_RECORDS);
        pypto_worker_close(w);
    }
}

static void test_a_chain_over_devices(void **state)
{
    (void)state;
    enum { LINKS = 2000 };
    pypto_worker *w = make_set(PYPTO_START_THREAD, 3, 0, NULL);
    uint32_t value = 0;
    for (uint32_t i = 0; i < LINKS; ++i)
        value = value * 3 + i;
    good_call(w, CHAIN, LINKS, 0);
    assert_int_equal(told->value, value);
    assert_int_equal(told->most_deps, 1); /* none of them had run */
    pypto_worker_close(w);
}

static void test_tensors(void **state)
{
    (void)state;
    const int32_t ranks[] = {1, PYPTO_MAX_RANKS};
    for (int i = 0; i < 2; ++i) {
        pypto_worker *w = make_set(PYPTO_START_THREAD, ranks[i], 0, NULL);
        const int64_t bytes = 1 << 20;
        good_call(w, GOES_ON, 600, bytes);
        assert_in_range(w->staging_reserved, MOST_BYTES, MOST_BYTES + 2 * bytes);
        /* Large ones, of which each device may have some. */
        const int64_t most = w->staging_reserved;
        good_call(w, GOES_ON, 8, 40 << 20);
        assert_true(ranks[i] == 1 ? w->staging_reserved < most + 6 * (40 << 20)
                                  : w->staging_reserved >= 8 * (40 << 20));
        pypto_worker_close(w);
    }
}

/* The host goes on when nothing else does. */
static void test_what_is_posted_needs_later_ones(void **state)
{
    (void)state;
    for (int i = 0; i < START_COUNT; ++i) {
        pypto_worker *w = make_set(starts[i], 2, 0, NULL);
        good_call(w, WAITS_FOR_LATER, 3 * MOST_RECORDS, 0);
        good_call(w, WAITS_FOR_LATER, 300, 1 << 20);
        pypto_worker_close(w);
    }
}

static void test_a_kernel_fails_meanwhile(void **state)
{
    (void)state;
    for (int i = 0; i < START_COUNT; ++i) {
        pypto_worker *w = make_set(starts[i], 2, 0, NULL);
        pypto_status status = call(w, FAILS, 3 * MOST_RECORDS, 0);
        assert_int_equal(status.kind, PYPTO_ERROR_DEVICE);
        assert_non_null(strstr(status.diagnostics->message, "as asked"));
        pypto_status_clear(&status);
        assert_in_range(told->posted, MOST_RECORDS, 3 * MOST_RECORDS - 1); /* one device went on */
        good_call(w, GOES_ON, MOST_RECORDS + 1, 0);
        pypto_worker_close(w);
    }
}

static void test_a_worker_dies_meanwhile(void **state)
{
    (void)state;
    for (int i = 0; i < START_COUNT; ++i) {
        if (starts[i] == PYPTO_START_THREAD)
            continue;
        pypto_worker *w = make_set(starts[i], 2, 0, NULL);
        pypto_status status = call(w, DIES, 3 * MOST_RECORDS, 0);
        assert_int_equal(status.kind, PYPTO_ERROR_WORKER_DIED);
        pypto_status_clear(&status);
        assert_false(pypto_worker_usable(w));
        pypto_worker_close(w);
    }
}

static bool is_interrupted(void *context)
{
    (void)context;
    return told->first == COMPUTES && atomic_load(&told->posted) >= MOST_RECORDS;
}

static void test_ctrl_c_meanwhile(void **state)
{
    (void)state;
    for (int i = 0; i < START_COUNT; ++i) {
        pypto_worker *w = make_set(starts[i], 2, 0, is_interrupted);
        pypto_status status = call(w, COMPUTES, 3 * MOST_RECORDS, 0);
        assert_int_equal(status.kind, PYPTO_ERROR_INTERRUPTED);
        pypto_status_clear(&status);
        good_call(w, GOES_ON, MOST_RECORDS + 1, 0);
        pypto_worker_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatches),
        cmocka_unit_test(test_a_chain_over_devices),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_what_is_posted_needs_later_ones),
        cmocka_unit_test(test_a_kernel_fails_meanwhile),
        cmocka_unit_test(test_a_worker_dies_meanwhile),
        cmocka_unit_test(test_ctrl_c_meanwhile),
    };
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return 1;
    pypto_status status = pypto_program_from_table(&table, &program);
    if (status.kind != PYPTO_ERROR_NONE)
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pypto_program_release(program);
    return failed;
}
