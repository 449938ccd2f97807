/* The order among the tasks of a dispatch, from their arguments and the ids that they were submitted behind.
 *
 * The rank makes edges only to tasks that are not over, so which ones there are depends on time. Here they are derived anew,
 * by the same rules (runtime/conflict.h), from all tasks, without those that others imply: a task is
 * compared with earlier ones from the latest on, and what comes before one that it must follow is skipped. */
#include "trace/trace.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "runtime/conflict.h"

#include <string.h>

/* The bytes that an argument of a task lies in, and whether it is a barrier. */
typedef struct span {
    const char *low;
    const char *high;
    bool fences;
} span;

typedef struct building {
    const trace_run *run;
    const trace_dispatch *d;
    trace_graph graph;
    task *tasks;       /* as the rank had them */
    uint64_t **before; /* [task]: bit i: task i comes before it */
    VEC(span) spans;   /* of the arguments of all tasks */
    int64_t *first;    /* [task]: its first one; [count]: behind the last */
} building;

/* ---- tasks, as the rank had them ---- */

static pld_tensor tensor_of(building *b, const trace_arg *arg)
{
    pld_tensor t = {.dtype = arg->dtype, .ndim = arg->ndim};
    t.data = (char *)(intptr_t)arg->data; /* an address of the rank: compared, never followed */
    memcpy(t.shape, arg->shape, sizeof t.shape);
    memcpy(t.stride, arg->stride, sizeof t.stride);
    if (arg->buffer < 0)
        return t;
    pld_comm *comm = arena_new(b->run->a, pld_comm);
    *comm = (pld_comm){0};
    for (int32_t device = 0; device < PYPTO_MAX_RANKS; ++device)
        if ((arg->devices >> device & 1) != 0)
            comm->devices[comm->nranks++] = (uint8_t)device;
    pld_window *window = arena_new(b->run->a, pld_window);
    *window = (pld_window){.comm = comm,
                           .base = (char *)(intptr_t)arg->window_base,
                           .bytes = arg->window_bytes,
                           .buffer = arg->buffer};
    t.window = window;
    return t;
}

static void fill_task(building *b, task *t, const trace_task *from)
{
    const event_task *e = from->event;
    const int32_t count = e->arg_count;
    *t = (task){.function = e->function < 0 ? NULL : b->run->table->functions[e->function],
                .manual = (e->flags & TASK_MANUAL) != 0,
                .independent_args = e->independent_args};
    t->arguments.count = count;
    t->arguments.args = arena_array(b->run->a, pld_arg, count + 1);
    t->arguments.tensors = arena_array(b->run->a, pld_tensor, count + 1);
    t->ranges = arena_array(b->run->a, byte_range, count + 1);
    for (int32_t i = 0; i < count; ++i) {
        t->arguments.args[i] = (pld_arg){.kind = (pld_arg_kind)from->args[i].kind};
        if (from->args[i].kind != PLD_ARG_TENSOR)
            continue;
        t->arguments.tensors[i] = tensor_of(b, &from->args[i]);
        t->arguments.args[i].tensor = &t->arguments.tensors[i];
        t->ranges[i] = view_range(&t->arguments.tensors[i]);
    }
    if ((e->flags & TASK_TESTED) != 0) {
        t->tested = tensor_of(b, &from->args[count]);
        t->tested_range = view_range(&t->tested);
    }
}

/* ---- buffers ---- */

static int32_t add_buffer(building *b, int64_t address, int64_t bytes, int32_t dtype, bool created)
{
    int32_t version = 0;
    for (int64_t i = 0; i < b->graph.buffers.count; ++i)
        version += b->graph.buffers.items[i].address == address;
    const trace_buffer buffer = {address, bytes, dtype, version, created, -1};
    vec_push(b->run->a, &b->graph.buffers, buffer);
    return (int32_t)b->graph.buffers.count - 1;
}

