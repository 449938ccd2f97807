/* pl.printf(format, values...): the format is taken apart here, so that a wrong one is an error of the
 * compilation. It becomes one statement for each conversion and each text between two; the runtime
 * collects their pieces and prints the lines at the end.
 *
 * All values are computed first: a value may take a statement that waits. */
#include "frontend/expressions.h"
#include "frontend/lower.h"

#include <string.h>

typedef struct printf_call {
    lowering *fl;
    const syntax_expr *call;
    const dsl_value *values;
    int32_t count;
    int32_t used;
} printf_call;

static bool bad_format(const printf_call *p, pypto_span span, const char *hint, const char *problem)
{
    report(p->fl->fe, DIAG_BAD_ARGUMENTS, span, hint, "pl.printf %s", problem);
    return false;
}

static void emit_piece(const printf_call *p, op_id id, const dsl_value *values, int32_t count)
{
    lower_values(p->fl, op_get(id), values, count, p->call->span, -1);
}

static void emit_text(const printf_call *p, const char *string, int64_t length)
{
    if (length == 0)
        return;
    dsl_value value = string_value(arena_strndup(p->fl->a, string, length), p->call->span);
    emit_piece(p, OP_PRINT_TEXT, &value, 1);
}

/* A BOOL: one of two texts. */
static void emit_truth(const printf_call *p, const dsl_value *v)
{
    ir_stmt *s = ir_stmt_create(p->fl->fe->program, p->fl->block, IR_IF, p->call->span);
    ir_block *block = p->fl->block;
    s->value = v->expr;
    p->fl->block = &s->body;
    emit_text(p, "True", 4);
    p->fl->block = &s->orelse;
    emit_text(p, "False", 5);
    p->fl->block = block;
}

static void emit_number(const printf_call *p, const char *flags, const char *conversion,
                        const dsl_value *v)
{
    bool real = ir_is_float(v->expr->dtype);
    const char *format = arena_printf(p->fl->a, "%%%s%s%s", flags, real ? "" : "ll", conversion);
    dsl_value values[2] = {string_value(format, p->call->span), *v};
    if (real && v->literal)
        values[1] = scalar_value(ir_float(p->fl->a, v->real), v->span);
    emit_piece(p, real ? OP_PRINT_FLOAT : OP_PRINT_INT, values, 2);
}

/* %s: a number in its natural form, a truth value, or a tile. */
static bool emit_any(const printf_call *p, const char *flags, dsl_value v)
{
    if (is_tensor_operand(p->fl, &v))
        v = load_whole(p->fl, "pl.printf", &v);
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind == VALUE_STRING) {
        emit_text(p, v.text, (int64_t)strlen(v.text));
    } else if (v.kind == VALUE_SCALAR && v.expr->dtype == PYPTO_BOOL) {
        emit_truth(p, &v);
    } else if (v.kind == VALUE_SCALAR) {
        bool is_unsigned = v.expr->dtype == PYPTO_UINT64;
        emit_number(p, flags, ir_is_float(v.expr->dtype) ? "g" : is_unsigned ? "u" : "d", &v);
    } else if (v.kind == VALUE_VAR && v.var->type.kind == IR_TILE) {
        emit_piece(p, OP_PRINT_TILE, &v, 1);
    } else {
        return bad_format(p, v.span, "print numbers, tiles, and in kernels tensors",
                          arena_printf(p->fl->a, "cannot print %s", describe(p->fl->a, &v)));
    }
    return true;
}

/* The conversion behind a '%'; *at moves behind it. */
static bool emit_conversion(printf_call *p, const char **at)
{
    arena *a = p->fl->a;
    pypto_span span = p->call->items.items[0]->span;
    size_t length = strspn(*at, "-+ #0");
    length += strspn(*at + length, "0123456789");
    if ((*at)[length] == '.')
        length += 1 + strspn(*at + length + 1, "0123456789");
    const char *flags = arena_strndup(a, *at, (int64_t)length);
    const char *conversion = arena_strndup(a, *at + length, (*at)[length] == '\0' ? 0 : 1);
    *at += length + strlen(conversion);
    bool integer = conversion[0] != '\0' && strchr("diuxXo", conversion[0]) != NULL;
    bool real = conversion[0] != '\0' && strchr("feEgG", conversion[0]) != NULL;
    if ((!integer && !real && strcmp(conversion, "s") != 0) || length > 16)
        return bad_format(
            p, span, "%d and %x take integers, %f and %g floats, %s anything; %% is a %",
            arena_printf(a, "does not know the conversion '%%%s%s'", flags, conversion));
    if (p->used == p->count)
        return bad_format(p, p->call->span, "give one value for each conversion",
                          arena_printf(a, "has more conversions than values: %d", p->count));
    const dsl_value *v = &p->values[p->used++];
    if (!integer && !real)
        return emit_any(p, flags, *v);
    bool fits = v->kind == VALUE_SCALAR &&
                (integer ? ir_is_integer(v->expr->dtype) : ir_is_float(v->expr->dtype));
    if (!fits)
        return bad_format(p, v->span, "%s prints anything",
                          arena_printf(a, "takes %s for %%%s%s, not %s",
                                       integer ? "an integer" : "a float", flags, conversion,
                                       describe(a, v)));
    emit_number(p, flags, conversion, v);
    return true;
}

static bool emit_format(printf_call *p, const char *format)
{
    const char *from = format;
    const char *at = format;
    while (*at != '\0') {
        if (*at != '%') {
            at++;
            continue;
        }
        emit_text(p, from, at - from);
        if (at[1] == '%') {
            from = at + 1; /* one of the two is text */
            at += 2;
            continue;
        }
        at++;
        if (!emit_conversion(p, &at))
            return false;
        from = at;
    }
    emit_text(p, from, at - from);
    return p->used == p->count ||
           bad_format(
               p, p->values[p->used].span, "give one conversion for each value",
               arena_printf(p->fl->a, "has values without a conversion: %d", p->count - p->used));
}

dsl_value lower_printf(lowering *fl, const syntax_expr *e)
{
    printf_call p = {.fl = fl, .call = e, .count = (int32_t)e->items.count - 1};
    if (e->keywords.count > 0 || p.count < 0)
        return report(fl->fe, DIAG_BAD_ARGUMENTS, e->span, "write pl.printf(\"x is %d\", x)",
                      "pl.printf takes a format and values, by position");
    if (!op_allowed(op_get(OP_PRINTF), fl->ir->plane))
        return report(fl->fe, DIAG_WRONG_PLANE, e->span,
                      "Move this operation into a lower-level function: a wrapper or kernel",
                      "'pl.printf' cannot be used in a HOST function");
    dsl_value format = eval(fl, e->items.items[0]);
    dsl_value *values = arena_array(fl->a, dsl_value, p.count + 1);
    bool ok = format.kind != VALUE_POISON;
    for (int32_t i = 0; i < p.count; i++) {
        values[i] = eval(fl, e->items.items[i + 1]);
        ok = ok && values[i].kind != VALUE_POISON;
    }
    if (!ok)
        return poison();
    if (format.kind != VALUE_STRING)
        return report(fl->fe, DIAG_BAD_ARGUMENTS, format.span, "write pl.printf(\"x is %d\", x)",
                      "pl.printf: the format must be a string, not %s", describe(fl->a, &format));
    p.values = values;
    if (!emit_format(&p, format.text))
        return poison();
    emit_piece(&p, OP_PRINT_END, NULL, 0);
    return (dsl_value){.kind = VALUE_NONE, .span = e->span};
}
