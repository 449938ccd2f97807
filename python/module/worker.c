/* The class Worker: calls of a set of workers, and its beginning and end.
 *
 * Each use takes a lock of the set (worker_set.h), so uses by several Python threads take turns; the GIL is released
 * while one waits. A call takes `lock` to begin, and the turn to wait. Closing waits for the calls in flight. A Worker that is dropped closes itself. */
#include "base/os.h"
#include "records.h"
#include "worker_set.h"

/* ---- calls ---- */

/* One that has been parsed. */
typedef struct call_request {
    const char *operation;
    program_object *program;
    const pypto_argument *list;
    call_arguments held;
    int lint;
    wanted_records records;
} call_request;

/* What is to be recorded of the call that follows. A set that records nothing is not told so again. */
static pypto_status set_records(worker_set *set, const wanted_records *records)
{
    if (!records->given && !set->records)
        return (pypto_status)PYPTO_OK_INIT;
    pypto_status status =
        pypto_worker_set_records(set->worker, records->given ? &records->what : NULL);
    set->records = records->given && status_ok(status);
    return status;
}

/* Waits until the call can begin at once. False with an exception. */
static bool make_way(worker_set *set, const call_request *call)
{
    bool taken;
    if (!set_take_turn(set, call->operation, -1, &taken))
        return false;
    const waiting outer = waiting_begin();
    pypto_status status = pypto_worker_make_way(set->worker, call->program->program, call->list,
                                                (int32_t)call->held.count);
    waiting_end(outer);
    PyObject *none = call_result(&status);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    runs_settle(set);
    PyErr_Restore(type, value, trace);
    set_give(&set->turn);
    Py_XDECREF(none);
    return none != NULL;
}

/* With the lock: its Run, or NULL with an exception, or without when it has to wait. */
static PyObject *submit_now(worker_set *set, call_request *call)
{
    const int32_t count = (int32_t)call->held.count;
    pypto_program *program = call->program->program;
    pypto_run *run = NULL;
    const waiting outer = waiting_begin();
    pypto_worker_set_lint(set->worker, lint_level(call->lint));
    pypto_worker_set_lint_disabled(set->worker, lint_disabled(call->lint));
    pypto_status status = set_records(set, &call->records);
    if (status_ok(status))
        status = pypto_worker_try_submit(set->worker, program, call->list, count, &run);
    waiting_end(outer);
    if (run == NULL) {
        if (!status_ok(status) || PyErr_Occurred())
            (void)call_result(&status); /* NULL: it has failed */
        return NULL;
    }
    pypto_status_clear(&status);
    PyObject *result = run_create(set, run, &call->held);
    if (result != NULL && PyErr_Occurred()) /* of a handler that the library did not ask for */
        Py_CLEAR(result);
    return result;
}

static PyObject *submit(worker_set *set, call_request *call)
{
    PyObject *run = NULL;
    bool good = true;
    while (good && run == NULL) {
        if (!set_enter(set, call->operation))
            return NULL;
        run = submit_now(set, call);
        set_leave(set);
        good = PyErr_Occurred() == NULL;
        if (good && run == NULL)
            good = make_way(set, call);
    }
    return run;
}

static bool holds_copies(const call_arguments *args)
{
    for (Py_ssize_t i = 0; i < args->count; i++)
        if (args->held[i].copied != NULL)
            return true;
    return false;
}

/* arguments_hold(). What is copied out of an argument must have in it what calls in flight still write, so these end first. */
static bool hold_arguments(worker_set *set, const char *operation, PyObject *values,
                           PyObject *names, const pld_function *function, call_arguments *args)
{
    if (!arguments_hold(values, names, function, args))
        return false;
    if (PyList_Size(set->in_flight) == 0 || !holds_copies(args))
        return true;
    arguments_release(args);
    if (!set_enter_alone(set, operation))
        return false;
    set_leave_alone(set);
    return arguments_hold(values, names, function, args);
}

