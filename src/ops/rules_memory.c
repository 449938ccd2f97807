/* Type rules of operations on tensors and windows: views, loads and stores.
 *
 * They share one question, rule_check_box(): does the box of `extents` at `offsets` lie inside the memory?
 * What the constants prove to be outside on every run is refused here, at compile time; everything else
 * the runtime checks at each access. The arithmetic is written so that it cannot overflow. */
#include "ops/rules.h"

#include "ops/dtypes.h"

bool rule_check_rank(op_call *call, op_operand kind, const ir_type *memory)
{
    const ir_operand *list = rule_operand(call, kind);
    if (list->count == memory->ndim)
        return true;
    int32_t index = (int32_t)(list - call->operands);
    return rule_fail(call, DIAG_SHAPE_MISMATCH, list, "write one entry per dimension",
                     "%s rank is %d, but the %s has rank %d: the length of the list must match",
                     call->op->params[index].name, list->count, ir_kind_name(memory->kind),
                     memory->ndim);
}

bool rule_check_box(op_call *call, const char *does, const ir_type *memory,
                    const ir_operand *offsets, const int64_t *extents)
{
    for (int32_t i = 0; i < memory->ndim; i++) {
        int64_t offset = 0;
        int64_t limit = 0;
        bool offset_known = ir_is_const_int(offsets->exprs[i], &offset);
        bool limit_known = ir_is_const_int(memory->shape[i], &limit);
        if (i == memory->ndim - 1 && offset % 2 != 0 && pypto_dtype_packed(memory->dtype))
            return rule_fail(call, DIAG_OUT_OF_BOUNDS, offsets, "two elements lie in a byte",
                             "offset %lld of dimension %d of %s must be even", (long long)offset, i,
                             pypto_dtype_name(memory->dtype));
        if (offset_known && offset < 0)
            return rule_fail(call, DIAG_OUT_OF_BOUNDS, offsets, "offsets count from 0",
                             "offset %lld of dimension %d must be non-negative", (long long)offset,
                             i);
        if (limit_known && (extents[i] > limit || (offset > limit - extents[i] && extents[i] > 0)))
            return rule_fail(call, DIAG_OUT_OF_BOUNDS, offsets,
                             op_param_index(call->op, "valid_shape") >= 0
                                 ? "offsets and shapes count elements; make the box smaller, or "
                                   "give a smaller valid_shape="
                                 : "offsets and shapes count elements; make the box smaller",
                             "%s dimension %d: offset %s%lld, extent %lld, but the "
                             "%s has %lld",
                             does, i, offset_known ? "" : "at least ", (long long)offset,
                             (long long)extents[i], ir_kind_name(memory->kind), (long long)limit);
    }
    return true;
}

static ir_operand *memory_operand(op_call *call)
{
    ir_operand *memory = rule_operand(call, OPERAND_MEMORY);
    return memory != NULL ? memory : rule_operand(call, OPERAND_WINDOW);
}

bool rule_check_peer(op_call *call)
{
    int32_t index = op_param_index(call->op, "peer");
    int64_t peer = 0;
    if (index >= 0 && ir_is_const_int(call->operands[index].expr, &peer) &&
        (peer < 0 || peer >= PYPTO_MAX_RANKS))
        return rule_fail(call, DIAG_OUT_OF_BOUNDS, &call->operands[index],
                         "a peer is a rank of the domain: 0 <= peer < pld.nranks(ctx)",
                         "peer %lld does not exist", (long long)peer);
    return true;
}

/* ---- loads and stores ---- */

const ir_operand *rule_given(op_call *call, const char *name)
{
    int32_t index = op_param_index(call->op, name);
    if (index < 0 || call->operands[index].kind == IR_OPERAND_NONE)
        return NULL;
    return &call->operands[index];
}

bool rule_check_valid(op_call *call, const ir_operand *valid, int32_t ndim, int64_t *sizes,
                      bool *ragged)
{
    const bool tile = call->op->result[0] == 't' && call->op->result[1] == 'i';
    const char *what = tile ? "tile" : "view";
    if (valid == NULL)
        return true;
    if (valid->count != ndim)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, valid, "write one entry per dimension",
                         "valid_shape rank is %d, but the %s has rank %d", valid->count, what,
                         ndim);
    for (int32_t i = 0; i < ndim; i++) {
        int64_t extent = 0;
        bool known = ir_is_const_int(valid->exprs[i], &extent);
        if (known && extent < 0)
            return rule_fail(call, DIAG_SHAPE_MISMATCH, valid, "make it at least 0: max(n, 0)",
                             "valid_shape %d is provably negative: %lld", i, (long long)extent);
        if (known && sizes[i] > 0 && extent > sizes[i])
            return rule_fail(call, DIAG_SHAPE_MISMATCH, valid,
                             "make it no more than the extent, or that larger",
                             "valid_shape %d is %lld: it must be from 0 to the %s's %lld", i,
                             (long long)extent, what, (long long)sizes[i]);
        *ragged |= !known || extent != sizes[i];
        sizes[i] = extent;
    }
    return true;
}

