/* A rank without work goes to sleep, and tells first what it waits for; and rings the host: see segment.h for the protocol of
 * bell and park. */
#include "sched/sched_internal.h"

#include <unistd.h>

void sched_ring_host(const sched *s)
{
    if (atomic_load_explicit(&s->seg.set->host_waiting, memory_order_seq_cst) == 0)
        return;
    const uint64_t one = 1;
    ssize_t written = write(s->host_event, &one, sizeof one);
    (void)written; /* a full counter is a ring that has not been heard yet */
}

static bool any_satisfied(const sched *s)
{
    for (const pld_core *core = s->blocked; core != NULL; core = core->next)
        if (core_satisfied(core))
            return true;
    return false;
}

static void publish_wait(sched *s, uint32_t *count, const wait_entry *wait)
{
    if (*count < WAIT_SLOTS)
        wait_copy(&s->header->waits[*count], wait);
    ++*count;
}

static void publish_waits(sched *s)
{
    uint32_t count = 0;
    for (const outer_wait *outer = s->outer; outer != NULL; outer = outer->next)
        publish_wait(s, &count, &outer->entry);
    /* A wrapper that waits for its own tasks is no news: theirs are. */
    for (const pld_core *core = s->blocked; core != NULL; core = core->next)
        if (core->wait.kind != WAIT_TASKS)
            publish_wait(s, &count, &core->wait);
    if (count > WAIT_SLOTS)
        count = WAIT_SLOTS + 1;
    atomic_store_explicit(&s->header->wait_count, count, memory_order_relaxed);
}

/* Whether nobody runs any more, as far as `running` tells. */
static bool last_to_sleep(sched *s)
{
    _Atomic int32_t *running = &s->seg.set->running;
    return s->uncounted ? atomic_load_explicit(running, memory_order_seq_cst) == 0
                        : atomic_fetch_sub_explicit(running, 1, memory_order_seq_cst) == 1;
}

void sched_park(sched *s)
{
    rank_header *h = s->header;
    publish_waits(s);
    atomic_fetch_add_explicit(&h->epoch, 1, memory_order_seq_cst); /* parked */
    const uint32_t bell = atomic_load_explicit(&h->bell, memory_order_seq_cst);
    atomic_fetch_add_explicit(&h->sleepers, 1, memory_order_seq_cst);
    if (!s->has_work(s->context) && !any_satisfied(s)) {
        sched_leaves_cpu(s);
        if (last_to_sleep(s))
            sched_ring_host(s);
        s->seg.transport->sleep(&h->bell, bell);
        if (!s->uncounted)
            atomic_fetch_add_explicit(&s->seg.set->running, 1, memory_order_seq_cst);
    }
    atomic_fetch_add_explicit(&h->epoch, 1, memory_order_seq_cst); /* no longer */
    atomic_fetch_sub_explicit(&h->sleepers, 1, memory_order_relaxed);
}
