/* The class Worker: a set of workers that stays, for any number of calls of any programs.
 *
 * Each use takes the set's lock (worker_set.h), so uses by several Python threads take turns; the GIL is released
 * while one waits. Closing waits for the calls in flight. A Worker that is dropped closes itself. */
#include "base/os.h"
#include "records.h"
#include "worker_set.h"

#include <string.h>

typedef struct worker_object {
    PyObject_HEAD worker_set *set; /* a reference */
} worker_object;

/* ---- the set ---- */

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
    if (set->lock != NULL)
        PyThread_free_lock(set->lock);
    PyMem_Free(set);
}

static worker_set *set_create(core_state *state)
{
    worker_set *set = PyMem_Calloc(1, sizeof *set);
    if (set == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    set->references = 1;
    set->state = state;
    set->process = os_process_id();
    set->lock = PyThread_allocate_lock();
    set->in_flight = PyList_New(0);
    if (set->lock == NULL)
        PyErr_NoMemory();
    if (set->lock != NULL && set->in_flight != NULL)
        return set;
    set_release(set);
    return NULL;
}

static bool may_use(const worker_set *set, const char *operation)
{
    if (set->worker == NULL)
        return errors_refuse(DIAG_WORKER_CLOSED, "create another worker",
                             "%s() called after close()", operation);
    if (set->process != os_process_id())
        return errors_refuse(DIAG_WORKER_CLOSED, "create a worker in this process",
                             "%s(): this worker belongs to the process that forked this one",
                             operation);
    if (set->holder == PyThread_get_thread_ident())
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
        int64_t left = timeout_us < 0 ? -1 : deadline - os_now_ns() / 1000;
        PyLockStatus answer;
        if (timeout_us >= 0 && left < 0)
            left = 0;
        Py_BEGIN_ALLOW_THREADS answer = PyThread_acquire_lock_timed(lock, left, 1);
        Py_END_ALLOW_THREADS *taken = answer == PY_LOCK_ACQUIRED;
        if (answer != PY_LOCK_INTR)
            return true;
        if (PyErr_CheckSignals() < 0)
            return false;
    }
}

bool set_lock(worker_set *set, const char *operation, int64_t timeout_us, bool *taken)
{
    *taken = false;
    if (!may_use(set, operation))
        return false;
    *taken = PyThread_acquire_lock_timed(set->lock, 0, 0) == PY_LOCK_ACQUIRED;
    if (!*taken && timeout_us != 0 && !await_lock(set->lock, timeout_us, taken))
        return false;
    if (!*taken)
        return true;
    if (set->worker == NULL) { /* closed meanwhile */
        PyThread_release_lock(set->lock);
        *taken = false;
        return may_use(set, operation);
    }
    set->holder = PyThread_get_thread_ident();
    return true;
}

void set_unlock(worker_set *set)
{
    set->holder = 0;
    PyThread_release_lock(set->lock);
}

/* With the lock, for as long as that takes. */
static bool set_enter(worker_set *set, const char *operation)
{
    bool taken;
    return set_lock(set, operation, -1, &taken);
}

/* ---- calls ---- */

/* Result of a call that has ended, under the lock. */
static PyObject *call_result(pypto_status *status)
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

static PyObject *run_now(worker_set *set, program_object *program, const pypto_argument *list,
                         Py_ssize_t count)
{
    const waiting outer = waiting_begin();
    pypto_status status = pypto_worker_run(set->worker, program->program, list, (int32_t)count);
    waiting_end(outer);
    return call_result(&status);
}

static PyObject *submit_now(worker_set *set, program_object *program, const pypto_argument *list,
                            call_arguments *held)
{
    pypto_run *run = NULL;
    const waiting outer = waiting_begin();
    pypto_status status =
        pypto_worker_submit(set->worker, program->program, list, (int32_t)held->count, &run);
    waiting_end(outer);
    if (run == NULL) {
        PyObject *none = call_result(&status);
        Py_XDECREF(none); /* there is none: it has failed */
        return NULL;
    }
    pypto_status_clear(&status);
    PyObject *result = run_create(set, run, held);
    if (result != NULL && PyErr_Occurred()) /* of a handler that the library did not ask for */
        Py_CLEAR(result);
    return result;
}

