/* Resident tensors (python/pypto/runtime/device_tensor.py) -> pypto_argument. Whether their memory lives, and whose it is,
 * has been checked by the worker that they are passed to, and is checked once more by the library. */
#include "core.h"

#include <string.h>

/* The integer obj.name, at least 0; -1 with an exception set. */
static int64_t integer_attribute(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    const int64_t integer = value == NULL ? -1 : PyLong_AsLongLong(value);
    Py_XDECREF(value);
    return integer;
}

bool resident_is(PyObject *value)
{
    PyObject *kind = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "__pypto_kind__");
    const bool is = kind != NULL && PyUnicode_Check(kind) &&
                    PyUnicode_CompareWithASCIIString(kind, "resident") == 0;
    Py_XDECREF(kind);
    PyErr_Clear();
    return is;
}

static bool read_dtype(PyObject *value, const char *name, pypto_dtype *dtype)
{
    static const char *const names[] = {
#define NAME(name_, label, bits, class_) #name_,
        PYPTO_DTYPES(NAME)
#undef NAME
    };
    PyObject *element = PyObject_GetAttrString(value, "_element");
    const char *words = element == NULL || element == Py_None ? NULL : utf8(element);
    bool found = false;
    for (size_t i = 0; words != NULL && i < sizeof names / sizeof *names && !found; i++) {
        found = strcmp(words, names[i]) == 0;
        *dtype = (pypto_dtype)i;
    }
    Py_XDECREF(element);
    if (!found && !PyErr_Occurred())
        errors_refuse(DIAG_ARGUMENT_TYPE, "allocate it with an element type that programs have",
                      "Unsupported dtype of argument %s", name);
    return found;
}

static bool read_shape(PyObject *value, const char *name, pypto_tensor *tensor)
{
    PyObject *shape = PyObject_GetAttrString(value, "shape");
    const Py_ssize_t count = shape == NULL ? -1 : PyTuple_Size(shape);
    if (count > PYPTO_MAX_DIMS)
        errors_refuse(DIAG_ARGUMENT_TYPE, NULL,
                      "argument %s has %lld dimensions; at most %d are supported", name,
                      (long long)count, PYPTO_MAX_DIMS);
    int64_t stride = 1;
    tensor->ndim = (int32_t)count;
    for (Py_ssize_t d = count - 1; d >= 0 && !PyErr_Occurred(); d--) {
        tensor->shape[d] = PyLong_AsLongLong(PyTuple_GetItem(shape, d));
        tensor->stride[d] = stride;
        if (__builtin_mul_overflow(stride, tensor->shape[d], &stride))
            errors_refuse(DIAG_ARGUMENT_TYPE, NULL, "argument %s is too large", name);
    }
    Py_XDECREF(shape);
    return !PyErr_Occurred();
}

/* The addresses of the shards, if it has any. */
static bool read_rows(PyObject *shards, held_argument *held)
{
    const Py_ssize_t count = PyTuple_Size(shards);
    held->rows = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *held->rows);
    if (held->rows == NULL && count >= 0)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; held->rows != NULL && i < count; i++)
        held->rows[i] = (void *)(intptr_t)integer_attribute(PyTuple_GetItem(shards, i), "data_ptr");
    held->argument.tensor.rows = held->rows;
    return !PyErr_Occurred();
}

bool resident_hold(PyObject *value, const char *name, held_argument *held)
{
    pypto_tensor *tensor = &held->argument.tensor;
    held->owner = Py_NewRef(value);
    if (!read_dtype(value, name, &tensor->dtype) || !read_shape(value, name, tensor))
        return false;
    PyObject *shards = PyObject_GetAttrString(value, "shards");
    if (shards != NULL) {
        const bool good = read_rows(shards, held);
        Py_DECREF(shards);
        return good;
    }
    PyErr_Clear();
    tensor->data = (void *)(intptr_t)integer_attribute(value, "data_ptr");
    return !PyErr_Occurred();
}
