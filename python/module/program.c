/* Compiling a DSL function, and the class Program: a compiled program that can be run.
 *
 * compile() turns Python arguments into what the front end knows of them (element type and shape),
 * looks for a program among those of the function that still serves, and asks the compile driver
 * otherwise. The GIL is released while the C compiler runs.
 *
 * Program.run() hands the arguments to the host library with the GIL released. When a signal
 * interrupts the wait, the library asks `interrupted`, which takes the GIL, lets Python run its
 * signal handlers, and says whether one raised: that exception then is the result of the call.
 *
 * A Program is immutable but for its handle on the loaded code, which it opens at first use. */
#include "core.h"

#include "base/settings.h"
#include "codegen/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program_object {
    PyObject_HEAD compile_output output; /* owned */
    pypto_program *program;              /* owned; NULL until it is needed */
} program_object;

/* ---- arguments ---- */

/* The arguments of one call. */
typedef struct call_arguments {
    held_argument *held; /* `count` of them, PyMem */
    Py_ssize_t count;
} call_arguments;

static void arguments_release(call_arguments *args)
{
    for (Py_ssize_t i = 0; i < args->count; i++)
        tensor_release(&args->held[i]);
    PyMem_Free(args->held);
    *args = (call_arguments){0};
}

/* Holds item i of a tuple; errors call it by its parameter and the function. */
static bool argument_hold(PyObject *values, PyObject *names, const char *function, Py_ssize_t i,
                          held_argument *held)
{
    const char *name = i < PyTuple_Size(names) ? utf8(PyTuple_GetItem(names, i)) : "?";
    char label[256];
    (void)snprintf(label, sizeof label, "'%s' of '%s'", name == NULL ? "?" : name, function);
    return name != NULL && tensor_hold(PyTuple_GetItem(values, i), label, held);
}

/* Holds all items of a tuple; item i of the tuple `names` is the parameter of argument i, for errors.
 * On failure nothing is held. */
static bool arguments_hold(PyObject *values, PyObject *names, const char *function,
                           call_arguments *args)
{
    Py_ssize_t count = PyTuple_Size(values);
    *args = (call_arguments){PyMem_Calloc((size_t)count + 1, sizeof *args->held), count};
    if (args->held == NULL) {
        args->count = 0;
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!argument_hold(values, names, function, i, &args->held[i])) {
            arguments_release(args);
            return false;
        }
    }
    return true;
}

static frontend_arg described(const held_argument *held)
{
    const pypto_argument *argument = &held->argument;
    frontend_arg arg = {.integer = argument->integer, .real = argument->real};
    switch (argument->kind) {
    case PLD_ARG_TENSOR:
        arg.kind = FRONTEND_TENSOR;
        arg.dtype = argument->tensor.dtype;
        arg.ndim = argument->tensor.ndim;
        memcpy(arg.shape, argument->tensor.shape, sizeof arg.shape);
        break;
    case PLD_ARG_INT: arg.kind = held->boolean ? FRONTEND_BOOL : FRONTEND_INT; break;
    case PLD_ARG_FLOAT: arg.kind = FRONTEND_FLOAT; break;
    }
    return arg;
}

/* What the front end sees of the arguments: PyMem, never NULL on success even when there are
 * none. `...` is one that is not given, NotImplemented one that stays a parameter. */
static frontend_arg *arguments_describe(PyObject *values, PyObject *names, const char *function,
                                        int32_t *count)
{
    Py_ssize_t size = PyTuple_Size(values);
    frontend_arg *result = PyMem_Calloc((size_t)size + 1, sizeof *result);
    *count = (int32_t)size;
    if (result == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; result != NULL && i < size; i++) {
        PyObject *value = PyTuple_GetItem(values, i);
        held_argument held = {0};
        if (value == Py_Ellipsis || value == Py_NotImplemented) {
            result[i].kind = value == Py_NotImplemented ? FRONTEND_RUNTIME : FRONTEND_OPEN;
        } else if (argument_hold(values, names, function, i, &held)) {
            result[i] = described(&held);
        } else {
            PyMem_Free(result);
            result = NULL;
        }
        tensor_release(&held);
    }
    return result;
}

