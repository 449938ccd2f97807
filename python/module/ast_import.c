/* Python's syntax tree of one function -> the syntax tree of the front end (frontend/syntax.h).
 *
 * The tree comes from Python's own parser (pypto/_source.py finds the function in it). This file is
 * a mechanical translation: one row of node_table per class of `_ast` that the DSL can mean, one
 * case per row; whatever has no row becomes an OTHER node with the class's name, so that the front
 * end words the error. The only things decided here: a string that is an expression statement is a
 * comment, and an annotation that is a string is parsed as the expression in it.
 *
 * References. Attributes of the tree's nodes are looked at as borrowed: the caller keeps the tree
 * alive and nobody else can change it. See core.h for why no reference may be owned here.
 *
 * Columns are those of `ast`: byte offsets in UTF-8. */
#include "core.h"

#include <string.h>

/* Rows of node_table, by what is done with a node. */
typedef enum node {
    NODE_OTHER,
    /* expressions */
    NODE_NAME,
    NODE_CONSTANT,
    NODE_ATTRIBUTE,
    NODE_CALL,
    NODE_SUBSCRIPT,
    NODE_SLICE,
    NODE_TUPLE,
    NODE_LIST,
    NODE_UNARY,
    NODE_BINARY,
    NODE_COMPARE,
    NODE_BOOLOP,
    NODE_IFEXP,
    NODE_STARRED,
    NODE_DICT,
    NODE_COMPREHENSION,
    /* statements */
    NODE_ASSIGN,
    NODE_ANNOTATED,
    NODE_AUGMENTED,
    NODE_EXPR,
    NODE_FOR,
    NODE_WHILE,
    NODE_IF,
    NODE_WITH,
    NODE_RETURN,
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_PASS,
    /* operators: `text` says which */
    NODE_OPERATOR
} node;

typedef struct node_row {
    const char *class_name; /* in `_ast` */
    node node;
    const char *text;
} node_row;

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

/* One translation. */
typedef struct importer {
    const core_state *state;
    arena *a;
    const char *file; /* on the arena */
    PyObject *keep;   /* borrowed list */
    pypto_status *errors;
    const pypto_span *place; /* inside a string annotation: the place of the string; else NULL */
    bool failed;             /* a Python exception is set; the tree is of no use */
    bool refused;            /* a diagnostic was added */
} importer;

static syntax_expr *import_expr(importer *im, PyObject *object);
static void import_block(importer *im, PyObject *list, syntax_block *block);

/* Fills state->node_kinds, once. Only here: a compile that the cache answers needs no syntax
 * tree. */
static bool know_nodes(core_state *state)
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

static const node_row *row_of(const importer *im, PyObject *object)
{
    PyObject *number = PyDict_GetItemWithError(im->state->node_kinds, (PyObject *)Py_TYPE(object));
    return number == NULL ? &other_row : &node_table[PyLong_AsSize_t(number)];
}

/* An attribute, None when there is no such. */
static PyObject *field(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    if (value == NULL) {
        PyErr_Clear();
        return Py_None;
    }
    Py_DECREF(value); /* the node holds it */
    return value;
}

static Py_ssize_t length(PyObject *list)
{
    return PyList_Check(list) ? PyList_Size(list) : 0;
}

static int32_t int_field(PyObject *object, const char *name)
{
    long value = PyLong_AsLong(field(object, name));
    if (value == -1 && PyErr_Occurred())
        PyErr_Clear();
    return value < 0 || value > INT32_MAX ? 0 : (int32_t)value;
}

static pypto_span span_of(const importer *im, PyObject *object)
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

/* ---- strings ---- */

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

static const char *string(importer *im, PyObject *object)
{
    const char *bytes = utf8(object);
    if (bytes == NULL) {
        im->failed = true;
        return "";
    }
    return arena_strdup(im->a, bytes);
}

static const char *string_field(importer *im, PyObject *object, const char *name)
{
    return string(im, field(object, name));
}

static const char *type_name(importer *im, PyObject *object)
{
    PyObject *name = PyType_GetName(Py_TYPE(object));
    bool kept = name != NULL && PyList_Append(im->keep, name) == 0;
    Py_XDECREF(name);
    if (!kept) {
        im->failed = true;
        return "?";
    }
    return string(im, name);
}

