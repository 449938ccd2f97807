/* What the files of the extension pypto._core share.
 *
 *   core.c         the module: its functions and its state
 *   errors.c       a failed pypto_status -> a Python exception
 *   ast_import.c   Python's `ast` -> syntax tree (frontend/syntax.h): a function;
 *                  ast_nodes.c, ast_expressions.c, ast_statements.c: its parts
 *   syntax_dump.c  syntax tree -> text, for tests
 *   embedder.c     what the front end asks -> answers out of Python objects; embedded_names.c: about names
 *   tensors.c      a Python argument -> pypto_argument
 *   resident.c     the same for tensors that live in a worker
 *   arguments.c    the arguments of a call, for the front end and for the run
 *   compile.c      compiling, and looking at a function without running it
 *   program.c      the class Program: a compiled program that can be run
 *   waiting.c      the GIL and Python's signal handlers around calls that wait
 *   worker.c       the class Worker: a set of workers that stays; worker_memory.c: its memory, worker_set.c: its locks
 *   records.c      what Python wants recorded of a call
 *   runs.c         the class Run: a call of it that may be in flight
 *   sub_workers.c  Python functions that host functions call
 *   shared.c       the class SharedMemory: memory that workers use in place
 *   tables.c       operations, enumerations, element types and settings, for the package
 *
 * Conventions. A function that returns PyObject * gives a new reference, or NULL with an exception
 * set. A function that returns bool gives false with an exception set. Names of functions that
 * return a *borrowed* reference say so in their comment. All of it runs with the GIL held, except
 * where compile.c and waiting.c say otherwise.
 *
 * Arenas and references. An arena_ or vec_push call may jump to the compile driver when memory is
 * exhausted. Code that calls them therefore owns no reference at that moment: what it looks at
 * belongs to an object that outlives the compile (a syntax tree of Python's, a list `keep`). */
#ifndef CORE_H
#define CORE_H

#include <Python.h>

#include "base/diag.h"
#include "base/text.h"
#include "frontend/frontend.h"

#include <pypto/pypto.h>

/* State of the module, created with it. */
typedef struct core_state {
    PyObject *node_kinds;       /* dict: class of `_ast` -> row of ast_nodes.c; NULL until needed */
    PyTypeObject *program_type; /* pypto._core.Program */
    PyTypeObject *worker_type;  /* pypto._core.Worker */
    PyTypeObject *run_type;     /* pypto._core.Run */
} core_state;

core_state *core_state_of(PyObject *module); /* never NULL */

/* ---- errors.c ---- */

/* Sets the exception for a failed status, which is released. Always returns NULL, for `return`. */
PyObject *errors_raise(pypto_status *status);
/* Issues a Python warning for each diagnostic of a successful status, which is released. False with an exception set
 * when a warning became one. */
