/* The type rules of parts, x[i, a:b] in wrappers and kernels, and of pl.slice there. */
#include "ops/rules.h"

#include "base/diag.h"

/* A part that surely leaves its tensor; the rest is checked when it runs. */
static bool check_dimension(op_call *call, const ir_type *source, int32_t d, int64_t *extent)
{
    int64_t offset = 0;
    int64_t limit = 0;
    *extent = -1;
    bool known = ir_is_const_int(call->operands[1].exprs[d], &offset);
    known = ir_is_const_int(call->operands[2].exprs[d], extent) && known;
    if (!known || !ir_is_const_int(source->shape[d], &limit))
        return true;
    int64_t taken = *extent == 0 ? 1 : *extent;
    if (offset >= 0 && offset <= limit && taken <= limit - offset)
        return true;
    int64_t last = 0;
    if (__builtin_add_overflow(offset, taken - 1, &last))
        last = INT64_MAX;
    diag_add(call->errors, DIAG_OUT_OF_BOUNDS, call->span, NULL,
             "index %lld to %lld is outside dimension %d, which has 0 to %lld", (long long)offset,
             (long long)last, d, (long long)limit - 1);
    return false;
}

static bool extent_is_zero(const ir_expr *e)
{
    int64_t extent = 1;
    return ir_is_const_int(e, &extent) && extent == 0;
}

/* Where two elements lie in a byte, one of them cannot be viewed. */
static bool whole_bytes(op_call *call, const ir_type *source, bool last_dropped)
{
    return !last_dropped || !pypto_dtype_packed(source->dtype) ||
           rule_fail(call, DIAG_BAD_INDEX, NULL, "load a tile and convert it: pl.cast(t, pl.FP32)",
                     "%s elements lie two in a byte: the last dimension cannot be left out",
                     pypto_dtype_name(source->dtype));
}

bool rule_part(op_call *call, ir_type *result)
{
    const ir_type *source = &call->operands[0].var->type;
    if (call->operands[1].count != source->ndim || call->operands[2].count != source->ndim)
        return rule_fail(call, DIAG_BAD_INDEX, NULL, "write one integer or slice per dimension",
                         "one entry per dimension is needed");
    *result = (ir_type){.kind = source->kind, .dtype = source->dtype, .ragged = source->ragged};
    for (int32_t d = 0; d < source->ndim; d++) {
        int64_t extent = 0;
        if (!check_dimension(call, source, d, &extent))
            return false;
        if (extent != 0)
            result->shape[result->ndim++] = call->operands[2].exprs[d];
    }
    return whole_bytes(call, source, extent_is_zero(call->operands[2].exprs[source->ndim - 1])) &&
           rule_check_packed(call, NULL, result);
}

bool rule_whole(op_call *call, ir_type *result)
{
    *result = call->operands[0].var->type;
    return true;
}

/* ---- pl.slice ---- */

/* The axes that drop_dims names, as bits; each must have the constant extent 1. */
static bool dropped_axes(op_call *call, const int64_t *sizes, int32_t ndim, uint32_t *mask)
{
    const ir_operand *dropped = rule_given(call, "drop_dims");
    *mask = 0;
    for (int32_t i = 0; dropped != NULL && i < dropped->count; i++) {
        int64_t dim = -1;
        if (!ir_is_const_int(dropped->exprs[i], &dim) || dim < 0 || dim >= ndim || sizes[dim] != 1)
            return rule_fail(call, DIAG_SHAPE_MISMATCH, dropped,
                             "leave it out of drop_dims, or give it the extent 1 in shape",
                             "drop_dims names axes of the constant extent 1, which %lld is not",
                             (long long)dim);
        *mask |= 1u << dim;
    }
    return true;
}

/* An axis that is dropped has one element, which counts. */
static bool dropped_count(op_call *call, const ir_operand *valid, uint32_t mask)
{
    for (int32_t i = 0; valid != NULL && i < valid->count; i++) {
        int64_t extent = 1;
        if ((mask >> i & 1) != 0 && ir_is_const_int(valid->exprs[i], &extent) && extent != 1)
            return rule_fail(call, DIAG_SHAPE_MISMATCH, valid, "keep the axis, or make it 1",
                             "valid_shape %d is %lld, but drop_dims leaves that axis out", i,
                             (long long)extent);
    }
    return true;
}

/* A view; extents may be known at run time only. What is asked for, valid_shape or all of it, must be there,
 * unless clamp=True takes what is. */
