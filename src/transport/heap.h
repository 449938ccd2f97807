/* Block allocators over the areas of a segment. Only the host allocates there; the books are its private
 * memory, so a crashing worker cannot damage them. Not thread-safe: the worker set's lock guards
 * them. Ranks use the same books for memory of their own (runtime/memory.c).
 *
 * heap_area is one run of address space: queues and staging. The symmetric heap is an area too,
 * whose offsets are relative to a slice; its pages are reserved per device (see host/windows.c).
 *
 * Memory stays warm: a freed block keeps its pages. Pages are reserved with fallocate() when the
 * area first grows over them, so that a shortage is an error here and not a SIGBUS in a kernel;
 * before that, the machine is asked for them (promise.h), because the kernel would sooner kill a process
 * than fail. */
#ifndef TRANSPORT_HEAP_H
#define TRANSPORT_HEAP_H

#include "transport/segment.h"

#include <pypto/status.h>

#define HEAP_ALIGN 4096 /* of the areas of a segment */

typedef struct heap_block {
    int64_t offset;
    int64_t bytes;
} heap_block;

typedef struct heap_area {
    int64_t limit;     /* bytes of address space */
    int64_t align;     /* of blocks and their sizes: a power of two */
    int64_t top;       /* blocks have been handed out up to here */
    heap_block *free_; /* sorted by offset, never adjacent */
    int64_t free_count;
    int64_t taken; /* blocks handed out and not given back */
    int64_t free_capacity;
} heap_area;

void heap_init(heap_area *area, int64_t limit, int64_t align);
void heap_destroy(heap_area *area);

/* A block of at least `bytes` (rounded up to the area's alignment): the lowest free one that is large enough,
 * else above `top`. Returns its offset in the area, or -1: no address space, or no memory for the
 * books. */
int64_t heap_take(heap_area *area, int64_t bytes);
/* True when heap_take(bytes) would have to grow the area. */
bool heap_must_grow(const heap_area *area, int64_t bytes);
void heap_give(heap_area *area, int64_t offset, int64_t bytes);

/* Makes sure that file bytes [offset, offset + bytes) have memory behind them, given that
 * everything below *reserved (relative to `area_offset`) has: extends *reserved. `what` and
 * `advice` word the error. */
PYPTO_NODISCARD pypto_status heap_reserve(const segment *s, int64_t area_offset, int64_t *reserved,
                                          int64_t end, const char *what);

/* Gives the memory of the free space at the area's end, beyond `keep` bytes, back to the system. */
void heap_trim(const segment *s, int64_t area_offset, heap_area *area, int64_t *reserved,
               int64_t keep);

#endif
