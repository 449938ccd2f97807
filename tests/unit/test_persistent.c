/* Windows that outlive a call, cleared or kept between calls; what a failed call leaves. */
#include "base/alloc.h"
#include "base/diag.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker_sets.h"

enum { OUT, WINDOW, BELL, FAILS };

/* Adds 1 to the peer's cell, and tells what the own one is when that has come. */
static void kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *window = args[WINDOW].tensor, *bell = args[BELL].tensor;
    const pld_comm *comm = pld_get_comm(core, window);
    const int32_t peer = 1 - comm->rank;
    const int64_t before = pld_read_int(core, window, PLD_AT(0));
    pld_barrier(core, bell);
    pld_notify(core, window, peer, PLD_AT(0), 1, PLD_ATOMIC_ADD);
    if (args[FAILS].integer != 0 && comm->rank == 1)
        pld_fail(core, "as asked");
    pld_wait(core, window, PLD_AT(0), before + 1, PLD_GE);
    pld_write_int(core, args[OUT].tensor, PLD_AT(0), pld_read_int(core, window, PLD_AT(0)));
}

static const pld_param params[] = {
    {.name = "out", .kind = PLD_PARAM_TENSOR, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "window", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "bell", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "fails", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
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
    const uint64_t all = pld_all_devices(host);
    const pld_buffer counts = pld_alloc_window(host, 0, args[2].integer, all);
    const pld_buffer bells = pld_alloc_window(host, 1, 8, all);
    const pld_tensor window = pld_window_view(host, counts, PYPTO_INT32, 1, PLD_EXTENTS(1));
    const pld_tensor bell = pld_window_view(host, bells, PYPTO_INT32, 1, PLD_EXTENTS(2));
    for (int64_t r = 0; r < 2; ++r) {
        const pld_tensor row = pld_index(host, args[0].tensor, 1, PLD_AT(r));
        pld_dispatch(host, r, &chip_function,
                     PLD_ARGS(PLD_TENSOR(&row), PLD_TENSOR(&window), PLD_TENSOR(&bell),
                              PLD_INT(args[1].integer)),
                     4);
    }
}

static const pld_param entry_params[] = {
    {.name = "out",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_OUT,
     .dtype = PYPTO_INT64,
     .ndim = 2,
     .shape = {2, 1},
     .world_dim = 0},
    {.name = "fails", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "bytes", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_function host_entry = {.name = "host",
                                        .file = "host.c",
                                        .line = 1,
                                        .plane = PLD_PLANE_HOST,
                                        .run_host = host_function,
                                        .nparams = 3,
                                        .params = entry_params};
static const pld_function *const functions[] = {&kernel_function, &chip_function, &host_entry};
static const pld_buffer_info buffers[] = {{"counts", 1, PLD_NO_COLLECTIVES},
                                          {"bells", 2, PLD_ONE_SIGNAL}};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "persistent",
                                  .nfunctions = 3,
                                  .host = 2,
                                  .functions = functions,
                                  .nbuffers = 2,
                                  .buffers = buffers};

/* ---- running ---- */

static pypto_status try_to_make(pypto_start start, pypto_persistence persistent,
                                pypto_worker **worker)
{
    static const int32_t ids[] = {0, 1};
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    options.device_ids = ids;
    options.device_count = 2;
    options.start = start;
    options.persistent = persistent;
    return pypto_worker_create(&options, worker);
}

static pypto_worker *make(pypto_start start, pypto_persistence persistent)
{
    pypto_worker *worker = NULL;
    pypto_status status = try_to_make(start, persistent, &worker);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("create: %s", pypto_status_text(&status));
    return worker;
}

static pypto_status run(pypto_worker *w, pypto_program *program, int64_t *out, bool fails,
                        int64_t bytes)
{
    pypto_argument arguments[] = {{.kind = PLD_ARG_TENSOR},
                                  {.kind = PLD_ARG_INT, .integer = fails},
                                  {.kind = PLD_ARG_INT, .integer = bytes}};
    arguments[0].tensor = (pypto_tensor){
        .data = out, .dtype = PYPTO_INT64, .ndim = 2, .shape = {2, 1}, .stride = {1, 1}};
    return pypto_worker_run(w, program, arguments, 3);
}

static void expect(pypto_worker *w, pypto_program *program, int64_t value)
{
    int64_t out[2] = {-1, -1};
    pypto_status status = run(w, program, out, false, 64);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("%s", pypto_status_text(&status));
    assert_int_equal(out[0], value);
    assert_int_equal(out[1], value);
}

static void expect_failure(pypto_worker *w, pypto_program *program, bool fails, int64_t bytes,
                           const char *words)
{
    int64_t out[2];
    pypto_status status = run(w, program, out, fails, bytes);
    char *text = pypto_status_text(&status);
    if (status.kind == PYPTO_ERROR_NONE || strstr(text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, text);
    free(text);
    pypto_status_clear(&status);
}

static pypto_program *open_table(void)
{
    pypto_program *program = NULL;
    pypto_status status = pypto_program_from_table(&table, &program);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    return program;
}

static void test_windows_are_cleared_or_kept(void **state)
{
    (void)state;
    static const pypto_persistence kinds[] = {PYPTO_PERSISTENT_OFF, PYPTO_PERSISTENT_RESET,
                                              PYPTO_PERSISTENT_KEEP};
    pypto_program *program = open_table();
    for (int s = 0; s < START_COUNT; ++s)
        for (int k = 0; k < 3; ++k) {
            pypto_worker *w = make(starts[s], kinds[k]);
            for (int64_t call = 1; call <= 5; ++call)
                expect(w, program, kinds[k] == PYPTO_PERSISTENT_KEEP ? call : 1);
            assert_int_equal(pypto_worker_domain_count(w),
                             kinds[k] == PYPTO_PERSISTENT_OFF ? 5 : 1);
            pypto_worker_close(w);
        }
    pypto_program_release(program);
}

static void test_programs_have_windows_of_their_own(void **state)
{
    (void)state;
    pypto_program *one = open_table(), *other = open_table();
    pypto_worker *w = make(PYPTO_START_THREAD, PYPTO_PERSISTENT_KEEP);
    expect(w, one, 1);
    expect(w, one, 2);
    expect(w, other, 1);
    expect(w, one, 3);
    assert_int_equal(pypto_worker_domain_count(w), 2);
    pypto_worker_close(w);
    pypto_program_release(one);
    pypto_program_release(other);
}

static void test_a_failed_call_leaves_dirty_windows(void **state)
{
    (void)state;
    pypto_program *program = open_table();
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *w = make(starts[s], PYPTO_PERSISTENT_KEEP);
        expect(w, program, 1);
        expect_failure(w, program, true, 64, "as asked");
        expect_failure(w, program, false, 64,
                       "has left the persistent windows 'counts', 'bells' of program 'persistent'");
        pypto_status status = pypto_worker_reset_windows(w);
        assert_int_equal(status.kind, PYPTO_ERROR_NONE);
        expect(w, program, 1);
        expect(w, program, 2);
        pypto_worker_close(w);

        w = make(starts[s], PYPTO_PERSISTENT_RESET);
        expect(w, program, 1);
        expect_failure(w, program, true, 64, "as asked");
        expect(w, program, 1);
        pypto_worker_close(w);
    }
    pypto_program_release(program);
}

static void test_a_call_that_fails_before_its_windows_leaves_none(void **state)
{
    (void)state;
    pypto_program *program = open_table();
    pypto_worker *w = make(PYPTO_START_THREAD, PYPTO_PERSISTENT_KEEP);
    expect_failure(w, program, false, -1, "window buffer 'counts' has -1 bytes");
    expect(w, program, 1);
    expect(w, program, 2);
    pypto_worker_close(w);
    pypto_program_release(program);
}

/* Whichever allocation fails, of the host or of a rank that is a thread: there is no set, or a whole one. */
static void test_sets_that_find_no_memory(void **state)
{
    (void)state;
    enum { ALLOCATIONS = 40 };
    pypto_program *program = open_table();
    for (int s = 0; s < START_COUNT; ++s) {
        for (int n = 1; n <= ALLOCATIONS; ++n) {
            pypto_worker *w = NULL;
            alloc_fail_at(n);
            pypto_status status = try_to_make(starts[s], PYPTO_PERSISTENT_RESET, &w);
            alloc_fail_at(0);
            assert_int_equal(status.kind == PYPTO_ERROR_NONE, w != NULL);
            assert_true(n > 1 || w == NULL);
            pypto_status_clear(&status);
            if (w != NULL &&
                starts[s] == PYPTO_START_THREAD) /* a process may still be about to fail */
                expect(w, program, 1);
            pypto_worker_close(w);
        }
    }
    pypto_program_release(program);
}

static void test_sizes_do_not_change(void **state)
{
    (void)state;
    pypto_program *program = open_table();
    pypto_worker *w = make(PYPTO_START_THREAD, PYPTO_PERSISTENT_RESET);
    expect(w, program, 1);
    expect_failure(w, program, false, 128, "has a changed specification: 128 bytes on 2 devices");
    expect(w, program, 1);
    pypto_worker_close(w);

    /* Nothing was dispatched, and so they hold what they held. */
    w = make(PYPTO_START_THREAD, PYPTO_PERSISTENT_KEEP);
    expect(w, program, 1);
    expect_failure(w, program, false, 128, "has a changed specification: 128 bytes on 2 devices");
    expect(w, program, 2);
    pypto_worker_close(w);
    pypto_program_release(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_are_cleared_or_kept),
        cmocka_unit_test(test_programs_have_windows_of_their_own),
        cmocka_unit_test(test_a_failed_call_leaves_dirty_windows),
        cmocka_unit_test(test_a_call_that_fails_before_its_windows_leaves_none),
        cmocka_unit_test(test_sets_that_find_no_memory),
        cmocka_unit_test(test_sizes_do_not_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