/* ---- expressions ---- */

static syntax_expr *import_optional(importer *im, PyObject *object)
{
    return object == Py_None ? NULL : import_expr(im, object);
}

static void import_items(importer *im, PyObject *list, syntax_exprs *items)
{
    for (Py_ssize_t i = 0; i < length(list); i++) {
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
        e->text = string(im, value);
    } else {
        PyErr_Clear(); /* a string with lone surrogates */
        e->kind = SYNTAX_OTHER;
        e->text = type_name(im, value);
    }
}

static void import_call(importer *im, PyObject *object, syntax_expr *e)
{
    e->kind = SYNTAX_CALL;
    e->a = import_expr(im, field(object, "func"));
    import_items(im, field(object, "args"), &e->items);
    PyObject *keywords = field(object, "keywords");
    for (Py_ssize_t i = 0; i < length(keywords); i++) {
        PyObject *keyword = PyList_GetItem(keywords, i);
        PyObject *name = field(keyword, "arg");
        syntax_keyword k = {
            .name = name == Py_None ? NULL : string(im, name),
            .value = import_expr(im, field(keyword, "value")),
            .span = span_of(im, keyword),
        };
        vec_push(im->a, &e->keywords, k);
    }
}

static void import_compare(importer *im, PyObject *object, syntax_expr *e)
{
    e->kind = SYNTAX_COMPARE;
    e->a = import_expr(im, field(object, "left"));
    PyObject *operators = field(object, "ops");
    for (Py_ssize_t i = 0; i < length(operators); i++)
        vec_push(im->a, &e->texts, row_of(im, PyList_GetItem(operators, i))->text);
    import_items(im, field(object, "comparators"), &e->items);
}

static void import_subscript(importer *im, PyObject *object, syntax_expr *e)
{
    e->kind = SYNTAX_SUBSCRIPT;
    e->a = import_expr(im, field(object, "value"));
    PyObject *index = field(object, "slice");
    if (row_of(im, index)->node == NODE_TUPLE) {
        import_items(im, field(index, "elts"), &e->items);
    } else {
        syntax_expr *item = import_expr(im, index);
        vec_push(im->a, &e->items, item);
    }
}

/* Stays an OTHER; its items are key, value, key, value. The key of ** is NULL. */
static void import_dict(importer *im, PyObject *object, syntax_expr *e)
{
    PyObject *keys = field(object, "keys");
    PyObject *values = field(object, "values");
    e->kind = SYNTAX_OTHER;
    e->text = "Dict";
    for (Py_ssize_t i = 0; i < length(keys); i++) {
        syntax_expr *key = import_optional(im, PyList_GetItem(keys, i));
        syntax_expr *value = import_expr(im, PyList_GetItem(values, i));
        vec_push(im->a, &e->items, key);
        vec_push(im->a, &e->items, value);
    }
}

/* One `for` without `if`; others stay OTHER. */
static void import_comprehension(importer *im, PyObject *object, syntax_expr *e)
{
    PyObject *generators = field(object, "generators");
    PyObject *first = PyList_GetItem(generators, 0);
    e->kind = SYNTAX_OTHER;
    e->text = type_name(im, object);
    if (length(generators) != 1 || length(field(first, "ifs")) != 0)
        return;
    e->kind = SYNTAX_COMPREHENSION;
    e->a = import_expr(im, field(object, "elt"));
    e->b = import_expr(im, field(first, "target"));
    e->c = import_expr(im, field(first, "iter"));
}

