/* Idle scratch memory: see scratch.h. Called by sched.c where a core begins and ends. */
#include "sched/scratch.h"

#include "base/alloc.h"
#include "transport/promise.h"

#include <stdlib.h>

/* What a rank keeps; or one block, if that is larger. */
#define KEEP_BYTES ((int64_t)64 << 20)
/* Idle blocks that are looked at: kernels of many sizes take turns. */
#define LOOK_AT 8

static void drop_last(scratch_pool *pool)
{
    const scratch_block *last = &pool->idle[--pool->count];
    pool->held -= last->bytes;
    free(last->start);
}

/* An idle block that is large enough. */
static bool reuse(scratch_pool *pool, int64_t bytes, scratch_block *block)
{
    for (int32_t i = pool->count - 1; i >= 0 && i >= pool->count - LOOK_AT; --i) {
        if (pool->idle[i].bytes < bytes)
            continue;
        *block = pool->idle[i];
        pool->held -= block->bytes;
        pool->idle[i] = pool->idle[--pool->count];
        return true;
    }
    return false;
}

bool scratch_take(scratch_pool *pool, set_header *set, uint64_t call, int64_t bytes,
                  scratch_block *block)
{
    *block = (scratch_block){0};
    if (bytes == 0 || reuse(pool, bytes, block))
        return true;
    int64_t rounded;
    if (!size_add(bytes, CACHE_LINE - 1, &rounded))
        return false;
    rounded = rounded / CACHE_LINE * CACHE_LINE;
    bool promised = promise_try(set, rounded);
    if (!promised && pool->count > 0) { /* what is idle may make the difference */
        while (pool->count > 0)
            drop_last(pool);
        promised = promise_try(set, rounded);
    }
    if (!promised)
        return false;
    char *start = aligned_alloc(CACHE_LINE, (size_t)rounded);
    if (start == NULL) {
        promise_keep(set, rounded, rounded);
        return false;
    }
    if (rounded >= PROMISE_FROM)
        promise_touch(set, call, start, rounded);
    *block = (scratch_block){start, rounded};
    return true;
}

void scratch_give(scratch_pool *pool, scratch_block *block)
{
    const scratch_block given = *block;
    *block = (scratch_block){0};
    if (given.start == NULL)
        return;
    /* The smaller ones go, so that the one that is kept serves all. */
    while (pool->count > 0 && pool->held + given.bytes > KEEP_BYTES &&
           pool->idle[pool->count - 1].bytes <= given.bytes)
        drop_last(pool);
    if ((pool->count > 0 && pool->held + given.bytes > KEEP_BYTES) ||
        !alloc_grow(pool->idle, pool->capacity, pool->count + 1)) {
        free(given.start);
        return;
    }
    pool->idle[pool->count++] = given;
    pool->held += given.bytes;
}

void scratch_destroy(scratch_pool *pool)
{
    while (pool->count > 0)
        drop_last(pool);
    alloc_free(pool->idle);
    *pool = (scratch_pool){0};
}
