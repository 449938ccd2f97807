/* What kernels do to windows, whatever their parameters are declared as.
 *
 * A window may be written through a parameter that is declared as input (a push to a peer, a notify),
 * and the run-time orders the tasks of a dispatch by directions. So a window parameter that its kernel
 * writes becomes InOut here. Plain tensors need nothing: to write an input is an error. */
#include "base/diag.h"
#include "ops/ops.h"
#include "passes/passes.h"

static void mark_written(ir_function *f, const ir_var *var)
{
    if (var->type.kind != IR_WINDOW)
        return;
    for (int64_t i = 0; i < f->params.count; i++) {
        ir_var *param = f->params.items[i];
        /* Without a root, control flow decides which window it is: it may be any. */
        const bool meant = var->root == NULL ? param->type.kind == IR_WINDOW : var->root == param;
        if (meant && param->direction == PLD_IN)
            param->direction = PLD_INOUT;
    }
}

static void visit(void *context, ir_stmt *s)
{
    for (int32_t i = 0; i < s->operand_count; i++) {
        const bool writes = (s->kind == IR_DO && op_writes(s->op_def, i)) ||
                            (s->kind == IR_CALL && s->callee->params.items[i]->direction != PLD_IN);
        if (writes && s->operands[i].kind == IR_OPERAND_VAR)
            mark_written(context, s->operands[i].var);
    }
}

pypto_status pass_effects(ir_program *p)
{
    for (int64_t i = 0; i < p->functions.count; i++) /* callees come before callers */
        if (p->functions.items[i]->plane == PLD_PLANE_CORE)
            ir_visit_stmts(&p->functions.items[i]->body, visit, p->functions.items[i]);
    return STATUS_OK;
}
