/* Nodes of Python's syntax tree, looked at: which of them the DSL can mean, their fields, places and strings.
 *
 * Fields are returned as borrowed: the caller keeps the tree alive and nobody else can change it. */
#include "ast_internal.h"

static const node_row node_table[] = {
    {"Name", NODE_NAME, NULL},
    {"Constant", NODE_CONSTANT, NULL},
    {"Attribute", NODE_ATTRIBUTE, NULL},
    {"Call", NODE_CALL, NULL},
    {"Subscript", NODE_SUBSCRIPT, NULL},
    {"Slice", NODE_SLICE, NULL},
    {"Tuple", NODE_TUPLE, NULL},
    {"List", NODE_LIST, NULL},
    {"UnaryOp", NODE_UNARY, NULL},
    {"BinOp", NODE_BINARY, NULL},
    {"Compare", NODE_COMPARE, NULL},
    {"BoolOp", NODE_BOOLOP, NULL},
    {"IfExp", NODE_IFEXP, NULL},
    {"Starred", NODE_STARRED, NULL},
    {"ListComp", NODE_COMPREHENSION, NULL},
    {"Dict", NODE_DICT, NULL},
    {"Assign", NODE_ASSIGN, NULL},
    {"AnnAssign", NODE_ANNOTATED, NULL},
    {"AugAssign", NODE_AUGMENTED, NULL},
    {"Expr", NODE_EXPR, NULL},
    {"For", NODE_FOR, NULL},
    {"While", NODE_WHILE, NULL},
    {"If", NODE_IF, NULL},
    {"With", NODE_WITH, NULL},
    {"Return", NODE_RETURN, NULL},
    {"Break", NODE_BREAK, NULL},
    {"Continue", NODE_CONTINUE, NULL},
    {"Pass", NODE_PASS, NULL},
    {"Add", NODE_OPERATOR, "+"},
    {"Sub", NODE_OPERATOR, "-"},
    {"Mult", NODE_OPERATOR, "*"},
    {"MatMult", NODE_OPERATOR, "@"},
    {"Div", NODE_OPERATOR, "/"},
    {"FloorDiv", NODE_OPERATOR, "//"},
    {"Mod", NODE_OPERATOR, "%"},
    {"Pow", NODE_OPERATOR, "**"},
    {"LShift", NODE_OPERATOR, "<<"},
    {"RShift", NODE_OPERATOR, ">>"},
    {"BitOr", NODE_OPERATOR, "|"},
    {"BitXor", NODE_OPERATOR, "^"},
    {"BitAnd", NODE_OPERATOR, "&"},
    {"Invert", NODE_OPERATOR, "~"},
    {"Not", NODE_OPERATOR, "not"},
    {"UAdd", NODE_OPERATOR, "+"},
    {"USub", NODE_OPERATOR, "-"},
    {"And", NODE_OPERATOR, "and"},
    {"Or", NODE_OPERATOR, "or"},
    {"Eq", NODE_OPERATOR, "=="},
    {"NotEq", NODE_OPERATOR, "!="},
    {"Lt", NODE_OPERATOR, "<"},
    {"LtE", NODE_OPERATOR, "<="},
    {"Gt", NODE_OPERATOR, ">"},
    {"GtE", NODE_OPERATOR, ">="},
    {"Is", NODE_OPERATOR, "is"},
    {"IsNot", NODE_OPERATOR, "is not"},
    {"In", NODE_OPERATOR, "in"},
    {"NotIn", NODE_OPERATOR, "not in"},
};

static const node_row other_row = {"", NODE_OTHER, "?"};

bool know_nodes(core_state *state)
{
    if (state->node_kinds != NULL)
        return true;
    PyObject *module = PyImport_ImportModule("_ast");
    PyObject *kinds = PyDict_New();
    bool good = module != NULL && kinds != NULL;
    for (size_t i = 0; good && i < sizeof node_table / sizeof *node_table; i++) {
        PyObject *class_ = PyObject_GetAttrString(module, node_table[i].class_name);
        PyObject *number = PyLong_FromSize_t(i);
        good = class_ != NULL && number != NULL && PyDict_SetItem(kinds, class_, number) == 0;
        Py_XDECREF(class_);
        Py_XDECREF(number);
    }
    Py_XDECREF(module);
    if (good)
        state->node_kinds = kinds;
    else
        Py_XDECREF(kinds);
    return good;
}

/* ---- looking at nodes; everything returned here is borrowed ---- */

const node_row *row_of(const importer *im, PyObject *object)
{
    PyObject *number = PyDict_GetItemWithError(im->state->node_kinds, (PyObject *)Py_TYPE(object));
    return number == NULL ? &other_row : &node_table[PyLong_AsSize_t(number)];
}

PyObject *node_field(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    if (value == NULL) {
        PyErr_Clear();
        return Py_None;
    }
    Py_DECREF(value); /* the node holds it */
    return value;
}

Py_ssize_t list_length(PyObject *list)
{
    return PyList_Check(list) ? PyList_Size(list) : 0;
}

static int32_t int_field(PyObject *object, const char *name)
{
    long value = PyLong_AsLong(node_field(object, name));
    if (value == -1 && PyErr_Occurred())
        PyErr_Clear();
    return value < 0 || value > INT32_MAX ? 0 : (int32_t)value;
}

pypto_span span_of(const importer *im, PyObject *object)
{
    if (im->place != NULL)
        return *im->place;
    return (pypto_span){
        .file = im->file,
        .line = int_field(object, "lineno"),
        .column = int_field(object, "col_offset"),
        .end_line = int_field(object, "end_lineno"),
        .end_column = int_field(object, "end_col_offset"),
    };
}

/* ---- numbers and strings ---- */

bool integer_of(PyObject *value, int64_t *integer, bool *is_unsigned)
{
    int overflow = 0;
    *integer = PyLong_AsLongLongAndOverflow(value, &overflow);
    *is_unsigned = overflow > 0;
    if (overflow <= 0)
        return overflow == 0;
    const unsigned long long number = PyLong_AsUnsignedLongLong(value);
    *integer = (int64_t)number;
    if (PyErr_Occurred() == NULL)
        return true;
    PyErr_Clear();
    return false;
}

const char *utf8(PyObject *object)
{
    return PyUnicode_AsUTF8AndSize(object, NULL);
}

const char *import_string(importer *im, PyObject *object)
{
    const char *bytes = utf8(object);
    if (bytes == NULL) {
        im->failed = true;
        return "";
    }
    return arena_strdup(im->a, bytes);
}

const char *node_string(importer *im, PyObject *object, const char *name)
{
    return import_string(im, node_field(object, name));
}

const char *import_type_name(importer *im, PyObject *object)
{
    PyObject *name = PyType_GetName(Py_TYPE(object));
    bool kept = name != NULL && PyList_Append(im->keep, name) == 0;
    Py_XDECREF(name);
    if (!kept) {
        im->failed = true;
        return "?";
    }
    return import_string(im, name);
}
