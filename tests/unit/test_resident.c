/* Resident memory in calls: in place, on its own rank only, whole or by rows; and that a call which brings it starts
 * nothing when a dispatch is refused. */
#include "base/alloc.h"
#include "base/diag.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker_sets.h"

#define RANKS 3
#define N 4

/* ---- a program: on each rank, y[r] += w[r], with w and y of int32[RANKS, N]; and what it dispatches where ---- */

typedef enum how {
    ROWS,     /* row r on rank r */
    SHIFTED,  /* row r on rank r + 1 */
    TWO_ROWS, /* rows 0 and 1 on rank 0, when all others have been dispatched as they should */
    FAILS,    /* as ROWS, then the host function fails */
    PART      /* the second half of row r on rank r */
} how;

static void kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *w = args[0].tensor, *y = args[1].tensor;
    for (int64_t i = 0; i < w->shape[w->ndim - 1]; ++i) {
        const int64_t at[] = {0, i};
        const int64_t *index = w->ndim == 2 ? at : at + 1;
        pld_write_int(core, y, index, pld_read_int(core, y, index) + pld_read_int(core, w, index));
    }
}

static const pld_param kernel_params[] = {
    {.name = "w", .kind = PLD_PARAM_TENSOR, .direction = PLD_IN, .world_dim = -1},
    {.name = "y", .kind = PLD_PARAM_TENSOR, .direction = PLD_INOUT, .world_dim = -1},
};
static const pld_function kernel_function = {.name = "kernel",
                                             .file = "kernels.c",
                                             .line = 1,
                                             .plane = PLD_PLANE_CORE,
                                             .run = kernel,
                                             .nparams = 2,
                                             .params = kernel_params};

static void wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &kernel_function, args, 2);
}

static const pld_function chip_function = {.name = "chip",
                                           .file = "kernels.c",
                                           .line = 1,
                                           .plane = PLD_PLANE_CHIP,
                                           .run = wrapper,
                                           .nparams = 2,
                                           .params = kernel_params};

static void dispatch(pld_host *host, int64_t device, const pld_tensor *w, const pld_tensor *y)
{
    pld_dispatch(host, device, &chip_function, PLD_ARGS(PLD_TENSOR(w), PLD_TENSOR(y)), 2);
}

static void host_function(pld_host *host, const pld_arg *args)
{
    const how how_ = (how)args[2].integer;
    for (int64_t r = 0; r < RANKS; ++r) {
        pld_tensor w = pld_index(host, args[0].tensor, 1, PLD_AT(r));
        pld_tensor y = pld_index(host, args[1].tensor, 1, PLD_AT(r));
        if (how_ == PART) {
            w = pld_slice(host, &w, PLD_EXTENTS(N / 2), PLD_AT(N / 2));
            y = pld_host_part(host, &y, PLD_AT(N / 2), PLD_EXTENTS(N / 2));
        }
        dispatch(host, how_ == SHIFTED ? (r + 1) % RANKS : r, &w, &y);
    }
    if (how_ == TWO_ROWS) {
        const pld_tensor w = pld_slice(host, args[0].tensor, PLD_EXTENTS(2, N), PLD_AT(0, 0));
        const pld_tensor y = pld_slice(host, args[1].tensor, PLD_EXTENTS(2, N), PLD_AT(0, 0));
        dispatch(host, 0, &w, &y);
    }
    if (how_ == FAILS)
        pld_host_fail(host, "as asked");
}

