/* Memory that lives as long as a dispatch, or less: tensors that its wrapper and kernels create. */
#ifndef RUNTIME_MEMORY_H
#define RUNTIME_MEMORY_H

#include "transport/segment.h"

#include <pypto/status.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct memory_chunk memory_chunk;

/* Chunks from which blocks are cut: a dispatch has one, and the rank one of spare chunks, which those of its
 * dispatches come from and go to. The rank's thread only. */
typedef struct memory {
    memory_chunk *chunks; /* the one that blocks are cut from first */
    /* Of the spare one: bytes of all chunks of the rank, and with whom it shares the machine's memory. */
    int64_t held;
    set_header *set;
} memory;

/* Less than this is taken without ado. */
#define MEMORY_SMALL ((int64_t)1 << 20)

/* `bytes` zeroed bytes, aligned to a cache line. Fails when the machine does not have them. */
PYPTO_NODISCARD pypto_status memory_take(memory *m, memory *spare, int64_t bytes, void **block);
/* The same from what is there already; NULL: more is needed. */
void *memory_reuse(memory *m, memory *spare, int64_t bytes);
/* Gives back a block that was taken with `bytes`. */
void memory_give(memory *m, void *block, int64_t bytes);
/* Gives back all blocks. Some chunks stay as spare ones. */
void memory_reset(memory *m, memory *spare);
/* Gives the spare chunks back to the system. */
void memory_trim(memory *spare);
void memory_destroy(memory *m);

#endif
