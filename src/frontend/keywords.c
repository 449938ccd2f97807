/* Arguments of constructs that are no operations: which are given, by the names that they have. What they
 * mean is the business of whoever asks. */
#include "frontend/lower.h"
#include "frontend/scopes.h"

#include <string.h>

bool bad_scope(lowering *fl, pypto_span span, const char *hint, const char *message)
{
    report(fl->fe, DIAG_BAD_SCOPE, span, hint, "%s", message);
    return false;
}

static const char *key_list(arena *a, const char *const *keys)
{
    text out = {.a = a};
    text_add(&out, "it takes ");
    for (int32_t i = 0; keys[i] != NULL; i++)
        text_printf(&out, "%s%s=", i > 0 ? ", " : "", keys[i]);
    return out.bytes;
}

static bool bind_positional(lowering *fl, const keyword_rules *rules, const syntax_expr *call,
                            const syntax_expr **given)
{
    for (int64_t i = 0; i < call->items.count; i++) {
        const syntax_expr *item = call->items.items[i];
        if (item->kind == SYNTAX_STARRED)
            return bad_scope(fl, item->span, "write the arguments one by one",
                             arena_printf(fl->a, "%s does not accept *args", rules->word));
        if (i >= rules->positional)
            return bad_scope(fl, item->span, "pass the others by their names",
                             rules->too_many != NULL
                                 ? rules->too_many
                                 : arena_printf(fl->a, "%s takes %d positional arguments at most",
                                                rules->word, rules->positional));
        given[i] = item;
    }
    return true;
}

bool bind_keywords(lowering *fl, const keyword_rules *rules, const syntax_expr *call,
                   const syntax_expr **given)
{
    if (!bind_positional(fl, rules, call, given))
        return false;
    for (int64_t i = 0; i < call->keywords.count; i++) {
        const syntax_keyword *k = &call->keywords.items[i];
        if (k->name == NULL)
            return bad_scope(fl, k->span, "write the arguments one by one",
                             arena_printf(fl->a, "%s does not accept **kwargs", rules->word));
        int32_t at = 0;
        while (rules->keys[at] != NULL && strcmp(rules->keys[at], k->name) != 0)
            at++;
        if (rules->keys[at] == NULL)
            return bad_scope(
                fl, k->span, key_list(fl->a, rules->keys),
                arena_printf(fl->a, "Unknown keyword argument '%s' of %s", k->name, rules->word));
        if (given[at] != NULL)
            return bad_scope(fl, k->span, "pass it once",
                             arena_printf(fl->a, "%s got multiple values for argument '%s'",
                                          rules->word, k->name));
        given[at] = k->value;
    }
    return true;
}
