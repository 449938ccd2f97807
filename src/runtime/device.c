/* The device calls on a rank's own memory: boxes between tiles (packed, private) and tensors or windows
 * (strided), and elements. Every access is checked against the tensor before a byte moves.
 * Views are in device_views.c, access to peers is in transfer.c. */
#include "runtime/box.h"
#include "runtime/rank.h"
#include "runtime/tracing.h"
#include "runtime/views.h"
#include "sched/describe.h"

#include <stdio.h>

void *(pld_scratch)(pld_core *core)
{
    return core->scratch.start;
}

/* ---- loads and stores ---- */

void(pld_load)(pld_core *core, void *tile, const pld_tensor *source, const int64_t *offsets,
               const int64_t *extents)
{
    task_check(core);
    const int64_t at = box_check(core, "a load", source, offsets, extents);
    box_load(core, tile, source->data + at, source, extents, extents);
}

void(pld_store)(pld_core *core, const void *tile, const pld_tensor *target, const int64_t *offsets,
                const int64_t *extents)
{
    task_check(core);
    const int64_t at = box_check(core, "a store", target, offsets, extents);
    box_store(core, tile, target->data + at, target, extents, extents, false);
    box_written(core, target, core->owner->header);
}

void(pld_load_part)(pld_core *core, void *tile, const pld_tensor *source, const int64_t *offsets,
                    const int64_t *extents, const int64_t *valid, bool clamp, int64_t *loaded)
{
    task_check(core);
    box_load_part(core, "a load", tile, source, source->data, offsets, extents, valid, clamp,
                  loaded);
}

static void store_part(pld_core *core, const void *tile, const pld_tensor *target,
                       const int64_t *offsets, const int64_t *extents, const int64_t *valid,
                       bool adds)
{
    task_check(core);
    const int64_t at = box_check(core, "a store", target, offsets, valid);
    box_store(core, tile, target->data + at, target, extents, valid, adds);
    box_written(core, target, core->owner->header);
}

void(pld_store_part)(pld_core *core, const void *tile, const pld_tensor *target,
                     const int64_t *offsets, const int64_t *extents, const int64_t *valid)
{
    store_part(core, tile, target, offsets, extents, valid, false);
}

void(pld_store_add)(pld_core *core, const void *tile, const pld_tensor *target,
                    const int64_t *offsets, const int64_t *extents, const int64_t *valid)
{
    store_part(core, tile, target, offsets, extents, valid, true);
}

/* ---- boxes of tensors and tiles ---- */

/* Bytes that a side of a box touches, from its first element: [*low, *high). */
static void side_range(const box *b, const int64_t *stride, int64_t *low, int64_t *high)
{
    *low = 0;
    *high = b->width;
    for (int32_t d = 0; d < b->ndim; ++d) {
        const int64_t reach = stride[d] * (b->extents[d] - 1) * b->width;
        *low += reach < 0 ? reach : 0;
        *high += reach > 0 ? reach : 0;
    }
}

static void *noted(dispatch *d, void *block, int64_t bytes)
{
    if (d->log != NULL)
        tracing_taken_memory(d, block, bytes);
    return block;
}

static void *take_memory(pld_core *core, int64_t bytes)
{
    dispatch *d = core->dispatch;
    memory *spare = &d->owner->spare;
    void *block = memory_reuse(&d->created, spare, bytes);
    if (block != NULL)
        return noted(d, block, bytes);
    /* Tasks that could run may be the last ones to use what other tensors had. */
    if (bytes > MEMORY_SMALL && core->task == NULL && core->owner->ready_first != NULL)
        task_yield(core);
    for (;;) {
        pypto_status status = memory_take(&d->created, spare, bytes, &block);
        if (status_ok(status))
            return noted(d, block, bytes);
        char text[FAILURE_TEXT];
        snprintf(text, sizeof text, "%s",
                 status.diagnostics != NULL ? status.diagnostics->message : "memory is exhausted");
        pypto_status_clear(&status);
        char limit[OS_LIMIT_TEXT];
        if (!task_await_release(core))
            task_fail(core, DIAG_NO_SPACE,
                      "%s; tensors made earlier take %lld MiB on this device%s", text,
                      (long long)(spare->held >> 20),
                      os_limit_note("address space", limit, sizeof limit));
    }
}

/* box_move() takes overlapping boxes when they have the same strides. For others the source is copied first,
 * to memory that is returned, of the dispatch; NULL when there is no need. */
