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

/* Copies a box between two strided places, strides in elements. The innermost dimensions that lie
 * packed in both are one memcpy. */
static void copy_box(char *target, const int64_t *target_stride, const char *source,
                     const int64_t *source_stride, const int64_t *extents, int32_t ndim,
                     int64_t width)
{
    int32_t outer = ndim;
    int64_t run = 1;
    while (outer > 0 && ((target_stride[outer - 1] == run && source_stride[outer - 1] == run) ||
                         extents[outer - 1] == 1))
        run *= extents[--outer];
    const size_t bytes = (size_t)(run * width);
    if (bytes == 0)
        return;
    for (int32_t d = 0; d < outer; ++d)
        if (extents[d] == 0)
            return;
    int64_t index[PYPTO_MAX_DIMS] = {0};
    for (;;) {
        memcpy(target, source, bytes);
        int32_t d = outer - 1;
        for (; d >= 0; --d) {
            target += target_stride[d] * width;
            source += source_stride[d] * width;
            if (++index[d] < extents[d])
                break;
            target -= target_stride[d] * extents[d] * width;
            source -= source_stride[d] * extents[d] * width;
            index[d] = 0;
        }
        if (d < 0)
            return;
    }
}

/* The strides of a packed tile; returns its elements. */
static int64_t pack(const int64_t *extents, int32_t ndim, int64_t *stride)
{
    int64_t elems = 1;
    for (int32_t d = ndim - 1; d >= 0; --d) {
        stride[d] = elems;
        elems *= extents[d];
    }
    return elems;
}

/* From `box`, the place of the box's first element, into the tile of `extents`, or back. */
static void load_box(void *tile, const char *box, const pld_tensor *tensor, const int64_t *extents)
{
    int64_t stride[PYPTO_MAX_DIMS];
    (void)pack(extents, tensor->ndim, stride);
    copy_box(tile, stride, box, tensor->stride, extents, tensor->ndim,
             pypto_dtype_bytes((pypto_dtype)tensor->dtype));
}

static void store_box(const void *tile, char *box, const pld_tensor *tensor, const int64_t *extents,
                      const int64_t *valid)
{
    int64_t stride[PYPTO_MAX_DIMS];
    (void)pack(extents, tensor->ndim, stride);
    copy_box(box, tensor->stride, tile, stride, valid, tensor->ndim,
             pypto_dtype_bytes((pypto_dtype)tensor->dtype));
}

/* Loads part of a tile; `slice` is the address that corresponds to tensor->data. */
static void load_part(pld_core *core, const char *what, void *tile, const pld_tensor *tensor,
                      const char *slice, const int64_t *offsets, const int64_t *extents,
                      const int64_t *valid, bool clamp, int64_t *loaded)
{
    bool whole = true;
    for (int32_t d = 0; d < tensor->ndim; ++d) {
        int64_t wanted = valid != NULL ? valid[d] : extents[d];
        if (wanted < 0 || wanted > extents[d])
            task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
                      "%s: valid_shape %d is %lld, but the tile has %lld elements there", what, d,
                      (long long)wanted, (long long)extents[d]);
        if (clamp && offsets[d] >= 0 && offsets[d] > tensor->shape[d] - wanted)
            wanted = offsets[d] >= tensor->shape[d] ? 0 : tensor->shape[d] - offsets[d];
        loaded[d] = wanted;
        whole = whole && wanted == extents[d];
    }
    int64_t inside[PYPTO_MAX_DIMS]; /* an empty box may start anywhere when it was clamped */
    for (int32_t d = 0; d < tensor->ndim; ++d)
        inside[d] = clamp && loaded[d] == 0 && offsets[d] > 0 ? 0 : offsets[d];
    const int64_t at = check_box(core, what, tensor, inside, loaded);
    const int64_t width = pypto_dtype_bytes((pypto_dtype)tensor->dtype);
    int64_t stride[PYPTO_MAX_DIMS];
    const int64_t elems = pack(extents, tensor->ndim, stride);
    if (!whole)
        memset(tile, 0, (size_t)(elems * width));
    copy_box(tile, stride, slice + at, tensor->stride, loaded, tensor->ndim, width);
}

