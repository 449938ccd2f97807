/* Arguments that several scopes have: name_hint=, optimizations=, and `as tid`. */
#include "frontend/expressions.h"
#include "frontend/loops.h"
#include "frontend/scopes_internal.h"

#include <ctype.h>
#include <string.h>

/* ---- names ---- */

static bool is_python_keyword(const char *word)
{
    static const char *const all[] = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i], word) == 0)
            return true;
    }
    return false;
}

static bool is_identifier(const char *word)
{
    if (!isalpha((unsigned char)word[0]) && word[0] != '_')
        return false;
    for (const char *c = word; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && *c != '_')
            return false;
    }
    return !is_python_keyword(word);
}

bool scope_name(lowering *fl, const char *word, const syntax_expr *hint, const char **name)
{
    *name = arena_printf(fl->a, "%s_scope", fl->syntax->name);
    if (hint == NULL)
        return true;
    if (hint->kind != SYNTAX_STRING || !is_identifier(hint->text))
        return bad_scope(
            fl, hint->span, "write name_hint=\"gather\"",
            arena_printf(fl->a,
                         "%s: name_hint must be a string that is a valid non-keyword identifier",
                         word));
    *name = hint->text;
    return true;
}

/* ---- optimizations ---- */

/* pl.split(mode) or pl.cross_core_slot(slot_num=N). */
static bool check_optimization(lowering *fl, const syntax_expr *e, bool *split)
{
    const char *path = called_path(fl, e);
    bool is_split = path != NULL && strcmp(path, "pl.split") == 0;
    bool is_slot = path != NULL && strcmp(path, "pl.cross_core_slot") == 0;
    if (!is_split && !is_slot)
        return bad_scope(fl, e->span, "write pl.split(mode) or pl.cross_core_slot(slot_num=n)",
                         "Unsupported entry in optimizations=");
    static const char *const split_keys[] = {"mode", NULL};
    static const char *const slot_keys[] = {"slot_num", NULL};
    const keyword_rules rules = {path, is_split ? split_keys : slot_keys, is_split ? 1 : 0, NULL};
    const syntax_expr *given[1] = {NULL};
    if (!bind_keywords(fl, &rules, e, given))
        return false;
    if (given[0] == NULL)
        return bad_scope(fl, e->span, NULL,
                         arena_printf(fl->a, "%s requires %s=", path, rules.keys[0]));
    const dsl_value v = eval(fl, given[0]);
    int64_t number = 0;
    if (v.kind == VALUE_POISON)
        return false;
    if (is_split && (v.kind != VALUE_ENUM || strcmp(v.text, "SplitMode") != 0))
        return bad_scope(fl, given[0]->span, "write pl.split(pl.SplitMode.UP_DOWN)",
                         "pl.split takes a member of pl.SplitMode");
    if (is_slot && (v.kind != VALUE_SCALAR || !ir_is_const_int(v.expr, &number) || number < 1))
        return bad_scope(fl, given[0]->span, "write pl.cross_core_slot(slot_num=2)",
                         "pl.cross_core_slot takes a positive integer constant");
    if (is_split && *split)
        return bad_scope(fl, e->span, "name one mode", "duplicate pl.split in optimizations=");
    *split = *split || is_split;
    return true;
}

bool check_optimizations(lowering *fl, const char *word, const syntax_expr *list)
{
    bool split = false;
    if (list == NULL)
        return true;
    if (list->kind != SYNTAX_LIST)
        return bad_scope(fl, list->span, "write optimizations=[pl.split(pl.SplitMode.UP_DOWN)]",
                         arena_printf(fl->a, "%s: optimizations= must be a list literal", word));
    for (int64_t i = 0; i < list->items.count; i++) {
        if (!check_optimization(fl, list->items.items[i], &split))
            return false;
    }
    return true;
}

/* ---- as tid ---- */

bool no_capture(lowering *fl, const scope *sc)
{
    return sc->target == NULL ||
           bad_scope(fl, sc->target->span, "leave `as` out: only scopes that are tasks have an id",
                     arena_printf(fl->a,
                                  "`as %s`: cannot capture a TaskId when nested in a scope that "
                                  "is no task",
                                  sc->target->text));
}

void capture_id(lowering *fl, const scope *sc, launch_request *request)
{
    if (sc->target != NULL && request->call != NULL)
        (void)capture_task(fl, request->call, binding_find(fl, sc->target->text), sc->target->span);
}

int64_t enum_value(const char *enumeration, const char *member)
{
    return enum_find(enumeration, member)->value;
}
