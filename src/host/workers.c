/* Worker sets: starting and ending them, and telling ranks about programs.
 *
 * All live sets stand in one list, so that a process which the user forks (os.fork,
 * multiprocessing) can disown them: the child closes its copies of the descriptors and never
 * touches the workers, which go on serving the parent. */
#include "base/alloc.h"
#include "base/os.h"
#include "base/settings.h"
#include "host/host.h"
#include "process/channel.h"
#include "process/waiting.h"
#include "runtime/protocol.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* An idle or blocked worker ends at once when its channel closes. */
#define CLOSE_TIMEOUT_MS 1000
#define DEFAULT_STARTUP_NS (INT64_C(300) * 1000000000)

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static pypto_worker *live_sets;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* ---- fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&list_lock);
}

static void after_fork_child(void)
{
    for (pypto_worker *w = live_sets; w != NULL; w = w->next) {
        w->foreign = true;
        w->usable = false;
        for (int32_t i = 0; i < consumer_count(w); ++i)
            process_disown(&w->processes[i]);
        attach_disown(w);
        if (!w->forks_sub) { /* else this process goes on as one of its SubWorkers */
            os_close(&w->event);
            w->seg.transport->detach(&w->seg);
        }
        turns_init(w); /* they may have been held by threads that are not here */
    }
    live_sets = NULL;
    pthread_mutex_init(&list_lock, NULL);
}

static void install_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static void enlist(pypto_worker *w)
{
    pthread_mutex_lock(&list_lock);
    w->next = live_sets;
    live_sets = w;
    pthread_mutex_unlock(&list_lock);
}

static void delist(pypto_worker *w)
{
    pthread_mutex_lock(&list_lock);
    for (pypto_worker **link = &live_sets; *link != NULL; link = &(*link)->next) {
        if (*link == w) {
            *link = w->next;
            break;
        }
    }
    pthread_mutex_unlock(&list_lock);
}

/* ---- creating ---- */

static pypto_status init_memory(pypto_worker *w)
{
    const transport *t = w->start == PYPTO_START_THREAD ? &transport_threads : &transport_shm;
    pypto_status status = t->create(w->device_count, w->sub_count, &w->seg);
    if (!status_ok(status))
        return status;
    const set_header *set = w->seg.set;
    heap_init(&w->staging, set->staging_bytes, HEAP_ALIGN);
    heap_init(&w->heap, set->stride, HEAP_ALIGN);
    heap_init(&w->files_area, set->files_bytes, HEAP_ALIGN);
    w->queues.seg = &w->seg;
    heap_init(&w->queues.area, set->control_bytes, HEAP_ALIGN);
    for (int32_t rank = 0; status_ok(status) && rank < consumer_count(w); ++rank)
        status = queue_writer_init(&w->writers[rank], &w->queues, segment_rank(&w->seg, rank));
    return status;
}

static pypto_worker *make_set(const pypto_worker_options *options)
{
    const int32_t n = options->device_count;
    const int32_t consumers = n + options->sub_workers;
    pypto_worker *w = alloc_zeroed(1, (int64_t)sizeof *w);
    if (w == NULL)
        return NULL;
    turns_init(w);
    w->event = -1;
    w->maps = -1;
    w->seg.fd = -1;
    w->device_count = n;
    w->sub_count = options->sub_workers;
    subs_configure(w, options);
    w->start = options->start;
    w->interrupted = options->interrupted;
    w->interrupt_context = options->interrupt_context;
    w->lint = options->lint;
    w->lint_disabled = options->lint_disabled;
    w->records = (kept_records){.what = PYPTO_RECORDS_INIT};
    w->persistent = options->persistent;
    w->shared_only = options->shared_only;
    w->startup_timeout_ns =
        options->startup_timeout_ns > 0 ? options->startup_timeout_ns : DEFAULT_STARTUP_NS;
    if (w->persistent != PYPTO_PERSISTENT_OFF)
        w->kept = alloc_zeroed(RANK_PROGRAMS, (int64_t)sizeof *w->kept);
    w->device_ids = alloc_zeroed(n, (int64_t)sizeof *w->device_ids);
    w->processes = alloc_zeroed(consumers, (int64_t)sizeof *w->processes);
    w->threads = alloc_zeroed(consumers, (int64_t)sizeof *w->threads);
    w->writers = alloc_zeroed(consumers, (int64_t)sizeof *w->writers);
    w->slice_reserved = alloc_zeroed(n, (int64_t)sizeof *w->slice_reserved);
    w->posted_before = alloc_zeroed(n, (int64_t)sizeof *w->posted_before);
    if (w->processes != NULL)
        for (int32_t i = 0; i < consumers; ++i)
            w->processes[i] = PROCESS_NONE;
    if (w->device_ids != NULL)
        memcpy(w->device_ids, options->device_ids, (size_t)n * sizeof *w->device_ids);
    return w;
}

