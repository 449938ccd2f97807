/* Records of calls: what ran where and when, what depended on what, what tensors held. Collected by the ranks while
 * the call runs, in memory of their own, and written as files when it is over.
 *
 *     pypto_records records = PYPTO_RECORDS_INIT;
 *     records.directory = "out/dfx_outputs";
 *     records.per_rank = true;
 *     records.swimlane = 4;
 *     pypto_worker_set_records(worker, &records);        of the calls from now on
 *
 * A call that is recorded begins when every call before it is over. One that fails has records up to its failure. */
#ifndef PYPTO_RECORDS_H
#define PYPTO_RECORDS_H

#include <pypto/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pypto_records {
    size_t size; /* sizeof(pypto_records) */
    /* Where files go: made if it does not exist. Neither it nor anything below it is reached through symbolic links. What an earlier call has left there is removed. NULL: there are none,
     * which is an error unless only `times` is asked for. */
    const char *directory;
    /* Whether each dispatch has a folder of its own there, rank<r>/d<k>, for the k-th of that rank in the call, from 0.
     * Those of SubWorkers are in sub<i>/d<k>. Otherwise the files of the first one stand in `directory` itself. */
    bool per_rank;
    /* chip_swimlane_records.json, merged_swimlane_<time>.json, deps.json: 1 has the blocks of tasks, 2 also when they
     * were ready and over, 3 what the scheduler did, 4 when tasks were submitted; 0: none. */
    int32_t swimlane;
    int32_t dump_args; /* args_dump: 1 the arguments that are marked for it, 2 all; 0: none */
    int32_t pmu;       /* pmu.csv: above 0 */
    bool dependencies; /* deps.json */
    bool scope_stats;  /* scope_stats/scope_stats.jsonl */
    bool times;        /* pypto_worker_times() */
    /* Memory that a rank has for its notes of a call; 0: PYPTO_RECORD_BYTES, else 16 MiB (64 with dump_args), less with many ranks. What
     * finds no room is counted, and the files say how much that was. */
    int64_t bytes_per_rank;
} pypto_records;

#define PYPTO_RECORDS_INIT                                                  \
    {                                                                       \
        sizeof(pypto_records), NULL, false, 0, 0, 0, false, false, false, 0 \
    }

/* When a dispatch ran, in nanoseconds of CLOCK_MONOTONIC. */
typedef struct pypto_dispatch_times {
    int32_t rank;
    int32_t index;      /* it is the rank's dispatch number `index` of the call, from 0 */
    const char *name;   /* of its wrapper; valid as long as the program */
    int64_t taken_ns;   /* the rank has seen it */
    int64_t begun_ns;   /* what it depends on is over */
    int64_t wrapper_ns; /* its wrapper has ended */
    int64_t over_ns;    /* all its tasks have; 0: they have not */
} pypto_dispatch_times;

#ifdef __cplusplus
}
#endif
#endif
