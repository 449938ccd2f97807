/* The templates of the table, filled in.
 *
 * A template (the emit column of ops.def) is text with {placeholders}; what they may name stands at
 * the head of ops.h. One that starts with "elementwise: " is an expression for one element. */
#include "codegen/emit_ops_internal.h"
#include <string.h>

/* The text for the placeholder `name` or `name.part`; NULL when it means nothing. */
static const char *placeholder_text(emitter *e, const op_template *t, const char *name)
{
    const char *dot = strchr(name, '.');
    const char *part = dot != NULL ? dot + 1 : "";
    const char *base = dot != NULL ? arena_strndup(e->a, name, dot - name) : name;
    if (strcmp(base, "core") == 0 || strcmp(base, "host") == 0)
        return base;
    if (strcmp(base, "out") == 0 && t->target != NULL) {
        const ir_var *out = t->target;
        if (strcmp(part, "buffer") == 0)
            return arena_printf(e->a, "%d", out->buffer);
        if (strcmp(part, "devices") == 0)
            return device_set_text(e, &e->p->buffers.items[out->buffer].devices);
        if (strcmp(part, "valid") == 0)
            return valid_text(e, out);
        if (strcmp(part, "extents") == 0)
            return tile_extents(e, out, out->type.ndim, false);
        return strcmp(part, "type") == 0 ? compute_suffix(out->type.dtype) : out->c_name;
    }
    if (strcmp(base, "row") == 0 || strcmp(base, "column") == 0)
        return base[0] == 'r' ? e->row : e->column;
    if (strcmp(base, "element") == 0)
        return element_suffix(t->operands[0].var->type.dtype);
    if (strcmp(base, "type") == 0)
        return compute_suffix(t->operands[0].var->type.dtype);
    int32_t index = op_param_index(t->op, base);
    if (index < 0)
        return NULL;
    const ir_operand *operand = &t->operands[index];
    if (part[0] != '\0')
        return part_text(e, t, operand, part);
    const bool value = operand->kind == IR_OPERAND_VAR || operand->kind == IR_OPERAND_EXPR;
    return t->element && value ? element_text(e, operand)
                               : operand_text(e, &t->op->params[index], operand);
}

const char *expand(emitter *e, const op_template *t, const char *format)
{
    text out = {.a = e->a};
    text_add(&out, "");
    for (const char *p = format; *p != '\0';) {
        const char *close = *p == '{' ? strchr(p, '}') : NULL;
        if (close == NULL) {
            text_add_n(&out, p++, 1);
            continue;
        }
        const char *value = placeholder_text(e, t, arena_strndup(e->a, p + 1, close - p - 1));
        if (value != NULL)
            text_add(&out, value);
        else /* a mistake in the table: it stays as it is, which the C compiler refuses */
            text_add_n(&out, p, close + 1 - p);
        p = close + 1;
    }
    return out.bytes;
}

/* Behind a new line the table has the template for ragged tiles. */
static const char *choose_template(const op_def *op, const ir_operand *operands,
                                   const ir_var *target)
{
    const char *other = strchr(op->emit, '\n');
    if (other == NULL)
        return op->emit;
    bool ragged = target != NULL && target->type.ragged;
    for (int32_t i = 0; i < op->param_count; i++)
        ragged |= operands[i].kind == IR_OPERAND_VAR && operands[i].var->type.ragged;
    return ragged ? other + 1 : op->emit;
}

const char *op_text(emitter *e, const op_def *op, const ir_operand *operands, const ir_var *target)
{
    op_template t = {op, operands, target, false};
    const char *chosen = choose_template(op, operands, target);
    const char *other = strchr(chosen, '\n');
    if (other != NULL)
        chosen = arena_strndup(e->a, chosen, other - chosen);
    return expand(e, &t, chosen);
}

element_forms element_forms_of(emitter *e, const op_def *op)
{
    static const char prefix[] = "elementwise: ";
    static const char unless[] = " unless ";
    static const char otherwise[] = ": ";
    const char *usual = op->emit + sizeof prefix - 1;
    usual = arena_strndup(e->a, usual, (int64_t)strcspn(usual, "\n"));
    const char *condition = strstr(usual, unless);
    if (condition == NULL)
        return (element_forms){.usual = usual};
    usual = arena_strndup(e->a, usual, condition - usual);
    condition += sizeof unless - 1;
    const char *rare = strstr(condition, otherwise);
    return (element_forms){usual, arena_strndup(e->a, condition, rare - condition),
                           rare + sizeof otherwise - 1};
}

const char *op_element_text(emitter *e, const ir_stmt *s, const char *expression)
{
    const op_def *op = s->op_def;
    const char *value = expand(e, &(op_template){op, s->operands, s->target, true}, expression);
    if (strstr(op->emit, ".bits}") != NULL || strstr(op->emit, ".cast}") != NULL)
        return value;
    pypto_dtype dtype = s->target->type.dtype;
    if (dtype == PYPTO_FP16)
        return arena_printf(e->a, "pld_float_to_fp16(%s)", value);
    if (dtype == PYPTO_BF16)
        return arena_printf(e->a, "pld_float_to_bf16(%s)", value);
    bool widened = pypto_dtype_bytes(dtype) < 4 && strncmp(value, "pld_", 4) != 0;
    return widened ? arena_printf(e->a, "(%s)(%s)", c_element_type(dtype), value) : value;
}
