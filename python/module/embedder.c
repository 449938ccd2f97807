/* What the front end asks, answered out of Python objects (frontend_embedder in frontend/frontend.h):
 * what the source of a DSL function is, what a line of a file says; what a free name means is in
 * embedded_names.c.
 *
 * Functions are numbered in the order in which they come up. A cache that replays its facts in the
 * same order sees the same numbers; because a function's text contains its number, a replay in
 * another order is a miss, never a false hit.
 *
 * The front end knows no exceptions: one that is met in here (Ctrl-C, exhausted memory) is held
 * back, the answer is "undefined", and embedding_end() sets it again. */
#include "embedder.h"

#include <string.h>

/* ---- the conversation ---- */

bool embedding_begin(embedding *e, core_state *state, PyObject *entry)
{
    *e = (embedding){.state = state, .keep = PyList_New(0), .functions = PyList_New(0)};
    if (e->keep != NULL && e->functions != NULL && PyList_Append(e->functions, entry) == 0)
        return true;
    embedding_end(e);
    return false;
}

bool embedding_end(embedding *e)
{
    Py_CLEAR(e->keep);
    Py_CLEAR(e->functions);
    if (e->error_type == NULL)
        return true;
    PyErr_Restore(e->error_type, e->error_value, e->error_trace);
    e->error_type = e->error_value = e->error_trace = NULL;
    return false;
}

void hold_back(embedding *e)
{
    if (e->error_type == NULL)
        PyErr_Fetch(&e->error_type, &e->error_value, &e->error_trace);
    else
        PyErr_Clear();
}

PyObject *kept(embedding *e, PyObject *object)
{
    bool good = object != NULL && PyList_Append(e->keep, object) == 0;
    Py_XDECREF(object);
    if (!good && PyErr_Occurred())
        hold_back(e);
    return good ? object : NULL;
}

PyObject *attribute(embedding *e, PyObject *object, const char *name)
{
    return kept(e, PyObject_GetAttrString(object, name));
}

PyObject *optional_attribute(embedding *e, PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    return kept(e, value);
}

const char *optional_text(embedding *e, PyObject *object, const char *name)
{
    PyObject *value = optional_attribute(e, object, name);
    if (value == NULL || !PyUnicode_Check(value))
        return NULL;
    const char *words = utf8(value);
    if (words == NULL)
        hold_back(e);
    return words;
}

/* ---- numbers of functions ---- */

int32_t embedding_number(embedding *e, PyObject *jit)
{
    Py_ssize_t count = PyList_Size(e->functions);
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyList_GetItem(e->functions, i) == jit)
            return (int32_t)i;
    if (PyList_Append(e->functions, jit) < 0)
        hold_back(e);
    return (int32_t)count;
}

pld_plane plane_of(embedding *e, PyObject *jit)
{
    PyObject *number = attribute(e, jit, "_plane");
    long plane = number == NULL ? 0 : PyLong_AsLong(number);
    return plane == 1   ? PLD_PLANE_CHIP
           : plane == 2 ? PLD_PLANE_CORE
           : plane == 3 ? PLD_PLANE_SUB
                        : PLD_PLANE_HOST;
}

/* ---- sources ---- */

/* Names of files are bytes to the operating system; those that are no UTF-8 are escaped in a str. NULL with an exception
 * set. */
static const char *file_name(PyObject *keep, PyObject *object)
{
    PyObject *bytes = PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape");
    bool good = bytes != NULL && PyList_Append(keep, bytes) == 0;
    Py_XDECREF(bytes); /* `keep` holds it */
    return good ? PyBytes_AsString(bytes) : NULL;
}

PyObject *file_object(const char *name)
{
    return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "surrogateescape");
}

/* "make.<locals>.f" is f in messages. */
static const char *short_name(const char *qualified)
{
    static const char marker[] = "<locals>.";
    for (const char *at; (at = strstr(qualified, marker)) != NULL;)
        qualified = at + sizeof marker - 1;
    return qualified;
}

/* (file name, ast.FunctionDef) of a DSL function, or a str that says what has become of its source;
 * borrowed from `keep`; NULL when an exception is held back. */
static PyObject *find_definition(embedding *e, PyObject *jit)
{
    PyObject *module = kept(e, PyImport_ImportModule("pypto._source"));
    return module == NULL ? NULL : kept(e, PyObject_CallMethod(module, "find", "O", jit));
}

