/* Expressions of Python's syntax tree, and annotations, which may be strings with an expression in them. */
#include "ast_internal.h"

#include <string.h>

/* ---- expressions ---- */

syntax_expr *import_optional(importer *im, PyObject *object)
{
    return object == Py_None ? NULL : import_expr(im, object);
}

static void import_items(importer *im, PyObject *list, syntax_exprs *items)
{
    for (Py_ssize_t i = 0; i < list_length(list); i++) {
        syntax_expr *item = import_expr(im, PyList_GetItem(list, i));
        vec_push(im->a, items, item);
    }
}

static void import_constant(importer *im, PyObject *value, syntax_expr *e)
{
    if (value == Py_None) {
        e->kind = SYNTAX_NONE;
    } else if (PyBool_Check(value)) {
        e->kind = SYNTAX_BOOL;
        e->integer = value == Py_True;
    } else if (PyLong_Check(value)) {
        e->kind = SYNTAX_INT;
        e->overflow = !integer_of(value, &e->integer, &e->is_unsigned);
    } else if (PyFloat_Check(value)) {
        e->kind = SYNTAX_FLOAT;
        e->real = PyFloat_AsDouble(value);
    } else if (PyUnicode_Check(value) && utf8(value) != NULL) {
        e->kind = SYNTAX_STRING;
        e->text = import_string(im, value);
    } else {
        PyErr_Clear(); /* a string with lone surrogates */
        e->kind = SYNTAX_OTHER;
        e->text = import_type_name(im, value);
    }
}

static void import_call(importer *im, PyObject *object, syntax_expr *e)
{
    e->kind = SYNTAX_CALL;
    e->a = import_expr(im, node_field(object, "func"));
    import_items(im, node_field(object, "args"), &e->items);
    PyObject *keywords = node_field(object, "keywords");
    for (Py_ssize_t i = 0; i < list_length(keywords); i++) {
        PyObject *keyword = PyList_GetItem(keywords, i);
        PyObject *name = node_field(keyword, "arg");
        syntax_keyword k = {
            .name = name == Py_None ? NULL : import_string(im, name),
            .value = import_expr(im, node_field(keyword, "value")),
            .span = span_of(im, keyword),
        };
        vec_push(im->a, &e->keywords, k);
    }
}

static void import_compare(importer *im, PyObject *object, syntax_expr *e)
{
    e->kind = SYNTAX_COMPARE;
    e->a = import_expr(im, node_field(object, "left"));
    PyObject *operators = node_field(object, "ops");
    for (Py_ssize_t i = 0; i < list_length(operators); i++)
        vec_push(im->a, &e->texts, row_of(im, PyList_GetItem(operators, i))->text);
    import_items(im, node_field(object, "comparators"), &e->items);
}

static void import_subscript(importer *im, PyObject *object, syntax_expr *e)
{
    e->kind = SYNTAX_SUBSCRIPT;
    e->a = import_expr(im, node_field(object, "value"));
    PyObject *index = node_field(object, "slice");
    if (row_of(im, index)->node == NODE_TUPLE) {
        import_items(im, node_field(index, "elts"), &e->items);
    } else {
        syntax_expr *item = import_expr(im, index);
        vec_push(im->a, &e->items, item);
    }
}

/* Stays an OTHER; its items are key, value, key, value. The key of ** is NULL. */
static void import_dict(importer *im, PyObject *object, syntax_expr *e)
{
    PyObject *keys = node_field(object, "keys");
    PyObject *values = node_field(object, "values");
    e->kind = SYNTAX_OTHER;
    e->text = "Dict";
    for (Py_ssize_t i = 0; i < list_length(keys); i++) {
        syntax_expr *key = import_optional(im, PyList_GetItem(keys, i));
        syntax_expr *value = import_expr(im, PyList_GetItem(values, i));
        vec_push(im->a, &e->items, key);
        vec_push(im->a, &e->items, value);
    }
}

/* One `for` without `if`; others stay OTHER. */
static void import_comprehension(importer *im, PyObject *object, syntax_expr *e)
{
    PyObject *generators = node_field(object, "generators");
    PyObject *first = PyList_GetItem(generators, 0);
    e->kind = SYNTAX_OTHER;
    e->text = import_type_name(im, object);
    if (list_length(generators) != 1 || list_length(node_field(first, "ifs")) != 0)
        return;
    e->kind = SYNTAX_COMPREHENSION;
    e->a = import_expr(im, node_field(object, "elt"));
    e->b = import_expr(im, node_field(first, "target"));
    e->c = import_expr(im, node_field(first, "iter"));
}

