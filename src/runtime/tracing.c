/* Notes of recorded calls: see tracing.h. */
#include "runtime/tracing.h"

#include "base/bits.h"
#include "base/os.h"
#include "runtime/views.h"

#include <stdio.h>
#include <string.h>

static bool wants(const dispatch *d, uint32_t what)
{
    return (d->log->what & what) != 0;
}

static void *begin(const dispatch *d, trace_event_kind kind, int64_t bytes)
{
    return trace_begin(d->log, kind, d->number, bytes);
}

/* ---- arguments ---- */

static void fill_arg(trace_arg *to, const pld_arg *from)
{
    *to = (trace_arg){
        .kind = (int32_t)from->kind, .buffer = -1, .integer = from->integer, .real = from->real};
    if (from->kind != PLD_ARG_TENSOR)
        return;
    const pld_tensor *t = from->tensor;
    to->dtype = t->dtype;
    to->ndim = t->ndim;
    to->data = (int64_t)(intptr_t)t->data;
    memcpy(to->shape, t->shape, sizeof to->shape);
    memcpy(to->stride, t->stride, sizeof to->stride);
    if (t->window == NULL)
        return;
    to->buffer = t->window->buffer;
    to->window_base = (int64_t)(intptr_t)t->window->base;
    to->window_bytes = t->window->bytes;
    for (int32_t i = 0; i < t->window->comm->nranks; ++i)
        to->devices |= UINT64_C(1) << t->window->comm->devices[i];
}

/* ---- dispatches ---- */

void tracing_taken(dispatch *d, int64_t taken_ns)
{
    rank *r = d->owner;
    d->counts = (trace_counts){0};
    d->scope_count = 0;
    ++r->logged;
    if (wants(d, TRACE_PHASES)) {
        r->s.log = d->log;
        r->s.log_dispatch = d->number;
    }
    const int32_t deps = wants(d, TRACE_TASKS) ? d->record->dep_count : 0;
    event_taken *e = begin(d, EVENT_TAKEN, (int64_t)sizeof *e + deps * (int64_t)sizeof(trace_dep));
    if (e == NULL)
        return;
    e->program = d->record->program;
    e->function = d->record->function;
    e->taken_ns = taken_ns;
    e->dep_count = deps;
    trace_dep *to = (trace_dep *)(void *)(e + 1);
    const queue_dep *from = record_deps(d->record);
    for (int32_t i = 0; i < deps; ++i)
        to[i] = (trace_dep){from[i].device, from[i].sequence};
    trace_commit(d->log, e);
    sched_note_phase(&r->s, PHASE_DISPATCH, taken_ns, 1);
}

static void note_scope(const dispatch *d, const open_scope *scope, int32_t phase)
{
    event_scope *e = begin(d, EVENT_SCOPE, (int64_t)sizeof *e);
    if (e == NULL)
        return;
    const trace_counts *c = &d->counts;
    const trace_event head = e->head;
    *e = (event_scope){.head = head,
                       .function = d->record->function,
                       .line = scope->line,
                       .phase = phase,
                       .depth = scope->depth,
                       .submitted = d->last_task,
                       .over = d->last_task - d->task_count,
                       .taken_bytes = c->taken_bytes,
                       .given_bytes = c->given_bytes,
                       .edges = c->edges,
                       .edges_over = c->edges_over,
                       .tensors = c->tensors,
                       .most_tasks = c->most_tasks,
                       .most_bytes = c->most_bytes,
                       .most_edges = c->most_edges,
                       .most_tensors = c->most_tensors};
    (void)snprintf(e->scope, sizeof e->scope, "%s", scope->scope);
    (void)snprintf(e->name, sizeof e->name, "%s", scope->name);
    trace_commit(d->log, e);
}

static void begin_scope(dispatch *d, open_scope scope)
{
    if (d->scope_count == OPEN_SCOPES) {
        atomic_fetch_add_explicit(&d->log->dropped, 1, memory_order_relaxed);
        return;
    }
    d->scopes[d->scope_count++] = scope;
    note_scope(d, &scope, SCOPE_BEGINS);
}

/* Ends all that are at least so deep: those that a jump has left, too. */
static void end_scopes(dispatch *d, int64_t depth)
{
    while (d->scope_count > 0 && d->scopes[d->scope_count - 1].depth >= depth)
        note_scope(d, &d->scopes[--d->scope_count], d->counts.failed ? SCOPE_FAILS : SCOPE_ENDS);
}

static void begin_root(dispatch *d)
{
    const pld_program *table =
        atomic_load_explicit(&d->owner->programs[d->record->program], memory_order_acquire);
    const pld_function *f = table->functions[d->record->function];
    begin_scope(d, (open_scope){"function", f->name, f->line, 0});
}

/* The dispatch of a wrapper whose scopes are recorded, or NULL. */
static dispatch *scoped(const pld_core *core)
{
    dispatch *d = core->dispatch;
    return d != NULL && __builtin_expect(d->log != NULL, 0) && core->task == NULL &&
                   wants(d, TRACE_SCOPES)
               ? d
               : NULL;
}

