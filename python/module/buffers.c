/* Arguments with the buffer protocol, NumPy arrays above all -> pypto_argument.
 *
 * Elements that are not aligned to their size are no tensor to compiled code: they are copied, which is good for inputs
 * only. */
#include "tensors.h"

#include <string.h>

/* The element type of a buffer's format, or PYPTO_DTYPE_COUNT. */
static pypto_dtype buffer_dtype(const Py_buffer *buffer)
{
    const char *format = buffer->format == NULL ? "B" : buffer->format;
    if (*format == '@' || *format == '=' || *format == '<')
        format++;
    else if (*format == '>' && buffer->itemsize == 1)
        format++;
    if (format[0] == 0 || format[1] != 0)
        return PYPTO_DTYPE_COUNT;
    int64_t bits = (int64_t)buffer->itemsize * 8;
    if (*format == '?')
        return tensor_dtype_of('b', bits);
    if (strchr("bhilqn", *format) != NULL)
        return tensor_dtype_of('i', bits);
    if (strchr("BHILQN", *format) != NULL)
        return tensor_dtype_of('u', bits);
    return *format == 'e' || *format == 'f' ? tensor_dtype_of('f', bits) : PYPTO_DTYPE_COUNT;
}

static bool refuse_buffer_dtype(PyObject *value, const char *name, const char *format)
{
    PyObject *dtype = tensor_text_of(value, "dtype");
    if (dtype == NULL)
        PyErr_Clear();
    errors_refuse(DIAG_ARGUMENT_TYPE, DTYPE_HINT, "Unsupported dtype %s of argument %s",
                  dtype != NULL ? utf8(dtype) : format, name);
    Py_XDECREF(dtype);
    return false;
}

/* Replaces the buffer by a copy of its elements, row-major and aligned. */
static bool copy_elements(held_argument *held)
{
    PyObject *copy = PyByteArray_FromStringAndSize(NULL, held->buffer.len); /* as malloc aligns */
    pypto_tensor *tensor = &held->argument.tensor;
    if (copy == NULL)
        return false;
    tensor->data = PyByteArray_AsString(copy);
    tensor_pack(tensor);
    const bool good =
        PyBuffer_ToContiguous(tensor->data, &held->buffer, held->buffer.len, 'C') == 0;
    PyBuffer_Release(&held->buffer);
    held->exported = false;
    held->owner = copy;
    held->copied = "an array whose elements are not aligned to their size";
    held->copied_hint = "pass an array that is aligned, as x.copy() is";
    return good;
}

/* Shape, strides and address of held->buffer. */
static bool describe_buffer(const char *name, held_argument *held)
{
    const Py_buffer *buffer = &held->buffer;
    pypto_tensor *tensor = &held->argument.tensor;
    if (buffer->ndim > PYPTO_MAX_DIMS)
        return tensor_refuse_dims(name, buffer->ndim);
    tensor->data = buffer->buf;
    tensor->ndim = buffer->ndim;
    tensor->read_only = buffer->readonly != 0;
    bool aligned = (uintptr_t)buffer->buf % (uintptr_t)buffer->itemsize == 0;
    for (int i = 0; i < buffer->ndim; i++)
        tensor->shape[i] = buffer->shape[i];
    tensor_pack(tensor);
    for (int i = 0; i < buffer->ndim && buffer->strides != NULL; i++) {
        tensor->stride[i] = buffer->strides[i] / buffer->itemsize;
        aligned = aligned && buffer->strides[i] % buffer->itemsize == 0;
    }
    return aligned || copy_elements(held);
}

/* NumPy cannot export bfloat16 arrays; their bits, as uint16, it can. */
static bool export_bfloat16(PyObject *value, held_argument *held)
{
    PyObject *dtype = tensor_text_of(value, "dtype");
    bool matches = dtype != NULL && tensor_text_is(dtype, "bfloat16");
    PyObject *bits = matches ? PyObject_CallMethod(value, "view", "s", "uint16") : NULL;
    Py_XDECREF(dtype);
    held->exported = bits != NULL && PyObject_GetBuffer(bits, &held->buffer, PyBUF_RECORDS_RO) == 0;
    Py_XDECREF(bits); /* the buffer holds it */
    PyErr_Clear();
    return held->exported;
}

bool buffer_hold(PyObject *value, const char *name, held_argument *held)
{
    held->exported = PyObject_GetBuffer(value, &held->buffer, PyBUF_RECORDS_RO) == 0;
    PyErr_Clear();
    if (held->exported)
        held->argument.tensor.dtype = buffer_dtype(&held->buffer);
    else if (export_bfloat16(value, held))
        held->argument.tensor.dtype = PYPTO_BF16;
    else
        return refuse_buffer_dtype(value, name, "that is not numeric");
    if (held->argument.tensor.dtype == PYPTO_DTYPE_COUNT)
        return refuse_buffer_dtype(value, name, held->buffer.format);
    return describe_buffer(name, held);
}
