/* One call, from arguments to results: pypto_worker_run().
 *
 * The host function runs on a fiber of the calling thread, so that a call of its that fails can
 * leave it as kernels are left; then the host waits. One wait serves completion, failure, deadlock,
 * death of a worker and Ctrl-C (process/waiting.h). A failed call is poisoned; it is over when
 * every rank has acknowledged. A rank that has used GRACE_CPU_MS without doing so computes without
 * device calls: it is killed and the set closed. (Threads cannot be killed; there the host waits for
 * them.) */
#include "base/alloc.h"
#include "base/os.h"
#include "host/host.h"
#include "process/waiting.h"
#include "sched/sched.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A rank's own time counts, because on a busy machine an innocent one may not run for long. One that
 * gets nowhere without using any, stopped or asleep in hand-written C, has GRACE_MS. */
#define GRACE_CPU_MS 50
#define GRACE_MS 2000
/* Times the host gives its CPU to the ranks before it sleeps: short calls end meanwhile, and going
 * to sleep and being woken costs more. */
#define YIELDS 20
#define HOST_STACK_BYTES (256 * 1024)

/* ---- waiting ---- */

static bool call_poisoned(const pypto_worker *w)
{
    return segment_poisoned(&w->seg, w->call, memory_order_seq_cst);
}

static bool all_complete(const pypto_worker *w)
{
    return atomic_load_explicit(&w->seg.set->outstanding, memory_order_seq_cst) == 0;
}

/* A rank that fails poisons the call first and then counts down what it drops. So the poison is
 * looked at after the count: the other way round, a call could fail in between and pass for
 * complete. */
static bool call_succeeded(const pypto_worker *w)
{
    return all_complete(w) && !call_poisoned(w);
}

static bool acknowledged(const pypto_worker *w, int32_t rank)
{
    return atomic_load_explicit(&segment_rank(&w->seg, rank)->acknowledged[call_slot(w->call)],
                                memory_order_seq_cst) >= w->call;
}

static bool all_acknowledged(const pypto_worker *w)
{
    for (int32_t rank = 0; rank < w->device_count; ++rank)
        if (!acknowledged(w, rank))
            return false;
    return all_complete(w);
}

static int32_t process_count(const pypto_worker *w)
{
    return w->seg.transport->one_process ? 0 : w->device_count;
}

static bool user_interrupted(const pypto_worker *w)
{
    return w->interrupted != NULL && w->interrupted(w->interrupt_context);
}

static pypto_status cancelled(void)
{
    return diag_status(DIAG_CANCELLED, NULL, "the call was interrupted");
}

/* The wait proper. `w->call` is the call that may fail meanwhile. */
pypto_status wait_outstanding(pypto_worker *w)
{
    pypto_status status = STATUS_OK;
    _Atomic uint32_t *waiting = &w->seg.set->host_waiting;
    for (int32_t i = 0; i < YIELDS && !call_poisoned(w); ++i) {
        if (call_succeeded(w))
            return status;
        host_yield();
    }
    uint32_t signals = host_relay_begin(w->event);
    bool asked = false;
    while (status_ok(status)) {
        /* Announce, then look: whoever changes something after our look rings us (segment.h). */
        atomic_store_explicit(waiting, 1, memory_order_seq_cst);
        if (call_poisoned(w)) {
            status = report_failure(w, w->call);
            if (status_ok(status))
                status = diag_status(DIAG_INTERNAL, "please report this",
                                     "a call ended without a reason");
            break;
        }
        if (call_succeeded(w))
            break;
        if (all_complete(w))
            continue; /* poisoned since we looked */
        if (atomic_load_explicit(&w->seg.set->running, memory_order_seq_cst) == 0 &&
            !status_ok(status = report_deadlock(w, w->call)))
            break;
        /* A signal that came before the relay was in place is pending with the caller. */
        if (!asked && user_interrupted(w)) {
            status = cancelled();
            break;
        }
        asked = true;
        const unsigned wake = host_wait(w->event, w->processes, process_count(w), -1, &signals);
        atomic_store_explicit(waiting, 0, memory_order_relaxed);
        if ((wake & HOST_WAKE_DEATH) != 0)
            status = report_deaths(w);
        if (status_ok(status) && (wake & HOST_WAKE_SIGNAL) != 0 && user_interrupted(w))
            status = cancelled();
    }
    atomic_store_explicit(waiting, 0, memory_order_relaxed);
    host_relay_end(w->event);
    return status;
}