/* What is to be recorded of the call that follows. A set that records nothing is not told so again. */
static bool set_records(worker_set *set, const wanted_records *records)
{
    if (!records->given && !set->records)
        return true;
    pypto_status status =
        pypto_worker_set_records(set->worker, records->given ? &records->what : NULL);
    set->records = records->given && status_ok(status);
    return status_ok(status) || errors_raise(&status) != NULL;
}

/* run(program, arguments, lint, records) and submit(program, arguments, lint, records) */
static PyObject *begin_call(PyObject *object, PyObject *args, bool waits)
{
    worker_set *set = ((worker_object *)object)->set;
    program_object *program;
    PyObject *values, *wanted = NULL;
    wanted_records records;
    int lint;
    if (!PyArg_ParseTuple(args, waits ? "O!O!i|O:run" : "O!O!i|O:submit", set->state->program_type,
                          &program, &PyTuple_Type, &values, &lint, &wanted))
        return NULL;
    const pld_function *host = program_host(program);
    PyObject *names = host == NULL ? NULL : program_names(host);
    call_arguments held = {0};
    pypto_argument *list = NULL;
    PyObject *result = NULL;
    if (records_read(wanted, &records) && names != NULL &&
        arguments_hold(values, names, host->name, &held))
        list = program_arguments(host, &held);
    if (list != NULL && set_enter(set, waits ? "run" : "submit")) {
        pypto_worker_set_lint(set->worker, (pypto_lint)lint);
        if (!set_records(set, &records))
            result = NULL;
        else if (waits)
            result = run_now(set, program, list, held.count);
        else
            result = submit_now(set, program, list, &held);
        set_unlock(set);
    }
    records_release(&records);
    PyMem_Free(list);
    arguments_release(&held);
    Py_XDECREF(names);
    return result;
}

static PyObject *worker_run(PyObject *self, PyObject *args)
{
    return begin_call(self, args, true);
}

static PyObject *worker_submit(PyObject *self, PyObject *args)
{
    return begin_call(self, args, false);
}

/* load(program): now, not with its first call */
static PyObject *worker_load(PyObject *object, PyObject *args)
{
    worker_set *set = ((worker_object *)object)->set;
    program_object *program;
    if (!PyArg_ParseTuple(args, "O!:load", set->state->program_type, &program) ||
        program_host(program) == NULL || !set_enter(set, "register"))
        return NULL;
    const waiting outer = waiting_begin();
    pypto_status status = pypto_worker_load(set->worker, program->program);
    waiting_end(outer);
    PyObject *result = call_result(&status);
    set_unlock(set);
    return result;
}

/* ---- memory of the ranks ---- */

/* alloc(rank, bytes) -> address */
static PyObject *worker_alloc(PyObject *object, PyObject *args)
{
    worker_set *set = ((worker_object *)object)->set;
    int rank;
    long long bytes;
    if (!PyArg_ParseTuple(args, "iL:alloc", &rank, &bytes) || !set_enter(set, "malloc"))
        return NULL;
    void *address = NULL;
    const waiting outer = waiting_begin();
    pypto_status status = pypto_worker_alloc(set->worker, rank, bytes, &address);
    waiting_end(outer);
    set_unlock(set);
    return status_ok(status) ? PyLong_FromVoidPtr(address) : errors_raise(&status);
}

/* free(rank, address) */
static PyObject *worker_free(PyObject *object, PyObject *args)
{
    worker_set *set = ((worker_object *)object)->set;
    int rank;
    unsigned long long address;
    if (!PyArg_ParseTuple(args, "iK:free", &rank, &address) || !set_enter(set, "free"))
        return NULL;
    PyObject *result = NULL;
    if (runs_finish_all(set)) { /* one of them may use it */
        pypto_status status = pypto_worker_free(set->worker, rank, (void *)(uintptr_t)address);
        result = call_result(&status);
    }
    set_unlock(set);
    return result;
}

static PyObject *copy_memory(PyObject *object, PyObject *args, bool behind)
{
    worker_set *set = ((worker_object *)object)->set;
    unsigned long long target, source;
    long long bytes;
    if (!PyArg_ParseTuple(args, behind ? "KKL:copy" : "KKL:fill", &target, &source, &bytes) ||
        !set_enter(set, behind ? "copy" : "fill"))
        return NULL;
    const bool good = !behind || runs_finish_all(set);
    if (good && bytes > 0) {
        Py_BEGIN_ALLOW_THREADS memcpy((void *)(uintptr_t)target, (const void *)(uintptr_t)source,
                                      (size_t)bytes);
        Py_END_ALLOW_THREADS
    }
    set_unlock(set);
    return good ? Py_NewRef(Py_None) : NULL;
}

