/* The scheduler of one rank: tasks as fibers on the rank's thread, and everything that blocks them.
 *
 * A task (pld_core) is one running wrapper or in-core function. It runs until it ends, fails, is
 * dropped because its call was poisoned, or waits for a signal that has not come; then the
 * scheduler's own context continues in sched_turn(), called by the rank's loop (runtime/loop.c):
 *
 *     run a ready task  ->  else wake a satisfied one  ->  else pause, yield, and at last park
 *
 * Waiting costs nothing when the signal is there. Otherwise a task first pauses in place, but only
 * while every rank has a CPU of its own and no other task is ready; then it leaves the CPU to other
 * tasks, then (sched_yield) to other ranks, and after a millisecond without work the thread
 * announces what it waits for and sleeps on its bell (segment.h). Every step looks at the poison.
 *
 * One thread owns a sched. Others touch only the shared rank_header. */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "base/diag.h"
#include "sched/fiber.h"
#include "transport/transport.h"

#include <pypto/program.h>

/* Large enough for what kernels put on a stack; tiles live in scratch memory. Untouched pages cost
 * nothing. */
#define TASK_STACK_BYTES (256 * 1024)

typedef struct sched sched;

struct pld_core {
    sched *owner;
    fiber *fiber;
    pld_core *next; /* in the one list that holds the task */
    /* What it runs. */
    uint64_t call;
    int32_t program;
    int32_t function_index;
    const pld_program *table;
    const pld_function *function;
    pld_arg *args; /* own copies; `tensor` points into `tensors` */
    pld_tensor *tensors;
    int32_t arg_count;
    int32_t arg_capacity;
    void *context; /* of whoever started it: the dispatch */
    /* Where it is. */
    int32_t line;
    uint64_t breadcrumb; /* (function_index + 1) << 32 */
    /* While blocked. */
    wait_entry wait;
    const _Atomic int32_t *cell;
    /* Scratch memory, kept when the task object is reused. */
    char *scratch;
    int64_t scratch_bytes;
};

/* How a rank's thread decides that there is work besides its tasks (a dispatch, poison, the end):
 * asked with the sleeper announced, so every load in it must be seq_cst. */
typedef bool (*sched_work_fn)(void *context);

struct sched {
    segment seg;
    int32_t rank;
    rank_header *header;
    int host_event; /* eventfd of the host */
    fiber *main;
    pld_core *running;
    pld_core *ready_first;
    pld_core *ready_last;
    pld_core *blocked; /* order of blocking does not matter */
    pld_core *pool;
    fiber **fibers; /* idle fibers */
    int32_t fiber_count;
    int32_t fiber_capacity;
    int64_t spin; /* pauses before the CPU is given away */
    int64_t idle_turns;
    int64_t idle_since_ns;
    sched_work_fn has_work;
    /* What the rank's next dispatch waits for (kind WAIT_NONE: nothing); published beside the
     * tasks'. */
    wait_entry dispatch_wait;
    /* Told of a task that ended (true) or was dropped (false), on the scheduler's own stack. */
    void (*task_over)(void *context, pld_core *task, bool ended);
    void *context;
    bool over_ended;      /* how the task that just left did so */
    uint64_t poison_seen; /* calls up to here have been dropped */
};

/* Fills everything but has_work, task_over and context. */
PYPTO_NODISCARD pypto_status sched_init(sched *s, segment seg, int32_t rank, int host_event);
/* No task may be left. */
void sched_destroy(sched *s);

/* A task object with room for `arg_count` arguments, from the pool; NULL when memory is exhausted.
 */
pld_core *sched_take_task(sched *s, int32_t arg_count);
/* Back into the pool: a task that has not been started, or one that is over. */
void sched_give_task(sched *s, pld_core *task);
/* Makes the task ready: it runs `function->run(task, args)` on a fiber of its own. False (task not
 * taken) when memory is exhausted. */
bool sched_start(sched *s, pld_core *task);

/* One turn of the loop: runs what is ready, or waits a little. */
void sched_turn(sched *s);
/* Drops every task of calls up to `call`. */
void sched_drop(sched *s, uint64_t call);

/* A suspended task becomes ready, or is dropped. */
void sched_resume(sched *s, pld_core *task);
void sched_discard(sched *s, pld_core *task);

/* ---- from inside a task ---- */

/* Ends the task without a result: it was dropped. Does not return. */
void task_leave(pld_core *core) PYPTO_NORETURN;

/* Leaves for good if the call has been poisoned. Every device call begins so. */
static inline void task_check(pld_core *core)
{
    if (__builtin_expect(
            atomic_load_explicit(&core->owner->seg.set->poison, memory_order_relaxed) >= core->call,
            0)) {
        task_leave(core);
    }
}

/* Records a failure of the rank (the first of a call wins), poisons the call and leaves. */
void task_fail(pld_core *core, diag_code code, const char *format, ...)
    PYPTO_NORETURN PYPTO_PRINTF(3, 4);
/* Blocks until core->wait (and core->cell) is satisfied. */
void task_wait(pld_core *core);
/* The window of a tensor, and the device of rank `peer` of its domain; both fail for those that do not
 * exist. */
const pld_window *task_need_window(pld_core *core, const pld_tensor *tensor);
int32_t task_device_of(pld_core *core, const pld_tensor *tensor, int64_t peer);
/* Blocks until sched_resume(). Whoever will call that keeps the task, and hands it to sched_discard()
 * instead when its call is poisoned: sched_drop() does not know it. */
void task_suspend(pld_core *core);
/* "window 'data_buf' (parameter 'data')" or "parameter 'inp'", into `text`; returns `text`. */
const char *task_describe(const pld_core *core, const pld_tensor *tensor, char *text,
                          int64_t bytes);
/* Index of the parameter that `tensor` came from, or -1. */
int32_t task_param_of(const pld_core *core, const pld_tensor *tensor);

/* Records a failure without a task (a dispatch that could not start). */
void sched_fail(sched *s, uint64_t call, int32_t program, int32_t function, int32_t line,
                diag_code code, const char *text);

/* Wakes the host if it sleeps in poll(). */
void sched_ring_host(const sched *s);

/* Whether a wait is satisfied; also used by the host's deadlock look on the published table. */
bool wait_satisfied(const segment *seg, const wait_entry *wait);

#endif