/* The buffer that holds the bytes, the latest one if memory was used again; made when there is none. */
static int32_t buffer_of(building *b, const pld_tensor *t, byte_range range)
{
    int64_t low = (int64_t)(intptr_t)range.low, high = (int64_t)(intptr_t)range.high;
    if (t->window != NULL) {
        low = (int64_t)(intptr_t)t->window->base;
        high = low + t->window->bytes;
    }
    for (int64_t i = b->graph.buffers.count; i-- > 0;) {
        trace_buffer *known = &b->graph.buffers.items[i];
        if (known->address > low || known->address + known->bytes < high)
            continue;
        if (known->dtype < 0)
            known->dtype = t->dtype;
        return (int32_t)i;
    }
    return add_buffer(b, low, high - low, t->dtype, false);
}

/* Tensors that were created up to an event. */
static void add_created(building *b, int64_t *next, const void *until)
{
    for (; *next < b->d->memory.count; ++*next) {
        const event_memory *m = b->d->memory.items[*next];
        if ((const char *)m > (const char *)until)
            break;
        (void)add_buffer(b, m->address, m->bytes, -1, true);
    }
}

static void add_arguments_of_wrapper(building *b)
{
    for (int64_t i = 0; b->d->begun != NULL && i < b->d->begun->arg_count; ++i) {
        if (b->d->args[i].kind != PLD_ARG_TENSOR)
            continue;
        const pld_tensor t = tensor_of(b, &b->d->args[i]);
        (void)buffer_of(b, &t, view_range(&t));
    }
}

static void add_span(building *b, byte_range range, bool fences)
{
    const span added = {range.low, range.high, fences};
    vec_push(b->run->a, &b->spans, added);
}

/* Which buffers the arguments of a task are parts of. */
static void add_buffers_of(building *b, int64_t k)
{
    const task *t = &b->tasks[k];
    const int32_t count = t->arguments.count;
    int32_t *found = arena_array(b->run->a, int32_t, count + 1);
    b->first[k] = b->spans.count;
    for (int32_t i = 0; i < count; ++i) {
        const uint32_t uses = task_uses(t, i);
        found[i] = -1;
        if (t->arguments.args[i].kind != PLD_ARG_TENSOR)
            continue;
        found[i] = buffer_of(b, t->arguments.args[i].tensor, t->ranges[i]);
        trace_buffer *buffer = &b->graph.buffers.items[found[i]];
        if (buffer->writer < 0 && (uses & PLD_WRITES) != 0)
            buffer->writer = (int32_t)k;
        add_span(b, t->ranges[i], (uses & PLD_FENCES) != 0);
    }
    found[count] = t->tested.data != NULL ? buffer_of(b, &t->tested, t->tested_range) : -1;
    if (t->tested.data != NULL)
        add_span(b, t->tested_range, false);
    b->graph.arg_buffers[k] = found;
    b->first[k + 1] = b->spans.count;
}

/* Whether it may be that two tasks have memory in common: asked of each two, and so quick. */
static bool may_meet(const building *b, int64_t earlier, int64_t later)
{
    const span *spans = b->spans.items;
    for (int64_t i = b->first[earlier]; i < b->first[earlier + 1]; ++i)
        for (int64_t k = b->first[later]; k < b->first[later + 1]; ++k)
            if ((spans[i].low < spans[k].high && spans[k].low < spans[i].high) || spans[i].fences ||
                spans[k].fences)
                return true;
    return false;
}

/* ---- edges ---- */

static int64_t words_for(int64_t tasks)
{
    return (tasks + 63) / 64;
}

static bool comes_before(const building *b, int64_t earlier, int64_t later)
{
    return bits_have(b->before[later], earlier);
}

