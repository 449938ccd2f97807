/* What a rank notes of the dispatches and tasks of a call that is recorded (sched/trace.h). All of these are called for
 * a dispatch that has a log only: whoever calls looks at that. */
#ifndef RUNTIME_TRACING_H
#define RUNTIME_TRACING_H

#include "runtime/rank.h"

/* Its record has been taken, at that time; the log is what the record names. */
void tracing_taken(dispatch *d, int64_t taken_ns);
/* Its wrapper is about to start. */
void tracing_begun(dispatch *d);
/* The wrapper has ended. */
void tracing_wrapper_over(dispatch *d);
/* Its call has failed, and what is left of it is dropped. */
void tracing_dropped(dispatch *d);
/* Nothing is left of it; the log may be gone after it has been reported as complete. */
void tracing_over(dispatch *d);

/* A task is in the graph and has not started. */
void tracing_submitted(const task *t, const pld_submit_options *options, int64_t began_ns);
/* Everything before it is over; it is about to run. */
void tracing_starts(const task *t);
/* All its blocks are over, its successors not yet told. */
void tracing_ended(const task *t);
/* A core has ended or, with its call, been dropped. */
void tracing_core(const pld_core *core, bool ended);

/* The function of a SubWorker has run, or failed: the one task of its dispatch. */
void tracing_sub_ran(dispatch *d, int64_t started_ns, int64_t ended_ns, bool failed);

/* Memory for a tensor was taken, and given back. */
void tracing_taken_memory(dispatch *d, const void *block, int64_t bytes);
void tracing_given_memory(dispatch *d, int64_t bytes);

#endif
