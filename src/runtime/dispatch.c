/* Dispatches as objects: what a record of the queue becomes from when it is taken until it is complete, its arguments
 * in this rank's memory, and the cores that run its functions. Called by loop.c, which knows when each of them may
 * start, by task.c and by sub.c. Objects are pooled, with the room that they have grown to. */
#include "runtime/rank.h"
#include "runtime/tracing.h"

#include "base/alloc.h"

#include <string.h>

/* ---- dispatch objects ---- */

static void dispatch_free(dispatch *d)
{
    node_free(&d->node);
    node_free(&d->awaiting);
    memory_destroy(&d->created);
    arg_list_free(&d->arguments);
    alloc_free(d->windows);
    alloc_free(d->comms);
    alloc_free(d->by_id);
    alloc_free(d);
}

void dispatches_free_pool(rank *r)
{
    for (dispatch *d = r->pool, *next; d != NULL; d = next) {
        next = d->next;
        dispatch_free(d);
    }
    r->pool = NULL;
}

dispatch *dispatch_take(rank *r)
{
    dispatch *d = r->pool;
    if (d != NULL)
        r->pool = d->next;
    else if ((d = alloc_zeroed(1, (int64_t)sizeof *d)) == NULL)
        return NULL;
    d->owner = r;
    d->deps_done = 0;
    d->wrapper_over = false;
    d->last_task = 0;
    node_reset(&d->node);
    node_reset(&d->awaiting);
    d->previous = NULL;
    d->next = r->dispatches;
    if (d->next != NULL)
        d->next->previous = d;
    r->dispatches = d;
    return d;
}

bool dispatch_reserve_args(dispatch *d, int32_t count)
{
    if (!arg_list_reserve(&d->arguments, count))
        return false;
    if (count <= d->window_capacity)
        return true;
    pld_window *windows = alloc_resize(d->windows, count, (int64_t)sizeof *windows);
    if (windows != NULL)
        d->windows = windows;
    pld_comm *comms = alloc_resize(d->comms, count, (int64_t)sizeof *comms);
    if (comms != NULL)
        d->comms = comms;
    if (windows == NULL || comms == NULL)
        return false;
    d->window_capacity = count;
    return true;
}

/* ---- arguments ---- */

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

static void fill_tensor(dispatch *d, int32_t i, const queue_arg *from)
{
    const sched *s = &d->owner->s;
    const segment *seg = &s->seg;
    pld_tensor *tensor = &d->arguments.tensors[i];
    tensor->dtype = from->dtype;
    tensor->ndim = from->ndim;
    tensor->partial = false;
    memcpy(tensor->shape, from->shape, sizeof tensor->shape);
    memcpy(tensor->stride, from->stride, sizeof tensor->stride);
    if (from->buffer < 0) {
        tensor->window = NULL;
        tensor->data = seg->base + from->data;
        return;
    }
    fill_comm(&d->comms[i], from->devices, s->rank);
    pld_window *window = &d->windows[i];
    char *slice = segment_slice(seg, s->rank);
    *window = (pld_window){.comm = &d->comms[i],
                           .base = slice + from->window_start,
                           .device_base = segment_slice(seg, 0) + from->window_start,
                           .stride = seg->set->stride,
                           .bytes = from->window_bytes,
                           .channels = (int32_t)from->channels,
                           .buffer = from->buffer};
    tensor->window = window;
    tensor->data = slice + from->data;
}

void dispatch_fill_args(dispatch *d)
{
    const queue_arg *from = record_args(d->record);
    for (int32_t i = 0; i < d->record->item_count; ++i) {
        pld_arg *to = &d->arguments.args[i];
        *to = (pld_arg){
            .kind = (pld_arg_kind)from[i].kind, .integer = from[i].integer, .real = from[i].real};
        if (to->kind == PLD_ARG_TENSOR) {
            fill_tensor(d, i, &from[i]);
            to->tensor = &d->arguments.tensors[i];
        }
    }
}

/* ---- cores ---- */

void record_no_memory(rank *r, const queue_record *record, int32_t function, int32_t line)
{
    sched_fail(&r->s, record->call, record->program, function, line, DIAG_OUT_OF_MEMORY,
               "memory is exhausted on this rank", NULL);
}

void dispatch_no_memory(const dispatch *d, int32_t function, int32_t line)
{
    record_no_memory(d->owner, d->record, function, line);
}

pld_core *dispatch_core(dispatch *d, int32_t function, const arg_list *arguments)
{
    rank *r = d->owner;
    const queue_record *record = d->record;
    pld_core *core = sched_take_core(&r->s);
    if (core == NULL)
        return NULL;
    core->call = record->call;
    core->program = record->program;
    core->function_index = function;
    core->table = atomic_load_explicit(&r->programs[record->program], memory_order_acquire);
    core->function = core->table->functions[function];
    core->args = arguments->args;
    core->arg_count = arguments->count;
    core->dispatch = d;
    if (d->log != NULL && (d->log->what & TRACE_BLOCKS) != 0)
        core->log = d->log;
    return core;
}

void dispatch_start(dispatch *d)
{
    if (d->owner->s.uncounted) {
        sub_ready(d);
        return;
    }
    const int32_t function = d->record->function;
    pld_core *core = dispatch_reserve_args(d, d->record->item_count)
                         ? dispatch_core(d, function, &d->arguments)
                         : NULL;
    if (core == NULL) {
        dispatch_no_memory(d, function, 0);
        return;
    }
    dispatch_fill_args(d);
    if (d->log != NULL) {
        core->log = d->log;
        tracing_begun(d);
    }
    sched_start(&d->owner->s, core);
}
