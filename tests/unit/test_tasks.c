/* Tasks of a dispatch and dispatches of a rank: what is independent overlaps, what is not keeps its
 * order, and nothing is held up by a blocked neighbour. Most of these programs would not end if ranks
 * ran their work strictly one after the other. */
#include "base/diag.h"
#include "transport/segment.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker_sets.h"

enum { RANKS = 2, ROWS = 4, N = 64 };

/* ---- kernels ---- */

/* bell, cell, number: waits for bell[cell] >= number. */
static void wait_kernel(pld_core *core, const pld_arg *args)
{
    pld_wait(core, args[0].tensor, PLD_AT(args[1].integer), args[2].integer, PLD_GE);
}
static void defer_kernel(pld_core *core, const pld_arg *args)
{
    pld_defer_wait(core, args[0].tensor, PLD_AT(args[1].integer), args[2].integer, PLD_GE);
}
/* bell, cell, number: adds number to bell[cell] of every other rank of the domain, or its own if there
 * is no other. */
static void ring_kernel(pld_core *core, const pld_arg *args)
{
    const pld_comm *comm = pld_get_comm(core, args[0].tensor);
    for (int32_t peer = 0; peer < comm->nranks; ++peer)
        if (peer != comm->rank || comm->nranks == 1)
            pld_notify(core, args[0].tensor, peer, PLD_AT(args[1].integer), args[2].integer,
                       PLD_ATOMIC_ADD);
}
/* from, to, bell, cell: to = from * 2 + 1, after bell[cell] >= 1 if there is such a cell. */
static void step_kernel(pld_core *core, const pld_arg *args)
{
    if (args[3].integer >= 0)
        pld_wait(core, args[2].tensor, PLD_AT(args[3].integer), 1, PLD_GE);
    int32_t tile[N];
    const int64_t n = args[0].tensor->shape[0];
    pld_load(core, tile, args[0].tensor, PLD_AT(0), PLD_EXTENTS(n));
    for (int64_t i = 0; i < n; ++i)
        tile[i] = (int32_t)((uint32_t)tile[i] * 2 + 1);
    pld_store(core, tile, args[1].tensor, PLD_AT(0), PLD_EXTENTS(n));
}
/* to: to[block] = blocks. */
static void block_kernel(pld_core *core, const pld_arg *args)
{
    pld_write_int(core, args[0].tensor, PLD_AT(pld_block_index(core)), pld_block_count(core));
}
/* from, to, bell, cell, here: reads from[0][...], rings everybody's bell[cell]. */
static void read_and_ring_kernel(pld_core *core, const pld_arg *args)
{
    int32_t tile[N];
    pld_load(core, tile, args[0].tensor, PLD_AT(0, 0),
             PLD_EXTENTS(args[0].tensor->shape[0], args[0].tensor->shape[1]));
    const pld_comm *comm = pld_get_comm(core, args[1].tensor);
    for (int32_t peer = 0; peer < comm->nranks; ++peer)
        pld_notify(core, args[1].tensor, peer, PLD_AT(args[2].integer), 1, PLD_ATOMIC_ADD);
}
/* to, bell, cell: waits for bell[cell] >= 1, then fills `to` with 7. */
static void wait_and_fill_kernel(pld_core *core, const pld_arg *args)
{
    pld_wait(core, args[1].tensor, PLD_AT(args[2].integer), 1, PLD_GE);
    int32_t tile[N];
    for (int i = 0; i < N; ++i)
        tile[i] = 7;
    pld_store(core, tile, args[0].tensor, PLD_AT(0, 0),
              PLD_EXTENTS(args[0].tensor->shape[0], args[0].tensor->shape[1]));
}

#define WINDOW(n)                                                                      \
    {                                                                                  \
        .name = (n), .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1 \
    }
#define SCALAR(n)                                              \
    {                                                          \
        .name = (n), .kind = PLD_PARAM_SCALAR, .world_dim = -1 \
    }
#define TENSOR(n, d)                                                             \
    {                                                                            \
        .name = (n), .kind = PLD_PARAM_TENSOR, .direction = (d), .world_dim = -1 \
    }

static const pld_param bell_params[] = {WINDOW("bell"), SCALAR("cell"), SCALAR("number")};
#define USED(n, u)                                                                                \
    {                                                                                             \
        .name = (n), .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1, .uses = u \
    }
