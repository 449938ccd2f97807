/* Type rules of new tiles and of arithmetic by element. */
#include "ops/rules.h"

#include "base/text.h"
#include "ops/dtypes.h"

#include <string.h>

/* ---- new tiles ---- */

bool rule_check_size(op_call *call, const ir_operand *shape, const ir_type *tile)
{
    if (shape->count == 0)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shape, "write [n], or [1, n]",
                         "a tile has at least one dimension");
    return ir_static_elems(tile) >= 0 ||
           rule_fail(call, DIAG_SHAPE_MISMATCH, shape, "use a smaller tile, in a loop",
                     "the tile is too large");
}

/* pl.create_tile and pl.tile.full: the value, if there is one, becomes an element. */
bool rule_create_tile(op_call *call, ir_type *result)
{
    const ir_operand *shape = rule_operand(call, OPERAND_EXTENTS);
    pypto_dtype dtype = rule_operand(call, OPERAND_DTYPE)->dtype;
    ir_operand *value = rule_operand(call, OPERAND_SCALAR);
    const ir_operand *space = rule_given(call, "target_memory");
    *result = (ir_type){.kind = IR_TILE, .dtype = dtype, .ndim = shape->count};
    result->accumulator = space != NULL && space->number == enum_find("MemorySpace", "Acc")->value;
    for (int32_t i = 0; i < shape->count; i++)
        result->shape[i] = shape->exprs[i];
    if (!rule_check_size(call, shape, result) || !rule_check_packed(call, shape, result))
        return false;
    if (value != NULL && value->expr->kind != IR_INT && value->expr->kind != IR_FLOAT &&
        value->expr->kind != IR_BOOL)
        return rule_fail(
            call, DIAG_NOT_CONSTANT, value,
            "pl.expands(tile, x) fills a tile with a number that is known when it runs",
            "value must be a constant");
    return value == NULL || rule_match_scalar(call, value, dtype);
}

bool rule_move(op_call *call, ir_type *result)
{
    *result = rule_operand(call, OPERAND_TILE)->var->type;
    result->accumulator = false;
    return true;
}

/* ---- elementwise ---- */

bool rule_numeric(op_call *call, const ir_operand *tile)
{
    const pypto_dtype dtype = tile->var->type.dtype;
    return dtype_is_number(dtype) || rule_fail(call, DIAG_DTYPE_MISMATCH, tile,
                                               "convert the tile to numbers: pl.cast(x, dtype)",
                                               "does not accept %s tiles", pypto_dtype_name(dtype));
}

int64_t rule_extent(const ir_type *type, int32_t dim)
{
    int64_t value = 0;
    (void)ir_is_const_int(type->shape[dim], &value);
    return value;
}

bool rule_match_dtype(op_call *call, const ir_operand *other, const ir_type *first)
{
    const pypto_dtype dtype = other->var->type.dtype;
    return dtype == first->dtype ||
           rule_fail(call, DIAG_DTYPE_MISMATCH, other, "both tiles need the same element type",
                     "tiles of dtype %s and %s", pypto_dtype_name(first->dtype),
                     pypto_dtype_name(dtype));
}

bool rule_match_tile(op_call *call, const ir_operand *other, const ir_type *first)
{
    const ir_type *type = &other->var->type;
    if (!rule_match_dtype(call, other, first))
        return false;
    if (!ir_shape_equal(type, first))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, other, "both tiles need the same shape",
                         "shape mismatch between %s and %s", ir_type_text(call->program->a, first),
                         ir_type_text(call->program->a, type));
    return true;
}

/* All tile operands agree with the first one, which gives the result's type; scalars adapt to it. */
bool rule_elementwise(op_call *call, ir_type *result)
{
    const ir_type *first = &rule_operand(call, OPERAND_TILE)->var->type;
    if (!rule_numeric(call, rule_operand(call, OPERAND_TILE)))
        return false;
    for (int32_t i = 0; i < call->op->param_count; i++) {
        ir_operand *operand = &call->operands[i];
        op_operand kind = call->op->params[i].kind;
        if (strcmp(call->op->params[i].name, "tmp") == 0) /* a device's scratch */
            continue;
        if (operand->kind == IR_OPERAND_VAR && !rule_match_tile(call, operand, first))
            return false;
        if (operand->kind == IR_OPERAND_EXPR && kind != OPERAND_BOOL &&
            !rule_match_scalar(call, operand, first->dtype))
            return false;
    }
    *result = *first;
    result->accumulator = false;
    return true;
}

static bool check_class(op_call *call, bool fits, const char *wanted, const char *hint)
{
    const ir_operand *first = rule_operand(call, OPERAND_TILE);
    return fits || rule_fail(call, DIAG_DTYPE_MISMATCH, first, hint, "needs %s elements, not %s",
                             wanted, pypto_dtype_name(first->var->type.dtype));
}

bool rule_elementwise_float(op_call *call, ir_type *result)
{
    return check_class(call, ir_is_float(rule_operand(call, OPERAND_TILE)->var->type.dtype),
                       "floating-point", "convert the tile: pl.cast(x, pl.FP32)") &&
           rule_elementwise(call, result);
}

/* What makes integers of the elements; of floats, their bits, too. */
static const char *to_integers(op_call *call, pypto_dtype dtype)
{
    const int64_t bits = 8 * pypto_dtype_bytes(dtype);
    return ir_is_float(dtype) ? arena_printf(call->program->a,
                                             "convert the tile: pl.cast(x, pl.INT32); its bits are "
                                             "pl.reinterpret_view(x, pl.INT%lld)",
                                             (long long)bits)
                              : "convert the tile: pl.cast(x, pl.INT32)";
}

bool rule_elementwise_int(op_call *call, ir_type *result)
{
    const pypto_dtype dtype = rule_operand(call, OPERAND_TILE)->var->type.dtype;
    return check_class(call, ir_is_integer(dtype), "integer", to_integers(call, dtype)) &&
           rule_elementwise(call, result);
}
