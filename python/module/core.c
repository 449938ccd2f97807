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
    char hex[33];
    hash_hex(hash_of(start, (int64_t)count), hex);
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

typedef struct dump_question {
    core_state *state;
    PyObject *definition;
    const char *file;
    PyObject *keep;
    pypto_status errors;
    PyObject *answer; /* NULL: with errors or an exception */
} dump_question;

/* Everything that is allocated here is on the arena and in `keep`, so exhausted memory loses nothing. */
static pypto_status dump(arena *a, void *context)
{
    dump_question *q = context;
    text out = {.a = a};
    const syntax_function *f =
        ast_import_function(q->state, a, q->definition, q->file, q->keep, true, &q->errors);
    if (f == NULL)
        return STATUS_OK;
    syntax_dump(&out, f);
    q->answer = PyUnicode_FromStringAndSize(out.bytes, (Py_ssize_t)out.length);
    return STATUS_OK;
}

/* dump_syntax(ast.FunctionDef, filename) -> the function's syntax tree as text. */
static PyObject *core_dump_syntax(PyObject *module, PyObject *args)
{
    dump_question q = {.state = core_state_of(module), .errors = STATUS_OK};
    if (!PyArg_ParseTuple(args, "Os:dump_syntax", &q.definition, &q.file))
        return NULL;
    q.keep = PyList_New(0);
    if (q.keep == NULL)
        return NULL;
    pypto_status status = arena_run(dump, &q);
    Py_DECREF(q.keep);
    if (q.answer == NULL && !status_ok(q.errors))
        errors_raise(&q.errors);
    else if (!status_ok(status))
        errors_raise(&status);
    else if (q.answer == NULL && !PyErr_Occurred())
        PyErr_NoMemory();
    pypto_status_clear(&q.errors);
    pypto_status_clear(&status);
    return q.answer;
}

typedef struct name_question {
    embedding *e;
    const char *name;
    PyObject *answer; /* NULL: with an exception */
} name_question;

/* The canonical text of what a name means. */
static pypto_status meaning(arena *a, void *context)
{
    name_question *q = context;
    frontend_embedder embedder = embedding_interface(q->e);
    name_value value = embedder.resolve(embedder.context, a, 0, q->name);
    q->answer = PyUnicode_FromString(name_value_text(a, &value));
    return STATUS_OK;
}

/* resolve(function, name) -> what the compiler is told about a name in a DSL function. */
static PyObject *core_resolve(PyObject *module, PyObject *args)
{
    PyObject *function = NULL;
    embedding e;
    name_question q = {.e = &e};
    if (!PyArg_ParseTuple(args, "Os:resolve", &function, &q.name) ||
        !embedding_begin(&e, core_state_of(module), function))
        return NULL;
    pypto_status status = arena_run(meaning, &q);
    if (!embedding_end(&e))
        Py_CLEAR(q.answer);
    else if (!status_ok(status))
        errors_raise(&status);
    pypto_status_clear(&status);
    return q.answer;
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
    {"check_kinds", arguments_check_kinds, METH_VARARGS,
     "check_kinds(names, arguments, function)\n\nRaises for the first that is neither a tensor nor a number."},
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
