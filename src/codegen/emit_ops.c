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

#include "ops/dtypes.h"

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
    case IR_OPERAND_TEXT: {
        text out = {.a = e->a};
        text_quoted(&out, operand->text);
        return out.bytes;
    }
    }
    return "0";
}

/* A tile's shape, or its valid extents, with one entry per dimension of a memory of at least its
 * rank. */
static const char *tile_extents(emitter *e, const ir_var *tile, int32_t ndim, bool valid)
{
    text out = {.a = e->a};
    text_add(&out, "PLD_EXTENTS(");
    int32_t leading = ndim - tile->type.ndim;
    for (int32_t i = 0; i < ndim; i++) {
        text_add(&out, i > 0 ? ", " : "");
        if (i < leading)
            text_add(&out, "1");
        else if (valid && tile->type.ragged)
            text_printf(&out, "%s[%d]", tile_valid_name(e, tile), i - leading);
        else
            text_add(&out, expr_int64(e, tile->type.shape[i - leading]));
    }
    text_add(&out, ")");
    return out.bytes;
}

const char *tile_valid_name(emitter *e, const ir_var *tile)
{
    var_info *info = &e->vars[tile->id];
    if (info->valid_name == NULL)
        info->valid_name = emit_free_name(e, arena_printf(e->a, "%s_valid", tile->c_name));
    return info->valid_name;
}

/* The valid extents of a tile of any kind, as an array. */
static const char *valid_text(emitter *e, const ir_var *tile)
{
    return tile->type.ragged ? tile_valid_name(e, tile)
                             : tile_extents(e, tile, tile->type.ndim, false);
}

