/* What a free name of a DSL function means.
 *
 * A name is looked up as Python would, in JITFunction._scopes: closure cells, the local names of the
 * frame that defined the function (a snapshot, for annotations, which make no closure), globals,
 * builtins. What an object *is* says its class, by the attribute `__pypto_kind__`:
 *
 *     "path"      __pypto_path__ is its dotted name: operations, element types, enumeration members
 *     "dynamic"   a dimension; `name` is its symbol
 *     "expression" arithmetic on dimensions: `left`, `operator`, `right`
 *     "function"  a DSL function (pypto/_jit.py)
 *     "type"      an annotation: `form`, a class, applied to the values `args`
 *     "unusable"  stands for a value that was not kept; `type_name` is its type
 *
 * Classes (pl.Tensor, pld.NotifyOp) have `__pypto_type_path__`, modules `__pypto_path__`. Asking the
 * class, not the object, keeps user objects with a __getattr__ out of it. */
#include "embedder.h"

#include <string.h>

/* Lists in lists deeper than this (or in themselves) are no constants. */
#define LIST_DEPTH 8
/* The same for arithmetic on dynamic dimensions. */
#define DIM_DEPTH 64

/* ---- looking a name up ---- */

/* A dictionary's entry, borrowed from `keep`; NULL when there is none. */
static PyObject *entry_of(embedding *e, PyObject *dict, PyObject *name)
{
    if (dict == NULL || !PyDict_Check(dict))
        return NULL;
    PyObject *value = PyDict_GetItemWithError(dict, name);
    Py_XINCREF(value);
    return kept(e, value);
}

/* What is in the closure cell of this name, borrowed from `keep`; NULL when there is none or when
 * it is not assigned yet. */
static PyObject *cell_of(embedding *e, PyObject *cells, PyObject *name)
{
    PyObject *cell = entry_of(e, cells, name);
    if (cell == NULL)
        return NULL;
    PyObject *value = PyObject_GetAttrString(cell, "cell_contents");
    if (value == NULL && PyErr_ExceptionMatches(PyExc_ValueError))
        PyErr_Clear();
    return kept(e, value);
}

/* The object that a plain name means, borrowed from `keep`; NULL when undefined. */
static PyObject *look_up_name(embedding *e, PyObject *jit, PyObject *name)
{
    PyObject *scopes = attribute(e, jit, "_scopes"); /* (cells, locals, globals, builtins) */
    if (scopes == NULL || name == NULL)
        return NULL;
    PyObject *value = cell_of(e, PyTuple_GetItem(scopes, 0), name);
    for (Py_ssize_t i = 1; value == NULL && i < PyTuple_Size(scopes); i++)
        value = entry_of(e, PyTuple_GetItem(scopes, i), name);
    return value;
}

/* What the script's own code has raised: "RuntimeError: no rows yet". */
static void note_raised(embedding *e)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *class_name =
        PyType_GetName((PyTypeObject *)type); /* __name__ may be the script's code */
    PyObject *words = class_name != NULL ? PyUnicode_FromFormat("%U: %S", class_name, value) : NULL;
    Py_XDECREF(class_name);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear(); /* an exception without words */
    words = words != NULL ? kept(e, words) : NULL;
    e->raised = words != NULL ? utf8(words) : "an exception";
    PyErr_Clear();
}

/* A member of a Python object; what an object of the script raises means that it has none. */
static PyObject *member_of(embedding *e, PyObject *object, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    else if (value == NULL && PyErr_ExceptionMatches(PyExc_Exception))
        note_raised(e);
    return kept(e, value);
}

/* The object that a name means in a DSL function, borrowed from `keep`; NULL when undefined.
 * "a.b" is a member of what `a` means; in a method "self.b" is another method. */
static PyObject *look_up(embedding *e, int32_t function, const char *words)
{
    PyObject *jit = PyList_GetItem(e->functions, function);
    if (jit == NULL) {
        hold_back(e);
        return NULL;
    }
    const char *dot = strchr(words, '.');
    size_t length = dot == NULL ? strlen(words) : (size_t)(dot - words);
    PyObject *first = kept(e, PyUnicode_FromStringAndSize(words, (Py_ssize_t)length));
    PyObject *siblings = dot == NULL ? NULL : optional_attribute(e, jit, "_siblings");
    bool sibling = siblings != NULL && PyDict_Check(siblings) && strncmp(words, "self.", 5) == 0;
    PyObject *value = sibling ? siblings : look_up_name(e, jit, first);
    while (value != NULL && dot != NULL) {
        const char *start = dot + 1;
        dot = strchr(start, '.');
        length = dot == NULL ? strlen(start) : (size_t)(dot - start);
        PyObject *name = kept(e, PyUnicode_FromStringAndSize(start, (Py_ssize_t)length));
        if (name == NULL)
            return NULL;
        value = value == siblings ? entry_of(e, siblings, name) : member_of(e, value, name);
    }
    return value;
}

/* ---- saying what an object is ---- */

static name_value describe(embedding *e, arena *a, PyObject *value, int depth);

static name_value text_value(arena *a, name_kind kind, const char *words)
{
    return (name_value){.kind = kind, .text = arena_strdup(a, words)};
}

static name_value other_value(embedding *e, arena *a, PyObject *value)
{
    PyObject *name = kept(e, PyType_GetName(Py_TYPE(value)));
    return text_value(a, NAME_OTHER, name == NULL ? "?" : utf8(name));
}

static name_value int_value(arena *a, PyObject *value)
{
    int64_t integer = 0;
    bool is_unsigned = false;
    if (!integer_of(value, &integer, &is_unsigned))
        return text_value(a, NAME_OTHER, "int of more than 64 bits");
    return (name_value){.kind = is_unsigned ? NAME_UINT : NAME_INT, .integer = integer};
}

