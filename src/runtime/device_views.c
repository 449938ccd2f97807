/* The device calls that make views: parts of tensors, the same elements under another shape, a window as a
 * callee declares it. Nothing is copied; what a view says of its memory is checked here, so that an access
 * through it needs to look at the view alone.
 *
 * What counts of a view (`valid`), and what is there of it (`shape`), follow the elements: a part has what its
 * tensor has there, a reshape the same elements, if they are a box in the new shape too. */
#include "collective/channel.h"
#include "runtime/box.h"
#include "runtime/rank.h"
#include "runtime/views.h"
#include "sched/describe.h"

#include <string.h>

/* ---- reshaping ---- */

/* `valid` is NULL: the same elements count. */
static pld_tensor reshape(pld_core *core, const pld_tensor *tensor, int32_t ndim,
                          const int64_t *shape, const int64_t *valid)
{
    char name[NAME_TEXT], from[LIST_TEXT], to[LIST_TEXT];
    const int64_t *extents = pld_extents(tensor);
    const pld_tensor seen = view_declared(tensor);
    const int64_t elems = tensor_elements(&seen);
    pld_tensor view = *tensor;
    view.ndim = ndim;
    int64_t wanted = 1;
    bool fits = true;
    for (int32_t d = ndim - 1; fits && d >= 0; --d) {
        view.shape[d] = shape[d];
        view.stride[d] = wanted;
        fits = shape[d] >= 0 && !__builtin_mul_overflow(wanted, shape[d], &wanted);
    }
    const char *problem = !tensor_is_packed(&seen)   ? "it is a view with gaps"
                          : !fits || wanted != elems ? "the number of elements differs"
                                                     : NULL;
    if (problem == NULL && (tensor->partial || valid != NULL)) {
        view.partial = true;
        memcpy(view.declared, shape, (size_t)ndim * sizeof *shape);
        bool fits_box =
            view_box_reshaped(extents, tensor->shape, tensor->ndim, shape, view.shape, ndim);
        for (int32_t d = 0; valid != NULL && d < ndim; ++d) {
            if (valid[d] < 0 || valid[d] > shape[d])
                task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
                          "a view: valid_shape %d is %lld, but the view has %lld elements there", d,
                          (long long)valid[d], (long long)shape[d]);
            view.valid[d] = valid[d] < view.shape[d] ? valid[d] : view.shape[d];
        }
        fits_box =
            fits_box && (valid != NULL || view_box_reshaped(extents, tensor->valid, tensor->ndim,
                                                            shape, view.valid, ndim));
        problem = fits_box ? NULL : "what is valid of it is no box in that shape";
    }
    if (problem != NULL)
        task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS, "%s of shape %s cannot be reshaped to %s: %s",
                  task_describe(core, tensor, name, sizeof name),
                  describe_list(from, sizeof from, extents, tensor->ndim),
                  describe_list(to, sizeof to, shape, ndim), problem);
    return view;
}

pld_tensor(pld_reshape)(pld_core *core, const pld_tensor *tensor, int32_t ndim,
                        const int64_t *shape)
{
    return reshape(core, tensor, ndim, shape, NULL);
}

pld_tensor(pld_reshape_valid)(pld_core *core, const pld_tensor *tensor, int32_t ndim,
                              const int64_t *shape, const int64_t *valid)
{
    return reshape(core, tensor, ndim, shape, valid);
}

pld_tensor pld_whole(const pld_tensor *tensor)
{
    pld_tensor view = *tensor;
    if (view.partial)
        memcpy(view.valid, view.shape, sizeof view.valid);
    return view;
}

/* ---- parts ---- */

static void fail_part(pld_core *core, const pld_tensor *tensor, int32_t d, int64_t offset,
                      int64_t taken) PYPTO_NORETURN;
static void fail_part(pld_core *core, const pld_tensor *tensor, int32_t d, int64_t offset,
                      int64_t taken)
{
    char name[NAME_TEXT];
    task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
              "a subscript reaches from %lld to %lld in dimension %d of %s, which has extent %lld",
              (long long)offset, (long long)(offset + taken - 1), d,
              task_describe(core, tensor, name, sizeof name), (long long)pld_extents(tensor)[d]);
}

