/* A worker set that Python holds, and the calls of it in flight. */
#ifndef MODULE_WORKER_SET_H
#define MODULE_WORKER_SET_H

#include "program.h"

typedef struct set_turn {
    PyThread_type_lock lock;
    unsigned long holder; /* thread that has it; 0: none */
} set_turn;

/* Shared by a Worker and its Runs, counted by `references`, which the GIL protects, as all fields.
 *
 * Uses of `worker` hold one of two locks, or both (`turn` first); so nobody is inside when it is closed. `turn` is held by the
 * one thread that waits for calls, `lock` by one that only has something to do, as to submit a call that needs not
 * wait. Waiting for a lock has a time limit, and Ctrl-C ends it, which a mutex of the library could not offer. */
typedef struct worker_set {
    Py_ssize_t references;
    core_state *state;
    pypto_worker *worker; /* NULL once it is closed */
    int32_t ranks;
    bool records;       /* the library has been told to record calls */
    sub_bindings *subs; /* NULL: none */
    set_turn lock;
    set_turn turn;
    int64_t process; /* that made it: a forked child may not use it */
    PyObject *
        in_flight; /* list of the Runs that are not over: their tensors must live. Shortened by who has the turn. */
} worker_set;

typedef struct run_object {
    PyObject_HEAD worker_set *set; /* a reference */
    pypto_run *handle;             /* NULL once it is over */
    call_arguments arguments;      /* held until it is over */
    unsigned long thread;          /* that has submitted it */
    PyObject *error;               /* exception that it ended with, told to whoever asks; or NULL */
} run_object;

/* A Python object of the class Worker. */
typedef struct worker_object {
    PyObject_HEAD worker_set *set; /* a reference */
} worker_object;

/* ---- worker_set.c ---- */

/* One without workers yet; NULL with an exception. */
worker_set *set_create(core_state *state);
worker_set *set_retain(worker_set *set);
void set_release(worker_set *set);
/* Whether this thread may begin a use now: otherwise an exception. */
bool set_may_use(const worker_set *set, const char *operation);
/* Takes one of the set's locks within `timeout_us` (below 0: for ever; 0: only if it is free). *taken is false when the time
 * came first. `operation` is what errors call the use: closed sets, those of another process, and uses by a signal
 * handler that has interrupted a use by its own thread, are refused. */
bool set_take(worker_set *set, set_turn *turn, const char *operation, int64_t timeout_us,
              bool *taken);
void set_give(set_turn *turn);
/* Ends all calls in flight as Ctrl-C does. The exception that is set stays. */
void set_cancel_calls(worker_set *set);
/* The turn, for as long as that takes. Ctrl-C meanwhile cancels what is in flight. */
bool set_take_turn(worker_set *set, const char *operation, int64_t timeout_us, bool *taken);
/* For a use that does not wait for calls. False with an exception. */
bool set_enter(worker_set *set, const char *operation);
void set_leave(worker_set *set);
/* For one before which all calls must be over: both locks. */
bool set_enter_alone(worker_set *set, const char *operation);
void set_leave_alone(worker_set *set);
/* None, or NULL with what a call that has ended failed with; under the lock. */
PyObject *call_result(pypto_status *status);

/* ---- runs.c ---- */

/* A Run of a call that has been submitted; takes over *arguments. A lock is held. */
PyObject *run_create(worker_set *set, pypto_run *handle, call_arguments *arguments);
/* With the turn: waits for all. False with the exception of a signal handler, which has cancelled those that were not over. */
bool runs_finish_all(worker_set *set);
/* With the turn: ends those that nobody needs to wait for any more. */
void runs_settle(worker_set *set);
/* Waits until it is over, `timeout_ns` at most (below 0: for ever). False with the exception that it ended with, or of
 * the wait. */
bool run_await(run_object *run, int64_t timeout_ns, bool *over);

/* ---- worker_memory.c: methods of Worker ---- */

PyObject *worker_alloc(PyObject *object, PyObject *args);
PyObject *worker_free(PyObject *object, PyObject *args);
PyObject *worker_copy(PyObject *object, PyObject *args);
PyObject *worker_fill(PyObject *object, PyObject *args);
PyObject *worker_committed(PyObject *object, PyObject *args);
PyObject *worker_reset_windows(PyObject *object, PyObject *unused);

#endif
