/* Type rules of what a function makes for itself: tensors, arrays with their elements, and printed lines. */
#include "ops/rules.h"

#include "base/text.h"
#include "ops/dtypes.h"

bool rule_create_tensor(op_call *call, ir_type *result)
{
    const ir_operand *shape = rule_operand(call, OPERAND_SHAPE);
    ir_operand *value = rule_operand(call, OPERAND_SCALAR);
    *result = (ir_type){.kind = IR_TENSOR, .dtype = rule_operand(call, OPERAND_DTYPE)->dtype};
    if (shape->count == 0)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shape, "give at least one dimension",
                         "shape must be non-empty");
    result->ndim = shape->count;
    for (int32_t d = 0; d < shape->count; d++)
        result->shape[d] = as_index(call->program->a, shape->exprs[d], shape->span);
    if (!rule_check_packed(call, shape, result))
        return false;
    const ir_expr *e = value->expr;
    if (e->kind != IR_INT && e->kind != IR_FLOAT && e->kind != IR_BOOL)
        return rule_fail(call, DIAG_NOT_CONSTANT, value, "store into the tensor in a kernel",
                         "init_value must be a constant");
    return e->kind == IR_BOOL || (e->kind == IR_INT && e->integer == 0) ||
           rule_match_scalar(call, value, result->dtype);
}

/* ---- arrays ---- */

bool rule_array_create(op_call *call, ir_type *result)
{
    const ir_operand *extent = rule_operand(call, OPERAND_INT);
    const ir_operand *dtype = rule_operand(call, OPERAND_DTYPE);
    int64_t count = 0;
    if (!ir_is_const_int(extent->expr, &count))
        return rule_fail(call, DIAG_NOT_CONSTANT, extent,
                         "use a number or a constant of the script",
                         "the extent of an Array must be a constant");
    if (count <= 0)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, extent, "make it at least 1",
                         "the extent of an Array must be positive, not %lld", (long long)count);
    if (ir_is_float(dtype->dtype))
        return rule_fail(call, DIAG_DTYPE_MISMATCH, dtype,
                         "use a tile: pl.create_tile([1, n], dtype), and t[0, i]",
                         "an Array has elements of an integer type, BOOL or TASK_ID, not %s",
                         pypto_dtype_name(dtype->dtype));
    *result = (ir_type){.kind = IR_ARRAY, .dtype = dtype->dtype, .ndim = 1};
    result->shape[0] = ir_int(call->program->a, count);
    return ir_static_elems(result) > 0 || rule_fail(call, DIAG_SHAPE_MISMATCH, extent,
                                                    "use fewer elements", "the Array is too large");
}

static bool check_array_index(op_call *call)
{
    const ir_operand *array = rule_operand(call, OPERAND_ARRAY);
    const ir_operand *index = rule_operand(call, OPERAND_INT);
    int64_t count = ir_static_elems(&array->var->type);
    int64_t i = 0;
    if (!ir_is_const_int(index->expr, &i) || (i >= 0 && i < count))
        return true;
    return rule_fail(call, DIAG_OUT_OF_BOUNDS, index, "indices count from 0",
                     "index %lld is outside array '%s', which has elements 0 to %lld", (long long)i,
                     array->var->name, (long long)count - 1);
}

bool rule_array_get(op_call *call, ir_type *result)
{
    *result = ir_scalar_type(rule_operand(call, OPERAND_ARRAY)->var->type.dtype);
    return check_array_index(call);
}

bool rule_array_set(op_call *call, ir_type *result)
{
    ir_operand *value = rule_operand(call, OPERAND_SCALAR);
    *result = rule_operand(call, OPERAND_ARRAY)->var->type;
    pypto_dtype have = value->expr->dtype;
    if (!dtype_same_category(have, result->dtype))
        return rule_fail(call, DIAG_BAD_SCALAR, value,
                         arena_printf(call->program->a, "convert it: pl.cast(x, pl.%s)",
                                      dtype_spelling(result->dtype)),
                         "%s %s does not go into an Array of %s",
                         text_article(pypto_dtype_name(have)), pypto_dtype_name(have),
                         pypto_dtype_name(result->dtype));
    return check_array_index(call) && rule_match_scalar(call, value, result->dtype);
}

/* ---- printing ---- */

/* What the front end has checked: a print's values and format. */
bool rule_no_result(op_call *call, ir_type *result)
{
    (void)call;
    *result = (ir_type){.kind = IR_NONE};
    return true;
}