/* copy(target, source, bytes): between memory of ranks and any other, behind the calls in flight */
static PyObject *worker_copy(PyObject *object, PyObject *args)
{
    return copy_memory(object, args, true);
}

/* fill(target, source, bytes): the same at once, into memory that no call knows yet */
static PyObject *worker_fill(PyObject *object, PyObject *args)
{
    return copy_memory(object, args, false);
}

/* committed(rank) -> bytes */
static PyObject *worker_committed(PyObject *object, PyObject *args)
{
    worker_set *set = ((worker_object *)object)->set;
    int rank;
    if (!PyArg_ParseTuple(args, "i:committed", &rank) || !set_enter(set, "committed_device_memory"))
        return NULL;
    const int64_t bytes = pypto_worker_committed(set->worker, rank);
    set_unlock(set);
    return PyLong_FromLongLong(bytes);
}

static PyObject *worker_reset_windows(PyObject *object, PyObject *unused)
{
    (void)unused;
    worker_set *set = ((worker_object *)object)->set;
    if (!set_enter(set, "reset_persistent_windows"))
        return NULL;
    PyObject *result = NULL;
    if (runs_finish_all(set)) {
        const waiting outer = waiting_begin();
        pypto_status status = pypto_worker_reset_windows(set->worker);
        waiting_end(outer);
        result = call_result(&status);
    }
    set_unlock(set);
    return result;
}

/* times() -> [(rank, index, name, taken, begun, wrapper over, over)] */
static PyObject *worker_times(PyObject *object, PyObject *unused)
{
    (void)unused;
    worker_set *set = ((worker_object *)object)->set;
    if (!set_enter(set, "times"))
        return NULL;
    PyObject *list = records_times(set->worker);
    set_unlock(set);
    return list;
}

/* ---- the end ---- */

static void close_now(worker_set *set)
{
    pypto_worker *worker = set->worker;
    set->worker = NULL;
    const waiting outer = waiting_begin();
    pypto_worker_close(worker);
    waiting_end(outer);
}

/* close(): waits for all calls, ends the workers. What a signal handler raises meanwhile is raised at the end. */
static PyObject *worker_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    worker_set *set = ((worker_object *)object)->set;
    if (set->worker == NULL)
        Py_RETURN_NONE;
    if (set->process !=
        os_process_id()) { /* the lock may have been held by a thread that is not here */
        close_now(set);
        Py_RETURN_NONE;
    }
    if (!set_enter(set, "close"))
        return NULL;
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    while (!runs_finish_all(set)) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        PyErr_Fetch(&type, &value, &trace);
    }
    close_now(set);
    set_unlock(set);
    if (type == NULL)
        Py_RETURN_NONE;
    PyErr_Restore(type, value, trace);
    return NULL;
}

static PyObject *worker_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((worker_object *)object)->set->worker == NULL);
}

/* The numbers of a set that needs no lock to give them: they change under the GIL, or never. */
static PyObject *worker_pids(PyObject *object, void *unused)
{
    (void)unused;
    worker_set *set = ((worker_object *)object)->set;
    PyObject *list = PyList_New(0);
    for (int32_t rank = 0; list != NULL && set->worker != NULL && rank < set->ranks; rank++) {
        PyObject *pid = PyLong_FromLongLong(pypto_worker_pid(set->worker, rank));
        if (pid == NULL || PyList_Append(list, pid) < 0)
            Py_CLEAR(list);
        Py_XDECREF(pid);
    }
    return list;
}

static PyObject *worker_domain_count(PyObject *object, void *unused)
{
    (void)unused;
    worker_set *set = ((worker_object *)object)->set;
    if (!set_enter(set, "domain_count"))
        return NULL;
    const int64_t count = pypto_worker_domain_count(set->worker);
    set_unlock(set);
    return PyLong_FromLongLong(count);
}

static PyObject *worker_copied_bytes(PyObject *object, void *unused)
{
    (void)unused;
    worker_set *set = ((worker_object *)object)->set;
    if (!set_enter(set, "copied_bytes"))
        return NULL;
    const int64_t bytes = pypto_worker_copied_bytes(set->worker);
    set_unlock(set);
    return PyLong_FromLongLong(bytes);
}

/* ---- the type ---- */

