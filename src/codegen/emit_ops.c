/* Operations as C text: operands, the templates of the table, and the statements made of them.
 *
 * A template (the emit column of ops.def) is text with {placeholders}; what they may name stands at
 * the head of ops.h. Most become one call of the device library. Elementwise ones become a loop over
 * the elements of the result, packed as tiles are, whose body compilers vectorise:
 *
 *     for (int64_t i = 0; i < 256; ++i) acc[i] = acc[i] + peer_tile[i];
 *
 * 16-bit floats are converted where their bits are read and rounded where the result is written. */
#include "codegen/emit_internal.h"

#include <string.h>

/* ---- operands ---- */

const char *handle_text(emitter *e, const ir_var *var)
{
    return e->vars[var->id].storage == STORAGE_VALUE ? arena_printf(e->a, "&%s", var->c_name)
                                                     : var->c_name;
}

static const char *list_text(emitter *e, const char *macro, const ir_expr *const *exprs,
                             int32_t count)
{
    if (count == 0)
        return "NULL";
    text out = {.a = e->a};
    text_printf(&out, "%s(", macro);
    for (int32_t i = 0; i < count; i++)
        text_printf(&out, "%s%s", i > 0 ? ", " : "", expr_int64(e, exprs[i]));
    text_add(&out, ")");
    return out.bytes;
}

static const char *enum_text(emitter *e, const char *enumeration, int64_t value)
{
    const char *member = enum_member_name(enumeration, value);
    const enum_member *found = member != NULL ? enum_find(enumeration, member) : NULL;
    return found != NULL ? found->c_name : arena_printf(e->a, "%lld", (long long)value);
}

static const char *operand_text(emitter *e, const op_param *param, const ir_operand *operand)
{
    switch (operand->kind) {
    case IR_OPERAND_NONE: return "NULL";
    case IR_OPERAND_VAR: return handle_text(e, operand->var);
    case IR_OPERAND_EXPR:
        return ir_is_float(operand->expr->dtype) ? expr_c(e, operand->expr).text
                                                 : expr_int64(e, operand->expr);
    case IR_OPERAND_LIST:
        return list_text(e, param->kind == OPERAND_OFFSETS ? "PLD_AT" : "PLD_EXTENTS",
                         operand->exprs, operand->count);
    case IR_OPERAND_DTYPE: return c_dtype_name(operand->dtype);
    case IR_OPERAND_ENUM: return enum_text(e, param->enum_name, operand->number);
    }
    return "0";
}

/* A tile's shape with one entry per dimension of a memory of at least its rank. */
static const char *tile_extents(emitter *e, const ir_var *tile, const ir_var *memory)
{
    const ir_expr *extents[PYPTO_MAX_DIMS];
    int32_t leading = memory->type.ndim - tile->type.ndim;
    for (int32_t i = 0; i < memory->type.ndim; i++)
        extents[i] = i < leading ? ir_int(e->a, 1) : tile->type.shape[i - leading];
    return list_text(e, "PLD_EXTENTS", extents, memory->type.ndim);
}

static const char *device_set_text(emitter *e, const ir_device_set *set)
{
    if (set->all)
        return "pld_all_devices(host)";
    int start = set->mask != 0 ? __builtin_ctzll(set->mask) : 0;
    uint64_t run = set->mask >> start;
    if ((run & (run + 1)) == 0) /* one run of ones */
        return arena_printf(e->a, "pld_device_range(host, %d, %d)", start,
                            start + __builtin_popcountll(run));
    return arena_printf(e->a, "UINT64_C(0x%llx)", (unsigned long long)set->mask);
}

/* ---- templates ---- */

typedef struct template
{
    const op_def *op;
    const ir_operand *operands;
    const ir_var *target;
    bool element; /* names mean elements */
}
template;

/* The end of the name of a function of pld_math.h that computes elements of that type. */
static const char *compute_suffix(pypto_dtype dtype)
{
    switch (dtype) {
    case PYPTO_INT8: return "i8";
    case PYPTO_INT16: return "i16";
    case PYPTO_INT32: return "i32";
    case PYPTO_INT64:
    case PYPTO_INDEX: return "i64";
    case PYPTO_BOOL:
    case PYPTO_UINT8: return "u8";
    case PYPTO_UINT16: return "u16";
    case PYPTO_UINT32: return "u32";
    case PYPTO_UINT64: return "u64";
    default: return "f32";
    }
}

