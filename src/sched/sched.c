/* Cores, turns and waiting of one rank: see sched.h for the idea. */
#include "sched/sched_internal.h"

#include "base/alloc.h"
#include "base/os.h"
#include "base/settings.h"
#include "transport/promise.h"

#include <sched.h>
#include <stdio.h>

/* How long a rank without work keeps yielding before it sleeps: waking a sleeping CPU costs about
 * 20 us, so a millisecond covers calls that come back to back and costs nothing noticeable when
 * idle. */
#define LINGER_NS 1000000
/* Turns between two looks at the clock while lingering. */
#define CLOCK_TURNS 32
/* Default pauses before the CPU is given away, when every rank has one. */
#define SPIN_PAUSES 2000
/* Pauses between two looks whether that is so: a few microseconds. */
#define CPU_LOOK 64

/* Idle ones that a rank keeps: about 6 and 24 MiB. */
#define KEEP_CORES 16384
#define KEEP_FIBERS 4096

/* Of a stack, by a kernel that does not need much. */
#define TOUCHED_STACK_BYTES 16384

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
    if (setting_is_set(SETTING_SPIN))
        return setting_int(SETTING_SPIN);
    return rank_count <= os_cpu_count() ? SPIN_PAUSES : 0;
}

pypto_status sched_init(sched *s, segment seg, int32_t rank, int host_event)
{
    *s = (sched){.seg = seg, .rank = rank, .host_event = host_event};
    s->header = segment_rank(&seg, rank);
    s->spin = spin_pauses((int32_t)seg.set->rank_count);
    s->uncounted = rank >= (int32_t)seg.set->rank_count;
    s->main = fiber_of_thread();
    return s->main == NULL ? diag_no_memory() : STATUS_OK;
}

static void free_core(pld_core *core)
{
    alloc_free(core->deferred);
    alloc_free(core);
}

void sched_destroy(sched *s)
{
    for (pld_core *core = s->pool; core != NULL;) {
        pld_core *next = core->next;
        free_core(core);
        core = next;
    }
    for (int32_t i = 0; i < s->fiber_count; ++i)
        fiber_destroy(s->fibers[i]);
    alloc_free(s->fibers);
    scratch_destroy(&s->scratch);
    fiber_destroy(s->main);
    s->main = NULL;
}

/* ---- core objects ---- */

pld_core *sched_take_core(sched *s)
{
    pld_core *core = s->pool;
    if (core != NULL) {
        s->pool = core->next;
        --s->pool_count;
    } else if (!promise_try(s->seg.set, (int64_t)sizeof *core) ||
               (core = alloc_zeroed(1, (int64_t)sizeof *core)) == NULL) {
        return NULL;
    }
    core->owner = s;
    core->next = NULL;
    core->task = NULL;
    core->block_index = 0;
    core->block_count = 1;
    core->log = NULL;
    return core;
}

static void give_core(sched *s, pld_core *core)
{
    if (s->pool_count == KEEP_CORES) {
        free_core(core);
        return;
    }
    core->next = s->pool;
    s->pool = core;
    ++s->pool_count;
}

static fiber *take_fiber(sched *s)
{
    if (s->fiber_count > 0)
        return s->fibers[--s->fiber_count];
    return promise_try(s->seg.set, TOUCHED_STACK_BYTES) ? fiber_create(TASK_STACK_BYTES) : NULL;
}

static void give_fiber(sched *s, fiber *f)
{
    if (s->fiber_count == KEEP_FIBERS ||
        !alloc_grow(s->fibers, s->fiber_capacity, s->fiber_count + 1)) {
        fiber_destroy(f);
        return;
    }
    s->fibers[s->fiber_count++] = f;
}

/* ---- a core's life ---- */

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

static void core_main(void *argument)
{
    pld_core *core = argument;
    core->function->run(core, core->args);
    leave(core, true);
}

static void push_ready(sched *s, pld_core *core)
{
    core->next = NULL;
    if (s->ready_last != NULL)
        s->ready_last->next = core;
    else
        s->ready_first = core;
    s->ready_last = core;
}

