/* Views: see views.h. Called by device.c, whose failures end a task, and by the host, whose failures end
 * the call. */
#include "runtime/views.h"

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
    view->data += elems * pypto_dtype_bytes((pypto_dtype)tensor->dtype);
    return -1;
}
