/* Running programs: worker sets, one worker per device, and calls on them.
 *
 *     pypto_program *program;   pypto_program_from_table(&table, &program)
 *     pypto_worker *worker;     pypto_worker_create(&options, &worker)
 *     pypto_worker_run(worker, program, args, nargs)     blocks until every rank is done
 *     pypto_worker_close(worker);  pypto_program_release(program)
 *
 * Every function that returns a pypto_status hands its diagnostics to the caller (status.h). */
#ifndef PYPTO_WORKER_H
#define PYPTO_WORKER_H

#include <pypto/program.h>
#include <pypto/records.h>
#include <pypto/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loaded program, reference counted. Thread-safe. */
typedef struct pypto_program pypto_program;

/* Wraps a table written in C. The table must outlive the program. Workers that run it must have
 * been started by fork or as threads after the table's code was loaded into this process. Fails
 * (VALUE) when the table has another layout version or is inconsistent. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_program_from_table(const pld_program *table,
                                                                pypto_program **program);

/* Opens a shared object that exports `pypto_program` (what the compiler makes). */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_program_open(const char *path,
                                                          pypto_program **program);

PYPTO_API const pld_program *pypto_program_table(const pypto_program *program);
PYPTO_API pypto_program *pypto_program_retain(pypto_program *program);

/* Gives up one reference. Accepts NULL. */
PYPTO_API void pypto_program_release(pypto_program *program);

/* One tensor argument of a call. The memory belongs to the caller and must stay in place during the
 * call. Strides count elements and may be 0 or negative for tensors that are only read. */
typedef struct pypto_tensor {
    void *data;
    pypto_dtype dtype;
    int32_t ndim;
    int64_t shape[PYPTO_MAX_DIMS];
    int64_t stride[PYPTO_MAX_DIMS];
    bool read_only; /* refused where the program writes */
    /* NULL; or one address for each index of the first dimension, at most PYPTO_MAX_RANKS: its rows lie there, each
     * packed, in resident memory of whatever rank (pypto_worker_alloc), and are distinct. `data` then means nothing,
     * and the strides are those of a packed tensor. A dispatch takes (a part of) one of them. */
    void *const *rows;
} pypto_tensor;

typedef struct pypto_argument {
    pld_arg_kind kind;
    pypto_tensor tensor;
    int64_t integer;
    double real;
} pypto_argument;

/* A set of workers, one per device id. Threads: any function may be called while others are in functions of the same set,
 * except pypto_worker_close(), which is the last. Threads that wait for calls take turns; a thread that does not have to
 * wait, as when it submits a call while one is in flight, does so while another one waits. A pypto_run belongs to one
 * thread at a time. */
typedef struct pypto_worker pypto_worker;

typedef enum pypto_start {
    PYPTO_START_EXEC,  /* processes running the installed pypto-worker: shared-object programs only
                        */
    PYPTO_START_FORK,  /* forked copies of this process: any program */
    PYPTO_START_THREAD /* threads of this process: any program; for debuggers and sanitizers */
} pypto_start;

/* What is done when a call ends well, but its program uses signals in a way that works by luck: a wait satisfied by
 * old arrivals, a cell that is set and added to, ... (`pypto explain PYPTO-W601` and the codes behind it). */
typedef enum pypto_lint {
    PYPTO_LINT_OFF,
    PYPTO_LINT_WARN, /* the call succeeds; its status has the findings as diagnostics, to be cleared */
    PYPTO_LINT_ERROR /* it fails with the first (LINT); outputs are there */
} pypto_lint;

/* The bit of PYPTO-W<number>, number from 601, in masks of findings that are not wanted. */
#define PYPTO_LINT_BIT(number) (UINT32_C(1) << ((number)-601))

/* Whether the windows of a program live on between its calls on one worker set. */
typedef enum pypto_persistence {
    PYPTO_PERSISTENT_OFF,   /* each call has windows of its own, which are zero */
    PYPTO_PERSISTENT_RESET, /* they stay where they are, and are zero when a call begins */
    PYPTO_PERSISTENT_KEEP   /* they stay, with what they hold */
} pypto_persistence;