void sched_start(sched *s, pld_core *core)
{
    core->fiber = NULL;
    core->line = core->function->line;
    core->breadcrumb = (uint64_t)(core->function_index + 1) << 32;
    core->wait.kind = WAIT_NONE;
    core->deferred_count = core->deferred_done = 0;
    if (core->log != NULL)
        note_ready(core);
    push_ready(s, core);
}

/* What a core needs for its first instruction. Given only now, because many may be ready at once. */
static bool prepare(sched *s, pld_core *core)
{
    core->fiber = take_fiber(s);
    if (core->fiber == NULL || !scratch_take(&s->scratch, s->seg.set, core->call,
                                             core->function->scratch_bytes, &core->scratch))
        return false;
    fiber_reset(core->fiber, core_main, core);
    if (core->log != NULL)
        note_started(s, core);
    return true;
}

/* It runs no more. */
static void give_stack(sched *s, pld_core *core)
{
    if (core->fiber != NULL)
        give_fiber(s, core->fiber);
    core->fiber = NULL;
    scratch_give(&s->scratch, &core->scratch);
}

static void finish(sched *s, pld_core *core, bool ended)
{
    give_stack(s, core);
    if (!ended) {
        /* What ran last may be this one, which waited: reports of later calls are not to tell of it. */
        atomic_store_explicit(&s->header->breadcrumb, 0, memory_order_relaxed);
        atomic_store_explicit(&s->header->dropped, core->breadcrumb | (uint32_t)core->line,
                              memory_order_relaxed);
        atomic_store_explicit(&s->header->dropped_call, core->call, memory_order_relaxed);
    }
    if (core->log != NULL)
        note_ended(s, core);
    s->core_over(s->context, core, ended);
    give_core(s, core);
}

/* A core without fiber waits for what it deferred, or is over. */
static void hold_or_finish(sched *s, pld_core *core)
{
    if (core->deferred_done == core->deferred_count) {
        finish(s, core, true);
        return;
    }
    core->wait = core->deferred[core->deferred_done++];
    core->line = core->wait.line;
    core->next = s->blocked;
    s->blocked = core;
}

static void core_left(sched *s, pld_core *core)
{
    atomic_store_explicit(&s->header->breadcrumb, 0, memory_order_relaxed);
    if (!s->over_ended || core->deferred_count == 0) {
        finish(s, core, s->over_ended);
        return;
    }
    if (core->log != NULL)
        note_ended(s, core);
    give_stack(s, core);
    hold_or_finish(s, core);
}

static void describe_shortage(const pld_core *core, char *text, int64_t bytes)
{
    char limit[OS_LIMIT_TEXT], there[OS_LIMIT_TEXT + 64];
    (void)snprintf(there, sizeof there, "%lld MiB of memory are available%s",
                   (long long)(os_memory_left(INT64_MAX) >> 20),
                   os_limit_note("address space", limit, sizeof limit));
    if (core->fiber == NULL)
        (void)snprintf(text, (size_t)bytes,
                       "no room for the stack of one more block: let fewer wait at the same time, "
                       "or raise vm.max_map_count (%s)",
                       there);
    else
        (void)snprintf(text, (size_t)bytes,
                       "no memory for its %lld MiB of tiles: use smaller tiles, or fewer blocks "
                       "that wait at the same time (%s)",
                       (long long)(core->function->scratch_bytes >> 20), there);
}

static void run_ready(sched *s)
{
    pld_core *core = s->ready_first;
    s->ready_first = core->next;
    if (s->ready_first == NULL)
        s->ready_last = NULL;
    if (core->fiber == NULL && !prepare(s, core)) {
        char text[FAILURE_TEXT];
        describe_shortage(core, text, sizeof text);
        sched_fail(s, core->call, core->program, core->function_index, core->function->line,
                   DIAG_OUT_OF_MEMORY, text, NULL);
        finish(s, core, false);
        return;
    }
    s->running = core;
    atomic_store_explicit(&s->header->breadcrumb_program, core->program, memory_order_relaxed);
    atomic_store_explicit(&s->header->breadcrumb, core->breadcrumb | (uint32_t)core->line,
                          memory_order_relaxed);
    fiber_switch(s->main, core->fiber, false);
    if (s->running == NULL)
        core_left(s, core);
    s->running = NULL;
}

