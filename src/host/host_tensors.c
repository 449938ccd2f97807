/* Tensors in a host function: views of its parameters, which are descriptors (no byte moves), and tensors of
 * its own. Nothing waits. Called by compiled host functions; see host_api.c for how a failing call leaves one. */
#include "host/host.h"
#include "runtime/views.h"
#include "sched/describe.h"

#include <string.h>

static const char *tensor_name(const pld_host *host, const pld_tensor *tensor)
{
    for (int32_t i = 0; i < host->count; ++i)
        if (host->args[i].tensor == tensor)
            return host->function->params[i].name;
    return "a tensor";
}

pld_tensor(pld_index)(pld_host *host, const pld_tensor *tensor, int32_t count,
                      const int64_t *indices)
{
    if (count < 0 || count > tensor->ndim)
        host_error(host, DIAG_BAD_DISPATCH, NULL, "%d indices for '%s' of %d dimensions", count,
                   tensor_name(host, tensor), tensor->ndim);
    pld_tensor view = *tensor;
    int64_t elems = 0;
    for (int32_t d = 0; d < count; ++d) {
        if (indices[d] < 0 || indices[d] >= tensor->shape[d])
            host_error(host, DIAG_BAD_DISPATCH, "index a dimension within its extent",
                       "index %lld is outside dimension %d of '%s', which has extent %lld",
                       (long long)indices[d], d, tensor_name(host, tensor),
                       (long long)tensor->shape[d]);
        elems += indices[d] * tensor->stride[d];
    }
    view.data += pypto_dtype_size((pypto_dtype)tensor->dtype, elems);
    view.ndim = tensor->ndim - count;
    for (int32_t d = 0; d < view.ndim; ++d) {
        view.shape[d] = tensor->shape[d + count];
        view.stride[d] = tensor->stride[d + count];
    }
    return view;
}

static void check_whole_bytes(pld_host *host, const pld_tensor *tensor, const int64_t *offsets,
                              const int64_t *extents)
{
    if (view_cuts_byte(tensor, offsets, extents))
        host_error(
            host, DIAG_BAD_DISPATCH, "take an even number of elements, from an even one on",
            "a part of '%s' begins or ends in the middle of a byte: %s elements lie two in one",
            tensor_name(host, tensor), pypto_dtype_name((pypto_dtype)tensor->dtype));
}

pld_tensor(pld_slice)(pld_host *host, const pld_tensor *tensor, const int64_t *shape,
                      const int64_t *offsets)
{
    pld_tensor view = *tensor;
    int64_t elems = 0;
    check_whole_bytes(host, tensor, offsets, shape);
    for (int32_t d = 0; d < tensor->ndim; ++d) {
        if (shape[d] < 0 || shape[d] > tensor->shape[d] || offsets[d] < 0 ||
            offsets[d] > tensor->shape[d] - shape[d])
            host_error(host, DIAG_BAD_DISPATCH, "slice within the tensor",
                       "a slice of %lld at %lld leaves dimension %d of '%s', which has extent %lld",
                       (long long)shape[d], (long long)offsets[d], d, tensor_name(host, tensor),
                       (long long)tensor->shape[d]);
        elems += offsets[d] * tensor->stride[d];
        view.shape[d] = shape[d];
    }
    view.data += pypto_dtype_size((pypto_dtype)tensor->dtype, elems);
    return view;
}

pld_tensor(pld_host_part)(pld_host *host, const pld_tensor *tensor, const int64_t *offsets,
                          const int64_t *extents)
{
    pld_tensor view;
    check_whole_bytes(host, tensor, offsets, extents);
    const int32_t d = view_part(tensor, offsets, extents, &view);
    if (d < 0)
        return view;
    const int64_t taken = extents[d] == PLD_DROP ? 1 : extents[d];
    host_error(
        host, DIAG_BAD_DISPATCH, "index a dimension within its extent",
        "a subscript reaches from %lld to %lld in dimension %d of '%s', which has extent %lld",
        (long long)offsets[d], (long long)(offsets[d] + taken - 1), d, tensor_name(host, tensor),
        (long long)tensor->shape[d]);
}

pld_tensor(pld_host_create_tensor)(pld_host *host, int32_t dtype, int32_t ndim,
                                   const int64_t *shape, double value)
{
    char text[LIST_TEXT];
    pld_tensor tensor;
    const int64_t bytes = view_packed(&tensor, dtype, ndim, shape);
    if (bytes < 0)
        host_error(
            host, DIAG_BAD_DISPATCH, "extents are not negative, and the bytes must fit 63 bits",
            "pl.create_tensor: %s is no shape", describe_list(text, sizeof text, shape, ndim));
    pypto_status status = stage_create(host, bytes, &tensor.data);
    if (!status_ok(status))
        host_leave(host, status);
    memset(tensor.data, 0, (size_t)bytes);
    view_fill(&tensor, bytes, value);
    return tensor;
}

void(pld_host_release_tensor)(pld_host *host, const pld_tensor *tensor)
{
    if (!stage_end(host, tensor->data))
        host_leave(host, diag_no_memory());
}
