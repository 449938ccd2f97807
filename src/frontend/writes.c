/* What a function writes must be declared so: a pl.Tensor parameter that is neither pl.Out nor pl.InOut
 * is only read.
 *
 * The host relies on it: a tensor that every dispatch only reads is neither copied back nor ordered
 * behind other readers, so a write to one would be lost, or race. Windows may be written whatever they
 * are declared as; their contents are ordered by signals.
 *
 * Called once for each lowered function, because only a whole body tells which parameters a name that
 * branches or loops rebind may stand for. Within a function, a callee counts as what it declares; its
 * own body is checked by itself. The first write of each parameter is reported. */
#include "frontend/lower.h"

typedef struct write_check {
    lowering *fl;
    bool *reported; /* by variable */
    bool *seen;     /* by variable: on the way from one write to its parameters */
    pypto_span span;
} write_check;

static void check_target(write_check *check, ir_var *var);

/* A handle that is bound at run time stands for each source that a statement gives it. */
static void check_sources(write_check *check, const ir_block *block, const ir_var *var)
{
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *s = block->items[i];
        if (s->target == var && s->kind == IR_ASSIGN && s->source != NULL)
            check_target(check, s->source);
        for (int32_t k = 0; s->target == var && s->kind == IR_DO && k < s->operand_count; k++) {
            if (s->operands[k].kind == IR_OPERAND_VAR)
                check_target(check, s->operands[k].var);
        }
        check_sources(check, &s->body, var);
        check_sources(check, &s->orelse, var);
    }
}

static void check_target(write_check *check, ir_var *var)
{
    if (var->type.kind != IR_TENSOR)
        return;
    const ir_var *root = var->root;
    if (root == NULL) {
        if (!check->seen[var->id]) {
            check->seen[var->id] = true;
            check_sources(check, &check->fl->ir->body, var);
        }
        return;
    }
    if (root->kind != IR_VAR_PARAM || root->type.kind != IR_TENSOR || root->direction != PLD_IN ||
        check->reported[root->id])
        return;
    check->reported[root->id] = true;
    report(check->fl->fe, DIAG_INPUT_WRITTEN, check->span,
           "declare it pl.Out[...] or pl.InOut[...]",
           "parameter '%s' is only read, so it cannot be written here", root->name);
}

static void check_write(write_check *check, const ir_operand *operand)
{
    if (operand->kind != IR_OPERAND_VAR)
        return;
    for (int64_t i = 0; i < check->fl->ir->vars.count; i++)
        check->seen[i] = false;
    check->span = operand->span;
    check_target(check, operand->var);
}

static void check_stmt(void *context, ir_stmt *s)
{
    write_check *check = context;
    for (int32_t i = 0; i < s->operand_count; i++) {
        bool writes = (s->kind == IR_DO && op_writes(s->op_def, i)) ||
                      (s->kind == IR_CALL && s->callee->params.items[i]->direction != PLD_IN);
        if (writes)
            check_write(check, &s->operands[i]);
    }
}

void check_writes(lowering *fl)
{
    write_check check = {.fl = fl};
    check.reported = arena_array(fl->a, bool, fl->ir->vars.count);
    check.seen = arena_array(fl->a, bool, fl->ir->vars.count);
    ir_visit_stmts(&fl->ir->body, check_stmt, &check);
}
