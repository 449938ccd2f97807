/* The scheduler of one rank: fibers on the rank's thread, and everything that blocks them.
 *
 * A pld_core is one run of a wrapper or in-core function. It has a fiber and scratch memory from its
 * first instruction on until it ends, fails, or is dropped because its call was poisoned. When it waits
 * for a signal that has not come, the scheduler's own context continues in sched_turn(), called by the
 * rank's loop (runtime/loop.c):
 *
 *     run a ready core  ->  else wake a satisfied one  ->  else pause, yield, and at last park
 *
 * Waiting costs nothing when the signal is there. Otherwise a core first pauses in place, but only
 * while every rank has a CPU of its own and no other core is ready; then it leaves the CPU to other
 * cores, then (sched_yield) to other ranks, and after a millisecond without work the thread
 * announces what it waits for and sleeps on its bell (segment.h). Every step looks at the poison.
 *
 * A core that has ended with deferred waits is not over: without fiber and scratch it stays among the
 * blocked until each of them has been satisfied.
 *
 * One thread owns a sched. Others touch only the shared rank_header. */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "base/diag.h"
#include "sched/fiber.h"
#include "sched/scratch.h"
#include "sched/trace.h"
#include "transport/transport.h"

#include <pypto/program.h>

/* Large enough for what kernels put on a stack; tiles live in scratch memory, and long functions keep their frames
 * small (codegen/emit_frames.c). Untouched pages cost nothing. */
#define TASK_STACK_BYTES (1024 * 1024)

typedef struct sched sched;

/* Blocks that a recorded call can tell apart while all of them have begun; of more, several have the last number. */
#define TRACE_LANES 4096

struct pld_core {
    sched *owner;
    fiber *fiber;   /* NULL before its first instruction and after its last */
    pld_core *next; /* in the one list that holds it */
    /* What it runs. */
    uint64_t call;
    int32_t program;
    int32_t function_index;
    const pld_program *table;
    const pld_function *function;
    const pld_arg *args; /* of the dispatch or task that it runs for, as are the next three */
    int32_t arg_count;
    void *dispatch;
    void *task;          /* NULL: the wrapper */
    int64_t block_index; /* of the task's blocks */
    int64_t block_count;
    /* NULL unless its call is recorded; then its times, for whoever is told that it is over. */
    trace_log *log;
    int64_t ready_ns;
    int64_t started_ns; /* 0: not yet */
    int64_t ended_ns;
    int32_t lane; /* from its first instruction to its last, of a task; -1: none */
    int32_t cpu;  /* that it began on */
    /* Where it is. */
    int32_t line;
    uint64_t breadcrumb; /* (function_index + 1) << 32 */
    /* While blocked. */
    wait_entry wait;
    const int32_t *awaited; /* WAIT_TASKS: satisfied when it is 0 */
    /* What must hold before it is over, beyond its last instruction; in order. */
    wait_entry *deferred;
    int32_t deferred_count;
    int32_t deferred_done;
    int64_t deferred_capacity;
    scratch_block scratch; /* while it has a fiber */
};

/* Something of the rank's own that waits beside its cores: a dispatch that is not ready. */
typedef struct outer_wait {
    wait_entry entry;
    struct outer_wait *next;
} outer_wait;

/* How a rank's thread decides that there is work besides its cores (a dispatch, poison, the end):
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
    int32_t pool_count;
    fiber **fibers; /* idle fibers */
    int32_t fiber_count;
    int64_t fiber_capacity;
    scratch_pool scratch;
    int64_t spin; /* pauses before the CPU is given away */
    int64_t idle_turns;
    int64_t idle_since_ns;
    int64_t moved_ns; /* when it last moved to another CPU */
    bool uncounted;   /* a SubWorker: not among the ranks that set_header.running counts */
    uint32_t pushes;  /* transfers and notifies into windows of peers, of all cores so far */
    sched_work_fn has_work;
    outer_wait *outer; /* published beside the waits of cores */
    /* Told of a core that is over (true) or was dropped (false), on the scheduler's own stack. */
    void (*core_over)(void *context, pld_core *core, bool ended);
    void *context;
    bool over_ended;                       /* how the core that just left did so */
    trace_log *log;                        /* where phases are noted; NULL: nowhere */
    uint64_t log_dispatch;                 /* the latest one that asked for it */
    int64_t turns;                         /* while they are */
    int64_t phase_ns;                      /* idle since; 0: it is not */
    uint64_t lanes[TRACE_LANES / 64];      /* taken */
    uint64_t poison_seen[CALLS_IN_FLIGHT]; /* calls up to here have been dropped */
};

