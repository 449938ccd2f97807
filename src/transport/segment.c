/* Layout of the shared segment, and what both ends do with it whatever the transport. */
#include "transport/segment.h"

#include "base/alloc.h"
#include "transport/transport.h"

#define PAGE 4096

/* Takes `bytes` (rounded up to pages) from the front of [*position, end); -1 when they do not fit.
 */
static int64_t take(int64_t *position, int64_t end, int64_t bytes)
{
    int64_t rounded;
    if (!size_add(bytes, PAGE - 1, &rounded))
        return -1;
    rounded &= ~(int64_t)(PAGE - 1);
    if (rounded > end - *position)
        return -1;
    int64_t start = *position;
    *position += rounded;
    return start;
}

bool segment_plan(set_header *header, int32_t rank_count, int32_t sub_count, int64_t bytes)
{
    if (rank_count < 1 || rank_count > PYPTO_MAX_RANKS || sub_count < 0 ||
        sub_count > MAX_SUB_WORKERS || bytes < PAGE)
        return false;
    const int32_t consumers = rank_count + sub_count;
    int64_t position = PAGE;
    header->ranks_offset = take(&position, bytes, (int64_t)sizeof(rank_header) * consumers);
    if (header->ranks_offset < 0)
        return false;
    /* Of what is left: 1/16 for queues, 5/16 for staging, 2/16 for attached files, half for windows. */
    const int64_t left = (bytes - position) & ~(int64_t)(PAGE - 1);
    header->control_bytes = (left / 16) & ~(int64_t)(PAGE - 1);
    header->staging_bytes = (left / 16 * 5) & ~(int64_t)(PAGE - 1);
    header->files_bytes = (left / 16 * 2) & ~(int64_t)(PAGE - 1);
    header->stride = (left / 2 / rank_count) & ~(int64_t)(PAGE - 1);
    header->control_offset = take(&position, bytes, header->control_bytes);
    header->staging_offset = take(&position, bytes, header->staging_bytes);
    header->files_offset = take(&position, bytes, header->files_bytes);
    header->heap_offset = take(&position, bytes, header->stride * rank_count);
    header->magic = SEGMENT_MAGIC;
    header->version = SEGMENT_VERSION;
    header->rank_count = (uint32_t)rank_count;
    header->consumer_count = (uint32_t)consumers;
    header->bytes = (uint64_t)bytes;
    return header->stride >= PAGE && header->control_bytes >= 64 * PAGE && header->heap_offset > 0;
}

void segment_ring_all(const segment *s)
{
    for (int32_t consumer = 0; consumer < (int32_t)s->set->consumer_count; ++consumer)
        rank_ring(s, segment_rank(s, consumer));
}

void segment_fail(const segment *s, failure_record *failure, uint64_t call)
{
    failure->order = atomic_fetch_add_explicit(&s->set->failures, 1, memory_order_relaxed) + 1;
    /* Pairs with the host's report, which may be looking already: another rank has failed first. */
    atomic_store_explicit(&failure->call, call, memory_order_release);
    segment_poison(s, call);
}

void segment_poison(const segment *s, uint64_t call)
{
    _Atomic uint64_t *poison = &s->set->poison[call_slot(call)];
    uint64_t seen = atomic_load_explicit(poison, memory_order_relaxed);
    while (seen < call && !atomic_compare_exchange_weak_explicit(
                              poison, &seen, call, memory_order_seq_cst, memory_order_relaxed))
        ;
    segment_ring_all(s);
}
