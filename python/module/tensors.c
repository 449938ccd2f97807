/* A Python argument -> pypto_argument: where its memory is, how it is laid out, what may be done
 * with it.
 *
 * Five ways in, in the order in which they are tried:
 *   numbers   bool, int, float and NumPy scalars
 *   torch     by its attributes; torch itself is never imported
 *   buffers   NumPy arrays and everything else with the buffer protocol (buffers.c)
 *   DLPack    other libraries; read-only, because old versions of the protocol do not say
 *   resident  tensors of a worker (resident.c)
 *
 * Nothing is copied here: views that are not contiguous, of negative stride or read-only are
 * described as they are, and the host library judges them by what the program does with the
 * parameter. The exceptions are a torch tensor with its negative bit set, whose memory holds other
 * numbers than the tensor, and elements that are not aligned to their size: a copy is handed on, and
 * marked so that it is refused as an output.
 *
 * A held_argument keeps the object (and the export of its buffer) until the call is over. Errors
 * are TypeErrors that name the parameter. */
#include "tensors.h"

#include <string.h>

/* ---- small helpers ---- */

PyObject *tensor_text_of(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    PyObject *words = value == NULL ? NULL : PyObject_Str(value);
    Py_XDECREF(value);
    return words;
}

bool tensor_text_is(PyObject *words, const char *expected)
{
    return PyUnicode_CompareWithASCIIString(words, expected) == 0;
}

pypto_dtype tensor_dtype_of(char class_, int64_t bits)
{
#define MATCH(name, label, size, letter)                                     \
    if (class_ == (letter) && bits == (size) && PYPTO_##name != PYPTO_INDEX) \
        return PYPTO_##name;
    PYPTO_DTYPES(MATCH)
#undef MATCH
    return PYPTO_DTYPE_COUNT;
}

static bool refuse_type(PyObject *value, const char *name)
{
    PyObject *type = PyType_GetName(Py_TYPE(value));
    if (type == NULL)
        return false;
    if (tensor_text_is(type, "_Runtime")) {
        Py_DECREF(type);
        return errors_refuse(
            DIAG_ARGUMENT_TYPE, "pass a number",
            "argument %s received pl.RUNTIME, which is for compiling without sample "
            "tensors",
            name);
    }
    const char *hint =
        tensor_text_is(type, "RunConfig") ? "pass it by name: config=..."
        : tensor_text_is(type, "DistributedConfig")
            ? "pass it by name, in a RunConfig: config=RunConfig(distributed_config=...)"
            : "pass a torch tensor in CPU memory or a NumPy array, and a number where the "
              "parameter is a scalar";
    errors_refuse(
        DIAG_ARGUMENT_TYPE, hint,
        "argument %s must be a host torch.Tensor, a NumPy array, a DeviceTensor or a number, "
        "not %s",
        name, utf8(type));
    Py_DECREF(type);
    return false;
}

bool tensor_refuse_dims(const char *name, Py_ssize_t ndim)
{
    return errors_refuse(DIAG_ARGUMENT_TYPE, NULL,
                         "argument %s has %lld dimensions; at most %d are supported", name,
                         (long long)ndim, PYPTO_MAX_DIMS);
}

void tensor_pack(pypto_tensor *tensor)
{
    int64_t stride = 1;
    for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
        tensor->stride[i] = stride;
        stride *= tensor->shape[i] > 0 ? tensor->shape[i] : 1;
    }
}

/* ---- what has been seen ---- */

/* Objects that came before, held, and what was found out about them: classes, and the element types and layouts of torch, each of
 * which is one object. There are few; asking Python about each argument anew would cost most of what a call costs. The GIL
 * protects it. */
typedef struct memory {
    PyObject *object;
    int fact;
} memory;

#define REMEMBERED 16

static bool recall(const memory *known, PyObject *object, int *fact)
{
    for (int i = 0; i < REMEMBERED && known[i].object != NULL; ++i) {
        if (known[i].object == object) {
            *fact = known[i].fact;
            return true;
        }
    }
    return false;
}

