/* The device calls that move data: boxes between tiles (packed, private) and tensors or windows
 * (strided, possibly a peer's). Every access is checked against the tensor before a byte moves. */
#include "sched/describe.h"
#include "sched/sched.h"

#include <string.h>

void *(pld_scratch)(pld_core *core)
{
    return core->scratch;
}

/* ---- boxes ---- */

static void fail_bounds(pld_core *core, const char *what, const pld_tensor *tensor,
                        const int64_t *offsets, const int64_t *extents, int32_t d) PYPTO_NORETURN;
static void fail_bounds(pld_core *core, const char *what, const pld_tensor *tensor,
                        const int64_t *offsets, const int64_t *extents, int32_t d)
{
    char name[NAME_TEXT], at[LIST_TEXT], size[LIST_TEXT], shape[LIST_TEXT];
    task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
              "%s of %s at %s leaves %s of shape %s: dimension %d ends at %lld, needs %lld + %lld",
              what, describe_list(size, sizeof size, extents, tensor->ndim),
              describe_list(at, sizeof at, offsets, tensor->ndim),
              task_describe(core, tensor, name, sizeof name),
              describe_list(shape, sizeof shape, tensor->shape, tensor->ndim), d,
              (long long)tensor->shape[d], (long long)offsets[d], (long long)extents[d]);
}

/* Bytes from tensor->data to the box's first element. Written so that nothing can overflow: offsets
 * and extents may be any int64. */
static inline int64_t check_box(pld_core *core, const char *what, const pld_tensor *tensor,
                                const int64_t *offsets, const int64_t *extents)
{
    int64_t elems = 0;
    for (int32_t d = 0; d < tensor->ndim; ++d) {
        if (extents[d] < 0 || extents[d] > tensor->shape[d] || offsets[d] < 0 ||
            offsets[d] > tensor->shape[d] - extents[d])
            fail_bounds(core, what, tensor, offsets, extents, d);
        elems += offsets[d] * tensor->stride[d];
    }
    return elems * pypto_dtype_bytes((pypto_dtype)tensor->dtype);
}

/* Copies between a packed block and a box of a strided one. The innermost dimensions that lie
 * packed in both are one memcpy. */
static void copy_box(char *packed, char *box, const pld_tensor *tensor, const int64_t *extents,
                     bool load)
{
    const int64_t width = pypto_dtype_bytes((pypto_dtype)tensor->dtype);
    int32_t outer = tensor->ndim;
    int64_t run = 1;
    while (outer > 0 && (tensor->stride[outer - 1] == run || extents[outer - 1] == 1))
        run *= extents[--outer];
    const size_t bytes = (size_t)(run * width);
    if (bytes == 0)
        return;
    int64_t index[PYPTO_MAX_DIMS] = {0};
    int64_t at = 0; /* elements from box */
    for (int32_t d = 0; d < outer; ++d)
        if (extents[d] == 0)
            return;
    for (;;) {
        if (load)
            memcpy(packed, box + at * width, bytes);
        else
            memcpy(box + at * width, packed, bytes);
        packed += bytes;
        int32_t d = outer - 1;
        for (; d >= 0; --d) {
            at += tensor->stride[d];
            if (++index[d] < extents[d])
                break;
            at -= tensor->stride[d] * extents[d];
            index[d] = 0;
        }
        if (d < 0)
            return;
    }
}

void(pld_load)(pld_core *core, void *tile, const pld_tensor *source, const int64_t *offsets,
               const int64_t *extents)
{
    task_check(core);
    const int64_t at = check_box(core, "a load", source, offsets, extents);
    copy_box(tile, source->data + at, source, extents, true);
}

void(pld_store)(pld_core *core, const void *tile, const pld_tensor *target, const int64_t *offsets,
                const int64_t *extents)
{
    task_check(core);
    const int64_t at = check_box(core, "a store", target, offsets, extents);
    copy_box((char *)(uintptr_t)tile, target->data + at, target, extents, false);
}

/* ---- windows ---- */

static const pld_window *need_window(pld_core *core, const pld_tensor *tensor)
{
    char name[NAME_TEXT];
    if (tensor->window == NULL)
        task_fail(core, DIAG_NO_WINDOW, "%s is plain memory: only pld.DistributedTensor has peers",
                  task_describe(core, tensor, name, sizeof name));
    return tensor->window;
}

const pld_comm *(pld_get_comm)(pld_core *core, const pld_tensor *tensor)
{
    return need_window(core, tensor)->comm;
}

void(pld_remote_load)(pld_core *core, void *tile, const pld_tensor *source, int64_t peer,
                      const int64_t *offsets, const int64_t *extents)
{
    task_check(core);
    const pld_window *window = need_window(core, source);
    char name[NAME_TEXT];
    if (peer < 0 || peer >= window->comm->nranks)
        task_fail(core, DIAG_PEER_OUT_OF_RANGE,
                  "peer %lld does not exist: the domain of %s has ranks 0 to %d", (long long)peer,
                  task_describe(core, source, name, sizeof name), window->comm->nranks - 1);
    const int64_t at = check_box(core, "a remote load", source, offsets, extents);
    char *slice = window->device_base + window->stride * window->comm->devices[peer];
    copy_box(tile, slice + (source->data - window->base) + at, source, extents, true);
}

pld_tensor(pld_view)(pld_core *core, const pld_tensor *tensor, int32_t ndim, const int64_t *shape)
{
    char name[NAME_TEXT], text[LIST_TEXT];
    pld_tensor view = *tensor;
    int64_t elems = 1;
    bool fits = ndim >= 0 && ndim <= PYPTO_MAX_DIMS;
    for (int32_t d = ndim - 1; fits && d >= 0; --d) {
        view.shape[d] = shape[d];
        view.stride[d] = elems;
        fits = shape[d] >= 0 && !__builtin_mul_overflow(elems, shape[d], &elems);
    }
    int64_t bytes = 0;
    fits = fits &&
           !__builtin_mul_overflow(elems, pypto_dtype_bytes((pypto_dtype)tensor->dtype), &bytes);
    const pld_window *window = need_window(core, tensor);
    if (!fits || bytes > window->bytes - (tensor->data - window->base))
        task_fail(core, DIAG_WINDOW_TOO_LARGE,
                  "a view of shape %s (%s) does not fit into %s of %lld bytes",
                  describe_list(text, sizeof text, shape, ndim < 0 ? 0 : ndim),
                  pypto_dtype_name((pypto_dtype)tensor->dtype),
                  task_describe(core, tensor, name, sizeof name), (long long)window->bytes);
    view.ndim = ndim;
    return view;
}