typedef struct pypto_worker_options {
    size_t size;               /* sizeof(pypto_worker_options) */
    const int32_t *device_ids; /* distinct, >= 0; names in reports, no hardware */
    int32_t device_count;      /* 1 ... PYPTO_MAX_RANKS */
    pypto_start start;
    const char *title; /* shown in the workers' command lines; NULL: the program's name */
    /* Asked when a signal interrupts a waiting call; true cancels the call (INTERRUPTED). NULL:
     * never. */
    bool (*interrupted)(void *context);
    void *interrupt_context;
    pypto_lint lint;
    pypto_persistence persistent; /* calls of a set with persistent windows do not overlap */
    const pypto_records *records; /* of its calls, as pypto_worker_set_records(); NULL: none */
    bool shared_only;             /* tensors that would have to be copied are refused (TYPE) */
    int64_t startup_timeout_ns;   /* within which all workers have to be ready; 0: 300 seconds */
    /* SubWorkers: how many processes run functions of plane SUB, at most PYPTO_MAX_RANKS; 0: none can be called. They
     * are forked copies of this process whatever `start` says, threads with PYPTO_START_THREAD, made with the set
     * (pypto_call: at each call), and again at a call that finds one dead. A function always runs in the same one while that
     * is not busy and another one is. Programs that call them must have been loaded before the set is created. */
    int32_t sub_workers;
    /* Runs, in the SubWorker, functions that have no code of their own (pld_function.run_sub). */
    void (*run_sub)(void *context, const pld_function *function, pld_sub *sub, const pld_arg *args);
    /* Around each fork of a SubWorker, in the thread that forks; the second one in both processes. NULL: nothing. */
    void (*before_fork)(void *context);
    void (*after_fork)(void *context, bool child);
    void *sub_context;
    uint32_t lint_disabled; /* as pypto_worker_set_lint_disabled() */
} pypto_worker_options;

#define PYPTO_WORKER_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(pypto_worker_options), NULL, 0, PYPTO_START_FORK, NULL, NULL, NULL, PYPTO_LINT_OFF, \
            PYPTO_PERSISTENT_OFF, NULL, false, 0, 0, NULL, NULL, NULL, NULL, 0                     \
    }

/* Starts the workers and waits until each is ready. Fails (DEVICE) when one cannot start, ends meanwhile, or is not ready
 * in time, (INTERRUPTED) when `interrupted` says so; nothing is left then. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_worker_create(const pypto_worker_options *options,
                                                           pypto_worker **worker);

/* Calls the program's host function with one argument per parameter, runs what it dispatches,
 * copies outputs back and returns when every rank is done. On failure the first cause is reported
 * with the state of every rank; outputs then have unspecified content. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_worker_run(pypto_worker *worker,
                                                        pypto_program *program,
                                                        const pypto_argument *args, int32_t count);

/* A call that may still be in flight. */
typedef struct pypto_run pypto_run;

/* The same without waiting: checks and copies the arguments, runs the host function, and returns. Two calls can be in
 * flight; when there are, this waits for the older one first, whose failure then is told by its own run. It also waits
 * for one that writes memory of these arguments, or reads what this call writes. What a call
 * writes is in the caller's tensors, which must stay in place till then, when pypto_run_wait() or
 * pypto_run_done() says that it is over. Dispatches of a later call come after those of an earlier one that
 * touch the same memory. A failure before anything was dispatched, and one of the host function, is returned here,
 * and *run is NULL. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_worker_submit(pypto_worker *worker,
                                                           pypto_program *program,
                                                           const pypto_argument *args,
                                                           int32_t count, pypto_run **run);

/* The same if it would not have to wait for other calls; else success, and *run is NULL. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_worker_try_submit(pypto_worker *worker,
                                                               pypto_program *program,
                                                               const pypto_argument *args,
                                                               int32_t count, pypto_run **run);
/* Waits until pypto_worker_try_submit() would submit; other threads that submit may be first all the same. Fails as the
 * submission would. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_worker_make_way(pypto_worker *worker,
                                                             pypto_program *program,
                                                             const pypto_argument *args,
                                                             int32_t count);

/* Ends all calls in flight as Ctrl-C does. From any thread, also while another one waits for them. */
PYPTO_API void pypto_worker_cancel(pypto_worker *worker);

/* Waits for the end of a call, `timeout_ns` at most (below 0: for ever), and returns its status, which is told once; *over is
 * false when the time came first. A deadlock, a death and Ctrl-C (pypto_worker_options.interrupted), which cancels
 * all calls in flight of the set, end it. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_run_wait(pypto_run *run, int64_t timeout_ns,
                                                      bool *over);

/* Whether the call is over; never waits. */
PYPTO_API bool pypto_run_done(pypto_run *run);

/* Gives up the handle; the call goes on. Accepts NULL. */
PYPTO_API void pypto_run_release(pypto_run *run);

