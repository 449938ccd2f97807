/* A host function that is faster than its devices. It never waits for them by itself, so its loop could post a million
 * dispatches, and make a tensor for each, while the first one runs: queues, the books of their order and the staging
 * memory would grow without bounds, and each dispatch would be compared with all those before it. So where it is too
 * far ahead it waits until all that it has posted is complete. It then has as far to go again, which takes the
 * devices much longer than it takes them to begin anew.
 *
 * But what is posted may need what is still to come: a rank may wait for a signal that a later dispatch sends. That shows
 * as any deadlock does (deadlock.c): nothing can go on, although all is taken. Then the host function goes on, and
 * may be twice as far ahead. (Not seen is a kernel that computes until a later dispatch changes what it reads.)
 *
 * Calls that bring resident memory post nothing before the host function has ended, so nothing is waited for. */
#include "host/host.h"
#include "process/waiting.h"

/* Records of all calls in flight that may be posted and not complete. */
#define RECORDS ((int64_t)4096)
/* Bytes of tensors that have ended and are in use; and blocks per device, because some of each may be large. */
#define BYTES ((int64_t)256 << 20)
#define BLOCKS 4

static int64_t outstanding(const pypto_worker *w)
{
    return atomic_load_explicit(&w->seg.set->outstanding, memory_order_relaxed);
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void ahead_of_dispatches(pld_host *host)
{
    if (!host->holds && outstanding(host->w) >= at_least(RECORDS, host->ahead_records))
        host_ask(host, HOST_ASKS_FOR_ROOM);
}

bool ahead_of_memory(pld_host *host)
{
    if (host->holds)
        return false;
    host_ask(host, HOST_ASKS_FOR_ROOM);
    return true;
}

bool ahead_of_tensors(pld_host *host)
{
    return host->ended_bytes >= at_least(BYTES, host->ahead_bytes) &&
           host->ended_count >= BLOCKS * host->w->device_count && ahead_of_memory(host);
}

/* A call that has failed is ended behind the host function, also an earlier one, whose ranks may have to be killed. */
static bool any_poisoned(const pypto_worker *w)
{
    for (const pld_host *host = runs_first(w); host != NULL; host = runs_next(host))
        if (segment_poisoned(&w->seg, host->call, memory_order_seq_cst))
            return true;
    return false;
}

pypto_status ahead_wait(pld_host *host)
{
    pypto_worker *w = host->w;
    _Atomic uint32_t *waiting = &w->seg.set->host_waiting;
    for (int32_t consumer = 0; consumer < consumer_count(w); ++consumer)
        host->last[consumer] = w->writers[consumer].sequence;
    pypto_status status = STATUS_OK;
    bool asked = false;
    uint32_t signals = host_relay_begin(w->event);
    while (status_ok(status)) {
        /* Announce, then look, as in call_wait(). */
        atomic_store_explicit(waiting, call_what_to_wait_for(w), memory_order_seq_cst);
        if (any_poisoned(w) || call_all_complete(host))
            break;
        if (is_deadlock(w)) {
            host->ahead_records = 2 * outstanding(w);
            host->ahead_bytes = 2 * host->ended_bytes;
            break;
        }
        if (!asked && workers_interrupted(w)) {
            status = call_cancelled();
            break;
        }
        asked = true;
        status = call_take_news(w, -1, &signals);
    }
    atomic_store_explicit(waiting, 0, memory_order_relaxed);
    host_relay_end(w->event);
    return status;
}