void(pld_load)(pld_core *core, void *tile, const pld_tensor *source, const int64_t *offsets,
               const int64_t *extents)
{
    task_check(core);
    const int64_t at = check_box(core, "a load", source, offsets, extents);
    load_box(tile, source->data + at, source, extents);
}

void(pld_store)(pld_core *core, const void *tile, const pld_tensor *target, const int64_t *offsets,
                const int64_t *extents)
{
    task_check(core);
    const int64_t at = check_box(core, "a store", target, offsets, extents);
    store_box(tile, target->data + at, target, extents, extents);
}

void(pld_load_part)(pld_core *core, void *tile, const pld_tensor *source, const int64_t *offsets,
                    const int64_t *extents, const int64_t *valid, bool clamp, int64_t *loaded)
{
    task_check(core);
    load_part(core, "a load", tile, source, source->data, offsets, extents, valid, clamp, loaded);
}

void(pld_store_part)(pld_core *core, const void *tile, const pld_tensor *target,
                     const int64_t *offsets, const int64_t *extents, const int64_t *valid)
{
    task_check(core);
    const int64_t at = check_box(core, "a store", target, offsets, valid);
    store_box(tile, target->data + at, target, extents, valid);
}

/* ---- views and boxes of tiles ---- */

pld_tensor(pld_reshape)(pld_core *core, const pld_tensor *tensor, int32_t ndim,
                        const int64_t *shape)
{
    char name[NAME_TEXT], from[LIST_TEXT], to[LIST_TEXT];
    int64_t elems = 1;
    bool packed = true;
    for (int32_t d = tensor->ndim - 1; d >= 0; --d) {
        packed = packed && (tensor->stride[d] == elems || tensor->shape[d] == 1);
        elems *= tensor->shape[d];
    }
    pld_tensor view = *tensor;
    view.ndim = ndim;
    int64_t wanted = 1;
    bool fits = true;
    for (int32_t d = ndim - 1; fits && d >= 0; --d) {
        view.shape[d] = shape[d];
        view.stride[d] = wanted;
        fits = shape[d] >= 0 && !__builtin_mul_overflow(wanted, shape[d], &wanted);
    }
    if (!packed || !fits || wanted != elems)
        task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS, "%s of shape %s cannot be reshaped to %s: %s",
                  task_describe(core, tensor, name, sizeof name),
                  describe_list(from, sizeof from, tensor->shape, tensor->ndim),
                  describe_list(to, sizeof to, shape, ndim),
                  packed ? "the number of elements differs" : "it is a view with gaps");
    return view;
}

void(pld_assemble)(pld_core *core, const pld_tensor *target, const pld_tensor *source,
                   const int64_t *offsets)
{
    task_check(core);
    int64_t extents[PYPTO_MAX_DIMS], stride[PYPTO_MAX_DIMS];
    const int32_t leading = target->ndim - source->ndim;
    for (int32_t d = 0; d < target->ndim; ++d) {
        extents[d] = d < leading ? 1 : source->shape[d - leading];
        stride[d] = d < leading ? 0 : source->stride[d - leading];
    }
    const int64_t at = check_box(core, "an assemble", target, offsets, extents);
    copy_box(target->data + at, target->stride, source->data, stride, extents, target->ndim,
             pypto_dtype_bytes((pypto_dtype)target->dtype));
}

/* Elements from the tile's first to the box's first. */
static int64_t check_tile_box(pld_core *core, const char *what, int32_t ndim, const int64_t *shape,
                              const int64_t *stride, const int64_t *extents, const int64_t *offsets)
{
    int64_t at = 0;
    for (int32_t d = 0; d < ndim; ++d) {
        if (offsets[d] < 0 || offsets[d] > shape[d] - extents[d])
            task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
                      "%s leaves the tile: dimension %d ends at %lld, needs %lld + %lld", what, d,
                      (long long)shape[d], (long long)offsets[d], (long long)extents[d]);
        at += offsets[d] * stride[d];
    }
    return at;
}

