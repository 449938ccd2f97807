/* Type rules of operations that compare tiles, choose between them, and move their elements: masks,
 * transposes, joins, padding, tiles filled by position. */
#include "ops/rules.h"

#include "ops/dtypes.h"

#include <math.h>

static const ir_operand *operand_named(op_call *call, const char *name)
{
    int32_t index = op_param_index(call->op, name);
    return index < 0 ? NULL : &call->operands[index];
}

/* ---- masks ---- */

/* Bytes that a row of so many bits takes. */
static int64_t mask_bytes(int64_t columns)
{
    return (columns + 255) / 256 * 32;
}

bool rule_cmp(op_call *call, ir_type *result)
{
    if (!rule_elementwise(call, result))
        return false;
    const int32_t last = result->ndim - 1;
    result->dtype = PYPTO_UINT8;
    result->mask = true;
    result->shape[last] = ir_int(call->program->a, mask_bytes(rule_extent(result, last)));
    return true;
}

static int64_t rows(const ir_type *type)
{
    int64_t columns = rule_extent(type, type->ndim - 1);
    return columns == 0 ? 0 : ir_static_elems(type) / columns;
}

/* pl.sel and pl.sels: the second operand gives the result's type. */
bool rule_select(op_call *call, ir_type *result)
{
    const ir_operand *mask = &call->operands[0];
    const ir_operand *chosen = &call->operands[1];
    const ir_type *bits = &mask->var->type;
    *result = chosen->var->type;
    const int64_t columns = rule_extent(result, result->ndim - 1);
    if (!ir_is_integer(bits->dtype) || pypto_dtype_bytes(bits->dtype) > 4)
        return rule_fail(call, DIAG_DTYPE_MISMATCH, mask, "pl.cmp makes a mask",
                         "a mask has integer elements of 8, 16 or 32 bits, not %s",
                         pypto_dtype_name(bits->dtype));
    if (rows(bits) < rows(result) ||
        rule_extent(bits, bits->ndim - 1) * dtype_bits(bits->dtype) < columns)
        return rule_fail(
            call, DIAG_SHAPE_MISMATCH, mask, "compare tiles of the shape to choose from",
            "the mask %s has too few bits for %s", ir_type_text(call->program->a, bits),
            ir_type_text(call->program->a, result));
    const ir_operand *other = operand_named(call, "rhs");
    if (other == NULL)
        return rule_match_scalar(call, &call->operands[op_param_index(call->op, "scalar")],
                                 result->dtype);
    return rule_match_tile(call, other, result);
}

/* ---- moved elements ---- */

static bool swap(op_call *call, ir_type *result, int64_t x, int64_t y)
{
    const int32_t ndim = result->ndim;
    x += x < 0 ? ndim : 0;
    y += y < 0 ? ndim : 0;
    if (x < 0 || y < 0 || x >= ndim || y >= ndim || x == y)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, NULL,
                         "name two different axes; negative ones count from the last",
                         "there are no such two axes in a tile of rank %d", ndim);
    const ir_expr *kept = result->shape[x];
    result->shape[x] = result->shape[y];
    result->shape[y] = kept;
    return true;
}

bool rule_transpose(op_call *call, ir_type *result)
{
    int64_t axes[2];
    *result = rule_operand(call, OPERAND_TILE)->var->type;
    for (int32_t i = 0; i < 2; i++)
        if (!ir_is_const_int(call->operands[i + 1].expr, &axes[i]))
            return rule_fail(call, DIAG_NOT_CONSTANT, &call->operands[i + 1],
                             "write the numbers of the axes: 0, 1", "%s must be a constant",
                             call->op->params[i + 1].name);
    result->ragged = false;
    return swap(call, result, axes[0], axes[1]);
}

bool rule_transpose_view(op_call *call, ir_type *result)
{
    *result = rule_operand(call, OPERAND_TILE)->var->type;
    return swap(call, result, -2, -1);
}

