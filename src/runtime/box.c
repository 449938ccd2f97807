/* Moving boxes: see box.h.
 *
 * A box is first reduced: dimensions of one element go, and neighbours that lie without a gap in both
 * places become one. What is left is a nest of loops around a run, which is one memcpy when it is
 * packed on both sides, else a loop over elements of a known width. So a full slice of any rank is one
 * memcpy, rows of a matrix are one per row, and a column is a plain loop.
 *
 * A transfer of gigabytes must not keep its rank from noticing that the call was given up: the poison
 * is looked at behind every PIECE bytes, and behind every ADDED elements of an atomic add, each of which takes
 * as long as a cache line of a copy. */
#include "runtime/box.h"
#include "runtime/box_runs.h"

#include "sched/describe.h"

#include <string.h>

#define PIECE (INT64_C(4) << 20)
#define ADDED (INT64_C(64) << 10)

/* A reduced box: byte strides, outermost first. */
typedef struct loops {
    char *target;
    const char *source;
    int64_t target_step[PYPTO_MAX_DIMS];
    int64_t source_step[PYPTO_MAX_DIMS];
    int64_t count[PYPTO_MAX_DIMS];
    int32_t depth;
    int64_t width;
    bool overlap;
} loops;

void box_fail(pld_core *core, const char *what, const pld_tensor *tensor, const int64_t *offsets,
              const int64_t *extents, int32_t d)
{
    char name[NAME_TEXT], at[LIST_TEXT], size[LIST_TEXT], shape[LIST_TEXT];
    if (offsets[d] < 0)
        task_fail(
            core, DIAG_INDEX_OUT_OF_BOUNDS,
            "%s of %s at %s leaves %s of shape %s: negative index %lld in dimension %d; indices "
            "count from 0, and -1 is not the last",
            what, describe_list(size, sizeof size, extents, tensor->ndim),
            describe_list(at, sizeof at, offsets, tensor->ndim),
            task_describe(core, tensor, name, sizeof name),
            describe_list(shape, sizeof shape, tensor->shape, tensor->ndim), (long long)offsets[d],
            d);
    if (extents[d] < 0)
        task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
                  "%s of %s at %s of %s: the extent of dimension %d is negative; 0 moves nothing",
                  what, describe_list(size, sizeof size, extents, tensor->ndim),
                  describe_list(at, sizeof at, offsets, tensor->ndim),
                  task_describe(core, tensor, name, sizeof name), d);
    task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
              "%s of %s at %s leaves %s of shape %s: dimension %d ends at %lld, needs %lld + %lld",
              what, describe_list(size, sizeof size, extents, tensor->ndim),
              describe_list(at, sizeof at, offsets, tensor->ndim),
              task_describe(core, tensor, name, sizeof name),
              describe_list(shape, sizeof shape, tensor->shape, tensor->ndim), d,
              (long long)tensor->shape[d], (long long)offsets[d], (long long)extents[d]);
}

void box_fail_in_byte(pld_core *core, const char *what, const pld_tensor *tensor)
{
    char name[NAME_TEXT];
    task_fail(
        core, DIAG_INDEX_OUT_OF_BOUNDS,
        "%s of %s begins or ends in the middle of a byte: in the last dimension, offsets and extents "
        "of %s count pairs of elements",
        what, task_describe(core, tensor, name, sizeof name),
        pypto_dtype_name((pypto_dtype)tensor->dtype));
}

void box_align(const pld_tensor *tensor, int32_t ndim, int64_t *extents, int64_t *stride)
{
    const int32_t leading = ndim - tensor->ndim;
    const int64_t *valid = pld_valid(tensor);
    bool nothing = false;
    for (int32_t d = 0; d < -leading; ++d)
        nothing = nothing || valid[d] == 0;
    for (int32_t d = 0; d < ndim; ++d) {
        extents[d] = nothing ? 0 : d < leading ? 1 : valid[d - leading];
        stride[d] = d < leading ? 0 : tensor->stride[d - leading];
    }
}

int64_t box_pack(const int64_t *extents, int32_t ndim, int64_t *stride)
{
    int64_t elems = 1;
    for (int32_t d = ndim - 1; d >= 0; --d) {
        stride[d] = elems;
        elems *= extents[d];
    }
    return elems;
}

/* ---- reducing ---- */

