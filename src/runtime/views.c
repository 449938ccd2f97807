/* Views: see views.h. Called by device.c, whose failures end a task, and by the host, whose failures end
 * the call. */
#include "runtime/views.h"

#include "base/alloc.h"

#include <pypto/pld_math.h>

#include <stdatomic.h>
#include <string.h>

int32_t view_part(const pld_tensor *tensor, const int64_t *offsets, const int64_t *extents,
                  pld_tensor *view)
{
    int64_t elems = 0;
    *view = *tensor;
    view->ndim = 0;
    for (int32_t d = 0; d < tensor->ndim; ++d) {
        const int64_t taken = extents[d] == PLD_DROP ? 1 : extents[d];
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
