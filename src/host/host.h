/* The host side of a worker set: what the files of this folder share.
 *
 *   program.c   loaded programs          workers.c   start, end, programs of a set
 *   check.c     arguments against the    staging.c   tensors that ranks cannot see in place
 *               host function            windows.c   the symmetric heap
 *   host_api.c  what a host function     call.c      host function, waiting, failing
 *               calls                    report.c    failures in words
 *   host_tensors.c  its views            order.c     which dispatch comes before which
 *   pool.c      one-shot calls           deadlock.c  whether, and why
 *   run.c       calls in flight          lint.c      signals that work by luck
 *   start.c     the start of ranks
 *   persistent.c  windows that stay      resident.c  memory that stays
 *   records.c   records of calls
 *   attach.c    tensors in place         shared.c    memory for them
 *   sub_workers.c  SubWorkers: start, death, end
 *   turns.c     threads                  ahead.c     host functions that are fast
 *
 * Everything below is touched under the set's `lock` only, which turns.c takes. */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include "base/diag.h"
#include "base/os.h"
#include "collective/channel.h"
#include "host/check.h"
#include "process/process.h"
#include "runtime/args.h"
#include "runtime/overlap.h"
#include "runtime/protocol.h"
#include "runtime/queue.h"
#include "sched/fiber.h"

#include <pypto/worker.h>

#include <pthread.h>

struct pypto_program {
    _Atomic int64_t references;
    uint64_t serial; /* programs loaded before it, and 1 */
    const pld_program *table;
    void *object; /* dlopen handle; NULL for a table of this process */
    char *path;   /* of the shared object, opened anew for each set of workers; NULL for a table */
};

/* Ranges of the heap that ranks are clearing after a call. */
typedef struct clearing {
    heap_block *ranges;
    int32_t count;
    uint64_t *sequences; /* per device: number of its CLEAR record, 0: none */
    struct clearing *next;
} clearing;

/* A window buffer of a call. */
typedef struct host_window {
    bool allocated; /* in this call */
    bool kept;      /* by an earlier one: the block is there */
    int64_t offset; /* in every slice */
    int64_t bytes;  /* logical */
    int64_t block;  /* bytes taken: the channels of collectives are behind the window */
    uint64_t devices;
    pld_window view; /* what host-side views point to: base is on device 0 */
} host_window;

/* A file of the caller that host and ranks have mapped (attach.c). */
typedef struct attachment {
    uint64_t device; /* of the file */
    uint64_t inode;
    int fd; /* ours */
    bool writable;
    int64_t offset; /* in the segment */
    int64_t bytes;
    int64_t address; /* where the caller last had some of it */
    int32_t users;   /* arguments of calls in flight */
    uint64_t used;   /* pypto_worker.file_clock of the latest call that did */
    struct attachment *next;
} attachment;

/* Where an argument is that needs no copy. */
typedef struct argument_place {
    attachment *file; /* NULL: nowhere */
    char *data;       /* of its first element, in the segment */
} argument_place;

/* A tensor argument: where it is staged and how it comes back; or that it is in resident memory. */
typedef struct staged {
    const pypto_tensor *tensor; /* NULL: a scalar */
    bool written;
    int64_t low;  /* first byte, as an address */
    int64_t high; /* one past the last; equal to low when empty */
    int64_t
        block; /* offset in the staging area of its block, which it may share; -1: it has none */
    int64_t block_bytes;
    bool owns_block;
    int64_t
        row_bytes; /* in resident memory: of each of its rows, or all when it has none; else 0 (resident.c) */
    pld_tensor view;     /* of the staged copy, in the host's mapping */
    pld_tensor declared; /* the same as the parameter declares it: what the program sees */
} staged;

/* What an earlier dispatch does to host memory. */
typedef struct host_access {
    pld_tensor view;
    byte_range range;
    int32_t device; /* a consumer */
    uint64_t call;
    uint64_t domains; /* of the windows that the dispatch passes, in its call */
    bool writes;
    bool
        superseded; /* a later dispatch of its call comes after it, and after which all come that would after it */
    uint64_t sequence;
} host_access;

/* The latest dispatch of a device that passes windows of a domain. */
typedef struct host_turn {
    uint64_t domain; /* its devices */
    int32_t device;
    uint64_t sequence;
    const pld_function *wrapper;
    int32_t line; /* of the host function */
} host_turn;