static name_value list_value(embedding *e, arena *a, PyObject *list, int depth)
{
    bool is_tuple = PyTuple_Check(list);
    Py_ssize_t count = is_tuple ? PyTuple_Size(list) : PyList_Size(list);
    if (depth >= LIST_DEPTH || count > INT32_MAX)
        return other_value(e, a, list);
    name_value result = {.kind = NAME_LIST, .count = (int32_t)count};
    result.items = arena_array(a, name_value, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = is_tuple ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i);
        result.items[i] = describe(e, a, item, depth + 1);
    }
    return result;
}

static name_value function_value(embedding *e, arena *a, PyObject *jit)
{
    PyObject *identity = kept(e, PyObject_CallMethod(jit, "identity", NULL));
    const char *words = identity == NULL ? NULL : utf8(identity);
    if (words == NULL) {
        hold_back(e);
        return (name_value){.kind = NAME_UNDEFINED};
    }
    int32_t number = embedding_number(e, jit);
    return (name_value){
        .kind = NAME_FUNCTION,
        .function = number,
        .integer = plane_of(e, jit),
        .text = arena_printf(a, "%s #%d", words, number),
    };
}

/* The dotted name of a class or module of the package; NULL for any other object. */
static const char *path_of(embedding *e, PyObject *value)
{
    if (PyType_Check(value))
        return optional_text(e, value, "__pypto_type_path__");
    return PyModule_Check(value) ? optional_text(e, value, "__pypto_path__") : NULL;
}

static bool type_value(embedding *e, arena *a, PyObject *value, name_value *result)
{
    PyObject *form = attribute(e, value, "form");
    PyObject *args = attribute(e, value, "args");
    const char *head = form == NULL ? NULL : path_of(e, form);
    if (head == NULL || args == NULL || !PyTuple_Check(args))
        return false;
    *result = list_value(e, a, args, 0);
    result->kind = NAME_TYPE;
    result->text = arena_strdup(a, head);
    return true;
}

/* Arithmetic on dimensions: left, operator, right. */
static name_value dimension_value(embedding *e, arena *a, PyObject *value, int depth)
{
    PyObject *left = attribute(e, value, "left");
    PyObject *right = attribute(e, value, "right");
    const char *words = optional_text(e, value, "operator");
    if (left == NULL || right == NULL || words == NULL || depth >= DIM_DEPTH)
        return other_value(e, a, value);
    name_value result = text_value(a, NAME_DIM, words);
    result.count = 2;
    result.items = arena_array(a, name_value, 2);
    result.items[0] = describe(e, a, left, depth + 1);
    result.items[1] = describe(e, a, right, depth + 1);
    return result;
}

/* What a class that belongs to the package says about its object. False: it does not belong. */
static bool own_value(embedding *e, arena *a, PyObject *value, int depth, name_value *result)
{
    const char *kind = optional_text(e, (PyObject *)Py_TYPE(value), "__pypto_kind__");
    const char *words = NULL;
    if (kind == NULL)
        return false;
    if (strcmp(kind, "function") == 0) {
        *result = function_value(e, a, value);
        return true;
    }
    if (strcmp(kind, "type") == 0)
        return type_value(e, a, value, result);
    if (strcmp(kind, "expression") == 0) {
        *result = dimension_value(e, a, value, depth);
        return true;
    }
    name_kind name = NAME_PATH;
    if (strcmp(kind, "path") == 0) {
        words = optional_text(e, value, "__pypto_path__");
    } else if (strcmp(kind, "dynamic") == 0) {
        name = NAME_DYNAMIC;
        words = optional_text(e, value, "name");
    } else if (strcmp(kind, "unusable") == 0) {
        name = NAME_OTHER;
        words = optional_text(e, value, "type_name");
    }
    if (words != NULL)
        *result = text_value(a, name, words);
    return words != NULL;
}

static name_value describe(embedding *e, arena *a, PyObject *value, int depth)
{
    name_value result = {.kind = NAME_UNDEFINED};
    if (value == NULL)
        return result;
    if (value == Py_None)
        return (name_value){.kind = NAME_NONE};
    if (PyBool_Check(value))
        return (name_value){.kind = NAME_BOOL, .integer = value == Py_True};
    if (PyLong_CheckExact(value))
        return int_value(a, value);
    if (PyFloat_Check(value))
        return (name_value){.kind = NAME_FLOAT, .real = PyFloat_AsDouble(value)};
    if (PyUnicode_Check(value)) {
        const char *words = utf8(value);
        if (words != NULL)
            return text_value(a, NAME_STRING, words);
        PyErr_Clear(); /* lone surrogates */
        return other_value(e, a, value);
    }
    if (PyList_Check(value) || PyTuple_Check(value))
        return list_value(e, a, value, depth);
    if (own_value(e, a, value, depth, &result)) /* before ints: enumeration members are ints too */
        return result;
    const char *path = path_of(e, value);
    if (path != NULL)
        return text_value(a, NAME_PATH, path);
    if (PyLong_Check(value))
        return int_value(a, value);
    PyObject *number = kept(e, numpy_number(value));
    return number != NULL ? describe(e, a, number, depth) : other_value(e, a, value);
}

name_value embed_resolve(void *context, arena *a, int32_t function, const char *name)
{
    embedding *e = context;
    if (e->error_type != NULL)
        return (name_value){.kind = NAME_UNDEFINED};
    e->raised = NULL;
    PyObject *value = look_up(e, function, name);
    if (value == NULL && e->raised != NULL)
        return text_value(a, NAME_UNDEFINED, e->raised);
    return describe(e, a, value, 0);
}
