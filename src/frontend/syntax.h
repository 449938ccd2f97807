/* The syntax tree: Python's `ast`, reduced to what the DSL can mean, as plain C.
 *
 * Filled by python/module (from Python's own parser) or by a test; everything behind it knows no
 * Python. Constructs that the DSL does not have arrive as SYNTAX_OTHER nodes that carry the ast class's
 * name, so that the error about them is made in one place. All nodes live on one arena, strings
 * included; spans name the file as the user knows it. */
#ifndef FRONTEND_SYNTAX_H
#define FRONTEND_SYNTAX_H

#include "base/arena.h"
#include "base/vec.h"

#include <pypto/types.h>

typedef struct syntax_expr syntax_expr;
typedef struct syntax_stmt syntax_stmt;
typedef VEC(syntax_expr *) syntax_exprs;
typedef VEC(syntax_stmt *) syntax_block;

typedef enum syntax_expr_kind {
    SYNTAX_NAME, /* text */
    SYNTAX_INT, /* integer: as bits of a uint64_t if is_unsigned; `overflow` when 64 bits do not hold it */
    SYNTAX_FLOAT, /* real */
    SYNTAX_BOOL,  /* integer */
    SYNTAX_NONE,
    SYNTAX_STRING,        /* text */
    SYNTAX_ATTRIBUTE,     /* a . text */
    SYNTAX_CALL,          /* a ( items, keywords ) */
    SYNTAX_SUBSCRIPT,     /* a [ items ]: a tuple index is spread out */
    SYNTAX_SLICE,         /* a : b : c, each may be NULL; only inside SUBSCRIPT */
    SYNTAX_TUPLE,         /* items */
    SYNTAX_LIST,          /* items */
    SYNTAX_UNARY,         /* text "-" "+" "not" "~", a */
    SYNTAX_BINARY,        /* text "+" "//" ..., a, b */
    SYNTAX_COMPARE,       /* a then texts[i] items[i]: chained comparisons have several */
    SYNTAX_BOOLOP,        /* text "and" "or", items */
    SYNTAX_IFEXP,         /* a if b else c */
    SYNTAX_STARRED,       /* * a */
    SYNTAX_COMPREHENSION, /* [a for b in c]; any other kind of comprehension is OTHER */
    SYNTAX_OTHER          /* text: the ast class's name; "Dict" has items: key, value, key, value */
} syntax_expr_kind;

typedef struct syntax_keyword {
    const char *name; /* NULL: ** */
    syntax_expr *value;
    pypto_span span;
} syntax_keyword;

struct syntax_expr {
    syntax_expr_kind kind;
    pypto_span span;
    const char *text;
    int64_t integer;
    double real;
    bool overflow;
    bool is_unsigned; /* from 2^63 on */
    syntax_expr *a;
    syntax_expr *b;
    syntax_expr *c;
    syntax_exprs items;
    VEC(const char *) texts;
    VEC(syntax_keyword) keywords;
};

typedef enum syntax_stmt_kind {
    SYNTAX_ASSIGN,    /* target = value; more than one target arrives as OTHER "Assign" */
    SYNTAX_ANNOTATED, /* target: annotation = value (value may be NULL) */
    SYNTAX_AUGMENTED, /* target text= value; text is the binary operator */
    SYNTAX_EXPR,      /* value */
    SYNTAX_FOR,       /* for target in value: body else: orelse */
    SYNTAX_WHILE,     /* while value: body else: orelse */
    SYNTAX_IF,        /* if value: body else: orelse */
    SYNTAX_WITH,   /* with items: body; (context, as-target) pairs in items, target may be NULL */
    SYNTAX_RETURN, /* value may be NULL */
    SYNTAX_BREAK,
    SYNTAX_CONTINUE,
    SYNTAX_PASS,
    SYNTAX_STMT_OTHER /* text: the ast class's name; items: the names it would bind */
} syntax_stmt_kind;

struct syntax_stmt {
    syntax_stmt_kind kind;
    pypto_span span;
    const char *text;
    syntax_expr *target;
    syntax_expr *annotation;
    syntax_expr *value;
    syntax_exprs items;
    syntax_block body;
    syntax_block orelse;
};

typedef struct syntax_param {
    const char *name;
    syntax_expr *annotation; /* NULL: none. A string annotation has been parsed already */
    syntax_expr *fallback;   /* its default value; NULL: none */
    pypto_span span;
} syntax_param;

/* A part of a signature that the DSL does not have, for the error about it. */
typedef struct syntax_refusal {
    const char *what; /* "keyword-only parameter 'x'" */
    const char *hint;
    pypto_span span;
    const char *name; /* of the parameter, which the body may mention; NULL: it is none */
} syntax_refusal;

typedef struct syntax_function {
    const char *name;
    pypto_span span; /* of the `def` line */
    VEC(syntax_param) params;
    VEC(syntax_refusal) refusals;
    bool class_form;     /* written with pl.function */
    bool strict_ssa;     /* asks for one definition per name */
    const char *program; /* the class that it is a method of; NULL for none */
    syntax_expr *returns;
    syntax_block body; /* without the doc-string */
} syntax_function;

typedef bool (*syntax_test)(void *context, const syntax_expr *e);

/* Whether the test is true of an expression (which may be NULL) or of one inside it; outer ones are asked
 * first, and none after the first that it is true of. */
bool syntax_any(const syntax_expr *e, syntax_test test, void *context);

/* A tuple or a list, as it is written. */
static inline bool syntax_is_sequence(const syntax_expr *e)
{
    return e->kind == SYNTAX_TUPLE || e->kind == SYNTAX_LIST;
}

#endif
