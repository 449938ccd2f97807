/* Window buffers: blocks of the symmetric heap.
 *
 * Free blocks are always zero on every device. After a call each rank clears its own slices (a
 * CLEAR record in its queue, so it happens after everything the rank did) and the block is free
 * again when all ranks have; so windows are zero everywhere before the first dispatch without a
 * barrier. If instead each rank cleared its slice when its dispatch starts, a fast peer's notify
 * could be wiped out. */
#include "base/alloc.h"
#include "host/host.h"
#include "transport/promise.h"

/* Above this, waiting for pending clears beats growing the heap. */
#define WAIT_FOR_CLEARS_FROM ((int64_t)1 << 20)

static bool all_cleared(const pypto_worker *w, const clearing *c)
{
    for (int32_t device = 0; device < w->device_count; ++device) {
        const rank_header *rank = segment_rank(&w->seg, device);
        if (atomic_load_explicit(&rank->completed, memory_order_acquire) < c->sequences[device])
            return false;
    }
    return true;
}

static void free_clearing(clearing *c)
{
    alloc_free(c->ranges);
    alloc_free(c->sequences);
    alloc_free(c);
}

/* Frees the blocks that all ranks have cleared. */
static void reap(pypto_worker *w)
{
    for (clearing **link = &w->clearings; *link != NULL;) {
        clearing *c = *link;
        if (!all_cleared(w, c)) {
            link = &c->next;
            continue;
        }
        *link = c->next;
        for (int32_t i = 0; i < c->count; ++i)
            heap_give(&w->heap, c->ranges[i].offset, c->ranges[i].bytes);
        free_clearing(c);
    }
}

/* Memory behind the block on each device of the set. */
static pypto_status reserve_slices(pypto_worker *w, uint64_t devices, int64_t end, const char *name)
{
    int64_t more = 0;
    int32_t count = 0;
    for (int32_t device = 0; device < w->device_count; ++device) {
        if ((devices >> device & 1) == 0)
            continue;
        ++count;
        if (end > w->slice_reserved[device])
            more += end - w->slice_reserved[device];
    }
    char *text = alloc_printf("window '%s' on %d devices", name, count);
    pypto_status status = promise_make(w->seg.set, more, text != NULL ? text : "windows");
    alloc_free(text);
    if (status_ok(status)) /* each slice asks once more */
        promise_keep(w->seg.set, more, more);
    for (int32_t device = 0; status_ok(status) && device < w->device_count; ++device)
        if ((devices >> device & 1) != 0)
            status = heap_reserve(&w->seg, w->seg.set->heap_offset + w->seg.set->stride * device,
                                  &w->slice_reserved[device], end, "windows");
    return status;
}

/* Whether dispatches of this call are on their way. They may need later ones, so the call cannot wait for them. */
static bool has_posted(const pypto_worker *w)
{
    for (int32_t device = 0; device < w->device_count; ++device)
        if (w->writers[device].sequence != w->posted_before[device])
            return true;
    return false;
}

/* For all that is posted; of this call nothing is. */
static pypto_status wait_for_clears(pypto_worker *w)
{
    pld_host posted = {.w = w, .call = w->call};
    bool over;
    for (int32_t device = 0; device < w->device_count; ++device)
        posted.last[device] = w->writers[device].sequence;
    return call_wait(&posted, CALL_FOREVER, false, &over);
}

pypto_status window_take(pypto_worker *w, int64_t bytes, uint64_t devices, const char *name,
                         int64_t *offset)
{
    reap(w);
    if (w->clearings != NULL && bytes >= WAIT_FOR_CLEARS_FROM && w->run_count == 1 &&
        !has_posted(w) && heap_must_grow(&w->heap, bytes)) {
        pypto_status status = wait_for_clears(w);
        if (!status_ok(status))
            return status;
        reap(w);
    }
    *offset = heap_take(&w->heap, bytes);
    if (*offset < 0)
        return diag_status(
            DIAG_NO_SPACE, "use a smaller window or fewer devices, or raise `ulimit -v`",
            "window '%s' of %lld bytes does not fit: each of %d devices has %lld MiB of "
            "address space for windows",
            name, (long long)bytes, w->device_count, (long long)(w->heap.limit >> 20));
    pypto_status status = reserve_slices(w, devices, *offset + bytes, name);
    if (!status_ok(status))
        heap_give(&w->heap, *offset, bytes);
    return status;
}

static bool is_on(const host_window *window, int32_t device)
{
    return (window->allocated || window->kept) && (window->devices >> device & 1) != 0;
}

pypto_status windows_post_clear(pypto_worker *w, const host_window *windows, int32_t count,
                                int32_t device, uint64_t *sequence)
{
    int32_t here = 0;
    for (int32_t i = 0; i < count; ++i)
        here += is_on(&windows[i], device);
    if (here == 0)
        return STATUS_OK;
    queue_record *record;
    pypto_status status =
        queue_reserve(&w->writers[device], RECORD_CLEAR, w->call, 0, here, &record);
    if (!status_ok(status))
        return status;
    heap_block *ranges = record_ranges(record);
    for (int32_t i = 0, k = 0; i < count; ++i)
        if (is_on(&windows[i], device))
            ranges[k++] = (heap_block){windows[i].offset, windows[i].block};
    atomic_fetch_add_explicit(&w->seg.set->outstanding, 1, memory_order_relaxed);
    *sequence = queue_publish(&w->writers[device], record);
    return STATUS_OK;
}

pypto_status windows_release(pld_host *host)
{
    pypto_worker *w = host->w;
    int32_t count = 0;
    for (int32_t i = 0; i < host->table->nbuffers; ++i)
        count += host->windows[i].allocated ? 1 : 0;
    if (count == 0)
        return STATUS_OK;
    clearing *c = alloc_zeroed(1, (int64_t)sizeof *c);
    if (c == NULL)
        return diag_no_memory();
    c->ranges = alloc_zeroed(count, (int64_t)sizeof *c->ranges);
    c->sequences = alloc_zeroed(w->device_count, (int64_t)sizeof *c->sequences);
    pypto_status status = c->ranges == NULL || c->sequences == NULL ? diag_no_memory() : STATUS_OK;
    for (int32_t i = 0; status_ok(status) && i < host->table->nbuffers; ++i)
        if (host->windows[i].allocated)
            c->ranges[c->count++] = (heap_block){host->windows[i].offset, host->windows[i].block};
    for (int32_t device = 0; status_ok(status) && device < w->device_count; ++device)
        status = windows_post_clear(w, host->windows, host->table->nbuffers, device,
                                    &c->sequences[device]);
    if (!status_ok(status)) {
        /* The blocks stay taken: not clean, so not free. The caller gives the set up. */
        free_clearing(c);
        return status;
    }
    c->next = w->clearings;
    w->clearings = c;
    return STATUS_OK;
}

void windows_destroy(pypto_worker *w)
{
    while (w->clearings != NULL) {
        clearing *c = w->clearings;
        w->clearings = c->next;
        free_clearing(c);
    }
}