static const pld_param entry_params[] = {
    {.name = "w",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_IN,
     .dtype = PYPTO_INT32,
     .ndim = 2,
     .shape = {RANKS, N},
     .world_dim = 0},
    {.name = "y",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_INOUT,
     .dtype = PYPTO_INT32,
     .ndim = 2,
     .shape = {RANKS, N},
     .world_dim = 0},
    {.name = "how", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_function host_entry = {.name = "host",
                                        .file = "host.c",
                                        .line = 1,
                                        .plane = PLD_PLANE_HOST,
                                        .run_host = host_function,
                                        .nparams = 3,
                                        .params = entry_params};
static const pld_function *const functions[] = {&kernel_function, &chip_function, &host_entry};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "resident",
                                  .nfunctions = 3,
                                  .host = 2,
                                  .functions = functions};

/* ---- running ---- */

typedef int32_t rows[RANKS][N];

static pypto_worker *set;
static pypto_program *program;

static void begin(pypto_start start)
{
    set = make_set(start, RANKS, 10, NULL);
    pypto_status status = pypto_program_from_table(&table, &program);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
}

static void end(void)
{
    pypto_worker_close(set);
    pypto_program_release(program);
}

/* A block on each rank, holding its row of `from`; in the order of `ranks`. */
static void allocate(const int32_t *ranks, void **blocks, const int32_t (*from)[N])
{
    for (int32_t i = 0; i < RANKS; ++i) {
        pypto_status status = pypto_worker_alloc(set, ranks[i], sizeof *from, &blocks[i]);
        assert_int_equal(status.kind, PYPTO_ERROR_NONE);
        memcpy(blocks[i], from[i], sizeof *from);
    }
}

static pypto_argument tensor(void *data, void *const *row_addresses)
{
    pypto_argument argument = {.kind = PLD_ARG_TENSOR};
    argument.tensor = (pypto_tensor){.data = data,
                                     .dtype = PYPTO_INT32,
                                     .ndim = 2,
                                     .shape = {RANKS, N},
                                     .stride = {N, 1},
                                     .rows = row_addresses};
    return argument;
}

static pypto_status run(pypto_argument w, pypto_argument y, how how_)
{
    const pypto_argument arguments[] = {w, y, {.kind = PLD_ARG_INT, .integer = how_}};
    return pypto_worker_run(set, program, arguments, 3);
}

static void expect_success(pypto_status status)
{
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("%s", pypto_status_text(&status));
}

static void expect_failure(pypto_status status, const char *words)
{
    char *text = pypto_status_text(&status);
    if (status.kind != PYPTO_ERROR_VALUE || strstr(text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, text);
    free(text);
    pypto_status_clear(&status);
}

static const int32_t in_order[] = {0, 1, 2}, rotated[] = {1, 2, 0};
static const rows weights = {{1, 2, 3, 4}, {10, 20, 30, 40}, {100, 200, 300, 400}};
static const rows zeros;

static void check_row(const int32_t *found, const int32_t *expected, int32_t first)
{
    for (int32_t i = 0; i < N; ++i)
        assert_int_equal(found[i], i < first ? 0 : expected[i]);
}

static void test_rows_of_several_ranks(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        begin(starts[s]);
        void *w[RANKS], *y[RANKS], *hole;
        pypto_status status = pypto_worker_alloc(set, 0, 10000, &hole); /* unequal distances */
        expect_success(status);
        allocate(in_order, w, weights);
        expect_success(pypto_worker_free(set, 0, hole));
        allocate(in_order, y, zeros);
        expect_success(run(tensor(NULL, w), tensor(NULL, y), ROWS));
        for (int32_t i = 0; i < RANKS; ++i)
            check_row(y[i], weights[i], 0);
        expect_success(run(tensor(NULL, w), tensor(NULL, y), PART));
        for (int32_t i = 0; i < RANKS; ++i)
            assert_int_equal(((int32_t *)y[i])[N - 1], 2 * weights[i][N - 1]);
        rows host = {{0}}; /* staged, beside rows that are not */
        expect_success(run(tensor(NULL, w), tensor(host, NULL), PART));
        for (int32_t i = 0; i < RANKS; ++i)
            check_row(host[i], weights[i], N / 2);
        end();
    }
}

static void test_rows_in_another_order(void **state)
{
    (void)state;
    begin(PYPTO_START_THREAD);
    void *w[RANKS], *y[RANKS];
    allocate(rotated, w, weights);
    allocate(rotated, y, zeros);
    expect_success(run(tensor(NULL, w), tensor(NULL, y), SHIFTED));
    for (int32_t i = 0; i < RANKS; ++i)
        check_row(y[i], weights[i], 0);
    expect_failure(run(tensor(NULL, w), tensor(NULL, y), ROWS),
                   "row 0 of 'w' is dispatched on rank 0, but is resident on rank 1");
    for (int32_t i = 0; i < RANKS; ++i)
        check_row(y[i], weights[i], 0);
    end();
}

/* Nothing is written, and the set goes on, whatever the reason why the host function does not end well. */
static void test_a_refused_dispatch_starts_nothing(void **state)
{
    (void)state;
    static const struct {
        how how_;
        const char *words;
    } cases[] = {
        {TWO_ROWS, "a dispatch takes rows 0 to 1 of 'w' at once"},
        {FAILS, "as asked"},
        {SHIFTED, "row 0 of 'w' is dispatched on rank 1, but is resident on rank 0"},
    };
    for (int s = 0; s < START_COUNT; ++s) {
        begin(starts[s]);
        void *w[RANKS], *y[RANKS];
        allocate(in_order, w, weights);
        allocate(in_order, y, zeros);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
            expect_failure(run(tensor(NULL, w), tensor(NULL, y), cases[i].how_), cases[i].words);
            for (int32_t r = 0; r < RANKS; ++r)
                check_row(y[r], zeros[r], 0);
        }
        expect_success(run(tensor(NULL, w), tensor(NULL, y), ROWS));
        for (int32_t r = 0; r < RANKS; ++r)
            check_row(y[r], weights[r], 0);
        end();
    }
}

static void test_one_block_is_of_one_rank(void **state)
{
    (void)state;
    begin(PYPTO_START_THREAD);
    void *w;
    rows y = {{0}};
    expect_success(pypto_worker_alloc(set, 1, sizeof weights, &w));
    memcpy(w, weights, sizeof weights);
    expect_failure(run(tensor(w, NULL), tensor(y, NULL), ROWS),
                   "'w' is dispatched on rank 0, but is resident on rank 1");
    expect_success(pypto_worker_free(set, 1, w));
    end();
}