/* What the dispatches of a call so far mean for the next one (order.c). */
typedef struct host_order {
    host_access *accesses;
    int64_t access_count;
    int64_t access_capacity;
    host_turn *turns;
    int32_t turn_count;
    int64_t turn_capacity;
    /* Of the dispatch being posted: */
    uint64_t domains; /* whose windows it passes */
    queue_dep *deps;
    int32_t dep_count;
    int64_t dep_capacity;
} host_order;

/* The persistent windows of a program. */
typedef struct kept_windows {
    host_window *windows; /* NULL: it has not been called yet */
    int32_t count;
    bool dirty;
} kept_windows;

/* What is to be recorded, with a directory of its own. */
typedef struct kept_records {
    pypto_records what;
    char *directory;
} kept_records;
#define KNOWN_PRIVATE 16
#define KNOWN_COPIED 8

struct pypto_worker {
    pthread_mutex_t turn; /* these four: turns.c */
    pthread_mutex_t gate;
    pthread_mutex_t lock;
    _Atomic bool wanted;
    segment seg;
    int event;
    int32_t device_count;
    int32_t *device_ids;
    /* Consumers are numbered: devices first, then SubWorkers. Of each there are `processes`, `threads`, `writers`. */
    int32_t sub_count;  /* that there is room for */
    int32_t sub_wanted; /* that calls have */
    sub_runner sub_runner;
    void (*before_fork)(void *context);
    void (*after_fork)(void *context, bool child);
    uint64_t sub_serial; /* of the latest program when the first SubWorker that lives was forked */
    bool forks_sub;      /* at the moment */
    bool lost_sub; /* one has died: `outstanding` may be too high by what it was about to count */
    pypto_start start;
    process *processes; /* threads: only `channel` is used */
    pthread_t *threads;
    int32_t thread_count; /* of devices */
    queue_memory queues;
    queue_writer *writers;
    heap_area staging;
    int64_t staging_reserved;
    heap_area heap;
    int64_t *slice_reserved; /* per device */
    uint64_t *posted_before; /* per device: its records when the latest call began */
    clearing *clearings;
    uint64_t call;   /* number of the latest call */
    pypto_run *runs; /* in flight, oldest first */
    int32_t run_count;
    host_order order; /* of the dispatches in flight */
    pypto_persistence persistent;
    kept_windows *kept; /* by program id; NULL unless persistent */
    int64_t domain_count;
    struct resident *residents; /* sorted by offset */
    int64_t resident_count;
    int64_t resident_capacity;
    attachment *files;
    int32_t file_count;
    heap_area files_area;
    uint64_t file_clock;
    int maps; /* os_maps_open(); -1: not yet */
    bool maps_quick;
    heap_block known_private[KNOWN_PRIVATE]; /* addresses and bytes */
    uint32_t next_private;
    os_mapping known_copied[KNOWN_COPIED]; /* files that cannot be attached */
    uint32_t next_copied;
    bool shared_only;
    int64_t startup_timeout_ns;
    int64_t copied_bytes;
    arg_list placed;          /* the arguments of a dispatch, where they lie */
    fiber *fiber;             /* for host functions */
    pypto_program **programs; /* known to the ranks, by id; references held */
    int32_t program_count;
    int64_t program_capacity;
    bool usable;
    bool foreign; /* inherited by a forked child: not ours to use */
    bool (*interrupted)(void *context);
    void *interrupt_context;
    bool one_shot;   /* made for single calls, each of them its only one at the time */
    pypto_lint lint; /* of calls submitted from now on */
    uint32_t lint_disabled;
    kept_records records;        /* the same */
    pypto_dispatch_times *times; /* of the latest call that recorded them */
    int32_t time_count;
    pypto_worker *next; /* in the list of live sets, and in the pool */
    pypto_worker *next_idle;
};

/* What is done for a host function on its caller's stack. */
typedef enum host_asks {
    HOST_ASKS_NOTHING,
    HOST_ASKS_FOR_CTRL_C, /* whether it is to end */
    HOST_ASKS_FOR_ROOM    /* that what it has posted is complete */
} host_asks;