static const char *element_text(emitter *e, const ir_operand *operand)
{
    if (operand->kind != IR_OPERAND_VAR)
        return expr_text(e, operand->expr, PRECEDENCE_UNARY);
    const char *element = arena_printf(e->a, "%s[%s]", operand->var->c_name, e->index);
    if (operand->var->type.dtype == PYPTO_FP16)
        return arena_printf(e->a, "pld_fp16_to_float(%s)", element);
    if (operand->var->type.dtype == PYPTO_BF16)
        return arena_printf(e->a, "pld_bf16_to_float(%s)", element);
    return element;
}

/* The text for the placeholder `name` or `name.part`. */
static const char *placeholder_text(emitter *e, const template *t, const char *name)
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
        return out->c_name;
    }
    if (strcmp(base, "type") == 0)
        return compute_suffix(t->operands[0].var->type.dtype);
    int32_t index = op_param_index(t->op, base);
    if (index < 0)
        return "0";
    const ir_operand *operand = &t->operands[index];
    if (strcmp(part, "count") == 0)
        return arena_printf(e->a, "%d", operand->count);
    if (strncmp(part, "extents:", 8) == 0)
        return tile_extents(e, operand->var, t->operands[op_param_index(t->op, part + 8)].var);
    return t->element ? element_text(e, operand) : operand_text(e, &t->op->params[index], operand);
}

static const char *expand(emitter *e, const template *t, const char *format)
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

const char *op_text(emitter *e, const op_def *op, const ir_operand *operands, const ir_var *target)
{
    template t = {op, operands, target, false};
    return expand(e, &t, op->emit);
}

/* The value of one element of an elementwise operation, as the element type of `target`. */
static const char *op_element_text(emitter *e, const op_def *op, const ir_operand *operands,
                                   const ir_var *target)
{
    static const char prefix[] = "elementwise: ";
    template t = {op, operands, target, true};
    const char *value = expand(e, &t, op->emit + sizeof prefix - 1);
    pypto_dtype dtype = target->type.dtype;
    if (dtype == PYPTO_FP16)
        return arena_printf(e->a, "pld_float_to_fp16(%s)", value);
    if (dtype == PYPTO_BF16)
        return arena_printf(e->a, "pld_float_to_bf16(%s)", value);
    bool widened = pypto_dtype_bytes(dtype) < 4 && strncmp(value, "pld_", 4) != 0;
    return widened ? arena_printf(e->a, "(%s)(%s)", c_element_type(dtype), value) : value;
}

/* ---- statements ---- */

static void emit_elementwise(emitter *e, const ir_stmt *s)
{
    const char *i = e->index;
    const char *head = arena_printf(e->a, "for (int64_t %s = 0; %s < %lld; ++%s)", i, i,
                                    (long long)ir_static_elems(&s->target->type), i);
    const char *body = arena_printf(e->a, "%s[%s] = %s;", s->target->c_name, i,
                                    op_element_text(e, s->op_def, s->operands, s->target));
    emit_place(e, &s->span);
    if (emit_fits(e, strlen(head) + 1 + strlen(body), EMIT_COLUMNS)) {
        emit_line(e, "%s %s", head, body);
        return;
    }
    emit_line(e, "%s", head);
    e->depth++;
    emit_place(e, &s->span);
    emit_line(e, "%s", body);
    e->depth--;
}

void emit_operation(emitter *e, const ir_stmt *s)
{
    if (op_is_elementwise(s->op_def)) {
        emit_elementwise(e, s);
        return;
    }
    const char *value = op_text(e, s->op_def, s->operands, s->target);
    bool through_operand = s->op_def->result_param >= 0;
    if (s->target != NULL && s->target->type.kind != IR_TILE && !through_operand) {
        emit_value(e, s, value);
        return;
    }
    emit_place(e, &s->span);
    emit_line(e, "%s;", value);
    if (s->target == NULL || !through_operand)
        return;
    const ir_var *source = s->operands[s->op_def->result_param].var;
    if (source != s->target && e->vars[s->target->id].storage != STORAGE_NONE)
        emit_value(e, s, alias_text(e, s->target, source));
}
