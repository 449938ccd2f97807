/* What the ways in of tensors share (tensors.c, buffers.c). */
#ifndef MODULE_TENSORS_H
#define MODULE_TENSORS_H

#include "core.h"

#define DTYPE_HINT                                                                                   \
    "pass float32, float16, bfloat16, int8, int16, int32, int64, bool or an unsigned integer type; " \
    "FP8 and types of 4 bits by their bytes, as uint8: x.view(torch.uint8)"

/* str(object.name) as a new reference, or NULL with an exception set. */
PyObject *tensor_text_of(PyObject *object, const char *name);
bool tensor_text_is(PyObject *words, const char *expected);

/* The element type with this class and size, or PYPTO_DTYPE_COUNT. INDEX and BF16 are never
 * meant. */
pypto_dtype tensor_dtype_of(char class_, int64_t bits);

/* Strides, in elements, of a row-major tensor. */
void tensor_pack(pypto_tensor *tensor);

/* Raises that there are too many dimensions; false. */
bool tensor_refuse_dims(const char *name, Py_ssize_t ndim);

/* ---- buffers.c ---- */

/* As tensor_hold(), of an object with the buffer protocol. */
bool buffer_hold(PyObject *value, const char *name, held_argument *held);

#endif
