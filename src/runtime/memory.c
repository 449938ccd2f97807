/* Memory of a dispatch: see memory.h. Called by device.c (pld_create_tensor), and by loop.c at the end of a
 * dispatch, however it ends: whatever a failed task had taken goes with it.
 *
 * Blocks are cut from chunks, so taking one is an addition. A chunk knows how far it has ever been used:
 * what lies beyond is zero as the system gave it, and only the rest has to be cleared again. */
#include "runtime/memory.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "transport/heap.h"

#include <string.h>

#define CHUNK_BYTES ((int64_t)1 << 20)
/* What stays with an idle rank: enough for the scratch tensors of ordinary programs. */
#define KEEP_BYTES ((int64_t)64 << 20)

struct memory_chunk {
    memory_chunk *next;
    char *start; /* aligned, behind this header */
    int64_t bytes;
    int64_t used;
    int64_t dirty; /* bytes from the start that may not be zero */
};

static memory_chunk *new_chunk(memory *m, int64_t bytes)
{
    const int64_t header = (int64_t)sizeof(memory_chunk) + CACHE_LINE;
    int64_t all;
    memory_chunk *chunk = size_add(bytes, header, &all) ? alloc_zeroed(all, 1) : NULL;
    if (chunk == NULL)
        return NULL;
    const uintptr_t end = (uintptr_t)(chunk + 1);
    chunk->start = (char *)(chunk + 1) + (CACHE_LINE - end % CACHE_LINE) % CACHE_LINE;
    chunk->bytes = bytes;
    chunk->next = m->chunks;
    m->chunks = chunk;
    return chunk;
}

/* Takes a chunk with that many bytes left out of the list; NULL when none has them. */
static memory_chunk *unlink_chunk(memory *m, int64_t bytes)
{
    for (memory_chunk **link = &m->chunks; *link != NULL; link = &(*link)->next) {
        memory_chunk *chunk = *link;
        if (chunk->bytes - chunk->used < bytes)
            continue;
        *link = chunk->next;
        return chunk;
    }
    return NULL;
}

/* One at the head of the list, from there or from the spare ones. */
static memory_chunk *chunk_with(memory *m, memory *spare, int64_t bytes)
{
    memory_chunk *chunk = unlink_chunk(m, bytes);
    if (chunk == NULL)
        chunk = unlink_chunk(spare, bytes);
    if (chunk == NULL)
        return NULL;
    chunk->next = m->chunks;
    m->chunks = chunk;
    return chunk;
}

pypto_status memory_take(memory *m, memory *spare, int64_t bytes, void **block)
{
    int64_t rounded = 0;
    const bool fits = size_add(bytes, CACHE_LINE - 1, &rounded);
    rounded -= rounded % CACHE_LINE;
    memory_chunk *chunk = fits ? chunk_with(m, spare, rounded) : NULL;
    if (chunk == NULL) {
        pypto_status status = heap_check_memory(fits ? rounded : INT64_MAX, "pl.create_tensor");
        if (status.kind != PYPTO_ERROR_NONE)
            return status;
        chunk = new_chunk(m, rounded > CHUNK_BYTES ? rounded : CHUNK_BYTES);
        if (chunk == NULL)
            return diag_status(DIAG_NO_SPACE, "use smaller tensors",
                               "pl.create_tensor: no memory for %lld bytes", (long long)bytes);
    }
    *block = chunk->start + chunk->used;
    const int64_t stale = chunk->dirty - chunk->used;
    if (stale > 0)
        memset(*block, 0, (size_t)(stale < rounded ? stale : rounded));
    chunk->used += rounded;
    if (chunk->dirty < chunk->used)
        chunk->dirty = chunk->used;
    return STATUS_OK;
}

void memory_give(memory *m, void *block)
{
    m->chunks->used = (char *)block - m->chunks->start;
}

void memory_reset(memory *m, memory *spare)
{
    int64_t kept = 0;
    for (const memory_chunk *chunk = spare->chunks; chunk != NULL; chunk = chunk->next)
        kept += chunk->bytes;
    while (m->chunks != NULL) {
        memory_chunk *chunk = m->chunks;
        m->chunks = chunk->next;
        if (kept + chunk->bytes > KEEP_BYTES) {
            alloc_free(chunk);
            continue;
        }
        kept += chunk->bytes;
        chunk->used = 0;
        chunk->next = spare->chunks;
        spare->chunks = chunk;
    }
}

void memory_destroy(memory *m)
{
    while (m->chunks != NULL) {
        memory_chunk *next = m->chunks->next;
        alloc_free(m->chunks);
        m->chunks = next;
    }
}
