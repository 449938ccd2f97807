/* Arrays of scalars: pl.array.create(n, dtype), arr[i], arr[i] = v, pl.array.update_element(arr, i, v).
 *
 * An array is a value, like a tile: it lives in scratch memory, a name that is assigned one gets a copy, and
 * loops and branches carry it by its place. Only its elements can be used; it is neither passed to
 * functions nor returned. An index is checked where it is used, when compiling if it is known then. */
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/lower.h"
#include "frontend/subscripts.h"

bool is_array(const dsl_value *v)
{
    return v->kind == VALUE_VAR && v->var->type.kind == IR_ARRAY;
}

/* The one index between the brackets. */
static bool eval_index(lowering *fl, const syntax_expr *e, dsl_value *index)
{
    const syntax_expr *item = e->items.count == 1 ? e->items.items[0] : NULL;
    if (item == NULL || item->kind == SYNTAX_SLICE) {
        report(fl->fe, DIAG_BAD_INDEX, e->span, "use a loop for several elements",
               "an Array takes one index, and gives one element");
        return false;
    }
    return eval_integer(fl, item, "the index of an Array", index);
}

dsl_value lower_array_item(lowering *fl, dsl_value array, const syntax_expr *e, int64_t target)
{
    dsl_value values[2] = {array};
    if (!eval_index(fl, e, &values[1]))
        return poison();
    return lower_values(fl, op_get(OP_ARRAY_GET), values, 2, e->span, target);
}

void lower_array_write(lowering *fl, dsl_value array, const syntax_expr *target, dsl_value v,
                       pypto_span span)
{
    if (v.kind == VALUE_NONE && array.var->type.dtype == PYPTO_TASK_ID)
        v = no_task(fl->a, v.span);
    dsl_value values[3] = {array, poison(), v};
    if (eval_index(fl, target, &values[1]) && v.kind != VALUE_POISON)
        lower_values(fl, op_get(OP_ARRAY_SET), values, 3, span, -1);
}

/* A copy first, unless the result takes the operand's place. */
dsl_value update_array(lowering *fl, const op_call *call, int64_t target)
{
    ir_var *array = call->operands[0].var;
    ir_var *result = binding_target(fl, target, &array->type, call->span);
    dsl_value source = var_value(fl->a, array, call->span);
    emit_assign(fl, result, &source, call->span);
    ir_stmt *s = ir_stmt_create(fl->fe->program, fl->block, IR_DO, call->span);
    s->op_def = op_get(OP_ARRAY_SET);
    s->operands = call->operands;
    s->operands[0].var = result;
    s->operand_count = s->op_def->param_count;
    return var_value(fl->a, result, call->span);
}
