/* Tasks: what a running wrapper submits, in which order they run, and their blocks.
 *
 * A task is a node of its dispatch's graph. Unless told otherwise it comes after every earlier task
 * that is not over and uses the same memory in a way that matters: exact to the element, found by
 * comparing with each of them. That is quick because few are left at any time: a wrapper that submits
 * many lets them run in between. */
#include "runtime/box.h"
#include "runtime/conflict.h"
#include "runtime/overlap.h"
#include "runtime/rank.h"
#include "runtime/tracing.h"
#include "runtime/views.h"

#include "base/alloc.h"
#include "base/os.h"
#include "sched/describe.h"
#include "transport/promise.h"

#include <string.h>

/* A wrapper with so many tasks that are not over lets those run that can. */
#define SUBMIT_BURST 64

/* ---- task objects ---- */

static void give_task(rank *r, task *t)
{
    t->next = r->task_pool;
    r->task_pool = t;
}

/* A task object with room for `count` arguments that belongs to nobody yet. */
static task *take_task(rank *r, int32_t count)
{
    task *t = r->task_pool;
    if (t != NULL)
        r->task_pool = t->next;
    else if ((t = alloc_zeroed(1, (int64_t)sizeof *t)) == NULL)
        return NULL;
    if (!arg_list_reserve(&t->arguments, count) ||
        !alloc_grow(t->ranges, t->range_capacity, count)) {
        give_task(r, t);
        return NULL;
    }
    node_reset(&t->node);
    t->released = NULL;
    return t;
}

static bool remember_id(dispatch *d, task *t)
{
    if (!alloc_grow(d->by_id, d->by_id_capacity, d->last_task + 1))
        return false;
    d->by_id[d->last_task] = t;
    t->id = ++d->last_task;
    return true;
}

void tasks_drop(dispatch *d)
{
    for (task *t = d->tasks, *next; t != NULL; t = next) {
        next = t->next;
        give_task(d->owner, t);
    }
    d->tasks = NULL;
    d->task_count = 0;
}

void tasks_free_pool(rank *r)
{
    for (task *t = r->task_pool, *next; t != NULL; t = next) {
        next = t->next;
        node_free(&t->node);
        arg_list_free(&t->arguments);
        alloc_free(t->ranges);
        alloc_free(t);
    }
    r->task_pool = NULL;
}

/* ---- running ---- */

static void task_ready(void *context, node *n);

static void task_over(task *t)
{
    dispatch *d = t->of;
    *(t->previous != NULL ? &t->previous->next : &d->tasks) = t->next;
    if (t->next != NULL)
        t->next->previous = t->previous;
    --d->task_count;
    if (d->log != NULL)
        tracing_ended(t);
    d->by_id[t->id - 1] = NULL;
    node_over(&t->node, task_ready, d);
    give_task(d->owner, t);
}

void task_block_over(task *t)
{
    if (--t->blocks_left == 0)
        task_over(t);
}

/* What the task's predicate says. */
static bool may_run(const task *t)
{
    const pypto_dtype dtype = (pypto_dtype)t->tested.dtype;
    if (t->tested.data == NULL)
        return true;
    const bool real = dtype == PYPTO_FP32 || dtype == PYPTO_FP16 || dtype == PYPTO_BF16;
    const int64_t number = real ? 0 : element_int(dtype, t->tested.data);
    if (dtype == PYPTO_UINT64 && number < 0) /* it is larger than any limit */
        return t->compare == PLD_NOT_EQUAL || t->compare >= PLD_GREATER;
    const float fraction = real ? element_float(dtype, t->tested.data) : 0.0f;
    const bool less = real ? (double)fraction < (double)t->limit : number < t->limit;
    const bool equal = real ? (double)fraction == (double)t->limit : number == t->limit;
    const bool greater = real ? (double)fraction > (double)t->limit : number > t->limit;
    switch (t->compare) {
    case PLD_EQUAL: return equal;
    case PLD_NOT_EQUAL: return !equal;
    case PLD_LESS: return less;
    case PLD_LESS_EQUAL: return less || equal;
    case PLD_GREATER: return greater;
    case PLD_GREATER_EQUAL: return greater || equal;
    }
    return false;
}

/* A join that was the last to need the memory of a tensor. */
static void give_released(task *t)
{
    if (t->released == NULL)
        return;
    memory_give(&t->of->created, t->released, t->released_bytes);
    if (t->of->log != NULL)
        tracing_given_memory(t->of, t->released_bytes);
    t->released = NULL;
}

/* Makes the cores of all blocks ready. False: they do not fit into memory. */
static bool start_blocks(task *t)
{
    dispatch *d = t->of;
    set_header *set = d->owner->s.seg.set;
    int64_t bytes;
    if (!size_mul(t->blocks, (int64_t)sizeof(pld_core), &bytes) ||
        (bytes >= PROMISE_FROM && !promise_try(set, bytes)))
        return false;
    pld_core *core = NULL;
    for (int64_t block = 0; block < t->blocks; ++block) {
        core = dispatch_core(d, t->function_index, &t->arguments);
        if (core == NULL)
            break;
        core->task = t;
        core->block_index = block;
        core->block_count = t->blocks;
        sched_start(&d->owner->s, core);
    }
    promise_keep(set, bytes, bytes);
    return core != NULL;
}

