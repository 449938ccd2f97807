/* The loop of a rank: takes dispatches from the queue in order, runs the wrapper and the kernels
 * that it submits, publishes completion, and obeys poison. */
#include "runtime/args.h"
#include "runtime/rank.h"

#include "base/alloc.h"
#include "sched/describe.h"

#include <fenv.h>
#include <string.h>

/* ---- the end of a record ---- */

static void complete(rank *r, queue_record *record)
{
    set_header *set = r->s.seg.set;
    queue_pop(&r->queue, record);
    /* seq_cst: a rank that waits for this dispatch raised dispatch_waiters before its last look. */
    atomic_store_explicit(&r->s.header->completed, r->queue.taken, memory_order_seq_cst);
    if (atomic_load_explicit(&set->dispatch_waiters, memory_order_seq_cst) > 0)
        segment_ring_all(&r->s.seg);
    if (atomic_fetch_sub_explicit(&set->outstanding, 1, memory_order_seq_cst) == 1)
        sched_ring_host(&r->s);
}

/* ---- starting a dispatch ---- */

static bool ensure_windows(dispatch *d, int32_t count)
{
    if (count <= d->capacity)
        return true;
    pld_window *windows = alloc_resize(d->windows, count, (int64_t)sizeof *windows);
    if (windows != NULL)
        d->windows = windows;
    pld_comm *comms = alloc_resize(d->comms, count, (int64_t)sizeof *comms);
    if (comms != NULL)
        d->comms = comms;
    if (windows == NULL || comms == NULL)
        return false;
    d->capacity = count;
    return true;
}

static void fill_comm(pld_comm *comm, uint64_t devices, int32_t me)
{
    *comm = (pld_comm){0};
    for (int32_t device = 0; device < PYPTO_MAX_RANKS; ++device) {
        if ((devices >> device & 1) == 0)
            continue;
        if (device == me)
            comm->rank = comm->nranks;
        comm->devices[comm->nranks++] = (uint8_t)device;
    }
}

static void fill_tensor(rank *r, pld_tensor *tensor, int32_t i, const queue_arg *from)
{
    const segment *seg = &r->s.seg;
    tensor->dtype = from->dtype;
    tensor->ndim = from->ndim;
    memcpy(tensor->shape, from->shape, sizeof tensor->shape);
    memcpy(tensor->stride, from->stride, sizeof tensor->stride);
    if (from->buffer < 0) {
        tensor->window = NULL;
        tensor->data = seg->base + from->data;
        return;
    }
    fill_comm(&r->current.comms[i], from->devices, r->s.rank);
    pld_window *window = &r->current.windows[i];
    char *slice = segment_slice(seg, r->s.rank);
    *window = (pld_window){.comm = &r->current.comms[i],
                           .base = slice + from->window_start,
                           .device_base = segment_slice(seg, 0) + from->window_start,
                           .stride = seg->set->stride,
                           .bytes = from->window_bytes,
                           .buffer = from->buffer};
    tensor->window = window;
    tensor->data = slice + from->data;
}

static void fill_args(rank *r, pld_core *task, queue_record *record)
{
    const queue_arg *from = record_args(record);
    for (int32_t i = 0; i < record->item_count; ++i) {
        pld_arg *to = &task->args[i];
        *to = (pld_arg){
            .kind = (pld_arg_kind)from[i].kind, .integer = from[i].integer, .real = from[i].real};
        if (to->kind == PLD_ARG_TENSOR) {
            fill_tensor(r, &task->tensors[i], i, &from[i]);
            to->tensor = &task->tensors[i];
        }
    }
}

/* Starts the wrapper. False when memory is exhausted. */
static bool start_wrapper(rank *r, queue_record *record)
{
    const pld_program *table =
        atomic_load_explicit(&r->programs[record->program], memory_order_acquire);
    if (!ensure_windows(&r->current, record->item_count))
        return false;
    pld_core *task = sched_take_task(&r->s, record->item_count);
    if (task == NULL)
        return false;
    task->call = record->call;
    task->program = record->program;
    task->function_index = record->function;
    task->table = table;
    task->function = table->functions[record->function];
    task->context = &r->current;
    fill_args(r, task, record);
    if (!sched_start(&r->s, task)) {
        sched_give_task(&r->s, task);
        return false;
    }
    r->current.live = 1;
    return true;
}