/* Worker(device_ids, title, persistent, shared_only); persistent is a pypto_persistence */
static PyObject *worker_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *ids;
    int persistent, shared_only;
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    if (keywords != NULL && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "Worker() takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!sip:Worker", &PyList_Type, &ids, &options.title, &persistent,
                          &shared_only))
        return NULL;
    options.shared_only = shared_only != 0;
    options.persistent = (pypto_persistence)persistent;
    options.interrupted = waiting_interrupted;
    int32_t *device_ids = NULL;
    worker_set *set = set_create(PyType_GetModuleState(type));
    worker_object *self = NULL;
    if (set != NULL && read_transport(&options.start) &&
        read_device_ids(ids, &device_ids, &options.device_count)) {
        options.device_ids = device_ids;
        set->ranks = options.device_count;
        const waiting outer = waiting_begin();
        pypto_status status = pypto_worker_create(&options, &set->worker);
        waiting_end(outer);
        if (!status_ok(status))
            errors_raise(&status);
        else if ((self = (worker_object *)PyType_GenericAlloc(type, 0)) != NULL)
            self->set = set_retain(set);
        else
            close_now(set);
    }
    PyMem_Free(device_ids);
    if (set != NULL)
        set_release(set);
    return (PyObject *)self;
}

static void worker_dealloc(PyObject *object)
{
    worker_object *self = (worker_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->set != NULL) {
        PyObject *error_type, *value, *trace;
        PyErr_Fetch(&error_type, &value, &trace);
        PyObject *closed = worker_close(object, NULL);
        if (closed == NULL)
            PyErr_WriteUnraisable(NULL);
        Py_XDECREF(closed);
        PyErr_Restore(error_type, value, trace);
        set_release(self->set);
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyGetSetDef worker_getset[] = {
    {"closed", worker_closed, NULL, "Whether close() has ended it.", NULL},
    {"pids", worker_pids, NULL, "Process ids of the ranks; 0 for threads.", NULL},
    {"copied_bytes", worker_copied_bytes, NULL, "Bytes of arguments copied, in and out.", NULL},
    {"domain_count", worker_domain_count, NULL, "Domains that have got windows so far.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef worker_methods[] = {
    {"run", worker_run, METH_VARARGS,
     "run(program, arguments, lint, records)\n\nRuns a program, blocks until every rank is done."},
    {"submit", worker_submit, METH_VARARGS,
     "submit(program, arguments, lint, records) -> Run\n\nThe same without waiting for its end."},
    {"times", worker_times, METH_NOARGS,
     "times() -> [(rank, index, name, taken, begun, wrapper over, over)]\n\nOf the latest call that\n"
     "recorded them, in ns."},
    {"load", worker_load, METH_VARARGS, "load(program)\n\nNow; else its first call does."},
    {"alloc", worker_alloc, METH_VARARGS,
     "alloc(rank, bytes) -> address\n\nMemory that stays until it is freed."},
    {"free", worker_free, METH_VARARGS, "free(rank, address)"},
    {"copy", worker_copy, METH_VARARGS,
     "copy(target, source, bytes)\n\nWhen the calls in flight are over."},
    {"fill", worker_fill, METH_VARARGS,
     "fill(target, source, bytes)\n\nAt once: for memory that no call uses."},
    {"committed", worker_committed, METH_VARARGS,
     "committed(rank) -> bytes\n\nWhat alloc() has given."},
    {"reset_windows", worker_reset_windows, METH_NOARGS,
     "reset_windows()\n\nMakes all persistent windows zero."},
    {"close", worker_close, METH_NOARGS,
     "close()\n\nWaits for the calls in flight and ends the workers. Again: does nothing."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot worker_slots[] = {
    {Py_tp_new, worker_new},
    {Py_tp_dealloc, worker_dealloc},
    {Py_tp_getset, worker_getset},
    {Py_tp_methods, worker_methods},
    {Py_tp_doc, "Worker(device_ids, title, persistent)\n\nA set of workers that stays."},
    {0, NULL},
};

static PyType_Spec worker_spec = {
    .name = "pypto._core.Worker",
    .basicsize = (int)sizeof(worker_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = worker_slots,
};

bool worker_init(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &worker_spec, NULL);
    core_state_of(module)->worker_type = (PyTypeObject *)type;
    return type != NULL && PyModule_AddType(module, (PyTypeObject *)type) == 0;
}
