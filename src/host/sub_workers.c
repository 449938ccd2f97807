/* SubWorkers: copies of this process that run functions of the host's side. They take records behind the ranks
 * (runtime/sub.c); here is how they start, die and end. Everything with the set's lock held, or by whoever makes or ends the set.
 *
 * A SubWorker is forked, and goes on in a loop of ours. It has the descriptors and the mapping of the segment from
 * its parent, so it needs no greeting; what else the set has (the channels of its other workers) it closes. Around the fork
 * the caller's hooks run, Python's for instance, which make a fork safe for what has locks and threads.
 *
 * One that dies takes no rank with it. What it has not completed belongs to calls that fail now: this is told as if
 * it had done so itself, then its header is put in order, and the next SubWorker with its number finds
 * an empty queue, whose numbers go on where they were. */
#include "base/alloc.h"
#include "base/format.h"
#include "base/os.h"
#include "host/report.h"
#include "process/channel.h"
#include "runtime/protocol.h"

#include <errno.h>
#include <string.h>

#define CLOSE_TIMEOUT_MS 1000

static rank_header *header_of(const pypto_worker *w, int32_t consumer)
{
    return segment_rank(&w->seg, consumer);
}

static bool is_process(const pypto_worker *w)
{
    return !w->seg.transport->one_process;
}

void subs_configure(pypto_worker *w, const pypto_worker_options *options)
{
    w->sub_wanted = options->sub_workers;
    w->sub_runner = (sub_runner){options->run_sub, options->sub_context};
    w->before_fork = options->before_fork;
    w->after_fork = options->after_fork;
}

bool program_calls_subs(const pld_program *table)
{
    for (int32_t i = 0; i < table->nfunctions; ++i)
        if (table->functions[i]->plane == PLD_PLANE_SUB)
            return true;
    return false;
}

/* ---- starting ---- */

typedef struct beginning {
    pypto_worker *w; /* in a forked child: the copy, which keeps its memory */
    sub_start start;
} beginning;

static int forked_main(int channel, void *context)
{
    beginning *b = context;
    if (b->w->after_fork != NULL)
        b->w->after_fork(b->w->sub_runner.context, true);
    b->start.channel = channel;
    return worker_serve_sub(&b->start);
}

static void *thread_main(void *context)
{
    const sub_start start = *(sub_start *)context;
    alloc_free(context);
    worker_serve_sub(&start);
    return NULL;
}

static pypto_status start_thread(pypto_worker *w, int32_t consumer, const sub_start *start)
{
    int ends[2];
    pypto_status status = channel_pair(ends);
    if (!status_ok(status))
        return status;
    sub_start *own = alloc_zeroed(1, (int64_t)sizeof *own);
    int error = ENOMEM;
    if (own != NULL) {
        *own = *start;
        own->channel = ends[1];
        own->seg.fd = -1;
        error = pthread_create(&w->threads[consumer], NULL, thread_main, own);
    }
    if (error != 0) {
        alloc_free(own);
        os_close(&ends[0]);
        os_close(&ends[1]);
        return diag_system(error, NULL, "start a thread for a SubWorker");
    }
    w->processes[consumer].channel = ends[0];
    return STATUS_OK;
}

/* Puts the header of a SubWorker that is not there in order: nothing is posted that is not complete. */
static void reset_header(pypto_worker *w, int32_t consumer)
{
    rank_header *h = header_of(w, consumer);
    const uint64_t posted = w->writers[consumer].sequence;
    if (atomic_load_explicit(&h->counted_waiting, memory_order_relaxed) != 0)
        atomic_fetch_sub_explicit(&w->seg.set->dispatch_waiters, 1, memory_order_seq_cst);
    atomic_store_explicit(&h->counted_waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&h->sleepers, 0, memory_order_relaxed);
    atomic_store_explicit(&h->wait_count, 0, memory_order_relaxed);
    atomic_store_explicit(&h->breadcrumb, 0, memory_order_relaxed);
    atomic_store_explicit(&h->running_call, 0, memory_order_relaxed);
    atomic_store_explicit(&h->lost_host, 0, memory_order_relaxed);
    /* As if it ran: until it has begun, nobody takes its silence for a deadlock. */
    uint64_t epoch = atomic_load_explicit(&h->epoch, memory_order_relaxed);
    epoch += epoch_is_parked(epoch) ? 1 : 2;
    atomic_store_explicit(&h->epoch, epoch, memory_order_seq_cst);
    atomic_store_explicit(&h->taken, posted, memory_order_seq_cst);
    atomic_store_explicit(&h->completed, posted, memory_order_seq_cst);
    for (int32_t i = 0; i < DONE_WINDOW / 64; ++i)
        if (atomic_load_explicit(&h->done[i], memory_order_relaxed) != 0)
            atomic_store_explicit(&h->done[i], 0, memory_order_relaxed);
}