void(pld_scope_begin)(pld_core *core, const char *scope, const char *name, int64_t depth)
{
    dispatch *d = scoped(core);
    if (d == NULL)
        return;
    end_scopes(d, depth + 1);
    begin_scope(d, (open_scope){scope, name, core->line, (int32_t)depth + 1});
}

void(pld_scope_end)(pld_core *core, int64_t depth)
{
    dispatch *d = scoped(core);
    if (d != NULL)
        end_scopes(d, depth + 1);
}

void tracing_begun(dispatch *d)
{
    const int32_t count = wants(d, TRACE_TASKS) ? d->arguments.count : 0;
    event_begun *e = begin(d, EVENT_BEGUN, (int64_t)sizeof *e + count * (int64_t)sizeof(trace_arg));
    if (e == NULL)
        return;
    e->begun_ns = os_now_ns();
    e->arg_count = count;
    trace_arg *to = (trace_arg *)(void *)(e + 1);
    for (int32_t i = 0; i < count; ++i)
        fill_arg(&to[i], &d->arguments.args[i]);
    trace_commit(d->log, e);
    if (wants(d, TRACE_SCOPES))
        begin_root(d);
}

void tracing_wrapper_over(dispatch *d)
{
    if (wants(d, TRACE_SCOPES))
        end_scopes(d, 0);
}

void tracing_dropped(dispatch *d)
{
    d->counts.failed = true;
    tracing_wrapper_over(d);
}

void tracing_over(dispatch *d)
{
    rank *r = d->owner;
    const int64_t now = os_now_ns();
    event_over *e = begin(d, EVENT_OVER, (int64_t)sizeof *e);
    if (e != NULL) {
        e->over_ns = now;
        e->failed = d->counts.failed;
        trace_commit(d->log, e);
    }
    sched_note_phase(&r->s, PHASE_COMPLETE, now, 1);
    if (--r->logged == 0)
        sched_end_phases(&r->s);
}

/* ---- tasks ---- */

static void raise_to(int64_t *most, int64_t now)
{
    *most = now > *most ? now : *most;
}

static void count_task(dispatch *d, const task *t)
{
    trace_counts *c = &d->counts;
    c->edges += t->node.waits;
    for (int32_t i = 0; i < t->arguments.count; ++i)
        c->tensors += t->arguments.args[i].kind == PLD_ARG_TENSOR;
    raise_to(&c->most_tasks, d->task_count);
    raise_to(&c->most_edges, c->edges - c->edges_over);
    raise_to(&c->most_tensors, c->tensors);
}

void tracing_submitted(const task *t, const pld_submit_options *options, int64_t began_ns)
{
    dispatch *d = t->of;
    count_task(d, t);
    if (!wants(d, TRACE_TASKS))
        return;
    const bool tested = t->tested.data != NULL;
    const int32_t args = t->arguments.count + tested;
    event_task *e = begin(d, EVENT_TASK,
                          (int64_t)sizeof *e + options->after_count * (int64_t)sizeof(int64_t) +
                              args * (int64_t)sizeof(trace_arg));
    if (e == NULL)
        return;
    e->id = t->id;
    e->function = t->function == NULL ? -1 : t->function_index;
    e->flags = (t->manual ? TASK_MANUAL : 0u) | (tested ? TASK_TESTED : 0u);
    e->independent_args = t->independent_args;
    e->blocks = t->blocks;
    e->began_ns = began_ns;
    e->after_count = options->after_count;
    e->arg_count = t->arguments.count;
    int64_t *after = (int64_t *)(void *)(e + 1);
    for (int32_t i = 0; i < options->after_count; ++i)
        after[i] = options->after[i];
    trace_arg *to = (trace_arg *)(void *)(after + options->after_count);
    for (int32_t i = 0; i < t->arguments.count; ++i)
        fill_arg(&to[i], &t->arguments.args[i]);
    if (tested)
        fill_arg(&to[t->arguments.count], &(pld_arg){.kind = PLD_ARG_TENSOR, .tensor = &t->tested});
    e->ended_ns = os_now_ns();
    trace_commit(d->log, e);
}

void tracing_core(const pld_core *core, bool ended)
{
    const dispatch *d = core->dispatch;
    const task *t = core->task;
    if (core->started_ns == 0)
        return;
    event_block *e = begin(d, EVENT_BLOCK, (int64_t)sizeof *e);
    if (e == NULL)
        return;
    e->task = t == NULL ? 0 : t->id;
    e->block = core->block_index;
    e->lane = core->lane;
    e->function = core->function_index;
    e->cpu = core->cpu;
    e->failed = !ended;
    e->ready_ns = core->ready_ns;
    e->started_ns = core->started_ns;
    e->ended_ns = core->ended_ns;
    e->over_ns = os_now_ns();
    trace_commit(d->log, e);
}

