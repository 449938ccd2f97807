/* What {name.part} and {name.part:other} stand for in a template of the table: one row each. `name` and `other`
 * are operands of the operation. */
#include "codegen/emit_ops_internal.h"
#include <string.h>

/* A part in use. */
typedef struct part_use {
    const op_template *t;
    const ir_operand *x;     /* of which it is a part */
    const ir_operand *other; /* the operand behind the colon, NULL where there is none */
} part_use;

/* ---- elements ---- */

static const char *bits_part(emitter *e, const part_use *u)
{
    return arena_printf(e->a, "%s[%s]", u->x->var->c_name, e->index);
}

static const char *bit_part(emitter *e, const part_use *u)
{
    return bit_text(e, u->x->var);
}

static const char *cast_part(emitter *e, const part_use *u)
{
    return cast_text(e, u->t, u->x);
}

static const char *element_at(emitter *e, const ir_var *var, const char *index)
{
    return value_of_bits(e, var->type.dtype, arena_printf(e->a, "%s[%s]", var->c_name, index));
}

static const char *row_part(emitter *e, const part_use *u)
{
    return element_at(e, u->x->var, e->row);
}

static const char *column_part(emitter *e, const part_use *u)
{
    return element_at(e, u->x->var, e->column);
}

static const char *slot_part(emitter *e, const part_use *u)
{
    return array_slot(e, u->x->var, u->other);
}

static const char *at_part(emitter *e, const part_use *u)
{
    return value_of_bits(e, u->x->var->type.dtype, slot_part(e, u));
}

static const char *element_part(emitter *e, const part_use *u)
{
    return tile_element(e, u->x->var, u->other);
}

static const char *get_part(emitter *e, const part_use *u)
{
    return value_of_bits(e, u->x->var->type.dtype, element_part(e, u));
}

static const char *as_part(emitter *e, const part_use *u)
{
    return bits_of_value(e, u->other->var->type.dtype, expr_c(e, u->x->expr).text);
}

static const char *pad_part(emitter *e, const part_use *u)
{
    return pad_text(e, u->other->var->type.dtype, u->x);
}

static const char *pointer_part(emitter *e, const part_use *u)
{
    return pointer_text(e, u->x, u->other->var->type.dtype);
}

/* ---- element types ---- */

static const char *dtype_part(emitter *e, const part_use *u)
{
    (void)e;
    return c_dtype_name(u->x->var->type.dtype);
}

static const char *type_part(emitter *e, const part_use *u)
{
    (void)e;
    return element_suffix(u->x->var->type.dtype);
}

static const char *width_part(emitter *e, const part_use *u)
{
    return arena_printf(e->a, "%lld", (long long)pypto_dtype_bytes(u->x->var->type.dtype));
}

/* Functions that read one element give all integers as the widest. */
static const char *read_part(emitter *e, const part_use *u)
{
    const pypto_dtype dtype = u->x->var->type.dtype;
    if (ir_is_float(dtype))
        return "pld_read_float";
    return dtype == PYPTO_INT64 ? "pld_read_int"
                                : arena_printf(e->a, "(%s)pld_read_int", c_scalar_type(dtype));
}

static const char *write_part(emitter *e, const part_use *u)
{
    (void)e;
    return ir_is_float(u->x->var->type.dtype) ? "pld_write_float" : "pld_write_int";
}

/* ---- shapes ---- */

static const char *number_text(emitter *e, int64_t number)
{
    return arena_printf(e->a, "%lld", (long long)number);
}

static const char *extents_part(emitter *e, const part_use *u)
{
    return tile_extents(e, u->x->var, u->x->var->type.ndim, false);
}

static const char *extents_like_part(emitter *e, const part_use *u)
{
    return tile_extents(e, u->x->var, u->other->var->type.ndim, false);
}

static const char *valid_part(emitter *e, const part_use *u)
{
    return valid_text(e, u->x->var);
}

static const char *valid_like_part(emitter *e, const part_use *u)
{
    return tile_extents(e, u->x->var, u->other->var->type.ndim, true);
}

static const char *valid_extent(emitter *e, const ir_var *tile, int32_t dim)
{
    return tile->type.ragged ? arena_printf(e->a, "%s[%d]", tile_valid_name(e, tile), dim)
                             : expr_int64(e, tile->type.shape[dim]);
}

static const char *first_part(emitter *e, const part_use *u)
{
    return valid_extent(e, u->x->var, 0);
}

static const char *last_part(emitter *e, const part_use *u)
{
    return valid_extent(e, u->x->var, u->x->var->type.ndim - 1);
}