/* Marks (or unmarks) that this rank waits for another rank's dispatch. */
static void set_dispatch_wait(rank *r, bool waits)
{
    if (waits == r->waits_for_dispatch)
        return;
    r->waits_for_dispatch = waits;
    atomic_fetch_add_explicit(&r->s.seg.set->dispatch_waiters, waits ? 1 : -1,
                              memory_order_seq_cst);
    if (!waits)
        r->s.dispatch_wait.kind = WAIT_NONE;
}

static bool deps_complete(rank *r, queue_record *record)
{
    const queue_dep *deps = record_deps(record);
    for (int32_t i = 0; i < record->dep_count; ++i) {
        const wait_entry wait = {.kind = WAIT_DISPATCH,
                                 .program = record->program,
                                 .function = record->function,
                                 .device = deps[i].device,
                                 .sequence = deps[i].sequence};
        if (wait_satisfied(&r->s.seg, &wait))
            continue;
        r->s.dispatch_wait = wait;
        return false;
    }
    return true;
}

static void clear_ranges(rank *r, queue_record *record)
{
    char *slice = segment_slice(&r->s.seg, r->s.rank);
    const heap_block *ranges = record_ranges(record);
    for (int32_t i = 0; i < record->item_count; ++i)
        memset(slice + ranges[i].offset, 0, (size_t)ranges[i].bytes);
}

/* Takes the next record if it can run. True when something was done. */
static bool take_record(rank *r)
{
    queue_record *record = queue_peek(&r->queue);
    if (record == NULL)
        return false;
    if (record->kind == RECORD_CLEAR) {
        clear_ranges(r, record);
        complete(r, record);
        return true;
    }
    if (record->call <= r->s.poison_seen) {
        set_dispatch_wait(r, false);
        complete(r, record);
        return true;
    }
    if (!deps_complete(r, record)) {
        set_dispatch_wait(r, true);
        return false;
    }
    set_dispatch_wait(r, false);
    r->current.active = true;
    r->current.record = record;
    if (!start_wrapper(r, record))
        sched_fail(&r->s, record->call, record->program, record->function, 0, DIAG_OUT_OF_MEMORY,
                   "memory is exhausted on this rank");
    return true;
}

/* ---- the running dispatch ---- */

static void task_over(void *context, pld_core *task, bool ended)
{
    rank *r = context;
    (void)task;
    (void)ended; /* a dropped task's call is poisoned: obey_poison cleans up */
    --r->current.live;
}

/* Starts the next submitted kernel, or completes the dispatch. True when something was done. */
static bool advance(rank *r)
{
    dispatch *d = &r->current;
    if (d->live > 0)
        return false;
    pld_core *next = d->pending_first;
    if (next != NULL) {
        d->pending_first = next->next;
        if (d->pending_first == NULL)
            d->pending_last = NULL;
        d->live = 1;
        if (!sched_start(&r->s, next)) {
            d->live = 0;
            sched_fail(&r->s, next->call, next->program, next->function_index, next->function->line,
                       DIAG_OUT_OF_MEMORY, "no memory for the kernel's scratch or stack");
            sched_give_task(&r->s, next);
        }
        return true;
    }
    if (d->record->call <= atomic_load_explicit(&r->s.seg.set->poison, memory_order_relaxed))
        return false; /* obey_poison ends it */
    if (d->joining != NULL) {
        d->live = 1;
        sched_resume(&r->s, d->joining);
        d->joining = NULL;
        return true;
    }
    d->active = false;
    complete(r, d->record);
    return true;
}

static void discard_joining(rank *r)
{
    pld_core *task = r->current.joining;
    if (task == NULL)
        return;
    r->current.joining = NULL;
    ++r->current.live; /* task_over() takes it back */
    sched_discard(&r->s, task);
}

/* Drops what belongs to poisoned calls. True when there was something to obey. */
static bool obey_poison(rank *r)
{
    const uint64_t poison = atomic_load_explicit(&r->s.seg.set->poison, memory_order_seq_cst);
    if (poison <= r->s.poison_seen)
        return false;
    sched_drop(&r->s, poison);
    dispatch *d = &r->current;
    if (d->active && d->record->call <= poison) {
        discard_joining(r);
        while (d->pending_first != NULL) {
            pld_core *task = d->pending_first;
            d->pending_first = task->next;
            sched_give_task(&r->s, task);
        }
        d->pending_last = NULL;
        d->active = false;
        complete(r, d->record);
    }
    r->s.poison_seen = poison;
    atomic_store_explicit(&r->s.header->acknowledged, poison, memory_order_seq_cst);
    sched_ring_host(&r->s);
    return true;
}

