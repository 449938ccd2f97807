/* Between the two halves of script.h: the parser (script_parse.c) and the module (script.c). */
#ifndef TESTS_SCRIPT_INTERNAL_H
#define TESTS_SCRIPT_INTERNAL_H

#include "base/map.h"
#include "script.h"

#include <setjmp.h>

/* A decorated function, or a plain one, which is of no plane. */
typedef struct script_def {
    syntax_function *syntax;
    syntax_exprs decorators;
} script_def;

typedef struct script_statement {
    script_def *def;   /* NULL: an assignment */
    syntax_stmt *stmt; /* name = value */
} script_statement;

typedef VEC(script_statement) script_statements;

/* Import lines: "import a.b as c" is {"c", "a.b"}; "from a import b" is {"b", "a.b"}. */
typedef struct script_import {
    const char *name;
    const char *path;
} script_import;

typedef VEC(script_import) script_imports;

/* Where reading ends when the text is none that the parser knows. */
typedef struct script_reader {
    jmp_buf *unreadable; /* NULL: the test program ends */
} script_reader;

void script_give_up(const script_reader *reader, const char *problem) __attribute__((noreturn));

void parse_module(arena *a, const script_reader *reader, const char *file, const char *source,
                  script_statements *statements, script_imports *imports);

#endif
