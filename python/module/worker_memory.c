/* The class Worker: memory of the ranks. */
#include "base/os.h"
#include "worker_set.h"

#include <string.h>

/* alloc(rank, bytes) -> address */
PyObject *worker_alloc(PyObject *object, PyObject *args)
{
    worker_set *set = ((worker_object *)object)->set;
    int rank;
    long long bytes;
    if (!PyArg_ParseTuple(args, "iL:alloc", &rank, &bytes) || !set_enter(set, "malloc"))
        return NULL;
    void *address = NULL;
    const waiting outer = waiting_begin();
    pypto_status status = pypto_worker_alloc(set->worker, rank, bytes, &address);
    waiting_end(outer);
    set_leave(set);
    return status_ok(status) ? PyLong_FromVoidPtr(address) : errors_raise(&status);
}

/* free(rank, address) */
PyObject *worker_free(PyObject *object, PyObject *args)
{
    worker_set *set = ((worker_object *)object)->set;
    int rank;
    unsigned long long address;
    if (!PyArg_ParseTuple(args, "iK:free", &rank, &address) || !set_enter_alone(set, "free"))
        return NULL;
    pypto_status status = pypto_worker_free(set->worker, rank, (void *)(uintptr_t)address);
    PyObject *result = call_result(&status);
    set_leave_alone(set);
    return result;
}

static PyObject *copy_memory(PyObject *object, PyObject *args, bool behind)
{
    worker_set *set = ((worker_object *)object)->set;
    unsigned long long target, source;
    long long bytes;
    if (!PyArg_ParseTuple(args, behind ? "KKL:copy" : "KKL:fill", &target, &source, &bytes) ||
        !(behind ? set_enter_alone(set, "copy") : set_enter(set, "fill")))
        return NULL;
    const uint64_t wrong = !os_is_mapped(target, bytes)   ? target
                           : !os_is_mapped(source, bytes) ? source
                                                          : 0;
    if (wrong != 0) {
        errors_refuse(
            DIAG_BAD_RESIDENT,
            "pass the address of memory that this process has: x.data_ptr(), x.ctypes.data",
            "%lld bytes at the host address %#llx are no memory of this process", bytes,
            (unsigned long long)wrong);
    } else if (bytes > 0) {
        Py_BEGIN_ALLOW_THREADS memcpy((void *)(uintptr_t)target, (const void *)(uintptr_t)source,
                                      (size_t)bytes);
        Py_END_ALLOW_THREADS
    }
    if (behind)
        set_leave_alone(set);
    else
        set_leave(set);
    return wrong != 0 ? NULL : Py_NewRef(Py_None);
}

/* copy(target, source, bytes): between memory of ranks and any other, behind the calls in flight */
PyObject *worker_copy(PyObject *object, PyObject *args)
{
    return copy_memory(object, args, true);
}

/* fill(target, source, bytes): the same at once, into memory that no call knows yet */
PyObject *worker_fill(PyObject *object, PyObject *args)
{
    return copy_memory(object, args, false);
}

/* committed(rank) -> bytes */
PyObject *worker_committed(PyObject *object, PyObject *args)
{
    worker_set *set = ((worker_object *)object)->set;
    int rank;
    if (!PyArg_ParseTuple(args, "i:committed", &rank) || !set_enter(set, "committed_device_memory"))
        return NULL;
    int64_t bytes;
    Py_BEGIN_ALLOW_THREADS bytes = pypto_worker_committed(set->worker, rank);
    Py_END_ALLOW_THREADS set_leave(set);
    return PyLong_FromLongLong(bytes);
}

PyObject *worker_reset_windows(PyObject *object, PyObject *unused)
{
    (void)unused;
    worker_set *set = ((worker_object *)object)->set;
    if (!set_enter_alone(set, "reset_persistent_windows"))
        return NULL;
    const waiting outer = waiting_begin();
    pypto_status status = pypto_worker_reset_windows(set->worker);
    waiting_end(outer);
    PyObject *result = call_result(&status);
    set_leave_alone(set);
    return result;
}
