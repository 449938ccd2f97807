/* Calls of a worker set, from arguments to results: pypto_worker_run(), and pypto_worker_submit() with the run that it
 * gives.
 *
 * A run begins in the thread that submits it: arguments are checked and staged, and the host function posts
 * what it dispatches. It ends in whatever thread asks for its result, or needs its place: results are copied back
 * and windows given back to the heap. So no thread of ours exists. Two runs can be in flight; a third
 * one ends the oldest first. */
#include "base/alloc.h"
#include "base/os.h"
#include "host/host.h"
#include "sched/sched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pypto_run {
    pld_host host;
    pypto_program *program;    /* reference held until it ends */
    pypto_argument *arguments; /* copied: the caller's list may be gone */
    pypto_status status;       /* when it has ended, until somebody has taken it */
    _Atomic bool ended;
    bool released;   /* nobody has the handle any more */
    bool cancelled;  /* by Ctrl-C */
    pypto_run *next; /* in flight: the one submitted behind it */
};

/* ---- beginning ---- */

/* Poison and failure records of a call are in its slot, so it must be no other's in flight. */
static uint64_t next_call(const pypto_worker *w)
{
    uint64_t call = w->call + 1;
    for (const pypto_run *run = w->runs; run != NULL; run = run->next)
        if (call_slot(run->host.call) == call_slot(call))
            return call + 1; /* only the other slot is left: there is one place */
    return call;
}

static void host_destroy(pld_host *host)
{
    if (host->staged != NULL)
        stage_release(host);
    records_release(host);
    if (host->places != NULL)
        attach_release(host->places, host->count);
    alloc_free(host->places);
    alloc_free(host->staged);
    alloc_free(host->args);
    alloc_free(host->windows);
    alloc_free(host->created);
    alloc_free(host->ended);
}

static void run_free(pypto_run *run)
{
    pypto_status_clear(&run->status);
    alloc_free(run->arguments);
    alloc_free(run);
}

/* Releases a run that has not begun. */
static void run_discard(pypto_run *run)
{
    host_destroy(&run->host);
    pypto_program_release(run->program);
    run_free(run);
}

