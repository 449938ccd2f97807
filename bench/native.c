/* Figures of the runtime alone, without Python: round trip of an empty dispatch (hot, and after
 * idleness), in-kernel barrier, in-kernel mesh allreduce of 256 floats; each with the placement
 * canary beside it.
 *
 *     native [ranks [rounds]]      one line per figure: name, unit, median, min, max, rounds
 */
#include "canary.h"

#include <pypto/pypto.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLOATS 256
#define MAX_ROUNDS 1001

/* ---- kernels: args are data window, signal window, repetitions, result cell on the host ---- */

enum { DATA, SIGNAL, COUNT, TIME };

static void barrier(pld_core *core, const pld_tensor *signal, const pld_comm *ctx, int64_t round)
{
    for (int32_t peer = 0; peer < ctx->nranks; ++peer)
        if (peer != ctx->rank)
            pld_notify(core, signal, peer, PLD_AT(ctx->rank, 0), 1, PLD_ATOMIC_ADD);
    for (int32_t source = 0; source < ctx->nranks; ++source)
        if (source != ctx->rank)
            pld_wait(core, signal, PLD_AT(source, 0), round, PLD_GE);
}

static void store_time(pld_core *core, const pld_arg *args, double microseconds)
{
    float each = (float)(microseconds / (double)args[COUNT].integer);
    pld_store(core, &each, args[TIME].tensor, PLD_AT(0), PLD_EXTENTS(1));
}

static void barrier_kernel(pld_core *core, const pld_arg *args)
{
    const pld_comm *ctx = pld_get_comm(core, args[SIGNAL].tensor);
    barrier(core, args[SIGNAL].tensor, ctx, 1);
    double start = now_us();
    for (int64_t i = 0; i < args[COUNT].integer; ++i)
        barrier(core, args[SIGNAL].tensor, ctx, i + 2);
    store_time(core, args, now_us() - start);
}

/* Mesh allreduce as the quick start does it: store, barrier, add every peer's row, barrier before
 * reuse. */
static void allreduce_kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *data = args[DATA].tensor;
    const pld_comm *ctx = pld_get_comm(core, data);
    float *acc = pld_scratch(core);
    float *row = acc + FLOATS;
    for (int i = 0; i < FLOATS; ++i)
        acc[i] = 1.0f;
    barrier(core, args[SIGNAL].tensor, ctx, 1);
    double start = now_us();
    for (int64_t round = 0; round < args[COUNT].integer; ++round) {
        pld_store(core, acc, data, PLD_AT(0, 0), PLD_EXTENTS(1, FLOATS));
        barrier(core, args[SIGNAL].tensor, ctx, 2 * round + 2);
        for (int32_t peer = 0; peer < ctx->nranks; ++peer) {
            if (peer == ctx->rank)
                continue;
            pld_remote_load(core, row, data, peer, PLD_AT(0, 0), PLD_EXTENTS(1, FLOATS));
            for (int i = 0; i < FLOATS; ++i)
                acc[i] += row[i];
        }
        barrier(core, args[SIGNAL].tensor, ctx, 2 * round + 3);
        for (int i = 0; i < FLOATS; ++i)
            acc[i] = acc[i] > 1e30f ? 1.0f : acc[i];
    }
    store_time(core, args, now_us() - start);
}

static void empty_kernel(pld_core *core, const pld_arg *args)
{
    (void)core;
    (void)args;
}

#define CORE(variable, code)                                       \
    static const pld_function variable = {.name = #variable,       \
                                          .file = __FILE__,        \
                                          .plane = PLD_PLANE_CORE, \
                                          .run = (code),           \
                                          .nparams = 4,            \
                                          .params = params,        \
                                          .scratch_bytes = 2 * FLOATS * 4}
#define CHIP(variable, kernel)                                      \
    static void variable##_run(pld_core *core, const pld_arg *args) \
    {                                                               \
        pld_submit(core, &(kernel), args, 4);                       \
    }                                                               \
    static const pld_function variable = {.name = #variable,        \
                                          .file = __FILE__,         \
                                          .plane = PLD_PLANE_CHIP,  \
                                          .run = variable##_run,    \
                                          .nparams = 4,             \
                                          .params = params}

static const pld_param params[] = {
    {.name = "data", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "signal", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "count", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "time", .kind = PLD_PARAM_TENSOR, .direction = PLD_OUT, .world_dim = -1},
};

CORE(empty_core, empty_kernel);
CORE(barrier_core, barrier_kernel);
CORE(allreduce_core, allreduce_kernel);
CHIP(empty_chip, empty_core);
CHIP(barrier_chip, barrier_core);
CHIP(allreduce_chip, allreduce_core);

static void dispatch(pld_host *host, const pld_arg *args, const pld_function *wrapper)
{
    const int64_t ranks = pld_world_size(host);
    pld_buffer data_buf = pld_alloc_window(host, 0, FLOATS * 4, pld_all_devices(host));
    pld_buffer signal_buf = pld_alloc_window(host, 1, ranks * 4, pld_all_devices(host));
    pld_tensor data = pld_window_view(host, data_buf, PYPTO_FP32, 2, PLD_EXTENTS(1, FLOATS));
    pld_tensor signal = pld_window_view(host, signal_buf, PYPTO_INT32, 2, PLD_EXTENTS(ranks, 1));
    for (int64_t r = 0; r < ranks; ++r) {
        pld_tensor time = pld_index(host, args[0].tensor, 1, PLD_AT(r));
        pld_dispatch(host, r, wrapper,
                     PLD_ARGS(PLD_TENSOR(&data), PLD_TENSOR(&signal), PLD_INT(args[1].integer),
                              PLD_TENSOR(&time)),
                     4);
    }
}