static const pld_param await_params[] = {USED("bell", PLD_AWAITS), SCALAR("cell"),
                                         SCALAR("number")};
static const pld_param notify_params[] = {USED("bell", PLD_NOTIFIES), SCALAR("cell"),
                                          SCALAR("number")};
static const pld_param step_params[] = {TENSOR("from", PLD_IN), TENSOR("to", PLD_OUT),
                                        WINDOW("bell"), SCALAR("cell")};
static const pld_param block_params[] = {TENSOR("to", PLD_OUT)};
static const pld_param read_params[] = {TENSOR("from", PLD_IN), WINDOW("bell"), SCALAR("cell")};
static const pld_param fill_params[] = {TENSOR("to", PLD_OUT), WINDOW("bell"), SCALAR("cell")};

#define FUNCTION(variable, where, code, parameters)                                             \
    static const pld_function variable = {.name = #variable,                                    \
                                          .file = "tasks.c",                                    \
                                          .line = 1,                                            \
                                          .plane = (where),                                     \
                                          .run = (code),                                        \
                                          .nparams = sizeof(parameters) / sizeof *(parameters), \
                                          .params = (parameters)}
#define CORE(variable, parameters) FUNCTION(variable, PLD_PLANE_CORE, variable##_kernel, parameters)

CORE(wait, bell_params);
CORE(defer, bell_params);
CORE(ring, bell_params);
CORE(step, step_params);
FUNCTION(await_only, PLD_PLANE_CORE, wait_kernel, await_params);
FUNCTION(notify_only, PLD_PLANE_CORE, ring_kernel, notify_params);
CORE(block, block_params);
CORE(read_and_ring, read_params);
CORE(wait_and_fill, fill_params);

static pld_task submit_bell(pld_core *core, const pld_function *kernel, const pld_tensor *bell,
                            int64_t cell, int64_t number, const pld_submit_options *options)
{
    return pld_submit_with(core, kernel, PLD_ARGS(PLD_TENSOR(bell), PLD_INT(cell), PLD_INT(number)),
                           3, options);
}

/* ---- wrappers: rows, bell a, bell b, mode ---- */

enum {
    SIGNALS,        /* each rank first waits, then notifies, through one window */
    CROSSED,        /* each rank first waits for what the other's second task rings */
    CHAIN,          /* steps over one row, the first of which waits */
    DEFERRED,       /* many tasks wait for one that is submitted last */
    DEFERRED_STUCK, /* the same, and nobody rings */
    BLOCKS,         /* a task of many blocks, read by the wrapper */
    BLOCKS_STUCK,
    MANUAL,   /* only `after` orders */
    BAD_TASK, /* after a task that does not exist */
    WRAPPER_DEFERS,
    MANY /* more tasks than a wrapper may have pending without running some */
};

static void row_of(pld_tensor *view, const pld_tensor *rows, int64_t row)
{
    *view = *rows;
    view->ndim = 1;
    view->shape[0] = rows->shape[1];
    view->stride[0] = rows->stride[1];
    view->data += row * rows->stride[0] * 4;
}

static void submit_steps(pld_core *core, const pld_tensor *rows, const pld_tensor *bell,
                         int64_t count, int64_t first_cell)
{
    pld_tensor row;
    row_of(&row, rows, 0);
    for (int64_t i = 0; i < count; ++i)
        pld_submit(core, &step,
                   PLD_ARGS(PLD_TENSOR(&row), PLD_TENSOR(&row), PLD_TENSOR(bell),
                            PLD_INT(i == 0 ? first_cell : -1)),
                   4);
}

static void deferred(pld_core *core, const pld_tensor *rows, const pld_tensor *bell, bool ring_it)
{
    enum { GATES = 1000 };
    const pld_submit_options manual = {.manual = true};
    pld_tensor row;
    row_of(&row, rows, 1);
    for (int64_t i = 0; i < GATES; ++i) {
        const pld_task gate = submit_bell(core, &defer, bell, 2, i % 3, &manual);
        const pld_submit_options after_gate = {.manual = true, .after = &gate, .after_count = 1};
        if (i < N)
            pld_submit_with(core, &block, PLD_ARGS(PLD_TENSOR(&row)), 1, &after_gate);
    }
    if (ring_it)
        submit_bell(core, &ring, bell, 2, 2, &manual);
}

