/* The class Run: a call of a Worker that may be in flight.
 *
 * A Run is over when the library says so, in whatever call that shows: its own wait, or the next use of the set.
 * It then gives up the tensors, and keeps the exception that it ended with: whoever asks for its
 * result gets that same object. Until then the set keeps it in `in_flight`, so nobody has to hold it. */
#include "base/os.h"
#include "worker_set.h"

/* The exception that is set, as an object; never NULL. */
static PyObject *caught(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL)
        (void)PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

static void forget(run_object *run)
{
    PyObject *list = run->set->in_flight;
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        if (PyList_GetItem(list, i) != (PyObject *)run)
            continue;
        if (PySequence_DelItem(list, i) < 0)
            PyErr_Clear(); /* cannot happen */
        return;
    }
}

/* Notes how a run has ended. An exception that is set, of a signal handler which has cancelled it, says so best. */
static void settle(run_object *run, pypto_status *status)
{
    Py_INCREF((PyObject *)run); /* in_flight may have the last reference */
    pypto_run_release(run->handle);
    run->handle = NULL;
    if (PyErr_Occurred() ||
        (status_ok(*status) ? !errors_warn(status) : errors_raise(status) == NULL))
        run->error = caught();
    pypto_status_clear(status);
    arguments_release(&run->arguments);
    forget(run);
    Py_DECREF((PyObject *)run);
}

/* Waits, with the turn. False when a signal handler has cancelled the run: its exception then is the run's. */
static bool finish(run_object *run, int64_t timeout_ns)
{
    bool over = false;
    if (waiting_has_abandoned(run->thread))
        set_cancel_calls(run->set); /* nobody will ask for it, and it may be endless */
    const waiting outer = waiting_begin();
    pypto_status status = pypto_run_wait(run->handle, timeout_ns, &over);
    waiting_end(outer);
    const bool interrupted = PyErr_Occurred() != NULL;
    if (over)
        settle(run, &status);
    return !interrupted;
}

static PyObject *raise_again(run_object *run)
{
    (void)PyException_SetTraceback(run->error, Py_None); /* else each time adds to it */
    PyErr_SetObject((PyObject *)Py_TYPE(run->error), run->error);
    return NULL;
}

bool runs_finish_all(worker_set *set)
{
    while (PyList_Size(set->in_flight) > 0) {
        run_object *run = (run_object *)Py_NewRef(PyList_GetItem(set->in_flight, 0));
        const bool interrupted = !finish(run, -1);
        if (interrupted)
            raise_again(run);
        Py_DECREF((PyObject *)run);
        if (interrupted)
            return false;
    }
    return true;
}

void runs_settle(worker_set *set)
{
    for (Py_ssize_t i = PyList_Size(set->in_flight) - 1; i >= 0; i--) {
        run_object *run = (run_object *)PyList_GetItem(set->in_flight, i);
        const waiting outer = waiting_begin();
        const bool done = pypto_run_done(run->handle);
        waiting_end(outer);
        if (done)
            (void)finish(run, 0);
    }
}

PyObject *run_create(worker_set *set, pypto_run *handle, call_arguments *arguments)
{
    run_object *run = (run_object *)PyType_GenericAlloc(set->state->run_type, 0);
    if (run == NULL || PyList_Append(set->in_flight, (PyObject *)run) < 0) {
        /* The tensors must not go before the call is over. */
        Py_BEGIN_ALLOW_THREADS pypto_status status;
        bool over;
        status = pypto_run_wait(handle, -1, &over);
        pypto_status_clear(&status);
        pypto_run_release(handle);
        Py_END_ALLOW_THREADS Py_XDECREF((PyObject *)run);
        return NULL;
    }
    run->set = set_retain(set);
    run->handle = handle;
    run->thread = PyThread_get_thread_ident();
    run->arguments = *arguments;
    *arguments = (call_arguments){0};
    return (PyObject *)run;
}

