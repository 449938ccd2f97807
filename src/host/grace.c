/* The patience with a rank that is to drop a call: see grace.h. */
#include "host/grace.h"

#define NS_PER_MS INT64_C(1000000)

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void grace_begin(grace *g, int64_t cpu_ns, int64_t now_ns)
{
    *g = (grace){.cpu_ns = cpu_ns, .looked_ns = now_ns};
}

int64_t grace_left(grace *g, int64_t cpu_ns, bool idle, int64_t now_ns)
{
    if (idle)
        g->idle_ns += least(now_ns - g->looked_ns, GRACE_LOOK_MS * NS_PER_MS);
    g->looked_ns = now_ns;
    const int64_t idle_left = GRACE_IDLE_MS * NS_PER_MS - g->idle_ns;
    const bool known = cpu_ns >= 0 && g->cpu_ns >= 0;
    const int64_t cpu_left =
        known ? GRACE_CPU_MS * NS_PER_MS - (cpu_ns - g->cpu_ns) : GRACE_LOOK_MS * NS_PER_MS;
    return least(least(idle_left, cpu_left), GRACE_LOOK_MS * NS_PER_MS);
}
