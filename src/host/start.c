/* Starting the ranks of a set: processes or threads, their greeting, and the wait until each is ready; and their answers
 * in general.
 *
 * All waits here have the end of a rank, Ctrl-C and a deadline. When one rank fails to start nobody waits for
 * the others: none of them has anything to lose, so they are killed. */
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

/* Of a set that works, an answer comes within milliseconds. To interrupt the wait costs the set, so Ctrl-C first waits
 * so long. */
#define PATIENCE_NS (INT64_C(1) * 1000000000)

/* Of a rank that is a thread: kernels run on stacks of their own. */
#define RANK_STACK_BYTES (1024 * 1024)

/* ---- options ---- */

pypto_status workers_check_options(const pypto_worker_options *options)
{
    if (options->size != sizeof *options)
        return diag_status(DIAG_BAD_DEVICE_IDS, "initialise it with PYPTO_WORKER_OPTIONS_INIT",
                           "pypto_worker_options.size is %zu", options->size);
    if (options->device_count < 1 || options->device_count > PYPTO_MAX_RANKS)
        return diag_status(DIAG_BAD_DEVICE_IDS, "use 1 to 64 devices", "%d device ids were given",
                           options->device_count);
    if (options->device_ids == NULL)
        return diag_status(DIAG_BAD_DEVICE_IDS, NULL, "pypto_worker_options.device_ids is NULL");
    if (options->start != PYPTO_START_EXEC && options->start != PYPTO_START_FORK &&
        options->start != PYPTO_START_THREAD)
        return diag_status(DIAG_WORKER_START, "use a PYPTO_START_ constant",
                           "%d is no way to start workers", (int)options->start);
    if (options->sub_workers < 0 || options->sub_workers > MAX_SUB_WORKERS)
        return diag_status(DIAG_WORKER_START, "use 0 to 64 of them", "%d SubWorkers were asked for",
                           options->sub_workers);
    for (int32_t i = 0; i < options->device_count; ++i) {
        if (options->device_ids[i] < 0)
            return diag_status(DIAG_BAD_DEVICE_IDS, NULL, "device ids must be non-negative");
        for (int32_t k = 0; k < i; ++k)
            if (options->device_ids[k] == options->device_ids[i])
                return diag_status(DIAG_BAD_DEVICE_IDS, NULL,
                                   "device ids must be distinct: %d is there twice",
                                   options->device_ids[i]);
    }
    return settings_check();
}

/* ---- starting ---- */

static pypto_status find_worker_program(arena *a, const char **path)
{
    const char *set = setting_text(SETTING_WORKER);
    *path = set[0] != '\0' ? set : NULL;
    const char *library = os_library_dir(a);
    if (*path == NULL && library != NULL)
        *path = arena_printf(a, "%s/../libexec/pypto/pypto-worker", library);
    if (*path != NULL && os_file_exists(*path))
        return STATUS_OK;
    return diag_status(
        DIAG_WORKER_START, "reinstall pypto, or set PYPTO_WORKER to the program's path",
        "the worker program %s was not found", *path != NULL ? *path : "pypto-worker");
}

static void *thread_main(void *channel)
{
    worker_serve_thread((int)(intptr_t)channel);
    return NULL;
}

static pypto_status start_thread(pypto_worker *w, int32_t rank)
{
    int ends[2];
    pypto_status status = channel_pair(ends);
    if (!status_ok(status))
        return status;
    w->processes[rank].channel = ends[0];
    const int error = os_start_thread(&w->threads[rank], RANK_STACK_BYTES, thread_main,
                                      (void *)(intptr_t)ends[1]);
    if (error != 0) {
        os_close(&ends[1]);
        return diag_system(error, NULL, "start a worker thread");
    }
    ++w->thread_count;
    return STATUS_OK;
}

static int fork_main(int channel, void *context)
{
    (void)context;
    return pypto_worker_main(channel);
}

static pypto_status start_rank(pypto_worker *w, int32_t rank, const char *program,
                               const char *title)
{
    switch (w->start) {
    case PYPTO_START_THREAD: return start_thread(w, rank);
    case PYPTO_START_FORK:
        return process_fork(fork_main, NULL, w->processes, rank, &w->processes[rank]);
    case PYPTO_START_EXEC: break;
    }
    char shown[256];
    snprintf(shown, sizeof shown, "%s rank %d of %d", title != NULL ? title : "pypto", rank,
             w->device_count);
    return process_spawn(program, shown, &w->processes[rank]);
}

/* ---- answers ---- */

/* What a C library needs to begin a program, and some more. */
#define SMALL_STACK_BYTES (256 * 1024)

