/* A worker set that Python holds, and the calls of it in flight. */
#ifndef MODULE_WORKER_SET_H
#define MODULE_WORKER_SET_H

#include "program.h"

/* Shared by a Worker and its Runs, counted by `references`, which the GIL protects, as all fields.
 *
 * `lock` is held around each use of `worker`, by one thread at a time: so nobody is inside when it is closed, a wait for
 * the turn has a time limit, and Ctrl-C ends it, which a mutex of the library could not offer. */
typedef struct worker_set {
    Py_ssize_t references;
    core_state *state;
    pypto_worker *worker; /* NULL once it is closed */
    int32_t ranks;
    bool records; /* the library has been told to record calls */
    PyThread_type_lock lock;
    unsigned long holder; /* thread that has the lock; 0: none */
    int64_t process;      /* that made it: a forked child may not use it */
    PyObject
        *in_flight; /* list of the Runs that are not over, oldest first: their tensors must live */
} worker_set;

typedef struct run_object {
    PyObject_HEAD worker_set *set; /* a reference */
    pypto_run *handle;             /* NULL once it is over */
    call_arguments arguments;      /* held until it is over */
    PyObject *error;               /* exception that it ended with, told to whoever asks; or NULL */
} run_object;

/* ---- worker.c ---- */

worker_set *set_retain(worker_set *set);
void set_release(worker_set *set);
/* Takes the lock within `timeout_us` (below 0: for ever; 0: only if it is free). *taken is false when the time came
 * first. `operation` is what errors call the use: closed sets, those of another process, and uses by a signal handler
 * that has interrupted a use by its own thread, are refused. */
bool set_lock(worker_set *set, const char *operation, int64_t timeout_us, bool *taken);
void set_unlock(worker_set *set);

/* ---- runs.c ---- */

/* A Run of a call that has been submitted; takes over *arguments. The lock is held. */
PyObject *run_create(worker_set *set, pypto_run *handle, call_arguments *arguments);
/* Waits for all. False with the exception of a signal handler, which has cancelled those that were not over. */
bool runs_finish_all(worker_set *set);
/* Ends those that nobody needs to wait for any more, the lock being held. */
void runs_settle(worker_set *set);

#endif
