/* Events of a recorded call: see trace.h. */
#include "sched/trace.h"

#include <limits.h>

static char *events_of(trace_log *log)
{
    return (char *)(log + 1);
}

int64_t trace_room(const trace_log *log)
{
    if (atomic_load_explicit(&log->dropped, memory_order_relaxed) > 0)
        return 0;
    return log->capacity - atomic_load_explicit(&log->used, memory_order_relaxed);
}

void *trace_begin(trace_log *log, trace_event_kind kind, uint64_t dispatch, int64_t bytes)
{
    bytes = (bytes + 7) & ~(int64_t)7;
    if (bytes > trace_room(log) || bytes > INT32_MAX) {
        const int64_t dropped = atomic_load_explicit(&log->dropped, memory_order_relaxed);
        atomic_store_explicit(&log->dropped, dropped + 1, memory_order_relaxed);
        return NULL;
    }
    trace_event *event =
        (trace_event *)(void *)(events_of(log) +
                                atomic_load_explicit(&log->used, memory_order_relaxed));
    *event = (trace_event){.kind = (int32_t)kind, .bytes = (int32_t)bytes, .dispatch = dispatch};
    return event;
}

void trace_commit(trace_log *log, const void *event)
{
    const int64_t used = atomic_load_explicit(&log->used, memory_order_relaxed);
    /* Release: who reads of a rank that has died what `used` says reads whole events. */
    atomic_store_explicit(&log->used, used + ((const trace_event *)event)->bytes,
                          memory_order_release);
}