static const char *const requests[] = {
    [ASKED_TO_START] = "init",
    [ASKED_TO_LOAD] = "the loading of the program",
    [ASKED_TO_MAP] = "the mapping of a file",
};

typedef enum answer {
    ANSWER_GOOD,
    ANSWER_BAD,  /* with a text */
    ANSWER_NONE, /* nor will there be one */
    ANSWER_LATE,
    ANSWER_INTERRUPTED
} answer;

static answer read_answer(const channel_message *message)
{
    const answer_message *content = (const answer_message *)(const void *)message->payload;
    if (message->type != MESSAGE_ANSWER || message->bytes != sizeof *content)
        return ANSWER_NONE;
    return content->ok != 0 ? ANSWER_GOOD : ANSWER_BAD;
}

/* Whether a rank has answered, or never will. */
static bool has_answered(pypto_worker *w, int32_t rank, channel_message *message, answer *given)
{
    const int channel = w->processes[rank].channel;
    channel_result result = channel_receive(channel, 0, message);
    if (result == CHANNEL_TIMEOUT && !w->seg.transport->one_process &&
        process_dead(&w->processes[rank])) {
        result = channel_receive(channel, 0, message);
        result = result == CHANNEL_TIMEOUT ? CHANNEL_CLOSED : result;
    }
    *given = result == CHANNEL_OK ? read_answer(message) : ANSWER_NONE;
    return result != CHANNEL_TIMEOUT;
}

/* The first rank of those that are awaited which has answered is awaited no more. Without one, *rank is the first awaited. */
static bool take_answer(pypto_worker *w, bool *awaited, channel_message *message, answer *given,
                        int32_t *rank)
{
    *rank = -1;
    for (int32_t i = 0; i < consumer_count(w); ++i) {
        if (!awaited[i])
            continue;
        if (has_answered(w, i, message, given)) {
            awaited[i] = false;
            *rank = i;
            return true;
        }
        *rank = *rank < 0 ? i : *rank;
    }
    return false;
}

/* Waits until a rank of those that are awaited has answered, or `deadline`; before `patience` is over Ctrl-C does not
 * count. */
static answer await_answer(pypto_worker *w, bool *awaited, int64_t deadline, int64_t patience,
                           channel_message *message, int32_t *rank)
{
    answer given = ANSWER_NONE;
    bool interrupted = false;
    uint32_t signals = host_relay_begin(w->event);
    while (!take_answer(w, awaited, message, &given, rank)) {
        /* A signal that came before the relay was in place is pending with the caller. */
        const bool asks = left_ms(patience) == 0;
        interrupted = asks && workers_interrupted(w);
        if (interrupted || left_ms(deadline) == 0) {
            given = interrupted ? ANSWER_INTERRUPTED : ANSWER_LATE;
            break;
        }
        (void)host_wait_messages(w->event, w->processes, awaited, consumer_count(w),
                                 left_ms(asks ? deadline : patience), &signals);
    }
    host_relay_end(w->event);
    return given;
}

/* "chip worker 1 (pid 4711)" */
static const char *name_consumer(const pypto_worker *w, int32_t consumer, char *text, size_t bytes)
{
    const bool is_chip = consumer < w->device_count;
    const char *kind = is_chip ? "chip worker" : "SubWorker";
    const int32_t number = is_chip ? consumer : consumer - w->device_count;
    if (w->seg.transport->one_process)
        (void)snprintf(text, bytes, "%s %d", kind, number);
    else
        (void)snprintf(text, bytes, "%s %d (pid %lld)", kind, number,
                       (long long)w->processes[consumer].pid);
    return text;
}

/* Whether a program is likely to end before it can say why: then that is put into words. */
static bool has_small_stack(char *text, size_t bytes)
{
    const int64_t now = os_limit("stack");
    if (now < 0 || now >= SMALL_STACK_BYTES)
        return false;
    char limit[OS_LIMIT_TEXT];
    (void)snprintf(text, bytes, "raise %s", os_limit_text("stack", limit, sizeof limit));
    return true;
}

