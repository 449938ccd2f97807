/* SubWorkers of Python: which function of a program is which Python function, and running them.
 *
 * A SubWorker is forked in the middle of a call into the library, where the GIL is released. So the hooks around the fork take
 * it, and do what os.fork() does: Python then waits until no other thread holds what the child would miss (the import
 * lock, locks of modules that asked for it), and in the child forgets the other threads. There the GIL is
 * released at the end, and taken for each function that runs, so its threads go on in between.
 *
 * Arguments are views of the memory itself, without copies; pypto.runtime.sub_workers makes tensors of them, and
 * words of exceptions. */
#include "program.h"

#include <string.h>

/* ---- what is bound ---- */

typedef struct sub_binding {
    const pld_function *function; /* of a program that is loaded */
    PyObject *program;            /* keeps it loaded */
    PyObject *callable;
} sub_binding;

struct sub_bindings {
    int32_t workers;
    PyObject *begin; /* functions of pypto.runtime.sub_workers */
    PyObject *run;
    PyObject *flush;
    sub_binding *items;
    Py_ssize_t count;
};

static const pld_function *find_function(program_object *program, const char *name)
{
    if (program_host(program) == NULL)
        return NULL;
    const pld_program *table = pypto_program_table(program->program);
    for (int32_t i = 0; i < table->nfunctions; i++)
        if (table->functions[i]->plane == PLD_PLANE_SUB &&
            strcmp(table->functions[i]->name, name) == 0)
            return table->functions[i];
    PyErr_Format(PyExc_KeyError, "no SubWorker %s", name);
    return NULL;
}

void subs_release(sub_bindings *subs)
{
    if (subs == NULL)
        return;
    for (Py_ssize_t i = 0; i < subs->count; i++) {
        Py_XDECREF(subs->items[i].program);
        Py_XDECREF(subs->items[i].callable);
    }
    Py_XDECREF(subs->begin);
    Py_XDECREF(subs->run);
    Py_XDECREF(subs->flush);
    PyMem_Free(subs->items);
    PyMem_Free(subs);
}

static bool read_item(core_state *state, PyObject *row, sub_binding *item)
{
    PyObject *program, *callable;
    const char *name;
    if (!PyArg_ParseTuple(row, "O!sO", state->program_type, &program, &name, &callable))
        return false;
    item->function = find_function((program_object *)program, name);
    if (item->function == NULL)
        return false;
    item->program = Py_NewRef(program);
    item->callable = Py_NewRef(callable);
    return true;
}

static bool read_all(core_state *state, PyObject *rows, sub_bindings *subs)
{
    PyObject *module = PyImport_ImportModule("pypto.runtime.sub_workers");
    subs->begin = module == NULL ? NULL : PyObject_GetAttrString(module, "begin");
    subs->run = subs->begin == NULL ? NULL : PyObject_GetAttrString(module, "run");
    subs->flush = subs->run == NULL ? NULL : PyObject_GetAttrString(module, "flush");
    Py_XDECREF(module);
    const Py_ssize_t count = PyList_Size(rows);
    subs->items = PyMem_Calloc((size_t)count + 1, sizeof *subs->items);
    if (subs->items == NULL)
        PyErr_NoMemory();
    if (subs->flush == NULL || subs->items == NULL)
        return false;
    for (; subs->count < count; subs->count++)
        if (!read_item(state, PyList_GetItem(rows, subs->count), &subs->items[subs->count]))
            return false;
    return true;
}

bool subs_read(core_state *state, PyObject *given, sub_bindings **result)
{
    PyObject *rows;
    int workers;
    *result = NULL;
    if (given == NULL || given == Py_None)
        return true;
    if (!PyArg_ParseTuple(given, "iO!", &workers, &PyList_Type, &rows))
        return false;
    sub_bindings *subs = PyMem_Calloc(1, sizeof *subs);
    if (subs == NULL) {
        PyErr_NoMemory();
        return false;
    }
    subs->workers = workers;
    if (!read_all(state, rows, subs)) {
        subs_release(subs);
        return false;
    }
    *result = subs;
    return true;
}

/* ---- around the fork ---- */

/* Calls one of the functions without arguments; what it raises is nobody's business here. */
static void call_quietly(PyObject *function)
{
    PyObject *result = PyObject_CallFunction(function, NULL);
    if (result == NULL)
        PyErr_Clear();
    Py_XDECREF(result);
}

static void before_fork(void *context)
{
    waiting_pause();
    PyObject *type, *value, *trace; /* of a signal handler that has ended the call before */
    PyErr_Fetch(&type, &value, &trace);
    call_quietly(((sub_bindings *)context)->flush); /* else what is in buffers is printed twice */
    PyErr_Restore(type, value, trace);
    PyOS_BeforeFork();
}

static void after_fork(void *context, bool child)
{
    if (!child) {
        PyOS_AfterFork_Parent();
        waiting_resume();
        return;
    }
    PyOS_AfterFork_Child();
    PyErr_Clear();
    call_quietly(((sub_bindings *)context)->begin);
    waiting_resume();
}

/* ---- arguments ---- */

