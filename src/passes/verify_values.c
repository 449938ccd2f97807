/* The verifier's look at single statements: expressions, operations, calls and assignments. See verify.c. */
#include "passes/verify_internal.h"

#include "ops/ops.h"

#include <string.h>

/* ---- expressions ---- */

static char category(pypto_dtype dtype)
{
    if (ir_is_float(dtype))
        return 'f';
    return ir_is_integer(dtype) ? (char)'i' : dtype == PYPTO_TASK_ID ? (char)'t' : (char)'b';
}

static void check_op(verifier *v, const op_def *op, const ir_operand *operands, int32_t count,
                     pypto_span span, ir_type *result);

static void check_operands(verifier *v, const ir_operand *operands, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (operands[i].kind == IR_OPERAND_EXPR)
            verify_expr(v, operands[i].expr);
        for (int32_t k = 0; operands[i].kind == IR_OPERAND_LIST && k < operands[i].count; k++)
            verify_expr(v, operands[i].exprs[k]);
    }
}

static void check_binary(verifier *v, const ir_expr *e)
{
    char a = category(e->a->dtype);
    if (a != category(e->b->dtype))
        verify_fail(v, "operands of dtype %s and %s meet in one expression",
                    pypto_dtype_name(e->a->dtype), pypto_dtype_name(e->b->dtype));
    bool compares = e->op >= IR_LT && e->op <= IR_NE;
    bool logical = e->op == IR_AND || e->op == IR_OR;
    bool wants_ints = e->op == IR_SHL || e->op == IR_SHR || e->op == IR_BITAND ||
                      e->op == IR_BITOR || e->op == IR_BITXOR;
    if (compares || logical ? e->dtype != PYPTO_BOOL : category(e->dtype) != a)
        verify_fail(v, "an expression of dtype %s computes with %s", pypto_dtype_name(e->dtype),
                    pypto_dtype_name(e->a->dtype));
    if ((logical && a != 'b') || (wants_ints && a != 'i') || (e->op == IR_DIV && a != 'f') ||
        (!compares && !logical && a == 'b') || a == 't')
        verify_fail(v, "an operator that %s does not have", pypto_dtype_name(e->a->dtype));
}

void verify_expr(verifier *v, const ir_expr *e)
{
    if (e == NULL || verify_failed(v)) {
        verify_fail(v, "an expression is missing");
        return;
    }
    switch (e->kind) {
    case IR_INT:
        if (!ir_is_integer(e->dtype) && !(e->dtype == PYPTO_TASK_ID && e->integer == 0))
            verify_fail(v, "an integer constant of dtype %s", pypto_dtype_name(e->dtype));
        break;
    case IR_FLOAT:
        if (!ir_is_float(e->dtype))
            verify_fail(v, "a float constant of dtype %s", pypto_dtype_name(e->dtype));
        break;
    case IR_BOOL: break;
    case IR_VAR:
        if (e->var->type.kind != IR_SCALAR || e->var->type.dtype != e->dtype)
            verify_fail(v, "'%s' is used as a scalar of dtype %s", e->var->name,
                        pypto_dtype_name(e->dtype));
        break;
    case IR_UNARY: verify_expr(v, e->a); break;
    case IR_BINARY:
        verify_expr(v, e->a);
        verify_expr(v, e->b);
        if (!verify_failed(v))
            check_binary(v, e);
        break;
    case IR_CONVERT: verify_expr(v, e->a); break;
    case IR_OP: {
        ir_type result;
        check_operands(v, e->operands, e->operand_count);
        check_op(v, e->op_def, e->operands, e->operand_count, e->span, &result);
        break;
    }
    }
}

void verify_integer(verifier *v, const ir_expr *e, const char *what)
{
    verify_expr(v, e);
    if (!verify_failed(v) && !ir_is_integer(e->dtype))
        verify_fail(v, "%s of dtype %s", what, pypto_dtype_name(e->dtype));
}

/* ---- operations ---- */

/* The table's own check, on a copy of the operands because it may normalise them. */
static void check_op(verifier *v, const op_def *op, const ir_operand *operands, int32_t count,
                     pypto_span span, ir_type *result)
{
    *result = (ir_type){.kind = IR_NONE};
    if (verify_failed(v))
        return;
    if (count != op->param_count) {
        verify_fail(v, "%s has %d operands", op->spellings[0], count);
        return;
    }
    if (!op_allowed(op, v->f->plane)) {
        verify_fail(v, "%s stands in a function of the wrong plane", op->spellings[0]);
        return;
    }
    ir_operand copies[OP_MAX_PARAMS];
    if (count > 0)
        memcpy(copies, operands, (size_t)count * sizeof *copies);
    pypto_status errors = STATUS_OK;
    op_call call = {v->p, v->f, op, copies, span, &errors};
    if (!op_check(&call, result))
        verify_fail(v, "%s",
                    errors.diagnostics != NULL ? errors.diagnostics->message : op->spellings[0]);
    pypto_status_clear(&errors);
}

