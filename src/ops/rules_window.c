/* Type rules of window buffers and their views, on the host.
 *
 * An allocation leaves here with one operand, its size in bytes, whichever way it was written. A view
 * that is provably larger than its buffer is refused: the classic mistake is a size in elements. */
#include "ops/rules.h"

#include "ops/dtypes.h"

/* The product of a shape and an element size as one INDEX expression; NULL when a constant one does not
 * fit 64 bits. */
static const ir_expr *byte_size(arena *a, const ir_expr *const *shape, int32_t ndim,
                                pypto_dtype dtype, pypto_span span)
{
    /* Of elements of 4 bits the last extent is a constant, and even. */
    int64_t constant = pypto_dtype_bytes(dtype);
    const bool packed = pypto_dtype_packed(dtype);
    const ir_expr *rest = NULL;
    for (int32_t i = 0; i < ndim; i++) {
        int64_t extent = 0;
        if (ir_is_const_int(shape[i], &extent)) {
            extent = packed && i == ndim - 1 ? extent / 2 : extent;
            if (__builtin_mul_overflow(constant, extent, &constant))
                return NULL;
            continue;
        }
        const ir_expr *dim = as_index(a, shape[i], span);
        rest = rest == NULL ? dim : ir_binary(a, IR_MUL, rest, dim, PYPTO_INDEX, span);
    }
    const ir_expr *factor = ir_int(a, constant);
    return rest == NULL ? factor : ir_binary(a, IR_MUL, rest, factor, PYPTO_INDEX, span);
}

static bool check_shape(op_call *call, const ir_operand *shape)
{
    if (shape->count == 0)
        return rule_fail(call, DIAG_BAD_WINDOW_ALLOCATION, shape, "give at least one dimension",
                         "shape must be non-empty");
    for (int32_t i = 0; i < shape->count; i++) {
        int64_t extent = 0;
        if (ir_is_const_int(shape->exprs[i], &extent) && extent <= 0)
            return rule_fail(call, DIAG_BAD_WINDOW_ALLOCATION, shape, "make it at least 1",
                             "all dimensions must be positive, but dimension %d is %lld", i,
                             (long long)extent);
    }
    return true;
}

bool rule_alloc_window(op_call *call, ir_type *result)
{
    ir_operand *size = rule_operand(call, OPERAND_INT_OR_SHAPE);
    ir_operand *dtype = rule_operand(call, OPERAND_DTYPE);
    arena *a = call->program->a;
    *result = (ir_type){.kind = IR_BUFFER};
    if (size->kind == IR_OPERAND_LIST) {
        if (dtype->kind == IR_OPERAND_NONE)
            return rule_fail(call, DIAG_BAD_WINDOW_ALLOCATION, size,
                             "write pld.alloc_window_buffer(shape, dtype=pl.FP32)",
                             "a shape requires dtype=");
        if (!check_shape(call, size))
            return false;
        ir_type type = {.dtype = dtype->dtype, .ndim = size->count};
        for (int32_t i = 0; i < size->count; i++)
            type.shape[i] = size->exprs[i];
        if (!rule_check_packed(call, size, &type))
            return false;
        const ir_expr *bytes = byte_size(a, size->exprs, size->count, dtype->dtype, size->span);
        if (bytes == NULL)
            return rule_fail(call, DIAG_BAD_WINDOW_ALLOCATION, size, "use a smaller shape",
                             "the size does not fit 64 bits");
        *size = (ir_operand){.kind = IR_OPERAND_EXPR, .expr = bytes, .span = size->span};
        *dtype = (ir_operand){.kind = IR_OPERAND_NONE, .span = dtype->span};
        return true;
    }
    if (dtype->kind != IR_OPERAND_NONE)
        return rule_fail(call, DIAG_BAD_WINDOW_ALLOCATION, dtype,
                         "write the shape in brackets, or the size in bytes without dtype=",
                         "dtype= is only valid when the first argument is a shape");
    int64_t bytes = 0;
    if (ir_is_const_int(size->expr, &bytes) && bytes <= 0)
        return rule_fail(call, DIAG_BAD_WINDOW_ALLOCATION, size,
                         "give the number of bytes of the buffer on each device",
                         "the size must be positive, not %lld", (long long)bytes);
    return true;
}

/* The statement that defines a buffer. */
static const ir_stmt *find_allocation(const ir_block *block, const ir_var *buffer)
{
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *stmt = block->items[i];
        if (stmt->kind == IR_DO && stmt->target == buffer)
            return stmt;
        const ir_stmt *inner = find_allocation(&stmt->body, buffer);
        if (inner == NULL)
            inner = find_allocation(&stmt->orelse, buffer);
        if (inner != NULL)
            return inner;
    }
    return NULL;
}

bool rule_window(op_call *call, ir_type *result)
{
    const ir_operand *buffer = rule_operand(call, OPERAND_BUFFER);
    const ir_operand *shape = rule_operand(call, OPERAND_SHAPE);
    arena *a = call->program->a;
    *result = (ir_type){.kind = IR_WINDOW, .dtype = rule_operand(call, OPERAND_DTYPE)->dtype};
    result->ndim = shape->count;
    if (shape->count == 0)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shape, "give at least one dimension",
                         "shape must be non-empty");
    for (int32_t i = 0; i < shape->count; i++)
        result->shape[i] = as_index(a, shape->exprs[i], shape->span);
    if (!rule_check_packed(call, shape, result))
        return false;

    const ir_expr *view = byte_size(a, result->shape, result->ndim, result->dtype, shape->span);
    const ir_stmt *allocation = find_allocation(&call->function->body, buffer->var);
    int64_t view_bytes = 0;
    int64_t buffer_bytes = 0;
    if (view == NULL)
        return rule_fail(call, DIAG_WINDOW_TOO_LARGE, shape, "use a smaller shape",
                         "the view does not fit 64 bits");
    if (allocation != NULL && ir_is_const_int(view, &view_bytes) &&
        ir_is_const_int(allocation->operands[0].expr, &buffer_bytes) && view_bytes > buffer_bytes)
        return rule_fail(call, DIAG_WINDOW_TOO_LARGE, shape,
                         "pld.alloc_window_buffer(size) takes bytes; the shape form is "
                         "pld.alloc_window_buffer(shape, dtype=...)",
                         "a view of %lld bytes is larger than its buffer '%s' of %lld bytes",
                         (long long)view_bytes, buffer->var->name, (long long)buffer_bytes);
    return true;
}
