/* One rank at work: its scheduler, its queue, the programs it knows, and the dispatches that it has
 * taken and not completed. The same whether the rank is a process or a thread.
 *
 *   loop.c       records: taking them, the order among dispatches, completion, poison
 *   dispatch.c   what a record becomes: its arguments, the cores of its functions
 *   task.c       what a running wrapper submits: tasks, the order among them, blocks
 *   tracing.c    notes of all that, for calls that are recorded
 *   sub.c        in a SubWorker, which has the same loop: its functions, instead of wrappers and tasks
 *
 * Everything here belongs to the rank's thread, but for `ending` and `programs`. */
#ifndef RUNTIME_RANK_H
#define RUNTIME_RANK_H

#include "base/os.h"
#include "runtime/args.h"
#include "runtime/graph.h"
#include "runtime/memory.h"
#include "runtime/overlap.h"
#include "runtime/print.h"
#include "runtime/protocol.h"
#include "runtime/queue.h"
#include "sched/sched.h"

typedef struct rank rank;
typedef struct dispatch dispatch;

/* A kernel that a wrapper submitted, from then until all its blocks are over. */
typedef struct task {
    node node; /* first: found from it */
    dispatch *of;
    struct task *previous; /* in of->tasks */
    struct task *next;     /* there, or in the rank's pool */
    pld_task id;
    const pld_function *function; /* NULL: a join */
    int32_t function_index;
    bool manual;
    uint64_t independent_args;
    int64_t blocks;
    int64_t blocks_left;
    uint64_t marked_args; /* bit i: argument i is marked for dumps */
    /* Runs only if the element compares so to `limit`; no data: always. */
    pld_tensor tested;
    byte_range tested_range;
    pld_compare compare;
    int64_t limit;
    arg_list arguments;
    void *released; /* of a join: nobody needs the memory when it is over; NULL: none */
    int64_t released_bytes;
    byte_range *ranges; /* of the arguments that are tensors */
    int64_t range_capacity;
} task;

/* What the tasks of a recorded dispatch hold: sched/trace.h, event_scope. */
typedef struct trace_counts {
    int64_t taken_bytes, given_bytes, edges, edges_over, tensors;
    int64_t most_tasks, most_bytes, most_edges, most_tensors;
    bool failed;
} trace_counts;

/* A scope of a recorded wrapper that has begun. */
typedef struct open_scope {
    const char *scope, *name; /* of the program */
    int32_t line, depth;
} open_scope;

/* Nested ones that are recorded: Python's own limit, and some for functions that are inlined. */
#define OPEN_SCOPES 40

/* A record that has been taken from the queue, from then until it is complete. */
struct dispatch {
    node node; /* first: found from it. Order among the dispatches of this rank */
    rank *owner;
    dispatch *previous;   /* in rank.dispatches */
    dispatch *next;       /* there, or in the rank's pool */
    queue_record *record; /* stays in the queue's memory until `completed` passes it */
    uint64_t number;
    /* Not started while a dispatch of another device is not done: in rank.s.outer. */
    outer_wait waiting;
    int32_t deps_done;
    /* The wrapper's arguments; tasks copy tensors but point into `windows`. */
    arg_list arguments;
    pld_window *windows; /* one per argument, used where the argument is a window */
    pld_comm *comms;
    int32_t window_capacity;
    dispatch *next_ready; /* in a SubWorker */
    bool wrapper_over;
    task *tasks; /* that are not over, the latest first */
    int64_t task_count;
    pld_task last_task;
    task **by_id; /* [id - 1]; NULL: over */
    int64_t by_id_capacity;
    node awaiting;  /* the wrapper, in pld_await */
    memory created; /* tensors that the wrapper and its kernels made */
    trace_log *log; /* of its call, if that is recorded; else NULL */
    trace_counts counts;
    open_scope scopes[OPEN_SCOPES]; /* the wrapper itself is the first */
    int32_t scope_count;
};

struct rank {
    sched s;
    queue_reader queue;
    dispatch *dispatches; /* the latest first */
    dispatch **by_number; /* [number % DONE_WINDOW], of those not complete */
    dispatch *pool;
    task *task_pool;
    print_buffer printed;  /* of the pl.printf that runs */
    memory spare;          /* of dispatches that are complete */
    int32_t logged;        /* dispatches that have a log */
    dispatch *ready_first; /* of a SubWorker: what it is to run, in order */
    dispatch *ready_last;
    sub_runner runner; /* of its functions that have no code of their own */
    os_file_id
        event;     /* what s.host_event is to lead to, in a SubWorker with a process of its own */
    bool debugged; /* waits for a debugger before it begins */
    _Atomic bool ending;
    /* Filled by the control thread (release), read by the rank's thread (acquire). */
    _Atomic(const pld_program *) programs[RANK_PROGRAMS];
};

PYPTO_NODISCARD pypto_status rank_init(rank *r, segment seg, int32_t number, int host_event);
void rank_destroy(rank *r);

/* Serves dispatches until `ending`. */
void rank_loop(rank *r);

/* From another thread: makes rank_loop return after the core that runs. */
void rank_end(rank *r);

/* ---- between loop.c, dispatch.c, task.c and sub.c ---- */

/* dispatch.c: an object in rank.dispatches, of no record yet; NULL when memory is exhausted. */
dispatch *dispatch_take(rank *r);
void dispatches_free_pool(rank *r);
/* dispatch.c: a core of the dispatch that runs that function of its program, not started yet; NULL when memory
 * is exhausted. */
pld_core *dispatch_core(dispatch *d, int32_t function, const arg_list *arguments);
/* dispatch.c: starts its wrapper, or the function of a SubWorker. */
void dispatch_start(dispatch *d);
/* dispatch.c: fails the call of a dispatch, or of a record, in that function, because memory is exhausted. */
void dispatch_no_memory(const dispatch *d, int32_t function, int32_t line);
void record_no_memory(rank *r, const queue_record *record, int32_t function, int32_t line);
/* dispatch.c: room for the arguments of a dispatch; false when memory is exhausted. And the arguments. */
bool dispatch_reserve_args(dispatch *d, int32_t count);
void dispatch_fill_args(dispatch *d);
/* loop.c: completes the dispatch if nothing of it is left. */
void dispatch_settle(dispatch *d);
/* task.c: a block of the task is over. */
void task_block_over(task *t);
/* task.c: the memory of a tensor of pld_create_tensor() is free when no task uses it any more; at once if it was
 * made by a kernel. */
void task_release(pld_core *core, const pld_tensor *tensor, int64_t bytes);
/* task.c: waits until memory has been released by tasks of the wrapper; false: there is none to come. */
bool task_await_release(pld_core *core);
/* task.c: forgets all tasks of a dispatch; none of its cores exists any more. */
void tasks_drop(dispatch *d);
void tasks_free_pool(rank *r);
/* sub.c: a SubWorker's dispatch may run. */
void sub_ready(dispatch *d);
/* sub.c: runs the next one; false: there is none. */
bool sub_run(rank *r);
/* sub.c: forgets those of a call, and of those before it in its slot. */
void sub_drop(rank *r, uint64_t call);
/* sub.c: whether what a SubWorker ran has closed descriptors that it knows nothing of (os.closerange), the host's event among
 * them, without which the host would sleep for ever; another file may have its number by now. The process then is to end,
 * and its header says why. Also from the control thread. */
bool sub_has_lost_host(rank *r);

#endif
