/* Dispatch queues, both ends: see queue.h. */
#include "runtime/queue.h"

#include "base/alloc.h"
#include "base/diag.h"

#include <string.h>

static queue_record *record_at(queue_writer *w)
{
    const queue_block *last = &w->blocks[w->block_count - 1];
    const segment *seg = w->memory->seg;
    return (queue_record *)(void *)(seg->base + seg->set->control_offset + last->offset +
                                    w->position);
}

/* Appends a block that holds at least `bytes` and a link behind them. */
static pypto_status add_block(queue_writer *w, int64_t bytes)
{
    queue_memory *memory = w->memory;
    int64_t size = bytes + (int64_t)sizeof(queue_record);
    if (size < QUEUE_BLOCK_BYTES)
        size = QUEUE_BLOCK_BYTES;
    if (!alloc_grow(w->blocks, w->block_capacity, w->block_count + 1))
        return diag_no_memory();
    int64_t offset = heap_take(&memory->area, size);
    if (offset < 0)
        return diag_status(DIAG_NO_SPACE, "dispatch less in one call",
                           "the dispatch queues are full");
    pypto_status status = heap_reserve(memory->seg, memory->seg->set->control_offset,
                                       &memory->reserved, offset + size, "dispatch queues");
    if (!status_ok(status)) {
        heap_give(&memory->area, offset, size);
        return status;
    }
    if (w->block_count > 0) {
        queue_record *link = record_at(w);
        *link = (queue_record){.kind = RECORD_LINK, .bytes = sizeof *link};
        link->next_block = memory->seg->set->control_offset + offset;
    }
    w->blocks[w->block_count++] = (queue_block){offset, size, w->sequence + 1};
    w->position = 0;
    return STATUS_OK;
}

/* Gives back the blocks that the consumer has left behind. */
static void recycle(queue_writer *w)
{
    const uint64_t completed = atomic_load_explicit(&w->header->completed, memory_order_acquire);
    int32_t dead = 0;
    while (dead + 1 < w->block_count && w->blocks[dead + 1].first <= completed)
        ++dead;
    for (int32_t i = 0; i < dead; ++i)
        heap_give(&w->memory->area, w->blocks[i].offset, w->blocks[i].bytes);
    if (dead > 0) {
        w->block_count -= dead;
        memmove(w->blocks, w->blocks + dead, (size_t)w->block_count * sizeof *w->blocks);
    }
}

pypto_status queue_restart(queue_writer *w)
{
    for (int32_t i = 0; i < w->block_count; ++i)
        heap_give(&w->memory->area, w->blocks[i].offset, w->blocks[i].bytes);
    w->block_count = 0;
    pypto_status status = add_block(w, 0);
    if (status_ok(status))
        w->header->queue_offset = w->memory->seg->set->control_offset + w->blocks[0].offset;
    return status;
}

pypto_status queue_writer_init(queue_writer *w, queue_memory *memory, rank_header *header)
{
    *w = (queue_writer){.memory = memory, .header = header};
    return queue_restart(w);
}

void queue_writer_destroy(queue_writer *w)
{
    alloc_free(w->blocks);
    *w = (queue_writer){0};
}

pypto_status queue_reserve(queue_writer *w, record_kind kind, uint64_t call, int32_t dep_count,
                           int32_t item_count, queue_record **record)
{
    const int64_t item =
        kind == RECORD_DISPATCH ? (int64_t)sizeof(queue_arg) : (int64_t)sizeof(heap_block);
    const int64_t bytes =
        (int64_t)sizeof(queue_record) + (int64_t)sizeof(queue_dep) * dep_count + item * item_count;
    if (bytes > UINT32_MAX / 2)
        return diag_status(DIAG_BAD_DISPATCH, NULL, "a dispatch with %d arguments is too large",
                           item_count);
    const queue_block *last = &w->blocks[w->block_count - 1];
    if (bytes > last->bytes - (int64_t)sizeof(queue_record) - w->position) {
        recycle(w);
        pypto_status status = add_block(w, bytes);
        if (!status_ok(status))
            return status;
    }
    *record = record_at(w);
    **record = (queue_record){.kind = kind,
                              .bytes = (uint32_t)bytes,
                              .call = call,
                              .dep_count = dep_count,
                              .item_count = item_count};
    return STATUS_OK;
}

uint64_t queue_append(queue_writer *w, const queue_record *record)
{
    w->position += record->bytes;
    return ++w->sequence;
}

void queue_post(queue_writer *w)
{
    if (atomic_load_explicit(&w->header->posted, memory_order_relaxed) == w->sequence)
        return;
    atomic_store_explicit(&w->header->posted, w->sequence, memory_order_seq_cst);
    rank_ring(w->memory->seg, w->header);
}

uint64_t queue_publish(queue_writer *w, const queue_record *record)
{
    const uint64_t sequence = queue_append(w, record);
    queue_post(w);
    return sequence;
}

/* What queues may keep between calls. */
#define QUEUE_KEEP_BYTES ((int64_t)8 << 20)

void queue_shrink(queue_memory *memory, queue_writer *writers, int32_t count)
{
    if (memory->area.top <= QUEUE_KEEP_BYTES)
        return;
    for (int32_t i = 0; i < count; ++i) {
        recycle(&writers[i]);
        if (writers[i].blocks[writers[i].block_count - 1].offset < QUEUE_KEEP_BYTES)
            continue;
        pypto_status status = add_block(&writers[i], 0); /* the lowest free one */
        pypto_status_clear(&status);
    }
    heap_trim(memory->seg, memory->seg->set->control_offset, &memory->area, &memory->reserved,
              QUEUE_KEEP_BYTES);
}

void queue_reader_init(queue_reader *r, const segment *seg, rank_header *header)
{
    *r = (queue_reader){.seg = seg,
                        .header = header,
                        .block = header->queue_offset,
                        .taken = atomic_load_explicit(&header->taken, memory_order_acquire)};
}

queue_record *queue_peek(queue_reader *r)
{
    if (atomic_load_explicit(&r->header->posted, memory_order_seq_cst) == r->taken)
        return NULL;
    queue_record *record = (queue_record *)(void *)(r->seg->base + r->block + r->position);
    if (record->kind == RECORD_LINK) {
        r->block = record->next_block;
        r->position = 0;
        record = (queue_record *)(void *)(r->seg->base + r->block);
    }
    return record;
}

void queue_pop(queue_reader *r, const queue_record *record)
{
    r->position += record->bytes;
    ++r->taken;
    atomic_store_explicit(&r->header->taken, r->taken, memory_order_release);
}
