/* Transports: how ranks share memory and wake each other. One small table per transport:
 *
 *   shm      ranks are processes; the segment is a memory file that each maps. The default.
 *   threads  ranks are threads of one process that share the host's mapping. Lets ThreadSanitizer
 *            and a debugger see everything.
 *
 * In both every peer's slice is addressable, so put, get and atomics are ordinary memory operations
 * on peer pointers (pld_window.device_base, stride). A transport across machines will add those
 * operations here and leave the pointers NULL. */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include "transport/segment.h"

#include <pypto/status.h>

typedef struct transport {
    const char *name;
    bool one_process;
    /* Host: creates the segment, as large as the address space allows (up to 1 TiB; sparse). */
    pypto_status (*create)(int32_t rank_count, int32_t sub_count, segment *out);
    /* Rank: its view of the host's segment. `fd` is the memory file (taken over on success: the caller's again when it fails); `host`
     * is the host's own view, used by the threads transport only. */
    pypto_status (*attach)(int fd, const segment *host, segment *out);
    void (*detach)(segment *s);
    /* Sleeps while *word == seen; may return early. */
    void (*sleep)(_Atomic uint32_t *word, uint32_t seen);
    /* Wakes everybody asleep on *word. */
    void (*wake)(_Atomic uint32_t *word);
} transport;

extern const transport transport_shm;
extern const transport transport_threads;

/* Wakes a rank if it sleeps. Call after the change that it may wait for (see segment.h, Bell). */
static inline void rank_ring(const segment *s, rank_header *rank)
{
    if (atomic_load_explicit(&rank->sleepers, memory_order_seq_cst) != 0) {
        atomic_fetch_add_explicit(&rank->bell, 1, memory_order_seq_cst);
        s->transport->wake(&rank->bell);
    }
}

/* The same behind changes that were plain or relaxed stores. The read-modify-write takes its place among
 * the sleepers': either it is behind theirs and sees them, or theirs is behind it and they see the
 * stores (it releases, theirs acquires). */
static inline void rank_ring_behind(const segment *s, rank_header *rank)
{
    if (atomic_fetch_add_explicit(&rank->sleepers, 0, memory_order_seq_cst) != 0) {
        atomic_fetch_add_explicit(&rank->bell, 1, memory_order_seq_cst);
        s->transport->wake(&rank->bell);
    }
}

/* Maps the first `bytes` of a file at an offset of the segment, in place of what the segment itself has there;
 * and takes it away again. Whole pages. A mapping that fails, with errno, leaves what was there. Not for ranks that
 * are threads: theirs is the host's. */
bool segment_map_file(const segment *s, int64_t offset, int64_t bytes, int fd, bool writable);
void segment_unmap_file(const segment *s, int64_t offset, int64_t bytes);

/* Wakes every rank, and every SubWorker, that sleeps. */
void segment_ring_all(const segment *s);

/* Poisons a call (and those before it in its slot, which are over) and wakes every rank. */
void segment_poison(const segment *s, uint64_t call);
/* Publishes a failure of the call, a record that is complete but for `order` and `call`, and poisons the call. */
void segment_fail(const segment *s, failure_record *failure, uint64_t call);

#endif
