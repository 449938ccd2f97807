/* The loop of a rank: takes dispatches from the queue, starts each when the ones before it are done
 * that it depends on, publishes completion, and obeys poison.
 *
 * The host says in each record what it depends on (host/order.c). Dispatches of this rank are then
 * nodes of a graph; those of other devices are looked up in their headers. A dispatch that is not
 * ready holds up nobody else. */
#include "runtime/rank.h"
#include "runtime/tracing.h"

#include "base/alloc.h"
#include "base/os.h"

#include <fenv.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static uint64_t call_of(const dispatch *d)
{
    return d->record->call;
}

/* ---- the end of a record ---- */

/* Publishes that record `number` is done: see segment.h, Queue. */
static void publish_done(rank *r, uint64_t number)
{
    rank_header *h = r->s.header;
    uint64_t completed = atomic_load_explicit(&h->completed, memory_order_relaxed);
    if (number != completed + 1) {
        const uint64_t bit = number % DONE_WINDOW;
        atomic_fetch_or_explicit(&h->done[bit / 64], (uint64_t)1 << bit % 64, memory_order_seq_cst);
        return;
    }
    ++completed;
    for (;; ++completed) {
        const uint64_t bit = (completed + 1) % DONE_WINDOW;
        const uint64_t mask = (uint64_t)1 << bit % 64;
        if ((atomic_load_explicit(&h->done[bit / 64], memory_order_relaxed) & mask) == 0)
            break;
        atomic_fetch_and_explicit(&h->done[bit / 64], ~mask, memory_order_relaxed);
    }
    atomic_store_explicit(&h->completed, completed, memory_order_seq_cst);
}

static void record_done(rank *r, uint64_t number)
{
    set_header *set = r->s.seg.set;
    publish_done(r, number);
    /* A rank that waits for this dispatch raised dispatch_waiters before its last look. */
    if (atomic_load_explicit(&set->dispatch_waiters, memory_order_seq_cst) > 0)
        segment_ring_all(&r->s.seg);
    if (atomic_fetch_sub_explicit(&set->outstanding, 1, memory_order_seq_cst) == 1 ||
        atomic_load_explicit(&set->host_waiting, memory_order_seq_cst) == HOST_WAITS_FOR_EACH)
        sched_ring_host(&r->s);
}

static void dispatch_ready(void *context, node *n);

static void complete(dispatch *d)
{
    rank *r = d->owner;
    *(d->previous != NULL ? &d->previous->next : &r->dispatches) = d->next;
    if (d->next != NULL)
        d->next->previous = d->previous;
    r->by_number[d->number % DONE_WINDOW] = NULL;
    memory_reset(&d->created, &r->spare);
    if (d->log != NULL)
        tracing_over(d);
    record_done(r, d->number);
    node_over(&d->node, dispatch_ready, r);
    d->next = r->pool;
    r->pool = d;
}

void dispatch_settle(dispatch *d)
{
    if (d->wrapper_over && d->tasks == NULL)
        complete(d);
}

/* ---- order ---- */

/* Finds the next dispatch of another device that is not done. False: there is none. */
static bool next_dep(dispatch *d)
{
    const rank *r = d->owner;
    const queue_dep *deps = record_deps(d->record);
    for (; d->deps_done < d->record->dep_count; ++d->deps_done) {
        const queue_dep *dep = &deps[d->deps_done];
        if (dep->device == r->s.rank)
            continue;
        d->waiting.entry = (wait_entry){.kind = WAIT_DISPATCH,
                                        .program = d->record->program,
                                        .function = d->record->function,
                                        .device = dep->device,
                                        .sequence = dep->sequence};
        if (!wait_satisfied(&r->s.seg, &d->waiting.entry))
            return true;
    }
    return false;
}

/* Every dispatch of this rank that comes before `n` is done. */
static void dispatch_ready(void *context, node *n)
{
    rank *r = context;
    dispatch *d = (dispatch *)(void *)n;
    if (segment_poisoned(&r->s.seg, call_of(d), memory_order_relaxed))
        return; /* obey_poison ends it */
    if (!next_dep(d)) {
        dispatch_start(d);
        return;
    }
    outer_wait **end = &r->s.outer;
    while (*end != NULL)
        end = &(*end)->next;
    *end = &d->waiting;
    d->waiting.next = NULL;
}

/* Marks (or unmarks) that this rank waits for others' dispatches. */
static void count_waiting(rank *r)
{
    const bool waits = r->s.outer != NULL;
    _Atomic uint32_t *counted = &r->s.header->counted_waiting;
    if (waits == (atomic_load_explicit(counted, memory_order_relaxed) != 0))
        return;
    atomic_store_explicit(counted, waits, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->s.seg.set->dispatch_waiters, waits ? 1 : -1,
                              memory_order_seq_cst);
}

