/* Tensors of a call: strided, overlapping, negative strides, read-only, expanded; what a program
 * leaves unwritten stays; results land only in the elements of the output. Runs a small copy
 * program on threads. */
#include "base/diag.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Doubles `count` elements: out[i] = 2 * in[i] for i < count. */
static void double_kernel(pld_core *core, const pld_arg *args)
{
    for (int64_t i = 0; i < args[2].integer; ++i) {
        for (int64_t j = 0; j < args[0].tensor->shape[1]; ++j) {
            int32_t value;
            pld_load(core, &value, args[0].tensor, PLD_AT(i, j), PLD_EXTENTS(1, 1));
            value *= 2;
            pld_store(core, &value, args[1].tensor, PLD_AT(i, j), PLD_EXTENTS(1, 1));
        }
    }
}

static const pld_param params[] = {
    {.name = "in",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_IN,
     .dtype = PYPTO_INT32,
     .ndim = 2,
     .shape = {-1, -2},
     .world_dim = -1},
    {.name = "out",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_OUT,
     .dtype = PYPTO_INT32,
     .ndim = 2,
     .shape = {-1, -2},
     .world_dim = -1},
    {.name = "count", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const char *const dims[] = {"M", "N"};

static const pld_function core_function = {.name = "double",
                                           .file = "t.c",
                                           .plane = PLD_PLANE_CORE,
                                           .run = double_kernel,
                                           .nparams = 3,
                                           .params = params};
static void chip(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &core_function, args, 3);
}
static const pld_function chip_function = {.name = "chip",
                                           .file = "t.c",
                                           .plane = PLD_PLANE_CHIP,
                                           .run = chip,
                                           .nparams = 3,
                                           .params = params};
static void host(pld_host *h, const pld_arg *args)
{
    pld_dispatch(h, 0, &chip_function, args, 3);
}
static const pld_function host_function = {.name = "host",
                                           .file = "t.c",
                                           .plane = PLD_PLANE_HOST,
                                           .run_host = host,
                                           .nparams = 3,
                                           .params = params,
                                           .ndims = 2,
                                           .dims = dims};
static const pld_function *const functions[] = {&core_function, &chip_function, &host_function};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "double",
                                  .nfunctions = 3,
                                  .host = 2,
                                  .functions = functions};

static pypto_worker *worker;
static pypto_program *program;

static int open_worker(void **state)
{
    (void)state;
    static const int32_t ids[] = {7};
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    options.device_ids = ids;
    options.device_count = 1;
    options.start = PYPTO_START_THREAD;
    pypto_status status = pypto_worker_create(&options, &worker);
    if (status.kind == PYPTO_ERROR_NONE)
        status = pypto_program_from_table(&table, &program);
    return status.kind == PYPTO_ERROR_NONE ? 0 : -1;
}

static int close_worker(void **state)
{
    (void)state;
    pypto_program_release(program);
    pypto_worker_close(worker);
    return 0;
}

static pypto_argument matrix(int32_t *data, int64_t rows, int64_t columns, int64_t row_stride,
                             int64_t column_stride)
{
    pypto_argument a = {.kind = PLD_ARG_TENSOR};
    a.tensor = (pypto_tensor){.data = data,
                              .dtype = PYPTO_INT32,
                              .ndim = 2,
                              .shape = {rows, columns},
                              .stride = {row_stride, column_stride}};
    return a;
}

static pypto_status call(pypto_argument in, pypto_argument out, int64_t count)
{
    const pypto_argument args[3] = {in, out, {.kind = PLD_ARG_INT, .integer = count}};
    return pypto_worker_run(worker, program, args, 3);
}

static void call_ok(pypto_argument in, pypto_argument out, int64_t count)
{
    pypto_status status = call(in, out, count);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("%s", pypto_status_text(&status));
}

static void call_fails(pypto_argument in, pypto_argument out, diag_code code, const char *word)
{
    pypto_status status = call(in, out, 1);
    assert_int_not_equal(status.kind, PYPTO_ERROR_NONE);
    assert_string_equal(status.diagnostics->code, diag_lookup(code)->code);
    if (strstr(status.diagnostics->message, word) == NULL)
        fail_msg("'%s' is not in: %s", word, status.diagnostics->message);
    pypto_status_clear(&status);
}

static void test_strided_views_touch_only_their_elements(void **state)
{
    (void)state;
    int32_t in[4 * 10], out[4 * 10];
    for (int i = 0; i < 40; ++i) {
        in[i] = i;
        out[i] = -1;
    }
    /* Columns 1, 4, 7 of in, rows backwards, into columns 0, 2, 4 of out. */
    call_ok(matrix(in + 30 + 1, 4, 3, -10, 3), matrix(out, 4, 3, 10, 2), 4);
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 10; ++j)
            assert_int_equal(out[i * 10 + j],
                             j < 6 && j % 2 == 0 ? 2 * ((3 - i) * 10 + 1 + j / 2 * 3) : -1);
}