static pypto_status start_one(pypto_worker *w, int32_t consumer, const pld_program *const *tables)
{
    reset_header(w, consumer);
    pypto_status status = queue_restart(&w->writers[consumer]);
    if (!status_ok(status)) {
        w->usable = false; /* it has no queue any more */
        return status;
    }
    beginning b = {.w = w,
                   .start = {.host_event = w->event,
                             .seg = w->seg,
                             .number = consumer,
                             .programs = tables,
                             .program_count = w->program_count,
                             .runner = w->sub_runner}};
    if (!is_process(w))
        return start_thread(w, consumer, &b.start);
    if (w->before_fork != NULL)
        w->before_fork(w->sub_runner.context);
    w->forks_sub = true;
    status =
        process_fork(forked_main, &b, w->processes, consumer_count(w), &w->processes[consumer]);
    w->forks_sub = false;
    if (w->after_fork != NULL)
        w->after_fork(w->sub_runner.context, false);
    return status;
}

pypto_status subs_start(pypto_worker *w)
{
    subs_settle_dead(w);
    bool none = true, missing = false;
    for (int32_t i = 0; i < w->sub_wanted; ++i) {
        none = none && !sub_lives(w, w->device_count + i);
        missing = missing || !sub_lives(w, w->device_count + i);
    }
    if (!missing)
        return STATUS_OK;
    if (none)
        w->sub_serial = programs_loaded();
    const pld_program **tables =
        alloc_zeroed(w->program_count + 1, (int64_t)sizeof(const pld_program *));
    if (tables == NULL)
        return diag_no_memory();
    for (int32_t id = 0; id < w->program_count; ++id)
        tables[id] = w->programs[id]->table;
    bool started[MAX_SUB_WORKERS] = {false};
    pypto_status status = STATUS_OK;
    for (int32_t i = 0; status_ok(status) && i < w->sub_wanted; ++i) {
        if (sub_lives(w, w->device_count + i))
            continue;
        status = start_one(w, w->device_count + i, tables);
        started[i] = status_ok(status);
    }
    for (int32_t i = 0; status_ok(status) && i < w->sub_wanted; ++i)
        if (started[i])
            status = answers_await(w, w->device_count + i, 1, os_now_ns() + w->startup_timeout_ns,
                                   ASKED_TO_START);
    alloc_free(tables);
    return status;
}

pypto_status subs_load(pypto_worker *w, const pypto_program *program, int32_t id)
{
    if (!program_calls_subs(program->table))
        return STATUS_OK;
    pypto_status status = STATUS_OK;
    const program_message message = {.id = id, .table = program->table};
    for (int32_t consumer = w->device_count; consumer < consumer_count(w); ++consumer) {
        if (!status_ok(status) || !sub_lives(w, consumer))
            continue;
        if (is_process(w) && program->serial > w->sub_serial)
            status = diag_status(DIAG_BAD_PROGRAM, "load the program, then create the worker set",
                                 "program '%s' was loaded after the SubWorkers had been forked, "
                                 "which do not have it",
                                 program->table->name);
        else if (channel_send(w->processes[consumer].channel, MESSAGE_PROGRAM, &message,
                              sizeof message, NULL, 0) == CHANNEL_OK)
            status = answers_await(w, consumer, 1, CALL_FOREVER, ASKED_TO_LOAD);
        if (status.kind == PYPTO_ERROR_WORKER_DIED)
            pypto_status_clear(&status);
        /* One that is gone is found dead, and settled, when it is needed. */
    }
    return status;
}

/* ---- files ---- */

bool subs_attach(pypto_worker *w, const attach_message *message, int fd)
{
    for (int32_t consumer = w->device_count; consumer < consumer_count(w); ++consumer) {
        if (!sub_lives(w, consumer) || channel_send(w->processes[consumer].channel, MESSAGE_ATTACH,
                                                    message, sizeof *message, &fd, 1) != CHANNEL_OK)
            continue;
        pypto_status status = answers_await(w, consumer, 1, CALL_FOREVER, ASKED_TO_MAP);
        const bool refused = !status_ok(status) && !process_dead(&w->processes[consumer]);
        pypto_status_clear(&status);
        if (refused)
            return false;
    }
    return true;
}

void subs_detach(pypto_worker *w, const attach_message *message)
{
    for (int32_t consumer = w->device_count; consumer < consumer_count(w); ++consumer)
        if (is_process(w) && sub_lives(w, consumer))
            (void)channel_send(w->processes[consumer].channel, MESSAGE_DETACH, message,
                               sizeof *message, NULL, 0);
}

/* ---- choosing ---- */

static uint64_t undone(const pypto_worker *w, int32_t consumer)
{
    return w->writers[consumer].sequence -
           atomic_load_explicit(&header_of(w, consumer)->completed, memory_order_acquire);
}

int32_t subs_choose(const pld_host *host, const pld_function *function)
{
    const pypto_worker *w = host->w;
    int32_t living[MAX_SUB_WORKERS];
    int32_t count = 0, number = 0;
    for (int32_t consumer = w->device_count; consumer < consumer_count(w); ++consumer)
        if (sub_lives(w, consumer))
            living[count++] = consumer;
    if (count == 0)
        return -1;
    for (int32_t i = 0; host->table->functions[i] != function; ++i)
        number += host->table->functions[i]->plane == PLD_PLANE_SUB;
    int32_t chosen = living[number % count]; /* its own */
    for (int32_t i = 0; i < count; ++i)
        if (undone(w, living[i]) < undone(w, chosen))
            chosen = living[i];
    return chosen;
}