/* Loads fill tiles that vector and matrix operations start from. */
static bool check_memory_space(op_call *call)
{
    const ir_operand *space = rule_given(call, "target_memory");
    if (space == NULL || space->number == 1 || space->number == 2)
        return true;
    const char *name = enum_member_name("MemorySpace", space->number);
    return rule_fail(call, DIAG_SHAPE_MISMATCH, space, "leave it out, or write pl.Mem.Vec",
                     "target_memory must be Vec or Mat, not %s", name);
}

/* pl.load and pld.tile.remote_load: a box becomes a tile. */
bool rule_load(op_call *call, ir_type *result)
{
    const ir_type *memory = &memory_operand(call)->var->type;
    const ir_operand *offsets = rule_operand(call, OPERAND_OFFSETS);
    const ir_operand *extents = rule_operand(call, OPERAND_EXTENTS);
    const ir_operand *clamp = rule_given(call, "clamp");
    bool clamps = clamp != NULL && clamp->expr->integer != 0;
    int64_t sizes[PYPTO_MAX_DIMS];
    if (!rule_check_rank(call, OPERAND_OFFSETS, memory) ||
        !rule_check_rank(call, OPERAND_EXTENTS, memory))
        return false;
    rule_extents(extents, sizes);
    *result = (ir_type){.kind = IR_TILE,
                        .dtype = memory->dtype,
                        .ndim = memory->ndim,
                        .ragged = clamps || memory->ragged};
    for (int32_t i = 0; i < memory->ndim; i++)
        result->shape[i] = ir_int(call->program->a, sizes[i]);
    if (ir_static_elems(result) < 0)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, extents, "load smaller pieces in a loop",
                         "the tile is too large");
    if (!rule_check_packed(call, extents, result) ||
        !rule_check_valid(call, rule_given(call, "valid_shape"), memory->ndim, sizes,
                          &result->ragged))
        return false;
    for (int32_t i = 0; clamps && i < memory->ndim; i++)
        sizes[i] = 0;
    return check_memory_space(call) && rule_check_peer(call) &&
           rule_check_box(call, "reads past the end of", memory, offsets, sizes);
}

/* Sums of BOOL have no meaning; every other number has atomic adds. */
static bool check_atomic(op_call *call, pypto_dtype dtype)
{
    const ir_operand *atomic = rule_given(call, "atomic");
    return atomic == NULL || atomic->number == 0 || dtype_is_number(dtype) ||
           rule_fail(call, DIAG_DTYPE_MISMATCH, atomic, "use an integer or float type",
                     "atomic=AtomicType.Add does not add up %s", pypto_dtype_name(dtype));
}

/* The shape that a tile is stored in: its own behind leading ones, or `shapes`. */
static bool stored_shape(op_call *call, const ir_type *tile, const ir_type *memory,
                         int64_t *extents)
{
    const ir_operand *shapes = rule_given(call, "shapes");
    int64_t elems = 1;
    for (int32_t i = 0; i < memory->ndim; i++) {
        int32_t from = i - (memory->ndim - tile->ndim);
        extents[i] = tile->ragged ? 0 : 1;
        if (shapes != NULL && i < shapes->count)
            (void)ir_is_const_int(shapes->exprs[i], &extents[i]);
        else if (from >= 0 && !tile->ragged)
            (void)ir_is_const_int(tile->shape[from], &extents[i]);
        elems = elems > INT64_MAX / (extents[i] + 1) ? -1 : elems * extents[i];
    }
    if (shapes == NULL)
        return true;
    if (tile->ragged)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shapes, "pl.fillpad makes all of it valid",
                         "a tile that is valid in part only has no other shape");
    if (shapes->count == memory->ndim && elems == ir_static_elems(tile))
        return true;
    return rule_fail(
        call, DIAG_SHAPE_MISMATCH, shapes, "leave shapes out to store the tile as it is",
        "shapes must have an entry per dimension of the %s and the %lld elements of the "
        "tile",
        ir_kind_name(memory->kind), (long long)ir_static_elems(tile));
}