static void test_memory_that_is_not_resident(void **state)
{
    (void)state;
    begin(PYPTO_START_THREAD);
    void *w[RANKS], *y[RANKS];
    rows host = {{0}};
    allocate(in_order, w, weights);
    allocate(in_order, y, zeros);
    void *elsewhere[RANKS] = {host[0], host[1], host[2]}, *twice[RANKS] = {y[0], y[1], y[0]};
    expect_failure(run(tensor(NULL, elsewhere), tensor(NULL, y), ROWS),
                   "argument 'w' of host is not in resident memory");
    expect_failure(run(tensor(NULL, w), tensor(NULL, twice), ROWS),
                   "argument 'y' of host has a row twice");
    pypto_argument strided = tensor(NULL, w);
    strided.tensor.stride[0] = 2 * N;
    expect_failure(run(strided, tensor(NULL, y), ROWS), "argument 'w' of host has rows");
    expect_failure(run(tensor(w[0], NULL), tensor(NULL, y), ROWS), /* larger than its block */
                   "argument 'w' of host is not in resident memory");
    expect_success(pypto_worker_free(set, 1, w[1]));
    expect_failure(run(tensor(NULL, w), tensor(NULL, y), ROWS), "(it was freed)");
    for (int32_t r = 0; r < RANKS; ++r)
        check_row(y[r], zeros[r], 0);
    end();
}

static void test_blocks_in_any_order(void **state)
{
    (void)state;
    begin(PYPTO_START_THREAD);
    void *blocks[20];
    for (int32_t i = 0; i < 20; ++i)
        expect_success(pypto_worker_alloc(set, i % RANKS, 5000 + i, &blocks[i]));
    for (int32_t i = 0; i < 20; i += 2)
        expect_success(pypto_worker_free(set, i % RANKS, blocks[i]));
    for (int32_t i = 0; i < 20; i += 2)
        expect_success(pypto_worker_alloc(set, i % RANKS, 4000 - i, &blocks[i]));
    int64_t committed = 0;
    for (int32_t rank = 0; rank < RANKS; ++rank)
        committed += pypto_worker_committed(set, rank);
    assert_int_equal(committed, 10 * 5010 + 10 * 4000 - 90);
    for (int32_t i = 19; i >= 0; --i) {
        expect_failure(pypto_worker_free(set, i % RANKS, (char *)blocks[i] + 64),
                       "does not begin a block of rank");
        expect_success(pypto_worker_free(set, i % RANKS, blocks[i]));
    }
    end();
}

static void test_blocks_of_ranks(void **state)
{
    (void)state;
    begin(PYPTO_START_THREAD);
    void *block, *none;
    expect_success(pypto_worker_alloc(set, 1, 16, &block));
    assert_int_equal(pypto_worker_committed(set, 0), 0);
    assert_int_equal(pypto_worker_committed(set, 1), 16);
    expect_failure(pypto_worker_free(set, 0, block), "does not begin a block of rank 0");
    expect_success(pypto_worker_free(set, 1, block));
    expect_failure(pypto_worker_free(set, 1, block), "does not begin a block of rank 1");
    assert_int_equal(pypto_worker_committed(set, 1), 0);
    expect_failure(pypto_worker_alloc(set, RANKS, 16, &none), "rank 3 does not exist");
    expect_failure(pypto_worker_alloc(set, -1, 16, &none), "rank -1 does not exist");
    expect_failure(pypto_worker_alloc(set, 0, 0, &none), "a block of 0 bytes");
    assert_null(none);
    end();
}

#ifndef NO_FORK
/* Whichever allocation of the host fails (that of a rank would be its thread's): an error, nothing written, and the
 * set goes on. */
static void test_memory_runs_out(void **state)
{
    (void)state;
    begin(PYPTO_START_FORK);
    void *w[RANKS], *y[RANKS];
    allocate(in_order, w, weights);
    allocate(in_order, y, zeros);
    expect_success(pypto_worker_load(set, program)); /* if that fails, the set is lost */
    int failures = 0;
    for (int n = 1; n < 100; ++n) {
        alloc_fail_at(n);
        pypto_status status = run(tensor(NULL, w), tensor(NULL, y), ROWS);
        alloc_fail_at(0);
        if (status.kind == PYPTO_ERROR_NONE)
            break;
        ++failures;
        assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
        pypto_status_clear(&status);
        for (int32_t r = 0; r < RANKS; ++r)
            check_row(y[r], zeros[r], 0);
    }
    assert_in_range(failures, 3, 50);
    for (int32_t r = 0; r < RANKS; ++r)
        check_row(y[r], weights[r], 0);
    end();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_several_ranks),
        cmocka_unit_test(test_rows_in_another_order),
        cmocka_unit_test(test_a_refused_dispatch_starts_nothing),
        cmocka_unit_test(test_one_block_is_of_one_rank),
        cmocka_unit_test(test_memory_that_is_not_resident),
        cmocka_unit_test(test_blocks_in_any_order),
        cmocka_unit_test(test_blocks_of_ranks),
#ifndef NO_FORK
        cmocka_unit_test(test_memory_runs_out),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
