/* Type rules of what a function makes for itself: tensors. */
#include "ops/rules.h"

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
