/* A compiled program, and the arguments of a call of it. */
#ifndef MODULE_PROGRAM_H
#define MODULE_PROGRAM_H

#include "codegen/compile.h"
#include "core.h"

/* pypto._core.Program */
typedef struct program_object {
    PyObject_HEAD compile_output output; /* owned */
    pypto_program *program;              /* owned; NULL until it is needed */
    PyObject *subs;  /* list of the Functions that it calls in SubWorkers; NULL: not known */
    PyObject *names; /* program_names(), once they were asked for */
} program_object;

/* The arguments of one call. */
typedef struct call_arguments {
    held_argument *held; /* `count` of them, PyMem */
    Py_ssize_t count;
} call_arguments;

/* ---- program.c ---- */

/* The host function's row in the program's table; NULL with an exception set. */
const pld_function *program_host(program_object *self);
/* A tuple of its parameters' names. */
PyObject *program_names(program_object *program, const pld_function *host);
/* The arguments as the library takes them, PyMem; NULL with an exception set. */
pypto_argument *program_arguments(const pld_function *host, const call_arguments *args);
/* *ids is PyMem, also on failure. */
bool read_device_ids(PyObject *list, int32_t **ids, int32_t *count);
/* How PYPTO_TRANSPORT says that workers are started. */
pypto_start chosen_start(void);

/* ---- compile.c ---- */

/* take_stages(): [(name, IR)] of the passes, if the program was compiled with `stages` and not found in a cache; [] from
 * the second time on. */
PyObject *program_take_stages(PyObject *self, PyObject *unused);

/* ---- numbers.c ---- */

/* Makes a number one of its parameter's kind. False, with an exception, when no number of that kind is the same; those
 * that are simply too large are left to the library. */
bool number_fit(const pld_function *host, const pld_param *param, const held_argument *held,
                pypto_argument *argument);

/* ---- sub_workers.c ---- */

/* What a worker set does for SubWorkers: how many, and what they run. */
typedef struct sub_bindings sub_bindings;

/* Reads (number, [(Program, name, callable), ...]), or None: *subs is NULL then. False with an exception set. */
bool subs_read(core_state *state, PyObject *given, sub_bindings **subs);
/* Accepts NULL. */
void subs_release(sub_bindings *subs);
/* The options point to it. */
void subs_options(sub_bindings *subs, pypto_worker_options *options);
/* Notes those of the DSL functions that a program reaches which are SubWorkers. */
bool subs_note(program_object *program, PyObject *functions);
/* {name: Function or None}: what a program calls in SubWorkers; None for one that was loaded from a folder. */
PyObject *subs_of(program_object *program);

/* ---- waiting.c ---- */

/* What was noted about the call that a signal handler, which began this one, had interrupted. */
typedef struct waiting {
    PyThreadState *outer;
} waiting;

/* Around a call into the library that may wait: between them the GIL is released. */
waiting waiting_begin(void);
void waiting_end(waiting before);
/* Between begin and end, in the same thread: takes the GIL for a while, and gives it back. */
void waiting_pause(void);
void waiting_resume(void);
/* For pypto_worker_options.interrupted: runs Python's signal handlers; true when one raised. The exception is then
 * set when waiting_end() returns. */
bool waiting_interrupted(void *context);
/* A wait of this thread for the C compiler: the GIL is released, and what interrupts a call ends the compiler. */
typedef struct compiler_wait {
    waiting before;
    os_interrupts
        interrupts; /* for the request: compiler_wait_new() and compiler_waiting() fill it */
} compiler_wait;

compiler_wait compiler_wait_new(void);
/* For compile_request.waiting; `context` is a compiler_wait. When the wait was interrupted, the exception is set behind
 * the compile. */
void compiler_waiting(void *context, bool begins);
/* abandon(threads): the interpreter ends in this thread and leaves those to themselves. All others that wait, now or
 * later, are interrupted by SystemExit. */
PyObject *waiting_abandon(PyObject *module, PyObject *threads);
/* Whether that is the lot of this thread; and of one that has been given by its identity. */
bool waiting_is_abandoned(void);
bool waiting_has_abandoned(unsigned long thread);

/* ---- arguments.c ---- */

/* Accepts what arguments_hold() made, and zeros. */
void arguments_release(call_arguments *args);
/* Holds all items of a tuple; item i of the tuple `names` is the parameter of argument i, for errors.
 * On failure nothing is held. */
bool arguments_hold(PyObject *values, PyObject *names, const pld_function *function,
                    call_arguments *args);
PyObject *arguments_check_kinds(PyObject *module, PyObject *args);
/* What the front end sees of the arguments: PyMem, never NULL on success even when there are
 * none. `...` is one that is not given, NotImplemented one that stays a parameter. */
frontend_arg *arguments_describe(PyObject *values, PyObject *names, const char *function,
                                 int32_t *count);

#endif