bool rule_concat(op_call *call, ir_type *result)
{
    const ir_type *x = &call->operands[0].var->type;
    const ir_operand *other = &call->operands[1];
    const ir_type *y = &other->var->type;
    if (!rule_match_dtype(call, other, x))
        return false;
    if (x->ndim != 2 || y->ndim != 2 || rule_extent(x, 0) != rule_extent(y, 0))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, other,
                         "[M, A] and [M, B] make [M, A + B]; pl.reshape changes the rank",
                         "cannot join %s and %s", ir_type_text(call->program->a, x),
                         ir_type_text(call->program->a, y));
    *result = *x;
    result->ragged = x->ragged || y->ragged;
    result->shape[1] = ir_int(call->program->a, rule_extent(x, 1) + rule_extent(y, 1));
    return true;
}

/* Whether a constant extent lies outside 0 to `limit`. */
static bool bad_extent(const ir_expr *e, int64_t limit)
{
    int64_t value = 0;
    return ir_is_const_int(e, &value) && (value < 0 || value > limit);
}

bool rule_set_valid(op_call *call, ir_type *result)
{
    const ir_operand *x = rule_operand(call, OPERAND_TILE);
    *result = x->var->type;
    if (result->ndim != 2)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, x, "pl.reshape changes the rank",
                         "needs a tile of rank 2, not %d", result->ndim);
    for (int32_t i = 0; i < 2; i++)
        if (bad_extent(call->operands[i + 1].expr, rule_extent(result, i)))
            return rule_fail(call, DIAG_SHAPE_MISMATCH, &call->operands[i + 1],
                             "say how much of the tile counts, at most all of it",
                             "%s must be from 0 to the tile's %lld", call->op->params[i + 1].name,
                             (long long)rule_extent(result, i));
    result->ragged = true;
    return true;
}

bool rule_pad_value(op_call *call, const ir_operand *pad)
{
    static const char hint[] = "pl.PadValue.zero, .max or .min, or 0, inf or -inf";
    bool fits = pad->kind == IR_OPERAND_NONE ||
                (pad->kind == IR_OPERAND_ENUM && pad->number >= 1 && pad->number <= 3);
    if (pad->kind == IR_OPERAND_EXPR) {
        const ir_expr *e = pad->expr;
        fits = (e->kind == IR_INT && e->integer == 0) ||
               (e->kind == IR_FLOAT && (e->real == 0 || isinf(e->real)));
    }
    return fits || rule_fail(call, DIAG_BAD_ARGUMENTS, pad, hint, "there is no such pad_value");
}

bool rule_fillpad(op_call *call, ir_type *result)
{
    const ir_operand *x = rule_operand(call, OPERAND_TILE);
    const ir_operand *shape = operand_named(call, "shape");
    *result = x->var->type;
    result->ragged = false;
    if (shape != NULL && shape->count != result->ndim)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shape, "write one entry per dimension",
                         "shape has %d entries, but the tile has rank %d", shape->count,
                         result->ndim);
    for (int32_t i = 0; shape != NULL && i < result->ndim; i++) {
        int64_t wanted = 0;
        (void)ir_is_const_int(shape->exprs[i], &wanted);
        if (wanted < rule_extent(result, i))
            return rule_fail(call, DIAG_SHAPE_MISMATCH, shape, "pl.slice makes tiles smaller",
                             "shape %d is %lld, less than the tile's %lld", i, (long long)wanted,
                             (long long)rule_extent(result, i));
        result->shape[i] = shape->exprs[i];
    }
    if (ir_static_elems(result) < 0)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shape, "use a smaller tile, in a loop",
                         "the tile is too large");
    return rule_numeric(call, x) && rule_pad_value(call, operand_named(call, "pad_value"));
}

