/* Views: see views.h. Called by device.c, whose failures end a task, and by the host, whose failures end
 * the call. */
#include "runtime/views.h"

#include "base/alloc.h"

#include <pypto/pld_math.h>

#include <stdatomic.h>
#include <string.h>

static int64_t within(int64_t extent, int64_t limit)
{
    return limit <= 0 ? 0 : extent < limit ? extent : limit;
}

static int64_t taken_of(int64_t extent)
{
    return extent == PLD_DROP ? 1 : extent;
}

/* What is there of a part, and what counts of it, where that may be less than all. An offset behind all that
 * is there adds nothing, so that no address leaves the memory. */
static void narrow_part(const pld_tensor *tensor, const int64_t *offsets, const int64_t *extents,
                        const int64_t *valid, pld_tensor *view)
{
    int64_t elems = 0;
    bool nothing_there = false, nothing_valid = false;
    *view = *tensor;
    view->ndim = 0;
    view->partial = true;
    for (int32_t d = 0; d < tensor->ndim; ++d) {
        const int64_t taken = taken_of(extents[d]);
        const int64_t there = within(taken, tensor->shape[d] - offsets[d]);
        const int64_t counts =
            within(valid != NULL ? valid[d] : taken, pld_valid(tensor)[d] - offsets[d]);
        elems += there > 0 ? offsets[d] * tensor->stride[d] : 0;
        if (extents[d] == PLD_DROP) {
            nothing_there |= there == 0;
            nothing_valid |= counts == 0;
            continue;
        }
        view->shape[view->ndim] = there;
        view->declared[view->ndim] = taken;
        view->valid[view->ndim] = counts;
        view->stride[view->ndim++] = tensor->stride[d];
    }
    for (int32_t d = 0; d < view->ndim; ++d) {
        view->shape[d] = nothing_there ? 0 : view->shape[d];
        view->valid[d] = nothing_there || nothing_valid ? 0 : view->valid[d];
    }
    view->data += pypto_dtype_size((pypto_dtype)tensor->dtype, elems);
}

int32_t view_part_valid(const pld_tensor *tensor, const int64_t *offsets, const int64_t *extents,
                        const int64_t *valid, bool clamp, pld_tensor *view)
{
    const int64_t *limit = pld_extents(tensor);
    for (int32_t d = 0; d < tensor->ndim; ++d) {
        const int64_t taken = taken_of(extents[d]);
        const int64_t wanted = valid != NULL ? valid[d] : taken;
        if (offsets[d] < 0 || wanted < 0 || wanted > taken ||
            (!clamp && (wanted > limit[d] || offsets[d] > limit[d] - wanted)))
            return d;
    }
    narrow_part(tensor, offsets, extents, valid, view);
    return -1;
}

int32_t view_part(const pld_tensor *tensor, const int64_t *offsets, const int64_t *extents,
                  pld_tensor *view)
{
    if (tensor->partial)
        return view_part_valid(tensor, offsets, extents, NULL, false, view);
    int64_t elems = 0;
    *view = *tensor;
    view->ndim = 0;
    for (int32_t d = 0; d < tensor->ndim; ++d) {
        const int64_t taken = taken_of(extents[d]);
        if (offsets[d] < 0 || taken < 0 || taken > tensor->shape[d] ||
            offsets[d] > tensor->shape[d] - taken)
            return d;
        elems += offsets[d] * tensor->stride[d];
        if (extents[d] == PLD_DROP)
            continue;
        view->shape[view->ndim] = extents[d];
        view->stride[view->ndim++] = tensor->stride[d];
    }
    view->data += pypto_dtype_size((pypto_dtype)tensor->dtype, elems);
    return -1;
}

bool view_valid_part(const pld_tensor *tensor, const int64_t *offsets, const int64_t *extents,
                     int64_t *found)
{
    bool any = true;
    for (int32_t d = 0; d < tensor->ndim; ++d) {
        found[d] = within(extents[d], pld_valid(tensor)[d] - offsets[d]);
        any = any && found[d] > 0;
    }
    return any;
}

/* ---- boxes under another shape ---- */

static bool same_but_units(const int64_t *shape, const int64_t *extents, int32_t ndim,
                           const int64_t *other, int64_t *found, int32_t other_ndim)
{
    int32_t from = 0;
    for (int32_t d = 0; d < other_ndim; ++d) {
        found[d] = 1;
        if (other[d] == 1)
            continue;
        while (from < ndim && shape[from] == 1)
            ++from;
        if (from == ndim || shape[from] != other[d])
            return false;
        found[d] = extents[from++];
    }
    while (from < ndim && shape[from] == 1)
        ++from;
    return from == ndim;
}

