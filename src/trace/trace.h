/* The files of a recorded call, from what its ranks have noted (sched/trace.h). The host calls trace_write() when the
 * call is over.
 *
 *   read.c      notes -> dispatches with their tasks      write.c     which files there are, and where
 *   swimlane.c  chip_swimlane_records.json                graph.c     the order among tasks, without detours
 *   chrome.c    merged_swimlane_*.json                    deps.c      deps.json
 *   content.c   args_dump                                 tables.c    the small ones
 *   json.c      numbers, strings, separators
 *
 * Everything lives on one arena. Times in files are nanoseconds since the call began. */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include "base/diag.h"
#include "base/text.h"
#include "base/vec.h"
#include "sched/trace.h"
#include "transport/segment.h"

#include <pypto/records.h>

typedef struct trace_task {
    const event_task *event;
    const int64_t *after; /* ids */
    const trace_arg *args;
} trace_task;

typedef struct trace_dispatch {
    int32_t consumer; /* a rank, or behind those a SubWorker */
    int32_t index;    /* among those of its consumer */
    uint64_t number;
    const event_taken *taken;
    const trace_dep *deps;      /* taken->dep_count */
    const event_begun *begun;   /* NULL: it has not */
    const trace_arg *args;      /* of the wrapper, begun->arg_count */
    const event_over *over;     /* NULL: it is not */
    VEC(trace_task) tasks;      /* by id, from 1 */
    const event_block *wrapper; /* NULL: it has not ended */
    VEC(const event_block *) blocks;
    VEC(const event_scope *) scopes;
    VEC(const event_memory *) memory;
    VEC(const event_content *) contents;
} trace_dispatch;

typedef struct trace_consumer {
    VEC(trace_dispatch *) dispatches;
    VEC(const event_phase *) phases;
    int64_t dropped;
} trace_consumer;

typedef struct trace_run {
    arena *a;
    const pld_program *table;
    const pypto_records *wanted;
    int32_t rank_count;
    int32_t consumer_count;
    trace_consumer consumers[MAX_CONSUMERS];
    int64_t origin_ns;
} trace_run;

/* What the ranks of a call and behind them its SubWorkers have noted; logs[consumer] is NULL for none. */
PYPTO_NODISCARD pypto_status trace_write(const pld_program *table, const pypto_records *wanted,
                                         trace_log *const *logs, int32_t rank_count,
                                         int32_t consumer_count);

/* Makes the directory, and removes what an earlier call has left there. */
PYPTO_NODISCARD pypto_status trace_prepare(const pypto_records *wanted);
/* When dispatches ran, on the heap. */
PYPTO_NODISCARD pypto_status trace_times(const pld_program *table, trace_log *const *logs,
                                         int32_t rank_count, pypto_dispatch_times **times,
                                         int32_t *count);

/* read.c */
void trace_read(trace_run *run, trace_log *const *logs);

/* The dispatch of that number, or NULL: it has not been noted. */
const trace_dispatch *trace_find(const trace_run *run, int64_t consumer, uint64_t number);
/* "rank", or "sub" of a SubWorker; *number: which. */
const char *trace_owner(const trace_run *run, const trace_dispatch *d, int32_t *number);
/* "rank":0,"dispatch":3 */
void trace_add_owner(const trace_run *run, const trace_dispatch *d, text *out);

/* Name of a function of the program, by index; "?" for none. */
const char *trace_function(const trace_run *run, int32_t index);

/* graph.c: an edge of the order among the tasks of a dispatch. */
typedef enum trace_source { SOURCE_EXPLICIT, SOURCE_CREATOR, SOURCE_TENSORMAP } trace_source;
typedef struct trace_edge {
    int32_t earlier; /* indices in tasks */
    int32_t later;
    trace_source source;
    int32_t
        earlier_arg; /* -1: explicit; as many as there are arguments: the element that it tests */
    int32_t later_arg;
    bool covered; /* what the later one uses lies inside of what the earlier one does */
} trace_edge;

/* A piece of memory that tasks of a dispatch use. */
typedef struct trace_buffer {
    int64_t address;
    int64_t bytes;
    int32_t dtype;   /* of what was used first */
    int32_t version; /* of those at this address: which */
    bool created;    /* by the wrapper or a kernel */
    int32_t writer;  /* the first task that writes into it; -1: none */
} trace_buffer;

typedef struct trace_graph {
    VEC(trace_edge) edges;
    VEC(trace_buffer) buffers;
    int32_t **
        arg_buffers; /* [task][argument]: index in buffers, -1: a scalar; the element tested comes last */
} trace_graph;
trace_graph trace_graph_of(const trace_run *run, const trace_dispatch *d);

/* Each adds the text of one file. */
void trace_swimlane(const trace_run *run, const trace_dispatch *d, text *out);
void trace_deps(const trace_run *run, const trace_dispatch *d, const trace_graph *graph, text *out);
void trace_scopes(const trace_run *run, const trace_dispatch *d, text *out);
void trace_pmu(const trace_run *run, const trace_dispatch *d, text *out);
void trace_names(const trace_run *run, text *out);
/* The index; the contents one behind the other go to `content`. */
void trace_contents(const trace_run *run, const trace_dispatch *d, const char *folder, text *out,
                    text *content);

/* chrome.c: a trace of any number of dispatches. */
void trace_chrome_begin(text *out);
void trace_chrome_add(const trace_run *run, const trace_dispatch *d, const trace_graph *graph,
                      text *out);
/* Arrows to dispatches from those that they come after; all that are added. */
void trace_chrome_order(const trace_run *run, text *out);
void trace_chrome_end(text *out);

/* json.c: a string; a separator unless the text ends where a list or object begins; a list of numbers. */
void json_string(text *out, const char *string);
void json_next(text *out);
void json_numbers(text *out, const int64_t *numbers, int32_t count);

/* Time of an event in files. */
static inline long long trace_time(const trace_run *run, int64_t ns)
{
    return ns == 0 ? 0 : (long long)(ns - run->origin_ns);
}

#endif