bool rule_store(op_call *call, ir_type *result)
{
    const ir_operand *source = rule_operand(call, OPERAND_TILE);
    const ir_operand *target = memory_operand(call);
    const ir_type *tile = &source->var->type;
    const ir_type *memory = &target->var->type;
    int64_t extents[PYPTO_MAX_DIMS];
    if (tile->dtype != memory->dtype)
        return rule_fail(call, DIAG_DTYPE_MISMATCH, source,
                         "convert the tile, or declare the target with its dtype",
                         "a tile of dtype %s does not go into a %s of dtype %s",
                         pypto_dtype_name(tile->dtype), ir_kind_name(memory->kind),
                         pypto_dtype_name(memory->dtype));
    if (!rule_check_rank(call, OPERAND_OFFSETS, memory))
        return false;
    if (tile->ndim > memory->ndim && rule_given(call, "shapes") == NULL)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, source,
                         "store into a tensor of the tile's rank",
                         "a tile of rank %d does not go into a %s of rank %d", tile->ndim,
                         ir_kind_name(memory->kind), memory->ndim);
    *result = *memory;
    return check_atomic(call, memory->dtype) && stored_shape(call, tile, memory, extents) &&
           rule_check_box(call, "writes past the end of", memory,
                          rule_operand(call, OPERAND_OFFSETS), extents);
}

/* ---- elements ---- */

/* The tensor, window or tile that an element is read from or written to. */
static const ir_type *element_source(op_call *call)
{
    return &call->operands[0].var->type;
}

static bool check_element_type(op_call *call, const ir_type *type)
{
    return !dtype_is_storage(type->dtype) ||
           rule_fail(call, DIAG_DTYPE_MISMATCH, NULL,
                     "load a tile and convert it: pl.cast(t, pl.FP32)",
                     "there are no scalars of %s", pypto_dtype_name(type->dtype));
}

static bool check_element(op_call *call, const char *does)
{
    const ir_type *type = element_source(call);
    const ir_operand *indices = rule_operand(call, OPERAND_INDICES);
    int64_t one[PYPTO_MAX_DIMS];
    for (int32_t i = 0; i < PYPTO_MAX_DIMS; i++)
        one[i] = 1;
    return check_element_type(call, type) && rule_check_rank(call, OPERAND_INDICES, type) &&
           rule_check_box(call, does, type, indices, one);
}

bool rule_read(op_call *call, ir_type *result)
{
    *result = ir_scalar_type(element_source(call)->dtype);
    return check_element(call, "reads past the end of");
}

/* The value becomes an element: within integers and within floats, a literal if it fits. */
bool rule_write(op_call *call, ir_type *result)
{
    *result = *element_source(call);
    return check_element(call, "writes past the end of") &&
           rule_match_scalar(call, rule_operand(call, OPERAND_SCALAR), result->dtype);
}

/* ---- views ---- */

bool rule_subscript(op_call *call, ir_type *result)
{
    const ir_type *source = &rule_operand(call, OPERAND_TENSOR)->var->type;
    const ir_operand *indices = rule_operand(call, OPERAND_OFFSETS);
    if (indices->count > source->ndim) {
        diag_add(call->errors, DIAG_BAD_INDEX, indices->span, "leave the last indices out",
                 "%d indices but the tensor is %dD", indices->count, source->ndim);
        return false;
    }
    if (indices->count == source->ndim) {
        diag_add(call->errors, DIAG_BAD_INDEX, indices->span,
                 "give fewer indices than dimensions; elements are read in kernels",
                 "%d indices on a %dD tensor read an element, which a host function cannot do",
                 indices->count, source->ndim);
        return false;
    }
    for (int32_t i = 0; i < indices->count; i++) {
        int64_t index = 0;
        int64_t limit = 0;
        if (!ir_is_const_int(indices->exprs[i], &index))
            continue;
        bool limit_known = ir_is_const_int(source->shape[i], &limit);
        if (index >= 0 && !(limit_known && index >= limit))
            continue;
        const char *extent = limit_known
                                 ? arena_printf(call->program->a, "0 to %lld", (long long)limit - 1)
                                 : "0 and up";
        diag_add(call->errors, DIAG_OUT_OF_BOUNDS, indices->span, "indices count from 0",
                 "index %lld is outside dimension %d, which has %s", (long long)index, i, extent);
        return false;
    }
    *result = (ir_type){.kind = IR_TENSOR, .dtype = source->dtype};
    result->ndim = source->ndim - indices->count;
    for (int32_t i = 0; i < result->ndim; i++)
        result->shape[i] = source->shape[i + indices->count];
    return true;
}

