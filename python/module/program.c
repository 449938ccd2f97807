/* The class Program: a compiled program that can be run.
 *
 * Program.run() hands the arguments to the host library with the GIL released (waiting.c).
 *
 * A Program is immutable but for its handle on the loaded code, which it opens at first use. */
#include "program.h"
#include "base/settings.h"
#include "host/check.h"
#include "records.h"

#include <string.h>

/* ---- the loaded code ---- */

/* The host function's row in the program's table; NULL with an exception set. */
const pld_function *program_host(program_object *self)
{
    if (self->program == NULL) {
        pypto_status status = pypto_program_open(self->output.object_path, &self->program);
        if (!status_ok(status)) {
            errors_raise(&status);
            return NULL;
        }
    }
    const pld_program *table = pypto_program_table(self->program);
    return table->functions[table->host];
}

PyObject *program_names(program_object *program, const pld_function *host)
{
    if (program->names != NULL)
        return Py_NewRef(program->names);
    PyObject *names = PyTuple_New(host->nparams);
    for (int32_t i = 0; names != NULL && i < host->nparams; i++) {
        PyObject *name = PyUnicode_FromString(host->params[i].name);
        if (name == NULL || PyTuple_SetItem(names, i, name) < 0) /* takes the reference */
            Py_CLEAR(names);
    }
    program->names = Py_XNewRef(names);
    return names;
}

/* ---- running ---- */

pypto_start chosen_start(void)
{
    /* The library refuses other values. */
    return setting_int(SETTING_TRANSPORT) == 0 ? PYPTO_START_EXEC : PYPTO_START_THREAD;
}

bool read_device_ids(PyObject *list, int32_t **ids, int32_t *count)
{
    Py_ssize_t size = PyList_Size(list);
    *ids = PyMem_Calloc((size_t)size + 1, sizeof **ids);
    *count = (int32_t)size;
    if (*ids == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; *ids != NULL && i < size; i++) {
        long id = PyLong_AsLong(PyList_GetItem(list, i));
        if (id == -1 && PyErr_Occurred()) { /* the list was changed behind its check */
            PyErr_Clear();
            return errors_refuse(DIAG_BAD_DEVICE_IDS, NULL, "device_ids[%lld] is no device id",
                                 (long long)i);
        }
        if (id < 0 || id > INT32_MAX)
            return errors_refuse(DIAG_BAD_DEVICE_IDS, NULL, "%ld is no device id", id);
        (*ids)[i] = (int32_t)id;
    }
    return *ids != NULL;
}

pypto_argument *program_arguments(const pld_function *host, const call_arguments *args)
{
    pypto_argument *result = PyMem_Calloc((size_t)args->count + 1, sizeof *result);
    if (result == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; result != NULL && i < args->count; i++) {
        result[i] = args->held[i].argument;
        if (i >= host->nparams)
            continue; /* the library counts them */
        const pld_param *param = &host->params[i];
        if (!number_fit(host, param, &args->held[i], &result[i])) {
            PyMem_Free(result);
            result = NULL;
        } else if (args->held[i].copied && param->direction != PLD_IN) {
            PyMem_Free(result);
            result = NULL;
            errors_refuse(DIAG_ARGUMENT_READ_ONLY, args->held[i].copied_hint,
                          "argument '%s' of '%s' is written, but is %s", param->name, host->name,
                          args->held[i].copied);
        } else if (args->held[i].tracked && param->direction != PLD_IN) {
            PyMem_Free(result);
            result = NULL;
            errors_refuse(
                DIAG_ARGUMENT_READ_ONLY,
                "pass x.detach(), which is the same memory, or call under torch.no_grad()",
                "argument '%s' of '%s' is written, but requires a gradient, which no program "
                "here computes",
                param->name, host->name);
        }
    }
    return result;
}

static PyObject *call(program_object *self, const pypto_worker_options *base,
                      const call_arguments *args)
{
    pypto_argument *arguments = program_arguments(program_host(self), args);
    if (arguments == NULL)
        return NULL;
    pypto_worker_options options = *base;
    options.interrupted = waiting_interrupted;

    waiting outer = waiting_begin();
    pypto_status status = pypto_call(&options, self->program, arguments, (int32_t)args->count);
    waiting_end(outer);

    PyMem_Free(arguments);
    if (PyErr_Occurred()) { /* what a signal handler raised */
        pypto_status_clear(&status);
        return NULL;
    }
    if (!status_ok(status))
        return errors_raise(&status);
    if (!errors_warn(&status))
        return NULL;
    Py_RETURN_NONE;
}