/* ---- settings ---- */

static bool refuse_setting(setting s, const char *accepted)
{
    PyErr_Format(PyExc_ValueError, "%s must be %s, not '%s'", setting_name(s), accepted,
                 setting_text(s));
    return false;
}

/* Misspelt values would have no effect, which nobody would notice. */
static bool check_settings(void)
{
    for (const char *word = setting_text(SETTING_DUMP); *word != '\0';) {
        size_t length = strcspn(word, ",");
        if (!(length == 2 && strncmp(word, "ir", 2) == 0) && !(length == 1 && *word == 'c'))
            return refuse_setting(SETTING_DUMP, "ir, c or ir,c");
        word += length + (word[length] == ',');
    }
    const char *spin = setting_text(SETTING_SPIN);
    if (strspn(spin, "0123456789") != strlen(spin) || strlen(spin) > 18)
        return refuse_setting(SETTING_SPIN, "a number of pauses, 0 or more");
    return true;
}

/* A $CC that names nothing is passed over by the search for a compiler. */
static bool warn_of_compiler(void)
{
    const char *usual = getenv("CC");
    size_t blanks = usual == NULL ? 0 : strspn(usual, " \t");
    size_t length = usual == NULL ? 0 : strcspn(usual + blanks, " \t");
    if (setting_text(SETTING_CC)[0] != '\0' || length == 0)
        return true;
    PyObject *shutil = PyImport_ImportModule("shutil");
    PyObject *word = PyUnicode_DecodeFSDefaultAndSize(usual + blanks, (Py_ssize_t)length);
    PyObject *found =
        shutil == NULL || word == NULL ? NULL : PyObject_CallMethod(shutil, "which", "O", word);
    bool good = found != NULL;
    const int users_call = 3; /* behind _jit's __call__ and _program */
    if (found == Py_None)
        good = PyErr_WarnFormat(PyExc_RuntimeWarning, users_call,
                                "CC is '%s', which names no program; set PYPTO_CC or CC to a C "
                                "compiler (cc, gcc or clang is used meanwhile)",
                                usual) == 0;
    Py_XDECREF(found);
    Py_XDECREF(word);
    Py_XDECREF(shutil);
    return good;
}

/* ---- compiling ---- */

/* The first of `programs` that serves the request, as a new reference; NULL without an exception
 * when none does. */
static PyObject *find_program(core_state *state, PyObject *function, PyObject *programs,
                              compile_request *request)
{
    for (Py_ssize_t i = PyList_Size(programs) - 1; i >= 0; i--) {
        PyObject *candidate = PyList_GetItem(programs, i);
        /* A conversation of its own: functions are numbered anew. */
        embedding e;
        if (!embedding_begin(&e, state, function))
            return NULL;
        frontend_embedder embedder = embedding_interface(&e);
        request->embedder = &embedder;
        bool serves = compile_still_serves(&((program_object *)candidate)->output, request);
        if (!embedding_end(&e))
            return NULL;
        if (serves) {
            Py_INCREF(candidate);
            return candidate;
        }
    }
    return NULL;
}

/* Who waits for more than a second learns what for. */
static void tell_if_slow(const compile_request *request, const compile_output *output)
{
    const int64_t second = 1000000000;
    double front = (double)output->front_ns / 1e9;
    double back = (double)output->back_ns / 1e9;
    char line[256];
    if (output->front_ns + output->back_ns < second)
        return;
    (void)snprintf(line, sizeof line,
                   "pypto: compiled %.100s in %.1f s, %.1f s of it in the C compiler\n",
                   request->entry_name, front + back, back);
    PySys_WriteStderr("%s", line);
}

