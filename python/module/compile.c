/* Compiling a DSL function into a Program, and looking at one without running it.
 *
 * compile() turns Python arguments into what the front end knows of them (element type and shape),
 * looks for a program among those of the function that still serves, and asks the compile driver
 * otherwise. The GIL is released while the C compiler runs. */
#include "base/settings.h"
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

/* Misspelt values would have no effect, which nobody would notice. */
static bool check_settings(void)
{
    pypto_status status = settings_check();
    return status_ok(status) || errors_raise(&status) != NULL;
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
    const int users_call = 4; /* behind _jit's __call__, _program and _compiled */
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
        const bool noted = !serves || subs_note((program_object *)candidate, e.functions);
        if (!embedding_end(&e) || !noted)
            return NULL;
        if (serves) {
            Py_INCREF(candidate);
            return candidate;
        }
    }
    return NULL;
}

/* What a compile that ended well has to say: that the cache could not be used. */
static bool tell_of_cache(const pypto_status *status, int level)
{
    if (!status_ok(*status) || status->diagnostics == NULL)
        return true;
    const pypto_diagnostic *d = status->diagnostics;
    char *whole = pypto_status_text(status);
    PyObject *errors = PyImport_ImportModule("pypto.errors");
    PyObject *done = NULL;
    if (whole == NULL)
        PyErr_NoMemory();
    else if (errors != NULL)
        done =
            PyObject_CallMethod(errors, "warn_of_cache", "sssi", d->code, d->message, whole, level);
    free(whole);
    Py_XDECREF(errors);
    Py_XDECREF(done);
    return done != NULL;
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
    const bool noted = subs_note((program_object *)self, e.functions);
    /* Ctrl-C also ends the C compiler; its failure then is no news. */
    bool good = embedding_end(&e) && noted && PyErr_CheckSignals() == 0;
    if (good && !status_ok(status)) {
        errors_raise(&status);
        good = false;
    }
    good = good && tell_of_cache(&status, 5); /* behind _jit's __call__, _program and _compiled */
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

/* [(name, text)] of stages */
static PyObject *stage_list(const compile_text *made)
{
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; i < made->stage_count && list != NULL; i++) {
        PyObject *pair =
            Py_BuildValue("(sN)", made->stages[i].name, file_object(made->stages[i].ir));
        if (pair == NULL || PyList_Append(list, pair) < 0)
            Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

/* lower(function, names, arguments, platform, stages=False): program.c, program.ir, program.json, and a list of stages with
 * the IR behind each */
PyObject *program_lower(PyObject *module, PyObject *args)
{
    PyObject *function, *names, *values, *result = NULL;
    const char *platform;
    int stages = 0;
    frontend_arg *given = NULL;
    int32_t count = 0;
    if (!PyArg_ParseTuple(args, "OO!Os|p:lower", &function, &PyTuple_Type, &names, &values,
                          &platform, &stages) ||
        !check_settings())
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
        compile_request request = {.embedder = &embedder,
                                   .args = given,
                                   .arg_count = count,
                                   .platform = platform,
                                   .stages = stages != 0};
        compile_text made = {0};
        pypto_status status = compile_lower(&request, &made);
        if (embedding_end(&e)) {
            if (status_ok(status))
                result = Py_BuildValue("(NNNN)", file_object(made.c), file_object(made.ir),
                                       file_object(made.description), stage_list(&made));
            else
                errors_raise(&status);
        }
        pypto_status_clear(&status);
        compile_text_clear(&made);
    }
    PyMem_Free(given);
    return result;
}

/* ---- programs that were kept ---- */

/* While the C compiler runs, the GIL is released. */
static void release_while_waiting(void *context, bool begins)
{
    PyThreadState **thread = context;
    if (begins) {
        *thread = PyEval_SaveThread();
    } else if (*thread != NULL) {
        PyEval_RestoreThread(*thread);
        *thread = NULL;
    }
}

/* load(directory) */
PyObject *program_load(PyObject *module, PyObject *args)
{
    PyObject *path = NULL;
    PyThreadState *thread = NULL;
    if (!PyArg_ParseTuple(args, "O&:load", PyUnicode_FSConverter, &path))
        return NULL;
    if (!check_settings()) {
        Py_DECREF(path);
        return NULL;
    }
    PyObject *self = PyType_GenericAlloc(core_state_of(module)->program_type, 0);
    const char *directory = self == NULL ? NULL : PyBytes_AsString(path);
    if (directory != NULL) {
        program_object *program = (program_object *)self;
        pypto_status status =
            compile_load(directory, release_while_waiting, &thread, &program->output);
        bool good = PyErr_CheckSignals() == 0;
        if (good && !status_ok(status)) {
            errors_raise(&status);
            good = false;
        }
        good = good && tell_of_cache(&status, 4); /* behind artifact's and from_dir */
        pypto_status_clear(&status);
        if (!good || program_host(program) == NULL)
            Py_CLEAR(self);
    }
    Py_DECREF(path);
    return self;
}
