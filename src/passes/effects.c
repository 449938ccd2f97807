/* What kernels do to windows, whatever their parameters are declared as.
 *
 * A window may be written through a parameter that is declared as input (a push to a peer), and one
 * that is declared InOut may only be waited on. The run-time orders the tasks of a dispatch by what
 * they do, so each window parameter of a kernel gets its uses here. Plain tensors need nothing: what
 * is not declared as output cannot be written.
 *
 * A kernel that uses windows for barriers alone is a fence, whether a wrapper calls the barrier, a scope or a function:
 * all it can be for is the order of the tasks around it. One that does more is ordered by what it does, for it may wait
 * for a signal of a task behind it. */
#include "base/diag.h"
#include "ops/ops.h"
#include "passes/passes.h"

static void add_uses(ir_function *f, const ir_var *var, uint32_t uses)
{
    if (var->type.kind != IR_WINDOW || uses == 0)
        return;
    for (int64_t i = 0; i < f->params.count; i++) {
        if (ir_may_be(var, f->params.items[i]))
            f->params.items[i]->uses |= uses;
    }
}

static uint32_t uses_of_operand(const ir_stmt *s, int32_t i)
{
    if (s->kind == IR_CALL)
        return s->callee->params.items[i]->uses & ~(uint32_t)PLD_USES_NOTHING;
    const uint32_t bit = 1u << i;
    const op_def *op = s->op_def;
    return ((op->notifies & bit) != 0 ? PLD_NOTIFIES
            : (op->writes & bit) != 0 ? PLD_WRITES
                                      : 0u) |
           ((op->fences & bit) != 0 ? PLD_FENCES : 0u) |
           ((op->awaits & bit) != 0  ? PLD_AWAITS
            : (op->reads & bit) != 0 ? PLD_READS
                                     : 0u);
}

/* Scalar expressions have no effects, and so what they name they read. */
static void visit_var(void *context, ir_var *var)
{
    add_uses(context, var, PLD_READS);
}

static void visit(void *context, ir_stmt *s)
{
    for (int32_t i = 0; i < s->operand_count; i++) {
        const ir_operand *operand = &s->operands[i];
        if (operand->kind == IR_OPERAND_VAR)
            add_uses(context, operand->var, uses_of_operand(s, i));
        ir_visit_expr(operand->expr, visit_var, context);
        for (int32_t k = 0; k < operand->count; k++)
            ir_visit_expr(operand->exprs[k], visit_var, context);
    }
    ir_visit_expr(s->value, visit_var, context);
    ir_visit_expr(s->start, visit_var, context);
    ir_visit_expr(s->stop, visit_var, context);
    ir_visit_expr(s->step, visit_var, context);
}

static bool only_fences(const ir_function *f)
{
    for (int64_t i = 0; i < f->params.count; i++) {
        const uint32_t uses = f->params.items[i]->uses;
        if ((uses & ~(uint32_t)PLD_USES_NOTHING) != 0 &&
            ((uses & PLD_FENCES) == 0 || (uses & (PLD_NOTIFIES | PLD_AWAITS)) != 0))
            return false;
    }
    return true;
}

pypto_status pass_effects(ir_program *p)
{
    for (int64_t i = 0; i < p->functions.count; i++) { /* callees come before callers */
        ir_function *f = p->functions.items[i];
        if (f->plane != PLD_PLANE_CORE)
            continue;
        ir_visit_stmts(&f->body, visit, f);
        const uint32_t dropped = only_fences(f) ? 0 : PLD_FENCES;
        for (int64_t k = 0; k < f->params.count; k++) {
            ir_var *param = f->params.items[k];
            param->uses &= ~dropped;
            if (param->type.kind == IR_WINDOW && param->uses == 0)
                param->uses = PLD_USES_NOTHING;
        }
    }
    return STATUS_OK;
}