/* Fills everything but has_work, core_over and context. */
PYPTO_NODISCARD pypto_status sched_init(sched *s, segment seg, int32_t rank, int host_event);
/* No core may be left. */
void sched_destroy(sched *s);

/* A core from the pool, of which the caller fills what it runs; NULL when memory is exhausted. */
pld_core *sched_take_core(sched *s);
/* Makes it ready. It runs `function->run(core, args)` when its turn comes; should memory for its stack
 * or scratch be exhausted then, it fails. The object goes back to the pool when it is over. */
void sched_start(sched *s, pld_core *core);

/* Notes what the scheduler did since `began_ns` if somebody wants to know; `tasks` is how many dispatches or tasks that
 * was about. */
void sched_note_phase(sched *s, trace_phase phase, int64_t began_ns, int32_t tasks);
/* Behind it nothing is noted any more. */
void sched_end_phases(sched *s);

/* One turn of the loop: runs what is ready, or waits a little. */
void sched_turn(sched *s);
/* Drops every core of a call, and of those before it in its slot. */
void sched_drop(sched *s, uint64_t call);

/* ---- from inside a core ---- */

/* Ends it without a result: it was dropped. Does not return. */
void task_leave(pld_core *core) PYPTO_NORETURN;

/* Whether the rank has to drop a call. Seq_cst where a sleeper decides by it, else relaxed. */
static inline bool sched_poisoned(const sched *s, memory_order order)
{
    bool any = false;
    for (int slot = 0; slot < CALLS_IN_FLIGHT; ++slot)
        any |= atomic_load_explicit(&s->seg.set->poison[slot], order) > s->poison_seen[slot];
    return any;
}

/* The rank has to drop a call: leaves for good if it is the task's, else lets the rank do so first. */
void task_obey(pld_core *core);

/* Every device call begins so. */
static inline void task_check(pld_core *core)
{
    if (__builtin_expect(sched_poisoned(core->owner, memory_order_relaxed), 0))
        task_obey(core);
}

/* Records a failure of the rank (the first of a call wins), poisons the call and leaves. */
void task_fail(pld_core *core, diag_code code, const char *format, ...)
    PYPTO_NORETURN PYPTO_PRINTF(3, 4);
/* Blocks until core->wait is satisfied. */
void task_wait(pld_core *core);
/* The window of a tensor, and the device of rank `peer` of its domain; both fail for those that do not
 * exist. */
const pld_window *task_need_window(pld_core *core, const pld_tensor *tensor);
int32_t task_device_of(pld_core *core, const pld_tensor *tensor, int64_t peer);
/* Lets others run. */
void task_yield(pld_core *core);
/* "window 'data_buf' (parameter 'data')" or "parameter 'inp'", into `text`; returns `text`. */
const char *task_describe(const pld_core *core, const pld_tensor *tensor, char *text,
                          int64_t bytes);
/* Index of the parameter that `tensor` came from, or -1. */
int32_t task_param_of(const pld_core *core, const pld_tensor *tensor);

/* Records a failure without a task (a dispatch that could not start). `note` may be NULL. */
void sched_fail(sched *s, uint64_t call, int32_t program, int32_t function, int32_t line,
                diag_code code, const char *text, const char *note);

/* Wakes the host if it sleeps in poll(). */
void sched_ring_host(const sched *s);

/* place.c: whether this rank has the CPU that it runs on to itself, as far as the ranks of its set go; moves to
 * another one for that if it can. Tells where this one waits. */
bool sched_has_cpu(sched *s);
/* It no longer waits there, but sleeps. */
void sched_leaves_cpu(const sched *s);

/* Whether a wait is satisfied; also used by the host's deadlock look on the published table. */
bool wait_satisfied(const segment *seg, const wait_entry *wait);

#endif