pypto_status pypto_worker_create(const pypto_worker_options *options, pypto_worker **worker)
{
    pthread_once(&fork_once, install_fork_handlers);
    *worker = NULL;
    pypto_status status = workers_check_options(options);
    if (!status_ok(status))
        return status;
    if (setting_is_set(SETTING_GDB) &&
        setting_int(SETTING_GDB) >=
            options->device_count) /* else one would wait for a word of it */
        fprintf(stderr, "pypto: no rank waits for a debugger: %s is %d, and there are %d ranks\n",
                setting_name(SETTING_GDB), (int)setting_int(SETTING_GDB),
                (int)options->device_count);
    pypto_worker *w = make_set(options);
    if (w == NULL)
        return diag_no_memory();
    if (w->device_ids == NULL || w->processes == NULL || w->threads == NULL || w->writers == NULL ||
        w->slice_reserved == NULL || w->posted_before == NULL ||
        (w->persistent != PYPTO_PERSISTENT_OFF && w->kept == NULL))
        status = diag_no_memory();
    if (status_ok(status) && (w->event = host_event_create()) < 0)
        status = diag_system(errno, NULL, "create an event descriptor");
    if (status_ok(status))
        status = init_memory(w);
    if (status_ok(status))
        status = start_ranks(w, options->title);
    if (status_ok(status))
        status = pypto_worker_set_records(w, options->records);
    if (status_ok(status))
        status = subs_start(w);
    if (!status_ok(status)) {
        pypto_worker_close(w);
        return status;
    }
    w->usable = true;
    enlist(w);
    *worker = w;
    return STATUS_OK;
}

/* ---- programs ---- */

/* Opens the program's file for sending; -1 in *fd where ranks share the table that is loaded here.
 */
static pypto_status open_for_ranks(const pypto_worker *w, const pypto_program *program, int *fd)
{
    *fd = -1;
    if (program->path == NULL || w->start == PYPTO_START_THREAD)
        return STATUS_OK;
    *fd = os_open_read(program->path);
    if (*fd >= 0)
        return STATUS_OK;
    const bool removed = errno == ENOENT;
    return diag_system(errno,
                       removed ? "start the script again: it was removed from the cache" : NULL,
                       "open the compiled program %s", program->path);
}

static pypto_status send_program(pypto_worker *w, const pypto_program *program, int32_t id)
{
    int fd;
    pypto_status status = open_for_ranks(w, program, &fd);
    const program_message message = {.id = id, .table = fd < 0 ? program->table : NULL};
    for (int32_t rank = 0; status_ok(status) && rank < w->device_count; ++rank)
        if (channel_send(w->processes[rank].channel, MESSAGE_PROGRAM, &message, sizeof message, &fd,
                         fd < 0 ? 0 : 1) != CHANNEL_OK)
            status = answers_missing(w, rank, ASKED_TO_LOAD);
    os_close(&fd);
    if (status_ok(status))
        status = answers_await(w, 0, w->device_count, CALL_FOREVER, ASKED_TO_LOAD);
    return status_ok(status) ? subs_load(w, program, id) : status;
}

bool workers_interrupted(const pypto_worker *w)
{
    return w->interrupted != NULL && w->interrupted(w->interrupt_context);
}

void pypto_interrupt(void)
{
    host_relay_all();
}

pypto_status workers_check_usable(const pypto_worker *w)
{
    if (w->foreign)
        return diag_status(DIAG_WORKER_CLOSED, "create a worker in this process",
                           "this worker set belongs to the process that forked this one");
    if (!w->usable)
        return diag_status(DIAG_WORKER_CLOSED, "create another worker",
                           "this worker set lost a worker in an earlier call");
    return STATUS_OK;
}

static bool workers_full(const pypto_worker *w)
{
    return w->program_count >= RANK_PROGRAMS;
}

pypto_status workers_load(pypto_worker *w, pypto_program *program, int32_t *id)
{
    for (int32_t i = 0; i < w->program_count; ++i) {
        if (w->programs[i] == program) {
            *id = i;
            return STATUS_OK;
        }
    }
    if (w->start == PYPTO_START_EXEC && program->object == NULL)
        return diag_status(DIAG_BAD_PROGRAM,
                           "start the workers with PYPTO_START_FORK or PYPTO_START_THREAD",
                           "a program written as a C table cannot run in workers started by exec");
    if (workers_full(w))
        return diag_status(DIAG_BAD_PROGRAM, "close the worker and create another",
                           "a worker set can have %d programs", w->program_count);
    if (!alloc_grow(w->programs, w->program_capacity, w->program_count + 1))
        return diag_no_memory();
    pypto_status status = send_program(w, program, w->program_count);
    if (!status_ok(status)) {
        workers_kill(w);
        return status;
    }
    *id = w->program_count;
    w->programs[w->program_count++] = pypto_program_retain(program);
    return STATUS_OK;
}

/* ---- files ---- */

