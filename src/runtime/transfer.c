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

/* Where a tensor lies in rank `peer`'s slice. */
static char *peer_data(pld_core *core, const pld_tensor *tensor, int64_t peer, rank_header **owner)
{
    const int32_t device = task_device_of(core, tensor, peer);
    const pld_window *window = tensor->window;
    if (owner != NULL)
        *owner = segment_rank(&core->owner->seg, device);
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