static syntax_expr *import_expr(importer *im, PyObject *object)
{
    syntax_expr *e = arena_new(im->a, syntax_expr);
    const node_row *row = row_of(im, object);
    e->span = span_of(im, object);
    switch (row->node) {
    case NODE_NAME:
        e->kind = SYNTAX_NAME;
        e->text = string_field(im, object, "id");
        break;
    case NODE_CONSTANT: import_constant(im, field(object, "value"), e); break;
    case NODE_ATTRIBUTE:
        e->kind = SYNTAX_ATTRIBUTE;
        e->a = import_expr(im, field(object, "value"));
        e->text = string_field(im, object, "attr");
        break;
    case NODE_CALL: import_call(im, object, e); break;
    case NODE_SUBSCRIPT: import_subscript(im, object, e); break;
    case NODE_SLICE:
        e->kind = SYNTAX_SLICE;
        e->a = import_optional(im, field(object, "lower"));
        e->b = import_optional(im, field(object, "upper"));
        e->c = import_optional(im, field(object, "step"));
        break;
    case NODE_TUPLE:
    case NODE_LIST:
        e->kind = row->node == NODE_TUPLE ? SYNTAX_TUPLE : SYNTAX_LIST;
        import_items(im, field(object, "elts"), &e->items);
        break;
    case NODE_UNARY:
        e->kind = SYNTAX_UNARY;
        e->text = row_of(im, field(object, "op"))->text;
        e->a = import_expr(im, field(object, "operand"));
        break;
    case NODE_BINARY:
        e->kind = SYNTAX_BINARY;
        e->text = row_of(im, field(object, "op"))->text;
        e->a = import_expr(im, field(object, "left"));
        e->b = import_expr(im, field(object, "right"));
        break;
    case NODE_COMPARE: import_compare(im, object, e); break;
    case NODE_BOOLOP:
        e->kind = SYNTAX_BOOLOP;
        e->text = row_of(im, field(object, "op"))->text;
        import_items(im, field(object, "values"), &e->items);
        break;
    case NODE_IFEXP:
        e->kind = SYNTAX_IFEXP;
        e->a = import_expr(im, field(object, "body"));
        e->b = import_expr(im, field(object, "test"));
        e->c = import_expr(im, field(object, "orelse"));
        break;
    case NODE_STARRED:
        e->kind = SYNTAX_STARRED;
        e->a = import_expr(im, field(object, "value"));
        break;
    case NODE_DICT: import_dict(im, object, e); break;
    case NODE_COMPREHENSION: import_comprehension(im, object, e); break;
    default:
        e->kind = SYNTAX_OTHER;
        e->text = type_name(im, object);
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
    e = unquoted(im, import_expr(im, field(tree, "body")));
    im->place = outer;
    return e;
}

static syntax_expr *import_annotation(importer *im, PyObject *object)
{
    return object == Py_None ? NULL : unquoted(im, import_expr(im, object));
}

/* ---- statements ---- */

static void bind_name(importer *im, PyObject *object, const char *attribute, syntax_stmt *s)
{
    PyObject *name = field(object, attribute);
    if (!PyUnicode_Check(name))
        return;
    syntax_expr *e = arena_new(im->a, syntax_expr);
    e->kind = SYNTAX_NAME;
    e->span = span_of(im, object);
    const char *whole = string_field(im, object, attribute);
    e->text = arena_printf(im->a, "%.*s", (int)strcspn(whole, "."), whole); /* import a.b binds a */
    vec_push(im->a, &s->items, e);
}

/* Adds the names that a refused statement would have bound, so that their uses are no errors of their own.
 * Functions, classes and comprehensions inside have names of their own. */
static void import_bound_names(importer *im, PyObject *object, syntax_stmt *s)
{
    for (Py_ssize_t i = 0; i < length(object); i++)
        import_bound_names(im, PyList_GetItem(object, i), s);
    PyObject *fields = field(object, "_fields");
    if (!PyTuple_Check(fields))
        return;
    const char *kind = type_name(im, object);
    if (strcmp(kind, "Name") == 0) {
        if (strcmp(type_name(im, field(object, "ctx")), "Store") == 0)
            bind_name(im, object, "id", s);
        return;
    }
    if (strcmp(kind, "alias") == 0) {
        bind_name(im, object, field(object, "asname") == Py_None ? "name" : "asname", s);
        return;
    }
    static const char *const own[] = {"Lambda", "ListComp", "SetComp", "DictComp", "GeneratorExp"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strcmp(kind, own[i]) == 0)
            return;
    }
    bind_name(im, object, "name", s); /* of a def, a class, an except, a pattern */
    bind_name(im, object, "rest", s); /* of a pattern of a mapping */
    if (strstr(kind, "Def") != NULL)
        return;
    for (Py_ssize_t i = 0; i < PyTuple_Size(fields); i++) {
        PyObject *part = PyObject_GetAttr(object, PyTuple_GetItem(fields, i));
        if (part == NULL) {
            PyErr_Clear();
            continue;
        }
        Py_DECREF(part); /* the node holds it */
        import_bound_names(im, part, s);
    }
}

