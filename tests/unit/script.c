/* A parsed test script as the front end's embedder: what its names mean, and its functions' sources.
 * See script.h. */
#include "script_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct script {
    arena *a;
    const char *source;
    map names; /* name_value */
    VEC(frontend_source) functions;
};

/* ---- constants ---- */

/* Modules of pypto under the short names that the front end knows. */
static const char *canonical(arena *a, const char *path)
{
    static const char *const names[][2] = {
        {"pypto.language.distributed", "pld"},
        {"pypto.language", "pl"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i][0]);
        if (strncmp(path, names[i][0], length) == 0)
            return arena_printf(a, "%s%s", names[i][1], path + length);
    }
    return path;
}

static name_value evaluate(script *s, const syntax_expr *e);

static name_value evaluate_arithmetic(script *s, const syntax_expr *e)
{
    name_value x = evaluate(s, e->a);
    name_value y = evaluate(s, e->b);
    uint64_t a = (uint64_t)x.integer;
    uint64_t b = (uint64_t)y.integer;
    uint64_t result = e->text[0] == '+' ? a + b : e->text[0] == '-' ? a - b : a * b;
    return (name_value){.kind = NAME_INT, .integer = (int64_t)result};
}

/* The right side of a module-level assignment: as much as tests write there. */
static name_value evaluate(script *s, const syntax_expr *e)
{
    switch (e->kind) {
    case SYNTAX_INT: return (name_value){.kind = NAME_INT, .integer = e->integer};
    case SYNTAX_FLOAT: return (name_value){.kind = NAME_FLOAT, .real = e->real};
    case SYNTAX_BOOL: return (name_value){.kind = NAME_BOOL, .integer = e->integer};
    case SYNTAX_STRING: return (name_value){.kind = NAME_STRING, .text = e->text};
    case SYNTAX_NONE: return (name_value){.kind = NAME_NONE};
    case SYNTAX_BINARY: return evaluate_arithmetic(s, e);
    case SYNTAX_NAME: {
        name_value *known = map_get(&s->names, e->text);
        return known == NULL ? (name_value){.kind = NAME_OTHER, .text = "?"} : *known;
    }
    case SYNTAX_ATTRIBUTE: {
        name_value base = evaluate(s, e->a);
        if (base.text == NULL)
            return (name_value){.kind = NAME_OTHER, .text = "object"};
        const char *path = arena_printf(s->a, "%s.%s", base.text, e->text);
        return (name_value){.kind = base.kind, .text = path};
    }
    case SYNTAX_CALL: {
        const char *symbol = e->items.count == 1 ? e->items.items[0]->text : NULL;
        return symbol == NULL ? (name_value){.kind = NAME_OTHER, .text = "object"}
                              : (name_value){.kind = NAME_DYNAMIC, .text = symbol};
    }
    case SYNTAX_LIST:
    case SYNTAX_TUPLE: {
        name_value list = {.kind = NAME_LIST, .count = (int32_t)e->items.count};
        list.items = arena_array(s->a, name_value, e->items.count);
        for (int64_t i = 0; i < e->items.count; i++)
            list.items[i] = evaluate(s, e->items.items[i]);
        return list;
    }
    default: return (name_value){.kind = NAME_OTHER, .text = "object"};
    }
}

static void define(script *s, const char *name, name_value meaning)
{
    name_value *kept = arena_new(s->a, name_value);
    *kept = meaning;
    map_set(&s->names, name, kept);
}

/* ---- functions ---- */

/* @pl.jit, @pl.jit.incore, @pl.jit.host; false for a plain function. */
static bool plane_of(script *s, const script_def *def, pld_plane *plane)
{
    for (int64_t i = 0; i < def->decorators.count; i++) {
        name_value v = evaluate(s, def->decorators.items[i]);
        const char *path = v.text == NULL ? "" : v.text;
        *plane = strcmp(path, "pl.jit.host") == 0     ? PLD_PLANE_HOST
                 : strcmp(path, "pl.jit.incore") == 0 ? PLD_PLANE_CORE
                                                      : PLD_PLANE_CHIP;
        if (strncmp(path, "pl.jit", 6) == 0)
            return true;
    }
    return false;
}