static const char *rest_part(emitter *e, const part_use *u)
{
    int64_t first = 1;
    (void)ir_is_const_int(u->x->var->type.shape[0], &first);
    return number_text(e, ir_static_elems(&u->x->var->type) / first);
}

static const char *rows_part(emitter *e, const part_use *u)
{
    return number_text(e, tile_rows(u->x->var));
}

static const char *columns_part(emitter *e, const part_use *u)
{
    return expr_int64(e, u->x->var->type.shape[u->x->var->type.ndim - 1]);
}

static const char *ndim_part(emitter *e, const part_use *u)
{
    return number_text(e, u->x->var->type.ndim);
}

static const char *bytes_part(emitter *e, const part_use *u)
{
    return number_text(e, ir_static_bytes(&u->x->var->type));
}

static const char *count_part(emitter *e, const part_use *u)
{
    return number_text(e, u->x->count);
}

static const char *part_part(emitter *e, const part_use *u)
{
    return part_extents(e, u->x->exprs, u->x->count);
}

static const char *kept_part(emitter *e, const part_use *u)
{
    return kept_extents(e, u->x, u->other);
}

/* ---- the call that writes a tile or a tensor into a tensor ---- */

static const ir_operand *named(const op_template *t, const char *name)
{
    const int32_t index = op_param_index(t->op, name);
    return index < 0 || t->operands[index].kind == IR_OPERAND_NONE ? NULL : &t->operands[index];
}

static const char *store_part(emitter *e, const part_use *u)
{
    const ir_var *source = u->x->var;
    const ir_var *target = u->other->var;
    const ir_operand *shapes = named(u->t, "shapes");
    const ir_operand *atomic = named(u->t, "atomic");
    const ir_operand *offsets = named(u->t, "offsets");
    const ir_operand *at = offsets != NULL ? offsets : named(u->t, "offset");
    const bool adds = atomic != NULL && atomic->number != 0;
    const char *place = list_text(e, "PLD_AT", at->exprs, at->count);
    const char *from = handle_text(e, source);
    const char *to = handle_text(e, target);
    if (source->type.kind != IR_TILE)
        return arena_printf(e->a, "pld_assemble%s(core, %s, %s, %s)", adds ? "_add" : "", to, from,
                            place);
    const char *extents = shapes != NULL ? list_text(e, "PLD_EXTENTS", shapes->exprs, shapes->count)
                                         : tile_extents(e, source, target->type.ndim, false);
    if (!adds && !source->type.ragged)
        return arena_printf(e->a, "pld_store(core, %s, %s, %s, %s)", from, to, place, extents);
    return arena_printf(
        e->a, "pld_store_%s(core, %s, %s, %s, %s, %s)", adds ? "add" : "part", from, to, place,
        extents, source->type.ragged ? tile_extents(e, source, target->type.ndim, true) : extents);
}

/* ---- the table ---- */

/* A colon behind the name: the part needs another operand. */
static const struct {
    const char *name;
    const char *(*text)(emitter *e, const part_use *u);
} parts[] = {
    {"as:", as_part},
    {"at:", at_part},
    {"bit", bit_part},
    {"bits", bits_part},
    {"bytes", bytes_part},
    {"cast", cast_part},
    {"column", column_part},
    {"columns", columns_part},
    {"count", count_part},
    {"dtype", dtype_part},
    {"element:", element_part},
    {"extents", extents_part},
    {"extents:", extents_like_part},
    {"first", first_part},
    {"get:", get_part},
    {"kept:", kept_part},
    {"last", last_part},
    {"ndim", ndim_part},
    {"pad:", pad_part},
    {"part", part_part},
    {"pointer:", pointer_part},
    {"read", read_part},
    {"rest", rest_part},
    {"row", row_part},
    {"rows", rows_part},
    {"slot:", slot_part},
    {"store:", store_part},
    {"type", type_part},
    {"valid", valid_part},
    {"valid:", valid_like_part},
    {"width", width_part},
    {"write", write_part},
};

const char *part_text(emitter *e, const op_template *t, const ir_operand *operand, const char *part)
{
    const char *colon = strchr(part, ':');
    const size_t length = colon != NULL ? (size_t)(colon + 1 - part) : strlen(part);
    const int32_t other = colon != NULL ? op_param_index(t->op, colon + 1) : -1;
    if (colon != NULL && other < 0)
        return NULL;
    const part_use use = {t, operand, colon != NULL ? &t->operands[other] : NULL};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strlen(parts[i].name) == length && strncmp(parts[i].name, part, length) == 0)
            return parts[i].text(e, &use);
    return NULL;
}