void sched_drop(sched *s, uint64_t call)
{
    pld_core *lists[2] = {s->ready_first, s->blocked};
    s->ready_first = s->ready_last = s->blocked = NULL;
    for (int i = 0; i < 2; ++i) {
        for (pld_core *core = lists[i], *next; core != NULL; core = next) {
            next = core->next;
            if (core->call <= call && call_slot(core->call) == call_slot(call)) {
                finish(s, core, false);
            } else if (i == 0) {
                push_ready(s, core);
            } else {
                core->next = s->blocked;
                s->blocked = core;
            }
        }
    }
}

/* ---- waiting ---- */

bool wait_satisfied(const segment *seg, const wait_entry *wait)
{
    if (wait->kind == WAIT_DISPATCH)
        return segment_dispatch_done(segment_rank(seg, wait->device), wait->sequence);
    if (wait->kind == WAIT_COLLECTIVE) {
        const _Atomic uint64_t *flag = (const _Atomic uint64_t *)(seg->base + wait->cell_offset);
        return atomic_load_explicit(flag, memory_order_seq_cst) == wait->sequence;
    }
    const _Atomic int32_t *cell = (const _Atomic int32_t *)(seg->base + wait->cell_offset);
    const int32_t value = atomic_load_explicit(cell, memory_order_seq_cst);
    return wait->cmp == PLD_EQ ? value == wait->expected : value >= wait->expected;
}

/* Whether to pause once more, or to give the CPU away from now on. */
static bool may_pause(sched *s)
{
    if (s->idle_turns >= s->spin)
        return false;
    if (++s->idle_turns % CPU_LOOK == 0 && !sched_has_cpu(s))
        s->idle_turns = s->spin;
    return true;
}

void task_wait(pld_core *core)
{
    sched *s = core->owner;
    for (s->idle_turns = 0; s->ready_first == NULL && may_pause(s);) {
        if (core_satisfied(core))
            return;
        cpu_pause();
        task_check(core);
    }
    core->next = s->blocked;
    s->blocked = core;
    fiber_switch(core->fiber, s->main, false);
    task_check(core);
}

void task_yield(pld_core *core)
{
    sched *s = core->owner;
    push_ready(s, core);
    fiber_switch(core->fiber, s->main, false);
    task_check(core);
}

void task_obey(pld_core *core)
{
    if (segment_poisoned(&core->owner->seg, core->call, memory_order_relaxed))
        task_leave(core);
    task_yield(core);
}

/* Moves satisfied cores to the ready list; those that only had deferred waits are over. */
static bool wake_satisfied(sched *s)
{
    pld_core *held = NULL;
    bool any = false;
    for (pld_core **link = &s->blocked; *link != NULL;) {
        pld_core *core = *link;
        if (!core_satisfied(core)) {
            link = &core->next;
            continue;
        }
        *link = core->next;
        any = true;
        if (core->fiber != NULL) {
            push_ready(s, core);
        } else {
            core->next = held;
            held = core;
        }
    }
    for (pld_core *core = held, *next; core != NULL; core = next) {
        next = core->next;
        hold_or_finish(s, core); /* may start others, and so not while the list is walked */
    }
    return any;
}

/* ---- turns ---- */

static void idle(sched *s)
{
    /* Only a blocked core pauses in place: its peers have CPUs of their own. A rank without any
     * core waits for the host, which may need this very CPU to post. */
    if (s->blocked != NULL && may_pause(s)) {
        cpu_pause();
        return;
    }
    if (++s->idle_turns % CLOCK_TURNS == 0) {
        const int64_t now = os_now_ns();
        if (s->idle_since_ns == 0) {
            s->idle_since_ns = now;
        } else if (now - s->idle_since_ns > LINGER_NS) {
            sched_park(s);
            return;
        }
    }
    sched_yield();
}

void sched_turn(sched *s)
{
    const bool idles = s->ready_first == NULL && !wake_satisfied(s);
    if (s->log != NULL)
        note_turn(s, idles);
    if (idles) {
        idle(s);
        return;
    }
    s->idle_turns = 0;
    s->idle_since_ns = 0;
    if (s->ready_first != NULL)
        run_ready(s);
}