/* Makes all persistent windows of the set zero, also those that a failed call has left in an unknown state. Waits for
 * what is in flight. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_worker_reset_windows(pypto_worker *worker);

/* Loads a program into the ranks now; else its first call does. Waits for nothing but that. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_worker_load(pypto_worker *worker,
                                                         pypto_program *program);

/* Communication domains for which windows have been allocated so far. */
PYPTO_API int64_t pypto_worker_domain_count(const pypto_worker *worker);

/* A block of memory of a rank that stays until it is freed or the set is closed; its content is undefined. A tensor
 * argument that lies inside of it is passed to the program in place, which may dispatch it on that rank only: a call
 * that brings resident memory starts nothing before its host function has ended well. The caller reads and writes the
 * block as any memory while no call uses it. Fails (VALUE) for a rank that does not exist and sizes below 1, (MEMORY)
 * when there is none. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_worker_alloc(pypto_worker *worker, int32_t rank,
                                                          int64_t bytes, void **address);
/* Waits for what is in flight, then frees the block. Fails (VALUE) unless it is one of this rank. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_worker_free(pypto_worker *worker, int32_t rank,
                                                         void *address);
/* Bytes of such blocks that a rank has. */
PYPTO_API int64_t pypto_worker_committed(pypto_worker *worker, int32_t rank);

/* Memory for tensors that workers of this process use where it is, without a copy: a mapped memory file of its
 * own. All of it is zero. What is mapped otherwise is used in place, too, if it is a shared mapping whose file this
 * process has open; anything else is copied. Fails (MEMORY) when the machine has not that much left. Forked children
 * share it. Thread-safe. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_shared_alloc(int64_t bytes, void **address);
/* Gives it back; no call that uses it may be in flight. Other addresses, and NULL, are ignored. */
PYPTO_API void pypto_shared_free(void *address);

/* Bytes of arguments that have been copied for the workers or back so far. */
PYPTO_API int64_t pypto_worker_copied_bytes(pypto_worker *worker);

/* False once a failure has cost the set a worker: close it and create another. */
PYPTO_API bool pypto_worker_usable(const pypto_worker *worker);

/* What is done about signals that work by luck in calls submitted from now on. */
PYPTO_API void pypto_worker_set_lint(pypto_worker *worker, pypto_lint lint);
/* Which of its findings are not looked for in calls submitted from now on: PYPTO_LINT_BITs; 0 at first. */
PYPTO_API void pypto_worker_set_lint_disabled(pypto_worker *worker, uint32_t disabled);

/* What is recorded of calls submitted from now on; NULL: nothing. What is given is copied. Fails (VALUE) for what cannot
 * be recorded. A call fails (SYSTEM) when its records cannot be written; its outputs are there then. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_worker_set_records(pypto_worker *worker,
                                                                const pypto_records *records);

/* When the dispatches of the latest call ran that has recorded `times`, by rank and in the order of each; the count.
 * Valid until the next call that is recorded, or the end of the set. */
PYPTO_API int32_t pypto_worker_times(pypto_worker *worker, const pypto_dispatch_times **times);

/* Process id of the worker of a rank, or 0 (threads, unknown rank). */
PYPTO_API int64_t pypto_worker_pid(const pypto_worker *worker, int32_t rank);

/* Process id of a SubWorker, counted from 0; 0: a thread, or there is none at the moment. */
PYPTO_API int64_t pypto_worker_sub_pid(const pypto_worker *worker, int32_t index);

/* Waits for the calls in flight, ends the workers and releases everything. Accepts NULL. */
PYPTO_API void pypto_worker_close(pypto_worker *worker);

/* One-shot calls: as create, run and close, but idle worker sets are kept for the next call with
 * the same number of devices, at most two, until pypto_shutdown() or the end of the process. */
PYPTO_NODISCARD PYPTO_API pypto_status pypto_call(const pypto_worker_options *options,
                                                  pypto_program *program,
                                                  const pypto_argument *args, int32_t count);

/* Every call of this process that waits, of any set and in any thread, asks pypto_worker_options.interrupted now. */
PYPTO_API void pypto_interrupt(void);

/* Ends all idle worker sets. Safe to call at any time, from any thread. */
PYPTO_API void pypto_shutdown(void);

/* What a worker process does: serves dispatches until the control socket closes, then returns its
 * exit code. Called by the pypto-worker program. */
PYPTO_API int pypto_worker_main(int control_fd);

#ifdef __cplusplus
}
#endif
#endif
