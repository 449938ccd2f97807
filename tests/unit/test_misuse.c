/* Mistakes of C programs against the public API: each is refused with a status that names it, none is read
 * past the end of an array. */
#include "base/diag.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void core_code(pld_core *core, const pld_arg *args)
{
    (void)core;
    (void)args;
}

static const pld_param params[] = {
    {.name = "x",
     .kind = PLD_PARAM_TENSOR,
     .dtype = PYPTO_FP32,
     .ndim = 1,
     .shape = {-1},
     .world_dim = -1},
    {.name = "w", .kind = PLD_PARAM_WINDOW, .world_dim = -1},
    {.name = "n", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const char *const dims[] = {"N"};

static const pld_function kernel = {.name = "kernel",
                                    .file = "t.c",
                                    .plane = PLD_PLANE_CORE,
                                    .run = core_code,
                                    .nparams = 3,
                                    .params = params};

/* What the wrapper and the host function do wrong, set by each test. */
static int submit_mistake;
static int host_mistake;

static void wrapper_code(pld_core *core, const pld_arg *args)
{
    switch (submit_mistake) {
    case 1: pld_submit(core, &kernel, args, 2); break;
    case 2: pld_submit(core, &kernel, args, -1); break;
    case 3: pld_submit(core, &kernel, PLD_ARGS(PLD_INT(1), PLD_INT(1), PLD_INT(1)), 3); break;
    case 4: pld_submit(core, &kernel, PLD_ARGS(args[0], args[0], args[2]), 3); break;
    case 5: pld_submit(core, &kernel, PLD_ARGS(args[0], args[1], args[0]), 3); break;
    case 6: pld_notify(core, args[0].tensor, 0, PLD_AT(0), 1, PLD_SET); break;
    default: pld_submit(core, &kernel, args, 3); break;
    }
}

static const pld_function wrapper = {.name = "wrapper",
                                     .file = "t.c",
                                     .plane = PLD_PLANE_CHIP,
                                     .run = wrapper_code,
                                     .nparams = 3,
                                     .params = params};

static void host_code(pld_host *host, const pld_arg *args)
{
    pld_buffer buffer =
        pld_alloc_window(host, host_mistake == 1 ? 5 : 0, host_mistake == 2 ? -4 : 64,
                         host_mistake == 3   ? 0
                         : host_mistake == 4 ? 8
                                             : 1);
    if (host_mistake == 5)
        pld_alloc_window(host, 0, 64, 1);
    if (host_mistake == 6)
        buffer.index = 77;
    pld_tensor w =
        pld_window_view(host, buffer, host_mistake == 7 ? 99 : PYPTO_INT32,
                        host_mistake == 8 ? 100 : 1, PLD_EXTENTS(host_mistake == 9 ? 17 : 16));
    const pld_tensor *x = args[0].tensor;
    if (host_mistake == 10)
        pld_index(host, x, 2, PLD_AT(0, 0));
    if (host_mistake == 11)
        pld_index(host, x, 1, PLD_AT(-1));
    if (host_mistake == 12)
        pld_slice(host, x, PLD_EXTENTS(2), PLD_AT(INT64_MAX));
    if (host_mistake == 13)
        pld_dispatch(host, 1, &wrapper, PLD_ARGS(PLD_TENSOR(x), PLD_TENSOR(&w), PLD_INT(1)), 3);
    if (host_mistake == 14)
        pld_dispatch(host, 0, &kernel, PLD_ARGS(PLD_TENSOR(x), PLD_TENSOR(&w), PLD_INT(1)), 3);
    if (host_mistake == 15)
        pld_dispatch(host, 0, &wrapper, PLD_ARGS(PLD_TENSOR(x), PLD_INT(1), PLD_INT(1)), 3);
    if (host_mistake == 16)
        pld_host_fail(host, "no %s", "luck");
    pld_dispatch(host, 0, &wrapper, PLD_ARGS(PLD_TENSOR(x), PLD_TENSOR(&w), PLD_INT(1)), 3);
}

static const pld_function host = {.name = "host",
                                  .file = "t.c",
                                  .plane = PLD_PLANE_HOST,
                                  .run_host = host_code,
                                  .nparams = 1,
                                  .params = params,
                                  .ndims = 1,
                                  .dims = dims};
static const pld_function *const functions[] = {&kernel, &wrapper, &host};
static const pld_buffer_info buffers[] = {{"w_buf", 1, PLD_NO_COLLECTIVES}};
static const pld_program good = {.abi = PLD_ABI,
                                 .size = sizeof(pld_program),
                                 .name = "good",
                                 .nfunctions = 3,
                                 .host = 2,
                                 .functions = functions,
                                 .nbuffers = 1,
                                 .buffers = buffers};

static void expect(pypto_status status, diag_code code, const char *word)
{
    assert_int_not_equal(status.kind, PYPTO_ERROR_NONE);
    char *text = pypto_status_text(&status);
    if (strcmp(status.diagnostics->code, diag_lookup(code)->code) != 0 ||
        strstr(text, word) == NULL)
        fail_msg("expected %s with '%s', got: %s", diag_lookup(code)->code, word, text);
    free(text);
    pypto_status_clear(&status);
}

static void refuse_table(pld_program table, const char *word)
{
    pypto_program *program = NULL;
    expect(pypto_program_from_table(&table, &program), DIAG_BAD_PROGRAM, word);
    assert_null(program);
}

static void test_inconsistent_tables_are_refused(void **state)
{
    (void)state;
    pld_program t = good;
    t.abi = 99;
    refuse_table(t, "another version");
    t = good, t.size = 8;
    refuse_table(t, "another version");
    t = good, t.name = NULL;
    refuse_table(t, "name");
    t = good, t.functions = NULL;
    refuse_table(t, "no host function");
    t = good, t.host = -1;
    refuse_table(t, "no host function");
    t = good, t.host = 0;
    refuse_table(t, "no host function");
    t = good, t.buffers = NULL;
    refuse_table(t, "no buffer table");
    t = good, t.nbuffers = -1;
    refuse_table(t, "no buffer table");
    const pld_function *const with_null[] = {&kernel, NULL, &host};
    t = good, t.functions = with_null;
    refuse_table(t, "NULL");
    pld_function f = kernel;
    const pld_function *const with_bad[] = {&f, &wrapper, &host};
    t = good, t.functions = with_bad;
    f.run = NULL;
    refuse_table(t, "no code");
    f = kernel, f.params = NULL;
    refuse_table(t, "no params");
    f = kernel, f.scratch_bytes = -1;
    refuse_table(t, "negative size");
    pld_param p = params[0];
    pld_function h = host;
    h.params = &p;
    const pld_function *const with_host[] = {&kernel, &wrapper, &h};
    t = good, t.functions = with_host;
    p.shape[0] = -5;
    refuse_table(t, "dynamic dimension");
    p = params[0], p.kind = PLD_PARAM_WINDOW;
    refuse_table(t, "is a window");
    p = params[0], p.dtype = 77;
    refuse_table(t, "element type");
    p = params[0], p.ndim = 9;
    refuse_table(t, "dimensions");
}

static void test_bad_options_are_refused(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 0};
    pypto_worker *worker = NULL;
    pypto_worker_options o = PYPTO_WORKER_OPTIONS_INIT;
    expect(pypto_worker_create(&o, &worker), DIAG_BAD_DEVICE_IDS, "0 device ids");
    o.device_count = 1;
    expect(pypto_worker_create(&o, &worker), DIAG_BAD_DEVICE_IDS, "NULL");
    o.device_ids = ids;
    o.device_count = 2;
    expect(pypto_worker_create(&o, &worker), DIAG_BAD_DEVICE_IDS, "distinct");
    o.device_count = 65;
    expect(pypto_worker_create(&o, &worker), DIAG_BAD_DEVICE_IDS, "65");
    o.device_count = 1;
    o.start = (pypto_start)9;
    expect(pypto_worker_create(&o, &worker), DIAG_WORKER_START, "9 is no way");
    o.size = 4;
    expect(pypto_worker_create(&o, &worker), DIAG_BAD_DEVICE_IDS, "size");
    assert_null(worker);
    pypto_worker_close(NULL);
    pypto_program_release(NULL);
}

static void test_mistakes_in_calls_are_refused_and_the_set_goes_on(void **state)
{
    (void)state;
    static const int32_t ids[] = {0};
    pypto_worker_options o = PYPTO_WORKER_OPTIONS_INIT;
    o.device_ids = ids;
    o.device_count = 1;
    o.start = PYPTO_START_THREAD;
    pypto_worker *worker = NULL;
    pypto_program *program = NULL;
    assert_int_equal(pypto_worker_create(&o, &worker).kind, PYPTO_ERROR_NONE);
    assert_int_equal(pypto_program_from_table(&good, &program).kind, PYPTO_ERROR_NONE);
    float x[4] = {0};
    pypto_argument arg = {.kind = PLD_ARG_TENSOR};
    arg.tensor =
        (pypto_tensor){.data = x, .dtype = PYPTO_FP32, .ndim = 1, .shape = {4}, .stride = {1}};

    expect(pypto_worker_run(worker, NULL, &arg, 1), DIAG_BAD_PROGRAM, "NULL");
    expect(pypto_worker_run(worker, program, NULL, 1), DIAG_ARGUMENT_COUNT, "expects 1");
    expect(pypto_worker_run(worker, program, &arg, -1), DIAG_ARGUMENT_COUNT, "got -1");
    pypto_argument bad = arg;
    bad.tensor.data = NULL;
    expect(pypto_worker_run(worker, program, &bad, 1), DIAG_ARGUMENT_TYPE, "no memory");

    static const char *const words[] = {"",
                                        "buffer 5",
                                        "-4 bytes",
                                        "does not have",
                                        "does not have",
                                        "allocated twice",
                                        "buffer 77",
                                        "99 is no element type",
                                        "100 dimensions",
                                        "does not fit",
                                        "2 indices",
                                        "index -1",
                                        "leaves dimension",
                                        "device 1 does not exist",
                                        "not a per-device wrapper",
                                        "'w' of wrapper needs a window",
                                        "no luck"};
    for (host_mistake = 1; host_mistake < (int)(sizeof words / sizeof *words); ++host_mistake)
        expect(pypto_worker_run(worker, program, &arg, 1),
               host_mistake == 9 ? DIAG_WINDOW_TOO_LARGE : DIAG_BAD_DISPATCH, words[host_mistake]);
    host_mistake = 0;
    static const char *const submit_words[] = {"",
                                               "takes 3 arguments, got 2",
                                               "got -1",
                                               "'x' of kernel needs a tensor",
                                               "'w' of kernel needs a window",
                                               "'n' of kernel needs a number"};
    for (submit_mistake = 1; submit_mistake < 6; ++submit_mistake)
        expect(pypto_worker_run(worker, program, &arg, 1), DIAG_KERNEL_FAILED,
               submit_words[submit_mistake]);
    submit_mistake = 6;
    expect(pypto_worker_run(worker, program, &arg, 1), DIAG_NO_WINDOW, "'x' is plain memory");
    submit_mistake = 0;
    pypto_status status = pypto_worker_run(worker, program, &arg, 1);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    pypto_program_release(program);
    pypto_worker_close(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inconsistent_tables_are_refused),
        cmocka_unit_test(test_bad_options_are_refused),
        cmocka_unit_test(test_mistakes_in_calls_are_refused_and_the_set_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
