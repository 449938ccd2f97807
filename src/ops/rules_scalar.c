/* Type rules of scalars and of a rank's identity, and what a scalar beside a tile becomes. */
#include "ops/rules.h"

#include "ops/dtypes.h"

/* Types for storage only have tensors and tiles, but no scalars. */
static bool check_scalar_type(op_call *call, pypto_dtype dtype)
{
    const ir_operand *value = rule_operand(call, OPERAND_SCALAR);
    if (value->expr->dtype == PYPTO_TASK_ID)
        return rule_fail(call, DIAG_BAD_SCALAR, value,
                         "list them in deps=", "ids of tasks are no numbers");
    return !dtype_is_storage(dtype) ||
           rule_fail(call, DIAG_BAD_SCALAR, rule_operand(call, OPERAND_DTYPE),
                     "use pl.FP32; a tile of it can be converted", "there are no scalars of %s",
                     pypto_dtype_name(dtype));
}

bool rule_const(op_call *call, ir_type *result)
{
    const ir_operand *value = rule_operand(call, OPERAND_SCALAR);
    pypto_dtype dtype = rule_operand(call, OPERAND_DTYPE)->dtype;
    if (!check_scalar_type(call, dtype))
        return false;
    const ir_expr *e = value->expr;
    if (e->kind != IR_INT && e->kind != IR_FLOAT && e->kind != IR_BOOL)
        return rule_fail(call, DIAG_NOT_CONSTANT, value, "convert it: pl.cast(x, dtype)",
                         "value must be a numeric literal");
    bool fits = e->kind == IR_BOOL    ? dtype == PYPTO_BOOL
                : e->kind == IR_FLOAT ? ir_is_float(dtype)
                                      : ir_is_float(dtype) || dtype_holds_constant(dtype, e);
    if (!fits)
        return rule_fail(call, DIAG_BAD_SCALAR, value, "use a smaller number, or a wider type",
                         "the value does not fit %s", pypto_dtype_name(dtype));
    *result = ir_scalar_type(dtype);
    return true;
}

bool rule_cast(op_call *call, ir_type *result)
{
    const ir_operand *value = rule_operand(call, OPERAND_SCALAR);
    pypto_dtype dtype = rule_operand(call, OPERAND_DTYPE)->dtype;
    const ir_operand *mode = &call->operands[op_param_index(call->op, "mode")];
    if (!check_scalar_type(call, dtype))
        return false;
    if (mode->kind == IR_OPERAND_ENUM && mode->number != 2)
        return rule_fail(call, DIAG_BAD_ARGUMENTS, mode,
                         "a scalar is converted by dropping the fraction; leave mode out",
                         "mode is for tiles");
    if (dtype == PYPTO_BOOL && value->expr->dtype != PYPTO_BOOL)
        return rule_fail(call, DIAG_BAD_SCALAR, value, "compare it: x != 0",
                         "a number does not convert to bool");
    *result = ir_scalar_type(dtype);
    return true;
}

/* A tile converts in any direction but to its own type. */
bool rule_cast_tile(op_call *call, ir_type *result)
{
    const ir_operand *source = rule_operand(call, OPERAND_TILE);
    pypto_dtype dtype = rule_operand(call, OPERAND_DTYPE)->dtype;
    *result = source->var->type;
    if (result->mask)
        return rule_fail(call, DIAG_DTYPE_MISMATCH, source,
                         "pl.sel(mask, x, y) makes elements of it",
                         "a mask has no elements to convert");
    if (dtype == result->dtype)
        return rule_fail(call, DIAG_DTYPE_MISMATCH, source, "remove the cast",
                         "the tile is %s already", pypto_dtype_name(dtype));
    result->dtype = dtype;
    return rule_check_packed(call, source, result);
}

/* Elements that lie two in a byte: rows must begin at a byte. */
bool rule_check_packed(op_call *call, const ir_operand *at, const ir_type *type)
{
    int64_t last = 0;
    if (!pypto_dtype_packed(type->dtype) || type->ndim == 0 ||
        (ir_is_const_int(type->shape[type->ndim - 1], &last) && last % 2 == 0))
        return true;
    return rule_fail(call, DIAG_SHAPE_MISMATCH, at, "two elements lie in a byte",
                     "the last dimension of %s must be a constant, even number",
                     pypto_dtype_name(type->dtype));
}

/* pl.add(a, b) of two scalars; the front end computes what the operator does. */
bool rule_scalars(op_call *call, ir_type *result)
{
    *result = ir_scalar_type(call->operands[0].expr->dtype);
    return true;
}

bool rule_world_size(op_call *call, ir_type *result)
{
    (void)call;
    *result = ir_scalar_type(PYPTO_INT64);
    return true;
}

/* ---- identity ---- */

bool rule_comm(op_call *call, ir_type *result)
{
    (void)call;
    *result = (ir_type){.kind = IR_COMM};
    return true;
}

bool rule_rank(op_call *call, ir_type *result)
{
    (void)call;
    *result = ir_scalar_type(PYPTO_INT32);
    return true;
}

/* ---- scalars beside tiles ---- */

/* A scalar beside a tile computes in the tile's type. A bare literal takes that type when it fits; any
 * other scalar is converted within integers and within floats, never between them. */
bool rule_match_scalar(op_call *call, ir_operand *scalar, pypto_dtype dtype)
{
    arena *a = call->program->a;
    const ir_expr *e = scalar->expr;
    bool bare_int = e->kind == IR_INT && (e->dtype == PYPTO_INDEX || is_beyond_index(e));
    if (bare_int && ir_is_integer(dtype) && !dtype_holds_constant(dtype, e))
        return rule_fail(call, DIAG_BAD_SCALAR, scalar, "use a smaller number",
                         "%s does not fit elements of %s", constant_text(a, e),
                         pypto_dtype_name(dtype));
    if (!(bare_int && ir_is_float(dtype)) && !dtype_same_category(e->dtype, dtype))
        return rule_fail(
            call, DIAG_BAD_SCALAR, scalar,
            arena_printf(a, "convert it: pl.cast(x, pl.%s)", dtype_spelling(dtype)),
            "a scalar of type %s does not go with elements of %s: requires same numeric "
            "dtype category",
            pypto_dtype_name(e->dtype), pypto_dtype_name(dtype));
    scalar->expr = ir_convert(a, e, dtype, scalar->span);
    return true;
}