bool errors_warn(pypto_status *status);
/* The same for one diagnostic without a place. Returns false. */
bool errors_refuse(diag_code code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* refuse(code, message, hint, file, line, column, end column, source line): raises a diagnostic that
 * the package itself has found. */
PyObject *errors_refuse_at(PyObject *module, PyObject *args);

/* ---- ast_import.c ---- */

/* The syntax tree of an ast.FunctionDef, of its signature only if the body is ordinary Python. `definition` must stay alive and unchanged meanwhile;
 * trees of string annotations are appended to the list `keep`. NULL with an exception set, or after
 * adding a diagnostic to `errors`. */
syntax_function *ast_import_function(core_state *state, arena *a, PyObject *definition,
                                     const char *file, PyObject *keep, bool with_body,
                                     pypto_status *errors);

/* ---- syntax_dump.c ---- */

void syntax_dump(text *out, const syntax_function *f);

/* ---- embedder.c ---- */

/* One conversation with the front end: numbers the DSL functions that come up, keeps alive what was
 * handed out, and holds back a Python exception that a callback met until the compile is over. */
typedef struct embedding {
    core_state *state;
    PyObject *keep;                                   /* list, owned */
    PyObject *functions;                              /* list of JITFunction by number, owned */
    PyObject *error_type, *error_value, *error_trace; /* as PyErr_Fetch gives them */
    const char *raised; /* by the script's code, while a name was looked up; on `keep` */
} embedding;

/* On failure there is nothing to end. */
bool embedding_begin(embedding *e, core_state *state, PyObject *entry);
frontend_embedder embedding_interface(embedding *e);
/* The number of a DSL function; a new one when it comes up for the first time. */
int32_t embedding_number(embedding *e, PyObject *jit);
/* Releases everything. False when a callback met an exception; it is set again. */
bool embedding_end(embedding *e);
/* Text of a line of a source file, on the arena; NULL when unknown or an exception is set. */
const char *source_line(PyObject *keep, arena *a, const char *file, int32_t line);

/* A file's name as the library has it, which is bytes, as a str: a new reference. */
PyObject *file_object(const char *name);

/* UTF-8 of a str, valid as long as it; NULL with an exception set when it is no str. */
const char *utf8(PyObject *object);
/* An int of at most 64 bits; from 2^63 on as the bits of a uint64_t, and *is_unsigned is set. False, without an
 * exception, when it is larger. */
bool integer_of(PyObject *value, int64_t *integer, bool *is_unsigned);

/* ---- tensors.c ---- */

/* An argument and what keeps its memory in place. */
typedef struct held_argument {
    pypto_argument argument;
    PyObject *owner;  /* owned */
    Py_buffer buffer; /* released when `exported` */
    void **rows;      /* of argument.tensor, PyMem; or NULL */
    bool exported;
    bool boolean;       /* the number was a bool */
    bool beyond;        /* the number is from 2^63 on: the bits of a uint64_t */
    char ctype;         /* the letter of its class, if it was a number of ctypes */
    const char *copied; /* what it is that the memory is a private copy of, good for inputs only */
    const char *copied_hint;
    bool
        tracked; /* torch computes its gradient, and would not see that it is written: inputs only */
} held_argument;

/* Reads a tensor or a number; `name` is what errors call the argument: "'x' of 'host'". */
bool tensor_hold(PyObject *value, const char *name, held_argument *held);
/* Accepts what tensor_hold made, a zeroed one too. */
void tensor_release(held_argument *held);

/* ---- resident.c ---- */

/* Whether an object is a resident tensor; describes it as tensor_hold() does. */
bool resident_is(PyObject *value);
bool resident_hold(PyObject *value, const char *name, held_argument *held);

/* ---- numbers.c ---- */

/* The Python number in a NumPy scalar; NULL, without an exception, for any other object. */
PyObject *numpy_number(PyObject *value);
/* The same of ctypes.c_int32(4) and the like, and the letter of its class. */
PyObject *ctypes_number(PyObject *value, char *code);
/* Reads a bool, int or float. */
bool number_hold(PyObject *value, const char *name, held_argument *held);

/* ---- compile.c ---- */

PyObject *program_compile(PyObject *module, PyObject *args);
PyObject *program_check(PyObject *module, PyObject *args);
PyObject *program_lower(PyObject *module, PyObject *args);
PyObject *program_load(PyObject *module, PyObject *args);

/* ---- program.c ---- */

bool program_init(PyObject *module);

/* ---- shared.c ---- */

bool shared_init(PyObject *module);

/* ---- worker.c, runs.c ---- */

bool worker_init(PyObject *module);
bool runs_init(PyObject *module);

/* What Python calls lint in a call: a level, and behind its two bits PYPTO_LINT_BITs of findings that are not wanted. */
static inline pypto_lint lint_level(int lint)
{
    return (pypto_lint)(lint & 3);
}

static inline uint32_t lint_disabled(int lint)
{
    return (uint32_t)lint >> 2;
}

/* ---- tables.c ---- */

PyObject *tables_include_dir(PyObject *module, PyObject *unused);

PyObject *tables_ops(PyObject *module, PyObject *unused);
PyObject *tables_enums(PyObject *module, PyObject *unused);
PyObject *tables_later(PyObject *module, PyObject *path);
PyObject *tables_dtypes(PyObject *module, PyObject *unused);
PyObject *tables_settings(PyObject *module, PyObject *unused);
PyObject *tables_setting(PyObject *module, PyObject *name);

#endif