/* Elements of all dimensions but the last. */
static long long tile_rows(const ir_var *tile)
{
    int64_t columns = 1;
    (void)ir_is_const_int(tile->type.shape[tile->type.ndim - 1], &columns);
    return (long long)(ir_static_elems(&tile->type) / columns);
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

/* The end of the name of a function that works on elements as they are stored; those of 8 bits for
 * storage only are moved as bytes. */
static const char *element_suffix(pypto_dtype dtype)
{
    if (dtype == PYPTO_FP16 || dtype == PYPTO_BF16)
        return dtype == PYPTO_FP16 ? "fp16" : "bf16";
    return dtype_is_storage(dtype) ? "u8" : compute_suffix(dtype);
}

/* Of a conversion: pld_<...>_to_float, pld_float_to_<...>. */
static const char *conversion_suffix(pypto_dtype dtype)
{
    return dtype_is_storage(dtype) ? pypto_dtype_name(dtype) : element_suffix(dtype);
}

static bool converts(pypto_dtype dtype)
{
    return dtype == PYPTO_FP16 || dtype == PYPTO_BF16 || dtype_is_storage(dtype);
}

/* A stored element as the value that C computes with, and back. */
static const char *value_of_bits(emitter *e, pypto_dtype dtype, const char *bits)
{
    if (converts(dtype))
        return arena_printf(e->a, "pld_%s_to_%s(%s)", conversion_suffix(dtype),
                            dtype_is_floating(dtype) ? "float" : "int", bits);
    return dtype == PYPTO_BOOL ? arena_printf(e->a, "%s != 0", bits) : bits;
}

static const char *bits_of_value(emitter *e, pypto_dtype dtype, const char *value)
{
    if (dtype_is_floating(dtype) && converts(dtype))
        return arena_printf(e->a, "pld_float_to_%s(%s)", conversion_suffix(dtype), value);
    if (dtype_is_storage(dtype))
        return arena_printf(e->a, "(uint8_t)(%s & 15)", value);
    return pypto_dtype_bytes(dtype) < 4
               ? arena_printf(e->a, "(%s)(%s)", c_element_type(dtype), value)
               : value;
}

/* An element's bits; of a type of 4 bits in the lower half, with the other element above. */
static const char *stored_element(emitter *e, const ir_var *tile)
{
    if (!pypto_dtype_packed(tile->type.dtype))
        return arena_printf(e->a, "%s[%s]", tile->c_name, e->index);
    return arena_printf(e->a, "(uint8_t)(%s[(%s) / 2] >> (%s) %% 2 * 4)", tile->c_name, e->index,
                        e->index);
}

static const char *element_text(emitter *e, const ir_operand *operand)
{
    if (operand->kind != IR_OPERAND_VAR)
        return expr_text(e, operand->expr, PRECEDENCE_UNARY);
    return value_of_bits(e, operand->var->type.dtype, stored_element(e, operand->var));
}

/* The element of a tile at some indices, as an lvalue. */
static const char *tile_element(emitter *e, const ir_var *tile, const ir_operand *indices)
{
    return arena_printf(e->a, "%s[pld_tile_index(core, %d, %s, %s)]", tile->c_name, tile->type.ndim,
                        tile_extents(e, tile, tile->type.ndim, false),
                        list_text(e, "PLD_AT", indices->exprs, indices->count));
}

/* The element of an array, as an lvalue. */
static const char *array_slot(emitter *e, const ir_var *array, const ir_operand *index)
{
    int64_t number = 0;
    if (ir_is_const_int(index->expr, &number)) /* its type rule has checked it */
        return arena_printf(e->a, "%s[%lld]", array->c_name, (long long)number);
    text name = {.a = e->a};
    text_quoted(&name, array->name);
    return arena_printf(e->a, "%s[pld_array_index(core, %s, %s, %s)]", array->c_name, name.bytes,
                        expr_int64(e, array->type.shape[0]), expr_int64(e, index->expr));
}

/* An element converted as pl.cast says: the text of the new element. */
static const char *cast_text(emitter *e, const template *t, const ir_operand *operand)
{
    static const char *const rounding[] = {"rint", "rint",  "round", "floor",
                                           "ceil", "trunc", "odd"};
    pypto_dtype from = operand->var->type.dtype;
    pypto_dtype to = t->target->type.dtype;
    const ir_operand *given = &t->operands[op_param_index(t->op, "mode")];
    int64_t mode = given->kind == IR_OPERAND_NONE ? 2 : given->number;
    const char *value = value_of_bits(e, from, stored_element(e, operand->var));
    if (to == PYPTO_BOOL)
        return arena_printf(e->a, "(uint8_t)(%s != 0)", value);
    if (!dtype_is_floating(to) && dtype_is_floating(from))
        return arena_printf(e->a, "pld_f32_to_%s(pld_%s_f32(%s))",
                            dtype_is_storage(to) ? pypto_dtype_name(to) : compute_suffix(to),
                            rounding[mode], value);
    if (!dtype_is_floating(to))
        return dtype_is_storage(to) ? bits_of_value(e, to, value)
                                    : arena_printf(e->a, "(%s)(%s)", c_element_type(to), value);
    if (!dtype_is_floating(from)) {
        /* Through FP32, which rounds wide integers: to odd, so that what follows rounds as if once. */
        bool twice = pypto_dtype_bytes(from) >= 4 && to != PYPTO_FP32;
        value = twice ? arena_printf(e->a, "pld_%s_to_f32_odd(%s)", compute_suffix(from), value)
                      : arena_printf(e->a, "(float)(%s)", value);
    }
    if (to == PYPTO_FP32)
        return value;
    bool directed = dtype_is_floating(from) && mode >= 3;
    return directed ? arena_printf(e->a, "pld_float_to_%s_%s(%s)", conversion_suffix(to),
                                   rounding[mode], value)
                    : bits_of_value(e, to, value);
}

/* A pad value as an element of that type. */
static const char *pad_text(emitter *e, pypto_dtype dtype, const ir_operand *pad)
{
    int64_t which = pad->kind == IR_OPERAND_ENUM ? pad->number : 1;
    if (pad->kind == IR_OPERAND_EXPR && pad->expr->kind == IR_FLOAT && pad->expr->real != 0)
        which = pad->expr->real > 0 ? 2 : 3;
    if (ir_is_float(dtype))
        return bits_of_value(e, dtype,
                             which == 1   ? "0.0f"
                             : which == 2 ? "__builtin_inff()"
                                          : "-__builtin_inff()");
    const bool is_signed = compute_suffix(dtype)[0] == 'i';
    if (which == 1 || (which == 3 && !is_signed))
        return "0";
    return arena_printf(e->a, "%sINT%d_%s", is_signed ? "" : "U", (int)pypto_dtype_bytes(dtype) * 8,
                        which == 2 ? "MAX" : "MIN");
}

/* Elements to walk over, and the distance from one to the next: those of a tile, or one scalar. */
static const char *pointer_text(emitter *e, const ir_operand *operand, pypto_dtype dtype)
{
    if (operand->kind == IR_OPERAND_VAR)
        return arena_printf(e->a, "%s, 1", operand->var->c_name);
    return arena_printf(e->a, "(const %s[]){%s}, 0", c_element_type(dtype),
                        bits_of_value(e, dtype, expr_c(e, operand->expr).text));
}

/* The element's bit of a mask, whose rows start at an element of the mask. */
static const char *bit_text(emitter *e, const ir_var *mask)
{
    const int bits = (int)pypto_dtype_bytes(mask->type.dtype) * 8;
    return arena_printf(e->a, "(%s[%s * %s + %s / %d] >> %s %% %d & 1) != 0", mask->c_name, e->row,
                        expr_int64(e, mask->type.shape[mask->type.ndim - 1]), e->column, bits,
                        e->column, bits);
}

/* Extents as pld_part takes them; a constant 0 stands for an axis that is dropped. */
static const char *part_extents(emitter *e, const ir_expr *const *extents, int32_t count)
{
    text out = {.a = e->a};
    text_add(&out, "PLD_EXTENTS(");
    for (int32_t i = 0; i < count; i++) {
        int64_t extent = 1;
        bool dropped = ir_is_const_int(extents[i], &extent) && extent == 0;
        text_add(&out, i > 0 ? ", " : "");
        text_add(&out, dropped ? "PLD_DROP" : expr_int64(e, extents[i]));
    }
    text_add(&out, ")");
    return out.bytes;
}

/* The same without the axes that another list names. */
static const char *kept_extents(emitter *e, const ir_operand *extents, const ir_operand *dropped)
{
    const ir_expr *kept[PYPTO_MAX_DIMS];
    for (int32_t i = 0; i < extents->count; i++)
        kept[i] = extents->exprs[i];
    for (int32_t i = 0; i < dropped->count; i++) {
        int64_t axis = 0;
        if (ir_is_const_int(dropped->exprs[i], &axis))
            kept[axis] = ir_int(e->a, 0);
    }
    return part_extents(e, kept, extents->count);
}

static const ir_operand *named(const template *t, const char *name)
{
    int32_t index = op_param_index(t->op, name);
    return index < 0 || t->operands[index].kind == IR_OPERAND_NONE ? NULL : &t->operands[index];
}

/* The call that writes a tile or a tensor into a tensor. */
static const char *store_text(emitter *e, const template *t, const ir_var *source,
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
static const char *part_text(emitter *e, const template *t, const ir_operand *operand,
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
    template t = {op, operands, target, false};
    const char *chosen = choose_template(op, operands, target);
    const char *other = strchr(chosen, '\n');
    if (other != NULL)
        chosen = arena_strndup(e->a, chosen, other - chosen);
    return expand(e, &t, chosen);
}

/* The value of one element of an elementwise operation, as the element type of `target`. */
static const char *op_element_text(emitter *e, const op_def *op, const ir_operand *operands,
                                   const ir_var *target)
{
    static const char prefix[] = "elementwise: ";
    template t = {op, operands, target, true};
    const char *expression = op->emit + sizeof prefix - 1;
    const char *value =
        expand(e, &t, arena_strndup(e->a, expression, (int64_t)strcspn(expression, "\n")));
    if (strstr(op->emit, ".bits}") != NULL || strstr(op->emit, ".cast}") != NULL)
        return value;
    pypto_dtype dtype = target->type.dtype;
    if (dtype == PYPTO_FP16)
        return arena_printf(e->a, "pld_float_to_fp16(%s)", value);
    if (dtype == PYPTO_BF16)
        return arena_printf(e->a, "pld_float_to_bf16(%s)", value);
    bool widened = pypto_dtype_bytes(dtype) < 4 && strncmp(value, "pld_", 4) != 0;
    return widened ? arena_printf(e->a, "(%s)(%s)", c_element_type(dtype), value) : value;
}

/* ---- statements ---- */

/* The first tile among the operands, NULL when there is none. */
static const ir_var *first_tile(const ir_operand *operands, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (operands[i].kind == IR_OPERAND_VAR && operands[i].var->type.kind == IR_TILE)
            return operands[i].var;
    return NULL;
}

/* The tile whose valid extents the result has. */
static const ir_var *valid_source(const ir_stmt *s)
{
    return s->op_def->valid_param >= 0 ? s->operands[s->op_def->valid_param].var
                                       : first_tile(s->operands, s->operand_count);
}

typedef struct valid_search {
    const ir_var *tile;
    bool found;
} valid_search;

static void find_valid_reader(void *context, ir_stmt *s)
{
    valid_search *search = context;
    if (s->kind == IR_ASSIGN)
        search->found |= s->source == search->tile;
    if (s->kind == IR_DO && op_is_elementwise(s->op_def))
        search->found |= valid_source(s) == search->tile;
    else
        for (int32_t i = 0; i < s->operand_count; i++)
            search->found |=
                s->operands[i].kind == IR_OPERAND_VAR && s->operands[i].var == search->tile;
}

bool tile_valid_read(emitter *e, const ir_var *tile)
{
    valid_search search = {tile, false};
    ir_visit_stmts(&e->f->body, find_valid_reader, &search);
    return search.found;
}

void emit_valid_copy(emitter *e, const ir_stmt *s)
{
    const ir_var *target = s->target;
    const ir_var *source = s->kind == IR_ASSIGN ? s->source : valid_source(s);
    if (target == NULL || !target->type.ragged || source == NULL || source == target)
        return;
    text line = {.a = e->a};
    for (int32_t i = 0; i < target->type.ndim; i++) {
        bool reduced = !ir_expr_equal(target->type.shape[i], source->type.shape[i]);
        text_printf(&line, "%s%s[%d] = ", i > 0 ? ", " : "", tile_valid_name(e, target), i);
        if (reduced)
            text_add(&line, "1");
        else if (source->type.ragged)
            text_printf(&line, "%s[%d]", tile_valid_name(e, source), i);
        else
            text_add(&line, expr_int64(e, source->type.shape[i]));
    }
    emit_place(e, &s->span);
    emit_line(e, "%s;", line.bytes);
}

/* A copy of a tile onto itself: both names have one place. */
static bool copies_itself(const ir_stmt *s)
{
    const ir_var *source = first_tile(s->operands, s->operand_count);
    return strstr(s->op_def->emit, ".bits}") != NULL && source != NULL &&
           source->scratch_offset == s->target->scratch_offset;
}

/* Nothing but valid extents is copied. */
static bool keeps_elements(const ir_stmt *s)
{
    if (s->kind == IR_ASSIGN)
        return s->source != NULL && s->source->type.kind == IR_TILE &&
               s->source->scratch_offset == s->target->scratch_offset;
    return s->kind == IR_DO && op_is_elementwise(s->op_def) && copies_itself(s);
}

void mark_tile_uses(const ir_stmt *s, tile_uses *uses)
{
    const bool assigned = s->kind == IR_ASSIGN && s->source != NULL;
    const bool computed = s->kind == IR_DO && op_is_elementwise(s->op_def);
    const ir_var *source = assigned ? s->source : computed ? valid_source(s) : NULL;
    /* By emit_valid_copy() and its like, from one operand. */
    const bool copied = assigned || (computed && strchr(s->op_def->emit, '\n') == NULL);
    if (copied && source != NULL && source != s->target && s->target->type.ragged)
        uses->valid[source->id] = true;
    if (s->target != NULL) {
        uses->pointer[s->target->id] |= !keeps_elements(s);
        uses->valid[s->target->id] |=
            s->kind == IR_DO && strstr(s->op_def->emit, "{out.valid}") != NULL;
    }
    if (assigned)
        uses->pointer[source->id] |= !keeps_elements(s);
    for (int32_t i = 0; i < s->operand_count; i++) {
        if (s->operands[i].kind != IR_OPERAND_VAR)
            continue;
        uses->pointer[s->operands[i].var->id] |= !keeps_elements(s);
        uses->valid[s->operands[i].var->id] |= !copied;
    }
}

/* Whether the text asks for the row, with all columns of the last axis in it. */
static bool wants_rows(const char *format)
{
    static const char *const words[] = {".row}", ".bit}", "{row}", "{column}"};
    bool found = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        found |= strstr(format, words[i]) != NULL;
    return found;
}

/* Rows and columns by themselves, for operations that tell them apart. */
static void emit_broadcast(emitter *e, const ir_stmt *s)
{
    bool by_row = wants_rows(s->op_def->emit);
    const ir_var *out = s->target;
    int64_t first = 1;
    (void)ir_is_const_int(out->type.shape[by_row ? out->type.ndim - 1 : 0], &first);
    long long elems = (long long)ir_static_elems(&out->type);
    long long columns = by_row ? (long long)first : elems / (long long)first;
    const char *i = e->index;
    e->row = emit_free_name(e, "row");
    e->column = emit_free_name(e, "column");
    emit_place(e, &s->span);
    emit_line(e, "for (int64_t %s = 0; %s < %lld; ++%s)", e->row, e->row, elems / columns, e->row);
    e->index = arena_printf(e->a, "%s * %lld + %s", e->row, columns, e->column);
    e->depth++;
    emit_place(e, &s->span);
    emit_line(e, "for (int64_t %s = 0; %s < %lld; ++%s)", e->column, e->column, columns, e->column);
    e->depth++;
    emit_place(e, &s->span);
    emit_line(e, "%s[%s] = %s;", out->c_name, e->index,
              op_element_text(e, s->op_def, s->operands, out));
    e->depth -= 2;
    e->index = i;
}

/* A reshape of a ragged tile moves axes of extent 1 only; the others keep their extents. */
static void emit_reshaped_valid(emitter *e, const ir_stmt *s)
{
    const ir_var *target = s->target;
    const ir_var *source = first_tile(s->operands, s->operand_count);
    if (!target->type.ragged || target == source)
        return;
    text line = {.a = e->a};
    int32_t k = 0;
    for (int32_t i = 0; i < target->type.ndim; i++) {
        int64_t extent = 0;
        text_printf(&line, "%s%s[%d] = ", i > 0 ? ", " : "", tile_valid_name(e, target), i);
        if (ir_is_const_int(target->type.shape[i], &extent) && extent == 1) {
            text_add(&line, "1");
            continue;
        }
        while (k < source->type.ndim && ir_is_const_int(source->type.shape[k], &extent) &&
               extent == 1)
            k++;
        text_printf(&line, "%s[%d]", tile_valid_name(e, source), k++);
    }
    emit_place(e, &s->span);
    emit_line(e, "%s;", line.bytes);
}

/* The table's statement for the valid extents. */
static void emit_given_valid(emitter *e, const ir_stmt *s, const char *format)
{
    if (!s->target->type.ragged)
        return;
    template t = {s->op_def, s->operands, s->target, false};
    emit_place(e, &s->span);
    emit_line(e, "%s;", expand(e, &t, format));
}

/* Two elements of 4 bits: a byte of the result. */
static const char *pair_text(emitter *e, const ir_stmt *s)
{
    const char *i = e->index;
    e->index = arena_printf(e->a, "2 * %s", i);
    const char *low = op_element_text(e, s->op_def, s->operands, s->target);
    e->index = arena_printf(e->a, "2 * %s + 1", i);
    const char *high = op_element_text(e, s->op_def, s->operands, s->target);
    e->index = i;
    return arena_printf(e->a, "(uint8_t)(%s | %s << 4)", low, high);
}

/* Ragged tiles are computed as a whole, too: loads have cleared what is not valid, no operation on
 * elements traps, and one loop without a remainder is fast. */
static void emit_elementwise(emitter *e, const ir_stmt *s)
{
    const char *sets_valid = strchr(s->op_def->emit, '\n');
    if (s->op_def->id == OP_RESHAPE)
        emit_reshaped_valid(e, s);
    else if (sets_valid != NULL)
        emit_given_valid(e, s, sets_valid + 1);
    else
        emit_valid_copy(e, s);
    if (copies_itself(s))
        return;
    if (wants_rows(s->op_def->emit) || strstr(s->op_def->emit, ".column}") != NULL) {
        emit_broadcast(e, s);
        return;
    }
    const char *i = e->index;
    const bool packed = pypto_dtype_packed(s->target->type.dtype);
    const int64_t count =
        packed ? ir_static_bytes(&s->target->type) : ir_static_elems(&s->target->type);
    const char *head =
        arena_printf(e->a, "for (int64_t %s = 0; %s < %lld; ++%s)", i, i, (long long)count, i);
    const bool pairs = packed && strstr(s->op_def->emit, ".cast}") != NULL;
    const char *body = arena_printf(e->a, "%s[%s] = %s;", s->target->c_name, i,
                                    pairs ? pair_text(e, s)
                                          : op_element_text(e, s->op_def, s->operands, s->target));
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
    if (s->target != NULL && !ir_is_private(s->target->type.kind) && !through_operand) {
        emit_value(e, s, value);
        return;
    }
    emit_place(e, &s->span);
    emit_line(e, "%s;", value);
    if (s->target != NULL && !through_operand && strstr(s->op_def->emit, "{out.valid}") == NULL)
        emit_valid_copy(e, s);
    if (s->target == NULL || !through_operand)
        return;
    const ir_var *source = s->operands[s->op_def->result_param].var;
    if (source != s->target && e->vars[s->target->id].storage != STORAGE_NONE)
        emit_value(e, s, alias_text(e, s->target, source));
}