bool rule_view(op_call *call, ir_type *result)
{
    const ir_type *source = &call->operands[0].var->type;
    const ir_operand *shape = rule_operand(call, OPERAND_SHAPE);
    const ir_operand *valid = rule_given(call, "valid_shape");
    const ir_operand *clamp = rule_given(call, "clamp");
    const bool clamps = clamp != NULL && clamp->expr->integer != 0;
    int64_t sizes[PYPTO_MAX_DIMS];
    int64_t asked[PYPTO_MAX_DIMS];
    uint32_t mask;
    if (!rule_check_rank(call, OPERAND_SHAPE, source) ||
        !rule_check_rank(call, OPERAND_OFFSETS, source))
        return false;
    *result =
        (ir_type){.kind = source->kind, .dtype = source->dtype, .ragged = source->ragged || clamps};
    rule_extents(shape, sizes);
    rule_extents(shape, asked);
    if (!rule_check_valid(call, valid, source->ndim, asked, &result->ragged))
        return false;
    for (int32_t i = 0; clamps && i < source->ndim; i++)
        asked[i] = 0;
    if (!rule_check_box(call, "reaches past the end of", source,
                        rule_operand(call, OPERAND_OFFSETS), asked) ||
        !dropped_axes(call, sizes, source->ndim, &mask) || !dropped_count(call, valid, mask))
        return false;
    for (int32_t i = 0; i < source->ndim; i++)
        if ((mask >> i & 1) == 0)
            result->shape[result->ndim++] = shape->exprs[i];
    const ir_operand *pad = rule_given(call, "pad_value");
    if (!whole_bytes(call, source, (mask >> (source->ndim - 1) & 1) != 0) ||
        !rule_check_packed(call, shape, result))
        return false;
    return (result->ndim > 0 || rule_fail(call, DIAG_SHAPE_MISMATCH, NULL,
                                          "pl.read reads an element", "no axis is left")) &&
           (pad == NULL || rule_pad_value(call, pad));
}

/* The extents agree, or that of the source is 1. Of neither only a part counts: what would be repeated then? */
bool rule_expand_clone(op_call *call, ir_type *result)
{
    const ir_operand *source = &call->operands[0];
    const ir_type *from = &source->var->type;
    const ir_type *to = &call->operands[1].var->type;
    *result = *to;
    if (from->dtype != to->dtype)
        return rule_fail(call, DIAG_DTYPE_MISMATCH, source, "convert it: pl.cast(x, dtype)",
                         "a %s of dtype %s does not fill one of dtype %s", ir_kind_name(from->kind),
                         pypto_dtype_name(from->dtype), pypto_dtype_name(to->dtype));
    if (from->ragged || to->ragged)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, from->ragged ? source : &call->operands[1],
                         "pl.fillpad makes all of it valid",
                         "%s is valid in part only, which cannot be repeated",
                         from->ragged ? "src" : "target");
    bool fits = from->ndim == to->ndim;
    for (int32_t i = 0; fits && i < to->ndim; i++) {
        int64_t have = 0;
        int64_t wanted = 0;
        bool known = ir_is_const_int(from->shape[i], &have);
        fits = !known || have == 1 || !ir_is_const_int(to->shape[i], &wanted) || have == wanted;
    }
    return fits ||
           rule_fail(call, DIAG_SHAPE_MISMATCH, source,
                     "the extents are equal, or that of src is 1", "%s does not fill %s",
                     ir_type_text(call->program->a, from), ir_type_text(call->program->a, to));
}

/* A copy. Of the axes of a tile two are left at least. */
bool rule_tile_slice(op_call *call, ir_type *result)
{
    const ir_type *source = &rule_operand(call, OPERAND_TILE)->var->type;
    const ir_operand *shape = rule_operand(call, OPERAND_EXTENTS);
    int64_t sizes[PYPTO_MAX_DIMS];
    int64_t valid[PYPTO_MAX_DIMS];
    uint32_t mask;
    if (!rule_check_rank(call, OPERAND_EXTENTS, source) ||
        !rule_check_rank(call, OPERAND_OFFSETS, source))
        return false;
    rule_extents(shape, sizes);
    rule_extents(shape, valid);
    *result = *source;
    if (!rule_check_box(call, "reaches past the end of", source,
                        rule_operand(call, OPERAND_OFFSETS), sizes) ||
        !rule_check_valid(call, rule_given(call, "valid_shape"), source->ndim, valid,
                          &result->ragged) ||
        !dropped_axes(call, sizes, source->ndim, &mask))
        return false;
    if (mask != 0 && result->ragged)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, rule_given(call, "drop_dims"),
                         "pl.reshape drops axes, too",
                         "no axis can be dropped of a tile that is valid in part only");
    const int32_t left = source->ndim - __builtin_popcount(mask);
    result->ndim = 0;
    while (mask != 0 && left + result->ndim < 2)
        result->shape[result->ndim++] = ir_int(call->program->a, 1);
    for (int32_t i = 0; i < source->ndim; i++)
        if ((mask >> i & 1) == 0)
            result->shape[result->ndim++] = shape->exprs[i];
    const ir_operand *pad = rule_given(call, "pad_value");
    return pad == NULL || rule_pad_value(call, pad);
}