struct pld_host {
    pypto_worker *w;
    const pld_program *table;
    const pld_function *function;
    int32_t program_id;
    uint64_t call;
    pypto_lint lint;
    uint32_t lint_disabled; /* PYPTO_LINT_BITs */
    const pypto_argument *arguments;
    int32_t count;
    argument_place *places;
    staged *staged;
    bool
        holds; /* resident memory is among the arguments: dispatches wait for the end of the host function */
    int64_t image_bytes; /* address space given to arguments whose rows are apart (resident.c) */
    pld_arg *args;
    host_window *windows;
    struct recording *recording; /* NULL: it is not recorded */
    uint64_t dispatched;         /* bit r: something was dispatched on rank r */
    heap_block *created;         /* tensors that the host function made, in the staging area */
    int32_t created_count;
    int64_t created_capacity;
    heap_block *ended; /* those of `created` that no later dispatch is given, oldest first */
    int32_t ended_count;
    int64_t ended_capacity;
    uint64_t
        last[MAX_CONSUMERS]; /* per consumer: its last record, when the host function has run */
    int32_t line;
    uint32_t polls;        /* of pld_host_poll() */
    int64_t asked_at;      /* when the caller was asked last whether it wants to be interrupted */
    host_asks asks;        /* why the host function is left; it goes on */
    int64_t ahead_records; /* how far it may be ahead of what is complete (ahead.c) */
    int64_t ahead_bytes;
    int64_t ended_bytes;
    fiber *main;
    fiber *fiber;
    pypto_status status; /* how the host function failed */
};

/* staging.c: stage_in fills host->staged and host->args; stage_out copies results back;
 * stage_release gives the blocks back (always call it). */
PYPTO_NODISCARD pypto_status stage_in(pld_host *host);
/* First byte that a tensor touches and one past the last, as addresses; equal when it is empty. False when they are none. */
bool tensor_range(const pypto_tensor *t, int64_t *low, int64_t *high);
/* Whether ranks see such bytes where they are. */
bool in_segment(const segment *seg, int64_t low, int64_t high);
void stage_out(pld_host *host);
void stage_release(pld_host *host);
/* attach.c: which arguments the ranks can use in place; `places` is zeroed before, and released after the call, also when
 * it has failed. */
PYPTO_NODISCARD pypto_status attach_find(pypto_worker *w, const pld_function *f,
                                         const pypto_argument *args, int32_t count,
                                         argument_place *places);
void attach_release(argument_place *places, int32_t count);
/* The file is gone: nothing of the set needs to keep it, if no call in flight uses it. */
void attach_forget(pypto_worker *w, uint64_t device, uint64_t inode);
/* Closes the descriptors only, in a forked child. */
void attach_disown(pypto_worker *w);
void attach_destroy(pypto_worker *w);

/* shared.c: the block of pypto_shared_alloc() that has all of these bytes, and its descriptor. */
bool shared_find(int64_t low, int64_t high, os_mapping *mapping, int *fd);

/* A block of the staging area: its offset there. */
PYPTO_NODISCARD pypto_status stage_take(pypto_worker *w, int64_t bytes, const char *what,
                                        int64_t *offset);
/* Whether the call reads or writes memory of the caller there, now or when it ends; `writing` asks whether it
 * may be written meanwhile, `in_place` whether by dispatches, which come behind those that use the same memory in place. */
bool stage_meets(const pld_host *host, int64_t low, int64_t high, bool writing, bool in_place);
/* A block of the staging area that stage_release() gives back; not zeroed. */
PYPTO_NODISCARD pypto_status stage_create(pld_host *host, int64_t bytes, char **block);
/* No later dispatch is given the block: another stage_create() of the call may have it when those that are have ended.
 * False: no memory. */
PYPTO_NODISCARD bool stage_end(pld_host *host, const char *block);

/* resident.c */
/* Where a tensor with rows of its own seems to lie, for views of it: fills low, high and row_bytes. */
PYPTO_NODISCARD pypto_status resident_image(pld_host *host, int32_t index);
/* An argument that lies in the segment: passed as it is if it is in resident memory. */
PYPTO_NODISCARD pypto_status resident_place(pld_host *host, int32_t index);
/* The arguments of a dispatch with views of resident memory where it lies; leaves the host function when that is on
 * another rank. */
const pld_arg *resident_arguments(pld_host *host, int32_t device, const pld_arg *args,
                                  int32_t count);

/* host_api.c: leave the host function for good, as a failing call of it does. */
void host_leave(pld_host *host, pypto_status status) PYPTO_NORETURN;
void host_error(pld_host *host, diag_code code, const char *hint, const char *format, ...)
    PYPTO_NORETURN PYPTO_PRINTF(4, 5);

/* host_api.c: leaves the host function until that is done; for good when it fails. */
void host_ask(pld_host *host, host_asks asks);

/* ahead.c: wait where the host function is too far ahead of its devices: with dispatches, and with tensors that
 * have ended and are in use. True: something may have become idle. */
