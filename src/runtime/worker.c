/* A worker from its first instruction to its last: pypto_worker_main() and its threads.
 *
 * The rank's thread runs rank_loop(). A second, the control thread, sleeps on the channel and the
 * parent's pidfd: it loads programs (dlopen can take its time and takes locks that the rank's
 * thread must not wait for), and when the channel closes it ends the rank, or the whole process if
 * the parent is gone: a kernel that computes for ever must not outlive its script. */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/os.h"
#include "base/settings.h"
#include "process/channel.h"
#include "process/parent.h"
#include "runtime/protocol.h"
#include "runtime/rank.h"

#include <pypto/worker.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the control thread, which loads objects. With the usual stack, those whose `ulimit -s` is small would have too little,
 * and those whose is large no address space for it. */
#define CONTROL_STACK_BYTES (1024 * 1024)

/* The channel is waited for this long at start; a host that is alive sends at once. */
#define HELLO_TIMEOUT_MS 60000

typedef struct worker {
    rank rank;
    int channel;
    channel_message *
        message; /* what was received last; first of the rank's thread, then of the control thread */
    int parent;  /* pidfd, or -1 */
    bool one_process;
    bool borrows_event;           /* a SubWorker that is a thread of the host */
    void *objects[RANK_PROGRAMS]; /* dlopen handles */
} worker;

static void answer(worker *w, const char *error)
{
    answer_message message = {.ok = error == NULL};
    if (error != NULL)
        snprintf(message.text, sizeof message.text, "%s", error);
    channel_send(w->channel, MESSAGE_ANSWER, &message, sizeof message, NULL, 0);
}

/* A path by which to load the object behind a descriptor. The loader takes an object that it has under
 * the same name for the same object, and a debugger opens it by that name.
 *
 * So it is the file's own path if that still leads to it: the cache names files by their contents.
 * Otherwise it leads through the descriptor, whose numbers come again: the id is written into it in
 * binary, with "//" for 0 and "/." for 1, which mean nothing to the file system. */
static void object_path(char *path, int64_t bytes, int32_t id, int fd)
{
    if (os_path_of(fd, path, bytes))
        return;
    char bits[2 * 32 + 1] = "";
    for (int32_t i = 0; i < 13; ++i)
        memcpy(&bits[2 * i], (id >> i & 1) != 0 ? "/." : "//", 3);
    snprintf(path, (size_t)bytes, "/proc/%d%s/fd/%d", os_process_id(), bits, fd);
}

/* Opens the shared object behind a descriptor; closes the descriptor. */
static const pld_program *open_object(worker *w, int32_t id, int fd, const char **error)
{
    char path[4096];
    object_path(path, sizeof path, id, fd);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const pld_program *table = object == NULL ? NULL : dlsym(object, PLD_PROGRAM_SYMBOL);
    os_close(&fd);
    if (table == NULL) {
        *error = dlerror();
        return NULL;
    }
    w->objects[id] = object;
    return table;
}

static void load_program(worker *w, const channel_message *message)
{
    program_message wanted;
    memcpy(&wanted, message->payload, sizeof wanted);
    const char *error = "a program message is malformed";
    const pld_program *table = NULL;
    if (message->bytes == sizeof wanted && wanted.id >= 0 && wanted.id < RANK_PROGRAMS) {
        if (wanted.table != NULL)
            table = wanted.table;
        else if (message->fd_count == 1)
            table = open_object(w, wanted.id, message->fds[0], &error);
    }
    if (table != NULL && (table->abi != PLD_ABI || table->size != sizeof(pld_program))) {
        error = "the program was compiled for another version of pypto";
        table = NULL;
    }
    if (table != NULL)
        atomic_store_explicit(&w->rank.programs[wanted.id], table, memory_order_release);
    answer(w, table != NULL ? NULL : error);
}

static bool files_hold(const set_header *set, const attach_message *part)
{
    return part->bytes > 0 && part->offset >= set->files_offset &&
           part->bytes <= set->files_bytes &&
           part->offset - set->files_offset <= set->files_bytes - part->bytes;
}

static void attach_file(worker *w, channel_message *message)
{
    attach_message part;
    memcpy(&part, message->payload, sizeof part);
    const segment *seg = &w->rank.s.seg;
    const bool mapped =
        message->bytes == sizeof part && message->fd_count == 1 && files_hold(seg->set, &part) &&
        segment_map_file(seg, part.offset, part.bytes, message->fds[0], part.writable != 0);
    if (message->fd_count == 1)
        os_close(&message->fds[0]);
    answer(w, mapped ? NULL : "the file cannot be mapped");
}

static void detach_file(worker *w, const channel_message *message)
{
    attach_message part;
    memcpy(&part, message->payload, sizeof part);
    if (message->bytes == sizeof part && files_hold(w->rank.s.seg.set, &part))
        segment_unmap_file(&w->rank.s.seg, part.offset, part.bytes);
}

