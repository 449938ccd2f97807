/* Predicates of tasks, from C: every comparison in every element type that has numbers, read when the task could
 * start and not when it is submitted; blocks; and what is refused. */
#include <pypto/pypto.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker_sets.h"

enum { VALUES = 5, COMPARES = PLD_GREATER_EQUAL + 1, BLOCKS = 3 };

/* How many runs of a kernel each (value, comparison) has had. */
static int32_t runs[VALUES][COMPARES];

/* ---- kernels ---- */

static bool is_float(int32_t dtype)
{
    return dtype == PYPTO_FP32 || dtype == PYPTO_FP16 || dtype == PYPTO_BF16;
}

/* What is compared: numbers around the limit, and those at the end of the type's range. */
static double float_value(int64_t i)
{
    static const double values[VALUES] = {0.5, 1.0, 1.5, -INFINITY, NAN};
    return values[i];
}

static int64_t int_value(int64_t i)
{
    static const int64_t values[VALUES] = {0, 1, 2, -1, INT64_MIN};
    return values[i];
}

/* tested: fills it, but not at once. */
static void fill_kernel(pld_core *core, const pld_arg *args)
{
    for (int i = 0; i < 1000; ++i)
        pld_poll(core);
    for (int64_t i = 0; i < VALUES; ++i) {
        if (is_float(args[0].tensor->dtype))
            pld_write_float(core, args[0].tensor, PLD_AT(i), (float)float_value(i));
        else
            pld_write_int(core, args[0].tensor, PLD_AT(i), int_value(i));
    }
}

/* runs, value, comparison: counts a run. */
static void count_kernel(pld_core *core, const pld_arg *args)
{
    const int64_t *at = PLD_AT(args[1].integer, args[2].integer);
    pld_write_int(core, args[0].tensor, at, pld_read_int(core, args[0].tensor, at) + 1);
}

#define SCALAR(n)                                              \
    {                                                          \
        .name = (n), .kind = PLD_PARAM_SCALAR, .world_dim = -1 \
    }
#define TENSOR(n)                                                                      \
    {                                                                                  \
        .name = (n), .kind = PLD_PARAM_TENSOR, .direction = PLD_INOUT, .world_dim = -1 \
    }
#define FUNCTION(variable, where, code, parameters)                                             \
    static const pld_function variable = {.name = #variable,                                    \
                                          .file = "predicates.c",                               \
                                          .line = 1,                                            \
                                          .plane = (where),                                     \
                                          .run = (code),                                        \
                                          .nparams = sizeof(parameters) / sizeof *(parameters), \
                                          .params = (parameters)}

static const pld_param fill_params[] = {TENSOR("tested")};
static const pld_param count_params[] = {TENSOR("runs"), SCALAR("value"), SCALAR("comparison")};
FUNCTION(fill, PLD_PLANE_CORE, fill_kernel, fill_params);
FUNCTION(count, PLD_PLANE_CORE, count_kernel, count_params);

/* runs, dtype, limit, index, blocks: the index is that of the value; not negative: of one value alone. */
static void wrapper(pld_core *core, const pld_arg *args)
{
    const int64_t only = args[3].integer;
    const pld_tensor tested =
        pld_create_tensor(core, (int32_t)args[1].integer, 1, PLD_EXTENTS(VALUES), 0);
    if (only < 0)
        pld_submit(core, &fill, PLD_ARGS(PLD_TENSOR(&tested)), 1);
    for (int64_t value = 0; value < VALUES; ++value) {
        for (int64_t compare = 0; compare < COMPARES; ++compare) {
            const pld_predicate predicate = {&tested, only < 0 ? &value : &only,
                                             (pld_compare)compare, args[2].integer};
            pld_submit_with(
                core, &count, PLD_ARGS(args[0], PLD_INT(value), PLD_INT(compare)), 3,
                &(pld_submit_options){.predicate = &predicate, .blocks = args[4].integer});
        }
    }
}

static const pld_param wrapper_params[] = {TENSOR("runs"), SCALAR("dtype"), SCALAR("limit"),
                                           SCALAR("only"), SCALAR("blocks")};
FUNCTION(chip, PLD_PLANE_CHIP, wrapper, wrapper_params);

static void host_function(pld_host *host, const pld_arg *args)
{
    pld_dispatch(host, 0, &chip, args, 5);
}

static const pld_param host_params[] = {{.name = "runs",
                                         .kind = PLD_PARAM_TENSOR,
                                         .direction = PLD_INOUT,
                                         .dtype = PYPTO_INT32,
                                         .ndim = 2,
                                         .shape = {VALUES, COMPARES},
                                         .world_dim = -1},
                                        SCALAR("dtype"),
                                        SCALAR("limit"),
                                        SCALAR("only"),
                                        SCALAR("blocks")};
static const pld_function host_entry = {.name = "host",
                                        .file = "predicates.c",
                                        .plane = PLD_PLANE_HOST,
                                        .run_host = host_function,
                                        .nparams = 5,
                                        .params = host_params};
static const pld_function *const functions[] = {&fill, &count, &chip, &host_entry};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "predicates",
                                  .nfunctions = 4,
                                  .host = 3,
                                  .functions = functions};

