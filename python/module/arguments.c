/* The arguments of a call: held for it, and described to the front end. */
#include "program.h"

#include <string.h>

void arguments_release(call_arguments *args)
{
    for (Py_ssize_t i = 0; i < args->count; i++)
        tensor_release(&args->held[i]);
    PyMem_Free(args->held);
    *args = (call_arguments){0};
}

/* "'x' of 'host'". Written for each argument of each call, and hardly ever read: snprintf() would take a tenth of what an
 * argument costs. */
static void write_label(char *label, size_t room, const char *name, const char *function)
{
    const char *const parts[] = {"'", name, "' of '", function, "'"};
    size_t length = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
        const size_t bytes = strlen(parts[i]);
        const size_t taken = bytes < room - 1 - length ? bytes : room - 1 - length;
        memcpy(label + length, parts[i], taken);
        length += taken;
    }
    label[length] = '\0';
}

/* Holds item i of a tuple; errors call it by its parameter and the function. */
static bool argument_hold(PyObject *values, PyObject *names, const char *function, Py_ssize_t i,
                          held_argument *held)
{
    const char *name = i < PyTuple_Size(names) ? utf8(PyTuple_GetItem(names, i)) : "?";
    char label[256];
    if (name == NULL)
        return false;
    write_label(label, sizeof label, name, function);
    return tensor_hold(PyTuple_GetItem(values, i), label, held);
}

bool arguments_hold(PyObject *values, PyObject *names, const char *function, call_arguments *args)
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
    case PLD_ARG_INT:
        arg.kind = held->boolean ? FRONTEND_BOOL : held->beyond ? FRONTEND_UINT : FRONTEND_INT;
        break;
    case PLD_ARG_FLOAT: arg.kind = FRONTEND_FLOAT; break;
    }
    return arg;
}

frontend_arg *arguments_describe(PyObject *values, PyObject *names, const char *function,
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