/* False when the box is empty. */
static bool reduce(const box *b, loops *l)
{
    l->target = b->target;
    l->source = b->source;
    l->width = b->width;
    l->depth = 0;
    for (int32_t d = 0; d < b->ndim; ++d) {
        if (b->extents[d] <= 0)
            return false;
        if (b->extents[d] == 1)
            continue;
        const int64_t count = b->extents[d];
        const int64_t target_step = b->target_stride[d] * b->width;
        const int64_t source_step = b->source_stride[d] * b->width;
        const int32_t outer = l->depth - 1;
        if (outer >= 0 && l->target_step[outer] == target_step * count &&
            l->source_step[outer] == source_step * count) {
            l->count[outer] *= count;
            l->target_step[outer] = target_step;
            l->source_step[outer] = source_step;
            continue;
        }
        l->count[l->depth] = count;
        l->target_step[l->depth] = target_step;
        l->source_step[l->depth] = source_step;
        ++l->depth;
    }
    return true;
}

/* Bytes from the first element's begin to the last one's end. */
static int64_t extent_of(const loops *l, const int64_t *step)
{
    int64_t bytes = l->width;
    for (int32_t i = 0; i < l->depth; ++i)
        bytes += (l->count[i] - 1) * step[i];
    return bytes;
}

/* A box that moves up within its own bytes is copied from its end, as memmove does. */
static void order(loops *l, box_mode mode)
{
    const uintptr_t target = (uintptr_t)l->target;
    const uintptr_t source = (uintptr_t)l->source;
    l->overlap = target < source + (uintptr_t)extent_of(l, l->source_step) &&
                 source < target + (uintptr_t)extent_of(l, l->target_step);
    if (!l->overlap || target <= source)
        return;
    for (int32_t i = 0; i < l->depth; ++i) {
        if (i == l->depth - 1 && mode != BOX_ADD && l->target_step[i] == l->width &&
            l->source_step[i] == l->width)
            break; /* move_run() sees to it */
        l->target += (l->count[i] - 1) * l->target_step[i];
        l->source += (l->count[i] - 1) * l->source_step[i];
        l->target_step[i] = -l->target_step[i];
        l->source_step[i] = -l->source_step[i];
    }
}

/* ---- boxes ---- */

static void move_piece(const loops *l, char *target, int64_t target_step, const char *source,
                       int64_t source_step, int64_t count, box_mode mode, pypto_dtype dtype)
{
    const bool packed = target_step == l->width && source_step == l->width;
    if (mode == BOX_ADD)
        box_run_add(target, target_step, source, source_step, count, dtype);
    else if (packed && l->overlap)
        memmove(target, source, (size_t)(count * l->width));
    else if (mode == BOX_WORDS)
        box_run_copy_words(target, target_step, source, source_step, count);
    else if (packed)
        memcpy(target, source, (size_t)(count * l->width));
    else
        box_run_copy(target, target_step, source, source_step, count, l->width);
}

static int64_t elements_of_a_piece(const loops *l, box_mode mode)
{
    return mode == BOX_ADD ? ADDED : PIECE / l->width;
}

/* The innermost dimension, in pieces; a packed one that moves up within its own bytes from its end. */
static void move_run(pld_core *core, const loops *l, box_mode mode, pypto_dtype dtype)
{
    const int32_t last = l->depth - 1;
    const int64_t target_step = last < 0 ? l->width : l->target_step[last];
    const int64_t source_step = last < 0 ? l->width : l->source_step[last];
    const int64_t most = elements_of_a_piece(l, mode);
    const bool from_end =
        l->overlap && target_step > 0 && (uintptr_t)l->target > (uintptr_t)l->source;
    int64_t begin = 0, end = last < 0 ? 1 : l->count[last];
    while (begin < end) {
        const int64_t count = end - begin < most ? end - begin : most;
        const int64_t at = from_end ? end - count : begin;
        move_piece(l, l->target + at * target_step, target_step, l->source + at * source_step,
                   source_step, count, mode, dtype);
        if (from_end)
            end -= count;
        else
            begin += count;
        if (begin < end)
            task_check(core);
    }
}

/* Elements of 4 bits move as the bytes that hold two of them. */
static box in_bytes(const box *b, int64_t *target_stride, int64_t *source_stride, int64_t *extents)
{
    for (int32_t d = 0; d < b->ndim; ++d) {
        const bool last = d == b->ndim - 1;
        target_stride[d] = last ? b->target_stride[d] : b->target_stride[d] / 2;
        source_stride[d] = last ? b->source_stride[d] : b->source_stride[d] / 2;
        extents[d] = last ? b->extents[d] / 2 : b->extents[d];
    }
    return (box){b->target, target_stride, b->source, source_stride, extents, b->ndim, 1};
}

/* Bytes of a box that lies without a gap in both places, or -1. */
static int64_t packed_bytes(const box *b)
{
    int64_t run = 1;
    for (int32_t d = b->ndim - 1; d >= 0; --d) {
        if (b->extents[d] != 1 && (b->target_stride[d] != run || b->source_stride[d] != run))
            return -1;
        run *= b->extents[d];
    }
    return run * b->width;
}

