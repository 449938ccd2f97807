/* Resident memory: blocks that belong to a device of a worker set until they are freed. They lie in the staging area,
 * which every rank sees; an argument inside of one is passed as it is (staging.c).
 *
 * An argument may also have rows, one per index of its first dimension, that lie in blocks of several ranks. Host
 * functions only take views of it, and views are computed: so they see an *image* of it, packed, at addresses that
 * nobody reads, behind the segment. A dispatch gets the row that its view lies in.
 *
 * A dispatch gets resident memory of its own rank only, which is known when the host function has run to its end. So of
 * a call that brings resident memory nothing is posted before that (pld_host.holds). */
#include "base/alloc.h"
#include "host/host.h"

#include <string.h>

typedef struct resident {
    int32_t rank;
    int64_t offset; /* in the staging area */
    int64_t bytes;
} resident;

static char *address_of(const pypto_worker *w, const resident *r)
{
    return w->seg.base + w->seg.set->staging_offset + r->offset;
}

/* ---- blocks ---- */

static pypto_status check_rank(const pypto_worker *w, int32_t rank)
{
    if (rank >= 0 && rank < w->device_count)
        return STATUS_OK;
    return diag_status(DIAG_BAD_RESIDENT, NULL, "rank %d does not exist: the worker set has %d",
                       rank, w->device_count);
}

