/* A set of workers that Python holds: see worker_set.h. */
#include "worker_set.h"

#include "base/os.h"

worker_set *set_retain(worker_set *set)
{
    ++set->references;
    return set;
}

void set_release(worker_set *set)
{
    if (--set->references > 0)
        return;
    Py_XDECREF(set->in_flight);
    subs_release(set->subs);
    if (set->lock.lock != NULL)
        PyThread_free_lock(set->lock.lock);
    if (set->turn.lock != NULL)
        PyThread_free_lock(set->turn.lock);
    PyMem_Free(set);
}

worker_set *set_create(core_state *state)
{
    worker_set *set = PyMem_Calloc(1, sizeof *set);
    if (set == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    set->references = 1;
    set->state = state;
    set->process = os_process_id();
    set->lock.lock = PyThread_allocate_lock();
    set->turn.lock = PyThread_allocate_lock();
    set->in_flight = PyList_New(0);
    const bool locks = set->lock.lock != NULL && set->turn.lock != NULL;
    if (!locks)
        PyErr_NoMemory();
    if (locks && set->in_flight != NULL)
        return set;
    set_release(set);
    return NULL;
}

bool set_may_use(const worker_set *set, const char *operation)
{
    if (waiting_is_abandoned()) {
        PyErr_SetNone(PyExc_SystemExit);
        return false;
    }
    if (set->worker == NULL)
        return errors_refuse(DIAG_WORKER_CLOSED, "create another worker",
                             "%s() called after close()", operation);
    if (set->process != os_process_id())
        return errors_refuse(DIAG_WORKER_CLOSED, "create a worker in this process",
                             "%s(): this worker belongs to the process that forked this one",
                             operation);
    const unsigned long me = PyThread_get_thread_ident();
    if (set->lock.holder == me || set->turn.holder == me)
        return errors_refuse(
            DIAG_WORKER_CLOSED, "note the signal, and call when the handler is over",
            "%s() called by code that interrupts another use of this worker", operation);
    return true;
}

/* Waits for the lock; Ctrl-C ends the wait with an exception. */
static bool await_lock(PyThread_type_lock lock, int64_t timeout_us, bool *taken)
{
    const int64_t deadline = timeout_us < 0 ? 0 : os_now_ns() / 1000 + timeout_us;
    for (;;) {
        /* One that came before, while the library had this thread, does not interrupt the wait. */
        if (PyErr_CheckSignals() < 0)
            return false;
        int64_t left = timeout_us < 0 ? -1 : deadline - os_now_ns() / 1000;
        PyLockStatus answer;
        if (timeout_us >= 0 && left < 0)
            left = 0;
        Py_BEGIN_ALLOW_THREADS answer = PyThread_acquire_lock_timed(lock, left, 1);
        Py_END_ALLOW_THREADS *taken = answer == PY_LOCK_ACQUIRED;
        if (answer != PY_LOCK_INTR)
            return true;
    }
}

/* As set_take(), for a thread that may have the other lock. */
static bool take(worker_set *set, set_turn *turn, const char *operation, int64_t timeout_us,
                 bool *taken)
{
    *taken = PyThread_acquire_lock_timed(turn->lock, 0, 0) == PY_LOCK_ACQUIRED;
    if (!*taken && timeout_us != 0 && !await_lock(turn->lock, timeout_us, taken))
        return false;
    if (!*taken)
        return true;
    if (set->worker == NULL) { /* closed meanwhile */
        PyThread_release_lock(turn->lock);
        *taken = false;
        return set_may_use(set, operation);
    }
    turn->holder = PyThread_get_thread_ident();
    return true;
}

bool set_take(worker_set *set, set_turn *turn, const char *operation, int64_t timeout_us,
              bool *taken)
{
    *taken = false;
    return set_may_use(set, operation) && take(set, turn, operation, timeout_us, taken);
}

void set_give(set_turn *turn)
{
    turn->holder = 0;
    PyThread_release_lock(turn->lock);
}

void set_cancel_calls(worker_set *set)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    bool taken;
    if (take(set, &set->lock, "cancel", -1, &taken) && taken) {
        Py_BEGIN_ALLOW_THREADS pypto_worker_cancel(set->worker);
        Py_END_ALLOW_THREADS set_give(&set->lock);
    }
    PyErr_Clear(); /* a second signal, or closed: the first exception is the one to raise */
    PyErr_Restore(type, value, trace);
}

bool set_take_turn(worker_set *set, const char *operation, int64_t timeout_us, bool *taken)
{
    *taken = false;
    if (!set_may_use(set, operation))
        return false;
    if (take(set, &set->turn, operation, timeout_us, taken))
        return true;
    if (set->worker != NULL)
        set_cancel_calls(
            set); /* a signal handler has raised while another thread waits for calls */
    return false;
}

bool set_enter(worker_set *set, const char *operation)
{
    bool taken;
    return set_take(set, &set->lock, operation, -1, &taken);
}

void set_leave(worker_set *set)
{
    set_give(&set->lock);
}

bool set_enter_alone(worker_set *set, const char *operation)
{
    bool taken;
    if (!set_take_turn(set, operation, -1, &taken))
        return false;
    while (runs_finish_all(set) && take(set, &set->lock, operation, -1, &taken)) {
        if (PyList_Size(set->in_flight) == 0)
            return true;
        set_give(&set->lock); /* another thread has submitted one before we had the lock */
    }
    set_give(&set->turn);
    return false;
}

void set_leave_alone(worker_set *set)
{
    set_give(&set->lock);
    set_give(&set->turn);
}

PyObject *call_result(pypto_status *status)
{
    if (PyErr_Occurred()) { /* what a signal handler raised */
        pypto_status_clear(status);
        return NULL;
    }
    if (!status_ok(*status))
        return errors_raise(status);
    if (!errors_warn(status))
        return NULL;
    return Py_NewRef(Py_None);
}
