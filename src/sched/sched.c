/* Tasks, turns, waiting and parking of one rank: see sched.h for the idea, segment.h for the
 * protocol of bell and park. */
#include "sched/sched.h"

#include "base/alloc.h"
#include "base/os.h"
#include "base/settings.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* How long a rank without work keeps yielding before it sleeps: waking a sleeping CPU costs about
 * 20 us, so a millisecond covers calls that come back to back and costs nothing noticeable when
 * idle. */
#define LINGER_NS 1000000
/* Turns between two looks at the clock while lingering. */
#define CLOCK_TURNS 32
/* Default pauses before the CPU is given away, when every rank has one. */
#define SPIN_PAUSES 2000

static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t spin_pauses(int32_t rank_count)
{
    if (setting_text(SETTING_SPIN)[0] != '\0')
        return setting_int(SETTING_SPIN);
    return rank_count <= os_cpu_count() ? SPIN_PAUSES : 0;
}

pypto_status sched_init(sched *s, segment seg, int32_t rank, int host_event)
{
    *s = (sched){.seg = seg, .rank = rank, .host_event = host_event};
    s->header = segment_rank(&seg, rank);
    s->spin = spin_pauses((int32_t)seg.set->rank_count);
    s->main = fiber_of_thread();
    return s->main == NULL ? diag_no_memory() : STATUS_OK;
}

void sched_destroy(sched *s)
{
    for (pld_core *task = s->pool; task != NULL;) {
        pld_core *next = task->next;
        free(task->scratch);
        alloc_free(task->args);
        alloc_free(task->tensors);
        alloc_free(task);
        task = next;
    }
    for (int32_t i = 0; i < s->fiber_count; ++i)
        fiber_destroy(s->fibers[i]);
    alloc_free(s->fibers);
    fiber_destroy(s->main);
    s->main = NULL;
}

/* ---- task objects ---- */

pld_core *sched_take_task(sched *s, int32_t arg_count)
{
    pld_core *task = s->pool;
    if (task != NULL)
        s->pool = task->next;
    else if ((task = alloc_zeroed(1, (int64_t)sizeof *task)) == NULL)
        return NULL;
    if (arg_count > task->arg_capacity) {
        pld_arg *args = alloc_resize(task->args, arg_count, (int64_t)sizeof *args);
        if (args != NULL)
            task->args = args;
        pld_tensor *tensors = alloc_resize(task->tensors, arg_count, (int64_t)sizeof *tensors);
        if (tensors != NULL)
            task->tensors = tensors;
        if (args == NULL || tensors == NULL) {
            sched_give_task(s, task);
            return NULL;
        }
        task->arg_capacity = arg_count;
    }
    task->owner = s;
    task->next = NULL;
    task->fiber = NULL;
    task->arg_count = arg_count;
    return task;
}

void sched_give_task(sched *s, pld_core *task)
{
    task->next = s->pool;
    s->pool = task;
}

static fiber *take_fiber(sched *s)
{
    return s->fiber_count > 0 ? s->fibers[--s->fiber_count] : fiber_create(TASK_STACK_BYTES);
}

static void give_fiber(sched *s, fiber *f)
{
    if (s->fiber_count == s->fiber_capacity) {
        int32_t capacity = s->fiber_capacity * 2 + 8;
        fiber **grown = alloc_resize(s->fibers, capacity, (int64_t)sizeof *grown);
        if (grown == NULL) {
            fiber_destroy(f);
            return;
        }
        s->fibers = grown;
        s->fiber_capacity = capacity;
    }
    s->fibers[s->fiber_count++] = f;
}

/* Scratch of at least `bytes`; contents undefined. */
static bool ensure_scratch(pld_core *task, int64_t bytes)
{
    if (bytes <= task->scratch_bytes)
        return true;
    free(task->scratch);
    task->scratch_bytes = 0;
    bytes = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    task->scratch = aligned_alloc(CACHE_LINE, (size_t)bytes);
    if (task->scratch == NULL)
        return false;
    task->scratch_bytes = bytes;
    return true;
}