void verify_do(verifier *v, const ir_stmt *s)
{
    ir_type result;
    check_operands(v, s->operands, s->operand_count);
    check_op(v, s->op_def, s->operands, s->operand_count, s->span, &result);
    if (verify_failed(v))
        return;
    if (s->target == NULL) {
        if (s->op_def->result_param < 0 && (ir_is_private(result.kind) || result.kind == IR_BUFFER))
            verify_fail(v, "the result of %s has no place", s->op_def->spellings[0]);
        return;
    }
    bool same = s->target->type.kind == result.kind;
    if (same && (ir_is_private(result.kind) || result.kind == IR_SCALAR))
        same = ir_type_equal(&s->target->type, &result);
    if (!same)
        verify_fail(v, "'%s' does not have the type of %s's result", s->target->name,
                    s->op_def->spellings[0]);
    if (result.kind == IR_BUFFER &&
        (s->target->buffer < 0 || s->target->buffer >= v->p->buffers.count))
        verify_fail(v, "'%s' is no registered buffer", s->target->name);
}

static void check_argument(verifier *v, const ir_operand *operand, const ir_var *param)
{
    bool ok = false;
    switch (param->type.kind) {
    case IR_SCALAR:
        ok = operand->kind == IR_OPERAND_EXPR &&
             category(operand->expr->dtype) == category(param->type.dtype);
        break;
    case IR_TENSOR:
        ok = operand->kind == IR_OPERAND_VAR && ir_is_memory(operand->var->type.kind);
        break;
    case IR_WINDOW:
        ok = operand->kind == IR_OPERAND_VAR && operand->var->type.kind == IR_WINDOW;
        break;
    default: break;
    }
    if (!ok)
        verify_fail(v, "an argument that does not fit parameter '%s' of '%s'", param->name,
                    v->s->callee->name);
}

static void check_launch(verifier *v, const ir_launch *l)
{
    if (v->f->plane != PLD_PLANE_CHIP)
        verify_fail(v, "a task of a function that has none");
    if (l->blocks != NULL)
        verify_integer(v, l->blocks, "a number of blocks");
    for (int32_t i = 0; i < l->after_count; i++) {
        verify_expr(v, l->after[i]);
        if (!verify_failed(v) && l->after[i]->dtype != PYPTO_TASK_ID)
            verify_fail(v, "a task after a %s", pypto_dtype_name(l->after[i]->dtype));
    }
    for (int32_t i = 0; l->tested != NULL && i < l->tested->type.ndim; i++)
        verify_integer(v, l->element[i], "an index of a predicate");
    if (l->tested != NULL)
        verify_integer(v, l->limit, "a predicate");
}

void verify_call(verifier *v, const ir_stmt *s)
{
    const ir_function *callee = s->callee;
    if (s->target != NULL && (v->f->plane != PLD_PLANE_CHIP || s->target->type.kind != IR_SCALAR ||
                              s->target->type.dtype != PYPTO_TASK_ID))
        verify_fail(v, "'%s' cannot hold a task", s->target->name);
    if (s->launch != NULL)
        check_launch(v, s->launch);
    if (callee == NULL && (s->operand_count != 0 || v->f->plane != PLD_PLANE_CHIP))
        verify_fail(v, "a call of nothing");
    if (callee == NULL)
        return;
    bool planes = (v->f->plane == PLD_PLANE_HOST && callee->plane == PLD_PLANE_CHIP) ||
                  (v->f->plane == PLD_PLANE_HOST && callee->plane == PLD_PLANE_SUB) ||
                  (v->f->plane == PLD_PLANE_CHIP && callee->plane == PLD_PLANE_CORE) ||
                  (v->f->plane == PLD_PLANE_CORE && callee->plane == PLD_PLANE_CORE);
    if (!planes)
        verify_fail(v, "a call of '%s', which is of the wrong plane", callee->name);
    else if (callee->index >= v->f->index)
        verify_fail(v, "callee '%s' does not stand before its caller", callee->name);
    else if (s->operand_count != callee->params.count)
        verify_fail(v, "a call of '%s' with %d arguments", callee->name, s->operand_count);
    else if (callee->plane == PLD_PLANE_SUB && (s->device != NULL || s->spread != NULL))
        verify_fail(v, "a device for '%s', which runs on none", callee->name);
    else if (s->device != NULL && v->f->plane != PLD_PLANE_HOST)
        verify_fail(v, "a device in a function that runs on one");
    else if (s->spread != NULL && (v->f->plane != PLD_PLANE_HOST || s->device != NULL))
        verify_fail(v, "a dispatch to each device that is none");
    if (s->device != NULL)
        verify_integer(v, s->device, "a device");
    check_operands(v, s->operands, s->operand_count);
    for (int32_t i = 0; i < s->operand_count && !verify_failed(v); i++)
        check_argument(v, &s->operands[i], callee->params.items[i]);
}

void verify_assign(verifier *v, const ir_stmt *s)
{
    if (s->target == NULL || (s->value == NULL) == (s->source == NULL)) {
        verify_fail(v, "an assignment needs a target and one value");
    } else if (s->value != NULL) {
        verify_expr(v, s->value);
        if (!verify_failed(v) && (s->target->type.kind != IR_SCALAR ||
                                  category(s->target->type.dtype) != category(s->value->dtype)))
            verify_fail(v, "'%s' is assigned a scalar of dtype %s", s->target->name,
                        pypto_dtype_name(s->value->dtype));
    } else if (s->source->type.kind != s->target->type.kind ||
               (ir_is_private(s->source->type.kind) &&
                !ir_value_fits(&s->source->type, &s->target->type))) {
        verify_fail(v, "'%s' is assigned '%s', which has another type", s->target->name,
                    s->source->name);
    }
}