static void manual_order(pld_core *core, const pld_tensor *rows, const pld_tensor *a)
{
    pld_tensor row;
    row_of(&row, rows, 0);
    const pld_arg args[] = {PLD_TENSOR(&row), PLD_TENSOR(&row), PLD_TENSOR(a), PLD_INT(0)};
    pld_task ids[3] = {0}; /* 0 is no task */
    for (int32_t i = 0; i < 2; ++i) {
        const pld_submit_options chained = {.manual = true, .after = ids, .after_count = 3};
        ids[i] = pld_submit_with(core, &step, args, 4, &chained);
    }
    const pld_submit_options both = {.after = ids, .after_count = 3};
    const pld_task join = pld_submit_join(core, &both);
    const pld_submit_options after_join = {.manual = true, .after = &join, .after_count = 1};
    pld_submit_with(core, &step, args, 4, &after_join);
    /* Last in the text, first to run: the first step waits for it. */
    submit_bell(core, &ring, a, 0, 1, &(pld_submit_options){.manual = true});
}

static void task_wrapper(pld_core *core, const pld_arg *args)
{
    const pld_tensor *rows = args[0].tensor, *a = args[1].tensor, *b = args[2].tensor;
    const pld_comm *comm = pld_get_comm(core, a);
    pld_tensor row;
    row_of(&row, rows, 1);
    switch (args[3].integer) {
    case SIGNALS:
        submit_bell(core, &await_only, a, 3, 1, NULL);
        submit_bell(core, &notify_only, a, 3, 1, NULL);
        break;
    case CROSSED:
        submit_bell(core, &wait, comm->rank == 0 ? a : b, 0, 1, NULL);
        submit_bell(core, &ring, comm->rank == 0 ? b : a, 0, 1, NULL);
        break;
    case CHAIN:
        submit_steps(core, rows, a, 20, 1);
        submit_bell(core, &ring, b, 0, 1, NULL); /* independent of the chain: they go on together */
        submit_bell(core, &wait, b, 0, 1, NULL);
        pld_await(core, b, true);
        submit_bell(core, &ring, a, 1, 1, &(pld_submit_options){.manual = true});
        break;
    case DEFERRED: deferred(core, rows, a, true); break;
    case DEFERRED_STUCK: deferred(core, rows, a, false); break;
    case BLOCKS:
        pld_submit_with(core, &block, PLD_ARGS(PLD_TENSOR(&row)), 1,
                        &(pld_submit_options){.blocks = N});
        pld_await(core, &row, false);
        for (int64_t i = 0; i < N; ++i)
            if (pld_read_int(core, &row, PLD_AT(i)) != N)
                pld_fail(core, "the wrapper reads before block %d has run", (int)i);
        break;
    case BLOCKS_STUCK: submit_bell(core, &wait, a, 0, 9, &(pld_submit_options){.blocks = 3}); break;
    case MANUAL: manual_order(core, rows, a); break;
    case BAD_TASK: {
        const pld_task none = 5;
        submit_bell(core, &ring, a, 0, 1, &(pld_submit_options){.after = &none, .after_count = 1});
        break;
    }
    case WRAPPER_DEFERS: pld_defer_wait(core, a, PLD_AT(0), 1, PLD_GE); break;
    case MANY: submit_steps(core, rows, a, 20000, -1); break;
    default: break;
    }
}

static const pld_param wrapper_params[] = {TENSOR("rows", PLD_INOUT), WINDOW("a"), WINDOW("b"),
                                           SCALAR("mode")};
FUNCTION(tasks, PLD_PLANE_CHIP, task_wrapper, wrapper_params);

static void wait_and_fill_run(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &wait_and_fill, args, 3);
}
static void read_and_ring_run(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &read_and_ring, args, 3);
}
FUNCTION(fill_chip, PLD_PLANE_CHIP, wait_and_fill_run, fill_params);
FUNCTION(read_chip, PLD_PLANE_CHIP, read_and_ring_run, read_params);

/* ---- host functions ---- */