pld_tensor(pld_part)(pld_core *core, const pld_tensor *tensor, const int64_t *offsets,
                     const int64_t *extents)
{
    pld_tensor view;
    if (view_cuts_byte(tensor, offsets, extents))
        box_fail_in_byte(core, "a subscript", tensor);
    const int32_t d = view_part(tensor, offsets, extents, &view);
    if (d >= 0)
        fail_part(core, tensor, d, offsets[d], extents[d] == PLD_DROP ? 1 : extents[d]);
    return view;
}

pld_tensor(pld_part_valid)(pld_core *core, const pld_tensor *tensor, const int64_t *offsets,
                           const int64_t *extents, const int64_t *valid, bool clamp)
{
    pld_tensor view;
    if (view_cuts_byte(tensor, offsets, extents))
        box_fail_in_byte(core, "a slice", tensor);
    const int32_t d = view_part_valid(tensor, offsets, extents, valid, clamp, &view);
    if (d < 0)
        return view;
    const int64_t taken = extents[d] == PLD_DROP ? 1 : extents[d];
    if (valid != NULL && (valid[d] < 0 || valid[d] > taken))
        task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
                  "a slice: valid_shape %d is %lld, but the slice has %lld elements there", d,
                  (long long)valid[d], (long long)taken);
    fail_part(core, tensor, d, offsets[d], valid != NULL ? valid[d] : taken);
}

/* Whether it has that shape, and all of it is there. */
static bool has_shape(const pld_tensor *tensor, int32_t ndim, const int64_t *shape)
{
    const size_t bytes = (size_t)tensor->ndim * sizeof *shape;
    return tensor->ndim == ndim && memcmp(tensor->shape, shape, bytes) == 0 &&
           memcmp(pld_extents(tensor), shape, bytes) == 0;
}

pld_tensor(pld_view)(pld_core *core, const pld_tensor *tensor, int32_t ndim, const int64_t *shape)
{
    char name[NAME_TEXT], from[LIST_TEXT], text[LIST_TEXT];
    pld_tensor view = *tensor;
    view.partial = false;
    int64_t elems = 1;
    bool fits = ndim >= 0 && ndim <= PYPTO_MAX_DIMS;
    for (int32_t d = ndim - 1; fits && d >= 0; --d) {
        view.shape[d] = shape[d];
        view.stride[d] = elems;
        fits = shape[d] >= 0 && !__builtin_mul_overflow(elems, shape[d], &elems);
    }
    const pld_tensor seen = view_declared(tensor);
    if (!tensor_is_packed(&seen)) {
        if (has_shape(tensor, ndim, shape))
            return pld_whole(tensor);
        task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
                  "%s of shape %s cannot be taken as %s: it is a view with gaps",
                  task_describe(core, tensor, name, sizeof name),
                  describe_list(from, sizeof from, pld_extents(tensor), tensor->ndim),
                  describe_list(text, sizeof text, shape, ndim < 0 ? 0 : ndim));
    }
    int64_t bytes = 0;
    const pypto_dtype dtype = (pypto_dtype)tensor->dtype;
    fits = fits && !__builtin_mul_overflow(elems, pypto_dtype_bytes(dtype), &bytes);
    if (pypto_dtype_packed(dtype))
        bytes = pypto_dtype_size(dtype, elems);
    const pld_window *window = task_need_window(core, tensor);
    if (!fits || bytes > window->bytes - (tensor->data - window->base))
        task_fail(core, DIAG_WINDOW_TOO_LARGE,
                  "a view of shape %s (%s) does not fit into %s of %lld bytes",
                  describe_list(text, sizeof text, shape, ndim < 0 ? 0 : ndim),
                  pypto_dtype_name((pypto_dtype)tensor->dtype),
                  task_describe(core, tensor, name, sizeof name), (long long)window->bytes);
    view.ndim = ndim;
    return view;
}
