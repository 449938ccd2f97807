/* chip_swimlane_records.json: which block of which task ran when. A core is a lane here: the lowest number that is free when
 * a block begins, taken until its last instruction, also while it waits. They all belong to one thread, the rank's. A level has
 * nothing of the higher ones. */
#include "trace/trace.h"

static int32_t lanes_of(const trace_dispatch *d)
{
    int32_t lanes = 0;
    for (int64_t i = 0; i < d->blocks.count; ++i) {
        const int32_t lane = d->blocks.items[i]->lane;
        lanes = lane >= lanes ? lane + 1 : lanes;
    }
    return lanes;
}

static void add_metadata(const trace_run *run, const trace_dispatch *d, int32_t lanes, text *out)
{
    text_printf(out, "\"metadata\":{\"clock_freq_hz\":1000000000,\"num_cores\":%d,\"core_types\":[",
                lanes);
    for (int32_t i = 0; i < lanes; ++i)
        text_add(out, i > 0 ? ",\"aiv\"" : "\"aiv\"");
    text_add(out, "],\"core_to_thread\":[");
    for (int32_t i = 0; i < lanes; ++i)
        text_add(out, i > 0 ? ",0" : "0");
    text_add(out, "],");
    trace_add_owner(run, d, out);
    text_printf(out, ",\"dropped\":%lld}", (long long)run->consumers[d->consumer].dropped);
}

/* The rows of blocks; `turns` counts those of each lane. */
static void add_blocks(const trace_run *run, const trace_dispatch *d, int64_t *turns, bool outer,
                       text *out)
{
    for (int64_t i = 0; i < d->blocks.count; ++i) {
        const event_block *b = d->blocks.items[i];
        json_next(out);
        const long long turn = (long long)turns[b->lane]++;
        if (outer)
            text_printf(out, "[%d,%lld,%lld,%lld]", b->lane, turn, trace_time(run, b->ready_ns),
                        trace_time(run, b->over_ns));
        else
            text_printf(out, "[%d,%lld,%lld,%lld,%lld]", b->lane, (long long)b->task - 1, turn,
                        trace_time(run, b->started_ns), trace_time(run, b->ended_ns));
    }
}

static bool is_within(const trace_dispatch *d, const event_phase *p)
{
    return p->ended_ns >= d->taken->taken_ns &&
           (d->over == NULL || p->began_ns <= d->over->over_ns);
}

static void add_phases(const trace_run *run, const trace_dispatch *d, text *out)
{
    static const char *const kinds[] = {"dispatch", "complete", "idle"};
    const trace_consumer *r = &run->consumers[d->consumer];
    text_add(out, ",\n\"aicpu_scheduler_phases\":[[");
    for (int64_t i = 0; i < r->phases.count; ++i) {
        const event_phase *p = r->phases.items[i];
        if (!is_within(d, p))
            continue;
        json_next(out);
        text_printf(out,
                    "\n{\"kind\":\"%s\",\"start_cycles\":%lld,\"end_cycles\":%lld,"
                    "\"loop_iter\":%lld,\"tasks_processed\":%d}",
                    kinds[p->phase], trace_time(run, p->began_ns), trace_time(run, p->ended_ns),
                    (long long)p->turn, p->tasks);
    }
    text_add(out, "]]");
}

static void add_submissions(const trace_run *run, const trace_dispatch *d, text *out)
{
    text_add(out, ",\n\"aicpu_orchestrator_phases\":[[");
    for (int64_t i = 0; i < d->tasks.count; ++i) {
        const event_task *t = d->tasks.items[i].event;
        json_next(out);
        text_printf(out,
                    "\n{\"submit_idx\":%lld,\"task_id\":%lld,\"start_cycles\":%lld,"
                    "\"end_cycles\":%lld}",
                    (long long)i, (long long)t->id - 1, trace_time(run, t->began_ns),
                    trace_time(run, t->ended_ns));
    }
    text_add(out, "]]");
}

void trace_swimlane(const trace_run *run, const trace_dispatch *d, text *out)
{
    const int32_t level = run->wanted->swimlane;
    const int32_t lanes = lanes_of(d);
    int64_t *turns = arena_array(run->a, int64_t, lanes + 1);
    text_printf(out, "{\"chip_swimlane_level\":%d,\n", level);
    add_metadata(run, d, lanes, out);
    text_add(out, ",\n\"aicore_tasks\":[");
    for (int32_t i = 0; i < lanes; ++i)
        turns[i] = 0;
    add_blocks(run, d, turns, false, out);
    text_add(out, "]");
    if (level >= 2) {
        text_add(out, ",\n\"aicpu_tasks\":[");
        for (int32_t i = 0; i < lanes; ++i)
            turns[i] = 0;
        add_blocks(run, d, turns, true, out);
        text_add(out, "]");
    }
    if (level >= 3)
        add_phases(run, d, out);
    if (level >= 4)
        add_submissions(run, d, out);
    text_add(out, "}\n");
}