/* What is left of the grace of the ranks that have not acknowledged, by their use of the CPU since `used`
 * was read. */
static int64_t cpu_left_ns(const pypto_worker *w, const int64_t *used)
{
    int64_t left = INT64_MAX;
    for (int32_t rank = 0; rank < process_count(w); ++rank) {
        if (acknowledged(w, rank))
            continue;
        const int64_t now = process_cpu_ns(&w->processes[rank]);
        const int64_t mine = GRACE_CPU_MS * INT64_C(1000000) - (now - used[rank]);
        if (now >= 0 && used[rank] >= 0 && mine < left)
            left = mine;
    }
    return left;
}

/* Poisons the call and waits until every rank has dropped it. False when a rank is dead or does not
 * answer. */
static bool drain_failed_call(pypto_worker *w)
{
    segment_poison(&w->seg, w->call);
    const int64_t deadline = os_now_ns() + GRACE_MS * INT64_C(1000000);
    const bool killable = process_count(w) > 0;
    int64_t used[PYPTO_MAX_RANKS];
    for (int32_t rank = 0; rank < process_count(w); ++rank)
        used[rank] = process_cpu_ns(&w->processes[rank]);
    uint32_t signals = 0;
    bool drained = false;
    for (;;) {
        atomic_store_explicit(&w->seg.set->host_waiting, 1, memory_order_seq_cst);
        drained = all_acknowledged(w);
        bool dead = false;
        for (int32_t rank = 0; rank < process_count(w); ++rank)
            dead = dead || process_dead(&w->processes[rank]);
        const int64_t time_left = deadline - os_now_ns();
        const int64_t cpu_left = cpu_left_ns(w, used);
        const int64_t left = cpu_left < time_left ? cpu_left : time_left;
        if (drained || dead || (killable && left <= 0)) {
            drained = drained && !dead;
            break;
        }
        /* The ranks need at least that long to use up what they have left. */
        host_wait(w->event, w->processes, process_count(w),
                  killable ? (int32_t)((left + 999999) / 1000000) : GRACE_MS, &signals);
    }
    atomic_store_explicit(&w->seg.set->host_waiting, 0, memory_order_relaxed);
    return drained;
}

/* Ends a call that has failed: says what every rank was doing, and closes the set unless all ranks
 * are ready for the next call. */
static void end_failed_call(pypto_worker *w, pypto_status *status)
{
    if (status->kind == PYPTO_ERROR_WORKER_DIED)
        report_states(w, w->call, status);
    const bool drained = drain_failed_call(w);
    if (status->kind == PYPTO_ERROR_DEVICE)
        report_states(w, w->call, status);
    if (!drained)
        workers_kill(w);
}

/* ---- the host function ---- */

static void host_main(void *argument)
{
    pld_host *host = argument;
    host->function->run_host(host, host->args);
    order_check_domains(host);
    fiber_switch(host->fiber, host->main, true);
}

static pypto_status run_host_function(pld_host *host)
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
        fesetenv(FE_DFL_ENV);
        fiber_reset(host->fiber, host_main, host);
        fiber_switch(host->main, host->fiber, false);
        fesetenv(&callers);
    } else {
        host->status = diag_no_memory();
    }
    fiber_destroy(host->main);
    return host->status;
}

/* ---- the call ---- */