/* Everything that comes before `n` is over. */
static void task_ready(void *context, node *n)
{
    dispatch *d = context;
    if (n == &d->awaiting)
        return; /* the wrapper sees it itself */
    task *t = (task *)(void *)n;
    if (t->function == NULL || !may_run(t)) {
        give_released(t);
        task_over(t);
        return;
    }
    if (d->log != NULL)
        tracing_starts(t);
    t->blocks_left = t->blocks;
    if (!start_blocks(t))
        dispatch_no_memory(d, t->function_index, t->function->line);
}

/* ---- order ---- */

static bool order_by_arguments(task *t)
{
    for (task *earlier = t->next; earlier != NULL; earlier = earlier->next)
        if (!earlier->manual && task_must_follow(t, earlier) &&
            !node_after(&t->node, &earlier->node))
            return false;
    return true;
}

static bool order_by_ids(pld_core *core, task *t, const pld_submit_options *options)
{
    dispatch *d = t->of;
    for (int32_t i = 0; i < options->after_count; ++i) {
        const pld_task id = options->after[i];
        if (id < 0 || id > d->last_task)
            task_fail(core, DIAG_KERNEL_FAILED, "%lld is no task of this dispatch", (long long)id);
        task *earlier = id == 0 ? NULL : d->by_id[id - 1];
        if (earlier != NULL && !node_after(&t->node, &earlier->node))
            return false;
    }
    return true;
}

/* ---- what wrappers call ---- */

static dispatch *need_wrapper(pld_core *core, const char *what)
{
    task_check(core);
    if (core->task != NULL)
        task_fail(core, DIAG_KERNEL_FAILED, "an in-core kernel cannot %s: its wrapper can", what);
    return core->dispatch;
}

static void out_of_memory(pld_core *core) PYPTO_NORETURN;
static void out_of_memory(pld_core *core)
{
    task_fail(core, DIAG_OUT_OF_MEMORY, "no memory for another task");
}

/* Whether there are numbers of the type, and not only bytes that hold some. */
static bool compares(pypto_dtype dtype)
{
    static const char class_of[PYPTO_DTYPE_COUNT] = {
#define CLASS_OF(name, text, bits, class_) class_,
        PYPTO_DTYPES(CLASS_OF)
#undef CLASS_OF
    };
    return (uint32_t)dtype < PYPTO_DTYPE_COUNT && strchr("biuf", class_of[dtype]) != NULL;
}

