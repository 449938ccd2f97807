/* The dispatch queue of a rank: a byte stream of records in chained blocks of the control area.
 *
 * One producer (the host, under the worker set's lock) and one consumer (the rank). The producer
 * writes a record, then raises rank_header.posted (seq_cst: it also orders the look at the sleeper
 * count, segment.h Bell); the consumer reads `posted` (acquire) before the record. Blocks are
 * chained by a link record, so posting never waits for execution. A record stays where it is until it
 * is complete, and a block is free again when `completed` has reached the next one: before that the
 * consumer may still have to follow the link.
 *
 * Record n of a rank (counting from 1) is its dispatch number n, by which others depend on it. */
#ifndef RUNTIME_QUEUE_H
#define RUNTIME_QUEUE_H

#include "transport/heap.h"
#include "transport/transport.h"

#include <pypto/program.h>

typedef enum record_kind {
    RECORD_LINK,     /* the stream goes on at `next_block`; not counted in `posted` */
    RECORD_DISPATCH, /* deps, then args */
    RECORD_CLEAR     /* zero `ranges` of the own slice: windows of a finished call */
} record_kind;

/* The dispatch numbered `sequence` of `device`, which may be this one, must be complete first. */
typedef struct queue_dep {
    int32_t device;
    int32_t reserved;
    uint64_t sequence;
} queue_dep;

/* An argument in a form that needs no address. */
typedef struct queue_arg {
    int32_t kind; /* pld_arg_kind */
    int32_t dtype;
    int32_t ndim;
    int32_t buffer;       /* window: index of its allocation; otherwise -1 */
    uint64_t devices;     /* window: its domain */
    int64_t data;         /* tensor: offset in the segment; window: offset in the slice */
    int64_t window_start; /* window: offset of the buffer in the slice */
    int64_t window_bytes;
    int64_t channels; /* window: of collectives, behind it */
    int64_t integer;
    double real;
    int64_t shape[PYPTO_MAX_DIMS];
    int64_t stride[PYPTO_MAX_DIMS];
} queue_arg;

typedef struct queue_record {
    uint32_t kind; /* record_kind */
    uint32_t bytes;
    uint64_t call;
    int32_t program;
    int32_t function;
    int32_t dep_count;
    int32_t item_count; /* args or ranges */
    int64_t next_block;
    int64_t
        log; /* offset in the segment of the rank's trace_log, if the call is recorded; else 0 */
} queue_record;

static_assert(sizeof(queue_record) % 8 == 0 && sizeof(queue_dep) % 8 == 0 &&
                  sizeof(queue_arg) % 8 == 0,
              "parts of a record stay aligned");

#define QUEUE_BLOCK_BYTES ((int64_t)64 * 1024)

static inline queue_dep *record_deps(queue_record *record)
{
    return (queue_dep *)(void *)(record + 1);
}
static inline queue_arg *record_args(queue_record *record)
{
    return (queue_arg *)(void *)(record_deps(record) + record->dep_count);
}
static inline heap_block *record_ranges(queue_record *record)
{
    return (heap_block *)(void *)(record + 1);
}

/* ---- producer ---- */

/* Where the host takes blocks from. */
typedef struct queue_memory {
    segment *seg;
    heap_area area;
    int64_t reserved;
} queue_memory;

typedef struct queue_block {
    int64_t offset; /* in the control area */
    int64_t bytes;
    uint64_t first; /* number of its first record */
} queue_block;

typedef struct queue_writer {
    queue_memory *memory;
    rank_header *header;
    uint64_t sequence; /* of the record appended last */
    queue_block *blocks;
    int32_t block_count;
    int64_t block_capacity;
    int64_t position; /* in the last block */
} queue_writer;

PYPTO_NODISCARD pypto_status queue_writer_init(queue_writer *w, queue_memory *memory,
                                               rank_header *header);
void queue_writer_destroy(queue_writer *w);
/* For a consumer that begins anew, everything being complete: it finds the next record in a block of its own. */
PYPTO_NODISCARD pypto_status queue_restart(queue_writer *w);

/* Room for a record with so many parts, header filled but for program, function. Only one at a
 * time; queue_append() ends it. */
PYPTO_NODISCARD pypto_status queue_reserve(queue_writer *w, record_kind kind, uint64_t call,
                                           int32_t dep_count, int32_t item_count,
                                           queue_record **record);
/* Ends the reserved record, which the rank does not see before queue_post(). Returns its number. */
uint64_t queue_append(queue_writer *w, const queue_record *record);
/* Makes all that has been appended visible, and rings the rank if that is anything. */
void queue_post(queue_writer *w);
/* queue_append() and queue_post(). */
uint64_t queue_publish(queue_writer *w, const queue_record *record);

/* When the queues have grown large and everything is complete: makes them small again. Blocks still
 * at the far end are left for good by the next records. */
void queue_shrink(queue_memory *memory, queue_writer *writers, int32_t count);

/* ---- consumer ---- */

typedef struct queue_reader {
    const segment *seg;
    rank_header *header;
    int64_t block; /* segment offset */
    int64_t position;
    uint64_t taken; /* records popped */
} queue_reader;

void queue_reader_init(queue_reader *r, const segment *seg, rank_header *header);
/* The next record without consuming it, or NULL. */
queue_record *queue_peek(queue_reader *r);
void queue_pop(queue_reader *r, const queue_record *record);

#endif
