/* The templates of the table, filled in.
 *
 * A template (the emit column of ops.def) is text with {placeholders}; what they may name stands at
 * the head of ops.h. One that starts with "elementwise: " is an expression for one element. */
#include "codegen/emit_ops_internal.h"
#include <string.h>

static const ir_operand *named(const op_template *t, const char *name)
{
    int32_t index = op_param_index(t->op, name);
    return index < 0 || t->operands[index].kind == IR_OPERAND_NONE ? NULL : &t->operands[index];
}

/* The call that writes a tile or a tensor into a tensor. */
static const char *store_text(emitter *e, const op_template *t, const ir_var *source,
                              const ir_var *target)
{
    const ir_operand *shapes = named(t, "shapes");
    const ir_operand *atomic = named(t, "atomic");
    const ir_operand *at = named(t, "offsets") != NULL ? named(t, "offsets") : named(t, "offset");
    const bool adds = atomic != NULL && atomic->number != 0;
    const char *offsets = list_text(e, "PLD_AT", at->exprs, at->count);
    const char *from = handle_text(e, source);
    const char *to = handle_text(e, target);
    if (source->type.kind != IR_TILE)
        return arena_printf(e->a, "pld_assemble%s(core, %s, %s, %s)", adds ? "_add" : "", to, from,
                            offsets);
    const char *extents = shapes != NULL ? list_text(e, "PLD_EXTENTS", shapes->exprs, shapes->count)
                                         : tile_extents(e, source, target->type.ndim, false);
    if (!adds && !source->type.ragged)
        return arena_printf(e->a, "pld_store(core, %s, %s, %s, %s)", from, to, offsets, extents);
    return arena_printf(
        e->a, "pld_store_%s(core, %s, %s, %s, %s, %s)", adds ? "add" : "part", from, to, offsets,
        extents, source->type.ragged ? tile_extents(e, source, target->type.ndim, true) : extents);
}

/* Operands of an operation other than their value: {name.part}. */
static const char *part_text(emitter *e, const op_template *t, const ir_operand *operand,
                             const char *part)
{
    const char *colon = strchr(part, ':');
    if (strcmp(part, "bits") == 0)
        return arena_printf(e->a, "%s[%s]", operand->var->c_name, e->index);
    if (strcmp(part, "valid") == 0 && colon == NULL)
        return valid_text(e, operand->var);
    if (strcmp(part, "extents") == 0)
        return tile_extents(e, operand->var, operand->var->type.ndim, false);
    if (strcmp(part, "ndim") == 0)
        return arena_printf(e->a, "%d", operand->var->type.ndim);
    if (strcmp(part, "dtype") == 0)
        return c_dtype_name(operand->var->type.dtype);
    if (strcmp(part, "width") == 0)
        return arena_printf(e->a, "%lld", (long long)pypto_dtype_bytes(operand->var->type.dtype));
    if (strncmp(part, "store:", 6) == 0)
        return store_text(e, t, operand->var, t->operands[op_param_index(t->op, part + 6)].var);
    if (strcmp(part, "type") == 0)
        return element_suffix(operand->var->type.dtype);
    if (strcmp(part, "first") == 0 || strcmp(part, "last") == 0) {
        int32_t dim = part[0] == 'f' ? 0 : operand->var->type.ndim - 1;
        return operand->var->type.ragged
                   ? arena_printf(e->a, "%s[%d]", tile_valid_name(e, operand->var), dim)
                   : expr_int64(e, operand->var->type.shape[dim]);
    }
    if (strcmp(part, "rest") == 0) {
        int64_t first = 1;
        (void)ir_is_const_int(operand->var->type.shape[0], &first);
        return arena_printf(e->a, "%lld",
                            (long long)(ir_static_elems(&operand->var->type) / first));
    }
    if (strcmp(part, "cast") == 0)
        return cast_text(e, t, operand);
    if (strcmp(part, "row") == 0 || strcmp(part, "column") == 0)
        return value_of_bits(e, operand->var->type.dtype,
                             arena_printf(e->a, "%s[%s]", operand->var->c_name,
                                          part[0] == 'r' ? e->row : e->column));
    if (strcmp(part, "read") == 0 || strcmp(part, "write") == 0) {
        pypto_dtype dtype = operand->var->type.dtype;
        bool cast = part[0] == 'r' && dtype != PYPTO_INT64 && !ir_is_float(dtype);
        return arena_printf(e->a, "%s%s%s%spld_%s_%s", cast ? "(" : "",
                            cast ? c_scalar_type(dtype) : "", cast ? ")" : "", "", part,
                            ir_is_float(dtype) ? "float" : "int");
    }
    if (strncmp(part, "slot:", 5) == 0)
        return array_slot(e, operand->var, &t->operands[op_param_index(t->op, part + 5)]);
    if (strncmp(part, "at:", 3) == 0)
        return value_of_bits(
            e, operand->var->type.dtype,
            array_slot(e, operand->var, &t->operands[op_param_index(t->op, part + 3)]));
    if (strncmp(part, "element:", 8) == 0)
        return tile_element(e, operand->var, &t->operands[op_param_index(t->op, part + 8)]);
    if (strncmp(part, "get:", 4) == 0)
        return value_of_bits(
            e, operand->var->type.dtype,
            tile_element(e, operand->var, &t->operands[op_param_index(t->op, part + 4)]));
    if (strncmp(part, "as:", 3) == 0)
        return bits_of_value(e, t->operands[op_param_index(t->op, part + 3)].var->type.dtype,
                             expr_c(e, operand->expr).text);
    if (strncmp(part, "pad:", 4) == 0)
        return pad_text(e, t->operands[op_param_index(t->op, part + 4)].var->type.dtype, operand);
    if (strncmp(part, "pointer:", 8) == 0)
        return pointer_text(e, operand,
                            t->operands[op_param_index(t->op, part + 8)].var->type.dtype);
    if (strcmp(part, "bit") == 0)
        return bit_text(e, operand->var);
    if (strcmp(part, "bytes") == 0)
        return arena_printf(e->a, "%lld", (long long)ir_static_bytes(&operand->var->type));
    if (strcmp(part, "rows") == 0)
        return arena_printf(e->a, "%lld", tile_rows(operand->var));
    if (strcmp(part, "columns") == 0)
        return expr_int64(e, operand->var->type.shape[operand->var->type.ndim - 1]);
    if (strcmp(part, "part") == 0)
        return part_extents(e, operand->exprs, operand->count);
    if (strncmp(part, "kept:", 5) == 0)
        return kept_extents(e, operand, &t->operands[op_param_index(t->op, part + 5)]);
    if (colon != NULL) { /* {tile.extents:memory}, {tile.valid:memory} */
        const ir_var *memory = t->operands[op_param_index(t->op, colon + 1)].var;
        return tile_extents(e, operand->var, memory->type.ndim, part[0] == 'v');
    }
    return "0";
}

/* The text for the placeholder `name` or `name.part`. */
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
        return "0";
    const ir_operand *operand = &t->operands[index];
    if (strcmp(part, "count") == 0)
        return arena_printf(e->a, "%d", operand->count);
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
        text_add(&out, placeholder_text(e, t, arena_strndup(e->a, p + 1, close - p - 1)));
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
