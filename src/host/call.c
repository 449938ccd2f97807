/* The middle of a call: its host function, waiting for what it dispatched, and giving up.
 *
 * The host function runs on a fiber of the calling thread, so that a call of its that fails can
 * leave it as kernels are left; then the host waits. One wait serves completion, failure, deadlock,
 * death of a worker and Ctrl-C (process/waiting.h). A failed call is poisoned; it is over when
 * every rank has acknowledged. A rank that does not answer (grace.h), because it computes without device calls,
 * is killed and the set closed. (Threads cannot be killed; there the host waits for them.) What a SubWorker runs is let to its end, unless the user presses Ctrl-C: then it is killed, and the set
 * lives on. */
#include "base/alloc.h"
#include "base/os.h"
#include "host/grace.h"
#include "host/host.h"
#include "process/waiting.h"
#include "sched/sched.h"

#include <fenv.h>

/* A function of a SubWorker that has been cancelled by Ctrl-C has that long. */
#define GRACE_SUB_MS 200
/* Times the host gives its CPU to the ranks before it sleeps: short calls end meanwhile, and going
 * to sleep and being woken costs more. */
#define YIELDS 20
/* There is one for each set, and a host function may have thousands of views that live to its end. */
#define HOST_STACK_BYTES (8 * 1024 * 1024)

/* ---- waiting ---- */

static bool is_poisoned(const pypto_worker *w, uint64_t call)
{
    return segment_poisoned(&w->seg, call, memory_order_seq_cst);
}

bool call_all_complete(const pld_host *host)
{
    for (int32_t consumer = 0; consumer < consumer_count(host->w); ++consumer) {
        const rank_header *rank = segment_rank(&host->w->seg, consumer);
        if (atomic_load_explicit(&rank->completed, memory_order_seq_cst) < host->last[consumer])
            return false;
    }
    return true;
}

/* A rank that fails poisons the call first and then counts what it drops as complete. So the poison is
 * looked at after that: the other way round, a call could fail in between and pass for complete. */
static bool has_succeeded(const pld_host *host)
{
    return call_all_complete(host) && !is_poisoned(host->w, host->call);
}

bool call_is_over(const pld_host *host)
{
    return call_all_complete(host) || is_poisoned(host->w, host->call) || subs_have_failed(host);
}

static bool acknowledged(const pld_host *host, int32_t rank)
{
    const rank_header *h = segment_rank(&host->w->seg, rank);
    if (rank >= host->w->device_count &&
        (!sub_lives(host->w, rank) ||
         atomic_load_explicit(&h->running_call, memory_order_seq_cst) != host->call))
        return true;
    return atomic_load_explicit(&h->acknowledged[call_slot(host->call)], memory_order_seq_cst) >=
           host->call;
}

static bool ranks_acknowledged(const pld_host *host)
{
    for (int32_t rank = 0; rank < host->w->device_count; ++rank)
        if (!acknowledged(host, rank))
            return false;
    return true;
}

/* Nobody runs anything of the call any more, or will: records that have not been taken yet, because a rank is busy
 * with the other call, are dropped unread. */
static bool all_acknowledged(const pld_host *host)
{
    for (int32_t sub = host->w->device_count; sub < consumer_count(host->w); ++sub)
        if (!acknowledged(host, sub))
            return false;
    return ranks_acknowledged(host);
}

/* Of ranks. */
static int32_t process_count(const pypto_worker *w)
{
    return w->seg.transport->one_process ? 0 : w->device_count;
}

/* Waits for an event, the death of a process, a signal: a set of host_wake bits. */
static unsigned wait_for_news(const pypto_worker *w, int32_t timeout_ms, uint32_t *signals)
{
    const int32_t count = w->seg.transport->one_process ? 0 : consumer_count(w);
    return host_wait(w->event, w->processes, count, timeout_ms, signals);
}