/* When there is no room for it, it is found out again each time. */
static void remember(memory *known, PyObject *object, int fact)
{
    for (int i = 0; i < REMEMBERED; ++i) {
        if (known[i].object == NULL) {
            known[i] = (memory){Py_NewRef(object), fact};
            return;
        }
    }
}

/* ---- torch ---- */

/* Whether a class, or one that it derives from, is of a package, "torch", or of a module below. */
static bool class_is_of(PyObject *type, const char *package)
{
    const size_t length = strlen(package);
    PyObject *order = PyObject_GetAttrString(type, "__mro__");
    Py_ssize_t count = order != NULL && PyTuple_Check(order) ? PyTuple_Size(order) : 0;
    bool found = false;
    for (Py_ssize_t i = 0; i < count && !found; i++) {
        PyObject *module = PyObject_GetAttrString(PyTuple_GetItem(order, i), "__module__");
        const char *words = module != NULL && PyUnicode_Check(module) ? utf8(module) : NULL;
        found = words != NULL && strncmp(words, package, length) == 0 &&
                (words[length] == 0 || words[length] == '.');
        Py_XDECREF(module);
    }
    Py_XDECREF(order);
    PyErr_Clear();
    return found;
}

static bool is_torch(PyObject *value)
{
    return class_is_of((PyObject *)Py_TYPE(value), "torch") &&
           PyObject_HasAttrString(value, "data_ptr");
}

static bool torch_dtype(PyObject *value, const char *name, pypto_dtype *dtype)
{
    static const struct {
        const char *text;
        pypto_dtype dtype;
    } known[] = {
        {"torch.float32", PYPTO_FP32},  {"torch.float16", PYPTO_FP16},
        {"torch.bfloat16", PYPTO_BF16}, {"torch.int32", PYPTO_INT32},
        {"torch.int64", PYPTO_INT64},   {"torch.int16", PYPTO_INT16},
        {"torch.int8", PYPTO_INT8},     {"torch.uint8", PYPTO_UINT8},
        {"torch.bool", PYPTO_BOOL},     {"torch.uint16", PYPTO_UINT16},
        {"torch.uint32", PYPTO_UINT32}, {"torch.uint64", PYPTO_UINT64},
    };
    static memory seen[REMEMBERED];
    PyObject *object = PyObject_GetAttrString(value, "dtype");
    int fact;
    if (object != NULL && recall(seen, object, &fact)) {
        Py_DECREF(object);
        *dtype = (pypto_dtype)fact;
        return true;
    }
    PyObject *words = object == NULL ? NULL : PyObject_Str(object);
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known && words != NULL && !found; i++) {
        found = tensor_text_is(words, known[i].text);
        *dtype = known[i].dtype;
    }
    if (found)
        remember(seen, object, (int)*dtype);
    Py_XDECREF(object);
    if (words == NULL)
        return false;
    if (!found)
        errors_refuse(DIAG_ARGUMENT_TYPE, DTYPE_HINT, "Unsupported torch dtype %s of argument %s",
                      utf8(words), name);
    Py_DECREF(words);
    return found;
}

/* Only dense tensors in this machine's memory have an address that can be used. */
static bool torch_is_host(PyObject *value, const char *name)
{
    static memory dense[REMEMBERED];
    PyObject *kind = PyObject_GetAttrString(value, "layout");
    PyObject *cpu = kind == NULL ? NULL : PyObject_GetAttrString(value, "is_cpu");
    int fact;
    const bool plain = cpu == Py_True && recall(dense, kind, &fact);
    const bool remembers = cpu == Py_True;
    Py_XDECREF(cpu);
    if (plain) {
        Py_DECREF(kind);
        return true;
    }
    PyErr_Clear(); /* said again below */
    PyObject *layout = tensor_text_of(value, "layout");
    PyObject *device = PyObject_GetAttrString(value, "device");
    PyObject *type = device == NULL ? NULL : tensor_text_of(device, "type");
    bool good = false;
    if (layout != NULL && type != NULL) {
        if (!tensor_text_is(layout, "torch.strided"))
            errors_refuse(DIAG_ARGUMENT_TYPE, "pass x.to_dense()",
                          "argument %s must be a dense tensor, not one of layout %s", name,
                          utf8(layout));
        else if (!tensor_text_is(type, "cpu"))
            errors_refuse(DIAG_ARGUMENT_TYPE, "pass x.cpu()",
                          "argument %s must be a host torch.Tensor, not one on device %s", name,
                          utf8(type));
        else
            good = true;
    }
    if (good && remembers)
        remember(dense, kind, 1);
    Py_XDECREF(kind);
    Py_XDECREF(layout);
    Py_XDECREF(device);
    Py_XDECREF(type);
    return good;
}

