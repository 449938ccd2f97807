/* First-fit allocation of segment blocks and the reservation of their pages: see heap.h. */
#include "transport/heap.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "transport/promise.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

void heap_init(heap_area *area, int64_t limit, int64_t align)
{
    *area = (heap_area){.limit = limit, .align = align};
}

void heap_destroy(heap_area *area)
{
    alloc_free(area->free_);
    *area = (heap_area){0};
}

static int64_t round_up(const heap_area *area, int64_t bytes)
{
    int64_t rounded;
    if (bytes < 0 || !size_add(bytes, area->align - 1, &rounded))
        return -1;
    rounded &= ~(area->align - 1);
    return rounded == 0 ? area->align : rounded;
}

static int64_t find_free(const heap_area *area, int64_t bytes)
{
    for (int64_t i = 0; i < area->free_count; ++i)
        if (area->free_[i].bytes >= bytes)
            return i;
    return -1;
}

bool heap_must_grow(const heap_area *area, int64_t bytes)
{
    return find_free(area, round_up(area, bytes)) < 0;
}

static void remove_free(heap_area *area, int64_t i)
{
    memmove(&area->free_[i], &area->free_[i + 1],
            (size_t)(area->free_count - i - 1) * sizeof(heap_block));
    --area->free_count;
}

int64_t heap_take(heap_area *area, int64_t bytes)
{
    bytes = round_up(area, bytes);
    if (bytes < 0)
        return -1;
    /* Room in the books for giving blocks back in any order, because heap_give must not fail: between two free pieces
     * there is a block that is taken. */
    if (!alloc_grow(area->free_, area->free_capacity, area->taken + 2))
        return -1;
    int64_t i = find_free(area, bytes);
    if (i >= 0) {
        heap_block *block = &area->free_[i];
        int64_t offset = block->offset;
        block->offset += bytes;
        block->bytes -= bytes;
        if (block->bytes == 0)
            remove_free(area, i);
        ++area->taken;
        return offset;
    }
    if (bytes > area->limit - area->top)
        return -1;
    int64_t offset = area->top;
    area->top += bytes;
    ++area->taken;
    return offset;
}

void heap_give(heap_area *area, int64_t offset, int64_t bytes)
{
    bytes = round_up(area, bytes);
    --area->taken;
    int64_t i = 0;
    while (i < area->free_count && area->free_[i].offset < offset)
        ++i;
    const bool joins_left = i > 0 && area->free_[i - 1].offset + area->free_[i - 1].bytes == offset;
    const bool joins_right = i < area->free_count && offset + bytes == area->free_[i].offset;
    if (joins_left && joins_right) {
        area->free_[i - 1].bytes += bytes + area->free_[i].bytes;
        remove_free(area, i);
    } else if (joins_left) {
        area->free_[i - 1].bytes += bytes;
    } else if (joins_right) {
        area->free_[i].offset = offset;
        area->free_[i].bytes += bytes;
    } else {
        memmove(&area->free_[i + 1], &area->free_[i],
                (size_t)(area->free_count - i) * sizeof(heap_block));
        area->free_[i] = (heap_block){offset, bytes};
        ++area->free_count;
    }
}

pypto_status heap_reserve(const segment *s, int64_t area_offset, int64_t *reserved, int64_t end,
                          const char *what)
{
    if (end <= *reserved)
        return STATUS_OK;
    const int64_t bytes = end - *reserved;
    pypto_status status = promise_make(s->set, bytes, what);
    if (!status_ok(status))
        return status;
    int result;
    do
        result = fallocate(s->fd, 0, area_offset + *reserved, bytes);
    while (result != 0 && errno == EINTR);
    const int error = errno;
    promise_keep(s->set, bytes, bytes);
    if (result != 0)
        return diag_system(error, "use smaller windows or fewer devices", "reserve %lld MiB for %s",
                           (long long)(bytes >> 20), what);
    *reserved = end;
    return STATUS_OK;
}

void heap_trim(const segment *s, int64_t area_offset, heap_area *area, int64_t *reserved,
               int64_t keep)
{
    if (area->free_count == 0)
        return;
    heap_block *last = &area->free_[area->free_count - 1];
    const int64_t start = last->offset > keep ? last->offset : keep;
    if (last->offset + last->bytes != area->top || start >= area->top)
        return;
    if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, area_offset + start,
                  area->top - start) != 0)
        return; /* it stays reserved, which is no error */
    area->top = start;
    if (*reserved > start)
        *reserved = start;
    last->bytes = start - last->offset;
    if (last->bytes == 0)
        --area->free_count;
}