static void add_edge(building *b, trace_edge edge)
{
    uint64_t *mine = b->before[edge.later];
    const uint64_t *theirs = b->before[edge.earlier];
    for (int64_t i = 0; i < words_for(edge.earlier); ++i)
        mine[i] |= theirs[i];
    bits_add(mine, edge.earlier);
    vec_push(b->run->a, &b->graph.edges, edge);
}

static const pld_tensor *view_of(const task *t, int32_t arg)
{
    return arg == t->arguments.count ? &t->tested : t->arguments.args[arg].tensor;
}

static byte_range range_of(const task *t, int32_t arg)
{
    return arg == t->arguments.count ? t->tested_range : t->ranges[arg];
}

/* The edge because of argument `arg` of the later task, if there is one. */
static bool follow(building *b, int64_t earlier, int64_t later, int32_t arg, uint32_t uses)
{
    const task *x = &b->tasks[earlier], *y = &b->tasks[later];
    const byte_range mine = range_of(y, arg);
    const int32_t found = task_conflict(x, view_of(y, arg), mine, uses);
    if (found < 0)
        return false;
    const byte_range theirs = range_of(x, found);
    const int32_t buffer = b->graph.arg_buffers[earlier][found];
    const trace_buffer *of = &b->graph.buffers.items[buffer];
    const bool creator = of->created && of->writer == earlier;
    add_edge(b, (trace_edge){.earlier = (int32_t)earlier,
                             .later = (int32_t)later,
                             .source = creator ? SOURCE_CREATOR : SOURCE_TENSORMAP,
                             .earlier_arg = found,
                             .later_arg = arg,
                             .covered = theirs.low <= mine.low && mine.high <= theirs.high});
    return true;
}

static void follow_memory(building *b, int64_t earlier, int64_t later)
{
    const task *y = &b->tasks[later];
    if (b->tasks[earlier].manual || y->manual)
        return;
    for (int32_t arg = 0; arg < y->arguments.count; ++arg) {
        const uint32_t uses = task_uses(y, arg);
        if (uses != 0 && follow(b, earlier, later, arg, uses))
            return;
    }
    if (y->tested.data != NULL)
        (void)follow(b, earlier, later, y->arguments.count, PLD_READS);
}

static bool names(const trace_task *t, int64_t id)
{
    for (int32_t i = 0; i < t->event->after_count; ++i)
        if (t->after[i] == id)
            return true;
    return false;
}

static void add_edges_of(building *b, int64_t k)
{
    const trace_task *t = &b->d->tasks.items[k];
    b->before[k] = arena_array(b->run->a, uint64_t, words_for(k) + 1);
    memset(b->before[k], 0, (size_t)(words_for(k) + 1) * sizeof(uint64_t));
    for (int64_t i = k; i-- > 0;) {
        if (t->event->after_count > 0 && names(t, b->d->tasks.items[i].event->id))
            add_edge(b, (trace_edge){.earlier = (int32_t)i,
                                     .later = (int32_t)k,
                                     .source = SOURCE_EXPLICIT,
                                     .earlier_arg = -1,
                                     .later_arg = -1});
        else if (!comes_before(b, i, k) && may_meet(b, i, k))
            follow_memory(b, i, k);
    }
}

trace_graph trace_graph_of(const trace_run *run, const trace_dispatch *d)
{
    building b = {.run = run, .d = d};
    const int64_t count = d->tasks.count;
    b.tasks = arena_array(run->a, task, count + 1);
    b.before = arena_array(run->a, uint64_t *, count + 1);
    b.first = arena_array(run->a, int64_t, count + 1);
    b.graph.arg_buffers = arena_array(run->a, int32_t *, count + 1);
    add_arguments_of_wrapper(&b);
    int64_t created = 0;
    for (int64_t k = 0; k < count; ++k) {
        fill_task(&b, &b.tasks[k], &d->tasks.items[k]);
        add_created(&b, &created, d->tasks.items[k].event);
        add_buffers_of(&b, k);
        add_edges_of(&b, k);
    }
    return b.graph;
}