static void *control_thread(void *argument)
{
    worker *w = argument;
    channel_message *message = w->message;
    answer(w, NULL); /* the worker has started */
    while (parent_wait_message(w->parent, w->channel)) {
        if (channel_receive(w->channel, -1, message) != CHANNEL_OK)
            break;
        if (message->type == MESSAGE_PROGRAM)
            load_program(w, message);
        else if (message->type == MESSAGE_ATTACH)
            attach_file(w, message);
        else if (message->type == MESSAGE_DETACH)
            detach_file(w, message);
    }
    /* In a process of its own the worker has nothing to bring home; ending here also ends a kernel
     * that never returns. As a thread it can only ask. */
    if (!w->one_process) {
        (void)sub_has_lost_host(&w->rank);
        _Exit(0);
    }
    rank_end(&w->rank);
    return NULL;
}

/* Begins a rank in the segment that HELLO brings, whose descriptors it takes over. */
static pypto_status begin_rank(worker *w, const hello_message *hello, int segment_fd, int event)
{
    const transport *t = hello->one_process != 0 ? &transport_threads : &transport_shm;
    segment seg;
    pypto_status status =
        hello->version == PROTOCOL_VERSION
            ? t->attach(segment_fd, hello->host_segment, &seg)
            : diag_status(DIAG_WORKER_START, NULL, "host and worker are of different versions");
    if (!status_ok(status)) {
        os_close(&segment_fd);
        os_close(&event);
        return status;
    }
    status = rank_init(&w->rank, seg, hello->rank, event);
    if (!status_ok(status)) {
        t->detach(&seg);
        os_close(&event);
    }
    return status;
}

static pypto_status greet(worker *w)
{
    channel_message *message = w->message;
    hello_message hello;
    if (channel_receive(w->channel, HELLO_TIMEOUT_MS, message) == CHANNEL_OK &&
        message->type == MESSAGE_HELLO && message->bytes == sizeof hello &&
        message->fd_count == 2) {
        memcpy(&hello, message->payload, sizeof hello);
        return begin_rank(w, &hello, message->fds[0], message->fds[1]);
    }
    for (int32_t i = 0; i < message->fd_count; ++i)
        os_close(&message->fds[i]);
    return diag_status(DIAG_WORKER_START, NULL, "the host sent no greeting");
}

static void release_objects(worker *w)
{
    for (int32_t i = 0; i < RANK_PROGRAMS; ++i) {
        if (w->objects[i] != NULL)
            dlclose(w->objects[i]);
    }
}

/* PYPTO_GDB names this rank. */
static bool is_debugged(int32_t number)
{
    return setting_is_set(SETTING_GDB) && setting_int(SETTING_GDB) == number;
}

/* Begins with what greet() or prepare_sub() came to. All answers but that of a start that fails come from the control
 * thread. */
static int serve(worker *w, pypto_status status)
{
    const bool prepared = status_ok(status);
    pthread_t control;
    if (prepared) {
        w->rank.debugged = !w->rank.s.uncounted && is_debugged(w->rank.s.rank);
        const int error = os_start_thread(&control, CONTROL_STACK_BYTES, control_thread, w);
        if (error != 0)
            status = diag_system(error, NULL, "start a thread");
    }
    const bool started = status_ok(status);
    if (started) {
        rank_loop(&w->rank);
        pthread_join(control, NULL);
    } else {
        char *text = pypto_status_text(&status);
        answer(w, text != NULL ? text : "memory is exhausted");
        free(text);
        pypto_status_clear(&status);
    }
    if (!prepared)
        return 1;
    release_objects(w);
    int host_event = w->rank.s.host_event;
    segment seg = w->rank.s.seg;
    rank_destroy(&w->rank);
    seg.transport->detach(&seg);
    if (!w->borrows_event)
        os_close(&host_event);
    return started ? 0 : 1;
}

static pypto_status prepare_sub(worker *w, const sub_start *start)
{
    pypto_status status = rank_init(&w->rank, start->seg, start->number, start->host_event);
    w->rank.runner = start->runner;
    w->borrows_event = w->one_process;
    w->rank.event = os_file_of(start->host_event);
    for (int32_t id = 0; status_ok(status) && id < start->program_count; ++id)
        atomic_store_explicit(&w->rank.programs[id], start->programs[id], memory_order_release);
    return status;
}

/* `sub` is NULL for a rank. */
static int run_worker(int channel, bool one_process, const sub_start *sub)
{
    worker *w = alloc_zeroed(1, (int64_t)sizeof *w);
    channel_message *message = alloc_zeroed(1, (int64_t)sizeof *message);
    if (w == NULL || message == NULL) {
        alloc_free(w);
        alloc_free(message);
        os_close(&channel); /* which tells the host */
        return 1;
    }
    w->channel = channel;
    w->message = message;
    w->one_process = one_process;
    w->parent = -1;
    bool orphaned = false;
    if (!one_process)
        w->parent = parent_open(&orphaned);
    int result = orphaned ? 1 : serve(w, sub != NULL ? prepare_sub(w, sub) : greet(w));
    os_close(&w->parent);
    os_close(&w->channel);
    alloc_free(w->message);
    alloc_free(w);
    return result;
}

int pypto_worker_main(int control_fd)
{
    parent_prepare_signals();
    return run_worker(control_fd, false, NULL);
}

int worker_serve_thread(int channel)
{
    return run_worker(channel, true, NULL);
}

int worker_serve_sub(const sub_start *start)
{
    return run_worker(start->channel, start->seg.transport->one_process, start);
}