bool rule_reinterpret(op_call *call, ir_type *result)
{
    const ir_operand *x = rule_operand(call, OPERAND_TILE);
    const ir_operand *shape = operand_named(call, "shape");
    const ir_type *type = &x->var->type;
    const pypto_dtype dtype = rule_operand(call, OPERAND_DTYPE)->dtype;
    *result = *type;
    result->dtype = dtype;
    if (!rule_numeric(call, x))
        return false;
    if (dtype == type->dtype || !dtype_is_number(dtype))
        return rule_fail(call, DIAG_DTYPE_MISMATCH, x, "name another integer or float type",
                         "a tile of %s cannot be seen as %s", pypto_dtype_name(type->dtype),
                         pypto_dtype_name(dtype));
    if (type->ragged)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, x, "pl.fillpad makes all of it valid",
                         "the tile is valid in part only");
    const int64_t from = pypto_dtype_bytes(type->dtype);
    const int64_t to = pypto_dtype_bytes(dtype);
    const int32_t last = type->ndim - 1;
    if (shape->kind == IR_OPERAND_LIST) {
        result->ndim = shape->count;
        for (int32_t i = 0; i < shape->count; i++)
            result->shape[i] = shape->exprs[i];
    } else if (rule_extent(type, last) * from % to == 0) {
        result->shape[last] = ir_int(call->program->a, rule_extent(type, last) * from / to);
    }
    if (result->ndim == 0 || ir_static_elems(result) < 0 ||
        ir_static_elems(result) * to != ir_static_elems(type) * from)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shape->kind == IR_OPERAND_LIST ? shape : x,
                         "give shape=[...], of as many bytes as the tile has",
                         "%lld elements of %s do not fill %s", (long long)ir_static_elems(type),
                         pypto_dtype_name(type->dtype), ir_type_text(call->program->a, result));
    return true;
}

/* ---- filled by position ---- */

static bool new_tile(op_call *call, ir_type *result)
{
    const ir_operand *shape = rule_operand(call, OPERAND_EXTENTS);
    *result = (ir_type){
        .kind = IR_TILE, .dtype = rule_operand(call, OPERAND_DTYPE)->dtype, .ndim = shape->count};
    for (int32_t i = 0; i < shape->count; i++)
        result->shape[i] = shape->exprs[i];
    return rule_check_size(call, shape, result);
}

bool rule_ci(op_call *call, ir_type *result)
{
    const ir_operand *shape = rule_operand(call, OPERAND_EXTENTS);
    ir_operand *start = rule_operand(call, OPERAND_SCALAR);
    if (!new_tile(call, result))
        return false;
    const pypto_dtype dtype = result->dtype;
    const int64_t bytes = pypto_dtype_bytes(dtype);
    if (!ir_is_integer(dtype) || dtype == PYPTO_INDEX || (bytes != 2 && bytes != 4))
        return rule_fail(call, DIAG_DTYPE_MISMATCH, NULL, "convert the tile: pl.cast(x, dtype)",
                         "counts in INT16, INT32, UINT16 or UINT32, not %s",
                         pypto_dtype_name(dtype));
    if (shape->count == 0 || ir_static_elems(result) != rule_extent(result, result->ndim - 1) ||
        ir_static_elems(result) == 1)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shape, "write [1, n] with n > 1",
                         "all axes but the last must be 1");
    return rule_match_scalar(call, start, dtype);
}

bool rule_tri(op_call *call, ir_type *result)
{
    const ir_operand *shape = rule_operand(call, OPERAND_EXTENTS);
    const ir_operand *valid = operand_named(call, "valid_shape");
    if (!new_tile(call, result))
        return false;
    if (result->ndim != 2)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shape, "write [rows, columns]",
                         "needs a shape of rank 2");
    if (!dtype_is_number(result->dtype))
        return rule_fail(call, DIAG_DTYPE_MISMATCH, NULL, "name an integer or float type",
                         "does not make tiles of %s", pypto_dtype_name(result->dtype));
    result->ragged = valid->kind == IR_OPERAND_LIST;
    if (!result->ragged)
        return true;
    for (int32_t i = 0; i < 2; i++)
        if (valid->count != 2 || bad_extent(valid->exprs[i], rule_extent(result, i)))
            return rule_fail(call, DIAG_SHAPE_MISMATCH, valid, "write [rows, columns]",
                             "valid_shape has two entries from 0 to the extents of the tile");
    return true;
}
