/* The extension module pypto._core: its functions, its state, and where it starts.
 *
 * The package python/pypto/ is the only caller. The module keeps to the limited API of CPython
 * 3.11, so that one binary serves every later version. It joins the two halves of the library:
 * the compiler, which it feeds with Python's syntax trees and names (ast_import.c, embedder.c, embedded_names.c),
 * and the host, which it hands tensors (tensors.c). It decides nothing about the language or the
 * runtime. */
#include "program.h"

#include "base/hash.h"

#include <string.h>

core_state *core_state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

static PyObject *core_version(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(pypto_version());
}

/* digest(bytes) -> 32 hexadecimal digits that identify them. */
static PyObject *core_digest(PyObject *module, PyObject *bytes)
{
    (void)module;
    char *start = NULL;
    Py_ssize_t count = 0;
    if (PyBytes_AsStringAndSize(bytes, &start, &count) < 0)
        return NULL;
    hasher h;
    char hex[33];
    hasher_init(&h);
    hasher_bytes(&h, start, (int64_t)count);
    hash_hex(hasher_finish(&h), hex);
    return PyUnicode_FromString(hex);
}

static PyObject *core_shutdown(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS pypto_shutdown();
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *core_is_abandoned(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(waiting_is_abandoned());
}

/* The dump itself: everything allocated here is on arenas and in `keep`, so that the jump for
 * exhausted memory loses nothing. Returns false without exception in that case. */
static bool dump(core_state *state, PyObject *definition, const char *file, PyObject *keep,
                 arena *a, text *out, pypto_status *errors)
{
    jmp_buf recovery;
    if (setjmp(recovery) != 0)
        return false;
    arena_set_recovery(a, &recovery);
    const syntax_function *f = ast_import_function(state, a, definition, file, keep, true, errors);
    if (f == NULL)
        return false;
    syntax_dump(out, f);
    return true;
}

/* dump_syntax(ast.FunctionDef, filename) -> the function's syntax tree as text. */
static PyObject *core_dump_syntax(PyObject *module, PyObject *args)
{
    PyObject *definition = NULL;
    const char *file = NULL;
    if (!PyArg_ParseTuple(args, "Os:dump_syntax", &definition, &file))
        return NULL;
    PyObject *keep = PyList_New(0);
    arena *a = arena_create();
    PyObject *result = NULL;
    text out = {.a = a};
    pypto_status errors = STATUS_OK;
    if (keep == NULL || a == NULL)
        goto done;
    if (dump(core_state_of(module), definition, file, keep, a, &out, &errors))
        result = PyUnicode_FromStringAndSize(out.bytes, (Py_ssize_t)out.length);
    else if (!status_ok(errors))
        errors_raise(&errors);
done:
    if (result == NULL && !PyErr_Occurred())
        PyErr_NoMemory();
    pypto_status_clear(&errors);
    arena_destroy(a);
    Py_XDECREF(keep);
    return result;
}

/* The canonical text of what a name means; NULL, without exception, when memory is exhausted. */
static const char *meaning(embedding *e, arena *a, const char *name)
{
    jmp_buf recovery;
    if (setjmp(recovery) != 0)
        return NULL;
    arena_set_recovery(a, &recovery);
    frontend_embedder embedder = embedding_interface(e);
    name_value value = embedder.resolve(embedder.context, a, 0, name);
    return name_value_text(a, &value);
}

/* resolve(function, name) -> what the compiler is told about a name in a DSL function. */
static PyObject *core_resolve(PyObject *module, PyObject *args)
{
    PyObject *function = NULL;
    const char *name = NULL;
    if (!PyArg_ParseTuple(args, "Os:resolve", &function, &name))
        return NULL;
    arena *a = arena_create();
    embedding e;
    PyObject *result = NULL;
    if (a != NULL && embedding_begin(&e, core_state_of(module), function)) {
        const char *answer = meaning(&e, a, name);
        result = answer == NULL ? NULL : PyUnicode_FromString(answer);
        if (!embedding_end(&e))
            Py_CLEAR(result);
    }
    if (result == NULL && !PyErr_Occurred())
        PyErr_NoMemory();
    arena_destroy(a);
    return result;
}

static PyMethodDef core_methods[] = {
    {"version", core_version, METH_NOARGS, "version() -> str\n\nVersion of the library."},
    {"digest", core_digest, METH_O,
     "digest(bytes) -> str\n\nA content hash, 32 hexadecimal digits."},
    {"compile", program_compile, METH_VARARGS,
     "compile(function, programs, names, arguments, platform) -> Program\n\n"
     "The program of a DSL function for these arguments (None: what its annotations say). One of\n"
     "`programs` that still serves, or a new one, which is appended."},
    {"check", program_check, METH_VARARGS,
     "check(functions)\n\nRaises the errors of DSL functions, judged by their annotations alone."},
    {"lower", program_lower, METH_VARARGS,
     "lower(function, names, arguments, platform) -> (program.c, program.ir, program.json)\n\n"
     "What a program would be compiled from: no cache, no C compiler."},
    {"load", program_load, METH_VARARGS,
     "load(directory) -> Program\n\nThe program in a folder that was kept."},
    {"refuse", errors_refuse_at, METH_VARARGS,
     "refuse(code, message, hint, file, line, column, end_column, source)\n\n"
     "Raises a diagnostic that the package itself has found."},
    {"dump_syntax", core_dump_syntax, METH_VARARGS,
     "dump_syntax(definition, filename) -> str\n\nThe syntax tree of an ast.FunctionDef, as text."},
    {"resolve", core_resolve, METH_VARARGS,
     "resolve(function, name) -> str\n\nWhat a name means in a DSL function, for tests."},
    {"ops", tables_ops, METH_NOARGS,
     "ops() -> [(spellings, signature, doc)]\n\nThe tables of operations and of other words."},
    {"enums", tables_enums, METH_NOARGS,
     "enums() -> [(module, enumeration, member, value)]\n\nThe table of enumerations."},
    {"later", tables_later, METH_O,
     "later(path) -> str | None\n\nWhat to say of a name of the language that this version lacks."},
    {"dtypes", tables_dtypes, METH_NOARGS,
     "dtypes() -> [(name, text, bits, class)]\n\nThe table of element types."},
    {"include_dir", tables_include_dir, METH_NOARGS,
     "include_dir() -> str\n\nWhere the headers are that compiled programs include."},
    {"settings", tables_settings, METH_NOARGS,
     "settings() -> [(name, value, help, valid, is_error)]\n\nThe environment variables, what they are now and may "
     "be, and whether a bad value is an error."},
    {"setting", tables_setting, METH_O,
     "setting(name) -> int or str\n\nThe number that an environment variable stands for, or its text if it may be "
     "anything. ValueError if it is bad."},
    {"abandon", waiting_abandon, METH_O,
     "abandon(threads)\n\nThe interpreter ends in this thread, and leaves those to themselves: all others that\n"
     "wait for calls get SystemExit, and calls that those have submitted are cancelled."},
    {"is_abandoned", core_is_abandoned, METH_NOARGS,
     "is_abandoned() -> bool\n\nWhether the interpreter ends in another thread than this one."},
    {"shutdown", core_shutdown, METH_NOARGS, "shutdown()\n\nEnds all idle workers."},
    {NULL, NULL, 0, NULL},
};

static int core_exec(PyObject *module)
{
    return program_init(module) && runs_init(module) && worker_init(module) && shared_init(module)
               ? 0
               : -1;
}

static int core_traverse(PyObject *module, visitproc visit, void *arg)
{
    core_state *state = core_state_of(module);
    Py_VISIT(state->node_kinds);
    Py_VISIT(state->program_type);
    Py_VISIT(state->worker_type);
    Py_VISIT(state->run_type);
    return 0;
}

static int core_clear(PyObject *module)
{
    core_state *state = core_state_of(module);
    Py_CLEAR(state->node_kinds);
    Py_CLEAR(state->program_type);
    Py_CLEAR(state->worker_type);
    Py_CLEAR(state->run_type);
    return 0;
}

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, core_exec},
    {0, NULL},
};

static struct PyModuleDef core_definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "pypto._core",
    .m_doc = "The compiler and the runtime, for the package pypto alone.",
    .m_size = (Py_ssize_t)sizeof(core_state),
    .m_methods = core_methods,
    .m_slots = core_slots,
    .m_traverse = core_traverse,
    .m_clear = core_clear,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&core_definition);
}