void tracing_sub_ran(dispatch *d, int64_t started_ns, int64_t ended_ns, bool failed)
{
    const int32_t args = d->arguments.count;
    if (wants(d, TRACE_TASKS)) {
        event_task *e =
            begin(d, EVENT_TASK, (int64_t)sizeof *e + args * (int64_t)sizeof(trace_arg));
        if (e == NULL)
            return;
        const trace_event head = e->head;
        *e = (event_task){.head = head,
                          .id = 1,
                          .function = d->record->function,
                          .blocks = 1,
                          .began_ns = started_ns,
                          .ended_ns = started_ns,
                          .arg_count = args};
        trace_arg *to = (trace_arg *)(void *)(e + 1);
        for (int32_t i = 0; i < args; ++i)
            fill_arg(&to[i], &d->arguments.args[i]);
        trace_commit(d->log, e);
    }
    event_block *e = wants(d, TRACE_BLOCKS) ? begin(d, EVENT_BLOCK, (int64_t)sizeof *e) : NULL;
    if (e == NULL)
        return;
    const trace_event head = e->head;
    *e = (event_block){.head = head,
                       .task = 1,
                       .function = d->record->function,
                       .cpu = os_cpu_now(),
                       .failed = failed,
                       .ready_ns = started_ns,
                       .started_ns = started_ns,
                       .ended_ns = ended_ns,
                       .over_ns = ended_ns};
    trace_commit(d->log, e);
}

/* ---- the content of arguments ---- */

/* Copies the elements of the dimensions from `d` on, packed, as far as there is room; where the next one goes. */
static char *gather(char *to, const char *end, const pld_tensor *t, int64_t width, int32_t d,
                    const char *from)
{
    if (d == t->ndim) {
        if (to + width <= end)
            memcpy(to, from, (size_t)width);
        return to + width <= end ? to + width : to;
    }
    for (int64_t i = 0; i < t->shape[d] && to + width <= end; ++i)
        to = gather(to, end, t, width, d + 1, from + i * t->stride[d] * width);
    return to;
}

static void note_content(const task *t, int32_t i, bool after)
{
    const dispatch *d = t->of;
    const pld_tensor view = view_in_bytes(t->arguments.args[i].tensor);
    const int64_t width = pypto_dtype_bytes((pypto_dtype)view.dtype);
    int64_t bytes = width;
    for (int32_t k = 0; k < view.ndim; ++k)
        bytes *= view.shape[k];
    const int64_t room = (trace_room(d->log) - (int64_t)sizeof(event_content)) & ~(int64_t)7;
    int64_t kept = bytes < room ? bytes : room;
    if (kept > INT32_MAX / 2)
        kept = INT32_MAX / 2;
    kept = kept < 0 ? 0 : kept / width * width;
    event_content *e = begin(d, EVENT_CONTENT, (int64_t)sizeof *e + kept);
    if (e == NULL)
        return;
    e->task = t->id;
    e->arg = i;
    e->after = after;
    e->bytes = bytes;
    e->bytes_kept = kept;
    char *to = (char *)(e + 1);
    (void)gather(to, to + kept, &view, width, 0, view.data);
    trace_commit(d->log, e);
}

static void note_contents(const task *t, bool after)
{
    const dispatch *d = t->of;
    if (t->function == NULL || !wants(d, TRACE_MARKED | TRACE_CONTENT))
        return;
    for (int32_t i = 0; i < t->arguments.count; ++i) {
        const pld_direction direction = t->function->params[i].direction;
        if (t->arguments.args[i].kind != PLD_ARG_TENSOR ||
            direction == (after ? PLD_IN : PLD_OUT) ||
            (!wants(d, TRACE_CONTENT) && (t->marked_args & word_bit(i)) == 0))
            continue;
        note_content(t, i, after);
    }
}

void tracing_starts(const task *t)
{
    note_contents(t, false);
}

void tracing_ended(const task *t)
{
    dispatch *d = t->of;
    d->counts.edges_over += t->node.successor_count;
    for (int32_t i = 0; i < t->arguments.count; ++i)
        d->counts.tensors -= t->arguments.args[i].kind == PLD_ARG_TENSOR;
    note_contents(t, true);
}

/* ---- memory ---- */

void tracing_taken_memory(dispatch *d, const void *block, int64_t bytes)
{
    trace_counts *c = &d->counts;
    c->taken_bytes += bytes;
    raise_to(&c->most_bytes, c->taken_bytes - c->given_bytes);
    event_memory *e = wants(d, TRACE_TASKS) ? begin(d, EVENT_MEMORY, (int64_t)sizeof *e) : NULL;
    if (e == NULL)
        return;
    e->address = (int64_t)(intptr_t)block;
    e->bytes = bytes;
    trace_commit(d->log, e);
}

void tracing_given_memory(dispatch *d, int64_t bytes)
{
    d->counts.given_bytes += bytes;
}
