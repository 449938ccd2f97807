/* Compiling a DSL function into a Program, and looking at one without running it.
 *
 * compile() turns Python arguments into what the front end knows of them (element type and shape),
 * looks for a program among those of the function that still serves, and asks the compile driver
 * otherwise. While the C compiler runs the GIL is released, and Ctrl-C ends it. */
#include "base/settings.h"
#include "embedder.h"
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
    compiler_wait wait = compiler_wait_new();
    request->waiting = compiler_waiting;
    request->waiting_context = &wait;
    request->interrupts = &wait.interrupts;
    pypto_status status = compile_program(request, &((program_object *)self)->output);
    if (PyErr_Occurred()) /* the wait for the C compiler was interrupted */
        hold_back(&e);
    const bool noted = subs_note((program_object *)self, e.functions);
    /* A Ctrl-C that has ended the C compiler: its failure then is no news. */
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

/* What a function is compiled for, in Python's words. */
typedef struct wish {
    PyObject *name;          /* owned */
    frontend_arg *arguments; /* owned; NULL: from annotations alone */
} wish;

static void wish_release(wish *w)
{
    Py_XDECREF(w->name);
    PyMem_Free(w->arguments);
}

/* False with an exception. In either case the wish is to be released. */
static bool wish_read(wish *w, PyObject *function, PyObject *names, PyObject *values,
                      compile_request *request)
{
    *w = (wish){0};
    if (values != Py_None && !PyTuple_Check(values)) {
        PyErr_SetString(PyExc_TypeError, "arguments must be a tuple or None");
        return false;
    }
    w->name = PyObject_GetAttrString(function, "__name__");
    request->entry_name = w->name == NULL ? NULL : utf8(w->name);
    if (request->entry_name == NULL || values == Py_None)
        return request->entry_name != NULL;
    w->arguments = arguments_describe(values, names, request->entry_name, &request->arg_count);
    request->args = w->arguments;
    return w->arguments != NULL;
}

/* compile(function, programs, names, arguments, platform, stages=False) */
PyObject *program_compile(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    PyObject *function, *programs, *names, *values, *identity = NULL, *result = NULL;
    compile_request request = {.entry = 0};
    wish w;
    int stages = 0;
    if (!PyArg_ParseTuple(args, "OO!O!Os|p:compile", &function, &PyList_Type, &programs,
                          &PyTuple_Type, &names, &values, &request.platform, &stages) ||
        !check_settings())
        return NULL;
    if (!wish_read(&w, function, names, values, &request))
        goto done;
    identity = PyObject_CallMethod(function, "identity", NULL);
    request.entry_digest = identity == NULL ? NULL : utf8(identity);
    if (request.entry_digest == NULL)
        goto done;
    request.stages = stages != 0;
    result = find_program(state, function, programs, &request);
    if (result == NULL && !PyErr_Occurred())
        result = new_program(state, function, programs, &request);
done:
    Py_XDECREF(identity);
    wish_release(&w);
    return result;
}

/* ---- only looking ---- */

typedef struct check_question {
    embedding *e;
    PyObject *functions;
} check_question;

static pypto_status check_functions(arena *a, void *context)
{
    const check_question *q = context;
    const int32_t count = (int32_t)PyTuple_Size(q->functions);
    int32_t *numbers = arena_array(a, int32_t, count);
    for (int32_t i = 0; i < count; i++)
        numbers[i] = embedding_number(q->e, PyTuple_GetItem(q->functions, i));
    frontend_embedder embedder = embedding_interface(q->e);
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
    embedding e;
    if (!PyArg_ParseTuple(args, "O!:check", &PyTuple_Type, &functions))
        return NULL;
    if (PyTuple_Size(functions) == 0)
        Py_RETURN_NONE;
    if (!embedding_begin(&e, core_state_of(module), PyTuple_GetItem(functions, 0)))
        return NULL;
    check_question q = {&e, functions};
    pypto_status status = arena_run(check_functions, &q);
    bool good = embedding_end(&e);
    keep_parser_errors(&status);
    if (good && !status_ok(status)) {
        errors_raise(&status);
        good = false;
    }
    pypto_status_clear(&status);
    return good ? Py_NewRef(Py_None) : NULL;
}

/* [(name, text)] */
static PyObject *stage_list(const compile_stages *stages)
{
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; i < stages->count && list != NULL; i++) {
        PyObject *pair =
            Py_BuildValue("(sN)", stages->items[i].name, file_object(stages->items[i].ir));
        if (pair == NULL || PyList_Append(list, pair) < 0)
            Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

PyObject *program_take_stages(PyObject *self, PyObject *unused)
{
    (void)unused;
    compile_stages *stages = &((program_object *)self)->output.stages;
    PyObject *list = stage_list(stages);
    if (list != NULL)
        compile_stages_clear(stages);
    return list;
}

/* lower(function, names, arguments, platform, stages=False): program.c, program.ir, program.json, and a list of stages with
 * the IR behind each */
PyObject *program_lower(PyObject *module, PyObject *args)
{
    PyObject *function, *names, *values, *result = NULL;
    compile_request request = {.entry = 0};
    wish w;
    int stages = 0;
    if (!PyArg_ParseTuple(args, "OO!Os|p:lower", &function, &PyTuple_Type, &names, &values,
                          &request.platform, &stages) ||
        !check_settings())
        return NULL;
    embedding e;
    if (wish_read(&w, function, names, values, &request) &&
        embedding_begin(&e, core_state_of(module), function)) {
        frontend_embedder embedder = embedding_interface(&e);
        request.embedder = &embedder;
        request.stages = stages != 0;
        compile_text made = {0};
        pypto_status status = compile_lower(&request, &made);
        if (embedding_end(&e)) {
            if (status_ok(status))
                result = Py_BuildValue("(NNNN)", file_object(made.c), file_object(made.ir),
                                       file_object(made.description), stage_list(&made.stages));
            else
                errors_raise(&status);
        }
        pypto_status_clear(&status);
        compile_text_clear(&made);
    }
    wish_release(&w);
    return result;
}

/* ---- programs that were kept ---- */

/* load(directory) */
PyObject *program_load(PyObject *module, PyObject *args)
{
    PyObject *path = NULL;
    compiler_wait wait = compiler_wait_new();
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
            compile_load(directory, compiler_waiting, &wait, &wait.interrupts, &program->output);
        bool good = PyErr_Occurred() == NULL && PyErr_CheckSignals() == 0;
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