/* The elements of a box that is one run, else -1. */
static int64_t run_of(const int64_t *shape, const int64_t *extents, int32_t ndim)
{
    int64_t elems = 1;
    bool full = true; /* all axes inside of this one */
    for (int32_t d = ndim - 1; d >= 0; --d) {
        if (!full && extents[d] != 1)
            return -1;
        elems *= extents[d];
        full = full && extents[d] == shape[d];
    }
    return elems;
}

bool view_box_reshaped(const int64_t *shape, const int64_t *extents, int32_t ndim,
                       const int64_t *other, int64_t *found, int32_t other_ndim)
{
    bool full = true, empty = false;
    for (int32_t d = 0; d < ndim; ++d) {
        full = full && extents[d] == shape[d];
        empty = empty || extents[d] == 0;
    }
    for (int32_t d = 0; d < other_ndim; ++d)
        found[d] = full ? other[d] : 0;
    if (full || empty)
        return true;
    if (same_but_units(shape, extents, ndim, other, found, other_ndim))
        return true;
    int64_t left = run_of(shape, extents, ndim);
    int64_t inside = 1;
    for (int32_t d = 0; d < other_ndim; ++d)
        inside *= other[d];
    for (int32_t d = 0; d < other_ndim; ++d) {
        inside /= other[d];
        found[d] = left >= inside ? left / inside : 1;
        if (left < 0 || (left >= inside && left % inside != 0))
            return false;
        left = left >= inside ? inside : left;
    }
    return true;
}

int64_t view_packed(pld_tensor *tensor, int32_t dtype, int32_t ndim, const int64_t *shape)
{
    int64_t elems = 1;
    int64_t bytes;
    *tensor = (pld_tensor){.dtype = dtype, .ndim = ndim};
    for (int32_t d = ndim - 1; d >= 0; --d) {
        tensor->shape[d] = shape[d];
        tensor->stride[d] = elems;
        if (shape[d] < 0 || !size_mul(elems, shape[d], &elems))
            return -1;
    }
    if (pypto_dtype_packed((pypto_dtype)dtype))
        return pypto_dtype_size((pypto_dtype)dtype, elems);
    return size_mul(elems, pypto_dtype_bytes((pypto_dtype)dtype), &bytes) ? bytes : -1;
}

/* The bytes of one element. */
static void encode(pypto_dtype dtype, double value, void *element)
{
    const int64_t integer = (int64_t)value;
    const float real = (float)value;
    const uint16_t half = dtype == PYPTO_BF16 ? pld_float_to_bf16(real) : pld_float_to_fp16(real);
    if (dtype == PYPTO_FP32)
        memcpy(element, &real, sizeof real);
    else if (dtype == PYPTO_FP16 || dtype == PYPTO_BF16)
        memcpy(element, &half, sizeof half);
    else
        memcpy(element, &integer, (size_t)pypto_dtype_bytes(dtype)); /* little-endian */
}

void view_fill(const pld_tensor *tensor, int64_t bytes, double value)
{
    char element[8];
    const int64_t width = pypto_dtype_bytes((pypto_dtype)tensor->dtype);
    if (value == 0)
        return;
    encode((pypto_dtype)tensor->dtype, value, element);
    for (int64_t at = 0; at < bytes; at += width)
        memcpy(tensor->data + at, element, (size_t)width);
}

int64_t element_int(pypto_dtype dtype, const void *at)
{
    switch (dtype) {
    case PYPTO_BOOL:
    case PYPTO_UINT8: return *(const uint8_t *)at;
    case PYPTO_INT8: return *(const int8_t *)at;
    case PYPTO_INT16: return *(const int16_t *)at;
    case PYPTO_UINT16: return *(const uint16_t *)at;
    case PYPTO_INT32: /* a cell that peers may be notifying */
        return atomic_load_explicit((const _Atomic int32_t *)at, memory_order_relaxed);
    case PYPTO_UINT32: return *(const uint32_t *)at;
    default: return *(const int64_t *)at;
    }
}

float element_float(pypto_dtype dtype, const void *at)
{
    switch (dtype) {
    case PYPTO_FP16: return pld_fp16_to_float(*(const uint16_t *)at);
    case PYPTO_BF16: return pld_bf16_to_float(*(const uint16_t *)at);
    default: return *(const float *)at;
    }
}
