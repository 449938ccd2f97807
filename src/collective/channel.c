/* Channels and rounds: see channel.h for what they are and why they work. */
#include "collective/channel.h"

#include "base/alloc.h"
#include "sched/describe.h"

#include <string.h>

/* ---- layout ---- */

static int64_t stage_at(int32_t ranks)
{
    return (int64_t)sizeof(channel_record) + 2 * ranks * (int64_t)sizeof(flag_line);
}

static int64_t channel_bytes(int32_t ranks)
{
    return stage_at(ranks) + 2 * STAGE_BYTES;
}

static int64_t channels_at(int64_t window_bytes)
{
    return (window_bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* A signal has at least one cell per rank, so that two which do not overlap begin in different groups of so
 * many cells: signals that begin in group i use channel i. */
int32_t channel_count(pld_collectives collectives, int64_t bytes, int32_t ranks)
{
    switch (collectives) {
    case PLD_NO_COLLECTIVES: return 0;
    case PLD_ONE_SIGNAL: return 1;
    case PLD_MANY_SIGNALS: break;
    }
    const int64_t groups = bytes / (int64_t)sizeof(int32_t) / ranks;
    return groups < 1 ? 1 : groups > INT32_MAX ? INT32_MAX : (int32_t)groups;
}

bool channel_block(int64_t window_bytes, int32_t channels, int32_t ranks, int64_t *block)
{
    *block = window_bytes;
    if (channels == 0)
        return true;
    int64_t bytes;
    if (!size_add(window_bytes, CACHE_LINE, &bytes) ||
        !size_mul(channels, channel_bytes(ranks), &bytes))
        return false;
    return size_add(channels_at(window_bytes), bytes, block);
}