void ahead_of_dispatches(pld_host *host);
bool ahead_of_tensors(pld_host *host);
/* Where memory is short: false when waiting does not help. */
bool ahead_of_memory(pld_host *host);
/* What these wait for, on the caller's stack: until all that is posted is complete; or a call in flight has failed, or nothing can go on without more. */
PYPTO_NODISCARD pypto_status ahead_wait(pld_host *host);

/* order.c: the dependencies of the dispatch about to be posted, into host->order.deps; and, once it has
 * a number, what it means for later ones. False: no memory. */
PYPTO_NODISCARD bool order_collect(pld_host *host, int32_t device, const pld_function *wrapper,
                                   const pld_arg *args, int32_t count);
PYPTO_NODISCARD bool order_record(pld_host *host, int32_t device, uint64_t sequence,
                                  const pld_function *wrapper, const pld_arg *args, int32_t count);
/* Whether a dispatch that is not complete touches host memory between these addresses. */
bool order_uses(const pld_host *host, const char *low, const char *high);
/* Behind the host function: leaves it with an error when a domain was dispatched on some of its devices only. */
void order_check_domains(pld_host *host);
void order_destroy(host_order *order);
/* Nothing is in flight any more. */
void order_forget(host_order *order);

/* windows.c */
PYPTO_NODISCARD pypto_status window_take(pypto_worker *w, int64_t bytes, uint64_t devices,
                                         const char *name, int64_t *offset);
/* Has the ranks clear the call's windows; they are free again when all have. */
PYPTO_NODISCARD pypto_status windows_release(pld_host *host);
void windows_destroy(pypto_worker *w);
/* Has a device clear its slices of the windows; *sequence is the number of its record, if it has any. */
PYPTO_NODISCARD pypto_status windows_post_clear(pypto_worker *w, const host_window *windows,
                                                int32_t count, int32_t device, uint64_t *sequence);

/* persistent.c: the windows of earlier calls for this one, and those of this one for later ones. */
PYPTO_NODISCARD pypto_status persistent_begin(pld_host *host);
PYPTO_NODISCARD pypto_status persistent_end(pld_host *host, bool failed);
void persistent_destroy(pypto_worker *w);

/* program.c: the serial number of the latest. */
uint64_t programs_loaded(void);

/* start.c */
PYPTO_NODISCARD pypto_status workers_check_options(const pypto_worker_options *options);
/* Starts all ranks and waits until they are ready; if one fails, none is left. */
PYPTO_NODISCARD pypto_status start_ranks(pypto_worker *w, const char *title);
typedef enum request { ASKED_TO_START, ASKED_TO_LOAD, ASKED_TO_MAP } request;
/* Waits for an answer of each of so many consumers to what they were asked. Those that it has not had are still to come
 * when it fails: with WORKER_DIED if one that had been started is gone. */
PYPTO_NODISCARD pypto_status answers_await(pypto_worker *w, int32_t first, int32_t count,
                                           int64_t deadline, request asked);
/* The failure of one that could not even be asked. */
PYPTO_NODISCARD pypto_status answers_missing(pypto_worker *w, int32_t consumer, request asked);
/* Takes the answers of the first `count` ranks; true when all are good. Ctrl-C costs the set. */
bool answers_agree(pypto_worker *w, int32_t count);

/* workers.c */
/* Whether the caller wants to be interrupted. */
bool workers_interrupted(const pypto_worker *w);
/* Whether it is this process's and has all its workers. */
PYPTO_NODISCARD pypto_status workers_check_usable(const pypto_worker *w);
PYPTO_NODISCARD pypto_status workers_load(pypto_worker *w, pypto_program *program, int32_t *id);
/* Maps a file over part of the segment on the host and all ranks; if that cannot be for writing, for reading. False
 * when it cannot be. */
bool workers_attach(pypto_worker *w, int64_t offset, int64_t bytes, int fd, bool *writable);
void workers_detach(pypto_worker *w, int64_t offset, int64_t bytes);
/* attach_forget() for every set that is not in use just now. */
void workers_forget_file(uint64_t device, uint64_t inode);
/* Kills what is left of a set that cannot go on. */
void workers_kill(pypto_worker *w);

