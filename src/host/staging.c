/* Staging: host tensors that ranks cannot see in place are copied into the segment before the call
 * and back after it.
 *
 * What is staged is memory, not arguments: arguments whose byte ranges overlap share one block and
 * keep their distances, so a program sees the same aliasing as the caller. A tensor that stands
 * alone and is not packed is packed (and unpacked): only its own elements are read and written,
 * never what lies between them. An Out argument is copied in too, because a program may write only
 * part of it.
 *
 * Tensors that need no copy get a view of their own bytes and no block: those in memory of the segment (`in_segment`,
 * resident.c), and those in files that are attached (attach.c). */
#include "base/alloc.h"
#include "host/host.h"

#include <string.h>

/* ---- geometry ---- */

static int64_t elem_bytes(const pypto_tensor *t)
{
    return pypto_dtype_bytes(t->dtype);
}

/* First and last byte touched, whatever the signs of the strides. */
bool tensor_range(const pypto_tensor *t, int64_t *low, int64_t *high)
{
    int64_t first = 0, last = 0;
    *low = *high = (int64_t)(intptr_t)t->data;
    for (int32_t d = 0; d < t->ndim; ++d)
        if (t->shape[d] == 0)
            return true;
    for (int32_t d = 0; d < t->ndim; ++d) {
        int64_t reach;
        if (!size_mul(t->stride[d], t->shape[d] - 1, &reach))
            return false;
        if (!(reach < 0 ? size_add(first, reach, &first) : size_add(last, reach, &last)))
            return false;
    }
    int64_t bytes;
    if (!size_add(last, 1, &last) || !size_mul(last, elem_bytes(t), &bytes) ||
        !size_add(*low, bytes, high) || !size_mul(first, elem_bytes(t), &bytes))
        return false;
    *low += bytes;
    return true;
}

static bool is_packed(const pypto_tensor *t)
{
    int64_t expected = 1;
    for (int32_t d = t->ndim - 1; d >= 0; --d) {
        if (t->shape[d] != 1 && t->stride[d] != expected)
            return false;
        expected *= t->shape[d];
    }
    return true;
}

static int64_t element_count(const pypto_tensor *t)
{
    int64_t count = 1;
    for (int32_t d = 0; d < t->ndim; ++d)
        if (!size_mul(count, t->shape[d], &count))
            return -1;
    return count;
}

/* Copies all elements between two tensors of one shape and dtype. Dimensions that are packed in
 * both are one memcpy. */
static void copy_elements(char *to, const int64_t *to_stride, const char *from,
                          const int64_t *from_stride, const pypto_tensor *t)
{
    const int64_t width = elem_bytes(t);
    int64_t index[PYPTO_MAX_DIMS] = {0};
    int32_t outer = t->ndim;
    int64_t run = 1;
    while (outer > 0 && (t->shape[outer - 1] == 1 ||
                         (to_stride[outer - 1] == run && from_stride[outer - 1] == run)))
        run *= t->shape[--outer];
    if (element_count(t) == 0)
        return;
    for (;;) {
        memcpy(to, from, (size_t)(run * width));
        int32_t d = outer - 1;
        for (; d >= 0; --d) {
            to += to_stride[d] * width;
            from += from_stride[d] * width;
            if (++index[d] < t->shape[d])
                break;
            to -= to_stride[d] * t->shape[d] * width;
            from -= from_stride[d] * t->shape[d] * width;
            index[d] = 0;
        }
        if (d < 0)
            return;
    }
}

/* ---- placing ---- */

bool in_segment(const segment *seg, int64_t low, int64_t high)
{
    const int64_t start = (int64_t)(intptr_t)seg->base;
    return low >= start && high <= start + seg->bytes;
}

static void fill_view(staged *s, char *data, bool packed)
{
    const pypto_tensor *t = s->tensor;
    s->view = (pld_tensor){.data = data, .dtype = (int32_t)t->dtype, .ndim = t->ndim};
    memcpy(s->view.shape, t->shape, sizeof s->view.shape);
    memcpy(s->view.stride, t->stride, sizeof s->view.stride);
    int64_t stride = 1;
    for (int32_t d = t->ndim - 1; packed && d >= 0; --d) {
        s->view.stride[d] = stride;
        stride *= t->shape[d];
    }
}