bool rule_slice(op_call *call, ir_type *result)
{
    const ir_type *source = &rule_operand(call, OPERAND_TENSOR)->var->type;
    const ir_operand *shape = rule_operand(call, OPERAND_EXTENTS);
    int64_t sizes[PYPTO_MAX_DIMS];
    if (!rule_check_rank(call, OPERAND_EXTENTS, source) ||
        !rule_check_rank(call, OPERAND_OFFSETS, source))
        return false;
    rule_extents(shape, sizes);
    if (!rule_check_box(call, "reaches past the end of", source,
                        rule_operand(call, OPERAND_OFFSETS), sizes))
        return false;
    *result = (ir_type){.kind = IR_TENSOR, .dtype = source->dtype, .ndim = source->ndim};
    for (int32_t i = 0; i < source->ndim; i++)
        result->shape[i] = shape->exprs[i];
    return rule_check_packed(call, shape, result);
}

/* A block goes into a tensor, window or tile of its dtype; missing leading axes count as 1. */
bool rule_assemble(op_call *call, ir_type *result)
{
    const ir_type *target = &call->operands[0].var->type;
    const ir_operand *block = &call->operands[1];
    const ir_type *source = &block->var->type;
    *result = *target;
    if (source->dtype != target->dtype)
        return rule_fail(call, DIAG_DTYPE_MISMATCH, block, "convert it: pl.cast(x, dtype)",
                         "a %s of dtype %s does not go into one of dtype %s",
                         ir_kind_name(source->kind), pypto_dtype_name(source->dtype),
                         pypto_dtype_name(target->dtype));
    int32_t leading = target->ndim - source->ndim;
    if (leading < 0)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, block,
                         "pl.reshape(x, shape) takes away axes of extent 1",
                         "a %s of rank %d does not go into one of rank %d",
                         ir_kind_name(source->kind), source->ndim, target->ndim);
    int64_t extents[PYPTO_MAX_DIMS];
    for (int32_t i = 0; i < target->ndim; i++) {
        extents[i] = i < leading ? 1 : 0;
        if (i >= leading && !(source->ragged && target->kind != IR_TILE))
            (void)ir_is_const_int(source->shape[i - leading], &extents[i]);
    }
    return rule_check_rank(call, OPERAND_OFFSETS, target) && check_atomic(call, target->dtype) &&
           rule_check_box(call, "writes past the end of", target,
                          rule_operand(call, OPERAND_OFFSETS), extents);
}

bool rule_reshape_memory(op_call *call, ir_type *result)
{
    const ir_type *source = &memory_operand(call)->var->type;
    const ir_operand *shape = rule_operand(call, OPERAND_SHAPE);
    *result = (ir_type){.kind = source->kind,
                        .dtype = source->dtype,
                        .ndim = shape->count,
                        .ragged = source->ragged};
    for (int32_t i = 0; i < shape->count; i++)
        result->shape[i] = shape->exprs[i];
    int64_t have = ir_static_elems(source);
    int64_t want = ir_static_elems(result);
    if (shape->count == 0 || (have >= 0 && want >= 0 && have != want))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, shape, ELEMENTS_HINT,
                         "the %s has %lld elements, the shape asks for %lld",
                         ir_kind_name(source->kind), (long long)have, (long long)want);
    return rule_check_packed(call, shape, result);
}

bool rule_tensor_view(op_call *call, ir_type *result)
{
    const ir_operand *valid = rule_given(call, "valid_shape");
    const ir_operand *layout = rule_given(call, "layout");
    if (layout != NULL && layout->number != 0)
        return rule_fail(call, DIAG_BAD_ARGUMENTS, layout,
                         "load a tile and exchange its axes: pl.transpose(t, -2, -1)",
                         "a view has the layout ND");
    int64_t sizes[PYPTO_MAX_DIMS];
    if (!rule_reshape_memory(call, result))
        return false;
    rule_extents(rule_operand(call, OPERAND_SHAPE), sizes);
    return rule_check_valid(call, valid, result->ndim, sizes, &result->ragged);
}