static dispatch *waiting_dispatch(outer_wait *waiting)
{
    return (dispatch *)(void *)((char *)waiting - offsetof(dispatch, waiting));
}

/* Starts waiting dispatches whose turn has come. True when one was. */
static bool start_waiting(rank *r)
{
    bool any = false;
    for (outer_wait **link = &r->s.outer; *link != NULL;) {
        dispatch *d = waiting_dispatch(*link);
        if (!wait_satisfied(&r->s.seg, &d->waiting.entry) || next_dep(d)) {
            link = &(*link)->next;
            continue;
        }
        *link = d->waiting.next;
        dispatch_start(d);
        any = true;
    }
    count_waiting(r);
    return any;
}

/* The edges that the record names. */
static bool depend(dispatch *d)
{
    rank *r = d->owner;
    const queue_dep *deps = record_deps(d->record);
    for (int32_t i = 0; i < d->record->dep_count; ++i) {
        if (deps[i].device != r->s.rank)
            continue;
        dispatch *earlier = r->by_number[deps[i].sequence % DONE_WINDOW];
        if (earlier != NULL && earlier->number == deps[i].sequence &&
            !node_after(&d->node, &earlier->node))
            return false;
    }
    return true;
}

/* ---- poison ---- */

/* Drops what belongs to a poisoned call, and to those before it in its slot. */
static void drop_call(rank *r, uint64_t call)
{
    const int slot = call_slot(call);
    sched_drop(&r->s, call);
    sub_drop(r, call);
    for (outer_wait **link = &r->s.outer; *link != NULL;) {
        const uint64_t waiting = call_of(waiting_dispatch(*link));
        if (waiting <= call && call_slot(waiting) == slot)
            *link = (*link)->next;
        else
            link = &(*link)->next;
    }
    count_waiting(r);
    for (dispatch *d = r->dispatches, *next; d != NULL; d = next) {
        next = d->next;
        if (call_of(d) > call || call_slot(call_of(d)) != slot)
            continue;
        if (d->log != NULL)
            tracing_dropped(d);
        tasks_drop(d);
        complete(d);
    }
    /* It may have failed because memory is short. */
    scratch_destroy(&r->s.scratch);
    memory_trim(&r->spare);
    r->s.poison_seen[slot] = call;
    atomic_store_explicit(&r->s.header->acknowledged[slot], call, memory_order_seq_cst);
    sched_ring_host(&r->s);
}

/* True when there was something to obey. */
static bool obey_poison(rank *r)
{
    bool any = false;
    for (int slot = 0; slot < CALLS_IN_FLIGHT; ++slot) {
        const uint64_t call =
            atomic_load_explicit(&r->s.seg.set->poison[slot], memory_order_seq_cst);
        if (call <= r->s.poison_seen[slot])
            continue;
        drop_call(r, call);
        any = true;
    }
    return any;
}

/* ---- taking records ---- */

/* Gigabytes take longer than a call that has failed waits for its ranks. */
#define CLEARED_AT_ONCE (INT64_C(4) << 20)

/* Also what nobody has touched. To give the pages back and reserve them again would not be faster: for 256 MiB that took
 * 140 to 240 ms, and 200 ms more to map them again, where clearing takes 10 to 20 ms, and 140 to 260 ms the first time. */
static void clear_ranges(rank *r, queue_record *record)
{
    char *slice = segment_slice(&r->s.seg, r->s.rank);
    const heap_block *ranges = record_ranges(record);
    for (int32_t i = 0; i < record->item_count; ++i) {
        for (int64_t done = 0; done < ranges[i].bytes; done += CLEARED_AT_ONCE) {
            const int64_t left = ranges[i].bytes - done;
            const int64_t bytes = left < CLEARED_AT_ONCE ? left : CLEARED_AT_ONCE;
            memset(slice + ranges[i].offset + done, 0, (size_t)bytes);
            obey_poison(r);
        }
    }
}

static bool can_take(rank *r)
{
    return r->queue.taken - atomic_load_explicit(&r->s.header->completed, memory_order_relaxed) <
               DONE_WINDOW &&
           queue_peek(&r->queue) != NULL;
}

/* Takes the next record if there is one. True when something was done. */
static bool take_record(rank *r)
{
    if (!can_take(r))
        return false;
    queue_record *record = queue_peek(&r->queue);
    const uint64_t number = r->queue.taken + 1;
    queue_pop(&r->queue, record);
    const int64_t taken_ns = record->log != 0 ? os_now_ns() : 0;
    if (record->kind == RECORD_CLEAR) {
        clear_ranges(r, record);
        record_done(r, number);
        return true;
    }
    if (record->call <= r->s.poison_seen[call_slot(record->call)]) {
        record_done(r, number);
        return true;
    }
    dispatch *d = dispatch_take(r);
    if (d == NULL) {
        record_no_memory(r, record, record->function, 0);
        record_done(r, number);
        return true;
    }
    d->record = record;
    d->number = number;
    r->by_number[number % DONE_WINDOW] = d;
    d->log = NULL;
    if (record->log != 0) {
        d->log = (trace_log *)(void *)(r->s.seg.base + record->log);
        tracing_taken(d, taken_ns);
    }
    if (!depend(d))
        dispatch_no_memory(d, record->function, 0);
    else if (d->node.waits == 0)
        dispatch_ready(r, &d->node);
    count_waiting(r);
    return true;
}