/* With the set's turn. False with an exception if it could not be had. */
static bool await_in_turn(run_object *run, int64_t timeout_ns)
{
    const int64_t began = timeout_ns > 0 ? os_now_ns() : 0;
    bool taken;
    if (!set_take_turn(run->set, "result", timeout_ns < 0 ? -1 : timeout_ns / 1000, &taken)) {
        const bool closed = run->handle == NULL && run->set->worker == NULL;
        if (closed)
            PyErr_Clear(); /* it is over, then */
        return closed;
    }
    if (!taken)
        return true;
    if (timeout_ns > 0) {
        timeout_ns -= os_now_ns() - began;
        timeout_ns = timeout_ns < 0 ? 0 : timeout_ns;
    }
    if (run->handle != NULL)
        (void)finish(run, timeout_ns);
    runs_settle(run->set);
    set_give(&run->set->turn);
    return true;
}

bool run_await(run_object *run, int64_t timeout_ns, bool *over)
{
    *over = false;
    if (run->handle != NULL && !await_in_turn(run, timeout_ns))
        return false;
    *over = run->handle == NULL;
    if (*over && run->error != NULL)
        return raise_again(run) != NULL;
    return true;
}

/* ---- methods ---- */

/* wait(timeout_ns) -> whether it is over; raises what it ended with */
static PyObject *run_wait(PyObject *object, PyObject *args)
{
    long long timeout_ns;
    bool over;
    if (!PyArg_ParseTuple(args, "L:wait", &timeout_ns) ||
        !run_await((run_object *)object, timeout_ns, &over))
        return NULL;
    return PyBool_FromLong(over);
}

static PyObject *run_done(PyObject *object, void *unused)
{
    (void)unused;
    run_object *self = (run_object *)object;
    bool taken = false;
    if (self->handle != NULL && !set_take(self->set, &self->set->turn, "done", 0, &taken))
        PyErr_Clear(); /* of another process, or in a signal handler: not that we know */
    if (taken) {
        runs_settle(self->set);
        set_give(&self->set->turn);
    }
    return PyBool_FromLong(self->handle == NULL);
}

static PyObject *run_error(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *error = ((run_object *)object)->error;
    return Py_NewRef(error == NULL ? Py_None : error);
}

/* The exception has a traceback, whose frames may hold the run. */
static int run_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((run_object *)object)->error);
    return 0;
}

static int run_clear(PyObject *object)
{
    Py_CLEAR(((run_object *)object)->error);
    return 0;
}

static void run_dealloc(PyObject *object)
{
    run_object *self = (run_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    arguments_release(
        &self->arguments); /* nothing is left to release unless it was never submitted */
    Py_XDECREF(self->error);
    if (self->set != NULL)
        set_release(self->set);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyGetSetDef run_getset[] = {
    {"done", run_done, NULL, "Whether it is over; never waits.", NULL},
    {"error", run_error, NULL, "The exception that it ended with, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef run_methods[] = {
    {"wait", run_wait, METH_VARARGS,
     "wait(timeout_ns)\n\nWaits until it is over, for ever if the time is negative; raises what it ended\n"
     "with. False when the time came first."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot run_slots[] = {
    {Py_tp_dealloc, run_dealloc},
    {Py_tp_traverse, run_traverse},
    {Py_tp_clear, run_clear},
    {Py_tp_getset, run_getset},
    {Py_tp_methods, run_methods},
    {Py_tp_doc, "A call of a Worker that may be in flight."},
    {0, NULL},
};

static PyType_Spec run_spec = {
    .name = "pypto._core.Run",
    .basicsize = (int)sizeof(run_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = run_slots,
};

bool runs_init(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &run_spec, NULL);
    core_state_of(module)->run_type = (PyTypeObject *)type;
    return type != NULL && PyModule_AddType(module, (PyTypeObject *)type) == 0;
}
