/* Memory of a dispatch: see memory.h. Called by device.c (pld_create_tensor), task.c (the end of a tensor), and
 * by loop.c at the end of a dispatch, however it ends: whatever a failed task had taken goes with it.
 *
 * Blocks are cut from chunks, each an area of its own (transport/heap). A chunk knows how far it has ever been
 * used: what lies beyond is zero as the system gave it, and only the rest has to be cleared again.
 *
 * The system gives out more memory than it has, and ends processes when they use it. So a chunk is asked for, and a large one
 * touched when it is made (transport/promise.h): a shortage is an error that can say whose it is, and of which line. */
#include "runtime/memory.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "transport/heap.h"
#include "transport/promise.h"

#include <string.h>

#define CHUNK_BYTES ((int64_t)1 << 20)
/* What stays with an idle rank: enough for the scratch tensors of ordinary programs. */
#define KEEP_BYTES ((int64_t)64 << 20)

struct memory_chunk {
    memory_chunk *next;
    char *start; /* aligned, behind this header */
    heap_area area;
    int64_t dirty; /* bytes from the start that may not be zero */
};

static void free_chunk(memory *spare, memory_chunk *chunk)
{
    spare->held -= chunk->area.limit;
    heap_destroy(&chunk->area);
    alloc_free(chunk);
}

static pypto_status new_chunk(memory *m, memory *spare, int64_t bytes)
{
    const int64_t header = (int64_t)sizeof(memory_chunk) + CACHE_LINE;
    int64_t all;
    pypto_status status = promise_make(spare->set, bytes, "pl.create_tensor");
    if (!status_ok(status))
        return status;
    memory_chunk *chunk = size_add(bytes, header, &all) ? alloc_zeroed(all, 1) : NULL;
    if (chunk == NULL) {
        promise_keep(spare->set, bytes, bytes);
        return diag_status(DIAG_NO_SPACE, "use smaller tensors",
                           "pl.create_tensor: no memory for %lld bytes", (long long)bytes);
    }
    const uintptr_t end = (uintptr_t)(chunk + 1);
    chunk->start = (char *)(chunk + 1) + (CACHE_LINE - end % CACHE_LINE) % CACHE_LINE;
    heap_init(&chunk->area, bytes, CACHE_LINE);
    spare->held += bytes;
    if (bytes >= PROMISE_FROM)
        promise_touch(spare->set, 0, chunk->start, bytes);
    chunk->next = m->chunks;
    m->chunks = chunk;
    return STATUS_OK;
}

/* A block of the chunk at *link, which becomes the first of `m`; NULL when it has no room. */
static void *take_from(memory *m, memory_chunk **link, int64_t bytes)
{
    memory_chunk *chunk = *link;
    const int64_t offset = heap_take(&chunk->area, bytes);
    if (offset < 0)
        return NULL;
    *link = chunk->next;
    chunk->next = m->chunks;
    m->chunks = chunk;
    void *block = chunk->start + offset;
    const int64_t stale = chunk->dirty - offset;
    if (stale > 0)
        memset(block, 0, (size_t)(stale < bytes ? stale : bytes));
    if (chunk->dirty < offset + bytes)
        chunk->dirty = offset + bytes;
    return block;
}

void *memory_reuse(memory *m, memory *spare, int64_t bytes)
{
    void *block = NULL;
    for (memory_chunk **link = &m->chunks; block == NULL && *link != NULL;
         link = block == NULL ? &(*link)->next : link)
        block = take_from(m, link, bytes);
    for (memory_chunk **link = &spare->chunks; block == NULL && *link != NULL;
         link = block == NULL ? &(*link)->next : link)
        block = take_from(m, link, bytes);
    return block;
}

static bool is_empty(const heap_area *area)
{
    return area->top == 0 || (area->free_count == 1 && area->free_[0].bytes == area->top);
}

/* Gives chunks without blocks back to the system; false: there were none. */
static bool drop_empty(memory *of, memory *spare)
{
    bool any = false;
    for (memory_chunk **link = &of->chunks; *link != NULL;) {
        memory_chunk *chunk = *link;
        if (!is_empty(&chunk->area)) {
            link = &chunk->next;
            continue;
        }
        *link = chunk->next;
        free_chunk(spare, chunk);
        any = true;
    }
    return any;
}

static bool drop_all_empty(memory *m, memory *spare)
{
    const bool own = drop_empty(m, spare);
    return drop_empty(spare, spare) || own;
}

void memory_trim(memory *spare)
{
    (void)drop_empty(spare, spare);
}

pypto_status memory_take(memory *m, memory *spare, int64_t bytes, void **block)
{
    *block = memory_reuse(m, spare, bytes);
    if (*block != NULL)
        return STATUS_OK;
    int64_t rounded;
    rounded = size_add(bytes, CACHE_LINE, &rounded) ? rounded : INT64_MAX;
    const int64_t size = rounded > CHUNK_BYTES ? rounded : CHUNK_BYTES;
    pypto_status status = new_chunk(m, spare, size);
    if (!status_ok(status) && drop_all_empty(m, spare)) {
        pypto_status_clear(&status);
        status = new_chunk(m, spare, size);
    }
    if (!status_ok(status))
        return status;
    *block = take_from(m, &m->chunks, bytes);
    if (*block == NULL) /* for the books of the new chunk */
        return diag_status(DIAG_NO_SPACE, "use smaller tensors",
                           "pl.create_tensor: no memory for %lld bytes", (long long)bytes);
    return STATUS_OK;
}

void memory_give(memory *m, void *block, int64_t bytes)
{
    const uintptr_t at = (uintptr_t)block;
    for (memory_chunk *chunk = m->chunks; chunk != NULL; chunk = chunk->next) {
        const uintptr_t start = (uintptr_t)chunk->start;
        if (at < start || at - start >= (uintptr_t)chunk->area.limit)
            continue;
        heap_give(&chunk->area, (int64_t)(at - start), bytes);
        return;
    }
}

void memory_reset(memory *m, memory *spare)
{
    int64_t kept = 0;
    for (const memory_chunk *chunk = spare->chunks; chunk != NULL; chunk = chunk->next)
        kept += chunk->area.limit;
    while (m->chunks != NULL) {
        memory_chunk *chunk = m->chunks;
        m->chunks = chunk->next;
        if (kept + chunk->area.limit > KEEP_BYTES) {
            free_chunk(spare, chunk);
            continue;
        }
        kept += chunk->area.limit;
        chunk->area.top = 0;
        chunk->area.free_count = 0;
        chunk->next = spare->chunks;
        spare->chunks = chunk;
    }
}

void memory_destroy(memory *m)
{
    while (m->chunks != NULL) {
        memory_chunk *next = m->chunks->next;
        heap_destroy(&m->chunks->area);
        alloc_free(m->chunks);
        m->chunks = next;
    }
}