static PyObject *new_program(core_state *state, PyObject *function, PyObject *programs,
                             compile_request *request)
{
    PyObject *self = warn_of_compiler() ? PyType_GenericAlloc(state->program_type, 0) : NULL;
    embedding e;
    if (self == NULL || !embedding_begin(&e, state, function)) {
        Py_XDECREF(self);
        return NULL;
    }
    frontend_embedder embedder = embedding_interface(&e);
    request->embedder = &embedder;
    request->waiting = embedding_waiting;
    request->waiting_context = &e;
    pypto_status status = compile_program(request, &((program_object *)self)->output);
    /* Ctrl-C also ends the C compiler; its failure then is no news. */
    bool good = embedding_end(&e) && PyErr_CheckSignals() == 0;
    if (good && !status_ok(status)) {
        errors_raise(&status);
        good = false;
    }
    pypto_status_clear(&status);
    if (good)
        tell_if_slow(request, &((program_object *)self)->output);
    if (!good || PyList_Append(programs, self) < 0)
        Py_CLEAR(self);
    return self;
}

/* compile(function, programs, names, arguments, platform) */
PyObject *program_compile(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    PyObject *function, *programs, *names, *values, *identity = NULL, *name = NULL, *result = NULL;
    const char *platform;
    frontend_arg *described_args = NULL;
    int32_t count = 0;
    if (!PyArg_ParseTuple(args, "OO!O!Os:compile", &function, &PyList_Type, &programs,
                          &PyTuple_Type, &names, &values, &platform))
        return NULL;
    if (values != Py_None && !PyTuple_Check(values)) {
        PyErr_SetString(PyExc_TypeError, "arguments must be a tuple or None");
        return NULL;
    }
    if (!check_settings())
        return NULL;
    name = PyObject_GetAttrString(function, "__name__");
    if (name == NULL || utf8(name) == NULL)
        goto done;
    if (values != Py_None) {
        described_args = arguments_describe(values, names, utf8(name), &count);
        if (described_args == NULL)
            goto done;
    }
    identity = PyObject_CallMethod(function, "identity", NULL);
    if (identity == NULL || utf8(identity) == NULL)
        goto done;
    compile_request request = {
        .entry = 0,
        .entry_digest = utf8(identity),
        .entry_name = utf8(name),
        .args = described_args,
        .arg_count = count,
        .platform = platform,
    };
    result = find_program(state, function, programs, &request);
    if (result == NULL && !PyErr_Occurred())
        result = new_program(state, function, programs, &request);
done:
    Py_XDECREF(identity);
    Py_XDECREF(name);
    PyMem_Free(described_args);
    return result;
}

/* ---- only looking ---- */

/* Runs the check with a way back for exhausted memory. */
static pypto_status check_guarded(arena *a, embedding *e, const int32_t *numbers, int32_t count)
{
    jmp_buf recovery;
    if (setjmp(recovery) != 0)
        return diag_no_memory();
    arena_set_recovery(a, &recovery);
    frontend_embedder embedder = embedding_interface(e);
    return frontend_check(a, &embedder, numbers, count);
}

/* Drops what is reported when a program is compiled, not when its text is read. */
static void keep_parser_errors(pypto_status *status)
{
    pypto_status kept = STATUS_OK;
    pypto_diagnostic *next;
    for (pypto_diagnostic *d = status->diagnostics; d != NULL; d = next) {
        next = d->next;
        d->next = NULL;
        pypto_status one = {d->kind, d};
        if (d->kind == PYPTO_ERROR_VALUE)
            pypto_status_clear(&one);
        else
            diag_append(&kept, &one);
    }
    *status = kept;
}

