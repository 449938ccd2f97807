/* One translation of a syntax tree, for the files that share the work (ast_import.c). */
#ifndef MODULE_AST_INTERNAL_H
#define MODULE_AST_INTERNAL_H

#include "core.h"

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

/* ---- ast_nodes.c ---- */

/* Fills state->node_kinds, once. Not before a tree is read: a compile that the cache answers needs none. */
bool know_nodes(core_state *state);
/* The row of the node's class. */
const node_row *row_of(const importer *im, PyObject *object);
/* An attribute, None when there is no such. */
PyObject *node_field(PyObject *object, const char *name);
/* 0 for what is no list. */
Py_ssize_t list_length(PyObject *list);
pypto_span span_of(const importer *im, PyObject *object);
/* Text of a str on the arena. */
const char *import_string(importer *im, PyObject *object);
const char *node_string(importer *im, PyObject *object, const char *name);
/* The name of the object's type. */
const char *import_type_name(importer *im, PyObject *object);

/* ---- ast_expressions.c ---- */

/* NULL for None. */
syntax_expr *import_optional(importer *im, PyObject *object);
syntax_expr *import_expr(importer *im, PyObject *object);
/* The same, or what is written in a string. */
syntax_expr *import_annotation(importer *im, PyObject *object);

/* ---- ast_statements.c ---- */

void import_block(importer *im, PyObject *list, syntax_block *block);

#endif
