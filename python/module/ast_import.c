/* Python's syntax tree of one function -> the syntax tree of the front end (frontend/syntax.h).
 *
 * The tree comes from Python's own parser (pypto/_source.py finds the function in it). This is
 * a mechanical translation: one row of node_table (ast_nodes.c) per class of `_ast` that the DSL can mean,
 * one case per row (ast_expressions.c, ast_statements.c); whatever has no row becomes an OTHER node with the
 * class's name, so that the front end words the error. The only things decided: a string that is an
 * expression statement is a comment, and an annotation that is a string is parsed as the expression in it.
 *
 * References. Attributes of the tree's nodes are looked at as borrowed: the caller keeps the tree
 * alive and nobody else can change it. See core.h for why no reference may be owned here.
 *
 * Columns are those of `ast`: byte offsets in UTF-8. */
#include "ast_internal.h"

#include <string.h>

/* The last of the parameters have the `defaults` (NULL: none). */
static void import_params(importer *im, PyObject *list, PyObject *defaults, syntax_function *f)
{
    Py_ssize_t plain = list_length(list) - (defaults == NULL ? 0 : list_length(defaults));
    for (Py_ssize_t i = 0; i < list_length(list); i++) {
        PyObject *object = PyList_GetItem(list, i);
        syntax_param p = {
            .name = node_string(im, object, "arg"),
            .annotation = import_annotation(im, node_field(object, "annotation")),
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
    const char *name = node_string(im, param, "arg");
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
    PyObject *positional = node_field(args, "posonlyargs");
    PyObject *keyword = node_field(args, "kwonlyargs");
    PyObject *variadic = node_field(args, "vararg");
    PyObject *named = node_field(args, "kwarg");
    if (list_length(positional) > 0)
        refuse_param(im, f, PyList_GetItem(positional, list_length(positional) - 1),
                     "the positional-only marker '/' after '%s'", "leave the '/' out");
    if (variadic != Py_None)
        refuse_param(im, f, variadic, "*%s", "name every parameter");
    for (Py_ssize_t i = 0; i < list_length(keyword); i++)
        refuse_param(im, f, PyList_GetItem(keyword, i), "the keyword-only parameter '%s'",
                     "leave the '*' before it out; any argument may be passed by its name");
    if (named != Py_None)
        refuse_param(im, f, named, "**%s", "name every parameter");
}

/* `async def` has a class of its own in Python's tree. */
static bool is_async(importer *im, PyObject *definition)
{
    return strcmp(import_type_name(im, definition), "AsyncFunctionDef") == 0;
}

syntax_function *ast_import_function(core_state *state, arena *a, PyObject *definition,
                                     const char *file, PyObject *keep, bool with_body,
                                     pypto_status *errors)
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
    f->name = node_string(&im, definition, "name");
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

    PyObject *args = node_field(definition, "args");
    import_params(&im, node_field(args, "posonlyargs"), NULL, f);
    import_params(&im, node_field(args, "args"), node_field(args, "defaults"), f);
    refuse_params(&im, args, f);
    f->returns = import_annotation(&im, node_field(definition, "returns"));
    if (with_body)
        import_block(&im, node_field(definition, "body"), &f->body);
    return im.failed || im.refused ? NULL : f;
}