/* ---- death ---- */

/* Its records that nobody will complete any more, up to `last`. */
static int64_t count_undone(const rank_header *h, uint64_t last)
{
    int64_t count = 0;
    for (uint64_t n = atomic_load_explicit(&h->completed, memory_order_relaxed) + 1; n <= last; ++n)
        count += !segment_dispatch_done(h, n);
    return count;
}

/* Says on its behalf that it has failed a call. */
static void fail_call(pypto_worker *w, int32_t consumer, const pld_host *host)
{
    rank_header *h = header_of(w, consumer);
    const uint64_t breadcrumb = atomic_load_explicit(&h->breadcrumb, memory_order_relaxed);
    failure_record *failure = &h->failure[call_slot(host->call)];
    char how[64];
    process_describe_exit(&w->processes[consumer], how, sizeof how);
    failure->code = DIAG_WORKER_DIED;
    failure->program = host->program_id;
    failure->function = -1;
    failure->line = 0;
    if (breadcrumb != 0) {
        failure->program = atomic_load_explicit(&h->breadcrumb_program, memory_order_relaxed);
        failure->function = (int32_t)(breadcrumb >> 32) - 1;
        failure->line = (int32_t)(uint32_t)breadcrumb;
    }
    const bool lost = atomic_load_explicit(&h->lost_host, memory_order_relaxed) != 0;
    format_text(failure->text, sizeof failure->text, "its process (pid %lld) %s%s",
                (long long)w->processes[consumer].pid,
                lost ? "ended, because the function closed file descriptors of the runtime; close "
                       "only what you have opened"
                     : "died, ",
                lost ? "" : how);
    format_text(failure->note, sizeof failure->note,
                "sub_worker: pid %lld exited before mailbox completion: %s",
                (long long)w->processes[consumer].pid, how);
    segment_fail(&w->seg, failure, host->call);
}

static void settle(pypto_worker *w, int32_t consumer)
{
    rank_header *h = header_of(w, consumer);
    for (const pld_host *host = runs_first(w); host != NULL; host = runs_next(host))
        if (!segment_poisoned(&w->seg, host->call, memory_order_relaxed) &&
            count_undone(h, host->last[consumer]) > 0)
            fail_call(w, consumer, host);
    const int64_t left = count_undone(h, w->writers[consumer].sequence);
    process_close(&w->processes[consumer], 0);
    w->processes[consumer] = PROCESS_NONE;
    w->lost_sub = true;
    reset_header(w, consumer);
    atomic_fetch_sub_explicit(&w->seg.set->outstanding, left, memory_order_seq_cst);
    segment_ring_all(&w->seg); /* who waits for what it did not do finds its call poisoned */
}

static bool is_dead(const pypto_worker *w, int32_t consumer)
{
    return is_process(w) && sub_lives(w, consumer) && process_dead(&w->processes[consumer]);
}

bool subs_have_failed(const pld_host *host)
{
    const pypto_worker *w = host->w;
    for (int32_t consumer = w->device_count; consumer < consumer_count(w); ++consumer)
        if (is_dead(w, consumer) && count_undone(header_of(w, consumer), host->last[consumer]) > 0)
            return true;
    return false;
}

void subs_settle_dead(pypto_worker *w)
{
    for (int32_t consumer = w->device_count; consumer < consumer_count(w); ++consumer)
        if (is_dead(w, consumer))
            settle(w, consumer);
}

void subs_kill(pypto_worker *w, uint64_t call)
{
    for (int32_t consumer = w->device_count; consumer < consumer_count(w); ++consumer) {
        const rank_header *h = header_of(w, consumer);
        if (!is_process(w) || !sub_lives(w, consumer) ||
            atomic_load_explicit(&h->running_call, memory_order_seq_cst) != call)
            continue;
        process_kill(&w->processes[consumer]);
        settle(w, consumer);
    }
}

/* ---- the end ---- */

void subs_end(pypto_worker *w)
{
    bool lived[MAX_SUB_WORKERS] = {false};
    for (int32_t i = 0; i < w->sub_count; ++i) {
        lived[i] = sub_lives(w, w->device_count + i);
        process_hang_up(&w->processes[w->device_count + i]);
    }
    for (int32_t i = 0; i < w->sub_count; ++i) {
        if (!lived[i])
            continue;
        if (is_process(w))
            process_close(&w->processes[w->device_count + i], CLOSE_TIMEOUT_MS);
        else
            pthread_join(w->threads[w->device_count + i], NULL);
        w->processes[w->device_count + i] = PROCESS_NONE;
    }
}

int64_t pypto_worker_sub_pid(const pypto_worker *w, int32_t index)
{
    return index >= 0 && index < w->sub_count ? w->processes[w->device_count + index].pid : 0;
}