/* How many blocks begin at or below an address. */
static int64_t count_up_to(const pypto_worker *w, const char *address)
{
    int64_t low = 0, high = w->resident_count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (address_of(w, &w->residents[middle]) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The block that holds these bytes, or NULL. */
static const resident *find(const pypto_worker *w, const char *low, const char *high)
{
    const int64_t count = count_up_to(w, low);
    const resident *r = count > 0 ? &w->residents[count - 1] : NULL;
    return r != NULL && high <= address_of(w, r) + r->bytes ? r : NULL;
}

static void insert(pypto_worker *w, const resident *made)
{
    const int64_t at = count_up_to(w, address_of(w, made));
    memmove(&w->residents[at + 1], &w->residents[at],
            (size_t)(w->resident_count - at) * sizeof *made);
    w->residents[at] = *made;
    ++w->resident_count;
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
    turns_enter(w);
    resident made = {.rank = rank, .bytes = bytes};
    status = workers_check_usable(w);
    if (status_ok(status) && !alloc_grow(w->residents, w->resident_capacity, w->resident_count + 1))
        status = diag_no_memory();
    if (status_ok(status))
        status = stage_take(w, bytes, "resident tensors", &made.offset);
    if (status_ok(status)) {
        insert(w, &made);
        *address = address_of(w, &made);
    }
    turns_leave(w);
    return status;
}

pypto_status pypto_worker_free(pypto_worker *w, int32_t rank, void *address)
{
    pypto_status status = STATUS_OK;
    turns_enter_to_wait(w);
    runs_finish(w); /* one of them may use it */
    const int64_t at = count_up_to(w, address) - 1;
    if (at >= 0 && w->residents[at].rank == rank &&
        address_of(w, &w->residents[at]) == (char *)address) {
        heap_give(&w->staging, w->residents[at].offset, w->residents[at].bytes);
        --w->resident_count;
        memmove(&w->residents[at], &w->residents[at + 1],
                (size_t)(w->resident_count - at) * sizeof *w->residents);
    } else {
        status = diag_status(DIAG_BAD_RESIDENT,
                             "pass what pypto_worker_alloc() gave for this rank, once",
                             "the address does not begin a block of rank %d", rank);
    }
    turns_leave_waiting(w);
    return status;
}

int64_t pypto_worker_committed(pypto_worker *w, int32_t rank)
{
    int64_t bytes = 0;
    turns_enter(w);
    for (int64_t i = 0; i < w->resident_count; ++i)
        bytes += w->residents[i].rank == rank ? w->residents[i].bytes : 0;
    turns_leave(w);
    return bytes;
}

/* ---- arguments ---- */

static pypto_status refuse(const pld_host *host, int32_t index, const char *what)
{
    return diag_status(DIAG_BAD_RESIDENT, "pass resident tensors of this worker while they live",
                       "argument '%s' of %s %s", host->function->params[index].name,
                       host->function->name, what);
}

/* Bytes of a row; -1 when the tensor is not packed or cannot be. */
static int64_t row_size(const pypto_tensor *t)
{
    int64_t elems = 1, bytes;
    for (int32_t d = t->ndim - 1; d >= 0; --d) {
        if (t->stride[d] != elems && t->shape[d] != 1)
            return -1;
        if (d > 0 && !size_mul(elems, t->shape[d], &elems))
            return -1;
    }
    return size_mul(elems, pypto_dtype_bytes(t->dtype), &bytes) ? bytes : -1;
}

pypto_status resident_image(pld_host *host, int32_t index)
{
    staged *s = &host->staged[index];
    const pypto_tensor *t = s->tensor;
    const int64_t bytes = t->ndim > 0 ? row_size(t) : -1;
    int64_t total;
    if (bytes < 0 || t->shape[0] > PYPTO_MAX_RANKS || !size_mul(bytes, t->shape[0], &total))
        return refuse(host, index, "has rows, which are to be packed and at most 64");
    s->low = (int64_t)(intptr_t)host->w->seg.base + host->w->seg.bytes + host->image_bytes;
    s->high = s->low + total;
    s->row_bytes = bytes;
    host->image_bytes += total;
    return STATUS_OK;
}

static bool rows_are_distinct(const pypto_tensor *t, int64_t row_bytes)
{
    for (int64_t i = 0; i < t->shape[0]; ++i)
        for (int64_t k = 0; k < i; ++k) {
            const char *a = t->rows[i], *b = t->rows[k];
            if (a < b + row_bytes && b < a + row_bytes)
                return false;
        }
    return true;
}

pypto_status resident_place(pld_host *host, int32_t index)
{
    staged *s = &host->staged[index];
    const pypto_tensor *t = s->tensor;
    const pypto_worker *w = host->w;
    bool lives = true;
    if (t->rows == NULL) {
        s->row_bytes = s->high - s->low;
        lives = find(w, (char *)(intptr_t)s->low, (char *)(intptr_t)s->high) != NULL;
    } else {
        for (int64_t i = 0; i < t->shape[0]; ++i) {
            const char *row = t->rows[i];
            lives = lives && find(w, row, row + s->row_bytes) != NULL;
        }
        if (!rows_are_distinct(t, s->row_bytes))
            return refuse(host, index, "has a row twice");
    }
    host->holds = true;
    return lives ? STATUS_OK : refuse(host, index, "is not in resident memory (it was freed)");
}

/* ---- dispatches ---- */

/* Moves a view to where it lies on `device`, or leaves the host function. */
static void place_view(pld_host *host, int32_t device, pld_tensor *view)
{
    const byte_range range = view_range(view);
    const int64_t low = (int64_t)(intptr_t)range.low, high = (int64_t)(intptr_t)range.high;
    for (int32_t i = 0; i < host->count && low != high; ++i) {
        const staged *s = &host->staged[i];
        if (s->row_bytes == 0 || low < s->low || high > s->high)
            continue;
        const char *name = host->function->params[i].name;
        const int64_t row = (low - s->low) / s->row_bytes, image = s->low + row * s->row_bytes;
        if (high > image + s->row_bytes)
            host_error(host, DIAG_BAD_RESIDENT, "pass one row: an index of the first dimension",
                       "a dispatch takes rows %lld to %lld of '%s' at once, which lie on their "
                       "own ranks",
                       (long long)row, (long long)((high - 1 - s->low) / s->row_bytes), name);
        char *at = s->tensor->rows == NULL ? (char *)(intptr_t)image : s->tensor->rows[row];
        const resident *block = find(host->w, at, at + s->row_bytes);
        const bool elsewhere = block->rank != device && device < host->w->device_count;
        if (elsewhere && s->tensor->rows == NULL)
            host_error(host, DIAG_BAD_RESIDENT,
                       "allocate it with the number of that rank, or dispatch it where it is",
                       "'%s' is dispatched on rank %d, but is resident on rank %d", name, device,
                       block->rank);
        if (elsewhere)
            host_error(host, DIAG_BAD_RESIDENT,
                       "let its worker_ids say where rows are dispatched, or dispatch them where "
                       "they are",
                       "row %lld of '%s' is dispatched on rank %d, but is resident on rank %d",
                       (long long)row, name, device, block->rank);
        view->data = at + (view->data - (char *)(intptr_t)image);
        return;
    }
}

const pld_arg *resident_arguments(pld_host *host, int32_t device, const pld_arg *args,
                                  int32_t count)
{
    arg_list *list = &host->w->placed;
    if (!arg_list_reserve(list, count))
        host_leave(host, diag_no_memory());
    for (int32_t i = 0; i < count; ++i) {
        list->args[i] = args[i];
        if (args[i].kind != PLD_ARG_TENSOR)
            continue;
        list->tensors[i] = *args[i].tensor;
        list->args[i].tensor = &list->tensors[i];
        if (list->tensors[i].window == NULL)
            place_view(host, device, &list->tensors[i]);
    }
    return list->args;
}