void(pld_tile_slice)(pld_core *core, void *tile, const void *source, int64_t width, int32_t ndim,
                     const int64_t *shape, const int64_t *extents, const int64_t *offsets)
{
    int64_t from[PYPTO_MAX_DIMS], to[PYPTO_MAX_DIMS];
    (void)pack(shape, ndim, from);
    (void)pack(extents, ndim, to);
    const int64_t at = check_tile_box(core, "a slice", ndim, shape, from, extents, offsets);
    copy_box(tile, to, (const char *)source + at * width, from, extents, ndim, width);
}

void(pld_tile_slice_part)(pld_core *core, void *tile, const void *source, int64_t width,
                          int32_t ndim, const int64_t *shape, const int64_t *extents,
                          const int64_t *offsets, const int64_t *valid, const int64_t *wanted,
                          int64_t *found)
{
    (pld_tile_slice)(core, tile, source, width, ndim, shape, extents, offsets);
    for (int32_t d = 0; d < ndim; ++d) {
        int64_t there = valid[d] > offsets[d] ? valid[d] - offsets[d] : 0;
        if (wanted != NULL && (wanted[d] < 0 || wanted[d] > extents[d]))
            task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
                      "a slice: valid_shape %d is %lld, but the slice has %lld elements there", d,
                      (long long)wanted[d], (long long)extents[d]);
        if (there > extents[d])
            there = extents[d];
        found[d] = wanted != NULL && wanted[d] < there ? wanted[d] : there;
    }
}

void(pld_tile_assemble)(pld_core *core, void *target, const void *tile, int64_t width, int32_t ndim,
                        const int64_t *shape, const int64_t *extents, const int64_t *offsets)
{
    int64_t from[PYPTO_MAX_DIMS], to[PYPTO_MAX_DIMS];
    (void)pack(extents, ndim, from);
    (void)pack(shape, ndim, to);
    const int64_t at = check_tile_box(core, "an assemble", ndim, shape, to, extents, offsets);
    copy_box((char *)target + at * width, to, tile, from, extents, ndim, width);
}

/* ---- elements ---- */

