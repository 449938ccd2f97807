/* Type rules of operations that relate the axes of tiles: reductions, broadcasts along an axis, matrix
 * products, reshapes. */
#include "ops/rules.h"

/* ---- reductions ---- */

static bool reduce(op_call *call, ir_type *result, int32_t axis)
{
    const ir_operand *tile = rule_operand(call, OPERAND_TILE);
    *result = tile->var->type;
    result->accumulator = false;
    result->shape[axis < 0 ? result->ndim - 1 : axis] = ir_int(call->program->a, 1);
    return rule_numeric(call, tile);
}

/* The last axis becomes 1. */
bool rule_row(op_call *call, ir_type *result)
{
    return reduce(call, result, -1);
}

/* The first axis becomes 1. */
bool rule_col(op_call *call, ir_type *result)
{
    return reduce(call, result, 0);
}

static bool as_index(ir_type *result)
{
    result->dtype = PYPTO_INT32;
    return true;
}

bool rule_row_index(op_call *call, ir_type *result)
{
    return rule_row(call, result) && as_index(result);
}

bool rule_col_index(op_call *call, ir_type *result)
{
    return rule_col(call, result) && as_index(result);
}

/* ---- broadcasts ---- */

/* `vector` has x's shape, except that axis `axis` is 1. */
static bool expand(op_call *call, ir_type *result, int32_t axis, bool floats)
{
    const ir_operand *x = &call->operands[0];
    const ir_operand *vector = &call->operands[1];
    *result = x->var->type;
    result->accumulator = false;
    if (axis < 0)
        axis = result->ndim - 1;
    const ir_type *type = &vector->var->type;
    bool fits = type->ndim == result->ndim;
    for (int32_t i = 0; fits && i < result->ndim; i++)
        fits = rule_extent(type, i) == (i == axis ? 1 : rule_extent(result, i));
    if (!fits)
        return rule_fail(
            call, DIAG_SHAPE_MISMATCH, vector,
            "reductions along that axis make such a tile; pl.reshape(x, shape) turns one around",
            "shape mismatch between %s and %s: axis %d of the second must be 1, the "
            "others equal",
            ir_type_text(call->program->a, result), ir_type_text(call->program->a, type), axis);
    if (!rule_match_dtype(call, vector, result))
        return false;
    if (floats && !ir_is_float(type->dtype))
        return rule_fail(call, DIAG_DTYPE_MISMATCH, x, "convert the tile: pl.cast(x, pl.FP32)",
                         "needs floating-point elements, not %s", pypto_dtype_name(type->dtype));
    return rule_numeric(call, x);
}

bool rule_row_expand(op_call *call, ir_type *result)
{
    return expand(call, result, -1, false);
}

bool rule_row_expand_float(op_call *call, ir_type *result)
{
    return expand(call, result, -1, true);
}

bool rule_col_expand(op_call *call, ir_type *result)
{
    return expand(call, result, 0, false);
}

bool rule_col_expand_float(op_call *call, ir_type *result)
{
    return expand(call, result, 0, true);
}

/* ---- matrix products ---- */

static bool product(op_call *call, const ir_operand *lhs, const ir_operand *rhs, ir_type *result)
{
    const ir_type *a = &lhs->var->type;
    const ir_type *b = &rhs->var->type;
    if (a->ndim != 2 || b->ndim != 2 || rule_extent(a, 1) != rule_extent(b, 0))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, rhs, "[M, K] times [K, N] gives [M, N]",
                         "cannot multiply %s by %s", ir_type_text(call->program->a, a),
                         ir_type_text(call->program->a, b));
    if (!rule_match_dtype(call, rhs, a))
        return false;
    if (!ir_is_float(a->dtype) && a->dtype != PYPTO_INT8)
        return rule_fail(call, DIAG_DTYPE_MISMATCH, lhs, "convert the tiles: pl.cast(x, pl.FP32)",
                         "takes FP32, FP16, BF16 or INT8 tiles, not %s",
                         pypto_dtype_name(a->dtype));
    *result = (ir_type){.kind = IR_TILE,
                        .dtype = ir_is_float(a->dtype) ? PYPTO_FP32 : PYPTO_INT32,
                        .ndim = 2,
                        .ragged = a->ragged || b->ragged,
                        .accumulator = true};
    result->shape[0] = a->shape[0];
    result->shape[1] = b->shape[1];
    return true;
}

bool rule_matmul(op_call *call, ir_type *result)
{
    return product(call, &call->operands[0], &call->operands[1], result);
}

bool rule_matmul_acc(op_call *call, ir_type *result)
{
    const ir_operand *acc = &call->operands[0];
    const ir_type *type = &acc->var->type;
    if (!product(call, &call->operands[1], &call->operands[2], result))
        return false;
    if (type->dtype != result->dtype || !ir_shape_equal(type, result))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, acc,
                         "begin with what pl.matmul of the two gives",
                         "the accumulator is %s, not %s", ir_type_text(call->program->a, type),
                         ir_type_text(call->program->a, result));
    *result = *type;
    const ir_operand *start = &call->operands[op_param_index(call->op, "init_cond")];
    if (start->kind == IR_OPERAND_EXPR && start->expr->dtype != PYPTO_BOOL)
        return rule_fail(call, DIAG_KIND_MISMATCH, start, "write a comparison: init_cond=(k == 0)",
                         "init_cond must be a BOOL scalar, not %s",
                         pypto_dtype_name(start->expr->dtype));
    return true;
}

/* ---- shapes ---- */

/* Whether two shapes differ by axes of extent 1 only. */
static bool same_but_units(const ir_type *x, const ir_type *y)
{
    int32_t i = 0;
    int32_t k = 0;
    for (;;) {
        while (i < x->ndim && rule_extent(x, i) == 1)
            i++;
        while (k < y->ndim && rule_extent(y, k) == 1)
            k++;
        if (i == x->ndim || k == y->ndim)
            return i == x->ndim && k == y->ndim;
        if (rule_extent(x, i++) != rule_extent(y, k++))
            return false;
    }
}

/* The same elements in row-major order. The valid part of a ragged tile must stay a box. */
bool rule_reshape(op_call *call, ir_type *result)
{
    const ir_operand *tile = rule_operand(call, OPERAND_TILE);
    const ir_operand *shape = rule_operand(call, OPERAND_EXTENTS);
    const ir_type *type = &tile->var->type;
    *result = (ir_type){
        .kind = IR_TILE, .dtype = type->dtype, .ndim = shape->count, .ragged = type->ragged};
    for (int32_t i = 0; i < shape->count; i++)
        result->shape[i] = shape->exprs[i];
    if (shape->count == 0 || ir_static_elems(result) != ir_static_elems(type))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shape, ELEMENTS_HINT,
                         "%s has %lld elements, the shape asks for %lld",
                         ir_type_text(call->program->a, type), (long long)ir_static_elems(type),
                         (long long)ir_static_elems(result));
    if (!rule_check_packed(call, shape, result))
        return false;
    if (type->ragged && !same_but_units(type, result))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shape,
                         "only axes of extent 1 may come or go where a tile is partly valid",
                         "the valid part of %s would not be a box",
                         ir_type_text(call->program->a, type));
    return true;
}