static void import_other(importer *im, PyObject *object, syntax_stmt *s)
{
    s->kind = SYNTAX_STMT_OTHER;
    s->text = type_name(im, object);
    import_bound_names(im, object, s);
}

static void import_assign(importer *im, PyObject *object, syntax_stmt *s)
{
    PyObject *targets = field(object, "targets");
    if (length(targets) != 1) {
        import_other(im, object, s);
        return;
    }
    s->kind = SYNTAX_ASSIGN;
    s->target = import_expr(im, PyList_GetItem(targets, 0));
    s->value = import_expr(im, field(object, "value"));
}

static void import_with(importer *im, PyObject *object, syntax_stmt *s)
{
    s->kind = SYNTAX_WITH;
    PyObject *items = field(object, "items");
    for (Py_ssize_t i = 0; i < length(items); i++) {
        PyObject *item = PyList_GetItem(items, i);
        syntax_expr *context = import_expr(im, field(item, "context_expr"));
        syntax_expr *target = import_optional(im, field(item, "optional_vars"));
        vec_push(im->a, &s->items, context);
        vec_push(im->a, &s->items, target);
    }
    import_block(im, field(object, "body"), &s->body);
}

/* test/iter: body else: orelse */
static void import_branches(importer *im, PyObject *object, const char *value, syntax_stmt *s)
{
    s->value = import_expr(im, field(object, value));
    import_block(im, field(object, "body"), &s->body);
    import_block(im, field(object, "orelse"), &s->orelse);
}

static syntax_stmt *import_stmt(importer *im, PyObject *object)
{
    syntax_stmt *s = arena_new(im->a, syntax_stmt);
    s->span = span_of(im, object);
    switch (row_of(im, object)->node) {
    case NODE_ASSIGN: import_assign(im, object, s); break;
    case NODE_ANNOTATED:
        s->kind = SYNTAX_ANNOTATED;
        s->target = import_expr(im, field(object, "target"));
        s->annotation = import_annotation(im, field(object, "annotation"));
        s->value = import_optional(im, field(object, "value"));
        break;
    case NODE_AUGMENTED:
        s->kind = SYNTAX_AUGMENTED;
        s->target = import_expr(im, field(object, "target"));
        s->text = row_of(im, field(object, "op"))->text;
        s->value = import_expr(im, field(object, "value"));
        break;
    case NODE_EXPR:
        s->kind = SYNTAX_EXPR;
        s->value = import_expr(im, field(object, "value"));
        break;
    case NODE_FOR:
        s->kind = SYNTAX_FOR;
        s->target = import_expr(im, field(object, "target"));
        import_branches(im, object, "iter", s);
        break;
    case NODE_WHILE:
        s->kind = SYNTAX_WHILE;
        import_branches(im, object, "test", s);
        break;
    case NODE_IF:
        s->kind = SYNTAX_IF;
        import_branches(im, object, "test", s);
        break;
    case NODE_WITH: import_with(im, object, s); break;
    case NODE_RETURN:
        s->kind = SYNTAX_RETURN;
        s->value = import_optional(im, field(object, "value"));
        break;
    case NODE_BREAK: s->kind = SYNTAX_BREAK; break;
    case NODE_CONTINUE: s->kind = SYNTAX_CONTINUE; break;
    case NODE_PASS: s->kind = SYNTAX_PASS; break;
    default: import_other(im, object, s); break;
    }
    return s;
}

/* A doc-string, or a string that stands where a statement could. */
static bool is_comment(const importer *im, PyObject *object)
{
    if (row_of(im, object)->node != NODE_EXPR)
        return false;
    PyObject *value = field(object, "value");
    return row_of(im, value)->node == NODE_CONSTANT && PyUnicode_Check(field(value, "value"));
}

