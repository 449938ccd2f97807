/* The arguments of a call: held for it, and described to the front end. */
#include "program.h"
#include "tensors.h"

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

/* The error that is set, of an argument for that parameter: one about its element type says which is expected. */
static void tell_declared(const pld_param *param)
{
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    PyObject *message = error == NULL ? NULL : PyObject_GetAttrString(error, "message");
    const char *words = message == NULL ? NULL : utf8(message);
    if (words != NULL && strncmp(words, "Unsupported ", 12) == 0) {
        errors_refuse(DIAG_ARGUMENT_TYPE, DTYPE_HINT, "%s, which expects %s", words,
                      pypto_dtype_name((pypto_dtype)param->dtype));
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    } else {
        PyErr_Restore(type, error, trace);
    }
    Py_XDECREF(message);
}

bool arguments_hold(PyObject *values, PyObject *names, const pld_function *function,
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
        if (!argument_hold(values, names, function->name, i, &args->held[i])) {
            if (i < function->nparams)
                tell_declared(&function->params[i]);
            arguments_release(args);
            return false;
        }
    }
    return true;
}

/* check_kinds(names, arguments, function) */
PyObject *arguments_check_kinds(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *names, *values;
    const char *function;
    if (!PyArg_ParseTuple(args, "O!O!s:check_kinds", &PyTuple_Type, &names, &PyTuple_Type, &values,
                          &function))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(values); i++) {
        held_argument held = {0};
        const bool good = argument_hold(values, names, function, i, &held);
        tensor_release(&held);
        if (!good)
            return NULL;
    }
    Py_RETURN_NONE;
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
