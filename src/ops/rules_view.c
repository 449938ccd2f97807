/* The type rule of parts: x[i, a:b] in wrappers and kernels. */
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

bool rule_part(op_call *call, ir_type *result)
{
    const ir_type *source = &call->operands[0].var->type;
    if (call->operands[1].count != source->ndim || call->operands[2].count != source->ndim)
        return rule_fail(call, DIAG_BAD_INDEX, NULL, NULL, "one entry per dimension is needed");
    *result = (ir_type){.kind = source->kind, .dtype = source->dtype};
    for (int32_t d = 0; d < source->ndim; d++) {
        int64_t extent = 0;
        if (!check_dimension(call, source, d, &extent))
            return false;
        if (extent != 0)
            result->shape[result->ndim++] = call->operands[2].exprs[d];
    }
    return true;
}
