/* The class SharedMemory: memory of pypto_shared_alloc() as a buffer, from which NumPy and torch make arrays. It is given
 * back when nobody has it any more. */
#include "core.h"

typedef struct shared_object {
    PyObject_HEAD void *address;
    Py_ssize_t bytes;
} shared_object;

/* SharedMemory(bytes) */
static PyObject *shared_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    Py_ssize_t bytes;
    if (keywords != NULL && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "SharedMemory() takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "n:SharedMemory", &bytes))
        return NULL;
    shared_object *self = (shared_object *)PyType_GenericAlloc(type, 0);
    if (self == NULL)
        return NULL;
    self->bytes = bytes;
    pypto_status status;
    Py_BEGIN_ALLOW_THREADS status = pypto_shared_alloc(bytes, &self->address);
    Py_END_ALLOW_THREADS if (status_ok(status)) return (PyObject *)self;
    Py_DECREF(self);
    return errors_raise(&status);
}

static void shared_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    void *address = ((shared_object *)object)->address;
    Py_BEGIN_ALLOW_THREADS pypto_shared_free(address);
    Py_END_ALLOW_THREADS freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static int shared_buffer(PyObject *object, Py_buffer *view, int flags)
{
    shared_object *self = (shared_object *)object;
    return PyBuffer_FillInfo(view, object, self->address, self->bytes, 0, flags);
}

static PyType_Slot shared_slots[] = {
    {Py_tp_new, shared_new},
    {Py_tp_dealloc, shared_dealloc},
    {Py_bf_getbuffer, shared_buffer},
    {Py_tp_doc, "Memory that workers use in place, as a buffer of bytes."},
    {0, NULL},
};

static PyType_Spec shared_spec = {
    .name = "pypto._core.SharedMemory",
    .basicsize = (int)sizeof(shared_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = shared_slots,
};

bool shared_init(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &shared_spec, NULL);
    const bool added = type != NULL && PyModule_AddType(module, (PyTypeObject *)type) == 0;
    Py_XDECREF(type);
    return added;
}