/* run(program, arguments, lint, records) and submit(program, arguments, lint, records) */
static PyObject *begin_call(PyObject *object, PyObject *args, bool waits)
{
    worker_set *set = ((worker_object *)object)->set;
    PyObject *values, *wanted = NULL;
    int lint;
    call_request call = {.operation = waits ? "run" : "submit"};
    if (!PyArg_ParseTuple(args, waits ? "O!O!i|O:run" : "O!O!i|O:submit", set->state->program_type,
                          &call.program, &PyTuple_Type, &values, &lint, &wanted))
        return NULL;
    call.lint = lint;
    const pld_function *host = program_host(call.program);
    PyObject *names = host == NULL ? NULL : program_names(call.program, host);
    pypto_argument *list = NULL;
    PyObject *result = NULL;
    if (records_read(wanted, &call.records) && names != NULL &&
        hold_arguments(set, call.operation, values, names, host, &call.held))
        call.list = list = program_arguments(host, &call.held);
    if (list != NULL)
        result = submit(set, &call);
    records_release(&call.records);
    PyMem_Free(list);
    arguments_release(&call.held);
    Py_XDECREF(names);
    if (!waits || result == NULL)
        return result;
    bool over;
    const bool good = run_await((run_object *)result, -1, &over);
    Py_DECREF(result);
    return good ? Py_NewRef(Py_None) : NULL;
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
    set_leave(set);
    return result;
}
/* times() -> [(rank, index, name, taken, begun, wrapper over, over)] */
static PyObject *worker_times(PyObject *object, PyObject *unused)
{
    (void)unused;
    worker_set *set = ((worker_object *)object)->set;
    if (!set_enter_alone(set, "times")) /* a call that ends would replace them */
        return NULL;
    PyObject *list = records_times(set->worker);
    set_leave_alone(set);
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
    if (!set_may_use(set, "close"))
        return NULL;
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    while (!set_enter_alone(set, "close")) {
        if (set->worker == NULL) { /* another thread has closed it */
            PyErr_Clear();
            Py_RETURN_NONE;
        }
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        PyErr_Fetch(&type, &value, &trace);
    }
    close_now(set);
    set_leave_alone(set);
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

/* After a call has lost a worker it can only be closed. */
static PyObject *worker_usable(PyObject *object, void *unused)
{
    (void)unused;
    const worker_set *set = ((worker_object *)object)->set;
    return PyBool_FromLong(set->worker != NULL && pypto_worker_usable(set->worker));
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

static PyObject *worker_sub_pids(PyObject *object, void *unused)
{
    (void)unused;
    worker_set *set = ((worker_object *)object)->set;
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; list != NULL && set->worker != NULL && i < PYPTO_MAX_RANKS; i++) {
        const int64_t number = pypto_worker_sub_pid(set->worker, i);
        PyObject *pid = number == 0 ? NULL : PyLong_FromLongLong(number);
        if (number != 0 && (pid == NULL || PyList_Append(list, pid) < 0))
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
    set_leave(set);
    return PyLong_FromLongLong(count);
}

static PyObject *worker_copied_bytes(PyObject *object, void *unused)
{
    (void)unused;
    worker_set *set = ((worker_object *)object)->set;
    if (!set_enter(set, "copied_bytes"))
        return NULL;
    int64_t bytes;
    Py_BEGIN_ALLOW_THREADS bytes = pypto_worker_copied_bytes(set->worker);
    Py_END_ALLOW_THREADS set_leave(set);
    return PyLong_FromLongLong(bytes);
}

/* ---- the type ---- */

/* Worker(device_ids, title, persistent, shared_only, subs, startup_timeout_ns); persistent is a pypto_persistence */
static PyObject *worker_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *ids, *given = NULL;
    int persistent, shared_only;
    long long startup_timeout_ns = 0;
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    if (keywords != NULL && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "Worker() takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!sip|OL:Worker", &PyList_Type, &ids, &options.title, &persistent,
                          &shared_only, &given, &startup_timeout_ns))
        return NULL;
    options.startup_timeout_ns = startup_timeout_ns;
    options.shared_only = shared_only != 0;
    options.persistent = (pypto_persistence)persistent;
    options.start = chosen_start();
    options.interrupted = waiting_interrupted;
    int32_t *device_ids = NULL;
    worker_set *set = set_create(PyType_GetModuleState(type));
    worker_object *self = NULL;
    if (set != NULL && subs_read(set->state, given, &set->subs) &&
        read_device_ids(ids, &device_ids, &options.device_count)) {
        options.device_ids = device_ids;
        subs_options(set->subs, &options);
        set->ranks = options.device_count;
        const waiting outer = waiting_begin();
        pypto_status status = pypto_worker_create(&options, &set->worker);
        waiting_end(outer);
        if (!status_ok(status) || PyErr_Occurred())
            Py_XDECREF(call_result(&status)); /* there is none */
        else if ((self = (worker_object *)PyType_GenericAlloc(type, 0)) != NULL)
            self->set = set_retain(set);
        if (self == NULL && set->worker != NULL)
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
    {"usable", worker_usable, NULL, "Whether it is open and has all its workers.", NULL},
    {"pids", worker_pids, NULL, "Process ids of the ranks; 0 for threads.", NULL},
    {"copied_bytes", worker_copied_bytes, NULL, "Bytes of arguments copied, in and out.", NULL},
    {"sub_pids", worker_sub_pids, NULL, "Process ids of the SubWorkers that live.", NULL},
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
