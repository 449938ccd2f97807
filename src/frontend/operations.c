/* Operations of the table: from a call in the script to a statement or scalar expression of the IR.
 *
 * The steps are the same for every operation: may it stand here, which argument is which parameter,
 * what does each argument evaluate to, does the type rule accept them (op_check), and then one of
 *   no value             DO without target
 *   "=name" in the table DO without target; the value is that operand's variable
 *   a task of a wrapper  a kernel that does nothing else, and a call of it (outline.c)
 *   a pure scalar        an expression; nothing is emitted
 *   anything else        DO into the assigned name's variable, or into a temporary
 *
 * Special are pl.const and pl.cast, which become constants and conversions, the forms that stand for an
 * operator between scalars, and
 * pld.alloc_window_buffer, whose buffer takes the assigned name as its identity. */
#include "frontend/expressions.h"
#include "frontend/operations_internal.h"
#include "frontend/scalars.h"
#include "frontend/scopes.h"
#include "frontend/subscripts.h"

#include "ops/dtypes.h"

#include <string.h>

/* ---- where it may stand ---- */

static const char *plane_text(pld_plane plane)
{
    return plane == PLD_PLANE_HOST   ? "a HOST function (@pl.jit.host)"
           : plane == PLD_PLANE_CHIP ? "a per-device wrapper (@pl.jit)"
                                     : "an InCore function (@pl.jit.incore)";
}

static bool check_plane(lowering *fl, const op_def *op, const char *written, pypto_span span)
{
    if (op_allowed(op, fl->ir->plane) || op->as_task)
        return true;
    const char *hint =
        op->id == OP_WORLD_SIZE
            ? "a kernel or wrapper asks pld.nranks(pld.get_comm_ctx(window)), or takes the "
              "number as a pl.Scalar parameter"
        : op->id == OP_ALLOC_WINDOW
            ? "allocate in the host function and pass a pld.window of the buffer"
            : "do it in the host function and pass the result";
    if (op->on_host && !op->on_chip && !op->in_core)
        report(fl->fe, DIAG_WRONG_PLANE, span, hint,
               "'%s' can only be called in HOST orchestration context, but '%s' is %s", written,
               fl->syntax->name, plane_text(fl->ir->plane));
    else if (fl->ir->plane == PLD_PLANE_HOST)
        report(
            fl->fe, DIAG_WRONG_PLANE, span,
            "Move this operation into a lower-level function: an in-core function (@pl.jit.incore) "
            "that a @pl.jit wrapper calls",
            "'%s' cannot be used in %s", written, plane_text(fl->ir->plane));
    else
        report(fl->fe, DIAG_WRONG_PLANE, span,
               "move it into an in-core function (@pl.jit.incore) and call that",
               "Misplaced tensor op '%s': it should be inside InCore block, but '%s' is %s",
               written, fl->syntax->name, plane_text(fl->ir->plane));
    return false;
}

/* ---- results ---- */

/* The storage that a handle names: that of the first handle among the operands. */
static ir_var *root_of(const op_def *op, const ir_operand *operands)
{
    for (int32_t i = 0; i < op->param_count; i++) {
        if (operands[i].kind == IR_OPERAND_VAR && ir_is_handle(operands[i].var->type.kind))
            return operands[i].var->root;
    }
    return NULL;
}

/* Whether the result may be computed in that variable while the operands are being read. */
static bool overlaps(const op_def *op, const ir_operand *operands, const ir_var *target)
{
    for (int32_t i = 0; i < op->param_count; i++) {
        if (operands[i].kind == IR_OPERAND_VAR && operands[i].var == target)
            return !op_in_place(op, i);
    }
    return false;
}

static ir_stmt *emit_do(lowering *fl, const op_call *call)
{
    ir_stmt *s = ir_stmt_create(fl->fe->program, fl->block, IR_DO, call->span);
    s->op_def = call->op;
    s->operands = call->operands;
    s->operand_count = call->op->param_count;
    return s;
}