bool workers_attach(pypto_worker *w, int64_t offset, int64_t bytes, int fd, bool *writable)
{
    if (!w->usable)
        return false;
    if (!segment_map_file(&w->seg, offset, bytes, fd, *writable)) {
        /* A file may be sealed against new mappings for writing. */
        *writable = false;
        if (!segment_map_file(&w->seg, offset, bytes, fd, false))
            return false;
    }
    if (w->seg.transport->one_process)
        return true;
    const attach_message message = {.offset = offset, .bytes = bytes, .writable = *writable};
    int32_t sent = 0;
    while (sent < w->device_count && channel_send(w->processes[sent].channel, MESSAGE_ATTACH,
                                                  &message, sizeof message, &fd, 1) == CHANNEL_OK)
        ++sent;
    /* A rank that is gone is reported by the call that waits for it. */
    if (answers_agree(w, sent) && sent == w->device_count && subs_attach(w, &message, fd))
        return true;
    workers_detach(w, offset, bytes);
    return false;
}

void workers_detach(pypto_worker *w, int64_t offset, int64_t bytes)
{
    segment_unmap_file(&w->seg, offset, bytes);
    const attach_message message = {.offset = offset, .bytes = bytes};
    for (int32_t rank = 0; w->usable && !w->seg.transport->one_process && rank < w->device_count;
         ++rank)
        (void)channel_send(w->processes[rank].channel, MESSAGE_DETACH, &message, sizeof message,
                           NULL, 0);
    subs_detach(w, &message);
}

void workers_forget_file(uint64_t device, uint64_t inode)
{
    pthread_mutex_lock(&list_lock);
    for (pypto_worker *w = live_sets; w != NULL; w = w->next) {
        if (pthread_mutex_trylock(&w->lock) != 0)
            continue; /* its next call finds out */
        attach_forget(w, device, inode);
        pthread_mutex_unlock(&w->lock);
    }
    pthread_mutex_unlock(&list_lock);
}

int64_t pypto_worker_copied_bytes(pypto_worker *w)
{
    turns_enter(w);
    const int64_t bytes = w->copied_bytes;
    turns_leave(w);
    return bytes;
}

/* ---- ending ---- */

void workers_kill(pypto_worker *w)
{
    w->usable = false;
    if (w->seg.transport->one_process)
        return;
    /* All are stopped before the first is waited for: they compete with us for the CPUs. */
    for (int32_t rank = 0; rank < w->device_count; ++rank)
        process_send_kill(&w->processes[rank]);
    for (int32_t rank = 0; rank < w->device_count; ++rank)
        process_kill(&w->processes[rank]);
    subs_end(w);
}

static void end_ranks(pypto_worker *w)
{
    /* All are told before the first is waited for, so that they end at the same time. */
    for (int32_t rank = 0; rank < w->device_count; ++rank)
        process_hang_up(&w->processes[rank]);
    for (int32_t rank = 0; rank < w->thread_count; ++rank)
        pthread_join(w->threads[rank], NULL);
    for (int32_t rank = 0; rank < w->device_count && w->start != PYPTO_START_THREAD; ++rank)
        process_close(&w->processes[rank], CLOSE_TIMEOUT_MS);
}

void pypto_worker_close(pypto_worker *w)
{
    if (w == NULL)
        return;
    if (!w->foreign) {
        turns_enter_to_wait(w);
        runs_finish(w);
        turns_leave_waiting(w);
        delist(w);
        if (w->processes != NULL && w->threads != NULL) {
            subs_end(w);
            end_ranks(w);
        }
        if (w->seg.transport != NULL)
            w->seg.transport->detach(&w->seg);
        os_close(&w->event);
    }
    for (int32_t i = 0; i < w->program_count; ++i)
        pypto_program_release(w->programs[i]);
    alloc_free(w->programs);
    fiber_destroy(w->fiber);
    attach_destroy(w);
    windows_destroy(w);
    heap_destroy(&w->staging);
    heap_destroy(&w->heap);
    heap_destroy(&w->queues.area);
    for (int32_t i = 0; w->writers != NULL && i < consumer_count(w); ++i)
        queue_writer_destroy(&w->writers[i]);
    turns_destroy(w);
    alloc_free(w->device_ids);
    alloc_free(w->processes);
    alloc_free(w->threads);
    alloc_free(w->writers);
    alloc_free(w->slice_reserved);
    alloc_free(w->posted_before);
    order_destroy(&w->order);
    persistent_destroy(w);
    alloc_free(w->residents);
    arg_list_free(&w->placed);
    records_forget(&w->records);
    alloc_free(w->times);
    alloc_free(w);
}

int64_t pypto_worker_domain_count(const pypto_worker *w)
{
    return w->domain_count;
}

bool pypto_worker_usable(const pypto_worker *w)
{
    return w->usable;
}

void pypto_worker_set_lint(pypto_worker *w, pypto_lint lint)
{
    turns_enter(w);
    w->lint = lint;
    turns_leave(w);
}

void pypto_worker_set_lint_disabled(pypto_worker *w, uint32_t disabled)
{
    turns_enter(w);
    w->lint_disabled = disabled;
    turns_leave(w);
}

int64_t pypto_worker_pid(const pypto_worker *w, int32_t rank)
{
    return rank >= 0 && rank < w->device_count ? w->processes[rank].pid : 0;
}