static void import_block(importer *im, PyObject *list, syntax_block *block)
{
    for (Py_ssize_t i = 0; i < length(list); i++) {
        PyObject *object = PyList_GetItem(list, i);
        if (is_comment(im, object))
            continue;
        syntax_stmt *s = import_stmt(im, object);
        vec_push(im->a, block, s);
    }
}

/* ---- the function ---- */

/* The last of the parameters have the `defaults` (NULL: none). */
static void import_params(importer *im, PyObject *list, PyObject *defaults, syntax_function *f)
{
    Py_ssize_t plain = length(list) - (defaults == NULL ? 0 : length(defaults));
    for (Py_ssize_t i = 0; i < length(list); i++) {
        PyObject *object = PyList_GetItem(list, i);
        syntax_param p = {
            .name = string_field(im, object, "arg"),
            .annotation = import_annotation(im, field(object, "annotation")),
            .span = span_of(im, object),
        };
        if (i >= plain && defaults != NULL)
            p.fallback = import_expr(im, PyList_GetItem(defaults, i - plain));
        vec_push(im->a, &f->params, p);
    }
}

/* `format` has one %s, for the parameter's name. */
static void refuse_param(importer *im, syntax_function *f, PyObject *param, const char *format,
                         const char *hint)
{
    const char *name = string_field(im, param, "arg");
    const char *percent = strchr(format, '%');
    syntax_refusal refusal = {
        .what = arena_printf(im->a, "%.*s%s%s", (int)(percent - format), format, name, percent + 2),
        .hint = hint,
        .span = span_of(im, param),
        .name = name,
    };
    vec_push(im->a, &f->refusals, refusal);
}

/* Values are passed at each call, in the order of the parameters or by their names. */
static void refuse_params(importer *im, PyObject *args, syntax_function *f)
{
    PyObject *positional = field(args, "posonlyargs");
    PyObject *keyword = field(args, "kwonlyargs");
    PyObject *variadic = field(args, "vararg");
    PyObject *named = field(args, "kwarg");
    if (length(positional) > 0)
        refuse_param(im, f, PyList_GetItem(positional, length(positional) - 1),
                     "the positional-only marker '/' after '%s'", "leave the '/' out");
    if (variadic != Py_None)
        refuse_param(im, f, variadic, "*%s", "name every parameter");
    for (Py_ssize_t i = 0; i < length(keyword); i++)
        refuse_param(im, f, PyList_GetItem(keyword, i), "the keyword-only parameter '%s'",
                     "leave the '*' before it out; any argument may be passed by its name");
    if (named != Py_None)
        refuse_param(im, f, named, "**%s", "name every parameter");
}

/* `async def` has a class of its own in Python's tree. */
static bool is_async(importer *im, PyObject *definition)
{
    return strcmp(type_name(im, definition), "AsyncFunctionDef") == 0;
}

syntax_function *ast_import_function(core_state *state, arena *a, PyObject *definition,
                                     const char *file, PyObject *keep, pypto_status *errors)
{
    if (!know_nodes(state))
        return NULL;
    importer im = {
        .state = state,
        .a = a,
        .file = arena_strdup(a, file),
        .keep = keep,
        .errors = errors,
    };
    syntax_function *f = arena_new(a, syntax_function);
    f->name = string_field(&im, definition, "name");
    f->span = span_of(&im, definition);
    f->span.end_line = f->span.line; /* of `def name`, not of the whole body */
    bool async = is_async(&im, definition);
    const char *keyword = async ? "async def " : "def ";
    f->span.end_column = f->span.column + (int32_t)(strlen(keyword) + strlen(f->name));
    if (async) {
        syntax_refusal refusal = {.what = "'async'",
                                  .hint = "write def: a call returns when it is done",
                                  .span = f->span};
        vec_push(a, &f->refusals, refusal);
    }

    PyObject *args = field(definition, "args");
    import_params(&im, field(args, "posonlyargs"), NULL, f);
    import_params(&im, field(args, "args"), field(args, "defaults"), f);
    refuse_params(&im, args, f);
    f->returns = import_annotation(&im, field(definition, "returns"));
    import_block(&im, field(definition, "body"), &f->body);
    return im.failed || im.refused ? NULL : f;
}