static dsl_value emit_into_variable(lowering *fl, const op_call *call, const ir_type *type,
                                    int64_t target)
{
    ir_var *var = binding_target(fl, target, type, call->span);
    if (overlaps(call->op, call->operands, var))
        var = temporary(fl, type, call->span);
    if (type->kind == IR_BUFFER) {
        ir_buffer added = {.name = var->name, .span = call->span};
        var->buffer = (int32_t)fl->fe->program->buffers.count;
        vec_push(fl->a, &fl->fe->program->buffers, added);
    } else if (ir_is_handle(type->kind)) {
        var->root = root_of(call->op, call->operands);
        if (op_creates_tensor(call->op))
            var->root = var;
        if (type->kind == IR_WINDOW && var->root != NULL)
            var->buffer = var->root->buffer;
    }
    emit_do(fl, call)->target = var;
    return var_value(fl->a, var, call->span);
}

static dsl_value number_of_type(lowering *fl, const op_call *call, const dsl_value *given,
                                pypto_dtype dtype)
{
    const ir_expr *expr = call->operands[0].expr;
    if (given->literal && ir_is_float(expr->dtype))
        expr = ir_float(fl->a, given->real);
    return scalar_value(ir_convert(fl->a, expr, dtype, call->span), call->span);
}

/* What matrix products add up in goes into a 16-bit tensor rounded once: a cast in front of the store. */
static void narrow_accumulator(lowering *fl, op_call *call)
{
    const op_def *op = call->op;
    if (op->id != OP_STORE && op->id != OP_ASSEMBLE)
        return;
    ir_operand *source =
        &call->operands[op_param_index(op, op->id == OP_STORE ? "tile" : "source")];
    const ir_operand *target = &call->operands[op->result_param];
    if (source->kind != IR_OPERAND_VAR || target->kind != IR_OPERAND_VAR ||
        source->var->type.kind != IR_TILE || !source->var->type.accumulator ||
        source->var->type.dtype != PYPTO_FP32 ||
        (target->var->type.dtype != PYPTO_FP16 && target->var->type.dtype != PYPTO_BF16))
        return;
    const op_def *cast = op_get(OP_CAST_TILE);
    ir_operand *operands = arena_array(fl->a, ir_operand, OP_MAX_PARAMS);
    operands[0] = *source;
    operands[1] = (ir_operand){
        .kind = IR_OPERAND_DTYPE, .dtype = target->var->type.dtype, .span = call->span};
    operands[2] = default_operand(fl->a, &cast->params[2]);
    op_call narrowing = {fl->fe->program, fl->ir, cast, operands, call->span, &fl->fe->errors};
    ir_type type = {.kind = IR_NONE};
    if (!op_check(&narrowing, &type))
        return;
    source->var = temporary(fl, &type, call->span);
    emit_do(fl, &narrowing)->target = source->var;
}

/* `values` are those of the arguments that were given. */
static dsl_value finish(lowering *fl, op_call *call, int64_t target, const dsl_value *values)
{
    ir_type type = {.kind = IR_NONE};
    narrow_accumulator(fl, call);
    if (!op_check(call, &type)) {
        reported(fl->fe);
        return poison();
    }
    const op_def *op = call->op;
    if (op->as_task && fl->ir->plane != PLD_PLANE_CORE) {
        bool complete = fl->ir->plane == PLD_PLANE_CHIP || complete_host_collective(fl, call);
        return complete ? lower_as_task(fl, call) : poison();
    }
    if (op->id == OP_CONST || op->id == OP_CAST)
        return number_of_type(fl, call, &values[0], type.dtype);
    if (op_operator(op) != NULL)
        return scalar_binary(fl, op_operator(op), values[0], values[1], call->span);
    if (op->id == OP_ARRAY_UPDATE)
        return update_array(fl, call, target);
    if (op->result_param >= 0) {
        emit_do(fl, call);
        if (op->id == OP_STORE || op->id == OP_ASSEMBLE)
            count_whole(fl, call->operands[op->result_param].var, call->span);
        return var_value(fl->a, call->operands[op->result_param].var, call->span);
    }
    if (type.kind == IR_NONE) {
        emit_do(fl, call);
        if (op->id == OP_GET || op->id == OP_TILE_GET)
            count_whole(fl, call->operands[0].var, call->span);
        return (dsl_value){.kind = VALUE_NONE, .span = call->span};
    }
    if (type.kind == IR_SCALAR && op->reads == 0 && op->writes == 0)
        return scalar_value(
            ir_op(fl->a, op, call->operands, op->param_count, type.dtype, call->span), call->span);
    return emit_into_variable(fl, call, &type, target);
}