pypto_status stage_take(pypto_worker *w, int64_t bytes, const char *what, int64_t *offset)
{
    *offset = heap_take(&w->staging, bytes);
    if (*offset < 0)
        return diag_status(DIAG_NO_SPACE, "pass smaller tensors, or raise `ulimit -v`",
                           "%lld bytes of tensors do not fit into the staging area of %lld MiB",
                           (long long)bytes, (long long)(w->staging.limit >> 20));
    pypto_status status = heap_reserve(&w->seg, w->seg.set->staging_offset, &w->staging_reserved,
                                       *offset + bytes, what);
    if (!status_ok(status))
        heap_give(&w->staging, *offset, bytes);
    return status;
}

/* Whether an argument is copied, and from between these addresses. */
static bool copies_from(const pld_host *host, int32_t i, int64_t low, int64_t high)
{
    const staged *s = &host->staged[i];
    return s->tensor != NULL && s->row_bytes == 0 && s->low < high && low < s->high &&
           host->places[i].file == NULL;
}

bool stage_meets(const pld_host *host, int64_t low, int64_t high, bool writing, bool in_place)
{
    for (int32_t i = 0; i < host->count; ++i) {
        const staged *s = &host->staged[i];
        const bool touches = host->places[i].file == NULL
                                 ? copies_from(host, i, low, high)
                                 : !in_place && s->low < high && low < s->high;
        if (touches && (writing || s->written))
            return true;
    }
    return false;
}

/* Stages argument i and every later one whose bytes are connected with it by overlaps. */
static pypto_status place_group(pld_host *host, int32_t i)
{
    pypto_worker *w = host->w;
    staged *all = host->staged;
    int64_t low = all[i].low, high = all[i].high;
    int32_t members = 1;
    for (bool grew = true; grew;) {
        grew = false;
        const int64_t from = low, to = high;
        members = 0;
        for (int32_t k = 0; k < host->count; ++k) {
            if (!copies_from(host, k, from, to))
                continue;
            ++members;
            if (all[k].low < low || all[k].high > high)
                grew = true;
            low = all[k].low < low ? all[k].low : low;
            high = all[k].high > high ? all[k].high : high;
        }
    }
    const bool pack = members == 1 && !is_packed(all[i].tensor);
    const int64_t bytes =
        pack ? element_count(all[i].tensor) * elem_bytes(all[i].tensor) : high - low;
    int64_t offset;
    pypto_status status = stage_take(w, bytes, "tensor arguments", &offset);
    if (!status_ok(status))
        return status;
    char *block = w->seg.base + w->seg.set->staging_offset + offset;
    for (int32_t k = 0; k < host->count; ++k) {
        staged *s = &all[k];
        if (!copies_from(host, k, low, high))
            continue;
        s->block = offset;
        s->block_bytes = bytes;
        s->owns_block = k == i;
        fill_view(s, pack ? block : block + ((int64_t)(intptr_t)s->tensor->data - low), pack);
        copy_elements(s->view.data, s->view.stride, s->tensor->data, s->tensor->stride, s->tensor);
        w->copied_bytes += element_count(s->tensor) * elem_bytes(s->tensor);
    }
    return STATUS_OK;
}

pypto_status stage_in(pld_host *host)
{
    for (int32_t i = 0; i < host->count; ++i) {
        staged *s = &host->staged[i];
        const pypto_argument *argument = &host->arguments[i];
        s->block = -1;
        host->args[i] = (pld_arg){argument->kind, NULL, argument->integer, argument->real};
        if (argument->kind != PLD_ARG_TENSOR)
            continue;
        s->tensor = &argument->tensor;
        s->written = host->function->params[i].direction != PLD_IN;
        if (s->tensor->rows != NULL) {
            pypto_status status = resident_image(host, i);
            if (!status_ok(status))
                return status;
        } else if (element_count(s->tensor) < 0 || !tensor_range(s->tensor, &s->low, &s->high))
            return diag_status(DIAG_ARGUMENT_TYPE, NULL, "argument '%s' of %s is too large",
                               host->function->params[i].name, host->function->name);
        host->args[i].tensor = &s->declared;
    }
    for (int32_t i = 0; i < host->count; ++i) {
        staged *s = &host->staged[i];
        if (s->tensor == NULL || s->block >= 0)
            continue;
        if (s->low == s->high) {
            fill_view(s, host->w->seg.base + host->w->seg.set->staging_offset, true);
            continue;
        }
        if (host->places[i].file != NULL) {
            fill_view(s, host->places[i].data, false);
            continue;
        }
        const bool in_place = s->row_bytes > 0 || in_segment(&host->w->seg, s->low, s->high);
        pypto_status status = in_place ? resident_place(host, i) : place_group(host, i);
        if (!status_ok(status))
            return status;
        if (in_place)
            fill_view(s, s->tensor->rows != NULL ? (char *)(intptr_t)s->low : s->tensor->data,
                      false);
    }
    for (int32_t i = 0; i < host->count; ++i) {
        pld_tensor *view = &host->staged[i].declared;
        *view = host->staged[i].view;
        if (host->staged[i].tensor != NULL)
            (void)host_adopt(&host->function->params[i], &view->dtype, view->ndim, view->shape,
                             view->stride);
    }
    return STATUS_OK;
}