/* ---- running ---- */

static pypto_status run(pypto_worker *worker, pypto_dtype dtype, int64_t limit, int64_t only,
                        int64_t blocks)
{
    memset(runs, 0, sizeof runs);
    pypto_program *program = NULL;
    pypto_status status = pypto_program_from_table(&table, &program);
    pypto_argument arguments[5] = {{.kind = PLD_ARG_TENSOR},
                                   {.kind = PLD_ARG_INT, .integer = dtype},
                                   {.kind = PLD_ARG_INT, .integer = limit},
                                   {.kind = PLD_ARG_INT, .integer = only},
                                   {.kind = PLD_ARG_INT, .integer = blocks}};
    arguments[0].tensor = (pypto_tensor){.data = runs,
                                         .dtype = PYPTO_INT32,
                                         .ndim = 2,
                                         .shape = {VALUES, COMPARES},
                                         .stride = {COMPARES, 1}};
    if (status.kind == PYPTO_ERROR_NONE)
        status = pypto_worker_run(worker, program, arguments, 5);
    pypto_program_release(program);
    return status;
}

#define HOLDS(compare, a, b)                    \
    ((compare) == PLD_EQUAL        ? (a) == (b) \
     : (compare) == PLD_NOT_EQUAL  ? (a) != (b) \
     : (compare) == PLD_LESS       ? (a) < (b)  \
     : (compare) == PLD_LESS_EQUAL ? (a) <= (b) \
     : (compare) == PLD_GREATER    ? (a) > (b)  \
                                   : (a) >= (b))

/* Whether element `i` compares so to the limit in its own type. */
static bool expected(pypto_dtype dtype, int64_t i, int compare, int64_t limit)
{
    const int64_t x = int_value(i);
    switch (dtype) {
    case PYPTO_BOOL:
    case PYPTO_UINT8: return HOLDS(compare, (int64_t)(uint8_t)x, limit);
    case PYPTO_INT8: return HOLDS(compare, (int64_t)(int8_t)x, limit);
    case PYPTO_INT16: return HOLDS(compare, (int64_t)(int16_t)x, limit);
    case PYPTO_UINT16: return HOLDS(compare, (int64_t)(uint16_t)x, limit);
    case PYPTO_INT32: return HOLDS(compare, (int64_t)(int32_t)x, limit);
    case PYPTO_UINT32: return HOLDS(compare, (int64_t)(uint32_t)x, limit);
    case PYPTO_INT64: return HOLDS(compare, x, limit);
    case PYPTO_UINT64: return HOLDS(compare, (__int128)(uint64_t)x, (__int128)limit);
    default: return HOLDS(compare, float_value(i), (double)limit);
    }
}

static void test_every_comparison_of_every_type(void **state)
{
    (void)state;
    static const pypto_dtype dtypes[] = {PYPTO_BOOL,   PYPTO_INT8,  PYPTO_INT16,  PYPTO_INT32,
                                         PYPTO_INT64,  PYPTO_UINT8, PYPTO_UINT16, PYPTO_UINT32,
                                         PYPTO_UINT64, PYPTO_FP16,  PYPTO_BF16,   PYPTO_FP32};
    static const int64_t limits[] = {1, -1, INT64_MAX};
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *worker = make_set(starts[s], 1, 0, NULL);
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; ++d) {
            for (size_t l = 0; l < sizeof limits / sizeof *limits; ++l) {
                const int64_t blocks = l == 1 ? BLOCKS : 1;
                pypto_status status = run(worker, dtypes[d], limits[l], -1, blocks);
                if (status.kind != PYPTO_ERROR_NONE)
                    fail_msg("%s", pypto_status_text(&status));
                for (int i = 0; i < VALUES; ++i)
                    for (int c = 0; c < COMPARES; ++c)
                        if (runs[i][c] != (expected(dtypes[d], i, c, limits[l]) ? blocks : 0))
                            fail_msg("%s, value %d, comparison %d, limit %lld: %d runs",
                                     pypto_dtype_name(dtypes[d]), i, c, (long long)limits[l],
                                     (int)runs[i][c]);
            }
        }
        pypto_worker_close(worker);
    }
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        pypto_dtype dtype;
        int64_t index;
        const char *words;
    } cases[] = {
        {PYPTO_INT32, VALUES, "a predicate of [1] at [5] leaves"},
        {PYPTO_INT32, INT64_MAX, "a predicate of [1] at [9223372036854775807] leaves"},
        {PYPTO_FP8E5M2, 0, "a predicate compares integers, BOOL or floats"},
        {PYPTO_UINT4, 0, "is of uint4, which is for storage only"},
    };
    pypto_worker *worker = make_set(PYPTO_START_THREAD, 1, 0, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        pypto_status status = run(worker, cases[i].dtype, 0, cases[i].index, 1);
        char *text = pypto_status_text(&status);
        if (status.kind == PYPTO_ERROR_NONE || strstr(text, cases[i].words) == NULL)
            fail_msg("'%s' is not in: %s", cases[i].words, text);
        free(text);
        pypto_status_clear(&status);
    }
    pypto_worker_close(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_comparison_of_every_type),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