/* ---- allocations ---- */

/* A tensor of the host function: all of them exist before the first dispatch. */
static bool check_creation(lowering *fl, pypto_span span)
{
    int32_t body = fl->spliced != NULL ? fl->spliced->depth : 0;
    if (fl->depth == body && fl->loops == 0)
        return true;
    report(fl->fe, DIAG_MISPLACED_TENSOR, span,
           "create one in front of it, with a dimension more if each turn needs its own",
           "pl.create_tensor must be a top-level statement of a host function");
    return false;
}

static bool check_allocation(lowering *fl, pypto_span span, int64_t target)
{
    if (target < 0) {
        report(fl->fe, DIAG_BAD_WINDOW_ALLOCATION, span,
               "write name = pld.alloc_window_buffer(...)",
               "pld.alloc_window_buffer must appear as the RHS of a simple assignment");
        return false;
    }
    if (fl->loops > 0) {
        report(fl->fe, DIAG_BAD_WINDOW_ALLOCATION, span,
               "allocate once outside; a window is one block per rank already",
               "pld.alloc_window_buffer cannot stand in a loop");
        return false;
    }
    const char *name = fl->names.names[target];
    for (int64_t i = 0; i < fl->fe->program->buffers.count; i++) {
        const ir_buffer *buffer = &fl->fe->program->buffers.items[i];
        if (strcmp(buffer->name, name) != 0)
            continue;
        report(fl->fe, DIAG_BAD_WINDOW_ALLOCATION, span, "give each buffer a name of its own",
               "window buffer '%s' is already declared in this program, at line %d", name,
               buffer->span.line);
        return false;
    }
    return true;
}

/* ---- forms ---- */

static bool accepts(const op_param *param, const dsl_value *v)
{
    ir_kind kind = v->kind == VALUE_VAR ? v->var->type.kind : IR_NONE;
    switch (param->kind) {
    case OPERAND_SHAPE:
    case OPERAND_EXTENTS: return v->kind == VALUE_TUPLE;
    case OPERAND_TILE: return kind == IR_TILE;
    case OPERAND_ARRAY: return kind == IR_ARRAY;
    case OPERAND_MEMORY: return ir_is_memory(kind);
    case OPERAND_TENSOR: return kind == IR_TENSOR;
    case OPERAND_WINDOW: return kind == IR_WINDOW;
    default: return v->kind == VALUE_SCALAR;
    }
}

/* The argument that decides: the first, or the keyword that one of the forms calls its first. */
static const syntax_expr *deciding_argument(const op_def *op, const syntax_expr *call)
{
    if (call->items.count > 0)
        return call->items.items[0]->kind == SYNTAX_STARRED ? NULL : call->items.items[0];
    for (; op != NULL; op = op->next_form) {
        for (int64_t i = 0; i < call->keywords.count; i++) {
            const syntax_keyword *keyword = &call->keywords.items[i];
            if (keyword->name != NULL && op_param_index(op, keyword->name) == 0)
                return keyword->value;
        }
    }
    return NULL;
}

