/* Dispatches that read what dispatches on other devices write: the reader starts when every earlier
 * writer of its bytes is complete, writers wait for nobody, and a reader whose writer never ends is
 * part of the deadlock report. */
#include "base/diag.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker_sets.h"

enum { RANKS = 4, N = 1000 };

/* Adds 1 to every element of `from` into `to`, slowly, so that a reader that does not wait sees a
 * part. */
static void next_kernel(pld_core *core, const pld_arg *args)
{
    for (int64_t i = 0; i < N; ++i) {
        int32_t value;
        pld_load(core, &value, args[0].tensor, PLD_AT(i), PLD_EXTENTS(1));
        for (volatile int spin = 0; spin < 200; spin = spin + 1)
            ;
        ++value;
        pld_store(core, &value, args[1].tensor, PLD_AT(i), PLD_EXTENTS(1));
    }
}

/* Waits for a signal that never comes. */
static void stuck_kernel(pld_core *core, const pld_arg *args)
{
    pld_wait(core, args[2].tensor, PLD_AT(0), 1, PLD_GE);
}

static const pld_param params[] = {
    {.name = "from", .kind = PLD_PARAM_TENSOR, .direction = PLD_IN, .world_dim = -1},
    {.name = "to", .kind = PLD_PARAM_TENSOR, .direction = PLD_OUT, .world_dim = -1},
    {.name = "bell", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
};

#define CORE(variable, code)                                       \
    static const pld_function variable = {.name = #variable,       \
                                          .file = "kernels.c",     \
                                          .line = 1,               \
                                          .plane = PLD_PLANE_CORE, \
                                          .run = (code),           \
                                          .nparams = 3,            \
                                          .params = params}
#define CHIP(variable, core_function)                               \
    static void variable##_run(pld_core *core, const pld_arg *args) \
    {                                                               \
        pld_submit(core, &(core_function), args, 3);                \
    }                                                               \
    static const pld_function variable = {.name = #variable,        \
                                          .file = "kernels.c",      \
                                          .line = 1,                \
                                          .plane = PLD_PLANE_CHIP,  \
                                          .run = variable##_run,    \
                                          .nparams = 3,             \
                                          .params = params}

CORE(next, next_kernel);
CORE(stuck, stuck_kernel);
CHIP(next_chip, next);
CHIP(stuck_chip, stuck);

static void dispatch(pld_host *host, int64_t device, const pld_function *wrapper,
                     const pld_tensor *from, const pld_tensor *to, const pld_tensor *bell)
{
    pld_dispatch(host, device, wrapper,
                 PLD_ARGS(PLD_TENSOR(from), PLD_TENSOR(to), PLD_TENSOR(bell)), 3);
}

/* Row k + 1 is row k plus 1, row k made on device k % RANKS: a chain across devices. */
static void chain_host(pld_host *host, const pld_arg *args)
{
    const pld_tensor *rows = args[0].tensor;
    pld_buffer buffer = pld_alloc_window(host, 0, 4, pld_all_devices(host));
    pld_tensor bell = pld_window_view(host, buffer, PYPTO_INT32, 1, PLD_EXTENTS(1));
    for (int64_t k = 0; k + 1 < rows->shape[0]; ++k) {
        pld_tensor from = pld_index(host, rows, 1, PLD_AT(k));
        pld_tensor to = pld_index(host, rows, 1, PLD_AT(k + 1));
        dispatch(host, k % RANKS, &next_chip, &from, &to, &bell);
    }
}

/* Device 1 reads what device 0 never finishes writing. */
static void stuck_host(pld_host *host, const pld_arg *args)
{
    const pld_tensor *rows = args[0].tensor;
    pld_buffer buffer = pld_alloc_window(host, 0, 4, pld_device_range(host, 0, 2));
    pld_tensor bell = pld_window_view(host, buffer, PYPTO_INT32, 1, PLD_EXTENTS(1));
    pld_tensor row0 = pld_index(host, rows, 1, PLD_AT(0));
    pld_tensor row1 = pld_index(host, rows, 1, PLD_AT(1));
    pld_tensor row2 = pld_index(host, rows, 1, PLD_AT(2));
    dispatch(host, 0, &stuck_chip, &row0, &row1, &bell);
    dispatch(host, 1, &next_chip, &row1, &row2, &bell);
}

static const pld_param host_params[] = {{.name = "rows",
                                         .kind = PLD_PARAM_TENSOR,
                                         .direction = PLD_INOUT,
                                         .dtype = PYPTO_INT32,
                                         .ndim = 2,
                                         .shape = {-1, N},
                                         .world_dim = -1}};
static const char *const dims[] = {"ROWS"};
static const pld_buffer_info buffers[] = {{"bell_buf", 1, PLD_NO_COLLECTIVES}};

#define PROGRAM(variable, code)                                                                \
    static const pld_function variable##_host = {.name = #variable,                            \
                                                 .file = "host.c",                             \
                                                 .plane = PLD_PLANE_HOST,                      \
                                                 .run_host = (code),                           \
                                                 .nparams = 1,                                 \
                                                 .params = host_params,                        \
                                                 .ndims = 1,                                   \
                                                 .dims = dims};                                \
    static const pld_function *const variable##_functions[] = {&next, &stuck, &next_chip,      \
                                                               &stuck_chip, &variable##_host}; \
    static const pld_program variable = {.abi = PLD_ABI,                                       \
                                         .size = sizeof(pld_program),                          \
                                         .name = #variable,                                    \
                                         .nfunctions = 5,                                      \
                                         .host = 4,                                            \
                                         .functions = variable##_functions,                    \
                                         .nbuffers = 1,                                        \
                                         .buffers = buffers}