/* Small boxes without gaps are most of all boxes: for these the reduction would cost more than the copy. */
#define SMALL_BYTES 4096

void box_move(pld_core *core, const box *b, box_mode mode, pypto_dtype dtype)
{
    if (mode == BOX_COPY && !pypto_dtype_packed(dtype)) {
        const int64_t bytes = packed_bytes(b);
        if (bytes >= 0 && bytes <= SMALL_BYTES) {
            memmove(b->target, b->source, (size_t)bytes);
            return;
        }
    }
    loops l;
    box bytes;
    int64_t target_stride[PYPTO_MAX_DIMS], source_stride[PYPTO_MAX_DIMS], extents[PYPTO_MAX_DIMS];
    if (__builtin_expect(pypto_dtype_packed(dtype), 0)) {
        bytes = in_bytes(b, target_stride, source_stride, extents);
        b = &bytes;
    }
    if (!reduce(b, &l))
        return;
    order(&l, mode);
    const int32_t outer = l.depth - 1; /* the innermost is the run */
    if (outer <= 0) {
        move_run(core, &l, mode, dtype);
        return;
    }
    const int64_t most = elements_of_a_piece(&l, mode);
    int64_t index[PYPTO_MAX_DIMS] = {0};
    int64_t moved = 0;
    for (;;) {
        move_run(core, &l, mode, dtype);
        moved += l.count[outer];
        if (moved > most) {
            task_check(core);
            moved = 0;
        }
        int32_t d = outer - 1;
        for (; d >= 0; --d) {
            l.target += l.target_step[d];
            l.source += l.source_step[d];
            if (++index[d] < l.count[d])
                break;
            l.target -= l.target_step[d] * l.count[d];
            l.source -= l.source_step[d] * l.count[d];
            index[d] = 0;
        }
        if (d < 0)
            return;
    }
}

/* ---- tiles ---- */

void box_load(pld_core *core, void *tile, const char *first, const pld_tensor *source,
              const int64_t *extents, const int64_t *valid)
{
    int64_t stride[PYPTO_MAX_DIMS];
    (void)box_pack(extents, source->ndim, stride);
    const box b = {tile, stride, first, source->stride, valid, source->ndim, box_width(source)};
    box_move(core, &b, BOX_COPY, (pypto_dtype)source->dtype);
}

void box_store(pld_core *core, const void *tile, char *first, const pld_tensor *target,
               const int64_t *extents, const int64_t *valid, bool adds)
{
    int64_t stride[PYPTO_MAX_DIMS];
    (void)box_pack(extents, target->ndim, stride);
    const box b = {first, target->stride, tile, stride, valid, target->ndim, box_width(target)};
    box_move(core, &b, box_write_mode(target, adds), (pypto_dtype)target->dtype);
}

void box_load_part(pld_core *core, const char *what, void *tile, const pld_tensor *source,
                   const char *slice, const int64_t *offsets, const int64_t *extents,
                   const int64_t *valid, bool clamp, int64_t *loaded)
{
    bool whole = true;
    for (int32_t d = 0; d < source->ndim; ++d) {
        int64_t wanted = valid != NULL ? valid[d] : extents[d];
        if (wanted < 0 || wanted > extents[d])
            task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
                      "%s: valid_shape %d is %lld, but the tile has %lld elements there", what, d,
                      (long long)wanted, (long long)extents[d]);
        const int64_t limit = pld_extents(source)[d];
        if (clamp && offsets[d] >= 0 && offsets[d] > limit - wanted)
            wanted = offsets[d] >= limit ? 0 : limit - offsets[d];
        loaded[d] = wanted;
        whole = whole && wanted == extents[d];
    }
    int64_t inside
        [PYPTO_MAX_DIMS]; /* an empty box may start anywhere when it was clamped or counts for nothing */
    if (__builtin_expect(source->partial, 0)) {
        for (int32_t d = 0; d < source->ndim; ++d)
            inside[d] = clamp && loaded[d] == 0 && offsets[d] > 0 ? 0 : offsets[d];
        const pld_tensor declared = view_declared(source);
        (void)box_check(core, what, &declared, inside, loaded);
        (void)view_valid_part(source, offsets, loaded, loaded);
        whole = false;
    }
    for (int32_t d = 0; d < source->ndim; ++d)
        inside[d] = (clamp || source->partial) && loaded[d] == 0 && offsets[d] > 0 ? 0 : offsets[d];
    const int64_t at = box_check(core, what, source, inside, loaded);
    if (!whole) {
        int64_t stride[PYPTO_MAX_DIMS];
        const int64_t elems = box_pack(extents, source->ndim, stride);
        memset(tile, 0, (size_t)(pypto_dtype_size((pypto_dtype)source->dtype, elems)));
    }
    box_load(core, tile, slice + at, source, extents, loaded);
}