static pypto_status host_init(pld_host *host, pypto_worker *w, pypto_program *program,
                              const pypto_argument *args, int32_t count)
{
    *host = (pld_host){.w = w, .table = program->table, .arguments = args, .count = count};
    host->function = host->table->functions[host->table->host];
    host->call = ++w->call;
    for (int32_t device = 0; device < w->device_count; ++device)
        w->posted_before[device] = w->writers[device].sequence;
    host->staged = alloc_zeroed(count + 1, (int64_t)sizeof *host->staged);
    host->args = alloc_zeroed(count + 1, (int64_t)sizeof *host->args);
    host->windows = alloc_zeroed(host->table->nbuffers + 1, (int64_t)sizeof *host->windows);
    return host->staged == NULL || host->args == NULL || host->windows == NULL ? diag_no_memory()
                                                                               : STATUS_OK;
}

static void host_destroy(pld_host *host)
{
    alloc_free(host->staged);
    alloc_free(host->args);
    alloc_free(host->windows);
    order_destroy(&host->order);
    alloc_free(host->created);
}

/* Shows the script line of the first diagnostic, if the script can be read. */
static void add_source_line(pypto_status *status)
{
    const pypto_diagnostic *d = status->diagnostics;
    if (d == NULL || d->source != NULL || d->span.file == NULL || d->span.line <= 0 ||
        d->next != NULL)
        return;
    FILE *file = fopen(d->span.file, "re");
    if (file == NULL)
        return;
    char *line = NULL;
    size_t room = 0;
    ssize_t length = -1;
    for (int32_t i = 0; i < d->span.line && (length = getline(&line, &room, file)) >= 0; ++i)
        ;
    if (length > 0) {
        line[strcspn(line, "\r\n")] = '\0';
        diag_source(status, line);
    }
    free(line);
    fclose(file);
}

static pypto_status run_call(pypto_worker *w, pypto_program *program, const pypto_argument *args,
                             int32_t count)
{
    pld_host host;
    pypto_status status = host_init(&host, w, program, args, count);
    if (status_ok(status))
        status = check_arguments(host.function, w->device_count, args, count);
    if (status_ok(status))
        status = workers_load(w, program, &host.program_id);
    const bool ran = status_ok(status) && status_ok(status = stage_in(&host));
    if (ran) {
        status = run_host_function(&host);
        if (status_ok(status))
            status = wait_outstanding(w);
        if (!status_ok(status)) {
            end_failed_call(w, &status);
        } else {
            stage_out(&host);
            if (w->lint != PYPTO_LINT_OFF)
                lint_call(&host, &status);
            if (w->lint == PYPTO_LINT_WARN)
                status.kind = PYPTO_ERROR_NONE; /* the diagnostics stay, as warnings */
        }
        if (w->usable) {
            queue_shrink(&w->queues, w->writers, w->device_count);
            pypto_status released = windows_release(&host);
            if (!status_ok(released)) {
                workers_kill(w);
                diag_append(&status, &released);
            }
        }
    }
    if (host.staged != NULL)
        stage_release(&host);
    host_destroy(&host);
    add_source_line(&status);
    return status;
}

pypto_status pypto_worker_run(pypto_worker *w, pypto_program *program, const pypto_argument *args,
                              int32_t count)
{
    pthread_mutex_lock(&w->lock);
    pypto_status status;
    if (w->foreign)
        status = diag_status(DIAG_WORKER_CLOSED, "create a worker in this process",
                             "this worker set belongs to the process that forked this one");
    else if (program == NULL)
        status = diag_status(DIAG_BAD_PROGRAM, NULL, "the program is NULL");
    else if (!w->usable)
        status = diag_status(DIAG_WORKER_CLOSED, "create another worker",
                             "this worker set lost a worker in an earlier call");
    else
        status = run_call(w, program, args, count);
    pthread_mutex_unlock(&w->lock);
    return status;
}