/* ---- leaving a task ---- */

static void leave(pld_core *core, bool ended) PYPTO_NORETURN;
static void leave(pld_core *core, bool ended)
{
    sched *s = core->owner;
    s->over_ended = ended;
    s->running = NULL;
    fiber_switch(core->fiber, s->main, true);
    __builtin_unreachable();
}

void task_leave(pld_core *core)
{
    leave(core, false);
}

static void task_main(void *argument)
{
    pld_core *core = argument;
    core->function->run(core, core->args);
    leave(core, true);
}

static void push_ready(sched *s, pld_core *task)
{
    task->next = NULL;
    if (s->ready_last != NULL)
        s->ready_last->next = task;
    else
        s->ready_first = task;
    s->ready_last = task;
}

bool sched_start(sched *s, pld_core *task)
{
    if (!ensure_scratch(task, task->function->scratch_bytes))
        return false;
    task->fiber = take_fiber(s);
    if (task->fiber == NULL)
        return false;
    fiber_reset(task->fiber, task_main, task);
    task->line = task->function->line;
    task->breadcrumb = (uint64_t)(task->function_index + 1) << 32;
    task->wait.kind = WAIT_NONE;
    push_ready(s, task);
    return true;
}

/* A task is over: its fiber and object are free again after the owner has been told. */
static void finish(sched *s, pld_core *task, bool ended)
{
    give_fiber(s, task->fiber);
    task->fiber = NULL;
    if (!ended) {
        atomic_store_explicit(&s->header->dropped, task->breadcrumb | (uint32_t)task->line,
                              memory_order_relaxed);
        atomic_store_explicit(&s->header->dropped_call, task->call, memory_order_relaxed);
    }
    s->task_over(s->context, task, ended);
    sched_give_task(s, task);
}

static void run_ready(sched *s)
{
    pld_core *task = s->ready_first;
    s->ready_first = task->next;
    if (s->ready_first == NULL)
        s->ready_last = NULL;
    s->running = task;
    atomic_store_explicit(&s->header->breadcrumb_program, task->program, memory_order_relaxed);
    atomic_store_explicit(&s->header->breadcrumb, task->breadcrumb | (uint32_t)task->line,
                          memory_order_relaxed);
    fiber_switch(s->main, task->fiber, false);
    if (s->running == NULL) {
        atomic_store_explicit(&s->header->breadcrumb, 0, memory_order_relaxed);
        finish(s, task, s->over_ended);
    }
    s->running = NULL;
}

void sched_drop(sched *s, uint64_t call)
{
    pld_core *lists[2] = {s->ready_first, s->blocked};
    s->ready_first = s->ready_last = s->blocked = NULL;
    for (int i = 0; i < 2; ++i) {
        for (pld_core *task = lists[i], *next; task != NULL; task = next) {
            next = task->next;
            if (task->call <= call) {
                finish(s, task, false);
            } else if (i == 0) {
                push_ready(s, task);
            } else {
                task->next = s->blocked;
                s->blocked = task;
            }
        }
    }
}

/* ---- waiting ---- */

bool wait_satisfied(const segment *seg, const wait_entry *wait)
{
    if (wait->kind == WAIT_DISPATCH) {
        const rank_header *other = segment_rank(seg, wait->device);
        return atomic_load_explicit(&other->completed, memory_order_seq_cst) >= wait->sequence;
    }
    const _Atomic int32_t *cell = (const _Atomic int32_t *)(seg->base + wait->cell_offset);
    const int32_t value = atomic_load_explicit(cell, memory_order_seq_cst);
    return wait->cmp == PLD_EQ ? value == wait->expected : value >= wait->expected;
}

void task_wait(pld_core *core)
{
    sched *s = core->owner;
    for (int64_t i = 0; i < s->spin && s->ready_first == NULL; ++i) {
        if (wait_satisfied(&s->seg, &core->wait))
            return;
        cpu_pause();
        task_check(core);
    }
    core->next = s->blocked;
    s->blocked = core;
    fiber_switch(core->fiber, s->main, false);
    task_check(core);
}

