/* A program of a pair by pypto: a set of worker processes for as many ranks as its first argument says, or,
 * when that is "canary", the one-way ns of a flag (canary.h). */
#ifndef BENCH_WORKER_SET_H
#define BENCH_WORKER_SET_H

#include "canary.h"

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

#endif
