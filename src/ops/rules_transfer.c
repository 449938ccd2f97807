/* Type rules of transfers and signals. What the constants prove to be outside a window is refused here;
 * the rest the runtime checks at each transfer. */
#include "ops/rules.h"

#include "ops/dtypes.h"

/* Sums of BOOL have no meaning; every other element type has atomic adds. */
static bool check_atomic(op_call *call, pypto_dtype dtype)
{
    const ir_operand *atomic = rule_given(call, "atomic");
    if (atomic == NULL || atomic->number == 0 || dtype_is_number(dtype))
        return true;
    return rule_fail(
        call, DIAG_DTYPE_MISMATCH, atomic, "use an integer type",
        "atomic=AtomicType.Add requires an fp32/bf16/fp16/int32/int16/int8 dtype (hardware "
        "atomic-add dtypes) or another element type that adds, not %s",
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
            extents[to->ndim - from->ndim + i] = known && !from->ragged ? extent : 0;
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

/* The form for parts of tensors. */
bool rule_remote_store_tensor(op_call *call, ir_type *result)
{
    const ir_operand *source = &call->operands[0];
    if (source->var->type.kind == IR_WINDOW)
        return rule_fail(call, DIAG_KIND_MISMATCH, source, "write pld.tensor.put",
                         "src is a DistributedTensor, which pld.tensor.put transfers");
    return rule_remote_store(call, result);
}

/* ---- put and get ---- */

static bool check_shapes(op_call *call, const ir_type *dst, const ir_type *src)
{
    for (int32_t i = 0; i < dst->ndim; i++) {
        int64_t to = 0;
        int64_t from = 0;
        bool known = ir_is_const_int(dst->shape[i], &to) && ir_is_const_int(src->shape[i], &from);
        if (known && to != from)
            return rule_fail(
                call, DIAG_SHAPE_MISMATCH, NULL,
                "transfer a part: dst_offsets=, src_offsets= and shape=",
                "dst and src must have the same static shape: dimension %d is %lld and "
                "%lld",
                i, (long long)to, (long long)from);
        if (!known && !ir_expr_equal(dst->shape[i], src->shape[i]))
            return rule_fail(call, DIAG_SHAPE_MISMATCH, NULL,
                             "transfer a part: dst_offsets=, src_offsets= and shape=",
                             "dst and src must have the same shape: dimension %d differs", i);
    }
    return true;
}

/* One side of a sub-region; `role` is "dst" or "src". */
static bool check_part(op_call *call, const char *role, const ir_type *memory,
                       const ir_operand *offsets, const ir_operand *shape)
{
    if (offsets->count != memory->ndim || shape->count != memory->ndim)
        return rule_fail(call, DIAG_SHAPE_MISMATCH,
                         offsets->count != memory->ndim ? offsets : shape,
                         "write one entry per dimension",
                         "%s_offsets rank is %d and shape rank %d, but %s has rank %d", role,
                         offsets->count, shape->count, role, memory->ndim);
    for (int32_t i = 0; i < memory->ndim; i++) {
        int64_t offset = 0;
        int64_t extent = 0;
        int64_t limit = 0;
        if (ir_is_const_int(offsets->exprs[i], &offset) && offset < 0)
            return rule_fail(call, DIAG_OUT_OF_BOUNDS, offsets, "offsets count from 0",
                             "%s_offsets dimension %d must be non-negative, not %lld", role, i,
                             (long long)offset);
        if (!ir_is_const_int(shape->exprs[i], &extent))
            extent = 0;
        if (ir_is_const_int(memory->shape[i], &limit) &&
            (extent > limit || offset > limit - extent))
            return rule_fail(
                call, DIAG_OUT_OF_BOUNDS, offsets,
                "offsets and shape count elements; make the part smaller",
                "%s subregion dimension %d exceeds %s shape: offset %lld, extent %lld, "
                "but it has %lld",
                role, i, role, (long long)offset, (long long)extent, (long long)limit);
    }
    return true;
}

/* 0 or more, known at compile time. */
static bool check_chunk(op_call *call, const char *name, int64_t *chunk)
{
    const ir_operand *operand = rule_given(call, name);
    *chunk = 0;
    if (operand == NULL)
        return true;
    if (operand->expr->kind != IR_INT || !ir_is_const_int(operand->expr, chunk))
        return rule_fail(call, DIAG_NOT_CONSTANT, operand, "write a number",
                         "%s must be a static int", name);
    return *chunk >= 0 || rule_fail(call, DIAG_SHAPE_MISMATCH, operand, "0 means: no limit",
                                    "%s must be non-negative, not %lld", name, (long long)*chunk);
}

/* They bound a device's staging memory and change nothing here: only what is given is checked. */
static bool check_chunks(op_call *call)
{
    const ir_operand *pipeline = rule_given(call, "pipeline");
    int64_t rows = 0;
    int64_t columns = 0;
    if (!check_chunk(call, "chunk_rows", &rows) || !check_chunk(call, "chunk_cols", &columns))
        return false;
    return pipeline == NULL || pipeline->expr->integer == 0 || (rows != 0 && columns != 0) ||
           rule_fail(call, DIAG_BAD_ARGUMENTS, pipeline, "give both, or leave pipeline= out",
                     "pipeline=True requires both chunk_rows>0 and chunk_cols>0");
}

static bool check_transfer(op_call *call, const ir_type *dst, const ir_type *src)
{
    const ir_operand *dst_offsets = rule_given(call, "dst_offsets");
    const ir_operand *src_offsets = rule_given(call, "src_offsets");
    const ir_operand *shape = rule_given(call, "shape");
    if (dst->dtype != src->dtype)
        return rule_fail(call, DIAG_DTYPE_MISMATCH, NULL, "declare both with one dtype",
                         "dst and src must have the same element type, not %s and %s",
                         pypto_dtype_name(dst->dtype), pypto_dtype_name(src->dtype));
    if (dst->ndim != src->ndim)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, NULL, "view one of them under another shape",
                         "dst and src must have the same rank, not %d and %d", dst->ndim,
                         src->ndim);
    if (!rule_check_peer(call))
        return false;
    int given = (dst_offsets != NULL) + (src_offsets != NULL) + (shape != NULL);
    if (given == 0)
        return check_shapes(call, dst, src);
    if (given < 3)
        return rule_fail(call, DIAG_BAD_ARGUMENTS, NULL, "give all three of them, or none",
                         "dst_offsets, src_offsets and shape must be provided together");
    return check_part(call, "dst", dst, dst_offsets, shape) &&
           check_part(call, "src", src, src_offsets, shape);
}

bool rule_put(op_call *call, ir_type *result)
{
    const ir_type *dst = &call->operands[0].var->type;
    const ir_type *src = &call->operands[2].var->type;
    *result = (ir_type){.kind = IR_NONE};
    return check_transfer(call, dst, src) && check_chunks(call) && check_atomic(call, dst->dtype);
}

bool rule_get(op_call *call, ir_type *result)
{
    *result = (ir_type){.kind = IR_NONE};
    return check_transfer(call, &call->operands[0].var->type, &call->operands[2].var->type) &&
           check_chunks(call);
}

/* ---- the same with staging tiles ---- */

enum { DST, PEER, SRC, STAGE, STAGE2, DST_OFFSETS, SRC_OFFSETS, SHAPE };

/* A region may follow one staging tile: then its lists are one place further. */
static bool move_region(op_call *call)
{
    ir_operand *operands = call->operands;
    if (operands[STAGE2].kind != IR_OPERAND_LIST)
        return true;
    if (operands[SHAPE].kind != IR_OPERAND_NONE)
        return rule_fail(call, DIAG_KIND_MISMATCH, &operands[STAGE2],
                         "leave it out, or pass a tile", "stage2 expected Tile, got list");
    for (int i = SHAPE; i > STAGE2; i--)
        operands[i] = operands[i - 1];
    operands[STAGE2].kind = IR_OPERAND_NONE;
    int64_t extent = 0;
    for (int32_t i = 0; i < operands[SHAPE].count; i++) {
        if (ir_is_const_int(operands[SHAPE].exprs[i], &extent) && extent <= 0)
            return rule_fail(call, DIAG_SHAPE_MISMATCH, &operands[SHAPE], "make it at least 1",
                             "shape %d is %lld: all dimensions must be positive", i,
                             (long long)extent);
    }
    return true;
}

/* Rows or columns of the transfer seen as a matrix; -1 when they are known at run time only. */
static int64_t transfer_extent(const ir_expr *const *extents, int32_t ndim, bool rows)
{
    int64_t total = 1;
    for (int32_t i = rows ? 0 : ndim - 1; i < (rows ? ndim - 1 : ndim); i++) {
        int64_t extent = 0;
        if (!ir_is_const_int(extents[i], &extent) || __builtin_mul_overflow(total, extent, &total))
            return -1;
    }
    return total;
}

static bool check_stage(op_call *call, int index, pypto_dtype dtype, const ir_expr *const *extents,
                        int32_t ndim)
{
    const ir_operand *operand = &call->operands[index];
    const char *name = call->op->params[index].name;
    if (operand->kind == IR_OPERAND_NONE)
        return true;
    const ir_type *stage = &operand->var->type;
    if (stage->ndim != 2)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, operand,
                         "create it with pl.create_tile([rows, columns], dtype)",
                         "%s must be a 2D VEC staging tile, but its rank is %d", name, stage->ndim);
    if (stage->dtype != dtype)
        return rule_fail(call, DIAG_DTYPE_MISMATCH, operand,
                         "create it with the element type of dst",
                         "%s dtype must match dst dtype: %s is not %s", name,
                         pypto_dtype_name(stage->dtype), pypto_dtype_name(dtype));
    for (int i = 0; i < 2; i++) {
        int64_t have = 0;
        int64_t most = transfer_extent(extents, ndim, i == 0);
        if (ir_is_const_int(stage->shape[i], &have) && most >= 0 && have > most)
            return rule_fail(call, DIAG_SHAPE_MISMATCH, operand, "create a smaller one",
                             "%s must fit within the transfer: it has %lld %s, the transfer %lld",
                             name, (long long)have, i == 0 ? "rows" : "columns", (long long)most);
    }
    return true;
}