/* run(arguments, device_ids, title, lint, records, subs); lint: see lint_level() */
static PyObject *program_run(PyObject *object, PyObject *args)
{
    program_object *self = (program_object *)object;
    PyObject *values, *ids, *names, *wanted = NULL, *given = NULL, *result = NULL;
    sub_bindings *subs = NULL;
    wanted_records records;
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    int32_t *device_ids = NULL;
    int lint;
    if (!PyArg_ParseTuple(args, "O!O!si|OO:run", &PyTuple_Type, &values, &PyList_Type, &ids,
                          &options.title, &lint, &wanted, &given))
        return NULL;
    const bool good = records_read(wanted, &records) &&
                      subs_read(PyType_GetModuleState(Py_TYPE(object)), given, &subs);
    subs_options(subs, &options);
    options.records = records.given ? &records.what : NULL;
    options.lint = lint_level(lint);
    options.lint_disabled = lint_disabled(lint);
    options.start = chosen_start();
    const pld_function *host = program_host(self);
    names = host == NULL ? NULL : program_names(self, host);
    call_arguments held = {0};
    if (good && names != NULL && read_device_ids(ids, &device_ids, &options.device_count) &&
        arguments_hold(values, names, host, &held)) {
        options.device_ids = device_ids;
        result = call(self, &options, &held);
    }
    arguments_release(&held);
    records_release(&records);
    subs_release(subs);
    PyMem_Free(device_ids);
    Py_XDECREF(names);
    return result;
}