/* SubWorkers that died before may have left the count of what is outstanding too high. */
uint32_t call_what_to_wait_for(const pypto_worker *w)
{
    return w->run_count > 1 || w->lost_sub ? HOST_WAITS_FOR_EACH : HOST_WAITS_FOR_ALL;
}

pypto_status call_cancelled(void)
{
    return diag_status(DIAG_CANCELLED, NULL, "the call was interrupted");
}

int32_t left_ms(int64_t deadline)
{
    if (deadline == CALL_FOREVER)
        return -1;
    const int64_t left = (deadline - os_now_ns() + 999999) / 1000000;
    return left < 0 ? 0 : left > 1000000 ? 1000000 : (int32_t)left;
}

pypto_status call_take_news(pypto_worker *w, int32_t timeout_ms, uint32_t *signals)
{
    pypto_status status = STATUS_OK;
    const unsigned wake = wait_for_news(w, timeout_ms, signals);
    atomic_store_explicit(&w->seg.set->host_waiting, 0, memory_order_relaxed);
    if ((wake & HOST_WAKE_DEATH) != 0) {
        status = report_deaths(w);
        subs_settle_dead(w);
    }
    if (status_ok(status) && (wake & HOST_WAKE_SIGNAL) != 0 && workers_interrupted(w))
        status = call_cancelled();
    return status;
}