static bool has_work(void *context)
{
    rank *r = context;
    if (atomic_load_explicit(&r->ending, memory_order_seq_cst) ||
        atomic_load_explicit(&r->s.seg.set->poison, memory_order_seq_cst) > r->s.poison_seen)
        return true;
    if (r->current.active)
        return r->current.live == 0;
    if (r->waits_for_dispatch)
        return wait_satisfied(&r->s.seg, &r->s.dispatch_wait);
    return queue_peek(&r->queue) != NULL;
}

pypto_status rank_init(rank *r, segment seg, int32_t number, int host_event)
{
    pypto_status status = sched_init(&r->s, seg, number, host_event);
    if (!status_ok(status))
        return status;
    r->s.has_work = has_work;
    r->s.task_over = task_over;
    r->s.context = r;
    r->s.poison_seen = atomic_load_explicit(&seg.set->poison, memory_order_relaxed);
    queue_reader_init(&r->queue, &r->s.seg, r->s.header);
    return STATUS_OK;
}

void rank_destroy(rank *r)
{
    alloc_free(r->current.windows);
    alloc_free(r->current.comms);
    sched_destroy(&r->s);
}

void rank_loop(rank *r)
{
    /* A library loaded with -ffast-math may have switched denormals off for the thread that we
     * inherit from; results must not depend on it. */
    fesetenv(FE_DFL_ENV);
    atomic_store_explicit(&r->s.header->state, RANK_RUNNING, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->s.seg.set->running, 1, memory_order_seq_cst);
    while (!atomic_load_explicit(&r->ending, memory_order_acquire)) {
        if (obey_poison(r))
            continue;
        if (r->current.active ? advance(r) : take_record(r))
            continue;
        sched_turn(&r->s);
    }
    atomic_fetch_sub_explicit(&r->s.seg.set->running, 1, memory_order_seq_cst);
    /* Whatever was running is dropped: the set is being closed. */
    sched_drop(&r->s, UINT64_MAX);
    discard_joining(r);
    for (pld_core *task = r->current.pending_first; task != NULL;) {
        pld_core *next = task->next;
        sched_give_task(&r->s, task);
        task = next;
    }
}

void rank_end(rank *r)
{
    atomic_store_explicit(&r->ending, true, memory_order_seq_cst);
    rank_ring(&r->s.seg, r->s.header);
}

/* ---- kernels of a wrapper ---- */

void task_join(pld_core *core)
{
    dispatch *d = core->context;
    if (d->pending_first == NULL)
        return; /* they run one after the other, and none runs beside the wrapper */
    d->joining = core;
    --d->live;
    task_suspend(core);
}

static int32_t function_index(const pld_program *table, const pld_function *function)
{
    for (int32_t i = 0; i < table->nfunctions; ++i)
        if (table->functions[i] == function)
            return i;
    return -1;
}

void(pld_submit)(pld_core *core, const pld_function *kernel, const pld_arg *args, int32_t count)
{
    task_check(core);
    char why[NAME_TEXT];
    const int32_t index = function_index(core->table, kernel);
    if (index < 0 || kernel->plane != PLD_PLANE_CORE)
        task_fail(core, DIAG_KERNEL_FAILED, "'%s' is not an in-core function of this program",
                  kernel->name);
    if (!args_fit(kernel, args, count, why, sizeof why))
        task_fail(core, DIAG_KERNEL_FAILED, "%s", why);
    pld_core *task = sched_take_task(core->owner, count);
    if (task == NULL)
        task_fail(core, DIAG_OUT_OF_MEMORY, "no memory for another task");
    task->call = core->call;
    task->program = core->program;
    task->function_index = index;
    task->table = core->table;
    task->function = kernel;
    task->context = core->context;
    for (int32_t i = 0; i < count; ++i) {
        task->args[i] = args[i];
        if (args[i].kind == PLD_ARG_TENSOR) {
            task->tensors[i] = *args[i].tensor;
            task->args[i].tensor = &task->tensors[i];
        }
    }
    dispatch *d = core->context;
    if (d->pending_last != NULL)
        d->pending_last->next = task;
    else
        d->pending_first = task;
    d->pending_last = task;
}
