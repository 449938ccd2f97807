/* merged_swimlane_*.json: the same in the form that trace viewers open (Perfetto, chrome://tracing). A process is a rank
 * or a SubWorker, a thread one of its lanes; arrows lead from a task to those that come after it, and from a dispatch. */
#include "trace/trace.h"

#include <stdio.h>
#include <string.h>

/* The first and the last block of a task. */
typedef struct task_span {
    const event_block *first;
    const event_block *last;
} task_span;

void trace_chrome_begin(text *out)
{
    text_add(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

void trace_chrome_end(text *out)
{
    text_add(out, "]}\n");
}

static double microseconds(const trace_run *run, int64_t ns)
{
    return (double)trace_time(run, ns) / 1000.0;
}

static void add_name(const char *what, int32_t rank, int32_t lane, const char *name, text *out)
{
    json_next(out);
    text_printf(out,
                "\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{\"name\":", rank,
                lane, what);
    json_string(out, name);
    text_add(out, "}}");
}

static void add_names(const trace_run *run, const trace_dispatch *d, text *out)
{
    char name[32];
    int32_t number;
    const bool is_rank = strcmp(trace_owner(run, d, &number), "rank") == 0;
    (void)snprintf(name, sizeof name, is_rank ? "rank %d" : "SubWorker %d", number);
    add_name("process_name", d->consumer, 0, name, out);
    int32_t lanes = 0;
    for (int64_t i = 0; i < d->blocks.count; ++i) {
        const int32_t lane = d->blocks.items[i]->lane;
        for (; lanes <= lane; ++lanes) {
            (void)snprintf(name, sizeof name, is_rank ? "AIV_%d" : "calls", lanes);
            add_name("thread_name", d->consumer, lanes + 1, name, out);
        }
    }
}

/* From when it was taken to its end, or to its last block if it has none. */
static void add_dispatch(const trace_run *run, const trace_dispatch *d, text *out)
{
    int64_t end = d->taken->taken_ns;
    for (int64_t i = 0; i < d->blocks.count; ++i)
        end = d->blocks.items[i]->over_ns > end ? d->blocks.items[i]->over_ns : end;
    end = d->over != NULL ? d->over->over_ns : end;
    const bool failed =
        d->over == NULL ? run->consumers[d->consumer].dropped == 0 : d->over->failed != 0;
    for (int32_t ends = 0; ends < 2; ++ends) {
        json_next(out);
        text_add(out, "\n{\"cat\":\"dispatch\",\"name\":");
        json_string(out, trace_function(run, d->taken->function));
        text_printf(out, ",\"ph\":\"%s\",\"id\":\"r%dd%d\",\"pid\":%d,\"tid\":0,\"ts\":%.3f%s}",
                    ends != 0 ? "e" : "b", d->consumer, d->index, d->consumer,
                    microseconds(run, ends != 0 ? end : d->taken->taken_ns),
                    ends != 0 && failed ? ",\"args\":{\"failed\":true}" : "");
    }
}

static void add_block(const trace_run *run, const trace_dispatch *d, const event_block *b,
                      text *out)
{
    json_next(out);
    text name = {.a = run->a};
    text_printf(&name, "%s(r0t%lld)", trace_function(run, b->function), (long long)b->task - 1);
    text_add(out, "\n{\"cat\":\"task\",\"name\":");
    json_string(out, name.bytes);
    text_printf(out,
                ",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{"
                "\"dispatch\":%d,\"task_id\":%lld,\"block\":%lld,\"cpu\":%d",
                d->consumer, b->lane + 1, microseconds(run, b->started_ns),
                (double)(b->ended_ns - b->started_ns) / 1000.0, d->index, (long long)b->task - 1,
                (long long)b->block, b->cpu);
    if (run->wanted->swimlane >= 2)
        text_printf(out, ",\"ready_us\":%.3f,\"over_us\":%.3f", microseconds(run, b->ready_ns),
                    microseconds(run, b->over_ns));
    if (b->failed != 0)
        text_add(out, ",\"failed\":true");
    text_add(out, "}}");
}

/* An end of the arrow `id`, at a block. */
static void add_arrow(const trace_run *run, const char *id, const trace_dispatch *d,
                      const event_block *b, bool ends, text *out)
{
    /* Inside of the bar, at its end or its beginning: that is what ties the arrow to it. */
    const int64_t at = ends || b->ended_ns == b->started_ns ? b->started_ns : b->ended_ns - 1;
    json_next(out);
    text_printf(out,
                "\n{\"cat\":\"order\",\"name\":\"order\",\"ph\":\"%s\",\"id\":\"%s\","
                "\"pid\":%d,\"tid\":%d,\"ts\":%.3f%s}",
                ends ? "f" : "s", id, d->consumer, b->lane + 1, microseconds(run, at),
                ends ? ",\"bp\":\"e\"" : "");
}

static void add_arrows(const trace_run *run, const trace_dispatch *d, const trace_graph *graph,
                       const task_span *spans, text *out)
{
    for (int64_t i = 0; i < graph->edges.count; ++i) {
        const trace_edge *e = &graph->edges.items[i];
        if (spans[e->earlier].last == NULL || spans[e->later].first == NULL)
            continue;
        char id[64];
        (void)snprintf(id, sizeof id, "r%dd%de%lld", d->consumer, d->index, (long long)i);
        add_arrow(run, id, d, spans[e->earlier].last, false, out);
        add_arrow(run, id, d, spans[e->later].first, true, out);
    }
}

/* The first or the last block of a dispatch; NULL: it has none. */
static const event_block *outer_block(const trace_dispatch *d, bool last)
{
    const event_block *found = NULL;
    for (int64_t i = 0; i < d->blocks.count; ++i) {
        const event_block *b = d->blocks.items[i];
        if (found == NULL ||
            (last ? b->ended_ns > found->ended_ns : b->started_ns < found->started_ns))
            found = b;
    }
    return found;
}

static void add_dispatch_order(const trace_run *run, const trace_dispatch *d, text *out)
{
    const event_block *first = outer_block(d, false);
    for (int64_t i = 0; first != NULL && i < d->taken->dep_count; ++i) {
        const trace_dispatch *before = trace_find(run, d->deps[i].consumer, d->deps[i].number);
        const event_block *last = before != NULL ? outer_block(before, true) : NULL;
        if (last == NULL)
            continue;
        char id[64];
        (void)snprintf(id, sizeof id, "r%dd%da%lld", d->consumer, d->index, (long long)i);
        add_arrow(run, id, before, last, false, out);
        add_arrow(run, id, d, first, true, out);
    }
}

void trace_chrome_order(const trace_run *run, text *out)
{
    for (int32_t i = 0; i < run->consumer_count; ++i)
        for (int64_t k = 0; k < run->consumers[i].dispatches.count; ++k)
            add_dispatch_order(run, run->consumers[i].dispatches.items[k], out);
}

void trace_chrome_add(const trace_run *run, const trace_dispatch *d, const trace_graph *graph,
                      text *out)
{
    task_span *spans = arena_array(run->a, task_span, d->tasks.count + 1);
    for (int64_t i = 0; i < d->tasks.count; ++i)
        spans[i] = (task_span){NULL, NULL};
    add_names(run, d, out);
    add_dispatch(run, d, out);
    for (int64_t i = 0; i < d->blocks.count; ++i) {
        const event_block *b = d->blocks.items[i];
        add_block(run, d, b, out);
        if (b->task > d->tasks.count)
            continue;
        task_span *span = &spans[b->task - 1];
        if (span->first == NULL || b->started_ns < span->first->started_ns)
            span->first = b;
        if (span->last == NULL || b->ended_ns > span->last->ended_ns)
            span->last = b;
    }
    add_arrows(run, d, graph, spans, out);
}
