/* merged_swimlane_*.json: the same in the form that trace viewers open (Perfetto, chrome://tracing). A process is a rank,
 * a thread one of its lanes; arrows lead from a task to those that come after it. */
#include "trace/trace.h"

#include <stdio.h>

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

static void add_names(const trace_dispatch *d, text *out)
{
    char name[32];
    (void)snprintf(name, sizeof name, "rank %d", d->rank);
    add_name("process_name", d->rank, 0, name, out);
    int32_t lanes = 0;
    for (int64_t i = 0; i < d->blocks.count; ++i) {
        const int32_t lane = d->blocks.items[i]->lane;
        for (; lanes <= lane; ++lanes) {
            (void)snprintf(name, sizeof name, "AIV_%d", lanes);
            add_name("thread_name", d->rank, lanes + 1, name, out);
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
    for (int32_t ends = 0; ends < 2; ++ends) {
        json_next(out);
        text_add(out, "\n{\"cat\":\"dispatch\",\"name\":");
        json_string(out, trace_function(run, d->taken->function));
        text_printf(out, ",\"ph\":\"%s\",\"id\":\"r%dd%d\",\"pid\":%d,\"tid\":0,\"ts\":%.3f}",
                    ends != 0 ? "e" : "b", d->rank, d->index, d->rank,
                    microseconds(run, ends != 0 ? end : d->taken->taken_ns));
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
                d->rank, b->lane + 1, microseconds(run, b->started_ns),
                (double)(b->ended_ns - b->started_ns) / 1000.0, d->index, (long long)b->task - 1,
                (long long)b->block, b->cpu);
    if (run->wanted->swimlane >= 2)
        text_printf(out, ",\"ready_us\":%.3f,\"over_us\":%.3f", microseconds(run, b->ready_ns),
                    microseconds(run, b->over_ns));
    text_add(out, "}}");
}

static void add_arrow(const trace_run *run, const trace_dispatch *d, int64_t number,
                      const event_block *b, bool ends, text *out)
{
    /* Inside of the bar, at its end or its beginning: that is what ties the arrow to it. */
    const int64_t at = ends || b->ended_ns == b->started_ns ? b->started_ns : b->ended_ns - 1;
    json_next(out);
    text_printf(out,
                "\n{\"cat\":\"order\",\"name\":\"order\",\"ph\":\"%s\",\"id\":\"r%dd%de%lld\","
                "\"pid\":%d,\"tid\":%d,\"ts\":%.3f%s}",
                ends ? "f" : "s", d->rank, d->index, (long long)number, d->rank, b->lane + 1,
                microseconds(run, at), ends ? ",\"bp\":\"e\"" : "");
}

static void add_arrows(const trace_run *run, const trace_dispatch *d, const trace_graph *graph,
                       const task_span *spans, text *out)
{
    for (int64_t i = 0; i < graph->edges.count; ++i) {
        const trace_edge *e = &graph->edges.items[i];
        if (spans[e->earlier].last == NULL || spans[e->later].first == NULL)
            continue;
        add_arrow(run, d, i, spans[e->earlier].last, false, out);
        add_arrow(run, d, i, spans[e->later].first, true, out);
    }
}

void trace_chrome_add(const trace_run *run, const trace_dispatch *d, const trace_graph *graph,
                      text *out)
{
    task_span *spans = arena_array(run->a, task_span, d->tasks.count + 1);
    for (int64_t i = 0; i < d->tasks.count; ++i)
        spans[i] = (task_span){NULL, NULL};
    add_names(d, out);
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
