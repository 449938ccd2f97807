/* Walking the syntax tree, for those that look at a program before, or without, lowering it. */
#include "frontend/syntax.h"

bool syntax_any(const syntax_expr *e, syntax_test test, void *context)
{
    if (e == NULL)
        return false;
    if (test(context, e) || syntax_any(e->a, test, context) || syntax_any(e->b, test, context) ||
        syntax_any(e->c, test, context))
        return true;
    for (int64_t i = 0; i < e->items.count; i++) {
        if (syntax_any(e->items.items[i], test, context))
            return true;
    }
    for (int64_t i = 0; i < e->keywords.count; i++) {
        if (syntax_any(e->keywords.items[i].value, test, context))
            return true;
    }
    return false;
}
