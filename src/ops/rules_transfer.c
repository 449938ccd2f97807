/* Type rules of transfers and signals. What the constants prove to be outside a window is refused here;
 * the rest the runtime checks at each transfer. */
#include "ops/rules.h"

#include "ops/dtypes.h"

/* Sums of BOOL have no meaning; every other element type has atomic adds. */
static bool check_atomic(op_call *call, pypto_dtype dtype)
{
    const ir_operand *atomic = rule_given(call, "atomic");
    if (atomic == NULL || atomic->number == 0 || dtype != PYPTO_BOOL)
        return true;
    return rule_fail(call, DIAG_DTYPE_MISMATCH, atomic, "use an integer type",
                     "atomic=AtomicType.Add requires an element type that adds, such as "
                     "fp32/bf16/fp16/int32/int16/int8 dtype: not %s",
                     pypto_dtype_name(dtype));
}

/* ---- remote_store ---- */

bool rule_remote_store(op_call *call, ir_type *result)
{
    const ir_operand *source = &call->operands[0];
    const ir_operand *target = rule_operand(call, OPERAND_WINDOW);
    const ir_type *from = &source->var->type;
    const ir_type *to = &target->var->type;
    *result = (ir_type){.kind = IR_NONE};
    if (to->ndim < 2)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, target,
                         "view the window with two dimensions: [1, n]",
                         "target rank must be >= 2, but it is %d", to->ndim);
    if (from->ndim < 2)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, source, "make it [1, n]",
                         "src must be at least 2-D, but its rank is %d", from->ndim);
    int64_t extents[PYPTO_MAX_DIMS];
    for (int32_t i = 0; i < to->ndim; i++)
        extents[i] = i < to->ndim - 2 ? 1 : 0;
    for (int32_t i = 0; i < from->ndim; i++) {
        int64_t extent = 0;
        bool known = ir_is_const_int(from->shape[i], &extent);
        if (i >= from->ndim - 2)
            extents[to->ndim - from->ndim + i] = from->ragged ? 0 : extent;
        else if (!known || extent != 1)
            return rule_fail(call, DIAG_SHAPE_MISMATCH, source, "push its parts in a loop",
                             "src leading dimension %d must be 1: the two innermost dimensions are "
                             "pushed",
                             i);
    }
    if (from->dtype != to->dtype)
        return rule_fail(call, DIAG_DTYPE_MISMATCH, source, "convert it first: pl.cast(x, dtype)",
                         "the dtype of src, %s, is not that of the target, %s",
                         pypto_dtype_name(from->dtype), pypto_dtype_name(to->dtype));
    return rule_check_rank(call, OPERAND_OFFSETS, to) && rule_check_peer(call) &&
           check_atomic(call, to->dtype) &&
           rule_check_box(call, "push exceeds the peer's target region in", to,
                          rule_operand(call, OPERAND_OFFSETS), extents);
}

/* ---- signals ---- */

/* Signals count in INT32 cells; the operation addresses exactly one. */
static bool check_cell(op_call *call)
{
    const ir_operand *signal = rule_operand(call, OPERAND_WINDOW);
    const ir_type *type = &signal->var->type;
    if (type->dtype != PYPTO_INT32)
        return rule_fail(call, DIAG_DTYPE_MISMATCH, signal,
                         "declare it as pld.DistributedTensor[[...], pl.INT32]",
                         "signal dtype must be INT32, not %s", pypto_dtype_name(type->dtype));
    int64_t one_cell[PYPTO_MAX_DIMS];
    for (int32_t i = 0; i < PYPTO_MAX_DIMS; i++)
        one_cell[i] = 1;
    return rule_check_rank(call, OPERAND_OFFSETS, type) && rule_check_peer(call) &&
           rule_check_box(call, "reaches past the end of", type,
                          rule_operand(call, OPERAND_OFFSETS), one_cell);
}

static bool check_int32(op_call *call, const char *param)
{
    const ir_operand *operand = &call->operands[op_param_index(call->op, param)];
    int64_t value = 0;
    if (ir_is_const_int(operand->expr, &value) && !dtype_holds(PYPTO_INT32, value))
        return rule_fail(call, DIAG_BAD_SCALAR, operand, "signal cells are INT32",
                         "%s %lld does not fit int32", param, (long long)value);
    return true;
}

bool rule_notify(op_call *call, ir_type *result)
{
    *result = (ir_type){.kind = IR_NONE};
    return check_cell(call) && check_int32(call, "value");
}

bool rule_wait(op_call *call, ir_type *result)
{
    *result = (ir_type){.kind = IR_NONE};
    return check_cell(call) && check_int32(call, "expected");
}
