/* What ranks note of a call that is recorded: an area of bytes for each rank, which the host makes for the call and
 * reads when it is over (src/trace).
 *
 * A rank appends events to its own area and nobody else writes there, so it never waits. An event that finds no
 * room is counted, and so are all behind it: what is there is everything up to some moment. `used` grows when an event is
 * whole, so the area of a rank that has died can be read too.
 *
 * A call that is not recorded has no area: whatever might note something first looks at a pointer, which is
 * NULL then. */
#ifndef SCHED_TRACE_H
#define SCHED_TRACE_H

#include <pypto/program.h>

#include <assert.h>
#include <stdatomic.h>

/* What is noted, as bits of trace_log.what. */
enum trace_what {
    TRACE_TIMES = 1,   /* dispatches: from when to when */
    TRACE_BLOCKS = 2,  /* blocks of tasks: the same */
    TRACE_TASKS = 4,   /* tasks: their arguments, and the tasks that they are submitted behind */
    TRACE_PHASES = 8,  /* what the scheduler does */
    TRACE_SCOPES = 16, /* what the tasks of a wrapper hold, where a scope begins and ends */
    TRACE_MARKED = 32, /* the content of arguments that are marked for it */
    TRACE_CONTENT = 64 /* of all */
};

typedef struct trace_log {
    int64_t capacity;  /* bytes of events, which follow this header */
    int64_t origin_ns; /* os_now_ns() when the call began */
    uint32_t what;
    uint32_t reserved;
    _Atomic int64_t used;
    _Atomic int64_t dropped; /* events without room */
    int64_t unused[3];
} trace_log;
static_assert(sizeof(trace_log) == 64, "events are aligned");

typedef enum trace_event_kind {
    EVENT_TAKEN,  /* a dispatch has come: event_taken, then trace_dep */
    EVENT_BEGUN,  /* and begins: event_begun, then its arguments */
    EVENT_OVER,   /* and is over: event_over */
    EVENT_TASK,   /* a task was submitted: event_task, then ids, then arguments */
    EVENT_BLOCK,  /* a block of a task, or a wrapper, is over: event_block */
    EVENT_PHASE,  /* event_phase */
    EVENT_SCOPE,  /* event_scope */
    EVENT_MEMORY, /* a tensor was created: event_memory */
    EVENT_CONTENT /* of an argument: event_content, then `bytes_kept` bytes */
} trace_event_kind;

/* Every event begins with this. All times are of os_now_ns(). */
typedef struct trace_event {
    int32_t kind;
    int32_t bytes;     /* of the event, padded to 8 */
    uint64_t dispatch; /* number of the rank's dispatch */
} trace_event;

/* An argument of a wrapper or task. Addresses are those of the rank. */
typedef struct trace_arg {
    int32_t kind; /* pld_arg_kind */
    int32_t dtype;
    int32_t ndim;
    int32_t buffer; /* of a window: its allocation; else -1 */
    int64_t data;
    int64_t window_base;
    int64_t window_bytes;
    uint64_t devices; /* of a window: its domain */
    int64_t integer;
    double real;
    int64_t shape[PYPTO_MAX_DIMS];
    int64_t stride[PYPTO_MAX_DIMS];
} trace_arg;

typedef struct event_taken {
    trace_event head;
    int32_t program;
    int32_t function;
    int64_t taken_ns;
    int64_t dep_count;
} event_taken;

/* A dispatch that must be over before: number `number` of a rank, or of a SubWorker, which are counted behind the ranks. */
typedef struct trace_dep {
    int64_t consumer;
    uint64_t number;
} trace_dep;

typedef struct event_begun {
    trace_event head;
    int64_t begun_ns;
    int64_t arg_count;
} event_begun;

typedef struct event_over {
    trace_event head;
    int64_t over_ns;
    int64_t failed; /* its call did, and what was left of it was dropped */
} event_over;

enum { TASK_MANUAL = 1, TASK_TESTED = 2 };

typedef struct event_task {
    trace_event head;
    int64_t id;
    int32_t function; /* -1: a join */
    uint32_t flags;
    uint64_t independent_args;
    int64_t blocks;
    int64_t began_ns; /* its submission */
    int64_t ended_ns;
    int32_t after_count; /* int64_t ids follow */
    int32_t arg_count;   /* trace_arg follow; one more when it is TASK_TESTED: the element */
} event_task;

typedef struct event_block {
    trace_event head;
    int64_t task; /* 0: the wrapper */
    int64_t block;
    /* A number that no other one has that is in its middle at the same time; -1: a wrapper. */
    int32_t lane;
    int32_t function;
    int32_t cpu;    /* that it began on; -1: not known */
    int32_t failed; /* it was dropped before it had ended */
    int64_t ready_ns;
    int64_t started_ns;
    int64_t ended_ns; /* its last instruction */
    int64_t over_ns;  /* its deferred waits */
} event_block;

typedef enum trace_phase { PHASE_DISPATCH, PHASE_COMPLETE, PHASE_IDLE } trace_phase;

typedef struct event_phase {
    trace_event head;
    int32_t phase;
    int32_t tasks;
    int64_t turn;
    int64_t began_ns;
    int64_t ended_ns;
} event_phase;

enum { SCOPE_BEGINS, SCOPE_ENDS, SCOPE_FAILS /* its call did before it ended */ };

/* Of the tasks of a wrapper, and of the memory that it and they have taken: counts that only grow. */
typedef struct event_scope {
    trace_event head;
    int32_t function; /* where */
    int32_t line;
    int32_t phase;
    int32_t depth;  /* 0: the wrapper */
    char scope[16]; /* what it is, "pl.at"; cut if need be, as its name */
    char name[48];
    int64_t submitted, over;          /* tasks */
    int64_t taken_bytes, given_bytes; /* memory */
    int64_t edges, edges_over;        /* of the order among tasks */
    int64_t tensors;                  /* arguments of the tasks that are not over */
    int64_t most_tasks, most_bytes, most_edges, most_tensors; /* at once, so far */
} event_scope;

typedef struct event_memory {
    trace_event head;
    int64_t address;
    int64_t bytes;
} event_memory;

typedef struct event_content {
    trace_event head;
    int64_t task;
    int32_t arg;
    int32_t after; /* the task has run; else it is about to */
    int64_t bytes;
    int64_t bytes_kept; /* fewer when there was no room */
} event_content;

/* Appends an event of `bytes`, fills its head, and gives its place; NULL: there is no room. It counts once
 * trace_commit() has been called. One event at a time. */
void *trace_begin(trace_log *log, trace_event_kind kind, uint64_t dispatch, int64_t bytes);
void trace_commit(trace_log *log, const void *event);
/* Bytes of events that there is room for. */
int64_t trace_room(const trace_log *log);

#endif
