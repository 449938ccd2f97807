/* What arguments of operations evaluate to, as operands of the IR; and the defaults of the table. */
#include "frontend/expressions.h"
#include "frontend/operations_internal.h"
#include "frontend/signature.h"

#include "ops/dtypes.h"

#include <string.h>

static bool list_operand(lowering *fl, const char *name, const dsl_value *v, ir_operand *operand)
{
    const ir_expr **exprs = arena_array(fl->a, const ir_expr *, v->count);
    for (int32_t i = 0; i < v->count; i++) {
        if (v->items[i].kind != VALUE_SCALAR) {
            report(fl->fe, DIAG_BAD_INDEX, v->items[i].span, "convert it: pl.cast(x, pl.INDEX)",
                   "%s %d must be an integer or index scalar, not %s: each entry must be an index "
                   "expression",
                   name, i, describe(fl->a, &v->items[i]));
            return false;
        }
        exprs[i] = v->items[i].expr;
    }
    operand->kind = IR_OPERAND_LIST;
    operand->exprs = exprs;
    operand->count = v->count;
    return true;
}

/* "pld.NotifyOp.AtomicAdd or pld.NotifyOp.Set" for a parameter that takes an enumeration. */
static const char *operand_hint(arena *a, const op_param *param, const dsl_value *v)
{
    const char *dtype = v->kind == VALUE_PATH ? nearest_dtype(a, v->text) : NULL;
    if (dtype != NULL)
        return arena_printf(a, "did you mean %s?", dtype);
    if (param->kind != OPERAND_ENUM)
        return "help(operation) shows what each parameter takes";
    int32_t count = 0;
    const enum_member *all = enum_members(&count);
    text choices = {.a = a};
    for (int32_t i = 0; i < count; i++) {
        if (strcmp(all[i].enumeration, param->enum_name) == 0)
            text_printf(&choices, "%s%s.%s.%s", choices.length == 0 ? "" : " or ", all[i].module,
                        all[i].enumeration, all[i].member);
    }
    return choices.bytes;
}

bool value_operand(lowering *fl, const op_def *op, const op_param *param, const dsl_value *v,
                   ir_operand *operand)
{
    *operand = (ir_operand){.kind = IR_OPERAND_NONE, .span = v->span};
    dsl_value loaded;
    if (stands_for_tile(fl, op, (int32_t)(param - op->params), v)) {
        loaded = load_whole(fl, op->spellings[0], v);
        v = &loaded;
    }
    switch (v->kind) {
    case VALUE_NONE: return true;
    case VALUE_SCALAR:
        operand->kind = IR_OPERAND_EXPR;
        operand->expr = v->expr;
        return true;
    case VALUE_VAR:
        operand->kind = IR_OPERAND_VAR;
        operand->var = v->var;
        return true;
    case VALUE_TUPLE:
        return list_operand(
            fl, arena_printf(fl->a, "%s: %s", op->spellings[0], op_entry_name(param)), v, operand);
    case VALUE_DTYPE:
        operand->kind = IR_OPERAND_DTYPE;
        operand->dtype = v->dtype;
        return true;
    case VALUE_ENUM:
        operand->kind = IR_OPERAND_ENUM;
        /* A member of another enumeration has no number that op_check() would accept. */
        operand->number = (param->kind == OPERAND_ENUM || param->kind == OPERAND_PAD) &&
                                  strcmp(v->text, param->enum_name) == 0
                              ? v->integer
                              : -1;
        return true;
    case VALUE_POISON: return false;
    case VALUE_STRING:
        if (param->kind == OPERAND_TEXT) {
            operand->kind = IR_OPERAND_TEXT;
            operand->text = v->text;
            return true;
        }
        if (param->kind == OPERAND_WORD) {
            const enum_member *member = enum_find(param->enum_name, v->text);
            operand->kind = IR_OPERAND_ENUM;
            operand->number = member != NULL ? member->value : -1;
            operand->text = member != NULL ? NULL : v->text; /* for the message */
            return true;
        }
        break;
    case VALUE_PATH:
    case VALUE_FUNCTION:
    case VALUE_OTHER: break;
    }
    report(fl->fe, DIAG_KIND_MISMATCH, v->span, operand_hint(fl->a, param, v),
           "%s: %s cannot be %s", op->spellings[0], param->name, describe(fl->a, v));
    return false;
}

ir_operand default_operand(arena *a, const op_param *param)
{
    ir_operand operand = {.kind = IR_OPERAND_NONE};
    const char *dot = strchr(param->default_text, '.');
    if (param->kind == OPERAND_WORD || (param->enum_name != NULL && dot != NULL)) {
        const char *word = dot != NULL ? dot + 1 : param->default_text + 1; /* 'word' */
        const enum_member *member =
            enum_find(param->enum_name,
                      dot != NULL ? word : arena_strndup(a, word, (int64_t)strcspn(word, "'")));
        operand.kind = IR_OPERAND_ENUM;
        operand.number = member == NULL ? -1 : member->value;
    } else if (param->kind == OPERAND_DTYPE) {
        const char *word = arena_strndup(a, param->default_text + 1, /* 'INT32' */
                                         (int64_t)strcspn(param->default_text + 1, "'"));
        for (int32_t i = 0; i < PYPTO_DTYPE_COUNT; i++) {
            if (strcmp(dtype_spelling((pypto_dtype)i), word) == 0) {
                operand.kind = IR_OPERAND_DTYPE;
                operand.dtype = (pypto_dtype)i;
            }
        }
    } else if (strcmp(param->default_text, "True") == 0 ||
               strcmp(param->default_text, "False") == 0) {
        operand.kind = IR_OPERAND_EXPR;
        operand.expr = ir_bool(a, strcmp(param->default_text, "True") == 0);
    } else if (strspn(param->default_text, "-0123456789") == strlen(param->default_text)) {
        operand.kind = IR_OPERAND_EXPR;
        int64_t number = 0;
        for (const char *c = param->default_text; *c != '\0'; c++)
            number = *c == '-' ? number : number * 10 + (*c - '0');
        operand.expr = ir_int(a, param->default_text[0] == '-' ? -number : number);
    }
    return operand;
}
