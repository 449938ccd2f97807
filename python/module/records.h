/* Records of a call, as Python asks for them: None, or a tuple that runtime/_records.py makes of a RunConfig. */
#ifndef MODULE_RECORDS_H
#define MODULE_RECORDS_H

#include "core.h"

typedef struct wanted_records {
    bool given; /* else nothing is to be recorded */
    pypto_records what;
    PyObject *directory; /* what `what.directory` points into */
} wanted_records;

/* False with an exception set; *records is to be released all the same. */
bool records_read(PyObject *wanted, wanted_records *records);
void records_release(wanted_records *records);

/* [(rank, index, name, taken, begun, wrapper over, over)] of the latest call that recorded times, in ns. */
PyObject *records_times(pypto_worker *worker);

#endif