/* `reason` may be empty. */
static void no_source(embedding *e, PyObject *python, const char *name, const char *reason,
                      pypto_status *errors)
{
    PyObject *code = python == NULL ? NULL : attribute(e, python, "__code__");
    PyObject *path = code == NULL ? NULL : optional_attribute(e, code, "co_filename");
    const char *file = path == NULL ? NULL : file_name(e->keep, path);
    PyObject *line = code == NULL ? NULL : attribute(e, code, "co_firstlineno");
    pypto_span span = {.file = file, .line = line == NULL ? 0 : (int32_t)PyLong_AsLong(line)};
    const char *hint =
        strcmp(name, "<lambda>") == 0 ? "write it with def: a lambda has no statements"
        : reason[0] != '\0'
            ? "start Python again, or reload the module, so that it runs what the file says now"
            : "define the function in a file or a notebook cell, or register the text that it is made "
              "of in linecache.cache; when the file has changed since it was imported, start again";
    diag_add(errors, DIAG_NO_SOURCE, span, hint, "Cannot retrieve source code of '%s'%s%s", name,
             reason[0] == '\0' ? "" : ": ", reason);
}

/* What a method of the class form has and its syntax does not say. False after adding an error. */
static bool complete_method(embedding *e, arena *a, PyObject *jit, bool is_sub,
                            syntax_function *syntax, pypto_status *errors)
{
    PyObject *siblings = optional_attribute(e, jit, "_siblings");
    const char *program = optional_text(e, jit, "_program_name");
    syntax->class_form = siblings != NULL || is_sub;
    syntax->strict_ssa = optional_attribute(e, jit, "_strict_ssa") == Py_True;
    if (program == NULL)
        return true;
    syntax->program = arena_strdup(a, program);
    if (is_sub)
        return true; /* its caller is no DSL: there is nothing to call itself by */
    if (syntax->params.count == 0 || strcmp(syntax->params.items[0].name, "self") != 0) {
        diag_add(errors, DIAG_BAD_METHOD, syntax->span, "write self as the first parameter",
                 "method '%s' of program '%s' must take 'self' first", syntax->name, program);
        return false;
    }
    syntax->params.items++;
    syntax->params.count--;
    syntax->params.capacity--;
    return true;
}

static const frontend_source *embed_source(void *context, arena *a, int32_t function,
                                           pypto_status *errors)
{
    embedding *e = context;
    PyObject *jit = PyList_GetItem(e->functions, function);
    PyObject *python = attribute(e, jit, "_function");
    const char *qualified = optional_text(e, jit, "__qualname__");
    frontend_source *source = arena_new(a, frontend_source);
    const char *name = short_name(qualified == NULL ? "?" : qualified);
    source->plane = plane_of(e, jit);
    source->is_extern = optional_attribute(e, jit, "is_extern") == Py_True;
    source->inlined = optional_attribute(e, jit, "_inlined") == Py_True;
    source->no_auto_scope = optional_attribute(e, jit, "_no_auto_scope") == Py_True;

    PyObject *found = find_definition(e, jit);
    if (found == NULL || PyUnicode_Check(found)) {
        const char *reason = found == NULL ? NULL : utf8(found);
        no_source(e, python, name, reason == NULL ? "" : reason, errors);
        return NULL;
    }
    const char *file = file_name(e->keep, PyTuple_GetItem(found, 0));
    syntax_function *syntax = NULL;
    if (file != NULL)
        syntax = ast_import_function(e->state, a, PyTuple_GetItem(found, 1), file, e->keep,
                                     source->plane != PLD_PLANE_SUB, errors);
    source->syntax = syntax;
    if (syntax != NULL)
        return complete_method(e, a, jit, source->plane == PLD_PLANE_SUB, syntax, errors) ? source
                                                                                          : NULL;
    if (PyErr_Occurred()) {
        hold_back(e);
        no_source(e, python, name, "", errors);
    }
    return NULL;
}

const char *source_line(PyObject *keep, arena *a, const char *file, int32_t line)
{
    PyObject *module = PyImport_ImportModule("pypto._source");
    if (module == NULL)
        return NULL;
    PyObject *words = PyObject_CallMethod(module, "line_text", "Ni", file_object(file), (int)line);
    Py_DECREF(module);
    bool good = words != NULL && words != Py_None && PyList_Append(keep, words) == 0;
    Py_XDECREF(words);
    const char *bytes = good ? utf8(words) : NULL;
    return bytes == NULL ? NULL : arena_strdup(a, bytes);
}

static const char *embed_line_text(void *context, arena *a, const char *file, int32_t line)
{
    embedding *e = context;
    const char *words = source_line(e->keep, a, file, line);
    if (words == NULL && PyErr_Occurred())
        hold_back(e);
    return words;
}

static void embed_print(void *context, const char *line)
{
    (void)context;
    PySys_FormatStdout("%s\n", line);
}

static void embed_warn(void *context, pypto_span span, const char *message)
{
    embedding *e = context;
    const char *file = span.file == NULL ? "<unknown>" : span.file;
    if (PyErr_WarnExplicit(PyExc_UserWarning, message, file, span.line, NULL, NULL) < 0)
        hold_back(e);
}

frontend_embedder embedding_interface(embedding *e)
{
    return (frontend_embedder){
        .context = e,
        .resolve = embed_resolve,
        .source = embed_source,
        .print = embed_print,
        .warn = embed_warn,
        .line_text = embed_line_text,
    };
}
