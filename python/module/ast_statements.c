/* Statements of Python's syntax tree. Of those that the DSL does not have, the names that they would bind are
 * kept, so that these are not reported as undefined. */
#include "ast_internal.h"

#include <string.h>

static void bind_name(importer *im, PyObject *object, const char *attribute, syntax_stmt *s)
{
    PyObject *name = node_field(object, attribute);
    if (!PyUnicode_Check(name))
        return;
    syntax_expr *e = arena_new(im->a, syntax_expr);
    e->kind = SYNTAX_NAME;
    e->span = span_of(im, object);
    const char *whole = node_string(im, object, attribute);
    e->text = arena_printf(im->a, "%.*s", (int)strcspn(whole, "."), whole); /* import a.b binds a */
    vec_push(im->a, &s->items, e);
}

/* Adds the names that a refused statement would have bound, so that their uses are no errors of their own.
 * Functions, classes and comprehensions inside have names of their own. */
static void import_bound_names(importer *im, PyObject *object, syntax_stmt *s)
{
    for (Py_ssize_t i = 0; i < list_length(object); i++)
        import_bound_names(im, PyList_GetItem(object, i), s);
    PyObject *fields = node_field(object, "_fields");
    if (!PyTuple_Check(fields))
        return;
    const char *kind = import_type_name(im, object);
    if (strcmp(kind, "Name") == 0) {
        if (strcmp(import_type_name(im, node_field(object, "ctx")), "Store") == 0)
            bind_name(im, object, "id", s);
        return;
    }
    if (strcmp(kind, "alias") == 0) {
        bind_name(im, object, node_field(object, "asname") == Py_None ? "name" : "asname", s);
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
    s->text = import_type_name(im, object);
    import_bound_names(im, object, s);
}

static void import_assign(importer *im, PyObject *object, syntax_stmt *s)
{
    PyObject *targets = node_field(object, "targets");
    if (list_length(targets) != 1) {
        import_other(im, object, s);
        return;
    }
    s->kind = SYNTAX_ASSIGN;
    s->target = import_expr(im, PyList_GetItem(targets, 0));
    s->value = import_expr(im, node_field(object, "value"));
}

static void import_with(importer *im, PyObject *object, syntax_stmt *s)
{
    s->kind = SYNTAX_WITH;
    PyObject *items = node_field(object, "items");
    for (Py_ssize_t i = 0; i < list_length(items); i++) {
        PyObject *item = PyList_GetItem(items, i);
        syntax_expr *context = import_expr(im, node_field(item, "context_expr"));
        syntax_expr *target = import_optional(im, node_field(item, "optional_vars"));
        vec_push(im->a, &s->items, context);
        vec_push(im->a, &s->items, target);
    }
    import_block(im, node_field(object, "body"), &s->body);
}

/* test/iter: body else: orelse */
static void import_branches(importer *im, PyObject *object, const char *value, syntax_stmt *s)
{
    s->value = import_expr(im, node_field(object, value));
    import_block(im, node_field(object, "body"), &s->body);
    import_block(im, node_field(object, "orelse"), &s->orelse);
}

static syntax_stmt *import_stmt(importer *im, PyObject *object)
{
    syntax_stmt *s = arena_new(im->a, syntax_stmt);
    s->span = span_of(im, object);
    switch (row_of(im, object)->node) {
    case NODE_ASSIGN: import_assign(im, object, s); break;
    case NODE_ANNOTATED:
        s->kind = SYNTAX_ANNOTATED;
        s->target = import_expr(im, node_field(object, "target"));
        s->annotation = import_annotation(im, node_field(object, "annotation"));
        s->value = import_optional(im, node_field(object, "value"));
        break;
    case NODE_AUGMENTED:
        s->kind = SYNTAX_AUGMENTED;
        s->target = import_expr(im, node_field(object, "target"));
        s->text = row_of(im, node_field(object, "op"))->text;
        s->value = import_expr(im, node_field(object, "value"));
        break;
    case NODE_EXPR:
        s->kind = SYNTAX_EXPR;
        s->value = import_expr(im, node_field(object, "value"));
        break;
    case NODE_FOR:
        s->kind = SYNTAX_FOR;
        s->target = import_expr(im, node_field(object, "target"));
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
        s->value = import_optional(im, node_field(object, "value"));
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
    PyObject *value = node_field(object, "value");
    return row_of(im, value)->node == NODE_CONSTANT && PyUnicode_Check(node_field(value, "value"));
}

void import_block(importer *im, PyObject *list, syntax_block *block)
{
    for (Py_ssize_t i = 0; i < list_length(list); i++) {
        PyObject *object = PyList_GetItem(list, i);
        if (is_comment(im, object))
            continue;
        syntax_stmt *s = import_stmt(im, object);
        vec_push(im->a, block, s);
    }
}
