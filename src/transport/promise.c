/* Promises of memory: see promise.h. */
#include "transport/promise.h"

#include "base/diag.h"
#include "base/os.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Touching so much takes about 16 ms. */
#define PIECE_BYTES ((int64_t)64 << 20)
/* What nobody is promised, for the tables of pages and what programs take without asking; and that part of what is asked. */
#define RESERVE_BYTES ((int64_t)16 << 20)
#define RESERVE_PART 128

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Whether the machine has them; *left is what it has. */
static bool has(int64_t bytes, int64_t *left)
{
    const int64_t needed = add(bytes, bytes / RESERVE_PART + RESERVE_BYTES);
    *left = os_memory_left(needed);
    return *left >= needed;
}

/* A few more bytes: every PROMISE_FROM of them are asked for, by whom they become as many. */
static bool count(set_header *set, int64_t bytes, int64_t *left)
{
    if (set == NULL)
        return true;
    const int64_t before = atomic_fetch_add_explicit(&set->unasked, bytes, memory_order_relaxed);
    if (before + bytes < PROMISE_FROM)
        return true;
    atomic_fetch_sub_explicit(&set->unasked, before + bytes, memory_order_relaxed);
    const int64_t promised = atomic_load_explicit(&set->promised, memory_order_relaxed);
    return has(add(promised, PROMISE_FROM), left);
}

static bool try(set_header *set, int64_t bytes, int64_t *left)
{
    *left = 0;
    if (bytes < PROMISE_FROM)
        return count(set, bytes, left);
    if (set == NULL)
        return has(bytes, left);
    /* Added before the look: of two that ask at once, each sees the other's. Not when they are nowhere to be had: the sum
     * of such would not fit. */
    if (!has(bytes, left))
        return false;
    const int64_t before = atomic_fetch_add_explicit(&set->promised, bytes, memory_order_seq_cst);
    if (has(add(before, bytes), left))
        return true;
    atomic_fetch_sub_explicit(&set->promised, bytes, memory_order_relaxed);
    return false;
}

bool promise_try(set_header *set, int64_t bytes)
{
    int64_t left;
    return try(set, bytes, &left);
}

pypto_status promise_make(set_header *set, int64_t bytes, const char *what)
{
    int64_t left;
    if (try(set, bytes, &left))
        return STATUS_OK;
    const int64_t promised =
        set == NULL ? 0 : atomic_load_explicit(&set->promised, memory_order_relaxed);
    pypto_status status = diag_status(
        DIAG_NO_SPACE, "use smaller windows or tensors, fewer devices, or a larger machine",
        "%s: %lld more MiB of memory were asked for, %lld MiB are available", what,
        (long long)(bytes >> 20), (long long)(left >> 20));
    if (promised > 0)
        diag_note(&status, "%lld MiB of these are about to be used by others of the same program",
                  (long long)(promised >> 20));
    return status;
}

void promise_keep(set_header *set, int64_t promised, int64_t bytes)
{
    if (set != NULL && promised >= PROMISE_FROM)
        atomic_fetch_sub_explicit(&set->promised, bytes, memory_order_relaxed);
}

/* Writes to each page what is there; nobody else uses the memory. */
static void touch(char *start, int64_t bytes)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    char *first = start - (uintptr_t)start % (uintptr_t)page;
    if (madvise(first, (size_t)(start + bytes - first), MADV_POPULATE_WRITE) == 0)
        return;
    for (volatile char *at = start; at < start + bytes; at += page)
        *at = *at;
}

void promise_touch(set_header *set, uint64_t call, char *start, int64_t bytes)
{
    int64_t done = 0;
    while (done < bytes) {
        if (set != NULL && call != 0 &&
            atomic_load_explicit(&set->poison[call_slot(call)], memory_order_relaxed) >= call)
            break;
        const int64_t left = bytes - done;
        const int64_t piece = left < PIECE_BYTES ? left : PIECE_BYTES;
        touch(start + done, piece);
        promise_keep(set, bytes, piece);
        done += piece;
    }
    promise_keep(set, bytes, bytes - done);
}