/* Everything that it needs; nothing has begun. NULL: no memory. */
static pypto_run *run_create(pypto_worker *w, pypto_program *program, const pypto_argument *args,
                             int32_t count)
{
    pypto_run *run = alloc_zeroed(1, (int64_t)sizeof *run);
    if (run == NULL)
        return NULL;
    run->program = pypto_program_retain(program);
    run->arguments = alloc_zeroed(count + 1, (int64_t)sizeof *run->arguments);
    pld_host *host = &run->host;
    *host =
        (pld_host){.w = w, .table = program->table, .arguments = run->arguments, .count = count};
    host->function = host->table->functions[host->table->host];
    host->places = alloc_zeroed(count + 1, (int64_t)sizeof *host->places);
    host->staged = alloc_zeroed(count + 1, (int64_t)sizeof *host->staged);
    host->args = alloc_zeroed(count + 1, (int64_t)sizeof *host->args);
    host->windows = alloc_zeroed(host->table->nbuffers + 1, (int64_t)sizeof *host->windows);
    if (run->arguments == NULL || host->places == NULL || host->staged == NULL ||
        host->args == NULL || host->windows == NULL) {
        run_discard(run);
        return NULL;
    }
    if (count > 0)
        memcpy(run->arguments, args, (size_t)count * sizeof *args);
    return run;
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

/* Nothing of it is left in the set. */
static void run_over(pypto_run *run, pypto_status status)
{
    pypto_worker *w = run->host.w;
    for (pypto_run **link = &w->runs; *link != NULL; link = &(*link)->next) {
        if (*link != run)
            continue;
        *link = run->next;
        --w->run_count;
        break;
    }
    host_destroy(&run->host);
    pypto_program_release(run->program);
    const bool cancels = status.kind == PYPTO_ERROR_INTERRUPTED;
    add_source_line(&status);
    run->status = status;
    atomic_store_explicit(&run->ended, true, memory_order_release);
    if (run->released)
        run_free(run);
    if (w->usable || w->runs == NULL)
        return;
    /* The set is lost, and with it what else is in flight: nobody would wake who waits for it. */
    run_over(w->runs, cancels ? call_cancelled()
                              : diag_status(DIAG_WORKER_DIED, NULL,
                                            "the worker set lost a worker in another call"));
}

static void run_append(pypto_run *run)
{
    pypto_worker *w = run->host.w;
    pypto_run **end = &w->runs;
    while (*end != NULL)
        end = &(*end)->next;
    *end = run;
    ++w->run_count;
}

pld_host *runs_first(const pypto_worker *w)
{
    return w->runs != NULL ? &w->runs->host : NULL;
}

pld_host *runs_next(const pld_host *host)
{
    const pypto_run *run = (const pypto_run *)(const void *)host; /* its first member */
    return run->next != NULL ? &run->next->host : NULL;
}

/* ---- ending ---- */

/* Its windows go back to the heap once the ranks have cleared them. */
static void release_windows(pld_host *host, bool failed, pypto_status *status)
{
    pypto_worker *w = host->w;
    if (!w->usable)
        return;
    if (w->run_count == 1)
        queue_shrink(&w->queues, w->writers, consumer_count(w));
    pypto_status released = w->persistent == PYPTO_PERSISTENT_OFF ? windows_release(host)
                                                                  : persistent_end(host, failed);
    if (!status_ok(released)) {
        workers_kill(w);
        diag_append(status, &released);
    }
}

static void run_end(pypto_run *run, pypto_status status)
{
    pld_host *host = &run->host;
    bool failed = !status_ok(status);
    if (failed) {
        call_give_up(host, &status);
    } else if (!status_ok(status = compare_channels(host))) {
        failed = true;
    } else {
        stage_out(host);
        if (host->lint != PYPTO_LINT_OFF)
            lint_call(host, &status);
        if (host->lint == PYPTO_LINT_WARN)
            status.kind = PYPTO_ERROR_NONE; /* the diagnostics stay, as warnings */
    }
    if (host->recording != NULL)
        records_end(host, &status);
    release_windows(host, failed, &status);
    run_over(run, status);
}

/* Ends all that is in flight, after Ctrl-C; what is over by now keeps its result. All are poisoned before the ranks are
 * waited for, because one that computes for a call notices the poison of that call only. */
static void cancel_all(pypto_worker *w)
{
    for (pypto_run *run = w->runs; run != NULL; run = run->next) {
        run->cancelled = !call_is_over(&run->host);
        if (run->cancelled)
            segment_poison(&w->seg, run->host.call);
    }
    while (w->runs != NULL) {
        pypto_run *run = w->runs;
        bool over = true;
        pypto_status status =
            run->cancelled ? call_cancelled() : call_wait(&run->host, CALL_FOREVER, false, &over);
        run_end(run, status);
    }
}

/* Waits for the end of a run until `deadline`, or until another thread wants the set if it `lends` it. Ctrl-C ends all
 * others in flight, too, and gives false. */
static bool run_finish(pypto_run *run, int64_t deadline, bool lends)
{
    bool over;
    pypto_status status = call_wait(&run->host, deadline, lends, &over);
    if (!over)
        return true;
    const bool cancels = status.kind == PYPTO_ERROR_INTERRUPTED;
    pypto_worker *w = run->host.w;
    if (cancels) {
        pypto_status_clear(&status);
        cancel_all(w);
    } else {
        run_end(run, status);
    }
    return !cancels;
}

void runs_finish(pypto_worker *w)
{
    while (w->runs != NULL)
        (void)run_finish(w->runs, CALL_FOREVER, false);
}

void pypto_worker_cancel(pypto_worker *w)
{
    turns_enter(w);
    cancel_all(w);
    turns_leave(w);
}

/* ---- a call ---- */

static pypto_status check_usable(const pypto_worker *w, const pypto_program *program)
{
    if (program == NULL)
        return diag_status(DIAG_BAD_PROGRAM, NULL, "the program is NULL");
    return workers_check_usable(w);
}

/* A run that cannot be begun, or whose host function fails, has ended when this returns. */
static void run_begin(pypto_run *run)
{
    pld_host *host = &run->host;
    pypto_worker *w = host->w;
    host->lint = w->lint;
    host->lint_disabled = w->lint_disabled;
    host->call = w->call = next_call(w);
    for (int32_t device = 0; device < w->device_count; ++device)
        w->posted_before[device] = w->writers[device].sequence;
    for (int32_t consumer = 0; consumer < consumer_count(w); ++consumer)
        host->last[consumer] = w->writers[consumer].sequence;
    pypto_status status = workers_load(w, run->program, &host->program_id);
    if (status_ok(status) && w->persistent != PYPTO_PERSISTENT_OFF)
        status = persistent_begin(&run->host);
    if (status_ok(status))
        status = stage_in(&run->host);
    if (status_ok(status) && records_wanted(w))
        status = records_begin(&run->host);
    if (!status_ok(status)) {
        run_over(run, status);
        return;
    }
    if (w->runs == NULL)
        order_forget(&w->order);
    run_append(run);
    status = call_host_function(&run->host);
    const bool interrupted = status.kind == PYPTO_ERROR_INTERRUPTED;
    if (!status_ok(status))
        run_end(run, status);
    if (interrupted)
        cancel_all(w);
}

/* Whether a call in flight writes memory of the caller that is copied for an argument of a new one, or the reverse.
 * (Memory that both use in place, their dispatches see to: order.c.) */
static bool meets(const pypto_run *earlier, const pld_host *fresh)
{
    const pld_host *host = &earlier->host;
    for (int32_t i = 0; i < fresh->count; ++i) {
        const pypto_argument *argument = &fresh->arguments[i];
        int64_t low, high;
        if (argument->kind != PLD_ARG_TENSOR || argument->tensor.rows != NULL ||
            !tensor_range(&argument->tensor, &low, &high) || in_segment(&host->w->seg, low, high))
            continue;
        if (stage_meets(host, low, high, fresh->function->params[i].direction != PLD_IN,
                        fresh->places[i].file != NULL))
            return true;
    }
    return false;
}

/* How many of the oldest calls in flight a new one has to wait for: what is one too many, and calls whose results it would
 * not see or would overtake, because what it brings is copied when it begins, and what they write, when they end. */
static int32_t count_in_the_way(const pypto_worker *w, const pld_host *fresh)
{
    const bool alone = w->persistent != PYPTO_PERSISTENT_OFF || records_wanted(w);
    const int32_t most = alone ? 1 : CALLS_IN_FLIGHT;
    int32_t ending = w->run_count - most + 1;
    int32_t number = 0;
    for (const pypto_run *run = w->runs; run != NULL; run = run->next) {
        ++number;
        if (number > ending && meets(run, fresh))
            ending = number;
    }
    return ending;
}

/* Ends what a new call has to wait for. A failure of one may cost the set a worker. */
static pypto_status make_way(pypto_worker *w, const pypto_run *fresh)
{
    while (count_in_the_way(w, &fresh->host) > 0) {
        if (!run_finish(w->runs, CALL_FOREVER, true))
            return diag_status(DIAG_CANCELLED, NULL, "the call was interrupted before it began");
        if (turns_wanted(w))
            turns_lend(w);
    }
    return check_usable(w, fresh->program);
}

/* A run that is ready to begin, but for what is in its way. */
static pypto_status prepare(pypto_worker *w, pypto_program *program, const pypto_argument *args,
                            int32_t count, pypto_run **made)
{
    *made = NULL;
    pypto_status status = check_usable(w, program);
    if (status_ok(status))
        status = check_arguments(program->table->functions[program->table->host], w->device_count,
                                 args, count);
    if (!status_ok(status))
        return status;
    pypto_run *run = run_create(w, program, args, count);
    if (run == NULL)
        return diag_no_memory();
    status = attach_find(w, run->host.function, args, count, run->host.places);
    if (status_ok(status))
        status =
            check_usable(w, program); /* a file may have had to be sent to workers that were gone */
    if (status_ok(status))
        *made = run;
    else
        run_discard(run);
    return status;
}

pypto_status pypto_worker_make_way(pypto_worker *w, pypto_program *program,
                                   const pypto_argument *args, int32_t count)
{
    turns_enter_to_wait(w);
    pypto_run *run;
    pypto_status status = prepare(w, program, args, count, &run);
    if (status_ok(status)) {
        status = make_way(w, run);
        run_discard(run);
    }
    turns_leave_waiting(w);
    return status;
}

/* Takes the result; the run may be asked again, but has nothing to tell then. */
static pypto_status take_status(pypto_run *run)
{
    const pypto_status status = run->status;
    run->status = STATUS_OK;
    return status;
}

pypto_status pypto_worker_load(pypto_worker *w, pypto_program *program)
{
    int32_t id;
    turns_enter(w);
    pypto_status status = check_usable(w, program);
    if (status_ok(status))
        status = workers_load(w, program, &id);
    turns_leave(w);
    return status;
}

static pypto_status submit(pypto_worker *w, pypto_program *program, const pypto_argument *args,
                           int32_t count, bool may_wait, pypto_run **made)
{
    turns_enter(w);
    pypto_run *run;
    pypto_status status = prepare(w, program, args, count, &run);
    const bool waits = status_ok(status) && count_in_the_way(w, &run->host) > 0;
    const bool takes_turn = waits && may_wait;
    if (takes_turn) {
        turns_leave(w);
        turns_enter_to_wait(w);
        status = make_way(w, run);
    }
    const bool begins = status_ok(status) && waits == takes_turn;
    if (begins && program_calls_subs(program->table))
        status = subs_start(w);
    if (begins && status_ok(status)) {
        run_begin(run);
        if (atomic_load_explicit(&run->ended, memory_order_relaxed) && !status_ok(run->status)) {
            status = take_status(run);
            run_free(run);
            run = NULL;
        }
    } else if (run != NULL) {
        run_discard(run);
        run = NULL;
    }
    *made = run;
    (takes_turn ? turns_leave_waiting : turns_leave)(w);
    return status;
}

pypto_status pypto_worker_submit(pypto_worker *w, pypto_program *program,
                                 const pypto_argument *args, int32_t count, pypto_run **run)
{
    return submit(w, program, args, count, true, run);
}

pypto_status pypto_worker_try_submit(pypto_worker *w, pypto_program *program,
                                     const pypto_argument *args, int32_t count, pypto_run **run)
{
    return submit(w, program, args, count, false, run);
}

pypto_status pypto_worker_run(pypto_worker *w, pypto_program *program, const pypto_argument *args,
                              int32_t count)
{
    pypto_run *run;
    pypto_status status = submit(w, program, args, count, true, &run);
    if (run == NULL)
        return status;
    bool over;
    status = pypto_run_wait(run, -1, &over);
    pypto_run_release(run);
    return status;
}

/* ---- handles ---- */

bool pypto_run_done(pypto_run *run)
{
    if (atomic_load_explicit(&run->ended, memory_order_acquire))
        return true;
    pypto_worker *w = run->host.w;
    if (pthread_mutex_trylock(&w->lock) != 0)
        return atomic_load_explicit(&run->ended, memory_order_acquire);
    if (!atomic_load_explicit(&run->ended, memory_order_relaxed) && call_is_over(&run->host))
        (void)run_finish(run, CALL_FOREVER, false);
    turns_leave(w);
    return atomic_load_explicit(&run->ended, memory_order_acquire);
}

pypto_status pypto_run_wait(pypto_run *run, int64_t timeout_ns, bool *over)
{
    const int64_t deadline = timeout_ns < 0 ? CALL_FOREVER : os_now_ns() + timeout_ns;
    if (!atomic_load_explicit(&run->ended, memory_order_acquire)) {
        pypto_worker *w = run->host.w;
        turns_enter_to_wait(w);
        while (!atomic_load_explicit(&run->ended, memory_order_relaxed)) {
            (void)run_finish(run, deadline, true);
            if (!turns_wanted(w))
                break; /* it is over, or the time is */
            turns_lend(w);
        }
        turns_leave_waiting(w);
    }
    *over = atomic_load_explicit(&run->ended, memory_order_acquire);
    return *over ? take_status(run) : STATUS_OK;
}

void pypto_run_release(pypto_run *run)
{
    if (run == NULL)
        return;
    if (!atomic_load_explicit(&run->ended, memory_order_acquire)) {
        pypto_worker *w = run->host.w;
        turns_enter(w);
        run->released = !atomic_load_explicit(&run->ended, memory_order_relaxed);
        const bool in_flight = run->released;
        turns_leave(w);
        if (in_flight)
            return; /* the set frees it */
    }
    run_free(run);
}