/* ---- what the scheduler tells and asks ---- */

static void core_over(void *context, pld_core *core, bool ended)
{
    (void)context;
    dispatch *d = core->dispatch;
    if (core->log != NULL)
        tracing_core(core, ended);
    if (!ended)
        return; /* its call is poisoned: obey_poison cleans up */
    if (core->task != NULL)
        task_block_over(core->task);
    else
        d->wrapper_over = true;
    if (d->log != NULL && core->task == NULL)
        tracing_wrapper_over(d);
    dispatch_settle(d);
}

static bool has_work(void *context)
{
    rank *r = context;
    if (atomic_load_explicit(&r->ending, memory_order_seq_cst) ||
        sched_poisoned(&r->s, memory_order_seq_cst))
        return true;
    for (const outer_wait *waiting = r->s.outer; waiting != NULL; waiting = waiting->next)
        if (wait_satisfied(&r->s.seg, &waiting->entry))
            return true;
    return can_take(r);
}

/* ---- a rank's life ---- */

pypto_status rank_init(rank *r, segment seg, int32_t number, int host_event)
{
    r->by_number = alloc_zeroed(DONE_WINDOW, (int64_t)sizeof(dispatch *));
    if (r->by_number == NULL)
        return diag_no_memory();
    pypto_status status = sched_init(&r->s, seg, number, host_event);
    if (!status_ok(status)) {
        alloc_free(r->by_number);
        return status;
    }
    r->s.has_work = has_work;
    r->s.core_over = core_over;
    r->s.context = r;
    for (int slot = 0; slot < CALLS_IN_FLIGHT; ++slot)
        r->s.poison_seen[slot] = atomic_load_explicit(&seg.set->poison[slot], memory_order_relaxed);
    r->spare.set = r->s.seg.set;
    queue_reader_init(&r->queue, &r->s.seg, r->s.header);
    return STATUS_OK;
}

void rank_destroy(rank *r)
{
    dispatches_free_pool(r);
    tasks_free_pool(r);
    memory_destroy(&r->spare);
    print_destroy(&r->printed);
    alloc_free(r->by_number);
    sched_destroy(&r->s);
}

/* Somebody types meanwhile, so looking ten times a second is soon enough. The rank counts as running: nobody
 * takes its silence for a deadlock. */
static void await_debugger(rank *r)
{
    if (os_is_traced())
        return;
    fprintf(stderr, "pypto: rank %d waits for a debugger: gdb -p %d\n", r->s.rank, os_process_id());
    while (!atomic_load_explicit(&r->ending, memory_order_acquire) && !os_is_traced())
        os_sleep_ms(100);
}

void rank_loop(rank *r)
{
    /* A library loaded with -ffast-math may have switched denormals off for the thread that we
     * inherit from; results must not depend on it. */
    fesetenv(FE_DFL_ENV);
    if (!r->s.uncounted)
        atomic_fetch_add_explicit(&r->s.seg.set->running, 1, memory_order_seq_cst);
    if (r->debugged)
        await_debugger(r);
    while (!atomic_load_explicit(&r->ending, memory_order_acquire)) {
        if (obey_poison(r) || (r->s.outer != NULL && start_waiting(r)) || sub_run(r))
            continue;
        /* What is ready comes before what is new, so that a long queue does not become a heap of
         * started dispatches. */
        if (r->s.ready_first == NULL && take_record(r))
            continue;
        sched_turn(&r->s);
    }
    if (!r->s.uncounted)
        atomic_fetch_sub_explicit(&r->s.seg.set->running, 1, memory_order_seq_cst);
    /* Whatever was running is dropped: the set is being closed. */
    for (int slot = 0; slot < CALLS_IN_FLIGHT; ++slot)
        sched_drop(&r->s, UINT64_MAX - (uint64_t)slot);
    r->s.outer = NULL;
    for (dispatch *d = r->dispatches, *next; d != NULL; d = next) {
        next = d->next;
        tasks_drop(d);
        d->next = r->pool;
        r->pool = d;
    }
    r->dispatches = NULL;
}

void rank_end(rank *r)
{
    atomic_store_explicit(&r->ending, true, memory_order_seq_cst);
    rank_ring(&r->s.seg, r->s.header);
}