static char *copy_if_overlapping(pld_core *core, box *b, int64_t *packed, pypto_dtype dtype)
{
    bool same = true, empty = false;
    int64_t from_low, from_high, to_low, to_high;
    for (int32_t d = 0; d < b->ndim; ++d) {
        empty = empty || b->extents[d] <= 0;
        same = same && (b->extents[d] == 1 || b->target_stride[d] == b->source_stride[d]);
    }
    side_range(b, b->source_stride, &from_low, &from_high);
    side_range(b, b->target_stride, &to_low, &to_high);
    const uintptr_t source = (uintptr_t)b->source, target = (uintptr_t)b->target;
    if (same || empty || source + (uintptr_t)from_low >= target + (uintptr_t)to_high ||
        target + (uintptr_t)to_low >= source + (uintptr_t)from_high)
        return NULL;
    const int64_t elems = box_pack(b->extents, b->ndim, packed);
    char *copy = take_memory(core, elems * b->width);
    const box out = {copy, packed, b->source, b->source_stride, b->extents, b->ndim, b->width};
    box_move(core, &out, BOX_COPY, dtype);
    b->source = copy;
    b->source_stride = packed;
    return copy;
}

/* A box of a source with those strides into the tensor, `at` bytes behind its first element. */
static void copy_into(pld_core *core, const pld_tensor *target, int64_t at, const char *source,
                      const int64_t *stride, const int64_t *extents, bool adds)
{
    int64_t packed[PYPTO_MAX_DIMS];
    box b = {target->data + at,
             target->stride,
             source,
             stride,
             extents,
             target->ndim,
             pypto_dtype_bytes((pypto_dtype)target->dtype)};
    char *copy = copy_if_overlapping(core, &b, packed, (pypto_dtype)target->dtype);
    box_move(core, &b, box_write_mode(target, adds), (pypto_dtype)target->dtype);
    if (copy != NULL)
        memory_give(&((dispatch *)core->dispatch)->created, copy,
                    box_pack(b.extents, b.ndim, packed) * b.width);
    box_written(core, target, core->owner->header);
}

static void assemble(pld_core *core, const pld_tensor *target, const pld_tensor *source,
                     const int64_t *offsets, bool adds)
{
    task_check(core);
    int64_t extents[PYPTO_MAX_DIMS], stride[PYPTO_MAX_DIMS];
    box_align(source, target->ndim, extents, stride);
    const int64_t at = box_check(core, "an assemble", target, offsets, extents);
    copy_into(core, target, at, source->data, stride, extents, adds);
}

void(pld_assemble)(pld_core *core, const pld_tensor *target, const pld_tensor *source,
                   const int64_t *offsets)
{
    assemble(core, target, source, offsets, false);
}

void(pld_assemble_add)(pld_core *core, const pld_tensor *target, const pld_tensor *source,
                       const int64_t *offsets)
{
    assemble(core, target, source, offsets, true);
}

/* An axis of one element has the stride 0: it is read again and again. */
void(pld_expand_clone)(pld_core *core, const pld_tensor *target, const pld_tensor *source)
{
    task_check(core);
    char from[LIST_TEXT], to[LIST_TEXT];
    int64_t stride[PYPTO_MAX_DIMS];
    bool fits = source->ndim == target->ndim && source->dtype == target->dtype;
    for (int32_t d = 0; fits && d < target->ndim; ++d) {
        const bool repeats = source->shape[d] == 1;
        fits = repeats || source->shape[d] == target->shape[d];
        stride[d] = repeats ? 0 : source->stride[d];
    }
    if (!fits)
        task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
                  "an expand_clone of shape %s does not fill shape %s: extents are equal or 1",
                  describe_list(from, sizeof from, source->shape, source->ndim),
                  describe_list(to, sizeof to, target->shape, target->ndim));
    copy_into(core, target, 0, source->data, stride, target->shape, false);
}

void(pld_expand_clone_tile)(pld_core *core, const pld_tensor *target, const void *tile,
                            const int64_t *extents)
{
    pld_tensor source;
    (void)view_packed(&source, target->dtype, target->ndim, extents);
    source.data = (char *)(uintptr_t)tile; /* only read */
    (pld_expand_clone)(core, target, &source);
}

