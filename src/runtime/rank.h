/* One rank at work: its scheduler, its queue, the programs it knows and the dispatch it is running.
 * The same whether the rank is a process or a thread. */
#ifndef RUNTIME_RANK_H
#define RUNTIME_RANK_H

#include "runtime/protocol.h"
#include "runtime/queue.h"
#include "sched/sched.h"

/* The dispatch being run. Its arguments live here; tasks copy tensors but point into `windows`. */
typedef struct dispatch {
    bool active;
    queue_record *record;
    pld_window *windows; /* one per argument, used where the argument is a window */
    pld_comm *comms;
    int32_t capacity;
    int64_t live;            /* tasks started, and neither over nor joining */
    pld_core *joining;       /* the wrapper, while it waits for the kernels that it submitted */
    pld_core *pending_first; /* kernels submitted, in order */
    pld_core *pending_last;
} dispatch;

typedef struct rank {
    sched s;
    queue_reader queue;
    dispatch current;
    bool waits_for_dispatch; /* counted in set_header.dispatch_waiters */
    _Atomic bool ending;
    /* Filled by the control thread (release), read by the rank's thread (acquire). */
    _Atomic(const pld_program *) programs[RANK_PROGRAMS];
} rank;

PYPTO_NODISCARD pypto_status rank_init(rank *r, segment seg, int32_t number, int host_event);
void rank_destroy(rank *r);

/* Serves dispatches until `ending`. */
void rank_loop(rank *r);

/* From a wrapper: returns when all kernels that it has submitted are complete. */
void task_join(pld_core *core);

/* From another thread: makes rank_loop return after the task that runs. */
void rank_end(rank *r);

#endif
