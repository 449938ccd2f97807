/* Scratch memory of cores, for the tiles of their kernels: a pool of idle blocks. A core has a block while it runs; many may
 * be ready, and what each has had before is no use to it, so blocks go around like stacks do. The rank's thread only. */
#ifndef SCHED_SCRATCH_H
#define SCHED_SCRATCH_H

#include "transport/segment.h"

typedef struct scratch_block {
    char *start; /* NULL: none */
    int64_t bytes;
} scratch_block;

typedef struct scratch_pool {
    scratch_block *idle; /* the last is taken first */
    int32_t count;
    int64_t capacity;
    int64_t held; /* bytes of these */
} scratch_pool;

/* A block of at least `bytes`, aligned to a cache line, contents undefined; false: no memory. One of more than a little is
 * touched before it is given out (transport/promise.h), as long as the call is not to end. */
bool scratch_take(scratch_pool *pool, set_header *set, uint64_t call, int64_t bytes,
                  scratch_block *block);
/* Gives it back, and forgets it. */
void scratch_give(scratch_pool *pool, scratch_block *block);
/* Frees all that is idle; the pool can be used again. */
void scratch_destroy(scratch_pool *pool);

#endif
