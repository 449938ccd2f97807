/* One-sided transfers: the device calls that read or write a peer's slice of a window.
 *
 * On shared memory a transfer is a copy by the rank that asks for it, complete when the call returns.
 * What makes it visible to others is a signal: the notify that follows releases it, the wait that sees
 * the notify acquires it (sched/signal.c). So nothing here needs an order of its own, but for one
 * thing: a window of INT32 may hold signals, and a write that a rank waits for must wake it. Such
 * windows are written in whole words and the owner is rung behind the copy (box.h).
 *
 * Chunking and pipelining of put and get are about staging memory that this machine does not need;
 * the compiler checks them and passes nothing on. */
#include "runtime/box.h"
#include "sched/describe.h"

/* Where a tensor lies in rank `peer`'s slice, which will be written if its owner is asked for. */
static char *peer_data(pld_core *core, const pld_tensor *tensor, int64_t peer, rank_header **owner)
{
    const int32_t device = task_device_of(core, tensor, peer);
    const pld_window *window = tensor->window;
    if (owner != NULL) {
        *owner = segment_rank(&core->owner->seg, device);
        core->owner->pushes++;
    }
    return window->device_base + window->stride * device + (tensor->data - window->base);
}

/* ---- tiles ---- */

void(pld_remote_load)(pld_core *core, void *tile, const pld_tensor *source, int64_t peer,
                      const int64_t *offsets, const int64_t *extents)
{
    task_check(core);
    const char *slice = peer_data(core, source, peer, NULL);
    const int64_t at = box_check(core, "a remote load", source, offsets, extents);
    box_load(core, tile, slice + at, source, extents, extents);
}

void(pld_remote_load_part)(pld_core *core, void *tile, const pld_tensor *source, int64_t peer,
                           const int64_t *offsets, const int64_t *extents, const int64_t *valid,
                           int64_t *loaded)
{
    task_check(core);
    const char *slice = peer_data(core, source, peer, NULL);
    box_load_part(core, "a remote load", tile, source, slice, offsets, extents, valid, false,
                  loaded);
}

void(pld_remote_store)(pld_core *core, const void *tile, const pld_tensor *target, int64_t peer,
                       const int64_t *offsets, const int64_t *extents, const int64_t *valid,
                       pld_atomic atomic)
{
    task_check(core);
    rank_header *owner;
    char *slice = peer_data(core, target, peer, &owner);
    valid = valid != NULL ? valid : extents;
    const int64_t at = box_check(core, "a remote store", target, offsets, valid);
    box_store(core, tile, slice + at, target, extents, valid, atomic == PLD_ADD);
    box_written(core, target, owner);
}

/* ---- tensors ---- */

void(pld_remote_assemble)(pld_core *core, const pld_tensor *target, int64_t peer,
                          const pld_tensor *source, const int64_t *offsets, pld_atomic atomic)
{
    task_check(core);
    rank_header *owner;
    char *slice = peer_data(core, target, peer, &owner);
    int64_t extents[PYPTO_MAX_DIMS], stride[PYPTO_MAX_DIMS];
    box_align(source, target->ndim, extents, stride);
    const int64_t at = box_check(core, "a remote store", target, offsets, extents);
    const box b = {slice + at, target->stride, source->data,     stride,
                   extents,    target->ndim,   box_width(target)};
    box_move(core, &b, box_write_mode(target, atomic == PLD_ADD), (pypto_dtype)target->dtype);
    box_written(core, target, owner);
}

static const int64_t origin[PYPTO_MAX_DIMS];

/* Both tensors describe a transfer of the same elements. The compiler has checked ranks and types, and
 * shapes where they are constant; kernels in C are checked here. */
static void check_pair(pld_core *core, const pld_tensor *dst, const pld_tensor *src, bool whole)
{
    bool same = dst->ndim == src->ndim && dst->dtype == src->dtype;
    for (int32_t d = 0; same && whole && d < dst->ndim; ++d)
        same = pld_extents(dst)[d] == pld_extents(src)[d];
    if (__builtin_expect(same, 1))
        return;
    char to[NAME_TEXT], from[NAME_TEXT], to_shape[LIST_TEXT], from_shape[LIST_TEXT];
    task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
              "a transfer of %s of shape %s (%s) does not fit into %s of shape %s (%s)",
              task_describe(core, src, from, sizeof from),
              describe_list(from_shape, sizeof from_shape, pld_extents(src), src->ndim),
              pypto_dtype_name((pypto_dtype)src->dtype), task_describe(core, dst, to, sizeof to),
              describe_list(to_shape, sizeof to_shape, pld_extents(dst), dst->ndim),
              pypto_dtype_name((pypto_dtype)dst->dtype));
}

/* `target` and `source` are the addresses that correspond to dst->data and src->data. */
static void move_box(pld_core *core, const char *what, const pld_tensor *dst, char *target,
                     const pld_tensor *src, const char *source, const int64_t *dst_offsets,
                     const int64_t *src_offsets, const int64_t *extents, bool adds)
{
    check_pair(core, dst, src, extents == NULL);
    extents = extents != NULL ? extents : pld_extents(src);
    dst_offsets = dst_offsets != NULL ? dst_offsets : origin;
    src_offsets = src_offsets != NULL ? src_offsets : origin;
    int64_t valid[PYPTO_MAX_DIMS];
    if (__builtin_expect(src->partial, 0)) { /* what counts of the box moves */
        const pld_tensor declared = view_declared(src);
        (void)box_check(core, what, &declared, src_offsets, extents);
        if (!view_valid_part(src, src_offsets, extents, valid))
            return;
        extents = valid;
    }
    const int64_t to = box_check(core, what, dst, dst_offsets, extents);
    const int64_t from = box_check(core, what, src, src_offsets, extents);
    const box b = {target + to, dst->stride, source + from, src->stride,
                   extents,     dst->ndim,   box_width(dst)};
    box_move(core, &b, box_write_mode(dst, adds), (pypto_dtype)dst->dtype);
}

void(pld_put)(pld_core *core, const pld_tensor *dst, int64_t peer, const pld_tensor *src,
              const int64_t *dst_offsets, const int64_t *src_offsets, const int64_t *extents,
              pld_atomic atomic)
{
    task_check(core);
    rank_header *owner;
    char *target = peer_data(core, dst, peer, &owner);
    move_box(core, "a put", dst, target, src, src->data, dst_offsets, src_offsets, extents,
             atomic == PLD_ADD);
    box_written(core, dst, owner);
}

void(pld_get)(pld_core *core, const pld_tensor *dst, int64_t peer, const pld_tensor *src,
              const int64_t *dst_offsets, const int64_t *src_offsets, const int64_t *extents)
{
    task_check(core);
    const char *source = peer_data(core, src, peer, NULL);
    move_box(core, "a get", dst, dst->data, src, source, dst_offsets, src_offsets, extents, false);
    box_written(core, dst, core->owner->header);
}