/* The element is found now, and read when the task could start. */
static void test_element(pld_core *core, task *t, const pld_predicate *predicate)
{
    static const int64_t one[PYPTO_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    t->tested = (pld_tensor){0};
    if (predicate == NULL)
        return;
    const pld_tensor *tensor = predicate->tensor;
    if (!compares((pypto_dtype)tensor->dtype)) {
        char name[NAME_TEXT];
        task_fail(core, DIAG_KERNEL_FAILED,
                  "a predicate compares integers, BOOL or floats, and %s is of %s, which is for "
                  "storage only",
                  task_describe(core, tensor, name, sizeof name),
                  pypto_dtype_name((pypto_dtype)tensor->dtype));
    }
    const int64_t at = box_check(core, "a predicate", tensor, predicate->indices, one);
    t->tested.dtype = tensor->dtype;
    t->tested.window = tensor->window;
    t->tested.data = tensor->data + at;
    t->tested_range = view_range(&t->tested);
    t->compare = predicate->compare;
    t->limit = predicate->limit;
}

/* Puts a filled task into the graph; it may be over at once, when it is a join. */
static pld_task submit(pld_core *core, task *t, const pld_submit_options *options)
{
    dispatch *d = core->dispatch;
    const int64_t began_ns = d->log != NULL ? os_now_ns() : 0;
    t->of = d;
    t->manual = options->manual;
    t->independent_args = options->independent_args;
    t->marked_args = options->marked_args;
    t->blocks = options->blocks > 0 ? options->blocks : 1;
    t->previous = NULL;
    t->next = d->tasks;
    if (t->next != NULL)
        t->next->previous = t;
    ++d->task_count;
    d->tasks = t; /* from here on it goes with the dispatch, whatever fails */
    test_element(core, t, options->predicate);
    if (!(t->manual || order_by_arguments(t)) || !order_by_ids(core, t, options) ||
        !remember_id(d, t))
        out_of_memory(core);
    const pld_task id = t->id;
    if (d->log != NULL)
        tracing_submitted(t, options, began_ns);
    if (t->node.waits == 0)
        task_ready(d, &t->node);
    if (d->task_count > SUBMIT_BURST && core->owner->ready_first != NULL)
        task_yield(core); /* once: everything that is ready has its turn meanwhile */
    return id;
}

pld_task(pld_submit_with)(pld_core *core, const pld_function *kernel, const pld_arg *args,
                          int32_t count, const pld_submit_options *options)
{
    static const pld_submit_options plain = {0};
    if (options == NULL)
        options = &plain;
    dispatch *d = need_wrapper(core, "submit tasks");
    char why[NAME_TEXT];
    const int32_t index = function_index(core->table, kernel, PLD_PLANE_CORE);
    if (index < 0)
        task_fail(core, DIAG_KERNEL_FAILED, "'%s' is not an in-core function of this program",
                  kernel->name);
    if (!args_fit(kernel, args, count, why, sizeof why))
        task_fail(core, DIAG_KERNEL_FAILED, "%s", why);
    if (options->blocks < 0)
        task_fail(core, DIAG_KERNEL_FAILED, "'%s' cannot run as %lld blocks", kernel->name,
                  (long long)options->blocks);
    task *t = take_task(d->owner, count);
    if (t == NULL)
        out_of_memory(core);
    t->function = kernel;
    t->function_index = index;
    for (int32_t i = 0; i < count; ++i) {
        t->arguments.args[i] = args[i];
        if (args[i].kind == PLD_ARG_TENSOR) {
            t->arguments.tensors[i] = *args[i].tensor;
            t->arguments.args[i].tensor = &t->arguments.tensors[i];
            t->ranges[i] = view_range(args[i].tensor);
        }
    }
    return submit(core, t, options);
}

pld_task(pld_submit)(pld_core *core, const pld_function *kernel, const pld_arg *args, int32_t count)
{
    return (pld_submit_with)(core, kernel, args, count, NULL);
}

int64_t(pld_blocks)(pld_core *core, int64_t blocks)
{
    if (blocks <= 0)
        task_fail(core, DIAG_KERNEL_FAILED,
                  "a task cannot run as %lld blocks: the number must be positive",
                  (long long)blocks);
    return blocks;
}

pld_task(pld_submit_join)(pld_core *core, const pld_submit_options *options)
{
    dispatch *d = need_wrapper(core, "submit tasks");
    task *t = take_task(d->owner, 0);
    if (t == NULL)
        out_of_memory(core);
    t->function = NULL;
    return submit(core, t, options);
}

void(pld_await)(pld_core *core, const pld_tensor *tensor, bool writes)
{
    dispatch *d = need_wrapper(core, "wait for tasks");
    const byte_range range = view_range(tensor);
    for (task *t = d->tasks; t != NULL; t = t->next)
        if (task_must_precede(t, tensor, range, writes ? PLD_WRITES : PLD_READS) &&
            !node_after(&d->awaiting, &t->node))
            out_of_memory(core);
    if (d->awaiting.waits == 0)
        return;
    core->wait = (wait_entry){.kind = WAIT_TASKS, .line = core->line};
    core->awaited = &d->awaiting.waits;
    task_wait(core);
}

/* ---- the end of a tensor ---- */

static bool meets(byte_range x, byte_range y)
{
    return x.low < y.high && y.low < x.high;
}

/* Whether the task uses the memory, in whatever order to others. */
static bool uses_memory(const task *t, byte_range range)
{
    for (int32_t i = 0; i < t->arguments.count; ++i)
        if (t->arguments.args[i].kind == PLD_ARG_TENSOR && meets(t->ranges[i], range))
            return true;
    return t->tested.data != NULL && meets(t->tested_range, range);
}

/* Its end is a join behind the tasks that use it. */
void task_release(pld_core *core, const pld_tensor *tensor, int64_t bytes)
{
    static const pld_submit_options manual = {.manual = true};
    dispatch *d = core->dispatch;
    const byte_range range = view_range(tensor);
    task *join = NULL;
    for (task *t = core->task == NULL ? d->tasks : NULL; t != NULL; t = t->next) {
        if (!uses_memory(t, range))
            continue;
        if (join == NULL && (join = take_task(d->owner, 0)) == NULL)
            out_of_memory(core);
        if (!node_after(&join->node, &t->node)) {
            give_task(d->owner, join); /* those before it are dropped before they could end */
            out_of_memory(core);
        }
    }
    if (join == NULL) {
        memory_give(&d->created, tensor->data, bytes);
        if (d->log != NULL)
            tracing_given_memory(d, bytes);
        return;
    }
    join->function = NULL;
    join->released = tensor->data;
    join->released_bytes = bytes;
    (void)submit(core, join, &manual);
}

bool task_await_release(pld_core *core)
{
    dispatch *d = core->dispatch;
    task *oldest = NULL;
    for (task *t = d->tasks; t != NULL && core->task == NULL; t = t->next)
        oldest = t->released != NULL ? t : oldest;
    if (oldest == NULL || !node_after(&d->awaiting, &oldest->node))
        return false;
    core->wait = (wait_entry){.kind = WAIT_TASKS, .line = core->line};
    core->awaited = &d->awaiting.waits;
    task_wait(core);
    return true;
}

int64_t pld_block_index(pld_core *core)
{
    return core->block_index;
}

int64_t pld_block_count(pld_core *core)
{
    return core->block_count;
}