/* check(functions) */
PyObject *program_check(PyObject *module, PyObject *args)
{
    PyObject *functions;
    if (!PyArg_ParseTuple(args, "O!:check", &PyTuple_Type, &functions))
        return NULL;
    Py_ssize_t count = PyTuple_Size(functions);
    if (count == 0)
        Py_RETURN_NONE;
    embedding e;
    arena *a = arena_create();
    int32_t *numbers = PyMem_Calloc((size_t)count, sizeof *numbers);
    bool begun = a != NULL && numbers != NULL &&
                 embedding_begin(&e, core_state_of(module), PyTuple_GetItem(functions, 0));
    bool good = begun;
    pypto_status status = STATUS_OK;
    if (begun) {
        for (Py_ssize_t i = 0; i < count; i++)
            numbers[i] = embedding_number(&e, PyTuple_GetItem(functions, i));
        status = check_guarded(a, &e, numbers, (int32_t)count);
        good = embedding_end(&e);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    keep_parser_errors(&status);
    if (good && !status_ok(status)) {
        errors_raise(&status);
        good = false;
    }
    pypto_status_clear(&status);
    PyMem_Free(numbers);
    arena_destroy(a);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

/* lower(function, names, arguments, platform) */
PyObject *program_lower(PyObject *module, PyObject *args)
{
    PyObject *function, *names, *values, *result = NULL;
    const char *platform;
    frontend_arg *given = NULL;
    int32_t count = 0;
    if (!PyArg_ParseTuple(args, "OO!Os:lower", &function, &PyTuple_Type, &names, &values,
                          &platform))
        return NULL;
    if (values != Py_None && !PyTuple_Check(values)) {
        PyErr_SetString(PyExc_TypeError, "arguments must be a tuple or None");
        return NULL;
    }
    if (values != Py_None) {
        PyObject *name = PyObject_GetAttrString(function, "__name__");
        const char *words = name == NULL ? NULL : utf8(name);
        given = words == NULL ? NULL : arguments_describe(values, names, words, &count);
        Py_XDECREF(name);
        if (given == NULL)
            return NULL;
    }
    embedding e;
    if (embedding_begin(&e, core_state_of(module), function)) {
        frontend_embedder embedder = embedding_interface(&e);
        compile_request request = {
            .embedder = &embedder, .args = given, .arg_count = count, .platform = platform};
        char *words = NULL;
        pypto_status status = compile_lower(&request, &words);
        if (embedding_end(&e)) {
            if (status_ok(status))
                result = PyUnicode_FromString(words);
            else
                errors_raise(&status);
        }
        pypto_status_clear(&status);
        free(words);
    }
    PyMem_Free(given);
    return result;
}

/* ---- the loaded code ---- */

/* The host function's row in the program's table; NULL with an exception set. */
static const pld_function *host_function(program_object *self)
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

static PyObject *host_names(const pld_function *host)
{
    PyObject *names = PyTuple_New(host->nparams);
    for (int32_t i = 0; names != NULL && i < host->nparams; i++) {
        PyObject *name = PyUnicode_FromString(host->params[i].name);
        if (name == NULL || PyTuple_SetItem(names, i, name) < 0) /* takes the reference */
            Py_CLEAR(names);
    }
    return names;
}

/* ---- running ---- */

typedef struct waiting_call {
    PyThreadState *thread; /* of the call, while the GIL is released */
} waiting_call;

static bool interrupted(void *context)
{
    waiting_call *call = context;
    PyEval_RestoreThread(call->thread);
    bool raised = PyErr_Occurred() != NULL || PyErr_CheckSignals() < 0;
    call->thread = PyEval_SaveThread();
    return raised;
}

static bool read_device_ids(PyObject *list, int32_t **ids, int32_t *count)
{
    Py_ssize_t size = PyList_Size(list);
    *ids = PyMem_Calloc((size_t)size + 1, sizeof **ids);
    *count = (int32_t)size;
    if (*ids == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; *ids != NULL && i < size; i++) {
        long id = PyLong_AsLong(PyList_GetItem(list, i));
        if (id == -1 && PyErr_Occurred())
            return false;
        if (id < 0 || id > INT32_MAX)
            return errors_refuse(DIAG_BAD_DEVICE_IDS, NULL, "%ld is no device id", id);
        (*ids)[i] = (int32_t)id;
    }
    return *ids != NULL;
}

static bool read_transport(pypto_start *start)
{
    const char *chosen = setting_text(SETTING_TRANSPORT);
    if (strcmp(chosen, "shm") != 0 && strcmp(chosen, "threads") != 0) {
        PyErr_Format(PyExc_ValueError, "%s must be shm or threads, not '%s'",
                     setting_name(SETTING_TRANSPORT), chosen);
        return false;
    }
    *start = chosen[0] == 's' ? PYPTO_START_EXEC : PYPTO_START_THREAD;
    return true;
}

/* The arguments as the library takes them, PyMem; NULL with an exception set. */
static pypto_argument *library_arguments(const pld_function *host, const call_arguments *args)
{
    pypto_argument *result = PyMem_Calloc((size_t)args->count + 1, sizeof *result);
    if (result == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; result != NULL && i < args->count; i++) {
        result[i] = args->held[i].argument;
        if (i >= host->nparams)
            continue; /* the library counts them */
        const pld_param *param = &host->params[i];
        bool real = param->kind == PLD_PARAM_SCALAR &&
                    (param->dtype == PYPTO_FP32 || param->dtype == PYPTO_FP16 ||
                     param->dtype == PYPTO_BF16);
        if (real && result[i].kind == PLD_ARG_INT) {
            result[i].kind = PLD_ARG_FLOAT;
            result[i].real = (double)result[i].integer;
        }
        if (args->held[i].copied && param->direction != PLD_IN) {
            PyMem_Free(result);
            result = NULL;
            errors_refuse(DIAG_ARGUMENT_READ_ONLY, "pass x.resolve_neg()",
                          "argument '%s' of '%s' is written, but is a tensor with its negative bit "
                          "set",
                          param->name, host->name);
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
    pypto_argument *arguments = library_arguments(host_function(self), args);
    if (arguments == NULL)
        return NULL;
    waiting_call waiting;
    pypto_worker_options options = *base;
    options.interrupted = interrupted;
    options.interrupt_context = &waiting;

    waiting.thread = PyEval_SaveThread();
    pypto_status status = pypto_call(&options, self->program, arguments, (int32_t)args->count);
    PyEval_RestoreThread(waiting.thread);

    PyMem_Free(arguments);
    if (PyErr_Occurred()) { /* what a signal handler raised */
        pypto_status_clear(&status);
        return NULL;
    }
    if (!status_ok(status))
        return errors_raise(&status);
    Py_RETURN_NONE;
}

/* run(arguments, device_ids, title) */
static PyObject *program_run(PyObject *object, PyObject *args)
{
    program_object *self = (program_object *)object;
    PyObject *values, *ids, *names, *result = NULL;
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    int32_t *device_ids = NULL;
    if (!PyArg_ParseTuple(args, "O!O!s:run", &PyTuple_Type, &values, &PyList_Type, &ids,
                          &options.title))
        return NULL;
    const pld_function *host = host_function(self);
    names = host == NULL ? NULL : host_names(host);
    call_arguments held = {0};
    if (names != NULL && read_transport(&options.start) &&
        read_device_ids(ids, &device_ids, &options.device_count) &&
        arguments_hold(values, names, host->name, &held)) {
        options.device_ids = device_ids;
        result = call(self, &options, &held);
    }
    arguments_release(&held);
    PyMem_Free(device_ids);
    Py_XDECREF(names);
    return result;
}

/* ---- attributes ---- */

static PyObject *program_name(PyObject *object, void *unused)
{
    (void)unused;
    const pld_function *host = host_function((program_object *)object);
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
    const pld_function *host = host_function((program_object *)object);
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

static void program_dealloc(PyObject *object)
{
    program_object *self = (program_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    pypto_program_release(self->program);
    compile_output_clear(&self->output);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type); /* instances of heap types own a reference to them */
}

static PyGetSetDef program_getset[] = {
    {"name", program_name, NULL, "Name of the host function.", NULL},
    {"object_path", program_object_path, NULL, "The shared object with the native code.", NULL},
    {"output_dir", program_output_dir, NULL, "Folder of program.so, program.c, program.ir.", NULL},
    {"parameters", program_parameters, NULL, "[(name, direction, shape or None, dtype)].", NULL},
    {"stats", program_stats, NULL, "Cache hits and nanoseconds of the compile.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef program_methods[] = {
    {"run", program_run, METH_VARARGS,
     "run(arguments, device_ids, title)\n\nRuns the program, blocks until every rank is done."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_getset, program_getset},
    {Py_tp_methods, program_methods},
    {Py_tp_doc, "A compiled program that can be run."},
    {0, NULL},
};

static PyType_Spec program_spec = {
    .name = "pypto._core.Program",
    .basicsize = (int)sizeof(program_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = program_slots,
};

bool program_init(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &program_spec, NULL);
    core_state_of(module)->program_type = (PyTypeObject *)type;
    return type != NULL && PyModule_AddType(module, (PyTypeObject *)type) == 0;
}
