/* The small files: scope_stats.jsonl, pmu.csv and the map of names. */
#include "trace/trace.h"

/* Rings are the hardware's: everything here is in the first of four. */
static void add_ring(text *out, const char *name, int64_t number)
{
    text_printf(out, ",\"%s\":[%lld,0,0,0]", name, (long long)number);
}

void trace_scopes(const trace_run *run, const trace_dispatch *d, text *out)
{
    static const event_scope none = {.function = -1};
    const int64_t count = d->scopes.count;
    const event_scope *last = count > 0 ? d->scopes.items[count - 1] : &none;
    const int64_t dropped = run->consumers[d->consumer].dropped;
    text_printf(out, "{\"version\":6,\"fatal\":%s,\"dropped\":%lld,\"total\":%lld",
                d->over == NULL && dropped == 0 ? "true" : "false", (long long)dropped,
                (long long)count);
    add_ring(out, "task_window_max", last->most_tasks);
    add_ring(out, "heap_max", last->most_bytes);
    add_ring(out, "dep_pool_max", last->most_edges);
    text_printf(out, ",\"tensormap_max\":%lld}\n", (long long)last->most_tensors);
    for (int64_t i = 0; i < count; ++i) {
        const event_scope *s = d->scopes.items[i];
        const pld_function *f = run->table->functions[s->function];
        text site = {.a = run->a};
        text_printf(&site, "%s:%d", f->file, s->line);
        text_add(out, "{\"site\":");
        json_string(out, site.bytes);
        text_add(out, ",\"scope\":");
        json_string(out, s->scope);
        text_add(out, ",\"name\":");
        json_string(out, s->name);
        text_printf(out,
                    ",\"phase\":\"%s\",\"depth\":%d,\"ring\":0,"
                    "\"task_window_start\":%lld,\"task_window_end\":%lld,"
                    "\"heap_start\":%lld,\"heap_end\":%lld,"
                    "\"dep_pool_start\":%lld,\"dep_pool_end\":%lld,\"tensormap\":%lld}\n",
                    s->ends != 0 ? "end" : "begin", s->depth, (long long)s->over,
                    (long long)s->submitted, (long long)s->given_bytes, (long long)s->taken_bytes,
                    (long long)s->edges_over, (long long)s->edges, (long long)s->tensors);
    }
}

void trace_pmu(const trace_run *run, const trace_dispatch *d, text *out)
{
    text_add(out, "thread_id,core_id,core_type,task_id,func_id,event_type,pmu_total_cycles\n");
    for (int64_t i = 0; i < d->blocks.count; ++i) {
        const event_block *b = d->blocks.items[i];
        text_printf(out, "0,%d,aiv,%lld,%d,%d,%lld\n", b->lane, (long long)b->task - 1, b->function,
                    run->wanted->pmu, (long long)(b->ended_ns - b->started_ns));
    }
}

void trace_names(const trace_run *run, text *out)
{
    text_add(out, "{\"level\":2,\"orchestrator_name\":null,\"callable_id_to_name\":{");
    for (int32_t i = 0; i < run->table->nfunctions; ++i) {
        if (run->table->functions[i]->plane != PLD_PLANE_CORE &&
            run->table->functions[i]->plane != PLD_PLANE_SUB)
            continue;
        json_next(out);
        text_printf(out, "\"%d\":", i);
        json_string(out, trace_function(run, i));
    }
    text_add(out, "}}\n");
}
