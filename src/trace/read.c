/* From the notes of ranks to dispatches, tasks and blocks: pointers into the notes, sorted by what they belong to. */
#include "trace/trace.h"

const char *trace_function(const trace_run *run, int32_t index)
{
    return index >= 0 && index < run->table->nfunctions ? run->table->functions[index]->name : "?";
}

/* The dispatch of that number. */
static trace_dispatch *find(const trace_consumer *r, uint64_t number)
{
    int64_t low = 0, high = r->dispatches.count; /* they were taken in order */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (r->dispatches.items[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->dispatches.count && r->dispatches.items[low]->number == number
               ? r->dispatches.items[low]
               : NULL;
}

const trace_dispatch *trace_find(const trace_run *run, int64_t consumer, uint64_t number)
{
    return consumer < run->consumer_count ? find(&run->consumers[consumer], number) : NULL;
}

const char *trace_owner(const trace_run *run, const trace_dispatch *d, int32_t *number)
{
    const bool is_sub = d->consumer >= run->rank_count;
    *number = is_sub ? d->consumer - run->rank_count : d->consumer;
    return is_sub ? "sub" : "rank";
}

void trace_add_owner(const trace_run *run, const trace_dispatch *d, text *out)
{
    int32_t number;
    const char *owner = trace_owner(run, d, &number);
    text_printf(out, "\"%s\":%d,\"dispatch\":%d", owner, number, d->index);
}

static void add_taken(trace_run *run, int32_t consumer, const event_taken *e)
{
    trace_consumer *r = &run->consumers[consumer];
    trace_dispatch *d = arena_new(run->a, trace_dispatch);
    *d = (trace_dispatch){.consumer = consumer,
                          .index = (int32_t)r->dispatches.count,
                          .number = e->head.dispatch,
                          .taken = e,
                          .deps = (const trace_dep *)(const void *)(e + 1)};
    vec_push(run->a, &r->dispatches, d);
}

static void add_task(trace_run *run, trace_dispatch *d, const event_task *e)
{
    const int64_t *after = (const int64_t *)(const void *)(e + 1);
    const trace_task t = {e, after, (const trace_arg *)(const void *)(after + e->after_count)};
    vec_push(run->a, &d->tasks, t);
}

static void add_block(trace_run *run, trace_dispatch *d, const event_block *e)
{
    if (e->task == 0)
        d->wrapper = e;
    else
        vec_push(run->a, &d->blocks, e);
}

static void add_event(trace_run *run, int32_t consumer, const trace_event *head)
{
    trace_consumer *r = &run->consumers[consumer];
    const void *e = head;
    if (head->kind == EVENT_TAKEN) {
        add_taken(run, consumer, e);
        return;
    }
    trace_dispatch *d = find(r, head->dispatch);
    if (d == NULL)
        return;
    switch ((trace_event_kind)head->kind) {
    case EVENT_TAKEN: break;
    case EVENT_BEGUN:
        d->begun = e;
        d->args = (const trace_arg *)(const void *)(d->begun + 1);
        break;
    case EVENT_OVER: d->over = e; break;
    case EVENT_TASK: add_task(run, d, e); break;
    case EVENT_BLOCK: add_block(run, d, e); break;
    case EVENT_PHASE: vec_push(run->a, &r->phases, e); break;
    case EVENT_SCOPE: vec_push(run->a, &d->scopes, e); break;
    case EVENT_MEMORY: vec_push(run->a, &d->memory, e); break;
    case EVENT_CONTENT: vec_push(run->a, &d->contents, e); break;
    }
}

void trace_read(trace_run *run, trace_log *const *logs)
{
    for (int32_t consumer = 0; consumer < run->consumer_count; ++consumer) {
        const trace_log *log = logs[consumer];
        if (log == NULL)
            continue;
        run->origin_ns = log->origin_ns;
        run->consumers[consumer].dropped =
            atomic_load_explicit(&log->dropped, memory_order_relaxed);
        const char *events = (const char *)(log + 1);
        const int64_t used = atomic_load_explicit(&log->used, memory_order_acquire);
        for (int64_t at = 0; at < used;) {
            const trace_event *head = (const trace_event *)(const void *)(events + at);
            add_event(run, consumer, head);
            at += head->bytes;
        }
    }
}
