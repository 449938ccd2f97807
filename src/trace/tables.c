/* The small files: scope_stats.jsonl, pmu.csv and the map of names. */
#include "trace/trace.h"

/* Hardware has four rings of buffers, and readers of these files expect four numbers: all is in the first here. */
static void add_ring(text *out, const char *name, int64_t number)
{
    text_printf(out, ",\"%s\":[%lld,0,0,0]", name, (long long)number);
}

/* A line: the scope, what is held `now`, and how it is with the scope. */
static void add_scope(const trace_run *run, const event_scope *scope, const event_scope *now,
                      int32_t phase, text *out)
{
    const pld_function *f = run->table->functions[scope->function];
    text site = {.a = run->a};
    text_printf(&site, "%s:%d", f->file, scope->line);
    text_add(out, "{\"site\":");
    json_string(out, site.bytes);
    text_add(out, ",\"scope\":");
    json_string(out, scope->scope);
    text_add(out, ",\"name\":");
    json_string(out, scope->name);
    text_printf(out,
                ",\"phase\":\"%s\",\"depth\":%d,\"ring\":0,"
                "\"task_window_start\":%lld,\"task_window_end\":%lld,"
                "\"heap_start\":%lld,\"heap_end\":%lld,"
                "\"dep_pool_start\":%lld,\"dep_pool_end\":%lld,\"tensormap\":%lld%s}\n",
                phase == SCOPE_BEGINS ? "begin" : "end", scope->depth, (long long)now->over,
                (long long)now->submitted, (long long)now->given_bytes, (long long)now->taken_bytes,
                (long long)now->edges_over, (long long)now->edges, (long long)now->tensors,
                phase == SCOPE_FAILS ? ",\"failed\":true" : "");
}

void trace_scopes(const trace_run *run, const trace_dispatch *d, text *out)
{
    static const event_scope none = {.function = -1};
    const int64_t count = d->scopes.count;
    const event_scope *last = count > 0 ? d->scopes.items[count - 1] : &none;
    const int64_t dropped = run->consumers[d->consumer].dropped;
    const bool lost = d->over == NULL && dropped == 0; /* with its rank */
    text lines = {.a = run->a};
    VEC(const event_scope *) open = {0};
    for (int64_t i = 0; i < count; ++i) {
        const event_scope *s = d->scopes.items[i];
        add_scope(run, s, s, s->phase, &lines);
        if (s->phase == SCOPE_BEGINS)
            vec_push(run->a, &open, s);
        else if (open.count > 0)
            --open.count;
    }
    const int64_t left = lost ? open.count : 0;
    for (int64_t i = left; i > 0; --i)
        add_scope(run, open.items[i - 1], last, SCOPE_FAILS, &lines);
    const bool failed = lost || (d->over != NULL && d->over->failed != 0);
    text_printf(out, "{\"version\":6,\"fatal\":%s,\"dropped\":%lld,\"total\":%lld",
                failed ? "true" : "false", (long long)dropped, (long long)(count + left));
    add_ring(out, "task_window_max", last->most_tasks);
    add_ring(out, "heap_max", last->most_bytes);
    add_ring(out, "dep_pool_max", last->most_edges);
    text_printf(out, ",\"tensormap_max\":%lld}\n", (long long)last->most_tensors);
    if (lines.length > 0)
        text_add(out, lines.bytes);
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