/* The numbers of a tuple that obj.name is (or, called, returns); -1 with an exception set. */
static Py_ssize_t numbers(PyObject *object, const char *name, bool call, int64_t *out)
{
    PyObject *tuple =
        call ? PyObject_CallMethod(object, name, NULL) : PyObject_GetAttrString(object, name);
    Py_ssize_t count = tuple == NULL ? -1 : PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < count && i < PYPTO_MAX_DIMS; i++)
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    Py_XDECREF(tuple);
    return PyErr_Occurred() ? -1 : count;
}

/* Replaces held->owner by a tensor whose memory holds what the tensor shows. */
static bool torch_resolve(held_argument *held)
{
    PyObject *answer = PyObject_CallMethod(held->owner, "is_neg", NULL);
    int negative = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (negative <= 0)
        return negative == 0;
    PyObject *resolved = PyObject_CallMethod(held->owner, "resolve_neg", NULL);
    if (resolved == NULL)
        return false;
    Py_DECREF(held->owner);
    held->owner = resolved;
    held->copied = "a tensor with its negative bit set";
    held->copied_hint = "pass x.resolve_neg()";
    return true;
}

/* Torch itself refuses to write such tensors, unless gradients are off for the moment. */
static bool torch_tracked(PyObject *value)
{
    PyObject *wanted = PyObject_GetAttrString(value, "requires_grad");
    bool tracked = wanted != NULL && PyObject_IsTrue(wanted) == 1;
    Py_XDECREF(wanted);
    PyObject *torch = tracked ? PyDict_GetItemString(PyImport_GetModuleDict(), "torch") : NULL;
    if (torch != NULL) {
        PyObject *enabled = PyObject_CallMethod(torch, "is_grad_enabled", NULL);
        tracked = enabled == NULL || PyObject_IsTrue(enabled) == 1;
        Py_XDECREF(enabled);
    }
    PyErr_Clear();
    return tracked;
}

static bool hold_torch(PyObject *value, const char *name, held_argument *held)
{
    pypto_tensor *tensor = &held->argument.tensor;
    if (!torch_is_host(value, name) || !torch_dtype(value, name, &tensor->dtype))
        return false;
    Py_INCREF(value);
    held->owner = value;
    held->tracked = torch_tracked(value);
    if (!torch_resolve(held))
        return false;
    value = held->owner;
    Py_ssize_t ndim = numbers(value, "shape", false, tensor->shape);
    if (ndim > PYPTO_MAX_DIMS)
        return tensor_refuse_dims(name, ndim);
    if (ndim < 0 || numbers(value, "stride", true, tensor->stride) != ndim)
        return false;
    PyObject *address = PyObject_CallMethod(value, "data_ptr", NULL);
    if (address == NULL)
        return false;
    tensor->data = PyLong_AsVoidPtr(address);
    tensor->ndim = (int32_t)ndim;
    Py_DECREF(address);
    return !PyErr_Occurred();
}

/* ---- DLPack ---- */

/* The part of DLPack's DLManagedTensor that is looked at; it begins with the tensor. */
typedef struct dlpack_tensor {
    void *data;
    int32_t device_type; /* 1: CPU */
    int32_t device_id;
    int32_t ndim;
    uint8_t code; /* 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool */
    uint8_t bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major */
    uint64_t byte_offset;
} dlpack_tensor;

static pypto_dtype dlpack_dtype(const dlpack_tensor *t)
{
    static const char classes[] = {'i', 'u', 'f', 0, 0, 0, 'b'};
    if (t->lanes != 1 || t->code >= sizeof classes)
        return PYPTO_DTYPE_COUNT;
    if (t->code == 4 && t->bits == 16)
        return PYPTO_BF16;
    return tensor_dtype_of(classes[t->code], t->bits);
}

