/* Resident memory: blocks that belong to a device of a worker set until they are freed. They lie in the staging area,
 * which every rank sees; an argument inside of one is passed as it is (staging.c). */
#include "base/alloc.h"
#include "host/host.h"

typedef struct resident {
    int32_t rank;
    int64_t offset; /* in the staging area */
    int64_t bytes;
} resident;

static char *address_of(const pypto_worker *w, const resident *r)
{
    return w->seg.base + w->seg.set->staging_offset + r->offset;
}

static pypto_status check_rank(const pypto_worker *w, int32_t rank)
{
    if (rank >= 0 && rank < w->device_count)
        return STATUS_OK;
    return diag_status(DIAG_BAD_RESIDENT, NULL, "rank %d does not exist: the worker set has %d",
                       rank, w->device_count);
}

pypto_status pypto_worker_alloc(pypto_worker *w, int32_t rank, int64_t bytes, void **address)
{
    *address = NULL;
    pypto_status status = check_rank(w, rank);
    if (status_ok(status) && bytes <= 0)
        status = diag_status(DIAG_BAD_RESIDENT, NULL, "a block of %lld bytes cannot be made",
                             (long long)bytes);
    if (!status_ok(status))
        return status;
    pthread_mutex_lock(&w->lock);
    resident made = {.rank = rank, .bytes = bytes};
    if (!alloc_grow(w->residents, w->resident_capacity, w->resident_count + 1))
        status = diag_no_memory();
    else
        status = stage_take(w, bytes, "resident tensors", &made.offset);
    if (status_ok(status)) {
        w->residents[w->resident_count++] = made;
        *address = address_of(w, &made);
    }
    pthread_mutex_unlock(&w->lock);
    return status;
}

pypto_status pypto_worker_free(pypto_worker *w, int32_t rank, void *address)
{
    pypto_status status =
        diag_status(DIAG_BAD_RESIDENT, "pass what pypto_worker_alloc() gave for this rank, once",
                    "the address does not begin a block of rank %d", rank);
    pthread_mutex_lock(&w->lock);
    runs_finish(w); /* one of them may use it */
    for (int64_t i = 0; i < w->resident_count; ++i) {
        const resident r = w->residents[i];
        if (r.rank != rank || address_of(w, &r) != address)
            continue;
        heap_give(&w->staging, r.offset, r.bytes);
        w->residents[i] = w->residents[--w->resident_count];
        pypto_status_clear(&status);
        break;
    }
    pthread_mutex_unlock(&w->lock);
    return status;
}

int64_t pypto_worker_committed(pypto_worker *w, int32_t rank)
{
    int64_t bytes = 0;
    pthread_mutex_lock(&w->lock);
    for (int64_t i = 0; i < w->resident_count; ++i)
        bytes += w->residents[i].rank == rank ? w->residents[i].bytes : 0;
    pthread_mutex_unlock(&w->lock);
    return bytes;
}
