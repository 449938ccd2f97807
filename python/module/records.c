/* Records of a call, as Python asks for them. */
#include "records.h"

/* (directory or None, per_rank, swimlane, dump_args, pmu, dependencies, scope_stats, times) */
bool records_read(PyObject *wanted, wanted_records *records)
{
    *records = (wanted_records){.what = PYPTO_RECORDS_INIT};
    if (wanted == NULL || wanted == Py_None)
        return true;
    PyObject *directory;
    int per_rank, dependencies, scope_stats, times;
    pypto_records *what = &records->what;
    if (!PyArg_ParseTuple(wanted, "Opiiippp:records", &directory, &per_rank, &what->swimlane,
                          &what->dump_args, &what->pmu, &dependencies, &scope_stats, &times))
        return false;
    if (directory != Py_None) {
        if (!PyUnicode_FSConverter(directory, &records->directory))
            return false;
        what->directory = PyBytes_AsString(records->directory);
    }
    what->per_rank = per_rank;
    what->dependencies = dependencies;
    what->scope_stats = scope_stats;
    what->times = times;
    records->given = true;
    return true;
}

void records_release(wanted_records *records)
{
    Py_CLEAR(records->directory);
}

PyObject *records_times(pypto_worker *worker)
{
    const pypto_dispatch_times *times;
    const int32_t count = pypto_worker_times(worker, &times);
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; list != NULL && i < count; ++i) {
        const pypto_dispatch_times *t = &times[i];
        PyObject *row =
            Py_BuildValue("(iisLLLL)", t->rank, t->index, t->name, (long long)t->taken_ns,
                          (long long)t->begun_ns, (long long)t->wrapper_ns, (long long)t->over_ns);
        if (row == NULL || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}