static PyObject *tuple_of(const int64_t *numbers, int32_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (number == NULL || PyTuple_SetItem(tuple, i, number) < 0) /* takes the reference */
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* (memory, number of the first element in it, shape, strides in elements, "FP32") */
static PyObject *tensor_object(const pld_tensor *t)
{
    static const char *const names[] = {
#define NAME(name, label, bits, class_) #name,
        PYPTO_DTYPES(NAME)
#undef NAME
    };
    pypto_dtype dtype = (pypto_dtype)t->dtype;
    int64_t shape[PYPTO_MAX_DIMS], stride[PYPTO_MAX_DIMS];
    memcpy(shape, t->shape, sizeof shape);
    memcpy(stride, t->stride, sizeof stride);
    if (pypto_dtype_packed(dtype)) { /* two in a byte: the bytes */
        dtype = PYPTO_UINT8;
        for (int32_t d = 0; d < t->ndim - 1; d++)
            stride[d] /= 2;
        shape[t->ndim - 1] /= 2;
    }
    int64_t low = 0, high = 1;
    for (int32_t d = 0; d < t->ndim; d++) {
        if (shape[d] == 0)
            low = high = 0;
        const int64_t reach = stride[d] * (shape[d] - 1);
        low += reach < 0 && high > 0 ? reach : 0;
        high += reach > 0 && high > 0 ? reach : 0;
    }
    const int64_t width = pypto_dtype_bytes(dtype);
    PyObject *memory = PyMemoryView_FromMemory(t->data + low * width,
                                               (Py_ssize_t)((high - low) * width), PyBUF_WRITE);
    return Py_BuildValue("(NLNNs)", memory, (long long)-low, tuple_of(shape, t->ndim),
                         tuple_of(stride, t->ndim), names[dtype]);
}

static PyObject *argument_object(const pld_param *param, const pld_arg *arg)
{
    if (arg->kind == PLD_ARG_TENSOR)
        return tensor_object(arg->tensor);
    if (arg->kind == PLD_ARG_FLOAT)
        return PyFloat_FromDouble(arg->real);
    if (param->dtype == PYPTO_BOOL)
        return PyBool_FromLong(arg->integer != 0);
    return param->dtype == PYPTO_UINT64 ? PyLong_FromUnsignedLongLong((uint64_t)arg->integer)
                                        : PyLong_FromLongLong(arg->integer);
}

static PyObject *arguments_of(const pld_function *f, const pld_arg *args)
{
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; list != NULL && i < f->nparams; i++) {
        PyObject *item = argument_object(&f->params[i], &args[i]);
        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* ---- running ---- */

static PyObject *call_bound(const sub_bindings *subs, const pld_function *f, const pld_arg *args)
{
    for (Py_ssize_t i = 0; i < subs->count; i++) {
        if (subs->items[i].function != f)
            continue;
        PyObject *arguments = arguments_of(f, args);
        PyObject *result =
            arguments == NULL
                ? NULL
                : PyObject_CallFunction(subs->run, "OO", subs->items[i].callable, arguments);
        Py_XDECREF(arguments);
        return result;
    }
    return Py_BuildValue("(ss)", "nothing is bound to it", "");
}

/* Python's state of this thread, which stays until the thread ends, and longer: torch keeps pointers to it. It is the
 * main thread's already, but where SubWorkers are threads of this process, which is for debugging. */
static void keep_thread_state(void)
{
    static _Thread_local bool kept;
    if (kept)
        return;
    kept = true;
    (void)PyGILState_Ensure();
    (void)PyEval_SaveThread();
}

/* In a SubWorker. */
static void run_sub(void *context, const pld_function *f, pld_sub *sub, const pld_arg *args)
{
    keep_thread_state();
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = call_bound(context, f, args);
    const char *message, *details;
    if (result == NULL ||
        (result != Py_None && !PyArg_ParseTuple(result, "ss", &message, &details))) {
        PyErr_Clear(); /* run() does not raise: there is no memory even for that */
        pld_sub_fail(sub, NULL, "sub_worker: MemoryError: memory is exhausted");
    } else if (result != Py_None) {
        pld_sub_fail(sub, details, "%s", message);
    }
    Py_XDECREF(result);
    PyGILState_Release(state);
}

void subs_options(sub_bindings *subs, pypto_worker_options *options)
{
    if (subs == NULL)
        return;
    options->sub_workers = subs->workers;
    options->run_sub = run_sub;
    options->before_fork = before_fork;
    options->after_fork = after_fork;
    options->sub_context = subs;
}

/* ---- which functions a program calls ---- */

bool subs_note(program_object *program, PyObject *functions)
{
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found != NULL && i < PyList_Size(functions); i++) {
        PyObject *function = PyList_GetItem(functions, i);
        PyObject *is_sub = PyObject_GetAttrString(function, "is_sub_worker");
        if (is_sub == NULL)
            PyErr_Clear(); /* of the jit form */
        else if (is_sub == Py_True && PyList_Append(found, function) < 0)
            Py_CLEAR(found);
        Py_XDECREF(is_sub);
    }
    if (found == NULL)
        return false;
    Py_XDECREF(program->subs);
    program->subs = found;
    return true;
}

/* The Function of that name, borrowed, or None. */
static PyObject *noted_function(const program_object *program, const char *name)
{
    for (Py_ssize_t i = 0; program->subs != NULL && i < PyList_Size(program->subs); i++) {
        PyObject *function = PyList_GetItem(program->subs, i);
        PyObject *its = PyObject_GetAttrString(function, "__name__");
        const bool same = its != NULL && PyUnicode_CompareWithASCIIString(its, name) == 0;
        Py_XDECREF(its);
        if (same)
            return function;
    }
    PyErr_Clear();
    return Py_None;
}

PyObject *subs_of(program_object *program)
{
    if (program_host(program) == NULL)
        return NULL;
    PyObject *result = PyDict_New();
    const pld_program *table = pypto_program_table(program->program);
    for (int32_t i = 0; result != NULL && i < table->nfunctions; i++) {
        const pld_function *f = table->functions[i];
        if (f->plane == PLD_PLANE_SUB &&
            PyDict_SetItemString(result, f->name, noted_function(program, f->name)) < 0)
            Py_CLEAR(result);
    }
    return result;
}