/* The form that takes the value, of several the one that may stand here; the one for tiles where a tensor
 * may stand for one; the first when none does. `written` is the spelling in the script. */
static const op_def *choose_form(const lowering *fl, const op_def *op, const char *written,
                                 const dsl_value *first)
{
    const op_def *chosen = NULL;
    for (const op_def *form = op; form != NULL; form = form->next_form) {
        if (op_is_spelled(form, written) && accepts(&form->params[0], first) &&
            (chosen == NULL || !op_allowed(chosen, fl->ir->plane)))
            chosen = form;
    }
    for (const op_def *form = op; chosen == NULL && form != NULL; form = form->next_form)
        chosen = op_is_spelled(form, written) && stands_for_tile(fl, form, 0, first) ? form : NULL;
    return chosen != NULL ? chosen : op;
}

dsl_value lower_values(lowering *fl, const op_def *op, const dsl_value *values, int32_t count,
                       pypto_span span, int64_t target)
{
    if (op->next_form != NULL && count > 0)
        op = choose_form(fl, op, op->spellings[0], &values[0]);
    if (!check_plane(fl, op, op->spellings[0], span))
        return poison();
    ir_operand *operands = arena_array(fl->a, ir_operand, OP_MAX_PARAMS);
    for (int32_t i = 0; i < op->param_count; i++) {
        if (i >= count)
            operands[i] = default_operand(fl->a, &op->params[i]);
        else if (!value_operand(fl, op, &op->params[i], &values[i], &operands[i]))
            return poison();
    }
    op_call checked = {fl->fe->program, fl->ir, op, operands, span, &fl->fe->errors};
    return finish(fl, &checked, target, values);
}

dsl_value lower_operation(lowering *fl, const op_def *op, const char *written,
                          const syntax_expr *call, int64_t target)
{
    const syntax_expr *given[OP_MAX_PARAMS] = {NULL};
    const syntax_expr *decides = op->next_form != NULL ? deciding_argument(op, call) : NULL;
    dsl_value decided = poison();
    if (decides != NULL) {
        decided = eval(fl, decides);
        if (decided.kind == VALUE_POISON)
            return decided;
        op = choose_form(fl, op, written, &decided);
    }
    /* The forms of an operation may call it differently: src, src_tile. */
    if (decides != NULL && call->items.count == 0)
        given[0] = decides;
    if (!check_plane(fl, op, op->spellings[0], call->span) ||
        (op->id == OP_ALLOC_WINDOW && !check_allocation(fl, call->span, target)) ||
        (op->id == OP_HOST_CREATE_TENSOR && !check_creation(fl, call->span)) ||
        (op->as_task && fl->ir->plane == PLD_PLANE_HOST && !check_host_collective(fl, op, call)) ||
        !bind_operation(fl, op, call, given))
        return poison();
    if (op->id == OP_DEFER_WAIT && target >= 0)
        return report(fl->fe, DIAG_BAD_DEFERRED_WAIT, call->span, "write it alone on its line",
                      "%s is side-effect-only and must be used as a standalone statement",
                      op->spellings[0]);
    ir_operand *operands = arena_array(fl->a, ir_operand, OP_MAX_PARAMS);
    dsl_value values[OP_MAX_PARAMS];
    bool ok = true;
    for (int32_t i = 0; i < op->param_count; i++) {
        if (given[i] == NULL) {
            operands[i] = default_operand(fl->a, &op->params[i]);
            continue;
        }
        values[i] = given[i] == decides ? decided : eval(fl, given[i]);
        ok = value_operand(fl, op, &op->params[i], &values[i], &operands[i]) && ok;
    }
    if (!ok)
        return poison();
    op_call checked = {fl->fe->program, fl->ir, op, operands, call->span, &fl->fe->errors};
    return finish(fl, &checked, target, op->param_count > 0 ? values : NULL);
}