static pypto_status no_good(pypto_worker *w, int32_t consumer, answer given, request asked,
                            const channel_message *message)
{
    const char *during = requests[asked];
    char name[64], how[64] = "unknown status", text[OS_LIMIT_TEXT + 16];
    (void)name_consumer(w, consumer, name, sizeof name);
    switch (given) {
    case ANSWER_BAD:
        return diag_status(DIAG_WORKER_START, NULL, "%s failed during %s: %s", name, during,
                           ((const answer_message *)(const void *)message->payload)->text);
    case ANSWER_LATE:
        return diag_status(
            DIAG_WORKER_START,
            "raise startup_timeout_s, or look at what keeps it from starting: gdb -p, "
            "the load of the machine",
            "%s did not become ready within %gs", name, (double)w->startup_timeout_ns / 1e9);
    case ANSWER_INTERRUPTED:
        return diag_status(DIAG_CANCELLED, NULL, "interrupted while %s was waited for during %s",
                           name, during);
    default: break;
    }
    if (!w->seg.transport->one_process) {
        process_kill(&w->processes[consumer]);
        process_describe_exit(&w->processes[consumer], how, sizeof how);
    }
    if (asked == ASKED_TO_START)
        return diag_status(DIAG_WORKER_START, has_small_stack(text, sizeof text) ? text : NULL,
                           "%s exited during %s before signalling ready (%s)", name, during, how);
    return diag_status(DIAG_WORKER_DIED, NULL, "%s died during %s, %s", name, during, how);
}

pypto_status answers_missing(pypto_worker *w, int32_t consumer, request asked)
{
    return no_good(w, consumer, ANSWER_NONE, asked, NULL);
}

pypto_status answers_await(pypto_worker *w, int32_t first, int32_t count, int64_t deadline,
                           request asked)
{
    channel_message *message = alloc_zeroed(1, (int64_t)sizeof *message);
    if (message == NULL)
        return diag_no_memory();
    bool awaited[MAX_CONSUMERS] = {false};
    memset(&awaited[first], true, (size_t)count * sizeof *awaited);
    const int64_t patience = deadline == CALL_FOREVER ? os_now_ns() + PATIENCE_NS : 0;
    pypto_status status = STATUS_OK;
    for (int32_t left = count; status_ok(status) && left > 0; --left) {
        int32_t consumer;
        const answer given = await_answer(w, awaited, deadline, patience, message, &consumer);
        if (given != ANSWER_GOOD)
            status = no_good(w, consumer, given, asked, message);
    }
    alloc_free(message);
    return status;
}

bool answers_agree(pypto_worker *w, int32_t count)
{
    channel_message *message = alloc_zeroed(1, (int64_t)sizeof *message);
    bool awaited[MAX_CONSUMERS] = {false};
    memset(awaited, true, (size_t)count * sizeof *awaited);
    const int64_t patience = os_now_ns() + PATIENCE_NS;
    bool agree = message != NULL;
    for (int32_t left = count; message != NULL && left > 0; --left) {
        int32_t rank;
        const answer given = await_answer(w, awaited, CALL_FOREVER, patience, message, &rank);
        agree = agree && given == ANSWER_GOOD;
        if (given != ANSWER_INTERRUPTED)
            continue;
        workers_kill(w); /* what is still to come would be taken for the answer to something else */
        break;
    }
    alloc_free(message);
    return agree;
}

/* ---- all of it ---- */

static pypto_status greet_rank(pypto_worker *w, int32_t rank)
{
    const hello_message hello = {.version = PROTOCOL_VERSION,
                                 .rank = rank,
                                 .one_process = w->seg.transport->one_process,
                                 .host_segment = w->seg.transport->one_process ? &w->seg : NULL};
    const int fds[2] = {w->seg.fd, w->event};
    if (channel_send(w->processes[rank].channel, MESSAGE_HELLO, &hello, sizeof hello, fds, 2) ==
        CHANNEL_OK)
        return STATUS_OK;
    return no_good(w, rank, ANSWER_NONE, ASKED_TO_START, NULL);
}

typedef struct starting {
    pypto_worker *w;
    const char *title;
} starting;

static pypto_status start_all(arena *a, void *context)
{
    const starting *all = context;
    pypto_worker *w = all->w;
    const int64_t deadline = os_now_ns() + w->startup_timeout_ns;
    const char *program = NULL;
    pypto_status status =
        w->start == PYPTO_START_EXEC ? find_worker_program(a, &program) : STATUS_OK;
    for (int32_t rank = 0; status_ok(status) && rank < w->device_count; ++rank)
        status = start_rank(w, rank, program, all->title);
    for (int32_t rank = 0; status_ok(status) && rank < w->device_count; ++rank)
        status = greet_rank(w, rank);
    if (status_ok(status))
        status = answers_await(w, 0, w->device_count, deadline, ASKED_TO_START);
    return status;
}

pypto_status start_ranks(pypto_worker *w, const char *title)
{
    starting all = {w, title};
    pypto_status status = arena_run(start_all, &all);
    if (!status_ok(status))
        workers_kill(w);
    return status;
}