static void tasks_host(pld_host *host, const pld_arg *args)
{
    const int64_t ranks = pld_world_size(host);
    const pld_buffer a_buf = pld_alloc_window(host, 0, 16, pld_all_devices(host));
    const pld_buffer b_buf = pld_alloc_window(host, 1, 16, pld_all_devices(host));
    const pld_tensor a = pld_window_view(host, a_buf, PYPTO_INT32, 1, PLD_EXTENTS(4));
    const pld_tensor b = pld_window_view(host, b_buf, PYPTO_INT32, 1, PLD_EXTENTS(4));
    for (int64_t r = 0; r < ranks; ++r) {
        const pld_tensor rows = pld_index(host, args[0].tensor, 1, PLD_AT(r));
        pld_dispatch(host, r, &tasks,
                     PLD_ARGS(PLD_TENSOR(&rows), PLD_TENSOR(&a), PLD_TENSOR(&b), args[1]), 4);
    }
}

/* Device 0 is blocked in a domain of both; what releases it reads what device 0 writes in a later,
 * independent dispatch, in columns that interleave with those being written. */
static void dispatches_host(pld_host *host, const pld_arg *args)
{
    const pld_tensor rows = pld_index(host, args[0].tensor, 1, PLD_AT(0));
    const pld_buffer both = pld_alloc_window(host, 0, 16, 3);
    const pld_buffer mine = pld_alloc_window(host, 1, 16, 1);
    const pld_tensor a = pld_window_view(host, both, PYPTO_INT32, 1, PLD_EXTENTS(4));
    const pld_tensor b = pld_window_view(host, mine, PYPTO_INT32, 1, PLD_EXTENTS(4));
    const pld_tensor left = pld_slice(host, &rows, PLD_EXTENTS(ROWS, N / 8), PLD_AT(0, 0));
    const pld_tensor right = pld_slice(host, &rows, PLD_EXTENTS(ROWS, N / 8), PLD_AT(0, N / 2));
    const pld_tensor top = pld_slice(host, &rows, PLD_EXTENTS(ROWS / 2, N / 8), PLD_AT(0, N / 2));
    pld_dispatch(host, 0, &fill_chip, PLD_ARGS(PLD_TENSOR(&left), PLD_TENSOR(&a), PLD_INT(0)), 3);
    pld_dispatch(host, 0, &read_chip, PLD_ARGS(PLD_TENSOR(&right), PLD_TENSOR(&b), PLD_INT(0)), 3);
    pld_dispatch(host, 0, &fill_chip, PLD_ARGS(PLD_TENSOR(&right), PLD_TENSOR(&b), PLD_INT(0)), 3);
    pld_dispatch(host, 1, &read_chip, PLD_ARGS(PLD_TENSOR(&top), PLD_TENSOR(&a), PLD_INT(0)), 3);
}

/* A blocked dispatch and far more independent ones behind it than DONE_WINDOW; the last one would
 * release it. */
static void window_host(pld_host *host, const pld_arg *args)
{
    const int64_t count = args[1].integer;
    const pld_tensor rows = pld_index(host, args[0].tensor, 1, PLD_AT(0));
    const pld_buffer both = pld_alloc_window(host, 0, 16, 3);
    const pld_buffer mine = pld_alloc_window(host, 1, 16, 1);
    const pld_tensor a = pld_window_view(host, both, PYPTO_INT32, 1, PLD_EXTENTS(4));
    const pld_tensor b = pld_window_view(host, mine, PYPTO_INT32, 1, PLD_EXTENTS(4));
    const pld_tensor left = pld_slice(host, &rows, PLD_EXTENTS(ROWS, N / 8), PLD_AT(0, 0));
    const pld_tensor right = pld_slice(host, &rows, PLD_EXTENTS(ROWS, N / 8), PLD_AT(0, N / 2));
    pld_dispatch(host, 0, &fill_chip, PLD_ARGS(PLD_TENSOR(&left), PLD_TENSOR(&a), PLD_INT(0)), 3);
    for (int64_t i = 0; i < count; ++i)
        pld_dispatch(host, 0, &read_chip, PLD_ARGS(PLD_TENSOR(&right), PLD_TENSOR(&b), PLD_INT(0)),
                     3);
    pld_dispatch(host, 0, &fill_chip, PLD_ARGS(PLD_TENSOR(&right), PLD_TENSOR(&b), PLD_INT(0)), 3);
    pld_dispatch(host, 1, &read_chip, PLD_ARGS(PLD_TENSOR(&right), PLD_TENSOR(&a), PLD_INT(0)), 3);
}