static bool check_staged(op_call *call)
{
    const ir_operand *operands = call->operands;
    const ir_type *dst = &operands[DST].var->type;
    const ir_type *src = &operands[SRC].var->type;
    if (!move_region(call) || !check_transfer(call, dst, src))
        return false;
    bool part = operands[SHAPE].kind == IR_OPERAND_LIST;
    const ir_expr *const *extents = part ? operands[SHAPE].exprs : dst->shape;
    if (!check_stage(call, STAGE, dst->dtype, extents, dst->ndim) ||
        !check_stage(call, STAGE2, dst->dtype, extents, dst->ndim))
        return false;
    const ir_operand *other = &operands[STAGE2];
    for (int i = 0; i < 2 && other->kind == IR_OPERAND_VAR; i++) {
        if (!ir_expr_equal(operands[STAGE].var->type.shape[i], other->var->type.shape[i]))
            return rule_fail(call, DIAG_SHAPE_MISMATCH, other, "create both with one shape",
                             "ping/pong staging tiles must have identical shape");
    }
    return true;
}

bool rule_put_staged(op_call *call, ir_type *result)
{
    *result = (ir_type){.kind = IR_NONE};
    return check_staged(call) && check_atomic(call, call->operands[DST].var->type.dtype);
}

bool rule_get_staged(op_call *call, ir_type *result)
{
    *result = (ir_type){.kind = IR_NONE};
    return check_staged(call);
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

/* Cells only grow towards what is waited for, so that no moment can be missed. */
bool rule_defer_wait(op_call *call, ir_type *result)
{
    const ir_operand *signal = rule_operand(call, OPERAND_WINDOW);
    const ir_operand *expected = rule_given(call, "expected");
    int64_t number = 0;
    *result = (ir_type){.kind = IR_NONE};
    if (rule_given(call, "cmp")->number != 1)
        return rule_fail(call, DIAG_BAD_DEFERRED_WAIT, rule_given(call, "cmp"),
                         "write cmp=pld.WaitCmp.Ge, or leave it out", "only supports WaitCmp.Ge");
    if (signal->var->type.dtype != PYPTO_INT32)
        return rule_fail(call, DIAG_BAD_DEFERRED_WAIT, signal, "view the window as pl.INT32",
                         "signal dtype must be INT32, not %s",
                         pypto_dtype_name(signal->var->type.dtype));
    if (ir_is_const_int(expected->expr, &number) && (number < 0 || number > INT32_MAX))
        return rule_fail(call, DIAG_BAD_DEFERRED_WAIT, expected,
                         "a cell is an INT32; wait for a number that one can reach",
                         "expected must be in [0, INT32_MAX], not %lld", (long long)number);
    return check_cell(call);
}