/* sub_workers.c */
static inline int32_t consumer_count(const pypto_worker *w)
{
    return w->device_count + w->sub_count;
}
static inline bool sub_lives(const pypto_worker *w, int32_t consumer)
{
    return w->processes[consumer].channel >= 0;
}
/* Takes over what the options say of them. */
void subs_configure(pypto_worker *w, const pypto_worker_options *options);
/* Starts those that are missing. */
PYPTO_NODISCARD pypto_status subs_start(pypto_worker *w);
/* Tells them of a program, where it calls some. */
PYPTO_NODISCARD pypto_status subs_load(pypto_worker *w, const pypto_program *program, int32_t id);
bool program_calls_subs(const pld_program *table);
/* Those that live map a file as the ranks do; one forked later finds it. False when one cannot. */
bool subs_attach(pypto_worker *w, const attach_message *message, int fd);
void subs_detach(pypto_worker *w, const attach_message *message);
/* Which one is to run a function next; -1: there is none. */
int32_t subs_choose(const pld_host *host, const pld_function *function);
/* Whether one of them is dead that has not done its part of a call. */
bool subs_have_failed(const pld_host *host);
/* Settles what dead ones have left: fails the calls that they have not done their part of, and has the set go on. */
void subs_settle_dead(pypto_worker *w);
/* Kills those that run a function of the call, and settles them. */
void subs_kill(pypto_worker *w, uint64_t call);
/* Ends all. */
void subs_end(pypto_worker *w);

/* call.c */
/* Runs the host function, which posts its dispatches. */
PYPTO_NODISCARD pypto_status call_host_function(pld_host *host);
/* Waits until the call's dispatches are complete, or it fails. *over is false when `deadline`, a time of
 * os_now_ns(), came first, or another thread wants the set, if `lends`. */
#define CALL_FOREVER INT64_MAX
/* Milliseconds until then, for poll(): rounded up, -1 for ever. */
int32_t left_ms(int64_t deadline);
PYPTO_NODISCARD pypto_status call_wait(pld_host *host, int64_t deadline, bool lends, bool *over);
/* Waits for news that was announced for, and ends the announcement. Fails when a process has died, or at Ctrl-C. */
PYPTO_NODISCARD pypto_status call_take_news(pypto_worker *w, int32_t timeout_ms, uint32_t *signals);
/* For which records the ranks are to ring, see host_waits. */
uint32_t call_what_to_wait_for(const pypto_worker *w);
/* Whether all dispatches of a call are complete. What is posted on a device before the last of them is, too. */
bool call_all_complete(const pld_host *host);
/* What a call that Ctrl-C has ended fails with. */
pypto_status call_cancelled(void);
/* Whether call_wait() would return at once. */
bool call_is_over(const pld_host *host);
/* Ends a call that has failed: says what every rank was doing, and closes the set unless all ranks are
 * ready for the next call. */
void call_give_up(pld_host *host, pypto_status *status);

/* run.c: ends all that is in flight. */
void runs_finish(pypto_worker *w);
/* run.c: the calls in flight, oldest first: the first one, and the next. */
pld_host *runs_first(const pypto_worker *w);
pld_host *runs_next(const pld_host *host);

/* turns.c: the set's lock for a use that does not wait for calls, and around one that does. */
void turns_init(pypto_worker *w);
void turns_destroy(pypto_worker *w);
void turns_enter(pypto_worker *w);
void turns_leave(pypto_worker *w);
void turns_enter_to_wait(pypto_worker *w);
void turns_leave_waiting(pypto_worker *w);
/* In a wait: whether somebody wants the lock; lets them have it. The state of the set may have changed afterwards. */
bool turns_wanted(const pypto_worker *w);
void turns_lend(pypto_worker *w);

/* deadlock.c, report.c: each describes the state of the set as it is now. */
pypto_status report_failure(pypto_worker *w, uint64_t call);
pypto_status report_deaths(pypto_worker *w);
/* A success when there is no deadlock. */
PYPTO_NODISCARD pypto_status report_deadlock(pypto_worker *w, uint64_t call);
void report_states(pypto_worker *w, uint64_t call, pypto_status *status);
/* deadlock.c: whether nothing can go on by itself. If something can, it is woken. */
bool is_deadlock(pypto_worker *w);

/* records.c: whether calls submitted now are to be recorded. */
bool records_wanted(const pypto_worker *w);
void records_forget(kept_records *kept);
/* Before the host function of a call that is recorded; behind its end; and when nothing of it is left. */
PYPTO_NODISCARD pypto_status records_begin(pld_host *host);
void records_end(pld_host *host, pypto_status *status);
void records_release(pld_host *host);
/* Where a device notes, as an offset in the segment; 0: nowhere. */
int64_t records_log(const pld_host *host, int32_t device);

/* disagreement.c: that all ranks of a call that has ended well have called the same collectives, as far as they could not
 * find out themselves. */
PYPTO_NODISCARD pypto_status compare_channels(const pld_host *host);

/* lint.c: what a call that has ended well has done with its signals. */
void lint_call(pld_host *host, pypto_status *status);

#endif
