/* On which CPU a rank waits. There may be a CPU for each rank, and still the system runs two of them on the same,
 * above all when others use the machine: then each pause only keeps from running what it waits for.
 *
 * A rank that finds itself so moves to a CPU where no other rank of its set has waited: it allows itself only those,
 * and at once all again that it had. So it is never bound. Bound ranks would lie on each other when two programs
 * use the machine, and would not make room for what is bound; but what is never put apart stays together, because to
 * the system two ranks on one CPU and somebody else's program on the other are as good as any other way.
 *
 * Of two that find each other only the one with the higher number moves, else both would, to the same place. */
#include "sched/sched.h"

#include "base/os.h"

#include <sched.h>

/* Moving costs about 10 us, and somebody else may undo it. */
#define MOVE_AGAIN_NS 1000000

static int32_t cpu_of(const sched *s, int32_t rank)
{
    return atomic_load_explicit(&segment_rank(&s->seg, rank)->cpu, memory_order_relaxed);
}

/* The first rank that last waited on the CPU that runs this one; -1: none. Tells where this one waits. */
static int32_t who_shares(const sched *s)
{
    const int32_t cpu = sched_getcpu() + 1;
    if (cpu != cpu_of(s, s->rank))
        atomic_store_explicit(&s->header->cpu, cpu, memory_order_relaxed);
    for (int32_t rank = 0; rank < (int32_t)s->seg.set->rank_count; ++rank)
        if (rank != s->rank && cpu_of(s, rank) == cpu)
            return rank;
    return -1;
}

static bool move_apart(sched *s)
{
    const int64_t now = os_now_ns();
    cpu_set_t allowed;
    if (now - s->moved_ns < MOVE_AGAIN_NS || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return false;
    s->moved_ns = now;
    cpu_set_t others_left = allowed;
    for (int32_t rank = 0; rank < (int32_t)s->seg.set->rank_count; ++rank)
        if (rank != s->rank && cpu_of(s, rank) > 0)
            CPU_CLR((size_t)(cpu_of(s, rank) - 1), &others_left);
    if (CPU_COUNT(&others_left) == 0 || sched_setaffinity(0, sizeof others_left, &others_left) != 0)
        return false;
    (void)sched_setaffinity(0, sizeof allowed, &allowed);
    return who_shares(s) < 0;
}

bool sched_has_cpu(sched *s)
{
    const int32_t other = who_shares(s);
    return other < 0 || (other < s->rank && move_apart(s));
}

void sched_leaves_cpu(const sched *s)
{
    atomic_store_explicit(&s->header->cpu, 0, memory_order_relaxed);
}
