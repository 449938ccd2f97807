/* x[...] of a tensor in a host function: a view, which is what dispatches are given. Elements are none of
 * the host's business.
 *
 * A loop over all devices that indexes a dimension of a parameter says something about the caller's tensor:
 * the dimension must have an entry for each device. That is noted here, through views of views. */
#include "frontend/expressions.h"
#include "frontend/lower.h"
#include "frontend/subscripts.h"

/* The source's dimension that is dimension d of a part; -1 where it is not the whole of it. */
static int32_t whole_dim(const ir_stmt *part, int32_t d)
{
    const ir_type *source = &part->operands[0].var->type;
    for (int32_t k = 0; k < source->ndim; k++) {
        const ir_expr *extent = part->operands[2].exprs[k];
        if (is_index(extent))
            continue;
        if (d-- == 0)
            return ir_expr_equal(extent, source->shape[k]) ? k : -1;
    }
    return -1;
}

/* The parameter, and which dimension of it, that dimension *d of a view is; -1 if none. */
static int32_t viewed_param(const lowering *fl, const ir_var *var, int32_t *d)
{
    for (int32_t i = 0; i < fl->ir->params.count; i++) {
        if (fl->ir->params.items[i] == var)
            return i;
    }
    const ir_stmt *s = ir_operation_of(&fl->ir->body, var);
    if (s == NULL)
        return -1;
    if (s->op_def->id == OP_SUBSCRIPT)
        *d += s->operands[1].count;
    else if (s->op_def->id == OP_HOST_PART)
        *d = whole_dim(s, *d);
    else
        return -1;
    return *d < 0 ? -1 : viewed_param(fl, s->operands[0].var, d);
}

static bool is_world_loop(const lowering *fl, const ir_expr *index)
{
    for (int64_t k = 0; index->kind == IR_VAR && k < fl->notes->world_loops.count; k++) {
        if (fl->notes->world_loops.items[k] == index->var)
            return true;
    }
    return false;
}

static void note_world_dim(lowering *fl, const ir_var *source, const subscript *sub)
{
    for (int32_t k = 0; k < source->type.ndim; k++) {
        int32_t dim = k;
        if (!is_index(sub->extents[k]) || !is_world_loop(fl, sub->offsets[k]))
            continue;
        int32_t param = viewed_param(fl, source, &dim);
        bool fresh =
            param >= 0 && param < fl->ir->world_dims.count && fl->ir->world_dims.items[param] < 0;
        if (fresh)
            fl->ir->world_dims.items[param] = dim;
        return;
    }
}

/* Indices of the leading dimensions alone are the common case, with an operation of its own. */
dsl_value lower_host_view(lowering *fl, dsl_value base, const subscript *sub, pypto_span span,
                          int64_t target)
{
    int32_t leading = 0;
    while (leading < sub->type->ndim && is_index(sub->extents[leading]))
        leading++;
    bool whole = leading == sub->indices && leading > 0;
    for (int32_t d = leading; d < sub->type->ndim; d++)
        whole = whole && ir_expr_equal(sub->extents[d], sub->type->shape[d]);
    int32_t count = whole ? leading : sub->type->ndim;
    dsl_value values[3] = {base, list_value(fl, sub->offsets, count, span),
                           list_value(fl, sub->extents, count, span)};
    dsl_value view = whole ? lower_values(fl, op_get(OP_SUBSCRIPT), values, 2, span, target)
                           : lower_values(fl, op_get(OP_HOST_PART), values, 3, span, target);
    if (view.kind != VALUE_POISON)
        note_world_dim(fl, base.var, sub);
    return view;
}
