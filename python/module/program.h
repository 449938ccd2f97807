/* A compiled program, and the arguments of a call of it. */
#ifndef MODULE_PROGRAM_H
#define MODULE_PROGRAM_H

#include "codegen/compile.h"
#include "core.h"

/* pypto._core.Program */
typedef struct program_object {
    PyObject_HEAD compile_output output; /* owned */
    pypto_program *program;              /* owned; NULL until it is needed */
} program_object;

/* The arguments of one call. */
typedef struct call_arguments {
    held_argument *held; /* `count` of them, PyMem */
    Py_ssize_t count;
} call_arguments;

/* ---- arguments.c ---- */

/* Accepts what arguments_hold() made, and zeros. */
void arguments_release(call_arguments *args);
/* Holds all items of a tuple; item i of the tuple `names` is the parameter of argument i, for errors.
 * On failure nothing is held. */
bool arguments_hold(PyObject *values, PyObject *names, const char *function, call_arguments *args);
/* What the front end sees of the arguments: PyMem, never NULL on success even when there are
 * none. `...` is one that is not given, NotImplemented one that stays a parameter. */
frontend_arg *arguments_describe(PyObject *values, PyObject *names, const char *function,
                                 int32_t *count);

#endif