syntax_expr *import_expr(importer *im, PyObject *object)
{
    syntax_expr *e = arena_new(im->a, syntax_expr);
    const node_row *row = row_of(im, object);
    e->span = span_of(im, object);
    switch (row->node) {
    case NODE_NAME:
        e->kind = SYNTAX_NAME;
        e->text = node_string(im, object, "id");
        break;
    case NODE_CONSTANT: import_constant(im, node_field(object, "value"), e); break;
    case NODE_ATTRIBUTE:
        e->kind = SYNTAX_ATTRIBUTE;
        e->a = import_expr(im, node_field(object, "value"));
        e->text = node_string(im, object, "attr");
        break;
    case NODE_CALL: import_call(im, object, e); break;
    case NODE_SUBSCRIPT: import_subscript(im, object, e); break;
    case NODE_SLICE:
        e->kind = SYNTAX_SLICE;
        e->a = import_optional(im, node_field(object, "lower"));
        e->b = import_optional(im, node_field(object, "upper"));
        e->c = import_optional(im, node_field(object, "step"));
        break;
    case NODE_TUPLE:
    case NODE_LIST:
        e->kind = row->node == NODE_TUPLE ? SYNTAX_TUPLE : SYNTAX_LIST;
        import_items(im, node_field(object, "elts"), &e->items);
        break;
    case NODE_UNARY:
        e->kind = SYNTAX_UNARY;
        e->text = row_of(im, node_field(object, "op"))->text;
        e->a = import_expr(im, node_field(object, "operand"));
        break;
    case NODE_BINARY:
        e->kind = SYNTAX_BINARY;
        e->text = row_of(im, node_field(object, "op"))->text;
        e->a = import_expr(im, node_field(object, "left"));
        e->b = import_expr(im, node_field(object, "right"));
        break;
    case NODE_COMPARE: import_compare(im, object, e); break;
    case NODE_BOOLOP:
        e->kind = SYNTAX_BOOLOP;
        e->text = row_of(im, node_field(object, "op"))->text;
        import_items(im, node_field(object, "values"), &e->items);
        break;
    case NODE_IFEXP:
        e->kind = SYNTAX_IFEXP;
        e->a = import_expr(im, node_field(object, "body"));
        e->b = import_expr(im, node_field(object, "test"));
        e->c = import_expr(im, node_field(object, "orelse"));
        break;
    case NODE_STARRED:
        e->kind = SYNTAX_STARRED;
        e->a = import_expr(im, node_field(object, "value"));
        break;
    case NODE_DICT: import_dict(im, object, e); break;
    case NODE_COMPREHENSION: import_comprehension(im, object, e); break;
    default:
        e->kind = SYNTAX_OTHER;
        e->text = import_type_name(im, object);
        break;
    }
    return e;
}

/* ---- annotations ---- */

/* Python's tree of the expression in a string, kept; NULL when it is none. */
static PyObject *parse_string(importer *im, PyObject *words)
{
    PyObject *builtins = PyImport_ImportModule("builtins");
    /* In parentheses it may have several lines, and blanks in front. */
    PyObject *source = PyUnicode_FromFormat("(%U\n)", words);
    PyObject *tree = NULL;
    if (builtins != NULL && source != NULL) {
        const int only_ast = 0x400; /* ast.PyCF_ONLY_AST */
        tree = PyObject_CallMethod(builtins, "compile", "OssiO", source, "<annotation>", "eval",
                                   only_ast, Py_True);
    }
    Py_XDECREF(builtins);
    Py_XDECREF(source);
    if (tree != NULL && PyList_Append(im->keep, tree) < 0)
        im->failed = true;
    Py_XDECREF(tree); /* `keep` holds it */
    return im->failed ? NULL : tree;
}

static void refuse_string(importer *im, PyObject *words, pypto_span span)
{
    if (im->failed || !PyErr_ExceptionMatches(PyExc_SyntaxError)) {
        im->failed = true;
        return;
    }
    PyErr_Clear();
    im->refused = true;
    const char *line = source_line(im->keep, im->a, im->file, span.line);
    im->failed = line == NULL && PyErr_Occurred() != NULL;
    diag_add(im->errors, DIAG_BAD_ANNOTATION, span,
             "write it without quotes, e.g. pl.Tensor[[1, 256], pl.FP32]",
             "the annotation \"%s\" is not a Python expression", utf8(words));
    if (line != NULL)
        diag_source(im->errors, line);
}

static bool is_word(const syntax_expr *e, const char *word)
{
    return (e->kind == SYNTAX_NAME || e->kind == SYNTAX_ATTRIBUTE) && strcmp(e->text, word) == 0;
}

/* The annotation with its strings parsed: itself, or types in its brackets, as in pl.Out["T"]. Strings that
 * are arguments of calls, as in pl.dynamic("N"), are none. */
static syntax_expr *unquoted(importer *im, syntax_expr *e)
{
    if (e->kind == SYNTAX_SUBSCRIPT) {
        bool tuple = is_word(e->a, "tuple") || is_word(e->a, "Tuple");
        for (int64_t i = 0; i < e->items.count && (i < 2 || tuple); i++)
            e->items.items[i] = unquoted(im, e->items.items[i]);
    }
    if (e->kind != SYNTAX_STRING || im->failed || im->refused)
        return e;
    PyObject *words = PyUnicode_DecodeUTF8(e->text, (Py_ssize_t)strlen(e->text), "surrogatepass");
    PyObject *tree = words == NULL ? NULL : parse_string(im, words);
    if (words == NULL)
        im->failed = true;
    else if (tree == NULL)
        refuse_string(im, words, e->span);
    Py_XDECREF(words);
    if (tree == NULL)
        return e;
    const pypto_span place = e->span;
    const pypto_span *outer = im->place;
    im->place = &place;
    e = unquoted(im, import_expr(im, node_field(tree, "body")));
    im->place = outer;
    return e;
}

syntax_expr *import_annotation(importer *im, PyObject *object)
{
    return object == Py_None ? NULL : unquoted(im, import_expr(im, object));
}