static const pld_param host_params[] = {{.name = "rows",
                                         .kind = PLD_PARAM_TENSOR,
                                         .direction = PLD_INOUT,
                                         .dtype = PYPTO_INT32,
                                         .ndim = 3,
                                         .shape = {RANKS, ROWS, N},
                                         .world_dim = -1},
                                        SCALAR("mode")};
static const pld_buffer_info buffers[] = {{"a_buf", 1, PLD_NO_COLLECTIVES},
                                          {"b_buf", 2, PLD_NO_COLLECTIVES}};

#define PROGRAM(variable)                                                             \
    static const pld_function variable##_entry = {.name = #variable,                  \
                                                  .file = "tasks.c",                  \
                                                  .plane = PLD_PLANE_HOST,            \
                                                  .run_host = variable##_host,        \
                                                  .nparams = 2,                       \
                                                  .params = host_params};             \
    static const pld_function *const variable##_functions[] = {&wait,                 \
                                                               &defer,                \
                                                               &ring,                 \
                                                               &step,                 \
                                                               &block,                \
                                                               &read_and_ring,        \
                                                               &wait_and_fill,        \
                                                               &tasks,                \
                                                               &fill_chip,            \
                                                               &read_chip,            \
                                                               &await_only,           \
                                                               &notify_only,          \
                                                               &variable##_entry};    \
    static const pld_program variable##_program = {.abi = PLD_ABI,                    \
                                                   .size = sizeof(pld_program),       \
                                                   .name = #variable,                 \
                                                   .nfunctions = 13,                  \
                                                   .host = 12,                        \
                                                   .functions = variable##_functions, \
                                                   .nbuffers = 2,                     \
                                                   .buffers = buffers}

PROGRAM(tasks);
PROGRAM(dispatches);
PROGRAM(window);

/* ---- running ---- */

static int32_t rows[RANKS][ROWS][N];

static pypto_status run(pypto_worker *worker, const pld_program *table, int64_t mode)
{
    memset(rows, 0, sizeof rows);
    pypto_program *program = NULL;
    pypto_status status = pypto_program_from_table(table, &program);
    pypto_argument arguments[2] = {{.kind = PLD_ARG_TENSOR},
                                   {.kind = PLD_ARG_INT, .integer = mode}};
    arguments[0].tensor = (pypto_tensor){.data = rows,
                                         .dtype = PYPTO_INT32,
                                         .ndim = 3,
                                         .shape = {RANKS, ROWS, N},
                                         .stride = {ROWS * N, N, 1}};
    if (status.kind == PYPTO_ERROR_NONE)
        status = pypto_worker_run(worker, program, arguments, 2);
    pypto_program_release(program);
    return status;
}

static pypto_worker *make_worker(pypto_start start)
{
    return make_set(start, RANKS, 0, NULL);
}

static void run_well(pypto_worker *worker, const pld_program *table, int64_t mode)
{
    pypto_status status = run(worker, table, mode);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("%s", pypto_status_text(&status));
}

static void run_badly(pypto_worker *worker, int64_t mode, pypto_error_kind kind, const char *words)
{
    pypto_status status = run(worker, &tasks_program, mode);
    char *text = pypto_status_text(&status);
    if (status.kind != kind || strstr(text, words) == NULL)
        fail_msg("expected '%s', got: %s", words, text);
    free(text);
    pypto_status_clear(&status);
    run_well(worker, &tasks_program, CROSSED); /* the set is as good as new */
}

#define EACH_START(worker)                                                   \
    for (int s_ = 0; s_ < START_COUNT; ++s_)                                 \
        for (pypto_worker *worker = make_worker(starts[s_]); worker != NULL; \
             pypto_worker_close(worker), worker = NULL)

static void test_a_blocked_task_holds_up_no_independent_one(void **state)
{
    (void)state;
    EACH_START(worker)
    for (int i = 0; i < 50; ++i) {
        run_well(worker, &tasks_program, CROSSED);
        run_well(worker, &tasks_program, SIGNALS);
    }
}

