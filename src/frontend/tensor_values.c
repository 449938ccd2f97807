/* Tensors as operands of operations on tiles, in kernels: pl.add(x, y), x + y, pl.cast(window, dtype).
 *
 * A kernel may be written on tensors: `out[:] = pl.add(a, b)`. The operations are those on tiles. A tensor
 * or window that stands where a tile is wanted is loaded as a whole, at that point of the program; what the
 * operation gives is a tile like any other, which a subscript assignment or pl.assemble writes back. So the
 * two ways of writing mix freely. Only constant shapes have tiles.
 *
 * Also what a write means for a view that is valid in part only: all of it counts from then on. */
#include "frontend/expressions.h"
#include "frontend/lower.h"

#include <string.h>

bool is_tensor_operand(const lowering *fl, const dsl_value *v)
{
    return is_memory_value(v) && fl->ir->plane == PLD_PLANE_CORE;
}

/* The table says which operations there are on tensors by how they are spelled. */
static bool takes_tensors(const op_def *op)
{
    for (const char *const *spelling = op->spellings; *spelling != NULL; spelling++) {
        if (strncmp(*spelling, "pl.tensor.", 10) == 0)
            return true;
    }
    return false;
}

/* Not where the operation changes its operand: that would change the copy. */
bool stands_for_tile(const lowering *fl, const op_def *op, int32_t index, const dsl_value *v)
{
    op_operand kind = op->params[index].kind;
    bool tile = kind == OPERAND_TILE || kind == OPERAND_TILE_OR_SCALAR;
    return tile && takes_tensors(op) && !op_writes(op, index) && is_tensor_operand(fl, v);
}

void count_whole(lowering *fl, ir_var *memory, pypto_span span)
{
    if (!memory->type.ragged || !ir_is_handle(memory->type.kind))
        return;
    ir_stmt *s = ir_stmt_create(fl->fe->program, fl->block, IR_DO, span);
    s->op_def = op_get(OP_WHOLE);
    s->operands = arena_array(fl->a, ir_operand, OP_MAX_PARAMS);
    s->operands[0] = (ir_operand){.kind = IR_OPERAND_VAR, .var = memory, .span = span};
    s->operand_count = s->op_def->param_count;
    s->target = memory;
}

void count_written(lowering *fl, const ir_stmt *call)
{
    for (int32_t i = 0; i < call->operand_count; i++) {
        if (call->operands[i].kind == IR_OPERAND_VAR &&
            call->callee->params.items[i]->direction != PLD_IN)
            count_whole(fl, call->operands[i].var, call->span);
    }
}

dsl_value load_whole(lowering *fl, const char *what, const dsl_value *v)
{
    const ir_type *type = &v->var->type;
    dsl_value *offsets = arena_array(fl->a, dsl_value, type->ndim);
    dsl_value *extents = arena_array(fl->a, dsl_value, type->ndim);
    for (int32_t i = 0; i < type->ndim; i++) {
        int64_t extent = 0;
        if (!ir_is_const_int(type->shape[i], &extent)) {
            text shape = {.a = fl->a};
            ir_print_type(&shape, type);
            return report(fl->fe, DIAG_NOT_CONSTANT, v->span,
                          "work on parts of a constant shape in a loop: x[i : i + 8, :]",
                          "%s computes on tensors of constant shape; this one is %s", what,
                          shape.bytes);
        }
        offsets[i] = literal_int(fl->a, 0, v->span);
        extents[i] = literal_int(fl->a, extent, v->span);
    }
    dsl_value values[3] = {*v};
    values[1] = tuple_value(offsets, type->ndim, v->span);
    values[2] = tuple_value(extents, type->ndim, v->span);
    return lower_values(fl, op_get(OP_LOAD), values, 3, v->span, -1);
}
