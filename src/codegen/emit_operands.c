/* Operands of operations as C text: handles, lists of extents and offsets, members of enumerations. */
#include "codegen/emit_ops_internal.h"

const char *handle_text(emitter *e, const ir_var *var)
{
    return e->vars[var->id].storage == STORAGE_VALUE ? arena_printf(e->a, "&%s", var->c_name)
                                                     : var->c_name;
}

const char *list_text(emitter *e, const char *macro, const ir_expr *const *exprs, int32_t count)
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

const char *operand_text(emitter *e, const op_param *param, const ir_operand *operand)
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

/* ---- extents ---- */

const char *tile_extents(emitter *e, const ir_var *tile, int32_t ndim, bool valid)
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

const char *valid_text(emitter *e, const ir_var *tile)
{
    return tile->type.ragged ? tile_valid_name(e, tile)
                             : tile_extents(e, tile, tile->type.ndim, false);
}

const char *part_extents(emitter *e, const ir_expr *const *extents, int32_t count)
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

const char *kept_extents(emitter *e, const ir_operand *extents, const ir_operand *dropped)
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

long long tile_rows(const ir_var *tile)
{
    int64_t columns = 1;
    (void)ir_is_const_int(tile->type.shape[tile->type.ndim - 1], &columns);
    return (long long)(ir_static_elems(&tile->type) / columns);
}

const char *device_set_text(emitter *e, const ir_device_set *set)
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
