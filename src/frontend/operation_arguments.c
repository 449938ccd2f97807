/* Which argument of a call of an operation is which of its parameters, by position and by key word. */
#include "frontend/operations_internal.h"

#include <string.h>

/* "pl.load(tensor, offsets, shapes) requires exactly 3 positional arguments", where none is optional. */
static const char *signature_hint(arena *a, const op_def *op)
{
    text out = {.a = a};
    text_printf(&out, "%s(", op->spellings[0]);
    for (int32_t i = 0; i < op->param_count; i++) {
        const op_param *param = &op->params[i];
        bool star = param->keyword_only && (i == 0 || !op->params[i - 1].keyword_only);
        text_printf(&out, "%s%s%s", i == 0 ? "" : ", ", star ? "*, " : "", param->name);
        if (param->default_text != NULL)
            text_printf(&out, "=%s", param->default_text);
    }
    text_add(&out, ")");
    int32_t positional = 0;
    bool optional = false;
    for (int32_t i = 0; i < op->param_count; i++) {
        positional += !op->params[i].keyword_only;
        optional = optional || (!op->params[i].keyword_only && op->params[i].default_text != NULL);
    }
    if (op->param_count == 0)
        text_add(&out, ": no positional arguments, no kwargs");
    else if (!optional)
        text_printf(&out, " requires exactly %d positional argument%s", positional,
                    positional == 1 ? "" : "s");
    if (op->param_count == 1)
        text_printf(&out, ", no kwargs but %s", op->params[0].name);
    return out.bytes;
}

static bool bad_arguments(lowering *fl, const op_def *op, pypto_span span, const char *message)
{
    report(fl->fe, DIAG_BAD_ARGUMENTS, span, signature_hint(fl->a, op), "%s() %s", op->spellings[0],
           message);
    return false;
}

static bool bind_positional(lowering *fl, const op_def *op, const syntax_expr *call,
                            const syntax_expr **given)
{
    int32_t allowed = 0;
    int32_t needed = 0;
    for (int32_t i = 0; i < op->param_count; i++) {
        allowed += op->params[i].keyword_only ? 0 : 1;
        needed += op->params[i].keyword_only || op->params[i].default_text != NULL ? 0 : 1;
    }
    int64_t count = call->items.count;
    for (int64_t i = 0; i < count; i++) {
        if (call->items.items[i]->kind == SYNTAX_STARRED)
            return bad_arguments(fl, op, call->items.items[i]->span, "does not accept *args");
    }
    if (count > allowed) {
        const char *range = needed == allowed
                                ? arena_printf(fl->a, "%d", allowed)
                                : arena_printf(fl->a, "from %d to %d", needed, allowed);
        return bad_arguments(fl, op, call->span,
                             arena_printf(fl->a, "takes %s positional argument%s but %lld %s given",
                                          range, allowed == 1 ? "" : "s", (long long)count,
                                          count == 1 ? "was" : "were"));
    }
    for (int64_t i = 0; i < count; i++)
        given[i] = call->items.items[i];
    return true;
}

static bool bind_keyword(lowering *fl, const op_def *op, const syntax_keyword *keyword,
                         const syntax_expr **given)
{
    if (keyword->name == NULL)
        return bad_arguments(fl, op, keyword->span, "does not accept **kwargs");
    if (op->id == OP_ALLOC_WINDOW && strcmp(keyword->name, "name") == 0) {
        report(fl->fe, DIAG_BAD_WINDOW_ALLOCATION, keyword->span,
               "the buffer is called like the name it is assigned to",
               "'name' kwarg cannot be passed explicitly");
        return false;
    }
    if (keyword->value == given[0])
        return true; /* it has chosen the form */
    int32_t index = op_param_index(op, keyword->name);
    if (index < 0)
        return bad_arguments(
            fl, op, keyword->span,
            arena_printf(fl->a, "got an unexpected keyword argument '%s'", keyword->name));
    if (given[index] != NULL)
        return bad_arguments(
            fl, op, keyword->span,
            arena_printf(fl->a, "got multiple values for argument '%s'", keyword->name));
    given[index] = keyword->value;
    return true;
}

/* Names as Python lists them: 'a', 'b' and 'c'. */
static bool check_missing(lowering *fl, const op_def *op, pypto_span span,
                          const syntax_expr *const *given, bool keyword_only)
{
    const char *missing[OP_MAX_PARAMS];
    int32_t count = 0;
    for (int32_t i = 0; i < op->param_count; i++) {
        const op_param *param = &op->params[i];
        if (given[i] == NULL && param->default_text == NULL && param->keyword_only == keyword_only)
            missing[count++] = param->name;
    }
    if (count == 0)
        return true;
    text names = {.a = fl->a};
    for (int32_t i = 0; i < count; i++)
        text_printf(&names, "%s'%s'", i == 0 ? "" : i == count - 1 ? " and " : ", ", missing[i]);
    return bad_arguments(fl, op, span,
                         arena_printf(fl->a, "missing %d required %s argument%s: %s", count,
                                      keyword_only ? "keyword-only" : "positional",
                                      count == 1 ? "" : "s", names.bytes));
}

bool bind_operation(lowering *fl, const op_def *op, const syntax_expr *call,
                    const syntax_expr **given)
{
    if (!bind_positional(fl, op, call, given))
        return false;
    for (int64_t i = 0; i < call->keywords.count; i++) {
        if (!bind_keyword(fl, op, &call->keywords.items[i], given))
            return false;
    }
    return check_missing(fl, op, call->span, given, false) &&
           check_missing(fl, op, call->span, given, true);
}