/* check_kinds(arguments) */
static PyObject *program_check_kinds(PyObject *object, PyObject *values)
{
    program_object *self = (program_object *)object;
    if (!PyTuple_Check(values)) {
        PyErr_SetString(PyExc_TypeError, "check_kinds() takes a tuple");
        return NULL;
    }
    const pld_function *host = program_host(self);
    PyObject *names = host == NULL ? NULL : program_names(self, host);
    call_arguments held = {0};
    pypto_argument *arguments = NULL;
    if (names != NULL && arguments_hold(values, names, host, &held)) {
        arguments = PyMem_Calloc((size_t)held.count + 1, sizeof *arguments);
        if (arguments == NULL)
            PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; arguments != NULL && i < held.count; i++)
        arguments[i] = held.held[i].argument;
    if (arguments != NULL) {
        pypto_status status = check_kinds(host, arguments, (int32_t)held.count);
        if (!status_ok(status))
            errors_raise(&status);
    }
    PyMem_Free(arguments);
    arguments_release(&held);
    Py_XDECREF(names);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* ---- attributes ---- */

static PyObject *program_name(PyObject *object, void *unused)
{
    (void)unused;
    const pld_function *host = program_host((program_object *)object);
    return host == NULL ? NULL : PyUnicode_FromString(host->name);
}

static PyObject *program_object_path(PyObject *object, void *unused)
{
    (void)unused;
    return PyUnicode_DecodeFSDefault(((program_object *)object)->output.object_path);
}

static PyObject *program_output_dir(PyObject *object, void *unused)
{
    (void)unused;
    return PyUnicode_DecodeFSDefault(((program_object *)object)->output.directory);
}

static PyObject *program_stats(PyObject *object, void *unused)
{
    (void)unused;
    const compile_output *output = &((program_object *)object)->output;
    return Py_BuildValue("{s:N,s:N,s:L,s:L}", "front_hit", PyBool_FromLong(output->front_hit),
                         "back_hit", PyBool_FromLong(output->back_hit), "front_ns",
                         (long long)output->front_ns, "back_ns", (long long)output->back_ns);
}

static PyObject *shape_of(const pld_param *param)
{
    if (param->kind == PLD_PARAM_SCALAR)
        Py_RETURN_NONE;
    PyObject *shape = PyList_New(param->ndim);
    for (int32_t i = 0; shape != NULL && i < param->ndim; i++) {
        PyObject *extent = PyLong_FromLongLong(param->shape[i] < 0 ? -1 : param->shape[i]);
        if (extent == NULL || PyList_SetItem(shape, i, extent) < 0) /* takes the reference */
            Py_CLEAR(shape);
    }
    return shape;
}

/* [(name, "In" | "Out" | "InOut", shape or None, "FP32")] */
static PyObject *program_parameters(PyObject *object, void *unused)
{
    (void)unused;
    static const char *const directions[] = {"In", "Out", "InOut"};
    static const char *const dtypes[] = {
#define NAME(name, label, bits, class_) #name,
        PYPTO_DTYPES(NAME)
#undef NAME
    };
    const pld_function *host = program_host((program_object *)object);
    PyObject *list = host == NULL ? NULL : PyList_New(0);
    for (int32_t i = 0; list != NULL && i < host->nparams; i++) {
        const pld_param *param = &host->params[i];
        PyObject *row = Py_BuildValue("(ssNs)", param->name, directions[param->direction],
                                      shape_of(param), dtypes[param->dtype]);
        if (row == NULL || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *extents_of(const pld_function *host, const pld_param *param)
{
    if (param->kind == PLD_PARAM_SCALAR)
        Py_RETURN_NONE;
    PyObject *shape = PyList_New(param->ndim);
    for (int32_t i = 0; shape != NULL && i < param->ndim; i++) {
        const int64_t code = param->shape[i];
        PyObject *extent =
            code < 0 ? PyUnicode_FromString(host->dims[-1 - code]) : PyLong_FromLongLong(code);
        if (extent == NULL || PyList_SetItem(shape, i, extent) < 0) /* takes the reference */
            Py_CLEAR(shape);
    }
    return shape;
}

/* [[4, "M"], None]: shapes with the texts of dynamic dimensions */
static PyObject *program_extents(PyObject *object, void *unused)
{
    (void)unused;
    const pld_function *host = program_host((program_object *)object);
    PyObject *list = host == NULL ? NULL : PyList_New(host->nparams);
    for (int32_t i = 0; list != NULL && i < host->nparams; i++) {
        PyObject *shape = extents_of(host, &host->params[i]);
        if (shape == NULL || PyList_SetItem(list, i, shape) < 0) /* takes the reference */
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *program_parameter_count(PyObject *object, void *unused)
{
    (void)unused;
    const pld_function *host = program_host((program_object *)object);
    return host == NULL ? NULL : PyLong_FromLong(host->nparams);
}

static PyObject *program_subs(PyObject *object, void *unused)
{
    (void)unused;
    return subs_of((program_object *)object);
}

/* A SubWorker's Function may lead back to what holds the program. */
static int program_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((program_object *)object)->subs);
    return 0;
}

static int program_clear(PyObject *object)
{
    Py_CLEAR(((program_object *)object)->subs);
    return 0;
}

static void program_dealloc(PyObject *object)
{
    program_object *self = (program_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    pypto_program_release(self->program);
    Py_XDECREF(self->subs);
    Py_XDECREF(self->names);
    compile_output_clear(&self->output);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type); /* instances of heap types own a reference to them */
}

static PyGetSetDef program_getset[] = {
    {"name", program_name, NULL, "Name of the host function.", NULL},
    {"object_path", program_object_path, NULL, "The shared object with the native code.", NULL},
    {"output_dir", program_output_dir, NULL,
     "Folder of program.so, program.c, program.ir, program.json.", NULL},
    {"parameters", program_parameters, NULL, "[(name, direction, shape or None, dtype)].", NULL},
    {"extents", program_extents, NULL, "[shape or None], dynamic dimensions as text.", NULL},
    {"parameter_count", program_parameter_count, NULL, "How many parameters it has.", NULL},
    {"sub_workers", program_subs, NULL, "{name: Function or None}: what it calls in SubWorkers.",
     NULL},
    {"stats", program_stats, NULL, "Cache hits and nanoseconds of the compile.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* note_sub_workers(functions) */
static PyObject *program_note_subs(PyObject *object, PyObject *functions)
{
    if (!PyList_Check(functions)) {
        PyErr_SetString(PyExc_TypeError, "note_sub_workers() takes a list");
        return NULL;
    }
    return subs_note((program_object *)object, functions) ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef program_methods[] = {
    {"note_sub_workers", program_note_subs, METH_O,
     "note_sub_workers(functions)\n\nWhat one that was loaded from a folder calls in SubWorkers."},
    {"take_stages", program_take_stages, METH_NOARGS,
     "take_stages()\n\n[(name, IR)] of the passes, if it was compiled with stages, and not found in a cache; once."},
    {"check_kinds", program_check_kinds, METH_O,
     "check_kinds(arguments)\n\nRaises for a wrong number of arguments, and for the first that is neither tensor nor\n"
     "number, or the one where its parameter is the other."},
    {"run", program_run, METH_VARARGS,
     "run(arguments, device_ids, title, lint, records, subs)\n\nRuns the program, blocks until every rank is done."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_traverse, program_traverse},
    {Py_tp_clear, program_clear},
    {Py_tp_getset, program_getset},
    {Py_tp_methods, program_methods},
    {Py_tp_doc, "A compiled program that can be run."},
    {0, NULL},
};

static PyType_Spec program_spec = {
    .name = "pypto._core.Program",
    .basicsize = (int)sizeof(program_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = program_slots,
};

bool program_init(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &program_spec, NULL);
    core_state_of(module)->program_type = (PyTypeObject *)type;
    return type != NULL && PyModule_AddType(module, (PyTypeObject *)type) == 0;
}
