/* A program of a pair by pypto: a set of worker processes for as many ranks as its first argument says, or,
 * when that is "canary", the one-way ns of a flag (canary.h).
 *
 * The program of the set has a kernel "measure", a wrapper that submits it, and a host function that is called for
 * each cell with HOST_ARGS arguments and dispatches the wrapper to all ranks. */
#ifndef BENCH_WORKER_SET_H
#define BENCH_WORKER_SET_H

#include "pair.h"

#include <pypto/pypto.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct worker_set {
    pypto_worker *worker;
    pypto_program *program;
    int32_t ranks;
} worker_set;

static inline void need(pypto_status status)
{
    if (status.kind == PYPTO_ERROR_NONE)
        return;
    fprintf(stderr, "%s\n", pypto_status_text(&status));
    exit(1);
}

/* Does not return from "canary", nor when there is no number of ranks. */
static inline worker_set start_workers(int argc, char **argv, const pld_program *table)
{
    if (argc == 2 && strcmp(argv[1], "canary") == 0) {
        printf("%.1f\n", canary_ns());
        exit(0);
    }
    worker_set set = {.ranks = argc >= 2 ? atoi(argv[1]) : 0};
    if (set.ranks < 2 || set.ranks > PYPTO_MAX_RANKS) {
        fprintf(stderr, "usage: %s RANKS (2 to %d) [CELL...] | canary\n", argv[0], PYPTO_MAX_RANKS);
        exit(2);
    }
    int32_t ids[PYPTO_MAX_RANKS];
    for (int32_t r = 0; r < set.ranks; ++r)
        ids[r] = r;
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    options.device_ids = ids;
    options.device_count = set.ranks;
    need(pypto_worker_create(&options, &set.worker));
    need(pypto_program_from_table(table, &set.program));
    return set;
}

static inline void stop_workers(worker_set *set)
{
    pypto_program_release(set->program);
    pypto_worker_close(set->worker);
}

enum { HOST_TIMES, HOST_CELL, HOST_WAY, HOST_BYTES, HOST_ARGS };

static const pld_param host_params[HOST_ARGS] = {
    [HOST_TIMES] = {.name = "times",
                    .kind = PLD_PARAM_TENSOR,
                    .direction = PLD_OUT,
                    .dtype = PYPTO_INT64,
                    .ndim = 3,
                    .shape = {-1, 2, BATCHES},
                    .world_dim = 0},
    [HOST_CELL] = {.name = "cell", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    [HOST_WAY] = {.name = "way", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    [HOST_BYTES] = {.name = "bytes", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const char *const host_dims[] = {"NR"};

/* The wrapper and the host function of such a program. */
#define CHIP_FUNCTION(wrapper, parameters)                                           \
    {                                                                                \
        .name = "chip", .file = __FILE__, .plane = PLD_PLANE_CHIP, .run = (wrapper), \
        .nparams = sizeof(parameters) / sizeof *(parameters), .params = (parameters) \
    }
#define HOST_FUNCTION(function)                                                            \
    {                                                                                      \
        .name = "host", .file = __FILE__, .plane = PLD_PLANE_HOST, .run_host = (function), \
        .nparams = HOST_ARGS, .params = host_params, .ndims = 1, .dims = host_dims         \
    }

/* Notes in `times`, the rank's row of HOST_TIMES, when it began and ended a batch. */
static inline void note_batch(pld_core *core, const pld_tensor *times, int64_t batch, int64_t began,
                              int64_t ended)
{
    pld_store(core, &began, times, PLD_AT(0, batch), PLD_EXTENTS(1, 1));
    pld_store(core, &ended, times, PLD_AT(1, batch), PLD_EXTENTS(1, 1));
}

/* One cell: when each batch began on the first rank, and ended on the last. */
static inline batch_times run_cell(const worker_set *set, int64_t cell, int64_t chosen_way,
                                   int64_t bytes)
{
    static batch_times times[PYPTO_MAX_RANKS];
    const pypto_argument args[HOST_ARGS] = {
        [HOST_TIMES] = {.kind = PLD_ARG_TENSOR,
                        .tensor = {.data = times,
                                   .dtype = PYPTO_INT64,
                                   .ndim = 3,
                                   .shape = {set->ranks, 2, BATCHES},
                                   .stride = {(int64_t)2 * BATCHES, BATCHES, 1}}},
        [HOST_CELL] = {.kind = PLD_ARG_INT, .integer = cell},
        [HOST_WAY] = {.kind = PLD_ARG_INT, .integer = chosen_way},
        [HOST_BYTES] = {.kind = PLD_ARG_INT, .integer = bytes}};
    need(pypto_worker_run(set->worker, set->program, args, HOST_ARGS));
    batch_times all = times[0];
    for (int32_t r = 1; r < set->ranks; ++r) {
        for (int batch = 0; batch < BATCHES; ++batch) {
            if (times[r].began[batch] < all.began[batch])
                all.began[batch] = times[r].began[batch];
            if (times[r].ended[batch] > all.ended[batch])
                all.ended[batch] = times[r].ended[batch];
        }
    }
    return all;
}

#endif