pypto_status call_wait(pld_host *host, int64_t deadline, bool lends, bool *over)
{
    pypto_worker *w = host->w;
    pypto_status status = STATUS_OK;
    _Atomic uint32_t *waiting = &w->seg.set->host_waiting;
    *over = true;
    for (int32_t i = 0; i < YIELDS && !is_poisoned(w, host->call); ++i) {
        if (has_succeeded(host))
            return status;
        host_yield();
    }
    uint32_t signals = host_relay_begin(w->event);
    bool asked = false;
    while (status_ok(status)) {
        /* Announce, then look: whoever changes something after our look rings us (segment.h). */
        atomic_store_explicit(waiting, call_what_to_wait_for(w), memory_order_seq_cst);
        if (is_poisoned(w, host->call)) {
            status = report_failure(w, host->call);
            if (status_ok(status))
                status = diag_status(DIAG_INTERNAL, "please report this",
                                     "a call ended without a reason");
            break;
        }
        if (has_succeeded(host))
            break;
        if (call_all_complete(host))
            continue; /* poisoned since we looked */
        if (!status_ok(status = report_deadlock(w, host->call)))
            break;
        /* A signal that came before the relay was in place is pending with the caller. */
        if (!asked && workers_interrupted(w)) {
            status = call_cancelled();
            break;
        }
        asked = true;
        const int32_t left = left_ms(deadline);
        if (left == 0 || (lends && turns_wanted(w))) {
            *over = false;
            break;
        }
        status = call_take_news(w, left, &signals);
    }
    atomic_store_explicit(waiting, 0, memory_order_relaxed);
    host_relay_end(w->event);
    return status;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What is left of the grace of the ranks that have not acknowledged. */
static int64_t grace_of_ranks(const pld_host *host, grace *graces)
{
    const pypto_worker *w = host->w;
    const int64_t now = os_now_ns();
    int64_t left = INT64_MAX;
    for (int32_t rank = 0; rank < process_count(w); ++rank) {
        const process *p = &w->processes[rank];
        if (!acknowledged(host, rank))
            left =
                least(left, grace_left(&graces[rank], process_cpu_ns(p), process_is_idle(p), now));
    }
    return left;
}

/* Poisons the call and waits until everybody has dropped it. False when a rank is dead or does not
 * answer. `cancelled`: by Ctrl-C, which may come in the middle of this, too. */
static bool drain_failed_call(const pld_host *host, bool cancelled)
{
    pypto_worker *w = host->w;
    segment_poison(&w->seg, host->call);
    const int64_t began = os_now_ns();
    int64_t subs_until = cancelled ? began + GRACE_SUB_MS * INT64_C(1000000) : INT64_MAX;
    grace graces[PYPTO_MAX_RANKS];
    for (int32_t rank = 0; rank < process_count(w); ++rank)
        grace_begin(&graces[rank], process_cpu_ns(&w->processes[rank]), began);
    uint32_t signals = host_relay_begin(w->event);
    bool drained = false;
    for (;;) {
        atomic_store_explicit(&w->seg.set->host_waiting, HOST_WAITS_FOR_EACH, memory_order_seq_cst);
        subs_settle_dead(w);
        drained = all_acknowledged(host);
        bool dead = false;
        for (int32_t rank = 0; rank < process_count(w); ++rank)
            dead = dead || process_dead(&w->processes[rank]);
        const int64_t now = os_now_ns();
        int64_t left = grace_of_ranks(host, graces);
        if (drained || dead || left <= 0) {
            drained = drained && !dead;
            break;
        }
        if (subs_until <= now) {
            subs_kill(w, host->call);
            subs_until = INT64_MAX;
            continue;
        }
        left = least(left, subs_until == INT64_MAX ? INT64_MAX : subs_until - now);
        const unsigned wake = wait_for_news(
            w, left == INT64_MAX ? -1 : (int32_t)((left + 999999) / 1000000), &signals);
        if ((wake & HOST_WAKE_SIGNAL) != 0 && subs_until == INT64_MAX && workers_interrupted(w))
            subs_until = os_now_ns() + GRACE_SUB_MS * INT64_C(1000000);
    }
    atomic_store_explicit(&w->seg.set->host_waiting, 0, memory_order_relaxed);
    host_relay_end(w->event);
    return drained;
}

void call_give_up(pld_host *host, pypto_status *status)
{
    if (status->kind == PYPTO_ERROR_WORKER_DIED)
        report_states(host->w, host->call, status);
    const bool drained = drain_failed_call(host, status->kind == PYPTO_ERROR_INTERRUPTED);
    if (status->kind == PYPTO_ERROR_DEVICE)
        report_states(host->w, host->call, status);
    if (!drained)
        workers_kill(host->w);
}

/* ---- the host function ---- */

static void host_main(void *argument)
{
    pld_host *host = argument;
    host->function->run_host(host, host->args);
    order_check_domains(host);
    fiber_switch(host->fiber, host->main, true);
}

/* Posts what the host function has dispatched. When it has failed, the ranks are to drop that. */
static void post_held(pld_host *host)
{
    if (!status_ok(host->status))
        segment_poison(&host->w->seg, host->call);
    for (int32_t consumer = 0; consumer < consumer_count(host->w); ++consumer)
        queue_post(&host->w->writers[consumer]);
}

pypto_status call_host_function(pld_host *host)
{
    /* The stack is the set's, kept from call to call: mapping one costs more than the rest of
     * posting. */
    if (host->w->fiber == NULL)
        host->w->fiber = fiber_create(HOST_STACK_BYTES);
    host->main = fiber_of_thread();
    host->fiber = host->w->fiber;
    if (host->main != NULL && host->fiber != NULL) {
        /* As ranks do (rank_loop): the caller's thread may flush denormals, or round otherwise. */
        fenv_t callers;
        fegetenv(&callers);
        fiber_reset(host->fiber, host_main, host);
        host->asked_at = os_now_ns();
        do {
            if (host->asks == HOST_ASKS_FOR_CTRL_C && workers_interrupted(host->w))
                host->status = call_cancelled();
            else if (host->asks == HOST_ASKS_FOR_ROOM)
                host->status = ahead_wait(host);
            host->asks = HOST_ASKS_NOTHING;
            fesetenv(FE_DFL_ENV);
            fiber_switch(host->main, host->fiber, false);
            fesetenv(&callers);
        } while (host->asks != HOST_ASKS_NOTHING);
    } else {
        host->status = diag_no_memory();
    }
    fiber_destroy(host->main);
    if (host->holds)
        post_held(host);
    for (int32_t consumer = 0; consumer < consumer_count(host->w); ++consumer)
        host->last[consumer] = host->w->writers[consumer].sequence;
    return host->status;
}