void task_suspend(pld_core *core)
{
    fiber_switch(core->fiber, core->owner->main, false);
    task_check(core);
}

void sched_resume(sched *s, pld_core *task)
{
    push_ready(s, task);
}

void sched_discard(sched *s, pld_core *task)
{
    finish(s, task, false);
}

/* Moves satisfied tasks to the ready list. */
static bool wake_satisfied(sched *s)
{
    bool any = false;
    for (pld_core **link = &s->blocked; *link != NULL;) {
        pld_core *task = *link;
        if (wait_satisfied(&s->seg, &task->wait)) {
            *link = task->next;
            push_ready(s, task);
            any = true;
        } else {
            link = &task->next;
        }
    }
    return any;
}

static bool any_satisfied(const sched *s)
{
    for (const pld_core *task = s->blocked; task != NULL; task = task->next)
        if (wait_satisfied(&s->seg, &task->wait))
            return true;
    return false;
}

/* ---- parking ---- */

void sched_ring_host(const sched *s)
{
    if (atomic_load_explicit(&s->seg.set->host_waiting, memory_order_seq_cst) == 0)
        return;
    const uint64_t one = 1;
    ssize_t written = write(s->host_event, &one, sizeof one);
    (void)written; /* a full counter is a ring that has not been heard yet */
}

static void publish_waits(sched *s)
{
    uint32_t count = 0;
    if (s->dispatch_wait.kind != WAIT_NONE)
        wait_copy(&s->header->waits[count++], &s->dispatch_wait);
    for (const pld_core *task = s->blocked; task != NULL; task = task->next) {
        if (count < WAIT_SLOTS)
            wait_copy(&s->header->waits[count], &task->wait);
        ++count;
    }
    if (count > WAIT_SLOTS)
        count = WAIT_SLOTS + 1;
    atomic_store_explicit(&s->header->wait_count, count, memory_order_relaxed);
}

static void park(sched *s)
{
    rank_header *h = s->header;
    publish_waits(s);
    atomic_store_explicit(&h->state, RANK_PARKED, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->epoch, 1, memory_order_release); /* pairs with the host's look */
    const uint32_t bell = atomic_load_explicit(&h->bell, memory_order_seq_cst);
    atomic_fetch_add_explicit(&h->sleepers, 1, memory_order_seq_cst);
    if (!s->has_work(s->context) && !any_satisfied(s)) {
        if (atomic_fetch_sub_explicit(&s->seg.set->running, 1, memory_order_seq_cst) == 1)
            sched_ring_host(s);
        s->seg.transport->sleep(&h->bell, bell);
        atomic_fetch_add_explicit(&s->seg.set->running, 1, memory_order_seq_cst);
    }
    atomic_fetch_sub_explicit(&h->sleepers, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->epoch, 1, memory_order_release);
    atomic_store_explicit(&h->state, RANK_RUNNING, memory_order_relaxed);
}

static void idle(sched *s)
{
    ++s->idle_turns;
    /* Only a blocked task pauses in place: its peers have CPUs of their own. A rank without any
     * task waits for the host, which may need this very CPU to post. */
    if (s->blocked != NULL && s->idle_turns <= s->spin) {
        cpu_pause();
        return;
    }
    if (s->idle_turns % CLOCK_TURNS == 0) {
        const int64_t now = os_now_ns();
        if (s->idle_since_ns == 0) {
            s->idle_since_ns = now;
        } else if (now - s->idle_since_ns > LINGER_NS) {
            park(s);
            return;
        }
    }
    sched_yield();
}

void sched_turn(sched *s)
{
    if (s->ready_first != NULL || wake_satisfied(s)) {
        s->idle_turns = 0;
        s->idle_since_ns = 0;
        run_ready(s);
    } else {
        idle(s);
    }
}