static char *block_start(const pld_host *host, int64_t offset)
{
    const segment *seg = &host->w->seg;
    return seg->base + seg->set->staging_offset + offset;
}

/* Gives back what has ended and is used no more. In their order, so that each look is a short one. */
static void reclaim(pld_host *host)
{
    int32_t idle = 0;
    for (; idle < host->ended_count; ++idle) {
        const heap_block block = host->ended[idle];
        const char *start = block_start(host, block.offset);
        if (order_uses(host, start, start + block.bytes))
            break;
        for (int32_t i = 0; i < host->created_count; ++i) {
            if (host->created[i].offset != block.offset)
                continue;
            host->created[i] = host->created[--host->created_count];
            break;
        }
        heap_give(&host->w->staging, block.offset, block.bytes);
        host->ended_bytes -= block.bytes;
    }
    host->ended_count -= idle;
    memmove(host->ended, host->ended + idle, (size_t)host->ended_count * sizeof *host->ended);
}

bool stage_end(pld_host *host, const char *block)
{
    if (!alloc_grow(host->ended, host->ended_capacity, host->ended_count + 1))
        return false;
    for (int32_t i = host->created_count - 1; i >= 0; --i) {
        if (block_start(host, host->created[i].offset) != block)
            continue;
        host->ended[host->ended_count++] = host->created[i];
        host->ended_bytes += host->created[i].bytes;
        break;
    }
    return true;
}

pypto_status stage_create(pld_host *host, int64_t bytes, char **block)
{
    pypto_worker *w = host->w;
    const int64_t taken = bytes > 0 ? bytes : 1;
    if (host->ended_count > 0)
        reclaim(host);
    if (heap_must_grow(&w->staging, taken) && ahead_of_tensors(host))
        reclaim(host);
    if (!alloc_grow(host->created, host->created_capacity, host->created_count + 1))
        return diag_no_memory();
    int64_t offset;
    pypto_status status = stage_take(w, taken, "pl.create_tensor", &offset);
    if (!status_ok(status) && host->ended_count > 0 && ahead_of_memory(host)) {
        pypto_status_clear(&status);
        reclaim(host);
        status = stage_take(w, taken, "pl.create_tensor", &offset);
    }
    if (!status_ok(status))
        return status;
    host->created[host->created_count++] = (heap_block){offset, taken};
    *block = block_start(host, offset);
    return STATUS_OK;
}

void stage_out(pld_host *host)
{
    for (int32_t i = 0; i < host->count; ++i) {
        const staged *s = &host->staged[i];
        if (s->tensor == NULL || !s->written || s->block < 0)
            continue;
        copy_elements(s->tensor->data, s->tensor->stride, s->view.data, s->view.stride, s->tensor);
        host->w->copied_bytes += element_count(s->tensor) * elem_bytes(s->tensor);
    }
}

void stage_release(pld_host *host)
{
    for (int32_t i = 0; i < host->count; ++i)
        if (host->staged[i].owns_block)
            heap_give(&host->w->staging, host->staged[i].block, host->staged[i].block_bytes);
    for (int32_t i = 0; i < host->created_count; ++i)
        heap_give(&host->w->staging, host->created[i].offset, host->created[i].bytes);
}
