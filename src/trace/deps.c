/* deps.json: tasks, the memory that they use, and the order among them. Numbers of 64 bits are strings: readers
 * that keep numbers as floats would lose digits. */
#include "trace/trace.h"

#include "base/bits.h"

/* Memory that a wrapper has created and never passed on has no dtype: it is so many bytes. */
static const char *dtype_name(int32_t dtype)
{
    return dtype < 0 ? "uint8" : pypto_dtype_name((pypto_dtype)dtype);
}

static int64_t elements(int32_t dtype, int64_t bytes)
{
    const int64_t one = dtype < 0 ? 1 : pypto_dtype_size((pypto_dtype)dtype, 2);
    return one == 0 ? bytes : bytes * 2 / one;
}

static const trace_buffer *buffer_at(const trace_graph *g, int64_t task, int32_t arg)
{
    return &g->buffers.items[g->arg_buffers[task][arg]];
}

/* shape, start_offset and strides, counted in elements. */
static void add_geometry(const trace_graph *g, int64_t task, int32_t arg, const trace_arg *from,
                         const char *prefix, text *out)
{
    const int64_t offset = from->data - buffer_at(g, task, arg)->address;
    text_printf(out, ",\"%sshape\":", prefix);
    json_numbers(out, from->shape, from->ndim);
    text_printf(out, ",\"%sstart_offset\":%lld,\"%sstrides\":", prefix,
                (long long)elements(from->dtype, offset), prefix);
    json_numbers(out, from->stride, from->ndim);
}

static const char *arg_type(const trace_run *run, const event_task *t, int32_t i)
{
    static const char *const types[] = {"INPUT", "OUTPUT", "INOUT"};
    if (t->function < 0 || (t->independent_args & word_bit(i)) != 0)
        return "NO_DEP";
    return types[run->table->functions[t->function]->params[i].direction];
}

static void add_arg(const trace_run *run, const trace_graph *g, const trace_task *t, int64_t k,
                    int32_t i, text *out)
{
    const trace_arg *arg = &t->args[i];
    json_next(out);
    if (arg->kind != PLD_ARG_TENSOR) {
        text_printf(out, "{\"idx\":%d,\"type\":\"SCALAR\",\"value\":", i);
        if (arg->kind == PLD_ARG_FLOAT)
            text_printf(out, arg->real - arg->real == 0 ? "%.17g}" : "null}", arg->real);
        else
            text_printf(out, "\"%lld\"}", (long long)arg->integer);
        return;
    }
    text_printf(out, "{\"idx\":%d,\"type\":\"%s\",\"tensor_id\":\"%d\",\"dtype\":\"%s\"", i,
                arg_type(run, t->event, i), g->arg_buffers[k][i], dtype_name(arg->dtype));
    add_geometry(g, k, i, arg, "", out);
    text_add(out, "}");
}

static void add_task(const trace_run *run, const trace_dispatch *d, const trace_graph *g, int64_t k,
                     text *out)
{
    const trace_task *t = &d->tasks.items[k];
    json_next(out);
    text_printf(out,
                "\n{\"task_id\":\"%lld\",\"scope\":\"%s\",\"kernel_ids\":[-1,%d,-1],"
                "\"block_num\":%lld,\"args\":[",
                (long long)t->event->id - 1,
                (t->event->flags & TASK_MANUAL) != 0 ? "manual" : "auto", t->event->function,
                (long long)t->event->blocks);
    for (int32_t i = 0; i < t->event->arg_count; ++i)
        add_arg(run, g, t, k, i, out);
    text_add(out, "]}");
}

static void add_edge(const trace_dispatch *d, const trace_graph *g, const trace_edge *e, text *out)
{
    static const char *const sources[] = {"explicit", "creator", "tensormap"};
    const trace_task *x = &d->tasks.items[e->earlier], *y = &d->tasks.items[e->later];
    json_next(out);
    text_printf(out,
                "\n{\"pred\":\"%lld\",\"succ\":\"%lld\",\"arg\":%d,\"source\":\"%s\","
                "\"flags\":[\"wait\"%s]",
                (long long)x->event->id - 1, (long long)y->event->id - 1, e->later_arg,
                sources[e->source], e->source == SOURCE_CREATOR ? ",\"retain\"" : "");
    if (e->source != SOURCE_EXPLICIT) {
        text_printf(out, ",\"tensor_id\":\"%d\"", g->arg_buffers[e->later][e->later_arg]);
        add_geometry(g, e->later, e->later_arg, &y->args[e->later_arg], "consumer_", out);
    }
    if (e->source == SOURCE_TENSORMAP) {
        text_printf(out, ",\"overlap\":\"%s\"", e->covered ? "covered" : "other");
        add_geometry(g, e->earlier, e->earlier_arg, &x->args[e->earlier_arg], "producer_", out);
    }
    text_add(out, "}");
}

/* The dispatches that this one comes after. */
static void add_after(const trace_run *run, const trace_dispatch *d, text *out)
{
    for (int64_t i = 0; i < d->taken->dep_count; ++i) {
        const trace_dispatch *before = trace_find(run, d->deps[i].consumer, d->deps[i].number);
        if (before == NULL)
            continue; /* of an earlier call, or not noted */
        json_next(out);
        text_add(out, "{");
        trace_add_owner(run, before, out);
        text_add(out, "}");
    }
}

void trace_deps(const trace_run *run, const trace_dispatch *d, const trace_graph *graph, text *out)
{
    text_add(out, "{");
    trace_add_owner(run, d, out);
    text_printf(out, ",\"dropped\":%lld,\n\"after\":[",
                (long long)run->consumers[d->consumer].dropped);
    add_after(run, d, out);
    text_add(out, "],\n\"tasks\":[");
    for (int64_t k = 0; k < d->tasks.count; ++k)
        add_task(run, d, graph, k, out);
    text_add(out, "],\n\"tensors\":[");
    for (int64_t i = 0; i < graph->buffers.count; ++i) {
        const trace_buffer *b = &graph->buffers.items[i];
        json_next(out);
        text_printf(out,
                    "\n{\"tensor_id\":\"%lld\",\"buffer_addr\":\"%lld\",\"version\":%d,"
                    "\"dtype\":\"%s\",\"buffer_numel\":\"%lld\"}",
                    (long long)i, (long long)b->address, b->version, dtype_name(b->dtype),
                    (long long)elements(b->dtype, b->bytes));
    }
    text_add(out, "],\n\"edges\":[");
    for (int64_t i = 0; i < graph->edges.count; ++i)
        add_edge(d, graph, &graph->edges.items[i], out);
    text_add(out, "]}\n");
}