static bool describe_dlpack(const dlpack_tensor *t, const char *name, pypto_tensor *tensor)
{
    if (t->device_type != 1)
        return errors_refuse(DIAG_ARGUMENT_TYPE, "copy it to the CPU first",
                             "argument %s is not in host memory", name);
    if (t->ndim > PYPTO_MAX_DIMS)
        return tensor_refuse_dims(name, t->ndim);
    tensor->dtype = dlpack_dtype(t);
    if (tensor->dtype == PYPTO_DTYPE_COUNT)
        return errors_refuse(DIAG_ARGUMENT_TYPE, DTYPE_HINT, "Unsupported dtype of argument %s",
                             name);
    tensor->data = (char *)t->data + t->byte_offset;
    tensor->ndim = t->ndim;
    tensor->read_only = true;
    for (int32_t i = 0; i < t->ndim; i++)
        tensor->shape[i] = t->shape[i];
    tensor_pack(tensor);
    for (int32_t i = 0; i < t->ndim && t->strides != NULL; i++)
        tensor->stride[i] = t->strides[i];
    return true;
}

/* The capsule is the owner; it stays unconsumed, so dropping it releases the tensor. */
static bool hold_dlpack(PyObject *value, const char *name, held_argument *held)
{
    held->owner = PyObject_CallMethod(value, "__dlpack__", NULL);
    if (held->owner == NULL)
        return false;
    const dlpack_tensor *t = PyCapsule_GetPointer(held->owner, "dltensor");
    return t != NULL && describe_dlpack(t, name, &held->argument.tensor);
}

/* ---- the ways in ---- */

/* Arrays and tensors with a mask: nothing would look at it. */
static bool refuse_mask(PyObject *type, const char *name)
{
    const bool numpy = class_is_of(type, "numpy.ma");
    if (!numpy && !class_is_of(type, "torch.masked"))
        return false;
    errors_refuse(DIAG_ARGUMENT_TYPE,
                  numpy ? "pass x.filled(value), or x.data, which has all elements"
                        : "pass x.to_tensor(value), or x.get_data(), which has all elements",
                  "argument %s is a masked %s, and nothing here looks at a mask", name,
                  numpy ? "array" : "tensor");
    return true;
}

enum { IS_TORCH, IS_BUFFER };

bool tensor_hold(PyObject *value, const char *name, held_argument *held)
{
    *held = (held_argument){.argument.kind = PLD_ARG_TENSOR};
    if (PyLong_Check(value) || PyFloat_Check(value)) /* bool is an int */
        return number_hold(value, name, held);
    static memory classes[REMEMBERED];
    PyObject *type = (PyObject *)Py_TYPE(value);
    int fact;
    if (recall(classes, type, &fact))
        return fact == IS_TORCH ? hold_torch(value, name, held) : buffer_hold(value, name, held);
    if (refuse_mask(type, name))
        return false;
    if (is_torch(value)) {
        remember(classes, type, IS_TORCH);
        return hold_torch(value, name, held);
    }
    PyObject *number = numpy_number(value);
    if (number == NULL)
        number = ctypes_number(value, &held->ctype);
    if (number != NULL) {
        bool good = number_hold(number, name, held);
        Py_DECREF(number);
        return good;
    }
    if (PyObject_CheckBuffer(value)) {
        /* A class may be a tensor of torch by what its objects have; one that has a buffer has it in all. */
        remember(classes, type, IS_BUFFER);
        return buffer_hold(value, name, held);
    }
    if (PyObject_HasAttrString((PyObject *)Py_TYPE(value), "__dlpack__"))
        return hold_dlpack(value, name, held);
    if (resident_is(value))
        return resident_hold(value, name, held);
    return refuse_type(value, name);
}

void tensor_release(held_argument *held)
{
    if (held->exported)
        PyBuffer_Release(&held->buffer);
    held->exported = false;
    PyMem_Free(held->rows);
    held->rows = NULL;
    Py_CLEAR(held->owner);
}