static void empty_host(pld_host *host, const pld_arg *args)
{
    dispatch(host, args, &empty_chip);
}
static void barrier_host(pld_host *host, const pld_arg *args)
{
    dispatch(host, args, &barrier_chip);
}
static void allreduce_host(pld_host *host, const pld_arg *args)
{
    dispatch(host, args, &allreduce_chip);
}

static const char *const dims[] = {"NR"};
static const pld_param host_params[] = {
    {.name = "times",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_OUT,
     .dtype = PYPTO_FP32,
     .ndim = 2,
     .shape = {-1, 1},
     .world_dim = 0},
    {.name = "count", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_buffer_info buffers[] = {{"data_buf", 0, PLD_NO_COLLECTIVES},
                                          {"signal_buf", 0, PLD_NO_COLLECTIVES}};

#define PROGRAM(variable, code)                                             \
    static const pld_function variable##_host = {.name = #variable,         \
                                                 .file = __FILE__,          \
                                                 .plane = PLD_PLANE_HOST,   \
                                                 .run_host = (code),        \
                                                 .nparams = 2,              \
                                                 .params = host_params,     \
                                                 .ndims = 1,                \
                                                 .dims = dims};             \
    static const pld_function *const variable##_functions[] = {             \
        &empty_core,   &barrier_core,   &allreduce_core, &empty_chip,       \
        &barrier_chip, &allreduce_chip, &variable##_host};                  \
    static const pld_program variable = {.abi = PLD_ABI,                    \
                                         .size = sizeof(pld_program),       \
                                         .name = #variable,                 \
                                         .nfunctions = 7,                   \
                                         .host = 6,                         \
                                         .functions = variable##_functions, \
                                         .nbuffers = 2,                     \
                                         .buffers = buffers}

PROGRAM(empty_program, empty_host);
PROGRAM(barrier_program, barrier_host);
PROGRAM(allreduce_program, allreduce_host);

/* ---- measuring ---- */

static pypto_worker *worker;
static int32_t ranks = 2;
static float times[PYPTO_MAX_RANKS];

static void die(pypto_status status)
{
    fprintf(stderr, "%s\n", pypto_status_text(&status));
    exit(1);
}

static void call(pypto_program *program, int64_t count)
{
    pypto_argument args[2] = {{.kind = PLD_ARG_TENSOR}, {.kind = PLD_ARG_INT, .integer = count}};
    args[0].tensor = (pypto_tensor){
        .data = times, .dtype = PYPTO_FP32, .ndim = 2, .shape = {ranks, 1}, .stride = {1, 1}};
    pypto_status status = pypto_worker_run(worker, program, args, 2);
    if (status.kind != PYPTO_ERROR_NONE)
        die(status);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    printf("%s\tus\t%.3f\t%.3f\t%.3f\t%d\n", name, values[count / 2], values[0], values[count - 1],
           count);
    fflush(stdout);
}

static pypto_program *load(const pld_program *table)
{
    pypto_program *program = NULL;
    pypto_status status = pypto_program_from_table(table, &program);
    if (status.kind != PYPTO_ERROR_NONE)
        die(status);
    return program;
}

static void measure_dispatch(pypto_program *program, int rounds, double *values)
{
    for (int i = 0; i < 50; ++i)
        call(program, 1);
    for (int i = 0; i < rounds; ++i) {
        double start = now_us();
        call(program, 1);
        values[i] = now_us() - start;
    }
    report("dispatch_hot", values, rounds);
    const int idle_rounds = rounds < 51 ? rounds : 51;
    for (int i = 0; i < idle_rounds; ++i) {
        usleep(20000);
        double start = now_us();
        call(program, 1);
        values[i] = now_us() - start;
    }
    report("dispatch_after_20ms_idle", values, idle_rounds);
}

static void measure_kernel(const char *name, pypto_program *program, int64_t count, int rounds,
                           double *values)
{
    call(program, count);
    for (int i = 0; i < rounds; ++i) {
        call(program, count);
        values[i] = times[0];
    }
    report(name, values, rounds);
}

int main(int argc, char **argv)
{
    ranks = argc > 1 ? atoi(argv[1]) : 2;
    int rounds = argc > 2 ? atoi(argv[2]) : 101;
    if (ranks < 1 || ranks > PYPTO_MAX_RANKS || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: %s [ranks [rounds up to %d]]\n", argv[0], MAX_ROUNDS);
        return 2;
    }
    static double values[MAX_ROUNDS];
    int32_t ids[PYPTO_MAX_RANKS];
    for (int32_t r = 0; r < ranks; ++r)
        ids[r] = r;
    printf("canary_before\tns\t%.1f\n", canary_ns());
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    options.device_ids = ids;
    options.device_count = ranks;
    double start = now_us();
    pypto_status status = pypto_worker_create(&options, &worker);
    if (status.kind != PYPTO_ERROR_NONE)
        die(status);
    printf("workers_up_fork\tus\t%.1f\n", now_us() - start);
    pypto_program *empty = load(&empty_program);
    pypto_program *barriers = load(&barrier_program);
    pypto_program *allreduces = load(&allreduce_program);
    measure_dispatch(empty, rounds, values);
    const int kernel_rounds = rounds < 31 ? rounds : 31;
    measure_kernel("barrier", barriers, ranks > 2 ? 1000 : 10000, kernel_rounds, values);
    measure_kernel("mesh_allreduce_256_fp32", allreduces, ranks > 2 ? 500 : 5000, kernel_rounds,
                   values);
    pypto_program_release(empty);
    pypto_program_release(barriers);
    pypto_program_release(allreduces);
    pypto_worker_close(worker);
    printf("canary_after\tns\t%.1f\n", canary_ns());
    return 0;
}