PROGRAM(chain_program, chain_host);
PROGRAM(stuck_program, stuck_host);

static pypto_worker *make_worker(pypto_start start)
{
    return make_set(start, RANKS, 10, NULL);
}

static pypto_status run(pypto_worker *worker, const pld_program *table, int32_t *rows,
                        int64_t count)
{
    pypto_program *program = NULL;
    pypto_status status = pypto_program_from_table(table, &program);
    pypto_argument argument = {.kind = PLD_ARG_TENSOR};
    argument.tensor = (pypto_tensor){
        .data = rows, .dtype = PYPTO_INT32, .ndim = 2, .shape = {count, N}, .stride = {N, 1}};
    if (status.kind == PYPTO_ERROR_NONE)
        status = pypto_worker_run(worker, program, &argument, 1);
    pypto_program_release(program);
    return status;
}

static void test_a_reader_waits_for_the_writer_on_another_device(void **state)
{
    (void)state;
    enum { ROWS = 40 };
    int32_t *rows = calloc((size_t)ROWS * N, sizeof *rows);
    assert_non_null(rows);
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *worker = make_worker(starts[s]);
        for (int32_t i = 0; i < ROWS * N; ++i)
            rows[i] = i < N ? i : -1;
        pypto_status status = run(worker, &chain_program, rows, ROWS);
        if (status.kind != PYPTO_ERROR_NONE)
            fail_msg("%s", pypto_status_text(&status));
        for (int32_t k = 0; k < ROWS; ++k)
            for (int32_t i = 0; i < N; ++i)
                assert_int_equal(rows[k * N + i], i + k);
        pypto_worker_close(worker);
    }
    free(rows);
}

static void test_a_reader_of_an_endless_writer_is_in_the_deadlock_report(void **state)
{
    (void)state;
    int32_t *rows = calloc((size_t)(RANKS + 1) * N, sizeof *rows);
    assert_non_null(rows);
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *worker = make_worker(starts[s]);
        pypto_status status = run(worker, &stuck_program, rows, 3);
        assert_int_equal(status.kind, PYPTO_ERROR_DEADLOCK);
        char *text = pypto_status_text(&status);
        assert_non_null(
            strstr(text, "rank 0 (device 10): waits for 'bell_buf'[0] >= 1, which is 0"));
        assert_non_null(
            strstr(text, "rank 1 (device 11): next_chip waits for a dispatch of rank 0"));
        assert_non_null(strstr(text, "rank 2 (device 12): idle"));
        free(text);
        pypto_status_clear(&status);
        status = run(worker, &chain_program, rows, RANKS + 1);
        assert_int_equal(status.kind, PYPTO_ERROR_NONE);
        pypto_worker_close(worker);
    }
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reader_waits_for_the_writer_on_another_device),
        cmocka_unit_test(test_a_reader_of_an_endless_writer_is_in_the_deadlock_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
