/* Persistent windows: those that outlive a call, for the next call of the same program on the same worker set.
 *
 * The first call that allocates a window of a program takes its block; later ones find it, and must ask for
 * the same. Between two calls the windows are cleared by their ranks (PYPTO_PERSISTENT_RESET), or keep what they
 * hold (PYPTO_PERSISTENT_KEEP), the channels of collectives included. A fast rank could reach into the window of one
 * that has not cleared it yet; so a call begins when all have, and calls of such a set do not overlap.
 *
 * After a failed call that has dispatched something, windows that are not cleared hold whatever the ranks had got to: they are dirty, and the
 * program is refused until pypto_worker_reset_windows(). */
#include "base/alloc.h"
#include "base/text.h"
#include "host/host.h"

#include <string.h>

/* Clears the windows and waits until all ranks have. */
static pypto_status clear_windows(pypto_worker *w, const host_window *windows, int32_t count)
{
    pld_host cleared = {.w = w, .call = w->call};
    pypto_status status = STATUS_OK;
    for (int32_t device = 0; device < w->device_count; ++device) {
        if (status_ok(status))
            status = windows_post_clear(w, windows, count, device, &cleared.last[device]);
        cleared.last[device] = w->writers[device].sequence;
    }
    bool over;
    return status_ok(status) ? call_wait(&cleared, CALL_FOREVER, false, &over) : status;
}

static pypto_status refuse_dirty(const pld_host *host)
{
    text names = {0};
    const char *separator = "";
    for (int32_t i = 0; i < host->table->nbuffers; ++i) {
        if (!host->windows[i].kept)
            continue;
        text_printf(&names, "%s'%s'", separator, host->table->buffers[i].name);
        separator = ", ";
    }
    pypto_status status = diag_status(
        DIAG_DIRTY_WINDOWS,
        "call reset_persistent_windows() of the worker, or prepare it with resets",
        "a failed call has left the persistent windows %s of program '%s' in an unknown state",
        names.failed ? "" : names.bytes, host->table->name);
    text_free(&names);
    return status;
}

pypto_status persistent_begin(pld_host *host)
{
    pypto_worker *w = host->w;
    const kept_windows *kept = &w->kept[host->program_id];
    if (kept->windows == NULL)
        return STATUS_OK;
    memcpy(host->windows, kept->windows, (size_t)host->table->nbuffers * sizeof *host->windows);
    if (kept->dirty)
        return refuse_dirty(host);
    return w->persistent == PYPTO_PERSISTENT_RESET
               ? clear_windows(w, host->windows, host->table->nbuffers)
               : STATUS_OK;
}

pypto_status persistent_end(pld_host *host, bool failed)
{
    kept_windows *kept = &host->w->kept[host->program_id];
    const int32_t count = host->table->nbuffers;
    if (kept->windows == NULL &&
        (kept->windows = alloc_zeroed(count + 1, (int64_t)sizeof *kept->windows)) == NULL)
        return diag_no_memory();
    for (int32_t i = 0; i < count; ++i) {
        kept->windows[i] = host->windows[i];
        kept->windows[i].kept |= host->windows[i].allocated;
        kept->windows[i].allocated = false;
    }
    kept->count = count;
    const bool touched = host->dispatched != 0;
    kept->dirty |= touched && failed && host->w->persistent == PYPTO_PERSISTENT_KEEP;
    return STATUS_OK;
}

void persistent_destroy(pypto_worker *w)
{
    for (int32_t i = 0; w->kept != NULL && i < w->program_count; ++i)
        alloc_free(w->kept[i].windows);
    alloc_free(w->kept);
}

pypto_status pypto_worker_reset_windows(pypto_worker *w)
{
    turns_enter_to_wait(w);
    runs_finish(w);
    pypto_status status = workers_check_usable(w);
    ++w->call; /* the latest one may have failed */
    for (int32_t i = 0; w->usable && w->kept != NULL && i < w->program_count; ++i) {
        kept_windows *kept = &w->kept[i];
        if (!status_ok(status) || kept->windows == NULL)
            continue;
        status = clear_windows(w, kept->windows, kept->count);
        kept->dirty &= !status_ok(status);
    }
    turns_leave_waiting(w);
    return status;
}