static void test_what_is_not_written_stays(void **state)
{
    (void)state;
    int32_t in[12], out[12];
    for (int i = 0; i < 12; ++i) {
        in[i] = i;
        out[i] = 1000 + i;
    }
    call_ok(matrix(in, 4, 3, 3, 1), matrix(out, 4, 3, 3, 1), 2);
    for (int i = 0; i < 12; ++i)
        assert_int_equal(out[i], i < 6 ? 2 * i : 1000 + i);
}

static void test_overlapping_arguments_alias_as_the_callers_do(void **state)
{
    (void)state;
    /* out is in shifted by one row: row i + 1 becomes twice row i, so each row sees the doubled
     * one. */
    int32_t m[5 * 2] = {1, 2};
    call_ok(matrix(m, 4, 2, 2, 1), matrix(m + 2, 4, 2, 2, 1), 4);
    for (int i = 0; i < 5; ++i) {
        assert_int_equal(m[2 * i], 1 << i);
        assert_int_equal(m[2 * i + 1], 2 << i);
    }
    call_ok(matrix(m, 5, 2, 2, 1), matrix(m, 5, 2, 2, 1), 5); /* the very same tensor */
    assert_int_equal(m[0], 2);
    assert_int_equal(m[9], 64);
}

static void test_expanded_inputs_work_and_expanded_outputs_are_refused(void **state)
{
    (void)state;
    int32_t one = 21, out[6] = {0};
    call_ok(matrix(&one, 2, 3, 0, 0), matrix(out, 2, 3, 3, 1), 2);
    for (int i = 0; i < 6; ++i)
        assert_int_equal(out[i], 42);
    call_fails(matrix(out, 2, 3, 3, 1), matrix(&one, 2, 3, 0, 0), DIAG_ARGUMENT_READ_ONLY,
               "overlap");
    call_fails(matrix(out, 2, 3, 3, 1), matrix(out, 2, 3, 1, 1), DIAG_ARGUMENT_READ_ONLY,
               "overlap");
}

static void test_wrong_arguments_are_refused_with_name_and_values(void **state)
{
    (void)state;
    int32_t m[12] = {0};
    pypto_argument in = matrix(m, 2, 3, 3, 1), out = matrix(m + 6, 2, 3, 3, 1);
    pypto_argument bad = out;
    bad.tensor.read_only = true;
    call_fails(in, bad, DIAG_ARGUMENT_READ_ONLY, "'out'");
    bad = out;
    bad.tensor.dtype = PYPTO_FP32;
    call_fails(in, bad, DIAG_ARGUMENT_TYPE, "expects dtype int32, got fp32");
    bad = out;
    bad.tensor.ndim = 1;
    call_fails(in, bad, DIAG_ARGUMENT_TYPE, "expects rank 2, got shape [2] of rank 1");
    bad = matrix(m + 6, 3, 2, 2, 1);
    call_fails(in, bad, DIAG_DIM_MISMATCH, "M of host is 2 in 'in' and 3 in 'out'");
    call_fails((pypto_argument){.kind = PLD_ARG_INT}, out, DIAG_ARGUMENT_TYPE, "must be a tensor");
    pypto_status status = pypto_worker_run(worker, program, &in, 1);
    assert_string_equal(status.diagnostics->code, diag_lookup(DIAG_ARGUMENT_COUNT)->code);
    pypto_status_clear(&status);
    bad = matrix(m, INT64_MAX, 3, INT64_MAX / 2, 1);
    status = call(bad, bad, 1);
    assert_int_equal(status.kind, PYPTO_ERROR_TYPE);
    pypto_status_clear(&status);
}

static void test_empty_tensors_are_fine(void **state)
{
    (void)state;
    int32_t dummy = 5;
    call_ok(matrix(&dummy, 0, 3, 3, 1), matrix(NULL, 0, 3, 3, 1), 0);
    assert_int_equal(dummy, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strided_views_touch_only_their_elements),
        cmocka_unit_test(test_what_is_not_written_stays),
        cmocka_unit_test(test_overlapping_arguments_alias_as_the_callers_do),
        cmocka_unit_test(test_expanded_inputs_work_and_expanded_outputs_are_refused),
        cmocka_unit_test(test_wrong_arguments_are_refused_with_name_and_values),
        cmocka_unit_test(test_empty_tensors_are_fine),
    };
    return cmocka_run_group_tests(tests, open_worker, close_worker);
}