static void define_function(script *s, const script_def *def)
{
    pld_plane plane = PLD_PLANE_CHIP;
    const char *name = def->syntax->name;
    if (!plane_of(s, def, &plane)) {
        define(s, name, (name_value){.kind = NAME_OTHER, .text = "function"});
        return;
    }
    frontend_source source = {.syntax = def->syntax, .plane = plane};
    define(s, name,
           (name_value){.kind = NAME_FUNCTION,
                        .function = (int32_t)s->functions.count,
                        .text = arena_printf(s->a, "%s@%d", name, def->syntax->span.line)});
    vec_push(s->a, &s->functions, source);
}

void script_give_up(const script_reader *reader, const char *problem)
{
    if (reader->unreadable != NULL)
        longjmp(*reader->unreadable, 1);
    fprintf(stderr, "%s\n", problem);
    exit(1);
}

static script *read_script(arena *a, const script_reader *reader, const char *file,
                           const char *source)
{
    script *s = arena_new(a, script);
    s->a = a;
    s->source = source;
    s->names = map_make(a);
    script_statements statements = {0};
    script_imports imports = {0};
    static const char *const builtins[] = {"range", "len", "min", "max", "abs", "print"};
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++)
        define(s, builtins[i],
               (name_value){.kind = NAME_OTHER, .text = "builtin_function_or_method"});
    define(s, "tuple", (name_value){.kind = NAME_OTHER, .text = "type"});
    parse_module(a, reader, file, source, &statements, &imports);
    for (int64_t i = 0; i < imports.count; i++)
        define(s, imports.items[i].name,
               (name_value){.kind = NAME_PATH, .text = canonical(a, imports.items[i].path)});
    for (int64_t i = 0; i < statements.count; i++) {
        const script_statement *item = &statements.items[i];
        if (item->def != NULL)
            define_function(s, item->def);
        else if (item->stmt->kind == SYNTAX_ASSIGN && item->stmt->target->kind == SYNTAX_NAME)
            define(s, item->stmt->target->text, evaluate(s, item->stmt->value));
    }
    return s;
}

script *script_parse(arena *a, const char *file, const char *source)
{
    return read_script(a, &(script_reader){NULL}, file, source);
}

script *script_try(arena *a, const char *file, const char *source)
{
    jmp_buf unreadable;
    if (setjmp(unreadable) != 0)
        return NULL;
    return read_script(a, &(script_reader){&unreadable}, file, source);
}

int32_t script_function_count(const script *s)
{
    return (int32_t)s->functions.count;
}

int32_t script_function(const script *s, const char *name)
{
    const name_value *v = map_get(&s->names, name);
    if (v != NULL && v->kind == NAME_FUNCTION)
        return v->function;
    fprintf(stderr, "the script has no function '%s'\n", name);
    exit(1);
}

/* ---- the embedder ---- */

static name_value resolve(void *context, arena *a, int32_t function, const char *name)
{
    (void)a;
    (void)function;
    script *s = context;
    const name_value *v = map_get(&s->names, name);
    return v == NULL ? (name_value){.kind = NAME_UNDEFINED} : *v;
}

static const frontend_source *source_of(void *context, arena *a, int32_t function,
                                        pypto_status *errors)
{
    (void)a;
    (void)errors;
    script *s = context;
    return &s->functions.items[function];
}

static const char *line_text(void *context, arena *a, const char *file, int32_t line)
{
    (void)file;
    const script *s = context;
    const char *at = s->source;
    for (int32_t i = 1; i < line && at != NULL; i++) {
        at = strchr(at, '\n');
        at = at == NULL ? NULL : at + 1;
    }
    return at == NULL ? NULL : arena_strndup(a, at, (int64_t)strcspn(at, "\n"));
}

frontend_embedder script_embedder(script *s)
{
    return (frontend_embedder){
        .context = s, .resolve = resolve, .source = source_of, .line_text = line_text};
}
