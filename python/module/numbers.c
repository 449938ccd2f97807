/* Numbers among the arguments of a call: of Python, NumPy and ctypes; and whether one fits its parameter. A number
 * that does not is refused: no value is cut to the bits that the parameter has. */
#include "program.h"

#include <string.h>

/* The class of an element type: 'b', 'i', 'u', 'f' ..., and its bits. */
static char class_of(int32_t dtype)
{
    static const char classes[] = {
#define CLASS(name, text, bits, class_) [PYPTO_##name] = (class_),
        PYPTO_DTYPES(CLASS)
#undef CLASS
    };
    return dtype >= 0 && dtype < PYPTO_DTYPE_COUNT ? classes[dtype] : '?';
}

static int32_t bits_of(int32_t dtype)
{
    static const int32_t sizes[] = {
#define BITS(name, text, bits, class_) [PYPTO_##name] = (bits),
        PYPTO_DTYPES(BITS)
#undef BITS
    };
    return dtype >= 0 && dtype < PYPTO_DTYPE_COUNT ? sizes[dtype] : 0;
}

/* ---- reading ---- */

PyObject *numpy_number(PyObject *value)
{
    PyObject *type = (PyObject *)Py_TYPE(value);
    PyObject *module = PyObject_GetAttrString(type, "__module__");
    /* An array can be assigned into, a scalar cannot. */
    bool scalar = module != NULL && PyUnicode_Check(module) &&
                  PyUnicode_CompareWithASCIIString(module, "numpy") == 0 &&
                  !PyObject_HasAttrString(type, "__setitem__");
    PyObject *number = scalar ? PyObject_CallMethod(value, "item", NULL) : NULL;
    Py_XDECREF(module);
    if (number != NULL && !PyLong_Check(number) && !PyFloat_Check(number))
        Py_CLEAR(number);
    if (number == NULL)
        PyErr_Clear();
    return number;
}

PyObject *ctypes_number(PyObject *value, char *code)
{
    PyObject *type = (PyObject *)Py_TYPE(value);
    PyObject *module = PyObject_GetAttrString(type, "__module__");
    const bool known = module != NULL && PyUnicode_Check(module) &&
                       PyUnicode_CompareWithASCIIString(module, "ctypes") == 0;
    PyObject *letter = known ? PyObject_GetAttrString(type, "_type_") : NULL;
    const char *letters = letter != NULL && PyUnicode_Check(letter) ? utf8(letter) : NULL;
    PyObject *number = NULL;
    if (letters != NULL && strchr("?bBhHiIlLqQfd", letters[0]) != NULL) {
        number = PyObject_GetAttrString(value, "value");
        *code = letters[0];
    }
    Py_XDECREF(letter);
    Py_XDECREF(module);
    if (number == NULL)
        PyErr_Clear();
    return number;
}

bool number_hold(PyObject *value, const char *name, held_argument *held)
{
    if (PyFloat_Check(value)) {
        held->argument.kind = PLD_ARG_FLOAT;
        held->argument.real = PyFloat_AsDouble(value);
        return true;
    }
    held->boolean = PyBool_Check(value);
    held->argument.kind = PLD_ARG_INT;
    if (!integer_of(value, &held->argument.integer, &held->beyond))
        return errors_refuse(DIAG_ARGUMENT_TYPE, NULL, "argument %s does not fit in 64 bits", name);
    return true;
}

/* ---- the parameter ---- */

/* The class and size that a letter of ctypes stands for. */
static bool ctypes_fits(char code, int32_t dtype)
{
    static const struct {
        char code;
        char class_;
        int32_t bits;
    } rows[] = {
        {'?', 'b', 8 * (int32_t)sizeof(bool)},
        {'b', 'i', 8},
        {'B', 'u', 8},
        {'h', 'i', 8 * (int32_t)sizeof(short)},
        {'H', 'u', 8 * (int32_t)sizeof(short)},
        {'i', 'i', 8 * (int32_t)sizeof(int)},
        {'I', 'u', 8 * (int32_t)sizeof(int)},
        {'l', 'i', 8 * (int32_t)sizeof(long)},
        {'L', 'u', 8 * (int32_t)sizeof(long)},
        {'q', 'i', 64},
        {'Q', 'u', 64},
    };
    if (class_of(dtype) == 'f') /* one class of ctypes for all of them */
        return code == 'f';
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code)
            return class_of(dtype) == rows[i].class_ && bits_of(dtype) == rows[i].bits;
    return false;
}

bool number_fit(const pld_function *host, const pld_param *param, const held_argument *held,
                pypto_argument *argument)
{
    if (param->kind != PLD_PARAM_SCALAR || argument->kind == PLD_ARG_TENSOR)
        return true; /* the library says what is wrong */
    const char *dtype = pypto_dtype_name((pypto_dtype)param->dtype);
    if (held->ctype != 0 && !ctypes_fits(held->ctype, param->dtype))
        return errors_refuse(DIAG_ARGUMENT_TYPE, "pass a Python number, or the class of that type",
                             "argument '%s' of '%s' is of another class of ctypes than its "
                             "parameter, which is %s",
                             param->name, host->name, dtype);
    if (param->dtype == PYPTO_BOOL &&
        (argument->kind == PLD_ARG_FLOAT || held->beyond || (argument->integer | 1) != 1))
        return errors_refuse(DIAG_ARGUMENT_TYPE, "pass True or False",
                             "argument '%s' of '%s': the number does not fit bool", param->name,
                             host->name);
    if (class_of(param->dtype) == 'f' && argument->kind == PLD_ARG_INT) {
        argument->kind = PLD_ARG_FLOAT;
        argument->real =
            held->beyond ? (double)(uint64_t)argument->integer : (double)argument->integer;
        return true;
    }
    if (argument->kind == PLD_ARG_INT && param->dtype == PYPTO_UINT64 &&
        (held->beyond || argument->integer >= 0))
        return true;
    if (argument->kind == PLD_ARG_INT && (held->beyond || param->dtype == PYPTO_UINT64))
        return errors_refuse(DIAG_ARGUMENT_TYPE, "pass another number, or declare another type",
                             "argument '%s' of '%s': the number does not fit %s", param->name,
                             host->name, dtype);
    return true;
}
