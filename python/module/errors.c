/* A failed pypto_status -> a Python exception.
 *
 * Which class and which attributes it has is the business of pypto.errors, written in Python: this
 * file hands its function `make` the kind, the whole text and one row per diagnostic. Called by
 * every file of the module that gets a status from the library. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

/* {"file", "line", "column", "end_line", "end_column"}, or None for no place. */
static PyObject *span_object(const pypto_span *span)
{
    if (span->file == NULL || span->line <= 0)
        Py_RETURN_NONE;
    return Py_BuildValue("{s:N,s:i,s:i,s:i,s:i}", "file", file_object(span->file), "line",
                         span->line, "column", span->column, "end_line", span->end_line,
                         "end_column", span->end_column);
}

/* Texts may name files, and files may have names that are no UTF-8. */
static PyObject *words(const char *bytes)
{
    if (bytes == NULL)
        Py_RETURN_NONE;
    return file_object(bytes);
}

static PyObject *diagnostic_row(const pypto_diagnostic *d)
{
    PyObject *span = span_object(&d->span);
    if (span == NULL)
        return NULL;
    return Py_BuildValue("(szNNNNN)", d->code, pypto_error_kind_name(d->kind), words(d->message),
                         span, words(d->hint), words(d->note), words(d->source));
}

static PyObject *diagnostic_rows(const pypto_status *status)
{
    PyObject *rows = PyList_New(0);
    for (const pypto_diagnostic *d = status->diagnostics; rows != NULL && d != NULL; d = d->next) {
        PyObject *row = diagnostic_row(d);
        if (row == NULL || PyList_Append(rows, row) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    return rows;
}

static PyObject *make_exception(const pypto_status *status, const char *whole)
{
    PyObject *rows = diagnostic_rows(status);
    PyObject *module = rows == NULL ? NULL : PyImport_ImportModule("pypto.errors");
    PyObject *exception = NULL;
    if (module != NULL)
        exception = PyObject_CallMethod(module, "make", "sNO", pypto_error_kind_name(status->kind),
                                        words(whole), rows);
    Py_XDECREF(module);
    Py_XDECREF(rows);
    return exception;
}

PyObject *errors_raise(pypto_status *status)
{
    if (status->kind == PYPTO_ERROR_INTERRUPTED && waiting_is_abandoned()) {
        pypto_status_clear(status);
        PyErr_SetNone(PyExc_SystemExit); /* as in the thread whose wait was interrupted */
        return NULL;
    }
    char *whole = pypto_status_text(status);
    PyObject *exception = whole == NULL ? PyErr_NoMemory() : make_exception(status, whole);
    if (exception != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
    }
    free(whole);
    pypto_status_clear(status);
    return NULL;
}

/* Warns of one diagnostic, at its line of the script. */
static bool warn_of(const pypto_diagnostic *d)
{
    pypto_diagnostic alone = *d;
    alone.next = NULL;
    const pypto_status status = {d->kind, &alone};
    char *whole = pypto_status_text(&status);
    PyObject *module = PyImport_ImportModule("pypto.errors");
    PyObject *done = NULL;
    if (whole == NULL)
        PyErr_NoMemory();
    else if (module != NULL)
        done = PyObject_CallMethod(module, "warn", "NNi", words(whole), words(d->span.file),
                                   (int)d->span.line);
    free(whole);
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done != NULL;
}

bool errors_warn(pypto_status *status)
{
    bool good = true;
    for (const pypto_diagnostic *d = status->diagnostics; good && d != NULL; d = d->next)
        good = warn_of(d);
    pypto_status_clear(status);
    return good;
}

bool errors_refuse(diag_code code, const char *hint, const char *format, ...)
{
    pypto_status status = STATUS_OK;
    va_list args;
    va_start(args, format);
    diag_vadd(&status, code, (pypto_span){0}, hint, format, args);
    va_end(args);
    errors_raise(&status);
    return false;
}

PyObject *errors_refuse_at(PyObject *module, PyObject *args)
{
    (void)module;
    const char *code, *message, *hint, *file, *source;
    int line, column, end_column;
    if (!PyArg_ParseTuple(args, "sszziiiz:refuse", &code, &message, &hint, &file, &line, &column,
                          &end_column, &source))
        return NULL;
    pypto_span span = {.file = file, .line = line, .column = column};
    span.end_line = line;
    span.end_column = end_column;
    pypto_status status = STATUS_OK;
    for (int32_t i = 0; i < DIAG_COUNT; i++) {
        if (strcmp(diag_lookup((diag_code)i)->code, code) == 0)
            diag_add(&status, (diag_code)i, span, hint, "%s", message);
    }
    if (status_ok(status))
        diag_add(&status, DIAG_INTERNAL, span, NULL, "unknown code %s: %s", code, message);
    if (source != NULL)
        diag_source(&status, source);
    return errors_raise(&status);
}