static void test_tasks_on_the_same_memory_keep_their_order(void **state)
{
    (void)state;
    EACH_START(worker)
    {
        run_well(worker, &tasks_program, CHAIN);
        for (int r = 0; r < RANKS; ++r)
            for (int i = 0; i < N; ++i)
                assert_int_equal(rows[r][0][i], (1 << 20) - 1);
        run_well(worker, &tasks_program, MANY);
        for (int i = 0; i < N; ++i)
            assert_int_equal(rows[1][0][i], -1);
    }
}

static void test_deferred_waits_release_their_core(void **state)
{
    (void)state;
    EACH_START(worker)
    {
        run_well(worker, &tasks_program, DEFERRED);
        assert_int_equal(rows[0][1][0], 1);
        run_badly(worker, DEFERRED_STUCK, PYPTO_ERROR_DEADLOCK,
                  "is over only after 'a_buf'[2] >= 2, which is 0 (parameter 'bell'), in "
                  "defer at tasks.c:");
        run_badly(worker, DEFERRED_STUCK, PYPTO_ERROR_DEADLOCK, "\n          and 658 more");
    }
}

static void test_blocks_and_a_wrapper_that_reads_them(void **state)
{
    (void)state;
    EACH_START(worker)
    {
        run_well(worker, &tasks_program, BLOCKS);
        for (int i = 0; i < N; ++i)
            assert_int_equal(rows[1][1][i], N);
    }
}

static void test_the_report_names_blocks(void **state)
{
    (void)state;
    EACH_START(worker)
    for (int which = 0; which < 3; ++which) {
        char words[64];
        snprintf(words, sizeof words, "in wait (block %d of 3) at tasks.c:", which);
        run_badly(worker, BLOCKS_STUCK, PYPTO_ERROR_DEADLOCK, words);
    }
}

static void test_manual_tasks_are_ordered_by_their_ids_alone(void **state)
{
    (void)state;
    EACH_START(worker)
    {
        run_well(worker, &tasks_program, MANUAL);
        for (int i = 0; i < N; ++i)
            assert_int_equal(rows[0][0][i], 7);
    }
}

static void test_misuse_is_told(void **state)
{
    (void)state;
    EACH_START(worker)
    {
        run_badly(worker, BAD_TASK, PYPTO_ERROR_DEVICE, "5 is no task of this dispatch");
        run_badly(worker, WRAPPER_DEFERS, PYPTO_ERROR_DEVICE, "a per-device wrapper cannot defer");
    }
}

static void test_a_blocked_dispatch_holds_up_no_independent_one(void **state)
{
    (void)state;
    EACH_START(worker)
    for (int i = 0; i < 50; ++i) {
        run_well(worker, &dispatches_program, 0);
        for (int row = 0; row < ROWS; ++row) {
            assert_int_equal(rows[0][row][0], 7);
            assert_int_equal(rows[0][row][N / 8], 0);
            assert_int_equal(rows[0][row][N / 2], 7);
        }
    }
}

static void test_more_dispatches_behind_a_blocked_one_than_can_be_taken(void **state)
{
    (void)state;
    EACH_START(worker)
    {
        run_well(worker, &window_program, DONE_WINDOW - 10);
        pypto_status status = run(worker, &window_program, DONE_WINDOW + 10);
        assert_int_equal(status.kind, PYPTO_ERROR_DEADLOCK);
        pypto_status_clear(&status);
        run_well(worker, &window_program, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests_[] = {
        cmocka_unit_test(test_a_blocked_task_holds_up_no_independent_one),
        cmocka_unit_test(test_tasks_on_the_same_memory_keep_their_order),
        cmocka_unit_test(test_deferred_waits_release_their_core),
        cmocka_unit_test(test_blocks_and_a_wrapper_that_reads_them),
        cmocka_unit_test(test_the_report_names_blocks),
        cmocka_unit_test(test_manual_tasks_are_ordered_by_their_ids_alone),
        cmocka_unit_test(test_misuse_is_told),
        cmocka_unit_test(test_a_blocked_dispatch_holds_up_no_independent_one),
        cmocka_unit_test(test_more_dispatches_behind_a_blocked_one_than_can_be_taken),
    };
    return cmocka_run_group_tests(tests_, NULL, NULL);
}