static char *element_at(pld_core *core, const char *what, const pld_tensor *tensor,
                        const int64_t *indices)
{
    static const int64_t one[PYPTO_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    task_check(core);
    return tensor->data + check_box(core, what, tensor, indices, one);
}

int64_t(pld_read_int)(pld_core *core, const pld_tensor *source, const int64_t *indices)
{
    const void *at = element_at(core, "a read", source, indices);
    switch ((pypto_dtype)source->dtype) {
    case PYPTO_BOOL:
    case PYPTO_UINT8: return *(const uint8_t *)at;
    case PYPTO_INT8: return *(const int8_t *)at;
    case PYPTO_INT16: return *(const int16_t *)at;
    case PYPTO_UINT16: return *(const uint16_t *)at;
    case PYPTO_INT32: return *(const int32_t *)at;
    case PYPTO_UINT32: return *(const uint32_t *)at;
    default: return *(const int64_t *)at;
    }
}

float(pld_read_float)(pld_core *core, const pld_tensor *source, const int64_t *indices)
{
    const void *at = element_at(core, "a read", source, indices);
    switch ((pypto_dtype)source->dtype) {
    case PYPTO_FP16: return pld_fp16_to_float(*(const uint16_t *)at);
    case PYPTO_BF16: return pld_bf16_to_float(*(const uint16_t *)at);
    default: return *(const float *)at;
    }
}

/* An INT32 cell of a window may be a signal that another task of this rank waits for. */
static void write_cell(pld_core *core, const pld_tensor *target, void *at, int32_t value)
{
    if (target->window == NULL) {
        *(int32_t *)at = value;
        return;
    }
    atomic_exchange_explicit((_Atomic int32_t *)at, value, memory_order_seq_cst);
    rank_ring(&core->owner->seg, core->owner->header);
}

void(pld_write_int)(pld_core *core, const pld_tensor *target, const int64_t *indices, int64_t value)
{
    void *at = element_at(core, "a write", target, indices);
    switch (pypto_dtype_bytes((pypto_dtype)target->dtype)) {
    case 1: *(uint8_t *)at = (uint8_t)value; break;
    case 2: *(uint16_t *)at = (uint16_t)value; break;
    case 4: write_cell(core, target, at, (int32_t)value); break;
    default: *(int64_t *)at = value; break;
    }
}

void(pld_write_float)(pld_core *core, const pld_tensor *target, const int64_t *indices, float value)
{
    void *at = element_at(core, "a write", target, indices);
    switch ((pypto_dtype)target->dtype) {
    case PYPTO_FP16: *(uint16_t *)at = pld_float_to_fp16(value); break;
    case PYPTO_BF16: *(uint16_t *)at = pld_float_to_bf16(value); break;
    default: *(float *)at = value; break;
    }
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

/* Where `source` lies in rank `peer`'s slice. */
static const char *peer_data(pld_core *core, const pld_tensor *source, int64_t peer)
{
    const pld_window *window = need_window(core, source);
    char name[NAME_TEXT];
    if (peer < 0 || peer >= window->comm->nranks)
        task_fail(core, DIAG_PEER_OUT_OF_RANGE,
                  "peer %lld does not exist: the domain of %s has ranks 0 to %d", (long long)peer,
                  task_describe(core, source, name, sizeof name), window->comm->nranks - 1);
    return window->device_base + window->stride * window->comm->devices[peer] +
           (source->data - window->base);
}

void(pld_remote_load)(pld_core *core, void *tile, const pld_tensor *source, int64_t peer,
                      const int64_t *offsets, const int64_t *extents)
{
    task_check(core);
    const char *slice = peer_data(core, source, peer);
    const int64_t at = check_box(core, "a remote load", source, offsets, extents);
    load_box(tile, slice + at, source, extents);
}

void(pld_remote_load_part)(pld_core *core, void *tile, const pld_tensor *source, int64_t peer,
                           const int64_t *offsets, const int64_t *extents, const int64_t *valid,
                           int64_t *loaded)
{
    task_check(core);
    const char *slice = peer_data(core, source, peer);
    load_part(core, "a remote load", tile, source, slice, offsets, extents, valid, false, loaded);
}

pld_tensor(pld_part)(pld_core *core, const pld_tensor *tensor, const int64_t *offsets,
                     const int64_t *extents)
{
    char name[NAME_TEXT];
    pld_tensor view = *tensor;
    int64_t elems = 0;
    view.ndim = 0;
    for (int32_t d = 0; d < tensor->ndim; ++d) {
        const int64_t taken = extents[d] == PLD_DROP ? 1 : extents[d];
        if (offsets[d] < 0 || taken < 0 || taken > tensor->shape[d] ||
            offsets[d] > tensor->shape[d] - taken)
            task_fail(
                core, DIAG_INDEX_OUT_OF_BOUNDS,
                "a subscript reaches from %lld to %lld in dimension %d of %s, which has extent "
                "%lld",
                (long long)offsets[d], (long long)(offsets[d] + taken - 1), d,
                task_describe(core, tensor, name, sizeof name), (long long)tensor->shape[d]);
        elems += offsets[d] * tensor->stride[d];
        if (extents[d] == PLD_DROP)
            continue;
        view.shape[view.ndim] = extents[d];
        view.stride[view.ndim++] = tensor->stride[d];
    }
    view.data += elems * pypto_dtype_bytes((pypto_dtype)tensor->dtype);
    return view;
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
