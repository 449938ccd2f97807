/* pl.func_attr({...}): attributes of a function, at the head of its body. They are checked, and have no effect. */
#include "frontend/calls.h"
#include "frontend/names.h"

#include <string.h>

static bool is_func_attr(lowering *fl, const syntax_stmt *s)
{
    if (s->kind != SYNTAX_EXPR || s->value->kind != SYNTAX_CALL)
        return false;
    const name_value *head = outer_meaning(fl, s->value->a);
    return head != NULL && head->kind == NAME_PATH && strcmp(head->text, "pl.func_attr") == 0;
}

static dsl_value bad_attr(lowering *fl, pypto_span span, const char *message)
{
    return report(fl->fe, DIAG_BAD_ATTRIBUTE, span, "pl.func_attr({\"name\": value})", "%s",
                  message);
}

/* The keys of one dict literal: strings that no earlier pl.func_attr of the function has. */
static dsl_value check_attr_keys(lowering *fl, const syntax_expr *call)
{
    const syntax_exprs *entries = &call->items.items[0]->items; /* key, value, key, value */
    for (int64_t i = 0; i < entries->count; i += 2) {
        const syntax_expr *key = entries->items[i];
        if (key == NULL || key->kind != SYNTAX_STRING)
            return bad_attr(fl, call->span,
                            "pl.func_attr keys must be strings: each key must be a "
                            "string literal");
        if (strcmp(key->text, "auto_scope") == 0 || strcmp(key->text, "external_source") == 0)
            return bad_attr(fl, key->span,
                            arena_printf(fl->a, "'%s' cannot be set with pl.func_attr", key->text));
        for (int64_t n = 0; n < fl->syntax->body.count; n++) {
            const syntax_stmt *s = fl->syntax->body.items[n];
            const syntax_exprs *others = NULL;
            if (is_func_attr(fl, s) && s->value->items.count == 1)
                others = &s->value->items.items[0]->items;
            for (int64_t k = 0; others != NULL && k < others->count; k += 2) {
                const syntax_expr *other = others->items[k];
                if (other == key)
                    break;
                if (other != NULL && other->kind == SYNTAX_STRING &&
                    strcmp(other->text, key->text) == 0)
                    return bad_attr(
                        fl, key->span,
                        arena_printf(fl->a, "duplicate key '%s' in pl.func_attr", key->text));
            }
            if (s->value == call)
                break;
        }
    }
    return (dsl_value){.kind = VALUE_NONE, .span = call->span};
}

dsl_value lower_func_attr(lowering *fl, const syntax_expr *call)
{
    const syntax_block *body = &fl->syntax->body;
    int64_t at = 0;
    while (at < body->count && is_func_attr(fl, body->items[at]) && body->items[at]->value != call)
        at++;
    if (at == body->count || body->items[at]->value != call)
        return bad_attr(fl, call->span, "pl.func_attr must appear before every other statement");
    if (call->items.count != 1 || call->keywords.count != 0)
        return bad_attr(fl, call->span, "pl.func_attr takes exactly one positional dict argument");
    const syntax_expr *dict = call->items.items[0];
    if (dict->kind != SYNTAX_OTHER || strcmp(dict->text, "Dict") != 0)
        return bad_attr(fl, dict->span, "the argument of pl.func_attr must be a dict literal");
    return check_attr_keys(fl, call);
}