/* Elements from the tile's first to the box's first. */
static int64_t check_tile_box(pld_core *core, const char *what, int32_t ndim, const int64_t *shape,
                              const int64_t *stride, const int64_t *extents, const int64_t *offsets)
{
    int64_t at = 0;
    for (int32_t d = 0; d < ndim; ++d) {
        if (offsets[d] < 0)
            task_fail(
                core, DIAG_INDEX_OUT_OF_BOUNDS,
                "%s leaves the tile: negative index %lld in dimension %d; indices count from 0",
                what, (long long)offsets[d], d);
        if (offsets[d] > shape[d] - extents[d])
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
    (void)box_pack(shape, ndim, from);
    (void)box_pack(extents, ndim, to);
    const int64_t at = check_tile_box(core, "a slice", ndim, shape, from, extents, offsets);
    const box b = {tile, to, (const char *)source + at * width, from, extents, ndim, width};
    box_move(core, &b, BOX_COPY, PYPTO_UINT8);
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
    (void)box_pack(extents, ndim, from);
    (void)box_pack(shape, ndim, to);
    const int64_t at = check_tile_box(core, "an assemble", ndim, shape, to, extents, offsets);
    const box b = {(char *)target + at * width, to, tile, from, extents, ndim, width};
    box_move(core, &b, BOX_COPY, PYPTO_UINT8);
}

/* ---- new tensors ---- */

pld_tensor(pld_create_tensor)(pld_core *core, int32_t dtype, int32_t ndim, const int64_t *shape,
                              double value)
{
    char text[LIST_TEXT];
    pld_tensor tensor;
    task_check(core);
    const int64_t bytes = view_packed(&tensor, dtype, ndim, shape);
    if (bytes < 0)
        task_fail(
            core, DIAG_KERNEL_FAILED,
            "pl.create_tensor: %s is no shape: extents are not negative, and the bytes must fit 63 "
            "bits",
            describe_list(text, sizeof text, shape, ndim));
    tensor.data = take_memory(core, bytes);
    view_fill(&tensor, bytes, value);
    return tensor;
}

void(pld_release_tensor)(pld_core *core, const pld_tensor *tensor)
{
    int64_t elems = 1;
    for (int32_t i = 0; i < tensor->ndim; ++i)
        elems *= tensor->shape[i];
    task_release(core, tensor, pypto_dtype_size((pypto_dtype)tensor->dtype, elems));
}

/* ---- elements ---- */

void pld_array_fail(pld_core *core, int32_t line, const char *name, int64_t extent, int64_t index)
{
    (pld_line)(core, line);
    task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
              "index %lld is outside array '%s', which has elements 0 to %lld", (long long)index,
              name, (long long)extent - 1);
}

void pld_tile_fail(pld_core *core, const char *what, int64_t number, int32_t dim, int64_t extent)
{
    task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
              "%s%s %lld of dimension %d is outside the tile, which has %lld there",
              number < 0 ? "negative " : "", what, (long long)number, dim, (long long)extent);
}

static char *element_at(pld_core *core, const pld_tensor *tensor, const int64_t *indices,
                        bool writes)
{
    static const int64_t one[PYPTO_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    task_check(core);
    char *const at =
        tensor->data + box_check(core, writes ? "a write" : "a read", tensor, indices, one);
    if (core->function->plane == PLD_PLANE_CHIP) {
        const pld_tensor element = {.data = at, .dtype = tensor->dtype, .window = tensor->window};
        (pld_await)(core, &element, writes);
    }
    return at;
}

int64_t(pld_read_int)(pld_core *core, const pld_tensor *source, const int64_t *indices)
{
    return element_int((pypto_dtype)source->dtype, element_at(core, source, indices, false));
}

float(pld_read_float)(pld_core *core, const pld_tensor *source, const int64_t *indices)
{
    return element_float((pypto_dtype)source->dtype, element_at(core, source, indices, false));
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
    void *at = element_at(core, target, indices, true);
    switch (box_width(target)) {
    case 1: *(uint8_t *)at = (uint8_t)value; break;
    case 2: *(uint16_t *)at = (uint16_t)value; break;
    case 4: write_cell(core, target, at, (int32_t)value); break;
    default: *(int64_t *)at = value; break;
    }
}

void(pld_write_float)(pld_core *core, const pld_tensor *target, const int64_t *indices, float value)
{
    void *at = element_at(core, target, indices, true);
    switch ((pypto_dtype)target->dtype) {
    case PYPTO_FP16: *(uint16_t *)at = pld_float_to_fp16(value); break;
    case PYPTO_BF16: *(uint16_t *)at = pld_float_to_bf16(value); break;
    default: *(float *)at = value; break;
    }
}

/* ---- windows ---- */

const pld_comm *(pld_get_comm)(pld_core *core, const pld_tensor *tensor)
{
    return task_need_window(core, tensor)->comm;
}
