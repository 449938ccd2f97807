/* One-shot calls: pypto_call() and the sets that it keeps for the next one.
 *
 * A call takes an idle set with the same number of devices and the same way of starting (device ids
 * are only names, so they are set anew), runs, and gives it back. At most two sets idle; the one
 * unused for longest goes. An idle set sleeps and costs no CPU. SubWorkers are made for each call and end with it. */
#include "host/host.h"

#include <pypto/worker.h>

#include <string.h>

#define IDLE_SETS 2
#define POOL_PROGRAMS 128

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pypto_worker *idle_sets; /* most recently used first */
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;

static void lock_pool(void)
{
    pthread_mutex_lock(&pool_lock);
}

static void unlock_pool(void)
{
    pthread_mutex_unlock(&pool_lock);
}

/* In a forked child the idle sets are foreign: forget them (workers.c closes their descriptors). */
static void forget_pool(void)
{
    idle_sets = NULL;
    pthread_mutex_init(&pool_lock, NULL);
}

static void install_fork_handlers(void)
{
    pthread_atfork(lock_pool, unlock_pool, forget_pool);
}

static pypto_worker *take_idle(const pypto_worker_options *options)
{
    pypto_worker *found = NULL;
    lock_pool();
    for (pypto_worker **link = &idle_sets; *link != NULL; link = &(*link)->next_idle) {
        if ((*link)->device_count == options->device_count && (*link)->start == options->start &&
            (*link)->sub_count >= options->sub_workers) {
            found = *link;
            *link = found->next_idle;
            break;
        }
    }
    unlock_pool();
    return found;
}

/* Puts a set in front; returns the ones that have to go. */
static pypto_worker *give_idle(pypto_worker *w)
{
    lock_pool();
    w->next_idle = idle_sets;
    idle_sets = w;
    pypto_worker **link = &idle_sets;
    for (int32_t kept = 0; *link != NULL && kept < IDLE_SETS; ++kept)
        link = &(*link)->next_idle;
    pypto_worker *surplus = *link;
    *link = NULL;
    unlock_pool();
    return surplus;
}

static void close_chain(pypto_worker *w)
{
    while (w != NULL) {
        pypto_worker *next = w->next_idle;
        pypto_worker_close(w);
        w = next;
    }
}

/* A set that died while idle (somebody killed its workers) must not fail the next call. */
static bool still_alive(pypto_worker *w)
{
    for (int32_t rank = 0; w->start != PYPTO_START_THREAD && rank < w->device_count; ++rank)
        if (process_dead(&w->processes[rank]))
            return false;
    return true;
}

pypto_status pypto_call(const pypto_worker_options *options, pypto_program *program,
                        const pypto_argument *args, int32_t count)
{
    pthread_once(&pool_once, install_fork_handlers);
    pypto_status status = workers_check_options(options);
    if (!status_ok(status))
        return status;
    pypto_worker *w = take_idle(options);
    if (w != NULL && !still_alive(w)) {
        pypto_worker_close(w);
        w = NULL;
    }
    /* The ranks keep every program that they have loaded; a set that has seen many is replaced, so
     * that programs which nobody uses any more do not pile up. */
    if (w != NULL && w->program_count >= POOL_PROGRAMS) {
        pypto_worker_close(w);
        w = NULL;
    }
    if (w == NULL) {
        status = pypto_worker_create(options, &w);
        if (!status_ok(status))
            return status;
    }
    memcpy(w->device_ids, options->device_ids,
           (size_t)options->device_count * sizeof *w->device_ids);
    w->interrupted = options->interrupted;
    w->interrupt_context = options->interrupt_context;
    w->lint = options->lint;
    w->lint_disabled = options->lint_disabled;
    w->one_shot = true;
    subs_configure(w, options);
    if (options->records != NULL || records_wanted(w))
        status = pypto_worker_set_records(w, options->records);
    if (status_ok(status))
        status = pypto_worker_run(w, program, args, count);
    w->interrupted = NULL;
    subs_end(w);
    if (w->usable)
        close_chain(give_idle(w));
    else
        pypto_worker_close(w);
    return status;
}

void pypto_shutdown(void)
{
    lock_pool();
    pypto_worker *all = idle_sets;
    idle_sets = NULL;
    unlock_pool();
    close_chain(all);
}
