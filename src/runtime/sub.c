/* SubWorkers: functions of the host's side, run in order by a loop that is the ranks' (loop.c).
 *
 * A dispatch of a rank becomes a fiber. One of a SubWorker is noted here when its turn has come, and the loop calls it
 * when it has nothing to settle: on the thread's own stack, so the function may be anything, and one after the
 * other. While it runs nobody takes records or looks at the poison; the host waits for its end, or kills the process. */
#include "runtime/rank.h"
#include "runtime/tracing.h"

#include "base/alloc.h"
#include "base/os.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pld_sub {
    bool failed;
    char text[FAILURE_TEXT];
    char *details;
};

void pld_sub_fail(pld_sub *sub, const char *details, const char *format, ...)
{
    if (sub->failed)
        return;
    sub->failed = true;
    va_list args;
    va_start(args, format);
    vsnprintf(sub->text, sizeof sub->text, format, args);
    va_end(args);
    if (details != NULL)
        sub->details = alloc_strdup(details); /* without, if there is no memory */
}

/* ---- what is ready ---- */

static void push_ready(rank *r, dispatch *d)
{
    d->next_ready = NULL;
    if (r->ready_last != NULL)
        r->ready_last->next_ready = d;
    else
        r->ready_first = d;
    r->ready_last = d;
}

void sub_ready(dispatch *d)
{
    push_ready(d->owner, d);
}

void sub_drop(rank *r, uint64_t call)
{
    dispatch *next = r->ready_first;
    r->ready_first = r->ready_last = NULL;
    for (dispatch *d = next; d != NULL; d = next) {
        next = d->next_ready;
        const uint64_t its = d->record->call;
        if (its > call || call_slot(its) != call_slot(call))
            push_ready(r, d);
    }
}

/* ---- running ---- */

bool sub_has_lost_host(rank *r)
{
    if (!r->s.uncounted || r->s.seg.transport->one_process)
        return false;
    const os_file_id now = os_file_of(r->s.host_event);
    const bool lost = now.device != r->event.device || now.inode != r->event.inode;
    if (lost)
        atomic_store_explicit(&r->s.header->lost_host, 1, memory_order_seq_cst);
    return lost;
}

static void run_function(rank *r, dispatch *d, const pld_function *f)
{
    pld_sub sub = {.failed = false};
    rank_header *h = r->s.header;
    const queue_record *record = d->record;
    dispatch_fill_args(d);
    atomic_store_explicit(&h->running_call, record->call, memory_order_seq_cst);
    if (segment_poisoned(&r->s.seg, record->call, memory_order_seq_cst)) {
        atomic_store_explicit(&h->running_call, 0, memory_order_seq_cst);
        return; /* who obeys the poison drops it */
    }
    atomic_store_explicit(&h->breadcrumb_program, record->program, memory_order_relaxed);
    atomic_store_explicit(&h->breadcrumb,
                          (uint64_t)(record->function + 1) << 32 | (uint32_t)f->line,
                          memory_order_relaxed);
    if (d->log != NULL)
        tracing_begun(d);
    const int64_t started_ns = d->log != NULL ? os_now_ns() : 0;
    if (f->run_sub != NULL)
        f->run_sub(&sub, d->arguments.args);
    else if (r->runner.run != NULL)
        r->runner.run(r->runner.context, f, &sub, d->arguments.args);
    else
        pld_sub_fail(&sub, NULL,
                     "nothing is bound to it: set pld_function.run_sub, or "
                     "pypto_worker_options.run_sub");
    if (sub_has_lost_host(r))
        _Exit(1); /* this the host notices */
    if (d->log != NULL) {
        tracing_sub_ran(d, started_ns, os_now_ns(), sub.failed);
        if (!sub.failed)
            tracing_wrapper_over(d);
    }
    atomic_store_explicit(&h->breadcrumb, 0, memory_order_relaxed);
    atomic_store_explicit(&h->running_call, 0, memory_order_seq_cst);
    if (segment_poisoned(&r->s.seg, record->call, memory_order_seq_cst)) {
        sched_ring_host(&r->s); /* which waits for this end */
    } else if (sub.failed) {
        /* What is left of its call, this dispatch included, is dropped by who obeys the poison. */
        sched_fail(&r->s, record->call, record->program, record->function, f->line,
                   DIAG_SUB_WORKER_FAILED, sub.text, sub.details);
    } else {
        d->wrapper_over = true;
        dispatch_settle(d);
    }
    alloc_free(sub.details);
}

bool sub_run(rank *r)
{
    dispatch *d = r->ready_first;
    if (d == NULL)
        return false;
    r->ready_first = d->next_ready;
    if (r->ready_first == NULL)
        r->ready_last = NULL;
    const pld_program *table =
        atomic_load_explicit(&r->programs[d->record->program], memory_order_acquire);
    if (!dispatch_reserve_args(d, d->record->item_count))
        dispatch_no_memory(d, d->record->function, 0);
    else
        run_function(r, d, table->functions[d->record->function]);
    r->s.idle_turns = 0;
    r->s.idle_since_ns = 0;
    return true;
}
