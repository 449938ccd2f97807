/* The tables of the compiler, as Python lists: the package makes its names out of them (pl.load,
 * pld.NotifyOp, pl.FP32), and tools print the settings. Called once at import. */
#include "core.h"

#include "base/settings.h"
#include "codegen/toolchain.h"
#include "ops/ops.h"

#include <string.h>

/* Appends and gives up the item's reference. An item that is NULL, or a failure, clears the
 * list. */
static void append(PyObject **list, PyObject *item)
{
    if (*list != NULL && (item == NULL || PyList_Append(*list, item) < 0))
        Py_CLEAR(*list);
    Py_XDECREF(item);
}

static PyObject *spellings_of(const op_def *op)
{
    PyObject *spellings = PyList_New(0);
    for (int32_t i = 0; op->spellings[i] != NULL; i++)
        append(&spellings, PyUnicode_FromString(op->spellings[i]));
    return spellings;
}

PyObject *tables_ops(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int32_t id = 0; id < OP_COUNT; id++) {
        const op_def *op = op_get((op_id)id);
        append(&list, Py_BuildValue("(Nss)", spellings_of(op), op->signature, op->doc));
    }
    for (int32_t i = 0; i < WORD_COUNT; i++) {
        const language_word *word = &language_words()[i];
        append(&list, Py_BuildValue("([s]ss)", word->path, word->parameters, word->doc));
    }
    return list;
}

PyObject *tables_enums(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    int32_t count = 0;
    const enum_member *members = enum_members(&count);
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; i < count; i++)
        append(&list, Py_BuildValue("(sssL)", members[i].module, members[i].enumeration,
                                    members[i].member, (long long)members[i].value));
    return list;
}

PyObject *tables_later(PyObject *module, PyObject *path)
{
    (void)module;
    const char *words = utf8(path);
    if (words == NULL)
        return NULL;
    if (!op_is_later(words))
        Py_RETURN_NONE;
    const char *hint = op_later_hint(words);
    return PyUnicode_FromFormat("%s is not supported yet%s%s", words, hint != NULL ? "; " : "",
                                hint != NULL ? hint : "");
}

PyObject *tables_dtypes(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    static const struct {
        const char *name;
        const char *text;
        int bits;
        char class_[2];
    } rows[] = {
#define ROW(name, text, bits, class_) {#name, text, bits, {class_, 0}},
        PYPTO_DTYPES(ROW)
#undef ROW
    };
    PyObject *list = PyList_New(0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        append(&list,
               Py_BuildValue("(ssis)", rows[i].name, rows[i].text, rows[i].bits, rows[i].class_));
    return list;
}

PyObject *tables_settings(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; i < SETTING_COUNT; i++) {
        setting s = (setting)i;
        append(&list, Py_BuildValue("(ssssN)", setting_name(s), setting_text(s), setting_help(s),
                                    setting_valid(s), PyBool_FromLong(setting_bad_is_error(s))));
    }
    return list;
}

PyObject *tables_setting(PyObject *module, PyObject *name)
{
    (void)module;
    const char *wanted = utf8(name);
    for (int32_t i = 0; wanted != NULL && i < SETTING_COUNT; i++) {
        setting s = (setting)i;
        if (strcmp(setting_name(s), wanted) != 0)
            continue;
        pypto_status status = setting_check(s);
        if (!status_ok(status))
            return errors_raise(&status);
        return setting_valid(s)[0] == '\0' ? PyUnicode_DecodeFSDefault(setting_text(s))
                                           : PyLong_FromLongLong(setting_int(s));
    }
    if (wanted != NULL)
        PyErr_Format(PyExc_KeyError, "%s is no setting", wanted);
    return NULL;
}

PyObject *tables_include_dir(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    toolchain tools;
    PyObject *path = NULL;
    arena *a = arena_create();
    if (a == NULL)
        return PyErr_NoMemory();
    pypto_status status = toolchain_headers(a, &tools);
    if (status_ok(status))
        path = file_object(tools.headers);
    else
        errors_raise(&status);
    arena_destroy(a);
    return path;
}
